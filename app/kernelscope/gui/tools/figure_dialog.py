"""File > Export Figure: input, output and their difference as one picture, SVG or PDF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QPlainTextEdit,
    QSizePolicy,
    QWidget,
)

from kernelscope.base.errors import AppError
from kernelscope.files.write_errors import replace_file
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.figure import WIDTHS, Figure, FigureStyle
from kernelscope.gui.tools.places import folder_for
from kernelscope.gui.viewer.figure_painter import UNITS, FigurePainter
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import ChoiceBox, NumberBox, WholeBox
from kernelscope.gui.widgets.messages import add_button, close_box, open_dialog, show_error
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, text_label
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background

_SAVERS = {
    "PNG": (".png", FigurePainter.as_png),
    "SVG": (".svg", FigurePainter.as_svg),
    "PDF": (".pdf", FigurePainter.as_pdf),
}


class _Preview(QWidget):
    """The figure as it will be, as large as there is room."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("figurePreview")
        self.setMinimumSize(420, 240)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._painter: FigurePainter | None = None
        self._drawn = QImage()

    def sizeHint(self) -> QSize:
        return QSize(640, 380)

    def show_figure(self, painter: FigurePainter | None) -> None:
        self._painter, self._drawn = painter, QImage()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if self._painter is None:
            return
        ratio = self.devicePixelRatioF()
        width, height = self._painter.layout.size
        scale = ratio * min((self.width() - 24) / width, (self.height() - 24) / height)
        size = QSize(max(1, round(scale * width)), max(1, round(scale * height)))
        if self._drawn.size() != size:
            self._drawn = QImage(size, QImage.Format.Format_RGB32)
            drawer = QPainter(self._drawn)
            drawer.scale(scale / UNITS, scale / UNITS)
            self._painter.paint(drawer)
            drawer.end()
            self._drawn.setDevicePixelRatio(ratio)
        left = (self.width() - size.width() / ratio) / 2
        top = (self.height() - size.height() / ratio) / 2
        painter.drawImage(round(left), round(top), self._drawn)


