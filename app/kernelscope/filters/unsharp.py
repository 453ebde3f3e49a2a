"""Unsharp mask: adds to a pixel the amount that the Gaussian takes from it.

    g = u + amount · (u - v)   where |u - v| ≥ threshold, u elsewhere;   v = Gaussian of u

With amount 1, a pixel of 50 among others whose Gaussian is 40 becomes 60. Results are rounded and
clipped to the range of integer types; floats keep values outside of theirs.

The Gaussian is not rounded before it is subtracted. ``skimage.filters.unsharp_mask``, whose radius
is the sigma here, has the same values for floats and no threshold. The threshold is given in 255ths
of white.

Source: Gonzalez and Woods, Digital Image Processing, chapter 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelscope.filters.shared.separable import (
    SIGMA,
    TRUNCATE,
    Sharpening,
    check,
    radius,
    separable_cpu,
    separable_uncompiled,
    weights_of,
)
from kernelscope.filters.shared.separable_cuda import separable_cuda
from kernelscope.schema.explanation import EDGE, Cells, Example, Explanation, number
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuPass, CpuTask, FilterSpec, Unit
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import FloatParameter


def _sharpening(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> Sharpening:
    white = 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)
    least = parameters["threshold"] * white / 255
    return float(parameters["amount"]), float(least)


def _sharpening_of(task: CpuTask) -> Sharpening:
    return _sharpening(task.parameters, task.source.dtype)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    return separable_cpu(task, _sharpening_of(task))


def plan_cuda(task: CudaTask) -> CudaPlan:
    numbers = np.array(_sharpening(task.parameters, task.dtype), np.float32)
    arguments = {"sharpening": numbers}
    return separable_cuda("unsharp", task, arguments, operations=4, with_samples=True)


def unit_of(parameters: Mapping[str, Any]) -> Unit:
    return Unit.WHITE if parameters["threshold"] else Unit.SQUARES


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    half = weights_of(parameters)[0]
    row = np.concatenate([half[:0:-1], half])
    middle, mean = float(window[len(half) - 1, len(half) - 1]), float(row @ window @ row)
    amount = float(parameters["amount"])
    result = middle + amount * (middle - mean)
    return (
        f"v = {number(mean)}; {number(middle)} + {number(amount)}·({number(middle)} − "
        f"{number(mean)}) = {number(result)}"
    )


SPEC = FilterSpec(
    id="unsharp",
    name="Unsharp mask",
    category="Linear",
    summary="Sharpens: adds to each pixel its difference from the Gaussian around it.",
    synonyms=("sharpen", "usm", "sharpness", "high boost", "gaussian"),
    source="Gonzalez and Woods, Digital Image Processing, chapter 3",
    parameters=(
        FloatParameter(
            name="amount",
            label="Amount",
            help="How much of the difference is added: 1 doubles it.",
            default=1.0,
            minimum=0.0,
            maximum=10.0,
            slider=(0.0, 3.0),
            decimals=2,
        ),
        SIGMA,
        FloatParameter(
            name="threshold",
            label="Threshold",
            help="Smaller differences stay as they are: flat areas keep their noise.",
            default=0.0,
            minimum=0.0,
            maximum=255.0,
            slider=(0.0, 32.0),
            step=1.0,
            decimals=1,
            unit="of 255",
            absent=0.0,
        ),
        TRUNCATE,
    ),
    radius=radius,
    check=check,
    unit=unit_of,
    bench=BenchDefaults(variants=({"sigma": 1.0}, {"sigma": 4.0})),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=separable_uncompiled(_sharpening_of)),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    explanation=Explanation(
        formula=r"g = \begin{cases} u + a\,(u - v) & \text{if } |u - v| \ge T \\ u &"
        r" \text{otherwise} \end{cases}" + "\n"
        r"v(y, x) = \sum_{s,\,t=-r}^{r} w(s)\, w(t)\, u(y + s,\, x + t), \quad w(t) ="
        r" \frac{e^{-t^2 / 2\sigma^2}}{\sum_{i=-r}^{r} e^{-i^2 / 2\sigma^2}}",
        use="To make a picture look crisper for a screen or for print. A sigma of the size of the "
        "blur, and an amount at which no light seams stand beside edges.",
        avoid="Noise is sharpened as well: raise the threshold, or denoise before. Measure nothing "
        "in a sharpened picture, as edges overshoot.",
        example=Example(patch=EDGE, parameters={"sigma": 0.5, "truncate": 2.0}, working=_working),
    ),
)
