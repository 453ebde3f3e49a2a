"""Tables: figures with their points below each other, rows that Ctrl+C copies, facts in groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QObject, QRect, QSize, Qt
from PySide6.QtGui import (
    QAction,
    QFont,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPalette,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.engine.backend import FactGroup
from kernelscope.gui.widgets.parts import Index, dressed

_FIGURE = re.compile(r"(?P<whole>\D*[\d,]+)(?P<fraction>\.\d+)?(?P<unit>.*)")
_MARGIN = 4  # pixels beside the figures of a cell
_LEADING = 2  # pixels between rows
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


def parts_of(text: str) -> tuple[str, str, str] | None:
    """Return a figure up to its point, its decimals and its unit; None for words and remarks."""
    found = _FIGURE.fullmatch(text) if "(" not in text else None
    return None if found is None else (found["whole"], found["fraction"] or "", found["unit"])


class Column:
    """The places of the parts of figures, for the texts of a column: points and units align.

     14.5  ms
    589    µs
      1.08 s
    """

    def __init__(self, texts: Iterable[str], metrics: QFontMetrics) -> None:
        self._metrics = metrics
        width = metrics.horizontalAdvance
        texts = tuple(texts)
        split = [each for text in texts if (each := parts_of(text)) is not None]
        self._widths = [max((width(each[n]) for each in split), default=0) for n in range(3)]
        words = max((width(text) for text in texts if parts_of(text) is None), default=0)
        self.width = max(sum(self._widths), words)

    def paint(self, painter: QPainter, place: QRect, text: str) -> None:
        """Draw a text of the column at the right of a place, with the pen of the painter."""
        split = parts_of(text)
        if split is None or self.width > place.width():
            elided = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | _MIDDLE, elided)
            return
        whole, fraction, unit = split
        units = place.right() + 1 - self._widths[2]
        point = units - self._widths[1]
        top, height = place.top(), place.height()
        left = QRect(place.left(), top, point - place.left(), height)
        painter.drawText(left, Qt.AlignmentFlag.AlignRight | _MIDDLE, whole)
        for start, part in ((point, fraction), (units, unit)):
            painter.drawText(QRect(start, top, place.right() + 1 - start, height), _MIDDLE, part)


class FigureDelegate(QStyledItemDelegate):
    """Draws the cells of a column of a view as a `Column`."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view = view
        self._columns: dict[tuple[int, str], Column] = {}
        model = view.model()
        for changed in (
            model.modelReset,
            model.dataChanged,
            model.rowsInserted,
            model.rowsRemoved,
        ):
            changed.connect(self._forget)

    def _forget(self) -> None:
        self._columns.clear()

    def _column(self, number: int, font: QFont) -> Column:
        key = number, font.toString()
        if key not in self._columns:
            texts = (str(cell.data() or "") for cell in _cells(self._view.model(), number))
            self._columns[key] = Column(texts, QFontMetrics(font))
        return self._columns[key]

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        shown = QStyleOptionViewItem(option)
        self.initStyleOption(shown, index)
        text, shown.text = shown.text, ""
        style, widget = self._view.style(), self._view
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, shown, painter, widget)
        selected = bool(shown.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
        painter.save()
        painter.setFont(shown.font)
        painter.setPen(shown.palette.color(role))
        place = shown.rect.adjusted(_MARGIN, 0, -_MARGIN, 0)
        self._column(index.column(), shown.font).paint(painter, place, text)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        size = super().sizeHint(option, index)
        wanted = self._column(index.column(), option.font).width + 2 * _MARGIN + 2
        return size.expandedTo(QSize(wanted, 0))


def _cells(
    model: QAbstractItemModel, column: int, parent: Index | None = None
) -> Iterator[QModelIndex]:
    """Yield the cells of a column, those below others too."""
    parent = parent if parent is not None else QModelIndex()
    for row in range(model.rowCount(parent)):
        yield model.index(row, column, parent)
        yield from _cells(model, column, model.index(row, 0, parent))


BARS = Qt.ItemDataRole.UserRole
"""Role under which a cell keeps its bars: (fill, from, to) with shares of its width. One that ends
nowhere is a mark."""
MARK = "▼"


class BarDelegate(QStyledItemDelegate):
    """Draws bars, and the text of the cell behind them; `texts`: the width that is left for it."""

    texts = 0

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        option.text = ""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)  # a selected line has a ground
        metrics, rect = option.fontMetrics, option.rect.adjusted(1, 2, -1, -2)
        inset = max(0, (rect.height() - metrics.height()) // 2)
        area = rect.adjusted(0, inset, -min(self.texts, rect.width()), -inset)
        end = area.left()
        for fill, start, stop in index.data(BARS) or ():
            left = area.left() + round(area.width() * start)
            if stop is None:
                painter.setPen(fill)
                half = metrics.horizontalAdvance(MARK) // 2
                painter.drawText(
                    area.adjusted(left - half - area.left(), 0, half, 0), _MIDDLE, MARK
                )
                end = max(end, left + half)
                continue
            width = area.left() + round(area.width() * stop) - left
            bar = QRect(left, area.top(), max(width, 1 if stop > start else 0), area.height())
            painter.fillRect(bar, fill)
            end = max(end, bar.right())
        if text := index.data():
            painter.setPen(option.palette.color(QPalette.ColorRole.Text))
            room = rect.adjusted(end + 8 - rect.left(), 0, 0, 0)
            cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, _MIDDLE, cut)


