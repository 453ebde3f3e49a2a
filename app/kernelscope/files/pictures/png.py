"""PNG, read and written by libpng (imagecodecs): Pillow cuts 16-bit colour down to 8 bits."""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.files import formats
from kernelscope.files.formats import AGAIN, Decoded, Unreadable, check_size
from kernelscope.files.pictures import exif
from kernelscope.images.image import NOTHING, Metadata


@contextmanager
def warnings_of(library: str) -> Iterator[list[str]]:
    """Provide a list of a library's log records on this thread, kept out of other handlers."""
    texts: list[str] = []
    thread = threading.get_ident()

    def collect(record: logging.LogRecord) -> bool:
        if record.thread != thread:
            return True
        texts.append(record.getMessage().strip())
        return False

    logger = logging.getLogger(library)
    logger.addFilter(collect)
    try:
        yield texts
    finally:
        logger.removeFilter(collect)


MAGIC = b"\x89PNG\r\n\x1a\n"
MAX_SIDE = 1_000_000  # libpng's limit of a side
_PALETTE = 3
_CHANNELS = {0: 1, 2: 3, _PALETTE: 3, 4: 2, 6: 4}
_ADAM7 = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)
"""First column and row, and steps to the right and down, of the passes of an interlaced file."""
_HEADER_END = len(MAGIC) + 25  # behind the chunk IHDR
_PIECE = 1 << 12
_METRE = 1
_MAX_CHUNKS = 2**19  # limit of the number of chunks; with the common size of 8 KiB they hold 4 GiB
_PER_METRE = 1 / 0.0254
_SRGB_GAMMA = (45455).to_bytes(4, "big")


class _ColourChunk(NamedTuple):
    """A chunk that states the meaning of colours: its length, and a name for users."""

    length: int
    name: str


COLOURS = {
    "cICP": _ColourChunk(4, "its colour space (cICP)"),
    "cHRM": _ColourChunk(32, "its primaries (cHRM)"),
    "gAMA": _ColourChunk(4, "its gamma"),
    "sRGB": _ColourChunk(1, "its rendering intent"),
    "mDCV": _ColourChunk(24, "its mastering display"),
    "cLLI": _ColourChunk(8, "its light levels"),
}
"""Kept as they are: filters do not change the meaning of a sample."""

_OTHERS = {
    b"sBIT": "its significant bits",
    b"bKGD": "its background colour",
    b"sPLT": "a suggested palette",
    b"tIME": "its time of change",
    b"oFFs": "its offset",
    b"pCAL": "its calibration",
    b"sCAL": "its physical scale",
    b"sTER": "its stereo layout",
}
"""Chunks that results lack."""

_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
_OF_PIXELS = (b"iCCP", b"pHYs", b"eXIf", b"hIST", b"acTL", b"fcTL", b"fdAT")
"""Further chunks that are read, or that belong to a palette or an animation."""

_XMP = b"XML:com.adobe.xmp\0"
# The chunks needed for the pixels. libpng prints warnings about others on stderr, mostly about
# colour profiles, and decompresses texts.
_CRITICAL = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")


def decode(handle: BinaryIO) -> Decoded:  # noqa: C901 - one list of cases, in order
    header = handle.read(26)
    if header[12:16] != b"IHDR" or len(header) < 26:
        raise Unreadable("its PNG header is damaged.")
    width, height, depth, colour_type = struct.unpack(">IIBB", header[16:26])
    check_size(width, height)
    if max(width, height) > MAX_SIDE:
        raise Unreadable(f"it has {width}×{height} pixels; a PNG may have {MAX_SIDE} a side.")

    data = header + handle.read()
    chunks: dict[bytes, bytes] = {}
    critical = [MAGIC]
    for kind, chunk in _chunks(data):
        if kind in _CRITICAL:
            critical.append(chunk)
        chunks.setdefault(kind, chunk)
    if b"IDAT" not in chunks:
        raise Unreadable("it has no image data.")
    notices: list[str] = []
    if b"IEND" not in chunks:
        critical, notices = _completed(critical)

    import imagecodecs

    with warnings_of("imagecodecs") as warnings:
        # With a buffer of its own, imagecodecs loses a reference to None if it raises.
        room, form = None, _form(depth, colour_type, b"tRNS" in chunks)
        if form is not None:
            channels, dtype = form
            room = np.empty((height, width, channels)[: 2 + (channels > 1)], dtype)
        pixels = b"".join(critical)
        try:
            result = Decoded(imagecodecs.png_decode(pixels, out=room))
        except ValueError:  # the buffer does not fit: libpng ignored a damaged tRNS
            result = Decoded(imagecodecs.png_decode(pixels))
    result.notices += notices
    if warnings:
        found = "; ".join(text.removeprefix("PNG warning: ") for text in dict.fromkeys(warnings))
        result.notices.append(f"The file is damaged, parts of the picture may be wrong ({found}).")
    if colour_type == _PALETTE:
        model = "RGBA" if b"tRNS" in chunks else "RGB"
        result.notices.append(formats.PALETTE.format(model))
    else:
        if depth == 1:
            result.notices.append(formats.ONE_BIT)
        elif depth < 8:
            result.notices.append(f"{depth}-bit samples stretched to 8 bits.")
        if b"tRNS" in chunks:
            result.notices.append("The transparent colour became an alpha channel.")
    if b"acTL" in chunks:
        result.notices.append(formats.ANIMATION)
    return _described(result, data, chunks)


