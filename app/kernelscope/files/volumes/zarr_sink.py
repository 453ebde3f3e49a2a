"""Writes OME-Zarr folders block by block, and then their pyramid, each level from the one before.

A sample of a level is the mean of two along each axis that is halved, rounded half up for integers.
The last one of an odd axis counts twice. Each channel gets the display window of its result.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import atomic
from kernelscope.base.errors import ImageWriteError
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.files.lazy import Head, Sides, by_chunks
from kernelscope.files.volumes.ome_zarr import (
    VERSIONS,
    Axis,
    Multiscale,
    attributes_of,
    described_by,
)
from kernelscope.files.volumes.tiff_stack import axes_of, channels_of
from kernelscope.files.volumes.zarr_source import ZARR, install_hint
from kernelscope.files.write_errors import check_folder, explained, replacing, resolved
from kernelscope.images.volume import DTYPES, Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

SUFFIXES = (".zarr",)
STAGE = "pyramid"  # name of the stage in progress reports

_CHUNK = {Kind.VOLUME: (16, 256, 256), Kind.PICTURE: (512, 512)}
"""Sides of chunks: flat ones in volumes, since blocks are slices. 2 MiB of 16-bit voxels."""

_SMALL = 256  # axes longer than this are halved from level to level
_AT_ONCE = 2  # parts of a level: while one waits for the disk, the other has the processor
_WINDOW = (0.2, 99.8)  # percentiles that are drawn black and white, as in the window
_LEVEL = 1  # level of Zstandard: the least, which is faster than a disk on a usual processor


class ZarrSink:
    """A folder that is being written; see `kernelscope.big.lazy.streaming.Sink`.

    `arrays`: the levels, the finest first, with the axes z, y, x or y, x or c, y, x, and those of
    several volumes before them. `factors`: for each level, the samples of level 0 along each axis
    that one of its samples covers. `attributes`: those of `group`. `place`: that of a volume among
    several.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        group: Any,
        attributes: dict[str, Any],
        arrays: list[Any],
        factors: list[tuple[int, ...]],
        place: tuple[int, ...] = (),
    ) -> None:
        self._path, self._kind, self._place = path, kind, place
        self._group, self._attributes = group, attributes
        self._arrays, self._factors = arrays, factors
        chunks = arrays[0].chunks
        rows, columns = chunks[-2:]
        self.grain: Sides = (
            (chunks[-3], rows, columns) if kind is Kind.VOLUME else (rows, columns, 1)
        )

    def part(self, number: int) -> ZarrSink:
        counts = self._arrays[0].shape[:-3]
        part = copy(self)
        part._place = tuple(map(int, np.unravel_index(number, counts)))
        return part

    def write(self, box: Box, samples: NDArray[Any]) -> None:
        array = self._arrays[0]
        first: tuple[int, ...] = box.first
        data = samples
        if self._kind is Kind.PICTURE:
            data = samples[:, :, 0] if array.ndim == 2 else np.moveaxis(samples, 2, 0)
            first = box.first[:2] if array.ndim == 2 else (0, *box.first[:2])
        with explained(self._path):
            for places, inside in by_chunks(first, data.shape, array.chunks[-data.ndim :]):
                array[(*self._place, *places)] = data[inside]

    def finish(self, token: CancelToken, progress: Progress) -> None:
        """Write the other resolutions, which follow from all blocks."""
        total = sum(array.nchunks for array in self._arrays[1:])
        done = 0
        for (finer, coarser), (before, after) in zip(
            itertools.pairwise(self._arrays), itertools.pairwise(self._factors), strict=True
        ):
            steps = tuple(b // a for a, b in zip(before, after, strict=True))
            zeros = (0,) * coarser.ndim
            parts = [places for places, _ in by_chunks(zeros, coarser.shape, coarser.chunks)]

            def fill(
                places: tuple[slice, ...],
                finer: Any = finer,
                coarser: Any = coarser,
                steps: tuple[int, ...] = steps,
            ) -> None:
                token.check()
                source = tuple(
                    slice(each.start * step, each.stop * step)
                    for each, step in zip(places, steps, strict=True)
                )
                coarser[places] = reduced(np.asarray(finer[source]), steps)

            with explained(self._path), ThreadPoolExecutor(_AT_ONCE, "kernelscope-level") as pool:
                for _ in pool.map(fill, parts):
                    done += 1
                    progress(STAGE, done / total)
        with explained(self._path):
            self._add_windows()

    def _add_windows(self) -> None:
        """Note between which values each channel is drawn; the input may have had others."""
        inner = self._attributes.get("ome", self._attributes)
        coarsest = self._arrays[-1]
        axes = [axis["name"] for axis in inner["multiscales"][0]["axes"]]
        for number, channel in enumerate(inner.get("omero", {}).get("channels", ())):
            first = {"t": 0, "c": number}
            seen = np.asarray(coarsest[tuple(first.get(name, slice(None)) for name in axes)])
            known = seen[np.isfinite(seen)]
            if known.size:
                start, end = np.percentile(known, _WINDOW).tolist()
                ends = {"min": float(known.min()), "max": float(known.max())}
                channel["window"] = {"start": start, "end": end, **ends}
        self._group.update_attributes(self._attributes)


def reduced(samples: NDArray[Any], steps: tuple[int, ...]) -> NDArray[Any]:
    """Return the means of each two samples along the axes whose step is 2."""
    pairs = [axis for axis, step in enumerate(steps) if step == 2]
    odd = [(0, samples.shape[axis] % 2 if axis in pairs else 0) for axis in range(samples.ndim)]
    padded = np.pad(samples, odd, mode="edge") if np.any(odd) else samples
    shape = tuple(-(-side // step) for side, step in zip(samples.shape, steps, strict=True))
    sums = np.zeros(shape, np.float32 if samples.dtype.kind == "f" else np.int32)
    for offsets in itertools.product(*(range(step) for step in steps)):
        sums += padded[tuple(slice(a, None, b) for a, b in zip(offsets, steps, strict=True))]
    count = 2 ** len(pairs)
    if samples.dtype.kind == "f":
        return np.asarray(sums / np.float32(count), samples.dtype)
    return np.asarray((sums + count // 2) // count, samples.dtype)


@contextmanager
def zarr_sink(
    path: Path,
    shape: Sides,
    dtype: np.dtype[Any],
    kind: Kind,
    head: Head,
) -> Iterator[ZarrSink]:
    """Provide a folder that takes the place of `path` when the block ends.

    If the block raises an exception, an existing folder is unchanged and nothing else is left.
    """
    check_place(path)
    if kind is Kind.PICTURE and shape[2] not in (1, 3):
        raise ImageWriteError(
            f"{path.name}: OME-Zarr has no alpha channel.", "Write a TIFF file instead."
        )
    with replacing(path, atomic.new_folder(resolved(path))) as made:
        with explained(path):
            sink = _laid_out(path, made, shape, dtype, kind, head)
        yield sink
        with explained(path):
            _flush(made)


def check_place(path: Path) -> None:
    """Refuse, before a long run, a folder that could not be written after it."""
    try:
        import zarr  # noqa: F401
    except ImportError as error:
        raise ImageWriteError(
            f"{path.name}: OME-Zarr needs the package zarr.", install_hint()
        ) from error
    check_folder(path, lambda name: name in ZARR or name.isdecimal())


def write(path: Path, volumes: Sequence[Volume]) -> None:
    """Write volumes of one shape that are in memory to a folder, as `zarr_sink`."""
    first, axes = volumes[0], axes_of(volumes)
    order = np.arange(len(volumes)).reshape([axis.count for axis in axes])
    if [axis.letter for axis in axes] == ["C", "T"]:  # OME-Zarr has times outside
        order, axes = order.T, axes[::-1]
    head = Head(
        first.spacing,
        first.stated,
        channels=tuple(channels_of(volumes)),
        interval=first.interval,
        among=axes,
    )
    dtype = np.result_type(*map(stored_in, volumes))
    dtype = dtype if dtype in DTYPES else np.dtype(np.float32)
    shape = first.depth, first.height, first.width
    if isinstance(first.header, Multiscale):
        head = replace(head, ome=described_by(head, first.header.version))
    with zarr_sink(path, shape, dtype, Kind.VOLUME, head) as sink:
        for place, number in enumerate(order.ravel().tolist()):
            each = volumes[number]
            same = each.unscaled.dtype == dtype
            numbers = each.restored(
                each.unscaled if same else each.voxels.astype(dtype, copy=False)
            )
            part = sink.part(place) if axes else sink
            part.write(Box((0, 0, 0), shape), numbers)
        sink.finish(CancelToken(), no_progress)


def has_times(volumes: Sequence[Volume]) -> bool:
    return any(axis.letter == "T" for axis in axes_of(volumes))


def stored_in(volume: Volume) -> np.dtype[Any]:
    """Return the type in which a volume is stored: its own, if it is read again."""
    own: np.dtype[Any] = volume.unscaled.dtype
    return own if own in DTYPES else volume.voxels.dtype


def _laid_out(
    path: Path,
    folder: Path,
    shape: Sides,
    dtype: np.dtype[Any],
    kind: Kind,
    head: Head,
) -> ZarrSink:
    import numcodecs
    import zarr
    from zarr.codecs import ZstdCodec

    source = head.ome or described_by(head)
    number = VERSIONS[source.version]
    axes, sides = _axes(kind, shape)
    axes = "".join(axis.letter.lower() for axis in head.among) + axes
    sides = (*(axis.count for axis in head.among), *sides)
    factors = list(_factors(axes, sides))
    known = {axis.name: axis for axis in source.along}
    attributes = attributes_of(
        source.version,
        [known.get(name, Axis(name)) for name in axes],
        factors,
        source.name,
        _without_windows(source.omero),
    )
    group = zarr.create_group(folder, zarr_format=number, attributes=attributes)
    settings: dict[str, Any] = {
        "chunk_key_encoding": {"name": "v2" if number == 2 else "default", "separator": "/"},
        "compressors": numcodecs.Zstd(level=_LEVEL) if number == 2 else ZstdCodec(level=_LEVEL),
    }
    if number == 3:
        settings["dimension_names"] = list(axes)
    arrays = []
    chunk = (1, 1, *_CHUNK[kind])[-len(axes) :]
    for level, each in enumerate(factors):
        extent = tuple(-(-side // factor) for side, factor in zip(sides, each, strict=True))
        chunks = tuple(min(a, b) for a, b in zip(chunk, extent, strict=True))
        arrays.append(
            group.create_array(
                str(level), shape=extent, chunks=chunks, dtype=dtype, fill_value=0, **settings
            )
        )
    return ZarrSink(path, kind, group, attributes, arrays, factors)


def _without_windows(omero: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the levels that the input is drawn between: a result may have others."""
    channels = [
        {name: value for name, value in channel.items() if name != "window"}
        for channel in omero.get("channels", ())
    ]
    return {**omero, "channels": channels} if channels else dict(omero)


def _axes(kind: Kind, shape: Sides) -> tuple[str, tuple[int, ...]]:
    if kind is Kind.VOLUME:
        return "zyx", tuple(shape)
    if shape[2] == 1:
        return "yx", tuple(shape[:2])
    return "cyx", (shape[2], *shape[:2])


def level_count(kind: Kind, shape: Sides) -> int:
    return len(list(_factors(*_axes(kind, shape))))


def _factors(axes: str, sides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the factors of each level along each axis."""
    factors = (1,) * len(sides)
    while True:
        yield factors
        extent = [-(-side // factor) for side, factor in zip(sides, factors, strict=True)]
        halved = [
            name not in "tc" and side > _SMALL for name, side in zip(axes, extent, strict=True)
        ]
        if not any(halved):
            return
        factors = tuple(factor * (1 + half) for factor, half in zip(factors, halved, strict=True))


def _flush(folder: Path) -> None:
    """Wait until all files are on the disk, so that the folder is whole after a power cut."""
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(root) / name, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
