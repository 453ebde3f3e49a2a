"""Levels *serial* and *serial-bubble*: copy the window of every pixel, and pick its middle value.

Hoare's quickselect moves the cells that are smaller than a pivot to the left and larger ones to
the right, until both sides meet; then it goes on with the side that has the middle place. For the
nine cells of a 3x3 window, whose middle place is 4 (from 0), with the pivot in brackets:

    7 2 9 4 [1] 8 3 6 5    1 changes places with 7; the middle place lies to the right of it
    1|2 9 4 [7] 8 3 6 5    9 changes places with 5, 7 with 6, 8 with 3; now it lies to the left
    1|2 5 [4] 6 3|8 7 9    ... and so on, until place 4 holds the median, 5

On average that takes some 3 n comparisons for n cells. Bubble sort takes n² / 2, whatever they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.base.jit import Flag, Index, Line, Plane, Record, inlined, kernel
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index
from kernelscope.filters.shared.plain import cell, interior, no_simd


@inlined
def ranked(cells: Line, count: Index, rank: Index) -> Any:
    """Return number `rank` of ``cells[:count]`` in order; reorders them (Hoare's quickselect)."""
    no_simd()
    low = 0
    high = count - 1
    while low < high:
        pivot = cell(cells, (low + high) // 2)
        i = low
        j = high
        while i <= j:
            while cell(cells, i) < pivot:
                i += 1
            while pivot < cell(cells, j):
                j -= 1
            if i <= j:
                exchange(cells, i, j)
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return cell(cells, rank)


@inlined
def exchange(cells: Line, i: Index, j: Index) -> None:
    """Let two cells change places."""
    kept = cell(cells, i)
    cells[np.uintp(i)] = cell(cells, j)
    cells[np.uintp(j)] = kept


@inlined
def middle(cells: Line, count: Index) -> Any:
    """Return the (lower) median of ``cells[:count]``, which it reorders."""
    return ranked(cells, count, (count - 1) // 2)


@inlined
def sort(cells: Line, count: Index) -> None:
    """Sort ``cells[:count]`` by exchanging neighbours (bubble sort)."""
    no_simd()
    for last in range(count - 1, 0, -1):
        for i in range(last):
            if cell(cells, i) > cell(cells, i + 1):
                exchange(cells, i, i + 1)


@inlined
def sorted_middle(cells: Line, count: Index) -> Any:
    """As `middle`, after sorting all cells."""
    no_simd()
    sort(cells, count)
    return cell(cells, (count - 1) // 2)


@kernel
def median_rim(
    source: Plane,
    output: Plane,
    radius: Index,
    border: Index,
    bubble: Flag,
    cells: Line,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute output row `y` from column `first` up to `last`, whatever the border."""
    no_simd()
    height, width, channels = source.shape
    for x in range(first, last):
        for c in range(channels):
            count = 0
            for s in range(-radius, radius + 1):
                yy = border_index(y + s, height, border)
                for t in range(-radius, radius + 1):
                    xx = border_index(x + t, width, border)
                    if yy >= 0 and xx >= 0:
                        cells[count] = source[yy, xx, c]
                        count += 1
                    elif border != REDUCE:
                        cells[count] = 0
                        count += 1
            output[y, x, c] = sorted_middle(cells, count) if bubble else middle(cells, count)


@kernel
def median_serial(
    source: Plane,
    output: Plane,
    radius: Index,
    border: Index,
    bubble: Flag,
    columns: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, pick the middle one of the cells of the mask.

    Of each row from one of `columns` up to the other. `bubble` sorts the cells instead.
    """
    no_simd()
    height, width, channels = source.shape
    side = 2 * radius + 1
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    cells = np.empty(side * side, source.dtype)
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        first = min(max(first, columns[0]), columns[1])
        last = min(max(last, columns[0]), columns[1])
        median_rim(source, output, radius, border, bubble, cells, y, columns[0], first)
        results = output[y].reshape(output.shape[1] * channels)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            count = 0
            for s in range(side):
                row = corner + x + s * pitch
                for t in range(side):
                    cells[np.uintp(count)] = cell(samples, row + t * channels)
                    count += 1
            results[x] = sorted_middle(cells, count) if bubble else middle(cells, count)
        median_rim(source, output, radius, border, bubble, cells, y, last, columns[1])


@kernel
def median_frame(source: Plane, output: Plane, radius: Index, start: Index, stop: Index) -> None:
    """Compute the pixels whose mask is reduced, at the edges of the image."""
    cells = np.empty((2 * radius + 1) ** 2, source.dtype)
    height, width = output.shape[:2]
    for y in range(start, stop):
        left, right = interior(y, radius, height, width, REDUCE)
        median_rim(source, output, radius, REDUCE, False, cells, y, 0, left)
        median_rim(source, output, radius, REDUCE, False, cells, y, right, width)
