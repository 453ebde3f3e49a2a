"""The plot of histograms: curves, a strip of the colours that values are drawn in, and handles."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontMetrics,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model import histogram_plot as model
from kernelscope.gui.model.display import Colouring, ColourMap, Display, short, table
from kernelscope.gui.model.histogram_plot import Curve, Handle, HistogramCurves, ValueAxis
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.parts import dressed, in_column, look_at_every_item
from kernelscope.gui.widgets.theme import (
    CHANNEL_STYLES,
    PICTURE_STYLES,
    channel_colour,
    picture_colour,
)
from kernelscope.gui.widgets.tiles import image_of

WIDTH, HEIGHT = 15, 17  # in pixels; the tip is in the middle of the upper edge
_COARSE = 10  # small steps in one large step

_STEPS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_PageDown: -_COARSE,
    Qt.Key.Key_PageUp: _COARSE,
}

_FILLS = {Handle.LOW: "#000000", Handle.MIDDLE: "#808080", Handle.HIGH: "#ffffff"}

_TIPS = {
    Handle.LOW: "The value that is drawn black",
    Handle.MIDDLE: "Gamma: the value that is drawn in the middle between black and white",
    Handle.HIGH: "The value that is drawn white",
}


class LevelHandle(QWidget):
    """Black and white level are arrows, gamma is a diamond."""

    def __init__(self, handle: Handle, plot: HistogramPlot) -> None:
        super().__init__(plot)
        self.handle, self._plot = handle, plot
        self._offset = 0.0
        self._held = False
        dressed(
            self,
            f"handle{handle.name.capitalize()}",
            str(handle),
            tip=f"{_TIPS[handle]}. Drag, or use the arrow keys (Shift: larger steps); a double "
            "click or Enter chooses the contrast automatically",
        )
        self.setFixedSize(WIDTH, HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.SizeHorCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = _STEPS.get(Qt.Key(event.key()))
        if steps is not None:
            larger = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self._plot.step(self.handle, steps * _COARSE if larger and abs(steps) == 1 else steps)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._plot.reset.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._offset, self._held = event.position().x() - WIDTH / 2, True
            self.raise_()
            self._plot.grab_handle(self.handle)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._held:
            self._plot.drag(self.handle, self.mapToParent(event.position()).x() - self._offset)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._held and event.button() == Qt.MouseButton.LeftButton:
            self._held = False
            self._plot.drop()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._plot.reset.emit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.raise_()
        self.update()
        self._plot.show_focus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()
        self._plot.show_focus()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle, bottom, shoulder = WIDTH / 2, HEIGHT - 1.5, 6.5
        if self.handle is Handle.MIDDLE:
            half = HEIGHT / 2
            places = [(middle, 1.0), (12.5, half), (middle, bottom), (2.5, half)]
        else:
            places = [(middle, 1.0), (13.0, shoulder), (13.0, bottom), (2.0, bottom)]
            places.append((2.0, shoulder))
        palette = self.palette()
        role = QPalette.ColorRole.Highlight if self.hasFocus() else QPalette.ColorRole.Text
        painter.setPen(QPen(palette.color(role), 2.6 if self.hasFocus() else 1.2))
        painter.setBrush(QColor(_FILLS[self.handle]))
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in places]))


_FRAME_MS = 16  # a drag chooses another display no more often: once for each frame of the screen
_STRIP = 10  # height of the strip of colours
_BELOW = _STRIP + HEIGHT - 4  # pixels between the curves and the texts of the values
_TOP = 5  # pixels above the highest curve
_BEYOND = 1.04  # height up to which values beyond the scale are drawn


class _Graph(pg.PlotWidget):  # type: ignore[misc]
    """Curves over the axis of values, with the strip of colours below; takes no events."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, enableMenu=False)
        look_at_every_item(self)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hideButtons()
        self.strip = QImage()
        box, plot = self.getViewBox(), self.getPlotItem()
        box.disableAutoRange()
        box.setDefaultPadding(0)
        self.left, self.bottom = plot.getAxis("left"), plot.getAxis("bottom")
        self.left.setStyle(tickLength=0, tickTextOffset=4, hideOverlappingLabels=False)
        self.bottom.setStyle(tickLength=-3, tickTextOffset=_BELOW, hideOverlappingLabels=False)
        for axis in (self.left, self.bottom):
            axis.enableAutoSIPrefix(False)
        plot.showAxis("right")  # has the lines: with lines, an axis drops texts at its ends
        self.grid = plot.getAxis("right")
        self.grid.setStyle(showValues=False, tickLength=0)
        self.grid.setWidth(0)
        self.grid.setGrid(60)
        self.grid.setPen(pg.mkPen(None))
        self.shades = [pg.LinearRegionItem(movable=False, pen=pg.mkPen(None)) for _ in range(2)]
        self.lines = {handle: pg.InfiniteLine(angle=90) for handle in Handle}
        for item in (*self.shades, *self.lines.values()):
            self.addItem(item, ignoreBounds=True)
        self.curves: list[pg.PlotCurveItem] = []

    def show_curves(self, count: int) -> None:
        """Have this many curves in view: adding one takes PyQtGraph longer than drawing it."""
        while len(self.curves) < count:
            self.curves.append(pg.PlotCurveItem())
            self.addItem(self.curves[-1], ignoreBounds=True)
        for number, curve in enumerate(self.curves):
            curve.setVisible(number < count)

    @property
    def area(self) -> QRectF:
        self.getPlotItem().layout.activate()
        return QRectF(self.getViewBox().sceneBoundingRect())

    def drawForeground(self, painter: QPainter, _: QRectF | QRect) -> None:
        if self.strip.isNull():
            return
        area = self.area
        place = QRectF(area.left(), area.bottom() + 1, area.width(), _STRIP - 1)
        painter.drawImage(place, self.strip)
        painter.setPen(theme.quiet_text(self.palette()))
        painter.drawRect(place)


