"""Gaussian filter: weights that fall off like a bell curve, one axis after the other.

    w(t) = exp(-t² / 2σ²) / sum of all,   t from -r to r,   r = truncate · σ, rounded

The mask is a product, w(s) w(t), and takes two passes of 2r + 1 cells, down the columns and then
along the rows, in place of one of (2r + 1)² cells. With σ = 1, cut off at 4 σ, these are 18 cells
in place of 81; with σ = 5, 82 in place of 1,681.

Weights and borders are those of ``scipy.ndimage.gaussian_filter`` with the same sigma and truncate.
SciPy adds up in float64, as float64 is here. Other types are added up in float32, in the same order
at every level, see `shared.separable`: floats differ from SciPy's by less than 2e-6 of the largest
magnitude. Bytes and 16 bit are SciPy's result of floats, rounded to the nearest, except where that
is within 0.001 and 0.1 levels of a tie. (SciPy itself drops the fraction of integers.)

Source: Gonzalez and Woods, Digital Image Processing, chapter 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelscope.filters.shared.separable import (
    SIGMA,
    TRUNCATE,
    check,
    radius,
    separable_cpu,
    separable_uncompiled,
    weights_of,
)
from kernelscope.filters.shared.separable_cuda import separable_cuda
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuPass, CpuTask, FilterSpec, Unit
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    return separable_cpu(task)


def plan_cuda(task: CudaTask) -> CudaPlan:
    return separable_cuda("gaussian", task)


def _masks(parameters: Mapping[str, Any]) -> Mapping[str, Cells]:
    half = weights_of(parameters)
    row = np.concatenate([half[:0:-1], half])
    return {"w": np.outer(row, row)}


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    half = weights_of(parameters)
    row = np.concatenate([half[:0:-1], half])
    columns = row @ window
    terms = " + ".join(f"{w:.3f}·{number(v)}" for w, v in zip(row, columns, strict=True))
    return f"columns first: v = {', '.join(map(number, columns))}; then {terms} = " + number(
        float(columns @ row)
    )


SPEC = FilterSpec(
    id="gaussian",
    name="Gaussian",
    category="Smoothing",
    summary="Averages with weights of a bell curve, of any width: the standard way to blur.",
    synonyms=("gaussian blur", "gauss", "blur", "smooth", "low-pass"),
    source="Gonzalez and Woods, Digital Image Processing, chapter 3",
    parameters=(SIGMA, TRUNCATE),
    radius=radius,
    check=check,
    averages=True,
    unit=Unit.SQUARES,  # a sum of two cells is a float, too
    bench=BenchDefaults(variants=({"sigma": 1.0}, {"sigma": 4.0})),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=separable_uncompiled()),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    explanation=Explanation(
        formula=r"v(y, x) = \sum_{s=-r}^{r} w(s)\, u(y + s,\, x), \quad"
        r" g(y, x) = \sum_{t=-r}^{r} w(t)\, v(y,\, x + t)" + "\n"
        r"w(t) = \frac{e^{-t^2 / 2\sigma^2}}{\sum_{i=-r}^{r} e^{-i^2 / 2\sigma^2}}",
        use="To blur by any amount without a preferred direction, before a derivative or before a "
        "picture is made smaller; and to see what two passes save.",
        avoid="It blurs edges as every average does. For specks use the median, for noise beside "
        "edges non-local means.",
        example=Example(parameters={"sigma": 0.5, "truncate": 2.0}, masks=_masks, working=_working),
    ),
)
