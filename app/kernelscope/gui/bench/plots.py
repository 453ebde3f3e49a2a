"""Draws the charts of the bench, in the window and into files."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QBuffer, QEvent, QEventLoop, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPalette
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication

from kernelscope.bench import Report
from kernelscope.bench.charts import Chart, Plot, Point, Series, chart, choices
from kernelscope.errors import AppError
from kernelscope.gui.widgets import theme

_COLOURS = (
    (None, None),
    ("#e69f00", "#e69f00"),
    ("#0072b2", "#6fa8ff"),
    ("#d55e00", "#ff7f3f"),
    ("#009e73", "#2fd0a0"),
    ("#cc79a7", "#e79cc6"),
    ("#56b4e9", "#a8dcff"),
)
"""On light and on dark ground, after Okabe and Ito (2008), which the colour-blind tell apart;
None for the colour of text."""

_SYMBOLS = ("o", "s", "t", "d", "+", "x", "star", "p", "h", "t1", "t2")
_DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DashDotLine,
    Qt.PenStyle.DashDotDotLine,
)
_STRENGTHS = (255, 90, 170, 40)
"""How opaque bars are; patterns would be scaled with the bars in SVGs."""

_LIGHT = 0.45
"""How opaque computing is, as a share of transfers, where a bar shows both."""

_MOST_TEXTS, _MOST_LEVEL = 70, 10
"""Bars that have their values written, and that have them written level."""

_ROOM_UPRIGHT, _ROOM_LEVEL = 0.26, 0.12
"""Above the highest bar, for its value: as shares of the heights."""

_AXIS_WIDTH, _SAMPLE_WIDTH = 70, 60
"""Pixels beside the bars: of the axis on the left, and of the legend without its texts."""

_MOST_UPRIGHT = 0.4
"""Share of the height that upright names may take; the ends of longer ones are left out."""

_FILE_SIZE = QSize(1200, 720)
_SCALE = 2
"""How much finer PNGs are than what they are drawn like."""


@dataclass(frozen=True)
class Style:
    """How a series looks; number, symbol and dash or strength tell it apart without colours."""

    number: int
    theirs: bool
    palette: QPalette

    @property
    def colour(self) -> QColor:
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
        """Return what fills bars; a `light` one their lower parts."""
        if self.theirs:
            return pg.mkBrush(None)
        colour = QColor(self.colour)
        strength = _STRENGTHS[self.number // len(_COLOURS) % len(_STRENGTHS)]
        colour.setAlpha(round(_LIGHT * strength) if light else strength)
        return pg.mkBrush(colour)


class _Axis(pg.AxisItem):  # type: ignore[misc]
    """Writes powers of ten as plain numbers, and texts upright where they have no room."""

    upright: tuple[str, ...] = ()
    """Texts in place of ticks that are called 0, 1, 2…: long ones would be left out."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if not self.logMode:
            return list(super().tickStrings(values, scale, spacing))
        return [_power(value) for value in values]

    def drawPicture(self, p: QPainter, axisSpec: Any, tickSpecs: Any, textSpecs: Any) -> None:  # noqa: N803
        super().drawPicture(p, axisSpec, tickSpecs, [] if self.upright else textSpecs)
        if self.upright:
            p.setPen(self.textPen())
            for place, _, text in textSpecs:
                p.save()
                p.translate(place.center().x(), place.top())
                p.rotate(90)
                p.drawText(QRectF(0, -50, 1000, 100), _UPRIGHT, self.upright[int(text)])
                p.restore()


_UPRIGHT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class _BarSample(pg.ItemSample):  # type: ignore[misc]
    """A bar in the legend, without the line that stands for curves."""

    def paint(self, painter: QPainter, *_: Any) -> None:
        painter.setPen(self.item.opts["pen"])
        painter.setBrush(self.item.opts["brush"])
        painter.drawRect(QRectF(3, 3, 15, 15))