class HistogramPlot(QWidget):
    """Draws a plot, and lets the user move level, window and gamma."""

    chosen = Signal(object)  # `Display`: No more than once in a frame
    reset = Signal()  # a double click: contrast is to be chosen automatically
    dropped = Signal()  # the user let go of a handle
    pointed = Signal()  # another value is under the cursor, or another handle has the focus

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        dressed(self, "histogramPlot", "Histogram of input and output")
        self.setMouseTracking(True)
        self.plot: HistogramCurves | None = None
        self.display: Display | None = None
        self.is_whole = False
        self._colour_map: Colouring = ColourMap.GREY
        self.value_pointed_at: float | None = None
        self._held: Handle | None = None
        self._pending: Display | None = None
        self.frame = QTimer(self, singleShot=True, interval=_FRAME_MS)
        self.frame.timeout.connect(self._pass_on)
        self._graph = _Graph(self)
        in_column(self._graph, of=self, margins=0)
        self.handles = {handle: LevelHandle(handle, self) for handle in Handle}
        self._graph.getViewBox().sigResized.connect(self._place_handles)
        self._style()
        stylist().restyled.connect(self._style)

    # --- content ---

    @property
    def is_held(self) -> bool:
        """Whether a handle is being dragged; the axis has to stay then."""
        return self._held is not None

    @property
    def active_handle(self) -> Handle | None:
        if self._held is not None:
            return self._held
        return next((each for each, widget in self.handles.items() if widget.hasFocus()), None)

    def show_plot(self, plot: HistogramCurves | None) -> None:
        self.plot = plot
        self.setAccessibleDescription(plot.note() if plot is not None else "")
        self._draw()

    def show_display(
        self, display: Display | None, colour_map: Colouring = ColourMap.GREY, *, whole: bool
    ) -> None:
        """Place the handles, but for dragged ones; `whole`: they stop at whole numbers."""
        self.is_whole, self._colour_map = whole, colour_map
        if self._pending is None:
            self.display = display
        self._place_handles()

    # --- handles ---

    def step(self, handle: Handle, steps: int) -> None:
        if self.display is not None and self.plot is not None:
            axis, whole = self.plot.axis, self.is_whole
            self._choose(model.stepped(self.display, handle, steps, axis, whole=whole))

    def grab_handle(self, handle: Handle) -> None:
        self._held = handle
        self.pointed.emit()

    def drag(self, handle: Handle, x: float) -> None:
        if self.display is not None and self.plot is not None:
            axis = self.plot.axis
            value = min(max(self.value_at(x), axis.low), axis.high)
            self._choose(model.moved(self.display, handle, value, axis, whole=self.is_whole))

    def drop(self) -> None:
        self._held = None
        self._pass_on()
        self.dropped.emit()
        self.pointed.emit()

    def _choose(self, display: Display) -> None:
        if display == self.display:
            return
        self.display = self._pending = display
        self._place_handles()
        self.pointed.emit()
        if not self.frame.isActive():
            self._pass_on()

    def _pass_on(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self.frame.start()
            self.chosen.emit(pending)

    def show_focus(self) -> None:
        self._place_handles()
        self.pointed.emit()

    def _place_handles(self, *_: object) -> None:
        graph, known = self._graph, self.plot is not None and self.display is not None
        for item in (*graph.shades, *graph.lines.values()):
            item.setVisible(known)
        for widget in self.handles.values():
            widget.setVisible(known)
        if self.display is None or self.plot is None:
            graph.strip = QImage()
            return
        area, axis = self.area, self.plot.axis
        graph.shades[0].setRegion((axis.low, max(axis.low, self.display.low)))
        graph.shades[1].setRegion((min(axis.high, self.display.high), axis.high))
        quiet, accent = theme.quiet_text(self.palette()), self.palette().highlight().color()
        for handle, widget in self.handles.items():
            value = model.place_of(self.display, handle)
            x = min(max(self.x_of(value), area.left()), area.right())
            widget.move(round(x - WIDTH / 2), round(area.bottom()) + _STRIP - 4)
            widget.setAccessibleDescription(model.describe(self.display, handle))
            style = Qt.PenStyle.DotLine if handle is Handle.MIDDLE else Qt.PenStyle.SolidLine
            ink = accent if handle is self.active_handle else quiet
            graph.lines[handle].setPen(QPen(ink, 0, style))
            graph.lines[handle].setValue(value)
        graph.strip = self._colours(area, axis, self.display)
        graph.viewport().update()

    def _colours(self, area: QRectF, axis: ValueAxis, display: Display) -> QImage:
        count = max(int(area.width() * self.devicePixelRatioF()), 1)
        values = np.linspace(axis.low, axis.high, count).astype(np.float32)
        colours = np.empty((1, count, 4), np.uint8)
        colours[0, :, :3] = table(self._colour_map)[display.steps(values)][:, ::-1]
        colours[..., 3] = 255
        return image_of(colours, QImage.Format.Format_RGB32)

    # --- places ---

    @property
    def area(self) -> QRectF:
        return self._graph.area

    def x_of(self, value: float) -> float:
        axis = self.plot.axis if self.plot is not None else ValueAxis(0, 1)
        return self.area.left() + axis.share(value) * self.area.width()

    def value_at(self, x: float) -> float:
        axis = self.plot.axis if self.plot is not None else ValueAxis(0, 1)
        return axis.value((x - self.area.left()) / self.area.width())

    def minimumSizeHint(self) -> QSize:
        metrics = QFontMetrics(self._small_font())
        return QSize(160, 2 * metrics.height() + _TOP + _STRIP + HEIGHT + 20)

    def sizeHint(self) -> QSize:
        return QSize(420, 180)

    def _small_font(self) -> QFont:
        font = QFont(self.font())
        if font.pointSizeF() > 0:
            font.setPointSizeF(0.85 * font.pointSizeF())
        return font

    # --- events ---

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._draw()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        inside = self.area.left() <= event.position().x() <= self.area.right()
        self.value_pointed_at = self.value_at(event.position().x()) if inside else None
        self.pointed.emit()

    def leaveEvent(self, event: QEvent) -> None:
        self.value_pointed_at = None
        self.pointed.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.reset.emit()

    # --- drawing ---

    def _style(self) -> None:
        graph, palette, quiet = self._graph, self.palette(), theme.quiet_text(self.palette())
        shade = QColor(quiet)
        shade.setAlpha(36)
        graph.setBackground(palette.color(QPalette.ColorRole.Window))
        graph.getViewBox().setBackgroundColor(palette.color(QPalette.ColorRole.Base))
        graph.grid.setTickPen(quiet)
        top = max(_TOP, QFontMetrics(self._small_font()).height() / 2)  # half of the topmost text
        graph.getPlotItem().layout.setContentsMargins(0, top, WIDTH / 2 + 1, 0)
        for axis in (graph.left, graph.bottom):
            axis.setStyle(tickFont=self._small_font())
            axis.setTextPen(quiet)
            axis.setPen(quiet)
        for each in graph.shades:
            each.setBrush(shade)
        self._draw()

    def _draw(self) -> None:
        graph, plot, metrics = self._graph, self.plot, QFontMetrics(self._small_font())
        counts = self._counts(plot, metrics) if plot is not None else []
        widest = max((metrics.horizontalAdvance(text) for _, text in counts), default=0)
        for axis in (graph.left, graph.grid):
            axis.setTicks([counts])
        graph.left.setWidth(max(widest + 6, WIDTH // 2 + 1))
        graph.bottom.setHeight(_BELOW + metrics.height())
        for axis in (graph.left, graph.bottom, graph.grid):
            axis.setVisible(plot is not None)
        curves = plot.curves if plot is not None else ()
        graph.show_curves(len(curves))
        if plot is not None:
            edge = 1 / max(self.area.height(), 1)  # a pixel: lines at both ends are whole
            graph.setRange(xRange=plot.axis, yRange=(-edge, 1 + edge), padding=0)
            room = max(2, int(self.area.width() / 70))
            ticks = [(value, short(value)) for value in model.ticks(*plot.axis, room)]
            graph.bottom.setTicks([ticks])
            for number, (item, curve) in enumerate(zip(graph.curves, curves, strict=False)):
                heights = np.minimum(plot.heights(curve), _BEYOND)
                pen = pen_of(curve, number, self.palette())
                item.setData(curve.edges, heights, stepMode="center", pen=pen, antialias=True)
        self._place_handles()

    def _counts(self, plot: HistogramCurves, metrics: QFontMetrics) -> list[tuple[float, str]]:
        """Return the heights of counts with their texts, as far as these do not touch."""
        marks = plot.scale.marks(plot.top)
        heights = plot.scale.heights(np.array(marks, float), plot.top)
        apart = metrics.height() / max(self.height() - _TOP - _BELOW - metrics.height(), 1)
        found: list[tuple[float, str]] = []
        for mark, height in zip(marks, heights, strict=True):
            if not found or height - found[-1][0] >= apart:
                found.append((float(height), _count(mark)))
        return found


def pen_of(curve: Curve, number: int, palette: QPalette) -> QPen:
    if curve.channel:
        style, _ = CHANNEL_STYLES[number]
        ink = channel_colour(curve.channel, palette)
    else:
        style, _ = PICTURE_STYLES[curve.picture]
        ink = picture_colour(curve.picture, palette)
    pen: QPen = pg.mkPen(ink, width=1.4, style=style)
    return pen


def _count(count: float) -> str:
    """Return a count in brief: 950, 12k, 3.4M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"
