"""Non-local means of volumes on the CPU.

*Extended coordinates* are those of the volume after `extend`, which mirrors it beyond its border
by the filter's margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Record, Voxels, inlined, kernel
from kernelscope.filters.shared.border_kernels import REFLECT, border_index
from kernelscope.filters.shared.mri_sigma import plan_local
from kernelscope.filters.shared.mri_sigma_map import plan_map
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two
from kernelscope.filters.shared.plain import cell, rolled
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.parameters import Radii, RadiiParameter

# The extended volume, the noise and the result of a voxel -------------------------------


class Model(NamedTuple):
    """The noise, and how strongly to remove it."""

    sigmas: NDArray[np.float32]
    """float32, shape (components, depth, height, width) or (components, 1, 1, 1). Standard
    deviation, of each voxel or of all."""
    strength: np.float32
    """Makes squared differences, summed up over a patch, in units of sigma², the contribution of a
    component to D."""
    rician: bool
    local: bool
    """Whether there is a sigma for each voxel."""


@kernel
def extend(source: Voxels, extended: Array, margin: Record, start: Index, stop: Index) -> None:
    """Write slices `start` to `stop` of `extended` (components, slices, rows, columns).

    Its voxel 0 is that of `source` at ``-margin``; so a negative margin leaves out the first ones.
    """
    depth, height, width, components = source.shape
    for slice_ in range(start, stop):
        z = border_index(slice_ - margin[0], depth, REFLECT)
        for row in range(extended.shape[2]):
            y = border_index(row - margin[1], height, REFLECT)
            for column in range(extended.shape[3]):
                x = border_index(column - margin[2], width, REFLECT)
                for c in range(components):
                    extended[c, slice_, row, column] = source[z, y, x, c]


@kernel
def sigma_at(sigmas: Array, c: Index, z: Index, y: Index, x: Index) -> Any:
    """Return the sigma of a component at a voxel, or the only one there is."""
    _, depth, height, width = sigmas.shape
    return sigmas[c, min(z, depth - 1), min(y, height - 1), min(x, width - 1)]


@kernel
def settle_mean(mean: Number, sigma: Number, rician: Flag) -> Any:
    """Return the result for a mean of voxels, or of their squares."""
    return np.sqrt(max(mean - 2 * sigma * sigma, 0)) if rician else mean


class Reach(NamedTuple):
    """Radii along z, y and x; those along z are 0 in 2-D.

    They are of the extended volume beyond the volume, of the search window, and of a patch.
    """

    margin: tuple[int, int, int]
    search: tuple[int, int, int]
    patch: tuple[int, int, int]


def search_and_patch(parameters: Mapping[str, Any]) -> tuple[Radii, Radii]:
    """Return the radii of search windows and patches along x, y and z; in 2-D none along z."""
    search, patch = (
        RadiiParameter.along_axes(parameters[name]) for name in ("search_radius", "patch_radius")
    )
    if parameters["dimensions"] == "3d":
        return search, patch
    return (*search[:2], 0), (*patch[:2], 0)


def reach_of(parameters: Mapping[str, Any]) -> Reach:
    """Return the radii of a filter's search window and patches, and the margin."""
    search, patch = search_and_patch(parameters)
    margin = [s + p for s, p in zip(search, patch, strict=True)]
    if parameters["sigma_from"] == "local":
        # A window's pseudo-residuals need one voxel more on each side; it is a cube.
        margin = [max(*margin, parameters["window_radius"] + 1)] * 3
    x, y, z = margin
    deep = parameters["dimensions"] == "3d"
    return Reach((z * deep, y, x), search[::-1], patch[::-1])


def radius(parameters: Mapping[str, Any]) -> int:
    return reach_of(parameters).margin[0]


# Level *serial*: plain loops over voxels, candidates, components and cells of patches ---


