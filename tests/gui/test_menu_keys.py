"""Keys of the menus where a field has the focus, as the platform of the user edits text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import press, run, wait_until

CONTROL = Qt.KeyboardModifier.ControlModifier
DECLARED = {"Ctrl+U": Qt.Key.Key_U, "Ctrl+D": Qt.Key.Key_D, "Ctrl+K": Qt.Key.Key_K}
"""X11 edits with them: delete the line, the next character, the end of the line."""


def taken(widget: QWidget, key: Qt.Key, modifiers: Qt.KeyboardModifier = CONTROL) -> bool:
    """Return whether a widget takes a key for itself that a shortcut may have."""
    event = QKeyEvent(QEvent.Type.ShortcutOverride, key, modifiers)
    event.ignore()
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


class Field(QLineEdit):
    """A line edit that edits as on X11, on any platform of tests."""

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.key() in DECLARED.values():
            if event.type() == QEvent.Type.KeyPress:
                self.clear()
            event.accept()
            return True
        return super().event(event)


@pytest.mark.slow
def test_keys_of_the_menus_come_before_those_of_fields(qtbot: QtBot, loaded: MainWindow) -> None:
    run(qtbot, loaded)
    field = Field("sobel", loaded.filters)
    field.show()
    loaded.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    assert not any(taken(field, key) for key in DECLARED.values())
    before = loaded.session.subject.source
    press(qtbot, loaded, "Ctrl+U")
    wait_until(qtbot, lambda: loaded.session.subject.source is not before)
    assert field.text() == "sobel"
    other = Field("alone")
    qtbot.addWidget(other)
    other.show()
    other.setFocus()
    assert taken(other, Qt.Key.Key_U), "a window without menus edits as it likes"


@pytest.mark.slow
def test_keys_that_edit_everywhere_stay_with_the_field(qtbot: QtBot, loaded: MainWindow) -> None:
    fields = [loaded.filters.search, *loaded.panel.findChildren(QAbstractSpinBox)]
    for field in [each for each in fields if each.isVisible() and each.isEnabled()]:
        field.setFocus()
        assert field.hasFocus()
        for key in (Qt.Key.Key_A, Qt.Key.Key_C, Qt.Key.Key_V):
            assert taken(field, key), (field.objectName(), key)
        assert taken(field, Qt.Key.Key_3, Qt.KeyboardModifier.NoModifier)
    search = loaded.filters.search
    run(qtbot, loaded)
    loaded.page.use_output()
    wait_until(qtbot, lambda: loaded.actions_["undo"].isEnabled())
    search.setFocus()
    assert not taken(search, Qt.Key.Key_Z), "there is nothing to take back in it"
    qtbot.keyClicks(search, "med")
    assert taken(search, Qt.Key.Key_Z)


def test_the_keyboard_goes_to_the_picture_after_a_search(qtbot: QtBot, loaded: MainWindow) -> None:
    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+F")
    qtbot.waitUntil(loaded.filters.search.hasFocus)
    qtbot.keyClicks(loaded.filters.search, "median")
    qtbot.keyClick(loaded.filters.search, Qt.Key.Key_Return)
    assert loaded.session.filter_id == "median"
    assert loaded.pictures.canvas.output.views[0].hasFocus()
    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+U")
    wait_until(qtbot, lambda: bool(loaded.session.subject.moment.steps))
