"""How many rows fit into device memory, as arithmetic on a plan's numbers.

A device working on slabs has buffers in pairs (`BUFFERS`): while the kernels read one and write
one, copies fill and empty the others. The rows of a slab that fit follow from

    2 (rows + 2 radius) source + 2 rows result + (rows + 2 radius) between + constant  <=  budget

where source, result and between are the bytes of a row. For a 3x3 filter (radius 1) of rows of
1000 bytes with no intermediate buffers, a budget of 100 kB has room for 24 rows of the result:
2 * 26 * 1000 + 2 * 24 * 1000 = 100 000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelscope.backends.cuda import rim
from kernelscope.backends.cuda.device_run import PreparedFilter

BUFFERS = 2
"""For source rows, and for result rows: one in use by the kernels, one by a copy."""

MOST_SAMPLES = 2**31
"""Kernels of pictures count the samples of a buffer with 32 bits."""

SLAB_BYTES = 44 << 20
"""Size of a slab of a large result: short waits at both ends, and enough to keep the card busy. In
turns, 512³ voxels took two H100s 75.5 ms in the median with 32 MiB, and 71.7 with 44."""


def needs(steps: Sequence[PreparedFilter]) -> tuple[int, int, int, int]:
    """Return the bytes of a row of the source, of the result, and of the buffers between them.

    The last number is a constant: bytes that any number of rows needs.
    """
    first, final = steps[0].task, steps[-1].task
    between = constant = 0
    for step in steps:
        task, size = step.task, step.task.dtype.itemsize
        buffers = list(step.plan.scratch.values())
        textures = [launch for launch in step.plan.launches if launch.texture]
        buffers += [step.plan.scratch[each.texture_of[0]] for each in textures if each.texture_of]
        if any(not launch.texture_of for launch in textures):
            between += task.row_samples * size
        if step is not steps[-1]:
            between += task.out_row_samples * size
        for buffer in buffers:
            one, none = (buffer.size(rows, task.output_shape[0]) for rows in (1, 0))
            between += one - none
            constant += none
    return (
        first.row_samples * first.dtype.itemsize,
        final.out_row_samples * final.dtype.itemsize,
        between,
        constant,
    )


def fits(steps: Sequence[PreparedFilter], budget: int) -> bool:
    """Return whether everything fits into `budget` bytes in one piece that kernels can address."""
    for task in (step.task for step in steps):
        samples = max(math.prod(task.shape), math.prod(task.output_shape))
        if len(task.shape) == 3 and samples >= MOST_SAMPLES:
            return False
    height = max(steps[0].task.shape[0], steps[-1].task.output_shape[0])
    *rows, constant = needs(steps)
    return height * sum(rows) + constant <= budget


def rows_that_fit(steps: Sequence[PreparedFilter], budget: int) -> int:
    """Return how many rows of the result a slab may have for all buffers to fit."""
    source, result, between, constant = needs(steps)
    budget -= constant
    final = steps[-1]
    if final.whole:
        height = final.task.shape[0]
        return max(0, (budget - height * source) // (BUFFERS * result + between))
    halo = 2 * final.radius * (BUFFERS * source + between)
    return max(0, (budget - halo) // (BUFFERS * (source + result) + between))


def unit_rows(step: PreparedFilter) -> int:
    """Return the rows of which a slab needs a multiple, to have the bytes of one piece."""
    launches = step.plan.launches
    return math.lcm(*(launch.tile[-1] for launch in launches if launch.tile and launch.aligned))


def slab_rows(steps: Sequence[PreparedFilter], fitting: int, devices: int) -> int:
    """Return how many rows a slab should have, so that every GPU gets the same number.

    `SLAB_BYTES`, but at least twice as many as its halo, which is uploaded again; whole tiles
    of the kernels where that is possible. 0 if `fitting` rows cannot be filtered by themselves.
    """
    final = steps[-1]
    unit = unit_rows(final)
    fitting = fitting // unit * unit
    if not fitting:
        return 0
    height = final.task.output_shape[0]
    _, result, *_ = needs(steps)
    wanted = min(max(SLAB_BYTES // result, 4 * final.radius, 1), fitting)
    turns = math.ceil(height / (devices * wanted))
    rows = math.ceil(height / (devices * turns))
    # Threads of the rim's kernel stride over few pixels: whole tiles would save it nothing.
    own = (launch for launch in final.plan.launches if launch.kernel != rim.KERNEL)
    tile = math.lcm(*(launch.tile[-1] for launch in own if launch.tile))
    whole_tiles = math.ceil(rows / tile) * tile
    return whole_tiles if whole_tiles <= fitting else min(math.ceil(rows / unit) * unit, fitting)
