"""Help > Keyboard Shortcuts: all keys of the window in a table that can be copied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QHeaderView, QTreeWidgetItem, QWidget

from kernelscope.gui.widgets.copyable_tree import CopyableTree
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.messages import add_button, close_box
from kernelscope.gui.widgets.parts import dressed, in_column


class ShortcutDialog(QDialog):
    """Shortcuts by menu. It does not block the main window."""

    def __init__(
        self, shortcuts: Sequence[tuple[str, str, tuple[str, ...]]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._shortcuts = shortcuts
        self.setObjectName("shortcutDialog")
        set_help(self, "window#keyboard-shortcuts")
        self.setWindowTitle("Keyboard Shortcuts")
        self._list = dressed(CopyableTree(self.text), "shortcutList", "Keyboard shortcuts")
        self._list.setHeaderLabels(["Command", "Keys"])
        self._list.setRootIsDecorated(False)
        self._list.setUniformRowHeights(True)
        self._list.setAllColumnsShowFocus(True)
        self._list.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._fill()
        box = close_box(self)
        add_button(box, "copyButton", "&Copy", "Copy the list", self._list.copy)
        in_column(self._list, box, of=self)
        metrics = self.fontMetrics()
        self.resize(70 * metrics.averageCharWidth(), 30 * metrics.height())

    def _fill(self) -> None:
        bold = self.font()
        bold.setBold(True)
        for place, found in groupby(self._shortcuts, key=lambda shortcut: shortcut[0]):
            heading = QTreeWidgetItem([place])
            heading.setFont(0, bold)
            for _, name, keys in found:
                heading.addChild(QTreeWidgetItem([name, ", ".join(map(_native, keys))]))
            self._list.addTopLevelItem(heading)
            heading.setFirstColumnSpanned(True)
            heading.setExpanded(True)

    def text(self) -> str:
        """Return the list with one command on a line, name and keys separated by a tab."""
        return "\n".join(
            f"{name}\t{', '.join(map(_native, keys))}" for _, name, keys in self._shortcuts
        )


def _native(key: str) -> str:
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
