"""Memory-bound passes over an array, split across threads.

One core cannot saturate the memory bandwidth, so a pass that touches each element once (a minimum,
a conversion, a check for NaN) is faster in parts::

    axis 0   |-- slice 0 --|-- slice 1 --|-- slice 2 --|     one thread each

The parts are the same for the same array and machine, and results come in their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value")

MOST_THREADS = min(8, os.cpu_count() or 1)
"""More threads do not raise the bandwidth further."""

SMALLEST_PART = 4 << 20
"""Smallest part, in bytes; below this a thread costs more than it saves."""


def in_parts(function: Callable[[slice], _Value], array: NDArray[Any]) -> list[_Value]:
    """Return ``function(part)`` for slices that together cover the first axis of `array`.

    The calls run in parallel, as far as they spend their time in NumPy, which releases the GIL.
    """
    length = len(array)
    count = max(1, min(MOST_THREADS, length, array.nbytes // SMALLEST_PART))
    ends = np.linspace(0, length, count + 1).astype(int).tolist()
    parts = [slice(first, last) for first, last in pairwise(ends)]
    if count == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(count, "kernelscope-parts") as pool:
        return list(pool.map(function, parts))
