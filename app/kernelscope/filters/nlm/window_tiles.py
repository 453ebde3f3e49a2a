"""Level *parallel* with a window search: tiles of the result, each with all offsets of its window.

A unit of work is a tile. As every weight counts both ways, half the offsets do: those downwards,
and those to the right within the row. The pairs of a tile are the ones with the pixel or its
partner in it:

    +-----------------+
    | surroundings,   |      p   pixel outside the tile, whose partner
    |   p---+-----+   |          q, dy rows below and dx columns to the right, lies in it:
    |   | `-q     |   |          the pair counts for q, and not for p,
    |   |  tile   |   |          because p has its own tile
    |   +---------+   |
    +-----------------+

A step takes a row of pixels and up to `SHARED` neighbouring offsets, (dy, dx), (dy, dx + 1) and so
on. It makes the weights of all of them, which then count twice: for the pixels in
the row, and for their partners, which lie in one row as well. Six offsets are added up in one sweep
over the row, so that its sums are read and written a sixth as often. The next step takes the same
offsets one row below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernelscope.base.jit import Array, Index, Line, Number, Record, inlined, intrinsic, kernel
from kernelscope.filters.nlm.pairs import (
    ELEVEN,
    FIVE,
    NINE,
    PITCH,
    SEVEN,
    THREE,
    WIDEST,
    Rectangle,
    Sums,
    add_row,
    add_square_differences,
    fold,
    square_differences,
    tile_at,
    weigh,
)
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two
from kernelscope.filters.shared.plain import cell

# The first half of a step: the weights of a row of pixels ------------------------------
#
# The squared differences between pixels and their partners at an offset are shared by all patches
# that overlap there. G² is separable, so they are summed down the columns and then along the row
# (`pairs.py` has an example). The sums down the columns are made in one of two ways:
#
# - *Sliding*, for uniform patches of 8 bits: from row to row, the squares that enter the patches
#   are added and those that leave are subtracted. All sums are integers that a float32 holds, so
#   nothing is rounded; the squares that leave are computed again, which is faster than to keep
#   them.
#
#       squares of a column     4  1  0  9  1        patches of 3
#       its sums                      5  10  10      4 + 1 + 0, + 9 - 4, + 1 - 1
#
# - *Folding*, for all others: the squares of the last rows are kept, and the rows of each patch are
#   weighted and added. Sliding would leave its rounding errors behind bright places.

SHARED = 12
"""Most offsets of a step. Fastest of 5, 8, 11, 12 and 21 on a Zen processor: its lines still fit
into the level-1 cache, two sweeps over six of them add up the samples (`window_tiles.TAPS`)."""

VECTOR = 16  # samples that rows are rounded up to: a vector register of up to 512 bits


def _borrow(context: Any, builder: Any, types: Any, array: Any) -> Any:
    view = context.make_array(types[0])(context, builder, array)
    view.meminfo = view.meminfo.type(None)
    return view._getvalue()


borrowed = intrinsic(_borrow, "first")
"""Return an array without its owner, which has to outlive it.

