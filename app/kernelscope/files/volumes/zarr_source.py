"""Pictures and volumes in OME-Zarr folders, read chunk by chunk.

The package ``zarr`` decodes the chunks. A missing chunk has the fill value, as the format says.

The package makes room for whatever an array declares, unpacks a chunk however large it becomes,
runs any codec that is installed, one of which unpickles, and follows paths and links out of the
folder. So the size of an array from a stranger, its codecs, its place and that of its chunks are
checked before it is asked for samples.
"""

from __future__ import annotations

import bz2
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.base.errors import ImageReadError
from kernelscope.base.installed import install_command
from kernelscope.files.formats import (
    Decoded,
    TooManyPixels,
    Unreadable,
    check_size,
    damage_explained,
    named,
)
from kernelscope.files.lazy import Head, Sides, by_chunks
from kernelscope.files.pictures.tiff_description import of_microscope
from kernelscope.files.volumes.ome_zarr import VERSIONS, Multiscale, parsed
from kernelscope.files.volumes.raw_volume import RawVolume, choose, spacing_from, spacing_notices
from kernelscope.images.image import DTYPES as PICTURE_DTYPES
from kernelscope.images.image import MM_PER_INCH, Metadata
from kernelscope.images.volume import DTYPES as VOLUME_DTYPES
from kernelscope.images.volume import MAX_VOXELS, Among
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

_MOST_JSON = 1 << 24
_MOST_CHUNK = 1 << 31  # most bytes of a chunk: Blosc's limit as well
_MOST_PARTS = 1 << 24  # most chunks of an array: 16 million of 64³ samples are 4 terabytes
_MOST_RATIO = 4096
"""Most bytes of an array for each that is stored; more than Zstandard makes of zeros."""
_SMALL = 1 << 36  # bytes of an array that may be empty: filtering them takes minutes
_ZSTD_FRAME = b"\x28\xb5\x2f\xfd"
_SPARE = 1 << 16  # bytes by which a codec may make a chunk larger than its samples


def inside(folder: Path, place: Path) -> Path:
    """Return `place`; refuse one that lies outside of `folder`, also by a link, and pipes."""
    # Before Python 3.13 `Path.resolve` raises for a circle of links, which opening refuses.
    if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder)):
        raise Unreadable(
            f"its data are to be read from outside of the folder ({place.name}).",
            "Put all of its files into the folder.",
        )
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise Unreadable(f"its {place.name} is no ordinary file.")  # it might never end
    return place


def read_json(folder: Path, file: Path) -> Any:
    inside(folder, file)
    if file.stat().st_size > _MOST_JSON:
        raise Unreadable(f"its {file.name} is larger than {_MOST_JSON >> 20} MiB.")
    return json.loads(file.read_text("utf-8"))


class Codecs:
    """The codecs of an array, if all are known.

    `packers`: names of the codecs that make bytes from bytes, as they are applied. `inner`: those
    of the chunks in a shard.
    """

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.inner: Codecs | None = None
        self.index_first = False
        if description.get("zarr_format") == 2:
            used = [*(description.get("filters") or ()), description.get("compressor")]
            names = [str(each["id"]) for each in used if each is not None]
            known: Sequence[str] = (*_SIZES, *_REORDER)
        else:
            codecs = list(description["codecs"])
            names = [str(each["name"]) for each in codecs]
            known = (*_SIZES, "bytes", "transpose", "sharding_indexed")
            if names[-1:] == ["sharding_indexed"]:
                settings = codecs[-1]["configuration"]
                self.inner = Codecs({"codecs": settings["codecs"]})
                self.index_first = settings.get("index_location") == "start"
                index = [each["name"] for each in settings["index_codecs"]]
                if self.inner.inner or index not in (["bytes"], ["bytes", "crc32c"]):
                    raise Unreadable("its shards are of a kind that is not read.")
                self.index_tail = 4 * ("crc32c" in index)
            elif "sharding_indexed" in names:
                raise Unreadable("its shards are compressed as a whole, which is not read.")
        if unknown := sorted(set(names) - set(known)):
            raise Unreadable(
                f"its codec “{unknown[0]}” is not among those that are read.",
                f"Store it with one of {', '.join(_SIZES)}.",
            )
        self.packers = tuple(name for name in names if name in _SIZES)

    def check(self, data: bytes, most: int) -> None:
        """Refuse a chunk that unpacks to more than `most` bytes."""
        if len(self.packers) > 2 or (len(self.packers) == 2 and "crc32c" not in self.packers):
            raise Unreadable("its chunks are compressed more than once, which is not read.")
        for name in reversed(self.packers):
            if _SIZES[name](data, most) > most:
                raise Unreadable(f"a chunk unpacks to more than its {most:,} bytes of samples.")
            data = data[:-4] if name == "crc32c" else data


