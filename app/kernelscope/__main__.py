"""``python -m kernelscope``: the same as the command ``kernelscope``."""

import sys

from kernelscope.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
