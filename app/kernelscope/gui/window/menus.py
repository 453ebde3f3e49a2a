"""The menus of the window: the order of its actions, by their ids.

An action itself is declared at its method (`gui.widgets.commands.action`), the entry of a dock in
`gui.window.docks`. The window fills menus without entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelscope.gui.widgets.commands import plain

LINE = ""
"""In place of an id: a line between two groups."""


@dataclass(frozen=True)
class Menu:
    """A menu in the menu bar, or within another."""

    id: str
    title: str
    entries: tuple[str | Menu, ...] = ()
    help: str = ""
    """Page of the manual, or ``page#heading``."""


RECENT = Menu("recentMenu", "Open &Recent")
SAMPLES = Menu("samplesMenu", "Sample &Pictures")
RECORDED = Menu("recordedMenu", "Recorded Res&ults", help="window#kernels-benchmark-and-console")
REFERENCE = Menu(
    "referenceMenu",
    "Re&ference",
    ("chooseReference", "inputAsReference", "clearReference"),
    help="window#denoising",
)
RUNS = Menu(
    "runsMenu",
    "&Finished Runs",
    (
        "showRun",
        "starRun",
        "renameRun",
        "saveRun",
        "deleteRun",
        LINE,
        "swipeRuns",
        "compareRuns",
        LINE,
        "copyRuns",
        "clearRuns",
    ),
    help="window#the-list-of-runs",
)
STEPS = Menu(
    "stepsMenu",
    "S&teps",
    (
        "editStep",
        "switchStep",
        "stepUp",
        "stepDown",
        "duplicateStep",
        "deleteStep",
        LINE,
        "stepAlone",
    ),
    help="window#steps",
)
LEARN = Menu(
    "learnMenu",
    "Lear&n",
    (
        "whyLevel",
        "viewKernel",
        "xray",
        "memoryLadder",
        LINE,
        "lecture",
        "exercises",
        LINE,
        "benchmark",
    ),
    help="window#learning",
)
FILTERS = Menu("filterMenu", "Fil&ter", ("findFilter", "denoise"), help="filters")

MENUS = (
    Menu(
        "fileMenu",
        "&File",
        (
            "open",
            "openFolder",
            RECENT,
            "reopenSession",
            SAMPLES,
            RECORDED,
            LINE,
            "newPhantom",
            "openSlice",
            "openComposite",
            LINE,
            "save",
            "saveAll",
            "saveView",
            "exportFigure",
            "batch",
            LINE,
            "nextPicture",
            "previousPicture",
            "closePicture",
            "reopenPicture",
            LINE,
            "quit",
        ),
        help="window#opening-and-saving",
    ),
    Menu(
        "editMenu",
        "&Edit",
        (
            "undo",
            "redo",
            "reuse",
            LINE,
            "copy",
            "copyCommand",
            "copyPython",
            "paste",
            LINE,
            REFERENCE,
            "resetParameters",
            LINE,
            "preferences",
        ),
        help="window#opening-and-saving",
    ),
    Menu(
        "viewMenu",
        "&View",
        (
            "fit",
            "oneToOne",
            "zoomIn",
            "zoomOut",
            LINE,
            "viewOutput",
            "viewResidual",
            "viewDifference",
            "noiseMap",
            LINE,
            "switchKind",
            LINE,
            "space",
            Menu(
                "membersMenu",
                "Several Volu&mes",
                ("nextVolume", "previousVolume", "playVolumes", "composite"),
                help="volumes#volumes-of-a-file",
            ),
            Menu(
                "arrangeMenu",
                "Arran&ge",
                ("sideBySide", "swipe", "split", "outputAlone", LINE, "inputInstead"),
            ),
            Menu(
                "displayMenu",
                "&Levels and Colours",
                (
                    "displayControls",
                    LINE,
                    "automaticDisplay",
                    "fullDisplay",
                    "linkDisplays",
                    LINE,
                    "mapGrey",
                    "mapInverted",
                    "mapViridis",
                    "mapMagma",
                    "mapDiverging",
                    LINE,
                    "mapRed",
                    "mapGreen",
                    "mapBlue",
                    "mapCyan",
                    "mapMagenta",
                    "mapYellow",
                ),
            ),
            Menu(
                "probeMenu",
                "Read Value&s",
                (
                    "probe",
                    "magnifier",
                    LINE,
                    Menu(
                        "unitsMenu", "&Units of Values", ("unitsStored", "unitsBytes", "unitsShare")
                    ),
                ),
            ),
            Menu(
                "regionsMenu",
                "Regions of In&terest",
                (
                    "drawRectangle",
                    "drawEllipse",
                    "drawPolygon",
                    "drawLine",
                    "regionsOff",
                    LINE,
                    "removeRegion",
                ),
                help="window#measuring",
            ),
            Menu(
                "panelsMenu",
                "&Panels",
                (
                    "showFiltersdock",
                    "showStepsdock",
                    "showControlsdock",
                    "showRunsdock",
                    "showTimingdock",
                    "showQualitydock",
                    "showMeasuredock",
                    "debug",
                    LINE,
                    "onlyPictures",
                ),
                help="window",
            ),
        ),
        help="window#looking",
    ),
    FILTERS,
    Menu(
        "runMenu",
        "&Run",
        (
            "run",
            "runLevels",
            "cancel",
            "live",
            "contactSheet",
            LINE,
            "runRecipe",
            "saveRecipe",
            RUNS,
            LINE,
            STEPS,
        ),
        help="window#live",
    ),
    LEARN,
    Menu(
        "helpMenu",
        "&Help",
        ("help", "manual", "palette", "shortcuts", LINE, "gpuInfo", "about"),
        help="window#help",
    ),
)

TOOL_BAR = (
    (("open", "save"), ("denoise", "run", "cancel"), (LEARN.id,)),
    (("gpuInfo",),),
)
"""Ids of actions and of a menu in the tool bar, in groups: on the left, and at the far right."""


def actions_of(menu: Menu) -> tuple[str, ...]:
    return tuple(each for each in menu.entries if isinstance(each, str) and each != LINE)


def entries() -> Iterator[tuple[tuple[Menu, ...], str]]:
    """Yield the id of every action with the menus that lead to it, in their order."""
    for menu in MENUS:
        yield from _within((menu,))


def _within(path: tuple[Menu, ...]) -> Iterator[tuple[tuple[Menu, ...], str]]:
    for entry in path[-1].entries:
        if isinstance(entry, Menu):
            yield from _within((*path, entry))
        elif entry != LINE:
            yield path, entry


def place(path: tuple[Menu, ...]) -> str:
    """Return the way through the menus as it is written: “Edit > Reference”."""
    return " > ".join(plain(menu.title) for menu in path)
