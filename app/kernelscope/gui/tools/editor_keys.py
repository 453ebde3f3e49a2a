"""The keys of windows in which a kernel is edited."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog

from kernelscope.gui.tools.code_editor import CodeEditor
from kernelscope.gui.tools.code_view import CodeView
from kernelscope.gui.tools.edit_panel import EditPanel
from kernelscope.gui.tools.find_bar import FindBar


def make_keys(
    window: QDialog,
    panel: EditPanel,
    find: FindBar,
    in_editor: Callable[[Callable[[CodeEditor], None]], None],
    in_view: Callable[[], CodeView | None],
) -> None:
    """Make the keys, which work everywhere in `window`.

    `in_editor` brings the editor to the front, if there is one, and calls a function with it.
    `in_view` returns the source to find text in.
    """

    def open_find() -> None:
        view = in_view()
        if view is not None:
            find.open_for(view)

    for keys, action in (
        ("Ctrl+Return", panel.compile),
        ("Ctrl+Enter", panel.compile),
        ("Ctrl+Shift+Return", panel.grade),
        ("Ctrl+Shift+Enter", panel.grade),
        ("F8", lambda: in_editor(CodeEditor.next_message)),
        ("Shift+F8", lambda: in_editor(CodeEditor.previous_message)),
        ("Ctrl+F", open_find),
        ("F3", find.find_next),
        ("Shift+F3", find.find_previous),
        ("F6", window.focusNextChild),
    ):
        QShortcut(QKeySequence(keys), window, action)