@inlined.plain
def distance(
    samples: Line, here: Index, there: Index, plane: Index, pitch: Index, patch: Record
) -> Any:
    """Return the sum of squared differences of two patches.

    - `samples`: float32, one-dimensional.
    - `here`, `there`: places of the first cells of the patches.
    - `plane`, `pitch`: samples from one slice to the next, and from one row.
    - `patch`: radii along the axes.
    """
    total = 0.0
    for s in range(2 * patch[0] + 1):
        for r in range(2 * patch[1] + 1):
            row = s * plane + r * pitch
            for t in range(2 * patch[2] + 1):
                rolled()
                difference = cell(samples, here + row + t) - cell(samples, there + row + t)
                total += difference * difference
    return total


@kernel.plain
def nlm_serial(
    extended: Array, output: Voxels, reach: Record, model: Record, start: Index, stop: Index
) -> None:
    """Plain loops: for voxels `start` to `stop`, every candidate and every cell of its patch."""
    _, height, width, components = output.shape
    pitch = extended.shape[3]
    plane = extended.shape[2] * pitch
    block = extended.shape[1] * plane
    samples = extended.reshape(extended.size)
    # Patches begin their radii above, before and to the left of their voxel.
    corner = reach.patch[0] * plane + reach.patch[1] * pitch + reach.patch[2]
    strengths = np.empty(components)
    totals = np.empty(components)
    for voxel in range(start, stop):
        z = voxel // (height * width)
        y = voxel // width % height
        x = voxel % width
        zz, yy, xx = z + reach.margin[0], y + reach.margin[1], x + reach.margin[2]
        here = zz * plane + yy * pitch + xx
        for c in range(components):
            # Binary logarithms: Numba's exp has an older, slower interface to the C library.
            sigma = sigma_at(model.sigmas, c, z, y, x)
            strengths[c] = -math.log2(math.e) * model.strength / sigma**2
        totals[:] = 0
        weights = 0.0
        for dz in range(-reach.search[0], reach.search[0] + 1):
            for dy in range(-reach.search[1], reach.search[1] + 1):
                for dx in range(-reach.search[2], reach.search[2] + 1):
                    there = here + dz * plane + dy * pitch + dx
                    apart = strengths[0] * distance(
                        samples, here - corner, there - corner, plane, pitch, reach.patch
                    )
                    for c in range(1, components):
                        first = c * block - corner
                        apart += strengths[c] * distance(
                            samples, first + here, first + there, plane, pitch, reach.patch
                        )
                    weight = np.exp2(apart)
                    weights += weight
                    for c in range(components):
                        rolled()
                        value = cell(samples, c * block + there)
                        totals[c] += weight * (value * value if model.rician else value)
        for c in range(components):
            sigma = sigma_at(model.sigmas, c, z, y, x)
            output[z, y, x, c] = settle_mean(totals[c] / weights, sigma, model.rician)


# Level *parallel* with a sigma for each voxel: tiles -----------------------------------
#
# Offset by offset through a tile, a few rows of a few slices.
#
# The squared differences between the voxels of a tile and those at one offset are computed once
# and summed along x, y and z; each sum is shared by all patches that overlap there. The rows of a
# slice are one long line, margins included, so that every step is a loop over thousands of samples
# without a condition:
#
#     slice    m m a a a a m m          m: margin, a and b: two rows of the tile
#              m m b b b b m m
#     line     a a a a m m m m b b b b  computed from the first voxel of the tile to its last;
#                                       the results for the margins in between are not used
#
# Sigma differs from voxel to voxel and not within a patch: each component keeps separate sums,
# which are divided by sigma² when they are complete. A pair weighs differently for its two voxels,
# so both are computed.


class TileBuffers(NamedTuple):
    """Buffers of `compare`: float32, lines of samples along the last axis, the only one of most.

    - `boxes`: shape (components, samples). Sums along x and y, of as many slices as a patch has.
    - `strengths`: shape (components, slices, samples). Makes squares binary logarithms of weights,
      for each voxel.
    - `sums`: shape (components + 1, slices, samples). Weights times voxels, or their squares, and
      last the weights.
    """

    squares: Any
    folded: Any
    partial: Any
    distances: Any
    boxes: Any
    strengths: Any
    sums: Any