def check_declared(array: Any, folder: Path) -> None:
    """Refuse an array whose declared size its files cannot explain."""
    item = np.dtype(array.dtype).itemsize
    for chunk in filter(None, (array.chunks, array.shards)):
        size = math.prod(chunk) * item
        if min(chunk) < 1 or (chunk is array.chunks and size > _MOST_CHUNK):
            raise Unreadable(
                f"a chunk of it is to have {size / 1e9:.4g} GB; at most "
                f"{_MOST_CHUNK / 1e9:.3g} GB are read.",
                "Store it in smaller chunks.",
            )
    parts = math.prod(
        -(-side // step) for side, step in zip(array.shape, array.chunks, strict=True)
    )
    if parts > _MOST_PARTS:
        raise Unreadable(
            f"it is to have {parts:.4g} chunks; at most {_MOST_PARTS:,} are read.",
            "Store it in larger chunks.",
        )
    size = math.prod(array.shape) * item
    if size > _SMALL and size > _MOST_RATIO * (stored := _stored_bytes(folder)):
        raise Unreadable(
            f"its array is to have {size / 1e9:.4g} GB, but its files hold {stored:,} bytes."
        )


def _stored_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            total += os.lstat(Path(root, name)).st_size
    return total


def check_chunk(
    file: Path, codecs: Codecs, chunk: Sequence[int], inner: int, count: int, itemsize: int
) -> None:
    """Refuse a stored chunk that unpacks to more than its samples.

    `chunk`: its sides; of one in a shard, those of the inner chunk. `inner` and `count`: number of
    the chunk in its shard, and how many there are.
    """
    most = math.prod(chunk) * itemsize
    if not file.exists():
        return  # it has the fill value
    with damage_explained("OME-Zarr"), file.open("rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        start, length = 0, size
        if codecs.inner is not None:
            tail = 16 * count + codecs.index_tail
            if size < tail:
                raise Unreadable("its data are damaged or cut off.")
            handle.seek(16 * inner + (0 if codecs.index_first else size - tail))
            start, length = struct.unpack("<QQ", handle.read(16))
            if start == length == 2**64 - 1:  # an empty one
                return
        if length > 2 * most + _SPARE or start + length > size:
            raise Unreadable(f"it has {length:,} bytes for {most:,} bytes of samples.")
        handle.seek(start)
        (codecs.inner or codecs).check(handle.read(length), most)


def _of_zlib(data: bytes, most: int) -> int:
    """Return the bytes that gzip or zlib data unpack to, counted up to `most`."""
    total = 0
    while data and total <= most:
        unpack = zlib.decompressobj(47)  # of either kind
        while data and not unpack.eof and total <= most:
            total += len(unpack.decompress(data, 1 << 20))
            data = unpack.unconsumed_tail
        data = unpack.unused_data  # gzip has members
    return total


def _of_bz2(data: bytes, most: int) -> int:
    total = 0
    while data and total <= most:
        unpack = bz2.BZ2Decompressor()
        while not unpack.eof and total <= most:
            part = unpack.decompress(data, 1 << 20)
            total += len(part)
            if not part and unpack.needs_input:
                return total
            data = b""
        data = unpack.unused_data
    return total


def _of_zstd(data: bytes, most: int) -> int:
    """Return the size in the header of the first frame; zstd refuses others behind it."""
    import imagecodecs

    if data[:4] != _ZSTD_FRAME or len(data) < 6:
        return most + 1
    descriptor = data[4]
    width = (1 if descriptor & 32 else 0, 2, 4, 8)[descriptor >> 6]
    if not width:  # written as a stream, which does not know
        try:
            return len(imagecodecs.zstd_decode(data, out=bytearray(most)))
        except Exception:
            return most + 1
    start = 5 + (not descriptor & 32) + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(data[start : start + width], "little") + 256 * (width == 2)


_SIZES: dict[str, Callable[[bytes, int], int]] = {
    "blosc": lambda data, most: struct.unpack_from("<I", data, 4)[0],
    "bz2": _of_bz2,
    "crc32c": lambda data, most: 0,
    "gzip": _of_zlib,
    "lz4": lambda data, most: struct.unpack_from("<I", data, 0)[0],
    "zlib": _of_zlib,
    "zstd": _of_zstd,
}
"""The codecs that compress, and how large their data become."""

_REORDER = ("shuffle",)  # filters of Zarr 2 that keep the number of bytes


_COLOURS = 3  # channels of a picture that is read as RGB; other numbers are pictures of their own

_DECODING = 3
"""Chunks that decoding one takes at most: its code, its samples, and those in another order."""


ZARR = ("zarr.json", ".zgroup", ".zattrs", ".zmetadata", ".zarray")
"""Files of which a folder in the format Zarr has some."""


def is_zarr(path: Path) -> bool:
    """Return whether a path is a folder in the format Zarr: one file to users."""
    try:
        named_so = path.name.lower().endswith(".zarr")
        return path.is_dir() and (named_so or any((path / name).is_file() for name in ZARR))
    except OSError:  # its reader has the reason
        return False


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
        places = [at / name for at in (self._folder, self._place) for name in ZARR]
        try:
            return [place.read_bytes() for place in places if place.is_file()]
        except OSError:
            return []

    def _changed(self) -> ImageReadError:
        return ImageReadError(
            f"{self._folder.name}: the data changed while they were read.",
            "Wait until they are complete, and filter them again.",
        )


def holds_volume(path: Path) -> bool:
    return open_zarr(path, 1, apart=True).kind is Kind.VOLUME


def decode(path: Path, number: int | None) -> RawVolume:
    source = open_zarr(path, number, apart=True)
    if math.prod(source.shape) >= MAX_VOXELS:
        size = "×".join(map(str, reversed(source.shape)))
        raise TooManyPixels(f"its {size} voxels are too many to be read as a whole.")
    samples, head = _whole(source), source.head
    if source.kind is Kind.PICTURE:  # a plane is a volume of one slice, as of a TIFF
        if source.shape[2] > 1:
            raise Unreadable("it is a picture in colours, and no volume.")
        samples = np.moveaxis(samples, 2, 0)
        spacing, stated = spacing_from(head.ome.steps if head.ome else {})
        head = replace(head, spacing=spacing, stated=stated)
    return raw_volume(head, samples)


def decode_picture(path: Path) -> Decoded:
    source = open_zarr(path, apart=True)
    height, width, channels = source.shape
    check_size(width, height, channels)
    return raw_picture(source.head, _whole(source))


def _whole(source: ZarrSource) -> NDArray[Any]:
    memory.require(math.prod(source.shape) * source.dtype.itemsize, f"for {source.title}")
    samples = source.read(Box((0, 0, 0), source.shape))
    source.check_unchanged()
    return samples


def raw_volume(head: Head, samples: NDArray[Any]) -> RawVolume:
    return RawVolume(
        samples,
        head.spacing,
        notices=list(head.notices),
        header=head.ome,
        others=_others(head),
        stated=head.stated,
        channel=head.channel,
        microscope=head.microscope,
        among=head.among,
        interval=head.interval,
    )


def raw_picture(head: Head, samples: NDArray[Any]) -> Decoded:
    metadata = Metadata(
        head.profile,
        head.resolution,
        others=_others(head),
        channel=head.channel,
        measured=head.measured,
    )
    pixels = samples[:, :, 0] if samples.shape[2] == 1 else samples
    return Decoded(pixels, list(head.notices), metadata=metadata)


def _others(head: Head) -> tuple[str, ...]:
    """Return the names of the content that is not among the samples and their description."""
    if head.ome is None:
        return head.others
    further = [name for name, there in head.ome.described().items() if there]
    return (*head.others, *further, *["lower resolutions"] * (head.ome.levels > 1))


def open_zarr(
    path: Path, number: int | None = None, level: int = 0, *, apart: bool = False
) -> ZarrSource:
    """Open an OME-Zarr folder; a volume if it has several slices, otherwise a picture.

    `number`: from 1, of the volume or picture, if there are several times or channels. `level`: the
    resolution; 0 is the finest. `apart`: several pictures are volumes of one slice, and so are
    three channels in other colours than red, green and blue.
    """
    try:
        import zarr
    except ImportError as error:
        raise ImageReadError(
            f"{path.name}: OME-Zarr needs the package zarr.", install_hint()
        ) from error
    with named(path.name):
        multiscale = parsed(_attributes(path), level)
        with damage_explained("OME-Zarr"):
            number_of_zarr = VERSIONS[multiscale.version]
            place = inside(path, path / multiscale.path)
            file = place / (".zarray" if number_of_zarr == 2 else "zarr.json")
            codecs = Codecs(read_json(path, file))
            array = zarr.open_array(place, mode="r", zarr_format=number_of_zarr)
            check_declared(array, place)
        return _chosen(path, array, codecs, multiscale, number, apart=apart)


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


def _are_dyes(multiscale: Multiscale) -> bool:
    known = [each.colour.lower() for each in multiscale.channels]
    return any(known) and known != ["ff0000", "00ff00", "0000ff"]


def _of_channels(multiscale: Multiscale, number: int | None) -> Multiscale:
    omero = multiscale.omero
    if number is None or not omero:
        return multiscale
    chosen = omero["channels"][number : number + 1]
    return replace(multiscale, omero={**omero, "channels": chosen} if chosen else {})


def _chosen(
    path: Path,
    array: Any,
    codecs: Codecs,
    multiscale: Multiscale,
    number: int | None,
    *,
    apart: bool,
) -> ZarrSource:
    axes, shape = multiscale.axes, array.shape
    if len(axes) != len(shape) or min(shape) < 1:
        raise Unreadable("its axes do not fit its array.")
    along = dict(zip(axes, shape, strict=True))
    colours = along.get("z", 1) == 1 and along.get("c", 1) == _COLOURS
    colours = colours and not (apart and _are_dyes(multiscale))
    others = [name for name in axes if name == "t" or (name == "c" and not colours)]
    counts = [along[name] for name in others]
    is_volume = along.get("z", 1) > 1 or (apart and math.prod(counts) > 1)
    dtype = np.dtype(array.dtype).newbyteorder("=")
    if dtype not in (VOLUME_DTYPES if is_volume else PICTURE_DTYPES):
        usable = "uint8, uint16, int16 or" if is_volume else "8-bit, 16-bit or"
        raise Unreadable(
            f"its samples are of type {array.dtype}.", f"Convert them to {usable} 32-bit float."
        )
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
        notices += spacing_notices(spacing, stated, along.get("z", 1))
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
        measured=True,
        notices=tuple(notices),
        channels=channels,
        others=tuple(unread),
        microscope=of_microscope(multiscale.steps, channels),
        interval=multiscale.interval,
        among=tuple(Among(n.upper(), at, along[n]) for n, at in fixed.items() if along[n] > 1),
        ome=_of_channels(multiscale, None if colours else first),
    )
    return ZarrSource(path, array, multiscale, wanted, fixed, head, codecs)
