"""The plot of histograms: curves, a strip of the colours that values are drawn in, and handles."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
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

from kernelscope.gui.docks.picture_inks import (
    CHANNEL_STYLES,
    PICTURE_STYLES,
    channel_colour,
    picture_colour,
)
from kernelscope.gui.model import histogram_plot as model
from kernelscope.gui.model.colour_maps import ColourMap, table
from kernelscope.gui.model.display import Display, short
from kernelscope.gui.model.histogram_plot import Curve, Handle, HistogramCurves, ValueAxis
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed

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

    stepped = Signal(int)  # small steps, to the right if more than 0
    # The left button went down on it and up again.
    grabbed = Signal()
    dragged = Signal(float)  # to this place in the parent, in pixels from the left
    dropped = Signal()
    reset = Signal()  # a double click or Enter
    focused = Signal()  # it has the focus or has lost it

    def __init__(self, handle: Handle, parent: QWidget) -> None:
        super().__init__(parent)
        self.handle = handle
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
            self.stepped.emit(steps * _COARSE if larger and abs(steps) == 1 else steps)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.reset.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._offset, self._held = event.position().x() - WIDTH / 2, True
            self.raise_()
            self.grabbed.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._held:
            self.dragged.emit(self.mapToParent(event.position()).x() - self._offset)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._held and event.button() == Qt.MouseButton.LeftButton:
            self._held = False
            self.dropped.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.reset.emit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.raise_()
        self.update()
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()
        self.focused.emit()

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
_TOP = 5  # pixels above the highest curve
_BEYOND = 1.04  # height up to which values beyond the scale are drawn


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
        self.is_whole, self._colour_map = False, ColourMap.GREY
        self.value_pointed_at: float | None = None
        self._held: Handle | None = None
        self._pending: Display | None = None
        self.frame = QTimer(self, singleShot=True, interval=_FRAME_MS)
        self.frame.timeout.connect(self._pass_on)
        self.handles = {handle: LevelHandle(handle, self) for handle in Handle}
        for handle, widget in self.handles.items():
            widget.stepped.connect(partial(self._step, handle))
            widget.grabbed.connect(partial(self._grab, handle))
            widget.dragged.connect(partial(self._drag, handle))
            widget.dropped.connect(self._drop)
            widget.reset.connect(self.reset)
            widget.focused.connect(self.pointed)

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
        self._place_handles()

    def show_display(
        self, display: Display | None, colour_map: ColourMap = ColourMap.GREY, *, whole: bool
    ) -> None:
        """Place the handles; those that are dragged stay under the cursor.

        `colour_map`: colours of the strip. `whole`: handles stop at whole numbers.
        """
        self.is_whole, self._colour_map = whole, colour_map
        if self._pending is None:
            self.display = display
        self._place_handles()

    # --- handles ---

    def _step(self, handle: Handle, steps: int) -> None:
        if self.display is not None and self.plot is not None:
            axis, whole = self.plot.axis, self.is_whole
            self._choose(model.stepped(self.display, handle, steps, axis, whole=whole))

    def _grab(self, handle: Handle) -> None:
        self._held = handle
        self.pointed.emit()

    def _drag(self, handle: Handle, x: float) -> None:
        if self.display is not None and self.plot is not None:
            axis = self.plot.axis
            value = min(max(self.value_at(x), axis.low), axis.high)
            self._choose(model.moved(self.display, handle, value, axis, whole=self.is_whole))

    def _drop(self) -> None:
        self._held = None
        self._pass_on()
        self.dropped.emit()
        self.pointed.emit()

    def _choose(self, display: Display) -> None:
        """Choose a display now, or with the next frame."""
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

    def _place_handles(self) -> None:
        for handle, widget in self.handles.items():
            known = self.plot is not None and self.display is not None
            widget.setVisible(known)
            if self.display is not None and known:
                x = self.x_of(model.place_of(self.display, handle))
                area = self.area
                x = min(max(x, area.left()), area.right())
                widget.move(round(x - WIDTH / 2), round(area.bottom()) + _STRIP - 4)
                widget.setAccessibleDescription(model.describe(self.display, handle))
        self.update()

    # --- places ---

    @property
    def area(self) -> QRectF:
        """The part in which curves are drawn."""
        metrics = QFontMetrics(self._small_font())
        marks = (0.0,) if self.plot is None else self.plot.scale.marks(self.plot.top)
        left = max((metrics.horizontalAdvance(_count(mark)) for mark in marks), default=0) + 6
        left = max(left, WIDTH // 2 + 1)
        bottom = _STRIP + HEIGHT - 4 + metrics.height()
        width, height = self.width() - left - WIDTH / 2 - 1, self.height() - _TOP - bottom
        return QRectF(left, _TOP, max(width, 1.0), max(height, 1.0))

    def x_of(self, value: float) -> float:
        """Return where a value of the axis is, in pixels from the left."""
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
        self._place_handles()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._place_handles()

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

    # --- painting ---

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._small_font())
        area = self.area
        painter.fillRect(area, self.palette().color(QPalette.ColorRole.Base))
        if self.plot is None:
            return
        self._paint_counts(painter, area, self.plot)
        self._paint_values(painter, area, self.plot)
        painter.save()
        painter.setClipRect(area)
        if self.display is not None:
            self._paint_window(painter, area, self.display)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, curve in enumerate(self.plot.curves):
            painter.setPen(pen_of(curve, number, self.palette()))
            painter.drawPolyline(self._line(curve, self.plot, area))
        painter.restore()
        if self.display is not None:
            self._paint_strip(painter, area, self.plot.axis, self.display)

    def _line(self, curve: Curve, plot: HistogramCurves, area: QRectF) -> QPolygonF:
        heights = np.minimum(plot.heights(curve), _BEYOND)
        shares = (curve.edges - plot.axis.low) / plot.axis.span
        across = np.repeat(area.left() + shares * area.width(), 2)[1:-1]
        down = np.repeat(area.bottom() - heights * (area.height() - 1), 2)
        return QPolygonF([QPointF(x, y) for x, y in zip(across, down, strict=True)])

    def _paint_counts(self, painter: QPainter, area: QRectF, plot: HistogramCurves) -> None:
        quiet, metrics = theme.quiet_text(self.palette()), painter.fontMetrics()
        line = QColor(quiet)
        line.setAlpha(60)
        marks = plot.scale.marks(plot.top)
        heights = plot.scale.heights(np.array(marks, float), plot.top)
        free = area.bottom() + metrics.height()
        for mark, height in zip(marks, heights, strict=True):
            y = area.bottom() - height * (area.height() - 1)
            if y + metrics.height() > free + 1:
                continue
            free = y
            painter.setPen(line)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(quiet)
            box = QRectF(0, y - metrics.height() / 2, area.left() - 4, metrics.height())
            box.moveTop(max(box.top(), 0.0))
            painter.drawText(box, _RIGHT, _count(mark))

    def _paint_values(self, painter: QPainter, area: QRectF, plot: HistogramCurves) -> None:
        metrics = painter.fontMetrics()
        painter.setPen(theme.quiet_text(self.palette()))
        top, end = area.bottom() + _STRIP + HEIGHT - 4, -1.0
        for value in model.ticks(*plot.axis, max(2, int(area.width() / 70))):
            text, x = short(value), self.x_of(value)
            width = metrics.horizontalAdvance(text)
            left = min(max(x - width / 2, 0), self.width() - width)
            if left > end + 6:
                painter.drawText(QPointF(left, top + metrics.ascent()), text)
                painter.drawLine(QPointF(x, area.bottom() - 3), QPointF(x, area.bottom()))
                end = left + width

    def _paint_window(self, painter: QPainter, area: QRectF, display: Display) -> None:
        """Shade the values that are drawn black or white, and draw a line at each handle."""
        shade = QColor(theme.quiet_text(self.palette()))
        shade.setAlpha(36)
        low, high = self.x_of(display.low), self.x_of(display.high)
        for left, right in ((area.left(), low), (high, area.right())):
            if right > left:
                painter.fillRect(QRectF(left, area.top(), right - left, area.height()), shade)
        for handle in Handle:
            x = self.x_of(model.place_of(display, handle))
            active = handle is self.active_handle
            colour = self.palette().color(QPalette.ColorRole.Highlight)
            style = Qt.PenStyle.DotLine if handle is Handle.MIDDLE else Qt.PenStyle.SolidLine
            painter.setPen(QPen(colour if active else theme.quiet_text(self.palette()), 1, style))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))

    def _paint_strip(
        self, painter: QPainter, area: QRectF, axis: ValueAxis, display: Display
    ) -> None:
        count = max(int(area.width() * self.devicePixelRatioF()), 1)
        values = np.linspace(axis.low, axis.high, count).astype(np.float32)
        colours = np.empty((1, count, 4), np.uint8)
        colours[0, :, :3] = table(self._colour_map)[display.steps(values)][:, ::-1]
        colours[..., 3] = 255
        picture = QImage(colours.data, count, 1, 4 * count, QImage.Format.Format_RGB32)
        strip = QRectF(area.left(), area.bottom() + 1, area.width(), _STRIP - 1)
        painter.drawImage(strip, picture)
        painter.setPen(theme.quiet_text(self.palette()))
        painter.drawRect(strip)


def pen_of(curve: Curve, number: int, palette: QPalette) -> QPen:
    """Return colour and line style of the curve of this number."""
    if curve.channel:
        style, _ = CHANNEL_STYLES[number]
        return QPen(channel_colour(curve.channel, palette), 1.4, style)
    style, _ = PICTURE_STYLES[curve.picture]
    return QPen(picture_colour(curve.picture, palette), 1.4, style)


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def _count(count: float) -> str:
    """Return a count in brief: 950, 12k, 3.4M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"
