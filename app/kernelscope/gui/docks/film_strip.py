"""The film strip: the open pictures; Return or a click shows one, Delete or its cross closes it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPalette,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QListWidget, QStyle, QStyleOptionViewItem

from kernelscope.gui.model.documents import Document
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.parts import Index, dressed, plain_tip
from kernelscope.gui.widgets.tiles import (
    Tile,
    TileDelegate,
    TileLine,
    draw_tile,
    scroll_sideways,
    set_count,
)

_DOCUMENT = Qt.ItemDataRole.UserRole
_FRONT = Qt.ItemDataRole.UserRole + 1
_STATE = Qt.ItemDataRole.UserRole + 2

_PICTURE = QSize(56, 42)
_MARGIN, _GAP, _CROSS = 3, 8, 16
_LETTERS = 17  # of a name that are shown at any size of text: those of cameras have 12 capitals


class FilmStrip(QListWidget):
    """Shows the documents; hidden while there is only one."""

    # `Document`: It is to be shown, or to be closed.
    wanted = Signal(object)
    closing = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "filmStrip", "Open pictures")
        self.setFlow(QListWidget.Flow.LeftToRight)
        self.setWrapping(False)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setHorizontalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_FilmTile(self, self.tile_size))
        self.setSpacing(1)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self._longest = 0  # pixels of the longest name
        stylist().restyled.connect(self._measure)
        self.hide()

    def show_documents(
        self,
        documents: Sequence[Document],
        front: Document | None,
    ) -> None:
        """Show the documents as they are now; `front`, the one on the screen, comes into view."""
        self.setVisible(len(documents) > 1)
        if self.isHidden():
            documents = ()
        set_count(self, len(documents))
        for row, document in enumerate(documents):
            item = self.item(row)
            was = item.data(_FRONT)
            item.setData(_DOCUMENT, document)
            item.setData(_FRONT, document is front)
            item.setData(_STATE, state := _state(document))
            item.setText(document.title)
            item.setToolTip(plain_tip(_tip(document)))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, _describe(document, state, front))
            if document is front and not was:
                self.setCurrentItem(item)
                self.scrollToItem(item)
        if documents:
            self._measure()
            self.viewport().update()

    def _measure(self) -> None:
        """Fit the tiles to the names, and the strip to the tiles."""
        bold = QFont(self.font())
        bold.setBold(True)  # that of the one in front
        metrics = QFontMetrics(bold)
        names = (metrics.horizontalAdvance(self.item(n).text()) for n in range(self.count()))
        before, self._longest = self._longest, max(names, default=0)
        if before != self._longest:
            self.scheduleDelayedItemsLayout()
        self.setFixedHeight(self._height())

    def sizeHint(self) -> QSize:
        return QSize(3 * self.tile_size().width(), self._height())

    def _height(self) -> int:
        needed = self.count() * (self.tile_size().width() + 2 * self.spacing())
        scrolls = needed > self.width() - 2 * self.frameWidth()
        bar = self.horizontalScrollBar().sizeHint().height() if scrolls else 0
        return self.tile_size().height() + bar + 2 * self.frameWidth() + 2 * self.spacing()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.setFixedHeight(self._height())
            self.scrollToItem(self.currentItem())

    def tile_size(self) -> QSize:
        """Return the size of tiles with whole names, as far as there is room beside each other."""
        text = 2 * self.fontMetrics().height()
        beside = _PICTURE.width() + _GAP + 3 * _MARGIN + _CROSS
        share = (self.width() - 2 * self.frameWidth()) // max(self.count(), 1) - 2 * self.spacing()
        least = _LETTERS * self.fontMetrics().averageCharWidth()
        width = max(least, min(self._longest, share - beside))
        return QSize(beside + width, max(_PICTURE.height(), text) + 2 * _MARGIN)

    # --- Qt ---

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.currentItem()
        if item is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.wanted.emit(item.data(_DOCUMENT))
        elif item is not None and event.key() == Qt.Key.Key_Delete:
            self.closing.emit(item.data(_DOCUMENT))
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        place = event.position().toPoint()
        item = self.itemAt(place)
        if item is None:
            return
        on_cross = cross_of(self.visualItemRect(item)).contains(place)
        if event.button() == Qt.MouseButton.MiddleButton:
            self.closing.emit(item.data(_DOCUMENT))
        elif event.button() == Qt.MouseButton.LeftButton:
            (self.closing if on_cross else self.wanted).emit(item.data(_DOCUMENT))

    def wheelEvent(self, event: QWheelEvent) -> None:
        scroll_sideways(self, event)


class _FilmTile(TileDelegate):
    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        document: Document = index.data(_DOCUMENT)
        palette, area, front = option.palette, option.rect, bool(index.data(_FRONT))
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        if front or hovered:
            painter.fillRect(area, palette.color(QPalette.ColorRole.Button))
        if front:
            bar = QRect(area.left(), area.bottom() - 2, area.width(), 3)
            painter.fillRect(bar, palette.color(QPalette.ColorRole.Accent))
        frame = QRect(QPoint(area.left() + _MARGIN, area.top() + _MARGIN), _PICTURE)
        room = area.adjusted(frame.width() + _MARGIN + _GAP, _MARGIN, -_MARGIN, -_MARGIN)
        cut = Qt.TextElideMode.ElideMiddle
        name = TileLine(document.title, bold=front, cut=cut, spare=_CROSS)
        lines = name, TileLine(index.data(_STATE), quiet=True, cut=cut)
        tile = Tile(document.thumbnail, lines, opacity=0.45 if document.asleep else 1.0)
        draw_tile(painter, tile, frame, room, palette)
        if front or hovered:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(palette.color(QPalette.ColorRole.Text), 1.4))
            inner = cross_of(area).adjusted(4, 4, -4, -4)
            painter.drawLine(inner.topLeft(), inner.bottomRight())
            painter.drawLine(inner.topRight(), inner.bottomLeft())


def cross_of(tile: QRect) -> QRect:
    place = QRect(0, 0, _CROSS, _CROSS)
    place.moveTopRight(tile.topRight() + QPoint(-_MARGIN, _MARGIN))
    return place


_STATES = "as opened", "no whole output", "output not saved", "has steps", "an output saved"


def _state(document: Document) -> str:
    return "on disk" if document.asleep else _STATES[document.state]


def _describe(document: Document, state: str, front: Document | None) -> str:
    parts = [document.title, document.size, state]
    return ", ".join(filter(None, (*parts, "in front" * (document is front))))


def _tip(document: Document) -> str:
    lines = [str(document.path or document.title), document.size]
    if document.asleep:
        lines.append("Not in memory: it is read again when it is shown.")
    if document.lost:
        lines.append(f"Dropped to make room: {document.lost}. Run computes it again.")
    return "\n".join(filter(None, lines))
