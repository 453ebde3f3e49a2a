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
`window_tiles` has some where they are exact.)

`add_pairs` goes down the rows. It keeps the squared differences of the last ``patch`` rows in a
ring that holds each row twice, so that the rows of a patch always follow each other in memory:

    slot      0 1 2 0' 1' 2'
    row 2     0 1 2 0  1  2        rows 0, 1, 2 begin at slot 0
    row 3     3 1 2 3  1  2        rows 1, 2, 3 begin at slot 1
    row 4     3 4 2 3  4  2        rows 2, 3, 4 begin at slot 2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared.border_kernels import REDUCE, REFLECT, VALID, border_index
from kernelscope.filters.shared.correlation import settle
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two

LONGEST = 11
"""Largest side of a patch. Tuples of profiles are as long, so that the code is one for all."""


class PatchMetric(NamedTuple):
    """How patches are compared."""

    group: int  # channels that share a distance: all of them, or one
    profile: Any
    """float32, shape (patch,). See `patch_profile`; at level *parallel* a tuple of `LONGEST`."""
    side: int  # of a patch
    scale: np.float32  # makes a distance, in squared samples, the binary logarithm of its weight
    floor: np.float32  # subtracted from distances first, down to 0


class Sums(NamedTuple):
    """Sums over the candidates of each pixel of the result, in float32."""

    samples: NDArray[np.float32]
    """Shape (colours, height', width'). Weights times samples."""
    weights: NDArray[np.float32]  # shape (colours / group, height', width')


@kernel
def extend(
    source: Plane, extended: Array, margin: Index, border: Index, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of `extended` (channels, rows, columns and more), float32."""
    height, width, _ = source.shape
    shift = 0 if border == VALID else margin
    # `reduce` leaves out candidates; cells of patches are reflected.
    border = REFLECT if border == REDUCE else border
    for row in range(start, stop):
        y = border_index(row - shift, height, border)
        for column in range(width + 2 * shift):
            x = border_index(column - shift, width, border)
            for c in range(extended.shape[0]):
                extended[c, row, column] = source[y, x, c] if y >= 0 and x >= 0 else 0


@kernel
def count_itself(extended: Array, sums: Record, margin: Index, start: Index, stop: Index) -> None:
    """Begin the sums of rows `start` to `stop`: every pixel has weight 1 in its own average."""
    colours, _, width = sums.samples.shape
    for y in range(start, stop):
        sums.weights[:, y] = 1
        for c in range(colours):
            for x in range(width):
                sums.samples[c, y, x] = extended[c, y + margin, x + margin]


@kernel
def divide_sums(sums: Record, output: Plane, finish: Record, start: Index, stop: Index) -> None:
    colours, _, width = sums.samples.shape
    group = colours // sums.weights.shape[0]
    for y in range(start, stop):
        for x in range(width):
            for c in range(colours):
                mean = np.true_divide(sums.samples[c, y, x], sums.weights[c // group, y, x])
                output[y, x, c] = settle(mean, finish)


# The candidates, and the rectangles in which they are gone through ----------------------
#
# *Extended coordinates* are those of the image after `extend`, which widens it by the filter's
# radius on each side; for ``valid`` it is the source itself. For a window search of radius 2 with
# patches of 3x3, the radius is 3:
#
#     +-----------------------+
#     | extended image        |   margin   3: row and column of the first pixel of the result
#     |   +---------------+   |   reach    2: how far a candidate may lie from its pixel
#     |   | result        |   |   edge     1: candidates keep this distance from the edge, so that
#     |   |               |   |               their patches fit
#     |   +---------------+   |
#     +-----------------------+


class PatchSearch(NamedTuple):
    """Where candidates lie, in extended coordinates."""

    margin: int  # row and column of the first pixel of the result
    reach: int  # largest distance from the pixel along an axis
    edge: int  # no candidate is closer than this to the edge of the extended image


class Rectangle(NamedTuple):
    """Some pixels, in extended coordinates; empty where it has no rows or no columns."""

    y: int
    x: int
    rows: int
    columns: int


@kernel
def tile_at(number: Index, size: Record, margin: Index, shape: Record) -> Any:
    """Return the tile of that number, row by row, of tiles of up to `size` rows and columns.

    `shape` is that of the result, and `margin` where it begins.
    """
    across = -(-shape[1] // size[1])
    y, x = number // across * size[0], number % across * size[1]
    return Rectangle(y + margin, x + margin, min(size[0], shape[0] - y), min(size[1], shape[1] - x))


@kernel
def with_partners_in(pixels: Record, others: Record, dy: Index, dx: Index) -> Any:
    """Return those of `pixels` whose partners, `dy` rows and `dx` columns on, lie in `others`."""
    y, x = max(pixels.y, others.y - dy), max(pixels.x, others.x - dx)
    bottom = min(pixels.y + pixels.rows, others.y + others.rows - dy)
    right = min(pixels.x + pixels.columns, others.x + others.columns - dx)
    return Rectangle(y, x, bottom - y, right - x)


def whole(parameters: Mapping[str, Any]) -> bool:
    """Return whether candidates are all pixels of the image."""
    return bool(parameters["search"] == "image")


def radius(parameters: Mapping[str, Any]) -> int:
    half = int(parameters["patch"]) // 2
    return half if whole(parameters) else half + int(parameters["search_radius"])


VECTOR = 32
"""Samples that rows are rounded up to: a few vector registers, so that no loop has a remainder."""

WIDEST = 512  # columns of a tile: the overhead of starting a loop is spread over many samples

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

    A loop over this many cells for each side that a patch can have: the compiler unrolls it.
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
