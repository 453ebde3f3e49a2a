"""JPEG: Pillow decodes what cameras write, libjpeg-turbo (imagecodecs) 12 bits and lossless.

The format: ITU-T T.81 and T.87 (JPEG-LS), ISO/IEC 10918-5 (JFIF).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from app.files import exif, pillow
from app.files.depth import rescale
from app.files.formats import Decoded, Unreadable, check_size
from app.files.watched import WatchedFile

_SCAN, _END = 0xDA, 0xD9
_ALONE = (0x01, *range(0xD0, 0xD9))
"""Markers without a length."""

_MAX_SEGMENTS = 2**16
"""Some hundred are usual; each takes its time."""

_COMMENT, _APP0, _APP1, _APP2 = 0xFE, 0xE0, 0xE1, 0xE2
_LOSSLESS, _LS = 0xC3, 0xF7
_BY_PILLOW = {0xC0, 0xC1, 0xC2, 0xC9, 0xCA}
MAX_SIDE = 65500
"""What Pillow's libjpeg reads and writes; imagecodecs' reads all that a JPEG can have."""

_FRAMES = {
    **dict.fromkeys((0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF), "hierarchical"),
    0xCB: "lossless and arithmetically coded",
}
"""Kinds that no library here reads."""

_JFIF_PER_INCH = {1: 1.0, 2: 2.54}
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_PROFILE = b"ICC_PROFILE\0"


@dataclass
class _Segments:
    """What stands before the first scan."""

    kind: int = 0
    precision: int = 8
    width: int = 0
    height: int = 0
    channels: int = 0
    scan: int = 0
    exif: bytes = b""
    xmp: bytes = b""
    resolution: tuple[float, float] | None = None
    profile: dict[int, bytes] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def decode(handle: WatchedFile) -> Decoded:
    """Decode a JPEG of any kind that is in use, or say which kind it is."""
    data = handle.read()
    found = _segments(data)
    if found.kind == 0:
        raise Unreadable("the file is cut off or damaged: it has no frame.")
    check_size(found.width, found.height, found.channels)
    if found.kind in _FRAMES:
        raise Unreadable(
            f"it is a JPEG of a rare kind ({_FRAMES[found.kind]}), which is not supported.",
            "Convert it to PNG or TIFF in the program that wrote it.",
        )
    longest = max(found.width, found.height)
    if found.kind in _BY_PILLOW and found.precision == 8 and longest <= MAX_SIDE:
        handle.seek(0)
        result = pillow.decode_pixels(handle, "JPEG")
    else:
        result = _deep(data, found)
    profile = b"".join(part for _, part in sorted(found.profile.items()))
    return exif.describe(
        result, found.exif, found.xmp, profile, found.resolution, tuple(dict.fromkeys(found.others))
    )


def _deep(data: bytes, found: _Segments) -> Decoded:
    """Decode 12 bits, any number without loss, and sides that are too long for Pillow."""
    import imagecodecs

    if data.find(b"\xff\xd9", found.scan) < 0:  # libjpeg fills up with grey what is missing.
        raise Unreadable("the file is cut off.")
    if found.channels not in (1, 3):
        raise Unreadable(
            f"it is a JPEG of {found.precision} bits and {found.channels} channels, "
            "which is not supported.",
            "Convert it to RGB.",
        )
    decoded = imagecodecs.jpegls_decode if found.kind == _LS else imagecodecs.jpeg8_decode
    samples = np.asarray(decoded(data))
    bits = found.precision
    if bits in (8, 16):
        return Decoded(samples)
    stretched = rescale(samples, (1 << bits) - 1)
    return Decoded(stretched, [f"{bits}-bit samples stretched to {8 if bits < 8 else 16} bits."])


def _segments(data: bytes) -> _Segments:
    """Walk the markers up to the first scan; damaged ones end the walk."""
    found = _Segments()
    at = 2
    for _ in range(_MAX_SEGMENTS):
        if at + 4 > len(data) or data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
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
    found.scan = at
    return found


def _take(found: _Segments, marker: int, content: bytes) -> None:
    if (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)) or marker == _LS:
        if not found.kind and len(content) >= 6:
            found.kind = marker
            found.precision, found.height, found.width, found.channels = struct.unpack(
                ">BHHB", content[:6]
            )
    elif marker == _APP0 and content[:5] == b"JFIF\0" and len(content) >= 12:
        unit, x, y = struct.unpack(">BHH", content[7:12])
        factor = _JFIF_PER_INCH.get(unit)
        if factor and x and y:
            found.resolution = (x * factor, y * factor)
    elif marker == _APP1 and content[:6] == b"Exif\0\0":
        found.exif = found.exif or content
    elif marker == _APP1 and content.startswith(_XMP):
        found.xmp = found.xmp or content[len(_XMP) :]
    elif marker == _APP2 and content.startswith(_PROFILE):
        found.profile[int.from_bytes(content[12:13], "big")] = content[14:]
    elif marker == _COMMENT:
        found.others.append("a comment")
