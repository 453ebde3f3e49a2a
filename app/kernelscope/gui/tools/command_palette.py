"""Every command: the palette that finds one by a part of its name, and the list of shortcuts.

The search field keeps the focus; arrow keys move through the list below it. Commands that are
disabled are listed too, with the reason, so that a search never ends without an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHeaderView,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.gui.widgets.messages import add_button, close_box
from kernelscope.gui.widgets.parts import as_table, dressed, in_column, set_help, text_label
from kernelscope.gui.widgets.tables import CopyableTree
from kernelscope.gui.widgets.theme import quiet_text
from kernelscope.gui.widgets.tool_window import ToolWindow


class ShortcutDialog(ToolWindow):
    def __init__(
        self, shortcuts: Sequence[tuple[str, str, Sequence[str]]], parent: QWidget | None = None
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


_WIDTH, _ROWS = 100, 14
"""Size of the list, in characters and lines; a small window makes it smaller."""

_TITLES = 0.45  # share of the list that titles have; the longest, with card and date, would fill it

_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class Command:
    title: str
    place: str  # way through the menus
    keys: str
    help: str
    problem: str  # why the command is disabled; empty if it can be run
    run: Callable[[], object]
    synonyms: str = ""  # other names that find the command


def search(commands: Sequence[Command], wanted: str) -> list[Command]:
    """Return the commands in which every word of `wanted` begins a word, best first.

    A title that is the text comes first, then titles that begin with it, then titles that have
    all the words, then commands with other names that have them, then commands with a word in
    their menu or help. Of equals, disabled ones come last; otherwise the order is kept.
    """
    words = wanted.casefold().split()
    ranked = [(_rank(command, words), command) for command in commands]
    found = [(rank, command) for rank, command in ranked if rank is not None]
    return [command for _, command in sorted(found, key=_order)]


def _order(pair: tuple[int, Command]) -> tuple[int, bool]:
    rank, command = pair
    return rank, bool(command.problem)


def _rank(command: Command, words: list[str]) -> int | None:
    """Return 0 for the best match and larger numbers for weaker ones; None for no match."""
    title, text = command.title.casefold(), " ".join(words)
    if title == text:
        return 0
    if title.startswith(text):
        return 1
    if _has_all(title, words):
        return 2
    names = f"{title} {command.synonyms}".casefold()
    if _has_all(names, words):
        return 3
    return 4 if _has_all(f"{names} {command.place} {command.help}".casefold(), words) else None


def _has_all(text: str, words: list[str]) -> bool:
    return all(re.search(rf"\b{re.escape(word)}", text) for word in words)


class CommandPalette(QDialog):
    """A search over a list of commands; closes with Esc, or when another window is active."""

    def __init__(self, commands: Sequence[Command], parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Dialog | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("commandPalette")
        set_help(self, "window#keyboard-shortcuts")
        self.setWindowTitle("Command Palette")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._commands = tuple(commands)
        self._found: list[Command] = []
        self._wanted = dressed(QLineEdit(), "paletteSearch", "Search commands")
        self._wanted.setPlaceholderText(
            "Type a part of a command or a setting; Enter goes there, Esc closes"
        )
        self._wanted.textChanged.connect(self._search)
        self._wanted.returnPressed.connect(self._run)
        self._wanted.installEventFilter(self)
        self._list = self._make_list()
        self._note = text_label("", "paletteNote", plain=True)
        self._note.setMinimumHeight(self.fontMetrics().height())
        frame = QFrame()
        frame.setFrameShape(QFrame.Shape.StyledPanel)
        in_column(self._wanted, (self._list, 1), self._note, of=frame)
        in_column(frame, of=self, margins=0)
        self._place()
        self._search("")

    def _make_list(self) -> QTreeWidget:
        tree = dressed(QTreeWidget(), "paletteCommands", "Commands")
        tree.setHeaderHidden(True)
        tree.setColumnCount(3)
        tree.setRootIsDecorated(False)
        tree.setUniformRowHeights(True)
        tree.setAllColumnsShowFocus(True)
        tree.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the arrow keys reach it from the field
        tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = tree.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        tree.itemClicked.connect(self._run)
        tree.currentItemChanged.connect(self._explain)
        return tree

    def _place(self) -> None:
        metrics = self.fontMetrics()
        line = metrics.height() + 4
        self.resize(_WIDTH * metrics.averageCharWidth(), (_ROWS + 4) * line)
        parent = self.parentWidget()
        if parent is not None:
            self.resize(self.size().boundedTo(parent.size()))
            left = (parent.width() - self.width()) // 2
            self.move(parent.mapToGlobal(QPoint(left, min(60, parent.height() - self.height()))))
        self._list.header().resizeSection(0, round(_TITLES * self.width()))

    def _search(self, wanted: str) -> None:
        self._found = search(self._commands, wanted)
        self._list.clear()
        quiet = quiet_text(self.palette())
        for command in self._found:
            item = QTreeWidgetItem([command.title, command.problem or command.place, command.keys])
            item.setToolTip(0, command.title)  # which may be cut off
            item.setTextAlignment(2, _RIGHT)
            item.setForeground(1, quiet)
            if command.problem:
                item.setForeground(0, quiet)
            self._list.addTopLevelItem(item)
        if not self._found:
            self._note.setText("No command, filter or setting has these words.")
            return
        # Enter runs no other command in place of one that was typed in full and is disabled.
        typed = self._found[0].title.casefold() == wanted.strip().casefold()
        useful = (n for n, command in enumerate(self._found) if typed or not command.problem)
        self._list.setCurrentIndex(self._list.model().index(next(useful, 0), 0))

    def _current(self) -> Command | None:
        row = self._list.currentIndex().row()
        return self._found[row] if 0 <= row < len(self._found) else None

    def _explain(self) -> None:
        command = self._current()
        self._note.setText((command.problem or command.help) if command else "")

    def _run(self) -> None:
        command = self._current()
        if command is None or command.problem:
            return
        self.close()
        command.run()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.key() in _MOVES
        ):
            self._list.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowDeactivate:
            self.close()
        return super().event(event)
