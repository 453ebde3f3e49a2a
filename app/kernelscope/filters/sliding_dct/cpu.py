"""The sliding DCT on the CPU.

A pass goes down a strip of columns, from one row of blocks to the next. All of its loops are over
columns, which the compiler turns into vectors; rows of sums and of coefficients are used again as
soon as they are finished with. Level *serial* has the same loops without vectors: `plain` is None
for level *parallel*, where the compiler then leaves out what forbids them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelscope.filters.shared.border_kernels import VALID, border_index
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.plain import no_simd
from kernelscope.filters.sliding_dct.model import MARGIN, REACH, noise
from kernelscope.jit import Array, Flag, Index, Line, Number, Plane, Record, inlined, kernel
from kernelscope.spec.filter import CpuPass, CpuTask
from kernelscope.spec.levels import SERIAL
from kernelscope.spec.samples import colour_count

STRIP = 248
"""Columns of the result in a strip: with its blocks' other columns it stays in the cache."""

# cos(k pi / 16) / 2, and the factor of the mean.
C1 = np.float32(0.49039264)
C2 = np.float32(0.46193977)
C3 = np.float32(0.41573481)
C5 = np.float32(0.27778512)
C6 = np.float32(0.19134172)
C7 = np.float32(0.09754516)
C4 = np.float32(0.35355339)

# The rows of the opponent space: (1, 1, 1) / sqrt(3), (1, 0, -1) / sqrt(2), (1, -2, 1) / sqrt(6).
GREY = np.float32(0.57735027)
RED_BLUE = np.float32(0.70710678)
GREEN = np.float32(0.40824829)


@inlined
def forward(
    a0: Number,
    a1: Number,
    a2: Number,
    a3: Number,
    a4: Number,
    a5: Number,
    a6: Number,
    a7: Number,
) -> Any:
    """Return the eight coefficients of the orthonormal DCT-II."""
    s0, s1, s2, s3 = a0 + a7, a1 + a6, a2 + a5, a3 + a4
    d0, d1, d2, d3 = a0 - a7, a1 - a6, a2 - a5, a3 - a4
    p, q, r, t = s0 + s3, s1 + s2, s0 - s3, s1 - s2
    return (
        (p + q) * C4,
        d0 * C1 + d1 * C3 + d2 * C5 + d3 * C7,
        r * C2 + t * C6,
        d0 * C3 - d1 * C7 - d2 * C1 - d3 * C5,
        (p - q) * C4,
        d0 * C5 - d1 * C1 + d2 * C7 + d3 * C3,
        r * C6 - t * C2,
        d0 * C7 - d1 * C5 + d2 * C3 - d3 * C1,
    )


@inlined
def backward(
    b0: Number,
    b1: Number,
    b2: Number,
    b3: Number,
    b4: Number,
    b5: Number,
    b6: Number,
    b7: Number,
) -> Any:
    """Return the eight samples whose `forward` these are."""
    p, q = (b0 + b4) * C4, (b0 - b4) * C4
    r, t = b2 * C2 + b6 * C6, b2 * C6 - b6 * C2
    s0, s1, s2, s3 = p + r, q + t, q - t, p - r
    d0 = b1 * C1 + b3 * C3 + b5 * C5 + b7 * C7
    d1 = b1 * C3 - b3 * C7 - b5 * C1 - b7 * C5
    d2 = b1 * C5 - b3 * C1 + b5 * C7 + b7 * C3
    d3 = b1 * C7 - b3 * C5 + b5 * C3 - b7 * C1
    return s0 + d0, s1 + d1, s2 + d2, s3 + d3, s3 - d3, s2 - d2, s1 - d1, s0 - d0


@kernel
def transform_row(row: Line, out: Array, plain: Flag) -> None:
    """Write the DCT of the eight samples from each place on, shape (8, places)."""
    if plain is not None:
        no_simd()
    for x in range(out.shape[1]):
        (
            out[0, x],
            out[1, x],
            out[2, x],
            out[3, x],
            out[4, x],
            out[5, x],
            out[6, x],
            out[7, x],
        ) = forward(
            row[x],
            row[x + 1],
            row[x + 2],
            row[x + 3],
            row[x + 4],
            row[x + 5],
            row[x + 6],
            row[x + 7],
        )


@kernel
def transform_columns(rows: Array, first: Index, out: Array, plain: Flag) -> None:
    """Write the spectra (8, 8, places) of the blocks whose first row is `first`, along y last.

    `rows` has what `transform_row` wrote, row y at index y modulo 8.
    """
    if plain is not None:
        no_simd()
    for k in range(8):
        r0, r1 = rows[first & 7, k], rows[(first + 1) & 7, k]
        r2, r3 = rows[(first + 2) & 7, k], rows[(first + 3) & 7, k]
        r4, r5 = rows[(first + 4) & 7, k], rows[(first + 5) & 7, k]
        r6, r7 = rows[(first + 6) & 7, k], rows[(first + 7) & 7, k]
        block = out[k]
        for x in range(out.shape[2]):
            (
                block[0, x],
                block[1, x],
                block[2, x],
                block[3, x],
                block[4, x],
                block[5, x],
                block[6, x],
                block[7, x],
            ) = forward(r0[x], r1[x], r2[x], r3[x], r4[x], r5[x], r6[x], r7[x])


