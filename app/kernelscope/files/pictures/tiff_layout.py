"""The pages, strips and tiles of a TIFF, checked before they are read.

Each page ends with the offset of the next. In a damaged file the chain may lead back to an earlier
page, and a library that follows it would never end. Strips and tiles are decoded more strictly or
more tolerantly than tifffile does, if it would misread them or refuse valid ones.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from kernelscope.files.formats import AGAIN, Unreadable, check_size
from kernelscope.files.pictures import fax, jpeg

_MOST_PLANES = 1 << 20
"""Most planes of an OME-TIFF, some of which may lie in other files; the library lists them all."""

_PIXELS = re.compile(r"<(?:\w+:)?Pixels\b[^>]*>")
_COUNT = re.compile(r"\bSize[CTZ]\s*=\s*[\"'](\d+)[\"']")


@dataclass(frozen=True)
class _Layout:
    """Number formats of a TIFF for `struct`, and the offset of its first page."""

    offset: str
    count: str
    entry_bytes: int
    first: int


def _layout(start: bytes) -> _Layout:
    """Return the layout of a file that begins with `start`, or raise `Unreadable`."""
    order = {b"II": "<", b"MM": ">"}.get(start[:2])
    if order is not None and len(start) >= 8:
        version = struct.unpack(f"{order}H", start[2:4])[0]
        if version == 42:
            return _Layout(f"{order}I", f"{order}H", 12, 4)
        if version == 43 and struct.unpack(f"{order}HH", start[4:8]) == (8, 0):
            return _Layout(f"{order}Q", f"{order}Q", 20, 8)
    raise Unreadable("its TIFF header is damaged.")


def check_pages(handle: BinaryIO) -> int:
    handle.seek(0)
    layout = _layout(handle.read(8))
    size = handle.seek(0, os.SEEK_END)

    def number(place: int, form: str) -> int:
        handle.seek(place)
        data = handle.read(struct.calcsize(form))
        if len(data) < struct.calcsize(form):
            raise Unreadable("the file is cut off.")
        return int(struct.unpack(form, data)[0])

    seen: set[int] = set()
    page = number(layout.first, layout.offset)
    while page:
        if page in seen:
            raise Unreadable("its chain of pages is a circle.")
        seen.add(page)
        entries = number(page, layout.count)
        end = page + struct.calcsize(layout.count) + entries * layout.entry_bytes
        if end > size:
            raise Unreadable("the file is cut off.")
        page = number(end, layout.offset)
    if not seen:
        raise Unreadable("it has no page.")
    handle.seek(0)
    return len(seen)


def check_planes(file: Any) -> None:
    """Refuse an OME-TIFF that claims far more planes than it can have, before they are listed."""
    for pixels in _PIXELS.findall(file.ome_metadata or ""):
        planes = math.prod(int(count[:20]) for count in _COUNT.findall(pixels))
        if planes > _MOST_PLANES:
            raise Unreadable(
                f"its OME-XML claims {planes:.4g} planes; it has {len(file.pages)} pages."
            )


Decode = Callable[..., tuple[Any, tuple[int, ...], tuple[int, ...]]]
"""Signature of tifffile's segment decoders: bytes or None, and the index. Returns samples or None,
the place of the first one, and their shape; both along samples, depth, rows, columns, ..."""

FAX_COMPRESSIONS = tuple(fax.NAMES)
_NONE, _LZW, _PACKBITS = 1, 5, 32773
_DEFLATES = (8, 32946)
_JPEG = 7
_JPEGS = (6, _JPEG, 33007, 34892)
_JPEG_2000 = (33003, 33004, 33005, 34712)
_CODECS = {
    22610: "jpegxr_decode",
    34887: "lerc_decode",
    34927: "webp_decode",
    34933: "png_decode",
    34934: "jpegxr_decode",
    50001: "webp_decode",
    50002: "jpegxl_decode",
    52546: "jpegxl_decode",
}
"""Further compressions of whole pictures, whose codecs refuse to write beyond an array."""
_EXACT = (_NONE, _LZW, _PACKBITS, *_DEFLATES, *FAX_COMPRESSIONS)
"""Compressions whose decoders detect missing rows."""

_WEBP = 50001
_T4_OPTIONS = 292
_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_LAST_BITS_FIRST = 2


def check_segments(page: Any, size: int) -> None:
    """Refuse pages whose strips or tiles are too large, cut off, or used repeatedly."""
    if page.is_tiled:
        check_size(page.tilewidth, page.tilelength, page.samplesperpixel)
    if not page.dataoffsets or not page.databytecounts:
        raise Unreadable("it has no image data.")
    count = 1 if page.is_contiguous else math.prod(page.chunked)
    found = min(len(page.dataoffsets), len(page.databytecounts))
    if found < count:
        raise Unreadable(f"it is damaged: it lists {found} of {count} strips or tiles.")
    check_extents([page], size)


def check_extents(pages: Sequence[Any], size: int) -> None:
    """Refuse pages with strips or tiles that overlap or lie beyond the end of the file.

    The last strip may claim to be longer than the file if its decoder checks that all rows are
    present.
    """
    total = 0
    for page in pages:
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False):
            if not offset or not count:
                continue
            if offset >= size or (offset + count > size and page.compression not in _EXACT):
                raise Unreadable("the file is cut off.")
            total += min(count, size - offset)
    # Identical tiles may be stored once; but a small file must not cause a large amount of work.
    room = 4 * (size + sum(page.nbytes for page in pages)) + 2**24
    if total > room:
        raise Unreadable("its strips or tiles lie on each other.")


def are_cut_off(pages: Sequence[Any], size: int) -> bool:
    """Return whether strips or tiles claim to extend beyond the end of the file."""
    return any(
        offset + count > size
        for page in pages
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False)
    )


def prepare(page: Any) -> None:
    """Replace tifffile's decoders by ours, for the first page of a series or a single page."""
    if page.compression in FAX_COMPRESSIONS:
        page.decode = _fax_decoder(page)
    elif page.compression in _DEFLATES:
        page.decode = _deflate_decoder(page)
    elif page.compression in (*_JPEGS, *_JPEG_2000):
        page.decode = _sized_decoder(page)
        if page.compression == _JPEG and page.fillorder != _LAST_BITS_FIRST:
            page.decode = _jpeg_decoder(page)
    elif page.compression in _CODECS:
        page.decode = _picture_decoder(page)


