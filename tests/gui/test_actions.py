"""Menus, docks and shortcuts as they are declared, and as the window shows them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMenu, QTreeWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.tools.command_palette import ShortcutDialog
from kernelscope.gui.widgets.commands import (
    NOTHING,
    PICTURE,
    SOURCE,
    Action,
    WindowState,
    declared,
    declared_by,
    plain,
)
from kernelscope.gui.window import menus
from kernelscope.gui.window.dock_list import DOCKS
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.window.measuring import Measuring
from kernelscope.gui.window.menus import Menu
from kernelscope.gui.window.viewer import Viewer
from kernelscope.teach import manual
from tests.gui.helpers import dialog, load, run

DECLARED = declared | {dock.toggle.id: dock.toggle for dock in DOCKS if dock.entry}
ACTIONS = [DECLARED[id_] for _, id_ in menus.entries()]


def submenus(menu: Menu) -> list[Menu]:
    inner = [entry for group in menu.groups for entry in group if isinstance(entry, Menu)]
    return [menu, *(found for entry in inner for found in submenus(entry))]


def test_ids_and_keys_are_unique() -> None:
    ids = Counter(action.id for action in ACTIONS)
    keys = Counter(key for action in ACTIONS for key in action.shortcuts)
    assert [name for name, count in (ids + keys).items() if count > 1] == []
    assert all(QKeySequence(key).toString() == key for key in keys)


def test_no_command_has_a_key_that_types_a_character() -> None:
    """Letters of a path, typed before the dialog for files was there, started runs."""
    for action in ACTIONS:
        for key in action.shortcuts:
            assert len(key) > 1, (action.id, key)
            assert not key.startswith("Shift+") or key.startswith("Shift+F"), (action.id, key)


@pytest.mark.parametrize(
    "menu", [each for top in menus.MENUS for each in submenus(top)], ids=lambda each: each.id
)
def test_every_entry_of_a_menu_has_an_access_key_of_its_own(menu: Menu) -> None:
    entries = [entry for group in menu.groups for entry in group]
    titles = [each.title if isinstance(each, Menu) else DECLARED[each].title for each in entries]
    found = [re.findall("&(.)", title.lower()) for title in titles]
    assert all(len(keys) == 1 for keys in found)
    assert [key for key, count in Counter(key for (key,) in found).items() if count > 1] == []


def test_every_action_has_a_place_and_a_method() -> None:
    ids = [id_ for _, id_ in menus.entries()]
    assert sorted(ids) == sorted(DECLARED), "declared and not in a menu, or twice"


def test_ticks_and_keys_follow_their_owners(window: MainWindow) -> None:
    quality = window.findChild(QDockWidget, "qualityDock")
    toggle = window.findChild(QAction, "showQualitydock")
    assert toggle.shortcut() == QKeySequence("F7")
    toggle.trigger()
    assert quality.isHidden()
    toggle.trigger()
    assert not quality.isHidden()

    def ticked() -> set[str]:
        ids = {action.id for action in ACTIONS if action.ticked is not None}
        return {id_ for id_ in ids if window.actions_[id_].isChecked()}

    assert ticked() == {
        "viewOutput",
        "sideBySide",
        "linkDisplays",
        "mapGrey",
        "probe",
        "scaleBar",
        "unitsStored",
        "regionsOff",
    }
    window.viewer.arrange("swipe")
    window.viewer.toggle_probe()
    window.viewer.choose_units("0 to 1")
    window.viewer.toggle_magnifier()
    window.viewer.toggle_scale_bar()
    window.measuring.choose_tool("ellipse")
    window.set_view("residual")
    window.actions_["live"].trigger()
    window.viewer.toggle_link()
    assert ticked() == {
        "viewResidual",
        "swipe",
        "mapGrey",
        "unitsShare",
        "live",
        "magnifier",
        "drawEllipse",
    }


def test_menus_are_as_they_are_declared_and_as_the_pages_say(window: MainWindow) -> None:
    def name(action: QAction) -> str:
        menu: Any = action.menu()
        return menu.objectName() if menu else "" if action.isSeparator() else action.objectName()

    for menu in (each for top in menus.MENUS for each in submenus(top)):
        ids = [[each.id if isinstance(each, Menu) else each for each in g] for g in menu.groups]
        wanted = [each for group in ids for each in ("", *group)][1:]
        actions = window.findChild(QMenu, menu.id).actions()
        assert [name(each) for each in actions][: len(wanted)] == wanted, menu.id

    assert window.findChild(QAction, "run").statusTip() == "Apply the filter (F5)"
    assert window.findChild(QAction, "openSlice").toolTip().endswith("as a picture")
    native = QKeySequence("Ctrl+O").toString(QKeySequence.SequenceFormat.NativeText)
    assert window.findChild(QAction, "open").statusTip().endswith(f"volume ({native})")

    rows = (
        (place, name, " or ".join(f"`{key}`" for key in keys))
        for place, name, keys in window.actions_.shortcuts()
    )
    listed = manual.table(("menu", "command", "keys"), rows)
    assert listed in manual.page("window"), f"resources/docs/window.md needs this table:\n{listed}"

    def entries(menu: object) -> set[str]:
        found = set()
        for action in menu.actions() if isinstance(menu, QMenu) else ():
            found |= {plain(action.text()), *entries(action.menu())}
        return found

    tops = {plain(each.text()): each.menu() for each in window.menuBar().actions()}
    named = [
        (path.name, menu, entry)
        for path in [*manual.FOLDER.glob("*.md"), manual.FOLDER.parents[1] / "README.md"]
        for menu, entry in re.findall(r"\*(\w+) > ([^*>]+?)…?\*", path.read_text(encoding="utf-8"))
        if menu in tops
    ]
    missing = [
        (page, menu, entry)
        for page, menu, entry in named
        if not any(each.startswith(entry) for each in entries(tops[menu]))
    ]
    assert missing == []
    assert len(named) > 40


# Enabled actions -----------------------------------------------------------------------


ALL = WindowState(
    source=True,
    volumes=True,
    deep=True,
    output=True,
    members=2,
    other=True,
    pictures=2,
    earlier=True,
    closed=1,
    busy=True,
    reference=True,
    difference=True,
    runs=2,
    chosen=2,
    kept=True,
    baseline=True,
    steps=2,
    regions=1,
    region=True,
    area=True,
    later=True,
    undo="A",
    redo="B",
)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_a_need_can_be_met_and_says_why_it_is_not(action: Action) -> None:
    assert action.need.met(ALL) or action.need.met(WindowState(source=True, output=True))
    if action.need is not NOTHING:
        assert not action.need.met(WindowState())
        assert action.need.why.endswith(".")


COPIED = {"copyCommand", "copyPython"}
RUN = {"run", "runLevels"}
STEPS = {"editStep", "switchStep", "stepUp", "stepDown", "deleteStep"}
CHOSEN = {"showRun", "starRun", "renameRun", "deleteRun"}


LOOKING = {action.id for action in ACTIONS if action.need is PICTURE} | {
    action.id
    for part in (Viewer, Measuring)
    for _, action in declared_by(part)
    if action.need is SOURCE
}


ENABLED: list[tuple[WindowState, set[str]]] = [
    (WindowState(), set()),
    (
        WindowState(source=True),
        {
            *RUN,
            "save",
            "duplicateStep",
            "filterBlocks",
            "chooseReference",
            "saveRecipe",
            "denoise",
            "contactSheet",
            "xray",
            "memoryLadder",
            *COPIED,
            *LOOKING,
        },
    ),
    (WindowState(output=True), {"reuse", "copy", "exportFigure"}),
    (
        WindowState(output=True, volumes=True),
        {"reuse", "copy", "exportFigure", "openSlice", "noiseMap", "scaleBar"},
    ),
    (WindowState(volumes=True, deep=True), {"openSlice", "noiseMap", "space", "scaleBar"}),
    (WindowState(other=True), {"switchKind"}),
    (WindowState(pictures=1), set()),
    (WindowState(pictures=2), {"nextPicture", "previousPicture", "closePicture"}),
    (WindowState(closed=1), {"reopenPicture"}),
    (WindowState(earlier=True), {"reopenSession"}),
    (WindowState(reference=True), {"clearReference", "viewDifference"}),
    (WindowState(busy=True), {"cancel"}),
    (WindowState(difference=True), {"saveView"}),
    (WindowState(runs=1), {"copyRuns", "clearRuns"}),
    (WindowState(chosen=1), {"showRun", "starRun", "renameRun", "deleteRun"}),
    (WindowState(chosen=1, kept=True), {*CHOSEN, "saveRun"}),
    (WindowState(chosen=2, kept=True), {*CHOSEN, "saveRun", "swipeRuns"}),
    (WindowState(baseline=True), {"compareRuns"}),
    (WindowState(region=True), {"openRegion", "removeRegion"}),
    (WindowState(area=True), {"filterWithin"}),
    (WindowState(steps=1), set()),
    (WindowState(steps=2), STEPS),
    (WindowState(later=True), {"stepAlone"}),
    (WindowState(undo="Open"), {"undo"}),
    (WindowState(redo="Open"), {"redo"}),
]


def test_each_fact_enables_its_actions(window: MainWindow) -> None:
    judged = {action.id for action in ACTIONS if action.need is not NOTHING}
    judged -= {"inputAsReference"}
    for state, enabled in ENABLED:
        window.actions_.refresh(state)
        assert {id_ for id_ in judged if window.actions_[id_].isEnabled()} == enabled, state
        assert window.findChild(QMenu, "filtersVolumesMenu").isEnabled() is state.volumes
        assert window.actions_["filtermri_nlm"].isEnabled() is state.volumes
        for id_ in judged - {"undo", "redo", "compareRuns"}:  # named after their steps
            made, why = window.actions_[id_], DECLARED[id_].need.why
            assert (why in made.toolTip()) is not made.isEnabled(), (id_, state)


@pytest.mark.smoke
def test_the_window_reports_its_state(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    assert window.actions_.state == WindowState()
    load(qtbot, window, picture)
    qtbot.waitUntil(lambda: window.actions_.state == WindowState(source=True, pictures=1, steps=1))
    run(qtbot, window)
    qtbot.waitUntil(lambda: not window.actions_.state.busy)
    assert window.actions_.state == WindowState(
        source=True, pictures=1, output=True, runs=1, chosen=1, kept=True, baseline=False, steps=1
    )


# The list of shortcuts -----------------------------------------------------------------


def test_the_list_of_shortcuts(qtbot: QtBot, window: MainWindow) -> None:
    window.findChild(QAction, "shortcuts").trigger()
    listed = dialog(qtbot, window, ShortcutDialog)
    tree = listed.findChild(QTreeWidget, "shortcutList")
    headings = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
    with_keys = (menus.place(path) for path, id_ in menus.entries() if DECLARED[id_].keys)
    assert [each.text(0) for each in headings] == list(dict.fromkeys(with_keys))
    found = {
        each.child(row).text(0): each.child(row).text(1)
        for each in headings
        for row in range(each.childCount())
    }
    assert found["Run"] == "F5, Ctrl+R"
    assert found["Quality"] == "F7"
    assert len(found) == sum(bool(action.keys) for action in ACTIONS)
    assert listed.text().splitlines()[0] == "Open\tCtrl+O"
