"""The first half of a step of level *parallel* in a window: the weights of a row of pixels.

The squared differences between pixels and their partners at an offset are shared by all patches
that overlap there. G² is separable, so they are summed down the columns and then along the row
(`pairs.py` has an example). The sums down the columns are made in one of two ways:

- *Sliding*, for uniform patches of 8 bits: from row to row, the squares that enter the patches are
  added and those that leave are subtracted. All sums are integers that a float32 holds, so nothing
  is rounded; the squares that leave are computed again, which is faster than to keep them.

      squares of a column     4  1  0  9  1        patches of 3
      its sums                      5  10  10      4 + 1 + 0, + 9 - 4, + 1 - 1

- *Folding*, for all others: the squares of the last rows are kept, and the rows of each patch are
  weighted and added. Sliding would leave its rounding errors behind bright places.
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
    add_square_differences,
    fold,
    square_differences,
    weigh,
)
from kernelscope.filters.shared.non_local import fused, power_of_two

SHARED = 12
"""Most offsets of a step. Fastest of 5, 8, 11, 12 and 21 on a Zen processor: its lines still fit
into the level-1 cache, two sweeps over six of them add up the samples (`window_tiles.TAPS`)."""

VECTOR = 16
"""Samples that rows are rounded up to: a vector register of up to 512 bits."""


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
    """What a step works in: a line of `PITCH` samples for each of its offsets."""

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
