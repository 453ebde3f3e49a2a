"""The command palette: searched and used by keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLabel, QLineEdit, QTreeWidget
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.tools.command_palette import Command, CommandPalette, search
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child, press, settle

Key = Qt.Key


def command(
    title: str, place: str = "", help: str = "", problem: str = "", synonyms: str = ""
) -> Command:
    return Command(title, place, "", help, problem, lambda: None, synonyms)


COMMANDS = [
    command("Save Output", "File", "Save the output to a file"),
    command("Show Output", "View", "The result of the run"),
    command("Use Output as Input", "Edit"),
    command("Run", "Run", "Apply the filter"),
    command("Run Recipe", "Run", "Several filters from a file"),
    command("Median", "Filter > Smoothing", "The middle value (rank)"),
]


@pytest.mark.parametrize(
    ("wanted", "titles"),
    [
        ("", [each.title for each in COMMANDS]),
        ("run", ["Run", "Run Recipe", "Show Output"]),
        ("RUN rec", ["Run Recipe"]),
        ("output use", ["Use Output as Input"]),
        ("out", ["Save Output", "Show Output", "Use Output as Input"]),
        ("file", ["Save Output", "Run Recipe"]),
        ("smooth", ["Median"]),
        ("(rank", []),
        ("utput", []),
        ("run nothing", []),
    ],
)
def test_search(wanted: str, titles: list[str]) -> None:
    assert [each.title for each in search(COMMANDS, wanted)] == titles


def test_disabled_commands_come_after_their_equals() -> None:
    found = search([command("Save A", problem="No."), command("Save B"), command("All")], "save")
    assert [each.title for each in found] == ["Save B", "Save A"]
    found = search([command("Save", problem="No."), command("Not", help="save")], "save")
    assert [each.title for each in found] == ["Save", "Not"]


@pytest.mark.parametrize("problem", ["", "Open a picture first."])
def test_a_title_that_was_typed_in_full_comes_first(problem: str) -> None:
    """Enter would otherwise hide the panel Runs."""
    found = search([command("Runs"), command("Run", problem=problem)], "run")
    assert [each.title for each in found] == ["Run", "Runs"]


def test_other_names_come_after_titles_and_before_help() -> None:
    titles = command("Weighted", help="To blur"), command("Mean", synonyms="blur"), command("Blur")
    assert [each.title for each in search(titles, "blur")] == ["Blur", "Mean", "Weighted"]


@pytest.fixture
def palette(qtbot: QtBot, window: MainWindow) -> CommandPalette:
    press(qtbot, window, "Ctrl+Shift+P")
    palette = window.findChild(CommandPalette)
    assert palette is not None
    palette.activateWindow()
    qtbot.waitUntil(palette.isActiveWindow)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is palette.findChild(QLineEdit))
    return palette


def type_(qtbot: QtBot, text: str) -> None:
    qtbot.keyClicks(QApplication.focusWidget(), text)


def hit(qtbot: QtBot, key: Qt.Key) -> None:
    qtbot.keyClick(QApplication.focusWidget(), key)


def line(palette: CommandPalette) -> list[str]:
    item = palette.findChild(QTreeWidget).currentItem()
    return [item.text(column) for column in range(3)]


def count(palette: CommandPalette) -> int:
    return palette.findChild(QTreeWidget).topLevelItemCount()


def note(palette: CommandPalette) -> str:
    return palette.findChild(QLabel, "paletteNote").text()


def closed(window: MainWindow) -> Callable[[], bool]:
    return lambda: not window.findChildren(CommandPalette)


def test_everything_is_listed_found_or_not_and_chosen_by_arrows(
    palette: CommandPalette, window: MainWindow, qtbot: QtBot
) -> None:
    assert count(palette) == len([*window.actions_, *window.panel.settings()])
    assert line(palette) == ["Open", "File", "Ctrl+O"]
    assert note(palette) == "Open pictures or a volume"

    type_(qtbot, "xyzzy")
    assert count(palette) == 0
    assert note(palette) == "No command, filter or setting has these words."
    hit(qtbot, Key.Key_Return)
    assert palette.isVisible()
    for _ in "xyzzy":
        hit(qtbot, Key.Key_Backspace)
    assert count(palette) > 20

    palette.findChild(QLineEdit).clear()
    type_(qtbot, "show")
    first = line(palette)
    hit(qtbot, Key.Key_Down)
    assert line(palette) == ["Show Residual", "View", "F3"]
    hit(qtbot, Key.Key_Down)
    hit(qtbot, Key.Key_Up)
    hit(qtbot, Key.Key_Up)
    assert line(palette) == first == ["Show Output", "View", "F2"]
    hit(qtbot, Key.Key_Down)
    hit(qtbot, Key.Key_Return)
    qtbot.waitUntil(closed(window))
    assert window.actions_["viewResidual"].isChecked()


@pytest.mark.smoke
def test_enter_runs_what_was_typed(
    qtbot: QtBot, palette: CommandPalette, window: MainWindow
) -> None:
    type_(qtbot, "median")
    assert line(palette)[:2] == ["Median", "Filter > Smoothing"]
    hit(qtbot, Key.Key_Return)
    qtbot.waitUntil(closed(window))
    assert window.session.filter_id == "median"


def test_a_setting_is_found_and_has_the_focus(qtbot: QtBot, loaded: MainWindow) -> None:
    window = loaded
    window.session.set_filter("collaborative")
    window.docks[DockName.CONTROLS].hide()
    press(qtbot, window, "Ctrl+Shift+P")
    palette = window.findChild(CommandPalette)
    assert palette is not None
    search_field = palette.findChild(QLineEdit)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is search_field)
    names = {each.title for each in palette._commands[len(window.actions_) :]}
    assert {"Strength", "Noise sigma", "Setting", "Border"} <= names
    type_(qtbot, "strength")
    assert line(palette) == ["Strength", "Settings", "Alt+S"]
    hit(qtbot, Key.Key_Return)
    qtbot.waitUntil(closed(window))
    window.activateWindow()
    box = child(window, QAbstractSpinBox, "strengthBox")
    qtbot.waitUntil(lambda: QApplication.focusWidget() is box)
    assert box.isVisible()
    window.canvas.input.views[0].setFocus()
    press(qtbot, window, "Alt+S")
    assert QApplication.focusWidget() is box
    reached = []
    while (focused := QApplication.focusWidget()) is not box or not reached:
        assert focused is not None
        reached.append(focused.objectName())
        window.focusNextChild()
    places = [reached.index(each) for each in ("border", "ladderRungs", "runButton", "openTool")]
    assert places == sorted(places)
    assert places[2] < 12


def test_a_filter_is_found_by_the_words_of_the_panel_filters(
    qtbot: QtBot, palette: CommandPalette, window: MainWindow
) -> None:
    type_(qtbot, "blur")
    assert line(palette)[1].startswith("Filter > ")
    window.session.set_filter("negative")
    hit(qtbot, Key.Key_Return)
    qtbot.waitUntil(closed(window))
    assert "blur" in filters.get(window.session.filter_id).synonyms


def test_a_disabled_command_says_why_and_escape_closes(
    qtbot: QtBot, palette: CommandPalette, window: MainWindow
) -> None:
    type_(qtbot, "save output")
    why = "Open a picture or a volume first."
    assert line(palette)[1] == note(palette) == why
    hit(qtbot, Key.Key_Return)
    settle(qtbot, window)
    assert palette.isVisible()

    palette.findChild(QLineEdit).clear()
    type_(qtbot, "undo")
    assert line(palette)[:2] == ["Undo", "There is nothing to undo."]

    before = window.session.filter_id
    palette.findChild(QLineEdit).clear()
    type_(qtbot, "median")
    hit(qtbot, Key.Key_Escape)
    qtbot.waitUntil(closed(window))
    assert window.session.filter_id == before


def test_the_filter_is_limited_to_a_region_which_is_drawn_first(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """“Delete Region” was chosen, and the setting was not found."""

    def search_for(text: str) -> CommandPalette:
        press(qtbot, loaded, "Ctrl+Shift+P")
        palette = loaded.findChild(CommandPalette)
        assert palette is not None
        palette.findChild(QLineEdit).setText(text)
        return palette

    palette = search_for("region")
    assert line(palette) == ["Rectangle", "View > Regions of Interest", "Ctrl+Alt+R"]
    disabled = {each.title: each.problem for each in palette._found if each.problem}
    assert disabled.keys() >= {"Filter Only in Region", "Delete Region"}
    assert disabled["Filter Only in Region"].startswith("Draw a region into a picture first")
    palette.close()
    qtbot.waitUntil(closed(loaded))
    loaded.measuring.add(Shape.RECTANGLE)
    palette = search_for("filter only in r")
    assert line(palette)[0] == "Filter Only in Region"
    palette.findChild(QLineEdit).returnPressed.emit()
    assert loaded.session.within == loaded.measuring.regions.chosen.area
    assert loaded.actions_["filterWithin"].isChecked()
    loaded.actions_["filterWithin"].trigger()
    assert loaded.session.within is None
    assert not loaded.actions_["filterWithin"].isChecked()


def test_another_window_closes_it(
    qtbot: QtBot, palette: CommandPalette, window: MainWindow
) -> None:
    window.activateWindow()
    qtbot.waitUntil(closed(window))
