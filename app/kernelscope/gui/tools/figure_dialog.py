"""File > Export Figure: input, output and their difference as one picture, SVG or PDF."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QDialogButtonBox, QFileDialog, QPlainTextEdit, QSizePolicy, QWidget

from kernelscope.files.write_errors import replace_file
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.figure import WIDTHS, Figure, FigurePart, FigureStyle
from kernelscope.gui.session.subject import Subject
from kernelscope.gui.tools.file_dialogs import folder_for
from kernelscope.gui.viewer.figure_painter import UNITS, FigurePainter
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.form import Form, Listed, Option, Real, Tick, Whole
from kernelscope.gui.widgets.messages import add_button, close_box, errors_shown, open_dialog
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, text_label
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.schema.samples import Kind

_SAVERS = {
    "PNG": (".png", FigurePainter.as_png),
    "SVG": (".svg", FigurePainter.as_svg),
    "PDF": (".pdf", FigurePainter.as_pdf),
}


class _Preview(QWidget):
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

    `note`: remarks for the user about the result.
    """

    saved = Signal(object)  # `Path`: The figure is on the disk

    def __init__(
        self,
        subject: Subject[Any, Any],
        note: str,
        background: Background,
        settings: Settings,
        parent: QWidget,
    ) -> None:
        super().__init__("figureDialog", "Export figure", parent)
        output = subject.output()
        assert output is not None
        self._make, self._name = subject.figure(), output.name
        self._background, self._settings, self.note = background, settings, note
        self.figure: Figure | None = None
        self.preview = _Preview(self)
        self.form = Form("figureOptions", self._options(subject), self)
        self.form.changed.connect(self._on_option)
        self.caption = dressed(QPlainTextEdit(self), "figureCaption", "Caption")
        self.caption.setTabChangesFocus(True)
        self.caption.textChanged.connect(self._draw)
        right = in_column(self.form, (self.caption, 1))
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
        self.take_size(1040, 640)
        in_column((columns, 1), buttons, of=self)
        self._collect()

    @staticmethod
    def _options(subject: Subject[Any, Any]) -> tuple[Option, ...]:
        usual, part = FigureStyle(), FigurePart
        changes = (View.RESIDUAL,) + ((View.DIFFERENCE,) if subject.reference is not None else ())
        deep = subject.kind is Kind.VOLUME
        whole = "slice" if deep else "picture"
        parts = [(f"The whole {whole}", part.WHOLE), ("The part in view", part.VIEW)]
        parts += [("All three planes", part.PLANES)] * deep
        parts += [("Channels and merge", part.CHANNELS)] * bool(subject.view.look.beside)
        letters: tuple[Tick, ...] = ()
        if deep and any(plane.letters for plane in subject.view.planes):
            letters = (Tick("figureLetters", "&Letters of directions", True),)
        return (
            Listed(
                *("figureThird", "&Next to input and output", None),
                entries=(("Nothing more", None), *((v.value.capitalize(), v) for v in changes)),
            ),
            Listed("figurePart", "Sho&w", part.WHOLE, entries=tuple(parts)),
            Listed("figureWidths", "&Usual widths", usual.width, entries=tuple(WIDTHS.items())),
            Real("figureWidth", "W&idth", usual.width, low=40, high=400, unit="mm"),
            Real("figurePoints", "T&ext", usual.points, low=4, high=24, unit="pt"),
            Whole("figureDpi", "&PNG", usual.dpi, low=72, high=1200, unit="dpi"),
            Listed("figureGround", "&Ground", False, entries=(("White", False), ("Black", True))),
            Tick("figureTitles", "&Titles", True),
            Tick("figureScaleBar", "Scale &bar", True),
            Tick("figureWithCaption", "C&aption", True),
            Tick("figureRegions", "&Regions", True),
            *letters,
        )

    def _on_option(self, name: str) -> None:
        if name in ("figureThird", "figurePart"):
            of_channels = self.form.values["figurePart"] is FigurePart.CHANNELS
            self.form.editors["figureThird"].setEnabled(not of_channels)
            self._collect()
        elif name == "figureWidths":
            self.form.editors["figureWidth"].setValue(self.form.values[name])
        else:
            self._draw()

    # --- the figure ---

    @property
    def style_(self) -> FigureStyle:
        value = self.form.values
        return FigureStyle(
            width=value["figureWidth"],
            points=value["figurePoints"],
            dpi=value["figureDpi"],
            dark=value["figureGround"],
            titles=value["figureTitles"],
            scale_bar=value["figureScaleBar"],
            caption=value["figureWithCaption"],
            regions=value["figureRegions"],
            letters=value.get("figureLetters", False),
        )

    def _collect(self) -> None:
        self.save_button.setEnabled(False)
        work = partial(self._make, self.form.values["figureThird"], self.form.values["figurePart"])
        self._background.start("figure", work, self._show, self._on_problem)

    def _show(self, figure: Figure) -> None:
        before, self.figure = self.figure, figure
        self.save_button.setEnabled(True)
        if before is None or self.caption.toPlainText() == before.caption:
            self.caption.setPlainText(figure.caption)  # but for one that the user has edited
        self._draw()

    def _on_problem(self, error: Exception) -> None:
        self.report(error)
        self.form.editors["figureThird"].set_value(None)

    def _painter(self) -> FigurePainter | None:
        if self.figure is None:
            return None
        caption = self.caption.toPlainText().strip()
        figure = replace(self.figure, caption=caption)
        return FigurePainter(figure, self.style_)

    def _draw(self) -> None:
        self.preview.show_figure(self._painter())

    # --- where it goes ---

    def copy(self) -> None:
        painter = self._painter()
        if painter is not None:
            QGuiApplication.clipboard().setImage(QImage.fromData(painter.as_png()))

    def save(self) -> None:
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
        with errors_shown(self):
            replace_file(path, known[path.suffix.lower()](painter))
            self._settings.set_folder("save", path.parent)
            self.saved.emit(path)
            self.accept()
