"""XMP packets: their orientation, and the properties that are true of a result.

The format: ISO 16684-1, with the properties of Adobe (XMP Specification, part 2), the Metadata
Working Group and Google (Motion Photo, Ultra HDR, Dynamic Depth). Prefixes are the usual ones,
unless a packet declares others.
"""

from __future__ import annotations

import re
from pyexpat import ExpatError, ParserCreate
from typing import Any, NoReturn

_ORIENTATION = re.compile(rb"""tiff:Orientation\s*(?:=\s*["']|>\s*)([1-8])\s*["'<]""")

_TAG = re.compile(rb"""<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")
_ATTRIBUTE = re.compile(rb"""\s+([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_PREFIXES = {
    b"http://ns.adobe.com/tiff/1.0/": "tiff",
    b"http://ns.adobe.com/exif/1.0/": "exif",
    b"http://ns.adobe.com/xap/1.0/": "xmp",
    b"http://ns.adobe.com/xmp/note/": "xmpNote",
    b"http://ns.adobe.com/photoshop/1.0/": "photoshop",
    b"http://purl.org/dc/elements/1.1/": "dc",
    b"http://ns.google.com/photos/1.0/camera/": "GCamera",
    b"http://www.metadataworkinggroup.com/schemas/regions/": "mwg-rs",
    b"http://ns.microsoft.com/photo/1.2/": "MP",
}
_WIDTHS = {"tiff:ImageWidth", "exif:PixelXDimension"}
_HEIGHTS = {"tiff:ImageLength", "exif:PixelYDimension"}
_THUMBNAIL, _REGIONS = "the thumbnail", "the regions of faces"
_GONE = {
    "xmp:Thumbnails": _THUMBNAIL,
    # The other parts of a packet of several, which are named by the reader.
    "xmpNote:HasExtendedXMP": "",
    # The layout of samples in the file.
    **dict.fromkeys(("dc:format", "photoshop:ColorMode", "photoshop:ICCProfile"), ""),
    **dict.fromkeys(("exif:CompressedBitsPerPixel", "exif:ComponentsConfiguration"), ""),
    **{
        f"tiff:{name}": ""
        for name in (
            *("BitsPerSample", "Compression", "PhotometricInterpretation", "PlanarConfiguration"),
            *("SamplesPerPixel", "YCbCrPositioning", "YCbCrSubSampling"),
        )
    },
    # A film behind a picture.
    **{
        f"GCamera:{kind}{name}": ""
        for kind in ("MotionPhoto", "MicroVideo")
        for name in ("", "Version", "Offset", "PresentationTimestampUs")
    },
}
"""Properties that no result has, and the content that goes with them."""
_BESIDE = re.compile(
    rb"http://ns\.(google\.com/photos/(1\.0/container/|dd/1\.0/)|\w+\.com/(hdr-gain-map|HDRGainMap)/)"
)
"""Namespaces about the depths and the gain map behind a picture."""
_IN_PARTS = re.compile(rb"http://ns\.google\.com/photos/1\.0/(depthmap|image|audio)/")
"""Namespaces whose content is in the further parts of a packet of several."""


def orientation_of(packet: bytes) -> int:
    """Return the orientation, 1 to 8, in an XMP packet; 1 (upright) if it has none.

    The property is an attribute or an element of that name.
    """
    found = _ORIENTATION.search(packet)
    return int(found[1]) if found else 1


def stamped(packet: bytes, width: int, height: int) -> tuple[bytes, list[str]]:
    """Return the packet for an upright picture of this size, and the names of content left out.

    The packet is empty if it was damaged.
    """
    if not packet:
        return packet, []
    edits = _Edits(packet.rstrip(b"\0"), width, height)
    try:
        edits.parse()
    except ExpatError:
        return b"", []
    return edits.applied(), edits.lost


class _Edits:
    """Replacements of parts of a packet, whose other bytes stay as they are."""

    def __init__(self, packet: bytes, width: int, height: int) -> None:
        self._packet = packet
        self._values = {
            "tiff:Orientation": b"1",
            **dict.fromkeys(_WIDTHS, b"%d" % width),
            **dict.fromkeys(_HEIGHTS, b"%d" % height),
        }
        self._gone = dict(_GONE)
        self._is_in_parts = b":HasExtendedXMP" in packet
        if orientation_of(packet) != 1:  # they count from another corner
            self._gone |= dict.fromkeys(("mwg-rs:Regions", "MP:RegionInfo"), _REGIONS)
        self._found: list[tuple[int, int, bytes]] = []
        self._open: list[tuple[str, int, int]] = []
        """Name, first byte and first byte of the content of each element around."""
        self._prefixes: dict[str, str | None] = {}
        self.lost: list[str] = []

    def parse(self) -> None:
        self._parser: Any = ParserCreate()
        self._parser.StartDoctypeDeclHandler = _refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(self._packet, True)

    def applied(self) -> bytes:
        parts, done = [], 0
        for start, end, text in sorted(self._found):
            if start >= done:  # and not within an element that is left out
                parts += [self._packet[done:start], text]
                done = end
        return b"".join([*parts, self._packet[done:]])

    def _start(self, name: str, _: object) -> None:
        at = self._parser.CurrentByteIndex
        tag = _TAG.match(self._packet, at)
        if tag is None:
            raise ExpatError
        attributes = [
            (found, found[1].decode(errors="replace"), found[2] or found[3] or b"")
            for found in _ATTRIBUTE.finditer(self._packet, at, tag.end())
        ]
        for _found, key, value in attributes:
            if key.startswith("xmlns:"):
                is_gone = _BESIDE.match(value) or (self._is_in_parts and _IN_PARTS.match(value))
                self._prefixes[key[6:]] = None if is_gone else _PREFIXES.get(value, key[6:])
        for found, key, _value in attributes:
            if not key.startswith("xmlns"):
                place = found.span(2 if found[2] is not None else 3)
                self._look(key, found.span(), place)
        self._open.append((name, at, tag.end()))
        if tag[0].endswith(b"/>"):
            self._open[-1] = (name, at, 0)

    def _end(self, name: str) -> None:
        _, start, inside = self._open.pop()
        at = self._parser.CurrentByteIndex
        if not inside:
            self._look(name, (start, at), None)
        else:
            self._look(name, (start, self._packet.index(b">", at) + 1), (inside, at))

    def _look(self, name: str, whole: tuple[int, int], value: tuple[int, int] | None) -> None:
        prefix, _, local = name.rpartition(":")
        known = self._prefixes.get(prefix, prefix)
        key = f"{known}:{local}"
        if known is None or key in self._gone:
            self._found.append((*whole, b""))
            self.lost += filter(None, [self._gone.get(key)])
        elif key in self._values and value is not None:
            self._found.append((*value, self._values[key]))


def _refuse(*_: object) -> NoReturn:
    raise ExpatError
