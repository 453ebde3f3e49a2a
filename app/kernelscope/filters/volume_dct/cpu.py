"""The sliding DCT of volumes on the CPU.

A pass goes through a tile of rows and columns, from one slice of blocks to the next. All of its
loops are along lines of `PITCH` columns, which the compiler turns into vectors; the buffers of a
tile stay in the second-level cache. Level *serial* has the same loops without vectors: `plain` is
None for level *parallel*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Record, inlined, kernel
from kernelscope.filters.shared.plain import no_simd
from kernelscope.filters.shared.volume_noise import (
    copy_slices,
    extend_stabilised,
    noise_model,
    removed_sigma,
    restore,
)
from kernelscope.filters.volume_dct.model import MARGIN, REACH, numbers
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL

PITCH = 64
"""From a line of a tile to the next: the compiler knows it, and sees that no lines overlap."""

COLUMNS, ROWS, SLICES = PITCH - REACH, 16, 32
"""Voxels of a tile; their blocks reach further. Sixteen rows need a megabyte of buffers."""

LINES = ROWS + REACH
"""Rows of blocks of a tile."""

# cos(pi / 8) / sqrt(2), sin(pi / 8) / sqrt(2), and the factor of the mean and of its opposite.
C1 = np.float32(0.65328148)
C3 = np.float32(0.27059805)
HALF = np.float32(0.5)


@inlined
def forward(a: Record) -> Any:
    """Return the coefficients of the orthonormal DCT-II of four samples."""
    s0, s1, d0, d1 = a[0] + a[3], a[1] + a[2], a[0] - a[3], a[1] - a[2]
    return (s0 + s1) * HALF, d0 * C1 + d1 * C3, (s0 - s1) * HALF, d0 * C3 - d1 * C1


@inlined
def backward(b: Record) -> Any:
    """Return the four samples whose `forward` these are."""
    p, q = (b[0] + b[2]) * HALF, (b[0] - b[2]) * HALF
    r, t = b[1] * C1 + b[3] * C3, b[1] * C3 - b[3] * C1
    return p + r, q + t, q - t, p - r


@inlined
def get(numbers: Line, place: Index, step: Index) -> Any:
    """Return four numbers, `step` apart."""
    i, s = np.uintp(place), np.uintp(step)
    return (
        numbers[i],
        numbers[i + s],
        numbers[i + np.uintp(2) * s],
        numbers[i + np.uintp(3) * s],
    )


@inlined
def put(numbers: Line, place: Index, step: Index, values: Any) -> None:
    """Write four numbers, `step` apart."""
    i, s = np.uintp(place), np.uintp(step)
    numbers[i] = values[0]
    numbers[i + s] = values[1]
    numbers[i + np.uintp(2) * s] = values[2]
    numbers[i + np.uintp(3) * s] = values[3]


@kernel
def transform_slice(
    slice_: Array, top: Index, left: Index, work: Line, spectra: Line, slot: Index, plain: Flag
) -> None:
    """Write the DCT along x and y of the 4 x 4 samples at each place of a tile.

    Sixteen lines a row of places, 4 k + q: k along x, q along y; those of row j begin at line
    ``(slot * LINES + j) * 16``. `work` is a padded row, and from there on four lines a row.
    """
    if plain is not None:
        no_simd()
    height, width = slice_.shape
    for row in range(LINES + REACH):
        y = min(top + row, height - 1)
        for x in range(PITCH + REACH):
            work[np.uintp(x)] = slice_[y, min(left + x, width - 1)]
        rows = 2 * PITCH + (row & 3) * 4 * PITCH
        for x in range(PITCH):
            put(work, rows + x, PITCH, forward(get(work, x, 1)))
        j = row - REACH
        if j < 0:
            continue
        for k in range(4):
            first, step = 2 * PITCH + k * PITCH, 4 * PITCH
            to = ((slot * LINES + j) * 16 + 4 * k) * PITCH
            for x in range(PITCH):
                put(
                    spectra,
                    to + x,
                    PITCH,
                    forward(
                        (
                            work[np.uintp(first + (j & 3) * step + x)],
                            work[np.uintp(first + ((j + 1) & 3) * step + x)],
                            work[np.uintp(first + ((j + 2) & 3) * step + x)],
                            work[np.uintp(first + ((j + 3) & 3) * step + x)],
                        )
                    ),
                )


@kernel
def transform_depth(spectra: Line, first: Index, j: Index, block: Line, plain: Flag) -> None:
    """Write the spectra of a row of blocks, whose first slice has slot `first`.

    Line 4 n + q is the frequency q along z of line n of `transform_slice`.
    """
    if plain is not None:
        no_simd()
    step = LINES * 16 * PITCH
    for n in range(16):
        at = (j * 16 + n) * PITCH
        for x in range(PITCH):
            put(
                block,
                4 * n * PITCH + x,
                PITCH,
                forward(
                    (
                        spectra[np.uintp(at + (first & 3) * step + x)],
                        spectra[np.uintp(at + ((first + 1) & 3) * step + x)],
                        spectra[np.uintp(at + ((first + 2) & 3) * step + x)],
                        spectra[np.uintp(at + ((first + 3) & 3) * step + x)],
                    )
                ),
            )


@kernel
def shrink_hard(block: Line, threshold: Number, weights: Line, plain: Flag) -> None:
    """Zero coefficients of up to `threshold`; the weight of a block is 1 / those that are left."""
    if plain is not None:
        no_simd()
    zero, one = np.float32(0), np.float32(1)
    for x in range(PITCH):
        weights[np.uintp(x)] = one
    for line in range(1, 64):
        for x in range(PITCH):
            i = np.uintp(line * PITCH + x)
            kept = abs(block[i]) > threshold
            block[i] = block[i] if kept else zero
            weights[np.uintp(x)] += one if kept else zero
    for x in range(PITCH):
        weights[np.uintp(x)] = np.true_divide(one, weights[np.uintp(x)])


@kernel
def shrink_wiener(block: Line, guide: Line, inverse: Number, weights: Line, plain: Flag) -> None:
    """Multiply coefficients by b² / (b² + sigma²), b those of the guide.

    The weight of a block is 1 / the sum of the squares of these factors.
    """
    if plain is not None:
        no_simd()
    one = np.float32(1)
    for x in range(PITCH):
        weights[np.uintp(x)] = one
    for line in range(1, 64):
        for x in range(PITCH):
            i = np.uintp(line * PITCH + x)
            ratio = guide[i] * inverse
            gain = one - np.true_divide(one, ratio * ratio + one)
            block[i] *= gain
            weights[np.uintp(x)] += gain * gain
    for x in range(PITCH):
        weights[np.uintp(x)] = np.true_divide(one, weights[np.uintp(x)])


@kernel
def add_blocks(block: Line, weights: Line, first: Index, j: Index, sums: Line, plain: Flag) -> None:
    """Add a row of blocks, transformed back along z, to the four slices that they cover.

    `sums` has seventeen lines for each row of places and slice: sixteen of coefficients, and the
    weight. The blocks cover the slices with slots `first` to ``first + 3``.
    """
    if plain is not None:
        no_simd()
    for n in range(16):
        for q in range(4):
            for x in range(PITCH):
                block[np.uintp((4 * n + q) * PITCH + x)] *= weights[np.uintp(x)]
        for x in range(PITCH):
            at = 4 * n * PITCH + x
            put(block, at, PITCH, backward(get(block, at, PITCH)))
        for r in range(4):
            to = ((((first + r) & 3) * LINES + j) * 17 + n) * PITCH
            for x in range(PITCH):
                sums[np.uintp(to + x)] += block[np.uintp((4 * n + r) * PITCH + x)]
    for r in range(4):
        to = ((((first + r) & 3) * LINES + j) * 17 + 16) * PITCH
        for x in range(PITCH):
            sums[np.uintp(to + x)] += weights[np.uintp(x)]


@kernel
def sum_rows(sums: Line, at: Index, j: Index, work: Line, lines: Line, plain: Flag) -> None:
    """Add a row of places, transformed back along y, to the four rows that its blocks cover.

    `lines` has five lines for each row of the result: four of coefficients, and the weight.
    """
    if plain is not None:
        no_simd()
    for x in range(5 * PITCH):
        lines[np.uintp(5 * (j & 3) * PITCH + x)] = np.float32(0)
    for k in range(4):
        for x in range(PITCH):
            put(work, x, PITCH, backward(get(sums, at + 4 * k * PITCH + x, PITCH)))
        for r in range(4):
            to = (5 * ((j - REACH + r) & 3) + k) * PITCH
            for x in range(PITCH):
                lines[np.uintp(to + x)] += work[np.uintp(r * PITCH + x)]
    for r in range(4):
        for x in range(PITCH):
            lines[np.uintp((5 * r + 4) * PITCH + x)] += sums[np.uintp(at + 16 * PITCH + x)]


@kernel
def write_means(
    lines: Line, row: Index, work: Line, output: Line, left: Index, count: Index, plain: Flag
) -> None:
    """Transform a row of the result back along x, and write the means of all blocks."""
    if plain is not None:
        no_simd()
    start = 5 * (row & 3) * PITCH
    for x in range(PITCH):
        put(work, x, PITCH, backward(get(lines, start + x, PITCH)))
    for x in range(count):
        total, weight = np.float32(0), np.float32(0)
        for c in range(4):
            total += work[np.uintp((3 - c) * PITCH + x + c)]
            weight += lines[np.uintp(start + 4 * PITCH + x + c)]
        output[np.uintp(left + x)] = np.true_divide(total, weight)


@kernel
def filter_tiles(
    volume: Array,
    guide: Array,
    output: Array,
    noise: Record,
    wiener: Flag,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Compute the tiles `start` to `stop` of a pass: the mean of all shrunk blocks of each voxel.

    - `volume`, `guide`: float32, shape (components, slices, rows, columns). The noisy volume, which
      begins `REACH` voxels before the guide in the second pass, and there what the first made of
      it.
    - `output`: float32. `REACH` voxels less on each side.
    - `noise`: see `model.numbers`.
    """
    if plain is not None:
        no_simd()
    _, depth, height, width = output.shape
    work = np.empty(18 * PITCH, np.float32)
    spectra = np.empty(4 * LINES * 16 * PITCH, np.float32)
    guides = np.empty(4 * LINES * 16 * PITCH, np.float32)
    block = np.empty(64 * PITCH, np.float32)
    guide_block = np.empty(64 * PITCH, np.float32)
    weights = np.empty(PITCH, np.float32)
    sums = np.zeros(4 * LINES * 17 * PITCH, np.float32)
    lines = np.zeros(20 * PITCH, np.float32)
    shift = REACH if wiener else 0
    deep, tall, wide = -(-depth // SLICES), -(-height // ROWS), -(-width // COLUMNS)
    for unit in range(start, stop):
        c = unit // (deep * tall * wide)
        front = unit // (tall * wide) % deep * SLICES
        top, left = unit // wide % tall * ROWS, unit % wide * COLUMNS
        size = (min(ROWS, height - top), min(COLUMNS, width - left))
        for z in range(front, min(front + SLICES, depth) + REACH):
            # The first blocks need four slices, each further one a new slice.
            for new in range(z if z == front else z + REACH, z + 4):
                noisy = volume[c, new + shift]
                transform_slice(noisy, top + shift, left + shift, work, spectra, new & 3, plain)
                if wiener:
                    transform_slice(guide[c, new], top, left, work, guides, new & 3, plain)
            begin = (z & 3) * LINES * 17 * PITCH
            for x in range(LINES * 17 * PITCH):
                sums[np.uintp(begin + x)] = np.float32(0)
            for j in range(size[0] + REACH):
                transform_depth(spectra, z, j, block, plain)
                if wiener:
                    transform_depth(guides, z, j, guide_block, plain)
                    shrink_wiener(block, guide_block, noise[1], weights, plain)
                else:
                    shrink_hard(block, noise[0], weights, plain)
                add_blocks(block, weights, z - REACH, j, sums, plain)
            done = z - REACH
            if done >= front:
                slice_ = output[c, done]
                for j in range(size[0] + REACH):
                    at = ((done & 3) * LINES + j) * 17 * PITCH
                    sum_rows(sums, at, j, work, lines, plain)
                    y = j - REACH
                    if y >= 0:
                        write_means(lines, y, work, slice_[top + y], left, size[1], plain)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    components = source.shape[3]
    first = task.part.first if task.part is not None else (0, 0, 0)
    plain = True if task.level == SERIAL.id else None
    sides = output.shape[:3]
    if not removed_sigma(parameters):
        return [CpuPass(copy_slices, (source, output, first, plain), sides[0])]

    def made(margin: int) -> Any:
        return np.empty((components, *(n + 2 * margin for n in sides)), np.float32)

    extended, basic, filtered = made(MARGIN), made(REACH), made(0)
    model, noise = noise_model(parameters, components), numbers(parameters)
    before = tuple(MARGIN - start for start in first)

    def units(result: Any) -> int:
        _, depth, height, width = result.shape
        return components * -(-depth // SLICES) * -(-height // ROWS) * -(-width // COLUMNS)

    extending = (source, extended, before, model, plain)
    hard = (extended, extended, basic, noise, False, plain)
    wiener = (extended, basic, filtered, noise, True, plain)
    return [
        CpuPass(extend_stabilised, extending, extended.shape[1], cost=0.2),
        CpuPass(filter_tiles, hard, units(basic)),
        CpuPass(filter_tiles, wiener, units(filtered), cost=1.7),
        CpuPass(restore, (filtered, output, first, model, plain), sides[0], cost=0.1),
    ]
