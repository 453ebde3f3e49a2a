"""Rules for every control of the window: a name, a tooltip, room, and the keyboard.

The checks look at the whole window with each filter chosen, so that a new filter or panel is
held to them without a line here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QAction, QColor, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QDockWidget,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.backends import create_backends
from kernelscope.engine.backend import Availability
from kernelscope.engine.costs import Costs
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.gui.model.volume_files import FoundFile
from kernelscope.gui.tools.batch_window import BatchWindow
from kernelscope.gui.tools.command_palette import Command, CommandPalette, ShortcutDialog
from kernelscope.gui.tools.file_dialogs import TogetherDialog
from kernelscope.gui.tools.gpu_dialog import GpuDialog
from kernelscope.gui.tools.manual_window import ManualWindow
from kernelscope.gui.tools.phantom_dialog import PhantomDialog
from kernelscope.gui.tools.preferences import Preferences
from kernelscope.gui.tools.space_window import SpaceWindow
from kernelscope.gui.widgets.appearance import SCALES, Appearance, Scheme, Stylist
from kernelscope.gui.widgets.messages import AboutDialog, ErrorDialog, bug_dialog, crash_dialog
from kernelscope.gui.widgets.parts import push_button, switch
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.theme import set_role
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind
from tests.gui.helpers import contrast
from tests.gui.test_together import found, volume

pytestmark = pytest.mark.slow

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
)
FILTERS = [*filters.discover(), *filters.discover(Kind.VOLUME)]


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, stylist: Stylist) -> Iterator[MainWindow]:
    stylist.apply(Appearance())
    window = MainWindow(create_backends(), Settings(tmp_path / "settings.json"))
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    for dock in window.findChildren(QDockWidget):
        dock.show()
    yield window
    window.close()
    window.deleteLater()
    # Before the stylist takes its looks back, which would style thousands of controls again.
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def resize(window: MainWindow, width: int, height: int) -> None:
    """Give the window a size; a narrow one has no room for the docks on the left."""
    for dock in window.findChildren(QDockWidget):
        left = window.dockWidgetArea(dock) is Qt.DockWidgetArea.LeftDockWidgetArea
        dock.setVisible(width >= 1280 or not left)
    QApplication.processEvents()  # the window may become narrower only then
    window.resize(width, height)


def choose(qtbot: QtBot, window: MainWindow, filter_id: str) -> None:
    """Choose a filter, with a volume open if it is for those."""
    if filters.get(filter_id).kind is Kind.VOLUME:
        voxels = np.arange(64.0**3, dtype=np.float32).reshape(64, 64, 64)
        affine = np.diag([0.5, -1.5, 1.25, 1.0])
        window.scans.open([Volume.from_array(voxels, "a head", affine=affine)])
        qtbot.waitUntil(lambda: window.volumes.isVisible())
    window.session.set_filter(filter_id)


def is_internal(widget: QWidget) -> bool:
    """Return whether Qt made `widget` as a part of another control."""
    if isinstance(widget, QScrollBar | QHeaderView) or widget.objectName().startswith("qt_"):
        return True
    parent = widget.parentWidget()
    while parent is not None and not parent.isWindow():
        if isinstance(parent, QAbstractSpinBox | QComboBox | QScrollBar | QHeaderView):
            return True
        parent = parent.parentWidget()
    # The button in a table's corner, the arrows of a row of tabs, the extension of a toolbar.
    owner = widget.parentWidget()
    return isinstance(widget, QAbstractButton) and (
        isinstance(owner, QAbstractItemView)
        or (
            (owner is not None and owner.metaObject().className() in ("QTabBar", "QToolBar"))
            and not widget.actions()
            and not widget.text()
        )
    )


def controls(root: QWidget) -> list[QWidget]:
    return [
        widget
        for widget in root.findChildren(QWidget)
        if isinstance(widget, CONTROLS)
        and widget.isVisibleTo(root)
        and widget.window() is root
        and not is_internal(widget)
    ]


def label_of(widget: QWidget) -> str:
    owner = widget.parent()
    place = f" in {owner.objectName()!r}" if owner else ""
    return f"{type(widget).__name__} “{widget.objectName()}”{place}"


def unnamed(shown: list[QWidget]) -> list[str]:
    return [label_of(each) for each in shown if not each.objectName() or not each.accessibleName()]


def used_twice(root: QWidget) -> list[str]:
    names = Counter(
        widget.objectName()
        for widget in root.findChildren(QWidget)
        if widget.objectName() and widget.isVisibleTo(root) and not is_internal(widget)
    )
    return [name for name, count in names.items() if count > 1]


def each_filter(qtbot: QtBot, window: MainWindow) -> Iterator[str]:
    """Choose one filter after the other: opening a window takes longer than looking at it."""
    for filter_id in FILTERS:
        choose(qtbot, window, filter_id)
        QApplication.processEvents()
        yield filter_id


def test_every_control_has_names_and_tips_and_is_in_reach(qtbot: QtBot, window: MainWindow) -> None:
    window.resize(1280, 720)
    for filter_id in each_filter(qtbot, window):
        shown = controls(window)
        assert len(shown) > 10, filter_id
        assert unnamed(shown) == [], filter_id
        assert used_twice(window) == [], filter_id
        for parameter in filters.get(filter_id).parameters:
            editors = window.panel.findChildren(QWidget, parameter.name)
            tips = [each.toolTip() for each in editors if each.isVisibleTo(window)]
            assert tips == [parameter.help], filter_id
        window.activateWindow()
        qtbot.waitUntil(lambda: QApplication.activeWindow() is window)
        assert_tab_reaches(shown, window, filter_id)
        assert_in_reach(shown, window, filter_id)


def test_actions_have_names_and_keys_of_their_own(window: MainWindow) -> None:
    # One without a title is Qt's own, for entries that do not fit.
    menus = [menu for menu in window.menuBar().findChildren(QMenu) if menu.title()]
    assert [menu.title() for menu in menus if not menu.objectName()] == []
    actions = [
        action
        for menu in menus
        for action in menu.actions()
        if not action.isSeparator() and action.menu() is None
    ]
    assert len(actions) > 20
    assert [action.text() for action in actions if not action.objectName()] == []
    names = Counter(action.objectName() for action in actions)
    assert [name for name, count in names.items() if count > 1] == []

    keys = Counter(
        key.toString() for action in window.findChildren(QAction) for key in action.shortcuts()
    )
    assert len(keys) > 20
    assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("scheme", [Scheme.DARK, Scheme.LIGHT])
def test_a_switch_that_is_on_looks_different_from_one_that_is_off_and_from_run(
    qtbot: QtBot, stylist: Stylist, scheme: Scheme
) -> None:
    stylist.apply(Appearance(scheme))
    toggle, run = switch("Auto", "auto"), push_button("Run", "run", lambda: None)
    set_role(run, "primary")
    for each in (toggle, run):
        qtbot.addWidget(each)
        each.resize(60, 30)

    def ground(widget: QWidget) -> QColor:
        return widget.grab().toImage().pixelColor(30, 5)

    def underline(widget: QWidget) -> QColor:
        return widget.grab().toImage().pixelColor(30, 28)

    off, line_off = ground(toggle), underline(toggle)
    toggle.setChecked(True)
    on, line_on = ground(toggle), underline(toggle)
    assert contrast(on, off) > 1.15
    assert line_off.saturation() < 20
    assert line_on.saturation() > 30
    assert on.saturation() < 20
    assert contrast(on, toggle.palette().color(QPalette.ColorRole.ButtonText)) > 4.5
    assert contrast(on, ground(run)) > 1.5  # the one filled button is the one that runs


def lies_behind_a_tab(widget: QWidget | None) -> bool:
    """Return whether `widget` is in a dock that Qt keeps off the window until it is raised."""
    while widget is not None and not isinstance(widget, QDockWidget):
        widget = widget.parentWidget()
    return widget is not None and widget.visibleRegion().isEmpty()


def clipped(root: QWidget, within: QWidget | None = None) -> list[str]:
    """Return the texts that do not fit, or that stick out of the area they scroll in."""
    found = []
    for widget in (within or root).findChildren(QWidget):
        if not isinstance(widget, QLabel | QAbstractButton | QComboBox):
            continue
        if not widget.isVisible() or widget.window() is not root or is_internal(widget):
            continue
        if lies_behind_a_tab(widget):
            continue
        if isinstance(widget, QLabel) and not widget.text():
            continue
        if isinstance(widget, QLabel) and widget.wordWrap():
            fits = widget.height() >= widget.heightForWidth(widget.width())
        else:
            hint = widget.minimumSizeHint()
            fits = widget.width() >= hint.width() and widget.height() >= hint.height()
        area = widget.parentWidget()
        while area is not None and not isinstance(area.parentWidget(), QAbstractScrollArea):
            area = area.parentWidget()
        if area is not None and root.isAncestorOf(area):
            left = widget.mapTo(area, widget.rect().topLeft()).x()
            fits = fits and left >= 0 and left + widget.width() <= area.width()
        if not fits:
            found.append(f"{label_of(widget)}: {widget.size().toTuple()}")
    return found


SIZES = ((1280, 800), (1024, 640))


def assert_nothing_is_clipped(
    qtbot: QtBot, window: MainWindow, label: object, within: QWidget | None = None
) -> None:
    try:
        qtbot.waitUntil(lambda: not clipped(window, within))  # layouts follow a little later
    except qtbot.TimeoutError:
        pytest.fail(f"{label}: {clipped(window, within)}")


def test_no_text_is_clipped_in_the_form_of_any_filter_and_in_any_dock(
    qtbot: QtBot, window: MainWindow
) -> None:
    for size in SIZES:
        resize(window, *size)
        for dock in ("timing", "quality", "measure", "console"):
            window.findChild(QDockWidget, f"{dock}Dock").raise_()
            assert_nothing_is_clipped(qtbot, window, (dock, size))
            assert window.size().toTuple() == size, dock
            assert not lies_behind_a_tab(window.findChild(QDockWidget, f"{dock}Dock").widget())
    for filter_id in each_filter(qtbot, window):  # in the smallest
        assert_nothing_is_clipped(qtbot, window, filter_id, window.panel)
        assert window.size().toTuple() == size, filter_id


def assert_tab_reaches(shown: list[QWidget], window: MainWindow, filter_id: str) -> None:
    """Press Tab until the focus is where it began."""
    assert not window.findChild(QComboBox, "filter").isVisible(), "the browser is open"
    first: QWidget = window.filters.search
    first.setFocus()
    reached = [first]
    for _ in range(200):
        QTest.keyClick(reached[-1], Qt.Key.Key_Tab)
        focused = QApplication.focusWidget()
        assert focused is not None, (filter_id, label_of(reached[-1]))
        if focused is first:
            break
        if focused is not reached[-1]:  # a table goes from cell to cell
            reached.append(focused)
    missed = [
        label_of(widget)
        for widget in shown
        if widget.isVisible()
        and widget.isEnabled()
        and widget.focusProxy() is None
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget not in reached
    ]
    assert missed == [], filter_id

    in_panel = [widget for widget in reached if window.panel.widget().isAncestorOf(widget)]
    middles = [widget.mapTo(window.panel, widget.rect().center()).y() for widget in in_panel]
    upwards = [
        f"{label_of(before)} → {label_of(after)}"
        for before, after, y, next_y in zip(
            in_panel, in_panel[1:], middles, middles[1:], strict=False
        )
        if next_y < y - 5  # controls of different heights stand in one row
    ]
    assert upwards == [], filter_id


def assert_in_reach(shown: list[QWidget], window: MainWindow, filter_id: str) -> None:
    assert window.size().toTuple() == (1280, 720), filter_id
    for name in ("runButton", "cancelButton"):
        button = window.findChild(QAbstractButton, name)
        place = QRect(button.mapTo(window, QPoint()), button.size())
        assert window.rect().contains(place)
        assert button.visibleRegion().boundingRect() == button.rect()
    inside = window.panel.widget()
    assert inside is not None
    for control in shown:
        if not inside.isAncestorOf(control):
            continue
        middle = control.mapTo(inside, control.rect().center())
        margins = control.width() // 2 + 1, control.height() // 2 + 1
        window.panel.ensureVisible(middle.x(), middle.y(), *margins)
        QApplication.processEvents()
        seen = control.visibleRegion().boundingRect()
        assert seen.width() == control.width(), (filter_id, label_of(control))
        assert seen.height() == min(control.height(), window.panel.viewport().height())


def test_no_large_text_is_clipped(qtbot: QtBot, stylist: Stylist, window: MainWindow) -> None:
    window.resize(1600, 1000)
    stylist.apply(Appearance(scale=max(SCALES)))
    for filter_id in ("nlm", "mask", "mri_nlm"):
        choose(qtbot, window, filter_id)
        assert_nothing_is_clipped(qtbot, window, filter_id)


_NOWHERE = Path("/nonexistent/settings.json")


def dialogs() -> list[QDialog]:
    mean = Recipe((Step.create("mean", {}),))
    missing = Availability(False, "No driver.", ("Run `nvidia-smi`.",))
    lost = FoundFile(Path("/c.nii"), None, "It is damaged.")
    return [
        AboutDialog(),
        ErrorDialog("It failed.", "Try again."),
        bug_dialog(ValueError("x"), "log"),
        GpuDialog(missing),
        PhantomDialog(),
        BatchWindow(Background(), {}, Settings(_NOWHERE), lambda: mean, Costs(), tuple),
        ManualWindow(Background()),
        crash_dialog("Fatal Python error: Aborted"),
        ShortcutDialog([("Run", "Run", ("F5",))]),
        Preferences(Settings(_NOWHERE)),
        CommandPalette([Command("Run", "Run", "F5", "Apply the filter", "", lambda: None)]),
        TogetherDialog([*found(volume("a.nii"), volume("b.nii", 1, less=1)), lost]),
        SpaceWindow(Background()),
    ]


def test_dialogs_have_names_and_room(qtbot: QtBot, stylist: Stylist) -> None:
    stylist.apply(Appearance())
    for dialog in dialogs():
        qtbot.addWidget(dialog)
        dialog.show()
        qtbot.waitExposed(dialog)
        shown, label = controls(dialog), label_of(dialog)
        assert dialog.objectName(), label
        assert shown, label
        assert unnamed(shown) == [], label
        assert used_twice(dialog) == [], label
        assert clipped(dialog) == [], label
        dialog.close()
