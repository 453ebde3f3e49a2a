"""Help > Keyboard Shortcuts: all keys of the window in a table that can be copied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QTreeWidgetItem, QWidget

from kernelscope.gui.widgets.copyable_tree import CopyableTree
from kernelscope.gui.widgets.messages import add_button, close_box
from kernelscope.gui.widgets.parts import as_table, in_column
from kernelscope.gui.widgets.tool_window import ToolWindow


class ShortcutDialog(ToolWindow):
    def __init__(
        self, shortcuts: Sequence[tuple[str, str, tuple[str, ...]]], parent: QWidget | None = None
    ) -> None:
        page = "window#keyboard-shortcuts"
        super().__init__("shortcutDialog", "Keyboard Shortcuts", parent, help_page=page)
        self._shortcuts = shortcuts
        names = "shortcutList", "Keyboard shortcuts"
        self._list = as_table(CopyableTree(self.text), *names, ("Command", "Keys"))
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
        return "\n".join(
            f"{name}\t{', '.join(map(_native, keys))}" for _, name, keys in self._shortcuts
        )


def _native(key: str) -> str:
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
