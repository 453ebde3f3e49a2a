"""Sources that are read a box at a time, because they may be larger than memory.

A picture has the axes height, width and channels, a volume depth, height and width: three of them
in either case, so that one `Box` cuts a part out of both. Of a picture all channels are read.
A file stays open meanwhile, and must not change.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import ImageReadError
from kernelscope.base.text import printable
from kernelscope.files.reading import open_file
from kernelscope.images.image import Metadata
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel
from kernelscope.images.volume import AXES, Among, Spacing
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:
    from kernelscope.files.volumes.ome_zarr import Multiscale

Sides = tuple[int, int, int]


@dataclass(frozen=True)
class Head:
    """The content of a file in addition to its samples, as far as results keep it."""

    spacing: Spacing | None = None
    """Distance between voxels along z, y and x in millimetres; None if the file has none."""
    stated: str = "zyx"  # the axes of which it is not a guess, as in `Volume`
    profile: bytes = b""  # ICC profile of a picture; empty without one
    resolution: tuple[float, float] | None = None  # pixels per inch along x and y
    measured: bool = False  # as in `Metadata`
    notices: tuple[str, ...] = ()  # decisions of the reader, for the user to know
    channels: tuple[Channel, ...] = ()
    """Those of a microscope, in the order of the samples; empty if unknown."""
    others: tuple[str, ...] = ()  # names of further content, which no result keeps
    # As in `Volume`.
    microscope: bool = False
    interval: float | None = None
    among: tuple[Among, ...] = ()
    """Of a result the axes of all its volumes, times before channels; none for one volume."""
    ome: Multiscale | None = None  # the metadata of OME-Zarr

    def moved(self, before: Sides, after: Sides) -> Head:
        """Return the head of a result that a border made smaller on all sides alike."""
        if self.ome is None or before == after:  # which is so of volumes
            return self
        rims = {axis: (a - b) / 2 for axis, a, b in zip("yx", before, after, strict=False)}
        along = (
            replace(each, origin=each.origin + each.scale * rims.get(each.name, 0))
            for each in self.ome.along
        )
        return replace(self, ome=replace(self.ome, along=tuple(along)))

    @property
    def channel(self) -> Channel:
        return self.channels[0] if len(self.channels) == 1 else UNKNOWN_CHANNEL

    @property
    def steps(self) -> dict[str, float]:
        """The stated distances of samples in millimetres, by their axes."""
        if self.spacing is None:
            return Metadata(resolution=self.resolution).steps
        steps = zip(AXES, self.spacing, strict=True)
        return {axis: step for axis, step in steps if axis in self.stated}

    def __post_init__(self) -> None:
        object.__setattr__(self, "notices", tuple(map(printable, self.notices)))


class LazySource(Protocol):
    """Samples that are read a box at a time, on any thread.

    `title`: short name for messages. `shape`: (height, width, channels) of a picture, (depth,
    height, width) of a volume. `dtype`: in native byte order; one of those of `Image` or `Volume`.
    `grain`: sides of the parts that are stored together: reading less of one is not faster.
    """

    @property
    def kind(self) -> Kind: ...

    @property
    def title(self) -> str: ...

    @property
    def shape(self) -> Sides: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def grain(self) -> Sides: ...

    def read(self, box: Box) -> NDArray[Any]:
        """Return a part as a new array, C-contiguous."""

    def working_bytes(self, box: Box) -> int:
        """Return the most bytes that reading a part takes, the part itself included."""


def by_chunks(
    first: Sequence[int], sides: Sequence[int], chunks: Sequence[int]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    cuts = []
    for start, side, step in zip(first, sides, chunks, strict=True):
        inner = range((start // step + 1) * step, start + side, step)
        cuts.append(list(itertools.pairwise([start, *inner, start + side])))
    for ends in itertools.product(*cuts):
        inside = (slice(a - start, b - start) for (a, b), start in zip(ends, first, strict=True))
        yield tuple(slice(a, b) for a, b in ends), tuple(inside)


def take(source: LazySource, ranges: Sequence[range]) -> NDArray[Any]:
    """Return a part of a source; ranges beyond an axis continue on its other side (``wrap``)."""
    parts = [list(_pieces(each, side)) for each, side in zip(ranges, source.shape, strict=True)]
    if all(len(pieces) == 1 for pieces in parts):
        return source.read(_box([pieces[0] for pieces in parts]))
    taken = np.empty([len(each) for each in ranges], source.dtype)
    for pieces in itertools.product(*parts):
        target = tuple(slice(place, place + count) for place, _, count in pieces)
        taken[target] = source.read(_box(pieces))
    return taken


def _pieces(part: range, side: int) -> Iterator[tuple[int, int, int]]:
    """Yield place in `part`, first index on the axis, and length of each run within the axis."""
    place = 0
    while place < len(part):
        first = (part.start + place) % side
        count = min(side - first, len(part) - place)
        yield place, first, count
        place += count


def _box(pieces: Sequence[tuple[int, int, int]]) -> Box:
    (_, z, depth), (_, y, height), (_, x, width) = pieces
    return Box((z, y, x), (depth, height, width))


_CUT_OFF = "the file is cut off."


class OpenedFile:
    """Reads parts of a file on any thread.

    `handle`: for parsing, on one thread, before parts are read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = open_file(path)
        self._lock = threading.Lock()
        self._state = _state(os.fstat(self.handle.fileno()))

    @property
    def size(self) -> int:
        """Length in bytes when it was opened."""
        return self._state[0]

    def fill(self, offset: int, array: NDArray[Any]) -> None:
        """Read the bytes of a C-ordered array."""
        view = array.reshape(-1).view(np.uint8).data
        done = 0
        try:
            while done < len(view):
                with self._lock:
                    self.handle.seek(offset + done)
                    count = self.handle.readinto(view[done : done + 2**24])
                if not count:
                    self.check_unchanged()
                    raise ImageReadError(f"{self.path.name}: {_CUT_OFF}")
                done += count
        except OSError as error:
            raise ImageReadError(
                f"{self.path.name}: the file cannot be read ({error.strerror})."
            ) from error

    def bytes_at(self, offset: int, count: int) -> bytes:
        """Return some bytes, at most those up to the end of the file, as decoders expect."""
        data = np.empty(min(count, max(0, self.size - offset)), np.uint8)
        self.fill(offset, data)
        return data.tobytes()

    def check_unchanged(self) -> None:
        """Refuse a file that was written to, or replaced, since it was opened."""
        try:
            now = _state(self.path.stat())
        except OSError:
            now = None
        if now != self._state or _state(os.fstat(self.handle.fileno())) != self._state:
            raise ImageReadError(
                f"{self.path.name}: the file changed while it was read.",
                "Wait until it is complete, and filter it again.",
            )

    def close(self) -> None:
        self.handle.close()


def _state(info: os.stat_result) -> tuple[int, int, int]:
    """Return the facts that differ once a file was written to or replaced: size, time, place."""
    return info.st_size, info.st_mtime_ns, info.st_ino
