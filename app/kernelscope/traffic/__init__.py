"""The traffic of kernels with the memories of a GPU: traces of it, and their figures."""