class VolumeTile(NamedTuple):
    """Where a tile lies in the extended volume.

    - `first`: index of its first voxel.
    - `length`: samples of a slice, from its first voxel to its last.
    - `plane`, `pitch`: samples from one extended slice to the next, and from one row.
    - `phase`: number of its first slice in the volume. It decides on the order in which the slices
      of a patch are added up, so that the part of a volume has the bytes that the whole has there.
    """

    first: int
    slices: int
    length: int
    plane: int
    pitch: int
    phase: int


@fused
def square_differences(own: Line, other: Line, strength: Number, squares: Line) -> None:
    """Write `strength` times (own - other)²."""
    for k in range(squares.size):
        difference = own[k] - other[k]
        squares[k] = strength * (difference * difference)


@kernel
def fold(samples: Line, stride: Index, radius: Index, sums: Line) -> None:
    """Write to sums[k] the sum of samples[k], samples[k + stride], ...: ``2 radius + 1``."""
    if radius == 0:
        sums[:] = samples[: sums.size]
        return
    second, third = samples[stride:], samples[2 * stride :]
    for k in range(sums.size):
        sums[k] = samples[k] + second[k] + third[k]
    for more in range(3, 2 * radius + 1, 2):
        second, third = samples[more * stride :], samples[(more + 1) * stride :]
        for k in range(sums.size):
            sums[k] += second[k] + third[k]


@fused
def weigh(distances: Line, weights: Line) -> None:
    """Turn distances, binary logarithms of weights, into weights; add them to `weights`."""
    for k in range(distances.size):
        weight = power_of_two(distances[k])
        distances[k] = weight
        weights[k] += weight


@fused
def add_weighted_squares(weights: Line, samples: Line, sums: Line) -> None:
    """Add `weights` times the squares of `samples` to `sums`."""
    for k in range(weights.size):
        sums[k] += weights[k] * (samples[k] * samples[k])


@inlined
def box_each(
    voxels: Array,
    corner: Index,
    shift: Index,
    tile: Record,
    patch: Record,
    scratch: Record,
    slot: Index,
) -> None:
    """Sum the squares of each component over rows and columns of a patch.

    For the slice whose first cell is at `corner`, into the samples from `slot` on.
    """
    _, high, half = patch
    squares = scratch.squares[: tile.length + 2 * (high * tile.pitch + half)]
    folded = scratch.folded[: tile.length + 2 * high * tile.pitch]
    for c in range(voxels.shape[0]):
        own, other = voxels[c, corner:], voxels[c, corner + shift :]
        square_differences(own, other, np.float32(1), squares)
        fold(squares, 1, half, folded)
        fold(folded, tile.pitch, high, scratch.boxes[c, slot : slot + tile.length])


@inlined
def local_distances(scratch: Record, done: Index, deep: Index, distances: Line) -> None:
    """Add up the sums of all components, each in units of the sigmas of slice `done`."""
    partial = scratch.partial[: distances.size]
    distances[:] = 0
    for c in range(scratch.boxes.shape[0]):
        fold(scratch.boxes[c], distances.size, deep, partial)
        add_weighted(partial, scratch.strengths[c, done], distances)


@kernel
def compare(
    voxels: Array, tile: Record, shift: Index, patch: Record, rician: Flag, scratch: Record
) -> None:
    """Let the voxels of a tile count those at one offset from them.

    - `voxels`: float32, shape (components, samples). The extended volume.
    - `tile`: VolumeTile.
    - `shift`: samples from a voxel to its partner.
    - `patch`: the radii of a patch.
    """
    deep, high, half = patch
    components = voxels.shape[0]
    distances = scratch.distances[: tile.length]
    for z in range(-deep, tile.slices + deep):
        corner = tile.first + z * tile.plane - high * tile.pitch - half
        slot = (tile.phase + z) % (2 * deep + 1) * tile.length
        box_each(voxels, corner, shift, tile, patch, scratch, slot)
        done = z - deep
        if done < 0:
            continue
        local_distances(scratch, done, deep, distances)
        weigh(distances, scratch.sums[components, done])
        candidates = tile.first + done * tile.plane + shift
        for c in range(components):
            if rician:
                add_weighted_squares(distances, voxels[c, candidates:], scratch.sums[c, done])
            else:
                add_weighted(distances, voxels[c, candidates:], scratch.sums[c, done])


