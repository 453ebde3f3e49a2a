"""Non-local means on the GPU: the levels that teach."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from app.filters.cuda_nlm_tuned import plan_tuned
from app.filters.launch import BLOCK, CudaPlan, CudaTask, Launch, Scratch
from app.filters.non_local import patch_weights
from app.filters.spec import (
    CONSTANT,
    GLOBAL,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    Border,
    Level,
    colour_count,
    white_level,
)

HOST_PARTITIONS = Level(
    "host-partitions",
    "Shared, host partitions",
    "As shared memory, but the host launches the kernel anew for each part of the search.",
)

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
    CONSTANT.id: "The weights of a patch are in constant memory at both levels of shared memory.",
    TEXTURE.id: "Each sample is read for thousands of pairs: shared memory answers faster.",
}
"""Why the other levels are not offered."""

PART = 32
"""Side of the parts into which a search of the whole image is cut, as in ``nlm.cu``."""


def plan_nlm(task: CudaTask) -> CudaPlan:
    """Return the launches of non-local means at a level; ``nlm.cu`` says what they do."""
    if task.level == TUNED.id:
        plan = plan_tuned(task)
        launches = (
            replace(launch, defines={**launch.defines, "TUNED": "1"}) for launch in plan.launches
        )
        return replace(plan, launches=tuple(launches))
    parameters, channels = task.parameters, task.shape[2]
    patch, radius = parameters["patch"], parameters["search_radius"]
    whole = parameters["search"] == "image"
    colours = colour_count(channels)
    together = colours if parameters["colour"] == "joint" else 1

    # `reduce` reflects patches as `reflect` does, and has fewer candidates.
    inside = task.border is Border.REDUCE
    edge = patch // 2 if task.border is Border.VALID else 0
    height, width = (side - 2 * edge for side in task.shape[:2])
    if whole:
        steps, pairs = math.ceil(height / PART) * math.ceil(width / PART), height * width
    else:
        steps, pairs = 2 * radius + 1, (2 * radius + 1) ** 2

    scale = white_level(task.dtype) * math.sqrt(together * parameters["filter_sigma"])
    weights = (patch_weights(parameters) / scale).astype(np.float32)
    settings = np.array([0 if whole else radius, together, inside], np.int32)
    sample = task.dtype.itemsize
    launch = Launch(
        kernel=f"nlm_{task.level.replace('-', '_')}",
        defines=replace(task, border=Border.REFLECT if inside else task.border).defines(
            PATCH=patch
        ),
        block=BLOCK,
        constants={"search": settings},
        scratch=("weights", "weighted"),
        steps=steps,
        bytes_per_sample=2.0 * sample,
        # For each pair: three a cell of the patch, the weight and its sums.
        operations_per_sample=pairs * (3.0 * patch**2 + 4) * colours / channels,
    )
    scratch = dict.fromkeys(launch.scratch, Scratch(4 * task.out_row_samples))
    if task.level == GLOBAL.id:
        launch = replace(launch, tables=(weights,))
        first = replace(
            launch,
            kernel="nlm_global_weights",
            scratch=("weights",),
            bytes_per_sample=sample + 4.0,
        )
        second = replace(launch, kernel="nlm_global_mean", bytes_per_sample=2.0 * sample + 4)
        return CudaPlan((first, second), scratch)

    margin = 2 * (patch // 2)
    columns, rows = (side + margin for side in BLOCK)
    partition = (PART + margin) ** 2 if whole else rows * (columns + 2 * radius)
    launch = replace(
        launch,
        constants={**launch.constants, "constant_weights": weights},
        shared_bytes=4 * together * (rows * columns + partition),
    )
    if task.level == HOST_PARTITIONS.id:
        launch = replace(
            launch,
            steps_at_once=1,
            # Every launch but the first reads the sums, every one but the last writes them.
            bytes_per_sample=2.0 * sample * steps + 16.0 * (steps - 1),
        )
    return CudaPlan((launch,), scratch)
