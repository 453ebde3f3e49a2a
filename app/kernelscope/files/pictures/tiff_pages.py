"""The chain of pages of a TIFF, checked before a library follows it.

Each page ends with the offset of the next. In a damaged file the chain may lead back to an earlier
page, and a library that follows it would never end.
"""

from __future__ import annotations

import math
import os
import re
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

from kernelscope.files.formats import Unreadable

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
