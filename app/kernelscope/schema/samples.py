"""Samples of pictures and volumes: types, the white level, colour and alpha channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.parallel import in_parts

Pixels = NDArray[Any]
"""An image's samples: uint8, uint16 or float32."""


def white_level(dtype: np.dtype[Any]) -> float:
    """Return the value of white in samples of `dtype`; of floats it is 1 for filters."""
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


_BLACKEST, _DIMMEST, _BRIGHTEST = -0.5, 1 / 256, 1.5
"""Floats for which white is 1: noise may lead them beyond 0 and 1, and pictures may be dark. Where
they go below 0 by more than half as much as above, they have a sign."""


def is_bytes(dtype: np.dtype[Any]) -> bool:
    """Return whether slices of such voxels are pictures as they are."""
    return dtype == np.uint8


class Levels(NamedTuple):
    """The samples that stand for black and white."""

    black: float
    white: float

    @property
    def span(self) -> float:
        """The distance from black to white: the unit of amounts, and the peak of PSNR."""
        return self.white - self.black

    def describe(self) -> str:
        return f"{self.black:.4g} is black and {self.white:.4g} is white"


UNIT = Levels(0.0, 1.0)
"""The levels of floats that filters suppose."""


def levels_of(samples: Pixels) -> Levels:
    """Return the samples that stand for black and white: of unsigned integers those of their type.

    Floats mostly lie between 0 and 1, or nearly so. Where they do not, they have another unit:
    black is 0, or the smallest sample if that is negative, and white is the largest.
    """
    if samples.dtype.kind != "f":
        return Levels(0.0, white_level(samples.dtype))
    ends = in_parts(lambda part: (float(samples[part].min()), float(samples[part].max())), samples)
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return levels_between(low, high)


def levels_between(low: float, high: float) -> Levels:
    """Return the levels of floats between `low` and `high`, as `levels_of` does."""
    usual = low >= max(_BLACKEST, -high / 2) and _DIMMEST <= high <= _BRIGHTEST
    return UNIT if usual else levels_from(low, high)


def levels_from(low: float, high: float) -> Levels:
    """Return the levels of voxels, which have no usual range: that of 0 and all of them."""
    return Levels(min(low, 0.0), max(high, 0.0)) if low < 0 or high > 0 else UNIT


def colour_count(channels: int) -> int:
    """Return the number of colour channels: 2 and 4 channels include alpha, the last one."""
    return channels - (channels in (2, 4))


class NoiseMedians(NamedTuple):
    """Facts about blocks of two voxels along each axis, from which noise is estimated.

    Blocks count if they are at least as bright as the average one, and have weak edges. Of an even
    number of them there are two middle ones; else both are the same.
    """

    details: tuple[float, float]
    """The two middle magnitudes of the finest detail of the Haar wavelet."""
    means: tuple[float, float]
    """The two middle means."""


ENDS = "ends"
"""Name of the fact about planes: the smallest and the largest sample of each component."""


@dataclass(frozen=True, eq=False)
class Components:
    """The volumes of a scan, each an array of its own: a source of which only facts are needed."""

    parts: tuple[Pixels, ...]
    """Shape (depth, height, width). Read-only, in the types of their files."""
    whole: Callable[[], Pixels]
    """Returns them as one array, shape (depth, height, width, components); the first time takes
    longer than most filters do on a GPU."""
    ends: Callable[[int], tuple[float, float]]
    """Returns the smallest and the largest sample of a part by its number; looks at it once."""
    peak: Callable[[int], float | None] = lambda number: None
    """Returns the largest magnitude of a part by its number, if there is a quick way; else None."""
    noise_medians: Callable[[int, float, int], NoiseMedians | None] = lambda *_: None
    """Returns the `NoiseMedians` of a part by its number, if there is a quick way; else None. It
    also takes the share of blocks whose edges are weak enough to count, and the voxels from one
    block to the next."""

    @property
    def shape(self) -> tuple[int, ...]:
        return *self.parts[0].shape, len(self.parts)


def whole(source: Pixels | Components) -> Pixels:
    return source.whole() if isinstance(source, Components) else source


class Kind(StrEnum):
    """The kind of source that a filter works on."""

    PICTURE = "picture"
    VOLUME = "volume"
