"""The command line, and with it every process of the program: the library does not import it."""

import os
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# Before NumPy is loaded. Products of matrices are small here: a second thread of its library would
# only wait for the next one, on a core that a filter needs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_LEAST = 112 << 20
"""Bytes of address space: with 100 to 105 MiB NumPy is imported, with less it ends in a traceback,
or in a message of OpenBLAS."""

if resource is not None and 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < _LEAST:
    sys.exit(
        "error: There is not enough memory: Kernelscope takes "
        f"{_LEAST // 1_000_000} MB of address space at least. Raise the limit (ulimit -v)."
    )
