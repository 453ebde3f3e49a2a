"""Start Kernelscope from a checkout: ``python main.py [IMAGE]``."""

import sys

from app.cli import main

if __name__ == "__main__":
    sys.exit(main())
