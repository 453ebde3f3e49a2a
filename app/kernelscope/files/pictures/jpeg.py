"""JPEG: simplejpeg decodes camera files, Pillow CMYK, imagecodecs 12 bits and lossless.

All three use libjpeg-turbo, which fills missing parts with grey and goes on. Only simplejpeg
reports its warnings.

The format: ITU-T T.81 and T.87 (JPEG-LS), ISO/IEC 10918-5 (JFIF).

TIFF strips, TIFF tiles and DICOM frames may hold a JPEG or a JPEG 2000, whose decoders make room
for the size in its own header, whatever the file around it declares: `check_coded_size`.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files import formats
from kernelscope.files.depth import rescale
from kernelscope.files.formats import AGAIN, Decoded, Unreadable, check_size
from kernelscope.files.pictures import exif, pillow
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import Coding

_SCAN, _END = 0xDA, 0xD9
_ALONE = (0x01, *range(0xD0, 0xD9))  # markers without a length

_HEAD = 2**20  # bytes in which the size of a picture is looked for: thumbnails come before it
_MAX_SEGMENTS = 2**16
"""Limit of the number of segments: files have some hundred at most, and each takes time."""

_COMMENT, _APP0, _APP1, _APP2, _APP13, _APP14, _APP15 = 0xFE, 0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xEF
_LS, _DQT = 0xF7, 0xDB
_MARKER = re.compile(rb"\xff[\x80-\xcf\xd8-\xfe]")
"""End of the data of a scan; restart markers may occur within them."""
_ANY_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_ENDS_EARLY = re.compile("premature end|found marker 0xd9 instead", re.IGNORECASE)
_COEFFICIENTS = 64
_FILLING = bytes(37 * i % 251 for i in range(512))  # data without a marker, which decode to noise
_USUAL = {0xC0, 0xC1, 0xC2, 0xC9, 0xCA}
_PROGRESSIVE = {0xC2, 0xCA}
_SPACES = {1: "GRAY", 3: "RGB"}
MAX_SIDE = 65500
"""Largest side for most builds of libjpeg; that of imagecodecs supports all of the format's."""

_CUT_OFF = "the file is cut off or damaged: its data end before the picture does."

_SUBSAMPLING: dict[tuple[int, ...], str] = {
    (0x11, 0x11, 0x11): "4:4:4",
    (0x21, 0x11, 0x11): "4:2:2",
    (0x22, 0x11, 0x11): "4:2:0",
    (0x12, 0x11, 0x11): "4:4:0",
}
"""By the factors of each component, along x times 16 and along y."""

_TURNED = {"4:2:2": "4:4:0", "4:4:0": "4:2:2"}

_LUMINANCE = np.array(
    [
        *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
        *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
        *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
        *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
    ]
)
"""Steps of quantisation for a quality of 50: table K.1 of ITU-T T.81."""

_FRAMES = {
    **dict.fromkeys((0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF), "hierarchical"),
    0xCB: "lossless and arithmetically coded",
}
"""Kinds that no library here supports."""

_JFIF_PER_INCH = {1: 1.0, 2: 2.54}
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_MORE_XMP = b"http://ns.adobe.com/xmp/extension/\0"
_PROFILE = b"ICC_PROFILE\0"
_IPTC = b"\4\4"  # its number among the resources of Photoshop
_MORE_PICTURES = "further pictures"
_PADDING = b"\0\xff\r\n "


