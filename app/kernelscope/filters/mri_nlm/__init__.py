"""Non-local means of MRI volumes: T1w, T2w, PDw, ... of one head, denoised together."""

from kernelscope.filters.mri_nlm.cpu import SPEC

__all__ = ["SPEC"]
