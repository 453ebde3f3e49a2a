"""The interface of a peer library: its filters, and how its calls are timed.

The modules of this package list theirs in ``LIBRARIES``; `kernelscope.bench.peers` finds them. For
each filter that the library has too, `Library.makers` holds a function that prepares a call on
given pixels:

    def mean(pixels, parameters, border):
        side = parameters["size"]
        return lambda: cv2.blur(pixels, (side, side)), unchanged

    LIBRARIES = (Library(name="OpenCV", module="cv2", makers={"mean": mean}, rank=0),)

A maker returns None if the library has no function that computes the same with these parameters
and this border. The first of the two functions that it returns is timed. The second converts the
result, on the host, into the samples of the filter; it is not timed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.base.paths import KERNELS
from kernelscope.filters.shared.non_local import falloff
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Pixels


def distance(parameters: Parameters, border: Border) -> float | None:
    """Return the root of the mean squared difference of patches at which a weight is 1 / e.

    None unless the libraries have such non-local means too: uniform patches, a search window, and
    a mirrored border.
    """
    shared = parameters["weights"] == "uniform" and parameters["search"] == "window"
    if not shared or border is not Border.MIRROR:
        return None
    return float(math.sqrt(falloff(parameters)) / parameters["patch"])


Parameters = Mapping[str, Any]

Made = tuple[Callable[[], Any], Callable[[Any], Pixels]]
"""The call that is timed, and the conversion of its result."""

Maker = Callable[[Any, Parameters, Border], Made | None]
"""Prepares a call on pixels: a NumPy array, or a CuPy array if the library runs on the GPU."""


def _nothing() -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Library:
    name: str  # name in tables and on the command line
    module: str  # Python module that it is used through; empty if it needs none
    makers: Mapping[str, Maker]  # A `Maker` for each supported filter, by the filter's id
    rank: int  # its place in tables: smaller numbers first
    on_card: bool = False  # its calls take CuPy arrays and are queued on CuPy's current stream
    inside_only: bool = False
    """It lacks most borders, so results are compared only where the mask lies within the
    picture."""
    requirement: str = ""  # name of `module` in messages, if not that of the library
    obstacle: Callable[[], str] = _nothing
    """Returns why it cannot be used although `module` is installed; empty if it can."""
    version: Callable[[], str] | None = None
    """Returns its version; without one, `module` has a ``__version__``."""

    def missing(self) -> str:
        if self.module and importlib.util.find_spec(self.module) is None:
            return f"{self.requirement or self.name} is not installed."
        return self.obstacle()

    def find_version(self) -> str:
        if self.version is not None:
            return self.version()
        return str(importlib.import_module(self.module).__version__)

    def counterpart(
        self, filter_id: str, pixels: Pixels, parameters: Parameters, border: Border
    ) -> Counterpart | None:
        maker = self.makers[filter_id]
        if self.on_card:
            with stream():
                made = maker(cupy().asarray(pixels), parameters, border)
        else:
            made = maker(pixels, parameters, border)
        return None if made is None else Counterpart(self, *made)


@dataclass(frozen=True)
class Counterpart:
    library: Library
    call: Callable[[], Any]
    """Does the work and returns the result; on a GPU queues it on the current CuPy stream."""
    finish: Callable[[Any], Pixels]  # converts the result, on the host, to the type of the filter

    def result(self) -> Pixels:
        if not self.library.on_card:
            return self.finish(self.call())
        with stream():
            return self.finish(self.call().get())

    def seconds(self, cold: bool) -> float:
        """Return the time of a call: on a GPU by events, on an emptied cache if `cold`."""
        if self.library.on_card:
            return seconds_on_card(self.call, cold)
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start


# The GPU through CuPy ------------------------------------------------------------------
#
# The bench's own levels run through PyCUDA in `kernelscope.backends.cuda`; CuPy is imported only by
# this package, and only if a library on the GPU is compared.

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


def seconds_on_card(call: Callable[[], Any], cold: bool) -> float:
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


# Shared by makers -------------------------------------------------------------------------


def mask_and_divisor(parameters: Parameters) -> tuple[Any, int]:
    """Return the weights of a custom mask, whole ones as integers, and the divisor of their sum."""
    mask = np.array(parameters["mask"])
    divisor = {"one": 1, "count": mask.size, "sum": mask.sum()}[parameters["divisor"]]
    return mask, divisor or 1


def unchanged(values: Any) -> Pixels:
    return np.asarray(values)


def saturate(values: Any) -> Pixels:
    """Return signed sums as bytes."""
    return np.asarray(np.clip(values, 0, 255).astype(np.uint8))


def round_and_saturate(values: Any) -> Pixels:
    return saturate(np.rint(values))


def magnitudes(values: Any) -> Pixels:
    return saturate(np.abs(values.astype(np.int32)))


def laplace_mask(parameters: Parameters) -> Any:
    from kernelscope.filters.laplace import MASKS

    return np.array(MASKS[parameters["form"]], np.float64)
