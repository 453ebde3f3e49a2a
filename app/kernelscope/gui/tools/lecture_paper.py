"""The lecture on paper: a page of landscape A4 for each of its pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QRectF, QSizeF
from PySide6.QtGui import (
    QColor,
    QPagedPaintDevice,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTextDocument,
)

from kernelscope.gui.tools.lecture_view import facts_of, paint_drawing, sources_of, text_of
from kernelscope.teach.handbook.svg import Drawing
from kernelscope.teach.lecture import LecturePage, NamedNumber

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
    """Give a printer or a file landscape pages of A4."""
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
