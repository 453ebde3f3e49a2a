"""The window's menus, docks and shortcuts as data: declared here, used everywhere.

`MENUS` lists the menus from left to right and their entries from top to bottom. An entry is an
`Action` or a `Submenu`; a change of `group` between two neighbours draws a separator. From this
list come the menus, the tool bar, the command palette, the list of shortcuts in the window and
the one in the manual. A new entry is one more `Action` with the name of the method to call;
`kernelscope.commands` has its attributes and the conditions under which it is enabled.

Nothing here needs Qt: the manual is also built on machines without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kernelscope import commands, file_menu, run_menu
from kernelscope.commands import Action, Submenu, plain
from kernelscope.view_menu import LOOKING


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

    @property
    def object_name(self) -> str:
        """Name under which Qt saves the dock's place."""
        return f"{self.name}Dock"


DOCKS = (
    Dock(DockName.FILTERS, "Filters", Side.LEFT),
    Dock(DockName.STEPS, "Steps", Side.LEFT),
    Dock(DockName.CONTROLS, "Settings", Side.RIGHT),
    Dock(DockName.RUNS, "Runs", Side.BOTTOM),
    Dock(DockName.TIMING, "Timing", Side.BOTTOM),
    Dock(DockName.QUALITY, "Quality", Side.BOTTOM),
    Dock(DockName.CONSOLE, "Console", Side.BOTTOM, visible=False),
)

