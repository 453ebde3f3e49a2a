"""Collaborative filtering on the CPU.

A stage filters tiles of blocks that have a group, whose cells and sums stay in the cache. For one
row of a tile and one offset, the squared differences of eight rows are added up at each column, and
those of eight columns: all blocks of the row are compared at once. Then each group is filtered by
itself. Level *parallel* computes eight coefficients at a time, in vectors that are written out, and
`plain` is None for it; level *serial* has the same arithmetic in plain loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import (
    Array,
    Flag,
    Index,
    Line,
    Number,
    Plane,
    Record,
    inlined,
    intrinsic,
    kernel,
)
from kernelscope.filters.collaborative import blocks
from kernelscope.filters.collaborative.blocks import PITCH, from_wavelets, to_wavelets
from kernelscope.filters.collaborative.model import (
    LIMIT,
    MARGIN,
    ONE,
    PARTS,
    SIDE,
    STEPS,
    WEIGHT_STEPS,
    WIENER,
    numbers,
    search,
)
from kernelscope.filters.shared.border_kernels import border_index
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.cosine import (
    GREY,
    backward,
    bits_of,
    colour_of,
    float_of,
    forward,
    get,
    opponents,
    put,
)
from kernelscope.filters.shared.vectors import Loops
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.samples import colour_count


@intrinsic
def add_atomically(
    context: Any, builder: Any, types: Any, numbers: Any, place: Any, value: Any
) -> None:
    """Add to a number of a line that other threads add to as well."""
    data = context.make_array(types[0])(context, builder, numbers).data
    builder.atomic_rmw("add", builder.gep(data, [place]), value, "monotonic")


@inlined
def squared_difference(a: Line, b: Line, i: Index, j: Index) -> Any:
    difference = a[np.uintp(i)] - b[np.uintp(j)]
    return difference * difference


@kernel
def compare_rows(
    cells: Line,
    width: Index,
    here: Index,
    there: Index,
    start: Index,
    stop: Index,
    columns: Line,
    limits: Line,
    sums: Line,
    alike: Line,
    plain: Flag,
) -> None:
    """Write the sums of squared differences of blocks to `sums`, and which are below their limit.

    `here` and `there` are the places of column 0 of the first rows that are compared. Columns from
    `start` to `stop` are compared, with a block in all but the last seven.
    """
    w = width
    for x in range(start, stop):
        i, j = here + x, there + x
        columns[np.uintp(x)] = (
            squared_difference(cells, cells, i, j)
            + squared_difference(cells, cells, i + w, j + w)
            + squared_difference(cells, cells, i + 2 * w, j + 2 * w)
            + squared_difference(cells, cells, i + 3 * w, j + 3 * w)
            + squared_difference(cells, cells, i + 4 * w, j + 4 * w)
            + squared_difference(cells, cells, i + 5 * w, j + 5 * w)
            + squared_difference(cells, cells, i + 6 * w, j + 6 * w)
            + squared_difference(cells, cells, i + 7 * w, j + 7 * w)
        )
    for x in range(start, stop - 7):
        i = np.uintp(x)
        total = (
            columns[i]
            + columns[i + np.uintp(1)]
            + columns[i + np.uintp(2)]
            + columns[i + np.uintp(3)]
            + columns[i + np.uintp(4)]
            + columns[i + np.uintp(5)]
            + columns[i + np.uintp(6)]
            + columns[i + np.uintp(7)]
        )
        sums[i] = total
        alike[i] = total < limits[i]


@intrinsic
def let_in(context: Any, builder: Any, types: Any, numbers: Any, place: Any, number: Any) -> None:
    """Let an int64 into a sorted list, as far as the eight numbers from `place` on are concerned.

    Each becomes the middle one of itself, that before it, and the new one.
    """
    loops = Loops(context, builder, 8)
    line = loops.start(types[0], numbers)
    before = loops.load(line, builder.sub(place, place.type(1)), 64)
    here, new = loops.load(line, place, 64), loops.spread(number, 64)
    larger = builder.select(builder.icmp_signed(">", before, new), before, new)
    loops.store(builder.select(builder.icmp_signed("<", here, larger), here, larger), line, place)


@kernel
def insert(keys: Line, key: Number, plain: Flag) -> None:
    """Insert into a sorted list in place of its last, which is larger.

    It begins at number 8; number 7 is less than all.
    """
    if plain is not None:
        m = keys.size - 1
        while keys[m - 1] > key:
            keys[m] = keys[m - 1]
            m -= 1
        keys[m] = key
    else:
        place = keys.size - 8
        let_in(keys, place, key)
        while keys[np.uintp(place - 1)] > key:
            place -= 8
            let_in(keys, place, key)


class Lists(NamedTuple):
    """The blocks most like those of a row that have a group, and the arrays of the search.

    Numbers of a list have the bits of a sum, which is not negative, in their upper half, and the
    place, from the first row that is compared on, in the lower one.
    """

    keys: NDArray[np.int64]  # [group, 8 + block]: each list sorted, behind eight of which one is -1
    counts: NDArray[np.int64]  # blocks that were found
    limits: NDArray[np.float32]
    """Which sum is too large, for a block at each column: that of the last of a full list. It is
    -1 where no block with a group begins."""
    numbers: NDArray[np.int64]  # the group of a column
    columns: NDArray[np.float32]
    sums: NDArray[np.float32]
    alike: NDArray[np.uint8]  # whether the sum is below the limit; as many as fill words


@kernel
def make_lists(count: Index, width: Index, step: Index, most: Index, plain: Flag) -> Any:
    columns, sums = np.empty(width, np.float32), np.empty(width, np.float32)
    limits, numbers = np.empty(width, np.float32), np.empty(width, np.int64)
    for x in range(width):
        limits[x], numbers[x] = -1, (x + step - 1) // step
    keys, counts = np.empty((count, 8 + most), np.int64), np.empty(count, np.int64)
    for j in range(count):
        keys[j, 7] = -1
    alike = np.zeros(-(-width // 8) * 8, np.uint8)
    return Lists(keys, counts, limits, numbers, columns, sums, alike)


@kernel
def empty_lists(lists: Record, step: Index, tolerance: Number, plain: Flag) -> None:
    """Fill the lists with a sum that is not alike."""
    key = np.int64(bits_of(tolerance)) << 32
    last = lists.limits.size - 8
    for j in range(lists.counts.size):
        lists.counts[j] = 1
        lists.limits[min(j * step, last)] = tolerance
        for m in range(8, lists.keys.shape[1]):
            lists.keys[j, m] = key


@inlined
def insert_alike(lists: Record, first: Index, place: Index, plain: Flag) -> None:
    """Insert those of eight blocks that are alike; `place` is that of the one of column 0."""
    keys, counts, limits, numbers, _, sums, alike = lists
    for x in range(first, first + 8):
        column = np.uintp(x)
        if alike[column]:
            own = np.uintp(numbers[column])
            key = np.int64(bits_of(sums[column])) << 32 | (place + x)
            insert(keys[own], key, plain)
            counts[own] += 1
            # The list has one more, without the block itself.
            worst = keys[own, np.uintp(keys.shape[1] - 2)]
            limits[column] = float_of(np.int32(worst >> 32))


@kernel
def match_row(
    cells: Line,
    height: Index,
    width: Index,
    y: Index,
    left: Index,
    step: Index,
    reach: Index,
    tolerance: Number,
    lists: Record,
    places: Array,
    plain: Flag,
) -> None:
    """Find the blocks most like those of row `y`, from column `left` on, that have a group.

    It writes `places` and their counts; columns of the lists begin at `left`.

    The block itself comes first. Of others that are equally alike the upper one comes first, then
    the left one. A group has a power of two of blocks.
    """
    keys, counts, limits, _, columns, sums, alike = lists
    last, origin = width - 8 - left, (y - reach) * width
    right = limits.size - 8
    empty_lists(lists, step, tolerance, plain)
    eights = alike.view(np.uint64)
    for dy in range(max(-reach, -y), min(reach, height - 8 - y) + 1):
        for dx in range(-reach, reach + 1):
            # Blocks from `first` to `final` have another one at this offset.
            first, final = max(0, -dx - left), min(right, last - dx)
            if (dx == 0 and dy == 0) or first > final:
                continue
            here, there = y * width + left, (y + dy) * width + left + dx
            if plain is None and final - first >= blocks.COMPARED:
                blocks.compare(
                    cells, width, here, there, first, final + 8, columns, limits, sums, alike
                )
            else:
                compare_rows(
                    cells, width, here, there, first, final + 8, columns, limits, sums, alike, plain
                )
            for eight in range(first // 8, final // 8 + 1):
                if eights[np.uintp(eight)] != 0:
                    insert_alike(lists, 8 * eight, there - origin, plain)
                    eights[np.uintp(eight)] = 0
    for j in range(counts.size):
        count = 1
        while 2 * count <= min(counts[j], places.shape[1]):
            count *= 2
        counts[j] = count
        places[j, 0] = y * width + left + min(j * step, right)
        for m in range(1, count):
            places[j, m] = origin + (keys[j, 7 + m] & 0xFFFFFFFF)


@kernel.plain
def transform_group(
    cells: Line,
    width: Index,
    places: Line,
    count: Index,
    wavelets: Flag,
    lines: Line,
    out: Line,
) -> None:
    """Write the spectra of a group of blocks, added up over the group: see `add_up`.

    Line k of `out` has, for each block, the eight coefficients along y whose number along x is k.
    """
    lanes = 8 * count
    for b in range(count):
        place = np.uintp(places[b])
        for j in range(8):
            put(out, j * PITCH + 8 * b, 1, get(cells, place + np.uintp(j * width), 1))
    transform(out, lanes, wavelets)
    turn(out, count, lines)
    transform(lines, lanes, wavelets)
    add_up(lines, count, out)


@kernel.plain
def transform(lines: Line, lanes: Index, wavelets: Flag) -> None:
    """Replace the eight numbers of each lane by their coefficients."""
    if wavelets:
        for i in range(lanes):
            put(lines, i, PITCH, to_wavelets(get(lines, i, PITCH)))
    else:
        for i in range(lanes):
            put(lines, i, PITCH, forward(get(lines, i, PITCH)))


@kernel.plain
def transform_back(lines: Line, lanes: Index, wavelets: Flag) -> None:
    if wavelets:
        for i in range(lanes):
            put(lines, i, PITCH, from_wavelets(get(lines, i, PITCH)))
    else:
        for i in range(lanes):
            put(lines, i, PITCH, backward(get(lines, i, PITCH)))


@kernel.plain
def turn(lines: Line, count: Index, out: Line) -> None:
    """Exchange the axes of each block."""
    for j in range(8):
        for b in range(count):
            for x in range(8):
                out[np.uintp(j * PITCH + 8 * b + x)] = lines[np.uintp(x * PITCH + 8 * b + j)]


@inlined
def added_and_subtracted(a: Record, b: Record) -> Any:
    a0, a1, a2, a3, a4, a5, a6, a7 = a
    b0, b1, b2, b3, b4, b5, b6, b7 = b
    return (
        (a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5, a6 + b6, a7 + b7),
        (a0 - b0, a1 - b1, a2 - b2, a3 - b3, a4 - b4, a5 - b5, a6 - b6, a7 - b7),
    )


@kernel.plain
def add_up(lines: Line, count: Index, out: Line) -> None:
    """Transform along the group by Haar's wavelet: sums and differences alone.

    The first is the sum of all blocks, the second the first half less the second one, then come two
    differences of quarters, and so on. That of which 2^t blocks were added up is the coefficient of
    the orthonormal transform times the root of 2^t. Sums are left in `lines`.
    """
    for line in range(0, 8 * PITCH, PITCH):
        n = count
        while n > 1:
            n //= 2
            for i in range(n):
                place = line + 16 * i
                total, difference = added_and_subtracted(
                    get(lines, place, 1), get(lines, place + 8, 1)
                )
                put(lines, line + 8 * i, 1, total)
                put(out, line + 8 * (n + i), 1, difference)
        put(out, line, 1, get(lines, line, 1))


@kernel.plain
def take_apart(lines: Line, count: Index, out: Line) -> None:
    """Transform back the sums of `add_up`, each divided by its 2^t."""
    for line in range(0, 8 * PITCH, PITCH):
        put(out, line, 1, get(lines, line, 1))
        n = 1
        while n < count:
            for i in range(n - 1, -1, -1):
                total = get(out, line + 8 * i, 1)
                first, second = added_and_subtracted(total, get(lines, line + 8 * (n + i), 1))
                put(out, line + 16 * i, 1, first)
                put(out, line + 16 * i + 8, 1, second)
            n *= 2


@kernel.plain
def shrink_hard(spectra: Line, count: Index, thresholds: Line, parts: Line) -> Any:
    """Leave the coefficients of up to their threshold, which are noise; count the others.

    A coefficient without a value is none.
    """
    kept, zero = 0, np.float32(0)
    for line in range(0, 8 * PITCH, PITCH):
        for i in range(line, line + 8 * count):
            place = np.uintp(i)
            noise = abs(spectra[place]) <= thresholds[place]
            spectra[place] = spectra[place] * parts[place] if noise else zero
            kept += 0 if noise else 1
    return kept


@kernel.plain
def shrink_wiener(
    spectra: Line,
    guides: Line,
    count: Index,
    variances: Line,
    parts: Line,
) -> Any:
    """Leave sigma² / (b² + sigma²) of each coefficient, b that of the guide.

    Return the sum of the squared factors of the part that is taken.

    These factors have 16 bits, and the rest 8, so that sums of its squares are of integers.
    Nothing is left of coefficients of which one has no value.
    """
    total, zero = 0, np.float32(0)
    for line in range(0, 8 * PITCH, PITCH):
        for q in range(8):
            if not abs(spectra[np.uintp(line + q)]) < np.float32(np.inf):
                for number in range(count):
                    spectra[np.uintp(line + q + 8 * number)] = zero
    for line in range(0, 8 * PITCH, PITCH):
        for i in range(line, line + 8 * count):
            place = np.uintp(i)
            noise = blocks.share_of(variances[place], guides[place])
            spectra[place] = spectra[place] * np.float32(noise) * parts[place]
            left = np.int32(255 - (noise >> 8))
            total += int(np.int32(left * left))
    return total


@kernel
def add_group(
    spectra: Line,
    lines: Line,
    spots: Line,
    count: Index,
    wavelets: Flag,
    part: Number,
    scale: Number,
    factors: Line,
    sums: Line,
    width: Index,
    plain: Flag,
) -> None:
    """Transform back the rest of a group, and add it to the sums of its pixels.

    `spots` are the places of its blocks in `sums`, of that `width`.
    """
    if plain is not None:
        lanes = 8 * count
        take_apart(spectra, count, lines)
        transform_back(lines, lanes, wavelets)
        turn(lines, count, spectra)
        transform_back(spectra, lanes, wavelets)
        for b in range(count):
            for j in range(8):
                row = spots[b] + j * width
                for x in range(8):
                    lane = np.uintp(j * PITCH + 8 * b + x)
                    factor = scale * factors[lane]
                    sums[np.uintp(row + x)] += blocks.steps_of(spectra[lane], part, factor)
    else:
        blocks.add_blocks(spectra, spots, count, wavelets, part, scale, factors, sums, width)


@kernel
def shrink_group(
    planes: Line,
    guides: Line,
    width: Index,
    places: Line,
    count: Index,
    wiener: Flag,
    noise: Line,
    parts: Line,
    lines: Line,
    spectra: Line,
    guide: Line,
    plain: Flag,
) -> Any:
    """Leave the noise in the spectra of a group; return its weight."""
    if plain is not None:
        transform_group(planes, width, places, count, not wiener, lines, spectra)
        if wiener:
            transform_group(guides, width, places, count, False, lines, guide)
            total = shrink_wiener(spectra, guide, count, noise, parts)
        else:
            total = shrink_hard(spectra, count, noise, parts)
    else:
        blocks.spectra_of(planes, width, places, count, not wiener, spectra)
        if wiener:
            blocks.spectra_of(guides, width, places, count, False, guide)
            total = blocks.shrink_wiener(spectra, guide, noise, parts, count)
        else:
            total = blocks.shrink_hard(spectra, spectra, noise, parts, count)
    return np.true_divide(np.float32(ONE if wiener else 1), np.float32(total))


@kernel
def add_part(part: Array, all_rows: Array, top: Index, left: Index, plain: Flag) -> None:
    """Add the sums of a tile to those of the picture, which other threads add to as well."""
    height, width = part.shape
    line = all_rows.reshape(all_rows.size)
    for y in range(height):
        start = (top + y) * all_rows.shape[1] + left
        for x in range(width):
            if part[y, x] != 0:
                add_atomically(line, np.uintp(start + x), part[y, x])


TILE = (16, 64)
"""Rows and columns of blocks that have a group and are filtered together. Their sums and the part
of the picture that they read stay in the second level of a processor's cache."""


