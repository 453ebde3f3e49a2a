"""Stacks of grey TIFF pages: plain ones, those of ImageJ and OME, and our own.

Our own keep the exact spacing in the description, next to the shape that tifffile puts there.
"""

from __future__ import annotations

import io
import math
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures.tiff import photometric, unwritten
from kernelscope.files.pictures.tiff_pages import check_pages
from kernelscope.files.pictures.tiff_segments import (
    are_cut_off,
    check_extents,
    check_segments,
    prepare,
)
from kernelscope.files.reading import open_file
from kernelscope.files.volumes.raw_volume import UNKNOWN_SPACING, RawVolume, choose
from kernelscope.images.volume import Spacing, Volume, check_shape

_MAGIC = re.compile(rb"II[*+]\0|MM\0[*+]")
WHITE_IS_ZERO, _BLACK_IS_ZERO = _GREYS = 0, 1
SPACING = "spacing_mm"
_MILLIMETRES = {"mm": 1.0, "cm": 10.0, "inch": 25.4, "micron": 1e-3, "µm": 1e-3, "um": 1e-3}
_MILLIMETRES["\\u00B5m"] = 1e-3  # ImageJ's spelling of µm


def matches(start: bytes) -> bool:
    """Whether a file that starts like this is TIFF."""
    return _MAGIC.match(start) is not None


def is_stack(path: Path) -> bool:
    """Whether a TIFF holds several grey pages of one size."""
    import tifffile

    with open_file(path) as handle:
        check_pages(handle)
        with tifffile.TiffFile(handle) as file:
            series = file.series[0]
            page = series.keyframe
            grey = page.samplesperpixel == 1 and photometric(page, []) in _GREYS
            return bool(grey and math.prod(series.shape[:-2]) > 1)


def decode(path: Path, number: int | None) -> RawVolume:
    """Read one stack; a file holds several if it has channels, times, or pages of mixed sizes."""
    import tifffile

    with ExitStack() as opened:
        handle = opened.enter_context(open_file(path))
        pages = check_pages(handle)
        file = opened.enter_context(tifffile.TiffFile(handle))
        if len(file.pages) != pages or not file.series:
            raise Unreadable("its chain of pages is damaged.")
        stacks = [
            (series, index) for series in file.series for index in range(volume_count(series))
        ]
        names = ["×".join(map(str, stack_shape(series)[::-1])) for series, _ in stacks]
        chosen = choose(number, names, "volume", alike=len(set(names)) == 1)
        series, index = stacks[chosen]
        # The other volumes of a series are read along with the chosen one.
        depth, height, width = stack_shape(series)
        check_shape((volume_count(series) * depth, height, width), path.name)
        notices = [f"Volume {chosen + 1} of {len(stacks)}."] if len(stacks) > 1 else []
        meaning = photometric(series.keyframe, notices)
        check_grey(series, meaning)
        handle.trust()
        numbers = _numbers(series, index, os.fstat(handle.fileno()).st_size)
        if meaning == WHITE_IS_ZERO:
            numbers = inverted(numbers, series.keyframe.bitspersample)
            notices.append("White is 0 in the file: inverted.")
        notices += _unwritten_pages(series)
        spacing = spacing_in(file)
        if spacing is None:
            notices.append(UNKNOWN_SPACING)
        return RawVolume(numbers, spacing or (1.0, 1.0, 1.0), notices=notices)


def encode(volume: Volume) -> bytes:
    """Return the whole file, one page per slice, compressed without loss."""
    import tifffile

    voxels = volume.restored(volume.unscaled)
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        voxels,
        photometric="minisblack",
        compression="zlib",
        predictor=voxels.dtype.itemsize <= 4 or voxels.dtype.kind == "f",  # none for 64 bits
        metadata={"axes": "ZYX", SPACING: volume.spacing},
        bigtiff=voxels.nbytes >= 2**32 - 2**25,
    )
    return buffer.getvalue()


def _unwritten_pages(series: Any) -> list[str]:
    """Return a notice if some pages have strips or tiles without data."""
    if series.dataoffset is not None:
        return []
    pages = sum(bool(unwritten(page)) for page in series.pages if page is not None)
    if not pages:
        return []
    return [f"Parts of {pages} of {len(series.pages)} pages were never written: they count as 0."]


