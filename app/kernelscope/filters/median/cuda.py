"""The median on the GPU: the launches of ``median.cu``.

Up to level *texture*, a thread searches for its median bit by bit, from the highest bit down: it
counts how many cells of its window lie below the value found so far with the next bit set, and
keeps the bit unless more than half do. *Tuned* runs a network of minima and maxima for masks up to
13 x 13 or 15 x 15, and for larger ones searches whole bit planes. Larger masks of bytes count with
32 thresholds at once, unless the picture is small.
"""

from __future__ import annotations

import math
from dataclasses import replace

from kernelscope.spec.borders import Border
from kernelscope.spec.launch import CudaPlan, CudaTask, Launch, by_size, is_small, level_launch
from kernelscope.spec.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level

SELECTION = Level(
    "selection",
    "Selection",
    "Each thread copies its window to shared memory and selects the middle value there (Hoare).",
    why="Selection moves cells by numbers known only at run time, which registers cannot do; "
    "shared memory can. The windows of all threads take so much of it that few blocks fit on a "
    "multiprocessor.",
    source="Source F, chapter 5.",
)
LEVELS = (SINGLE_BLOCK, GLOBAL, SELECTION, SHARED, TEXTURE, TUNED)
GAPS = {
    CONSTANT.id: "There are no weights, and a table of comparisons for sorting the largest "
    "mask would take 75 KiB: constant memory has 64."
}

_WINDOWS = 48 * 1024
"""Bytes of shared memory for the windows of a block, which every GPU has."""

_BLOCKS = ((32, 4), (32, 2), (32, 1), (16, 1), (8, 1))
"""Blocks, largest first. Threads that keep a window of 9 x 9 in registers fill a multiprocessor
better in small blocks; at level *selection* the windows of a block have to fit into shared memory.
"""

_NETWORK_OPERATIONS = {3: 17, 5: 60, 7: 140, 9: 240, 11: 392, 13: 600, 15: 824}
"""Minima and maxima for each sample at level *tuned*; larger masks are searched bit by bit."""

_LARGEST_NETWORK_OF_BYTES = 13
"""A larger network has no room in registers, which pays off only for samples of more bits."""

_THRESHOLDS_FROM = 13
"""The smallest mask of bytes that is counted with thresholds."""

_SMALL_THRESHOLDS = 2**20
"""Pixels from which on that is faster than networks and bit planes; measured on an H100 for masks
of 11 x 11 to 31 x 31, as the two numbers below."""

_SHORT_STRIP, _FULL_CARD = 8, 6 * 2**20
"""Rows of a strip, and the pixels below which strips are that short: longer ones take less work,
but are too few to keep a card busy."""

_STRIP, _WIDE_STRIP, _WIDE_FROM = 16, 32, 19
"""Rows of other strips, and the mask from which on they are the larger number: of its cells more
enter before a strip has its first median."""

_THRESHOLD_BLOCK, _STRIP_COLUMNS = (32, 4), 8

_SMALL_WORK, _SMALL_WORK_CUT = 40e6, 50e6
"""Comparisons by a level that searches bit by bit, for one channel of a whole picture, from which
on level *tuned* is faster, since its work grows less with the mask; measured on an H100 for 3x3 to
11x11. Counted by channel, because a thread of either level computes one channel after another. The
second number is for borders that cut windows: there, the tuned kernel lets all threads of a block
look at each of these."""


def _thresholds_launch(task: CudaTask, size: int) -> Launch:
    """Return the launch for large masks of bytes: a thread for a strip of a few columns."""
    columns, rows = _THRESHOLD_BLOCK
    strip = _WIDE_STRIP if size >= _WIDE_FROM else _STRIP
    if is_small(task, task.shape[2] * _FULL_CARD):
        strip = _SHORT_STRIP
    # Words of 32 thresholds are combined for the rows of a strip and, two at a time, for those
    # above the first one; counted in the compiled kernel for 13 x 13 to 31 x 31.
    operations = (25 + 1.3 * size) * (1 + size / (2 * strip))
    return Launch(
        kernel="median_tuned",
        defines=task.defines(
            SIZE=size, TUNED=1, THRESHOLDS=1, BLOCK_COLUMNS=columns, BLOCK_ROWS=rows, STRIP=strip
        ),
        block=_THRESHOLD_BLOCK,
        tile=(_STRIP_COLUMNS * columns, strip * rows),
        bytes_per_sample=2.0,
        operations_per_sample=operations,
    )


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    size = int(task.parameters["size"])
    bits = 8 * task.dtype.itemsize
    of_bytes = task.level == TUNED.id and bits == 8 and size >= _THRESHOLDS_FROM
    if of_bytes and not is_small(task, task.shape[2] * _SMALL_THRESHOLDS):
        return _thresholds_launch(task, size)
    if task.level == TUNED.id:
        block, tile, own = (32, 8), (32, 32), dict[str, int]()
        network = _NETWORK_OPERATIONS.get(size)
        if bits == 8 and size > _LARGEST_NETWORK_OF_BYTES:
            network = None
        if network is not None:
            # Samples of 8 or 16 bits are compared two at a time, one far below the other.
            block, steps = (32, 4), 2 if size == 3 else 1
            tile = 4 * block[0], 2 * steps * block[1] * (1 if bits == 32 else 2)
            own = {"STEPS": steps}
        tuned = Launch(
            kernel="median_tuned",
            defines=task.defines(
                SIZE=size, TUNED=1, BLOCK_COLUMNS=block[0], BLOCK_ROWS=block[1], **own
            ),
            block=block,
            tile=tile,
            bytes_per_sample=2.0 * task.dtype.itemsize,
            operations_per_sample=network or 6 * size * bits,
        )
        # Where the border cuts windows, a tile has all of its cells looked at one by one; under
        # `valid` a tile saves nothing, as there is no rim.
        level = GLOBAL if task.border in (Border.REDUCE, Border.VALID) else SHARED
        work = _SMALL_WORK_CUT if task.border is Border.REDUCE else _SMALL_WORK
        least = task.shape[2] * work / (bits * size * size)
        return by_size(task, tuned, plan_cuda, level, least)
    if task.level == SELECTION.id:
        window = size * size * task.dtype.itemsize
        usual = next(block for block in _BLOCKS if math.prod(block) * window <= _WINDOWS)
        launch = level_launch("median", task, size // 2, 4 * size * size, block=usual, SIZE=size)
        return replace(launch, shared_bytes=math.prod(launch.block) * window)
    return level_launch("median", task, size // 2, bits * size * size, block=_BLOCKS[0], SIZE=size)
