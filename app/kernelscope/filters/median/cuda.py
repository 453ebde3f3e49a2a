"""The median on the GPU: the launches of ``median.cu``.

Up to level *texture*, a thread searches for its median bit by bit, from the highest bit down: it
counts how many cells of its window lie below the value found so far with the next bit set, and
keeps the bit unless more than half do. *Tuned* runs a network of minima and maxima for masks up to
13 x 13 or 15 x 15, of which neighbours share parts up to 11 x 11, and for larger ones searches bit
planes. Larger masks of bytes count with 32 thresholds at once, unless the picture is small.

Masks that are no squares are searched bit by bit at all levels but *selection*; a thread of *tuned*
does that for four pixels at a time.
"""

from __future__ import annotations

import math
from dataclasses import replace

from kernelscope.filters.shared.footprints import Table, footprint_launch, is_full, masked, table_of
from kernelscope.filters.shared.rows_cuda import QUAD, rows_launch
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, by_size, is_small, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level

SELECTION = Level(
    "selection",
    "Selection",
    "Each thread copies its window to shared memory and selects the middle value there (Hoare).",
    why="Selection moves cells by numbers known only at run time, which registers cannot do; "
    "shared memory can. The windows of all threads take so much of it that few blocks fit on a "
    "multiprocessor.",
    source="Source F, chapter 5.",
)
LEVELS = (SINGLE_BLOCK, GLOBAL, SELECTION, CONSTANT, SHARED, TEXTURE, TUNED)

_WINDOWS = 48 * 1024  # bytes of shared memory for the windows of a block, which every GPU has

_BLOCKS = ((32, 4), (32, 2), (32, 1), (16, 1), (8, 1))
"""Blocks, largest first. Threads that keep a window of 9 x 9 in registers fill a multiprocessor
better in small blocks; at level *selection* the windows of a block have to fit into shared memory.
"""

_NETWORK_OPERATIONS = {3: 17, 5: 53, 7: 109, 9: 183, 11: 276, 13: 600, 15: 824}
"""Minima and maxima for each sample at level *tuned*; larger masks are searched bit by bit."""

_LARGEST_NETWORK_OF_BYTES = 13
"""A larger network has no room in registers, which pays off only for samples of more bits."""

_THRESHOLDS_FROM = 13  # the smallest mask of bytes that is counted with thresholds

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

_COLUMNS_FROM, _COLUMNS_UP_TO = 5, 11
"""The masks for which neighbouring threads share sorted columns: macros of the same names."""

_ALWAYS_UP_TO = 9  # the largest of them for which small pictures were measured
_COLUMNS_THREADS = 128  # of a block that shares columns, four to a thread

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


_ROWS_OPERATIONS, _WIDE_ROWS_OPERATIONS = 15.5, 13.0
"""Minima, maxima, byte moves and additions for each byte of a 3x3 mask that goes down the rows, and
the same where a thread has several words, two of which share the columns between them."""

_ROWS_AT_ONCE = 2  # rows of a thread in small pictures, of which all cells are read at once
_SMALL_ROWS = 2**20  # bytes of a grey picture from which on going down the rows is faster

_WIDE_ROWS = (2**27, 4, 24, 1), (2**25, 4, 12, 1), (2**25, 2, 12, 2), (2**23, 2, 8, 2)
"""Bytes of a grey picture from which on a thread goes down several words of four; how many words,
rows, and rows that are on their way. The first that fits is taken. On an H100 one word takes 0.83
of the time of two at 2048x2048, two take 0.90 of the time of four at 4096x4096, and four 0.97 of
that of two at 8192x8192, 0.94 at 16384x16384."""

_SMALL_STEPS, _LARGE_STEPS = 2**20, 2**25
"""Samples from which on threads that share columns of 5x5 compute two patches, one below another,
and four of grey bytes: these take 0.98 of the time at 16384x16384 on an H100, 1.04 at 4096x4096."""


def _steps(task: CudaTask, size: int) -> int:
    """Return how many patches a thread computes, one below another."""
    if size > _COLUMNS_FROM or (size == _COLUMNS_FROM and is_small(task, _SMALL_STEPS)):
        return 1
    grey_bytes = task.dtype.itemsize == 1 and task.shape[2] == 1
    return 4 if size == _COLUMNS_FROM and grey_bytes and not is_small(task, _LARGE_STEPS) else 2


