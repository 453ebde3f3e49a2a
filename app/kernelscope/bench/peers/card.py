"""Access to the GPU through CuPy: peers queue and time their calls here.

The bench's own levels run through PyCUDA in `kernelscope.backends.cuda`; CuPy is imported only by
this package, and only if a library on the GPU is compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelscope.base.paths import KERNELS
from kernelscope.schema.samples import Pixels

_SPIN_SECONDS = 2e-3
"""Cycles that the GPU spins before a timed call, so that launch overhead is not timed."""

_SPARE_BYTES = 512 * 2**20
"""Size of the block that is rewritten to empty the GPU's cache: larger than any cache."""


@functools.cache
def cupy() -> Any:
    import cupy

    return cupy


@functools.cache
def stream() -> Any:
    """Return the stream that all peers share, a context manager."""
    return cupy().cuda.Stream(non_blocking=True)


def upload(pixels: Pixels) -> Any:
    return cupy().asarray(pixels)


def seconds(call: Callable[[], Any], cold: bool) -> float:
    """Return the time between two events around `call`, on an emptied cache if `cold`."""
    with stream() as current:
        begin, end = cupy().cuda.Event(), cupy().cuda.Event()
        if cold:
            _spare().fill(0)
        else:
            call()
        _spin()
        begin.record(current)
        call()
        end.record(current)
        end.synchronize()
        return float(cupy().cuda.get_elapsed_time(begin, end)) * 1e-3


@functools.cache
def _spare() -> Any:
    return cupy().empty(_SPARE_BYTES, np.uint8)


@functools.cache
def _spin_kernel() -> Any:
    source = (KERNELS / "hold.cu").read_text(encoding="utf-8")
    return cupy().RawModule(code=source).get_function("hold")


def _spin() -> None:
    kilohertz = cupy().cuda.Device().attributes["ClockRate"]
    _spin_kernel()((1,), (1,), (np.int64(_SPIN_SECONDS * kilohertz * 1e3),))
