"""How input and output are shown: their arrangement and units, and a display for each."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from kernelscope.gui.model.display import Display, map_of
from kernelscope.images.image import Image
from kernelscope.images.planes import sampled
from kernelscope.images.volume import Volume


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


def dtype_of(image: Viewed) -> np.dtype[Any]:
    return image.pixels.dtype if isinstance(image, Image) else image.voxels.dtype


def automatic_of(image: Viewed) -> Display:
    if isinstance(image, Image):
        return Display.automatic(image.planes)
    display = Display.between_percentiles(sampled(image.voxels), image.value_range)
    return replace(display, colour_map=map_of(image.channel.colour))


def full_of(image: Viewed) -> Display:
    """Return the display from black to white; of a volume, from its smallest to largest voxel."""
    if isinstance(image, Image):
        return Display.full(image.pixels.dtype)
    return Display(0, 1).spanning(*image.value_range)


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
        """Store the automatic display of an image, which takes a while to find."""
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
        if follows and before is not None and dtype_of(before) == dtype_of(image):
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
            self._automatic[image] = automatic_of(image)
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
        return self.ruling(side) not in self._choices

    def choose(self, side: PaneSide, display: Display | None) -> None:
        image = self._images[PaneSide.INPUT]
        if image is None:
            return
        side = self.ruling(side)
        choices = self._chosen.setdefault(image, {})
        choices.pop(side, None)
        if display is not None:
            choices[side] = display

    @property
    def _choices(self) -> dict[PaneSide, Display]:
        image = self._images[PaneSide.INPUT]
        return self._chosen.get(image, {}) if image is not None else {}
