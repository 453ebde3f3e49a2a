"""Non-local means on the GPU: the levels that teach."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.nlm.cuda_tuned import plan_tuned
from kernelscope.filters.shared.non_local import falloff, noise_floor, patch_weights
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaPlan, CudaTask, HandOver, Launch, Scratch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level
from kernelscope.schema.samples import colour_count, white_level

HOST_PARTITIONS = Level(
    "host-partitions",
    "Shared, host partitions",
    "As shared memory, but the host copies each part of the search and launches a kernel for it.",
    why="Each part of the candidates is copied from the host to the card and is a launch of its "
    "own. The arithmetic is that of shared memory; the copies and the launches come on top.",
    source="Source N, section 2.5.",
)

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
}
"""Why the other levels are not offered."""

PART = 32
"""Side of the parts into which a search of the whole image is cut: macro ``PART``."""


class _Sizes(NamedTuple):
    """Sizes that all launches share.

    - `patch`, `radius`, `margin`: side of a patch; radius of the search window, 0 for the whole
      image; pixels that the padded image has around the image.
    - `colours`, `together`: channels without alpha, and those that share a distance.
    - `pitch`: samples of a padded row.
    """

    patch: int
    radius: int
    margin: int
    colours: int
    together: int
    pitch: int
    block: tuple[int, int]
    whole: bool

    @classmethod
    def of(cls, task: CudaTask) -> _Sizes:
        parameters = task.parameters
        whole = parameters["search"] == "image"
        radius = 0 if whole else parameters["search_radius"]
        margin = radius + parameters["patch"] // 2
        colours = colour_count(task.shape[2])
        together = colours if parameters["colour"] == "joint" else 1
        pitch = colours * (task.output_shape[1] + 2 * margin)
        block = task.block or BLOCK
        return cls(parameters["patch"], radius, margin, colours, together, pitch, block, whole)

    @property
    def frame(self) -> NDArray[np.int32]:
        return np.array([self.margin, self.whole], np.int32)


def plan_nlm(task: CudaTask) -> CudaPlan:
    """Return the launches of non-local means at a level; ``nlm.cu`` explains them."""
    if task.level == TUNED.id:
        plan = plan_tuned(task)
        launches = (
            replace(launch, defines={**launch.defines, "TUNED": "1"}) for launch in plan.launches
        )
        return replace(plan, launches=tuple(launches))
    sizes = _Sizes.of(task)
    first = _weights_launch(task, sizes)
    handed = task.level == HOST_PARTITIONS.id
    if handed:
        parts = _parts(task, sizes.radius, sizes.patch)
        first = replace(
            first,
            steps_at_once=1,
            hand_over=HandOver("padded", "handed", sizes.pitch, sizes.colours, parts),
            # Every launch but the first reads the sums, all write them.
            bytes_per_sample=8.0 * first.steps,
        )
    second = replace(
        first,
        kernel=f"{_kernel(task)}_mean",
        scratch=(*first.scratch, "weighted"),
        bytes_per_sample=first.bytes_per_sample + task.dtype.itemsize,
    )
    sums = Scratch(4 * sizes.colours * task.output_shape[1])
    scratch = {
        "padded": Scratch(
            4 * sizes.pitch, 8 * sizes.margin * sizes.pitch, sizes.whole, sizes.margin
        ),
        "weights": sums,
        "weighted": sums,
    }
    if handed:
        scratch["handed"] = (
            Scratch(more_bytes=4 * sizes.colours * (PART + sizes.patch - 1) ** 2)
            if sizes.whole
            else Scratch(4 * sizes.pitch, 4 * (sizes.patch - 1) * sizes.pitch)
        )
    return CudaPlan((_pad_launch(task, sizes), first, second), scratch)


def _kernel(task: CudaTask) -> str:
    return f"nlm_{task.level.replace('-', '_')}"


def _pad_launch(task: CudaTask, sizes: _Sizes) -> Launch:
    """Return the launch that writes the image with its border as floats."""
    # `reduce` reflects patches as `reflect` does, and has fewer candidates.
    border = Border.REFLECT if task.border is Border.REDUCE else task.border
    return Launch(
        kernel="nlm_pad",
        defines=replace(task, border=border).defines(PAD=1),
        block=sizes.block,
        constants={"frame": sizes.frame},
        scratch=("padded",),
        bytes_per_sample=task.dtype.itemsize + 4.0,
        operations_per_sample=1.0,
    )


def _weights_launch(task: CudaTask, sizes: _Sizes) -> Launch:
    """Return the launch that adds up weights; the one that adds up samples differs little."""
    rows, columns = task.output_shape[:2]
    side = 2 * sizes.radius + 1
    steps, pairs = side, side**2
    partition = sizes.block[0] + 2 * sizes.radius, sizes.block[1]
    if sizes.whole:
        steps, pairs = math.ceil(rows / PART) * math.ceil(columns / PART), rows * columns
        partition = PART, PART
    h = falloff(task.parameters)
    scale = white_level(task.dtype) * math.sqrt(sizes.together * h)
    weights = (patch_weights(task.parameters) / scale).astype(np.float32)
    inside = task.border is Border.REDUCE
    constants = {
        "frame": sizes.frame,
        "search": np.array([sizes.radius, rows, inside], np.int32),
        "noise_floor": np.array(noise_floor(task.parameters) / h, np.float32),
    }
    tables = (weights,) if task.level == GLOBAL.id else ()
    texture = task.level == TEXTURE.id
    shared = 4 * sizes.together * math.prod(length + sizes.patch - 1 for length in partition)
    padded = () if texture else ("padded",)
    handed = ("handed",) if task.level == HOST_PARTITIONS.id else ()
    return Launch(
        kernel=f"{_kernel(task)}_weights",
        # After padding, the border does not matter: all share a cubin.
        defines=replace(task, border=Border.REFLECT).defines(
            PATCH=sizes.patch, TOGETHER=sizes.together, THREADS=math.prod(sizes.block), PART=PART
        ),
        block=sizes.block,
        constants=constants if tables else {**constants, "constant_weights": weights},
        tables=tables,
        shared_bytes=shared if task.level in (SHARED.id, HOST_PARTITIONS.id) else 0,
        texture=texture,
        texture_of=("padded", sizes.pitch) if texture else None,
        scratch=(*padded, *handed, "weights"),
        steps=steps,
        # For each pair: three a cell of the patch, the weight and its sum.
        operations_per_sample=pairs * (3.0 * sizes.patch**2 + 3) * sizes.colours / task.shape[2],
        bytes_per_sample=8.0,
    )


def _parts(task: CudaTask, radius: int, patch: int) -> tuple[tuple[slice, slice], ...]:
    """Return the part that the host hands over for each step, with the halo of the patches."""
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