def head(handle: BinaryIO) -> Decoded | None:
    """Return the form of a picture; its chunks up to the pixels are passed over."""
    width, height, depth, colour_type = struct.unpack(">IIBB", handle.read(26)[16:])
    handle.seek(_HEADER_END)
    kinds = set[bytes]()
    for _ in range(_MAX_CHUNKS):
        length, kind = struct.unpack(">I4s", handle.read(8))
        if kind in (b"IDAT", b"IEND"):
            break
        if kind != b"tRNS":
            handle.seek(length + 4, os.SEEK_CUR)
        elif not _chunk(kind, handle.read(length)).endswith(handle.read(4)):
            continue  # libpng ignores a damaged one
        kinds.add(kind)
    form = _form(depth, colour_type, b"tRNS" in kinds)
    if form is None:
        return None
    notices = [formats.ANIMATION] * (b"acTL" in kinds)
    return Decoded.of_head(np.zeros(*form), width, height, *notices)


def _completed(chunks: list[bytes]) -> tuple[list[bytes], list[str]]:
    """Return the chunks of a file that was cut off, with rows of zeros for the missing ones."""
    width, height, depth, colour_type = struct.unpack(">IIBB", chunks[1][8:18])
    interlaced = chunks[1][20] == 1
    bits = depth * (1 if colour_type == _PALETTE else _CHANNELS.get(colour_type, 1))
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    rows = [
        1 + (-(-(width - x) // right) * bits + 7) // 8
        for x, y, right, down in passes
        if width > x
        for _ in range(y, height, down)
    ]
    packed = b"".join(
        chunk[8 : 8 + int.from_bytes(chunk[:4], "big")]
        for chunk in chunks[1:]
        if chunk[4:8] == b"IDAT"
    )
    there = _readable(packed, sum(rows))
    ends = np.cumsum(rows)
    whole = int(np.searchsorted(ends, len(there), side="right"))
    if not whole:
        raise Unreadable("the file is cut off: its data end before the first row does.", AGAIN)
    filled = there[: int(ends[whole - 1])].ljust(sum(rows), b"\0")
    others = [chunk for chunk in chunks if chunk[4:8] not in (b"IDAT", b"IEND")]
    data = [_chunk(b"IDAT", zlib.compress(filled, 1)), _chunk(b"IEND", b"")]
    if whole == len(rows):
        notice = "The file is cut off behind its picture, which is whole."
    elif interlaced:
        notice = f"{formats.IS_CUT_OFF} pixels of its later passes are not there, and are black."
    else:
        notice = formats.CUT_OFF.format(rows=whole, height=height, rest="black")
    return [*others, *data], [notice]


def _readable(packed: bytes, most: int) -> bytes:
    """Return the data that a stream of deflate unpacks to, up to where it ends or is damaged."""
    unpack, parts, left = zlib.decompressobj(), list[bytes](), most
    with contextlib.suppress(zlib.error):
        for start in range(0, len(packed), _PIECE):
            piece = packed[start : start + _PIECE]
            while piece and left > 0:
                parts.append(unpack.decompress(piece, left))
                left -= len(parts[-1])
                piece = unpack.unconsumed_tail
        parts.append(unpack.flush()[: max(0, left)])
    return b"".join(parts)


def encode(pixels: NDArray[Any], metadata: Metadata = NOTHING) -> bytes:
    """Encode grey, grey with alpha, RGB or RGBA of 8 or 16 bits.

    The fastest level: a fifth to half of the default's time, for about a tenth more bytes. One
    filter, the difference from the row above: 0.4 to 0.8 of the time in which libpng tries all five
    for each row, in files that are 0.94 to 1.07 times as large (11 pictures, 8 and 16 bits).
    """
    import imagecodecs

    extra = []
    if metadata.profile:
        extra.append(_chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.profile)))
    if metadata.resolution:
        x, y = (round(value * _PER_METRE) for value in metadata.resolution)
        extra.append(_chunk(b"pHYs", struct.pack(">IIB", x, y, _METRE)))
    extra += [_chunk(kind.encode(), content) for kind, content in metadata.chunks]
    if metadata.exif:
        extra.append(_chunk(b"eXIf", metadata.exif))
    if metadata.xmp:
        extra.append(_chunk(b"iTXt", _XMP + b"\0\0\0\0" + metadata.xmp))
    # The codec's own guess of the size is too small for noise, and for narrow pictures: a row has
    # a byte more, deflate takes up to 9 bits for 8, and each 8 KiB are a chunk.
    room = bytearray(2 * (pixels.nbytes + len(pixels)) + 2**16)
    data = imagecodecs.png_encode(pixels, level=1, filter=imagecodecs.PNG.FILTER.UP, out=room)
    return b"".join((data[:_HEADER_END], *extra, data[_HEADER_END:]))


