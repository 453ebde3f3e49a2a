"""The window's menus, docks and shortcuts as data: declared here, used everywhere.

`MENUS` lists the menus from left to right; `file_menu`, `edit_menu`, `view_menu` and `run_menu`
list their entries from top to bottom. An entry is an `Action` or a `Submenu`; a change of `group`
between two neighbours draws a separator. From this list come the menus, the tool bar, the command
palette, the list of shortcuts in the window and the one in the manual. A new entry is one more
`Action` with the name of the method to call; `kernelscope.commands` has its attributes and the
conditions under which it is enabled.

Nothing here needs Qt: the manual is also built on machines without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kernelscope.commands import Action, Submenu, plain
from kernelscope.edit_menu import EDIT
from kernelscope.file_menu import FILE
from kernelscope.run_menu import RUN
from kernelscope.view_menu import VIEW


class Side(StrEnum):
    """Edge of the window at which a dock lies."""

    LEFT = "left"
    RIGHT = "right"
    BOTTOM = "bottom"


class DockName(StrEnum):
    """The docks of the window."""

    FILTERS = "filters"
    STEPS = "steps"
    CONTROLS = "controls"
    RUNS = "runs"
    TIMING = "timing"
    QUALITY = "quality"
    MEASURE = "measure"
    CONSOLE = "console"


@dataclass(frozen=True)
class Dock:
    """A dock of the window.

    Docks at the bottom lie behind each other, the first in front; those on the left and on the
    right lie below each other.
    """

    name: DockName
    title: str
    side: Side
    visible: bool = True
    """Shown until the user decides otherwise."""
    help: str = ""
    """Page of the manual that explains it, or ``page#heading``."""

    @property
    def object_name(self) -> str:
        """Name under which Qt saves the dock's place."""
        return f"{self.name}Dock"


DOCKS = (
    Dock(DockName.FILTERS, "Filters", Side.LEFT, help="window#finding-a-filter"),
    Dock(DockName.STEPS, "Steps", Side.LEFT, help="window#recipes"),
    Dock(DockName.CONTROLS, "Settings", Side.RIGHT, help="window"),
    Dock(DockName.RUNS, "Runs", Side.BOTTOM, help="window#the-list-of-runs"),
    Dock(DockName.TIMING, "Timing", Side.BOTTOM, help="window#the-list-of-runs"),
    Dock(DockName.QUALITY, "Quality", Side.BOTTOM, help="window#denoising"),
    Dock(DockName.MEASURE, "Measure", Side.BOTTOM, help="window#measuring"),
    Dock(
        DockName.CONSOLE,
        "Console",
        Side.BOTTOM,
        visible=False,
        help="window#kernels-benchmark-and-console",
    ),
)

TOGGLES = {
    "showFiltersdock": DockName.FILTERS,
    "showStepsdock": DockName.STEPS,
    "showRunsdock": DockName.RUNS,
    "showControlsdock": DockName.CONTROLS,
    "showTimingdock": DockName.TIMING,
    "showQualitydock": DockName.QUALITY,
    "showMeasuredock": DockName.MEASURE,
}
"""Actions that show or hide a dock; Qt makes them. The console has an action of its own."""

FILTERS = Submenu(
    "filterMenu",
    "Fil&ter",
    (
        Action(
            "findFilter",
            "&Find Filter…",
            "filter_shelf.find",
            keys=("Ctrl+F",),
            tip="Search the filters by name, category or another word",
        ),
    ),
)

_PANELS = (
    Action("showFiltersdock", "&Filters", "", keys=("Ctrl+F8",)),
    Action("showStepsdock", "S&teps", "", keys=("Ctrl+F9",)),
    Action("showControlsdock", "&Settings", "", keys=("F8",)),
    Action("showRunsdock", "&Runs", "", keys=("Ctrl+F7",)),
    Action("showTimingdock", "Ti&ming", "", keys=("F9",)),
    Action("showQualitydock", "&Quality", "", keys=("F7",)),
    Action("showMeasuredock", "M&easure", "", keys=("Ctrl+F10",)),
    Action(
        "debug",
        "&Console",
        "dock_watch.toggle_console",
        keys=("F12",),
        tip="The log: actions of the program with durations, and errors",
        checkable=True,
        icon="debug",
        label="Debug",
    ),
    Action(
        "onlyPictures",
        "Only the &Pictures",
        "drawer.toggle",
        group=1,
        keys=("F11",),
        tip="Hide or show all panels",
    ),
)

PANELS = Submenu("panelsMenu", "&Panels", _PANELS, group=3)

_HELP = (
    Action(
        "help",
        "&Help on This",
        "companions.show_help",
        keys=("F1",),
        tip="The page on the part of the window under the pointer or with the focus",
        everywhere=True,
    ),
    Action(
        "manual",
        "&Manual",
        "companions.show_manual",
        tip="The pages of the manual, with a search over all of them",
    ),
    Action(
        "lecture",
        "&Lecture",
        "companions.show_lecture",
        tip="Short pages on memory and speed, with live pictures of the open image",
    ),
    Action(
        "palette",
        "&Command Palette…",
        "companions.show_palette",
        keys=("Ctrl+Shift+P",),
        tip="Find and run any command by typing a part of its name",
    ),
    Action(
        "shortcuts",
        "&Keyboard Shortcuts",
        "companions.show_shortcuts",
        tip="All keyboard shortcuts of the window",
    ),
    Action(
        "gpuInfo",
        "&GPU Information…",
        "companions.show_gpu",
        group=1,
        tip="Properties of the GPU, or the steps to set one up",
        icon="gpu",
        label="GPU info",
    ),
    Action("about", "&About Kernelscope", "companions.show_about", group=1),
)

MENUS = (
    Submenu("fileMenu", "&File", FILE),
    Submenu("editMenu", "&Edit", EDIT),
    Submenu("viewMenu", "&View", (*VIEW, PANELS)),
    FILTERS,
    Submenu("runMenu", "&Run", RUN),
    Submenu("helpMenu", "&Help", _HELP),
)

TOOL_BAR = (
    (("open", "save"), ("run", "cancel", "viewKernel", "benchmark")),
    (("debug", "gpuInfo"),),
)
"""Ids of the actions in the tool bar, in groups: on the left, and at the far right."""


def actions() -> Iterator[tuple[tuple[Submenu, ...], Action]]:
    """Yield every action with the menus that lead to it, in their order."""
    for menu in MENUS:
        yield from _within((menu,))


def _within(path: tuple[Submenu, ...]) -> Iterator[tuple[tuple[Submenu, ...], Action]]:
    for entry in path[-1].entries:
        if isinstance(entry, Submenu):
            yield from _within((*path, entry))
        else:
            yield path, entry


def place(path: tuple[Submenu, ...]) -> str:
    """Return the way through the menus as it is written: “Edit > Reference”."""
    return " > ".join(plain(menu.title) for menu in path)


def shortcuts() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield menu, name and keys of every action that has keys."""
    for path, action in actions():
        if action.keys:
            yield place(path), action.name, action.keys
