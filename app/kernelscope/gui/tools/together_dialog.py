"""Asks how several volumes belong together that were opened at once."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialogButtonBox,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QWidget,
)

from kernelscope.base.text import printable
from kernelscope.gui.model.volume_files import FoundFile, misfit
from kernelscope.gui.widgets.messages import add_button
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    plain_tip,
    push_button,
    text_label,
)
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.scan import MAX_COMPONENTS
from kernelscope.images.volume import Volume

_FOUND = Qt.ItemDataRole.UserRole

_ROWS = 8  # volumes that are seen without scrolling


class _VolumeList(QListWidget):
    """Rows change places by dragging, and by Alt+Up and Alt+Down."""

    moved = Signal()
    stepped = Signal(int)  # the current row is to go so many places down

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setSpacing(2)
        self.setWordWrap(True)
        self.model().rowsMoved.connect(lambda: self.moved.emit())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if event.modifiers() & Qt.KeyboardModifier.AltModifier and event.key() in steps:
            self.stepped.emit(steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)


class TogetherDialog(ToolWindow):
    """Lists volumes that were opened together, and those files that hold none."""

    together = Signal(object)
    """`list of Volume`: Open these as the components of one scan, in this order."""
    each = Signal(object)  # `list of Volume`: Open each of these as a scan of its own

    def __init__(self, found: Sequence[FoundFile], parent: QWidget | None = None) -> None:
        page = "volumes#several-volumes"
        super().__init__("togetherDialog", "Open volumes", parent, help_page=page)
        count = sum(each.volume is not None for each in found)
        about = text_label(
            f"{count} volumes were opened together. Volumes of one head, such as T1w and T2w, are "
            "filtered best together: a filter compares all of its components."
        )
        self.list = dressed(
            _VolumeList(self), "volumeList", "Volumes in the order of the components"
        )
        for each in found:
            self._add(each)
        self.state = text_label("", "fit")
        self._up = self._mover("moveUp", "Move &Up", -1)
        self._down = self._mover("moveDown", "Move &Down", 1)
        side = in_column(self._up, self._down, 1)
        middle = in_row((self.list, 1), side)
        in_column(about, (middle, 1), self.state, self._buttons(), of=self)
        self.list.itemChanged.connect(self._follow)
        self.list.moved.connect(self._follow)
        self.list.currentRowChanged.connect(self._follow)
        self.list.stepped.connect(self._move)
        self._check_those_that_fit()
        self.list.setCurrentRow(0)
        rows = min(_ROWS, max(3, len(found)))
        # Two lines for each: a volume that does not fit says why.
        self.list.setMinimumHeight(rows * (2 * self.fontMetrics().height() + 8))
        self.list.setMinimumWidth(76 * self.fontMetrics().averageCharWidth())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.list.setFocus()

    # --- building ---

    def _add(self, found: FoundFile) -> None:
        item = QListWidgetItem()
        item.setData(_FOUND, found)
        flags = item.flags() & ~Qt.ItemFlag.ItemIsDropEnabled
        if found.volume is None:
            flags &= ~(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable)
            item.setText(printable(f"{found.path.name}\n{found.problem}"))
            item.setToolTip(plain_tip(found.problem))
        else:
            item.setCheckState(Qt.CheckState.Unchecked)
            item.setToolTip("\n".join((found.volume.describe(), *found.volume.notices)))
        item.setFlags(flags)
        self.list.addItem(item)

    def _mover(self, name: str, text: str, steps: int) -> QPushButton:
        return push_button(
            text,
            name,
            lambda: self._move(steps),
            f"Move the selected volume {'up' if steps < 0 else 'down'}",
            tip=f"Alt+{'Up' if steps < 0 else 'Down'}",
        )

    def _buttons(self) -> QDialogButtonBox:
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, parent=self)
        cancel = box.button(QDialogButtonBox.StandardButton.Cancel)
        dressed(cancel, "openNone", "Open none of the volumes")
        self._together = add_button(
            box,
            "openTogether",
            "Open &together",
            "Open the checked volumes as components of one scan",
            lambda: self._open(self.together, self.chosen),
        )
        self._together.setDefault(True)
        self._only = add_button(
            box,
            "openOnly",
            "Open only the &selected",
            "Open the volume that is selected in the list, and no other",
            lambda: self._open(self.each, self._current()),
        )
        add_button(
            box,
            "openEach",
            "Open &each alone",
            "Open all of them one after the other: Undo goes back to the one before",
            lambda: self._open(self.each, [volume for _, volume in self._items()]),
        )
        box.rejected.connect(self.reject)
        return box

    # --- choices ---

    @property
    def chosen(self) -> list[Volume]:
        return [volume for item, volume in self._items() if _is_checked(item)]

    def _items(self) -> list[tuple[QListWidgetItem, Volume]]:
        items = [self.list.item(row) for row in range(self.list.count())]
        return [(item, item.data(_FOUND).volume) for item in items if item.data(_FOUND).volume]

    def _current(self) -> list[Volume]:
        item = self.list.currentItem()
        volume = item.data(_FOUND).volume if item is not None else None
        return [volume] if volume is not None else []

    def _open(self, signal: object, volumes: list[Volume]) -> None:
        assert hasattr(signal, "emit")
        self.accept()
        signal.emit(volumes)

    def _move(self, steps: int) -> None:
        row = self.list.currentRow()
        new = row + steps
        if row < 0 or not 0 <= new < self.list.count():
            return
        with QSignalBlocker(self.list):
            self.list.insertItem(new, self.list.takeItem(row))
            self.list.setCurrentRow(new)
        self._follow()

    def _check_those_that_fit(self) -> None:
        volumes = self._items()
        fitting = [item for item, volume in volumes if not misfit(volumes[0][1], volume)]
        with QSignalBlocker(self.list):
            for item in fitting[:MAX_COMPONENTS]:
                item.setCheckState(Qt.CheckState.Checked)

    def _follow(self) -> None:
        """Show for each volume whether it fits the first checked one, and enable the answers."""
        chosen = self.chosen
        first = chosen[0] if chosen else None
        misfits = []
        with QSignalBlocker(self.list):
            for item, volume in self._items():
                why = misfit(first, volume) if first is not None else ""
                item.setText("\n".join(filter(None, (volume.describe(), why and f"⚠ {why}"))))
                if why and _is_checked(item):
                    misfits.append(volume.title)
        self.state.setText(_state(len(chosen), misfits))
        self._together.setEnabled(2 <= len(chosen) <= MAX_COMPONENTS and not misfits)
        self._only.setEnabled(bool(self._current()))
        row = self.list.currentRow()
        self._up.setEnabled(row > 0)
        self._down.setEnabled(0 <= row < self.list.count() - 1)


def _is_checked(item: QListWidgetItem) -> bool:
    return item.checkState() is Qt.CheckState.Checked


def _state(count: int, misfits: Sequence[str]) -> str:
    if misfits:
        return f"Uncheck {', '.join(misfits)}, or open each alone: the sizes or places differ."
    if count > MAX_COMPONENTS:
        return f"Up to {MAX_COMPONENTS} volumes are filtered together; {count} are checked."
    if count < 2:
        return "Check two or more volumes to open them together."
    return f"The {count} checked volumes fit together: they become components 1 to {count}."
