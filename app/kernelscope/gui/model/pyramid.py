"""A picture and its reductions, each made when it is first looked at."""

from __future__ import annotations

import math
import threading
from typing import Any

from numpy.typing import NDArray

from kernelscope.images import reduction

_MOST_AT_ONCE = 96 << 20
"""Bytes of a picture that are averaged within a frame; larger ones need another thread."""


class Pyramid:
    """Samples in full size and halved again and again, in stored units.

    A picture that is shown reduced is drawn from the next larger of these, so that it looks
    averaged, not aliased. A change of level, window or colours needs none of them again.

    - `planes`: shape (height, width, channels), not to be written to.
    """

    def __init__(self, planes: NDArray[Any]) -> None:
        self.planes = planes
        self._levels: dict[int, NDArray[Any]] = {0: planes}
        self._lock = threading.Lock()

    @property
    def height(self) -> int:
        return int(self.planes.shape[0])

    @property
    def width(self) -> int:
        return int(self.planes.shape[1])

    def level_for(self, scale: float) -> int:
        wanted = math.floor(-math.log2(scale) + 1e-9)
        largest = math.ceil(math.log2(max(self.height, self.width)))
        return max(0, min(wanted, largest, int(math.log2(reduction.LARGEST_FACTOR))))

    def is_ready(self, level: int) -> bool:
        """Return whether `samples` has the answer at hand, or within a frame."""
        quick = self.planes.nbytes <= _MOST_AT_ONCE and reduction.is_quick(self.planes)
        return level in self._levels or quick

    def samples(self, level: int) -> NDArray[Any]:
        """Return the picture reduced by ``2 ** level``; see `is_ready`."""
        with self._lock:
            if level not in self._levels:
                self._levels[level] = reduction.reduced(self.planes, 1 << level)
            return self._levels[level]

    def aliased(self, level: int) -> NDArray[Any]:
        """Return every ``2 ** level``-th pixel, to be shown until `samples` are there; a view."""
        return self.planes[:: 1 << level, :: 1 << level]

    def prepare(self, scale: float) -> Pyramid:
        """Make the level that is drawn at this scale, on a thread that may take its time."""
        self.samples(self.level_for(scale))
        return self

    def arrays(self) -> list[NDArray[Any]]:
        return [array for level, array in self._levels.items() if level]
