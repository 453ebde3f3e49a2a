"""The command line, and with it every process of the program: the library does not import it."""

import os

# Before NumPy is loaded. Products of matrices are small here: a second thread of its library would
# only wait for the next one, on a core that a filter needs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
