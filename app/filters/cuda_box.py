"""The launch of ``box.cuh``: what the filters that sum up squares share at level *tuned*."""

from __future__ import annotations

import math

from app.filters.launch import CudaTask, Launch
from app.filters.spec import Border

_THREADS = 256
_LOADED = 4 * _THREADS
"""Columns (samples of a row) that a block reads: ``LOADED`` in ``box.cuh``."""

_RUN = 32
"""Neighbouring results that a thread computes: ``RUN`` in ``box.cuh``."""

_BLOCKS = {8: 4, 16: 2, 32: 2}
"""Blocks that share a multiprocessor, by the bits of a sample: what their registers allow."""


_STEP = 8
"""Rows that a block computes at a time: ``STEP`` in ``box.cuh``."""

_SAMPLES_A_ROW = 2**18
"""Output samples for each row of a tile: smaller images need low tiles to busy all of a card."""


def _tile_rows(size: int, samples: int) -> int:
    """Return the height of a tile for so many output samples; the most was measured on an H100.

    Low tiles keep the rows that tiles share in the cache and all multiprocessors busy to
    the end; but above each tile, size - 1 rows have to be added up once more.
    """
    return min(max(samples // _SAMPLES_A_ROW // _STEP, 1) * _STEP, 32 if size <= 31 else 56)


def tile_columns(size: int, channels: int, border: Border) -> int:
    """Return how many results (pixels of a row) a block has the columns for."""
    reach = size // 2 * channels
    halo = reach if border is Border.VALID else -(-reach // 4) * 4  # loads of 4 stay aligned
    whole = math.lcm(_RUN, channels)
    return (_LOADED - halo - reach) // whole * whole // channels


def plan_box(filter_id: str, task: CudaTask, size: int) -> Launch:
    """Return the launch of a filter of `size` x `size` sums at level *tuned*."""
    channels, bits = task.shape[2], 8 * task.dtype.itemsize
    samples = task.output_shape[0] * task.out_row_samples
    tile = (tile_columns(size, channels, task.border), _tile_rows(size, samples))
    return Launch(
        kernel=f"{filter_id}_tuned",
        defines=task.defines(
            SIZE=size,
            CHANNELS=channels,
            TILE_COLUMNS=tile[0],
            BLOCKS=_BLOCKS[bits],
        ),
        block=(_THREADS, 1),
        tile=tile,
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=5.0,
    )
