"""Non-local means on the GPU: the levels that teach."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from kernelscope.filters.nlm.cuda_tuned import plan_tuned
from kernelscope.filters.shared.non_local import patch_weights
from kernelscope.spec.borders import Border
from kernelscope.spec.launch import BLOCK, CudaPlan, CudaTask, HandOver, Launch, Scratch
from kernelscope.spec.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level
from kernelscope.spec.samples import colour_count, white_level

HOST_PARTITIONS = Level(
    "host-partitions",
    "Shared, host partitions",
    "As shared memory, but the host hands each part of the search over, and launches for it.",
)

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
}
"""Why the other levels are not offered."""

PART = 32
"""Side of the parts into which a search of the whole image is cut: macro ``PART``."""


def plan_nlm(task: CudaTask) -> CudaPlan:
    """Return the launches of non-local means at a level; ``nlm.cu`` says what they do."""
    if task.level == TUNED.id:
        plan = plan_tuned(task)
        launches = (
            replace(launch, defines={**launch.defines, "TUNED": "1"}) for launch in plan.launches
        )
        return replace(plan, launches=tuple(launches))
    parameters, channels = task.parameters, task.shape[2]
    patch, sample = parameters["patch"], task.dtype.itemsize
    whole = parameters["search"] == "image"
    radius = 0 if whole else parameters["search_radius"]
    margin = radius + patch // 2
    colours = colour_count(channels)
    together = colours if parameters["colour"] == "joint" else 1
    rows, columns = task.output_shape[:2]
    if whole:
        steps, pairs = math.ceil(rows / PART) * math.ceil(columns / PART), rows * columns
    else:
        steps, pairs = 2 * radius + 1, (2 * radius + 1) ** 2

    # `reduce` reflects patches as `reflect` does, and has fewer candidates.
    inside = task.border is Border.REDUCE
    frame = np.array([margin, whole], np.int32)
    block = task.block or BLOCK
    pad = Launch(
        kernel="nlm_pad",
        defines=replace(task, border=Border.REFLECT if inside else task.border).defines(PAD=1),
        block=block,
        constants={"frame": frame},
        scratch=("padded",),
        bytes_per_sample=sample + 4.0,
        operations_per_sample=1.0,
    )
    scale = white_level(task.dtype) * math.sqrt(together * parameters["filter_sigma"])
    weights = (patch_weights(parameters) / scale).astype(np.float32)
    partition = PART, PART
    if not whole:
        partition = block[0] + 2 * radius, block[1]
    shared = 4 * together * math.prod(side + patch - 1 for side in partition)
    in_shared = task.level in (SHARED.id, HOST_PARTITIONS.id)
    constants = {"frame": frame, "search": np.array([radius, rows, inside], np.int32)}
    tables = (weights,) if task.level == GLOBAL.id else ()
    handed = ("handed",) if task.level == HOST_PARTITIONS.id else ()
    texture = task.level == TEXTURE.id
    pitch = colours * (columns + 2 * margin)
    kernel = f"nlm_{task.level.replace('-', '_')}"
    first = Launch(
        kernel=f"{kernel}_weights",
        # After padding, the border does not matter: all share a cubin.
        defines=replace(task, border=Border.REFLECT).defines(
            PATCH=patch, TOGETHER=together, THREADS=math.prod(block), PART=PART
        ),
        block=block,
        constants=constants if tables else {**constants, "constant_weights": weights},
        tables=tables,
        shared_bytes=shared if in_shared else 0,
        texture=texture,
        texture_of=("padded", pitch) if texture else None,
        scratch=(*([] if texture else ["padded"]), *handed, "weights"),
        steps=steps,
        # For each pair: three a cell of the patch, the weight and its sum.
        operations_per_sample=pairs * (3.0 * patch**2 + 3) * colours / channels,
        bytes_per_sample=8.0,
    )
    if handed:
        first = replace(
            first,
            steps_at_once=1,
            hand_over=HandOver("padded", *handed, pitch, colours, _parts(task, radius, patch)),
            # Every launch but the first reads the sums, all write them.
            bytes_per_sample=8.0 * steps,
        )
    second = replace(
        first,
        kernel=f"{kernel}_mean",
        scratch=(*first.scratch, "weighted"),
        bytes_per_sample=first.bytes_per_sample + sample,
    )
    sums = Scratch(4 * colours * columns)
    scratch = {
        "padded": Scratch(4 * pitch, 8 * margin * pitch, whole),
        "weights": sums,
        "weighted": sums,
    }
    if handed:
        scratch["handed"] = (
            Scratch(more_bytes=4 * colours * (PART + patch - 1) ** 2)
            if whole
            else Scratch(4 * pitch, 4 * (patch - 1) * pitch)
        )
    return CudaPlan((pad, first, second), scratch)


def _parts(task: CudaTask, radius: int, patch: int) -> tuple[tuple[slice, slice], ...]:
    """Return what the host hands over for each step: a part with the halo of the patches."""
    if radius:
        return tuple(
            (slice(step, step - 2 * radius or None), slice(None)) for step in range(2 * radius + 1)
        )
    rows, columns = task.output_shape[:2]
    return tuple(
        (slice(top, top + PART + patch - 1), slice(left, left + PART + patch - 1))
        for top in range(0, rows, PART)
        for left in range(0, columns, PART)
    )
