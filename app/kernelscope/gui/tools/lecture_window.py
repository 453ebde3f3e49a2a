"""Learn > Lecture: pages on memory and speed, with live pictures of the user's own image.

The window shows any page from its description: text, controls declared as parameters, a drawing
and numbers. They are made off the GUI thread, since some pages run a filter. On paper, pages have
the values of the screen.
"""

from __future__ import annotations

import contextlib
import html
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QMarginsF,
    QPointF,
    QRectF,
    QSize,
    QSizeF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QPagedPaintDevice,
    QPageLayout,
    QPageSize,
    QPainter,
    QPaintEvent,
    QPalette,
    QPdfWriter,
    QShortcut,
    QTextDocument,
)
from PySide6.QtPrintSupport import QPrintDialog, QPrinter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QSizePolicy, QWidget

from kernelscope.base.errors import InvalidParameter
from kernelscope.files.write_errors import replace_file
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.form import Form
from kernelscope.gui.widgets.layouts import Scrolled
from kernelscope.gui.widgets.messages import choose_text_to_save, errors_shown, open_dialog
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    push_button,
    text_label,
    tool_splitter,
)
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.source import Source
from kernelscope.teach.handbook.svg import GROWN, Drawing
from kernelscope.teach.lecture.page import (
    Demonstration,
    LecturePage,
    LectureSubject,
    MeasuredTime,
    NamedNumber,
    NumberOrigin,
    count,
)
from kernelscope.teach.lecture.pages import PAGES
from kernelscope.teach.lecture.parts import HEIGHT, WIDTH, credits, quote

WAITING = "The picture of this page is being made…"


_WIDEST = 0.64  # of the screen's width; the text beside a drawing has the rest

_MARGIN = 4  # pixels around a drawing

_LEAST = 0.75
"""The share of its height to which a drawing becomes smaller in a low window before it scrolls."""


