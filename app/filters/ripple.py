"""Ripple: a pattern that comes from arithmetic alone; nothing of the picture but its size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.filters.jit import kernel
from app.filters.launch import CudaTask, Launch, level_launch
from app.filters.spec import (
    CONSTANT,
    GLOBAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    Border,
    CpuPass,
    FilterSpec,
    FilterTask,
    IntParameter,
    white_level,
)


@kernel
def brightness(x: Any, y: Any, width: Any, height: Any, tick: Any) -> Any:
    """Return the ripple at (y, x) as a fraction of white."""
    across = x - 0.5 * (width - 1)
    down = y - 0.5 * (height - 1)
    distance = 0.1 * math.sqrt(across * across + down * down)
    return 0.5 + 0.5 * math.cos(distance - tick / 7.0) / (distance + 1.0)


@kernel
def ripple_integer(output: Any, white: Any, tick: Any, start: Any, stop: Any) -> None:
    """Compute the output rows from `start` to `stop`."""
    height, width, channels = output.shape
    for y in range(start, stop):
        for x in range(width):
            value = np.int64(np.rint(white * brightness(x, y, width, height, tick)))
            for c in range(channels):
                output[y, x, c] = value


@kernel
def ripple_float(output: Any, tick: Any, start: Any, stop: Any) -> None:
    """As `ripple_integer`, where white is 1."""
    height, width, channels = output.shape
    for y in range(start, stop):
        for x in range(width):
            value = np.float32(brightness(x, y, width, height, tick))
            for c in range(channels):
                output[y, x, c] = value


def radius(parameters: Mapping[str, Any]) -> int:
    return 0


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    tick, rows = task.parameters["tick"], task.output.shape[0]
    if task.output.dtype.kind == "f":
        return [CpuPass(ripple_float, (task.output, tick), rows)]
    return [CpuPass(ripple_integer, (task.output, white_level(task.output.dtype), tick), rows)]


def plan_cuda(task: CudaTask) -> Launch:
    tick = np.array([task.parameters["tick"]], np.int32)
    return level_launch("ripple", task, 0, operations=20, tables=(tick,))


SPEC = FilterSpec(
    id="ripple",
    name="Ripple",
    category="Teaching",
    summary="Draws a ripple of the picture's size: arithmetic alone, nothing to read.",
    source="Salari 2019, chapter 3: a ripple, a thread for each pixel",
    parameters=(
        IntParameter(
            name="tick",
            label="Tick",
            help="Moves the ripple outwards, a seventh of a radian each.",
            default=0,
            minimum=0,
            maximum=1000,
            slider=(0, 100),
        ),
    ),
    radius=radius,
    plan_cpu=plan_cpu,
    plan_cuda=plan_cuda,
    borders=(Border.REFLECT,),
    gpu_levels=(SINGLE_BLOCK, GLOBAL),
    gpu_gaps={
        CONSTANT.id: "There is no mask to keep in constant memory.",
        SHARED.id: "Nothing is read, so there is nothing to share.",
        TEXTURE.id: "Nothing is read, so there is nothing to cache.",
        TUNED.id: "Arithmetic sets the pace: level global keeps all units busy.",
    },
)
