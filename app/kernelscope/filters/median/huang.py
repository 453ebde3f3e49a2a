"""Level *serial-huang*: a histogram that moves along the row, for samples of 8 and 16 bits.

From one pixel to the next, only one column of the window leaves and one joins; all the others stay
counted (Huang, Yang and Tang 1979). The middle one of n cells is the value at which the running sum
of the counts exceeds (n - 1) / 2:

    window    value     0 1 2 3 4
    1 1 2     counts    0 3 2 3 1
    1 2 3     sum       0 3 5 8 9    5 is the first sum over 4: the median is 2
    3 3 4

    one pixel to the right, the column 1 1 3 has left and 2 4 4 has joined:
    1 2 2     counts    0 1 3 2 3
    2 3 4     sum       0 1 4 6 9    6 is the first sum over 4: the median is 3
    3 4 4

To shorten the way through 256 or 65,536 counts, groups of 16 or 256 neighbouring values are counted
too: first the group is found and then the value in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Line, Plane, inlined, kernel
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index
from kernelscope.filters.shared.plain import cell, no_simd


@inlined
def count_cell(value: Index, step: Index, shift: Index, groups: Line, counts: Line) -> None:
    """Add `step` to the counts of a value and of its group, 2**shift neighbouring values."""
    counts[np.uintp(value)] += step
    groups[np.uintp(value >> shift)] += step


@kernel
def count_rim(
    source: Plane,
    y: Index,
    x: Index,
    c: Index,
    radius: Index,
    border: Index,
    step: Index,
    shift: Index,
    groups: Line,
    counts: Line,
) -> Any:
    """Count a column of the mask, whatever the border; return `step` times its cells."""
    no_simd()
    height, width, _ = source.shape
    total = 0
    xx = border_index(x, width, border)
    for s in range(-radius, radius + 1):
        yy = border_index(y + s, height, border)
        if yy >= 0 and xx >= 0:
            count_cell(np.int64(source[yy, xx, c]), step, shift, groups, counts)
            total += step
        elif border != REDUCE:
            count_cell(0, step, shift, groups, counts)
            total += step
    return total


@inlined
def count_column(
    samples: Line,
    place: Index,
    pitch: Index,
    side: Index,
    step: Index,
    shift: Index,
    groups: Line,
    counts: Line,
) -> None:
    """Count a column of the mask inside the image, `side` cells from `place` down."""
    for s in range(side):
        count_cell(np.int64(cell(samples, place + s * pitch)), step, shift, groups, counts)


@inlined
def counted(rank: Index, shift: Index, groups: Line, counts: Line) -> Any:
    """Return number `rank` of the cells that are counted, in order."""
    left, group = rank, 0  # cells still to be passed
    while left >= cell(groups, group):
        left -= cell(groups, group)
        group += 1
    value = group << shift
    while left >= cell(counts, value):
        left -= cell(counts, value)
        value += 1
    return value


@kernel
def median_huang(
    source: Plane,
    output: Plane,
    radius: Index,
    border: Index,
    shift: Index,
    start: Index,
    stop: Index,
) -> None:
    """Count the cells by value while the mask moves along the row, column by column.

    There are 4**shift values, in groups of 2**shift.
    """
    no_simd()
    height, width, channels = source.shape
    side = 2 * radius + 1
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    counts = np.empty(1 << 2 * shift, np.int32)
    groups = np.empty(1 << shift, np.int32)
    for y in range(start, stop):
        middle_y = y - inset + radius
        inside = radius <= middle_y < height - radius
        top = (middle_y - radius) * pitch
        for c in range(channels):
            counts[:] = 0
            groups[:] = 0
            total = 0
            for x in range(1 - side, output.shape[1]):
                # The column that joins the mask, and below the one that leaves it.
                new = x - inset + 2 * radius
                if inside and 0 <= new < width:
                    place = top + new * channels + c
                    count_column(samples, place, pitch, side, 1, shift, groups, counts)
                    total += side
                else:
                    total += count_rim(
                        source, middle_y, new, c, radius, border, 1, shift, groups, counts
                    )
                if x < 0:
                    continue
                output[y, x, c] = counted((total - 1) // 2, shift, groups, counts)
                old = x - inset
                if inside and 0 <= old < width:
                    place = top + old * channels + c
                    count_column(samples, place, pitch, side, -1, shift, groups, counts)
                    total -= side
                else:
                    total += count_rim(
                        source, middle_y, old, c, radius, border, -1, shift, groups, counts
                    )