@kernel
def filter_groups(
    planes: Array,
    guides: Array,
    cells: Array,
    sums: Array,
    weights: Array,
    numbers: Record,
    factors: Line,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Add the loss by the groups of the tiles `start` to `stop` to `sums`.

    - `planes`, `guides`: float32, shape (planes, rows * columns). The noisy picture, and the
      result of the first stage.
    - `cells`: shape (rows, columns). The picture in which blocks are compared.
    - `sums`, `weights`: int32, shape (planes, rows * columns).
    - `numbers`: see `plan_cpu`.
    - `factors`: the window, see `of_lanes`.
    """
    step, reach, most, wiener, tolerance, noise, parts, part = numbers
    height, width = cells.shape
    colours = planes.shape[0]
    compared = cells.reshape(height * width)
    across = -(-(width - 8) // step) + 1
    tiles = -(-across // TILE[1])
    lines = np.empty(8 * PITCH, np.float32)
    spectra = np.empty(8 * PITCH, np.float32)
    guide = np.empty(8 * PITCH, np.float32)
    spots = np.empty(most, np.int64)
    for tile in range(start, stop):
        upper, fore = tile // tiles * TILE[0], tile % tiles * TILE[1]
        count = min(TILE[1], across - fore)
        left, right = min(fore * step, width - 8), min((fore + count - 1) * step, width - 8)
        lower = min(upper * step + (TILE[0] - 1) * step, height - 8)
        # The part of the picture that blocks of its groups may be in.
        top, begin = max(0, min(upper * step, lower) - reach), max(0, left - reach)
        wide = min(width, right + reach + 8) - begin
        own_sums = np.zeros((colours, min(height, lower + reach + 8) - top, wide), np.int32)
        own_weights = np.zeros_like(own_sums)
        flat_sums = own_sums.reshape(colours, own_sums[0].size)
        flat_weights = own_weights.reshape(colours, own_sums[0].size)
        lists = make_lists(count, right - left + 8, step, most, plain)
        places = np.empty((count, most), np.int64)
        for i in range(upper, -(-lower // step) + 1):
            y = min(i * step, height - 8)
            match_row(
                compared, height, width, y, left, step, reach, tolerance, lists, places, plain
            )
            for j in range(count):
                there, size = places[j], lists.counts[j]
                doublings = 0
                while 1 << doublings < size:
                    doublings += 1
                for b in range(size):
                    row = there[b] // width
                    spots[b] = (row - top) * wide + there[b] - row * width - begin
                for c in range(colours):
                    own, shares = noise[c, doublings], parts[doublings]
                    weight = shrink_group(
                        planes[c],
                        guides[c],
                        width,
                        there,
                        size,
                        wiener,
                        own,
                        shares,
                        lines,
                        spectra,
                        guide,
                        plain,
                    )
                    for b in range(size):
                        flat_weights[c, np.uintp(spots[b])] += np.int32(
                            np.rint(weight * np.float32(WEIGHT_STEPS))
                        )
                    scale = weight * np.float32(2 * LIMIT * STEPS)
                    add_group(
                        spectra,
                        lines,
                        spots,
                        size,
                        not wiener,
                        part,
                        scale,
                        factors,
                        flat_sums[c],
                        wide,
                        plain,
                    )
        for c in range(colours):
            add_part(own_sums[c], sums[c].reshape(height, width), top, begin, plain)
            add_part(own_weights[c], weights[c].reshape(height, width), top, begin, plain)


@kernel
def extend(
    source: Plane,
    planes: Array,
    cells: Array,
    border: Index,
    whole: Flag,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write rows `start` to `stop` of the picture with its border, colours as opponents.

    `cells` gets the mean of the colours, of integer samples rounded.
    """
    height, width, _ = source.shape
    wide = cells.shape[1]
    colours = planes.shape[0]
    pixel = np.zeros(3, np.float32)
    for row in range(start, stop):
        y = border_index(row - MARGIN, height, border)
        for column in range(wide):
            x = border_index(column - MARGIN, width, border)
            i = row * wide + column
            for c in range(colours):
                pixel[c] = source[y, x, c] if y >= 0 and x >= 0 else 0
            if colours == 3:
                parts = opponents(pixel[0], pixel[1], pixel[2])
                for c in range(3):
                    planes[c, i] = parts[c]
            else:
                planes[0, i] = pixel[0]
            cells[row, column] = cell_of(planes[0, i], colours, whole)


@inlined
def cell_of(grey: Number, colours: Index, whole: Flag) -> Any:
    """Return the cell to compare of a pixel whose first plane this is.

    Differences of integers are exact in floats, in whichever order they are added up.
    """
    if colours == 3:
        grey = grey * GREY
    return np.rint(grey) if whole else grey


@kernel
def spread_weights(
    weights: Line, width: Index, y: Index, start: Index, curve: Line, rows: Array, plain: Flag
) -> None:
    """Weigh the blocks by the window, along the rows up to `y` that it needs.

    Those of the last eight rows are kept in `rows`; row `start` is the first that is asked for.
    """
    for upper in range(y if y > start else max(0, y - 7), y + 1):
        row, first = rows[upper & 7], upper * width
        for x in range(width):
            row[x] = 0
        for k in range(8):
            for x in range(k, width):
                row[x] += curve[k] * np.float32(weights[np.uintp(first + x - k)])


@kernel
def divide_sums(
    sums: Line,
    rows: Array,
    y: Index,
    quotient: Number,
    curve: Line,
    out: Line,
    plain: Flag,
) -> None:
    """Write the loss of the pixels of row `y` in a stage; `rows` are those of `spread_weights`."""
    width = out.size
    for x in range(width):
        out[x] = 0
    for j in range(min(8, y + 1)):
        row = rows[(y - j) & 7]
        for x in range(width):
            out[x] += curve[j] * row[x]
    for x in range(width):
        out[x] = np.true_divide(np.float32(sums[np.uintp(y * width + x)]) * quotient, out[x])


@kernel
def make_guide(
    planes: Array,
    sums: Array,
    weights: Array,
    guides: Array,
    cells: Array,
    high: Number,
    quotient: Number,
    curve: Line,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write rows `start` to `stop` of the first stage's result, and its part that is compared."""
    width = cells.shape[1]
    removed = np.empty(width, np.float32)
    rows = np.empty((planes.shape[0], 8, width), np.float32)
    for y in range(start, stop):
        for c in range(planes.shape[0]):
            spread_weights(weights[c], width, y, start, curve, rows[c], plain)
            divide_sums(sums[c], rows[c], y, quotient, curve, removed, plain)
            for x in range(width):
                i = y * width + x
                guides[c, i] = planes[c, i] - removed[x]
                if c == 0:
                    cell = cell_of(guides[0, i], planes.shape[0], high > 0)
                    if high > 0:
                        cell = min(max(cell, np.float32(0)), high)
                    cells[y, x] = cell


@kernel
def finish_rows(
    source: Plane,
    sums: Array,
    weights: Array,
    output: Plane,
    finish: Record,
    quotient: Number,
    curve: Line,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    colours = sums.shape[0]
    width = output.shape[1] + 2 * MARGIN
    removed = np.empty((3, width), np.float32)
    rows = np.empty((colours, 8, width), np.float32)
    for y in range(start, stop):
        for c in range(colours):
            spread_weights(weights[c], width, y + MARGIN, start + MARGIN, curve, rows[c], plain)
            divide_sums(sums[c], rows[c], y + MARGIN, quotient, curve, removed[c], plain)
        for x in range(output.shape[1]):
            if colours == 3:
                place = x + MARGIN
                taken = colour_of(removed[0, place], removed[1, place], removed[2, place])
                for c in range(3):
                    output[y, x, c] = settle(np.float32(source[y, x, c]) - taken[c], finish)
            else:
                taken_off = removed[0, x + MARGIN]
                output[y, x, 0] = settle(np.float32(source[y, x, 0]) - taken_off, finish)


@kernel
def copy_rows(source: Plane, output: Plane, start: Index, stop: Index) -> None:
    """Write rows `start` to `stop` of the source itself: there is no noise."""
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(output.shape[2]):
                output[y, x, c] = source[y, x, c]


_LEVELS = np.log2(np.maximum(np.arange(WIENER), 1)).astype(int)
ADDED = np.maximum(np.arange(6)[:, None] - _LEVELS, 0)
"""[s, number] is t: in that coefficient of a group of 2^s blocks, 2^t blocks were added up."""


def of_lanes(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers [..., row, block, column] for all lanes of a group's lines: the last axis."""
    shape = (*numbers.shape[:-2], WIENER, SIDE)
    lanes = np.broadcast_to(numbers, shape).reshape(*shape[:-3], 8 * PITCH)
    return np.array(lanes, np.float32)


def noise_of(
    levels: NDArray[np.float32], norms: NDArray[np.float32], mean: float
) -> NDArray[np.float32]:
    """Return the noise of coefficients: [plane, s of a group of 2^s blocks, lane].

    The mean of a group has none.
    """
    noise = of_lanes(levels[:, ADDED][:, :, None, :, None] * norms.reshape(-1, 1, SIDE, 1, SIDE))
    noise[..., 0] = mean
    return noise


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output = task.source, task.output
    height, width, channels = output.shape
    found = numbers(source.dtype, channels, task.parameters)
    if found is None:
        return [CpuPass(copy_rows, (source, output), height)]
    plain = True if task.level == SERIAL.id else None
    where = search(task.parameters)
    rows, columns = height + 2 * MARGIN, width + 2 * MARGIN
    shape = colour_count(channels), rows * columns
    picture, guide = np.empty(shape, np.float32), np.empty(shape, np.float32)
    cells, guide_cells = (np.empty((rows, columns), np.float32) for _ in range(2))
    hard, hard_weights, wiener, wiener_weights = (np.zeros(shape, np.int32) for _ in range(4))
    curve = found.window
    factors = of_lanes(np.outer(curve, curve).reshape(SIDE, 1, SIDE))
    shares = (0.5**ADDED)[:, None, :, None]
    is_bytes = source.dtype == np.uint8
    high = np.float32(255 if is_bytes else 0)
    first = (
        *(*where, found.most, False),
        found.tolerances[0],
        noise_of(found.thresholds, found.norms[0], -1),
        of_lanes(shares * PARTS.reshape(SIDE, 1, SIDE)),
        found.part,
    )
    second = (
        *(*where, WIENER, True),
        found.tolerances[1],
        noise_of(found.variances, found.norms[1], 0),
        of_lanes(shares / 2**22 * np.ones((SIDE, 1, SIDE))),
        found.part,
    )
    tiles = -(-where.count(rows) // TILE[0]) * -(-where.count(columns) // TILE[1])
    divided = found.quotient, curve, plain
    finish = Finish.of(source.dtype, np.float32)
    return [
        CpuPass(
            extend, (source, picture, cells, task.border.code, is_bytes, plain), rows, cost=0.01
        ),
        CpuPass(
            filter_groups,
            (picture, picture, cells, hard, hard_weights, first, factors, plain),
            tiles,
        ),
        CpuPass(
            make_guide,
            (picture, hard, hard_weights, guide, guide_cells, high, *divided),
            rows,
            cost=0.02,
        ),
        CpuPass(
            filter_groups,
            (picture, guide, guide_cells, wiener, wiener_weights, second, factors, plain),
            tiles,
            cost=1.5,
        ),
        CpuPass(
            finish_rows,
            (source, wiener, wiener_weights, output, finish, *divided),
            height,
            cost=0.02,
        ),
    ]
