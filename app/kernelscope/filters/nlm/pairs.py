"""The step that a search of the whole image repeats: all pairs of pixels at one offset.

The squared differences between a rectangle of pixels and their partners at an offset are computed
once and shared by all patches that overlap there. G² is separable, so they are summed down the
columns and then along the row. In one dimension, with uniform patches of 3 and the offset 2:

    samples             5 1 4 2 6 2 3        i is compared with i + 2
    squared differences   1 1 4 0 9          (5-4)² (1-2)² (4-6)² (2-2)² (6-3)²
    distances               6 5 13           sums of three: those of the pixels 1, 2 and 3
    weights                 a b c            2 to the power of scale times these

Each weight counts both ways: ``a`` for pixel 3 in the average of pixel 1, and for pixel 1 in the
average of pixel 3. (No running sums: they would leave their rounding errors behind bright places.
`columns.py` has some where they are exact.)

`add_pairs` goes down the rows. It keeps the squared differences of the last ``patch`` rows in a
ring that holds each row twice, so that the rows of a patch always follow each other in memory:

    slot      0 1 2 0' 1' 2'
    row 2     0 1 2 0  1  2        rows 0, 1, 2 begin at slot 0
    row 3     3 1 2 3  1  2        rows 1, 2, 3 begin at slot 1
    row 4     3 4 2 3  4  2        rows 2, 3, 4 begin at slot 2
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Record, inlined, kernel
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two

VECTOR = 32
"""Samples that rows are rounded up to: a few vector registers, so that no loop has a remainder."""

WIDEST = 512
"""Columns of a tile: the overhead of starting a loop is spread over many samples."""

PITCH = 640
"""Row pitch of the squares: `WIDEST`, the largest search radius and a patch, rounded up.

