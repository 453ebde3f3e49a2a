"""The displays of input and output: automatic or chosen, linked or separate."""

from __future__ import annotations

from enum import StrEnum
from weakref import WeakKeyDictionary

from kernelscope.gui.model.display import Display
from kernelscope.images.image import Image


class PaneSide(StrEnum):
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
        self._images: dict[PaneSide, Image | None] = dict.fromkeys(PaneSide)
        self._automatic: dict[PaneSide, Display] = {}
        self._chosen: WeakKeyDictionary[Image, dict[PaneSide, Display]] = WeakKeyDictionary()

    def show_input(self, image: Image, automatic: Display, *, follows: bool) -> None:
        """Draw another input, automatically unless a display was chosen for it.

        Parameters
        ----------
        automatic : Display
            As `Display.automatic` returns it.
        follows : bool
            The picture was made from the one before, and keeps a display chosen for that.
        """
        before = self._images[PaneSide.INPUT]
        if follows and before is not None and before.pixels.dtype == image.pixels.dtype:
            self._chosen.setdefault(image, dict(self._chosen.get(before, {})))
        self._images = {PaneSide.INPUT: image, PaneSide.OUTPUT: None}
        self._automatic = {PaneSide.INPUT: automatic}

    def show_output(self, image: Image | None, automatic: Display | None) -> None:
        """Draw another output."""
        self._images[PaneSide.OUTPUT] = image
        self._automatic.pop(PaneSide.OUTPUT, None)
        if automatic is not None:
            self._automatic[PaneSide.OUTPUT] = automatic

    def of(self, side: PaneSide) -> Display | None:
        """Return how a picture is drawn; None where there is none."""
        side = self.ruling(side)
        return self._choices.get(side) or self._automatic.get(side)

    def ruling(self, side: PaneSide) -> PaneSide:
        """Return the side whose display holds for `side`."""
        first, second = self._images[PaneSide.INPUT], self._images[side]
        if first is None or second is None:
            return side
        same_type = first.pixels.dtype == second.pixels.dtype
        return PaneSide.INPUT if self.linked and same_type else side

    def image(self, side: PaneSide) -> Image | None:
        """Return the picture whose display holds for `side`."""
        return self._images[self.ruling(side)]

    def choose(self, side: PaneSide, display: Display | None) -> None:
        """Draw a picture so, or automatically for None."""
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
