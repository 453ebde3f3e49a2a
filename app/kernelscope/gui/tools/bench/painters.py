"""Draws charts into plots of PyQtGraph: the common part, and curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtGui import QColor, QFontMetrics, QPalette
from PySide6.QtWidgets import QApplication

from kernelscope.bench.charts import Chart, Series
from kernelscope.gui.tools.bench.axes import PlainAxis, log10, staggered
from kernelscope.gui.tools.bench.styles import SeriesStyle

AXIS_WIDTH, SAMPLE_WIDTH = 70, 60
"""Pixels beside the plot: of the axis on the left, and of the legend without its texts."""


class Painter:
    """Puts the items of a chart into a plot."""

    def __init__(self, shown: Chart, plot: Any, palette: QPalette) -> None:
        self._chart, self._plot, self._palette = shown, plot, palette

    def _style(self, series: Series) -> SeriesStyle:
        return SeriesStyle(series.style, series.theirs, self._palette, series.level)

    def draw(self) -> list[tuple[Any, str]]:
        """Return the items of the legend with their names."""
        raise NotImplementedError

    def _name(self, series: Series) -> str:
        return f"{series.name} (theirs)" if series.theirs else series.name

    def _dots(
        self, xs: Sequence[float], series: Series, colour: QColor, to: Callable[[float], float]
    ) -> None:
        """Draw every repeat, so that no outlier is hidden."""
        dots = [(x, to(each)) for x, p in zip(xs, series.points, strict=True) for each in p.repeats]
        if len(dots) > len(xs):
            faint = QColor(colour)
            faint.setAlpha(110)
            self._plot.plot(
                *zip(*dots, strict=True), pen=None, symbol="o", symbolSize=3,
                symbolPen=None, symbolBrush=faint, useCache=False,
            )  # fmt: skip

    def _whiskers(
        self, xs: Sequence[float], series: Series, colour: QColor, to: Callable[[float], float]
    ) -> None:
        """Draw the ranges of all points as one item, as PyQtGraph takes long to add one."""
        ends = [
            (x, to(end))
            for x, point in zip(xs, series.points, strict=True)
            if point.high > point.low
            for end in (point.low, point.high)
        ]
        if ends:
            pen = pg.mkPen(colour, width=1.5)
            self._plot.plot(*zip(*ends, strict=True), pen=pen, connect="pairs")


class CurvePainter(Painter):
    def draw(self) -> list[tuple[Any, str]]:
        entries = []
        for series in self._chart.series:
            style = self._style(series)
            xs, ys = ([log10(value) for value in values] for values in _coordinates(series))
            self._dots(xs, series, style.colour, log10)
            self._whiskers(xs, series, style.colour, log10)
            symbols = {} if series.line else {
                "symbol": style.symbol, "symbolSize": 9,
                "symbolPen": pg.mkPen(style.colour), "symbolBrush": style.symbol_brush(),
                "useCache": False,
            }  # fmt: skip
            joined = self._chart.joined or series.line
            curve = self._plot.plot(xs, ys, pen=style.pen() if joined else None, **symbols)
            entries.append((curve, self._name(series)))
        for side in ("left", "bottom"):
            self._plot.getAxis(side).setLogMode(True)
        self._plot.getViewBox().setDefaultPadding(0.07)  # room for names of ticks at the ends
        if self._chart.ticks:
            self._name_sizes(self._plot.getAxis("bottom"))
        return entries

    def _name_sizes(self, axis: PlainAxis) -> None:
        """Write the names of the ticks, on lines below each other where they would touch."""
        metrics = QFontMetrics(QApplication.font())
        places = [log10(x) for x, _ in self._chart.ticks]
        legend = max(metrics.horizontalAdvance(self._name(each)) for each in self._chart.series)
        view = self._plot.getViewWidget().width() - AXIS_WIDTH - SAMPLE_WIDTH - legend
        # The view shows a little more than the points; see the padding.
        scale = view / (1.14 * (max(places) - min(places)) or 1.0)
        widths = [metrics.horizontalAdvance(f" {text} ") for _, text in self._chart.ticks]
        lines = staggered([place * scale for place in places], widths)
        axis.setHeight((2 + max(lines)) * metrics.height() + 16)
        axis.setTicks(
            [
                [
                    (place, "\n" * line + text)
                    for place, line, (_, text) in zip(places, lines, self._chart.ticks, strict=True)
                ]
            ]
        )


def _coordinates(series: Series) -> tuple[list[float], list[float]]:
    return [point.x for point in series.points], [point.y for point in series.points]
