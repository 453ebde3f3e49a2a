"""How values are drawn: colours, level, window, gamma; the arrangement of input and output.

A value v is drawn in step

    round(255 * clip((v - low) / (high - low), 0, 1) ** gamma)

of the colour map. `low` and `high` are in stored units: 0 to 255, 0 to 65535, or as floats are.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kernelscope.images.image import Image
from kernelscope.images.planes import Plane, Position, sampled
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import colour_count, white_level

STEPS = 256  # length of a table: displays have eight bits


class ColourMap(StrEnum):
    """The colour maps to choose from; the value is the name in the interface."""

    GREY = "Grey"
    INVERTED = "Grey, inverted"
    VIRIDIS = "Viridis"
    MAGMA = "Magma"
    DIVERGING = "Blue to red"
    RED = "Red"
    GREEN = "Green"
    BLUE = "Blue"
    CYAN = "Cyan"
    MAGENTA = "Magenta"
    YELLOW = "Yellow"

    @property
    def is_grey(self) -> bool:
        """Whether red, green and blue are equal, so that pictures in colour can use it too."""
        return self in (ColourMap.GREY, ColourMap.INVERTED)


class Dye(str):
    """The map from black to a colour that a file states: ``#0050FF``."""

    is_grey = False

    @property
    def value(self) -> str:
        return str(self)


Colouring: TypeAlias = ColourMap | Dye


def colouring(name: str) -> Colouring:
    """Return the map of a name in the interface."""
    return Dye(name) if name.startswith("#") else ColourMap(name)


_OF_CHANNELS = {
    ColourMap.RED: "ff0000",
    ColourMap.GREEN: "00ff00",
    ColourMap.BLUE: "0000ff",
    ColourMap.CYAN: "00ffff",
    ColourMap.MAGENTA: "ff00ff",
    ColourMap.YELLOW: "ffff00",
    ColourMap.GREY: "ffffff",
}
"""For the channels of microscopes: from black to a colour, so that several add up."""

_ANCHORS = {
    **{each: ("000000", colour) for each, colour in _OF_CHANNELS.items()},
    ColourMap.INVERTED: ("ffffff", "000000"),
    # Seventeen equally spaced colours of Matplotlib's maps: no step is off by more than 2 of 255.
    ColourMap.VIRIDIS: (
        *("440154", "481769", "472c7a", "423f85", "3b518b", "33628d", "2c718e", "26818e", "21908c"),
        *("1f9f88", "27ad80", "3dbc73", "5cc862", "81d34c", "aadc31", "d5e219", "fde725"),
    ),
    ColourMap.MAGMA: (
        *("000004", "090721", "1c1046", "35106a", "50127b", "691c81", "822581", "9b2e7f", "b63679"),
        *("cf406f", "e55063", "f4695c", "fb8761", "fea571", "fec287", "fde0a1", "fcfdbf"),
    ),
    # Dark where nothing changes, lighter with the size of the change, for a dark surround. Blue
    # and orange-red are distinguishable with every common form of colour blindness.
    ColourMap.DIVERGING: (
        *("d6f0ff", "79c7ff", "2f8fe8", "1d5590", "1a1a1c"),
        *("8a3a1e", "d95f30", "ff9d66", "ffe9d6"),
    ),
}


def map_of(colour: str) -> Colouring:
    """Return the map of a channel from black to its colour, six digits; grey if that has no hue."""
    if len(set(bytes.fromhex(colour))) < 2:
        return ColourMap.GREY
    named = (each for each, digits in _OF_CHANNELS.items() if digits == colour.lower())
    return next(named, Dye(f"#{colour.upper()}"))


@functools.cache
def table(colour_map: Colouring) -> NDArray[np.uint8]:
    """Return the colours of a map from the lowest value on, shape (256, 3), read-only."""
    colours = ("000000", colour_map[1:]) if isinstance(colour_map, Dye) else _ANCHORS[colour_map]
    anchors = np.array([list(bytes.fromhex(colour)) for colour in colours], float)
    places = np.linspace(0, STEPS - 1, len(anchors))
    steps = np.arange(STEPS)
    mixed = np.stack([np.interp(steps, places, channel) for channel in anchors.T], axis=1)
    result: NDArray[np.uint8] = np.rint(mixed).astype(np.uint8)
    result.flags.writeable = False
    return result


