"""EXIF data in TIFF files, whose tables lie among those of the file.

Values are copied byte by byte with their types: of notes of cameras nobody else knows the format.
The formats: TIFF 6.0, and CIPA DC-008 (Exif 2.32) for the tables and their tags.
"""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

_logger = logging.getLogger(__name__)

_EXIF, _GPS, _INTEROPERABILITY = 0x8769, 0x8825, 0xA005
POINTERS = (_EXIF, _GPS)
_MAIN = 0

_DESCRIPTION, _SOFTWARE = 270, 305
_BESIDE = (
    *(269, _DESCRIPTION, 271, 272, 285, _SOFTWARE, 306, 315, 316, 33432),
    *(18246, 18249, 40091, 40092, 40093, 40094, 40095, 50341),
)
"""Tags beside the pixels that mean the same in every file: texts on the picture, its camera and its
author (40091 to 40095 are those of Windows), ratings, and a table for printers."""

_STRUCTURE = frozenset(
    (
        *(254, 255, 256, 257, 258, 259, 262, 263, 264, 265, 266, 273, 274, 277, 278, 279, 280),
        *(281, 282, 283, 284, 288, 289, 290, 291, 292, 293, 296, 297, 301, 317, 318, 319, 320),
        *(321, 322, 323, 324, 325, 330, 332, 338, 339, 340, 341, 347, 512, 513, 514, 515, 517),
        *(518, 519, 520, 521, 529, 530, 531, 532, 34665 - 1, 34853 - 1, _EXIF, _GPS),
        *(_INTEROPERABILITY, 700, 32995, 32996, 32997, 32998, 33723, 34377, 34675, 42113),
        *(33550, 33922, 34264, 34735, 34736, 34737, 42112, 50838, 50839),
    )
)
"""Tags of the layout of samples, and of data that are read, written or named by themselves."""

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
"""Bytes of a value of each type."""

_LONG, _FRACTIONS = 4, (5, 10)
_OF_PICTURES = _STRUCTURE - {*POINTERS, _INTEROPERABILITY, 34852}
"""Of those the tags that no table of EXIF has: their values, as offsets, may be long."""

_COMMENT, _UTF_16 = 37510, b"UNICODE\0"
_OF_LAYOUTS = (b"{", b"<", b"ImageJ=", b"shape=")
"""Beginnings of descriptions that readers, this program among them, take for that of a layout."""

DESCRIPTION, EXIF, DAMAGED = "a description", "EXIF data", "damaged EXIF data"

_OURS = b"tifffile.py"
_MOST = 2**20  # largest EXIF data that are looked at, in bytes
_Table = dict[int, tuple[int, bytes]]  # type and bytes of values, by their tags

_Read = Callable[[int, int], bytes]


@dataclass(frozen=True)
class _Found:
    """Tables in a byte order; whole if none of their values is damaged."""

    order: str
    tables: dict[int, _Table]
    is_whole: bool


def exif_of(handle: BinaryIO, page: Any, *, understood: bool) -> tuple[bytes, list[str]]:
    """Return the EXIF data of a page from their TIFF header on, and the names of entries left out.

    A description that was `understood` is none of the text on a picture.
    """
    if page.parent.is_bigtiff:
        described = page.tags.valueof(_DESCRIPTION) and not understood
        has_tables = any(code in page.tags for code in POINTERS)
        return b"", [*[DESCRIPTION] * bool(described), *[EXIF] * has_tables]
    left = _MOST

    def read(place: int, size: int) -> bytes:
        nonlocal left
        left -= size
        handle.seek(place)
        data = handle.read(size) if left >= 0 else b""
        if len(data) < size:
            raise ValueError("EXIF data outside of the file")
        return data

    order = page.parent.byteorder
    try:
        found = _tables(read, order, page.offset)
    except (struct.error, ValueError, OSError):
        _logger.debug("EXIF data of a TIFF", exc_info=True)
        return b"", [DAMAGED]
    tables = found.tables
    main = {tag: value for tag, value in tables[_MAIN].items() if tag in _BESIDE}
    if main.get(_SOFTWARE, (0, b""))[1].startswith(_OURS):
        del main[_SOFTWARE]
    if understood:
        main.pop(_DESCRIPTION, None)
    kept = _packed({**tables, _MAIN: main}, order) if main or len(tables) > 1 else b""
    return kept, [DAMAGED] * (not found.is_whole)


