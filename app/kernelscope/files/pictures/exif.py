"""EXIF data: orientation, resolution, and the part that a result keeps.

The format: CIPA DC-008 (Exif 2.32), whose tables are those of TIFF 6.0.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files.formats import Decoded
from kernelscope.files.pictures import xmp
from kernelscope.images.image import Metadata

_logger = logging.getLogger(__name__)

_PREFIX = b"Exif\0\0"
_ORIENTATION, _X_RESOLUTION, _Y_RESOLUTION, _UNIT = 0x0112, 0x011A, 0x011B, 0x0128
_EXIF_TABLE, _WIDTHS, _HEIGHTS = 0x8769, (0x0100, 0xA002), (0x0101, 0xA003)
_ALONG_SIDES = ((_X_RESOLUTION, _Y_RESOLUTION), (0xA20E, 0xA20F))  # the second of the sensor
_SUBJECTS = 0x9214, 0xA214
"""Where the subject is: the x and y of its middle, and perhaps its diameter or its two sides."""
_SHORT, _LONG, _RATIONAL = 3, 4, 5
PER_INCH = {2: 1.0, 3: 2.54}
"""Factors to pixels per inch, by the number of the unit in TIFF and EXIF."""

DAMAGED_PROFILE = "a damaged colour profile"
DAMAGED = "The EXIF data are damaged; the picture may lie on its side."


@dataclass(frozen=True)
class _Entry:
    """Numbers in a table: their format for `struct`, and their offset."""

    tag: int
    form: str
    place: int


def describe(
    result: Decoded,
    exif: bytes = b"",
    packet: bytes = b"",
    profile: bytes = b"",
    resolution: tuple[float, float] | None = None,
    others: tuple[str, ...] = (),
) -> Decoded:
    """Return `result` with the metadata of its file.

    `exif`, `packet` (XMP), `profile`: as stored in the file; the first two may give the
    orientation, and EXIF has precedence. `resolution`: pixels per inch along x and y; EXIF may
    contain it too. `others`: see `Metadata`.
    """
    exif = exif.removeprefix(_PREFIX)
    if len(profile) < int.from_bytes(profile[:4], "big"):  # such as one without its last segment
        profile, others = b"", (*others, DAMAGED_PROFILE)
    orientation: float | None = None
    if exif:
        try:
            numbers = _numbers(exif)
            orientation = numbers.get(_ORIENTATION)
            resolution = resolution or resolution_of(
                numbers.get(_X_RESOLUTION), numbers.get(_Y_RESOLUTION), numbers.get(_UNIT, 2)
            )
        except (struct.error, ValueError):
            _logger.debug("Damaged EXIF data", exc_info=True)
            result.notices.append(DAMAGED)
            exif = b""
    if valid_orientation(orientation) != orientation:  # EXIF gives no valid orientation
        orientation = xmp.orientation_of(packet)
    result.orientation = valid_orientation(orientation)
    result.metadata = Metadata(profile, resolution, exif, others, xmp=packet)
    return result


def resolution_of(x: Any, y: Any, unit: Any) -> tuple[float, float] | None:
    """Return pixels per inch, if the numbers of a TIFF or of EXIF data make sense."""
    factor = PER_INCH.get(unit)
    if factor is None or not x or not y:
        return None
    return float(x) * factor, float(y) * factor


def has_thumbnail(exif: bytes) -> bool:
    try:
        return any(exif[_second_table(exif)])
    except (struct.error, ValueError):
        return False


def _second_table(exif: bytes) -> slice:
    """Return where the place of the second table is written: zeros without one."""
    order = _order(exif)
    first = struct.unpack_from(f"{order}I", exif, 4)[0]
    place = first + 2 + 12 * struct.unpack_from(f"{order}H", exif, first)[0]
    return slice(place, place + 4)


def stamped(exif: bytes, width: int, height: int) -> bytes:
    """Return EXIF data for an upright picture of this size, without its old thumbnail."""
    order = _order(exif)
    stamped = bytearray(exif)
    numbers = {_ORIENTATION: 1, **dict.fromkeys(_WIDTHS, width), **dict.fromkeys(_HEIGHTS, height)}
    entries = {entry.tag: entry for entry in _entries(exif)}
    orientation = valid_orientation(_numbers(exif).get(_ORIENTATION))
    for entry in (entries[tag] for tag in _SUBJECTS if tag in entries):
        found = struct.unpack_from(order + entry.form, exif, entry.place)
        turned_subject = _turned_subject(found, orientation, width, height)
        struct.pack_into(order + entry.form, stamped, entry.place, *turned_subject)
    if orientation >= 5:
        for pair in _ALONG_SIDES:
            x, y = (entries.get(tag) for tag in pair)
            if x and y and x.form == y.form == "II":
                stamped[x.place : x.place + 8] = exif[y.place : y.place + 8]
                stamped[y.place : y.place + 8] = exif[x.place : x.place + 8]
    for entry in entries.values():
        number = numbers.get(entry.tag)
        if (
            number is not None
            and entry.form in "HI"
            and number < 1 << 8 * struct.calcsize(entry.form)
        ):
            struct.pack_into(order + entry.form, stamped, entry.place, number)
    thumbnail = _second_table(exif)
    stamped[thumbnail] = bytes(len(exif[thumbnail]))
    return bytes(stamped)


def valid_orientation(value: object) -> int:
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def turned(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Return a view of (height, width, ...) pixels of an orientation, turned upright."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = np.flipud(pixels)
    if orientation in (2, 3, 6, 7):
        pixels = np.fliplr(pixels)
    return pixels


def _turned_subject(
    subject: tuple[int, ...], orientation: int, width: int, height: int
) -> tuple[int, ...]:
    """Return the numbers of `_SUBJECTS` in a picture of this size that was turned upright."""
    x, y, *sides = subject
    if orientation >= 5:
        x, y, sides = y, x, sides[::-1]
    if orientation in (3, 4, 7, 8):
        y = max(height - 1 - y, 0)
    if orientation in (2, 3, 6, 7):
        x = max(width - 1 - x, 0)
    return x, y, *sides


def _order(exif: bytes) -> str:
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        raise ValueError("no TIFF header")
    return order


def _entries(exif: bytes) -> Iterator[_Entry]:
    order = _order(exif)
    tables = [struct.unpack_from(f"{order}I", exif, 4)[0]]
    for table in tables:
        for place in range(struct.unpack_from(f"{order}H", exif, table)[0]):
            start = table + 2 + 12 * place
            tag, kind, count = struct.unpack_from(f"{order}HHI", exif, start)
            if tag == _EXIF_TABLE:
                # Once: a damaged table may point there from each entry, which takes hours.
                if len(tables) == 1:
                    tables.append(struct.unpack_from(f"{order}I", exif, start + 8)[0])
            elif count == 1 and kind in (_SHORT, _LONG):
                yield _Entry(tag, "H" if kind == _SHORT else "I", start + 8)
            elif tag in _SUBJECTS and kind == _SHORT and 2 <= count <= 4:
                far = struct.unpack_from(f"{order}I", exif, start + 8)[0]
                yield _Entry(tag, count * "H", start + 8 if count == 2 else far)
            elif count == 1 and kind == _RATIONAL:
                yield _Entry(tag, "II", struct.unpack_from(f"{order}I", exif, start + 8)[0])


def _numbers(exif: bytes) -> dict[int, int | float]:
    """Return the single numbers by their tags; raises struct.error if they lie outside the data."""
    order = _order(exif)
    numbers: dict[int, int | float] = {}
    for entry in _entries(exif):
        top, *bottom = struct.unpack_from(order + entry.form, exif, entry.place)
        if not bottom:
            numbers.setdefault(entry.tag, top)
        elif bottom[0]:
            numbers.setdefault(entry.tag, top / bottom[0])
    return numbers
