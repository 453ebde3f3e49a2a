"""Bounds of a Zarr array from a stranger: its size, its codecs, its place, and that of its chunks.

The package ``zarr`` makes room for whatever an array declares, unpacks a chunk however large it
becomes, runs any codec that is installed, one of which unpickles, and follows paths and links out
of the folder. So all of this is checked before it is asked for samples.
"""

from __future__ import annotations

import bz2
import json
import math
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.files.formats import Unreadable, damage_explained

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
    if not place.resolve().is_relative_to(folder.resolve()):
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
