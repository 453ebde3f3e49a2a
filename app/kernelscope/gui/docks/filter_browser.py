"""The dock *Filters*: every filter with a picture of its effect, and a search.

search field   Down: into the list    Enter: adopt the best match    Esc: clear
list           arrows: move           Enter: adopt                   Esc: clear the search
               left and right: close and open a group                click: adopt
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QImage, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.gui.model.filter_groups import Groups, best, narrowed
from kernelscope.gui.model.sketches import HEIGHT, WIDTH
from kernelscope.gui.widgets.parts import HELP_ROLE, Index, dressed, in_column, text_label
from kernelscope.gui.widgets.tiles import (
    Tile,
    TileDelegate,
    TileLine,
    draw_lines,
    draw_tile,
    is_selected,
)
from kernelscope.schema.filter import FilterSpec
from kernelscope.teach.manual import filter_page

_SPEC = Qt.ItemDataRole.UserRole
_IMAGE = Qt.ItemDataRole.UserRole + 1
_NOTE = Qt.ItemDataRole.UserRole + 2
_CURRENT = Qt.ItemDataRole.UserRole + 3

_MARGIN, _GAP = 4, 8

_ACCENT = 3  # width of the bar beside the filter whose settings are shown

_KEYS_OF_LIST = (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp)


class FilterBrowser(QWidget):
    """Shows the filters under their categories and lets the user choose one."""

    adopted = Signal(str)  # the filter with this id was chosen
    found = Signal()  # it was chosen by Return in the search

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("filterBrowser")
        self._groups: Groups = {}
        self._items: dict[str, QTreeWidgetItem] = {}
        self._headings: dict[str, QTreeWidgetItem] = {}
        self._closed: set[str] = set()  # headings of the groups that the user closed
        self._current = ""
        self.search = dressed(
            QLineEdit(self),
            "filterSearch",
            "Search filters",
            tip="Part of a name, a category or a related word: “blur”, “specks”",
        )
        self.search.setPlaceholderText("Search filters")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._narrow)
        self.search.installEventFilter(self)
        self.list = _FilterTree(self)
        self.list.chosen.connect(self._adopt)
        self.list.left.connect(self._clear)
        self.list.itemCollapsed.connect(lambda item: self._on_folded(item, closed=True))
        self.list.itemExpanded.connect(lambda item: self._on_folded(item, closed=False))
        self._nothing = text_label(
            "No filter has such a name.", "noFilterFound", "note", parent=self
        )
        self.setFocusProxy(self.search)
        in_column(self.search, self._nothing, (self.list, 1), of=self, margins=6, spacing=4)
        self._narrow()

    # --- contents ---

    def set_groups(self, groups: Groups) -> None:
        self._groups = groups
        self._items.clear()
        self._headings.clear()
        self.list.clear()
        for heading, specs in groups.items():
            group = self._headings[heading] = QTreeWidgetItem(self.list, [heading])
            for spec in specs:
                item = self._items[spec.id] = QTreeWidgetItem(group, [spec.name])
                item.setData(0, _SPEC, spec)
                item.setData(0, HELP_ROLE, filter_page(spec))
                item.setToolTip(0, spec.summary)
                self._mark(item, spec.id == self._current)
        self.list.updateGeometry()
        self._narrow()

    def show_current(self, filter_id: str) -> None:
        self._current = filter_id
        for id_, item in self._items.items():
            self._mark(item, id_ == filter_id)

    def show_sketch(self, filter_id: str, image: QImage | None, note: str, tip: str) -> None:
        """Show the picture of a filter, or `note` in its place; `tip` describes the picture."""
        item = self._items.get(filter_id)
        if item is None:
            return
        spec: FilterSpec = item.data(0, _SPEC)
        item.setData(0, _IMAGE, image)
        item.setData(0, _NOTE, note)
        item.setToolTip(0, "\n".join(filter(None, (spec.summary, tip))))
        self._describe(item)

    def note(self, filter_id: str) -> str:
        item = self._items.get(filter_id)
        return str(item.data(0, _NOTE) or "") if item is not None else ""

    def image(self, filter_id: str) -> QImage | None:
        item = self._items.get(filter_id)
        image: QImage | None = item.data(0, _IMAGE) if item is not None else None
        return image

    @property
    def listed(self) -> list[str]:
        return [spec.id for specs in self._left().values() for spec in specs]

    @property
    def in_view(self) -> list[str]:
        """The filters of which something can be seen."""
        seen = self.list.viewport().rect()
        return [
            id_
            for id_ in self.listed
            if self.list.visualItemRect(self._items[id_]).intersects(seen)
        ]

    def _left(self) -> Groups:
        return narrowed(self._groups, self.search.text())

    def _narrow(self) -> None:
        """Show the filters that the search leaves, and move to the one that it means."""
        text, left, listed = self.search.text(), self._left(), set(self.listed)
        for id_, item in self._items.items():
            item.setHidden(id_ not in listed)
        for heading, group in self._headings.items():
            group.setHidden(heading not in left)
            # A search shows all that it finds; without one, groups are as the user left them.
            group.setExpanded(bool(text) or heading not in self._closed)
        wanted = best(self._groups, text) if text else None
        meant = self._items.get(wanted.id if wanted else self._current)
        if meant is not None and not meant.isHidden():
            self.list.setCurrentItem(meant)
        self._nothing.setVisible(bool(self._groups) and not left)

    def _mark(self, item: QTreeWidgetItem, current: bool) -> None:
        item.setData(0, _CURRENT, current)
        self._describe(item)

    def _describe(self, item: QTreeWidgetItem) -> None:
        spec: FilterSpec = item.data(0, _SPEC)
        parts = [spec.name, item.data(0, _NOTE), "in use" if item.data(0, _CURRENT) else ""]
        text = ", ".join(filter(None, parts))
        item.setData(0, Qt.ItemDataRole.AccessibleTextRole, text)
        item.setData(0, Qt.ItemDataRole.AccessibleDescriptionRole, spec.summary)

    # --- choosing ---

    def focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def _adopt(self, item: QTreeWidgetItem) -> None:
        self.adopted.emit(item.data(0, _SPEC).id)

    def _clear(self) -> None:
        self.search.clear()

    def _on_folded(self, item: QTreeWidgetItem, *, closed: bool) -> None:
        if self.search.text():
            return  # a search opens all groups
        (self._closed.add if closed else self._closed.discard)(item.text(0))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the keys of the list work in the search field; Esc clears it, else it stops a run."""
        if isinstance(event, QKeyEvent) and watched is self.search:
            text, key = self.search.text(), event.key()
            if event.type() == QEvent.Type.ShortcutOverride and key == Qt.Key.Key_Escape and text:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress:
                return self._on_key(key, text)
        return super().eventFilter(watched, event)

    def _on_key(self, key: int, text: str) -> bool:
        item = self.list.currentItem()
        if key == Qt.Key.Key_Escape and text:
            self._clear()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if item is not None and item.data(0, _SPEC) is not None:
                self._adopt(item)
                self.found.emit()
        elif key in _KEYS_OF_LIST:
            self.list.setFocus(Qt.FocusReason.TabFocusReason)
            if key in _KEYS_OF_LIST[2:] or not text:
                return True
            step = 1 if key == Qt.Key.Key_Down else -1
            self.list.move(step)
        else:
            return False
        return True