class DrawingView(QWidget):
    """Shows a drawing as large as there is room, in the colour of text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("lectureDrawing")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.drawing: Drawing | None = None
        self._by_key = False
        self.show_letters(1.0)

    def focusInEvent(self, event: QFocusEvent) -> None:
        # The page opens with the focus here, where a frame would only distract.
        self._by_key = event.reason() in (
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
        )
        super().focusInEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, HEIGHT)

    def show_letters(self, scale: float) -> None:
        """Be large enough for letters that are larger than usual, as all text of the window is."""
        self._letters = min(scale, GROWN)
        self._usual = QSizeF(WIDTH, HEIGHT) * (scale / self._letters if scale > 1 else 0.48)
        self._take_room()

    @property
    def _drawn(self) -> float:
        """The share of the height that is not empty: the rest would only be scrolled to."""
        return min(self.drawing.bottom / HEIGHT, 1) if self.drawing is not None else 1

    def _take_room(self) -> None:
        height = _LEAST * self._drawn * self._usual.height() + 2 * _MARGIN
        self.setMinimumSize(math.ceil(self._usual.width()), math.ceil(height))

    def show_drawing(self, drawing: Drawing | None) -> None:
        self.drawing = drawing
        self._take_room()
        self.setAccessibleName(drawing.title if drawing is not None else WAITING)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        palette = self.palette()
        if self.drawing is not None:
            room = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
            needed = min(room.height() / self._drawn, self._usual.height())
            room.setHeight(max(room.height(), needed))
            ink = palette.color(QPalette.ColorRole.Text)
            paint_drawing(painter, self.drawing, room, ink, self._letters)
        else:
            painter.setPen(palette.color(QPalette.ColorRole.PlaceholderText))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, WAITING)
        if self.hasFocus() and self._by_key:
            painter.setPen(palette.color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


def paint_drawing(
    painter: QPainter, drawing: Drawing, room: QRectF, ink: QColor, letters: float = 1
) -> None:
    """Paint a drawing into the upper left of a room, as large as its proportions allow."""
    renderer = QSvgRenderer(QByteArray(drawing.svg(ink.name(), letters).encode()))
    size = renderer.defaultSize()
    scale = min(room.width() / size.width(), room.height() / size.height())
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    place = QRectF(room.x(), room.y(), scale * size.width(), scale * size.height())
    renderer.render(painter, place)


def text_of(page: LecturePage) -> str:
    parts = (html.escape(part) for part in page.text.split("\n\n"))
    return "".join(f"<p>{_emphasised(part)}</p>" for part in parts)


def _emphasised(text: str) -> str:
    pieces = text.split("*")
    return "".join(f"<i>{piece}</i>" if n % 2 else piece for n, piece in enumerate(pieces))


def facts_of(facts: tuple[NamedNumber, ...], quiet: QColor) -> str:
    rows = (
        f"<tr><td align='right'><b>{html.escape(fact.value)}</b></td>"
        f"<td style='padding-left: 12px'>{html.escape(fact.name)}&ensp;"
        f"<span style='color: {quiet.name()}'>{html.escape(fact.source)}</span></td></tr>"
        for fact in facts
    )
    return f"<table cellspacing='0' cellpadding='2'>{''.join(rows)}</table>"


def sources_of(page: LecturePage) -> str:
    figures = page.figures()
    if not figures:
        return ""
    lines = (f"<li><b>{figure.source}</b> {html.escape(quote(figure))}</li>" for figure in figures)
    notes = "<br>".join(html.escape(line) for line in credits(figures))
    style = "margin: 0 0 4px 14px; -qt-list-indent: 0"
    return f"<b>In the sources</b><ul style='{style}'>{''.join(lines)}</ul>{notes}"


_INK, _QUIET = QColor("#1a1a1a"), QColor("#5c5c5c")

_SIZE = QSizeF(1120, 780)
"""Units of a page: about those of a screen, so that letters have 10 to 12 points on A4."""

_LEFT, _GAP, _FOOT = 440.0, 24.0, 20.0

_RULED = 30.0  # from line to line for notes


class Sheet(NamedTuple):
    """A page of the lecture, ready to be printed."""

    page: LecturePage
    values: str  # those of its controls, in words
    drawing: Drawing
    facts: tuple[NamedNumber, ...]


def set_up(device: QPagedPaintDevice) -> None:
    device.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    device.setPageOrientation(QPageLayout.Orientation.Landscape)
    device.setPageMargins(QMarginsF(12, 12, 12, 12), QPageLayout.Unit.Millimeter)


def as_pdf(sheets: Iterable[Sheet], title: str) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(title)
    set_up(writer)
    paint(writer, sheets, title)
    return bytes(buffer.data().data())


def paint(device: QPagedPaintDevice, sheets: Iterable[Sheet], title: str) -> None:
    """Paint the pages on a device that `set_up` has prepared, `title` at the foot of each."""
    painter = QPainter(device)
    painter.setRenderHint(QPainter.RenderHint.LosslessImageRendering)
    width, height = device.width(), device.height()
    scale = min(width / _SIZE.width(), height / _SIZE.height())
    painter.scale(scale, scale)
    for number, sheet in enumerate(sheets):
        if number:
            device.newPage()
        _paint_sheet(painter, sheet, f"{number + 1} · {title}")
    painter.end()


def _paint_sheet(painter: QPainter, sheet: Sheet, foot: str) -> None:
    heading = _document(f"<h1>{sheet.page.title}</h1>", _SIZE.width(), 15)
    _draw(painter, heading, 0, 0)
    top, end = heading.size().height() + 8, _SIZE.height() - _FOOT
    left = _document(text_of(sheet.page) + "<br>" + sources_of(sheet.page), _LEFT, 15)
    # A long list of sources becomes smaller rather than run over the foot.
    _draw(painter, left, 0, top, min(1.0, (end - top) / left.size().height()))
    _paint_lines(painter, top + left.size().height() + _GAP, end)
    x, width = _LEFT + _GAP, _SIZE.width() - _LEFT - _GAP
    paint_drawing(painter, sheet.drawing, QRectF(x, top, width, end - top), _INK)
    below = top + sheet.drawing.bottom * width / sheet.drawing.width + _GAP / 2
    facts = _document(
        f"<p><b>{html.escape(sheet.values)}</b></p>{facts_of(sheet.facts, _QUIET)}", width, 14
    )
    _draw(painter, facts, x, below, min(1.0, (end - below) / facts.size().height()))
    note = _document(f"<span style='color: {_QUIET.name()}'>{foot}</span>", _SIZE.width(), 11)
    _draw(painter, note, 0, _SIZE.height() - note.size().height())


def _paint_lines(painter: QPainter, top: float, end: float) -> None:
    """Rule the rest of a column, for notes."""
    painter.setPen(QColor("#d0d0d0"))
    for line in range(1, int((end - top) / _RULED)):
        y = top + line * _RULED
        painter.drawLine(QPointF(0, y), QPointF(_LEFT, y))


def _document(text: str, width: float, pixels: int) -> QTextDocument:
    document = QTextDocument()
    document.setDocumentMargin(0)
    font = document.defaultFont()
    font.setPixelSize(pixels)
    document.setDefaultFont(font)
    document.setHtml(f"<div style='color: {_INK.name()}'>{text}</div>")
    document.setTextWidth(width)
    return document


def _draw(
    painter: QPainter, document: QTextDocument, x: float, y: float, scale: float = 1.0
) -> None:
    painter.save()
    painter.translate(x, y)
    painter.scale(scale, scale)
    document.drawContents(painter)
    painter.restore()


_PAGES = tuple(PAGES.values())

_LEVEL_PAGES = {
    "single-block": "blocks",
    "global": "coalescing",
    "constant": "constant",
    "shared": "tiles",
    "texture": "textures",
}
_FILTER_PAGES = {"median": "medians", "nlm": "nlm"}  # pages about a level, and about a filter

_USUAL, _LARGE = 1.15, 1.6
"""Size of text in the window and for a projector, relative to that of the program."""


class LectureWindow(ToolWindow):
    """The pages of the lecture; `source`: the open input; `measured`: this session's GPU runs."""

    shown = Signal(str)  # the drawing and numbers of the page with this id are there

    def __init__(
        self,
        background: Background,
        source: Callable[[], Source | None],
        measured: Callable[[], tuple[MeasuredTime, ...]],
        parent: QWidget | None = None,
    ) -> None:
        flags = Qt.WindowType.Window  # it can fill the screen
        super().__init__("lectureWindow", "Lecture", parent, help_page="lecture", flags=flags)
        self._background, self._source, self._measured = background, source, measured
        self._values = {page.id: page.defaults() for page in _PAGES}
        self._facts_shown: tuple[NamedNumber, ...] = ()
        self._busy = self._late = False
        self._size = _USUAL  # of its text, as a multiple of the window's
        self._make_text()
        self._restyle()
        self._lay_out()
        self._make_keys()
        stylist().restyled.connect(self._follow)
        scale = stylist().appearance.scale
        self.take_size(round(1180 * scale), round(660 * scale))
        self._open_page()

    def _restyle(self) -> None:
        sheet = _type(self._size * QApplication.font().pointSizeF())
        if sheet != self.styleSheet():
            self.setStyleSheet(sheet)
        self.view.show_letters(stylist().appearance.scale * self._size / _USUAL)
        bar = self._area.verticalScrollBar().sizeHint().width()
        widest = round(_WIDEST * self.screen().availableGeometry().width())
        self._area.setMinimumWidth(min(self.view.minimumWidth() + bar, widest))

    def _follow(self) -> None:
        """Take another size of text and other colours."""
        self._restyle()
        self._show_facts(self._facts_shown)

    # --- layout ---

    def _make_text(self) -> None:
        self._title = text_label("", "lectureTitle", "headline", selectable=True)
        self._text = text_label("", "lectureText", selectable=True)
        self._facts = text_label("", "lectureFacts", selectable=True)
        self._sources = text_label("", "lectureSources", "note", selectable=True)
        self._about = text_label("", "lectureAbout", "note", plain=True, selectable=True)
        self.view = DrawingView(self)
        self._area = dressed(QScrollArea(), "lectureDrawingArea", "Drawing of the page")

    def _lay_out(self) -> None:
        self._count = push_button(
            "C&ount on the emulated GPU",
            "lectureCount",
            self.count,
            tip="Run these kernels on the emulated GPU and count their accesses, on a part of the "
            "picture; needs a C++ compiler and a few seconds",
        )
        self._form = Form("lectureForm", (), self)
        self._form.changed.connect(self._on_changed)
        left = dressed(QWidget(self), "lectureColumn")
        column = in_column(self._text, self._facts, of=left)
        column.addWidget(self._sources)
        column.addStretch(1)
        area = Scrolled(left, "lectureScroll", "Text and numbers of the page")
        right = QWidget(self)
        controls = in_row((self._form, 1))  # beside the drawing that they change, never scrolled
        controls.addWidget(self._count, 0, Qt.AlignmentFlag.AlignBottom)
        drawing = self._area
        drawing.setWidgetResizable(True)
        drawing.setFrameShape(QScrollArea.Shape.NoFrame)
        drawing.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the drawing has it, and hands on its keys
        drawing.setWidget(self.view)
        in_column((drawing, 1), controls, self._about, of=right)
        parts = tool_splitter(area, right, sizes=(470, 700), stretch=(2, 3))
        in_column(self._title, (parts, 1), self._bar(), of=self)

    def _bar(self) -> QHBoxLayout:
        spoken, pages = "Page of the lecture", enumerate(_PAGES, 1)
        titles = ((f"{number}. {page.title}", page.id) for number, page in pages)
        self._chooser = choice_box("lecturePages", spoken, titles, self._open_page, tip=spoken)
        self._back = push_button(
            "&Back", "lectureBack", lambda: self.turn(-1), tip="Previous page (Page Up)"
        )
        self._next = push_button(
            "&Next", "lectureNext", lambda: self.turn(1), tip="Next page (Page Down)"
        )
        tip = "Whole screen with large type (F11); Esc ends it"
        name = "lectureProjector"
        self.projector = push_button("P&rojector", name, self._project, tip=tip, stays=True)
        return in_row(
            *(self._back, (self._chooser, 1), self._next, 1, self.projector),
            push_button(
                "&Save as PDF…", "lectureSave", self.save, tip="All pages with their values, A4"
            ),
            push_button("&Print…", "lecturePrint", self.print, tip="Print all pages (Ctrl+P)"),
            push_button("&Close", "lectureClose", self.reject, tip="Close the lecture"),
        )

    def _make_keys(self) -> None:
        for key, action in (
            (Qt.Key.Key_PageDown, lambda: self.turn(1)),
            (Qt.Key.Key_PageUp, lambda: self.turn(-1)),
            (Qt.Key.Key_F11, self.projector.toggle),
            (QKeySequence.StandardKey.Print, self.print),
        ):
            QShortcut(QKeySequence(key), self).activated.connect(action)

    # --- pages ---

    @property
    def page(self) -> LecturePage:
        return PAGES[str(self._chooser.currentData())]

    @property
    def settled(self) -> bool:
        return not self._busy

    @property
    def counted(self) -> bool:
        return any(fact.origin is NumberOrigin.EMULATED for fact in self._facts_shown)

    def open(
        self, level: str = "", filter_id: str = "", values: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Show the lecture, at its page about the level in front or else about the filter.

        Controls of the page that are parameters of the filter too have its `values`.
        """
        page = _LEVEL_PAGES.get(level) or _FILTER_PAGES.get(filter_id)
        if page is not None and not self.isVisible():
            for control in PAGES[page].controls:
                with contextlib.suppress(InvalidParameter):  # more than the page can show
                    if control.name in values:
                        control.validate(values[control.name])
                        self._values[page][control.name] = values[control.name]
            self._chooser.setCurrentIndex(self._chooser.findData(page))
            self._form.show_values(**self._values[page])
        self.show_in_front()
        self.view.setFocus()
        self._refresh()

    def turn(self, pages: int) -> None:
        wanted = self._chooser.currentIndex() + pages
        if 0 <= wanted < len(_PAGES):
            self._chooser.setCurrentIndex(wanted)

    def set_values(self, **values: Any) -> None:
        for name, value in values.items():
            self._form.editors[name].set_value(value)

    def _open_page(self) -> None:
        page, place = self.page, self._chooser.currentIndex()
        self._title.setText(page.title)
        self._text.setText(text_of(page))
        self._sources.setText(sources_of(page))
        self._show_facts(())
        self._count.setVisible(page.counted is not None)
        self._about.clear()  # it is about the page before
        self.view.show_drawing(None)
        self._back.setEnabled(place > 0)
        self._next.setEnabled(place < len(_PAGES) - 1)
        self._form.declare(page.controls)
        self._form.show_values(**self._values[page.id])
        self._refresh()

    def _on_changed(self) -> None:
        values = self._form.values
        try:
            for control in self.page.controls:
                control.validate(values[control.name])
        except InvalidParameter:
            return  # half typed: the box says so itself
        self._values[self.page.id] = values
        self._refresh()

    def _refresh(self) -> None:
        self._background.forget("lecture count")  # counts of other values
        self._count.setEnabled(True)
        if not self.isVisible():
            return
        if self._busy:
            self._late = True
            return
        self._busy, self._late = True, False
        page, values = self.page, dict(self._values[self.page.id])
        source, measured = self._source(), self._measured()

        def work() -> tuple[LectureSubject, Demonstration]:
            subject = LectureSubject.of(source, measured)
            return subject, page.show(subject, values)

        def then(made: tuple[LectureSubject, Demonstration]) -> None:
            self._busy = False
            if self._late:
                self._refresh()
            elif page is self.page:
                self._show(page, *made)

        def failed(error: Exception) -> None:
            self._busy = False
            if self._late:  # another page is waiting for its picture
                self._refresh()
            self.report(error)

        self._background.start("lecture", work, then, failed)

    def _show(self, page: LecturePage, subject: LectureSubject, shown: Demonstration) -> None:
        self.view.show_drawing(shown.drawing)
        self._show_facts(page.facts(shown, subject))
        self._about.setText(f"Picture: {subject.title}, {subject.size}, in grey, 8 bit")
        self.shown.emit(page.id)

    def _show_facts(self, facts: tuple[NamedNumber, ...]) -> None:
        self._facts_shown = facts
        self._facts.setText(facts_of(facts, theme.quiet_text(self.palette())))

    def count(self) -> None:
        """Count the accesses of the page's kernels on the emulated GPU, and add them."""
        page = self.page
        if page.counted is None or self._busy:
            return
        wanted, source = page.counted(self._values[page.id]), self._source()
        self._count.setEnabled(False)
        self.view.setFocus()  # else “Back” would have the arrow keys
        self._about.setText("Compiling and counting…")

        def then(facts: tuple[NamedNumber, ...]) -> None:
            self._about.setText("Counted on a part of the picture of at most 128×128 pixels")
            self._show_facts((*facts, *self._facts_shown))  # in view, below the text

        def failed(error: Exception) -> None:
            self._count.setEnabled(True)
            self._about.clear()
            self.report(error)

        self._background.start(
            "lecture count", lambda: count(wanted, LectureSubject.of(source)), then, failed
        )

    # --- projector ---

    def _project(self, on: bool) -> None:
        self._size = _LARGE if on else _USUAL
        self._restyle()
        if on:
            self.showFullScreen()
        else:
            self.showNormal()
        self.view.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.projector.isChecked():
            self.projector.setChecked(False)
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Space):
            self.turn(1)
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self.turn(-1)
        else:
            super().keyPressEvent(event)

    # --- paper ---

    def save(self) -> None:
        choose_text_to_save(self, "Save lecture", "lecture.pdf", self.write_pdf, "PDF (*.pdf)")

    def write_pdf(self, path: Path) -> None:
        def then(sheets: list[Sheet]) -> None:
            with errors_shown(self):
                replace_file(path, as_pdf(sheets, self._foot))
                self._about.setText(f"Saved {path}")

        self._collect(then)

    def print(self) -> None:
        printer = QPrinter(QPrinter.PrinterMode.HighResolution)
        set_up(printer)
        dialog = dressed(QPrintDialog(printer, self), "lecturePrinter")

        def then(sheets: list[Sheet]) -> None:
            paint(printer, sheets, self._foot)
            self._about.setText("Sent to the printer")

        dialog.accepted.connect(lambda: self._collect(then))
        open_dialog(dialog)

    @property
    def _foot(self) -> str:
        return "Kernelscope: lecture"

    def _collect(self, then: Callable[[list[Sheet]], None]) -> None:
        values = {name: dict(each) for name, each in self._values.items()}
        source, measured = self._source(), self._measured()
        self._about.setText("Making all pages…")

        def work() -> list[Sheet]:
            subject = LectureSubject.of(source, measured)
            sheets = []
            for page in _PAGES:
                shown = page.show(subject, values[page.id])
                words = page.described(values[page.id])
                sheets.append(Sheet(page, words, shown.drawing, page.facts(shown, subject)))
            return sheets

        self._background.start("lecture on paper", work, then, self.report)

    def leave(self) -> None:
        self._background.forget("lecture")
        self._background.forget("lecture count")
        self._busy = False


def _type(points: float) -> str:
    return (
        f"* {{ font-size: {points:.1f}pt; }}"
        f'QLabel[role="headline"] {{ font-size: {1.6 * points:.1f}pt; }}'
        f'QLabel[role="note"] {{ font-size: {0.85 * points:.1f}pt; }}'
    )