def _wide_rows_launch(task: CudaTask, size: int) -> Launch | None:
    """Return the launch for grey bytes, several words a thread, or None if it is small."""
    for least, wide, rows, ahead in _WIDE_ROWS:
        if task.shape[1] % (wide * QUAD) == 0 and not is_small(task, least):
            launch = rows_launch(
                "median",
                task,
                size,
                _WIDE_ROWS_OPERATIONS,
                SIZE=size,
                GREY_BYTES=1,
                WIDE=wide,
                ROWS_AHEAD=ahead,
            )
            return replace(launch, tile=(wide * QUAD * launch.block[0], rows))
    return None


def _rows_launch(task: CudaTask, size: int) -> Launch:
    """Return the launch for grey bytes, in whole words of four."""
    if not is_small(task, _SMALL_ROWS):
        return _wide_rows_launch(task, size) or rows_launch(
            "median", task, size, _ROWS_OPERATIONS, SIZE=size, GREY_BYTES=1
        )
    launch = rows_launch(
        "median",
        task,
        size,
        _ROWS_OPERATIONS,
        SIZE=size,
        GREY_BYTES=1,
        ROWS_AT_ONCE=_ROWS_AT_ONCE,
    )
    return replace(launch, tile=(QUAD * launch.block[0], _ROWS_AT_ONCE))


def _is_of_grey_byte_quads(task: CudaTask) -> bool:
    """Return whether rows consist of whole words of four grey bytes."""
    return task.dtype.itemsize == 1 and task.shape[2] == 1 and task.shape[1] % QUAD == 0


def _columns_block(size: int, bits: int, steps: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the threads and the pixels of a block whose threads share sorted columns.

    Those at its ends only sort for others: one at the left, at the right as many as it takes to
    hold the columns of a patch of four windows, the first of which belongs to the left one.
    """
    left, first_own = 1, 1 if size == _COLUMNS_FROM else 3
    right = (size + 2 - first_own) // 4
    columns = 4 * (_COLUMNS_THREADS - left - right)
    return (_COLUMNS_THREADS, 1), (columns, 2 * steps * (1 if bits == 32 else 2))


def _masked_launch(task: CudaTask, table: Table) -> Launch:
    """Return the launch for a mask that is no square, or that lies in constant memory."""
    bits, cells = 8 * task.dtype.itemsize, int(table.sum())
    if task.level != SELECTION.id:
        block = (32, 8) if task.level == TUNED.id else _BLOCKS[0]
        launch = footprint_launch(
            "median", task, table, bits * cells, block=block, FULL=int(is_full(table))
        )
        return masked(launch, task)
    window = cells * task.dtype.itemsize
    usual = next(block for block in _BLOCKS if math.prod(block) * window <= _WINDOWS)
    launch = masked(footprint_launch("median", task, table, 4 * cells, block=usual), task)
    return replace(launch, shared_bytes=math.prod(launch.block) * window)


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    table = table_of(task.parameters)
    if not is_full(table) or task.level == CONSTANT.id:
        return _masked_launch(task, table)
    size = len(table)
    bits = 8 * task.dtype.itemsize
    of_bytes = task.level == TUNED.id and bits == 8 and size >= _THRESHOLDS_FROM
    if of_bytes and not is_small(task, task.shape[2] * _SMALL_THRESHOLDS):
        return _thresholds_launch(task, size)
    if task.level == TUNED.id and size == 3 and _is_of_grey_byte_quads(task):
        return _rows_launch(task, size)
    if task.level == TUNED.id:
        block, tile, own = (32, 8), (32, 32), dict[str, int]()
        network = _NETWORK_OPERATIONS.get(size)
        if bits == 8 and size > _LARGEST_NETWORK_OF_BYTES:
            network = None
        steps = _steps(task, size)
        if _COLUMNS_FROM <= size <= _COLUMNS_UP_TO:
            block, tile = _columns_block(size, bits, steps)
            own = {"STEPS": steps}
        elif network is not None:
            # Samples of 8 or 16 bits are compared two at a time, one far below the other.
            block = 32, 4
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
        if _COLUMNS_FROM <= size <= _ALWAYS_UP_TO and task.border is not Border.REDUCE:
            return tuned  # quicker from 128x128 on, on an H100; less takes no less time
        work = _SMALL_WORK_CUT if task.border is Border.REDUCE else _SMALL_WORK
        least = task.shape[2] * work / (bits * size * size)
        return by_size(task, tuned, plan_cuda, level, least)
    if task.level == SELECTION.id:
        window = size * size * task.dtype.itemsize
        usual = next(block for block in _BLOCKS if math.prod(block) * window <= _WINDOWS)
        launch = level_launch("median", task, size // 2, 4 * size * size, block=usual, SIZE=size)
        return replace(launch, shared_bytes=math.prod(launch.block) * window)
    return level_launch("median", task, size // 2, bits * size * size, block=_BLOCKS[0], SIZE=size)
