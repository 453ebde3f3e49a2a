"""Collaborative filtering on the CPU.

A stage goes down the rows of blocks that have a group. For one row of them and one offset, the
squared differences of eight rows are added up at each column, and those of eight columns: all
blocks of the row are compared at once. Then each group is filtered by itself, its blocks side by
side, so that all loops are over lanes, which the compiler turns into vectors. Level *serial* has
the same loops without vectors: `plain` is None for level *parallel*, where the compiler then leaves
out the call that forbids them.
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
from kernelscope.filters.collaborative.model import (
    LARGEST,
    LIMIT,
    MARGIN,
    ONE,
    PARTS,
    SHARES,
    SIDE,
    STEPS,
    UPDATE,
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
    fused,
    get,
    opponents,
    put,
)
from kernelscope.filters.shared.plain import no_simd
from kernelscope.filters.shared.vectors import Loops
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.samples import colour_count

INVERSE, SLOPE, OFFSET = np.int32(0x7EB50000), np.float32(-1.9412878), np.float32(2.7867577)
"""Of `share_of`."""

LEAST_WHOLE, LEAST_WHOLE_BITS = np.float32(2**23), np.int32(0x4B000000)
WHOLE, WHOLE_BITS = np.float32(3 * 2**22), np.int32(0x4B400000)
"""Floats, and their bits, to which a number is added to have its whole number in the last bits: one
that is not negative, and any."""

PITCH = SIDE * WIENER  # from a line of a group to the next: there are eight lanes for each block


@inlined
def to_wavelets(samples: Record) -> Any:
    """Return coefficients of bior1.5 on a circle, each times its `model.WAVELET_SCALES`."""
    a0, a1, a2, a3, a4, a5, a6, a7 = samples
    d0, d1, d2, d3 = a1 - a0, a3 - a2, a5 - a4, a7 - a6
    u, v = (d3 - d1) * UPDATE, (d0 - d2) * UPDATE
    s0, s1, s2, s3 = a0 + a1 + u, a2 + a3 + v, a4 + a5 - u, a6 + a7 - v
    p, q = s0 + s1, s2 + s3
    return p + q, q - p, s1 - s0, s3 - s2, d0, d1, d2, d3


@inlined
def from_wavelets(coefficients: Record) -> Any:
    """Return the samples whose `to_wavelets` these are, each times its `model.WAVELET_PARTS`."""
    b0, b1, e, f, d0, d1, d2, d3 = coefficients
    p, q = b0 - b1, b0 + b1
    u, v = (d3 - d1) * UPDATE, (d0 - d2) * UPDATE
    s0, s1, s2, s3 = p - e - u, p + e - v, q - f + u, q + f + v
    return s0 - d0, s0 + d0, s1 - d1, s1 + d1, s2 - d2, s2 + d2, s3 - d3, s3 + d3


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
    if plain is not None:
        no_simd()
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
def make_lists(width: Index, step: Index, most: Index, plain: Flag) -> Any:
    if plain is not None:
        no_simd()
    across = -(-(width - 8) // step) + 1
    columns, sums = np.empty(width, np.float32), np.empty(width, np.float32)
    limits, numbers = np.empty(width, np.float32), np.empty(width, np.int64)
    for x in range(width):
        limits[x], numbers[x] = -1, (x + step - 1) // step
    keys, counts = np.empty((across, 8 + most), np.int64), np.empty(across, np.int64)
    for j in range(across):
        keys[j, 7] = -1
    alike = np.zeros(-(-width // 8) * 8, np.uint8)
    return Lists(keys, counts, limits, numbers, columns, sums, alike)


@kernel
def empty_lists(lists: Record, step: Index, tolerance: Number, plain: Flag) -> None:
    """Fill the lists with a sum that is not alike."""
    if plain is not None:
        no_simd()
    key = np.int64(bits_of(tolerance)) << 32
    last = lists.limits.size - 8
    for j in range(lists.counts.size):
        lists.counts[j] = 1
        lists.limits[min(j * step, last)] = tolerance
        for m in range(8, lists.keys.shape[1]):
            lists.keys[j, m] = key


@kernel
def match_row(
    cells: Line,
    height: Index,
    width: Index,
    y: Index,
    step: Index,
    reach: Index,
    tolerance: Number,
    lists: Record,
    places: Array,
    plain: Flag,
) -> None:
    """Find the blocks most like those of row `y` that have a group: `places` and their counts.

    The block itself comes first. Of others that are equally alike the upper one comes first, then
    the left one. A group has a power of two of blocks.
    """
    if plain is not None:
        no_simd()
    keys, counts, limits, numbers, columns, sums, alike = lists
    last, origin = width - 8, (y - reach) * width
    empty_lists(lists, step, tolerance, plain)
    eights = alike.view(np.uint64)
    for dy in range(max(-reach, -y), min(reach, height - 8 - y) + 1):
        for dx in range(-reach, reach + 1):
            # Blocks from `first` to `final` have another one at this offset.
            first, final = max(0, -dx), min(last, last - dx)
            if (dx == 0 and dy == 0) or first > final:
                continue
            here, there = y * width, (y + dy) * width + dx
            compare_rows(
                cells, width, here, there, first, final + 8, columns, limits, sums, alike, plain
            )
            for eight in range(first // 8, final // 8 + 1):
                if eights[np.uintp(eight)] == 0:
                    continue
                for x in range(8 * eight, 8 * eight + 8):
                    column = np.uintp(x)
                    if alike[column]:
                        own = np.uintp(numbers[column])
                        key = np.int64(bits_of(sums[column])) << 32 | (there + x - origin)
                        insert(keys[own], key, plain)
                        counts[own] += 1
                        # The list has one more, without the block itself.
                        worst = keys[own, np.uintp(keys.shape[1] - 2)]
                        limits[column] = float_of(np.int32(worst >> 32))
                eights[np.uintp(eight)] = 0
    for j in range(counts.size):
        count = 1
        while 2 * count <= min(counts[j], places.shape[1]):
            count *= 2
        counts[j] = count
        places[j, 0] = y * width + min(j * step, last)
        for m in range(1, count):
            places[j, m] = origin + (keys[j, 7 + m] & 0xFFFFFFFF)


@kernel
def transform_group(
    cells: Line,
    width: Index,
    places: Line,
    count: Index,
    wavelets: Flag,
    lines: Line,
    out: Line,
    plain: Flag,
) -> None:
    """Write the spectra of a group of blocks, added up over the group: see `add_up`.

    Line k of `out` has, for each block, the eight coefficients along y whose number along x is k.
    """
    if plain is not None:
        no_simd()
    lanes = 8 * count
    for b in range(count):
        place = np.uintp(places[b])
        for j in range(8):
            put(out, j * PITCH + 8 * b, 1, get(cells, place + np.uintp(j * width), 1))
    transform(out, lanes, wavelets, plain)
    turn(out, count, lines, plain)
    transform(lines, lanes, wavelets, plain)
    add_up(lines, count, out, plain)


@kernel
def transform(lines: Line, lanes: Index, wavelets: Flag, plain: Flag) -> None:
    """Replace the eight numbers of each lane by their coefficients."""
    if plain is not None:
        no_simd()
    if wavelets:
        for i in range(lanes):
            put(lines, i, PITCH, to_wavelets(get(lines, i, PITCH)))
    else:
        for i in range(lanes):
            put(lines, i, PITCH, forward(get(lines, i, PITCH)))


@kernel
def transform_back(lines: Line, lanes: Index, wavelets: Flag, plain: Flag) -> None:
    if plain is not None:
        no_simd()
    if wavelets:
        for i in range(lanes):
            put(lines, i, PITCH, from_wavelets(get(lines, i, PITCH)))
    else:
        for i in range(lanes):
            put(lines, i, PITCH, backward(get(lines, i, PITCH)))


@kernel
def turn(lines: Line, count: Index, out: Line, plain: Flag) -> None:
    """Exchange the axes of each block."""
    if plain is not None:
        no_simd()
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


@kernel
def add_up(lines: Line, count: Index, out: Line, plain: Flag) -> None:
    """Transform along the group by Haar's wavelet: sums and differences alone.

    The first is the sum of all blocks, the second the first half less the second one, then come two
    differences of quarters, and so on. That of which 2^t blocks were added up is the coefficient of
    the orthonormal transform times the root of 2^t. Sums are left in `lines`.
    """
    if plain is not None:
        no_simd()
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


@kernel
def take_apart(lines: Line, count: Index, out: Line, plain: Flag) -> None:
    """Transform back the sums of `add_up`, each divided by its 2^t."""
    if plain is not None:
        no_simd()
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


@kernel
def shrink_hard(spectra: Line, count: Index, thresholds: Line, parts: Line, plain: Flag) -> Any:
    """Leave the coefficients of up to their threshold, which are noise; return the group's weight.

    A coefficient without a value is none. The mean of the group is not noise.
    """
    if plain is not None:
        no_simd()
    kept, zero = 0, np.float32(0)
    mean = spectra[0]
    for line in range(0, 8 * PITCH, PITCH):
        for i in range(line, line + 8 * count):
            place = np.uintp(i)
            noise = abs(spectra[place]) <= thresholds[place]
            spectra[place] = spectra[place] * parts[place] if noise else zero
            kept += 0 if noise else 1
    if abs(mean) <= thresholds[0]:
        kept += 1
        spectra[0] = zero
    return np.true_divide(np.float32(1), np.float32(kept))


@inlined
def share_of(own: Number, guide: Number) -> Any:
    """Return noise's share of a coefficient's power, own / (guide² + own), times `SHARES`, whole.

    To a part in 9000: x y (c0 + c1 x y) is that near to 1 if y, the difference of the bits of a
    number and of x, is about 0.7 / x.
    """
    power = fused(guide, guide, own)
    power = power if power < LARGEST else LARGEST  # has no value, or is too large
    inverse = float_of(np.int32(INVERSE - bits_of(power)))
    rest = fused(power * inverse, SLOPE, OFFSET)
    return np.int32(bits_of(fused(own * SHARES * inverse, rest, LEAST_WHOLE)) - LEAST_WHOLE_BITS)


@inlined
def steps_of(value: Number, part: Number, factor: Number) -> Any:
    """Return the integer of a block's loss at a pixel, from minus to plus the limit."""
    share = fused(value, part, np.float32(0.5))
    share = share if share > np.float32(0) else np.float32(0)  # has no value, too
    share = share if share < np.float32(1) else np.float32(1)
    return np.int32(bits_of(fused(share - np.float32(0.5), factor, WHOLE)) - WHOLE_BITS)


