"""Compiles the first filter while the user still looks at the window."""

from __future__ import annotations

from app.backends.cpu import CpuBackend
from app.engine.image import Image
from app.engine.request import Device, Request
from app.engine.run import execute

_SIDE = 16


def warm_up(request: Request) -> None:
    """Import Numba and compile the kernels of `request`, or load them from the disk cache.

    Runs the filter on a corner of the picture and forgets the result; kernels depend on the
    type of the pixels, not on their number. Compiling takes seconds the first time on a
    computer: call it off the GUI thread.
    """
    corner = Image.from_array(request.image.pixels[:_SIDE, :_SIDE], "warm-up")
    backend = CpuBackend(threads=1)
    try:
        execute(
            Request.create(
                corner,
                request.filter.id,
                request.parameters,
                device=Device.CPU,
                grey=request.grey,
            ),
            {backend.id: backend},
        )
    finally:
        backend.close()
