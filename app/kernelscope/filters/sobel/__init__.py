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

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.filters.sobel import directions
from kernelscope.filters.sobel.cpu import plan_cpu
from kernelscope.filters.sobel.cuda import GAPS, LEVELS, plan_cuda
from kernelscope.schema.explanation import EDGE, Cells, Example, Explanation, number, weighted
from kernelscope.schema.filter import BenchDefaults, Cpu, FilterSpec, Unit
from kernelscope.schema.launch import Cuda
from kernelscope.schema.parameters import Choice, ChoiceParameter


def radius(parameters: Mapping[str, Any]) -> int:
    return 1


def output_channels(channels: int, parameters: Mapping[str, Any]) -> int:
    return directions.output_channels(channels, parameters["form"])


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
            choices=tuple(Choice(name, name) for name in directions.COMPASS),
            matters=lambda values: values["form"] == "single",
        ),
    ),
    radius=radius,
    output_channels=output_channels,
    unit=Unit.WHITE,
    implementations={
        "cpu": Cpu(plan_cpu),
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
