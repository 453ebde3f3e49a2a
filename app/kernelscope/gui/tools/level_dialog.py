"""Why a level takes the time it takes: its idea, its loads and times beside another's, sources."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QPalette, QPixmap
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QStyle, QWidget

from kernelscope.backends.emulator.tracing import MOST_ACCESSES, TooManyAccesses, Tracer
from kernelscope.base.errors import AppError
from kernelscope.bench.memory_ladder import SMALL, CountedRung, with_side
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import AUTO, KnownRung, Rung
from kernelscope.gui.model.why import loads_of, times_of
from kernelscope.gui.tools.manual_window import PICTURE_WIDTH, drawn
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.layouts import Scrolled
from kernelscope.gui.widgets.parts import dressed, in_column, push_button, set_help, text_label
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background, expected
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
_ROOM = 9  # lines for the loads, lest the drawing move when they are counted
_PAUSE_MS = 300  # between a change of the settings and the counting, which compiles the kernel


class LevelDialog(ToolWindow):
    """Explains a level; stays open beside the window, and follows its settings and levels."""

    bench_wanted = Signal(object)  # `Path or None`: Open the benchmark, with this recorded report
    kernel_wanted = Signal(object)  # `RungPlace`: Show the source of the kernel of this level
    xray_wanted = Signal(object)
    """`RungPlace`: Show the cells that a pixel is computed from at this level."""
    manual_wanted = Signal(str)  # open this page of the manual

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__("levelDialog", "", parent)
        self._background = background
        self._token = CancelToken()
        self._entry: KnownRung | None = (
            None  # the level that is explained, for Auto the one it took
        )
        self._request: Request | None = None
        self.place = AUTO  # that was asked for
        self._counting_of: object = None
        self._shown_drawing: object = None
        self._found: tuple[dict[str, CountedRung], Request, str] | str = ""  # or in its place
        self._start = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._start.timeout.connect(self._count)
        self._drawing = dressed(QLabel(self), "levelDrawing")
        self._texts = [
            text_label("", name, selectable=True)
            for name in ("levelText", "levelLoads", "levelNotes")
        ]
        for text in self._texts:
            text.setTextFormat(Qt.TextFormat.RichText)
            text.setAlignment(Qt.AlignmentFlag.AlignTop)
            text.setMinimumWidth(_WIDTH)
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
        in_column(*self._texts, self._drawing, of=self._content, margins=0, spacing=12)
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
        """Explain a level; a window that is open neither moves nor changes its size."""
        self.place, self._request = entry.rung.place, request
        own = self._entry = entry.taken or entry
        rung = own.rung
        name = entry.rung.full_name if own is entry else f"Auto: {rung.full_name}"
        self.setWindowTitle(f"{name} – {spec.name}")
        before = [_title(name, rung.level)]
        parts = [entry.because, entry.rung.choice]
        if rung.level is not None:
            parts += [f"{rung.level.help} {rung.level.why}"]
        before += [f"<p>{escape(each)}</p>" for each in parts if each]
        if compared := times_of(own):
            before.append(f"<p><b>{escape(compared)}</b></p>")
        after: list[str] = []
        if rung.obstacle:
            word = "Not for this filter" if rung.gap else "Cannot run here"
            after.append(f"<p><b>{word}.</b> {escape(rung.obstacle)}</p>")
        if own.best is not None:
            after.append(f"<p>{escape(own.best.describe())}</p>")
        if own.timing:
            after.append(f"<p><b>Time.</b> {escape(own.timing)}</p>")
        if own.figure is not None:
            after.append(f"<p>File: {escape(own.figure.path.name)}</p>")
        if own.parity is not None:
            after.append(f"<p><b>Result.</b> {escape(own.parity.describe())}</p>")
        if own.remark:
            after.append(f"<p>{escape(own.remark)}</p>")
        after.append(f"<p><b>Source of {escape(spec.name)}.</b> {escape(spec.source)}</p>")
        for text, paragraphs in zip(self._texts[::2], (before, after), strict=True):
            text.setText("".join(paragraphs))
        self._renew_count()
        self._write()
        set_help(self, self._page())
        self._draw()
        self._bench.setText("Open in &Benchmark" if own.figure is not None else "&Benchmark")
        has_kernel = rung.place.kernels is Device.GPU and not rung.gap
        for button in (self._kernel, self._xray):
            button.setVisible(has_kernel)
        self._xray.setEnabled(request is not None and isinstance(request.source, Image))
        if not self.isVisible():
            self._fit()

    def _levels_to_count(self) -> list[Level]:
        """Return the level and the one beside it, if the filter has kernels for them."""
        entry, request = self._entry, self._request
        if entry is None or request is None or entry.rung.place.kernels is not Device.GPU:
            return []
        own = request.step.filter.levels(Device.GPU)
        pair = [each.rung.level for each in (entry, entry.beside) if each is not None]
        return [each for each in pair if each in own] if pair[0] in own else []

    def _renew_count(self) -> None:
        """Count the loads for the open picture or volume, unless they were counted for it."""
        levels, request = self._levels_to_count(), self._request
        work = (id(request.source), request.work) if request is not None and levels else None
        key = work, [each.id for each in levels]
        if key == self._counting_of:
            return
        self.leave()
        self._counting_of, self._found = key, _COUNTING if levels else ""
        if levels:
            self._start.start(_PAUSE_MS if self.isVisible() else 0)

    def _count(self) -> None:
        request, levels = self._request, self._levels_to_count()
        assert request is not None
        token = self._token = CancelToken()

        def show(found: tuple[list[CountedRung], Request, str]) -> None:
            rungs, counted, where = found
            self._found = {each.level.id: each for each in rungs}, counted, where
            self._write()

        def fail(error: Exception) -> None:
            if (failure := expected(error)) is not None:
                self._found = f"Loads were not counted: {failure.message} {failure.hint}".rstrip()
                self._write()

        self._background.start(_TOPIC, lambda: _counted(request, levels, token), show, fail)

    def _write(self) -> None:
        """Write the loads; lines of theirs that come later do not move the drawing."""
        assert self._entry is not None
        found = self._found
        loads = [found] if isinstance(found, str) else loads_of(self._entry, *found)
        text = self._texts[1]
        text.setText("".join(f"<p>{escape(each)}</p>" for each in loads if each))
        text.setVisible(bool(text.text()))
        text.setMinimumHeight(_ROOM * text.fontMetrics().lineSpacing())

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
        self._start.stop()
        self._token.cancel()
        self._background.forget(_TOPIC)
        self._counting_of = None

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
        shown = content, ink, self.devicePixelRatioF(), scale / letters
        if shown == self._shown_drawing:
            return
        self._shown_drawing = shown
        image = drawn(*shown)
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
            self._write()
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


def _title(name: str, level: Level | None) -> str:
    mark = f"<span style='color:{colour(level)}'>■</span> " if level is not None else ""
    return f"<h3>{mark}{escape(name)}</h3>"