class ChartView(pg.GraphicsLayoutWidget):  # type: ignore[misc]
    """One chart with its legend on the right.

    Parameters
    ----------
    palette : QPalette, optional
        Colours in place of the desktop's, such as a light ground for files.
    """

    def __init__(self, palette: QPalette | None = None, parent: Any = None) -> None:
        self._own = palette  # before Qt asks for it
        self._chart: Chart | None = None
        super().__init__(parent)
        self.setObjectName("benchPlot")
        self.setAccessibleName("Plot")
        self.setMinimumSize(320, 200)

    def show_chart(self, shown: Chart | None) -> None:
        """Draw a chart in place of the one before; None for an empty plot."""
        self._chart = shown
        palette = self._own or self.palette()
        self.clear()
        self.setBackground(palette.color(QPalette.ColorRole.Base))
        self.setAccessibleDescription(shown.title if shown else "")
        if shown is None:
            return
        axes = {side: _Axis(side) for side in ("left", "bottom")}
        plot = self.addPlot(0, 0, axisItems=axes)
        plot.setMenuEnabled(False)
        plot.hideButtons()
        text = palette.color(QPalette.ColorRole.Text)
        plot.setTitle(shown.title, color=text, size="11pt")
        for side, label in (("left", shown.y), ("bottom", shown.x)):
            axis = axes[side]
            axis.setPen(theme.quiet_text(palette))
            axis.setTextPen(text)
            axis.enableAutoSIPrefix(False)
            if label:
                axis.setLabel(label, color=text.name())
        plot.showGrid(x=not shown.groups, y=True, alpha=0.2)
        draw = _BarPainter if shown.groups else _CurvePainter
        entries = draw(shown, plot, palette).draw()
        self._add_legend(entries, text)
        if shown.note:
            note = html.escape(shown.note).replace("\n", "<br>")
            quiet = theme.quiet_text(palette)
            self.addLabel(note, 1, 0, colspan=2, color=quiet, size="8pt", justify="left")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._own is None and self._chart:
            self.show_chart(self._chart)

    def _add_legend(self, entries: list[tuple[Any, str]], text: QColor) -> None:
        legend = pg.LegendItem(labelTextColor=text, labelTextSize="9pt", verSpacing=-3)
        room = self.addViewBox(0, 1, enableMouse=False, enableMenu=False)
        legend.setParentItem(room)
        for item, name in entries:
            legend.addItem(item, name)
        # What PyQtGraph makes of it gets higher with each entry, until the last are cut off.
        least = legend.layout.effectiveSizeHint(Qt.SizeHint.MinimumSize)
        legend.setGeometry(QRectF(QPointF(), least))
        room.setFixedWidth(legend.boundingRect().width() + 8)
        legend.anchor((0, 0), (0, 0), (4, 24))

    def paint(self, painter: QPainter) -> None:
        """Draw the chart onto something of the view's size."""
        # Items learn their places when the view is shown; nobody has to see that.
        self.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.show()
        for _ in range(2):  # axes make room for their texts, and move what is beside them
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
            self.grab()
        area = QRectF(self.rect())
        painter.fillRect(area, self.backgroundBrush())
        self.scene().render(painter, area, area)
        self.hide()


class _Painter:
    """Puts the items of a chart into a plot."""

    def __init__(self, shown: Chart, plot: Any, palette: QPalette) -> None:
        self._chart, self._plot, self._palette = shown, plot, palette

    def _style(self, series: Series) -> Style:
        return Style(series.style, series.theirs, self._palette)

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

    def _whisker(self, x: float, point: Point, colour: QColor, to: Any) -> None:
        if point.high > point.low:
            pen = pg.mkPen(colour, width=1.5)
            self._plot.plot([x, x], [to(point.low), to(point.high)], pen=pen)


