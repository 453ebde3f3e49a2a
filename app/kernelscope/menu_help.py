"""The page of the handbook about each menu, and about actions that have a page of their own."""

from __future__ import annotations

from kernelscope.menus import DOCKS, TOGGLES

_SAVING, _LOOKING, _RUNS = "window#opening-and-saving", "window#looking", "window#the-list-of-runs"
_BENCH, _RECIPES, _LIVE = "window#kernels-benchmark-and-console", "window#recipes", "window#live"

PLACES = {
    "fileMenu": _SAVING,
    "recordedMenu": _BENCH,
    "newPhantom": "volumes#phantoms",
    "batch": "window#batches",
    "openSlice": "volumes",
    "saveAll": "volumes",
    "editMenu": _SAVING,
    "undo": _LIVE,
    "redo": _LIVE,
    "reuse": "window#steps",
    "copyCommand": _RECIPES,
    "copyPython": _RECIPES,
    "referenceMenu": "window#denoising",
    "resetParameters": "window",
    "preferences": "window",
    "viewMenu": _LOOKING,
    "noiseMap": "volumes",
    "switchKind": "volumes",
    "membersMenu": "volumes#volumes-of-a-file",
    "regionsMenu": "window#measuring",
    "panelsMenu": "window",
    "debug": _BENCH,
    "filterMenu": "filters",
    "findFilter": "window#finding-a-filter",
    "runMenu": _LIVE,
    "runLevels": "window#the-ladder-of-levels",
    "whyLevel": "window#the-ladder-of-levels",
    "contactSheet": "window#contact-sheet",
    "runRecipe": _RECIPES,
    "saveRecipe": _RECIPES,
    "runsMenu": _RUNS,
    "viewKernel": _BENCH,
    "benchmark": _BENCH,
    "stepsMenu": "window#steps",
    "helpMenu": "window#help",
    "lecture": "lecture",
    "shortcuts": "window#keyboard-shortcuts",
    "gpuInfo": "gpu-levels#how-a-run-uses-the-card",
    **{
        id_: next(dock.help for dock in DOCKS if dock.name is name) for id_, name in TOGGLES.items()
    },
}
"""By the id of a menu or an action; without an entry, that of the nearest menu counts."""
