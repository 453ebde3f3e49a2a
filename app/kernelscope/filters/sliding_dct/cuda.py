"""The sliding DCT on the GPU."""

from __future__ import annotations

from dataclasses import replace

from kernelscope.filters.sliding_dct.cpu import MARGIN, REACH, SIDE, noise
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.samples import colour_count

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The picture is padded once, so that no pass treats a border.",
    TUNED.id: "This filter has no tuned kernel yet.",
}

ROWS = 57
"""Rows of a tile of level *shared*: macro ``TILE_ROWS``. Its blocks go down 64 rows of blocks."""

COLUMNS = 32 - REACH
"""Columns of such a tile: a warp has a row of 32 blocks."""

_SHARED_BYTES = 4 * 32 * (SIDE * (BLOCK[1] + REACH) + (SIDE + 1) * 16)
"""The structure ``Memory``."""

_OPERATIONS = 2 * 18 * 42 + 64 * 12
"""Of both passes, about: 18 transforms of eight numbers a place, shrinking and adding up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``sliding_dct.cu`` explains them."""
    numbers = noise(task.dtype, task.parameters)
    colours = colour_count(task.shape[2])
    width = task.output_shape[1]

    def plane(margin: int, values: int = 1) -> Scratch:
        pitch = 4 * values * colours * (width + 2 * margin)
        return Scratch(pitch, 2 * margin * pitch)

    def launch(kernel: str, *scratch: str, operations: float = 1.0) -> Launch:
        return Launch(
            kernel=f"sliding_dct_{kernel}",
            defines=replace(task, border=Border.REFLECT).defines(),
            block=BLOCK,
            constants={"noise": numbers},
            scratch=scratch,
            bytes_per_sample=8.0,
            operations_per_sample=operations,
        )

    pad = replace(launch("pad", "padded"), defines=task.defines())
    scratch = {"padded": plane(MARGIN), "first": plane(REACH)}
    last: Launch
    passes: tuple[Launch, ...]
    if task.level == SHARED.id:
        hard = launch("shared_hard", "padded", "first", operations=_OPERATIONS / 3)
        wiener = launch("shared_wiener", "padded", "first", "second", operations=_OPERATIONS / 1.5)
        tile = (COLUMNS, ROWS)
        passes = (replace(hard, tile=tile, shared_bytes=_SHARED_BYTES),)
        last = replace(wiener, tile=tile, shared_bytes=_SHARED_BYTES)
        scratch["second"] = plane(0)
    else:
        # A thread goes down eight rows, and begins seven rows of blocks above them.
        hard = launch("global_hard", "padded", "sums", operations=_OPERATIONS)
        wiener = launch("global_wiener", "padded", "first", "sums", operations=2 * _OPERATIONS)
        column = (BLOCK[0], BLOCK[1] * SIDE)
        passes = (
            replace(hard, tile=column, layers=colours),
            launch("global_first", "sums", "first"),
            replace(wiener, tile=column, layers=colours),
        )
        last = launch("global_second", "sums")
        scratch["sums"] = plane(MARGIN, SIDE + 1)
    # Those in between do not depend on the border: they share their code.
    return CudaPlan((pad, *passes, replace(last, defines=task.defines())), scratch)