@kernel
def shrink_wiener(
    spectra: Line,
    guides: Line,
    count: Index,
    variances: Line,
    parts: Line,
    plain: Flag,
) -> Any:
    """Leave sigma² / (b² + sigma²) of each coefficient, b that of the guide; return the weight.

    These factors have 16 bits, and the rest 8, so that sums of its squares are of integers.
    Nothing is left of coefficients of which one has no value.
    """
    if plain is not None:
        no_simd()
    total, zero = 0, np.float32(0)
    mean = guides[0]
    guides[0] = np.float32(np.inf)
    for line in range(0, 8 * PITCH, PITCH):
        for q in range(8):
            if not abs(spectra[np.uintp(line + q)]) < np.float32(np.inf):
                for number in range(count):
                    spectra[np.uintp(line + q + 8 * number)] = zero
    for line in range(0, 8 * PITCH, PITCH):
        for i in range(line, line + 8 * count):
            place = np.uintp(i)
            noise = share_of(variances[place], guides[place])
            spectra[place] = spectra[place] * np.float32(noise) * parts[place]
            left = np.int32(255 - (noise >> 8))
            total += int(np.int32(left * left))
    guides[0] = mean
    return np.true_divide(np.float32(ONE), np.float32(total))


@kernel
def add_group(
    spectra: Line,
    lines: Line,
    places: Line,
    count: Index,
    wavelets: Flag,
    width: Index,
    first: Index,
    weight: Number,
    part: Number,
    factors: Line,
    steps: Line,
    sums: Line,
    weights: Line,
    plain: Flag,
) -> None:
    """Transform back the rest of a group, and add it to the sums of its pixels.

    `sums` and `weights` begin with place `first`.
    """
    if plain is not None:
        no_simd()
    lanes = 8 * count
    take_apart(spectra, count, lines, plain)
    transform_back(lines, lanes, wavelets, plain)
    turn(lines, count, spectra, plain)
    transform_back(spectra, lanes, wavelets, plain)
    scale = weight * np.float32(2 * LIMIT * STEPS)
    whole = np.int32(np.rint(weight * np.float32(WEIGHT_STEPS)))
    for line in range(0, 8 * PITCH, PITCH):
        for i in range(line, line + lanes):
            lane = np.uintp(i)
            steps[lane] = steps_of(spectra[lane], part, scale * factors[lane])
    for b in range(count):
        place = np.uintp(places[b] - first)
        weights[place] += whole
        for j in range(8):
            row = place + np.uintp(j * width)
            taken, _ = added_and_subtracted(get(sums, row, 1), get(steps, j * PITCH + 8 * b, 1))
            put(sums, row, 1, taken)


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
    """Add the loss by the groups of the blocks in rows `start` to `stop` to `sums`.

    - `planes`, `guides`: float32, shape (planes, rows * columns). The noisy picture, and the
      result of the first stage.
    - `cells`: shape (rows, columns). The picture in which blocks are compared.
    - `sums`, `weights`: int32, shape (planes, rows * columns).
    - `numbers`: see `plan_cpu`.
    - `factors`: the window, see `of_lanes`.
    """
    if plain is not None:
        no_simd()
    step, reach, most, wiener, tolerance, noise, parts, part = numbers
    height, width = cells.shape
    colours = planes.shape[0]
    last = height - 8
    compared = cells.reshape(height * width)
    lists = make_lists(width, step, most, plain)
    across = lists.counts.size
    places = np.empty((across, most), np.int64)
    lines = np.empty(8 * PITCH, np.float32)
    spectra = np.empty(8 * PITCH, np.float32)
    guide = np.empty(8 * PITCH, np.float32)
    steps = np.empty(8 * PITCH, np.int32)
    if start == stop:
        return
    top = max(0, min(start * step, last) - reach)
    bottom = min(height, min((stop - 1) * step, last) + reach + 8)
    first = top * width
    size = bottom * width - first
    own_sums = np.zeros((colours, size), np.int32)
    own_weights = np.zeros((colours, size), np.int32)
    for i in range(start, stop):
        y = min(i * step, last)
        match_row(compared, height, width, y, step, reach, tolerance, lists, places, plain)
        for j in range(across):
            for c in range(colours):
                there, count = places[j], lists.counts[j]
                doublings = 0
                while 1 << doublings < count:
                    doublings += 1
                own, shares = noise[c, doublings], parts[doublings]
                transform_group(planes[c], width, there, count, not wiener, lines, spectra, plain)
                if wiener:
                    transform_group(guides[c], width, there, count, False, lines, guide, plain)
                    weight = shrink_wiener(spectra, guide, count, own, shares, plain)
                else:
                    weight = shrink_hard(spectra, count, own, shares, plain)
                add_group(
                    spectra,
                    lines,
                    there,
                    count,
                    not wiener,
                    width,
                    first,
                    weight,
                    part,
                    factors,
                    steps,
                    own_sums[c],
                    own_weights[c],
                    plain,
                )
    for c in range(colours):
        all_sums, all_weights = sums[c], weights[c]
        for i in range(size):
            if own_sums[c, i] != 0:
                add_atomically(all_sums, np.uintp(first + i), own_sums[c, i])
            if own_weights[c, i] != 0:
                add_atomically(all_weights, np.uintp(first + i), own_weights[c, i])


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
    if plain is not None:
        no_simd()
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
def divide_sums(
    sums: Line,
    weights: Line,
    width: Index,
    y: Index,
    quotient: Number,
    curve: Line,
    out: Line,
    plain: Flag,
) -> None:
    """Write the loss of the pixels of row `y` in a stage."""
    if plain is not None:
        no_simd()
    row = y * width
    for x in range(width):
        total = np.float32(0)
        for j in range(min(8, y + 1)):
            line = np.float32(0)
            for k in range(min(8, x + 1)):
                line += curve[k] * np.float32(weights[np.uintp(row - j * width + x - k)])
            total += curve[j] * line
        out[x] = np.true_divide(np.float32(sums[np.uintp(row + x)]) * quotient, total)


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
    if plain is not None:
        no_simd()
    width = cells.shape[1]
    removed = np.empty(width, np.float32)
    for y in range(start, stop):
        for c in range(planes.shape[0]):
            divide_sums(sums[c], weights[c], width, y, quotient, curve, removed, plain)
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
    if plain is not None:
        no_simd()
    colours = sums.shape[0]
    width = output.shape[1] + 2 * MARGIN
    removed = np.empty((3, width), np.float32)
    for y in range(start, stop):
        for c in range(colours):
            divide_sums(sums[c], weights[c], width, y + MARGIN, quotient, curve, removed[c], plain)
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
    return np.ascontiguousarray(lanes, np.float32)


def noise_of(levels: NDArray[np.float32], norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the noise of coefficients: [plane, s of a group of 2^s blocks, lane]."""
    return of_lanes(levels[:, ADDED][:, :, None, :, None] * norms.reshape(-1, 1, SIDE, 1, SIDE))


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
        noise_of(found.thresholds, found.norms[0]),
        of_lanes(shares * PARTS.reshape(SIDE, 1, SIDE)),
        found.part,
    )
    second = (
        *(*where, WIENER, True),
        found.tolerances[1],
        noise_of(found.variances, found.norms[1]),
        of_lanes(shares / 2**22 * np.ones((SIDE, 1, SIDE))),
        found.part,
    )
    groups = where.count(rows)
    divided = found.quotient, curve, plain
    finish = Finish.of(source.dtype, np.float32)
    return [
        CpuPass(
            extend, (source, picture, cells, task.border.code, is_bytes, plain), rows, cost=0.01
        ),
        CpuPass(
            filter_groups,
            (picture, picture, cells, hard, hard_weights, first, factors, plain),
            groups,
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
            groups,
            cost=1.5,
        ),
        CpuPass(
            finish_rows,
            (source, wiener, wiener_weights, output, finish, *divided),
            height,
            cost=0.02,
        ),
    ]
