"""The least times of levels as bars, with the recorded ones as marks."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.ladder import Axis
from kernelscope.gui.model.memory_ladder import MemoryLadder, Step
from kernelscope.gui.widgets import theme
from kernelscope.spec.level_colours import colour

_ROW = 1.9
"""Height of a row in lines of text."""

_BAR = 0.55
"""Part of the width that is left for the longest bar."""


class MemoryLadderView(QWidget):
    """One row a level: its name, a bar on a logarithmic axis, and the times in words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memoryLadderBars")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._steps: tuple[Step, ...] = ()
        self._more = 0
        self._axis = Axis(())

    def show_ladder(self, ladder: MemoryLadder, more: int = 0) -> None:
        """Show the levels on a card, and leave room for those that are still to be counted."""
        steps = self._steps = ladder.steps
        self._more = more
        times = [each.prediction.seconds for each in steps if each.prediction is not None]
        times += [each.figure.seconds for each in steps if each.figure is not None]
        self._axis = Axis(times)
        self.setAccessibleName("Least times of the levels")
        self.setAccessibleDescription(
            "\n".join(f"{each.rung.level.name}: {each.text()}" for each in steps)
        )
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        count = len(self._steps) + self._more
        return QSize(
            100 * self.fontMetrics().averageCharWidth(),
            round(count * _ROW * self.fontMetrics().height()) + 8,
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = QFontMetricsF(self.font())
        height = _ROW * metrics.height()
        names = [each.rung.level.name for each in self._steps]
        names_width = max(map(metrics.horizontalAdvance, names), default=0.0) + height
        for number, step in enumerate(self._steps):
            row = QRectF(0, 4 + number * height, self.width(), height)
            self._paint_row(painter, step, row, names_width)
        painter.end()

    def _paint_row(self, painter: QPainter, step: Step, row: QRectF, names: float) -> None:
        palette, line = self.palette(), QFontMetricsF(self.font()).height()
        middle = Qt.AlignmentFlag.AlignVCenter
        side = 0.7 * line
        shade = QColor(colour(step.rung.level))
        swatch = QRectF(2, row.center().y() - side / 2, side, side)
        painter.fillRect(swatch, shade)
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        name = row.adjusted(side + 10, 0, 0, 0)
        painter.drawText(name, middle, step.rung.level.name)
        start = names + 8
        if step.prediction is None:
            painter.setPen(theme.quiet_text(palette))
            painter.drawText(row.adjusted(start, 0, -4, 0), middle, step.text())
            return
        longest = _BAR * (row.width() - start)
        length = max(2.0, self._axis.share(step.prediction.seconds) * longest)
        bar = QRectF(start, row.center().y() - 0.4 * line, length, 0.8 * line)
        painter.fillRect(bar, shade)
        end = bar.right()
        if step.figure is not None:
            end = max(end, self._paint_mark(painter, step, bar, longest))
        words = QRectF(end + 10, row.top(), row.right() - end - 12, row.height())
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        text = QFontMetricsF(self.font()).elidedText(
            step.text(), Qt.TextElideMode.ElideRight, words.width()
        )
        painter.drawText(words, middle, text)

    def _paint_mark(self, painter: QPainter, step: Step, bar: QRectF, longest: float) -> float:
        """Draw the recorded time as a line with a diamond, and return its right end."""
        assert step.figure is not None
        x = bar.left() + self._axis.share(step.figure.seconds) * longest
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        if step.is_far:
            ink = theme.warning_text(self.palette())
        painter.setPen(QPen(ink, 1.5, Qt.PenStyle.DotLine))
        y = bar.center().y()
        painter.drawLine(QPointF(min(bar.right(), x), y), QPointF(x, y))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        half = 0.3 * bar.height() + 2
        painter.drawPolygon(
            [QPointF(x, y - half), QPointF(x + half, y), QPointF(x, y + half), QPointF(x - half, y)]
        )
        return x + half