def volume_axes(series: Any) -> tuple[int, ...]:
    """Return the indices of the axes that count volumes: not Y, X, and the depth."""
    long = [i for i, side in enumerate(series.shape) if series.axes[i] not in "YX" and side > 1]
    if "S" in series.axes or series.keyframe.samplesperpixel > 1:
        raise Unreadable("its pages are in colour.", "Convert them to grey.")
    depths = [i for i in long if series.axes[i] == "Z"] or long
    if len(depths) > 1:
        raise Unreadable(
            f"its pages are counted in {len(depths)} ways ({series.axes}), and none is the depth.",
            "Save one stack a file.",
        )
    return tuple(i for i in long if i not in depths)


def volume_count(series: Any) -> int:
    return math.prod(series.shape[i] for i in volume_axes(series))


def stack_shape(series: Any) -> tuple[int, int, int]:
    """Return depth, height and width."""
    height, width = (series.shape[series.axes.index(axis)] for axis in "YX")
    depth = math.prod(series.shape) // (max(1, height * width) * max(1, volume_count(series)))
    return depth, height, width


def check_grey(series: Any, meaning: int) -> None:
    """Refuse pages that are not grey pictures."""
    if meaning not in _GREYS:
        raise Unreadable("its pages are in colour or have a palette.", "Convert them to grey.")
    if series.dtype is None or series.dtype.kind not in "buif":
        raise Unreadable(f"its values are of type {series.dtype}.", "Convert them to integers.")


def _numbers(series: Any, index: int, size: int) -> NDArray[Any]:
    """Return the values of one volume of a series, as stored in a file of `size` bytes."""
    if series.dataoffset is not None:
        if series.dataoffset + math.prod(series.shape) * series.dtype.itemsize > size:
            raise Unreadable("the file is cut off.")
        stored = series.asarray()
    else:
        stored = _decoded(series, size)
    if volume_count(series) == 1:
        return np.asarray(stored).reshape(stack_shape(series))
    others = volume_axes(series)
    rest = [i for i in range(len(series.shape)) if i not in others]
    ordered = np.transpose(stored, (*others, *rest))
    return np.asarray(ordered.reshape(-1, *stack_shape(series))[index])


def _decoded(series: Any, size: int) -> NDArray[Any]:
    """Return all values of a series whose pages have separate strips or tiles."""
    pages = [page for page in series.pages if page is not None]
    for page in {id(page.keyframe): page.keyframe for page in pages}.values():
        check_segments(page, size)
        prepare(page)
    check_extents(pages, size)
    try:
        return np.asarray(series.asarray())
    except Exception as error:
        if isinstance(error, Unreadable) or not are_cut_off(pages, size):
            raise
        raise Unreadable("the file is cut off.") from error


def inverted(numbers: NDArray[Any], bits: int) -> NDArray[Any]:
    if numbers.dtype.kind == "b":
        return ~numbers
    if numbers.dtype.kind != "u":
        raise Unreadable("white is 0 in it, but its values have no largest one.")
    inverted: NDArray[Any] = np.subtract(2**bits - 1, numbers, dtype=numbers.dtype)
    return inverted


def spacing_in(file: Any) -> Spacing | None:
    """Return the spacing as written by us or by ImageJ; a plain TIFF has none for the depth."""
    shaped = file.shaped_metadata
    ours = shaped[0].get(SPACING) if shaped else None
    if ours is not None:
        z, y, x = (float(step) for step in ours)
        return (z, y, x) if all(0 < step < math.inf for step in (z, y, x)) else None
    metadata = file.imagej_metadata or {}
    unit = _MILLIMETRES.get(metadata.get("unit", ""))
    tags = file.pages[0].tags
    if unit is None or "spacing" not in metadata:
        return None
    per_unit = [tags[f"{axis}Resolution"].value for axis in "YX"]
    if not all(top and bottom for top, bottom in per_unit):
        return None
    y, x = (unit * bottom / top for top, bottom in per_unit)
    return abs(float(metadata["spacing"])) * unit, y, x