@dataclass
class _Segments:
    """The headers before the first scan."""

    kind: int = 0
    precision: int = 8
    width: int = 0
    height: int = 0
    channels: int = 0
    components: bytes = b""
    table: int = 0  # of quantisation of the first component
    sampling: tuple[int, ...] = ()  # see `_SUBSAMPLING`
    tables: dict[int, int] = field(default_factory=dict)  # the sum of each table of quantisation
    exif: bytes = b""
    xmp: bytes = b""
    resolution: tuple[float, float] | None = None
    profile: dict[int, bytes] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def decode(handle: WatchedFile) -> Decoded:
    data = handle.read()
    first = _ANY_MARKER.search(data, 2)
    if first:  # stray bytes before it, which libraries refuse
        data = data[:2] + data[first.start() :]
    found = _segments(data)
    if found.kind == 0:
        raise Unreadable("the file is cut off or damaged: it has no frame.")
    check_size(found.width, found.height, found.channels)
    if found.kind in _FRAMES:
        raise Unreadable(
            f"it is a JPEG of a rare kind ({_FRAMES[found.kind]}), which is not supported.",
            "Convert it to PNG or TIFF in the program that wrote it.",
        )
    scans, end = _scans(data)
    if not scans:
        raise Unreadable(_CUT_OFF, AGAIN)
    if end < 0:  # libjpeg adds the mark, and simplejpeg refuses data without one
        data += b"\xff\xd9"
    elif data[end + 2 :].strip(_PADDING) and _MORE_PICTURES not in found.others:
        found.others.append("data behind the picture")
    longest = max(found.width, found.height)
    if found.kind not in _USUAL or found.precision != 8 or longest > MAX_SIDE:
        result = _deep(data, found)
    else:
        result = _usual(data, found)
    if found.kind in _USUAL and _lacks_some(scans, found.components):
        result.notices.append("The file is damaged: it lacks scans, which hold finer detail.")
    profile = b"".join(part for _, part in sorted(found.profile.items()))
    others = tuple(dict.fromkeys(found.others))
    exif.describe(result, found.exif, found.xmp, profile, found.resolution, others)
    result.metadata = replace(result.metadata, jpeg=_coding(found, result.orientation))
    return result


def head(handle: WatchedFile) -> Decoded | None:
    found = _segments(handle.read(_HEAD))
    if found.kind == 0:
        return None
    pixel = np.zeros(
        3 if found.channels > 1 else 1, np.uint8 if found.precision <= 8 else np.uint16
    )
    return Decoded.of_head(pixel, found.width, found.height)


def _usual(data: bytes, found: _Segments) -> Decoded:
    import simplejpeg

    try:
        simplejpeg.decode_jpeg_header(data)
        space = _SPACES[found.channels]
    except (ValueError, KeyError):  # CMYK, or an unsupported chroma subsampling
        result = pillow.decode_jpeg(data)
        result.notices += _cut(data, result.pixels, lambda more: pillow.decode_jpeg(more).pixels)
        return result
    # simplejpeg leaks a buffer that it allocated itself if it raises.
    room = np.empty((found.height, found.width, found.channels), np.uint8)
    notices = []
    try:
        simplejpeg.decode_jpeg(data, space, buffer=room, strict=True)
    except ValueError as error:
        again = functools.partial(simplejpeg.decode_jpeg, colorspace=space, strict=False)
        again(data, buffer=room)
        words = str(error).removeprefix("Corrupt JPEG data: ")
        if _ENDS_EARLY.search(words):
            notices = _cut(data, room, lambda more: again(more, buffer=np.empty_like(room)))
        if not notices:
            notices = [f"The file is damaged, parts of the picture may be wrong ({words})."]
    return Decoded(room.squeeze(2) if found.channels == 1 else room, notices)


def _deep(data: bytes, found: _Segments) -> Decoded:
    """Decode 12 bits, lossless files, and sides beyond the limit of the other libraries."""
    import imagecodecs

    if found.channels not in (1, 3):
        raise Unreadable(
            f"it is a JPEG of {found.precision} bits and {found.channels} channels, "
            "which is not supported.",
            "Convert it to RGB.",
        )
    notices: list[str] = []
    if found.kind == _LS:
        samples = np.asarray(imagecodecs.jpegls_decode(data))  # raises if data are missing
    else:
        samples = np.asarray(imagecodecs.jpeg8_decode(data))
        notices = _cut(data, samples, imagecodecs.jpeg8_decode)
    bits = found.precision
    if bits in (8, 16):
        return Decoded(samples, notices)
    stretched = rescale(samples, (1 << bits) - 1)
    notices.append(f"{bits}-bit samples stretched to {8 if bits < 8 else 16} bits.")
    return Decoded(stretched, notices)


def check_complete(
    data: bytes, samples: NDArray[Any], decode: Callable[[bytes], NDArray[Any]]
) -> None:
    if _cut(data, samples, decode):
        raise Unreadable(_CUT_OFF, AGAIN)


