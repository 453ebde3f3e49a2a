"""The volumes that are filtered together: a list to add to, to sort and to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, label_of, tool_button
from kernelscope.images.scan import MAX_COMPONENTS
from kernelscope.images.volume import Volume

_VOLUME = Qt.ItemDataRole.UserRole


class _ComponentList(QListWidget):
    """Rows change places by dragging; files can be dropped between them."""

    moved = Signal()
    dropped = Signal(object)
    delete_pressed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setAcceptDrops(True)
        self.setUniformItemSizes(True)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.model().rowsMoved.connect(lambda: self.moved.emit())

    def fit(self) -> None:
        row = max(self.sizeHintForRow(0), self.fontMetrics().height())
        self.setFixedHeight(max(1, self.count()) * row + 6)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
        else:
            super().dragEnterEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
        else:
            super().dragMoveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if event.mimeData().hasUrls():
            urls = event.mimeData().urls()
            self.dropped.emit([Path(url.toLocalFile()) for url in urls if url.isLocalFile()])
            event.acceptProposedAction()
        else:
            super().dropEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)


class ComponentsPanel(QWidget):
    """One to four volumes in the order of the filter's components; one of them is shown."""

    chosen = Signal(int)  # the component in this place shall be shown
    reordered = Signal(object)
    """`list of Volume`: The user put the volumes into this order, or took one away."""
    add_wanted = Signal(object)  # `list of Path`: Files to add; empty to let the user choose

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("components")
        set_help(self, "volumes")
        self._list = dressed(
            _ComponentList(self),
            "componentList",
            "Components",
            tip="Volumes of one head that are filtered together. Drag them into another order, "
            "drop files to add them, choose the one to look at.",
        )
        self._add = tool_button(
            "Add…",
            "addComponent",
            lambda: self.add_wanted.emit([]),
            "Add a volume of the same head",
        )
        self._remove = tool_button(
            "Remove", "removeComponent", self._remove_current, "Remove the selected volume"
        )
        row = in_row(label_of("&Components", self._list), 1, self._add, self._remove)
        in_column(row, self._list, of=self, margins=(9, 6, 9, 0), spacing=4)
        self._list.currentRowChanged.connect(self._on_row)
        self._list.moved.connect(self._on_moved)
        self._list.dropped.connect(self.add_wanted)
        self._list.delete_pressed.connect(self._remove_current)

    def choose(self, index: int) -> None:
        self._list.setCurrentRow(index)

    def show_volumes(self, volumes: Sequence[Volume], current: int) -> None:
        with QSignalBlocker(self._list):
            self._list.clear()
            for volume in volumes:
                item = QListWidgetItem(volume.title)
                item.setData(_VOLUME, volume)
                item.setToolTip("\n".join((volume.describe(), *volume.notices)))
                self._list.addItem(item)
            self._list.setCurrentRow(current)
        self._list.fit()
        self._add.setEnabled(len(volumes) < MAX_COMPONENTS)
        self._remove.setEnabled(len(volumes) > 1)

    def _volumes(self) -> list[Volume]:
        return [self._list.item(row).data(_VOLUME) for row in range(self._list.count())]

    def _on_row(self, row: int) -> None:
        if row >= 0:
            self.chosen.emit(row)

    def _on_moved(self) -> None:
        self.reordered.emit(self._volumes())

    def _remove_current(self) -> None:
        volumes = self._volumes()
        if len(volumes) > 1:
            del volumes[max(0, self._list.currentRow())]
            self.reordered.emit(volumes)
