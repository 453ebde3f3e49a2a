"""Filters whose mask is a cube of voxels on the GPU: ``cubes.cuh``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.cubes import Sides
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import MIDDLE, WHOLE
from kernelscope.schema.launch import CudaTask, Launch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

GAPS_IN_3D = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    TEXTURE.id: "The textures of this program have two dimensions; a volume has three.",
    TUNED.id: "This filter has no tuned kernel in 3-D yet.",
}

_BLOCKS = ((32, 4, 2), (32, 4, 1), (32, 2, 1), (32, 1, 1))
"""Threads along x, y and z: the first whose tile fits into shared memory is taken."""

_SHARED_BYTES = 48 * 1024
"""Shared memory of a block on every GPU."""

_NEGATIVE = ("keep", "absolute", "offset", "clip")


def _tile_bytes(block: tuple[int, int, int], radii: Sides) -> int:
    return 4 * math.prod(
        threads + 2 * radius for threads, radius in zip(block, radii[::-1], strict=True)
    )


def _block(task: CudaTask, radii: Sides) -> tuple[int, int, int]:
    if task.block is not None:
        return *task.block, 1
    if task.level != SHARED.id:
        return _BLOCKS[0]
    fitting = (each for each in _BLOCKS if _tile_bytes(each, radii) <= _SHARED_BYTES)
    return next(fitting, _BLOCKS[-1])


def cube_launch(
    filter_id: str,
    task: CudaTask,
    radii: Sides,
    *,
    operations: float,
    weights: NDArray[Any] | None = None,
    negative: str = "keep",
    block: tuple[int, int, int] | None = None,
    **defines: int,
) -> Launch:
    """Return the launch of a level.

    - `operations`: for each cell of the mask.
    - `block`: threads along x, y and z, unless the user asks for others.
    - `weights`: of the cells, shape (slices, rows, columns): whole numbers, of which float32 holds
      each. They are in constant memory but at level *global*.
    """
    if block is None or task.block is not None:
        block = _block(task, radii)
    defines |= dict(zip(("RADIUS_Z", "RADIUS_Y", "RADIUS_X"), radii, strict=True))
    defines |= dict(zip(("BLOCK_X", "BLOCK_Y", "BLOCK_Z"), block, strict=True))
    whole = int(bool(task.parameters.get(WHOLE, False)))
    table = None if weights is None else weights.astype(np.float32).reshape(-1)
    constants: dict[str, NDArray[Any]] = {}
    if table is not None and task.level != GLOBAL.id:
        constants["constant_weights"] = table
    if negative == "offset":
        constants["middle"] = np.array(task.parameters.get(MIDDLE, 0.5), np.float64)
    return Launch(
        kernel=f"{filter_id}_{task.level}",
        defines=task.defines(
            WHOLE=whole,
            KEEP=int(task.border is Border.KEEP),
            NEGATIVE=_NEGATIVE.index(negative),
            **defines,
        ),
        block=block,
        constants=constants,
        tables=(table,) if table is not None and task.level == GLOBAL.id else (),
        shared_bytes=_tile_bytes(block, radii) if task.level == SHARED.id else 0,
        bytes_per_sample=8.0,
        operations_per_sample=operations * math.prod(2 * radius + 1 for radius in radii),
    )
