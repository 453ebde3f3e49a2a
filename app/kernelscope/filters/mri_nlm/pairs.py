"""Level *parallel* where sigma is one number for a component: every pair of voxels once.

A pair weighs the same for both of its voxels, so half of the offsets do: those to later slices,
and in a slice those to later rows, and to the right in the row. The weights at an offset are
computed for a block of voxels, and added up for these and, moved by the offset, for the others:

    offset 2      voxels     a b c d e f      a is compared with c, b with d, ...
                  weights    p q r s          p counts c for a, and a for c
                  sums of c    p a + r e

Blocks are those of a grid over the whole volume. The sums of a block reach beyond it: into the next
slices, and into rows before and after it, but not across another block. So blocks are computed
like the fields of a chessboard, in four passes: those of a pass share no sums, and threads need not
wait for each other. As grid and passes are the same for any part of a volume, so is the order in
which the weights of a voxel are added up, and the part has the bytes that the whole has there.

Lines are those of `tiles`: the rows of a slice with their margins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Record, Voxels, inlined, kernel
from kernelscope.filters.mri_nlm.model import Model, Reach, settle_mean
from kernelscope.filters.mri_nlm.tiles import fold, square_differences
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two
from kernelscope.schema.filter import CpuPass

_SLICES, _ROWS = 8, 10
"""Fewest slices and rows of a block; each offset needs those of a patch in addition, and the sums
of a block should stay in the level-2 cache."""


class PairLines(NamedTuple):
    """Lines of `add_pairs`, float32; `boxes` has one for each slice of a patch."""

    squares: Any
    folded: Any
    weights: Any
    boxes: Any


class SliceBlock(NamedTuple):
    """A block, or a part of one: its first and its last slice and row, but one, in the output."""

    first: int
    last: int
    top: int
    bottom: int


@kernel
def square(extended: Array, squares: Array, start: Index, stop: Index) -> None:
    """Write the squares of slices `start` to `stop` of all voxels."""
    for c in range(extended.shape[0]):
        for z in range(start, stop):
            for y in range(extended.shape[2]):
                for x in range(extended.shape[3]):
                    squares[c, z, y, x] = extended[c, z, y, x] * extended[c, z, y, x]


@fused
def add_square_differences(own: Line, other: Line, strength: Number, squares: Line) -> None:
    """Add to the results of `square_differences`."""
    for k in range(squares.size):
        difference = own[k] - other[k]
        squares[k] += strength * (difference * difference)


@fused
def weigh_own(distances: Line, values: Line, weights: Line, sums: Line) -> None:
    """Turn distances into weights, and add these, and these times `values`, to sums."""
    for k in range(distances.size):
        weight = power_of_two(distances[k])
        distances[k] = weight
        weights[k] += weight
        sums[k] += weight * values[k]


@fused
def weigh(distances: Line) -> None:
    """Turn distances into weights."""
    for k in range(distances.size):
        distances[k] = power_of_two(distances[k])


@fused
def add_others(own: Line, values: Line, weights: Line, sums: Line) -> None:
    """Add the weights of other voxels, and these times their `values`, to sums."""
    for k in range(own.size):
        weights[k] += own[k]
        sums[k] += own[k] * values[k]


@inlined
def sum_box(
    voxels: Array, corner: Index, shift: Index, line: Record, strengths: Line, scratch: Record
) -> None:
    """Sum squared differences of all components over the rows and columns of a patch.

    `line` has its length, the pitch, the radii of rows and columns, and where in `boxes` to write.
    """
    length, pitch, high, half, slot = line
    squares = scratch.squares[: length + 2 * (high * pitch + half)]
    folded = scratch.folded[: length + 2 * high * pitch]
    own, other = voxels[0, corner:], voxels[0, corner + shift :]
    square_differences(own, other, strengths[0], squares)
    for c in range(1, voxels.shape[0]):
        own, other = voxels[c, corner:], voxels[c, corner + shift :]
        add_square_differences(own, other, strengths[c], squares)
    fold(squares, 1, half, folded)
    fold(folded, pitch, high, scratch.boxes[slot : slot + length])


@kernel
def add_pairs(
    data: Record,
    shape: Record,
    block: Record,
    offset: Record,
    reach: Record,
    phase: Index,
    scratch: Record,
) -> None:
    """Let the voxels of a block and those at an offset from them count for each other.

    - `data`: voxels, the values to average, sums (flat, of each component; the last are the
      weights), and strengths.
    - `shape`: slices of the output, its width, samples of an extended slice and of a row.
    - `phase`: number of the first slice of the output in the volume: the order in which the slices
      of a patch are added up.
    """
    voxels, values, sums, strengths = data
    depth, width, plane, pitch = shape
    deep, high, half = reach.patch
    components = voxels.shape[0]
    shift = offset[0] * plane + offset[1] * pitch + offset[2]
    left = min(0, -offset[2])
    length = (block.bottom - block.top - 1) * pitch + width + abs(offset[2])
    first = (block.top + reach.margin[1]) * pitch + reach.margin[2] + left
    distances = scratch.weights[:length]
    for z in range(block.first - deep, block.last + deep):
        begin = first + (z + reach.margin[0]) * plane
        slot = (phase + z) % (2 * deep + 1) * length
        line = (length, pitch, high, half, slot)
        sum_box(voxels, begin - high * pitch - half, shift, line, strengths, scratch)
        done = z - deep
        if done < block.first:
            continue
        fold(scratch.boxes, length, deep, distances)
        own = begin - deep * plane
        other = own + shift
        if 0 <= done < depth:
            weigh_own(distances, values[0, other:], sums[components, own:], sums[0, own:])
            for c in range(1, components):
                add_weighted(distances, values[c, other:], sums[c, own:])
        else:
            weigh(distances)
        if 0 <= done + offset[0] < depth:
            add_others(distances, values[0, own:], sums[components, other:], sums[0, other:])
            for c in range(1, components):
                add_weighted(distances, values[c, own:], sums[c, other:])


@kernel
def ranges(extent: Index, offset: Index, others_first: Index) -> Any:
    """Return the ranges of a coordinate whose voxels or whose partners have it in the output.

    One or two: the second is empty where they overlap.
    """
    if abs(offset) <= extent:
        return (min(0, -offset), max(extent, extent - offset)), (0, 0)
    if others_first:
        return (-offset, extent - offset), (0, extent)
    return (0, extent), (-offset, extent - offset)


@kernel
def add_block(
    data: Record, output: Record, block: Record, offset: Record, reach: Record, scratch: Record
) -> None:
    """`add_pairs` for those voxels of a block of which one of a pair is in the output.

    `output` has its sides, samples of an extended slice and of a row, and its first slice. Sums of
    a voxel as the second of a pair come first, unless both are in a slice.
    """
    depth, height, width, plane, pitch, phase = output
    later = 1 if offset[0] > 0 else 0
    for slices in ranges(depth, offset[0], 1):
        first, last = max(block.first, slices[0]), min(block.last, slices[1])
        for rows in ranges(height, offset[1], later):
            top, bottom = max(block.top, rows[0]), min(block.bottom, rows[1])
            if first < last and top < bottom:
                part = SliceBlock(first, last, top, bottom)
                shape = (depth, width, plane, pitch)
                add_pairs(data, shape, part, offset, reach, phase, scratch)


@kernel
def nlm_pairs(
    extended: Array,
    values: Array,
    sums: Array,
    strengths: Line,
    reach: Record,
    output: Record,
    blocks: Array,
    size: Record,
    start: Index,
    stop: Index,
) -> None:
    """For blocks `start` to `stop`: half of the offsets.

    - `extended`, `values`, `sums`: float32, shape (components, samples). `sums` has the weights in
      addition.
    - `output`: see `add_block`.
    - `blocks`: int64, shape (blocks, 2). First slice and row of each.
    - `size`: slices and rows of a block.
    """
    pitch = output[4]
    deep, high, half = reach.patch
    search = reach.search
    longest = (size[1] - 1) * pitch + output[2] + search[2]
    scratch = PairLines(
        np.empty(longest + 2 * (high * pitch + half), np.float32),
        np.empty(longest + 2 * high * pitch, np.float32),
        np.empty(longest, np.float32),
        np.empty((2 * deep + 1) * longest, np.float32),
    )
    data = (extended, values, sums, strengths)
    for unit in range(start, stop):
        first, top = blocks[unit]
        block = SliceBlock(first, first + size[0], top, top + size[1])
        for dz in range(search[0] + 1):
            for dy in range(-search[1] if dz else 0, search[1] + 1):
                for dx in range(-search[2] if dz or dy else 1, search[2] + 1):
                    add_block(data, output, block, (dz, dy, dx), reach, scratch)


@kernel
def write_averages(
    values: Array,
    sums: Array,
    sigmas: Line,
    rician: Index,
    margin: Record,
    output: Voxels,
    start: Index,
    stop: Index,
) -> None:
    """Write slices `start` to `stop` of the result; each voxel has weight 1 in its own average."""
    _, height, width, components = output.shape
    for z in range(start, stop):
        for y in range(height):
            for x in range(width):
                place = (z + margin[0], y + margin[1], x + margin[2])
                total = sums[components][place] + np.float32(1)
                for c in range(components):
                    mean = (sums[c][place] + values[c][place]) / total
                    output[z, y, x, c] = settle_mean(mean, sigmas[c], rician)


def blocks_of(
    first: tuple[int, ...], sides: tuple[int, ...], search: tuple[int, ...], size: tuple[int, int]
) -> Iterator[NDArray[np.int64]]:
    """Yield the blocks of each pass, as their first slices and rows in the output.

    Of the grid whose first block is that of voxel 0 of the volume: `first` is where the output
    begins in it. All with a voxel in the output, or with a partner there.
    """
    slices = range((first[0] - search[0]) // size[0], (first[0] + sides[0] - 1) // size[0] + 1)
    last = first[1] + sides[1] + search[1] - 1
    rows = range((first[1] - search[1]) // size[1], last // size[1] + 1)
    for odd_slices in range(2):
        for odd_rows in range(2):
            starts = [
                (k * size[0] - first[0], b * size[1] - first[1])
                for k in slices
                for b in rows
                if (k % 2, b % 2) == (odd_slices, odd_rows)
            ]
            yield np.array(starts, np.int64).reshape(-1, 2)


def plan_pairs(
    extended: NDArray[np.float32],
    output: NDArray[np.float32],
    reach: Reach,
    model: Model,
    first: tuple[int, ...],
) -> Iterator[CpuPass]:
    """Plan the passes after `model.extend`, for an output that begins at `first`."""
    components = len(extended)
    depth, height, width, _ = output.shape
    sides = extended.shape[1:]
    values = extended
    if model.rician:
        values = np.empty_like(extended)
        yield CpuPass(square, (extended, values), sides[0], cost=0)
    sums: NDArray[np.float32] = np.zeros((components + 1, *sides), np.float32)
    sigmas = model.sigmas.ravel()
    # Two to the power of distances are the weights.
    strengths = (-np.log2(np.e) * model.strength / sigmas**2).astype(np.float32)
    size = max(_SLICES, reach.search[0]), max(_ROWS, 2 * reach.search[1])
    place = (depth, height, width, sides[1] * sides[2], sides[2], first[0])
    lines = (each.reshape(len(each), -1) for each in (extended, values, sums))
    arguments = (*lines, strengths, reach, place)
    for blocks in blocks_of(first, (depth, height), reach.search, size):
        if len(blocks):
            yield CpuPass(nlm_pairs, (*arguments, blocks, size), len(blocks), cost=len(blocks))
    means = (values, sums, sigmas, model.rician, reach.margin, output)
    yield CpuPass(write_averages, means, depth, cost=0)