@kernel
def shrink_hard(spectra: Array, threshold: Number, weights: Line, plain: Flag) -> None:
    """Zero coefficients of up to `threshold`; the weight of a block is 1 / those that are left."""
    if plain is not None:
        no_simd()
    zero, one = np.float32(0), np.float32(1)
    weights[:] = zero
    for k in range(8):
        for q in range(8):
            line = spectra[k, q]
            if k == 0 and q == 0:
                for x in range(line.size):
                    weights[x] += one
            else:
                for x in range(line.size):
                    kept = abs(line[x]) > threshold
                    line[x] = line[x] if kept else zero
                    weights[x] += one if kept else zero
    for x in range(weights.size):
        weights[x] = np.true_divide(one, weights[x])


@kernel
def shrink_wiener(
    spectra: Array, guides: Array, inverse: Number, weights: Line, plain: Flag
) -> None:
    """Multiply coefficients by b² / (b² + sigma²), b those of the guide.

    The weight of a block is 1 / the sum of the squares of these factors.
    """
    if plain is not None:
        no_simd()
    one = np.float32(1)
    weights[:] = np.float32(0)
    for k in range(8):
        for q in range(8):
            line, guide = spectra[k, q], guides[k, q]
            if k == 0 and q == 0:
                for x in range(line.size):
                    weights[x] += one
            else:
                for x in range(line.size):
                    ratio = guide[x] * inverse
                    gain = one - np.true_divide(one, ratio * ratio + one)
                    line[x] *= gain
                    weights[x] += gain * gain
    for x in range(weights.size):
        weights[x] = np.true_divide(one, weights[x])


@kernel
def add_blocks(spectra: Array, weights: Line, sums: Array, first: Index, plain: Flag) -> None:
    """Add the blocks, transformed back along y, to the rows that they cover.

    `sums` has 8 coefficients along x and the weight of each place: shape (8, 9, places), row y of
    the result at index y modulo 8. Block `first` covers the rows up to `first` of the result.
    """
    if plain is not None:
        no_simd()
    sums[first & 7] = np.float32(0)
    for k in range(8):
        block = spectra[k]
        h0, h1 = sums[(first - 7) & 7, k], sums[(first - 6) & 7, k]
        h2, h3 = sums[(first - 5) & 7, k], sums[(first - 4) & 7, k]
        h4, h5 = sums[(first - 3) & 7, k], sums[(first - 2) & 7, k]
        h6, h7 = sums[(first - 1) & 7, k], sums[first & 7, k]
        for x in range(weights.size):
            w = weights[x]
            v0, v1, v2, v3, v4, v5, v6, v7 = backward(
                block[0, x] * w,
                block[1, x] * w,
                block[2, x] * w,
                block[3, x] * w,
                block[4, x] * w,
                block[5, x] * w,
                block[6, x] * w,
                block[7, x] * w,
            )
            h0[x] += v0
            h1[x] += v1
            h2[x] += v2
            h3[x] += v3
            h4[x] += v4
            h5[x] += v5
            h6[x] += v6
            h7[x] += v7
    for r in range(8):
        line = sums[r, 8]
        for x in range(weights.size):
            line[x] += weights[x]


@kernel
def write_means(sums: Array, lines: Array, row: Line, plain: Flag) -> None:
    """Transform a row of `sums` (9, places) back along x, and write the means of all blocks."""
    if plain is not None:
        no_simd()
    for x in range(sums.shape[1]):
        (
            lines[0, x],
            lines[1, x],
            lines[2, x],
            lines[3, x],
            lines[4, x],
            lines[5, x],
            lines[6, x],
            lines[7, x],
        ) = backward(
            sums[0, x],
            sums[1, x],
            sums[2, x],
            sums[3, x],
            sums[4, x],
            sums[5, x],
            sums[6, x],
            sums[7, x],
        )
    weights = sums[8]
    for x in range(row.size):
        total, weight = np.float32(0), np.float32(0)
        for c in range(8):
            total += lines[7 - c, x + c]
            weight += weights[x + c]
        row[x] = np.true_divide(total, weight)