@kernel
def make_scratch(
    components: Index, size: Record, longest: Index, pitch: Index, patch: Record
) -> Any:
    """Return buffers for tiles of ``size`` slices and rows, whose lines are up to `longest`."""
    deep, high, half = patch
    return TileBuffers(
        np.empty(longest + 2 * (high * pitch + half), np.float32),
        np.empty(longest + 2 * high * pitch, np.float32),
        np.empty(longest, np.float32),
        np.empty(longest, np.float32),
        np.empty((components, (2 * deep + 1) * longest), np.float32),
        np.zeros((components, size[0], longest), np.float32),
        np.empty((components + 1, size[0], longest), np.float32),
    )


@kernel
def fetch_strengths(
    model: Record, strength: Number, corner: Record, size: Record, pitch: Index, strengths: Array
) -> None:
    """Write `strength` in units of the local sigmas to the lines of a tile.

    `corner` and `size` are its first slice and row, and their numbers.
    """
    for c in range(strengths.shape[0]):
        for z in range(size[0]):
            for y in range(size[1]):
                for x in range(model.sigmas.shape[3]):
                    sigma = model.sigmas[c, corner[0] + z, corner[1] + y, x]
                    strengths[c, z, y * pitch + x] = strength / sigma**2


@kernel
def write_means(
    sums: Array, model: Record, corner: Record, size: Record, pitch: Index, output: Voxels
) -> None:
    """Write the results of a tile; `corner` and `size` as for `fetch_strengths`."""
    _, _, width, components = output.shape
    for z in range(size[0]):
        for y in range(size[1]):
            slice_, row = corner[0] + z, corner[1] + y
            for x in range(width):
                voxel = sums[:, z, y * pitch + x]
                for c in range(components):
                    sigma = sigma_at(model.sigmas, c, slice_, row, x)
                    mean = voxel[c] / voxel[components]
                    output[slice_, row, x, c] = settle_mean(mean, sigma, model.rician)