class _FilterTree(QTreeWidget):
    chosen = Signal(object)  # `QTreeWidgetItem`: A filter was clicked, or Enter pressed on it
    left = Signal()  # esc was pressed

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        dressed(self, "filterList", "Filters")
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)  # the headings have their arrows
        self.setIndentation(0)
        self.setUniformRowHeights(False)
        self.setVerticalScrollMode(QTreeWidget.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_FilterLine(self))
        self.itemClicked.connect(self._on_clicked)

    def move(self, step: int) -> None:  # type: ignore[override]
        item = self.currentItem()
        while item is not None:
            item = self.itemBelow(item) if step > 0 else self.itemAbove(item)
            if item is not None and item.data(0, _SPEC) is not None:
                self.setCurrentItem(item)
                return

    def sizeHint(self) -> QSize:
        return QSize(WIDTH + 120, 4 * HEIGHT)

    def minimumSizeHint(self) -> QSize:
        """Return a width that no word of a name is wider than: names wrap, words are cut off."""
        font = self.font()
        font.setBold(True)  # as the filter in use is
        metrics = QFontMetrics(font)
        words = {word for spec in self._listed() for word in spec.name.split()}
        room = max((metrics.horizontalAdvance(word) for word in words), default=60)
        beside = self.verticalScrollBar().sizeHint().width() + 2 * self.frameWidth()
        return QSize(_ACCENT + 2 + WIDTH + _GAP + room + 4 + beside, 2 * HEIGHT)

    def _listed(self) -> list[FilterSpec]:
        anything = Qt.MatchFlag.MatchWildcard | Qt.MatchFlag.MatchRecursive
        found = (item.data(0, _SPEC) for item in self.findItems("*", anything))
        return [spec for spec in found if spec is not None]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.currentItem()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and item is not None:
            self._on_clicked(item)
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def _on_clicked(self, item: QTreeWidgetItem) -> None:
        if item.data(0, _SPEC) is not None:
            self.chosen.emit(item)
        elif not self.visualItemRect(item).isEmpty():
            item.setExpanded(not item.isExpanded())


class _FilterLine(TileDelegate):
    """Paints a filter: its picture, or a note in its place, and its name."""

    def __init__(self, view: QTreeWidget) -> None:
        super().__init__(view, lambda: QSize(WIDTH, HEIGHT + 2 * _MARGIN))

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        if index.data(_SPEC) is None:
            return QSize(WIDTH, option.fontMetrics.height() + 2 * _MARGIN)
        return super().sizeHint(option, index)

    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        palette, area, selected = option.palette, option.rect, is_selected(option)
        if selected:
            painter.fillRect(area, palette.color(QPalette.ColorRole.Highlight))
        elif option.state & QStyle.StateFlag.State_MouseOver and index.data(_SPEC):
            painter.fillRect(area, palette.color(QPalette.ColorRole.AlternateBase))
        spec: FilterSpec | None = index.data(_SPEC)
        if spec is None:
            arrow = "▾" if option.state & QStyle.StateFlag.State_Open else "▸"
            heading = TileLine(f"{arrow} {index.data()}", bold=True, cut=None)
            role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
            ink = palette.color(role)
            draw_lines(painter, [heading], area.adjusted(_ACCENT + 2, 0, 0, 0), ink, ink)
            return
        frame = QRect(area.left() + _ACCENT + 2, area.top() + _MARGIN, WIDTH, HEIGHT)
        current = bool(index.data(_CURRENT))
        if current:
            bar = QRect(area.left(), frame.top(), _ACCENT, HEIGHT)
            accent = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Accent
            painter.fillRect(bar, palette.color(accent))
        room = area.adjusted(frame.right() - area.left() + _GAP, _MARGIN, -2, -_MARGIN)
        lines = [TileLine(spec.name, bold=current, cut=None)]
        lines += [TileLine("in use", quiet=True)] * current
        tile = Tile(index.data(_IMAGE), lines, note=str(index.data(_NOTE) or "…"))
        draw_tile(painter, tile, frame, room, palette, selected=selected)
