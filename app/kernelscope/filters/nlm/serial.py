"""Level *serial* of non-local means: plain loops over pixels, candidates and cells.

For each pixel i and each candidate j, the patches around both are compared cell by cell. With
patches of 3x3, uniform weights and one channel, for example:

    around i   1 2 3     around j   1 2 5     squares   0 0 4
               4 5 6                4 5 6               0 0 0     D = 4 + 1 = 5
               7 8 9                7 9 9               0 1 0

j then has the weight exp(-5 / filter_sigma), for samples where white is 1, in the average for i.
A window of (2 r + 1)² candidates with patches of g² cells takes (2 r + 1)² g² comparisons a pixel;
for that level *parallel* finds shorter ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Index, Line, Record, inlined, kernel
from kernelscope.filters.shared.plain import cell, no_simd, rolled


@inlined
def distance(
    samples: Line,
    here: Index,
    there: Index,
    plane: Index,
    pitch: Index,
    group: Index,
    squares: Array,
) -> Any:
    """Return the sum of G² times squared differences of two patches of `group` channels.

    - `samples`: float32, one-dimensional.
    - `here`, `there`: places of the first cells of the patches.
    - `plane`, `pitch`: samples from one channel to the next, and from one row.
    - `squares`: float32, shape (patch, patch). G².
    """
    no_simd()
    side = squares.shape[0]
    total = np.float32(0)
    for c in range(group):
        for s in range(side):
            row = c * plane + s * pitch
            for t in range(side):
                rolled()
                difference = cell(samples, here + row + t) - cell(samples, there + row + t)
                total += squares[s, t] * difference * difference
    return total


@kernel
def nlm_serial(
    extended: Array,
    sums: Record,
    metric: Record,
    search: Record,
    rows: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for pixels `start` to `stop`, every candidate and every cell of its patch.

    The candidates are those in extended rows from one of `rows` up to the other.
    """
    no_simd()
    colours, height, width = sums.samples.shape
    margin, reach, edge = search
    pitch = extended.shape[2]
    plane = extended.shape[1] * pitch
    samples = extended.reshape(extended.size)
    side = metric.profile.size
    half = side // 2
    squares = np.empty((side, side), np.float32)
    for s in range(side):
        for t in range(side):
            squares[s, t] = metric.profile[s] * metric.profile[t]
    totals = np.empty(metric.group)
    for pixel in range(start, stop):
        y = pixel // width + margin
        x = pixel % width + margin
        top = max(rows[0], edge, y - reach)
        bottom = min(rows[1], height + 2 * margin - edge, y + reach + 1)
        left, right = max(edge, x - reach), min(width + 2 * margin - edge, x + reach + 1)
        for first in range(0, colours, metric.group):
            # Patches begin half their side above and to the left of their pixel.
            corner = first * plane - half * pitch - half
            here = corner + y * pitch + x
            totals[:] = 0
            weights = 0.0
            for yy in range(top, bottom):
                for xx in range(left, right):
                    there = corner + yy * pitch + xx
                    apart = distance(samples, here, there, plane, pitch, metric.group, squares)
                    weight = np.exp2(metric.scale * max(apart - metric.floor, np.float32(0)))
                    weights += weight
                    for c in range(metric.group):
                        rolled()
                        totals[c] += weight * cell(samples, (first + c) * plane + yy * pitch + xx)
            for c in range(metric.group):
                sums.samples[first + c, y - margin, x - margin] += totals[c]
            sums.weights[first // metric.group, y - margin, x - margin] += weights