def _sized_decoder(page: Any) -> Decode:
    """Return a decoder that refuses a strip or tile of more pixels than belong there."""
    usual: Decode = page.decode
    width, height = (
        (page.tilewidth, page.tilelength) if page.is_tiled else (page.imagewidth, page.imagelength)
    )

    def decode(data: bytes | None, index: int, **options: Any) -> Any:
        if data is not None:
            jpeg.check_coded_size(data, width, height, page.samplesperpixel)
        return usual(data, index, **options)

    return decode


def _picture_decoder(page: Any) -> Decode:
    import imagecodecs

    usual: Decode = page.decode
    options = {"hasalpha": True} if page.compression == _WEBP and page.samplesperpixel == 4 else {}

    def fill(data: bytes, sides: tuple[int, int], samples: int) -> Any:
        room = np.empty(sides if samples == 1 else (*sides, samples), page.dtype)
        return getattr(imagecodecs, _CODECS[page.compression])(data, out=room, **options)

    def decode(data: bytes | None, index: int, **how: Any) -> Any:
        nothing, place, shape = usual(None, index, **how)
        if data is None:
            return nothing, place, shape
        _, rows, width, samples = shape
        left = page.imagelength - place[2], page.imagewidth - place[3]
        if not page.is_tiled:
            sizes = [(min(rows, left[0]), width), (page.rowsperstrip, width)]
        else:  # a tile at the edge may end there
            inner = min(rows, left[0]), min(width, left[1])
            sizes = [(rows, width), inner, (inner[0], width)]
        for sides in dict.fromkeys(sizes):
            try:
                found = fill(data, sides, samples).reshape(1, *sides, samples)
            except ValueError:  # another size, before anything is decoded
                continue
            output = np.full(shape, page.nodata, page.dtype)
            there = tuple(map(slice, np.minimum(found.shape, shape)))
            output[there] = found[there]
            return output, place, shape
        raise Unreadable(
            f"a strip or tile of it does not hold the {width}×{rows} pixels of {samples} samples "
            "that belong there.",
            AGAIN,
        )

    return decode


