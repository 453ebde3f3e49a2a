"""The widget that shows one chart of the bench, with its legend."""

from __future__ import annotations

import html
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QEventLoop, QPoint, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QHelpEvent,
    QPainter,
    QPalette,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QToolTip
from shiboken6 import delete

from kernelscope.bench.charts import Chart
from kernelscope.gui.tools.bench.painters import (
    AXIS_WIDTH,
    BarPainter,
    CurvePainter,
    Painter,
    PlainAxis,
    wrapped,
)
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed, look_at_every_item

_NOTE_POINTS, _TITLE_POINTS, _SMALL = 8.0, 11.0, "9pt"
_TITLE_MARGIN = 12  # pixels that a title is higher than its text
_NOTE_MARGIN = 40  # pixels that the layout leaves beside the note, both sides together


class ChartView(pg.GraphicsLayoutWidget):  # type: ignore[misc]
    """One chart with its legend on the right.

    `palette`: colours in place of the desktop's, such as a light ground for files.
    """

    def __init__(self, palette: QPalette | None = None, parent: Any = None) -> None:
        self._own = palette  # before Qt asks for it
        self._chart: Chart | None = None
        self._is_stale = False
        self._painter: Painter | None = None  # follows changes of the size
        self._note: Any = None
        self._legend_width = 0.0
        super().__init__(parent)
        look_at_every_item(self)
        dressed(self, "benchPlot", "Plot")
        self.setMinimumSize(320, 200)

    def show_chart(self, shown: Chart | None) -> None:
        self._chart, self._is_stale = shown, False
        palette = self._own or self.palette()
        self._note = self._painter = None
        self._destroy_items()
        self.setBackground(palette.color(QPalette.ColorRole.Base))
        self.setAccessibleDescription(shown.title if shown else "")
        if shown is None:
            return
        axes = {side: PlainAxis(side) for side in ("left", "bottom")}
        plot = self.addPlot(0, 0, axisItems=axes, enableMenu=False)
        plot.hideButtons()
        text = palette.color(QPalette.ColorRole.Text)
        for side, label in (("left", shown.y), ("bottom", shown.x)):
            axis = axes[side]
            axis.setPen(theme.quiet_text(palette))
            axis.setTextPen(text)
            axis.enableAutoSIPrefix(False)
            if label:
                axis.setLabel(label, color=text.name(), **{"font-size": _SMALL})
        plot.showGrid(x=not shown.groups, y=True, alpha=0.2)
        painter = BarPainter if shown.groups else CurvePainter
        self._painter = painter(shown, plot, palette)
        self._add_legend(self._painter.draw(), text)
        self._fit_title()
        if shown.note:
            quiet = theme.quiet_text(palette)
            self._note = self.addLabel(
                self._note_text(), 1, 0, colspan=2, color=quiet, size=f"{_NOTE_POINTS}pt",
                justify="left",
            )  # fmt: skip

    def _destroy_items(self) -> None:
        """Empty the view, and destroy the items now.

        They refer to each other. Python's collector would take the attributes from one while Qt
        still asks another for its size, which raised an exception, and ended the process once.
        """
        items = list(self.ci.items)
        self.clear()
        for item in items:
            delete(item)

    @property
    def note_lines(self) -> list[str]:
        if self._chart is None or not self._chart.note:
            return []
        font = QApplication.font()
        font.setPointSizeF(_NOTE_POINTS)
        metrics, room = QFontMetrics(font), self.width() - _NOTE_MARGIN
        notes = self._chart.note.splitlines()
        return [line for note in notes for line in wrapped(note, room, metrics)]

    def _fit_title(self) -> None:
        """Write the title on lines beside the legend, which a wider one would push out."""
        shown, plot = self._chart, self.getItem(0, 0)
        if shown is None or plot is None:
            return
        font = QApplication.font()
        font.setPointSizeF(_TITLE_POINTS)
        metrics = QFontMetrics(font)
        room = self.width() - self._legend_width - AXIS_WIDTH - _NOTE_MARGIN
        lines = wrapped(shown.title, room, metrics)
        text = (self._own or self.palette()).color(QPalette.ColorRole.Text)
        title = "<br>".join(map(html.escape, lines))
        plot.setTitle(title, color=text, size=f"{_TITLE_POINTS}pt")
        height = len(lines) * metrics.lineSpacing() + _TITLE_MARGIN
        plot.titleLabel.setMaximumHeight(height)
        plot.layout.setRowFixedHeight(0, height)

    def _note_text(self) -> str:
        return "<br>".join(map(html.escape, self.note_lines))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        if self._note is not None:  # first: the layout is never narrower than the note
            self._note.setText(self._note_text())
        if self._painter is not None:
            self._fit_title()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._own is None and self._chart:
            self._is_stale = True
            if not self.isVisible():
                return
            # Qt goes through all widgets meanwhile: those of the old plot's menus must not vanish.
            QTimer.singleShot(0, self, self._redraw)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw the chart again if the theme has changed since the window was closed."""
        if self._is_stale:
            self._redraw()
        super().showEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the full name and the numbers of the bars that the mouse is over."""
        if self.closed:  # Qt's own part would go to a scene that is gone
            return False
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.group_at(event.pos()), self)
            return True
        return bool(super().viewportEvent(event))

    def group_at(self, pos: QPoint) -> str:
        shown = self._chart
        if shown is None or not shown.groups:
            return ""
        plot, at = self.getItem(0, 0), self.mapToScene(pos)
        number = round(plot.vb.mapSceneToView(at).x())
        if not (plot.sceneBoundingRect().contains(at) and 0 <= number < len(shown.groups)):
            return ""
        unit = " ms" if shown.y.endswith(" in ms") else ""
        lines = [shown.groups[number]]
        for series in shown.series:
            name = f"{series.name} (theirs)" if series.theirs else series.name
            texts = (point.text for point in series.points if point.x == number)
            lines += [f"{name}: {text}{unit}" for text in texts]
        return "\n".join(lines)

    def _redraw(self) -> None:
        self.show_chart(self._chart)

    def _add_legend(self, entries: list[tuple[Any, str]], text: QColor) -> None:
        legend = pg.LegendItem(labelTextColor=text, labelTextSize=_SMALL, verSpacing=-3)
        room = self.addViewBox(0, 1, enableMouse=False, enableMenu=False)
        legend.setParentItem(room)
        for item, name in entries:
            legend.addItem(item, name)
        # PyQtGraph's own layout grows with each entry, until the last are cut off.
        least = legend.layout.effectiveSizeHint(Qt.SizeHint.MinimumSize)
        legend.setGeometry(QRectF(QPointF(), least))
        self._legend_width = legend.boundingRect().width() + 8
        room.setFixedWidth(self._legend_width)
        legend.anchor((0, 0), (0, 0), (4, 24))

    def paint(self, painter: QPainter) -> None:
        """Draw the chart onto something of the view's size."""
        # Items are laid out when the view is shown, which need not be on the screen.
        self.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.show()
        for _ in range(2):  # axes make room for their texts, and move the rest
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
            self.grab()
        area = QRectF(self.rect())
        painter.fillRect(area, self.backgroundBrush())
        self.scene().render(painter, area, area)
        self.hide()
