"""Collaborative filtering on the GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.collaborative.model import (
    MARGIN,
    SIDE,
    WIENER,
    Numbers,
    numbers,
    search,
    window,
)
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.samples import colour_count

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The picture is padded once, so that no pass treats a border.",
    TUNED.id: "This filter has no tuned kernel yet.",
}

TILE = (16, 8)
"""Blocks of the grid whose stacks share their sums: macros ``TILE_COLUMNS``, ``TILE_ROWS``."""

WARPS = 4
"""Of a block of threads of *groups*: the macro."""

_STACK_BYTES = WARPS * SIDE**2 * 33 * 4


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``collaborative.cu`` explains them."""
    found = numbers(task.dtype, task.shape[2], task.parameters)
    if found is None:
        copy = Launch("collaborative_copy", task.defines(), BLOCK, 2.0 * task.dtype.itemsize, 1.0)
        return CudaPlan((copy,))
    step, reach = search(task.parameters)
    shared = task.level == SHARED.id
    level = "shared" if shared else "global"
    colours = colour_count(task.shape[2])
    halo = 2 * (SIDE - 1 + 2 * reach)
    width = task.output_shape[1] + 2 * MARGIN
    inner = replace(task, border=Border.REFLECT)
    floats = replace(inner, dtype=np.dtype(np.float32))
    plain = {"GRID_STEP": step, "REACH": reach}
    region = tuple((side - 1) * step + 2 * reach + SIDE for side in TILE)
    region_bytes = 2 * 4 * region[0] * region[1]
    across = search(task.parameters).count(width)
    tiles = -(-across // TILE[0]) * colours
    compared = (((side - 1) * step + 2 * reach + SIDE) for side in (BLOCK[0], BLOCK[1]))
    cells_bytes = 4 * next(compared) * next(compared)
    work = 64 * 2 * (2 * reach + 1) ** 2 * 2 / step**2

    def launch(
        kernel: str,
        *scratch: str,
        stage: int = 0,
        operations: float = 1.0,
        defines: dict[str, str] | None = None,
        tile: tuple[int, int] = BLOCK,
        block: tuple[int, int] = BLOCK,
        shared_bytes: int = 0,
    ) -> Launch:
        return Launch(
            kernel=f"collaborative_{kernel}",
            # The stages have different constants, so that no module may serve both.
            defines=inner.defines(**plain, WIENER_STAGE=stage) if defines is None else defines,
            block=block,
            tile=tile,
            constants={"numbers": _constants(found, stage)},
            scratch=scratch,
            shared_bytes=shared_bytes,
            bytes_per_sample=8.0,
            operations_per_sample=operations,
        )

    def stage(number: int) -> tuple[Launch, ...]:
        cells, guides = ("guide_cells", "guides") if number else ("cells", "planes")
        grid = (BLOCK[0] * step, BLOCK[1] * step)
        more = () if shared else ("work",)
        # Samples are floats by then: types and borders share the code.
        common = floats.defines(**plain, WIENER_STAGE=number)
        most = WIENER if number else found.most
        return (
            launch(
                f"{level}_match",
                *(cells, "places", "counts"),
                stage=number,
                operations=work,
                defines={**common, "MOST": str(most)},
                tile=grid,
                shared_bytes=cells_bytes if shared else 0,
            ),
            launch(
                f"{level}_groups",
                *("planes", guides, "places", "counts", "tiles", *more),
                stage=number,
                operations=work / 2,
                defines=common,
                tile=(TILE[0] * step, TILE[1] * step),
                block=(32, WARPS),
                shared_bytes=_STACK_BYTES + region_bytes if shared else 0,
            ),
            launch("sum", "tiles", "sums", stage=number, operations=20, defines=common),
        )

    pad = replace(launch("pad", "planes", "cells"), defines=task.defines(**plain))

    def rows(size: int) -> Scratch:
        return Scratch(size, 2 * halo * size)

    def grid(size: int, each: int) -> Scratch:
        """Return a buffer of `size` bytes for every `each` rows, and some more."""
        return Scratch(-(-size // each), (2 * halo // each + 12) * size)

    scratch = {
        "planes": rows(4 * colours * width),
        "guides": rows(4 * colours * width),
        "cells": rows(4 * width),
        "guide_cells": rows(4 * width),
        "sums": rows(8 * colours * width),
        "places": grid(2 * WIENER * across, step),
        "counts": grid(4 * across, step),
        "tiles": grid(region_bytes * tiles, TILE[1] * step),
    }
    if not shared:
        scratch["work"] = grid(_STACK_BYTES * tiles, TILE[1] * step)
    guide = launch("guide", "planes", "sums", "guides", "guide_cells", operations=130)
    finish = launch("finish", "sums", stage=1, operations=130)
    return CudaPlan((pad, *stage(0), guide, *stage(1), finish), scratch)


def _constants(found: Numbers, stage: int) -> NDArray[np.float32]:
    """Return the constant ``numbers``."""
    levels = found.variances if stage else found.thresholds
    first = [found.tolerances[stage], found.limit, found.steps, found.quotient]
    return np.concatenate([np.array(first, np.float32), levels, window()])
