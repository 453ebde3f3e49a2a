"""The launches of ``kernels/sobel.cu``."""

from __future__ import annotations

import math

from kernelscope.filters.shared.rows_cuda import rows_launch, rows_pay_from
from kernelscope.filters.sobel import directions
from kernelscope.filters.sobel.cpu import FORMS
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, by_size, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

GAPS = {CONSTANT.id: "The weights are part of the code: nothing is kept in constant memory."}
LEVELS = (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED)

_OPERATIONS = (15, 18, 30, 30, 30, 100, 100)
"""Operations for each sample (approximate), in the order of `FORMS`."""

_LAST_PACKED = 2
"""The last of `FORMS` whose tuned kernel calculates with two samples at a time: ``packed.cuh``."""


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    form = FORMS.index(task.parameters["form"])
    operations = _OPERATIONS[form]
    alone = task.parameters["form"] == "single"
    direction = directions.COMPASS.index(task.parameters["direction"]) if alone else 0
    if task.level != TUNED.id:
        return level_launch("sobel", task, 1, operations, FORM=form, DIRECTION=direction)
    if task.parameters["form"].startswith("angle"):  # a thread a pixel, as at the other levels
        return level_launch("sobel", task, 1, operations, FORM=form, CHANNELS=task.shape[2])
    packed = form <= _LAST_PACKED
    launch = rows_launch(
        "sobel", task, 3, operations, packed=packed, FORM=form, DIRECTION=direction
    )
    # Eight masks of three floats each are so much work that the loads saved do not show.
    floats_in_colour = task.dtype.kind == "f" and task.shape[2] > 1
    never = task.parameters["form"] == "winner" and floats_in_colour
    return by_size(task, launch, plan_cuda, GLOBAL, math.inf if never else rows_pay_from(task))
