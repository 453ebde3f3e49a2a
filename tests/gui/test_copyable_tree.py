"""A tree that Ctrl+C copies, also in a window with a shortcut for that key."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets.tables import CopyableTree


def test_the_tree_comes_before_the_window(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    others: list[str] = []
    for key in ("Ctrl+C", "Ctrl+V"):
        action = QAction(window)
        action.setShortcut(key)
        action.triggered.connect(lambda _=False, key=key: others.append(key))
        window.addAction(action)
    tree = CopyableTree(lambda: "a\tb")
    window.setCentralWidget(tree)
    window.show()
    qtbot.waitExposed(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    tree.setFocus()
    QGuiApplication.clipboard().setText("before")
    qtbot.keyClick(tree, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert others == ["Ctrl+V"]
    assert QGuiApplication.clipboard().text() == "a\tb"
