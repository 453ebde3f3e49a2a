"""Arrays between stretches of known bytes, which show writes outside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GUARD = 1 << 20
"""Bytes on each side of an array. Writes further away mostly leave the process's memory."""

PATTERN = 0xA5  # the byte that guards are full of
_ALIGNMENT = 512  # of the arrays, as on a card


class Guarded:
    """Arrays for a kernel, each with guards on both sides."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[NDArray[np.uint8], int, int]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array full of the pattern; `name` stands for it in `faults`."""
        size = math.prod(shape) * dtype.itemsize
        held = np.full(size + 2 * _GUARD + _ALIGNMENT, PATTERN, np.uint8)
        start = _GUARD + (-held.ctypes.data - _GUARD) % _ALIGNMENT
        self.held[name] = held, start, start + size
        return held[start : start + size].view(dtype).reshape(shape)

    def faults(self) -> Iterator[str]:
        """Yield a sentence for each array next to which something was written."""
        for name, (held, start, stop) in self.held.items():
            yield from faults_beside(name, held[:start], held[stop:])


def faults_beside(name: str, before: NDArray[np.uint8], after: NDArray[np.uint8]) -> Iterator[str]:
    """Yield a sentence for each guard of an array that is not as it was."""
    changed = np.flatnonzero(before != PATTERN)
    if changed.size:
        yield (
            f"It wrote in front of {name}: {changed.size:,} bytes, "
            f"the nearest {len(before) - int(changed[-1]):,} bytes before its beginning."
        )
    changed = np.flatnonzero(after != PATTERN)
    if changed.size:
        yield (
            f"It wrote behind {name}: {changed.size:,} bytes, "
            f"the nearest {int(changed[0]) + 1:,} bytes behind its end."
        )
