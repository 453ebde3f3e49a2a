"""The menu *Edit*: history, clipboard, reference and preferences."""

from __future__ import annotations

from kernelscope import commands
from kernelscope.commands import Action, Submenu

_REFERENCE = (
    Action("chooseReference", "&Choose…", "files.choose_reference", need=commands.SOURCE),
    Action("inputAsReference", "Use &Input", "page.use_input_as_reference", need=commands.SOURCE),
    Action("clearReference", "C&lear", "page.clear_reference", need=commands.SOURCE),
)

REFERENCE = Submenu("referenceMenu", "Re&ference", _REFERENCE, group=2)

EDIT = (
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
