"""Writes TIFF files a block at a time: samples uncompressed, in one piece, at their places.

The pages are laid out before the first block is there, so that blocks may be parts of rows. It is
OME-TIFF where the name ends so, and BigTIFF where the samples need it.
"""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import atomic
from kernelscope.base.errors import ImageWriteError
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.files.lazy import Head, Sides
from kernelscope.files.pictures.tiff import is_big
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES, ome, ours
from kernelscope.files.write_errors import check_target, explained, replacing, resolved
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

SUFFIXES = (".tif", ".tiff")


class TiffSink:
    """A file that is being written; see `kernelscope.big.lazy.streaming.Sink`."""

    grain: Sides = (1, 1, 1)

    def __init__(
        self, path: Path, handle: io.BufferedRandom, first: int, shape: Sides, dtype: np.dtype[Any]
    ) -> None:
        self._path, self._handle, self._first = path, handle, first
        self._shape, self._dtype = shape, dtype

    def part(self, number: int) -> TiffSink:
        """Return the sink of one of several volumes, counted from 0 in the order of the file."""
        place = self._first + number * math.prod(self._shape) * self._dtype.itemsize
        return TiffSink(self._path, self._handle, place, self._shape, self._dtype)

    def write(self, box: Box, samples: NDArray[Any]) -> None:
        size, (_, height, width) = self._dtype.itemsize, self._shape
        data = np.ascontiguousarray(samples, self._dtype)
        z, y, x = box.first
        runs: NDArray[Any]
        if box.sides[1:] == (height, width):  # whole rows or slices: one piece
            runs, places = data.reshape(1, -1), [z * height * width]
        elif box.sides[2] == width:
            runs = data.reshape(box.sides[0], -1)
            places = [((z + i) * height + y) * width for i in range(box.sides[0])]
        else:
            runs = data.reshape(box.sides[0] * box.sides[1], -1)
            places = [
                ((z + i) * height + y + j) * width + x
                for i in range(box.sides[0])
                for j in range(box.sides[1])
            ]
        with explained(self._path):
            for place, run in zip(places, runs, strict=True):
                self._handle.seek(self._first + place * size)
                self._handle.write(run.data)

    def finish(self, token: CancelToken, progress: Progress) -> None:
        """Do nothing: a file has one resolution."""


@contextmanager
def tiff_sink(
    path: Path, shape: Sides, dtype: np.dtype[Any], kind: Kind, head: Head
) -> Iterator[TiffSink]:
    """Provide a file that takes the place of `path` when the block ends.

    If the block raises an exception, an existing file is unchanged and nothing else is left.
    """
    check_target(path)
    target = resolved(path)
    count = math.prod(axis.count for axis in head.among)
    check_room(path, target.parent, count * math.prod(shape) * dtype.itemsize)
    with replacing(path, atomic.new_file(target)) as handle:
        with explained(path):
            first = _lay_out(path, handle, shape, dtype, kind, head)
        yield TiffSink(path, handle, first, shape, dtype)


def check_room(path: Path, folder: Path, needed: int) -> None:
    """Refuse a result for which the disk has no room, as far as is known beforehand."""
    with explained(path):
        free = shutil.disk_usage(folder).free
    if needed > free:
        raise ImageWriteError(
            f"{path.name}: the disk is full: the result takes {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free.",
            "Free some space, or choose another place.",
        )


def _lay_out(
    path: Path,
    handle: io.BufferedRandom,
    shape: Sides,
    dtype: np.dtype[Any],
    kind: Kind,
    head: Head,
) -> int:
    """Write everything but the samples, and return where they begin."""
    import tifffile

    is_ome = path.name.lower().endswith(OME_SUFFIXES)
    counts = [axis.count for axis in head.among]
    big = is_big(math.prod(counts) * math.prod(shape) * dtype.itemsize)
    described, channels = None, head.channels if counts else (head.channel,)
    if is_ome:
        content = f"{shape} {dtype} {head}"
        described = ome(
            head.steps,
            content,
            *channels,
            interval=head.interval,
            microscope=head.microscope or kind is Kind.PICTURE,
        )
    settings = _volume(head, described) if kind is Kind.VOLUME else _picture(shape, head, described)
    plain = (*counts, *shape) if kind is Kind.VOLUME or shape[2] > 1 else shape[:2]
    # The handle has a descriptor for a name, which tifffile cannot split.
    named = tifffile.FileHandle(handle, name=path.name)
    with tifffile.TiffWriter(named, bigtiff=big, ome=is_ome) as writer:
        first, _ = writer.write(None, shape=plain, dtype=dtype, returnoffset=True, **settings)
    return int(first)


def _volume(head: Head, described: dict[str, Any] | None) -> dict[str, Any]:
    """Return the settings of tifffile; without `described`, OME's, with our own description."""
    if described is None:
        stated = head.stated if head.spacing else ""
        described = ours(
            head.spacing or (1.0, 1.0, 1.0),
            stated,
            *(head.channels if head.among else (head.channel,)),
            interval=head.interval,
            microscope=head.microscope,
        )
    axes = "".join(axis.letter for axis in head.among) + "ZYX"
    return {"photometric": "minisblack", "metadata": {"axes": axes, **described}}


def _picture(shape: Sides, head: Head, described: dict[str, Any] | None) -> dict[str, Any]:
    channels = shape[2]
    if described is not None:
        described = {"axes": "YXS" if channels > 1 else "YX", **described}
    else:
        described = ours((1.0, 1.0, 1.0), "", head.channel) or None
    return {
        "photometric": "minisblack" if channels <= 2 else "rgb",
        "planarconfig": "contig" if channels > 1 else None,
        "extrasamples": ("unassalpha",) if channels in (2, 4) else None,
        "metadata": described,
        "iccprofile": head.profile or None,
        "resolution": head.resolution,
        "resolutionunit": "inch" if head.resolution else None,
    }
