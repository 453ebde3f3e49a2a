"""A table of facts in groups, of which everything can be copied."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidgetItem, QWidget

from kernelscope.engine.backend import FactGroup
from kernelscope.gui.widgets.copyable_tree import CopyableTree
from kernelscope.gui.widgets.parts import dressed

_NAMES = 0.57  # largest share of the width for the names; longer ones are elided, with a tooltip


class FactTable(CopyableTree):
    """Name and value of each fact, under the titles of their groups.

    Ctrl+C and the context menu copy the selected rows, or all if none is selected.
    """

    def __init__(self, name: str, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(lambda: self.text(bool(self.selectedItems())), parent)
        dressed(self, name, accessible_name)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(12)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
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
        self.setColumnWidth(0, min(self.sizeHintForColumn(0), most))

    @property
    def hidden_height(self) -> int:
        """How many pixels are missing for all rows to be seen at once."""
        first = self.topLevelItem(0)
        if first is None:
            return 0
        rows = sum(1 + heading.childCount() for heading in self._groups.values())
        return max(0, rows * self.visualItemRect(first).height() - self.viewport().height())

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