class FigureDialog(ToolWindow):
    """Lets the user lay out and save a figure of the result that is shown.

    `make`: ``make(third, in_view)`` returns the figure; see `Subject.figure`. `changes`: which
    changes can be shown next to input and output. `note`: remarks for the user about the result;
    empty for none.
    """

    saved = Signal(object)  # `Path`: The figure is on the disk

    def __init__(
        self,
        make: Callable[[View | None, bool], Figure],
        changes: tuple[View, ...],
        name: str,
        note: str,
        background: Background,
        settings: Settings,
        parent: QWidget,
    ) -> None:
        super().__init__("figureDialog", "Export figure", parent)
        self._make, self._background, self._settings = make, background, settings
        self._name, self.note = name, note
        self.figure: Figure | None = None
        self.preview = _Preview(self)
        self._make_controls(changes)
        right = in_column(self._form(), (self.caption, 1))
        if note:
            right.addWidget(text_label(note, "", "warning"))
        columns = in_row((self.preview, 1), right)
        buttons = close_box(self)
        add_button(buttons, "copyButton", "&Copy", "Copy the figure as a picture", self.copy)
        self.save_button = add_button(
            buttons, "saveButton", "&Save…", "Save as PNG, SVG or PDF", self.save
        )
        theme.set_role(self.save_button, "primary")
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        self.save_button.setAutoDefault(True)
        self.save_button.setDefault(True)
        self.resize(1040, 640)
        in_column((columns, 1), buttons, of=self)
        self._collect()

    def _make_controls(self, changes: tuple[View, ...]) -> None:
        self.third = ChoiceBox(self)
        self.third.addItem("Nothing more", "")
        for view in changes:
            self.third.addItem(view.value.capitalize(), view.value)
        self.part = ChoiceBox(self)
        self.part.addItem("The whole picture", False)
        self.part.addItem("The part in view", True)
        self.width_box = NumberBox(self)
        self.width_box.setRange(40, 400)
        self.width_box.setSuffix(" mm")
        self.widths = ChoiceBox(self)
        for text, width in WIDTHS.items():
            self.widths.addItem(text, width)
        self.points = NumberBox(self)
        self.points.setRange(4, 24)
        self.points.setSuffix(" pt")
        self.dpi = WholeBox(self)
        self.dpi.setRange(72, 1200)
        self.dpi.setSuffix(" dpi")
        self.ground = ChoiceBox(self)
        self.ground.addItem("White", False)
        self.ground.addItem("Black", True)
        self.titles = dressed(QCheckBox("&Titles", self), "figureTitles")
        self.scale_bar = dressed(QCheckBox("Scale &bar", self), "figureScaleBar")
        self.with_caption = dressed(QCheckBox("C&aption", self), "figureWithCaption")
        self.caption = dressed(QPlainTextEdit(self), "figureCaption", "Caption")
        self.caption.setTabChangesFocus(True)
        usual = FigureStyle()
        self.widths.setCurrentIndex(self.widths.findData(usual.width))
        self.width_box.setValue(usual.width)
        self.points.setValue(usual.points)
        self.dpi.setValue(usual.dpi)
        for box in (self.titles, self.scale_bar, self.with_caption):
            box.setChecked(True)
            box.toggled.connect(self._draw)
        self.third.currentIndexChanged.connect(self._collect)
        self.part.currentIndexChanged.connect(self._collect)
        self.widths.activated.connect(lambda _: self.width_box.setValue(self.widths.currentData()))
        for number in (self.width_box, self.points, self.dpi):
            number.valueChanged.connect(self._draw)
        self.ground.currentIndexChanged.connect(self._draw)
        self.caption.textChanged.connect(self._draw)

    def _form(self) -> QFormLayout:
        form = QFormLayout()
        rows = (
            ("&Next to input and output", "figureThird", self.third),
            ("Sho&w", "figurePart", self.part),
            ("&Usual widths", "figureWidths", self.widths),
            ("W&idth", "figureWidth", self.width_box),
            ("T&ext", "figurePoints", self.points),
            ("&PNG", "figureDpi", self.dpi),
            ("&Ground", "figureGround", self.ground),
        )
        for text, name, widget in rows:
            form.addRow(text, dressed(widget, name, text.replace("&", "")))
        form.addRow(in_row(self.titles, self.scale_bar, self.with_caption))
        return form

    # --- the figure ---

    @property
    def style_(self) -> FigureStyle:
        """How the figure is laid out now."""
        return FigureStyle(
            width=self.width_box.value(),
            points=self.points.value(),
            dpi=self.dpi.value(),
            dark=bool(self.ground.currentData()),
            titles=self.titles.isChecked(),
            scale_bar=self.scale_bar.isChecked(),
            caption=self.with_caption.isChecked(),
        )

    def _collect(self) -> None:
        """Make the pictures of the figure in the background."""
        self.save_button.setEnabled(False)
        third = self.third.currentData()  # which Qt keeps as a plain text
        work = partial(self._make, View(third) if third else None, bool(self.part.currentData()))
        self._background.start("figure", work, self._show, self._on_problem)

    def _show(self, figure: Figure) -> None:
        before, self.figure = self.figure, figure
        self.save_button.setEnabled(True)
        if before is None or self.caption.toPlainText() == before.caption:
            self.caption.setPlainText(figure.caption)  # but for one that the user has edited
        self._draw()

    def _on_problem(self, error: Exception) -> None:
        self.report(error)
        self.third.setCurrentIndex(0)

    def _painter(self) -> FigurePainter | None:
        if self.figure is None:
            return None
        caption = self.caption.toPlainText().strip()
        figure = Figure(self.figure.pictures, caption, self.figure.unit)
        return FigurePainter(figure, self.style_)

    def _draw(self) -> None:
        self.preview.show_figure(self._painter())

    # --- where it goes ---

    def copy(self) -> None:
        """Copy the figure to the clipboard, at the resolution of a PNG."""
        painter = self._painter()
        if painter is not None:
            QGuiApplication.clipboard().setImage(QImage.fromData(painter.as_png()))

    def save(self) -> None:
        """Let the user choose a file, and write it."""
        if self.figure is None:
            return
        dialog = dressed(
            QFileDialog(self, "Save figure", folder_for(self._settings, "save")), "figureFile"
        )
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        filters = {f"{kind} (*{suffix})": suffix for kind, (suffix, _) in _SAVERS.items()}
        dialog.setNameFilters(list(filters))
        dialog.selectFile(self._name)
        dialog.fileSelected.connect(
            lambda text: self._write(Path(text), filters[dialog.selectedNameFilter()])
        )
        open_dialog(dialog)

    def _write(self, path: Path, suffix: str) -> None:
        painter = self._painter()
        assert painter is not None
        known = dict(_SAVERS.values())
        if path.suffix.lower() not in known:
            path = path.with_name(path.name + suffix)
        try:
            replace_file(path, known[path.suffix.lower()](painter))
        except AppError as error:
            show_error(self, error)
            return
        self._settings.set_folder("save", path.parent)
        self.saved.emit(path)
        self.accept()
