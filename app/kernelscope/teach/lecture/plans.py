"""The launch plans of filters for the picture of the lecture: the same that a run uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.engine.step import Step
from kernelscope.schema.launch import CudaPlan, Launch, planned
from kernelscope.schema.levels import Level


def plan_of(
    filter_id: str,
    level: Level,
    shape: tuple[int, ...],
    parameters: Mapping[str, Any],
    *,
    block: tuple[int, int] | None = None,
) -> CudaPlan:
    """Return the plan of a filter at a level for a picture of bytes, other values by default."""
    step = Step.of_numbers(filter_id, parameters)
    border, values, dtype = step.border, step.parameters, np.dtype(np.uint8)
    return planned(step.filter, shape, dtype, values, border, level.id, block)[1]


def launch_of(
    filter_id: str,
    level: Level,
    shape: tuple[int, ...],
    parameters: Mapping[str, Any],
    *,
    block: tuple[int, int] | None = None,
) -> Launch:
    """Return the launch of the plan that does most of the work."""
    plan = plan_of(filter_id, level, shape, parameters, block=block)
    return max(plan.launches, key=lambda each: each.operations_per_sample)


def operations_of(plan: CudaPlan) -> float:
    """Return the arithmetic operations of a plan for each sample of the result."""
    return sum(launch.operations_per_sample for launch in plan.launches)
