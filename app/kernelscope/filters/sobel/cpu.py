"""Sobel on the CPU: how steep the picture is, and by `directions` where to it gets brighter."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import VALID, fetch_row
from kernelscope.filters.shared.correlation import Finish, Work, settle, taps, weighted_sum
from kernelscope.filters.shared.plain import gather, interior, put, wide_cell
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.samples import colour_count, white_level

# Directions of edges: the forms of Sobel that do not only say how steep an edge is -----
#
# The eight masks are one, turned clockwise in steps of 45°: N is (1 2 1; 0 0 0; -1 -2 -1) and
# answers where the picture gets brighter upwards. The gradient is (gx, gy), gx = E and gy = S, as
# rows count downwards; its angle atan2(gy, gx) (Korčuška 2013, equation 4) goes from E to S, which
# is clockwise to the eye.
#
# Integer samples get whole steps of an angle, 256 or 65536 a turn, and every level gives the same
# ones. Angles are rounded in the first eighth of a turn, as ``rint(arctan(small / large) *
# scale)``, and mirrored from there by whole steps. The bounds between steps have irrational
# tangents, so no gradient lies on one; the one nearest to any is 1.1e-10 of a step away with 16
# bits (for 8 it is 3.7e-6). In float64 the division, an arctangent that errs by two units in the
# last place, and the product with the rounded scale are together off by less than 5e-12 of a
# step. Thus all mathematics libraries give the same result, and the right one.

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
"""The eight masks, in the order in which the thesis turns them."""

DIRECTED_FORMS = ("single", "winner", "angle", "angle-colour")
_SINGLE, _WINNER, _ANGLE, _COLOUR = range(4)


@inlined
def compass(
    a: Number, b: Number, c: Number, d: Number, f: Number, g: Number, h: Number, i: Number
) -> Any:
    """Return the responses of the masks N, NE, E and SE; those of the other four are opposite.

    The cells around the pixel are given row by row, as int64 or float64.
    """
    return (
        (a + 2 * b + c) - (g + 2 * h + i),
        (b + 2 * c + f) - (d + 2 * g + h),
        (c + 2 * f + i) - (a + 2 * d + g),
        (f + 2 * i + h) - (b + 2 * a + d),
    )


@inlined
def responses(above: Line, here: Line, below: Line, left: Index, step: Index) -> Any:
    """Apply `compass` to a pixel of padded rows.

    - `above`, `here`, `below`: float64. Flat padded rows.
    - `left`: place of the cells to the left of the pixel.
    - `step`: places from one column to the next.
    """
    middle, right = left + step, left + 2 * step
    return compass(
        above[left],
        above[middle],
        above[right],
        here[left],
        here[right],
        below[left],
        below[middle],
        below[right],
    )


@inlined
def responses_at(samples: Line, place: Index, pitch: Index, step: Index) -> Any:
    """Apply `compass` to the 3x3 window whose first cell is at `place`.

    Its rows are `pitch` samples apart, its columns `step`.
    """
    below = place + 2 * pitch
    return compass(
        wide_cell(samples, place),
        wide_cell(samples, place + step),
        wide_cell(samples, place + 2 * step),
        wide_cell(samples, place + pitch),
        wide_cell(samples, place + pitch + 2 * step),
        wide_cell(samples, below),
        wide_cell(samples, below + step),
        wide_cell(samples, below + 2 * step),
    )


@kernel
def turn_of(gx: Number, gy: Number, turn: Number, whole: Flag) -> Any:
    """Return the angle of a gradient, 0 to `turn`, which is 0 again, as float64.

    - `gx`, `gy`: float64. 0 has no direction, and 0 for an angle.
    - `turn`: float64. The value of a full turn.
    - `whole`: round to whole steps; `turn` is then a power of two from 8 on.
    """
    across, down = abs(gx), abs(gy)
    large = max(across, down)
    if large == 0:
        return 0.0
    place = np.arctan(min(across, down) / large) * (turn / (2 * math.pi))
    if whole:
        place = np.rint(place)
    if down > across:
        place = turn / 4 - place
    if gx < 0:
        place = turn / 2 - place
    if gy < 0:
        place = turn - place
    return place


@inlined
def single_of(found: Record, direction: Index, high: Number) -> Any:
    """Return the response of one mask; below 0 it is black."""
    n, ne, e, se = found
    mask = direction % 4
    most = n if mask == 0 else ne if mask == 1 else e if mask == 2 else se
    return min(max(np.float64(most if direction < 4 else -most), 0.0), high)


@inlined
def winner_of(found: Record, eighth: Number, whole: Flag) -> Any:
    """Return the number of the mask that finds most, 1 to 8, in eighths of white.

    Of several the first; 0 where none finds anything.
    """
    n, ne, e, se = found
    most, winner = 0, 0
    for number, each in enumerate((n, ne, e, se, -n, -ne, -e, -se)):
        if each > most:
            most, winner = each, number + 1
    return winner * eighth - (1 if whole and winner else 0)


@inlined
def angle_of(found: Record, turn: Number, whole: Flag) -> Any:
    """Return the angle of the gradient as a sample."""
    angle = np.float32(turn_of(np.float64(found[2]), np.float64(-found[0]), turn, whole))
    return angle if angle < turn else np.float32(0)


@inlined
def colour_of(gx: Number, gy: Number, turn: Number, high: Number, whole: Flag) -> Any:
    """Return a gradient as red, green and blue: its angle is the hue, its length the brightness."""
    bright = np.sqrt(gx * gx + gy * gy)
    if whole:
        bright = np.rint(bright)
    bright = min(bright, high)
    place = 6 * turn_of(gx, gy, turn, whole) / turn
    sector = int(place)
    rising = bright * (place - sector)
    falling = bright * (sector + 1 - place)
    if whole:
        rising, falling = np.rint(rising), np.rint(falling)
    if sector == 1:
        return falling, bright, 0.0
    if sector == 2:
        return 0.0, bright, rising
    if sector == 3:
        return 0.0, falling, bright
    if sector == 4:
        return rising, 0.0, bright
    if sector == 5:
        return bright, 0.0, falling
    return bright, rising, 0.0


# Level serial ---------------------------------------------------------------------------


@inlined
def sample_of(
    found: Record, form: Index, direction: Index, turn: Number, high: Number, whole: Flag
) -> Any:
    """Return the result of a form other than `_COLOUR`."""
    if form == _SINGLE:
        return np.float64(single_of(found, direction, high))
    if form == _WINNER:
        return np.float64(winner_of(found, turn / 8, whole))
    return np.float64(angle_of(found, turn, whole))


@inlined
def steepest(
    samples: Line, place: Index, pitch: Index, step: Index, plane: Index, colours: Index
) -> Any:
    """Return the gradient of the channel where it is longest, the first of several.

    The windows of the channels are as those of `responses_at`, `plane` places apart.
    """
    gx, gy, longest = 0.0, 0.0, 0.0
    for c in range(colours):
        n, _, e, _ = responses_at(samples, place + c * plane, pitch, step)
        square = np.float64(e * e + n * n)
        if square > longest:
            gx, gy, longest = np.float64(e), np.float64(-n), square
    return gx, gy


@kernel.plain
def directions_rim(
    source: Plane,
    results: Array,
    form: Index,
    direction: Index,
    colours: Index,
    turn: Number,
    high: Number,
    whole: Flag,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`."""
    channels = source.shape[2]
    windows = np.empty((channels, 9), source.dtype)
    cells = windows.reshape(windows.size)
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.shape[0])
        for x in range(left, right):
            for c in range(channels):
                gather(source, y, x, c, 1, border, windows[c])
            if form == _COLOUR:
                gx, gy = steepest(cells, 0, 3, 1, 9, colours)
                red, green, blue = colour_of(gx, gy, turn, high, whole)
                results[x, 0], results[x, 1], results[x, 2] = red, green, blue
                continue
            for c in range(channels):
                found = responses_at(cells, 9 * c, 3, 1)
                results[x, c] = sample_of(found, form, direction, turn, high, whole)


