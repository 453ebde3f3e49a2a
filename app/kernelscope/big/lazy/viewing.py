"""Files of any size as they are looked at: at the finest resolution that fits into memory.

An OME-Zarr has resolutions of its own. Where the least is too large, and of TIFF files, pixels are
averaged as they are read, a block at a time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.base.errors import TooLarge
from kernelscope.big.lazy.opening import open_source
from kernelscope.big.lazy.tiff_source import TiffSource
from kernelscope.files.formats import MAX_PIXELS
from kernelscope.files.lazy import Sides
from kernelscope.files.reading import image_from
from kernelscope.files.volumes.reading import volume_from
from kernelscope.files.volumes.zarr_sink import reduced
from kernelscope.files.volumes.zarr_source import (
    ZarrSource,
    is_zarr,
    open_zarr,
    raw_picture,
    raw_volume,
)
from kernelscope.images.image import MAX_SAMPLES, Image
from kernelscope.images.lengths import in_words
from kernelscope.images.volume import MAX_VOXELS, Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

_SAMPLE_BYTES = 32
"""Memory for each sample that is looked at and filtered: floats, output, previews, twice that."""

REDUCED = "the full resolution"  # among the content that a picture lost when it was read

_ROWS, _COLUMNS = 256, 4096  # that are read at a time, at least, where pixels are averaged


@dataclass(frozen=True)
class Resolution:
    level: int = 0  # of an OME-Zarr; 0 is the finest
    factor: int = 1  # a power of two: each pixel is the mean of a square of this side

    @property
    def is_full(self) -> bool:
        return self == Resolution()

    def describe(self, levels: int) -> str:
        """Return ``level 2 of 3, reduced 4×``; empty for the finest."""
        level = f"level {self.level + 1} of {levels}" if self.level else ""
        factor = f"reduced {self.factor}×" if self.factor > 1 else ""
        return ", ".join(filter(None, (level, factor)))


def resolution_of(path: Path) -> Resolution:
    """Return the finest resolution that fits into memory; raises as `open_source`."""
    for level in itertools.count():
        with closing(_opened(path, 1, level)) as source:
            shape, kind = source.shape, source.kind
            if fits(shape, kind):
                return Resolution(level)
            if level + 1 >= _levels(source):
                break
    factor = 2
    while not fits(_sides(shape, kind, factor), kind):
        factor *= 2
    return Resolution(level, factor)


def fits(shape: Sides, kind: Kind) -> bool:
    """Return whether a picture or volume of this shape can be looked at as a whole."""
    samples = math.prod(shape)
    if kind is Kind.PICTURE and math.prod(shape[:2]) > MAX_PIXELS:
        return False
    most = MAX_SAMPLES if kind is Kind.PICTURE else MAX_VOXELS
    return samples < most and samples * _SAMPLE_BYTES <= memory.available()


def read_at(
    path: Path, resolution: Resolution, number: int | None = None, *, nan: float | None = None
) -> Image | Volume:
    """Read a picture or a volume at a resolution; one that is not full is named in the title.

    `number`: from 1, of several. Raises as `open_source`, and as `Image.from_array`.
    """
    with closing(_opened(path, number, resolution.level)) as source:
        samples, head = _reduced(source, resolution.factor), source.head
        source.check_unchanged()
        name, levels, kind = path.name, _levels(source), source.kind
    if not resolution.is_full:
        with closing(_opened(path, number, 0)) as source:
            whole = source.shape
        shown, factor = resolution.describe(levels), resolution.factor
        name = f"{name}, {shown}"
        if head.spacing is not None:
            z, y, x = head.spacing
            head = replace(head, spacing=(z, y * factor, x * factor))
        if head.resolution is not None:
            x, y = head.resolution
            head = replace(head, resolution=(x / factor, y / factor))
        along = [head.steps[axis] for axis in "xy" if axis in head.steps]
        size = f", {in_words(along)} each" if along else ""
        sizes = f"{_size(samples.shape, kind)} of {_size(whole, kind)} pixels{size}"
        notice = (
            f"Shown {'at ' * bool(resolution.level)}{shown}: {sizes}. Filters see these; "
            "File > Filter in Blocks filters the whole."
        )
        others = (*head.others, REDUCED)
        head = replace(head, notices=(notice, *head.notices), others=others)
    if kind is Kind.VOLUME:
        return volume_from(raw_volume(head, samples), name, path, nan)
    return image_from(raw_picture(head, samples), name, path, [], nan)


def read_region(path: Path, ends: tuple[int, int, int, int], shown: Sequence[int]) -> Image:
    """Read a part of a picture at its full resolution.

    `ends`: left, top, right and bottom, in pixels of the picture as it is `shown` (height, width).
    Raises `TooLarge` if the part does not fit into memory.
    """
    with closing(open_source(path)) as source:
        height, width, channels = source.shape
        down, across = height / shown[0], width / shown[1]
        left, top = math.floor(ends[0] * across), math.floor(ends[1] * down)
        right, bottom = math.ceil(ends[2] * across), math.ceil(ends[3] * down)
        left, right = max(left, 0), min(right, width)
        top, bottom = max(top, 0), min(bottom, height)
        sides = bottom - top, right - left, channels
        size = f"{sides[1]}×{sides[0]}"
        if not fits(sides, Kind.PICTURE):
            raise TooLarge(
                f"{path.name}: the region has {size} pixels, which are too many.",
                "Draw a smaller one.",
            )
        samples = source.read(Box((top, left, 0), sides))
        head = replace(source.head, others=(*source.head.others, "the rest of the picture"))
    title = f"{path.name}, {size} from {left}, {top}"
    image = image_from(raw_picture(head, samples), title, path, [], None)
    return replace(image, path=None)  # it is not the file


def _opened(path: Path, number: int | None, level: int) -> TiffSource | ZarrSource:
    if is_zarr(path):
        return open_zarr(path, number, level, apart=True)
    return open_source(path, number)


def _levels(source: TiffSource | ZarrSource) -> int:
    return source.head.ome.levels if source.head.ome is not None else 1


def _size(shape: tuple[int, ...], kind: Kind) -> str:
    height, width = shape[:2] if kind is Kind.PICTURE else shape[1:]
    return f"{width}×{height}"


def _sides(shape: Sides, kind: Kind, factor: int) -> Sides:
    first, second, third = shape
    if kind is Kind.PICTURE:
        return -(-first // factor), -(-second // factor), third
    return first, -(-second // factor), -(-third // factor)


def _reduced(source: TiffSource | ZarrSource, factor: int) -> NDArray[Any]:
    """Return the means of squares of pixels, of volumes in each slice."""
    if factor == 1:
        return source.read(Box((0, 0, 0), source.shape))
    kind, shape = source.kind, source.shape
    output = np.empty(_sides(shape, kind, factor), source.dtype)
    halved = (2, 2, 1) if kind is Kind.PICTURE else (1, 2, 2)
    least = (_ROWS, _COLUMNS, 1) if kind is Kind.PICTURE else (1, _ROWS, _COLUMNS)
    steps = [  # of the boxes: whole squares, and the parts that are stored together
        factor * -(-max(few, grain) // factor) if half == 2 else grain
        for few, grain, half in zip(least, source.grain, halved, strict=True)
    ]
    for first in itertools.product(*map(range, (0, 0, 0), shape, steps)):
        sides = [min(step, side - at) for step, side, at in zip(steps, shape, first, strict=True)]
        (z, y, x), (deep, high, wide) = first, sides
        part = source.read(Box((z, y, x), (deep, high, wide)))
        for _ in range(factor.bit_length() - 1):
            part = reduced(part, halved)
        starts = (at // factor if half == 2 else at for at, half in zip(first, halved, strict=True))
        place = (slice(at, at + side) for at, side in zip(starts, part.shape, strict=True))
        output[tuple(place)] = part
    return output
