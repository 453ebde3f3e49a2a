"""An emulated GPU: the CUDA kernels, compiled for the processor and run there, thread by thread."""

from kernelscope.backends.emulator.backend import EmulatorBackend

__all__ = ["EmulatorBackend"]
