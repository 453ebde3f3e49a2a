"""Turned tiles: each tile of the picture turned by half a turn, through shared memory.

A pixel changes places with the one opposite to it in its tile of 16x16. Tiles at the right and the
bottom are cut off by the picture; one of 2 rows and 3 columns is a single tile:

    1 2 3    becomes    6 5 4
    4 5 6               3 2 1

Every thread of a block reads a sample that another one wrote, so that a missing barrier shows.
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
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TUNED, Level

NO_BARRIER = Level(
    "no-barrier",
    "Without barrier",
    "As shared memory, but without __syncthreads: threads read values that are not yet written, "
    "so that the result is wrong.",
    exact=False,
    why="It saves the wait at the barrier, and pays with a wrong result: warps that are ahead read "
    "the tile before the others have written it.",
    source="Source V, chapter 3.",
)

TILE = 16  # side of a tile, in pixels: one block of threads


@kernel
def turn(source: Plane, output: Plane, tile: Index, start: Index, stop: Index) -> None:
    """Compute the output rows from `start` to `stop`."""
    height, width, channels = source.shape
    for y in range(start, stop):
        top = y // tile * tile
        yy = top + min(top + tile, height) - 1 - y
        for x in range(width):
            left = x // tile * tile
            xx = left + min(left + tile, width) - 1 - x
            for c in range(channels):
                output[y, x, c] = source[yy, xx, c]


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    return [CpuPass(turn, (task.source, task.output, TILE), task.output.shape[0])]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy."""

    def turned(places: NDArray[np.intp], length: int) -> NDArray[np.intp]:
        first = places // TILE * TILE
        return first + np.minimum(first + TILE, length) - 1 - places

    height, width, _ = task.source.shape
    rows = turned(np.arange(start, stop), height)
    return task.source[rows][:, turned(np.arange(width), width)]


def plan_cuda(task: CudaTask) -> Launch:
    alone = task.level == GLOBAL.id
    return Launch(
        kernel=f"turned_tiles_{task.level.replace('-', '_')}",
        defines=task.defines(TILE=TILE),
        block=(TILE, TILE),
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=1.0,
        shared_bytes=0 if alone else TILE * TILE * task.shape[2] * task.dtype.itemsize,
        aligned=True,
    )


SPEC = TeachingSpec(
    id="turned_tiles",
    name="Turned tiles",
    summary="Turns each tile of 16×16 pixels upside down: shows why barriers are needed.",
    synonyms=("barrier", "shared memory", "flip"),
    source="Salari 2019, chapter 3: a picture made with and without __syncthreads",
    radius=lambda parameters: TILE - 1,  # a pixel comes from elsewhere in its tile
    crop=Crop(grid=TILE),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda,
            (NO_BARRIER, GLOBAL, SHARED),
            GAPS
            | {
                SINGLE_BLOCK.id: "A block turns one tile.",
                TUNED.id: "This filter shows a barrier, and nothing else.",
            },
        ),
    },
    explanation=Explanation(
        formula=r"g(y_0 + s,\, x_0 + t) = u(y_0 + h - 1 - s,\ x_0 + w - 1 - t)",
        use="To see the effect of a missing barrier: every thread reads a sample that another one "
        "wrote.",
        avoid="It is meant for teaching; it does not remove noise.",
        example=Example(patch=EDGE, radius=0),
    ),
)