def staggered(centres: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Return the line of each name, from 0, so that on no line one touches the one before.

    Parameters
    ----------
    centres, widths : sequence of float
        Of the names, in pixels, from left to right.
    """
    ends: list[float] = []
    lines = []
    for centre, width in zip(centres, widths, strict=True):
        left = centre - width / 2
        line = next((line for line, end in enumerate(ends) if end <= left), len(ends))
        ends[line : line + 1] = [centre + width / 2]
        lines.append(line)
    return lines


class _CurvePainter(_Painter):
    def draw(self) -> list[tuple[Any, str]]:
        entries = []
        for series in self._chart.series:
            style = self._style(series)
            xs, ys = ([_log(value) for value in values] for values in _coordinates(series))
            self._dots(xs, series, style.colour, _log)
            for point in series.points:
                self._whisker(_log(point.x), point, style.colour, _log)
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

    def _name_sizes(self, axis: _Axis) -> None:
        """Write the names of the ticks, on lines below each other where they would touch."""
        metrics = QFontMetrics(QApplication.font())
        places = [_log(x) for x, _ in self._chart.ticks]
        legend = max(metrics.horizontalAdvance(self._name(each)) for each in self._chart.series)
        view = self._plot.getViewWidget().width() - _AXIS_WIDTH - _SAMPLE_WIDTH - legend
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


class _BarPainter(_Painter):
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
                self._dots(xs, series, self._palette.color(QPalette.ColorRole.Text), self._to)
            for x, point, height in zip(xs, series.points, heights, strict=True):
                foot[int(point.x)] += height
                if not chart_.stacked:
                    text = self._palette.color(QPalette.ColorRole.Text)
                    self._whisker(x, point, text, self._to)
                    if bars_in_all <= _MOST_TEXTS:
                        above = max(height, self._to(point.high), ground)
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
        self._plot.setXRange(-0.5, len(chart_.groups) - 0.5, padding=0.02)
        values = [(p.low, p.high, *p.repeats) for s in chart_.series for p in s.points]
        tops = foot if chart_.stacked else [self._to(max(each)) for each in values]
        lows = [self._to(min(each)) for each in values] if chart_.log else []
        top, bottom = max([ground, *tops]), min([ground, *lows])
        room = (top - bottom) or 1.0
        below = 0.04 * room * (bottom < ground)
        above = (_ROOM_UPRIGHT if upright else _ROOM_LEVEL) * room
        self._plot.setYRange(bottom - below, top + above, padding=0)
        return entries

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
        """Return what the legend says of the two parts of bars."""
        grey, entries = theme.quiet_text(self._palette), []
        for strength, text in ((_LIGHT, "light: computing"), (1.0, "dark: transfers, rest of run")):
            colour = QColor(grey)
            colour.setAlpha(round(255 * strength))
            sample = pg.BarGraphItem(x=[0], height=[1], width=1, brush=colour, pen=pg.mkPen(grey))
            entries.append((_BarSample(sample), text))
        return entries

    def _name_groups(self, axis: _Axis) -> None:
        """Write the names of the groups so that none touches the next."""
        names, metrics = self._chart.groups, QFontMetrics(QApplication.font())
        view = self._plot.getViewWidget()
        legend = max(metrics.horizontalAdvance(self._name(each)) for each in self._chart.series)
        room = (view.width() - _AXIS_WIDTH - _SAMPLE_WIDTH - legend) / len(names)
        room -= metrics.horizontalAdvance(" ")
        if max(map(metrics.horizontalAdvance, " ".join(names).split())) > room:
            most, end = int(_MOST_UPRIGHT * view.height()), Qt.TextElideMode.ElideRight
            axis.upright = tuple(metrics.elidedText(name, end, most) for name in names)
            axis.setHeight(max(map(metrics.horizontalAdvance, axis.upright)) + 10)
            names = tuple(map(str, range(len(names))))
        else:
            names = tuple(_broken(name, room, metrics) for name in names)
            lines = 1 + max(name.count("\n") for name in names)
            axis.setHeight(lines * metrics.height() + 16)
        axis.setTicks([list(enumerate(names))])

    def _to(self, value: float) -> float:
        return _log(value) if self._chart.log else value

    def _write(self, x: float, y: float, text: str, upright: bool = False) -> None:
        colour = self._palette.color(QPalette.ColorRole.Text)
        anchor = (0, 0.5) if upright else (0.5, 1)
        item = pg.TextItem(text, colour, anchor=anchor, angle=90 if upright else 0)
        item.setPos(x, y)
        self._plot.addItem(item, ignoreBounds=True)


def _broken(name: str, room: float, metrics: QFontMetrics) -> str:
    """Return the name of a group on lines of at most so many pixels, each part on its own."""
    if metrics.horizontalAdvance(name) <= room:
        return name
    lines: list[str] = []
    for part in name.split(", "):
        lines.append("")
        for word in f"{part},".split():
            longer = f"{lines[-1]} {word}".lstrip()
            if metrics.horizontalAdvance(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(word)
    return "\n".join(filter(None, lines)).removesuffix(",")


def _coordinates(series: Series) -> tuple[list[float], list[float]]:
    return [point.x for point in series.points], [point.y for point in series.points]


def _power(exponent: float) -> str:
    """Return a power of ten as a number; nothing for those between 1, 2 and 5, which crowd."""
    if f"{10**exponent:e}"[0] not in "125":
        return ""
    return f"{10**exponent:,.0f}" if exponent > -0.01 else f"{10**exponent:.3g}"


def _log(value: float) -> float:
    return math.log10(max(value, 1e-12))


# Files ---------------------------------------------------------------------------------


def light() -> QPalette:
    """Return colours for paper."""
    palette = QPalette(QColor("#f0f0f0"))
    palette.setColor(QPalette.ColorRole.Base, QColor("white"))
    palette.setColor(QPalette.ColorRole.Text, QColor("black"))
    return palette


def save_chart(shown: Chart, path: Path) -> None:
    """Draw a chart, dark on white, into a PNG or, by the name's ending, an SVG.

    Raises
    ------
    AppError
        If the file cannot be written.
    """
    view = ChartView(light())
    view.resize(_FILE_SIZE)
    view.show_chart(shown)
    drawn = _as_svg(view, shown.title) if path.suffix.lower() == ".svg" else _as_png(view)
    try:
        path.write_bytes(drawn)
    except OSError as error:
        raise AppError(
            f"“{path}” cannot be written: {error.strerror}.", "Choose another place."
        ) from None


def _as_svg(view: ChartView, title: str) -> bytes:
    buffer = QBuffer()
    target = QSvgGenerator()
    target.setOutputDevice(buffer)
    target.setResolution(view.logicalDpiX())
    target.setSize(_FILE_SIZE)
    target.setViewBox(QRectF(view.rect()))
    target.setTitle(title)
    painter = QPainter(target)
    view.paint(painter)
    painter.end()
    return bytes(buffer.data().data())


def _as_png(view: ChartView) -> bytes:
    image = QImage(_FILE_SIZE * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.paint(painter)
    painter.end()
    buffer = QBuffer()
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def create_drawer() -> Any:
    """Return what has to live while charts are drawn into files: no screen is needed."""
    return QApplication.instance() or QApplication(["kernelscope", "-platform", "offscreen"])


def export(
    report: Report, folder: Path, announce: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """Draw every plot of a report into a folder, as PNG and SVG; return the files.

    Parameters
    ----------
    announce : callable
        Called before each plot with how far it is: ``3/40  Drawing speed-up…``.

    Raises
    ------
    AppError
        If a file cannot be written.
    """
    app = create_drawer()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AppError(f"“{folder}” cannot be made: {error.strerror}.") from None
    paths = []
    plots = [(plot, choice) for plot in Plot for choice in choices(plot, report.rows)]
    for number, (plot, choice) in enumerate(plots, start=1):
        announce(f"{number}/{len(plots)}  Drawing {plot}, {choice}")
        title = f"{plot} {choice}".lower().replace("×", "x")
        name = re.sub(r"\W+", "-", title).strip("-")
        for suffix in (".png", ".svg"):
            path = folder / f"{name}{suffix}"
            save_chart(chart(plot, choice, report.rows), path)
            paths.append(path)
    del app
    return paths
