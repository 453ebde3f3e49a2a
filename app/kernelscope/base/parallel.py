"""Passes over the first axis of an array, split across threads.

*Memory-bound* passes touch each element once (a minimum, a conversion, a check for NaN). One core
cannot saturate the memory bandwidth, so `in_parts` gives each of a few threads one large slice::

    axis 0   |-- slice 0 --|-- slice 1 --|-- slice 2 --|     one thread each

*Compute-bound* sums (SSIM, histograms) keep every core busy. `sum_of_bands` cuts bands that take
milliseconds, and each thread takes the next; with a window of 7×7 samples they overlap by 6 rows::

    axis 0   |-- band 0 --...|
                         |-- band 1 --...|
                                     |-- band 2 --|

Both return results in the order of the parts, so that sums of floats have the same bits again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Part = TypeVar("_Part")
_Value = TypeVar("_Value")


def core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


MOST_THREADS = min(8, core_count())  # more threads do not raise the bandwidth further
SMALLEST_PART = 4 << 20  # smallest part, in bytes; below this a thread costs more than it saves
BAND_SAMPLES = 1 << 19  # samples of a band: between two of them a thread checks whether to go on


def in_parts(function: Callable[[slice], _Value], array: NDArray[Any]) -> list[_Value]:
    """Return ``function(part)`` for slices that together cover the first axis of `array`.

    The calls run in parallel, as far as they spend their time in NumPy, which releases the GIL.
    """
    length = len(array)
    count = max(1, min(MOST_THREADS, length, array.nbytes // SMALLEST_PART))
    ends = np.linspace(0, length, count + 1).astype(int).tolist()
    return on_cores(function, [slice(first, last) for first, last in pairwise(ends)])


def sum_of_bands(
    work: Callable[[int, int], NDArray[Any]],
    array: NDArray[Any],
    overlap: int = 0,
    check: Callable[[], None] = lambda: None,
) -> NDArray[Any]:
    """Return the sum of ``work(start, stop)`` over bands of rows of a (row, column, ...) `array`.

    Each band reaches `overlap` rows into the next. `check` is called before each band, on any
    thread; an error that it raises ends all of them.
    """
    height = array.shape[0] - overlap
    rows = max(1, BAND_SAMPLES // (array[0].size or 1))
    bands = [(start, min(start + rows, height) + overlap) for start in range(0, height, rows)]

    def checked(band: tuple[int, int]) -> NDArray[Any]:
        check()
        return work(*band)

    return np.asarray(sum(on_cores(checked, bands)))


def on_cores(function: Callable[[_Part], _Value], parts: Sequence[_Part]) -> list[_Value]:
    """Return ``function(part)`` for each part, in order; a single part needs no other thread."""
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(min(core_count(), len(parts)), "kernelscope-parts") as pool:
        return list(pool.map(function, parts))
