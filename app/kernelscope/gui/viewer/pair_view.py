"""Input and output, of a picture or of the planes of a volume, looked at alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model.camera import Point, Room
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.session.canvas_view import DIVIDED, PANES, SEEN, CanvasView
from kernelscope.gui.viewer.marks import ProbeLine
from kernelscope.gui.viewer.pane import Pane
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas, Probe
from kernelscope.gui.viewer.tools import Overlay, Tool

_LOW = 200  # pixels of height below which a view has only its own value beside the cursor


class PairView(QWidget):
    """Base of the views of pictures and of volumes: camera, tools, overlays and arrangement.

    `view`: how the two are looked at. `names` is written at the divide and beside values; to be set
    before the pictures.
    """

    described = Signal(str)
    """Position and values under the cursor, or else under the crosshair; empty for none."""
    zoomed = Signal(float)
    """Device pixels per picture pixel; also when other parts of the pictures are in view."""
    reduction_wanted = Signal(object, int)
    """`Pyramid, int`: A level is to be made on another thread; call `redraw` then."""

    input: Pane
    output: Pane
    reference: Any
    """A picture or a volume whose values are read off too, or None."""

    def __init__(
        self, view: CanvasView, panes: tuple[Pane, Pane], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.view = view
        self.names = "Input", "Output"
        self.input, self.output = self._panes = panes
        self._overlays: tuple[Overlay, ...] = ()
        self._ordered: set[tuple[Pyramid, int]] = set()
        for canvas in self.canvases():
            number = canvas.plane or 0
            canvas.panned.connect(partial(self._pan, number))
            canvas.zoomed.connect(partial(self._zoom, number))
            canvas.levelled.connect(partial(self.view.drag, canvas.side))
            canvas.divided.connect(self.view.set_divide)
            canvas.hovered.connect(partial(self._hover, number))
            canvas.probed.connect(partial(self.move_probe, number))
            canvas.held.connect(self.view.hold_input)
            canvas.wanted.connect(self._order)
            canvas.resized.connect(self.apply_camera)
        self.view.when({DIVIDED}, self._compose)
        self.view.when({PANES}, self._arrange)

    def canvases(self) -> Iterator[PlaneCanvas]:
        for pane in self._panes:
            yield from pane.views

    # --- of subclasses ---

    def _compose(self) -> None:
        """Draw what has changed."""
        raise NotImplementedError

    def _read(self, number: int, pixel: tuple[int, int]) -> Reading | None:
        """Return what there is to read off at a pixel of a plane; None for nothing."""
        raise NotImplementedError

    def _read_unpointed(self) -> Reading | None:
        """Return what there is to read off where nothing is pointed at."""
        return None

    def _size(self, number: int) -> tuple[int, int]:
        """Return the columns and rows of a plane of the input; none without an input."""
        raise NotImplementedError

    def _start(self, number: int) -> tuple[int, int]:
        """Return the pixel of a plane at which keys begin to move the probe."""
        raise NotImplementedError

    def focus(self) -> None:
        """Give the keyboard to the view that was clicked last, or to the output."""
        raise NotImplementedError

    @property
    def _middles(self) -> Mapping[int, Point]:
        """The points of all planes about which commands magnify."""
        raise NotImplementedError

    # --- arrangement ---

    @property
    def shows_input_instead(self) -> bool:
        return self.view.shows_input and not self.output.is_empty

    @property
    def is_divided(self) -> bool:
        return self.view.panes.arrangement.is_divided and not self.shows_input_instead

    def _arrange(self) -> None:
        """Arrange input and output, and their values, as `view` says."""
        self._show_panes()
        self._compose()
        self.apply_camera()
        self._describe()
        for canvas in self.canvases():
            canvas.magnified = self.view.panes.magnified
            canvas.redraw()

    def _show_panes(self) -> None:
        """Show the panes of the arrangement."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the visible part again."""
        for canvas in self.canvases():
            canvas.redraw()

    def set_running(self, running: bool) -> None:
        """Show in place of an output whether it is being computed."""
        self.output.set_running(running)

    def _order(self, pyramid: Pyramid, level: int) -> None:
        """Pass on that a level is wanted, once."""
        if (pyramid, level) not in self._ordered:
            self._ordered = {(pyramid, level)}
            self.reduction_wanted.emit(pyramid, level)

    # --- overlays and tools ---

    def add_overlay(self, overlay: Overlay) -> None:
        """Draw over the pictures from now on; call `update_overlays` after each change."""
        self._overlays = (*self._overlays, overlay)
        for canvas in self.canvases():
            canvas.overlays = self._overlays
        self.update_overlays()

    def update_overlays(self) -> None:
        for canvas in self.canvases():
            canvas.update()

    def set_tool(self, tool: Tool | None) -> None:
        """Give the left button and the keys to a tool; None gives them back."""
        for canvas in self.canvases():
            canvas.set_tool(tool)

    def in_view(self) -> tuple[QRectF, int | None]:
        """Return the part of the input that is in view, in its pixels, and its plane."""
        raise NotImplementedError

    # --- camera ---

    def fit(self) -> None:
        """Show whole planes, and keep doing so when the window is resized."""
        self.view.camera.fit()
        self.apply_camera()

    def one_to_one(self) -> None:
        """Show each pixel as exactly one of the screen, or larger if whole slices fit then."""
        self.view.camera.one_to_one(self._middles)
        self.apply_camera()

    def zoom_in(self) -> None:
        self.view.camera.zoom(1, self._middles)
        self.apply_camera()

    def zoom_out(self) -> None:
        self.view.camera.zoom(-1, self._middles)
        self.view.camera.settle()
        self.apply_camera()

    def look_at(self, centre: QPointF, scale: float, number: int = 0) -> None:
        """Show the surroundings of a point of a plane, magnified by `scale`."""
        self.view.camera.look_at({number: (centre.x(), centre.y())}, scale)
        self.apply_camera()

    def _zoom(self, number: int, notches: float, fixed: QPointF) -> None:
        self.view.camera.zoom_about(notches, number, (fixed.x(), fixed.y()))
        self.apply_camera()

    def _pan(self, number: int, offset: QPointF) -> None:
        if not self.input.is_empty:
            self.view.camera.pan(number, (offset.x(), offset.y()))
            self.apply_camera()

    def lay_out_camera(self) -> bool:
        """Give the camera the sizes of the views; return False while there is no room."""
        rooms = [
            Room(canvas.plane or 0, canvas.width(), canvas.height())
            for pane in self._panes
            for canvas in pane.views
            if not canvas.isHidden() and not pane.isHidden()
        ]
        if not rooms or any(not room.width or not room.height for room in rooms):
            return False
        self.view.camera.lay_out(rooms, self.devicePixelRatioF())
        return True

    def apply_camera(self) -> None:
        """Draw the pictures where they belong in views of the present size."""
        if not self.lay_out_camera():
            return
        camera = self.view.camera
        for canvas in self.canvases():
            canvas.set_camera(QPointF(*camera.centre(canvas.plane or 0)), camera.scale)
        with self.view.changing(SEEN):
            seen = self.in_view()[0]
            self.view.seen = seen.left(), seen.top(), seen.right(), seen.bottom()
        if not self.input.is_empty:
            self.zoomed.emit(camera.device_scale)

    # --- probe ---

    def _hover(self, number: int, point: QPointF | None) -> None:
        """Read off the pixel at a point of a plane, or none outside of the input."""
        self.view.probe = None
        if point is not None:
            columns, rows = self._size(number)
            column, row = math.floor(point.x()), math.floor(point.y())
            if 0 <= column < columns and 0 <= row < rows:
                self.view.probe = number, (column, row)
        self._describe()

    def move_probe(self, number: int, right: int, down: int) -> None:
        """Move the probe by pixels of a plane; where there is none, begin in the middle."""
        size = self._size(number)
        if not all(size):
            return
        place = self._start(number)
        if self.view.probe is not None and self.view.probe[0] == number:
            (column, row), (columns, rows) = self.view.probe[1], size
            place = min(max(column + right, 0), columns - 1), min(max(row + down, 0), rows - 1)
        self.view.probe = number, place
        self._describe()

    def _describe(self) -> None:
        """Mark the probe in input and output, and write their values there."""
        number, pixel = self.view.probe or (-1, (0, 0))
        reading = self._read(number, pixel) if number >= 0 else self._read_unpointed()
        self.described.emit(reading.text if reading is not None else "")
        for pane in self._panes:
            for canvas in pane.views:
                if reading is None or (canvas.plane or 0) != number:
                    canvas.set_probe(None)
                    continue
                lines = reading.lines(canvas.side, canvas.height(), divided=canvas.is_divided)
                canvas.set_probe(Probe(*pixel, lines if self.view.panes.shows_values else ()))

    @property
    def spoken(self) -> tuple[str, str]:
        """The names within a line of text."""
        first, second = (name[:1].lower() + name[1:] for name in self.names)
        return first, second


@dataclass(frozen=True)
class Reading:
    """What is read off at a pixel.

    `own`: the names of the values of the two panes, which are bold there. `note`: how values are
    drawn, unless that is as they are.
    """

    place: str
    values: Sequence[tuple[str, str]]
    own: tuple[str, str]
    note: str = ""

    @property
    def text(self) -> str:
        parts = (self.place, *(f"{name} {value}" for name, value in self.values), self.note)
        return "   ".join(filter(None, parts))

    def lines(self, side: PaneSide, height: int, *, divided: bool) -> tuple[ProbeLine, ...]:
        """Return the lines beside the cursor in a view; in a low one, all would cover it."""
        own = "" if divided else self.own[side is PaneSide.OUTPUT]
        values = [ProbeLine(*value, value[0] == own) for value in self.values]
        if height < _LOW:
            return tuple(line for line in values if line.bold or divided)
        notes = [ProbeLine(self.note, "")] if self.note else []
        return (ProbeLine(self.place, ""), *values, *notes)
