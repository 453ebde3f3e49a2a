"""The parts of a page of the lecture: its drawing, and its texts as HTML, for screen and paper."""

from __future__ import annotations

import html

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.teach.handbook.svg import Drawing
from kernelscope.teach.lecture import LecturePage, NamedNumber
from kernelscope.teach.lecture.board import HEIGHT, WIDTH
from kernelscope.teach.lecture.quoting import credits, quote

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
        """Paint a drawing; a screen reader gets its title."""
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
    """Return a text with its ``*names*`` in italics."""
    pieces = text.split("*")
    return "".join(f"<i>{piece}</i>" if n % 2 else piece for n, piece in enumerate(pieces))


def facts_of(facts: tuple[NamedNumber, ...], quiet: QColor) -> str:
    """Return the numbers of a page as a table of HTML: name, value and origin."""
    rows = (
        f"<tr><td>{html.escape(fact.name)}</td>"
        f"<td align='right' style='padding-left: 10px'><b>{html.escape(fact.value)}</b></td>"
        f"<td style='padding-left: 12px; color: {quiet.name()}'>{html.escape(fact.source)}</td>"
        "</tr>"
        for fact in facts
    )
    return f"<table cellspacing='0' cellpadding='2' width='100%'>{''.join(rows)}</table>"


def sources_of(page: LecturePage) -> str:
    """Return the sources' figures of a page as HTML; empty if it has none."""
    figures = page.figures()
    if not figures:
        return ""
    lines = (f"<li><b>{figure.source}</b> {html.escape(quote(figure))}</li>" for figure in figures)
    notes = "<br>".join(html.escape(line) for line in credits(figures))
    style = "margin: 0 0 4px 14px; -qt-list-indent: 0"
    return f"<b>In the sources</b><ul style='{style}'>{''.join(lines)}</ul>{notes}"