@kernel.plain
def directions_serial(
    source: Plane,
    output: Plane,
    form: Index,
    direction: Index,
    colours: Index,
    turn: Number,
    high: Number,
    whole: Flag,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, its eight neighbours; parameters as for `directions`."""
    height, width, channels = source.shape
    inset = 0 if border == VALID else 1
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        pixels = output[y]
        first, last = interior(y, 1, height, width, border)
        directions_rim(
            source,
            pixels,
            form,
            direction,
            colours,
            turn,
            high,
            whole,
            border,
            y,
            first,
            last,
        )
        corner = (y - inset) * pitch - inset * channels
        if form == _COLOUR:
            for x in range(first, last):
                gx, gy = steepest(samples, corner + x * channels, pitch, channels, 1, colours)
                red, green, blue = colour_of(gx, gy, turn, high, whole)
                pixels[x, 0], pixels[x, 1], pixels[x, 2] = red, green, blue
            continue
        results = pixels.reshape(pixels.size)
        for x in range(first * channels, last * channels):
            found = responses_at(samples, corner + x, pitch, channels)
            results[x] = sample_of(found, form, direction, turn, high, whole)


# Level parallel -------------------------------------------------------------------------


@kernel
def single_row(
    above: Line, here: Line, below: Line, step: Index, direction: Index, high: Number, samples: Line
) -> None:
    for x in range(samples.size):
        samples[x] = single_of(responses(above, here, below, x, step), direction, high)


@kernel
def winner_row(
    above: Line, here: Line, below: Line, step: Index, eighth: Number, whole: Flag, samples: Line
) -> None:
    for x in range(samples.size):
        samples[x] = winner_of(responses(above, here, below, x, step), eighth, whole)


@kernel
def angle_row(
    above: Line, here: Line, below: Line, step: Index, turn: Number, whole: Flag, samples: Line
) -> None:
    for x in range(samples.size):
        samples[x] = angle_of(responses(above, here, below, x, step), turn, whole)


@kernel
def colour_row(
    above: Line,
    here: Line,
    below: Line,
    step: Index,
    colours: Index,
    turn: Number,
    high: Number,
    whole: Flag,
    pixels: Array,
) -> None:
    """Write `colour_of` the steepest channel, as `steepest` has it, for each pixel of a row."""
    for x in range(pixels.shape[0]):
        gx, gy, longest = 0.0, 0.0, 0.0
        for c in range(colours):
            n, _, e, _ = responses(above, here, below, x * step + c, step)
            square = e * e + n * n
            if square > longest:
                gx, gy, longest = e, -n, square
        red, green, blue = colour_of(gx, gy, turn, high, whole)
        pixels[x, 0], pixels[x, 1], pixels[x, 2] = red, green, blue


@kernel
def directions(
    source: Plane,
    output: Plane,
    form: Index,
    direction: Index,
    colours: Index,
    turn: Number,
    high: Number,
    whole: Flag,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Go down the rows over a ring of three padded ones, in float64, which holds all sums exactly.

    - `form`: index in `DIRECTED_FORMS`.
    - `direction`: index in `COMPASS`, for form *single*.
    - `colours`: channels of the source without alpha.
    - `turn`: float64. Steps of a full turn, see `turn_of`; or 1 for floats.
    - `high`: float64. The largest sample.
    - `whole`: whether samples are integers.
    """
    step = source.shape[2]
    ring = np.empty((3, (output.shape[1] + 2) * step), np.float64)
    for row in range(start, stop + 2):
        fetch_row(source, row, 1, border, ring[row % 3])
        y = row - 2
        if y < start:
            continue
        above, here, below = ring[y % 3], ring[(y + 1) % 3], ring[row % 3]
        if form == _COLOUR:
            colour_row(above, here, below, step, colours, turn, high, whole, output[y])
            continue
        samples = output[y].reshape(output.shape[1] * step)
        if form == _SINGLE:
            single_row(above, here, below, step, direction, high, samples)
        elif form == _WINNER:
            winner_row(above, here, below, step, turn / 8, whole, samples)
        else:
            angle_row(above, here, below, step, turn, whole, samples)


def plan_directions(task: CpuTask) -> Sequence[CpuPass]:
    """Plan one of `DIRECTED_FORMS` of Sobel for either CPU level."""
    source, output = task.source, task.output
    whole = source.dtype.kind != "f"
    white = white_level(source.dtype)
    arguments = (
        source,
        output,
        DIRECTED_FORMS.index(task.parameters["form"]),
        COMPASS.index(task.parameters["direction"]),
        colour_count(source.shape[2]),
        white + 1 if whole else white,
        white if whole else float(np.finfo(source.dtype).max),
        whole,
        task.border.code,
    )
    each = directions_serial if task.level == SERIAL.id else directions
    return [CpuPass(each, arguments, output.shape[0])]


MASKS = np.array(
    [
        [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
        [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
        [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
        [[-2, -1, 0], [-1, 0, 1], [0, 1, 2]],
    ],
    np.int64,
)
"""gx, gy and the two diagonals. The other four of the eight directions are their opposites."""

FORMS = ("sum", "magnitude", "directions", *DIRECTED_FORMS)
_SUM, _MAGNITUDE, _DIRECTIONS = range(3)
"""Those that `sobel_serial` and `sobel_parallel` compute; `directions` does the others."""


@inlined
def steepness(samples: Line, place: Index, pitch: Index, step: Index, form: Index) -> Any:
    """Return the float64 result for the 3x3 window whose first cell is at `place`.

    Its rows are `pitch` samples apart, its columns `step`.
    """
    below = place + 2 * pitch
    a = wide_cell(samples, place)
    b = wide_cell(samples, place + step)
    c = wide_cell(samples, place + 2 * step)
    d = wide_cell(samples, place + pitch)
    f = wide_cell(samples, place + pitch + 2 * step)
    g = wide_cell(samples, below)
    h = wide_cell(samples, below + step)
    i = wide_cell(samples, below + 2 * step)
    gx = abs(c + 2 * f + i - a - 2 * d - g)
    gy = abs(g + 2 * h + i - a - 2 * b - c)
    if form == _SUM:
        return np.float64(gx + gy)
    if form == _MAGNITUDE:
        return np.sqrt(np.float64(gx) * gx + np.float64(gy) * gy)
    rising = abs(b + 2 * c + f - d - 2 * g - h)
    falling = abs(f + 2 * i + h - b - 2 * a - d)
    return np.float64(max(max(gx, gy), max(rising, falling)))


@kernel.plain
def sobel_rim(
    source: Plane,
    results: Line,
    form: Index,
    finish: Record,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`."""
    channels = source.shape[2]
    window = np.empty(9, source.dtype)
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.size // channels)
        for x in range(left, right):
            for c in range(channels):
                gather(source, y, x, c, 1, border, window)
                put(results, x * channels + c, steepness(window, 0, 3, 1, form), finish)


@kernel.plain
def sobel_serial(
    source: Plane,
    output: Plane,
    form: Index,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, its eight neighbours."""
    height, width, channels = source.shape
    inset = 0 if border == VALID else 1
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, 1, height, width, border)
        sobel_rim(source, results, form, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            if channels == 1:  # a known step leaves fewer addresses to keep
                value = steepness(samples, corner + x, pitch, 1, form)
            else:
                value = steepness(samples, corner + x, pitch, channels, form)
            put(results, x, value, finish)


@kernel
def sobel_parallel(  # noqa: C901 - compiled by Numba as one loop
    source: Plane,
    output: Plane,
    places: Array,
    weights: Array,
    form: Index,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Row by row over a ring of padded rows, in the type of `weights`.

    - `places`: int64, shape (masks, taps, 2). Row and column of each weight in its mask.
    - `weights`: float32 or float64, shape (masks, taps).
    """
    channels = source.shape[2]
    length = output.shape[1] * channels
    stride = length + 2 * channels
    ring = np.empty(3 * stride, weights.dtype)
    offsets = np.empty(weights.shape[1], np.int64)
    gradient = np.empty(length, weights.dtype)
    results = np.empty(length, weights.dtype)
    for row in range(start, stop + 2):
        slot = row % 3 * stride
        fetch_row(source, row, 1, border, ring[slot : slot + stride])
        y = row - 2
        if y < start:
            continue
        results[:] = 0
        for m in range(weights.shape[0]):
            for i in range(offsets.size):
                offsets[i] = (y + places[m, i, 0]) % 3 * stride + places[m, i, 1] * channels
            weighted_sum(ring, offsets, weights[m], gradient)
            if form == _SUM:
                for x in range(length):
                    results[x] += abs(gradient[x])
            elif form == _MAGNITUDE:
                for x in range(length):
                    results[x] += gradient[x] * gradient[x]
            else:
                for x in range(length):
                    results[x] = max(results[x], abs(gradient[x]))
        if form == _MAGNITUDE:
            for x in range(length):
                results[x] = np.sqrt(results[x])
        samples = output[y].reshape(length)
        for x in range(length):
            samples[x] = settle(results[x], finish)


@functools.cache
def _taps(masks: int, work: Work) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return places and weights of the first masks, stacked; see `correlation.taps`."""
    places, weights = zip(*(taps(mask, work) for mask in MASKS[:masks]), strict=True)
    return np.stack(places), np.stack(weights)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    form = FORMS.index(task.parameters["form"])
    if form > _DIRECTIONS:
        return plan_directions(task)
    if task.level == SERIAL.id:
        finish = Finish.of(source.dtype, np.float64)
        serial = (source, output, form, finish, border.code)
        return [CpuPass(sobel_serial, serial, output.shape[0])]
    # Sums of squares of 8-bit gradients fit the 24 bits of float32. Those of 16-bit ones
    # need float64, which also brings the root near enough to decide on which side of a
    # half it is: it never is one, and is off by 1/4 / (2 * 65536) at least.
    work = np.float32 if source.dtype == np.uint8 else np.float64
    places, weights = _taps(len(MASKS) if form == _DIRECTIONS else 2, work)
    finish = Finish.of(source.dtype, work)
    parallel = (source, output, places, weights, form, finish, border.code)
    return [CpuPass(sobel_parallel, parallel, output.shape[0])]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy."""
    form = task.parameters["form"]
    found = uncompiled.cells(task, 1, start, stop, np.float64)
    gx, gy, rising, falling = (uncompiled.correlated(found, mask) for mask in MASKS)
    if form == "single":
        number = COMPASS.index(task.parameters["direction"])
        one = (-gy, rising, gx, falling)[number % 4]
        return uncompiled.finished(task, np.maximum(-one if number > 3 else one, 0))
    if form == "sum":
        return uncompiled.finished(task, abs(gx) + abs(gy))
    if form == "magnitude":
        return uncompiled.finished(task, np.sqrt(gx * gx + gy * gy))
    return uncompiled.finished(task, abs(np.stack((gx, gy, rising, falling))).max(0))


def uncompiled_passes(task: CpuTask) -> Sequence[CpuPass]:
    """Return the passes of NumPy; none of the forms that say where to it gets brighter."""
    if task.parameters["form"] in DIRECTED_FORMS[1:]:
        return ()
    return uncompiled.by_numpy(_rows)(task)
