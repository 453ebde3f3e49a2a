"""Pictures and volumes in OME-Zarr folders, read chunk by chunk.

The package ``zarr`` decodes the chunks. A missing chunk has the fill value, as the format says.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import ImageReadError
from kernelscope.base.installed import install_command
from kernelscope.big.lazy.ome import VERSIONS, Multiscale, parsed
from kernelscope.big.lazy.source import Head, Sides, by_chunks
from kernelscope.big.lazy.zarr_bounds import Codecs, check_chunk, check_declared, inside, read_json
from kernelscope.files.formats import Unreadable, damage_explained, named
from kernelscope.files.volumes import folder
from kernelscope.files.volumes.raw_volume import choose, spacing_from, spacing_notices
from kernelscope.images.image import DTYPES as PICTURE_DTYPES
from kernelscope.images.image import MM_PER_INCH
from kernelscope.images.volume import DTYPES as VOLUME_DTYPES
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

_COLOURS = 3  # channels of a picture that is read as RGB; other numbers are pictures of their own

_DECODING = 3
"""Chunks that decoding one takes at most: its code, its samples, and those in another order."""


def is_zarr(path: Path) -> bool:
    return path.is_dir() and (path.name.lower().endswith(".zarr") or folder.is_zarr(path))


def install_hint() -> str:
    """Return the way out where the package is not installed."""
    return f"Install it: {install_command('zarr')}"


class ZarrSource:
    """A picture or a volume in an OME-Zarr folder; see `LazySource`.

    `array`: the finest resolution. `wanted`: names of the axes of `shape`; an axis that the array
    lacks has one sample. `fixed`: index along each other axis. `codecs`: those of the array.
    """

    def __init__(
        self,
        path: Path,
        array: Any,
        multiscale: Multiscale,
        wanted: tuple[str, str, str],
        fixed: dict[str, int],
        head: Head,
        codecs: Codecs,
    ) -> None:
        self._folder, self._array, self._axes = path, array, multiscale.axes
        self._place = path / multiscale.path
        self._wanted, self._fixed = wanted, fixed
        self.head, self.title = head, path.name
        self.kind = Kind.VOLUME if "z" in wanted else Kind.PICTURE
        self.dtype: np.dtype[Any] = np.dtype(array.dtype).newbyteorder("=")
        self.shape = self._sides(array.shape)
        self.grain = self._sides(array.chunks)
        self._stored = self._sides(array.shards or array.chunks)
        self._codecs = codecs
        self._states = self._present()
        self._described = self._metadata()

    def read(self, box: Box) -> NDArray[Any]:
        output = np.empty(box.sides, self.dtype)
        for places, part in by_chunks(*box, self.grain):
            first, second, third = (each.start for each in places)
            key = self._key((first, second, third))
            self._check_chunk(key, (first, second, third))
            output[part] = self._part(places, key)
        return output

    def working_bytes(self, box: Box) -> int:
        chunk = int(math.prod(self._array.chunks))
        size: int = self.dtype.itemsize
        return (box.pixels + _DECODING * chunk) * size

    def check_unchanged(self) -> None:
        """Refuse a folder in which a chunk or the metadata were written to, since it was opened."""
        if self._metadata() != self._described:
            raise self._changed()
        if self._present() != self._states:
            raise self._changed()

    def close(self) -> None:
        """Do nothing: chunks are closed when they were read."""

    def _sides(self, values: tuple[int, ...]) -> Sides:
        along = dict(zip(self._axes, values, strict=True))
        first, second, third = (along.get(name, 1) for name in self._wanted)
        return first, second, third

    def _part(self, places: Sequence[slice], key: str) -> NDArray[Any]:
        ranges = dict(zip(self._wanted, places, strict=True))
        chosen = tuple(ranges.get(name, self._fixed.get(name, 0)) for name in self._axes)
        with named(f"{self._folder.name}: chunk {key}"), damage_explained("OME-Zarr"):
            samples = np.asarray(self._array[chosen])
        kept = [name for name in self._axes if name in ranges]
        order = [kept.index(name) for name in self._wanted if name in kept]
        return samples.transpose(order).reshape([each.stop - each.start for each in places])

    def _cells(self, first: Sides) -> tuple[int, ...]:
        """Return the place of a sample along the axes of the array."""
        along = dict(zip(self._wanted, first, strict=True))
        return tuple(along.get(name, self._fixed.get(name, 0)) for name in self._axes)

    def _key(self, first: Sides) -> str:
        """Return the name of the stored chunk of a sample, below the folder of the array."""
        stored = self._array.shards or self._array.chunks
        place = tuple(at // step for at, step in zip(self._cells(first), stored, strict=True))
        return str(self._array.metadata.encode_chunk_key(place))

    def _present(self) -> dict[str, int]:
        """Return the states of the chunks that are stored, whatever the array declares."""
        found = {}
        for root, _, names in os.walk(self._place):
            for name in names:
                key = Path(root, name).relative_to(self._place).as_posix()
                if self._is_wanted(key) and (state := self._state(key)):
                    found[key] = state
        return found

    def _is_wanted(self, key: str) -> bool:
        """Return whether a file is a chunk of this picture or volume."""
        place = [int(each) for each in re.split(r"[./]", key) if each.isdecimal()]
        stored = self._array.shards or self._array.chunks
        return len(place) == len(stored) and all(
            at == self._fixed[name] // step
            for name, at, step in zip(self._axes, place, stored, strict=True)
            if name in self._fixed
        )

    def _state(self, key: str) -> int:
        """Return a number that differs once a chunk was written to; 0 for a missing one."""
        try:
            info = (self._place / key).stat()
        except OSError:
            return 0
        return hash((info.st_size, info.st_mtime_ns, info.st_ino)) or 1

    def _check_chunk(self, key: str, first: Sides) -> None:
        """Refuse a chunk that changed, lies elsewhere, or unpacks to more than its samples."""
        if self._states.get(key, 0) != self._state(key):
            raise self._changed()
        chunks, stored = self._array.chunks, self._array.shards or self._array.chunks
        counts = [whole // side for whole, side in zip(stored, chunks, strict=True)]
        inner = [
            at % whole // side
            for at, whole, side in zip(self._cells(first), stored, chunks, strict=True)
        ]
        with named(f"{self._folder.name}: chunk {key}"):
            check_chunk(
                inside(self._folder, self._place / key),
                self._codecs,
                chunks,
                int(np.ravel_multi_index(inner, counts)),
                math.prod(counts),
                self.dtype.itemsize,
            )

    def _metadata(self) -> list[bytes]:
        places = [at / name for at in (self._folder, self._place) for name in folder.ZARR]
        try:
            return [place.read_bytes() for place in places if place.is_file()]
        except OSError:
            return []

    def _changed(self) -> ImageReadError:
        return ImageReadError(
            f"{self._folder.name}: the data changed while they were read.",
            "Wait until they are complete, and filter them again.",
        )


def open_zarr(path: Path, number: int | None = None) -> ZarrSource:
    """Open an OME-Zarr folder; a volume if it has several slices, otherwise a picture.

    `number`: from 1, of the volume or picture, if there are several times or channels.
    """
    try:
        import zarr
    except ImportError as error:
        raise ImageReadError(
            f"{path.name}: OME-Zarr needs the package zarr.", install_hint()
        ) from error
    with named(path.name):
        multiscale = parsed(_attributes(path))
        with damage_explained("OME-Zarr"):
            number_of_zarr = VERSIONS[multiscale.version]
            place = inside(path, path / multiscale.path)
            file = place / (".zarray" if number_of_zarr == 2 else "zarr.json")
            codecs = Codecs(read_json(path, file))
            array = zarr.open_array(place, mode="r", zarr_format=number_of_zarr)
            check_declared(array, place)
        return _chosen(path, array, codecs, multiscale, number)


def _attributes(path: Path) -> dict[str, Any]:
    with damage_explained("OME-Zarr"):
        if (path / "zarr.json").is_file():
            found = read_json(path, path / "zarr.json")
            return dict(found.get("attributes", {}))
        if (path / ".zattrs").is_file():
            return dict(read_json(path, path / ".zattrs"))
    return {}


def _place_in_words(multiscale: Multiscale, others: list[str], place: tuple[int, ...]) -> str:
    """Return ``time 2, DAPI`` for indices along the axes that are not read."""
    parts, channels = [], multiscale.channels
    for name, index in zip(others, place, strict=True):
        known = channels[index].name if name == "c" and index < len(channels) else ""
        parts.append(known or f"{'channel' if name == 'c' else 'time'} {index + 1}")
    return ", ".join(parts) or "all"


def _of_channels(multiscale: Multiscale, number: int | None) -> Multiscale:
    omero = multiscale.omero
    if number is None or not omero:
        return multiscale
    chosen = omero["channels"][number : number + 1]
    return replace(multiscale, omero={**omero, "channels": chosen} if chosen else {})


def _chosen(
    path: Path, array: Any, codecs: Codecs, multiscale: Multiscale, number: int | None
) -> ZarrSource:
    axes, shape = multiscale.axes, array.shape
    if len(axes) != len(shape) or min(shape) < 1:
        raise Unreadable("its axes do not fit its array.")
    along = dict(zip(axes, shape, strict=True))
    is_volume = along.get("z", 1) > 1
    dtype = np.dtype(array.dtype).newbyteorder("=")
    if dtype not in (VOLUME_DTYPES if is_volume else PICTURE_DTYPES):
        usable = "uint8, uint16, int16 or" if is_volume else "8-bit, 16-bit or"
        raise Unreadable(
            f"its samples are of type {array.dtype}.", f"Convert them to {usable} 32-bit float."
        )
    colours = not is_volume and along.get("c", 1) == _COLOURS
    others = [name for name in axes if name == "t" or (name == "c" and not colours)]
    counts = [along[name] for name in others]
    places = list(np.ndindex(*counts))
    names = [_place_in_words(multiscale, others, place) for place in places]
    several = [name for name in others if along[name] > 1]
    word = "channel" if several == ["c"] else "volume" if is_volume else "picture"
    chosen = choose(number, names, word, alike=True)
    notices = list[str]()
    if len(names) > 1:
        notices.append(f"{word.capitalize()} {chosen + 1} of {len(names)}: {names[chosen]}.")
    spacing, stated = spacing_from(multiscale.steps)
    if is_volume:
        notices += spacing_notices(spacing, stated)
    fixed = dict(zip(others, places[chosen], strict=True))
    wanted = ("z", "y", "x") if is_volume else ("y", "x", "c" if colours else "")
    channels, first = multiscale.channels, fixed.get("c", 0)
    if not colours:
        channels = channels[first : first + 1]
    unread = ["labels"] * (path / "labels").is_dir()
    x, y = (MM_PER_INCH / multiscale.steps.get(axis, math.inf) for axis in "xy")
    head = Head(
        spacing if is_volume else None,
        stated,
        resolution=(x, y) if x and y and not is_volume else None,
        notices=tuple(notices),
        channels=channels,
        others=tuple(unread),
        microscope=True,
        ome=_of_channels(multiscale, None if colours else first),
    )
    return ZarrSource(path, array, multiscale, wanted, fixed, head, codecs)