def _form(depth: int, colour_type: int, transparent: bool) -> tuple[int, type[Any]] | None:
    """Return the channels and the type of the pixels; None if there is no such colour type."""
    channels = _CHANNELS.get(colour_type)
    if channels is None:
        return None
    channels += transparent and colour_type not in (4, 6)
    return channels, np.uint16 if depth == 16 else np.uint8


def _described(result: Decoded, data: bytes, chunks: dict[bytes, bytes]) -> Decoded:
    content = {kind: chunk[8:-4] for kind, chunk in chunks.items()}
    profile = unpacked(content.get(b"iCCP", b"").partition(b"\0")[2][1:], 2**24)
    resolution = None
    if len(content.get(b"pHYs", b"")) == 9:
        x, y, unit = struct.unpack(">IIB", content[b"pHYs"])
        if unit == _METRE and x and y:
            resolution = (x / _PER_METRE, y / _PER_METRE)
    xmp, texts = None, False
    for kind, chunk in _chunks(data):
        if xmp is None and kind == b"iTXt" and chunk[8:].startswith(_XMP):
            packed = chunk[8 + len(_XMP) : 9 + len(_XMP)] == b"\1"
            text = chunk[10 + len(_XMP) : -4].split(b"\0", 2)[-1]
            xmp = unpacked(text, 2**24) if packed else text
        elif kind in _TEXTS:  # further packets too: decompressing many takes long
            texts = True
    others = ["texts"] * texts + [name for kind, name in _OTHERS.items() if kind in chunks]
    known = {*_CRITICAL, *_OF_PIXELS, *_OTHERS, *_TEXTS, *map(str.encode, COLOURS)}
    private = sorted(kind.decode() for kind in chunks.keys() - known if kind.isalpha())
    others += [f"its chunk {kind}" for kind in private]
    if b"iCCP" in chunks and not profile:
        others.append(exif.DAMAGED_PROFILE)
    if b"pHYs" in chunks and resolution is None and content[b"pHYs"][:4] != content[b"pHYs"][4:8]:
        others.append("the shape of its pixels")
    exif.describe(result, content.get(b"eXIf", b""), xmp or b"", profile, resolution, tuple(others))
    kept = [
        (kind, content[kind.encode()])
        for kind, colours in COLOURS.items()
        if len(content.get(kind.encode(), b"")) == colours.length and not _is_usual(kind, content)
    ]
    result.metadata = replace(result.metadata, chunks=tuple(kept))
    return result


def _is_usual(kind: str, content: Mapping[bytes, bytes]) -> bool:
    """Return whether a chunk states a default, or a value that a colour profile overrides."""
    usual = kind == "sRGB" or (kind == "gAMA" and content[b"gAMA"] == _SRGB_GAMMA)
    return usual or (kind in ("gAMA", "cHRM") and b"iCCP" in content)


def unpacked(data: bytes, most: int) -> bytes:
    """Return decompressed data, or nothing if they are damaged or longer than `most`."""
    unpack = zlib.decompressobj()
    try:
        unpacked = unpack.decompress(data, most)
    except zlib.error:
        return b""
    return unpacked if unpack.eof else b""


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    start = len(MAGIC)
    for _ in range(_MAX_CHUNKS):
        if start + 8 > len(data):
            return
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + length + 12
        yield kind, data[start:end]
        start = end
    raise Unreadable("it has too many chunks; most likely it is damaged.")
