"""The picture that the lecture is about: the user's own, as grey bytes, or a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files import SAMPLES, read_image
from kernelscope.images.source import Source
from kernelscope.schema.samples import Kind

_PLACES = 7
"""Places along each axis among which that of a detail is chosen."""


@dataclass(frozen=True)
class MeasuredTime:
    """The time of a run of this session on a GPU."""

    filter_id: str
    what: str
    """The filter with its settings, and the level."""
    time: str
    """With its unit."""


@dataclass(frozen=True, eq=False)
class LectureSubject:
    """The picture of the lecture, and the runs of this session."""

    title: str
    pixels: NDArray[np.uint8]
    """uint8, shape (height, width)."""
    measured: tuple[MeasuredTime, ...] = ()

    @classmethod
    def of(cls, source: Source | None, measured: tuple[MeasuredTime, ...] = ()) -> LectureSubject:
        """Return the picture that is open as grey bytes; of volumes, the slice in the middle."""
        if source is None:
            source = read_image(SAMPLES[0].path)
        if source.kind is Kind.VOLUME:
            middle = source.shape[0] // 2
            title = f"{source.title}, slice {middle + 1}"
            return cls(title, _stretched(source.planes[middle]), measured)
        return cls(source.title, _grey(source.planes), measured)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and the single channel."""
        return (*self.pixels.shape, 1)

    @property
    def size(self) -> str:
        """The sides in words: ``512×384``."""
        height, width = self.pixels.shape
        return f"{width}×{height}"

    def part(self, rows: int, columns: int) -> tuple[NDArray[np.uint8], int, int]:
        """Return a detail with its first row and column; smaller where the picture is.

        It is the one with most contrast among some places, so that it is seldom an empty sky.
        """
        height, width = self.pixels.shape
        tops, lefts = (
            np.linspace(0, max(0, side - part), _PLACES + 2, dtype=int)[1:-1]
            for side, part in ((height, rows), (width, columns))
        )
        parts = [
            (self.pixels[top : top + rows, left : left + columns], int(top), int(left))
            for top in tops
            for left in lefts
        ]
        return max(parts, key=lambda each: float(each[0].std()))


def _grey(planes: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the mean of the colours as bytes; an alpha channel is left out."""
    channels = planes.shape[2]
    grey = planes[:, :, : channels - (channels in (2, 4))].mean(axis=2, dtype=np.float64)
    white = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}.get(planes.dtype, 1)
    return _bytes(grey * (255 / white))


def _stretched(plane: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a slice of a volume as bytes: the smallest value is black, the largest white."""
    grey = plane.mean(axis=2, dtype=np.float64)
    low, high = float(grey.min()), float(grey.max())
    return _bytes((grey - low) * (255 / (high - low) if high > low else 0))


def _bytes(grey: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.clip(np.rint(grey), 0, 255).astype(np.uint8))