def fitting(exif: bytes, *, described: bool) -> bytes:
    """Return the EXIF data that a TIFF can hold.

    A page has one description, which may be that of the file's layout. Damaged values are left out.
    """
    try:
        found = _parsed(exif)
    except (struct.error, ValueError, KeyError):
        return b""
    text = found.tables[_MAIN].get(_DESCRIPTION, (0, b""))[1]
    if described or text.startswith(_OF_LAYOUTS):
        found.tables[_MAIN].pop(_DESCRIPTION, None)
    return _packed(found.tables, found.order) if any(found.tables.values()) else b""


def parts_of(exif: bytes) -> list[str]:
    """Return the names of the entries of EXIF data, for records."""
    if not exif:
        return []
    try:
        found = _parsed(exif)
    except (struct.error, ValueError, KeyError):
        return [EXIF]
    tables = found.tables
    described = _DESCRIPTION in tables[_MAIN]
    others = set(tables[_MAIN]) - {_DESCRIPTION} or any(tables[code] for code in {*tables} - {0})
    return [
        *[DESCRIPTION] * described,
        *[EXIF] * bool(others or not described),
        *[DAMAGED] * (not found.is_whole),
    ]


def has_private(page: Any) -> bool:
    """Return whether a page has tags of unknown meaning, which are not kept."""
    known = {*_STRUCTURE, *_BESIDE}
    return any(tag.code not in known for tag in page.tags)


