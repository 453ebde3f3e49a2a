"""The menu of the steps to the output, for the menu bar and for the panel *Steps*."""

from __future__ import annotations

from kernelscope import commands
from kernelscope.commands import Action, Submenu

STEPS = Submenu(
    "stepsMenu",
    "S&teps",
    (
        Action(
            "editStep",
            "&Edit Step",
            "steps.edit_current",
            tip="Show the settings of the selected step in the panel Steps (Return)",
            need=commands.STEPS,
            label="Edit",
        ),
        Action(
            "switchStep",
            "Switch Step &On or Off",
            "steps.switch_current",
            tip="Switch the step off or on again (Space)",
            need=commands.STEPS,
            label="On or off",
        ),
        Action(
            "stepUp",
            "Move Step &Up",
            "steps.move_up",
            keys=("Alt+Up",),
            tip="Apply the step earlier",
            need=commands.STEPS,
            icon="up",
            label="Up",
        ),
        Action(
            "stepDown",
            "Move Step &Down",
            "steps.move_down",
            keys=("Alt+Down",),
            tip="Apply the step later",
            need=commands.STEPS,
            icon="down",
            label="Down",
        ),
        Action(
            "duplicateStep",
            "Du&plicate Step",
            "steps.duplicate_current",
            tip="Insert a copy of the selected step after it",
            need=commands.SOURCE,
            icon="duplicate",
            label="Duplicate",
        ),
        Action(
            "deleteStep",
            "De&lete Step",
            "steps.delete_current",
            tip="Remove the selected step (Delete)",
            need=commands.STEPS,
            icon="delete",
            label="Delete",
        ),
        Action(
            "stepAlone",
            "Output of the Edited &Step",
            "steps.toggle_alone",
            group=1,
            tip="Show the output of the step that is edited instead of that of the last step",
            need=commands.LATER_STEPS,
            checkable=True,
            icon="alone",
            label="Alone",
        ),
    ),
    group=3,
)
