"""How input and output are looked at: arrangement, units, slices, levels and colours."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from kernelscope.gui.model.camera import Camera
from kernelscope.gui.model.display import (
    Arrangement,
    Colouring,
    ColourMap,
    Display,
    Displays,
    PaneSide,
    Units,
    dtype_of,
    full_of,
)
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.gui.session.subject import Observed
from kernelscope.images.image import Image
from kernelscope.images.planes import Plane, Position

DRAWN, PANES, DIVIDED, SEEN, SLICES = "drawn", "panes", "divided", "seen", "slices"
"""Of a view: other levels or colours; another arrangement or units; the line between input and
output is elsewhere; another part of the planes, or of the output, is in view; other slices of
volumes."""

_LEVEL_DRAG = 1 / 300  # share of the window by which one pixel of a drag changes it

Edges: TypeAlias = tuple[float, float, float, float]  # left, top, right and bottom


@dataclass(frozen=True)
class Panes:
    """How input and output share the room, and how values are read off."""

    arrangement: Arrangement = Arrangement.SIDE_BY_SIDE
    units: Units = Units.STORED
    shows_values: bool = True  # beside the cursor
    magnified: bool = False  # whether a magnifier is drawn at the cursor
    scale_bar: bool = True  # over slices of which the file states the distance of voxels
    enlarged: bool | None = None
    """Whether one plane of a volume is large, and the others are small beside it; None for stacks
    that are much wider than deep alone."""


class CanvasView(Observed):
    """How an input and its output are looked at: in one plane, or in three through `position`."""

    def __init__(self, count: int = 1) -> None:
        super().__init__()
        self.count = count
        self.planes: tuple[Plane, ...] = ()  # those of a volume, once one is shown
        self.position: Position = (0, 0, 0)  # the voxel under the crosshair
        self.chosen_plane: int | None = None  # the plane to show alone; None for all of them
        self.flat: int | None = None
        """The only plane of a volume of a single slice, which is looked at as a picture is."""
        self.widest: int | None = None
        """The plane of the slices of a volume that is much wider than deep."""
        self._large = 0
        self.clicked = 0
        """The view that was clicked last: the planes of the input, then those of the output."""
        self.look = Look()
        self.panes = Panes()
        self.displays = Displays()
        self.difference_map = ColourMap.DIVERGING
        """For residuals and differences of grey pictures and of volumes."""
        self._side = PaneSide.OUTPUT
        self.camera = Camera()
        self.divide = 0.5
        """Place of the line between input and output, as a share of the width or height."""
        self.seen: Edges = (0.0, 0.0, 0.0, 0.0)
        """The part of the input that is in view, in pixels of the plane that was clicked last."""
        self.output_from = -math.inf, -math.inf
        """The column and row from which on the output of a picture is drawn; before that, across a
        line, its input is."""
        self.probe: tuple[int, tuple[int, int]] | None = None
        """The plane (0 of a picture), column and row under the pointer, or where keys moved it."""
        self._instead = self._held = False

    def arrange(self, **changes: object) -> None:
        with self.changing(PANES):
            self.panes = replace(self.panes, **changes)  # type: ignore[arg-type]

    @property
    def shows_input(self) -> bool:
        return self._instead or self._held

    def show_input_instead(self) -> None:
        with self.changing(PANES):
            self._instead = not self._instead

    def hold_input(self, held: bool) -> None:
        """Draw the input in place of the output while a key is held."""
        if held != self._held:
            with self.changing(PANES):
                self._held = held

    def set_divide(self, share: float) -> None:
        with self.changing(DIVIDED):
            self.divide = min(max(share, 0.0), 1.0)

    # --- planes ---

    @property
    def plane_number(self) -> int | None:
        """The plane that is shown alone; None for all of them."""
        return self.chosen_plane if self.flat is None else self.flat

    @property
    def active_plane(self) -> int:
        """The number of the plane that is shown alone, or else was clicked last."""
        return self.clicked % self.count if self.plane_number is None else self.plane_number

    @property
    def large(self) -> int | None:
        usual = self.widest if self.panes.enlarged is None else None
        large = self._large if self.panes.enlarged else usual
        return large if self.plane_number is None else None

    def enlarge(self, plane: int | None) -> None:
        """Show a plane large and the others small beside it; all alike for None."""
        with self.changing(PANES, SLICES):
            self._large = self._large if plane is None else plane
            self.panes = replace(self.panes, enlarged=plane is not None)

    def look_in(self, plane: Plane) -> Look:
        """Return how a plane is drawn: beside a large one, small ones are not projected."""
        if self.large is None or self.planes[self.large] == plane:
            return self.look
        return replace(self.look, projection=Projection.SLICE)

    @property
    def places(self) -> list[tuple[int, int]]:
        """The axis and the index of each slice in view, that of the active plane first."""
        return [(plane.axis, self.position[plane.axis]) for plane in self._shown]

    @property
    def slices(self) -> list[tuple[int, int]]:
        """Those of `places` that are drawn as they are, and not projected."""
        looks = {plane.axis: self.look_in(plane) for plane in self._shown}
        return [each for each in self.places if looks[each[0]].projection is Projection.SLICE]

    @property
    def _shown(self) -> list[Plane]:
        shown = list(range(len(self.planes)))
        if self.plane_number is not None:
            shown = shown[self.plane_number : self.plane_number + 1]
        shown.sort(key=lambda number: number != self.clicked % self.count)
        return [self.planes[number] for number in shown]

    @property
    def axis(self) -> int:
        return 0 if self.plane_number is None else self.planes[self.plane_number].axis

    def choose_look(self, look: Look) -> None:
        if look != self.look:
            with self.changing(DRAWN, SLICES):
                self.look = look

    # --- level, window, gamma and colours ---

    @property
    def side(self) -> PaneSide:
        return self._side if self.sides else PaneSide.INPUT

    @property
    def sides(self) -> tuple[PaneSide, ...]:
        """The pictures to choose from where they are drawn separately; else empty."""
        displays = self.displays
        known = displays.of(PaneSide.INPUT) is not None and displays.of(PaneSide.OUTPUT) is not None
        separate = known and displays.ruling(PaneSide.OUTPUT) is PaneSide.OUTPUT
        return tuple(PaneSide) if separate else ()

    @property
    def display(self) -> Display | None:
        return self.displays.of(self.side)

    @property
    def is_whole(self) -> bool:
        image = self.displays.image(self.side)
        return image is not None and dtype_of(image).kind in "iu"

    @property
    def is_grey(self) -> bool:
        """Whether all colour maps suit; a picture in colour has only the grey ones."""
        image = self.displays.image(self.side)
        return not isinstance(image, Image) or image.is_grey

    @property
    def colour_map(self) -> Colouring:
        chosen = self.display.colour_map if self.display is not None else ColourMap.GREY
        return chosen if chosen.is_grey or self.is_grey else ColourMap.GREY

    @property
    def chosen_map(self) -> Colouring:
        display = self.displays.of(PaneSide.INPUT)
        return display.colour_map if display is not None else ColourMap.GREY

    def choose_side(self, side: PaneSide) -> None:
        if side is not self._side:
            with self.changing(DRAWN):
                self._side = side

    def choose(self, display: Display | None) -> None:
        self.choose_display(self.side, display)

    def choose_display(self, side: PaneSide, display: Display | None) -> None:
        """Draw a picture so from now on, or automatically for None."""
        with self.changing(DRAWN):
            self.displays.choose(side, display)

    def choose_full(self, side: PaneSide) -> None:
        """Draw black black, white white, and the rest in proportion."""
        image = self.displays.image(side)
        if image is not None:
            self.choose_display(side, full_of(image))

    def show_automatic(self) -> None:
        """Draw input and output with the contrast that the program finds."""
        with self.changing():
            for side in PaneSide:
                self.choose_display(side, None)

    def show_full_range(self) -> None:
        """Draw 0 black and the largest value white; of volumes, the smallest voxel black."""
        with self.changing():
            for side in PaneSide:
                self.choose_full(side)

    def choose_map(self, colour_map: Colouring) -> None:
        with self.changing():
            for side in PaneSide:
                display = self.displays.of(side)
                if display is not None:
                    self.choose_display(side, replace(display, colour_map=colour_map))

    def link(self, linked: bool) -> None:
        """Draw the output with the levels of the input, or with its own."""
        with self.changing(DRAWN):
            self.displays.linked = linked

    def choose_difference_map(self, colour_map: ColourMap) -> None:
        """Draw residuals and differences of grey pictures and of volumes in these colours."""
        with self.changing(DRAWN):
            self.difference_map = colour_map

    def drag(self, side: PaneSide, right: float, up: float) -> None:
        """Widen the window by a drag to the right, lower the level upwards, as medical viewers."""
        display = self.displays.of(side)
        if display is not None:
            step = display.width * _LEVEL_DRAG
            level, width = display.level - up * step, max(display.width + right * step, step)
            self.choose_display(side, display.spanning(level - width / 2, level + width / 2))
