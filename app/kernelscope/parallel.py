"""What touches each voxel once, on several cores: memory is faster than one core asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value")

_WORKERS = min(8, os.cpu_count() or 1)
"""More threads than these do not make memory faster."""

_LEAST_BYTES = 4 << 20
"""Of a part: starting a thread takes longer than looking at fewer."""


def in_parts(function: Callable[[slice], _Value], array: NDArray[Any]) -> list[_Value]:
    """Return ``function(part)`` for slices that together make the first axis of `array`.

    They run side by side; NumPy lets go of the interpreter while it calculates.
    """
    length = len(array)
    count = max(1, min(_WORKERS, length, array.nbytes // _LEAST_BYTES))
    ends = np.linspace(0, length, count + 1).astype(int).tolist()
    parts = [slice(first, last) for first, last in pairwise(ends)]
    if count == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(count, "kernelscope-parts") as pool:
        return list(pool.map(function, parts))
