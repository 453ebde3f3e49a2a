"""Samples of pictures and volumes: types, the white level, colour and alpha channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

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


class NoiseMedians(NamedTuple):
    """Facts about blocks of two voxels along each axis, from which noise is estimated.

    Blocks count if they are at least as bright as the average one, and have weak edges. Of an even
    number of them there are two middle ones; else both are the same.

    Attributes
    ----------
    details : tuple of float
        The two middle magnitudes of the finest detail of the Haar wavelet.
    means : tuple of float
        The two middle means.
    """

    details: tuple[float, float]
    means: tuple[float, float]


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
    noise_medians : callable
        Returns the `NoiseMedians` of a part by its number, if there is a quick way; else None. It
        also takes the share of blocks whose edges are weak enough to count, and the voxels from one
        block to the next.
    """

    parts: tuple[Pixels, ...]
    whole: Callable[[], Pixels]
    peak: Callable[[int], float | None] = lambda number: None
    noise_medians: Callable[[int, float, int], NoiseMedians | None] = lambda *_: None

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
