"""Sobel filter: the gradient, large at edges, and its directions.

Two masks find by how much the picture gets brighter to the right and downwards, smoothed across
that direction; six more, turned in steps of 45°, do so for the other directions:

         -1 0 1              -1 -2 -1
    gx   -2 0 2         gy    0  0  0       sum        |gx| + |gy|
         -1 0 1               1  2  1       magnitude  sqrt(gx² + gy²)

For example, a vertical edge from 10 to 50, with gx = 50 + 2 * 50 + 50 - 10 - 2 * 10 - 10 = 160 and
gy = 0:

    10 10 50
    10 10 50    sum 160, magnitude 160, angle 0: it gets brighter to the right
    10 10 50

Source: Korčuška 2013, section 1.4, equations 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.filters.shared.rows_cuda import rows_launch, rows_pay_from
from kernelscope.filters.sobel import cubes
from kernelscope.filters.sobel.cpu import COMPASS, FORMS, plan_cpu, uncompiled_passes
from kernelscope.schema.explanation import EDGE, Cells, Example, Explanation, number, weighted
from kernelscope.schema.filter import BenchDefaults, Cpu, FilterSpec, Unit
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch, by_size, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import Choice, ChoiceParameter

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
    direction = COMPASS.index(task.parameters["direction"]) if alone else 0
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


def output_channels(channels: int, parameters: Mapping[str, Any]) -> int:
    """Return the channels of the result: colours for ``angle-colour``, alpha is kept."""
    return channels + 2 if parameters["form"] == "angle-colour" and channels <= 2 else channels


_RIGHT = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
"""The mask of gx; that of gy is the same along the columns."""


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    parts = {"gx": _RIGHT, "gy": _RIGHT.T}
    sums = [abs(float((weights * window).sum())) for weights in parts.values()]
    lines = [f"{name} = {weighted(window, weights)}" for name, weights in parts.items()]
    return "; ".join(lines) + f"; {number(sums[0])} + {number(sums[1])} = {number(sum(sums))}"


SPEC = FilterSpec(
    id="sobel",
    name="Sobel",
    category="Edges",
    restores=False,
    summary="Finds edges with the first derivative, smoothed across its direction.",
    synonyms=("gradient", "first derivative", "contour", "edge detection"),
    source="Korčuška 2013, section 1.4, equations 3 and 4",
    parameters=(
        ChoiceParameter(
            name="form",
            label="Form",
            help="How the derivatives are combined.",
            default="sum",
            choices=(
                Choice("sum", "Sum", "|gx| + |gy|, horizontal and vertical derivative."),
                Choice("magnitude", "Magnitude", "√(gx² + gy²), the length of the gradient."),
                Choice("directions", "Eight directions", "The largest of the eight masks."),
                Choice("single", "One direction", "One of the eight masks alone, not below 0."),
                Choice(
                    "winner",
                    "Strongest direction",
                    "Which of the eight masks is the largest: the n-th of N, NE, E, SE, S, SW, W, "
                    "NW is n eighths of white, the first of several; 0 where there is no edge.",
                ),
                Choice(
                    "angle",
                    "Angle",
                    "atan2(gy, gx): 0 where brightness increases to the right, then clockwise; a "
                    "full turn is 256, with 16 bits 65536, with floats 1. 0 also where there is no "
                    "edge.",
                ),
                Choice(
                    "angle-colour",
                    "Angle as a colour",
                    "The angle as hue: red where brightness increases to the right, then clockwise "
                    "yellow, green, cyan, blue; √(gx² + gy²) as brightness, in colour pictures of "
                    "the channel where that is largest.",
                ),
            ),
        ),
        ChoiceParameter(
            name="direction",
            label="Direction",
            symbol="direction",
            help="The direction in which brightness increases at each edge.",
            default="N",
            choices=tuple(Choice(name, name) for name in COMPASS),
            matters=lambda values: values["form"] == "single",
        ),
    ),
    radius=lambda parameters: 1,
    output_channels=output_channels,
    unit=Unit.WHITE,
    in_3d=cubes.SPEC,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_passes),
        "gpu": Cuda(plan_cuda, LEVELS, GAPS),
    },
    bench=BenchDefaults(
        variants=tuple({"form": form} for form in ("sum", "magnitude", "directions"))
    ),
    explanation=Explanation(
        formula=r"g = |g_x| + |g_y|, \quad g_x = \begin{pmatrix} -1 & 0 & 1 \\ -2 & 0 & 2 \\"
        r" -1 & 0 & 1 \end{pmatrix} \star u, \quad g_y = \begin{pmatrix} -1 & -2 & -1 \\"
        r" 0 & 0 & 0 \\ 1 & 2 & 1 \end{pmatrix} \star u",
        use="To find edges and their directions, also in pictures with some noise.",
        avoid="It gives broad lines of different brightness, not a contour of one pixel. Strong "
        "noise gives edges everywhere: smooth first.",
        example=Example(
            patch=EDGE, masks=lambda _: {"gx": _RIGHT, "gy": _RIGHT.T}, working=_working
        ),
    ),
)
