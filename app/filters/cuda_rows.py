"""Launches of kernels that walk down rows, four samples a thread: ``kernels/tuned_rows.cuh``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from app.filters.launch import BLOCK, CudaTask, Launch, level_launch

THREADS = 128
QUAD = 4
_MOST_ROWS = 64
_SAMPLES_A_ROW = 2**21
"""Output samples for each row that a block goes down: large images keep the card busy anyway,
and the more rows a block takes, the fewer it reads twice."""

_LEAST_ROWS, _FEW_ROWS = 2, 8
_SAMPLES_A_FEW_ROW = 2**17
"""The same for images that are too small to keep a card busy, up to a few rows."""


def rows_launch(
    filter_id: str,
    task: CudaTask,
    operations: float,
    constants: Mapping[str, NDArray[Any]] | None = None,
    **defines: int | str,
) -> Launch:
    """Return the launch of level *tuned* over quads of samples; see `level_launch`."""
    samples = task.output_shape[0] * task.out_row_samples
    few = min(max(samples // _SAMPLES_A_FEW_ROW, _LEAST_ROWS), _FEW_ROWS)
    rows = min(max(samples // _SAMPLES_A_ROW, few), _MOST_ROWS)
    launch = level_launch(
        filter_id,
        task,
        0,
        operations,
        block=BLOCK,
        constants=None,
        tables=(),
        arguments=None,
        **defines,
    )
    return replace(
        launch,
        block=(THREADS, 1),
        tile=(THREADS * QUAD // task.shape[2], rows),
        constants=constants or {},
    )
