"""Level *parallel* with a sigma for each voxel: offset by offset through a tile, a few rows of a
few slices.

The squared differences between the voxels of a tile and those at one offset are computed once and
summed along x, y and z; each sum is shared by all patches that overlap there. The rows of a slice
are one long line, margins included, so that every step is a loop over thousands of samples without
a condition:

    slice    m m a a a a m m          m: margin, a and b: two rows of the tile
             m m b b b b m m
    line     a a a a m m m m b b b b  computed from the first voxel of the tile to its last;
                                      the results for the margins in between are not used

Sigma differs from voxel to voxel and not within a patch: each component keeps separate sums, which
are divided by sigma² when they are complete. A pair weighs differently for its two voxels, so both
are computed; `pairs` is for one sigma.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Record, Voxels, inlined, kernel
from kernelscope.filters.mri_nlm.model import settle_mean, sigma_at
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two


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