TOGGLES = {
    "showFiltersdock": DockName.FILTERS,
    "showStepsdock": DockName.STEPS,
    "showRunsdock": DockName.RUNS,
    "showControlsdock": DockName.CONTROLS,
    "showTimingdock": DockName.TIMING,
    "showQualitydock": DockName.QUALITY,
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
_REFERENCE = (
    Action("chooseReference", "&Choose…", "files.choose_reference", need=commands.SOURCE),
    Action("inputAsReference", "Use &Input", "page.use_input_as_reference", need=commands.SOURCE),
    Action("clearReference", "C&lear", "page.clear_reference", need=commands.SOURCE),
)

REFERENCE = Submenu("referenceMenu", "Re&ference", _REFERENCE, group=2)

_EDIT = (
    Action("undo", "&Undo", "page.undo", keys=("Ctrl+Z",), need=commands.UNDO, icon="undo"),
    Action(
        "redo",
        "&Redo",
        "page.redo",
        keys=("Ctrl+Shift+Z", "Ctrl+Y"),
        need=commands.REDO,
        icon="redo",
    ),
    Action(
        "reuse",
        "Use &Output as Input",
        "page.use_output",
        keys=("Ctrl+U", "Ctrl+Return"),
        tip="Continue from the output, for example with another filter",
        need=commands.OUTPUT,
        label="Use as Input",
    ),
    Action(
        "copy",
        "&Copy Output",
        "files.copy_output",
        group=1,
        keys=("Ctrl+C",),
        tip="Copy the output to the clipboard",
        need=commands.PICTURE_OUTPUT,
    ),
    Action(
        "copyCommand",
        "Copy as Command &Line",
        "files.copy_command",
        group=1,
        keys=("Ctrl+Alt+C",),
        tip="Copy the steps to the output as a command, for a terminal or a script",
        need=commands.SOURCE,
    ),
    Action(
        "copyPython",
        "Copy as P&ython",
        "files.copy_python",
        group=1,
        keys=("Ctrl+Alt+P",),
        tip="Copy the steps to the output as a program",
        need=commands.SOURCE,
    ),
    Action(
        "paste",
        "&Paste Picture",
        "file_dialogs.paste",
        group=1,
        keys=("Ctrl+V",),
        tip="Open the picture on the clipboard",
    ),
    REFERENCE,
    Action("resetParameters", "R&eset Parameters", "panel.reset", group=2),
    Action(
        "preferences",
        "Prefere&nces…",
        "companions.show_preferences",
        group=3,
        keys=("Ctrl+,",),
        icon="preferences",
        tip="Theme and size of text",
    ),
)

_PANELS = (
    Action("showFiltersdock", "&Filters", "", keys=("Ctrl+F8",)),
    Action("showStepsdock", "S&teps", "", keys=("Ctrl+F9",)),
    Action("showControlsdock", "&Settings", "", keys=("F8",)),
    Action("showRunsdock", "&Runs", "", keys=("Ctrl+F7",)),
    Action("showTimingdock", "Ti&ming", "", keys=("F9",)),
    Action("showQualitydock", "&Quality", "", keys=("F7",)),
    Action(
        "debug",
        "&Console",
        "dock_watch.toggle_console",
        keys=("F12",),
        tip="The log: what the program does, how long it takes, and errors",
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
        tip="Hide all panels, or bring them back",
    ),
)

PANELS = Submenu("panelsMenu", "&Panels", _PANELS, group=3)

_VIEW = (
    Action(
        "fit",
        "&Fit to Window",
        "canvas.fit",
        keys=("Ctrl+0",),
        tip="Show the whole picture",
    ),
    Action(
        "oneToOne",
        "&Actual Size (1:1)",
        "canvas.one_to_one",
        keys=("Ctrl+1",),
        tip="Show one pixel of the picture as one pixel of the screen",
    ),
    Action("zoomIn", "Zoom &In", "canvas.zoom_in", keys=("Ctrl++", "Ctrl+=")),
    Action("zoomOut", "Zoom O&ut", "canvas.zoom_out", keys=("Ctrl+-",)),
    Action(
        "viewOutput",
        "Show &Output",
        "set_view",
        group=1,
        keys=("F2",),
        tip="The result of the run",
        argument="output",
        choice="view",
        label="Output",
    ),
    Action(
        "viewResidual",
        "Show &Residual",
        "set_view",
        group=1,
        keys=("F3",),
        tip="Output minus input: the changes that the filter made",
        argument="residual",
        choice="view",
        label="Residual",
    ),
    Action(
        "viewDifference",
        "Show &Difference",
        "set_view",
        group=1,
        keys=("F4",),
        tip="Output minus reference: the remaining error",
        argument="difference",
        choice="view",
        label="Difference",
    ),
    Action(
        "noiseMap",
        "Show &Noise Map",
        "show_noise_map",
        group=1,
        keys=("F6",),
        tip="Sigma around each voxel of the input, as MRI NLM estimates it",
        need=commands.VOLUMES,
    ),
    Action(
        "switchKind",
        "Picture or &Volume",
        "pages.switch",
        group=2,
        keys=("Ctrl+Shift+V",),
        tip="Switch between the open volume and the open picture",
        need=commands.OTHER,
    ),
    *LOOKING,
    PANELS,
)

_RUN = (
    Action(
        "run",
        "&Run",
        "runner.run",
        keys=("F5", "Ctrl+R"),
        tip="Apply the filter",
        need=commands.SOURCE,
        icon="run",
        label="Run",
    ),
    Action(
        "runLevels",
        "Run All Le&vels",
        "levels.run_all",
        keys=("L",),
        tip="Run every level of the filter on the present picture, one after the other",
        need=commands.SOURCE,
        label="Run all",
    ),
    Action(
        "cancel",
        "&Cancel",
        "runner.cancel",
        keys=("Esc",),
        tip="Stop the run",
        need=commands.BUSY,
        icon="cancel",
        label="Cancel",
    ),
    Action(
        "live",
        "&Live",
        "live.toggle",
        keys=("Shift+F5",),
        tip="Compute the output as the settings change; slow filters wait for Run",
        checkable=True,
    ),
    Action(
        "contactSheet",
        "Contact S&heet…",
        "companions.show_contact_sheet",
        keys=("Ctrl+Shift+H",),
        tip="Nine values of a parameter, each with its result on the part in view",
        need=commands.SOURCE,
    ),
    Action(
        "runRecipe",
        "Run R&ecipe…",
        "recipes.choose",
        group=1,
        keys=("Ctrl+Shift+R",),
        tip="Run several filters from a file, one after the other",
    ),
    Action(
        "saveRecipe",
        "&Save Recipe…",
        "files.save_recipe",
        group=1,
        tip="Save the steps that led to the input, and the filter with its settings",
        need=commands.SOURCE,
    ),
    run_menu.RUNS,
    Action(
        "whyLevel",
        "&Why This Level…",
        "levels.explain",
        group=2,
        keys=("W",),
        tip="The level under the cursor of the ladder: its idea, its figures and their source",
        label="Why?",
    ),
    Action(
        "viewKernel",
        "View &Kernel…",
        "companions.show_kernel",
        group=2,
        keys=("Ctrl+K",),
        tip="The CUDA source of the filter at its level",
        icon="kernel",
        label="Kernel",
    ),
    Action(
        "benchmark",
        "&Benchmark…",
        "companions.show_bench",
        group=2,
        keys=("Ctrl+B",),
        tip="Time filters, levels, devices and libraries against each other",
        icon="benchmark",
        label="Benchmark",
    ),
)

_HELP = (
    Action(
        "manual",
        "&Manual",
        "companions.show_manual",
        keys=("F1",),
        tip="The pages of the manual, with a search over all of them",
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
    Submenu("fileMenu", "&File", file_menu.FILE),
    Submenu("editMenu", "&Edit", _EDIT),
    Submenu("viewMenu", "&View", _VIEW),
    FILTERS,
    Submenu("runMenu", "&Run", _RUN),
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
