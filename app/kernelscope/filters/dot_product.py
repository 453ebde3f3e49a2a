"""Dot product: the mean square of each row, a sum that many threads share.

    result(y, x) = (u(y, 0)² + u(y, 1)² + ... + u(y, n - 1)²) / n / white

for each channel, so that the mean square of white is white. For example:

    100 200    becomes 98 98: (100² + 200²) / (2 * 255) = 98.04

Source: Salari 2019, chapter 3, with a tree of sums in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Plane, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import divide_round
from kernelscope.filters.shared.teaching import GAPS, TeachingSpec
from kernelscope.schema.crop import Crop
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, Unit
from kernelscope.schema.launch import Cuda, CudaTask, Launch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TUNED
from kernelscope.schema.samples import white_level

THREADS = 256  # of the block that shares a row; a power of two, for the tree of sums


@kernel
def dot_product_integer(
    source: Plane, output: Plane, white: Index, start: Index, stop: Index
) -> None:
    """Compute the output rows from `start` to `stop`.

    Sums are exact: 2^31 samples of 16 bits have squares of less than 2^63.
    """
    width = source.shape[1]
    for y in range(start, stop):
        for c in range(source.shape[2]):
            total = np.int64(0)
            for x in range(width):
                total += np.int64(source[y, x, c]) * np.int64(source[y, x, c])
            mean = divide_round(total, width * white)
            for x in range(width):
                output[y, x, c] = mean


@kernel
def dot_product_float(source: Plane, output: Plane, start: Index, stop: Index) -> None:
    """As `dot_product_integer`, where white is 1."""
    width = source.shape[1]
    for y in range(start, stop):
        for c in range(source.shape[2]):
            total = np.float64(0)
            for x in range(width):
                total += np.float64(source[y, x, c]) * np.float64(source[y, x, c])
            mean = np.float32(total / width)
            for x in range(width):
                output[y, x, c] = mean


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    rows = task.output.shape[0]
    if task.source.dtype.kind == "f":
        return [CpuPass(dot_product_float, (task.source, task.output), rows)]
    white = int(white_level(task.source.dtype))
    return [CpuPass(dot_product_integer, (task.source, task.output, white), rows)]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy."""
    source = task.source[start:stop]
    width = source.shape[1]
    if source.dtype.kind == "f":
        means = np.square(source, dtype=np.float64).sum(1, keepdims=True) / width
    else:
        totals = np.square(source, dtype=np.int64).sum(1, keepdims=True)
        divisor = width * int(white_level(source.dtype))
        means, rest = np.divmod(totals, divisor)
        means += (2 * rest > divisor) | ((2 * rest == divisor) & (means % 2 == 1))
    return np.broadcast_to(means, source.shape)


def plan_cuda(task: CudaTask) -> Launch:
    alone = task.level == GLOBAL.id
    return Launch(
        kernel=f"dot_product_{task.level}",
        defines=task.defines(THREADS=THREADS),
        block=(1, THREADS) if alone else (THREADS, 1),
        tile=(task.output_shape[1], THREADS if alone else 1),
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=2.0,
        shared_bytes=8 * THREADS if task.level == SHARED.id else 0,
    )


SPEC = TeachingSpec(
    id="dot_product",
    name="Dot product",
    summary="Fills each row with its mean square: a sum that threads have to make together.",
    synonyms=("reduction", "sum", "atomic"),
    source="Salari 2019, chapter 3: the dot product, by a tree of sums in shared memory",
    crop=Crop(rows=True),
    unit=Unit.WHITE,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda,
            (GLOBAL, SHARED, TUNED),
            GAPS
            | {
                SINGLE_BLOCK.id: "Levels differ in how many threads share a row, not in blocks.",
            },
        ),
    },
    explanation=Explanation(
        formula=r"g(y, x) = \frac{1}{N} \sum_{k = 0}^{N - 1} u(y, k)^2",
        use="To see how threads make a sum together: one thread a row, a tree in shared memory, "
        "shuffles within a warp.",
        avoid="It is meant for teaching; it does not remove noise.",
        example=Example(patch=EDGE),
    ),
)