_SHARES = (0.2, 99.8)  # percentiles that the automatic display draws black and white

_BACKGROUND = 1 / 3
"""The median of a channel is its background if it lies in this part of the levels, the darkest."""

_SAMPLE = 1 << 18  # about how many pixels decide on the automatic display

_HALF_OF_16_BITS = 1 << 15
"""Pictures of 16 bits that stay below use fewer: 12 bits of a camera, most often."""

_UNIT = (-0.1, 1.1)
"""Floats of which all but outliers lie within are pictures from 0 to 1, perhaps with noise."""

_DARK = 0.25  # floats from 0 to 1 that stay below would be hard to see

_FLOAT_STEPS = 4096  # steps in which floats are looked up where gamma is not 1

GAMMAS = (0.1, 10.0)  # smallest and largest gamma


@dataclass(frozen=True)
class Display:
    """The values that are drawn black and white, and all between."""

    # Drawn in the first and the last colour of the map, in stored units; low < high.
    low: float
    high: float
    gamma: float = 1.0  # exponent, as in Fiji and napari: below 1 the middle becomes lighter
    colour_map: Colouring = ColourMap.GREY  # pictures in colour use only the grey ones

    @classmethod
    def full(cls, dtype: np.dtype[Any]) -> Display:
        """Return the display that draws 0 black and the white level white."""
        return cls(0.0, white_level(dtype))

    @classmethod
    def automatic(cls, planes: NDArray[Any]) -> Display:
        """Return a display that shows a picture well.

        That is `full` for 8 bits, for 16 bits of which more than 15 are used, and for floats
        from 0 to 1; otherwise from the 0.2nd to the 99.8th percentile.
        `planes` have the shape (height, width, channels); alpha does not count.
        """
        full = cls.full(planes.dtype)
        if planes.dtype == np.uint8:
            return full
        step = max(1, round((planes.shape[0] * planes.shape[1] / _SAMPLE) ** 0.5))
        sample = planes[::step, ::step, : colour_count(planes.shape[2])]
        if planes.dtype == np.uint16 and sample.max() >= _HALF_OF_16_BITS:
            return full  # percentiles take milliseconds, with every change of a setting
        found = cls.between_percentiles(sample)
        if planes.dtype.kind == "f" and _UNIT[0] <= found.low and _DARK <= found.high <= _UNIT[1]:
            return full
        return found

    @classmethod
    def between_percentiles(
        cls, sample: NDArray[Any], limits: tuple[float, float] | None = None
    ) -> Display:
        """Return the display from the 0.2nd to the 99.8th percentile; `limits`: of all values."""
        low, high = np.percentile(sample, _SHARES).tolist()
        if low == high:  # nearly all values are equal: take in the others
            low, high = limits or (float(sample.min()), float(sample.max()))
        return cls(0, 1).spanning(low, high)

    @property
    def level(self) -> float:
        return (self.low + self.high) / 2

    @property
    def width(self) -> float:
        return self.high - self.low

    def spanning(self, low: float, high: float) -> Display:
        """Return the same display of other values; equal or swapped ones are moved apart."""
        narrowest = max(abs(low), abs(high), 1e-6) * 1e-6
        return replace(self, low=low, high=max(high, low + narrowest))

    def of_change(self, gain: int, colour_map: ColourMap) -> Display:
        """Return the display of differences; with a gain of 1 half the width saturates."""
        width = self.width / gain
        return Display(-128 / 255 * width, 127 / 255 * width, 1.0, colour_map)

    def is_full(self, dtype: np.dtype[Any]) -> bool:
        """Return whether black is drawn black, white white, and the rest in proportion."""
        return self == Display.full(dtype)

    def steps(self, planes: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the steps of the map for samples; `planes` itself for bytes drawn as they are."""
        if planes.dtype.kind == "u":
            if planes.dtype == np.uint8 and (self.low, self.high, self.gamma) == (0, 255, 1):
                return planes
            size = planes.dtype.itemsize
            return np.take(_integer_table(self.low, self.high, self.gamma, size), planes)
        most = 255 if self.gamma == 1 else _FLOAT_STEPS - 1
        scale = np.float32(most / self.width)
        shares: NDArray[np.float32] = np.subtract(planes, np.float32(self.low), dtype=np.float32)
        shares *= scale
        shares += np.float32(0.5)
        np.clip(shares, 0, most, out=shares)
        if self.gamma == 1:
            return shares.astype(np.uint8)
        return np.take(_float_table(self.gamma), shares.astype(np.uint16))

    def describe(self) -> str:
        parts = [f"display {short(self.low)}..{short(self.high)}"]
        if self.gamma != 1:
            parts.append(f"gamma {self.gamma:.3g}")
        if self.colour_map is not ColourMap.GREY:
            parts.append(self.colour_map.value)
        return ", ".join(parts)


def short(value: float) -> str:
    """Return a value to four digits, whole from 1000 on."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@functools.lru_cache(maxsize=16)
def _integer_table(low: float, high: float, gamma: float, size: int) -> NDArray[np.uint8]:
    """Return the step of each value of an unsigned integer of `size` bytes."""
    values = np.arange(1 << 8 * size, dtype=np.float64)
    return _rounded(((values - low) / (high - low)).clip(0, 1) ** gamma)


@functools.lru_cache(maxsize=16)
def _float_table(gamma: float) -> NDArray[np.uint8]:
    return _rounded(np.linspace(0, 1, _FLOAT_STEPS) ** gamma)


def _rounded(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    rounded: NDArray[np.float64] = np.rint(255 * shares)
    return rounded.astype(np.uint8)


class Arrangement(StrEnum):
    SIDE_BY_SIDE = "side by side"
    SWIPE = "swipe"  # one picture: the input left of a line, the output right of it
    SPLIT = "split"  # one picture: the input above a line, the output below it
    OUTPUT = "output alone"

    @property
    def is_divided(self) -> bool:
        return self in (Arrangement.SWIPE, Arrangement.SPLIT)


class Units(StrEnum):
    """The units in which sample values are read off; the value is the name in the interface."""

    STORED = "stored"
    BYTES = "0 to 255"
    SHARE = "0 to 1"


Viewed: TypeAlias = Image | Volume


class PaneSide(StrEnum):
    """A picture or a volume of the two."""

    INPUT = "input"
    OUTPUT = "output"


def name_of(image: Viewed | None) -> str:
    """Return the title, with the time and the channel if the file has several."""
    place = image.place if isinstance(image, Volume) else ""
    return ", ".join(filter(None, (image.title, place))) if image is not None else ""


def dtype_of(image: Viewed) -> np.dtype[Any]:
    return image.pixels.dtype if isinstance(image, Image) else image.voxels.dtype


def samples_of(image: Viewed, plane: Plane | None, position: Position) -> NDArray[Any]:
    """Return a picture, or the slice of a volume through a voxel: (height, width, channels)."""
    if isinstance(image, Image):
        return image.planes
    assert plane is not None
    return plane.cut(image.voxels, position[plane.axis])[:, :, np.newaxis]


def automatic_of(image: Viewed) -> Display:
    if isinstance(image, Image):
        return Display.automatic(image.planes)
    sample = sampled(image.voxels)
    display = Display.between_percentiles(sample, image.value_range)
    if image.channel.colour and any(each.letter == "C" and each.count > 1 for each in image.among):
        # The light of several channels adds up, and their backgrounds would: those are black.
        background = float(np.median(sample))
        if display.low < background < display.low + _BACKGROUND * display.width:
            display = replace(display, low=background)
    return replace(display, colour_map=map_of(image.channel.colour))


def first_of(image: Viewed) -> Display:
    """Return the display of an image that is opened: the file's own, or the automatic one."""
    if isinstance(image, Image) or image.channel.window is None:
        return automatic_of(image)
    return replace(Display(*image.channel.window), colour_map=map_of(image.channel.colour))


def full_of(image: Viewed) -> Display:
    """Return the display from black to white; of a volume, from its smallest to largest voxel."""
    if isinstance(image, Image):
        return Display.full(image.pixels.dtype)
    return Display(0, 1).spanning(*image.value_range)


def are_alike(first: Viewed, other: Viewed) -> bool:
    """Return whether the same levels and colours suit both."""
    channels = {each.channel_number for each in (first, other) if isinstance(each, Volume)}
    return len(channels) < 2 and dtype_of(first) == dtype_of(other)


class Displays:
    """Returns how to draw input and output.

    Linked, the output is drawn as the input is: the two can be compared, and a change of
    brightness by the filter is seen. A choice belongs to its input and returns with it.
    """

    def __init__(self) -> None:
        self.linked = True
        self._images: dict[PaneSide, Viewed | None] = dict.fromkeys(PaneSide)
        self._automatic: WeakKeyDictionary[Viewed, Display] = WeakKeyDictionary()
        self._chosen: WeakKeyDictionary[Viewed, dict[PaneSide, Display]] = WeakKeyDictionary()

    def remember(self, image: Viewed, automatic: Display) -> None:
        """Store the first display of an image, which takes a while to find."""
        self._automatic[image] = automatic

    def knows(self, image: Viewed) -> bool:
        return image in self._automatic

    def show_input(self, image: Viewed, *, follows: bool, beside: bool = False) -> None:
        """Draw another input, automatically unless a display was chosen for it.

        `follows`: it was made from the one before, and keeps a display chosen for that. `beside`:
        it is another component of its scan, and has levels of its own in the same colours.
        """
        before, display = self._images[PaneSide.INPUT], self.of(PaneSide.INPUT)
        if beside and display is not None:
            gamma, colours = display.gamma, display.colour_map
            self._automatic[image] = replace(self._found(image), gamma=gamma, colour_map=colours)
        if follows and before is not None and are_alike(before, image):
            self._chosen.setdefault(image, dict(self._chosen.get(before, {})))
        self._images = {PaneSide.INPUT: image, PaneSide.OUTPUT: None}

    def show_output(self, image: Viewed | None) -> None:
        self._images[PaneSide.OUTPUT] = image

    def of(self, side: PaneSide) -> Display | None:
        side = self.ruling(side)
        image = self._images[side]
        return None if image is None else self._choices.get(side) or self._found(image)

    def _found(self, image: Viewed) -> Display:
        if image not in self._automatic:
            self._automatic[image] = first_of(image)
        return self._automatic[image]

    def ruling(self, side: PaneSide) -> PaneSide:
        first, second = self._images[PaneSide.INPUT], self._images[side]
        if first is None or second is None:
            return side
        # The numbers of volumes mean the same in each type; the white of pictures depends on it.
        alike = isinstance(first, Volume) or dtype_of(first) == dtype_of(second)
        return PaneSide.INPUT if self.linked and alike else side

    def image(self, side: PaneSide) -> Viewed | None:
        return self._images[self.ruling(side)]

    def is_automatic(self, side: PaneSide) -> bool:
        return self.ruling(side) not in self._choices and not self._is_of_file(side)

    def _is_of_file(self, side: PaneSide) -> bool:
        image, display = self.image(side), self.of(side)
        window = image.channel.window if isinstance(image, Volume) else None
        return display is not None and window == (display.low, display.high)

    def choose(self, side: PaneSide, display: Display | None) -> None:
        image = self._images[PaneSide.INPUT]
        if image is None:
            return
        side = self.ruling(side)
        choices = self._chosen.setdefault(image, {})
        choices.pop(side, None)
        shown = self.image(side)
        if display is not None:
            choices[side] = display
        elif isinstance(shown, Volume) and shown.channel.window is not None:
            colour_map = self._found(shown).colour_map
            self._automatic[shown] = replace(automatic_of(shown), colour_map=colour_map)

    @property
    def _choices(self) -> dict[PaneSide, Display]:
        image = self._images[PaneSide.INPUT]
        return self._chosen.get(image, {}) if image is not None else {}
