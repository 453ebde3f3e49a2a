"""The program in the folder that .ci/bundle makes: as ``kernelscope``, and as ``python -m``."""

import multiprocessing
import runpy
import sys

if __name__ == "__main__":
    multiprocessing.freeze_support()
    if sys.argv[1:2] == ["-m"]:  # the program starts its helpers this way
        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        from kernelscope.cli.main import main

        sys.exit(main())
