"""Directions of edges: the forms of Sobel that do not only say how steep an edge is.

The eight masks are one, turned clockwise in steps of 45°: N is (1 2 1; 0 0 0; -1 -2 -1) and
answers where the picture gets brighter upwards. The gradient is (gx, gy), gx = E and gy = S, as
rows count downwards; its angle atan2(gy, gx) (Korčuška 2013, equation 4) goes from E to S, which
is clockwise to the eye.

Integer samples get whole steps of an angle, 256 or 65536 a turn, and every level gives the same
ones. Angles are rounded in the first eighth of a turn, as ``rint(arctan(small / large) * scale)``,
and mirrored from there by whole steps. The bounds between steps have irrational tangents, so no
gradient lies on one; the one nearest to any is 1.1e-10 of a step away with 16 bits (for 8 it is
3.7e-6). In float64 the division, an arctangent that errs by two units in the last place, and the
product with the rounded scale are together off by less than 5e-12 of a step. Thus all mathematics
libraries give the same result, and the right one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared.border_kernels import VALID, fetch_row
from kernelscope.filters.shared.plain import gather, interior, no_simd, wide_cell
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.samples import colour_count, white_level

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
"""The eight masks, in the order in which the thesis turns them."""

FORMS = ("single", "winner", "angle", "angle-colour")
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


@kernel
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
    no_simd()
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


@kernel
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
    no_simd()
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

    - `form`: index in `FORMS`.
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


def output_channels(channels: int, form: str) -> int:
    """Return the channels of the result: colours for ``angle-colour``, alpha is kept."""
    return channels + 2 if form == "angle-colour" and channels <= 2 else channels


def plan_directions(task: CpuTask) -> Sequence[CpuPass]:
    """Plan one of `FORMS` of Sobel for either CPU level."""
    source, output = task.source, task.output
    whole = source.dtype.kind != "f"
    white = white_level(source.dtype)
    arguments = (
        source,
        output,
        FORMS.index(task.parameters["form"]),
        COMPASS.index(task.parameters["direction"]),
        colour_count(source.shape[2]),
        white + 1 if whole else white,
        white if whole else float(np.finfo(source.dtype).max),
        whole,
        task.border.code,
    )
    each = directions_serial if task.level == SERIAL.id else directions
    return [CpuPass(each, arguments, output.shape[0])]
