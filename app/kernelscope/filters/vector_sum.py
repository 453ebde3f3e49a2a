"""Vector sum: each row added to itself backwards, by ever more threads.

    result(y, x) = (u(y, x) + u(y, n - 1 - x)) / 2, halves rounded to even

For example, the row 10 20 31 becomes 20 20 20: (10 + 31) / 2 = 20.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Plane, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.teaching import GAPS, TeachingSpec
from kernelscope.schema.crop import Crop
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask
from kernelscope.schema.launch import Cuda, CudaTask, Launch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level

ONE_THREAD_BLOCKS = Level(
    "one-thread-blocks",
    "Blocks of one thread",
    "A block for each pixel, with a single thread: 31 of the 32 lanes of a warp idle.",
    why="A multiprocessor schedules warps of 32 threads. A block with one thread takes a whole "
    "warp, of which one lane works, and each transaction with the memory is used by one thread.",
    source="Source V, chapter 3.",
)


@kernel
def vector_sum_integer(source: Plane, output: Plane, start: Index, stop: Index) -> None:
    """Compute the output rows from `start` to `stop`; halves are rounded to even."""
    width = source.shape[1]
    for y in range(start, stop):
        for x in range(width):
            for c in range(source.shape[2]):
                total = np.int64(source[y, x, c]) + np.int64(source[y, width - 1 - x, c])
                half = total >> 1
                output[y, x, c] = half + (total & half & 1)


@kernel
def vector_sum_float(source: Plane, output: Plane, start: Index, stop: Index) -> None:
    """As `vector_sum_integer`; halves first, as the sum of two large floats is no float."""
    width = source.shape[1]
    for y in range(start, stop):
        for x in range(width):
            for c in range(source.shape[2]):
                half = np.float32(0.5) * source[y, width - 1 - x, c]
                output[y, x, c] = np.float32(0.5) * source[y, x, c] + half


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    add = vector_sum_float if task.source.dtype.kind == "f" else vector_sum_integer
    return [CpuPass(add, (task.source, task.output), task.output.shape[0])]


_BLOCKS = {ONE_THREAD_BLOCKS.id: (1, 1), SINGLE_BLOCK.id: (32, 32), GLOBAL.id: (32, 8)}


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy."""
    source = task.source[start:stop]
    turned = source[:, ::-1]
    if source.dtype.kind == "f":
        return np.float32(0.5) * source + np.float32(0.5) * turned
    total = source.astype(np.int64) + turned
    half = total >> 1
    return half + (total & half & 1)


def plan_cuda(task: CudaTask) -> Launch:
    block = _BLOCKS[task.level]
    return Launch(
        kernel=f"vector_sum_{task.level.replace('-', '_')}",
        defines=task.defines(),
        block=block,
        tile=None if task.level == SINGLE_BLOCK.id else block,
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=2.0,
    )


SPEC = TeachingSpec(
    id="vector_sum",
    name="Vector sum",
    summary="Averages each row with itself backwards: one kernel, three ways to launch it.",
    synonyms=("addition", "launch"),
    source="Salari 2019, chapter 3: the sum of two vectors, with blocks, threads and both",
    crop=Crop(rows=True),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda,
            (ONE_THREAD_BLOCKS, SINGLE_BLOCK, GLOBAL),
            GAPS
            | {
                SHARED.id: "Threads do not need the samples of their neighbours.",
                TEXTURE.id: "Each sample is read twice at most: there is nothing to cache.",
                TUNED.id: "This filter compares launches of one and the same kernel.",
            },
        ),
    },
    explanation=Explanation(
        formula=r"g(y, x) = \frac{u(y, x) + u(y,\, N - 1 - x)}{2}",
        use="To compare launches: one thread a block, one block, many blocks of many threads.",
        avoid="It is meant for teaching; it does not remove noise.",
        example=Example(patch=EDGE),
    ),
)
