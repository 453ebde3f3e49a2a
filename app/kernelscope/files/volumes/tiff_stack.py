"""Stacks of grey TIFF pages: plain ones, those of ImageJ and OME, and our own.

Our own keep the exact spacing in the description, next to the shape that tifffile puts there.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import ImageWriteError
from kernelscope.files.formats import Unreadable
from kernelscope.files.picture_formats import contents_of
from kernelscope.files.pictures.exif import turned
from kernelscope.files.pictures.tiff import (
    holes_of,
    is_big,
    is_of_volumes,
    metadata_of,
    nodata_of,
    nodata_tags,
    orientation_of,
    photometric,
    unwritten,
)
from kernelscope.files.pictures.tiff_description import (
    IMAGEJ_TYPES,
    Description,
    description_of,
    imagej,
    ome,
    ours,
)
from kernelscope.files.pictures.tiff_layout import (
    are_cut_off,
    check_extents,
    check_pages,
    check_planes,
    check_segments,
    prepare,
)
from kernelscope.files.reading import open_file
from kernelscope.files.volumes.raw_volume import RawVolume, choose, spacing_from
from kernelscope.files.watched import WatchedFile
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel
from kernelscope.images.volume import Among, Volume, check_shape

_WORDS = {"C": "channel", "T": "time"}
WHITE_IS_ZERO, _BLACK_IS_ZERO = _GREYS = 0, 1


def is_stack(path: Path) -> bool:
    """Whether a TIFF holds several grey pages of one size, or one of a type that pictures lack."""
    import tifffile

    with open_file(path) as handle:
        check_pages(handle)
        with tifffile.TiffFile(handle) as file:
            check_planes(file)
            series = file.series[0]
            page = series.keyframe
            grey = page.samplesperpixel == 1 and photometric(page, []) in _GREYS
            several = grey and math.prod(series.shape[:-2]) > 1
            return bool(several or (grey and is_of_volumes(page.dtype)))


def decode(path: Path, number: int | None) -> RawVolume:
    import tifffile

    with ExitStack() as opened:
        handle = opened.enter_context(open_file(path))
        pages = check_pages(handle)
        file = opened.enter_context(tifffile.TiffFile(handle))
        check_planes(file)
        if len(file.pages) != pages or not file.series:
            raise Unreadable("its chain of pages is damaged.")
        chosen, notices = chosen_stack(file, number)
        series, index = chosen.series, chosen.index
        # The other volumes of a series are read along with the chosen one.
        depth, height, width = stack_shape(series)
        check_shape((volume_count(series) * depth, height, width), path.name)
        meaning = photometric(series.keyframe, notices)
        check_grey(series, meaning)
        handle.trust()
        numbers = _numbers(series, index, os.fstat(handle.fileno()).st_size)
        missing = holes_of(series.keyframe, numbers)
        if meaning == WHITE_IS_ZERO:
            numbers = inverted(numbers, series.keyframe.bitspersample)
            notices.append("White is 0 in the file: inverted.")
        notices += _unwritten_pages(series)
        steps, orientation = dict(chosen.description.steps), orientation_of(series.keyframe)
        if orientation != 1:
            numbers = _turned(numbers, orientation)
            missing = None if missing is None else _turned(missing, orientation)
            notices.append("Turned upright, as the file states.")
            if orientation >= 5 and {"x", "y"} <= steps.keys():
                steps["x"], steps["y"] = steps["y"], steps["x"]
        spacing, stated = spacing_from(steps)
        return RawVolume(
            numbers,
            spacing,
            notices=notices,
            others=others_of(handle, series.keyframe, chosen.description),
            stated=stated,
            channel=chosen.channel,
            microscope=chosen.description.microscope,
            among=chosen.among,
            missing=missing,
            nodata=nodata_of(series.keyframe),
            interval=chosen.description.interval,
        )


def _turned(slices: NDArray[Any], orientation: int) -> NDArray[Any]:
    return np.moveaxis(turned(np.moveaxis(slices, 0, -1), orientation), -1, 0)


def encode(volumes: Sequence[Volume]) -> bytes:
    """Return a file of channels or times of one shape, a page per slice, without loss.

    Those of microscopes are hyperstacks of ImageJ, where it has their type and size.
    """
    first, channels = volumes[0], channels_of(volumes)
    stored, axes = [_stored(each) for each in volumes], axes_of(volumes)
    is_known = stored[0].dtype in IMAGEJ_TYPES and not is_big(sum(each.nbytes for each in stored))
    if first.microscope and is_known:
        described, resolution = imagej(first.spacing, first.stated, first.interval, *channels)
        return _encoded(stored, axes, described, nodata=first.nodata, resolution=resolution)
    described = ours(
        first.spacing,
        first.stated,
        *channels,
        interval=first.interval,
        microscope=first.microscope,
    )
    return _encoded(stored, axes, described, nodata=first.nodata)


def encode_ome(volumes: Sequence[Volume]) -> bytes:
    stored, first = [_stored(each) for each in volumes], volumes[0]
    if stored_in(first) != stored[0].dtype:
        stored = [each.restored(each.voxels, each.nodata) for each in volumes]
    described = ome(
        first.steps,
        np.stack(stored),
        *channels_of(volumes),
        interval=first.interval,
        microscope=first.microscope,
    )
    nodata = first.nodata
    return _encoded(stored, axes_of(volumes), described, is_ome=True, nodata=nodata)


def stored_in(volume: Volume) -> np.dtype[Any]:
    """Return the type in which OME-TIFF stores a volume: it has no integers of 64 bits."""
    own: np.dtype[Any] = volume.unscaled.dtype
    return volume.voxels.dtype if own.itemsize == 8 and own.kind != "f" else own


def axes_of(volumes: Sequence[Volume]) -> tuple[Among, ...]:
    """Return the axes along which volumes lie one after the other in a file, with their lengths.

    Volumes of another origin are times, such as those of a NIfTI file. Times of a single slice
    would be read as the slices of one volume.

    Raises `ImageWriteError` if they are such times.
    """
    if len(volumes) == 1:
        return ()
    known = [each.among for each in volumes]
    axes = known[0]
    places = product(*(range(axis.count) for axis in axes))
    found = [tuple(axis.index for axis in each) for each in known]
    if axes and set("".join(axis.letter for axis in axes)) <= set("CT") and found == list(places):
        return axes
    if volumes[0].depth == 1:
        raise ImageWriteError(
            "Several volumes of one slice each are written to NIfTI files only.",
            "Save them as NIfTI.",
        )
    return (Among("T", 0, len(volumes)),)


def channels_of(volumes: Sequence[Volume]) -> list[Channel]:
    """Return the channels in the order of their axis, or the one that is that of all volumes."""
    if any(axis.letter == "C" for axis in axes_of(volumes)):
        found = {each.channel_number: each.channel for each in volumes}
        return [found[number] for number in sorted(found)]
    first = volumes[0].channel
    same = all(
        (each.channel.name, each.channel.colour) == (first.name, first.colour) for each in volumes
    )
    return [first if same else UNKNOWN_CHANNEL]


def _stored(volume: Volume) -> NDArray[Any]:
    return volume.restored(volume.unscaled, volume.nodata)


def _encoded(
    stored: Sequence[NDArray[Any]],
    axes: tuple[Among, ...],
    described: dict[str, Any],
    *,
    is_ome: bool = False,
    nodata: float | None,
    resolution: tuple[float, float] | None = None,
) -> bytes:
    """Return a file of OME, of ImageJ if there is a `resolution`, or of our own."""
    import tifffile

    voxels = np.stack(stored) if axes else stored[0]
    voxels = voxels.reshape(*(axis.count for axis in axes), *voxels.shape[-3:])
    letters = "".join(axis.letter for axis in axes)
    if letters == "CT":  # OME-TIFF has times outside
        voxels, letters = voxels.swapaxes(0, 1), "TC"
    letters += "ZYX"
    is_imagej = resolution is not None
    if is_imagej and "C" in letters:  # ImageJ has channels inside
        voxels, letters = np.moveaxis(voxels, -4, -3), letters.replace("CZ", "ZC")
    is_float = voxels.dtype.kind == "f"
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        voxels,
        ome=is_ome,
        photometric="minisblack",
        compression="zlib",
        imagej=is_imagej,
        resolution=resolution,
        # None for 64 bits; ImageJ has none for floats.
        predictor=not is_imagej if is_float else voxels.dtype.itemsize <= 4,
        metadata={"axes": letters, **described},
        bigtiff=is_big(voxels.nbytes),
        extratags=nodata_tags(nodata),
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


@dataclass(frozen=True)
class Stack:
    """One of the volumes of a TIFF: a channel and a time of one of its series."""

    series: Any
    index: int
    name: str
    channel: Channel
    description: Description
    among: tuple[Among, ...]


def chosen_stack(file: Any, number: int | None) -> tuple[Stack, list[str]]:
    stacks = [
        stack
        for place, series in enumerate(file.series)
        for stack in _stacks(series, description_of(file, place))
    ]
    sizes = ["×".join(map(str, stack_shape(each.series)[::-1])) for each in stacks]
    alike = len(set(sizes)) == 1
    along = ("".join(each.axes[axis] for axis in volume_axes(each)) for each in file.series)
    of_channels = all(letters == "C" for letters in along)
    what = "channel" if of_channels else "volume"
    names = [each.name if alike else size for each, size in zip(stacks, sizes, strict=True)]
    chosen = choose(number, names, what, alike=alike)
    stack = stacks[chosen]
    if len(stacks) == 1:
        return stack, []
    name = f": {stack.name}" if stack.name and stack.name != f"{what} {chosen + 1}" else ""
    return stack, [f"{what.capitalize()} {chosen + 1} of {len(stacks)}{name}."]


def _stacks(series: Any, description: Description) -> Iterator[Stack]:
    """Yield the volumes of a series, in the order of its axes."""
    axes = volume_axes(series)
    for index, place in enumerate(np.ndindex(*(series.shape[axis] for axis in axes))):
        parts, channel = [], description.channel()
        for axis, at in zip(axes, place, strict=True):
            letter = series.axes[axis]
            text = f"{_WORDS.get(letter, 'volume')} {at + 1}"
            if letter == "C":
                channel = description.channel(at)
                text = channel.name or text
            parts.append(text)
        among = tuple(
            Among(series.axes[axis], at, series.shape[axis])
            for axis, at in zip(axes, place, strict=True)
        )
        yield Stack(series, index, ", ".join(parts) or "volume 1", channel, description, among)


def volume_axes(series: Any) -> tuple[int, ...]:
    """Return the indices of the axes that count volumes: not Y, X, and the depth.

    Channels are never the depth; times are where there is no other.
    """
    long = [i for i, side in enumerate(series.shape) if series.axes[i] not in "YX" and side > 1]
    if "S" in series.axes or series.keyframe.samplesperpixel > 1:
        raise Unreadable("its pages are in colour.", "Convert them to grey.")
    depths = [i for i in long if series.axes[i] == "Z"]
    depths = depths or [i for i in long if series.axes[i] != "C"]
    if len(depths) > 1:
        raise Unreadable(
            f"its pages are counted in {len(depths)} ways ({series.axes}), and none is the depth.",
            "Save one stack a file.",
        )
    return tuple(i for i in long if i not in depths)


def volume_count(series: Any) -> int:
    return math.prod(series.shape[i] for i in volume_axes(series))


def stack_shape(series: Any) -> tuple[int, int, int]:
    height, width = (series.shape[series.axes.index(axis)] for axis in "YX")
    depth = math.prod(series.shape) // (max(1, height * width) * max(1, volume_count(series)))
    return depth, height, width


def others_of(handle: WatchedFile, page: Any, description: Description) -> tuple[str, ...]:
    """Return names of further content of a page that volumes do not keep."""
    metadata = metadata_of(page, handle, description)
    resolution = None if description.steps else metadata.resolution
    return tuple(contents_of(replace(metadata, channel=UNKNOWN_CHANNEL, resolution=resolution)))


def check_grey(series: Any, meaning: int) -> None:
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