@kernel
def nlm_tiles(
    extended: Array,
    output: Voxels,
    reach: Record,
    model: Record,
    tile: Record,
    start: Index,
    stop: Index,
) -> None:
    """For tiles `start` to `stop`: every offset, then the averages.

    `tile` has its slices and rows, and the number of the first slice of `output` in the volume.
    """
    depth, height, width, components = output.shape
    pitch = extended.shape[3]
    plane = extended.shape[2] * pitch
    voxels = extended.reshape(components, extended.shape[1] * plane)
    longest = (tile[1] - 1) * pitch + width
    scratch = make_scratch(components, tile, longest, pitch, reach.patch)
    strength = np.float32(-math.log2(math.e)) * model.strength
    across = -(-height // tile[1])
    for unit in range(start, stop):
        corner = (unit // across * tile[0], unit % across * tile[1])
        size = (min(tile[0], depth - corner[0]), min(tile[1], height - corner[1]))
        fetch_strengths(model, strength, corner, size, pitch, scratch.strengths)
        scratch.sums[:] = 0
        first = (corner[0] + reach.margin[0]) * plane + (corner[1] + reach.margin[1]) * pitch
        count = (size[1] - 1) * pitch + width
        place = VolumeTile(
            first + reach.margin[2], size[0], count, plane, pitch, tile[2] + corner[0]
        )
        for dz in range(-reach.search[0], reach.search[0] + 1):
            for dy in range(-reach.search[1], reach.search[1] + 1):
                for dx in range(-reach.search[2], reach.search[2] + 1):
                    shift = dz * plane + dy * pitch + dx
                    compare(voxels, place, shift, reach.patch, model.rician, scratch)
        write_means(scratch.sums, model, corner, size, pitch, output)


# Level *parallel* with one sigma for a component: pairs --------------------------------
#
# Every pair of voxels counts once.
#
# A pair weighs the same for both of its voxels, so half of the offsets do: those to later slices,
# and in a slice those to later rows, and to the right in the row. The weights at an offset are
# computed for a block of voxels, and added up for these and, moved by the offset, for the others:
#
#     offset 2      voxels     a b c d e f      a is compared with c, b with d, ...
#                   weights    p q r s          p counts c for a, and a for c
#                   sums of c    p a + r e
#
# Blocks are those of a grid over the whole volume. The sums of a block reach beyond it: into the
# next slices, and into rows before and after it, but not across another block. So blocks are
# computed like the fields of a chessboard, in four passes: those of a pass share no sums, and
# threads need not wait for each other. As grid and passes are the same for any part of a volume, so
# is the order in which the weights of a voxel are added up, and the part has the bytes that the
# whole has there.
#
# Lines are those of the tiles: the rows of a slice with their margins.


_BLOCK_SLICES, _BLOCK_ROWS = 8, 10
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
def raise_two(distances: Line) -> None:
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
            raise_two(distances)
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
    """Plan the passes after `extend`, for an output that begins at `first`."""
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
    size = max(_BLOCK_SLICES, reach.search[0]), max(_BLOCK_ROWS, 2 * reach.search[1])
    place = (depth, height, width, sides[1] * sides[2], sides[2], first[0])
    lines = (each.reshape(len(each), -1) for each in (extended, values, sums))
    arguments = (*lines, strengths, reach, place)
    for blocks in blocks_of(first, (depth, height), reach.search, size):
        if len(blocks):
            yield CpuPass(nlm_pairs, (*arguments, blocks, size), len(blocks), cost=len(blocks))
    means = (values, sums, sigmas, model.rician, reach.margin, output)
    yield CpuPass(write_averages, means, depth, cost=0)


# The passes of a level -----------------------------------------------------------------

_TILE_SLICES = 8
"""Slices of a tile; each offset needs those of a patch in addition."""

_PLANE = 2048
"""Samples that a tile has of each slice (approximate), so that its buffers fit into the caches."""

_TILE_ROWS = 4
"""Fewest rows of a tile, however long they are."""

_MAP_OFFSETS = 80
"""Cost of the map of local sigmas, in offsets of the search window (approximate)."""


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    reach = reach_of(parameters)
    depth, height, width, components = output.shape
    first = task.part.first if task.part is not None else (0, 0, 0)
    sides = (n + 2 * margin for n, margin in zip(output.shape, reach.margin, strict=False))
    extended: NDArray[np.float32] = np.empty((components, *sides), np.float32)
    before = tuple(margin - start for margin, start in zip(reach.margin, first, strict=True))
    passes = [CpuPass(extend, (source, extended, before), extended.shape[1], cost=0)]
    rician = parameters["noise"] == "rician"
    offsets, cells = (
        math.prod(2 * radius + 1 for radius in radii) for radii in (reach.search, reach.patch)
    )
    if parameters["sigma_from"] == "adaptive":
        sigmas = np.empty((components, depth, height, width), np.float32)
        passes.append(replace(plan_map(parameters["sigma_map"], sigmas, first), cost=0))
    elif parameters["sigma_from"] == "local":
        least = np.array(parameters["sigma"])
        sigmas = np.empty((components, depth, height, width), np.float32)
        sigma_pass = plan_local(extended, sigmas, least, parameters["window_radius"], rician)
        passes.append(replace(sigma_pass, cost=_MAP_OFFSETS / offsets))
    else:
        sigmas = np.array(parameters["sigma"], np.float32).reshape(components, 1, 1, 1)
    local = parameters["sigma_from"] != "given"
    strength = 1 / (2 * parameters["beta"] * components * cells)
    model = Model(sigmas, np.float32(strength), rician, local)
    if task.level == SERIAL.id:
        passes.append(CpuPass(nlm_serial, (extended, output, reach, model), output[..., 0].size))
    elif not local:
        passes.extend(plan_pairs(extended, output, reach, model, first))
    else:
        rows = min(height, max(_TILE_ROWS, _PLANE // extended.shape[3]))
        slices = min(depth, _TILE_SLICES)
        tile = slices, rows, first[0]
        units = -(-depth // slices) * -(-height // rows)
        passes.append(CpuPass(nlm_tiles, (extended, output, reach, model, tile), units))
    return passes