A compile-time constant, so that LLVM knows that rows do not overlap.
"""


THREE, FIVE, SEVEN, NINE, ELEVEN = ((0,) * side for side in (3, 5, 7, 9, 11))
"""The length of a tuple is known to the compiler."""


class PairTile(NamedTuple):
    """Sums of weighted samples, over the partners of the pixels in a tile and around it.

    The sums have the shape (group + 1, rows, columns and `VECTOR`): weights times samples, and last
    the weights. The first pixel lies at `y` and `x`, in extended coordinates.
    """

    sums: NDArray[np.float32]
    y: int
    x: int


class PairRows(NamedTuple):
    """Rows that `add_pairs` works in, `PITCH` samples each; `squares` has two for each cell."""

    squares: Any
    folded: Any
    weights: Any


@fused
def square_differences(row: Line, other: Line, squares: Line, copies: Line) -> None:
    """Write (row - other)² to two places."""
    for x in range(squares.size):
        difference = row[x] - other[x]
        squares[x] = difference * difference
        copies[x] = difference * difference


@fused
def add_square_differences(row: Line, other: Line, squares: Line, copies: Line) -> None:
    """Add (row - other)² to the results of `square_differences`."""
    for x in range(squares.size):
        difference = row[x] - other[x]
        square = squares[x] + difference * difference
        squares[x] = square
        copies[x] = square


@fused
def fold_cells(cells: Line, pitch: Index, profile: Record, count: Record, folded: Line) -> None:
    """Write the sum of as many cells, `pitch` apart, as `count` has items, weighted."""
    for x in range(folded.size):
        total = np.float32(0)
        for k in range(len(count)):
            total += profile[k] * cells[k * pitch + x]
        folded[x] = total


@inlined
def fold(cells: Line, pitch: Index, profile: Record, side: Index, folded: Line) -> None:
    """Write the sum of `side` cells, `pitch` apart, weighted with `profile`.

    A loop over so many cells for each side that a patch can have: the compiler unrolls it.
    """
    if side == 3:
        fold_cells(cells, pitch, profile, THREE, folded)
    elif side == 5:
        fold_cells(cells, pitch, profile, FIVE, folded)
    elif side == 7:
        fold_cells(cells, pitch, profile, SEVEN, folded)
    elif side == 9:
        fold_cells(cells, pitch, profile, NINE, folded)
    else:
        fold_cells(cells, pitch, profile, ELEVEN, folded)


@fused
def weigh(weights: Line, scale: Number, floor: Number, count: Index) -> None:
    """Turn distances into weights, and those from `count` on into 0."""
    # Not in `fold_columns`: both loops together need too many registers.
    for x in range(weights.size):
        weights[x] = power_of_two(scale * max(weights[x] - floor, np.float32(0)))
    weights[count:] = 0


@kernel
def add_row(weights: Line, total: Line) -> None:
    """Add `weights` to `total`."""
    for x in range(weights.size):
        total[x] += weights[x]


@kernel
def make_scratch(side: Index) -> Any:
    """Return rows for patches of `side`."""
    return PairRows(
        np.zeros(2 * side * PITCH, np.float32),
        np.zeros(PITCH, np.float32),
        np.zeros(PITCH, np.float32),
    )


@kernel
def add_pairs(
    planes: Array,
    pixels: Record,
    offset: Record,
    own: Record,
    others: Record,
    metric: Record,
    scratch: Record,
) -> None:
    """Let the pixels of a rectangle and their partners at an offset count for each other.

    - `planes`: float32, shape (group, rows, columns and at least 2 `VECTOR`). The extended image,
      of which the channels share a distance.
    - `pixels`: Rectangle.
    - `offset`: rows and columns from a pixel to its partner.
    - `own`, `others`: PairTile. Where the averages of the pixels and those of their partners are
      summed up.
    """
    dy, dx = offset
    group, side = planes.shape[0], metric.side
    half = side // 2
    count = -(-pixels.columns // VECTOR) * VECTOR
    wide = -(-(count + 2 * half) // VECTOR) * VECTOR
    folded = scratch.folded[:wide]
    weights = scratch.weights[:count]
    # A few samples each: calls for the parts of a row would take a tenth of the time.
    for row in range(-2 * half, pixels.rows):
        slot = (row + 2 * half) % side * PITCH
        squares = scratch.squares[slot : slot + wide]
        slot += side * PITCH
        copies = scratch.squares[slot : slot + wide]
        y, x = pixels.y + row + half, pixels.x - half
        for c in range(group):
            own_row, partner_row = planes[c, y][x:], planes[c, y + dy][x + dx :]
            if c == 0:
                square_differences(own_row, partner_row, squares, copies)
            else:
                add_square_differences(own_row, partner_row, squares, copies)
        if row < 0:
            continue
        fold(scratch.squares[row % side * PITCH :], PITCH, metric.profile, side, folded)
        fold(folded, 1, metric.profile, side, weights)
        weigh(weights, metric.scale, metric.floor, pixels.columns)
        y, x = pixels.y + row, pixels.x
        sum_y, sum_x = y - own.y, x - own.x
        other_y, other_x = y + dy - others.y, x + dx - others.x
        for c in range(group):
            own_row, partner_row = planes[c, y][x:], planes[c, y + dy][x + dx :]
            add_weighted(weights, partner_row, own.sums[c, sum_y][sum_x:])
            add_weighted(weights, own_row, others.sums[c, other_y][other_x:])
        add_row(weights, own.sums[group, sum_y][sum_x:])
        add_row(weights, others.sums[group, other_y][other_x:])


@kernel
def add_tile(tile: Record, pixels: Record, sums: Record, first: Index, margin: Index) -> None:
    """Add the sums of those `pixels` in a tile to the sums of the result.

    `first` is the first channel of the group, `margin` where the result begins.
    """
    group = tile.sums.shape[0] - 1
    for row in range(pixels.rows):
        for column in range(pixels.columns):
            own_y, own_x = pixels.y - tile.y + row, pixels.x - tile.x + column
            y, x = pixels.y - margin + row, pixels.x - margin + column
            for c in range(group):
                sums.samples[first + c, y, x] += tile.sums[c, own_y, own_x]
            sums.weights[first // group, y, x] += tile.sums[group, own_y, own_x]
