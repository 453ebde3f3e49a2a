"""How a picture and its output are looked at: what is in view, and how values are drawn."""

from __future__ import annotations

from dataclasses import replace

from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import Displays, PaneSide
from kernelscope.gui.session.canvas_view import DRAWN, CanvasView


class PictureView(CanvasView):
    """The displays of input and output, and the pixel that is read off.

    Attributes
    ----------
    displays : Displays
    difference_map : ColourMap
        For residuals and differences of grey pictures.
    place : tuple of int, or None
        The pixel under the pointer or at the probe: column and row.
    """

    def __init__(self) -> None:
        super().__init__()
        self.displays = Displays()
        self.difference_map = ColourMap.DIVERGING
        self.place: tuple[int, int] | None = None
        self._side = PaneSide.OUTPUT

    @property
    def side(self) -> PaneSide:
        """The picture that `display` is of."""
        return self._side if self.sides else PaneSide.INPUT

    @property
    def display(self) -> Display | None:
        return self.displays.of(self.side)

    @property
    def is_whole(self) -> bool:
        image = self.displays.image(self.side)
        return image is not None and image.pixels.dtype.kind == "u"

    @property
    def colour_map(self) -> ColourMap:
        image = self.displays.image(self.side)
        chosen = super().colour_map
        return chosen if chosen.is_grey or (image and image.is_grey) else ColourMap.GREY

    @property
    def sides(self) -> tuple[PaneSide, ...]:
        displays = self.displays
        known = displays.of(PaneSide.INPUT) is not None and displays.of(PaneSide.OUTPUT) is not None
        separate = known and displays.ruling(PaneSide.OUTPUT) is PaneSide.OUTPUT
        return tuple(PaneSide) if separate else ()

    def choose_side(self, side: PaneSide) -> None:
        if side is not self._side:
            with self.changing(DRAWN):
                self._side = side

    def choose(self, display: Display) -> None:
        self.choose_display(self.side, display)

    def choose_automatic(self) -> None:
        self.choose_display(self.side, None)

    def display_of(self, side: PaneSide) -> Display | None:
        return self.displays.of(side)

    def choose_for(self, side: PaneSide, display: Display) -> None:
        self.choose_display(side, display)

    def choose_display(self, side: PaneSide, display: Display | None) -> None:
        """Draw a picture so from now on, or automatically for None."""
        with self.changing(DRAWN):
            self.displays.choose(side, display)

    def choose_full(self, side: PaneSide) -> None:
        """Draw black black, white white, and the rest in proportion."""
        image = self.displays.image(side)
        if image is not None:
            self.choose_display(side, Display.full(image.pixels.dtype))

    def link(self, linked: bool) -> None:
        """Draw the output with the levels of the input, or with its own."""
        with self.changing(DRAWN):
            self.displays.linked = linked

    def choose_difference_map(self, colour_map: ColourMap) -> None:
        """Draw residuals and differences of grey pictures in these colours."""
        with self.changing(DRAWN):
            self.difference_map = colour_map

    def show_automatic(self) -> None:
        with self.changing():
            for side in PaneSide:
                self.choose_display(side, None)

    def show_full_range(self) -> None:
        with self.changing():
            for side in PaneSide:
                self.choose_full(side)

    @property
    def chosen_map(self) -> ColourMap:
        display = self.displays.of(PaneSide.INPUT)
        return display.colour_map if display is not None else ColourMap.GREY

    def choose_map(self, colour_map: ColourMap) -> None:
        with self.changing():
            for side in PaneSide:
                display = self.displays.of(side)
                if display is not None:
                    self.choose_display(side, replace(display, colour_map=colour_map))
