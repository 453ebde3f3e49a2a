"""Charts of the bench in plots of PyQtGraph: in a widget or, without a screen, as files."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QBuffer, QEvent, QEventLoop, QPoint, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QHelpEvent,
    QImage,
    QPainter,
    QPalette,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication, QToolTip
from shiboken6 import delete

from kernelscope.base.errors import AppError
from kernelscope.bench.charts import Chart, Plot, Series, all_whole, chart, choices
from kernelscope.bench.output import write
from kernelscope.bench.report import Report
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import SMALLEST
from kernelscope.gui.widgets.parts import dressed, look_at_every_item, wrapped
from kernelscope.schema.levels import colour

_NAME_WIDTH = 220  # pixels of a line in the name of a group of bars


class PlainAxis(pg.AxisItem):  # type: ignore[misc]
    """Writes powers of ten as plain numbers."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if not self.logMode:
            return list(super().tickStrings(values, scale, spacing))
        return [_power(value) for value in values]


def staggered(centres: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Return the line of each name, from 0, so that no two on a line touch; all sizes in pixels."""
    ends: list[float] = []
    lines = []
    for centre, width in zip(centres, widths, strict=True):
        left = centre - width / 2
        line = next((line for line, end in enumerate(ends) if end <= left), len(ends))
        ends[line : line + 1] = [centre + width / 2]
        lines.append(line)
    return lines


def _power(exponent: float) -> str:
    """Return a power of ten as a number; only 1, 2 and 5 of each decade, which do not crowd."""
    if f"{10**exponent:e}"[0] not in "125":
        return ""
    return f"{10**exponent:,.0f}" if exponent > -0.01 else f"{10**exponent:.3g}"


def log10(value: float) -> float:
    return math.log10(max(value, 1e-12))


_COLOURS = (
    (None, None),
    ("#e69f00", "#e69f00"),
    ("#0072b2", "#6fa8ff"),
    ("#d55e00", "#ff7f3f"),
    ("#009e73", "#2fd0a0"),
    ("#cc79a7", "#e79cc6"),
    ("#56b4e9", "#a8dcff"),
)
"""On light and on dark ground; colour-blind people can distinguish them (Okabe and Ito 2008).
None stands for the colour of text."""

_SYMBOLS = ("o", "s", "t", "d", "+", "x", "star", "p", "h", "t1", "t2")
_DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DashDotLine,
    Qt.PenStyle.DashDotDotLine,
)
_STRENGTHS = (255, 90, 170, 40)  # opacity of bars; patterns would be scaled with the bars in SVGs
LIGHT = 0.45  # opacity of computing relative to transfers if a bar shows both


@dataclass(frozen=True)
class SeriesStyle:
    number: int
    theirs: bool
    palette: QPalette
    level: str = ""

    @property
    def colour(self) -> QColor:
        """That of the level, as in the ladder and in tables; else the next of a list."""
        if self.level:
            return QColor(colour(self.level))
        name = _COLOURS[self.number % len(_COLOURS)][theme.is_dark(self.palette)]
        return QColor(name) if name else self.palette.color(QPalette.ColorRole.Text)

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self.number % len(_SYMBOLS)]

    def pen(self) -> Any:
        dash = _DASHES[self.number // len(_COLOURS) % len(_DASHES)]
        return pg.mkPen(self.colour, width=1.5, style=Qt.PenStyle.DotLine if self.theirs else dash)

    def symbol_brush(self) -> QColor:
        """Symbols of the authors' figures are hollow."""
        return self.palette.color(QPalette.ColorRole.Base) if self.theirs else self.colour

    def brush(self, light: bool = False) -> Any:
        if self.theirs:
            return pg.mkBrush(None)
        colour = QColor(self.colour)
        turn = 0 if self.level else self.number // len(_COLOURS)
        strength = _STRENGTHS[turn % len(_STRENGTHS)]
        colour.setAlpha(round(LIGHT * strength) if light else strength)
        return pg.mkBrush(colour)


def light() -> QPalette:
    palette = QPalette(QColor("#f0f0f0"))
    palette.setColor(QPalette.ColorRole.Base, QColor("white"))
    palette.setColor(QPalette.ColorRole.Text, QColor("black"))
    return palette


AXIS_WIDTH, SAMPLE_WIDTH = 70, 60
"""Pixels beside the plot: of the axis on the left, and of the legend without its texts."""


class Painter:
    values_on = "left"  # the axis of values

    def __init__(self, shown: Chart, plot: Any, palette: QPalette) -> None:
        self._chart, self._plot, self._palette = shown, plot, palette
        self._texts: list[Any] = []  # the values written over bars

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
            symbol = {"symbol": "o", "symbolSize": 3, "symbolPen": None, "symbolBrush": faint}
            self._draw_at(dots, pen=None, useCache=False, **symbol)

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
            self._draw_at(ends, pen=pg.mkPen(colour, width=1.5), connect="pairs")

    def _draw_at(self, points: Sequence[tuple[float, float]], **style: Any) -> None:
        places, values = zip(*points, strict=True)
        both = (places, values) if self.values_on == "left" else (values, places)
        self._plot.plot(*both, **style)


class CurvePainter(Painter):
    def draw(self) -> list[tuple[Any, str]]:
        entries = []
        for series in self._chart.series:
            style = self._style(series)
            xs = [log10(point.x) for point in series.points]
            ys = [log10(point.y) for point in series.points]
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


_MOST_VALUES = 0.5  # share of the width that values beside bars may take


class _BarSample(pg.ItemSample):  # type: ignore[misc]
    """A bar in the legend, without the line that stands for curves."""

    def paint(self, painter: QPainter, *_: Any) -> None:
        painter.setPen(self.item.opts["pen"])
        painter.setBrush(self.item.opts["brush"])
        painter.drawRect(QRectF(3, 3, 15, 15))


class BarPainter(Painter):
    """Draws bars from the left to the right, so that names and values stand beside them."""

    values_on = "bottom"

    def draw(self) -> list[tuple[Any, str]]:
        chart_ = self._chart
        count = 1 if chart_.stacked else max(1, len(chart_.series))
        width = 0.8 / count
        entries = []
        ground = self._to(chart_.foot) if chart_.log else 0.0
        foot = [0.0] * len(chart_.groups)
        for number, series in enumerate(chart_.series):
            style = self._style(series)
            shift = 0.0 if chart_.stacked else (number - (count - 1) / 2) * width
            places = [point.x + shift for point in series.points]
            feet = [foot[int(p.x)] if chart_.stacked else ground for p in series.points]
            lengths = [self._to(point.y) for point in series.points]
            inner = [None if p.inner is None else self._to(p.inner) for p in series.points]
            ends = (
                [f + h for f, h in zip(feet, lengths, strict=True)] if chart_.stacked else lengths
            )
            lower = [end if i is None else min(i, end) for i, end in zip(inner, ends, strict=True)]
            split = any(i is not None for i in inner)
            self._bars(places, feet, lower, 0.9 * width, style.brush(split), style.pen())
            upper = self._bars(places, lower, ends, 0.9 * width, style.brush(), style.pen(), split)
            entries.append((_BarSample(upper), self._name(series)))
            if not chart_.stacked:
                text = self._palette.color(QPalette.ColorRole.Text)
                self._dots(places, series, text, self._to)
                self._whiskers(places, series, text, self._to)
            for place, point, length in zip(places, series.points, lengths, strict=True):
                foot[int(point.x)] += length
                if not chart_.stacked:
                    beyond = max(length, *map(self._to, (point.high, *point.repeats)), ground)
                    self._write(place, beyond, point.text)
        if any(p.inner is not None for s in chart_.series for p in s.points):
            entries += self._tones()
        if chart_.stacked:
            for group, total in enumerate(foot):
                self._write(group, total, f"{total:.3g}")
        metrics, axis = QFontMetrics(QApplication.font()), self._plot.getAxis("left")
        names = [wrapped(each, _NAME_WIDTH, metrics) for each in chart_.groups]
        axis.setTicks([[(place, "\n".join(lines)) for place, lines in enumerate(names)]])
        longest = max(metrics.horizontalAdvance(line) for lines in names for line in lines)
        axis.setWidth(longest + metrics.height())  # or it would grow once it is in view
        axis.setStyle(tickLength=0)
        self._plot.getAxis("bottom").setLogMode(chart_.log)
        box = self._plot.getViewBox()
        box.invertY(True)  # the first group is on top
        self._plot.setYRange(-0.5, len(chart_.groups) - 0.5, padding=0.02)
        values = [(p.low, p.high, *p.repeats) for s in chart_.series for p in s.points]
        tops = foot if chart_.stacked else [self._to(max(each)) for each in values]
        lows = [self._to(min(each)) for each in values] if chart_.log else []
        self._bar_share = width / max(1, len(chart_.groups))
        self._range = min([ground, *lows]), ground, max([ground, *tops])
        self.fit()
        box.sigResized.connect(self.fit)
        return entries

    def fit(self, *_: object) -> None:
        """Leave room for the values beside the bars, as far as these are as high as a line."""
        box, metrics = self._plot.getViewBox(), QFontMetrics(QApplication.font())
        fits = box.height() * self._bar_share >= 0.8 * metrics.height()
        widths = [metrics.horizontalAdvance(text.toPlainText()) for text in self._texts]
        for text in self._texts:
            text.setVisible(fits)
        longest = (max(widths, default=0) if fits else 0) + metrics.height()
        share = min(_MOST_VALUES, longest / max(box.width(), 1))
        least, ground, most = self._range
        span = (most - least) or 1.0
        below = 0.02 * span if least < ground else 0.0
        self._plot.setXRange(least - below, most + share / (1 - share) * span, padding=0)

    def _bars(
        self,
        places: Sequence[float],
        feet: Sequence[float],
        ends: Sequence[float],
        width: float,
        brush: Any,
        pen: Any,
        shown: bool = True,
    ) -> Any:
        lengths = [end - foot for foot, end in zip(feet, ends, strict=True)]
        bars = pg.BarGraphItem(x0=feet, y=places, width=lengths, height=width, brush=brush, pen=pen)
        if shown:
            self._plot.addItem(bars)
        return bars

    def _tones(self) -> list[tuple[Any, str]]:
        grey, entries = theme.quiet_text(self._palette), []
        for strength, text in ((LIGHT, "light: computing"), (1.0, "dark: transfers, rest of run")):
            colour = QColor(grey)
            colour.setAlpha(round(255 * strength))
            sample = pg.BarGraphItem(x=[0], height=[1], width=1, brush=colour, pen=pg.mkPen(grey))
            entries.append((_BarSample(sample), text))
        return entries

    def _to(self, value: float) -> float:
        return log10(value) if self._chart.log else value

    def _write(self, place: float, value: float, text: str) -> None:
        colour = self._palette.color(QPalette.ColorRole.Text)
        item = pg.TextItem(text, colour, anchor=(0, 0.5))
        item.setPos(value, place)
        self._texts.append(item)
        self._plot.addItem(item, ignoreBounds=True)


_NOTE_POINTS, _TITLE_POINTS, _SMALL_POINTS = 8.0, 11.0, 9.0


def _grown(points: float) -> float:
    """Return a size of letters that follows the window's text."""
    return points * QApplication.font().pointSizeF() / SMALLEST


_TITLE_MARGIN = 12  # pixels that a title is higher than its text
_NOTE_MARGIN = 40  # pixels that the layout leaves beside the note, both sides together


class ChartView(pg.GraphicsLayoutWidget):  # type: ignore[misc]
    """One chart with its legend on the right; `palette` replaces the desktop's, for files."""

    def __init__(self, palette: QPalette | None = None) -> None:
        self._own = palette  # before Qt asks for it
        self._chart: Chart | None = None
        self._is_stale = False
        self._painter: Painter | None = None  # follows changes of the size
        self._note: Any = None
        self._legend_width = 0.0
        super().__init__()
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
        painter = BarPainter if shown.groups else CurvePainter
        for side, axis in axes.items():
            label = shown.y if side == painter.values_on else shown.x
            if shown.groups and shown.log and label:
                label += ", logarithmic"  # bars have no other length to compare with
            axis.setPen(theme.quiet_text(palette))
            axis.setTextPen(text)
            axis.enableAutoSIPrefix(False)
            if label:
                axis.setLabel(
                    label, color=text.name(), **{"font-size": f"{_grown(_SMALL_POINTS)}pt"}
                )
        plot.showGrid(x=True, y=not shown.groups, alpha=0.2)
        self._painter = painter(shown, plot, palette)
        self._add_legend(self._painter.draw(), text)
        self._fit_title()
        if shown.note:
            quiet = theme.quiet_text(palette)
            self._note = self.addLabel(
                self._note_text(), 1, 0, colspan=2, color=quiet, size=f"{_grown(_NOTE_POINTS)}pt",
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
        font.setPointSizeF(_grown(_NOTE_POINTS))
        metrics, room = QFontMetrics(font), self.width() - _NOTE_MARGIN
        notes = self._chart.note.splitlines()
        return [line for note in notes for line in wrapped(note, room, metrics)]

    def _fit_title(self) -> None:
        """Write the title on lines beside the legend, which a wider one would push out."""
        shown, plot = self._chart, self.getItem(0, 0)
        if shown is None or plot is None:
            return
        font = QApplication.font()
        font.setPointSizeF(_grown(_TITLE_POINTS))
        metrics = QFontMetrics(font)
        axis = max(AXIS_WIDTH, plot.getAxis("left").width())
        room = self.width() - self._legend_width - axis - _NOTE_MARGIN
        lines = wrapped(shown.title, room, metrics)
        text = (self._own or self.palette()).color(QPalette.ColorRole.Text)
        title = "<br>".join(map(html.escape, lines))
        plot.setTitle(title, color=text, size=f"{_grown(_TITLE_POINTS)}pt")
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
        number = round(plot.vb.mapSceneToView(at).y())
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
        legend = pg.LegendItem(
            labelTextColor=text, labelTextSize=f"{_grown(_SMALL_POINTS)}pt", verSpacing=-3
        )
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


_FILE_WIDTH, _FILE_HEIGHTS = 1200, (720, 1400)
_BAR_HEIGHT, _BESIDE_BARS = 16, 120
"""Pixels that a bar with its value takes, and that a file has above and below the bars."""

_SCALE = 2  # pixels of a PNG for each pixel of the drawing, in x and y


def save_chart(shown: Chart, *paths: Path, origin: str = "") -> None:
    """Draw a chart, dark on white, into PNGs or, by the ends of their names, SVGs.

    `origin`: where and when it was measured; written below the chart.
    """
    shown = replace(shown, note="\n".join(filter(None, (origin, shown.note))))
    view = ChartView(light())
    bars = len(shown.groups) * (1 if shown.stacked else len(shown.series))
    least, most = _FILE_HEIGHTS
    view.resize(_FILE_WIDTH, min(max(least, _BAR_HEIGHT * bars + _BESIDE_BARS), most))
    view.show_chart(shown)
    drawn = [
        _as_svg(view, shown.title) if path.suffix.lower() == ".svg" else _as_png(view)
        for path in paths
    ]
    view.show_chart(None)  # destroys the plot in Qt's order
    for path, content in zip(paths, drawn, strict=True):
        write(path, content)


def _as_svg(view: ChartView, title: str) -> bytes:
    buffer = QBuffer()
    target = QSvgGenerator()
    target.setOutputDevice(buffer)
    target.setResolution(view.logicalDpiX())
    target.setSize(view.size())
    target.setViewBox(QRectF(view.rect()))
    target.setTitle(title)
    painter = QPainter(target)
    view.paint(painter)
    painter.end()
    return bytes(buffer.data().data())


def _as_png(view: ChartView) -> bytes:
    image = QImage(view.size() * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.paint(painter)
    painter.end()
    buffer = QBuffer()
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def create_drawer() -> Any:
    """Return an application to keep while charts are drawn into files; it needs no screen."""
    return QApplication.instance() or QApplication(["kernelscope", "-platform", "offscreen"])


def export(
    report: Report, folder: Path, announce: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """Draw every plot as PNG and SVG; of computing alone only if some rows have nothing else."""
    app = create_drawer()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AppError(f"“{folder}” cannot be created: {error.strerror}.") from None
    paths = []
    waiting = all_whole(report.rows)
    plots = [(plot, choice) for plot in Plot for choice in choices(plot, report.rows)]
    for number, (plot, choice) in enumerate(plots, start=1):
        announce(f"{number}/{len(plots)}  Drawing {plot}, {choice}")
        title = f"{plot} {choice}".lower().replace("×", "x")
        name = re.sub(r"\W+", "-", title).strip("-")
        both = [folder / f"{name}{suffix}" for suffix in (".png", ".svg")]
        shown = chart(plot, choice, report.rows, waiting=waiting)
        save_chart(shown, *both, origin=report.origin())
        paths += both
    del app
    return paths
