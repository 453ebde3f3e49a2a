"""One cell of a contact sheet: a result, the value it was made with, its time and score."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.engine.sweep import Cell, Score
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.times import EMULATED, duration
from kernelscope.gui.model.timing import Timing
from kernelscope.gui.viewer.layer import as_qimage
from kernelscope.gui.viewer.still import draw_still
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.tiles import TileLine, draw_lines, draw_note
from kernelscope.images.image import Image
from kernelscope.schema.parameters import Parameter


class SheetTile(QWidget):
    """A picture with a caption, which can be clicked, pinned and reached by Tab.

    `picture`: the result, once it is there. `display`: how it is drawn. `image`: the result as
    drawn; null until it is there. `psnr`: its score. `caption`: ``mask size 5 px``. `same`: that of
    an earlier tile whose result does not differ, in words.
    """

    chosen = Signal(object)
    pinned = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.parameter: Parameter | None = None
        self.value: Any = None
        self.caption = ""
        self.picture: Image | None = None
        self.display: Display | None = None
        self.image = QImage()
        self.psnr: float | None = None
        self.same = ""
        self._figures = ""
        self._problem = ""
        self._current = self._best = self._is_pinned = self._is_waiting = False

    def sizeHint(self) -> QSize:
        return QSize(330, 280)

    def minimumSizeHint(self) -> QSize:
        return QSize(170, 130)

    @property
    def text(self) -> str:
        """All that the tile says, for readers of the screen as well."""
        marks = [
            mark
            for mark, here in (
                ("current", self._current),
                ("best", self._best),
                ("pinned", self._is_pinned),
            )
            if here
        ]
        return ", ".join(filter(None, (self.caption, self._figures or self._problem, *marks)))

    def begin(self, parameter: Parameter, value: Any, *, current: bool) -> None:
        """Show a value whose result is still to come."""
        self.parameter, self.value, self._current = parameter, value, current
        self.caption = parameter.caption(value)
        self.image, self.psnr = QImage(), None
        self.picture = self.display = None
        self.same = ""
        self._figures, self._problem, self._best, self._is_pinned = "", "waiting…", False, False
        self._is_waiting = True
        self._refresh()

    def wait_for(self, reason: str) -> None:
        """Show why there is no result yet."""
        if reason != self._problem:
            self._problem = reason
            self._refresh()

    def give_up(self) -> None:
        """Show that a result which is still missing does not come."""
        if self._is_waiting:
            self.wait_for("not computed")

    def show_cell(self, cell: Cell, display: Display) -> None:
        self._problem, self._is_waiting = cell.problem, False
        if cell.result is not None:
            if self.image.isNull():
                self.picture = cell.result.image
                planes = self.picture.planes
                fits = display if planes.dtype == cell.result.request.image.planes.dtype else None
                self.display = fits or Display.automatic(planes)
                self.image = as_qimage(planes, self.display)
            self.psnr = cell.score.psnr if cell.score is not None else None
            seconds = Timing.of(cell.result).seconds
            # A first run also loads code, starts threads and makes plans that are kept.
            kind = "first run" if cell.result.first else "one run"
            time = f"{duration(seconds)}, {kind}" if seconds is not None else EMULATED
            self.same = ""
            if cell.same is not None and self.parameter is not None:
                self.same = f"same as {self.parameter.caption(cell.same.value)}"
            parts = time, _score_text(cell.score), self.same
            self._figures = " · ".join(filter(None, parts))
        self._refresh()

    def set_best(self, best: bool) -> None:
        """Mark the highest score of the sheet."""
        if best != self._best:
            self._best = best
            self._refresh()

    def set_pinned(self, pinned: bool) -> None:
        """Mark the tile as one of the two to compare."""
        if pinned != self._is_pinned:
            self._is_pinned = pinned
            self._refresh()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            (self.pinned if shift else self.chosen).emit(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self)
        elif event.key() == Qt.Key.Key_P:
            self.pinned.emit(self)
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Down):
            self.focusNextChild()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self.focusPreviousChild()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        below = 2 * painter.fontMetrics().height()
        frame = self.rect().adjusted(4, 4, -4, -below - 12)
        if self.image.isNull():
            draw_note(painter, frame, self._problem)
        else:
            draw_still(painter, self.image, QRectF(frame))
        here = (self._best, "★ best"), (self._current, "● current"), (self._is_pinned, "◆ pinned")
        marks = " ".join(mark for is_here, mark in here if is_here)
        lines = TileLine(self.caption, aside=marks), TileLine(self._figures, quiet=True)
        room = QRect(8, self.height() - below - 8, self.width() - 16, below)
        draw_lines(
            painter, lines, room, QColor(theme.CANVAS_TEXT), theme.canvas_quiet(self.palette())
        )
        self._draw_frame(painter)

    def _draw_frame(self, painter: QPainter) -> None:
        accent = self.palette().highlight().color()
        if self.hasFocus() or self._is_pinned:
            style = Qt.PenStyle.SolidLine if self.hasFocus() else Qt.PenStyle.DashLine
            painter.setPen(QPen(accent, 2, style))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def _refresh(self) -> None:
        self.setAccessibleName(self.text)
        self.setToolTip(self.text)
        self.update()


def _score_text(score: Score | None) -> str:
    if score is None:
        return ""
    return f"about {score.psnr:.1f} dB by SURE" if score.estimated else f"{score.psnr:.2f} dB"