Numba counts the slices of an array that it owns, with atomic instructions: with several threads
and several slices for each line that took more than a tenth of the time.
"""


class Lines(NamedTuple):
    """Scratch memory of a step: a line of `PITCH` samples for each of its offsets."""

    columns: Any
    """float32, shape (SHARED, PITCH). Sums of squares down the columns of the patches."""
    weights: Any
    """float32, shape (SHARED * PITCH,). Weights of the pairs, 0 where there is none."""
    squares: Any
    """float32, shape (SHARED, 2 * patch * PITCH). The squares of the last rows, each of them twice
    (see `pairs.py`); nothing for sliding."""


@fused
def add_squares(row: Line, other: Line, sums: Line) -> None:
    """Add (row - other)² to `sums`."""
    for x in range(sums.size):
        difference = row[x] - other[x]
        sums[x] += difference * difference


@fused
def slide_squares(row: Line, other: Line, old: Line, old_other: Line, sums: Line) -> None:
    """Add (row - other)² to `sums`, and take (old - old_other)² away."""
    for x in range(sums.size):
        difference, gone = row[x] - other[x], old[x] - old_other[x]
        sums[x] += difference * difference - gone * gone


@fused
def weigh_cells(row: Line, count: Record, scale: Number, floor: Number, weights: Line) -> None:
    """Turn the sum of as many neighbours in `row` as `count` has items into a weight."""
    last = row[len(count) - 1 :]
    for x in range(weights.size):
        # Neighbours first: one sum after the other would have to wait for the last one.
        total = last[x]
        for k in range(len(count) // 2):
            total += row[2 * k + x] + row[2 * k + 1 + x]
        weights[x] = power_of_two(scale * max(total - floor, np.float32(0)))


@inlined
def weigh_sums(row: Line, side: Index, scale: Number, floor: Number, weights: Line) -> None:
    """Turn the sum of `side` neighbours in `row` into a weight; see `pairs.fold`."""
    if side == 3:
        weigh_cells(row, THREE, scale, floor, weights)
    elif side == 5:
        weigh_cells(row, FIVE, scale, floor, weights)
    elif side == 7:
        weigh_cells(row, SEVEN, scale, floor, weights)
    elif side == 9:
        weigh_cells(row, NINE, scale, floor, weights)
    else:
        weigh_cells(row, ELEVEN, scale, floor, weights)


@kernel
def weigh_row(
    planes: Array,
    place: Record,
    count: Index,
    missing: Index,
    metric: Record,
    sliding: Any,
    folding: Any,
    columns: Line,
    squares: Line,
    weights: Line,
) -> None:
    """Take in another row of cells, and write the weights of `count` pixels at one offset.

    - `planes`: float32, shape (group, rows, columns and at least 2 `VECTOR`). The extended image,
      of which the channels share a distance.
    - `place`: row and column of the first cell, and rows and columns from there to its partner.
    - `missing`: how many rows of the patches are still to come: while there are any, no weights are
      written.
    - `sliding`, `folding`: True or None. Which of the two ways to take: that which is None is not
      compiled.
    - `columns`, `squares`: float32. Those of `Lines` for this offset.
    """
    # One function, as each takes its time to compile.
    y, x, dy, dx = place
    side = metric.side
    sums = columns[: -(-(count + side - 1) // VECTOR) * VECTOR]
    line = weights[: -(-count // VECTOR) * VECTOR]
    kept = squares[y % side * PITCH :]
    for c in range(planes.shape[0]):
        row, other = planes[c, y][x:], planes[c, y + dy][x + dx :]
        if folding is not None:
            copies = kept[side * PITCH :][: sums.size]
            if c == 0:
                square_differences(row, other, kept[: sums.size], copies)
            else:
                add_square_differences(row, other, kept[: sums.size], copies)
        if sliding is not None:
            if missing >= 0:
                add_squares(row, other, sums)
            else:
                old, old_other = planes[c, y - side][x:], planes[c, y - side + dy][x + dx :]
                slide_squares(row, other, old, old_other, sums)
    if missing > 0:
        return
    if folding is not None:
        fold(squares[(y + 1) % side * PITCH :], PITCH, metric.profile, side, sums)
        fold(columns, 1, metric.profile, side, line)
        weigh(line, metric.scale, metric.floor, count)
    if sliding is not None:
        weigh_sums(columns, side, metric.scale, metric.floor, line)
        line[count:] = 0


LOWEST, HIGHEST = 32, 128
"""Rows of a tile. A lower one shares fewer weights; with higher ones there are too few tiles."""

OFFSETS = 256  # most offsets in a unit of work, which has to end well within a second

TAPS = 6
"""Offsets that are added up in a sweep. Fastest of 4 to 8; more need too many registers."""


def tile_rows(height: int, across: int, reach: int, cores: int) -> int:
    """Return the rows of a tile: four tiles for each core, if they are not too low or high.

    The result is the same with any.
    """
    return max(min(height * across // (4 * cores), HIGHEST), LOWEST, reach)


@fused
def add_following(weights: Line, row: Line, samples: Line, totals: Line) -> None:
    """Add up for `TAPS` partners of each pixel, each one to the right of the one before.

    `row` begins with the first partner of the first pixel.
    """
    for x in range(samples.size):
        sample, total = samples[x], totals[x]
        for k in range(TAPS):
            weight = weights[k * PITCH + x]
            sample += weight * row[k + x]
            total += weight
        samples[x] = sample
        totals[x] = total


@fused
def add_preceding(weights: Line, row: Line, samples: Line, totals: Line) -> None:
    """Add up for `TAPS` partners of each pixel, each one to the left of the one before.

    `row` begins with the last partner of the first pixel; the weights are found where that pixel
    is the partner.
    """
    for x in range(samples.size):
        sample, total = samples[x], totals[x]
        for k in range(TAPS):
            weight = weights[k * (PITCH - 1) + x]
            sample += weight * cell(row, x + (TAPS - 1 - k))
            total += weight
        samples[x] = sample
        totals[x] = total


@kernel
def add_up(
    planes: Array,
    place: Record,
    count: Index,
    sign: Index,
    weights: Line,
    sums: Record,
    result: Record,
) -> None:
    """Add to the sums of a row of pixels for their partners at `count` offsets.

    - `place`: row of the partners, column of the first pixel, number of pixels, and columns from a
      pixel to its partner at the first offset, times `sign`.
    - `sign`: 1 if the partners lie at the offsets, -1 if the pixels are the partners of theirs.
    - `weights`: float32. Begins with that of the first pixel at the first offset.
    - `result`: first channel, row and column of the first pixel in the result.
    """
    y, x, columns, dx = place
    first, row, column = result
    group = planes.shape[0]
    pitch = PITCH if sign > 0 else PITCH - 1
    total = sums.weights[first // group, row][column:][:columns]
    done = 0
    while done + TAPS <= count:
        lines, own = weights[done * pitch :], sums.samples[first, row][column:][:columns]
        if sign > 0:
            add_following(lines, planes[0, y][x + dx + done :], own, total)
        else:
            add_preceding(lines, planes[0, y][x - dx - done - (TAPS - 1) :], own, total)
        done += TAPS
    for k in range(count):
        line = weights[k * pitch :][:columns]
        if k >= done:
            add_row(line, total)
        for c in range(0 if k >= done else 1, group):
            own = sums.samples[first + c, row][column:]
            add_weighted(line, planes[c, y][x + sign * (dx + k) :], own)


@kernel
def add_offsets(
    planes: Array,
    pixels: Record,
    inside: Record,
    offsets: Record,
    metric: Record,
    sliding: Any,
    folding: Any,
    lines: Record,
    sums: Record,
    begin: Record,
) -> None:
    """Add to the `sums` of the `pixels` of a tile for neighbouring offsets, going down the rows.

    - `inside`: Rectangle. Where candidates lie.
    - `offsets`: rows and columns of the first offset, number of offsets, and the largest distance.
    - `sliding`, `folding`: True or None. See `weigh_row`.
    - `begin`: first channel of the group, and row and column where the result begins.
    """
    dy, dx, count, reach = offsets
    first, margin = begin
    half = metric.side // 2
    top = max(pixels.y - dy, inside.y)
    bottom, end = (
        min(pixels.y + pixels.rows, inside.y + inside.rows - dy),
        inside.x + inside.columns,
    )
    # The caller owns the arrays.
    planes, weights = borrowed(planes), borrowed(lines.weights)
    columns, squares = borrowed(lines.columns), borrowed(lines.squares)
    sums = Sums(borrowed(sums.samples), borrowed(sums.weights))
    columns[:] = 0
    weights[:] = 0
    for y in range(top - 2 * half if top < bottom else bottom, bottom):
        for k in range(dx, dx + count):
            # Pixel or partner is in the tile, and both may be candidates.
            left = max(pixels.x - max(k, 0), inside.x, inside.x - k)
            right = min(pixels.x + pixels.columns - min(k, 0), end, end - k)
            if left < right:
                place = (y + half, left - half, dy, k)
                line = weights[(k - dx) * PITCH + left - pixels.x + reach :]
                own, kept = columns[k - dx], squares[k - dx]
                size, missing = right - left, top - y
                weigh_row(planes, place, size, missing, metric, sliding, folding, own, kept, line)
        # One call for both: the compiler makes a copy of each.
        for sign in range(1, -2, -2):
            row, other = (y, y + dy) if sign > 0 else (y + dy, y)
            if y >= top and pixels.y <= row < pixels.y + pixels.rows:
                place = (other, pixels.x, pixels.columns, dx)
                result = (first, row - margin, pixels.x - margin)
                near = weights[reach if sign > 0 else reach - dx :]
                add_up(planes, place, count, sign, near, sums, result)


@kernel
def nlm_window(
    extended: Array,
    sums: Record,
    metric: Record,
    search: Record,
    tall: Index,
    dys: Record,
    sliding: Any,
    folding: Any,
    start: Index,
    stop: Index,
) -> None:
    """Search windows from one vertical offset of `dys` up to the other, both at least 0.

    A unit is a tile of `tall` rows and a group of channels. For `sliding` and `folding`
    see `weigh_row`.
    """
    colours, height, width = sums.samples.shape
    margin, reach, edge = search
    groups, side = colours // metric.group, metric.side
    inside = Rectangle(edge, edge, height + 2 * (margin - edge), width + 2 * (margin - edge))
    lines = Lines(
        np.zeros((SHARED, PITCH), np.float32),
        np.zeros(SHARED * PITCH, np.float32),
        np.zeros((SHARED, 2 * side * PITCH if sliding is None else 0), np.float32),
    )
    for unit in range(start, stop):
        first = unit % groups * metric.group
        planes = extended[first : first + metric.group]
        pixels = tile_at(unit // groups, (tall, WIDEST), margin, (height, width))
        for dy in range(dys[0], dys[1]):
            for dx in range(-reach if dy else 1, reach + 1, SHARED):
                offsets = (dy, dx, min(SHARED, reach + 1 - dx), reach)
                begin = (first, margin)
                add_offsets(
                    planes, pixels, inside, offsets, metric, sliding, folding, lines, sums, begin
                )
