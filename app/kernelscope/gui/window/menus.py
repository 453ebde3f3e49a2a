"""The order of the window's actions by their ids; menus without groups are filled as they open."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelscope.gui.widgets.commands import plain
from kernelscope.gui.window.dock_list import DOCKS


@dataclass(frozen=True)
class Menu:
    """A menu in the menu bar, or within another."""

    id: str
    title: str
    groups: Sequence[Sequence[str | Menu]] = ()
    """Ids of actions, and menus; a line divides two groups."""
    help: str = ""  # page of the manual, or ``page#heading``


RECENT = Menu("recentMenu", "Open &Recent")
SAMPLES = Menu("samplesMenu", "Sample &Pictures")
RECORDED = Menu("recordedMenu", "Recorded Res&ults", help="window#kernels-benchmark-and-console")
REFERENCE = Menu(
    "referenceMenu",
    "Re&ference",
    [["chooseReference", "inputAsReference", "clearReference"]],
    help="window#denoising",
)
RUNS = Menu(
    "runsMenu",
    "&Finished Runs",
    [
        ["showRun", "starRun", "renameRun", "saveRun", "deleteRun"],
        ["swipeRuns", "compareRuns"],
        ["copyRuns", "clearRuns"],
    ],
    help="window#the-list-of-runs",
)
STEPS = Menu(
    "stepsMenu",
    "S&teps",
    [
        ["editStep", "switchStep", "stepUp", "stepDown", "duplicateStep", "deleteStep"],
        ["stepAlone"],
    ],
    help="window#steps",
)
LEARN = Menu(
    "learnMenu",
    "Lear&n",
    [["whyLevel", "viewKernel", "xray", "memoryLadder"], ["lecture", "exercises"], ["benchmark"]],
    help="window#learning",
)
FILTERS = Menu("filterMenu", "Fil&ter", [["findFilter", "denoise"]], help="filters")

MENUS = (
    Menu(
        "fileMenu",
        "&File",
        [
            ["open", "openFolder", RECENT, "reopenSession", SAMPLES, RECORDED],
            ["newPhantom", "openSlice", "openComposite"],
            ["save", "saveAll", "saveView", "exportFigure"],
            ["batch", "filterBlocks"],
            ["nextPicture", "previousPicture", "closePicture", "reopenPicture"],
            ["quit"],
        ],
        help="window#opening-and-saving",
    ),
    Menu(
        "editMenu",
        "&Edit",
        [
            ["undo", "redo", "reuse"],
            ["copy", "copyCommand", "copyPython", "paste"],
            [REFERENCE, "resetParameters"],
            ["preferences"],
        ],
        help="window#opening-and-saving",
    ),
    Menu(
        "viewMenu",
        "&View",
        [
            ["fit", "oneToOne", "zoomIn", "zoomOut"],
            ["viewOutput", "viewResidual", "viewDifference", "noiseMap"],
            ["switchKind", "plain"],
            [
                "space",
                Menu(
                    "membersMenu",
                    "Several Volu&mes",
                    [
                        ["nextVolume", "previousVolume", "playVolumes", "composite"],
                        ["filterChannels", "filterFile"],
                        [
                            Menu(
                                "channelsMenu",
                                "Channels &Drawn",
                                [[f"channel{number}" for number in range(1, 10)]],
                            )
                        ],
                    ],
                    help="volumes#volumes-of-a-file",
                ),
                Menu(
                    "arrangeMenu",
                    "Arran&ge",
                    [["sideBySide", "swipe", "split", "outputAlone"], ["inputInstead"]],
                ),
                Menu(
                    "displayMenu",
                    "&Levels and Colours",
                    [
                        ["displayControls"],
                        ["automaticDisplay", "fullDisplay", "linkDisplays"],
                        ["mapGrey", "mapInverted", "mapViridis", "mapMagma", "mapDiverging"],
                        ["mapRed", "mapGreen", "mapBlue", "mapCyan", "mapMagenta", "mapYellow"],
                    ],
                ),
                Menu(
                    "probeMenu",
                    "Read Value&s",
                    [
                        ["probe", "magnifier", "scaleBar"],
                        [
                            Menu(
                                "unitsMenu",
                                "&Units of Values",
                                [["unitsStored", "unitsBytes", "unitsShare"]],
                            )
                        ],
                    ],
                ),
                Menu(
                    "regionsMenu",
                    "Regions of In&terest",
                    [
                        ["drawRectangle", "drawEllipse", "drawPolygon", "drawLine", "regionsOff"],
                        ["filterWithin", "openRegion", "removeRegion"],
                    ],
                    help="window#measuring",
                ),
                Menu(
                    "panelsMenu",
                    "&Panels",
                    [
                        [*(dock.toggle.id for dock in DOCKS if dock.entry), "debug"],
                        ["onlyPictures"],
                    ],
                    help="window",
                ),
            ],
        ],
        help="window#looking",
    ),
    FILTERS,
    Menu(
        "runMenu",
        "&Run",
        [
            ["run", "runLevels", "cancel", "live", "contactSheet"],
            ["runRecipe", "saveRecipe", RUNS],
            [STEPS],
        ],
        help="window#live",
    ),
    LEARN,
    Menu(
        "helpMenu",
        "&Help",
        [["help", "manual", "palette", "shortcuts"], ["gpuInfo", "about"]],
        help="window#help",
    ),
)

TOOL_BAR = (
    [["open", "save"], ["denoise", "run", "cancel"], [LEARN.id, "reopenSession"]],
    [["gpuInfo"]],
)
"""Ids of actions and of a menu in the tool bar, in groups: on the left, and at the far right."""


def actions_of(menu: Menu) -> tuple[str, ...]:
    return tuple(each for group in menu.groups for each in group if isinstance(each, str))


def entries() -> Iterator[tuple[tuple[Menu, ...], str]]:
    """Yield the id of every action with the menus that lead to it, in their order."""
    for menu in MENUS:
        yield from _within((menu,))


def _within(path: tuple[Menu, ...]) -> Iterator[tuple[tuple[Menu, ...], str]]:
    for entry in itertools.chain.from_iterable(path[-1].groups):
        if isinstance(entry, Menu):
            yield from _within((*path, entry))
        else:
            yield path, entry


def place(path: tuple[Menu, ...]) -> str:
    """Return the way through the menus as it is written: “Edit > Reference”."""
    return " > ".join(plain(menu.title) for menu in path)
