"""The sliding DCT of volumes on the GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelscope.filters.shared.volume_noise import Ends, removed_sigma
from kernelscope.filters.volume_dct.model import MARGIN, REACH, SIDE, numbers
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import CONSTANT, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The volume is extended once, so that no pass treats a border.",
    TUNED.id: "This filter has no tuned kernel yet.",
}

_BLOCK = (16, 16, 1)

_SLICES = 8
"""Slices of the result that a block computes: macro ``SLICES``."""

_LINES = SIDE**2 + 1
"""Sums of a place."""

_CELLS = _BLOCK[0] + REACH
_TILE = _BLOCK[0] - REACH
_SHARED_BYTES = 4 * (2 * _CELLS**2 + _LINES * _BLOCK[0] ** 2 + (SIDE + 1) * _TILE * _BLOCK[0])
"""The structure ``Memory``."""

_OPERATIONS = 900.0
"""Of a pass and place, about: 48 transforms of four numbers, shrinking and adding up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``volume_dct.cu`` explains them."""
    noise = np.array(numbers(task.parameters), np.float32)
    ends = Ends(task, "volume_dct", {"noise": noise})
    if not removed_sigma(task.parameters):
        return CudaPlan((ends.copy,))

    def launch(kernel: str, *scratch: str, factor: float = 1.0) -> Launch:
        return ends.launch(kernel, *scratch, block=_BLOCK, operations=factor * _OPERATIONS)

    scratch = {
        "extended": ends.around(MARGIN),
        "basic": ends.around(REACH),
        "filtered": ends.around(0),
    }
    passes: tuple[Launch, ...]
    if task.level == SHARED.id:
        tile = (_TILE, _TILE, _SLICES)
        passes = tuple(
            replace(each, tile=tile, shared_bytes=_SHARED_BYTES)
            for each in (
                launch("shared_hard", "extended", "basic"),
                launch("shared_wiener", "extended", "basic", "filtered", factor=1.7),
            )
        )
    else:
        column = (*_BLOCK[:2], _SLICES)
        passes = (
            replace(launch("global_hard", "extended", "sums"), tile=column),
            launch("global_first", "sums", "basic", factor=0.4),
            replace(launch("global_wiener", "extended", "basic", "sums", factor=1.7), tile=column),
            launch("global_second", "sums", "filtered", factor=0.4),
        )
        scratch["sums"] = ends.around(REACH, more=REACH, values=_LINES)
    return CudaPlan((ends.before, *passes, ends.after), scratch)
