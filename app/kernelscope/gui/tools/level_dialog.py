"""Why a level takes the time it takes: its sentence, its figures, their source."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QPalette, QPixmap
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QWidget

from kernelscope.base.errors import AppError
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import KnownRung
from kernelscope.gui.model.rungs import RungPlace
from kernelscope.gui.tools.handbook_view import drawn
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed, in_column, push_button, text_label
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import colour
from kernelscope.teach.handbook import level_pictures, pictures
from kernelscope.teach.manual import level_page

_WIDTH = 460
_DRAWING = 840  # pixels of the text at least, and of the drawing at most


class LevelDialog(ToolWindow):
    """Explains a level; stays open beside the window, and follows the level that is asked for."""

    bench_wanted = Signal(object)  # `Path or None`: Open the benchmark, with this recorded report
    kernel_wanted = Signal(object)  # `RungPlace`: Show the source of the kernel of this level
    xray_wanted = Signal(object)
    """`RungPlace`: Show the cells that a pixel is computed from at this level."""
    manual_wanted = Signal(str)  # open this page of the manual

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("levelDialog", "", parent)
        self._entry: KnownRung | None = None
        self._request: Request | None = None
        self._ready = False
        self._drawing = dressed(QLabel(self), "levelDrawing")
        self._text = text_label("", "levelText", selectable=True)
        self._text.setTextFormat(Qt.TextFormat.RichText)
        self._text.setMinimumWidth(_WIDTH)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self._bench = push_button("", "levelBench", self._open_bench)
        self._kernel = push_button(
            "View &kernel", "levelKernel", lambda: self.kernel_wanted.emit(self._place())
        )
        self._xray = push_button(
            "&X-ray", "levelXray", lambda: self.xray_wanted.emit(self._place())
        )
        manual = push_button(
            "&Manual", "levelManual", lambda: self.manual_wanted.emit(self._page())
        )
        for button in (self._bench, self._kernel, self._xray, manual):
            buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.reject)
        in_column(self._text, self._drawing, buttons, of=self, spacing=12)
        self._ready = True

    def _place(self) -> RungPlace | None:
        return self._entry.rung.place if self._entry is not None else None

    def show_entry(
        self, entry: KnownRung, spec: FilterSpec, request: Request | None = None
    ) -> None:
        self._entry, self._request = entry, request
        rung = entry.rung
        self.setWindowTitle(f"{rung.full_name} – {spec.name}")
        parts = [_title(entry)]
        if rung.level is not None:
            parts.append(f"<p>{escape(rung.level.help)} {escape(rung.level.why)}</p>")
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
        self._text.setText("".join(parts))
        set_help(self, self._page())
        self._draw()
        recorded = entry.figure is not None
        self._bench.setText("Open in &Benchmark" if recorded else "&Benchmark")
        has_kernel = rung.place.kernels is Device.GPU and not rung.gap
        for button in (self._kernel, self._xray):
            button.setVisible(has_kernel)
        self._xray.setEnabled(request is not None and isinstance(request.source, Image))
        self.adjustSize()

    def _page(self) -> str:
        place = self._place()
        if place is None or place.level is None:
            return "gpu-levels"
        return level_page(place.kernels.value, place.level)

    def _draw(self) -> None:
        place = self._place()
        self._drawing.setVisible(place is not None and place.level is not None)
        if place is None or place.level is None:
            return
        content = self._of_request() or pictures.render(
            f"level/{place.kernels.value}/{place.level}"
        )
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        image = drawn(content, ink, self.devicePixelRatioF(), _DRAWING)
        self._drawing.setPixmap(QPixmap.fromImage(image))
        level = self._entry.rung.level if self._entry is not None else None
        if level is not None:
            self._drawing.setAccessibleName(f"Drawing of the level {level.name}")

    def _of_request(self) -> bytes | None:
        rung = self._entry.rung if self._entry is not None else None
        if self._request is None or rung is None or rung.place.kernels is not Device.GPU:
            return None
        own = {level.id: level for level in self._request.step.filter.levels(Device.GPU)}
        if rung.level is None or rung.level.id not in own:
            return None
        try:
            plan = level_pictures.planned_for(self._request, own[rung.level.id])
        except AppError:  # not for these values; the drawing of the page explains the level
            return None
        return level_pictures.draw(plan).svg().encode()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._ready:
            QTimer.singleShot(0, self, self._draw)  # Qt goes through all widgets meanwhile

    def _open_bench(self) -> None:
        figure = self._entry.figure if self._entry is not None else None
        self.bench_wanted.emit(figure.path if figure is not None else None)


def _title(entry: KnownRung) -> str:
    level = entry.rung.level
    mark = f"<span style='color:{colour(level)}'>■</span> " if level is not None else ""
    return f"<h3>{mark}{escape(entry.rung.full_name)}</h3>"
