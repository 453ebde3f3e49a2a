"""Why a level takes the time it takes: its idea, its loads and times beside another's, sources."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPalette, QPixmap
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QStyle, QWidget

from kernelscope.backends.emulator.tracing import MOST_ACCESSES, TooManyAccesses, Tracer
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.bench.memory_ladder import SMALL, CountedRung, with_side
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import KnownRung, Rung
from kernelscope.gui.model.why import loads_of, times_of
from kernelscope.gui.tools.manual_window import PICTURE_WIDTH, drawn
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.layouts import Scrolled
from kernelscope.gui.widgets.parts import dressed, in_column, push_button, set_help, text_label
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import Level, colour
from kernelscope.teach.handbook import level_pictures, pictures
from kernelscope.teach.handbook.svg import GROWN, Drawing
from kernelscope.teach.manual import level_page

_TOPIC = "why"
_QUICK = MOST_ACCESSES // 16
"""Accesses up to which the open picture is counted, in about two seconds; else a corner."""
_WIDTH = 460
_COUNTING = "Counting the loads of the level…"
_ROOM = 5 * "<br>&nbsp;"  # for the loads, lest the window grow under the pointer


class LevelDialog(ToolWindow):
    """Explains a level; stays open beside the window, and follows the level that is asked for."""

    bench_wanted = Signal(object)  # `Path or None`: Open the benchmark, with this recorded report
    kernel_wanted = Signal(object)  # `RungPlace`: Show the source of the kernel of this level
    xray_wanted = Signal(object)
    """`RungPlace`: Show the cells that a pixel is computed from at this level."""
    manual_wanted = Signal(str)  # open this page of the manual

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__("levelDialog", "", parent)
        self._background = background
        self._token = CancelToken()
        self._entry: KnownRung | None = None
        self._request: Request | None = None
        self._drawing = dressed(QLabel(self), "levelDrawing")
        self._text = text_label("", "levelText", selectable=True)
        self._text.setTextFormat(Qt.TextFormat.RichText)
        self._text.setMinimumWidth(_WIDTH)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self._bench = push_button("", "levelBench", self._open_bench)
        kernel, xray, manual = self.kernel_wanted, self.xray_wanted, self.manual_wanted
        self._kernel = push_button(
            "View &kernel", "levelKernel", lambda: kernel.emit(self._rung.place)
        )
        self._xray = push_button("&X-ray", "levelXray", lambda: xray.emit(self._rung.place))
        manual_button = push_button("&Manual", "levelManual", lambda: manual.emit(self._page()))
        for button in (self._bench, self._kernel, self._xray, manual_button):
            self._buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        self._buttons.rejected.connect(self.reject)
        self._content = QWidget(self)
        in_column(self._text, self._drawing, of=self._content, margins=0, spacing=12)
        area = Scrolled(self._content, "levelContent", "Explanation of the level")
        self._column = in_column((area, 1), self._buttons, of=self, spacing=12)
        stylist().restyled.connect(self._restyle)

    @property
    def _rung(self) -> Rung:
        assert self._entry is not None
        return self._entry.rung

    def show_entry(
        self, entry: KnownRung, spec: FilterSpec, request: Request | None = None
    ) -> None:
        self._entry, self._request = entry, request
        rung = entry.rung
        self.setWindowTitle(f"{rung.full_name} – {spec.name}")
        before = [_title(entry)]
        if rung.level is not None:
            before.append(f"<p>{escape(rung.level.help)} {escape(rung.level.why)}</p>")
        if compared := times_of(entry):
            before.append(f"<p><b>{escape(compared)}</b></p>")
        parts: list[str] = []
        if rung.choice:
            parts.append(f"<p>{escape(rung.choice)}</p>")
        if rung.obstacle:
            word = "Not for this filter" if rung.gap else "Cannot run here"
            parts.append(f"<p><b>{word}.</b> {escape(rung.obstacle)}</p>")
        if entry.best is not None:
            parts.append(f"<p>{escape(entry.best.describe())}</p>")
        if entry.timing:
            parts.append(f"<p><b>Time.</b> {escape(entry.timing)}</p>")
        if entry.figure is not None:
            parts.append(f"<p>File: {escape(entry.figure.path.name)}</p>")
        if entry.parity is not None:
            parts.append(f"<p><b>Result.</b> {escape(entry.parity.describe())}</p>")
        if entry.remark:
            parts.append(f"<p>{escape(entry.remark)}</p>")
        parts.append(f"<p><b>Source of {escape(spec.name)}.</b> {escape(spec.source)}</p>")
        self._paragraphs = before, parts  # before the loads, and after them
        self._count(entry)
        set_help(self, self._page())
        self._draw()
        recorded = entry.figure is not None
        self._bench.setText("Open in &Benchmark" if recorded else "&Benchmark")
        has_kernel = rung.place.kernels is Device.GPU and not rung.gap
        for button in (self._kernel, self._xray):
            button.setVisible(has_kernel)
        self._xray.setEnabled(request is not None and isinstance(request.source, Image))
        self._fit()

    def _count(self, entry: KnownRung) -> None:
        """Count the loads of the level and the one beside it, for the open picture or volume."""
        self._token.cancel()
        request = self._request
        own = request.step.filter.levels(Device.GPU) if request is not None else ()
        pair = [each.rung.level for each in (entry, entry.beside) if each is not None]
        levels = [each for each in pair if each in own]
        is_kernel = entry.rung.place.kernels is Device.GPU
        if request is None or not is_kernel or pair[0] not in own:
            self._write([])
            return
        self._write([_COUNTING])
        token = self._token = CancelToken()

        def show(found: tuple[list[CountedRung], Request, str]) -> None:
            rungs, counted, where = found
            by_level = {each.level.id: each for each in rungs}
            self._write(loads_of(entry, by_level, counted, where))

        def fail(error: Exception) -> None:
            if isinstance(error, Cancelled):
                return
            if not isinstance(error, AppError):
                raise error
            self._write([f"Loads were not counted: {error.message} {error.hint}".rstrip()])

        self._background.start(_TOPIC, lambda: _counted(request, levels, token), show, fail)

    def _write(self, loads: list[str]) -> None:
        """Write the text, with paragraphs on the loads in their place."""
        before, after = self._paragraphs
        middle = [f"<p>{escape(each)}{_ROOM * (each == _COUNTING)}</p>" for each in loads]
        self._text.setText("".join((*before, *middle, *after)))

    def _fit(self) -> None:
        """Be as high as the text and the drawing need, or else let them scroll."""
        content, margins = self._content, self._column.contentsMargins()
        width = max(PICTURE_WIDTH, content.minimumSizeHint().width())
        layout = content.layout()
        height = layout.heightForWidth(width) if layout is not None else content.height()
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        rest = self._buttons.sizeHint().height() + self._column.spacing()
        rest += margins.top() + margins.bottom()
        self.take_size(width + bar + margins.left() + margins.right(), height + rest + 2)

    def leave(self) -> None:
        self._token.cancel()
        self._background.forget(_TOPIC)

    def _page(self) -> str:
        place = self._rung.place
        return "gpu-levels" if place.level is None else level_page(place.kernels.value, place.level)

    def _draw(self) -> None:
        rung = self._rung
        self._drawing.setVisible(rung.level is not None)
        if rung.level is None:
            return
        drawing = self._of_request(rung.level) or pictures.of_level(
            rung.place.kernels.value, rung.level.id
        )
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        scale = stylist().appearance.scale
        letters = min(scale, GROWN)
        content = drawing.svg(letters=letters).encode()
        image = drawn(content, ink, self.devicePixelRatioF(), scale / letters)
        self._drawing.setPixmap(QPixmap.fromImage(image))
        self._drawing.setAccessibleName(f"Drawing of the level {rung.level.name}")

    def _of_request(self, level: Level) -> Drawing | None:
        if self._request is None or self._rung.place.kernels is not Device.GPU:
            return None
        own = {each.id: each for each in self._request.step.filter.levels(Device.GPU)}
        if level.id not in own:
            return None
        try:
            plan = level_pictures.planned_for(self._request, own[level.id])
        except AppError:  # not for these values; the drawing of the page explains the level
            return None
        return level_pictures.draw(plan)

    def _restyle(self) -> None:
        if self._entry is not None:
            self._draw()
            self._fit()

    def _open_bench(self) -> None:
        assert self._entry is not None
        figure = self._entry.figure
        self.bench_wanted.emit(figure.path if figure is not None else None)


def _counted(
    request: Request, levels: list[Level], token: CancelToken
) -> tuple[list[CountedRung], Request, str]:
    """Count levels on the source, or on a corner if that takes too long, named in the answer."""
    tracer = Tracer()

    def count(work: Request, most: int) -> list[CountedRung]:
        return [CountedRung(each, tracer.count(work, each, token, most)) for each in levels]

    try:
        return count(request, _QUICK), request, ""
    except TooManyAccesses:
        if not isinstance(request.source, Image):
            raise
        small = with_side(request, SMALL)
        return count(small, MOST_ACCESSES), small, f" on {SMALL}×{SMALL} pixels"
    finally:
        tracer.close()


def _title(entry: KnownRung) -> str:
    level = entry.rung.level
    mark = f"<span style='color:{colour(level)}'>■</span> " if level is not None else ""
    return f"<h3>{mark}{escape(entry.rung.full_name)}</h3>"