def _jpeg_decoder(page: Any) -> Decode:
    """Return a decoder that refuses a strip or tile whose data end early."""
    usual: Decode = page.decode

    def decode(data: bytes | None, index: int, **options: Any) -> Any:
        samples, place, shape = usual(data, index, **options)
        if data is not None:
            jpeg.check_complete(data, samples, lambda more: usual(more, index, **options)[0])
        return samples, place, shape

    return decode


def _fax_decoder(page: Any) -> Decode:
    if page.bitspersample != 1 or page.samplesperpixel != 1 or page.imagedepth != 1:
        raise Unreadable("it has fax data of other than one bit per pixel.")
    tag = page.tags.valueof(_T4_OPTIONS)
    options = tag if isinstance(tag, int) else 0

    def decode(data: bytes | None, index: int, **_: Any) -> Any:
        place, shape = _place(page, index)
        if data is None:
            return None, place, shape
        if page.fillorder == _LAST_BITS_FIRST:
            data = data.translate(_REVERSED_BITS)
        rows, width = shape[1:3]
        pixels = fax.decode(data, rows, width, int(page.compression), options)
        return pixels.reshape(shape), place, shape

    return decode


def _place(page: Any, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the place and the shape of a strip or tile of a page with one sample per pixel."""
    if page.is_tiled:
        row, column = divmod(index, math.ceil(page.imagewidth / page.tilewidth))
        place = (0, 0, row * page.tilelength, column * page.tilewidth, 0)
        return place, (1, page.tilelength, page.tilewidth, 1)
    top = index * page.rowsperstrip
    rows = min(page.rowsperstrip, page.imagelength - top)
    return (0, 0, top, 0, 0), (1, rows, page.imagewidth, 1)


def _deflate_decoder(page: Any) -> Decode:
    """Return a decoder that accepts a strip with extra rows, as GDAL writes it."""
    usual: Decode = page.decode
    samples = page.samplesperpixel if page.planarconfig == 1 else 1
    bits = page.bitspersample
    row_bytes = -(-page.imagewidth * (bits * samples if isinstance(bits, int) else sum(bits)) // 8)

    def decode(data: bytes | None, index: int, **options: Any) -> Any:
        try:
            return usual(data, index, **options)
        except Exception:
            if data is None or page.is_tiled or page.fillorder == _LAST_BITS_FIRST:
                raise
            top = index % math.ceil(page.imagelength / page.rowsperstrip) * page.rowsperstrip
            own = min(page.rowsperstrip, page.imagelength - top)
            shorter = _first_bytes(data, own * row_bytes, page.rowsperstrip * row_bytes)
            if shorter is None:
                raise
            return usual(shorter, index, **options)

    return decode


def _first_bytes(data: bytes, count: int, most: int) -> bytes | None:
    """Return `data` recompressed with only the first bytes, or None if they are damaged.

    Up to `most` bytes may follow. The checksum at the end is verified.
    """
    stream = zlib.decompressobj()
    try:
        first = stream.decompress(data, count)
        if len(first) == count:
            stream.decompress(stream.unconsumed_tail, most + 1)
    except zlib.error:
        return None
    return zlib.compress(first, 0) if stream.eof else None
