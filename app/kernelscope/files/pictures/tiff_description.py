"""The description of a TIFF: sizes and channels as ImageJ, OME and this program write them.

ImageJ's properties are documented in its source, `ij.io.FileInfo`; OME-XML at
https://docs.openmicroscopy.org/ome-model. The first page of a file describes all of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.text import printable
from kernelscope.files.formats import Unreadable
from kernelscope.images.lengths import is_length, millimetres, unit_of
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel
from kernelscope.images.volume import Spacing

SPACING, CHANNEL, CHANNELS = "spacing_mm", "channel", "channels"
INTERVAL, MICROSCOPE = "time_step_s", "microscope"
"""Keys of our own description, which is JSON with the shape that tifffile puts there."""

TIME_STEP = "the time step"

OME_SUFFIXES = (".ome.tif", ".ome.tiff")

_COLOUR = re.compile(r"[0-9A-Fa-f]{6}")
_OPAQUE_WHITE = -1  # OME's default for the colour of a channel

_UNITS_OF_TAG = {2: "inch", 3: "cm"}
_OME_KEPT = {"OME", "Image", "Pixels", "Channel", "TiffData", "UUID", "LightPath"}
_CHANNEL_KEPT = {"ID", "Name", "Color", "SamplesPerPixel"}
_CHANNEL_FACTS = (
    "AcquisitionMode",
    "ContrastMethod",
    "EmissionWavelength",
    "EmissionWavelengthUnit",
    "ExcitationWavelength",
    "ExcitationWavelengthUnit",
    "Fluor",
    "IlluminationType",
    "NDFilter",
    "PinholeSize",
    "PinholeSizeUnit",
    "PockelCellSetting",
)
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_IMAGEJ_SECONDS = {**_SECONDS, "sec": 1.0, "msec": 1e-3, "us": 1e-6, "hour": 3600.0, "day": 86400.0}
_NO_MICROSCOPE = "The source was no file of a microscope."  # the description of an image of OME
_COARSE = 0.1
"""Pixels of this many millimetres are of no microscope, unless it names channels or a colour: the
weakest objective, 0.5×, has 0.03 mm with the pixels of a usual camera."""
_USUAL_NAME = re.compile(r"(image|series)?[ :#_-]*\d*", re.IGNORECASE)  # of an image of OME
_OWN = "kernelscope"  # the line of ImageJ's properties with our own, as JSON
IMAGEJ_TYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32))
_IMAGEJ_OTHERS = {
    "labels of slices": ("Labels",),
    "display ranges": ("Ranges", "min", "max"),
    "overlays": ("Overlays", "ROI"),
    "ImageJ's notes": ("Info", "Properties", "info"),
    "the calibration of values": ("cf", "vunit"),
    "the origin": ("xorigin", "yorigin", "zorigin"),
}


@dataclass(frozen=True)
class Description:
    """Properties of one of the pictures of a TIFF."""

    steps: Mapping[str, float] = field(default_factory=dict)
    """Distance of samples in millimetres by its axis, z, y or x; without those not stated."""
    channels: tuple[Channel, ...] = ()  # of each channel; empty if unknown
    others: tuple[str, ...] = ()  # names of entries left out
    # The description is of a known kind, or of this program.
    understood: bool = False
    of_paper: bool = False  # the steps may be those of a print: ImageJ states any in inches
    microscope: bool = False  # see `of_microscope`
    interval: float | None = None  # seconds from one time to the next

    def channel(self, number: int = 0) -> Channel:
        return self.channels[number] if number < len(self.channels) else UNKNOWN_CHANNEL


def description_of(file: Any, series: int = 0) -> Description:
    if shaped := file.shaped_metadata:
        return _ours(shaped[min(series, len(shaped) - 1)])
    if file.is_ome and file.ome_metadata:
        return _of_ome(_parsed(file.ome_metadata), series)
    if file.imagej_metadata:
        return _of_imagej(file.imagej_metadata, file.pages[0].tags)
    return Description()


def description_of_page(page: Any) -> Description:
    """Return the description of a page that is opened as a picture of its own."""
    file = page.parent
    if page.is_shaped:
        found, channel = _ours(_json(page.shaped_description)), 0
    elif file.is_ome and file.ome_metadata:
        root = _parsed(file.ome_metadata)
        image, channel = _place(root, page.index)
        found = _of_ome(root, image)
    elif file.imagej_metadata:
        found = _of_imagej(file.imagej_metadata, file.pages[0].tags)
        channel = page.index % max(1, int(_number(file.imagej_metadata.get("channels"))))
    else:
        return Description()
    times = [TIME_STEP] * (found.interval is not None)
    return replace(found, channels=(found.channel(channel),), others=(*times, *found.others))


def ours(
    spacing: Spacing,
    stated: str,
    *channels: Channel,
    interval: float | None = None,
    microscope: bool = False,
) -> dict[str, Any]:
    """Return our own description of a volume or picture, or of channels, for `tifffile`."""
    found: dict[str, Any] = {}
    if stated:
        steps = zip("zyx", spacing, strict=True)
        found[SPACING] = [step if axis in stated else None for axis, step in steps]
    described = [{"name": each.name, "colour": each.colour} for each in channels]
    if any(each != UNKNOWN_CHANNEL for each in channels):
        found |= {CHANNELS: described} if len(channels) > 1 else {CHANNEL: described[0]}
    if interval is not None:
        found[INTERVAL] = interval
    if microscope:
        found[MICROSCOPE] = True
    return found


def imagej(
    spacing: Spacing, stated: str, interval: float | None, *channels: Channel
) -> tuple[dict[str, Any], tuple[float, float]]:
    """Return properties of a stack as ImageJ reads them, and its pixels per unit along x and y.

    ImageJ has one unit, rounded resolutions and no names of channels: a line that it skips has
    our own description.
    """
    found: dict[str, Any] = {}
    resolution = (1.0, 1.0)
    if {"x", "y"} <= set(stated):
        unit, factor = unit_of([spacing["zyx".index(axis)] for axis in stated])
        found["unit"] = "um" if unit == "µm" else unit
        resolution = factor / spacing[2], factor / spacing[1]
        if "z" in stated:
            found["spacing"] = float(f"{spacing[0] / factor:.12g}")
    if interval:
        found |= {"finterval": interval, "fps": 1 / interval}
    if any(each.colour for each in channels):
        ramp = np.arange(256)
        colours = [bytes.fromhex(each.colour or "FFFFFF") for each in channels]
        found["LUTs"] = [
            np.stack([ramp * part // 255 for part in each]).astype(np.uint8) for each in colours
        ]
    if len(channels) > 1:
        found["mode"] = "composite"
    own = ours(spacing, stated, *channels, interval=interval, microscope=True)
    return {**found, _OWN: json.dumps(own)}, resolution


def of_microscope(steps: Mapping[str, float], channels: Sequence[Channel]) -> bool:
    """Return whether a file of a program for microscopes is of one, and not of a scanner."""
    named = any(each != UNKNOWN_CHANNEL for each in channels)
    return named or not all(steps.get(axis, 0.0) >= _COARSE for axis in "yx")


def ome(
    steps: Mapping[str, float],
    content: NDArray[Any] | str,
    *channels: Channel,
    interval: float | None = None,
    microscope: bool = True,
) -> dict[str, Any]:
    """Return metadata from which `tifffile` makes OME-XML.

    The identifier of the file follows from its `content`, samples or a text. That of `tifffile`
    names the time and the machine, and the same result would have other bytes each time.
    """
    data = content.encode() if isinstance(content, str) else np.ascontiguousarray(content).data
    digest = hashlib.blake2b(data, digest_size=32).hexdigest()
    found: dict[str, Any] = {"UUID": str(uuid.uuid5(uuid.NAMESPACE_OID, digest))}
    if steps:
        unit, factor = unit_of(list(steps.values()))
        for axis, step in steps.items():
            found[f"PhysicalSize{axis.upper()}"] = float(f"{step / factor:.12g}")
            found[f"PhysicalSize{axis.upper()}Unit"] = unit
    if interval is not None:
        found |= {"TimeIncrement": interval, "TimeIncrementUnit": "s"}
    if any(each != UNKNOWN_CHANNEL for each in channels):
        found["Channel"] = [_ome_channel(each) for each in channels]
    if not microscope:
        found["Description"] = _NO_MICROSCOPE
    return found


def _ome_channel(channel: Channel) -> dict[str, Any]:
    found: dict[str, Any] = dict(channel.facts)
    if channel.name:
        found["Name"] = channel.name
    if channel.colour:
        found["Color"] = _ome_number(channel.colour)
    return found


def _ome_number(colour: str) -> int:
    """Return a colour as a signed number of red, green, blue and alpha."""
    number = int(colour, 16) << 8 | 0xFF
    return number - 2**32 if number >= 2**31 else number


def _ours(found: Mapping[str, Any]) -> Description:
    steps: dict[str, float] = {}
    spacing, channel = found.get(SPACING), found.get(CHANNEL)
    if isinstance(spacing, list) and len(spacing) == 3:
        for axis, step in zip("zyx", spacing, strict=True):
            if isinstance(step, int | float) and is_length(step):
                steps[axis] = float(step)
    several = found.get(CHANNELS)
    listed = several if isinstance(several, list) else [channel]
    channels = tuple(
        channel_of(each.get("name"), each.get("colour"))
        for each in listed
        if isinstance(each, dict)
    )
    named = any(each != UNKNOWN_CHANNEL for each in channels)
    return Description(
        steps,
        channels,
        understood=True,
        microscope=named or found.get(MICROSCOPE) is True,
        interval=_interval(found.get(INTERVAL), 1.0),
    )


def channel_of(name: object, colour: object) -> Channel:
    text = str(colour or "")
    return Channel(printable(str(name or "")), text.upper() if _COLOUR.fullmatch(text) else "")


_WHOLE_RANGES = ((0, 255), (0, 65535), (-32768, 32767))
"""Windows that programs write where nobody chose one: the whole range of a type."""


def window_of(low: object, high: object) -> tuple[float, float] | None:
    """Return the levels drawn black and white, if they make sense and somebody chose them."""
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    try:
        window = black, white = float(low), float(high)
    except OverflowError:  # JSON has whole numbers of any size
        return None
    sound = -math.inf < black < white < math.inf
    return window if sound and window not in _WHOLE_RANGES else None


@lru_cache(maxsize=1)  # asked for each page
def _parsed(text: str) -> Any:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise Unreadable(f"its OME-XML is damaged ({error}).") from error


def _pixels(root: Any) -> list[Any]:
    """Return the pixels of each image, None where there are none."""
    images = [each for each in root if _name(each) == "Image"]
    return [next((each for each in image if _name(each) == "Pixels"), None) for image in images]


def _place(root: Any, page: int) -> tuple[int, int]:
    """Return the numbers of the image and of the channel to which a page belongs."""
    for number, pixels in enumerate(_pixels(root)):
        if pixels is None:
            continue
        order = pixels.get("DimensionOrder", "")[2:]
        order = order if sorted(order) == sorted("CZT") else "CZT"
        sides = [max(1, _whole(pixels.get(f"Size{axis}"))) for axis in order]
        # SizeC counts the samples of a pixel as well.
        sides[order.index("C")] = max(1, sum(_name(each) == "Channel" for each in pixels))
        for data in (each for each in pixels if _name(each) == "TiffData"):
            first = [_whole(data.get(f"First{axis}")) for axis in order]
            usual = 1 if "IFD" in data.attrib else math.prod(sides)
            at = page - _whole(data.get("IFD"))
            if 0 <= at < (_whole(data.get("PlaneCount")) or usual):
                at += int(np.ravel_multi_index(first, sides, mode="clip", order="F"))
                place = np.unravel_index(at % math.prod(sides), sides, order="F")
                return number, int(place[order.index("C")])
    return 0, 0


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else 0


def _of_ome(root: Any, number: int) -> Description:
    images = _pixels(root)
    pixels = images[min(number, len(images) - 1)] if images else None
    if pixels is None:
        return Description(understood=True, microscope=True)
    names = {_name(each) for each in root.iter() if each.text != _NO_MICROSCOPE}
    marked = any(each.text == _NO_MICROSCOPE for each in root.iter())
    steps = {}
    for axis in "zyx":
        size = pixels.get(f"PhysicalSize{axis.upper()}", "")
        factor = millimetres(pixels.get(f"PhysicalSize{axis.upper()}Unit", "µm"))
        try:
            step = float(size) * (factor or 0)
        except ValueError:
            continue
        if is_length(step):
            steps[axis] = float(f"{step:.15g}")
    found = [each for each in pixels if _name(each) == "Channel"]
    channels = tuple(
        replace(channel_of(each.get("Name"), _ome_colour(each.get("Color"))), facts=_facts(each))
        for each in found
    )
    known = _CHANNEL_KEPT.union(_CHANNEL_FACTS)
    further = names - _OME_KEPT or any(set(each.attrib) - known for each in found)
    further = further or any(not _USUAL_NAME.fullmatch(each.get("Name", "")) for each in root)
    others = ("further OME metadata",) if further else ()
    bits = re.search(r"\d+", pixels.get("Type", ""))
    if bits and 0 < _whole(pixels.get("SignificantBits")) < int(bits[0]):
        others = ("its significant bits", *others)
    seconds = _SECONDS.get(pixels.get("TimeIncrementUnit", "s").replace("μ", "µ"))
    interval = _interval(pixels.get("TimeIncrement"), seconds)
    if interval is None and "TimeIncrement" in pixels.attrib:
        others = (TIME_STEP, *others)
    microscope = not marked and ("Instrument" in names or of_microscope(steps, channels))
    return Description(
        steps, channels, others, understood=True, microscope=microscope, interval=interval
    )


def _facts(channel: Any) -> tuple[tuple[str, str], ...]:
    """Return properties of a channel that OME-TIFF keeps, without those of a unit alone."""
    return tuple(
        (name, printable(channel.get(name)))
        for name in _CHANNEL_FACTS
        if name in channel.attrib and name.removesuffix("Unit") in channel.attrib
    )


def _interval(number: object, seconds: float | None) -> float | None:
    """Return a time step in seconds; None if it is not stated, or makes no sense."""
    try:
        found = float(str(number)) * (seconds or 0.0)
    except ValueError:
        return None
    return float(f"{found:.15g}") if 0 < found < math.inf else None


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _ome_colour(text: str | None) -> str:
    try:
        number = int(text or _OPAQUE_WHITE)
    except ValueError:
        return ""
    return "" if number == _OPAQUE_WHITE else f"{number % 2**32 >> 8:06X}"


def _of_imagej(found: Mapping[str, Any], tags: Any) -> Description:
    if own := _json(found.get(_OWN)):
        return _ours(own)
    interval = _interval(found.get("finterval"), _IMAGEJ_SECONDS.get(found.get("tunit", "sec")))
    unit = found.get("unit")
    factor = millimetres(unit)
    if factor is None and unit is None:
        factor = millimetres(_UNITS_OF_TAG.get(tags.valueof("ResolutionUnit"), ""))
    steps: dict[str, float] = {}
    if factor is not None:
        times = _number(found.get("frames")) > 1 >= _number(found.get("slices"))
        if unit is not None and ("spacing" in found or not times):  # left out where it is 1
            steps["z"] = abs(_number(found.get("spacing", 1.0))) * (
                millimetres(found.get("zunit")) or factor
            )
        for axis in "yx":
            top, bottom = tags.valueof(f"{axis.upper()}Resolution", (0, 0))
            per = millimetres(found.get(f"{axis}unit")) or factor
            steps[axis] = per * bottom / top if top else 0.0
    steps = {axis: float(f"{step:.15g}") for axis, step in steps.items() if is_length(step)}
    channels, others = _look_up_tables(found)
    others += [name for name, keys in _IMAGEJ_OTHERS.items() if any(key in found for key in keys)]
    others += [TIME_STEP] * (interval is None and ("finterval" in found or "fps" in found))
    return Description(
        steps,
        channels,
        tuple(others),
        understood=True,
        of_paper=unit in (None, "inch"),
        microscope=of_microscope(steps, channels),
        interval=interval,
    )


def _json(text: object) -> Mapping[str, Any]:
    try:
        found = json.loads(str(text))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _look_up_tables(found: Mapping[str, Any]) -> tuple[tuple[Channel, ...], list[str]]:
    """Return channels by ImageJ's tables and display ranges, and the tables that are left out.

    A table that runs evenly from black to a colour is that colour; one of grey is none.
    """
    channels, lost = [], False
    tables = found.get("LUTs", ())
    if getattr(tables, "ndim", 3) == 2:  # tifffile has that of a single channel so
        tables = [tables]
    for table in tables:
        colours = np.asarray(table, np.float64)
        if colours.shape != (3, 256):
            lost = True
            continue
        last = colours[:, -1:]
        even = bool((abs(colours - last * np.arange(256) / 255) <= 1).all())
        lost |= not even
        text = "".join(f"{int(part):02X}" for part in last[:, 0]) if even else ""
        channels.append(Channel("", "" if text == "FFFFFF" else text))
    ranges = found.get("Ranges") or (found.get("min"), found.get("max"))
    for number, ends in enumerate(zip(ranges[::2], ranges[1::2], strict=False)):
        if (window := window_of(*ends)) is not None:
            channels += [UNKNOWN_CHANNEL] * (number + 1 - len(channels))
            channels[number] = replace(channels[number], window=window)
    return tuple(channels), ["lookup tables"] * lost
