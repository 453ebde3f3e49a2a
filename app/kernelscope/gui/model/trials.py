"""The data for trying an edited kernel: a part of the open picture, and the plan for it."""

from __future__ import annotations

import numpy as np

from kernelscope.backends.trial.parent import Work
from kernelscope.backends.trial.plan import TrialPlan
from kernelscope.engine.request import Request
from kernelscope.errors import AppError
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.spec.levels import Level

SIDE = 256
"""Longest side of the part of the picture; the emulated GPU filters it within a second."""


def part_of(source: Source) -> Image:
    """Return the middle of a picture, without alpha.

    Raises
    ------
    AppError
        For volumes.
    """
    if not isinstance(source, Image):
        raise AppError(
            "Versions of kernels for volumes can be compiled, but not run here.",
            "Open a picture and choose a filter for pictures.",
        )
    planes = source.planes
    height, width, channels = planes.shape
    top, left = max(0, height - SIDE) // 2, max(0, width - SIDE) // 2
    colours = channels - 1 if channels in (2, 4) else channels
    part = planes[top : top + SIDE, left : left + SIDE, :colours]
    return Image.from_array(np.ascontiguousarray(part), "part of the picture")


def work_for(request: Request, level: Level) -> Work:
    """Return the data for trying a version of the kernel of a level.

    Raises
    ------
    AppError
        If this level cannot be tried: a volume, or a plan that needs the host in between.
    """
    step = request.step
    part = Request.create(
        part_of(request.source),
        step.filter.id,
        step.parameters,
        border=step.border,
        grey=step.grey,
        level=level.id,
        block=request.options.block,
    )
    plan = TrialPlan.of(part, level)
    return Work(part.source.planes, plan, plan)
