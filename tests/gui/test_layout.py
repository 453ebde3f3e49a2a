"""How the parts of the window lie, and when they ask for another layout."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QMainWindow,
    QPushButton,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.widgets.layouts import Boundary, FoldingRow
from kernelscope.gui.window import last_session
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child, contrast, press, settle


def test_a_layout_of_an_earlier_version_is_not_restored(window: MainWindow) -> None:
    quality = window.docks[DockName.QUALITY]
    quality.close()
    for version, hidden in (
        (last_session.STATE_VERSION - 1, False),
        (last_session.STATE_VERSION, True),
    ):
        quality.close()
        window.settings.set_blob("state", window.saveState(version))
        quality.show()
        last_session.restore_layout(window, window.settings)
        assert quality.isHidden() is hidden


def test_run_stands_at_the_bottom_of_a_high_column_and_a_low_one_shows_the_first_parameter(
    window: MainWindow,
) -> None:
    column, bar = window._settings_column, window._run_bar
    column.resize(column.width(), 3 * column.sizeHint().height())
    assert bar.geometry().bottom() == column.rect().bottom()
    assert window.ladder.geometry().bottom() < bar.geometry().top() - 100
    column.resize(column.width(), column.minimumSizeHint().height())
    panel = window.panel
    editor = next(iter(panel.form.editors.values()))
    corners = editor.rect().topLeft(), editor.rect().bottomRight()
    seen = panel.viewport().rect()
    assert all(seen.contains(editor.mapTo(panel.viewport(), each)) for each in corners)


def test_one_key_leaves_only_the_pictures(qtbot: QtBot, window: MainWindow) -> None:
    window.docks[DockName.CONSOLE].close()
    window.docks[DockName.QUALITY].raise_()
    qtbot.waitUntil(lambda: not window.docks[DockName.QUALITY].visibleRegion().isEmpty())
    shown = {name for name, dock in window.docks.items() if not dock.isHidden()}
    press(qtbot, window, "F11")
    assert all(dock.isHidden() for dock in window.docks.values())
    run = window.findChild(QToolButton, "runTool")
    qtbot.waitUntil(run.isVisible)  # it stays in reach
    press(qtbot, window, "F11")
    assert {name for name, dock in window.docks.items() if not dock.isHidden()} == shown
    qtbot.waitUntil(lambda: not window.docks[DockName.QUALITY].visibleRegion().isEmpty())
    press(qtbot, window, "F11")
    window.docks[DockName.STEPS].show()  # as a second step does
    for _ in range(2):
        press(qtbot, window, "F11")
    again = {name for name, dock in window.docks.items() if not dock.isHidden()}
    assert again == {*shown, DockName.STEPS}


def test_the_wheel_does_not_change_tabs(qtbot: QtBot, window: MainWindow) -> None:
    def bars() -> list[QTabBar]:
        found = window.findChildren(QTabBar, "", Qt.FindChildOption.FindDirectChildrenOnly)
        return [bar for bar in found if bar.isVisible() and bar.count() > 1]

    qtbot.waitUntil(lambda: len(bars()) == 1)
    (bar,) = bars()
    before = bar.currentIndex()
    for notch in (-120, 120):
        place = QPointF(bar.mapTo(window, bar.rect().center()))
        QTest.wheelEvent(window.windowHandle(), place, QPoint(0, notch))
        assert bar.currentIndex() == before


@pytest.mark.parametrize("scheme", [Scheme.DARK, Scheme.LIGHT])
def test_a_panel_is_closed_and_floats_by_the_mouse(
    qtbot: QtBot, stylist: Stylist, window: MainWindow, scheme: Scheme
) -> None:
    stylist.apply(Appearance(scheme))
    dock = window.docks[DockName.CONTROLS]
    buttons = {
        name: child(dock, QAbstractButton, f"qt_dockwidget_{name}button")
        for name in ("float", "close")
    }
    qtbot.waitUntil(lambda: all(each.height() >= 16 for each in buttons.values()))
    for button in buttons.values():
        assert button.width() >= 16
        assert contrast_of_icon(button) >= 3
    qtbot.mouseClick(buttons["close"], Qt.MouseButton.LeftButton)
    assert dock.isHidden()


def contrast_of_icon(button: QWidget) -> float:
    """Return the contrast of the picture on a button with the ground at its edge."""
    picture = button.grab().toImage()
    ground = picture.pixelColor(0, 0).name()
    places = itertools.product(range(picture.width()), range(picture.height()))
    return max(contrast(ground, picture.pixelColor(x, y).name()) for x, y in places)


class Requests(QObject):
    """Counts requests for layout that reach a widget."""

    def __init__(self, widget: QWidget | None) -> None:
        assert widget is not None
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


@pytest.fixture
def label(qtbot: QtBot) -> Iterator[QLabel]:
    window = QMainWindow()
    qtbot.addWidget(window)
    content = QWidget()
    column = QVBoxLayout(content)
    label = QLabel("12.5 ms")
    column.addWidget(label)
    window.setCentralWidget(Boundary(content))
    window.resize(300, 200)
    with qtbot.waitExposed(window):
        window.show()
    yield label
    window.close()


def test_a_text_of_the_same_size_reaches_no_window(qtbot: QtBot, label: QLabel) -> None:
    requests, inner = Requests(label.window()), Requests(label.parentWidget())
    label.setText("21.5 ms")
    qtbot.waitUntil(lambda: inner.count > 0)
    QApplication.processEvents()
    assert requests.count == 0


def test_a_larger_text_enlarges_the_window(qtbot: QtBot, label: QLabel) -> None:
    label.setText("x" * 200)
    qtbot.waitUntil(lambda: label.window().width() > 400)
    assert label.width() >= label.sizeHint().width()


def test_changes_while_hidden_are_seen_when_shown(qtbot: QtBot, label: QLabel) -> None:
    window = label.window()
    window.hide()
    label.setText("x" * 200)
    window.show()
    qtbot.waitUntil(lambda: label.width() >= label.sizeHint().width())


def test_the_content_fills_it(label: QLabel) -> None:
    content = label.parentWidget()
    assert content is not None
    boundary = content.parentWidget()
    assert isinstance(boundary, Boundary)
    assert content.geometry() == boundary.rect()
    assert boundary.minimumSizeHint() == content.minimumSizeHint()


def test_a_window_at_rest_lays_out_nothing(qtbot: QtBot, window: MainWindow) -> None:
    window.show()
    requests = [Requests(each) for each in (window, window.centralWidget())]
    qtbot.waitUntil(lambda: window.isVisible())
    settle(qtbot, window)
    for each in requests:
        each.count = 0
    for timer in window.findChildren(QTimer):
        if timer.isActive():
            timer.timeout.emit()
    QApplication.processEvents()
    assert [each.count for each in requests] == [0, 0]


def test_controls_of_a_folded_row_keep_their_width(qtbot: QtBot) -> None:
    first, second = QPushButton("Slice"), QPushButton("Slice")
    window = QWidget()
    qtbot.addWidget(window)
    row = FoldingRow([first], [second], window, apart=True)
    window.show()
    own = first.sizeHint().width()
    for width, folded in ((4 * own, False), (own * 3 // 2, True)):
        row.resize(width, 80)
        QApplication.processEvents()
        assert first.width() == second.width() == own
        assert (second.mapTo(row, QPoint()).x() == 0) is folded
