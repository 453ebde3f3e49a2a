"""Samples of pictures and volumes: types, the white level, colour and alpha channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[Any]
"""An image's samples: uint8, uint16 or float32."""


def white_level(dtype: np.dtype[Any]) -> float:
    """Return the value of white in samples of `dtype`."""
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


def colour_count(channels: int) -> int:
    """Return the number of colour channels: 2 and 4 channels include alpha, the last one."""
    return channels - (channels in (2, 4))


@dataclass(frozen=True, eq=False)
class Components:
    """The volumes of a scan, each an array of its own: a source of which only facts are needed.

    Attributes
    ----------
    parts : tuple of ndarray, shape (depth, height, width)
        Read-only, in the types of their files.
    whole : callable
        Returns them as one array, shape (depth, height, width, components); the first time takes
        longer than most filters do on a GPU.
    peak : callable
        Returns the largest magnitude of a part by its number, if there is a quick way; else None.
    haar : callable
        Returns the two middle details and the two middle means of haar.cu for a part by its number,
        if there is a quick way; else None. It also takes the share of blocks whose edges are weak
        enough, and the voxels from one block to the next.
    """

    parts: tuple[Pixels, ...]
    whole: Callable[[], Pixels]
    peak: Callable[[int], float | None] = lambda number: None
    haar: Callable[[int, float, int], tuple[float, float, float, float] | None] = lambda *_: None

    @property
    def shape(self) -> tuple[int, ...]:
        return *self.parts[0].shape, len(self.parts)


def whole(source: Pixels | Components) -> Pixels:
    """Return a source as one array."""
    return source.whole() if isinstance(source, Components) else source


class Kind(StrEnum):
    """The kind of source that a filter works on."""

    PICTURE = "picture"
    VOLUME = "volume"
