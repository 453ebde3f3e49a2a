"""PNG through libpng (imagecodecs), because Pillow cuts 16-bit colour down to 8 bits."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from numpy.typing import NDArray

from app.files import formats
from app.files.exif import exif_orientation
from app.files.formats import Decoded, Unreadable, check_size

MAGIC = b"\x89PNG\r\n\x1a\n"
_GREY, _PALETTE = 0, 3


def decode(handle: BinaryIO) -> Decoded:
    """Decode a PNG of any depth and colour type; animations give their first picture."""
    header = handle.read(26)
    if header[12:16] != b"IHDR" or len(header) < 26:
        raise Unreadable("its PNG header is damaged.")
    width, height, depth, colour_type = struct.unpack(">IIBB", header[16:26])
    check_size(width, height)

    import imagecodecs

    data = header + handle.read()
    result = Decoded(imagecodecs.png_decode(data))
    chunks = dict(_chunks(data))
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
    if b"eXIf" in chunks:
        result.orientation = exif_orientation(chunks[b"eXIf"], result.notices)
    return result


def encode(pixels: NDArray[Any]) -> bytes:
    """Encode grey, grey with alpha, RGB or RGBA of 8 or 16 bits."""
    import imagecodecs

    return bytes(imagecodecs.png_encode(pixels))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each chunk that is no pixel data."""
    start = len(MAGIC)
    while start + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        if kind != b"IDAT":
            yield kind, data[start + 8 : start + 8 + length]
        start += length + 12