class CopyKey(QObject):
    """Puts a text on the clipboard when Ctrl+C is pressed in a view.

    Qt offers a key to the widget in focus before it looks for shortcuts (``ShortcutOverride``); a
    widget that accepts the offer gets the key press in place of the window's action. `text` returns
    the text to copy.
    """

    def __init__(self, view: QWidget, text: Callable[[], str]) -> None:
        super().__init__(view)
        self._text = text
        view.installEventFilter(self)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            isinstance(event, QKeyEvent)
            and event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
            and event.matches(QKeySequence.StandardKey.Copy)
        ):
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.copy()
            return True
        return super().eventFilter(watched, event)


class CopyableTree(QTreeWidget):
    """A tree with a `CopyKey`; by default its rows are copied, cells separated by tabs."""

    def __init__(self, text: Callable[[], str] | None = None) -> None:
        super().__init__()
        self._key = CopyKey(self, text or self.rows)

    def copy(self) -> None:
        self._key.copy()

    def rows(self) -> str:
        """Return the texts of the rows at the top, without those below them."""
        items = (self.topLevelItem(row) for row in range(self.topLevelItemCount()))
        columns = range(self.columnCount())
        return "\n".join("\t".join(map(item.text, columns)) for item in items if item is not None)


_NAMES = 0.57  # largest share of the width for the names


class _Wrapped(QStyledItemDelegate):
    """Makes rows of a `FactTable` as high as their texts, which are wrapped, are."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        option.text = option.text.replace("_", "_\u200b")  # long names of kernels wrap as well
        option.displayAlignment = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        table = self.parent()
        assert isinstance(table, FactTable)
        self.initStyleOption(option, index)
        metrics, text = option.fontMetrics, option.text
        least = metrics.height() + _LEADING
        if not index.parent().isValid():
            width = table.viewport().width()
        else:
            width = table.columnWidth(index.column())
            width -= table.indentation() if index.column() == 0 else 0
        room = QRect(0, 0, width - 2 * _MARGIN, 1 << 20)
        lines = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, text).height()
        return QSize(metrics.horizontalAdvance(text) + 2 * _MARGIN, max(least, lines + _LEADING))


class FactTable(CopyableTree):
    """Facts under the titles of their groups; copies the selected rows, or all."""

    def __init__(self, name: str, accessible_name: str) -> None:
        super().__init__(lambda: self.text(bool(self.selectedItems())))
        dressed(self, name, accessible_name)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(12)
        self.setItemDelegate(_Wrapped(self))
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)  # wrapped, so that nothing is cut
        self.setAllColumnsShowFocus(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        copy = QAction("Copy", self)
        copy.setObjectName(f"{name}Copy")
        copy.triggered.connect(self.copy)
        self.addAction(copy)
        self._groups: dict[str, QTreeWidgetItem] = {}

    def set_group(self, group: FactGroup, *, on_top: bool = False) -> None:
        heading = self._groups.get(group.title)
        if heading is None:
            heading = self._groups[group.title] = QTreeWidgetItem([group.title])
            font = self.font()
            font.setBold(True)
            heading.setFont(0, font)
            self.insertTopLevelItem(0 if on_top else self.topLevelItemCount(), heading)
            heading.setFirstColumnSpanned(True)
            heading.setExpanded(True)
        rows = [(fact.name, f"{fact.value} {fact.unit}".rstrip()) for fact in group.facts]
        while heading.childCount() > len(rows):
            heading.takeChild(heading.childCount() - 1)
        while heading.childCount() < len(rows):
            heading.addChild(QTreeWidgetItem())
        for place, texts in enumerate(rows):  # in place, so that a selection stays
            row = heading.child(place)
            assert row is not None
            for column, text in enumerate(texts):
                row.setText(column, text)
                row.setToolTip(column, text)
        self._share_width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()

    def _share_width(self) -> None:
        """Give the names the width that they need, but leave room for the values."""
        most = int(_NAMES * self.viewport().width())
        self.setColumnWidth(0, min(self.sizeHintForColumn(0) + self.indentation(), most))
        self.scheduleDelayedItemsLayout()  # rows are as high as their lines

    @property
    def hidden_height(self) -> int:
        """How many pixels are missing for all rows to be seen at once."""
        self.doItemsLayout()
        bar = self.verticalScrollBar()
        return bar.maximum() - bar.minimum()

    def clear_groups(self) -> None:
        self._groups.clear()
        self.clear()

    def text(self, selected: bool = False) -> str:
        rows = []
        for place in range(self.topLevelItemCount()):
            heading = self.topLevelItem(place)
            assert heading is not None
            if not selected or heading.isSelected():
                rows.append(heading.text(0))
            for number in range(heading.childCount()):
                row = heading.child(number)
                assert row is not None
                if not selected or row.isSelected():
                    rows.append(f"{row.text(0)}\t{row.text(1)}")
        return "\n".join(rows)
