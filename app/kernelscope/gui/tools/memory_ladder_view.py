"""The loads and the least times of levels as bars, with measured times as marks."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.bench.memory_ladder import MemoryLadder, TimedRung
from kernelscope.gui.model.ladder import TimeScale
from kernelscope.gui.model.xray import NAMES, SIGNS
from kernelscope.gui.widgets import theme
from kernelscope.schema.levels import colour
from kernelscope.traffic.trace import MemorySpace

_ROW = 1.9  # height of a row in lines of text
_LOADS = 0.36  # part of the width that the loads have, beside the times
_SHORTEST = 60  # pixels that the longest bar has at least, where texts are long

_FILLS = {
    MemorySpace.GLOBAL: Qt.BrushStyle.SolidPattern,
    MemorySpace.TEXTURE: Qt.BrushStyle.Dense2Pattern,
    MemorySpace.SHARED: Qt.BrushStyle.Dense5Pattern,
    MemorySpace.CONSTANT: Qt.BrushStyle.BDiagPattern,
}
"""Density falls with the way to the memory."""

_MIDDLE = Qt.AlignmentFlag.AlignVCenter


class MemoryLadderView(QWidget):
    """One row a level: its name, its loads by memory, its times on a logarithmic axis."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("memoryLadderBars")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._steps: tuple[TimedRung, ...] = ()
        self._card = ""
        self._more = 0
        self._axis = TimeScale(())

    def show_ladder(self, ladder: MemoryLadder, more: int = 0) -> None:
        """Show the levels on a card, and leave room for those that are still to be counted."""
        steps = self._steps = ladder.steps
        self._card = ladder.card.name
        self._more = more
        times = [each.prediction.seconds for each in steps if each.prediction is not None]
        times += [each.seconds for each in steps if each.seconds is not None]
        self._axis = TimeScale(times)
        self.setAccessibleName("Loads and least times of the levels")
        self.setAccessibleDescription(
            "\n".join(f"{each.rung.level.name}: {each.text()}" for each in steps)
        )
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        count = 1 + len(self._steps) + self._more
        return QSize(
            100 * self.fontMetrics().averageCharWidth(),
            round(count * _ROW * self.fontMetrics().height()) + 8,
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = QFontMetricsF(self.font())
        height = _ROW * metrics.height()
        rows = [
            QRectF(0, 4 + number * height, self.width(), height)
            for number in range(1 + len(self._steps))
        ]
        names = [each.rung.level.name for each in self._steps]
        left = max(map(metrics.horizontalAdvance, names), default=0.0) + height + 8
        times = left + _LOADS * (self.width() - left)
        self._paint_heads(painter, rows[0], left, times)
        labels = [_loads_text(each) for each in self._steps]
        room = max(map(metrics.horizontalAdvance, labels), default=0.0)
        longest_load = max(_SHORTEST, times - left - room - 28)
        briefs = [each.brief() for each in self._steps if each.prediction is not None]
        room = max(map(metrics.horizontalAdvance, briefs), default=0.0)
        longest_time = max(_SHORTEST, self.width() - times - room - 24)
        for step, row in zip(self._steps, rows[1:], strict=True):
            self._paint_name(painter, step, row)
            if step.prediction is None:
                painter.setPen(theme.quiet_text(self.palette()))
                self._write(painter, row.adjusted(left, 0, -4, 0), step.brief())
                continue
            self._paint_loads(
                painter, step, row.adjusted(left, 0, times - row.right(), 0), longest_load
            )
            self._paint_times(painter, step, row.adjusted(times, 0, -4, 0), longest_time)
        painter.end()

    def _paint_heads(self, painter: QPainter, row: QRectF, left: float, times: float) -> None:
        """Write the titles of the two columns, with the signs of the memories that are used."""
        painter.setPen(theme.quiet_text(self.palette()))
        used = {space for each in self._steps for space, _ in each.loads}
        signs = "  ".join(f"{SIGNS[space]} {NAMES[space]}" for space in _FILLS if space in used)
        self._write(
            painter,
            row.adjusted(left, 0, times - row.right() - 12, 0),
            f"Loads for a pixel   {signs}",
        )
        self._write(painter, row.adjusted(times, 0, -4, 0), f"Least time on {self._card}")

    def _write(self, painter: QPainter, place: QRectF, text: str) -> None:
        metrics = QFontMetricsF(self.font())
        elide = Qt.TextElideMode.ElideRight
        painter.drawText(place, _MIDDLE, metrics.elidedText(text, elide, place.width()))

    def _paint_name(self, painter: QPainter, step: TimedRung, row: QRectF) -> None:
        side = 0.7 * QFontMetricsF(self.font()).height()
        swatch = QRectF(2, row.center().y() - side / 2, side, side)
        painter.fillRect(swatch, QColor(colour(step.rung.level)))
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(row.adjusted(side + 10, 0, 0, 0), _MIDDLE, step.rung.level.name)

    def _paint_loads(self, painter: QPainter, step: TimedRung, row: QRectF, longest: float) -> None:
        """Draw the loads as parts of one bar; lengths of all levels are in proportion."""
        most = max(sum(count for _, count in each.loads) for each in self._steps)
        shade, line = QColor(colour(step.rung.level)), QFontMetricsF(self.font()).height()
        x = row.left()
        painter.setPen(QPen(shade, 1))
        for space, count in step.loads:
            part = QRectF(x, row.center().y() - 0.4 * line, count / most * longest, 0.8 * line)
            painter.setBrush(QBrush(shade, _FILLS[space]))
            painter.drawRect(part)
            x = part.right()
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        self._write(painter, row.adjusted(x - row.left() + 8, 0, -8, 0), _loads_text(step))

    def _paint_times(self, painter: QPainter, step: TimedRung, row: QRectF, longest: float) -> None:
        assert step.prediction is not None
        line = QFontMetricsF(self.font()).height()
        length = max(2.0, self._axis.share(step.prediction.seconds) * longest)
        bar = QRectF(row.left(), row.center().y() - 0.4 * line, length, 0.8 * line)
        painter.fillRect(bar, QColor(colour(step.rung.level)))
        end = bar.right()
        if step.seconds is not None:
            x = row.left() + self._axis.share(step.seconds) * longest
            end = max(end, self._paint_mark(painter, step, bar, x))
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        self._write(painter, row.adjusted(end - row.left() + 8, 0, 0, 0), step.brief())

    def _paint_mark(self, painter: QPainter, step: TimedRung, bar: QRectF, x: float) -> float:
        """Draw the measured time as a line with a diamond, and return its right end."""
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


def _loads_text(step: TimedRung) -> str:
    return "  ".join(f"{SIGNS[space]} {count:.3g}" for space, count in step.loads)