def tags_for(exif: bytes, order: str) -> list[tuple[int, int, int, Any, bool]]:
    """Return the tags of a page with these EXIF data, for `tifffile` and then `add_tables`.

    `tifffile` refuses those of tables: they have the number before, which nothing else uses.
    """
    found = _parsed(exif)
    main = _in_order(found.tables[_MAIN], swapped=found.order != order)
    tags: list[tuple[int, int, int, Any, bool]] = []
    for tag, (kind, data) in main.items():
        value: Any = data
        if kind in _FRACTIONS:  # tifffile counts their bytes as twice as many
            sign = "I" if kind == _FRACTIONS[0] else "i"
            value = struct.unpack(f"{order}{len(data) // 4}{sign}", data)
        tags.append((tag, kind, len(data) // _SIZES[kind], value, True))
    return [*tags, *((code - 1, _LONG, 1, 0, True) for code in POINTERS if code in found.tables)]


def add_tables(buffer: io.BytesIO, pages: Sequence[bytes]) -> None:
    """Append the tables of the EXIF data of each page to a file, and point its tags there."""
    import tifffile

    buffer.seek(0)
    with tifffile.TiffFile(buffer) as file:
        order = file.byteorder
        entries = [
            {code: page.tags[code - 1].offset for code in POINTERS if code - 1 in page.tags}
            for page in file.pages
        ]
    for exif, places in zip(pages, entries, strict=True):
        if not places:
            continue
        found = _parsed(exif)
        swapped = found.order != order
        tables = {
            code: _in_order(table, swapped=swapped)
            for code, table in found.tables.items()
            if code != _MAIN
        }
        end = buffer.seek(0, io.SEEK_END)
        start = end + end % 2  # tables begin at even offsets
        data, places_of = _laid_out(tables, order, start)
        buffer.write(bytes(start - end) + data)
        for code, entry in places.items():
            buffer.seek(entry)
            buffer.write(struct.pack(f"{order}HHII", code, _LONG, 1, places_of[code]))


def _parsed(exif: bytes) -> _Found:
    order = {b"II": "<", b"MM": ">"}[exif[:2]]

    def read(place: int, size: int) -> bytes:
        data = exif[place : place + size]
        if len(data) < size:
            raise ValueError("EXIF data end early")
        return data

    return _tables(read, order, struct.unpack(f"{order}I", read(4, 4))[0])


def _tables(read: _Read, order: str, first: int) -> _Found:
    """Return the tables without the pointers between them, by the tags of these."""
    main, is_whole = _table(read, order, first)
    tables = {_MAIN: {tag: value for tag, value in main.items() if tag not in _STRUCTURE}}
    pointers = {code: main[code] for code in POINTERS if code in main}
    while pointers:
        code, (_, data) = pointers.popitem()
        try:
            place = struct.unpack_from(f"{order}I", data)[0]
            tables[code], whole = _table(read, order, place)
            whole &= bool(tables[code])
        except (struct.error, ValueError):
            whole = False
        is_whole &= whole
        if code == _EXIF and code in tables and _INTEROPERABILITY in tables[code]:
            pointers[_INTEROPERABILITY] = tables[code].pop(_INTEROPERABILITY)
    return _Found(order, tables, is_whole)


def _table(read: _Read, order: str, place: int) -> tuple[_Table, bool]:
    (count,) = struct.unpack(f"{order}H", read(place, 2))
    entries = read(place + 2, 12 * count)
    found, is_whole = _Table(), True
    for at in range(0, len(entries), 12):
        tag, kind, length = struct.unpack_from(f"{order}HHI", entries, at)
        if tag in _OF_PICTURES:
            continue
        if kind not in _SIZES:
            is_whole = False
            continue
        size = length * _SIZES[kind]
        value = entries[at + 8 : at + 12]
        try:
            data = value[:size] if size <= 4 else read(struct.unpack(f"{order}I", value)[0], size)
            found.setdefault(tag, (kind, data))
        except ValueError:
            is_whole = False
    return found, is_whole


def _packed(tables: Mapping[int, _Table], order: str) -> bytes:
    main = dict(tables[_MAIN])
    for code in POINTERS:
        if code in tables:
            main[code] = (_LONG, bytes(4))
    rest = {code: table for code, table in tables.items() if code != _MAIN}
    data, places = _laid_out(rest, order, 8 + _size(main))
    for code in main.keys() & places.keys():
        main[code] = (_LONG, struct.pack(f"{order}I", places[code]))
    head = b"II*\0" if order == "<" else b"MM\0*"
    return head + struct.pack(f"{order}I", 8) + _bytes_of(main, order, 8) + data


def _laid_out(tables: Mapping[int, _Table], order: str, start: int) -> tuple[bytes, dict[int, int]]:
    """Return tables one after another from an offset on, and the offset of each."""
    data, places = b"", dict[int, int]()
    for code in (_INTEROPERABILITY, *POINTERS):
        if code not in tables:
            continue
        table = dict(tables[code])
        if code == _EXIF and _INTEROPERABILITY in places:
            pointer = struct.pack(f"{order}I", places[_INTEROPERABILITY])
            table[_INTEROPERABILITY] = (_LONG, pointer)
        places[code] = start + len(data)
        data += _bytes_of(table, order, places[code])
    return data, places


def _size(table: _Table) -> int:
    beyond = sum(len(data) + len(data) % 2 for _, data in table.values() if len(data) > 4)
    return 6 + 12 * len(table) + beyond


def _bytes_of(table: _Table, order: str, place: int) -> bytes:
    entries, values = b"", b""
    behind = place + 6 + 12 * len(table)
    for tag, (kind, data) in sorted(table.items()):
        entries += struct.pack(f"{order}HHI", tag, kind, len(data) // _SIZES[kind])
        if len(data) <= 4:
            entries += data.ljust(4, b"\0")
        else:
            entries += struct.pack(f"{order}I", behind + len(values))
            values += data + bytes(len(data) % 2)
    return struct.pack(f"{order}H", len(table)) + entries + bytes(4) + values


def _in_order(table: _Table, *, swapped: bool) -> _Table:
    """Return a table with its numbers in the other byte order, if they are to be `swapped`."""
    if not swapped:
        return table
    return {tag: (kind, _swapped(tag, kind, data)) for tag, (kind, data) in table.items()}


def _swapped(tag: int, kind: int, data: bytes) -> bytes:
    width = 4 if kind in _FRACTIONS else _SIZES[kind]
    head = b""
    if tag == _COMMENT and data.startswith(_UTF_16):  # letters in the byte order of the tables
        head, data, width = _UTF_16, data[len(_UTF_16) :], 2
    return head + b"".join(data[at : at + width][::-1] for at in range(0, len(data), width))
