"""The menu of runs that were done: its entries, for the menu bar and for the panel *Runs*."""

from __future__ import annotations

from kernelscope import commands
from kernelscope.commands import Action, Submenu

COMPARE_TIP = "Make the level of the chosen run the baseline of all runs that did the same work"

RUNS = Submenu(
    "runsMenu",
    "&Finished Runs",
    (
        Action(
            "showRun",
            "&Show Run",
            "run_shelf.show",
            tip="Show the picture of the run that is chosen, and its settings (Return)",
            need=commands.CHOSEN,
        ),
        Action(
            "starRun",
            "S&tar Run",
            "run_shelf.star",
            tip="Mark the run, or take the mark away (Space); its picture is kept longest",
            need=commands.CHOSEN,
            label="Star",
        ),
        Action(
            "renameRun",
            "Re&name Run…",
            "run_shelf.rename",
            tip="Give the run a name of your own",
            need=commands.CHOSEN,
        ),
        Action(
            "saveRun",
            "Save &Picture of Run…",
            "run_shelf.save",
            tip="Save the output of the run that is chosen",
            need=commands.KEPT,
            label="Save…",
        ),
        Action(
            "deleteRun",
            "&Delete Runs",
            "run_shelf.delete",
            tip="Remove the chosen runs with their pictures (Delete)",
            need=commands.CHOSEN,
            label="Delete",
        ),
        Action(
            "swipeRuns",
            "Compare T&wo Runs",
            "run_shelf.swipe",
            group=1,
            tip="Show the pictures of the two chosen runs over each other",
            need=commands.PAIR,
            label="Compare pictures",
        ),
        Action(
            "compareRuns",
            "&Compare With This Level",
            "run_shelf.compare",
            group=1,
            tip=COMPARE_TIP,
            need=commands.BASELINE,
            label="Compare times",
        ),
        Action(
            "copyRuns",
            "C&opy Table",
            "runs.table.copy",
            group=2,
            tip="Copy the table of runs as text, cells separated by tabs",
            need=commands.RUNS,
        ),
        Action(
            "clearRuns",
            "C&lear List",
            "run_shelf.clear",
            group=2,
            tip="Forget all runs and their pictures",
            need=commands.RUNS,
        ),
    ),
    group=1,
)
