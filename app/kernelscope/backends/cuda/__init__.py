"""NVIDIA GPUs through PyCUDA; the only package that imports it."""

from kernelscope.backends.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]
