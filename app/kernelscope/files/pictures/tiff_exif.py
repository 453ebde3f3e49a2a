"""EXIF data in TIFF files, whose tables lie among those of the file: Pillow moves them."""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

_logger = logging.getLogger(__name__)

_EXIF, _GPS, _INTEROPERABILITY = 0x8769, 0x8825, 0xA005
_TABLES = (_EXIF, _GPS)

_TEXTS = (271, 272, 305, 306, 315, 33432)
"""Make and model of the camera, software, time, author, copyright: texts beside the pixels."""

_LONG = 4

_OURS = "tifffile.py"

_MAGIC = {"<": b"II*\0\x08\0\0\0", ">": b"MM\0*\0\0\0\x08"}
_MOST = 2**20
"""Largest EXIF data that are looked at, in bytes."""


def exif_of(handle: BinaryIO, page: Any) -> bytes:
    """Return the EXIF data of a page from their TIFF header on; empty if there are none.

    They are damaged, or in a BigTIFF, if the page has the tag and the result is empty.
    """
    import PIL.Image

    there = {tag.code: tag for tag in page.tags if tag.code in (*_TABLES, *_TEXTS)}
    texts = {code: str(tag.value) for code, tag in there.items() if code in _TEXTS}
    if texts.get(305, "").startswith(_OURS):
        del texts[305]
    tables = [code for code in _TABLES if code in there]
    if page.parent.is_bigtiff or not (texts or tables):
        return b""
    try:
        found = PIL.Image.Exif()
        handle.seek(0)
        found.load_from_fp(handle, None)
        made = PIL.Image.Exif()
        for code, text in texts.items():
            made[code] = text.encode()  # Pillow writes “?” for letters beyond ASCII in a str
        for code in tables if page.index == 0 else ():
            table = dict(found.get_ifd(code))
            table.pop(_INTEROPERABILITY, None)
            if not table:
                return b""
            made[code] = table
        data = made.tobytes()
    except Exception:  # damaged data make the library raise exceptions of any kind
        _logger.debug("EXIF data of a TIFF", exc_info=True)
        return b""
    return data.removeprefix(b"Exif\0\0") if len(data) <= _MOST else b""


def tags_for(exif: bytes) -> list[tuple[int, str, int, Any, bool]]:
    """Return the tags of a page with these EXIF data, for `tifffile` and then `add_tables`.

    `tifffile` refuses those of tables: they have the number before, which nothing else uses.
    """
    found = _parsed(exif)
    tags: list[tuple[int, str, int, Any, bool]] = [
        (code, "s", 0, str(found[code]).encode("latin-1", "replace"), True)  # as Pillow read it
        for code in _TEXTS
        if code in found
    ]
    return [*tags, *((code - 1, "I", 1, 0, True) for code in _TABLES if found.get_ifd(code))]


def add_tables(buffer: io.BytesIO, pages: Sequence[bytes]) -> None:
    """Append the tables of the EXIF data of each page to a file, and point its tags there."""
    import PIL.TiffImagePlugin
    import tifffile

    buffer.seek(0)
    with tifffile.TiffFile(buffer) as file:
        order = file.byteorder
        entries = [
            (page.tags[code - 1].offset, code, _parsed(exif).get_ifd(code))
            for page, exif in zip(file.pages, pages, strict=True)
            for code in (_TABLES if exif else ())
            if code - 1 in page.tags
        ]
    for entry, code, found in entries:
        table = PIL.TiffImagePlugin.ImageFileDirectory_v2(_MAGIC[order], group=code)
        for tag, value in found.items():
            table[tag] = value
        place = buffer.seek(0, io.SEEK_END)
        place += buffer.write(bytes(place % 2))
        buffer.write(table.tobytes(place))
        buffer.seek(entry)
        buffer.write(struct.pack(f"{order}HHII", code, _LONG, 1, place))


def _parsed(exif: bytes) -> Any:
    import PIL.Image

    found = PIL.Image.Exif()
    found.load(b"Exif\0\0" + exif)
    return found
