"""Non-local means: every pixel becomes an average of the pixels that look like it."""

from kernelscope.filters.nlm.cpu import SPEC

__all__ = ["SPEC"]
