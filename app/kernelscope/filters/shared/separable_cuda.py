"""The launches of ``separable.cuh``: two passes, or one at level *tuned* for small masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.separable import MOST_RADIUS, radius, weights_of_passes
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch, level_launch
from kernelscope.schema.levels import SHARED, TEXTURE, TUNED

RUN = 8  # neighbouring results of a thread at level *tuned*: macro ``RUN``

_TILE_SAMPLES, _TILE_ROWS = 256, 16
"""Of a block at level *tuned*: macros ``TILE_SAMPLES`` and ``TILE_ROWS``. A warp has a row of
`_TILE_SAMPLES` / `RUN` threads."""

_THREADS = 256  # of such a block

_FUSED_HALO = 48
"""Samples on each side of a tile up to which level *tuned* takes one launch. A block adds up the
columns of its halo as well, 96 for 256 here; with two launches the sums go to memory and back, 8
bytes a sample. A bound from these counts: it was not measured."""

_WIDE_HALO, _LOW_ROWS = 300, 8
"""A wider halo has tiles of so few rows, which 64 KiB of shared memory hold up to 782: all cards
have as much."""


def separable_cuda(
    filter_id: str,
    task: CudaTask,
    arguments: Mapping[str, NDArray[Any]] | None = None,
    *,
    operations: int = 0,
    with_samples: bool = False,
) -> CudaPlan:
    """Return the launches of a filter with the parameters `SIGMA` and `TRUNCATE`.

    - `arguments`: constants of the filter's own.
    - `operations`: for each sample, after the sums.
    - `with_samples`: whether the second pass reads samples of the source. At level *texture*, where
      it has a texture of the sums, they stand beside these.
    """
    reach = radius(task.parameters)
    down, across = (each.astype(np.float32) for each in weights_of_passes(task.parameters))
    own = {"radius": np.array([reach], np.int32), **(arguments or {})}
    sums = 3.0 * reach + 1
    if task.level == TUNED.id:
        plan = _tuned(filter_id, task, {"constant_weights": down, **own}, sums, operations)
        return plan if np.array_equal(down, across) else _with_rows_of_their_own(plan, across)
    constants, tables = {"constant_weights": down}, (down,)
    base = level_launch(filter_id, task, 0, sums, constants=constants, tables=tables, arguments=own)
    size = task.dtype.itemsize
    columns, rows = base.block
    halo = 2 * reach
    in_shared = task.level == SHARED.id
    beside = 2 if with_samples and task.level == TEXTURE.id else 1
    first = replace(
        base,
        kernel=f"{base.kernel}_columns",
        defines=task.defines(),
        bytes_per_sample=size + 4.0 * beside,
        shared_bytes=columns * (rows + halo) * size if in_shared else 0,
        scratch=("sums",),
    )
    pitch = beside * task.row_samples
    second = replace(
        first,
        kernel=f"{base.kernel}_rows",
        bytes_per_sample=4.0 + size * (2 if with_samples else 1),
        operations_per_sample=sums + operations,
        shared_bytes=4 * rows * (columns + halo * task.shape[2]) if in_shared else 0,
        texture_of=("sums", pitch) if task.level == TEXTURE.id else None,
    )
    plan = CudaPlan((first, second), {"sums": Scratch(4 * pitch, at_pixels=4)})
    return plan if np.array_equal(down, across) else _with_rows_of_their_own(plan, across)


def _with_rows_of_their_own(plan: CudaPlan, weights: NDArray[np.float32]) -> CudaPlan:
    """Return the plan with other weights along the rows than down the columns.

    The constants of both launches are written before the first of them runs. The macro, one more
    than is needed, makes a module of its own of the second, with memory of its own for them.
    """
    first, second = plan.launches
    constants = {**second.constants}
    if "constant_weights" in constants:
        constants["constant_weights"] = weights
    second = replace(
        second,
        defines={**second.defines, "MOST_RADIUS": str(MOST_RADIUS + 1)},
        constants=constants,
        tables=(weights,) if second.tables else (),
    )
    return replace(plan, launches=(first, second))


def _tuned(
    filter_id: str,
    task: CudaTask,
    constants: Mapping[str, NDArray[Any]],
    sums: float,
    operations: int,
) -> CudaPlan:
    channels, size = task.shape[2], task.dtype.itemsize
    halo = radius(task.parameters) * channels
    width = _TILE_SAMPLES + 2 * halo
    across = _TILE_SAMPLES // channels
    launch = Launch(
        kernel=f"{filter_id}_tuned",
        defines=task.defines(
            TUNED=1,
            CHANNELS=channels,
            RUN=RUN,
            TILE_SAMPLES=_TILE_SAMPLES,
            TILE_ROWS=_TILE_ROWS,
        ),
        block=(_THREADS, 1),
        tile=(across, _TILE_ROWS),
        bytes_per_sample=2.0 * size,
        operations_per_sample=sums * (width / _TILE_SAMPLES) + sums + operations,
        constants=constants,
        shared_bytes=4 * _TILE_ROWS * (width + width // RUN),
    )
    if halo <= _FUSED_HALO and isinstance(task.parameters["sigma"], float):
        return CudaPlan((launch,))
    first = replace(
        launch,
        kernel=f"{launch.kernel}_columns",
        tile=(across, RUN),
        bytes_per_sample=size + 4.0,
        operations_per_sample=sums,
        shared_bytes=0,
        scratch=("sums",),
    )
    rows = _LOW_ROWS if halo > _WIDE_HALO else _TILE_ROWS
    second = replace(
        launch,
        kernel=f"{launch.kernel}_rows",
        defines={**launch.defines, "TILE_ROWS": str(rows)},
        tile=(across, rows),
        shared_bytes=4 * rows * (width + width // RUN),
        bytes_per_sample=size + 4.0,
        operations_per_sample=sums + operations,
        scratch=("sums",),
    )
    return CudaPlan((first, second), {"sums": Scratch(4 * task.row_samples, at_pixels=4)})
