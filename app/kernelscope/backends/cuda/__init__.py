"""NVIDIA GPUs through PyCUDA; the only package that imports it.

`backend` and `slabs` decide how an image is filtered; the result has the same bytes either way::

    way          when                                    why                           test
    one piece    it fits, and one GPU is enough          it stays for the next filter  slabs
    slabs        it does not fit, or is a volume with    copies, carried by two lanes, slabs
                 much work for several GPUs              overlap the kernels
    lent         the array lies on the card already      nothing is copied             on_device

`executor` and `kernel` choose how a launch is made and waited for::

    short step   of a small picture, not measured        one wait, with the download   short_steps
    queued       of a slab, quick by its pace            the card waits for no host    queued_slabs
    in pieces    longer than half of `LAUNCH_SECONDS`    Cancel works, screens go on   pieces
    batch        measured, below `SHORT_SECONDS`         too short to be timed alone   executor
    handed over  the level is about host memory          parts come up one by one      executor
"""

from kernelscope.backends.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]
