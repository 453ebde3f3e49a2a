"""Collaborative filtering of volumes on the GPU."""

from __future__ import annotations

from dataclasses import replace

from kernelscope.filters.shared.volume_noise import removed_sigma
from kernelscope.filters.shared.volume_noise_cuda import Ends
from kernelscope.filters.volume_collaborative.model import (
    PAD,
    REACH,
    SEARCH,
    SIDE,
    STEP,
    numbers,
    window,
)
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import CONSTANT, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The volume is extended once, so that no cube meets a border.",
    TUNED.id: "This filter has no tuned kernel yet.",
}

_WARPS = 8
"""References of a block: macro ``WARPS``."""

_SHARED_BYTES = 4 * (SIDE + 2 * SEARCH) * ((SIDE + 2 * SEARCH) * (32 + 2 * SEARCH + 1) + 31)
"""The structure ``Memory``."""

_OPERATIONS = 11**3 * SIDE**3 * 3 / STEP**3 + 1000
"""Of a stage and voxel, about: squared differences, and what transforms and adds up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``volume_collaborative.cu`` explains them."""
    constants = {"numbers": numbers(task.parameters), "window": window()}
    ends = Ends(task, "volume_collaborative", constants)
    if not removed_sigma(task.parameters):
        return CudaPlan((ends.copy,))

    def stage(name: str, *scratch: str) -> Launch:
        launch = ends.launch(
            f"{task.level}_{name}", *scratch, block=(32, _WARPS, 1), operations=_OPERATIONS
        )
        return replace(
            launch,
            tile=(_WARPS * STEP, STEP, STEP),
            shared_bytes=_SHARED_BYTES if task.level == SHARED.id else 0,
            steps=2,  # to clear the sums, and to add to them
            steps_at_once=1,
        )

    def means(name: str, target: str) -> Launch:
        return ends.launch(name, "sums", "weights", target, operations=200.0)

    launches = (
        ends.before,
        stage("hard", "extended", "sums", "weights"),
        means("first", "basic"),
        stage("wiener", "extended", "basic", "sums", "weights"),
        means("second", "filtered"),
        ends.after,
    )
    floats, wholes = (ends.around(PAD, 2 * REACH, values=values) for values in (1, 2))
    scratch = {
        "extended": floats,
        "basic": floats,
        "sums": wholes,
        "weights": wholes,
        "filtered": ends.around(0),
    }
    return CudaPlan(launches, scratch)
