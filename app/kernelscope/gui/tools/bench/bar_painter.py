"""Draws charts of bars: side by side in groups, or stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QApplication

from kernelscope.gui.tools.bench.axes import PADDING, PlainAxis, log10
from kernelscope.gui.tools.bench.painters import AXIS_WIDTH, SAMPLE_WIDTH, Painter
from kernelscope.gui.tools.bench.styles import LIGHT
from kernelscope.gui.widgets import theme

_MOST_TEXTS, _MOST_LEVEL = 70, 10
"""Bars that have their values written, and that have them written level."""

_ROOM_UPRIGHT, _ROOM_LEVEL = 0.26, 0.12
"""Above the highest bar, for its value: as shares of the heights."""

_MOST_VALUES = 0.5
"""Share of the height that upright values may take."""


class _BarSample(pg.ItemSample):  # type: ignore[misc]
    """A bar in the legend, without the line that stands for curves."""

    def paint(self, painter: QPainter, *_: Any) -> None:
        painter.setPen(self.item.opts["pen"])
        painter.setBrush(self.item.opts["brush"])
        painter.drawRect(QRectF(3, 3, 15, 15))


class BarPainter(Painter):
    def draw(self) -> list[tuple[Any, str]]:
        chart_ = self._chart
        count = 1 if chart_.stacked else max(1, len(chart_.series))
        width = 0.8 / count
        entries = []
        ground = self._to(chart_.foot) if chart_.log else 0.0
        foot = [0.0] * len(chart_.groups)
        bars_in_all = count * len(chart_.groups)
        upright = not chart_.stacked and _MOST_LEVEL < bars_in_all <= _MOST_TEXTS
        for number, series in enumerate(chart_.series):
            style = self._style(series)
            shift = 0.0 if chart_.stacked else (number - (count - 1) / 2) * width
            xs = [point.x + shift for point in series.points]
            feet = [foot[int(p.x)] if chart_.stacked else ground for p in series.points]
            heights = [self._to(point.y) for point in series.points]
            inner = [None if p.inner is None else self._to(p.inner) for p in series.points]
            tops = (
                [f + h for f, h in zip(feet, heights, strict=True)] if chart_.stacked else heights
            )
            lower = [top if i is None else min(i, top) for i, top in zip(inner, tops, strict=True)]
            split = any(i is not None for i in inner)
            self._bars(xs, feet, lower, 0.9 * width, style.brush(split), style.pen())
            upper = self._bars(xs, lower, tops, 0.9 * width, style.brush(), style.pen(), split)
            entries.append((_BarSample(upper), self._name(series)))
            if not chart_.stacked:
                text = self._palette.color(QPalette.ColorRole.Text)
                self._dots(xs, series, text, self._to)
                self._whiskers(xs, series, text, self._to)
            for x, point, height in zip(xs, series.points, heights, strict=True):
                foot[int(point.x)] += height
                if not chart_.stacked and bars_in_all <= _MOST_TEXTS:
                    above = max(height, *map(self._to, (point.high, *point.repeats)), ground)
                    self._write(x, above, point.text, upright=upright)
        if any(p.inner is not None for s in chart_.series for p in s.points):
            entries += self._tones()
        if chart_.stacked:
            for group, total in enumerate(foot):
                self._write(group, total, f"{total:.3g}")
        axis = self._plot.getAxis("bottom")
        self._name_groups(axis)
        axis.setStyle(tickLength=0)
        self._plot.getAxis("left").setLogMode(chart_.log)
        self._plot.setXRange(-0.5, len(chart_.groups) - 0.5, padding=PADDING)
        values = [(p.low, p.high, *p.repeats) for s in chart_.series for p in s.points]
        tops = foot if chart_.stacked else [self._to(max(each)) for each in values]
        lows = [self._to(min(each)) for each in values] if chart_.log else []
        self._heights = ground, max([ground, *tops]), min([ground, *lows])
        self._upright = upright
        self.fit()
        self._plot.getViewBox().sigResized.connect(self.fit)
        return entries

    def fit(self, *_: object) -> None:
        """Leave room for the values above the bars, which takes more of a low plot."""
        ground, top, bottom = self._heights
        room = (top - bottom) or 1.0
        below = 0.04 * room * (bottom < ground)
        axis = self._plot.getAxis("bottom")
        above = (self._upright_share(axis) if self._upright else _ROOM_LEVEL) * room
        self._plot.setYRange(bottom - below, top + above, padding=0)

    def _upright_share(self, axis: PlainAxis) -> float:
        """Return the room for upright values, as a share of the height of the highest bar."""
        metrics = QFontMetrics(QApplication.font())
        texts = [point.text for series in self._chart.series for point in series.points]
        longest = max(map(metrics.horizontalAdvance, texts), default=0) + metrics.height()
        view = self._plot.getViewWidget()
        if view.isVisible():
            height = self._plot.getViewBox().height()
        else:  # nothing is laid out yet
            lines = 2 + len(view.note_lines)  # the title's and those of the note
            height = view.height() - axis.height() - lines * metrics.height()
        share = min(_MOST_VALUES, longest / max(height, 1))
        return float(max(_ROOM_UPRIGHT, share / (1 - share)))

    def _bars(
        self,
        xs: Sequence[float],
        feet: Sequence[float],
        tops: Sequence[float],
        width: float,
        brush: Any,
        pen: Any,
        shown: bool = True,
    ) -> Any:
        """Draw bars between two heights each, and return them."""
        heights = [top - foot for foot, top in zip(feet, tops, strict=True)]
        bars = pg.BarGraphItem(x=xs, y0=feet, height=heights, width=width, brush=brush, pen=pen)
        if shown:
            self._plot.addItem(bars)
        return bars

    def _tones(self) -> list[tuple[Any, str]]:
        """Return the legend of the two parts of bars."""
        grey, entries = theme.quiet_text(self._palette), []
        for strength, text in ((LIGHT, "light: computing"), (1.0, "dark: transfers, rest of run")):
            colour = QColor(grey)
            colour.setAlpha(round(255 * strength))
            sample = pg.BarGraphItem(x=[0], height=[1], width=1, brush=colour, pen=pg.mkPen(grey))
            entries.append((_BarSample(sample), text))
        return entries

    def _name_groups(self, axis: PlainAxis) -> None:
        """Write the names of the groups; the axis does it again once it is laid out."""
        metrics = QFontMetrics(QApplication.font())
        legend = max(metrics.horizontalAdvance(self._name(each)) for each in self._chart.series)
        view = self._plot.getViewWidget()
        axis.name_groups(self._chart.groups, view.width() - AXIS_WIDTH - SAMPLE_WIDTH - legend)

    def _to(self, value: float) -> float:
        return log10(value) if self._chart.log else value

    def _write(self, x: float, y: float, text: str, upright: bool = False) -> None:
        colour = self._palette.color(QPalette.ColorRole.Text)
        anchor = (0, 0.5) if upright else (0.5, 1)
        item = pg.TextItem(text, colour, anchor=anchor, angle=90 if upright else 0)
        item.setPos(x, y)
        self._plot.addItem(item, ignoreBounds=True)
