"""Sobel filter: the gradient, large at edges, and its directions."""

from kernelscope.filters.sobel.cpu import SPEC

__all__ = ["SPEC"]
