"""The menu *File*: opening and saving."""

from __future__ import annotations

from kernelscope import commands
from kernelscope.commands import Action, Submenu

RECENT = Submenu("recentMenu", "Open &Recent")
SAMPLES = Submenu("samplesMenu", "Sample &Pictures")
RECORDED = Submenu("recordedMenu", "Recorded Res&ults")

FILE = (
    Action(
        "open",
        "&Open…",
        "file_dialogs.choose",
        keys=("Ctrl+O",),
        tip="Open pictures or a volume",
        icon="load",
        label="Load",
    ),
    Action(
        "openFolder",
        "Open &Folder as Volume…",
        "file_dialogs.choose_folder",
        keys=("Ctrl+Shift+O",),
        tip="Open a folder of slices: pictures or a DICOM series",
    ),
    RECENT,
    SAMPLES,
    RECORDED,
    Action(
        "newPhantom",
        "New P&hantom…",
        "companions.new_phantom",
        group=1,
        keys=("Ctrl+N",),
        tip="Compute a head phantom with scanner noise and its noise-free original",
    ),
    Action(
        "openSlice",
        "Open Slice as P&icture",
        "files.open_slice",
        group=1,
        tip="Open the slice that was clicked last as a picture",
        need=commands.VOLUMES,
    ),
    Action(
        "save",
        "&Save Output…",
        "files.save_output",
        group=2,
        keys=("Ctrl+S",),
        tip="Save the output to a file",
        need=commands.OUTPUT,
        icon="save",
        label="Save",
    ),
    Action(
        "saveAll",
        "Save &All Components…",
        "files.save_components",
        group=2,
        keys=("Ctrl+Alt+S",),
        tip="Save the output of every component, each to a file with its own header",
        need=commands.COMPONENTS,
    ),
    Action(
        "saveView",
        "Save Residual or &Difference…",
        "files.save_view",
        group=2,
        keys=("Ctrl+Shift+S",),
        tip="Save the difference that is shown: amplified for pictures, as values for volumes",
        need=commands.DIFFERENCE,
    ),
    Action(
        "exportFigure",
        "Export Fi&gure…",
        "files.export_figure",
        group=2,
        keys=("Ctrl+Alt+E",),
        tip="Save input, output and their difference side by side, as PNG, SVG or PDF",
        need=commands.OUTPUT,
    ),
    Action(
        "batch",
        "&Batch…",
        "companions.show_batch",
        group=2,
        keys=("Ctrl+Shift+B",),
        tip="Apply the steps, or a recipe from a file, to many pictures and volumes",
    ),
    Action(
        "nextPicture",
        "Ne&xt Picture",
        "open_pictures.step",
        group=3,
        keys=("Ctrl+PgDown",),
        tip="Show the next of the open pictures",
        need=commands.SEVERAL,
        argument=1,
    ),
    Action(
        "previousPicture",
        "Pre&vious Picture",
        "open_pictures.step",
        group=3,
        keys=("Ctrl+PgUp",),
        tip="Show the previous one of the open pictures",
        need=commands.SEVERAL,
        argument=-1,
    ),
    Action(
        "closePicture",
        "Clos&e Picture",
        "open_pictures.close_current",
        group=3,
        keys=("Ctrl+W",),
        tip="Close the picture in front; its output stays until it is opened again",
        need=commands.SEVERAL,
    ),
    Action(
        "reopenPicture",
        "Reopen &Closed Picture",
        "open_pictures.reopen",
        group=3,
        keys=("Ctrl+Shift+T",),
        tip="Open the picture again that was closed last, with its output",
        need=commands.CLOSED,
    ),
    Action("quit", "&Quit", "close", group=4, keys=("Ctrl+Q",)),
)