@kernel
def filter_planes(
    picture: Array,
    guide: Array,
    output: Array,
    noise: Line,
    wiener: Flag,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Compute the rows `start` to `stop` of a pass: the mean of all shrunk blocks of each pixel.

    Parameters
    ----------
    picture, guide : ndarray of float32, shape (planes, rows, columns)
        The noisy picture, and for the second pass what the first made of it.
    output : ndarray of float32
        Seven rows and columns less on each side.
    noise : ndarray
        See `model.noise`.
    """
    if plain is not None:
        no_simd()
    planes, _, width = output.shape
    places = min(STRIP, width) + REACH
    rows = np.empty((8, 8, places), np.float32)
    guide_rows = np.empty((8, 8, places if wiener else 1), np.float32)
    spectra = np.empty((8, 8, places), np.float32)
    guides = np.empty((8, 8, places if wiener else 1), np.float32)
    weights = np.empty(places, np.float32)
    sums = np.zeros((8, 9, places), np.float32)
    lines = np.empty((8, places), np.float32)
    for plane in range(planes):
        for left in range(0, width, STRIP):
            count = min(STRIP, width - left)
            n = count + REACH
            for y in range(start, stop + REACH):
                # The first row of blocks needs eight rows, each other one a new row.
                for row in range(start if y == start else y + 7, y + 8):
                    transform_row(picture[plane, row, left:], rows[row & 7, :, :n], plain)
                    if wiener:
                        transform_row(guide[plane, row, left:], guide_rows[row & 7, :, :n], plain)
                transform_columns(rows[:, :, :n], y, spectra[:, :, :n], plain)
                if wiener:
                    transform_columns(guide_rows[:, :, :n], y, guides[:, :, :n], plain)
                    shrink_wiener(spectra[:, :, :n], guides[:, :, :n], noise[1], weights[:n], plain)
                else:
                    shrink_hard(spectra[:, :, :n], noise[0], weights[:n], plain)
                add_blocks(spectra[:, :, :n], weights[:n], sums[:, :, :n], y, plain)
                done = y - REACH
                if done >= start:
                    row = output[plane, done, left : left + count]
                    write_means(sums[done & 7, :, :n], lines[:, :n], row, plain)


@kernel
def extend(
    source: Plane, planes: Array, border: Index, plain: Flag, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of the picture with its border, colours as opponents."""
    if plain is not None:
        no_simd()
    height, width, _ = source.shape
    shift = 0 if border == VALID else MARGIN
    colours = planes.shape[0]
    pixel = np.zeros(3, np.float32)
    for row in range(start, stop):
        y = border_index(row - shift, height, border)
        for column in range(planes.shape[2]):
            x = border_index(column - shift, width, border)
            for c in range(colours):
                pixel[c] = source[y, x, c] if y >= 0 and x >= 0 else 0
            if colours == 3:
                red, green, blue = pixel[0], pixel[1], pixel[2]
                planes[0, row, column] = (red + green + blue) * GREY
                planes[1, row, column] = (red - blue) * RED_BLUE
                planes[2, row, column] = ((red + blue) - (green + green)) * GREEN
            else:
                planes[0, row, column] = pixel[0]


@kernel
def finish_rows(
    planes: Array, output: Plane, finish: Record, plain: Flag, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of the result, opponents as colours."""
    if plain is not None:
        no_simd()
    for y in range(start, stop):
        for x in range(output.shape[1]):
            if planes.shape[0] == 3:
                grey = planes[0, y, x] * GREY
                across = planes[1, y, x] * RED_BLUE
                green = planes[2, y, x] * GREEN
                output[y, x, 0] = settle(grey + across + green, finish)
                output[y, x, 1] = settle(grey - (green + green), finish)
                output[y, x, 2] = settle(grey - across + green, finish)
            else:
                output[y, x, 0] = settle(planes[0, y, x], finish)


@kernel
def copy_rows(
    source: Plane, output: Plane, shift: Index, plain: Flag, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of the source itself: there is no noise."""
    if plain is not None:
        no_simd()
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(output.shape[2]):
                output[y, x, c] = source[y + shift, x + shift, c]


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output = task.source, task.output
    height, width, channels = output.shape
    numbers = noise(source.dtype, task.parameters)
    plain = True if task.level == SERIAL.id else None
    shift = MARGIN if task.border.code == VALID else 0
    if not numbers[0]:
        return [CpuPass(copy_rows, (source, output, shift, plain), height)]

    def planes(margin: int) -> Any:
        shape = (colour_count(channels), height + 2 * margin, width + 2 * margin)
        return np.empty(shape, np.float32)

    picture, first, second = planes(MARGIN), planes(REACH), planes(0)
    inner = picture[:, REACH:-REACH, REACH:-REACH]
    finish = Finish.of(source.dtype, np.float32)
    return [
        CpuPass(extend, (source, picture, task.border.code, plain), picture.shape[1], cost=0),
        CpuPass(filter_planes, (picture, picture, first, numbers, False, plain), first.shape[1]),
        CpuPass(filter_planes, (inner, first, second, numbers, True, plain), height, cost=1.7),
        CpuPass(finish_rows, (second, output, finish, plain), height, cost=0),
    ]
