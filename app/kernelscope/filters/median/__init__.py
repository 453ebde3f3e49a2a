"""Median filter: every pixel becomes the middle value of the square around it."""

from kernelscope.filters.median.cpu import SPEC

__all__ = ["SPEC"]
