"""A random hand on the real window, for the tests that look for exceptions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QDockWidget,
    QLineEdit,
    QMenu,
    QTabBar,
    QWidget,
)
from shiboken6 import isValid

from kernelscope.engine.options import Device
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets.messages import ReportDialog
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import FakeCpu, dropping, files_of

_KEYS = (
    *(getattr(Qt.Key, f"Key_{name}") for name in ("Up", "Down", "Left", "Right", "Home", "End")),
    *(getattr(Qt.Key, f"Key_{name}") for name in ("Tab", "Return", "Delete", "Escape", "Space")),
    *(getattr(Qt.Key, f"Key_{name}") for name in ("PageUp", "PageDown", "Backspace")),
    *(getattr(Qt.Key, f"Key_F{number}") for number in (2, 3, 4, 5, 5, 5, 6, 7, 8, 9, 12)),
)
_TURNS = (*_KEYS[:4], Qt.Key.Key_Plus, Qt.Key.Key_Minus)
_SHORTCUTS = "ZYUKRVC01"
_TEXTS = ("0.03", "0,05", "-1", "1e999", "497848.3", "9" * 40, "", "abc", "1/3", "1;2 3")
_UNTOUCHED = ("quit", "benchmark", "gpuInfo", "help", "manual", "about")
"""Actions that would end the test, or open windows that have tests of their own."""

_WINDOWS = (
    *("xray", "lecture", "viewKernel", "exercises", "memoryLadder", "whyLevel", "contactSheet"),
    *("exportFigure", "palette", "batch"),
)
"""Actions that open a window in which the hand does a few things before it is closed."""

_SLOW_BUTTONS = ("compileEdit", "gradeEdit", "compileReport", "lecturePrint")
"""Compile for seconds, or open the dialog of a printer, which runs a loop of its own."""

_SHAPES = ("drawRectangle", "drawEllipse", "drawPolygon", "drawLine")


def within(widget: QWidget) -> Iterator[QWidget]:
    """Yield the widgets in a widget, at any depth.

    `findChildren` would keep a Python object of each for as long as `widget` lives, also of those
    that Qt made by itself in a dialog that has been closed: 2,638 after 3,500 actions.
    """
    for each in widget.children():
        if isinstance(each, QWidget):
            yield each
            yield from within(each)


class Hand:
    """Does one thing after another that a user might do, none of them on purpose."""

    def __init__(self, window: MainWindow, seed: int, files: list[Path], cpu: FakeCpu) -> None:
        self.window, self.files, self.cpu = window, files, cpu
        self.root: QWidget = window
        """The window in which widgets are picked."""
        self.chance = random.Random(seed)
        self.done: list[str] = []

    def act(self) -> None:
        kinds: tuple[tuple[Callable[[], str], int], ...] = (
            (self.click, 22),
            (self.key, 14),
            (self.shortcut, 10),
            (self.wheel, 10),
            (self.type, 14),
            (self.choose, 8),
            (self.slide, 6),
            (self.drop, 3),
            (self.paste, 3),
            (self.trigger, 12),
            (self.resize, 2),
            (self.hold, 2),
            (self.run, 6),
            (self.space, 3),
            (self.window_of_its_own, 5),
            (self.region, 4),
            (self.histogram, 4),
            (self.emulated, 2),
        )
        act = self.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        self.done.append(act())
        QApplication.processEvents()
        for dialog in list(within(self.window)):
            if isinstance(dialog, QDialog) and isValid(dialog) and dialog.isVisible():
                assert not isinstance(dialog, ReportDialog), self.done[-10:]
                self.done.append(f"close {dialog.objectName()}")
                dialog.reject()
        if not self.window.isActiveWindow() and QApplication.activeModalWidget() is None:
            self.window.activateWindow()  # a desktop does that when a dialog closes
        popup = QApplication.activePopupWidget()
        if popup is not None:
            popup.close()

    def pick(self, *kinds: type) -> Any:
        found = [
            widget
            for widget in within(self.root)
            if isinstance(widget, kinds)
            and widget.isVisible()
            and widget.isEnabled()
            and not widget.objectName().startswith("qt_")
            and widget.objectName() not in {f"{name}Button" for name in _UNTOUCHED}
            and widget.objectName() not in _SLOW_BUTTONS
        ]
        return self.chance.choice(found) if found else None

    def click(self) -> str:
        widget = self.pick(QAbstractButton, QAbstractItemView, QTabBar, QWidget)
        if widget is None or isinstance(widget, QMenu):
            return "nothing"
        action = getattr(widget, "defaultAction", lambda: None)()
        if action is not None and action.objectName() in _UNTOUCHED:
            return "nothing"
        if isinstance(widget, QAbstractButton) and getattr(widget, "menu", lambda: None)():
            return "nothing"  # a menu runs a loop of its own
        place = QPoint(
            self.chance.randrange(max(1, widget.width())),
            self.chance.randrange(max(1, widget.height())),
        )
        if "close" in widget.metaObject().className().lower():
            return "nothing"
        button = Qt.MouseButton.LeftButton
        if self.chance.random() < 0.15:
            QTest.mouseDClick(widget, button, pos=place)
        else:
            QTest.mouseClick(widget, button, pos=place)
        return f"click {widget.metaObject().className()} {widget.objectName()}"

    def key(self) -> str:
        return self.press(self.window)

    def press(self, window: QWidget) -> str:
        """Press a key where the focus of a window is."""
        key, widget = self.chance.choice(_KEYS), window.focusWidget() or window
        if getattr(widget, "menu", lambda: None)():
            widget = window  # a menu runs a loop of its own
        QTest.keyClick(widget, key)
        return f"key {key}"

    def shortcut(self) -> str:
        letter = self.chance.choice(_SHORTCUTS)
        modifiers = Qt.KeyboardModifier.ControlModifier
        if self.chance.random() < 0.3:
            modifiers |= Qt.KeyboardModifier.ShiftModifier
        click: Any = QTest.keyClick  # takes text as well, which its stub does not know
        click(self.window.focusWidget() or self.window, letter.lower(), modifiers)
        return f"Ctrl+{letter}"

    def wheel(self) -> str:
        place = QPointF(
            self.chance.randrange(self.window.width()), self.chance.randrange(self.window.height())
        )
        delta = QPoint(0, self.chance.choice((-1200, -120, -7, 7, 120, 1200)))
        modifiers = self.chance.choice(
            (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier)
        )
        QTest.wheelEvent(self.window.windowHandle(), place, delta, QPoint(), modifiers)
        return f"wheel {delta.y()}"

    def type(self) -> str:
        widget = self.pick(QAbstractSpinBox, QLineEdit)
        text = self.chance.choice(_TEXTS)
        if widget is None:
            return "nothing"
        widget.setFocus()
        widget.selectAll()
        QTest.keyClicks(widget, text)
        if self.chance.random() < 0.5:
            QTest.keyClick(widget, Qt.Key.Key_Return)
        return f"type {text} into {widget.objectName()}"

    def choose(self) -> str:
        widget = self.pick(QComboBox)
        if widget is None or not widget.count():
            return "nothing"
        row = self.chance.randrange(widget.count())
        item = widget.model().item(row)
        if not item.isEnabled() or (
            widget.itemData(row) is None and widget.objectName() == "filter"
        ):
            return "nothing"
        widget.setCurrentIndex(row)
        widget.activated.emit(row)
        return f"choose {widget.currentText()} in {widget.objectName()}"

    def slide(self) -> str:
        widget = self.pick(QAbstractSlider)
        if widget is None:
            return "nothing"
        widget.setValue(self.chance.randint(widget.minimum(), widget.maximum()))
        return f"slide {widget.objectName()}"

    def drop(self) -> str:
        files = self.chance.sample(self.files, self.chance.randint(1, 4))
        mime = files_of(files)
        self.window.dropEvent(dropping(mime))
        return f"drop {[path.name for path in files]}"

    def paste(self) -> str:
        clipboard = QGuiApplication.clipboard()
        what = self.chance.randrange(4)
        if what == 0:
            clipboard.clear()
        elif what == 1:
            clipboard.setText(self.chance.choice((*_TEXTS, "1 2 1\n2 4 2\n1 2 1")))
        else:
            image = QImage(self.chance.randint(1, 30), 9, QImage.Format.Format_RGB32)
            image.fill(0xFF336699)
            clipboard.setImage(image)
        self.window.file_dialogs.paste()
        return f"paste {what}"

    def trigger(self) -> str:
        menu = self.chance.choice(self.window.findChildren(QMenu))
        actions = [
            action
            for action in menu.actions()
            if action.isEnabled()
            and not action.isSeparator()
            and action.menu() is None
            and action.objectName() not in _UNTOUCHED
        ]
        if not actions:
            return "nothing"
        action = self.chance.choice(actions)
        action.trigger()
        return f"menu {action.text()}"

    def resize(self) -> str:
        self.window.resize(self.chance.randint(300, 1500), self.chance.randint(200, 900))
        return "resize"

    def run(self) -> str:
        QTest.keyClick(self.window.focusWidget() or self.window, Qt.Key.Key_F5)
        if self.cpu.go.is_set():
            QTest.qWait(5)
        return "run"

    def space(self) -> str:
        """Turn the view in 3-D, and choose its style."""
        action = self.window.findChild(QAction, "space")
        if not action.isEnabled():
            return "nothing"
        action.trigger()
        space = self.window.files.space.window
        assert space is not None
        view = self.chance.choice(space.views)
        for _ in range(self.chance.randint(1, 4)):
            QTest.keyClick(view, self.chance.choice(_TURNS))
        QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(20, 30))
        QTest.mouseMove(view, QPoint(self.chance.randrange(90), self.chance.randrange(90)))
        QTest.mouseRelease(view, Qt.MouseButton.LeftButton)
        slider = self.chance.choice(space.findChildren(QAbstractSlider))
        slider.setValue(self.chance.randint(slider.minimum(), slider.maximum()))
        box = space.findChild(QComboBox, "spaceKind")
        box.setCurrentIndex(self.chance.randrange(box.count()))
        return "space"

    def hold(self) -> str:
        """Let a run hang, or go on."""
        if self.cpu.go.is_set():
            self.cpu.go.clear()
        else:
            self.cpu.go.set()
        return "hold"

    def window_of_its_own(self) -> str:
        """Open a window beside the main one, and do a few things in it."""
        name = self.chance.choice(_WINDOWS)
        action = self.window.findChild(QAction, name)
        if action is None or not action.isEnabled():
            return "nothing"
        action.trigger()
        QApplication.processEvents()
        shown = [each for each in self.window.findChildren(QDialog) if each.isVisible()]
        if not shown:
            return f"{name} nothing"
        self.root = shown[-1]
        done = []
        for _ in range(self.chance.randint(1, 8)):
            if not isValid(self.root) or not self.root.isVisible():
                break
            act = self.chance.choice((self.click, self.click, self.type, self.choose, self.slide))
            done.append(act())
            if self.chance.random() < 0.3 and isValid(self.root):
                done.append(self.press(self.root))
            QTest.qWait(self.chance.randint(0, 30))
        self.root = self.window
        return f"window {name}: {', '.join(done)}"

    def region(self) -> str:
        """Draw a region or a line of a profile in one of the pictures or slices."""
        name = self.chance.choice(_SHAPES)
        self.window.findChild(QAction, name).trigger()
        found = [each for each in self.window.findChildren(PlaneCanvas) if each.isVisible()]
        if not found:
            return "nothing"
        self.drag(self.chance.choice(found))
        if self.chance.random() < 0.5:
            self.window.findChild(QAction, "regionsOff").trigger()
        return f"region {name}"

    def histogram(self) -> str:
        """Bring the histogram to the front, and drag or press one of its handles."""
        self.window.findChild(QDockWidget, "qualityDock").raise_()
        QApplication.processEvents()
        handles = self.window.quality.histograms.plot.handles
        found = [each for each in handles.values() if each.isVisible()]
        if not found:
            return "nothing"
        handle = self.chance.choice(found)
        self.drag(handle, 300)
        for _ in range(self.chance.randrange(4)):
            QTest.keyClick(handle, self.chance.choice(_KEYS))
        return "histogram"

    def drag(self, widget: QWidget, reach: int = 0) -> None:
        """Drag the left button over a widget, or by up to `reach` pixels beyond it."""
        width, height = max(1, widget.width()), max(1, widget.height())
        start = QPoint(self.chance.randrange(width), self.chance.randrange(height))
        QTest.mousePress(widget, Qt.MouseButton.LeftButton, pos=start)
        for _ in range(self.chance.randint(1, 4)):
            x = self.chance.randrange(-reach, width + reach)
            QTest.mouseMove(widget, QPoint(x, self.chance.randrange(height)))
        QTest.mouseRelease(widget, Qt.MouseButton.LeftButton)

    def emulated(self) -> str:
        """Choose a level of the emulated GPU."""
        places = [
            RungPlace(Device.EMULATED, name) for name in ("global", "shared", "texture", "tuned")
        ]
        place = self.chance.choice(places)
        self.window.session.choose_place(place)
        return f"emulated {place.level}"
