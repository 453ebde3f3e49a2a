"""Compiles the first filter while the user still looks at the window."""

from __future__ import annotations

import logging
from dataclasses import replace

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border

_logger = logging.getLogger(__name__)

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
        wanted = Request(corner, replace(request.step, border=Border.REFLECT))
        # Not through the engine, which would report this as if the user had run it.
        _logger.info("Getting %s ready for the first run", request.step.filter.name)
        fastest = backend.levels(wanted.step.filter)[-1]
        backend.run(wanted, fastest, RunContext())
        _logger.info("%s is ready: its code is compiled", request.step.filter.name)
    finally:
        backend.close()
