"""One pixel under X-ray: which cells its thread reads, step by step, from which memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QTabWidget,
    QWidget,
)

from kernelscope.backends.cuda.sources import source_files
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.backends.trial.emulated import VERSION
from kernelscope.base.errors import AppError
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.trials import Version
from kernelscope.gui.model.xray import SIGNS, Cell, Xray, compare, side_by_side
from kernelscope.gui.tools.code_view import CodeView
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    labelled,
    push_button,
    refill,
    text_label,
    tool_splitter,
)
from kernelscope.gui.widgets.theme import set_role
from kernelscope.gui.widgets.tool_window import FigureTable, ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import GLOBAL, Level
from kernelscope.traffic.trace import Event, MemorySpace

_COLOURS = {
    MemorySpace.GLOBAL: "#ff9d3c",
    MemorySpace.SHARED: "#4cc3ff",
    MemorySpace.TEXTURE: "#8be36a",
    MemorySpace.CONSTANT: "#e58bff",
}
_MOST = 48  # cells in a row: more would be too small to see
_LARGEST = 40  # side of a cell in pixels: a larger one would leave no room for others
_NUMBERED = 14  # least side of a cell in pixels whose order is written


class XrayView(QWidget):
    clicked = Signal(int, int)  # column and row of a cell

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "xrayPicture", "Cells that the thread reads")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._xray: Xray | None = None
        self._pixel: Cell = (0, 0)
        self._pixels: NDArray[np.uint8] = np.zeros((0, 0), np.uint8)
        self._done = 0
        self.setToolTip("Click on a pixel to see the thread that computes it")
        self.area = (0, 0, 0, 0)
        """First column and row, and those behind the last, of the cells in view."""

    def sizeHint(self) -> QSize:
        unit = self.fontMetrics().averageCharWidth()
        return QSize(80 * unit, 50 * unit)

    def show_xray(self, xray: Xray | None, pixel: Cell, pixels: NDArray[np.uint8]) -> None:
        """Show a thread that computes `pixel`; `pixels` are the grey values of the input."""
        self._xray, self._pixel, self._pixels, self._done = xray, pixel, pixels, 0
        self.area = self._visible()
        self.update()

    def show_steps(self, done: int) -> None:
        self._done = done
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.area = self._visible()

    def _visible(self) -> tuple[int, int, int, int]:
        """Return the cells to show: those that are read, and as many around as can be legible."""
        height, width = self._pixels.shape
        if self._xray is None:
            return 0, 0, 0, 0
        cells = {self._pixel, *self._xray.cells(len(self._xray.steps))}
        lows = [max(min(cell[axis] for cell in cells) - 1, 0) for axis in (0, 1)]
        highs = [
            min(max(cell[axis] for cell in cells) + 2, length)
            for axis, length in ((0, width), (1, height))
        ]
        counts = [min(high - low, _MOST) for low, high in zip(lows, highs, strict=True)]
        room = self.width(), self.height()
        side = min(_LARGEST, *(each / count for each, count in zip(room, counts, strict=True)))
        sides = []
        for axis, length in ((0, width), (1, height)):
            shown = min(max(int(room[axis] / side), counts[axis]), length)
            middle = (lows[axis] + highs[axis]) // 2
            if highs[axis] - lows[axis] > shown:
                middle = self._pixel[axis]
            low = min(max(middle - shown // 2, 0), length - shown)
            sides.append((low, low + shown))
        (left, right), (top, bottom) = sides
        return left, top, right, bottom

    def _grid(self) -> tuple[float, QPointF]:
        """Return the side of a cell, and the corner of the first one."""
        left, top, right, bottom = self.area
        side = min(self.width() / (right - left), self.height() / (bottom - top))
        middle = QPointF(self.width(), self.height()) / 2
        return side, middle - QPointF(right - left, bottom - top) * (side / 2)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        left, top, right, bottom = self.area
        if event.button() is not Qt.MouseButton.LeftButton or right <= left or bottom <= top:
            return
        side, corner = self._grid()
        place = (event.position() - corner) / side
        x, y = left + math.floor(place.x()), top + math.floor(place.y())
        if left <= x < right and top <= y < bottom:
            self.clicked.emit(x, y)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        left, top, right, bottom = self.area
        if self._xray is None or right <= left or bottom <= top:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side, corner = self._grid()
        painter.translate(corner)
        read = self._xray.cells(self._done)
        for y in range(top, bottom):
            for x in range(left, right):
                self._paint_cell(painter, QRectF((x - left) * side, (y - top) * side, side, side),
                                 (x, y), read.get((x, y)))  # fmt: skip
        self._paint_frames(painter, side)

    def _paint_cell(
        self, painter: QPainter, place: QRectF, cell: Cell, read: tuple[int, MemorySpace] | None
    ) -> None:
        assert self._xray is not None
        grey = int(self._pixels[cell[1], cell[0]])
        inside = cell in self._xray.block_pixels
        painter.fillRect(place, QColor(grey, grey, grey, 255 if inside else 90))
        side = place.width()
        if cell in self._xray.warp_pixels:
            frame = place.adjusted(1.5, 1.5, -1.5, -1.5)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QColor("#000000"))
            painter.drawRect(frame)
            painter.setPen(QPen(QColor("#ffffff"), 1, Qt.PenStyle.DotLine))
            painter.drawRect(frame)
        if read is None:
            return
        number, space = read
        last = number == self._done
        painter.setBrush(QColor(_COLOURS[space]))
        painter.setPen(QPen(QColor("#ffffff" if last else "#000000"), 3 if last else 1))
        _draw_sign(painter, place, space)
        if side >= _NUMBERED:
            font = self.font()
            font.setPixelSize(max(round(side * (0.5 if number < 100 else 0.36)), 6))
            painter.setFont(font)
            painter.setPen(QColor("#000000"))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, str(number))

    def _paint_frames(self, painter: QPainter, side: float) -> None:
        left, top, _, _ = self.area
        x, y = self._pixel
        own = QRectF((x - left) * side, (y - top) * side, side, side)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor("#000000"), 4))
        painter.drawRect(own)
        painter.setPen(QPen(QColor("#ffe34d"), 2))
        painter.drawRect(own)


def _draw_sign(painter: QPainter, place: QRectF, space: MemorySpace) -> None:
    side = place.width()
    inner = place.adjusted(0.14 * side, 0.14 * side, -0.14 * side, -0.14 * side)
    if space is MemorySpace.GLOBAL:
        painter.drawEllipse(inner)
    elif space is MemorySpace.SHARED:
        painter.drawRect(inner)
    else:
        top = QPointF(inner.center().x(), inner.top())
        painter.drawPolygon(QPolygonF([top, inner.bottomRight(), inner.bottomLeft()]))


_TOPIC = "xray"
_PAUSE = 150  # milliseconds between two steps while they play

_NOTHING = "–"
_NO_PIXEL = (
    "This launch does most of the work; a later one writes the pixel. The thread has the pixel's "
    "place in the tile of its block."
)
_SCOPES = ("Thread", "Warp", "Block")

_LEGEND = (
    f"{SIGNS[MemorySpace.GLOBAL]} global   {SIGNS[MemorySpace.SHARED]} shared   "
    f"{SIGNS[MemorySpace.TEXTURE]} texture"
    "   numbers: order   dotted: read by the warp   bright: read by the block"
    "   yellow frame: the pixel"
)


class XrayWindow(ToolWindow):
    """Traces the block of a pixel at a level, on the emulated GPU, and shows its thread."""

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__("xrayWindow", "X-ray", parent, help_page="gpu-levels#x-ray")
        self.setSizeGripEnabled(True)
        self._background = background
        self._tracer: Tracer | None = None
        self._busy = threading.Lock()
        self._request: Request | None = None
        self._version: Version | None = None  # an edited kernel, in place of a request
        self._token = CancelToken()
        self._is_left = False
        """Whether it was closed: a box that loses the focus then has another value."""
        self._file: tuple[object, str] | None = None  # whose source is in view, and its name
        self._levels: tuple[Level, ...] = ()
        self.xray: Xray | None = None
        self._second: Xray | None = None
        self._timer = QTimer(self, interval=_PAUSE)
        self._timer.timeout.connect(self._advance)
        self._view, self._second_view = XrayView(), XrayView()
        self._second_view.setObjectName("xraySecondPicture")
        for view in (self._view, self._second_view):
            view.clicked.connect(self._go_to)
        self._names = QLabel(), QLabel()
        self._title, self._step = dressed(QLabel(), "xrayTitle"), dressed(QLabel(), "xrayStep")
        set_role(self._title, "title")
        self._step.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        unit = self.fontMetrics().averageCharWidth()
        widths = 140 * unit, 90 * unit
        splitter = tool_splitter(self._make_pictures(), self._make_side(), sizes=widths)
        box = close_box(self)
        box.button(box.StandardButton.Close).setAutoDefault(False)
        in_column(
            self._make_choice(),
            self._title,
            (splitter, 1),
            text_label(_LEGEND, "", "note"),
            self._make_steps(),
            self._step,
            box,
            of=self,
        )
        self.take_room(230, 62, QSize(1600, 940))

    # --- widgets ---

    def _make_pictures(self) -> QWidget:
        pictures = QWidget(self)
        first, second = self._names
        views = (first, (self._view, 1), second, (self._second_view, 1))
        in_column(*views, of=pictures, margins=0)
        self._show_second(False)
        return pictures

    def _show_second(self, shown: bool) -> None:
        for widget in (*self._names, self._second_view):
            widget.setVisible(shown)

    def _make_choice(self) -> QHBoxLayout:
        self._level, self._other = QComboBox(), QComboBox()
        self._column, self._row = QSpinBox(), QSpinBox()
        for chooser in (self._level, self._other):
            chooser.currentIndexChanged.connect(self._trace)
        for box in (self._column, self._row):
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self._trace)
        return in_row(
            *labelled("&Level", self._level, "xrayLevel"),
            *labelled("C&ompare with", self._other, "xrayOther"),
            *labelled("Column &X", self._column, "xrayColumn"),
            *labelled("Row &Y", self._row, "xrayRow"),
            1,
        )

    def _make_side(self) -> QTabWidget:
        self._tabs = dressed(QTabWidget(), "xrayTabs")
        self._tabs.setDocumentMode(True)
        self._code = CodeView("kernel", "")
        self._table = FigureTable("xrayFigures", "Figures of the thread, its warp and its block")
        self._tabs.addTab(self._table, "&Figures")
        self._tabs.addTab(self._code, "&Source")
        return self._tabs

    def _make_steps(self) -> QHBoxLayout:
        self._slider = dressed(
            QSlider(Qt.Orientation.Horizontal), "xraySlider", "Steps of the thread that are done"
        )
        self._slider.valueChanged.connect(self._show_steps)
        self._play = push_button("&Play", "xrayPlay", self._on_play, stays=True)
        return in_row(
            (self._slider, 1),
            push_button("Next loa&d", "xrayNextLoad", lambda: self._go(Event.READ)),
            push_button("Next &barrier", "xrayNextBarrier", lambda: self._go(Event.BARRIER)),
            self._play,
        )

    # --- tracing ---

    def show_request(
        self, request: Request, pixel: tuple[int, int] | None = None, level: str | None = None
    ) -> None:
        """Trace a pixel of a request's output: by default the one in the middle, at its level."""
        if not isinstance(request.source, Image):
            raise AppError("The X-ray shows pictures.", "Open a picture.")
        levels = tuple(each for each in request.step.filter.levels(Device.GPU) if each.exact)
        if not levels:
            raise AppError(
                f"{request.step.filter.name} has no kernel.",
                "Choose a filter that has levels on the GPU.",
            )
        self._request, self._version, self._levels = request, None, levels
        step = request.step
        shape = step.filter.output_shape(request.source.planes.shape, step.parameters, step.border)
        names = [each.id for each in levels]
        wanted = next(
            each for each in (level, request.options.level, GLOBAL.id, names[0]) if each in names
        )
        self._offer([each.name for each in levels], names.index(wanted), shape, pixel)

    def show_version(self, version: Version, pixel: tuple[int, int]) -> None:
        self._request, self._version, self._levels = None, version, ()
        self._offer(
            [f"{VERSION} of {version.job.kernel}"], 0, version.work.plan.task.output_shape, pixel
        )

    def _offer(
        self,
        levels: list[str],
        chosen: int,
        shape: tuple[int, ...],
        pixel: tuple[int, int] | None,
    ) -> None:
        """Offer levels, and pixels of an output of this shape; trace one."""
        self._is_left = False
        height, width = shape[:2]
        x, y = pixel or (width // 2, height // 2)
        others = [_NOTHING, *(levels if self._request is not None else ())]
        for chooser, names, name in (
            (self._level, levels, levels[chosen]),
            (self._other, others, _NOTHING),
        ):
            refill(chooser, ((each, None) for each in names), name)
            chooser.setEnabled(self._request is not None)
        for spin, length, value in ((self._column, width, x), (self._row, height, y)):
            with QSignalBlocker(spin):
                spin.setRange(0, length - 1)
                spin.setValue(value)
        self._trace()

    def _go_to(self, x: int, y: int) -> None:
        with QSignalBlocker(self._column):
            self._column.setValue(x)
        with QSignalBlocker(self._row):
            self._row.setValue(y)
        self._trace()

    def _trace(self) -> None:
        nothing = self._request is None and self._version is None
        if nothing or self._is_left or self._level.currentIndex() < 0:
            return
        x, y = self._column.value(), self._row.value()
        self._play.setChecked(False)
        self._show(())
        self._token.cancel()
        self._token = CancelToken()
        if self._version is not None:
            self._title.setText(f"Tracing pixel {x}, {y} of your version …")
            work: Callable[[], tuple[Xray, ...]] = partial(
                _trace_version, self._version, x, y, self._token
            )
        else:
            self._title.setText(f"Tracing pixel {x}, {y} at level {self._level.currentText()} …")
            work = self._work(x, y)
        self._background.start(_TOPIC, work, self._show, self._fail)

    def _work(self, x: int, y: int) -> Callable[[], tuple[Xray, ...]]:
        request, token = self._request, self._token
        assert request is not None
        chosen = [self._levels[self._level.currentIndex()]]
        if self._other.currentIndex() > 0:
            chosen.append(self._levels[self._other.currentIndex() - 1])

        def work() -> tuple[Xray, ...]:
            with self._busy:
                token.check()  # the window may have been left, and nobody would close a tracer
                if self._tracer is None:
                    self._tracer = Tracer(threads=1)
                trace = partial(self._tracer.trace_pixel, request, x=x, y=y, token=token)
                found = [Xray(*trace(each)) for each in chosen]
            for each in found:
                each.prepare()
            return tuple(found)

        return work

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, AppError):
            raise error
        self._title.setText(f"{error.message} {error.hint}".strip())

    def _show(self, found: tuple[Xray, ...]) -> None:
        xray, self._second = (*found, None, None)[:2]
        self.xray = xray
        pixel, grey = (self._column.value(), self._row.value()), self._grey()
        self._view.show_xray(xray, pixel, grey)
        self._second_view.show_xray(self._second, pixel, grey)
        self._show_second(self._second is not None)
        for label, each in zip(self._names, found, strict=False):
            label.setText(each.scene.level_name)
        steps = () if xray is None else xray.steps
        self._slider.setEnabled(bool(steps))
        self._slider.setRange(0, len(steps))
        self._slider.setValue(len(steps))
        self._show_table()
        if xray is not None:
            block = ", ".join(map(str, xray.trace.block[:2]))
            cut = "; the trace is truncated" if xray.trace.truncated else ""
            if not xray.trace.whole:
                part = "warp" if xray.trace.whole_warp else "thread"
                cut += f"; of this block only the {part} is recorded, and copies to shared memory"
            if (rows := xray.trace.rows) is not None:
                cut += f"; rows {rows.start} to {rows.stop - 1} of all that the block computes"
            scene = xray.scene
            which = f" (launch {scene.launch} of {scene.launches})" if scene.launches > 1 else ""
            whose = f"{VERSION} of " if self._version is not None else ""
            title = (
                f"{whose}{scene.kernel}{which}: block {block}, warp {xray.warp}, lane {xray.lane}, "
                f"{len(steps):,} steps{cut}"
            )
            place = "" if xray.writes_pixel else _NO_PIXEL
            compared = compare(xray, self._second) if self._second is not None else ""
            self._title.setText("\n".join(filter(None, (title, place, scene.notice, compared))))
        self._show_steps(len(steps))

    def _grey(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        if self._version is not None:
            pixels = self._version.work.source
        else:
            assert self._request is not None
            assert isinstance(self._request.source, Image)
            pixels = self._request.source.pixels
        values = pixels if pixels.ndim == 2 else pixels[..., :3].mean(axis=2)
        if pixels.dtype == np.uint8:
            return values.astype(np.uint8)
        low, high = float(values.min()), float(values.max())
        return ((values - low) * (255 / ((high - low) or 1))).astype(np.uint8)

    def _show_table(self) -> None:
        first, second = self.xray, self._second
        rows: tuple[tuple[str, ...], ...] = () if first is None else first.figures
        names = ["", *_SCOPES]
        if first is not None and second is not None:
            rows = side_by_side(first, second)
            levels = [each.scene.level_name.split()[0] for each in (first, second)]
            names = ["", *(f"{level}\n{scope.lower()}" for level in levels for scope in _SCOPES)]
        self._table.fill(names, rows)

    # --- steps ---

    def _show_steps(self, done: int) -> None:
        self._view.show_steps(done)
        xray, second = self.xray, self._second
        if xray is None or not done:
            self._second_view.show_steps(0)
            self._step.setText("")
            return
        lines = [xray.describe_step(done)]
        if second is not None:  # both go from the first step to the last
            other = round(done / len(xray.steps) * len(second.steps))
            self._second_view.show_steps(other)
            lines.append(f"{second.scene.level_name}: {second.describe_step(other)}")
        self._step.setText("\n".join(lines))
        place = xray.steps[done - 1].place
        if place is not None:
            self._show_line(place.file, place.line)

    def _show_line(self, file: str, line: int) -> None:
        place = self._version or self._request, file
        if place != self._file:
            self._file = place
            self._code.setPlainText(self._source(file))
            self._code.setAccessibleName(f"Source of {file}")
            self._tabs.setTabText(1, f"&Source: {file}")
        self._code.show_place((line - 1, line))

    def _source(self, file: str) -> str:
        if self._version is not None:
            return self._version.source(file)
        assert self._request is not None
        files = {each.name: each.text for each in source_files(self._request.step.filter.id)}
        return files.get(file, "")

    def _go(self, event: Event) -> None:
        if self.xray is None:
            return
        done = self._slider.value()
        start = 0 if done == len(self.xray.steps) else done
        self._slider.setValue(self.xray.next_step(start, event))

    def _on_play(self, playing: bool) -> None:
        self._play.setText("&Pause" if playing else "&Play")
        self._play.setAccessibleName("Pause" if playing else "Play")
        if not playing:
            self._timer.stop()
            return
        if self._slider.value() == self._slider.maximum():
            self._slider.setValue(0)
        self._timer.start()

    def _advance(self) -> None:
        self._slider.setValue(self._slider.value() + 1)
        if self._slider.value() == self._slider.maximum():
            self._play.setChecked(False)

    def leave(self) -> None:
        self._is_left = True
        self._play.setChecked(False)
        self._token.cancel()
        self._background.forget(_TOPIC)
        with self._busy:
            if self._tracer is not None:
                self._tracer.close()
                self._tracer = None


def _trace_version(version: Version, x: int, y: int, token: CancelToken) -> tuple[Xray, ...]:
    found = Xray(*version.trace(x, y, token), version.job.name)
    found.prepare()
    return (found,)
