"""The displays of input and output: automatic or chosen, linked or separate."""

from __future__ import annotations

from enum import StrEnum
from weakref import WeakKeyDictionary

from kernelscope.gui.model.display import Display
from kernelscope.images.image import Image


class Side(StrEnum):
    """A picture of the two."""

    INPUT = "input"
    OUTPUT = "output"


class Displays:
    """Returns how to draw input and output.

    Linked, the output is drawn as the input is: the two can be compared, and a change of
    brightness by the filter is seen. A choice belongs to its input and returns with it.

    Attributes
    ----------
    linked : bool
    """

    def __init__(self) -> None:
        self.linked = True
        self._images: dict[Side, Image | None] = dict.fromkeys(Side)
        self._automatic: dict[Side, Display] = {}
        self._chosen: WeakKeyDictionary[Image, dict[Side, Display]] = WeakKeyDictionary()

    def show_input(self, image: Image, automatic: Display, *, follows: bool) -> None:
        """Draw another input, automatically unless a display was chosen for it.

        Parameters
        ----------
        automatic : Display
            As `Display.automatic` returns it.
        follows : bool
            The picture was made from the one before, and keeps a display chosen for that.
        """
        before = self._images[Side.INPUT]
        if follows and before is not None and before.pixels.dtype == image.pixels.dtype:
            self._chosen.setdefault(image, dict(self._chosen.get(before, {})))
        self._images = {Side.INPUT: image, Side.OUTPUT: None}
        self._automatic = {Side.INPUT: automatic}

    def show_output(self, image: Image | None, automatic: Display | None) -> None:
        """Draw another output."""
        self._images[Side.OUTPUT] = image
        self._automatic.pop(Side.OUTPUT, None)
        if automatic is not None:
            self._automatic[Side.OUTPUT] = automatic

    def of(self, side: Side) -> Display | None:
        """Return how a picture is drawn; None where there is none."""
        side = self.ruling(side)
        return self._choices.get(side) or self._automatic.get(side)

    def ruling(self, side: Side) -> Side:
        """Return the side whose display holds for `side`."""
        first, second = self._images[Side.INPUT], self._images[side]
        if first is None or second is None:
            return side
        same_type = first.pixels.dtype == second.pixels.dtype
        return Side.INPUT if self.linked and same_type else side

    def image(self, side: Side) -> Image | None:
        """Return the picture whose display holds for `side`."""
        return self._images[self.ruling(side)]

    def is_automatic(self, side: Side) -> bool:
        """Return whether the program chose the display."""
        return self.ruling(side) not in self._choices

    def choose(self, side: Side, display: Display | None) -> None:
        """Draw a picture so, or automatically for None."""
        image = self._images[Side.INPUT]
        if image is None:
            return
        side = self.ruling(side)
        choices = self._chosen.setdefault(image, {})
        choices.pop(side, None)
        if display is not None:
            choices[side] = display

    @property
    def _choices(self) -> dict[Side, Display]:
        image = self._images[Side.INPUT]
        return self._chosen.get(image, {}) if image is not None else {}
