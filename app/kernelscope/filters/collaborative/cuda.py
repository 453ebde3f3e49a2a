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
)
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.samples import colour_count

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The picture is padded once, so that no pass treats a border.",
}

TILE = (16, 8)
"""Blocks of the grid whose stacks share their sums: macros ``TILE_COLUMNS``, ``TILE_ROWS``."""

MEAN = (32, 32)
"""Pixels of a block of threads of *guide* and *finish*: the second is macro ``MEAN_ROWS``."""

WARPS = 4  # of a block of threads of *groups*: the macro
_GROUP_WARPS = 8  # the same at level *tuned*: two such blocks share a multiprocessor

_SUM_PITCH, _STACK_PITCH = 104, 36
"""Of the tile's sums and of a stack's coefficients at level *tuned*: see the kernel."""

_KEY = 2**21
"""Squared differences below this fit into the keys of the tuned *match*, which is for bytes."""

_STACK_BYTES = WARPS * SIDE**2 * 33 * 4


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``collaborative.cu`` explains them."""
    found = numbers(task.dtype, task.shape[2], task.parameters)
    if found is None:
        copy = Launch("collaborative_copy", task.defines(), BLOCK, 2.0 * task.dtype.itemsize, 1.0)
        return CudaPlan((copy,))
    step, reach = search(task.parameters)
    level, tuned = task.level, task.level == TUNED.id
    of_bytes = tuned and task.dtype == np.uint8 and max(found.tolerances) < _KEY
    colours = colour_count(task.shape[2])
    grey_bytes = tuned and task.dtype == np.uint8 and colours == 1
    halo = 2 * (SIDE - 1 + 2 * reach)
    width = task.output_shape[1] + 2 * MARGIN
    inner = replace(task, border=Border.REFLECT)
    floats = replace(inner, dtype=np.dtype(np.float32))
    plain = {"GRID_STEP": step, "REACH": reach}
    region = tuple((side - 1) * step + 2 * reach + SIDE for side in TILE)
    region_bytes = 2 * 4 * region[0] * region[1]
    across = search(task.parameters).count(width)
    tiles = -(-across // TILE[0]) * colours
    columns, rows_compared = ((side - 1) * step + 2 * reach + SIDE for side in BLOCK)
    cells_bytes = 4 * columns * rows_compared
    tall = rows_compared + step
    norms = -(-(columns - SIDE + 1) // step) * step * (tall - SIDE + 1)
    match_bytes = 4 * (tall * ((columns + 7) // 4) + norms + 16 * BLOCK[0] * BLOCK[1])
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
        # Samples are floats by then: types and borders share the code, and a stage is one module.
        most = WIENER if number else found.most
        usual = floats.defines(**plain, WIENER_STAGE=number, MOST=most)
        quick = {**usual, "TUNED": "1", "GROUP_WARPS": str(_GROUP_WARPS)}
        if grey_bytes:
            quick["BYTES"] = "1"
        own = quick if tuned else usual
        match = launch(
            f"{'global' if level == GLOBAL.id else 'shared'}_match",
            *(cells, "places", "counts"),
            stage=number,
            operations=work,
            defines=usual,
            tile=(BLOCK[0] * step, BLOCK[1] * step),
            shared_bytes=0 if level == GLOBAL.id else cells_bytes,
        )
        groups = launch(
            f"{level}_groups",
            *("planes", guides, "places", "counts", "tiles"),
            stage=number,
            operations=work / 2,
            defines=own,
            tile=(TILE[0] * step, TILE[1] * step),
            block=(32, _GROUP_WARPS if tuned else WARPS),
        )
        if level == GLOBAL.id:
            groups = replace(groups, scratch=(*groups.scratch, "work"))
        elif tuned:
            below = region[1] + SIDE
            pixels = -(-(region[0] | 1) * below // 4) * 4
            stacks = _GROUP_WARPS * (SIDE**2 // 2 * _STACK_PITCH + 32)
            tile = 4 * (stacks + _SUM_PITCH * region[1] + pixels)
            bytes_ = (region[0] + 7) // 4 * 4 * below if grey_bytes else 0
            groups = replace(groups, shared_bytes=tile + bytes_)
        else:
            groups = replace(groups, shared_bytes=_STACK_BYTES + region_bytes)
        if of_bytes:
            match = replace(
                match,
                kernel="collaborative_tuned_match",
                defines=quick,
                # A thread has two blocks that have more rows in common than not.
                block=(32, 4) if step < SIDE / 2 else (32, 8),
                shared_bytes=match_bytes,
            )
        return match, groups

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
        "places": grid(2 * WIENER * across, step),
        "counts": grid(4 * across, step),
        "tiles": grid(region_bytes * tiles, TILE[1] * step),
    }
    if level == GLOBAL.id:
        scratch["work"] = grid(_STACK_BYTES * tiles, TILE[1] * step)
    guide = launch("guide", "planes", "tiles", "guides", "guide_cells", operations=80, tile=MEAN)
    finish = launch("finish", "tiles", stage=1, operations=80, tile=MEAN)
    return CudaPlan((pad, *stage(0), guide, *stage(1), finish), scratch)


def _constants(found: Numbers, stage: int) -> NDArray[np.float32]:
    """Return the constant ``numbers``."""
    first = [found.tolerances[stage], found.part, 0, found.quotient]
    levels = np.zeros((3, 6), np.float32)
    of_planes = found.variances if stage else found.thresholds
    levels[: len(of_planes)] = of_planes
    # The kernel counts coefficients along x first.
    norms = found.norms[stage].reshape(SIDE, SIDE).T
    parts = [np.array(first, np.float32), found.window, levels.ravel(), norms.ravel()]
    return np.concatenate(parts)