def _cut(data: bytes, samples: NDArray[Any], decode: Callable[[bytes], NDArray[Any]]) -> list[str]:
    """Return a notice if the data end early, which most decoders do not report.

    They are decoded a second time, with more in front of the end mark: a complete picture stays
    the same, and an incomplete one changes::

        complete     [rows 1 to 64][filling] FFD9   the filling is skipped
        incomplete   [rows 1 to 40][filling] FFD9   the filling is decoded as rows 41 to ...

    `samples`: result of ``decode(data)``.
    """
    end = _scans(data)[1]
    if end < 0:
        end = len(data)
    other = decode(data[:end] + _FILLING + data[end:]).reshape(samples.shape)
    differs = (samples != other).reshape(len(samples), -1).any(axis=1)
    if not differs.any():
        return []
    rows = int(differs.argmax())
    if rows and _segments(data).kind in _PROGRESSIVE:
        return [f"{formats.IS_CUT_OFF} detail is missing, most below row {rows} of {len(samples)}."]
    if rows:
        return [formats.CUT_OFF.format(rows=rows, height=len(samples), rest="grey")]
    if np.ptp(samples) == 0:
        raise Unreadable(_CUT_OFF, AGAIN)
    return [f"{formats.IS_CUT_OFF} parts of the picture are coarse, or not there and grey."]


def _jpeg_size(data: bytes) -> tuple[int, int, int] | None:
    """Return the columns, rows and channels in the headers of a JPEG; None without a frame."""
    found = _segments(data)
    return (found.width, found.height, found.channels) if found.kind else None


def _segments(data: bytes) -> _Segments:
    found = _Segments()
    at = 2
    for _ in range(_MAX_SEGMENTS):
        # Filling, and stray bytes, which other readers skip as well.
        next_one = _ANY_MARKER.search(data, at)
        if next_one is None or next_one.start() + 4 > len(data):
            break
        at, marker = next_one.start(), data[next_one.start() + 1]
        if marker in _ALONE:
            at += 2
            continue
        if marker in (_SCAN, _END):
            break
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        _take(found, marker, data[at + 4 : at + 2 + length])
        at += 2 + max(2, length)
    else:
        raise Unreadable("the JPEG data are damaged: there is no end of segments.")
    return found


@dataclass(frozen=True)
class _Scan:
    """The coefficients and components in a scan, and its lowest bit."""

    components: bytes
    first: int
    last: int
    bit: int


def _scans(data: bytes) -> tuple[list[_Scan], int]:
    """Return the headers of all scans, and the offset of the end mark; -1 if there is none."""
    scans: list[_Scan] = []
    at = 2
    while len(scans) < _MAX_SEGMENTS and (found := _MARKER.search(data, at)):
        at, marker = found.start(), data[found.start() + 1]
        if marker == _END:
            return scans, at
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        content = data[at + 4 : at + 2 + length]
        if marker == _SCAN and content and len(content) >= 4 + 2 * content[0]:
            first, last, bits = content[1 + 2 * content[0] :][:3]
            scans.append(_Scan(content[1 : 1 + 2 * content[0] : 2], first, last, bits & 15))
        at += 2 if marker in _ALONE else 2 + max(2, length)
    return scans, -1


def _lacks_some(scans: list[_Scan], components: bytes) -> bool:
    """Return whether some coefficients are missing from the scans, or lack their lowest bits."""
    missing = {(each, number) for each in components for number in range(_COEFFICIENTS)}
    for scan in scans:
        if scan.bit == 0:
            numbers = range(scan.first, min(scan.last + 1, _COEFFICIENTS))
            missing -= {(each, number) for each in scan.components for number in numbers}
    return bool(missing)


