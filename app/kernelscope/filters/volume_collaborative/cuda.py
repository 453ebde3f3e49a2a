"""Collaborative filtering of volumes on the GPU."""

from __future__ import annotations

from dataclasses import replace

from kernelscope.filters.shared.volume_noise import Ends, removed_sigma
from kernelscope.filters.volume_collaborative.cpu import (
    GROUP,
    PAD,
    REACH,
    SEARCH,
    SIDE,
    STEP,
    numbers,
    references,
    window,
)
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The volume is extended once, so that no cube meets a border.",
}

_WARPS = 8
"""References of a block: macro ``WARPS``."""

_SHARED_BYTES = 4 * (SIDE + 2 * SEARCH) * ((SIDE + 2 * SEARCH) * (32 + 2 * SEARCH + 1) + 31)
"""The structure ``Memory``."""

_DEEP = 4
"""Voxels of a thread that divides, one behind the other: the macro ``DEEP``."""

_TUNED_WARPS = 14
"""The same of those that filter at level *tuned*: macro ``GROUP_WARPS``."""

_WIDE, _TALL = STEP * (_WARPS - 1) + SIDE + 2 * SEARCH, SIDE + 2 * SEARCH
_PLACES = 2 * SEARCH + 1

_MATCH_BYTES = 4 * (2 * _TALL**2 * _WIDE + 32 * _PLACES**2 + _WARPS * (_PLACES**3 + 4))
"""The structure ``MatchMemory``."""

_GROUPS = (7, 4)
"""References of a block at level *tuned*: macros ``GROUPS_WIDE`` and ``GROUPS_TALL``."""

_CELLS = _TALL * (STEP * (_GROUPS[1] - 1) + _TALL) * 32
_GROUP_BYTES = 4 * (3 * _CELLS + _TUNED_WARPS * SIDE**3 // 2 * 36 + 1)
"""The structure ``GroupMemory``."""

_FILTERING = 1000
_OPERATIONS = 11**3 * SIDE**3 * 3 / STEP**3 + _FILTERING
"""Of a stage and voxel, about: squared differences, transforms and adding up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``volume_collaborative.cu`` explains them."""
    constants = {"numbers": numbers(task.parameters), "window": window()}
    ends = Ends(task, "volume_collaborative", constants)
    if not removed_sigma(task.parameters):
        return CudaPlan((ends.copy,))
    tuned = task.level == TUNED.id

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
        launch = ends.launch(name, "sums", "weights", target, operations=200.0)
        return replace(launch, tile=(*launch.block[:2], _DEEP))

    def match(name: str, compared: str) -> Launch:
        launch = ends.launch(
            f"tuned_match_{name}",
            compared,
            "places",
            block=(32, _WARPS, 1),
            operations=_OPERATIONS - _FILTERING,
        )
        return replace(launch, tile=(_WARPS * STEP, STEP, STEP), shared_bytes=_MATCH_BYTES)

    def groups(name: str, *compared: str) -> Launch:
        launch = stage(name, *compared, "places", "sums", "weights")
        return replace(
            launch,
            operations_per_sample=float(_FILTERING),
            block=(32, _TUNED_WARPS, 1),
            tile=(_GROUPS[0] * STEP, _GROUPS[1] * STEP, STEP),
            shared_bytes=_GROUP_BYTES + 4 * _CELLS * (len(compared) - 1),
        )

    if tuned:
        first: tuple[Launch, ...] = match("hard", "extended"), groups("hard", "extended")
        second: tuple[Launch, ...] = (
            match("wiener", "basic"),
            groups("wiener", "extended", "basic"),
        )
    else:
        first = (stage("hard", "extended", "sums", "weights"),)
        second = (stage("wiener", "extended", "basic", "sums", "weights"),)
    launches = (
        ends.before,
        *first,
        means("first", "basic"),
        *second,
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
    if not tuned:
        return CudaPlan(launches, scratch)
    launches = tuple(replace(each, defines={**each.defines, "TUNED": "1"}) for each in launches)
    # Of the references of a slice; and of those of slices before and behind.
    _, height, width, components = task.shape
    bytes_ = 2 * GROUP * components * references(height) * references(width)
    scratch["places"] = Scratch(-(-bytes_ // STEP), (2 * 2 * REACH // STEP + 4) * bytes_)
    notice = "This GPU has too little shared memory for level tuned: level shared is used."
    smaller = replace(plan_cuda(replace(task, level=SHARED.id)), notice=notice)
    return CudaPlan(launches, scratch, smaller=smaller)
