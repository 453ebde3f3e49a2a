"""Start Kernelscope from a checkout: ``python main.py [IMAGE ...]``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "app"))

from kernelscope.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