def _take(found: _Segments, marker: int, content: bytes) -> None:
    if (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)) or marker == _LS:
        if not found.kind and len(content) >= 6:
            found.kind = marker
            found.precision, found.height, found.width, found.channels = struct.unpack(
                ">BHHB", content[:6]
            )
            found.components, found.sampling = content[6::3], tuple(content[7::3])
            found.table = content[8] if len(content) > 8 else 0
    elif marker == _DQT:
        _take_tables(found.tables, content)
    elif marker == _APP0 and content[:5] == b"JFIF\0" and len(content) >= 12:
        unit, x, y = struct.unpack(">BHH", content[7:12])
        factor = _JFIF_PER_INCH.get(unit)
        if factor and x and y:
            found.resolution = (x * factor, y * factor)
        elif x != y and x and y:
            found.others.append("the shape of its pixels")
        if all(content[12:14].ljust(2, b"\0")):
            found.others.append("the thumbnail")
    elif marker == _APP1 and content[:6] == b"Exif\0\0":
        found.exif = found.exif or content
    elif marker == _APP1 and content.startswith(_XMP):
        found.xmp = found.xmp or content[len(_XMP) :]
    elif marker == _APP2 and content.startswith(_PROFILE):
        found.profile[int.from_bytes(content[12:13], "big")] = content[14:]
    elif marker == _COMMENT or _APP0 <= marker <= _APP15:
        found.others += _names_of(marker, content)


def _take_tables(tables: dict[int, int], content: bytes) -> None:
    while content:
        wide, number = content[0] >> 4, content[0] & 15
        end = 1 + _COEFFICIENTS * (2 if wide else 1)
        if len(content) < end:
            return
        kind = ">u2" if wide else "u1"
        tables[number] = int(np.frombuffer(content[1:end], kind).sum(dtype=int))
        content = content[end:]


def _coding(found: _Segments, orientation: int) -> Coding | None:
    """Return how a picture is coded that stands upright; None if not by a usual transform."""
    total = found.tables.get(found.table)
    if found.kind not in _USUAL or total is None:
        return None
    quality = int(np.abs(_usual_totals() - total).argmin()) + 1
    if found.channels == 1:
        return Coding(quality, "")
    chroma = _SUBSAMPLING.get(found.sampling, "4:4:4")
    if orientation >= 5:  # turned by 90°: halved along the other axis
        chroma = _TURNED.get(chroma, chroma)
    return Coding(quality, chroma)


@functools.cache
def _usual_totals() -> NDArray[np.int64]:
    """Return the sums of the tables of luminance that libjpeg has for qualities from 1 to 100."""
    quality = np.arange(1, 101)[:, None]
    scales = np.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    return np.asarray(np.clip((_LUMINANCE * scales + 50) // 100, 1, 255).sum(1))


def _names_of(marker: int, content: bytes) -> list[str]:
    """Return the names of the content of a segment that results lack."""
    if marker == _COMMENT:
        return ["a comment"]
    if marker == _APP14 and content.startswith(b"Adobe"):  # how colours are stored
        return []
    if marker == _APP1 and content.startswith(_MORE_XMP):
        return ["further XMP data"]
    if marker == _APP0 and content.startswith(b"JFXX\0"):
        return ["the thumbnail"]
    if marker == _APP2 and content.startswith(b"MPF\0"):
        return [_MORE_PICTURES]
    if marker == _APP13 and content.startswith(b"Photoshop 3.0\0"):
        kinds = {kind == _IPTC for kind in re.findall(rb"8BIM(..)", content, re.DOTALL)}
        return ["IPTC data"] * (True in kinds) + ["Photoshop's data"] * (False in kinds)
    return [f"application data (APP{marker - _APP0})"]


_CODESTREAM = b"\xff\x4f\xff\x51"
"""Start of image and size: the first two markers of JPEG 2000, always in this order."""
_BOXES = b"\0\0\0\x0cjP"  # start of a JPEG 2000 in boxes, each of a length, a kind and its content


def check_coded_size(data: bytes, width: int, height: int, samples: int) -> None:
    """Refuse a JPEG or JPEG 2000 with more columns, rows or samples than the file around it has.

    Raises `Unreadable`.
    """
    found = _jpeg_2000(data) if data[:2] != b"\xff\xd8" else _jpeg_size(data)
    if found is None:  # the decoder will refuse it as well
        return
    if found[0] > width or found[1] > height or found[2] > max(samples, 4):
        raise Unreadable(
            f"a compressed part of it has {found[0]}×{found[1]} pixels of {found[2]} samples, "
            f"where {width}×{height} of {samples} belong.",
            AGAIN,
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
