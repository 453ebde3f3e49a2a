"""The size that compressed pictures inside of other files state, before they are decoded.

TIFF strips, TIFF tiles and DICOM frames may hold a JPEG or a JPEG 2000. Their decoders make room
for the size in its own header, whatever the file around it declares.
"""

from __future__ import annotations

import struct

from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures import jpeg

_CODESTREAM = b"\xff\x4f\xff\x51"
"""Start of image and size: the first two markers of JPEG 2000, always in this order."""
_BOXES = b"\0\0\0\x0cjP"  # start of a JPEG 2000 in boxes, each of a length, a kind and its content


def check_coded_size(data: bytes, width: int, height: int, samples: int) -> None:
    """Refuse a JPEG or JPEG 2000 with more columns, rows or samples than the file around it has.

    Raises `Unreadable`.
    """
    found = _jpeg_2000(data) if data[:2] != b"\xff\xd8" else jpeg.stated_size(data)
    if found is None:  # the decoder will refuse it as well
        return
    if found[0] > width or found[1] > height or found[2] > max(samples, 4):
        raise Unreadable(
            f"a compressed part of it has {found[0]}×{found[1]} pixels of {found[2]} samples, "
            f"where {width}×{height} of {samples} belong.",
            "Get the file again from where it came from.",
        )


def _jpeg_2000(data: bytes) -> tuple[int, int, int] | None:
    """Return the columns, rows and components of a JPEG 2000; None if it is none."""
    start = 0
    if data.startswith(_BOXES):
        while data[start + 4 : start + 8] != b"jp2c":
            length, header = int.from_bytes(data[start : start + 4], "big"), 8
            if length == 1:
                length, header = int.from_bytes(data[start + 8 : start + 16], "big"), 16
            if length < header or start + length >= len(data):
                return None
            start += length
        start += 16 if data[start : start + 4] == b"\0\0\0\1" else 8
    if not data.startswith(_CODESTREAM, start) or len(data) < start + 42:
        return None
    right, bottom, left, top = struct.unpack_from(">4I", data, start + 8)
    (components,) = struct.unpack_from(">H", data, start + 40)
    return right - left, bottom - top, components
