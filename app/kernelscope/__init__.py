"""Kernelscope: image filtering and denoising on the CPU and with CUDA, side by side."""

__version__ = "0.1.0"
