"""The pages of the lecture on the screen and on paper."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import NamedTuple

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QPagedPaintDevice,
    QPageLayout,
    QPageSize,
    QPainter,
    QPaintEvent,
    QPalette,
    QPdfWriter,
    QTextDocument,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.teach.handbook.svg import Drawing
from kernelscope.teach.lecture.page import LecturePage, NamedNumber
from kernelscope.teach.lecture.parts import HEIGHT, WIDTH, credits, quote

WAITING = "The picture of this page is being made…"


class DrawingView(QWidget):
    """Shows a drawing as large as there is room, in the colour of text."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("lectureDrawing")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(320, 214)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.drawing: Drawing | None = None
        self._by_key = False

    def focusInEvent(self, event: QFocusEvent) -> None:
        # The page opens with the focus here, where a frame would only distract.
        self._by_key = event.reason() in (
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
        )
        super().focusInEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, HEIGHT)

    def show_drawing(self, drawing: Drawing | None) -> None:
        self.drawing = drawing
        self.setAccessibleName(drawing.title if drawing is not None else WAITING)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        palette = self.palette()
        if self.drawing is not None:
            room = QRectF(self.rect()).adjusted(4, 4, -4, -4)
            paint_drawing(painter, self.drawing, room, palette.color(QPalette.ColorRole.Text))
        else:
            painter.setPen(palette.color(QPalette.ColorRole.PlaceholderText))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, WAITING)
        if self.hasFocus() and self._by_key:
            painter.setPen(palette.color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


def paint_drawing(painter: QPainter, drawing: Drawing, room: QRectF, ink: QColor) -> None:
    """Paint a drawing into the upper left of a room, as large as its proportions allow."""
    renderer = QSvgRenderer(QByteArray(drawing.svg(ink.name()).encode()))
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
        f"<tr><td>{html.escape(fact.name)}</td>"
        f"<td align='right' style='padding-left: 10px'><b>{html.escape(fact.value)}</b></td>"
        f"<td style='padding-left: 12px; color: {quiet.name()}'>{html.escape(fact.source)}</td>"
        "</tr>"
        for fact in facts
    )
    return f"<table cellspacing='0' cellpadding='2' width='100%'>{''.join(rows)}</table>"


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


class Sheet(NamedTuple):
    """A page of the lecture, ready to be printed."""

    page: LecturePage
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
    """Paint the pages on a device that `set_up` has prepared.

    `title`: for the foot of every page.
    """
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
    top = heading.size().height() + 8
    left = _document(
        text_of(sheet.page)
        + "<br>"
        + facts_of(sheet.facts, _QUIET)
        + "<br>"
        + sources_of(sheet.page),
        _LEFT,
        15,
    )
    # A long list of sources becomes smaller rather than run over the foot.
    room = _SIZE.height() - top - _FOOT
    _draw(painter, left, 0, top, min(1.0, room / left.size().height()))
    place = QRectF(_LEFT + _GAP, top, _SIZE.width() - _LEFT - _GAP, room)
    paint_drawing(painter, sheet.drawing, place, _INK)
    note = _document(f"<span style='color: {_QUIET.name()}'>{foot}</span>", _SIZE.width(), 11)
    _draw(painter, note, 0, _SIZE.height() - note.size().height())


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
