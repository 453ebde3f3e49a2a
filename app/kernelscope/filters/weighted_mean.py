"""Weighted mean: binomial weights, the integer form of a Gaussian.

The weights are products of a row of Pascal's triangle with itself, divided by their sum:

    1 2 1      10 10 10
    2 4 2      10 50 10    becomes (12 * 10 + 4 * 50) / 16 = 20
    1 2 1      10 10 10

Being products, they can be applied one axis after the other: first 1 2 1 down the columns, which
makes 40 80 40 of the example, and then along the row, 40 + 160 + 40 = 320, 320 / 16 = 20. For bytes
`shared.binomial_bytes` does that in integers.

Source: Korčuška 2013, section 1.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Plane, Record, kernel
from kernelscope.filters.shared import binomial_bytes, cubes, groups, uncompiled
from kernelscope.filters.shared.border_kernels import fetch_row
from kernelscope.filters.shared.correlation import (
    Divisor,
    Finish,
    binomial,
    cpu_correlation,
    finish_row,
    rectangle,
    taps,
    update_divisors,
    weighted_sum,
    working_type,
)
from kernelscope.filters.shared.correlation_cuda import correlation_pays_from, cuda_correlation
from kernelscope.filters.shared.cubes import AVERAGES, GAPS_IN_3D, cube_launch, instead
from kernelscope.schema.explanation import Cells, Example, Explanation, weighted
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch, by_size, quick_level
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import OddParameter


@kernel
def weighted_mean_parallel(
    source: Plane,
    output: Plane,
    places: Array,
    weights: Line,
    divisor: Record,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Separable: columns of a ring of padded rows first, then along the row.

    - `places`: int64, shape (taps, 1). Row, and then column, of each weight.
    - `weights`: float32 or float64, shape (taps,).
    """
    side = divisor.table.shape[0] - 1
    radius = side // 2
    channels = source.shape[2]
    length = output.shape[1] * channels
    stride = length + 2 * radius * channels
    ring = np.empty(side * stride, weights.dtype)
    vertical = np.empty(weights.size, np.int64)
    horizontal = np.empty(weights.size, np.int64)
    for i in range(weights.size):
        horizontal[i] = places[i, 0] * channels
    columns = np.empty(stride, weights.dtype)
    totals = np.empty(length, weights.dtype)
    divisors = np.empty(length, weights.dtype)
    for row in range(start, stop + side - 1):
        slot = row % side * stride
        fetch_row(source, row, radius, border, ring[slot : slot + stride])
        y = row - side + 1
        if y < start:
            continue
        for i in range(weights.size):
            vertical[i] = (y + places[i, 0]) % side * stride
        weighted_sum(ring, vertical, weights, columns)
        weighted_sum(columns, horizontal, weights, totals)
        update_divisors(divisors, y, start, source, divisor, border)
        finish_row(totals, divisors, finish, output[y].reshape(length))


def _weights(task: CpuTask) -> NDArray[np.int64]:
    row = binomial(task.parameters["size"])
    return np.outer(row, row)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    row = binomial(task.parameters["size"])
    weights = np.outer(row, row)
    divisor = Divisor.of(weights)
    if task.level == SERIAL.id:
        return cpu_correlation(task, weights, divisor)
    size = len(row)
    if size <= binomial_bytes.LARGEST_SHORT and groups.applies(output, border):
        means = binomial_bytes.BinomialMeans(groups.taps(size))
        grouped = (source, output, means, border.code)
        return [CpuPass(groups.sweep_rows, grouped, output.shape[0])]
    if binomial_bytes.applies(source, output, size, border):
        integers = (source, output, *binomial_bytes.tables(size), size // 2, border.code)
        return [CpuPass(binomial_bytes.binomial_means, integers, output.shape[0])]
    work = working_type(source.dtype, weights, divisor, border)
    finish = Finish.of(source.dtype, work)
    arguments = (source, output, *taps(row, work), divisor, finish, border.code)
    return [CpuPass(weighted_mean_parallel, arguments, output.shape[0])]


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    row = binomial(task.parameters["size"])
    weights = np.outer(row, row)
    launch = cuda_correlation(task, "weighted_mean", weights, weights, tensor_rows=1)
    level = quick_level(task, len(row) // 2, CONSTANT)
    least = correlation_pays_from(task, launch, len(row), separable=True)
    return by_size(task, launch, plan_cuda, level, least)


def _masks(parameters: Mapping[str, Any]) -> Mapping[str, Cells]:
    row = binomial(parameters["size"])
    return {"w": np.outer(row, row)}


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    weights = _masks(parameters)["w"]
    return weighted(window, weights, float(weights.sum()))


def _plan_cubes(task: CpuTask) -> Sequence[CpuPass]:
    return cubes.plan_average(task, binomial, task.level == SERIAL.id)


def _plan_cubes_cuda(task: CudaTask) -> Launch:
    radii = cubes.radii_of(task.parameters["size"])
    rows = [binomial(2 * radius + 1) for radius in radii]
    weights = np.einsum("z,y,x->zyx", *rows)
    return cube_launch("weighted_mean_3d", task, radii, operations=2, weights=weights)


_IN_3D = cubes.CubeSpec(
    id="weighted_mean_3d",
    name="Weighted mean 3-D",
    category="Smoothing",
    summary="Averages the cube around each voxel with binomial weights: a softer mean.",
    source="as the weighted mean of pictures, in three dimensions",
    parameters=(cubes.sides(11, "Side of the cube that is averaged, or sides along x, y and z."),),
    radius=cubes.side_radius,
    averages=True,
    implementations={
        "cpu": Cpu(_plan_cubes, uncompiled=instead(_plan_cubes, AVERAGES)),
        "gpu": Cuda(_plan_cubes_cuda, (GLOBAL, CONSTANT, SHARED), GAPS_IN_3D),
    },
)

SPEC = FilterSpec(
    id="weighted_mean",
    name="Weighted mean",
    category="Smoothing",
    summary="Averages with binomial weights that fall off like a Gaussian: a softer mean.",
    synonyms=("gaussian", "binomial", "blur", "gauss"),
    source="Korčuška 2013, section 1.3, has 1 2 1 in both directions; larger masks: the next "
    "binomial rows, 1 4 6 4 1 and so on",
    parameters=(
        OddParameter(
            name="size",
            label="Mask size",
            help="Side of the square that is averaged.",
            default=3,
            minimum=3,
            maximum=15,
        ),
    ),
    radius=cubes.side_radius,
    rectangle=rectangle(binomial),
    averages=True,
    in_3d=_IN_3D,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.correlation(_weights, _weights)),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    explanation=Explanation(
        formula=r"g(y, x) = \frac{1}{4^{2r}} \sum_{s,\,t = -r}^{r} \binom{2r}{r + s}"
        r" \binom{2r}{r + t}\, u(y + s,\, x + t)",
        use="To smooth without the square artefacts of the mean, and before a derivative.",
        avoid="It blurs edges as every average does. For specks use the median.",
        example=Example(masks=_masks, working=_working),
    ),
)
