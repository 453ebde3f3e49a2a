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

from app.filters.borders import fetch_row
from app.filters.jit import kernel
from app.filters.spec import CpuPass, FilterTask, colour_count, white_level

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
"""The eight masks, in the order in which the thesis turns them."""

FORMS = ("single", "winner", "angle", "angle-colour")
_SINGLE, _WINNER, _ANGLE, _COLOUR = range(4)


@kernel
def responses(above: Any, here: Any, below: Any, left: Any, step: Any) -> Any:
    """Return what the masks N, NE, E and SE find; the other four find the opposite.

    Parameters
    ----------
    above, here, below : ndarray of float64
        Flat padded rows.
    left : int
        Place of the cells to the left of the pixel.
    step : int
        Places from one column to the next.
    """
    middle, right = left + step, left + 2 * step
    a, b, c = above[left], above[middle], above[right]
    d, f = here[left], here[right]
    g, h, i = below[left], below[middle], below[right]
    return (
        (a + 2 * b + c) - (g + 2 * h + i),
        (b + 2 * c + f) - (d + 2 * g + h),
        (c + 2 * f + i) - (a + 2 * d + g),
        (f + 2 * i + h) - (b + 2 * a + d),
    )


@kernel
def turn_of(gx: Any, gy: Any, turn: Any, whole: Any) -> Any:
    """Return the angle of a gradient, 0 to `turn`, which is 0 again, as float64.

    Parameters
    ----------
    gx, gy : float64
        0 has no direction, and 0 for an angle.
    turn : float64
        What a full turn is.
    whole : bool
        Round to whole steps; `turn` is then a power of two from 8 on.
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


@kernel
def single_row(
    above: Any, here: Any, below: Any, step: Any, direction: Any, high: Any, samples: Any
) -> None:
    """Write what one mask finds; less than nothing is black."""
    sign = 1.0 if direction < 4 else -1.0
    for x in range(samples.size):
        found = responses(above, here, below, x, step)
        samples[x] = min(max(sign * found[direction % 4], 0.0), high)


@kernel
def winner_row(
    above: Any, here: Any, below: Any, step: Any, eighth: Any, whole: Any, samples: Any
) -> None:
    """Write the number of the mask that finds most, 1 to 8, in eighths of white.

    Of several the first; 0 where none finds anything.
    """
    for x in range(samples.size):
        n, ne, e, se = responses(above, here, below, x, step)
        most, winner = 0.0, 0
        for number, found in enumerate((n, ne, e, se, -n, -ne, -e, -se)):
            if found > most:
                most, winner = found, number + 1
        samples[x] = winner * eighth - (1 if whole and winner else 0)


@kernel
def angle_row(
    above: Any, here: Any, below: Any, step: Any, turn: Any, whole: Any, samples: Any
) -> None:
    """Write the angle of the gradient."""
    for x in range(samples.size):
        n, _, gx, _ = responses(above, here, below, x, step)
        angle = np.float32(turn_of(gx, -n, turn, whole))
        samples[x] = angle if angle < turn else np.float32(0)


@kernel
def colour_row(
    above: Any,
    here: Any,
    below: Any,
    step: Any,
    colours: Any,
    turn: Any,
    high: Any,
    whole: Any,
    pixels: Any,
) -> None:
    """Write the gradient as a colour: its angle is the hue, its length the brightness.

    Of a colour picture, the channel with the longest gradient counts, the first of several.
    """
    for x in range(pixels.shape[0]):
        gx, gy, longest = 0.0, 0.0, 0.0
        for c in range(colours):
            n, _, e, _ = responses(above, here, below, x * step + c, step)
            square = e * e + n * n
            if square > longest:
                gx, gy, longest = e, -n, square
        bright = np.sqrt(longest)
        if whole:
            bright = np.rint(bright)
        bright = min(bright, high)
        place = 6 * turn_of(gx, gy, turn, whole) / turn
        sector = int(place)
        rising = bright * (place - sector)
        falling = bright * (sector + 1 - place)
        if whole:
            rising, falling = np.rint(rising), np.rint(falling)
        red, green, blue = bright, rising, 0.0
        if sector == 1:
            red, green, blue = falling, bright, 0.0
        elif sector == 2:
            red, green, blue = 0.0, bright, rising
        elif sector == 3:
            red, green, blue = 0.0, falling, bright
        elif sector == 4:
            red, green, blue = rising, 0.0, bright
        elif sector == 5:
            red, green, blue = bright, 0.0, falling
        pixels[x, 0], pixels[x, 1], pixels[x, 2] = red, green, blue


@kernel
def directions(
    source: Any,
    output: Any,
    form: Any,
    direction: Any,
    colours: Any,
    turn: Any,
    high: Any,
    whole: Any,
    border: Any,
    start: Any,
    stop: Any,
) -> None:
    """Go down the rows over a ring of three padded ones, in float64, which holds all sums exactly.

    Parameters
    ----------
    form : int
        Index in `FORMS`.
    direction : int
        Index in `COMPASS`, for form *single*.
    colours : int
        Channels of the source without alpha.
    turn : float64
        Steps of a full turn, see `turn_of`; or 1 for floats.
    high : float64
        The largest sample.
    whole : bool
        Whether samples are integers.
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


def plan_directions(task: FilterTask) -> Sequence[CpuPass]:
    """Plan one of `FORMS` of Sobel for either CPU level: each pixel takes far longer to compute
    than to read, and the arctangent is the same."""
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
    return [CpuPass(directions, arguments, output.shape[0])]
