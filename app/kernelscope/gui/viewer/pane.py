"""One side of the canvas: a caption, the planes, and a hint where there is nothing to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QWidget

from kernelscope.gui.model.camera import Enlarged, Point, arranged
from kernelscope.gui.model.display import PaneSide, Viewed
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.parts import ElidedLabel, dressed, in_column, text_label

RUNNING = "Running…"
COMPILING = "Compiling for these settings. Done once; later runs start at once."
"""The hint in place of an output while it is computed."""

if TYPE_CHECKING:
    from kernelscope.gui.viewer.pair_view import PairView

NOTHING = DrawnView()

_BELOW, _BESIDE = 6, 8
"""Pixels between input and output; beside each other an even number, so that both are as wide."""


class Pane(QWidget):
    """A picture or the planes of a volume under a caption, or `hint` while there is nothing."""

    def __init__(self, pair: PairView, side: PaneSide, hint: str) -> None:
        super().__init__()
        count = pair.view.count
        self.heading, self._first_hint, self._work = side.value.capitalize(), hint, ""
        name = side.value if count == 1 else f"volume{self.heading}"
        self.setObjectName(name)
        self.content = NOTHING
        self.has_parts = False  # whether regions or single slices of another output are shown
        self.lends_room = False  # whether the input is drawn here, as there is no output yet
        self._mark = ""
        self._note = ""
        self._caption = self.heading, ""
        self._title_colours = QPalette()
        self.title = dressed(ElidedLabel(self), f"{name}Title")
        theme.set_role(self.title, "title")
        self.details = dressed(ElidedLabel(self), f"{name}Details")
        self.details.setVisible(count == 1)
        canvas = f"{name}Canvas" if count == 1 else f"{name}Plane{{}}"
        self.views = tuple(
            dressed(
                PlaneCanvas(pair, side, number if count > 1 else None),
                canvas.format(number),
                self.heading,
            )
            for number in range(count)
        )
        """The drawing areas, one for each plane."""
        self.hint = text_label(hint, f"{name}Hint", parent=self)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        for label in (self.title, self.details):
            label.setContentsMargins(2, 0, 2, 0)
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        self.share_room(None, None)
        in_column(self.title, self.details, (self._grid, 1), of=self, margins=0, spacing=2)
        self._restyle()
        stylist().restyled.connect(self._restyle)

    def share_room(
        self, alone: int | None, large: int | None, enlarged: Enlarged | None = None
    ) -> None:
        """Show planes beside each other, or `large` with the others on its right or below it."""
        small = [number for number in range(len(self.views)) if number != large]
        below = enlarged is not None and enlarged.below
        for place, number in enumerate(small):
            across = large is None or below
            row, column = (int(below), place) if across else (place, 1)
            self._grid.addWidget(self.views[number], row, column)
        columns, rows = [int(alone in (None, n)) for n in range(len(self.views))], [1, 0]
        if large is not None and enlarged is not None:
            self._grid.addWidget(self.views[large], 0, 0, *((1, 2) if below else (2, 1)))
            part = round(100 * enlarged.share)
            columns, rows = (
                ([1, 1, 0], [100 - part, part]) if below else ([100 - part, part, 0], [1, 1])
            )
        for number, stretch in enumerate(columns):
            self._grid.setColumnStretch(number, stretch)
        for number, stretch in enumerate(rows):
            self._grid.setRowStretch(number, stretch)

    @property
    def shown(self) -> Viewed | None:
        """The picture or volume whose values are read off."""
        return self.content.shown

    @property
    def is_empty(self) -> bool:
        return self.shown is None and not self.has_parts

    def show_content(
        self, content: DrawnView, title: str = "", details: str = "", brief: str = ""
    ) -> None:
        """Show a picture or volume; `brief` replaces `details`, which its tooltip has."""
        self.content, self.has_parts = content, False
        self._write_hint()
        self.show_details(title, details, brief)

    def show_details(self, title: str, details: str, brief: str = "") -> None:
        title = title or self.heading
        if len(self.views) == 1:
            self.details.set_full_text(details, brief)
            self.set_caption(title)
        elif details:  # also those of a difference, which may be of an earlier run
            joint = ": " if title == self.heading else " · "
            self.set_caption(title + joint + details, brief and title + joint + brief)
        else:
            self.set_caption(title)

    def show_parts(self, details: str, brief: str = "") -> None:
        """Show the caption of regions or single slices, over the output or without one."""
        self.has_parts = True
        self.place_hint()
        if len(self.views) > 1:
            self.set_caption(f"Preview: {details}", f"Preview: {brief}")
        elif details:
            self.details.set_full_text(details, brief)

    def show_work(self, *, at_work: bool, compiling: bool) -> None:
        """Show in place of an output whether it is being computed, or compiled first."""
        self._work = COMPILING if compiling else RUNNING if at_work else ""
        self._write_hint()

    def _write_hint(self) -> None:
        self.hint.setText(self.content.problem or self._work or self._first_hint)
        self.place_hint()

    def place_hint(self) -> None:
        """Put the hint over the planes; of one that input and output share, over its half."""
        visible = [view for view in self.views if not view.isHidden()]
        room = QRect()
        for view in visible:
            room = room.united(view.geometry())
        if visible and visible[-1].is_divided:
            last = visible[-1]
            room = last.halves()[1].toRect().translated(last.pos())
        self.hint.setVisible(bool(self.content.problem) or (self.is_empty and not self.lends_room))
        if room != self.hint.geometry():
            self.hint.setGeometry(room)
            self.hint.raise_()

    def set_mark(self, mark: str) -> None:
        """Put before the caption how the settings differ from those of the output, or nothing."""
        if mark != self._mark:
            self._mark = mark
            self._draw_caption()

    def set_note(self, note: str) -> None:
        """Add to the caption the range of a difference or a map, which channels of a composite are
        filtered, as ``DAPI only``, and to which of them its figures belong.
        """
        if note != self._note:
            self._note = note
            self._draw_caption()

    def set_caption(self, text: str, brief: str = "") -> None:
        self._caption = text, brief
        self._draw_caption()

    def _restyle(self) -> None:
        self._draw_caption()
        for view in self.views:
            view.redraw()
        quiet = theme.canvas_quiet(self.palette()).name()
        self.hint.setStyleSheet(f"color: {quiet}; padding: 12px")
        self.details.setStyleSheet(f"color: {theme.quiet_text(self.palette()).name()}")

    def _draw_caption(self) -> None:
        text, brief = self._caption
        mark = self._mark if not self.is_empty else ""
        if self._note and not self.is_empty:
            text, brief = (each and f"{each} · {self._note}" for each in (text, brief))
        self.title.set_full_text(mark + text, brief and mark + brief)
        colours = QPalette()
        if mark:  # not by a style sheet, which takes Qt half a millisecond
            colours.setColor(QPalette.ColorRole.WindowText, theme.warning_text(self.palette()))
        if colours != self._title_colours:
            self._title_colours = colours
            self.title.setPalette(colours)


class PaneBox(QWidget):
    """Input and output, below each other or beside each other."""

    def __init__(self, panes: Sequence[Pane], parent: QWidget) -> None:
        super().__init__(parent)
        self._panes = panes
        self._alone: int | None = 0 if len(panes[0].views) == 1 else None
        self._large: int | None = None
        self._enlarged: Enlarged | None = None
        self._extents: Sequence[Point] = ()
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        for pane in panes:
            self._box.addWidget(pane, 1)
        self._arrange()

    def show_planes(self, extents: Iterable[Point]) -> None:
        self._extents = list(extents)
        self._arrange()

    def share_room(self, alone: int | None, large: int | None) -> None:
        changed = (alone, large) != (self._alone, self._large)
        self._alone, self._large = alone, large
        self._arrange(changed=changed)

    def _arrange(self, *, changed: bool = False) -> None:
        heading = self._panes[0].title.sizeHint().height()
        sides = max(1, sum(not pane.isHidden() for pane in self._panes))
        before = self._enlarged
        beside, self._enlarged = arranged(
            self.width(), self.height(), heading, self._extents, self._large, sides=sides
        )
        beside = beside or self._alone is not None
        direction = QBoxLayout.Direction
        self._box.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
        self._box.setSpacing(_BESIDE if beside else _BELOW)
        if changed or (before and before[:2]) != (self._enlarged and self._enlarged[:2]):
            for pane in self._panes:
                pane.share_room(self._alone, self._large, self._enlarged)

    def minimumSizeHint(self) -> QSize:
        """Return the width as it is now, and the height beside each other, which low windows get.

        Before the first layout the two lie below each other: their height enlarged the window.
        """
        width = self._box.minimumSize().width()
        return QSize(width, max(pane.minimumSizeHint().height() for pane in self._panes))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
