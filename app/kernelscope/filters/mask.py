"""Custom mask: correlation with whatever weights the user types.

    result(y, x) = sum over s, t of w(s, t) u(y + s, x + t) / divisor

The mask is not flipped. For example, a mask that sharpens, without division:

     0 -1  0      10 10 10
    -1  5 -1      10 50 10    becomes 5 * 50 - 4 * 10 = 210
     0 -1  0      10 10 10

Source: Korčuška 2013, section 1.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.filters.shared import correlation_bytes, uncompiled
from kernelscope.filters.shared.correlation import (
    NEGATIVE,
    Divisor,
    binomial,
    mask_array,
    one_part,
    unit_of,
)
from kernelscope.filters.shared.correlation_cuda import correlation_pays_from, cuda_correlation
from kernelscope.filters.shared.rows_cuda import SMALL
from kernelscope.schema.explanation import Cells, Example, Explanation, weighted
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch, by_size, quick_level
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import Choice, ChoiceParameter, Mask, MaskParameter, MaskPreset

_MAX_TOTAL = 400_000
"""Sum of the Gaussian presets: keeps twice that below the largest weight of a mask."""


def _mask(weights: NDArray[Any]) -> Mask:
    return tuple(tuple(int(cell) for cell in row) for row in weights)


def _spread(*rows: tuple[int, int, int]) -> Any:
    """Return a preset that puts a 3x3 mask on the corners, edges and centre of any size.

    The larger the mask, the broader the edges it answers to, with the same gain.
    """

    def fill(size: int) -> Mask:
        weights = np.zeros((size, size), np.int64)
        weights[:: size // 2, :: size // 2] = rows
        return _mask(weights)

    return fill


def _mean(size: int) -> Mask:
    return _mask(np.ones((size, size)))


def _gaussian_weights(size: int) -> NDArray[np.int64]:
    """Return binomial weights, scaled down (and not below 1) where they would be too large."""
    row = binomial(size)
    weights = np.outer(row, row)
    scale = min(1.0, _MAX_TOTAL / float(weights.sum()))
    return np.maximum(1, np.rint(weights * scale)).astype(np.int64)


def _gaussian(size: int) -> Mask:
    return _mask(_gaussian_weights(size))


def _unsharp(size: int) -> Mask:
    """Twice the image less its Gaussian."""
    weights = -_gaussian_weights(size)
    weights[size // 2, size // 2] -= 2 * weights.sum()
    return _mask(weights)


def _motion(size: int) -> Mask:
    return _mask(np.eye(size))


_EDGE = {"divisor": "one", "negative": "absolute"}
_PLAIN = {"divisor": "one", "negative": "clip"}
_AVERAGE = {"divisor": "sum", "negative": "clip"}

PRESETS = (
    MaskPreset("Identity", _spread((0, 0, 0), (0, 1, 0), (0, 0, 0)), _PLAIN),
    MaskPreset("Mean", _mean, {"divisor": "count", "negative": "clip"}),
    MaskPreset("Gaussian", _gaussian, _AVERAGE),
    MaskPreset("Motion blur", _motion, _AVERAGE),
    MaskPreset("Sharpen", _spread((0, -1, 0), (-1, 5, -1), (0, -1, 0)), _PLAIN),
    MaskPreset("Unsharp mask", _unsharp, _AVERAGE),
    MaskPreset("Edges (Laplace)", _spread((1, 1, 1), (1, -8, 1), (1, 1, 1)), _EDGE),
    MaskPreset("Vertical edges (Prewitt)", _spread((-1, 0, 1), (-1, 0, 1), (-1, 0, 1)), _EDGE),
    MaskPreset("Horizontal edges (Prewitt)", _spread((-1, -1, -1), (0, 0, 0), (1, 1, 1)), _EDGE),
    MaskPreset("Vertical edges (Sobel)", _spread((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)), _EDGE),
    MaskPreset("Horizontal edges (Sobel)", _spread((-1, -2, -1), (0, 0, 0), (1, 2, 1)), _EDGE),
    MaskPreset("Emboss", _spread((-2, -1, 0), (-1, 1, 1), (0, 1, 2)), _PLAIN),
    MaskPreset(
        "Relief",
        _spread((-1, 0, 0), (0, 0, 0), (0, 0, 1)),
        {"divisor": "one", "negative": "offset"},
    ),
)


def divisor_parts(mask: Mask, choice: str) -> NDArray[Any]:
    """Return the parts of the divisor for `mask`, cell by cell.

    Under the border ``reduce`` only the cells inside the image count.
    """
    if choice == "one":
        return one_part(len(mask))
    weights = mask_array(mask)
    return weights if choice == "sum" else np.ones(weights.shape)


def divisor(mask: Mask, choice: str) -> Divisor:
    return Divisor.of(divisor_parts(mask, choice))


def radius(parameters: Mapping[str, Any]) -> int:
    return len(parameters["mask"]) // 2


def check(parameters: Mapping[str, Any]) -> None:
    sums = divisor(parameters["mask"], parameters["divisor"])
    if abs(sums.table[-1, -1]) <= sums.negligible:
        raise InvalidParameter(
            "The weights of the mask add up to 0, which nothing can be divided by.",
            "Choose no division or division by the kernel size.",
        )


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    mask, choice, negative = (task.parameters[name] for name in ("mask", "divisor", "negative"))
    return correlation_bytes.plan(task, mask_array(mask), divisor(mask, choice), negative)


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    mask, choice, negative = (task.parameters[name] for name in ("mask", "divisor", "negative"))
    parts = divisor_parts(mask, choice)
    launch = cuda_correlation(task, "mask", mask, parts, negative, tensor_rows=len(mask))
    level = quick_level(task, len(mask) // 2, CONSTANT)
    least = correlation_pays_from(task, launch, len(mask))
    # Masks of bytes in colour that no tuned kernel is for: large pictures do without the tile.
    large = task.output_shape[0] * task.out_row_samples >= SMALL
    if math.isinf(least) and task.dtype.itemsize == 1 and large:
        level = CONSTANT
    return by_size(task, launch, plan_cuda, level, least)


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    weights = mask_array(parameters["mask"])
    parts = divisor_parts(parameters["mask"], parameters["divisor"])
    return weighted(window, weights, float(parts.sum()))


SPEC = FilterSpec(
    id="mask",
    name="Custom mask",
    category="Linear",
    summary="Correlates the picture with a mask that you enter.",
    synonyms=("convolution", "correlation", "kernel", "sharpen", "emboss"),
    source="Korčuška 2013, section 1.2; correlation, the mask is not flipped",
    parameters=(
        MaskParameter(
            name="mask",
            label="Mask",
            help="The weights of the cells around the pixel, row by row.",
            default=_gaussian(3),
            minimum=3,
            maximum=15,
            presets=PRESETS,
        ),
        ChoiceParameter(
            name="divisor",
            affects_time=False,  # another number in the same code
            label="Division",
            help="The divisor of the weighted sum.",
            default="sum",
            choices=(
                Choice("one", "No division", "The sum is the result.", phrase="not divided"),
                Choice(
                    "count",
                    "Divide by kernel size",
                    "The number of cells of the mask.",
                    phrase="divided by kernel size",
                ),
                Choice(
                    "sum",
                    "Divide by the sum of the weights",
                    "Keeps the brightness. Where “reduce” leaves weights that add up to 0, "
                    "nothing is divided.",
                    phrase="divided by the sum of the weights",
                ),
            ),
        ),
        NEGATIVE,
    ),
    radius=radius,
    unit=unit_of,
    implementations={
        "cpu": Cpu(
            plan_cpu,
            uncompiled=uncompiled.correlation(
                lambda task: mask_array(task.parameters["mask"]),
                lambda task: divisor_parts(task.parameters["mask"], task.parameters["divisor"]),
                lambda task: str(task.parameters["negative"]),
            ),
        ),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    check=check,
    bench=BenchDefaults(variants=({"divisor": "one"},)),
    explanation=Explanation(
        formula=r"g(y, x) = \frac{1}{d} \sum_{s,\,t} w(s, t)\, u(y + s,\, x + t)",
        use="To try a mask that no other filter has, to sharpen, to blur along a line, or to learn "
        "the effect of a convolution: a change of one weight shows at once.",
        avoid="For specks use the median. For averages with equal or binomial weights the mean and "
        "the weighted mean give the same result in less time.",
        example=Example(
            masks=lambda values: {"w": mask_array(values["mask"])},
            working=_working,
        ),
    ),
)
