"""Sobel against SciPy's derivatives and eight rotated masks over NumPy's windows.

Angles are tested at the gradients nearest to each bound between two steps: fractions from both
sides, found by continued fractions of the tangent, to 60 digits.
"""

from __future__ import annotations

import colorsys
import functools
import itertools
from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.sobel import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.oracle import windows

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")

CASES: list[dict[str, Any]] = [
    {"form": form} for form in ("sum", "magnitude", "directions", "winner", "angle", "angle-colour")
] + [{"form": "single", "direction": direction} for direction in COMPASS]

RING = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
"""The outer cells of the mask, clockwise."""


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    cells, _ = windows(source, 1, border)
    ring = np.stack([cells[..., y, x] for y, x in RING])
    rotated = [np.roll([1, 2, 1, 0, -1, -2, -1, 0], turn) for turn in range(8)]
    gradients = np.stack([np.tensordot(weights, ring, 1) for weights in rotated])
    exact: NDArray[Any]
    if parameters["form"] == "directions":
        exact = gradients.max(axis=0)
    elif parameters["form"] == "single":
        exact = np.maximum(gradients[COMPASS.index(parameters["direction"])], 0)
    elif parameters["form"] == "winner":
        number = np.where(gradients.max(axis=0) > 0, gradients.argmax(axis=0) + 1, 0)
        steps = turn(source.dtype)
        exact = number * steps / 8 - (number > 0) * (steps > 1)
    elif parameters["form"] == "angle":
        exact = angle(gradients[2], gradients[4], turn(source.dtype)).astype(source.dtype)
        exact[exact == turn(source.dtype)] = 0  # a float may be rounded to it
    elif parameters["form"] == "angle-colour":
        exact = colour(gradients[2], gradients[4], source.dtype)
    elif parameters["form"] == "magnitude":
        exact = np.sqrt(gradients[0] ** 2.0 + gradients[2] ** 2.0)
    else:
        exact = np.abs(gradients[0]) + np.abs(gradients[2])
    return exact


def turn(dtype: np.dtype[Any]) -> float:
    """Return how many steps a full turn has: as many as there are grey values."""
    return {"u1": 256.0, "u2": 65536.0, "f4": 1.0}[dtype.str[1:]]


def angle(gx: NDArray[Any], gy: NDArray[Any], steps: float) -> NDArray[Any]:
    """Return ``atan2(gy, gx)`` in steps, whole ones if a turn has several."""
    found = np.arctan2(gy, gx) / (2 * np.pi) * steps
    return np.mod(np.rint(found) if steps > 1 else found, steps)


def colour(gx: NDArray[Any], gy: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the angle of the strongest channel as a hue, its strength as brightness."""
    squares = gx.astype(float) ** 2 + gy.astype(float) ** 2
    strongest = squares.argmax(axis=2)[:, :, None]
    gx, gy, squares = (np.take_along_axis(part, strongest, 2) for part in (gx, gy, squares))
    bright = np.sqrt(squares)
    if dtype.kind != "f":
        bright = np.minimum(np.rint(bright), np.iinfo(dtype).max)
    hue = 6 * angle(gx, gy, turn(dtype)) / turn(dtype)
    distance = np.abs(np.mod(hue + np.array([3, 1, 5]), 6) - 3)  # from red, green and blue
    return bright * np.clip(2 - distance, 0, 1)


@pytest.mark.parametrize("level", ["serial", "parallel"])
@pytest.mark.parametrize("form", ["sum", "magnitude", "directions"])
def test_edges_beyond_the_largest_float_stay_finite(form: str, level: str) -> None:
    source = np.zeros((3, 4, 1), np.float32)
    source[:, 2:] = np.finfo(np.float32).max
    output = apply(SPEC, source, {"form": form}, Border.REFLECT, level)
    assert output.max() == np.finfo(np.float32).max
    assert (output[:, [0, 3]] == 0).all()


@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_magnitudes_next_to_a_half(level: str) -> None:
    """sqrt(m² + m) is just below m + 1/2, sqrt(m² + m + 1) just above."""
    source = np.random.default_rng(2).integers(0, 1 << 14, (600, 600, 1)).astype(np.uint16)
    source[300:] >>= 10
    cells, _ = windows(source, 1, Border.VALID)
    gx = (cells * [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]).sum(axis=(-2, -1))
    gy = (cells * [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]).sum(axis=(-2, -1))
    squares = gx * gx + gy * gy
    below = np.array([[[int(n) for n in row] for row in squares[:, :, 0]]], np.int64)[0]
    root = np.sqrt(below.astype(np.longdouble)).astype(np.int64)
    wanted = root + (below > root * root + root)
    actual = apply(SPEC, source, {"form": "magnitude"}, Border.VALID, level)
    near = np.isin(below - root * root - root, (0, 1))
    assert near.sum() > 100
    np.testing.assert_array_equal(actual[:, :, 0], wanted)


def tangent(x: Decimal) -> Decimal:
    """Return the tangent of an angle up to an eighth of a turn, from the series of both."""
    sine, cosine, term, n = Decimal(0), Decimal(0), Decimal(1), 0
    while abs(term) > Decimal(10) ** -58:
        if n % 2:
            sine += term if n % 4 == 1 else -term
        else:
            cosine += term if n % 4 == 0 else -term
        n += 1
        term = term * x / n
    return sine / cosine


def nearest_fractions(value: Decimal, largest: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the fractions next below and above an irrational `value` between 0 and 1.

    Their denominators are at most `largest`; a walk down the tree of Stern and Brocot.
    """
    number, scale = value.as_integer_ratio()
    (a, b), (c, d) = (0, 1), (1, 1)
    while b + d <= largest:
        # So many steps to one side at a time, as continued fractions do.
        steps = (number * b - a * scale - 1) // (c * scale - number * d)
        steps = min(steps, (largest - b) // d)
        a, b = a + steps * c, b + steps * d
        if b + d > largest:
            break
        more = (c * scale - number * d - 1) // (number * b - a * scale)
        more = min(more, (largest - d) // b)
        c, d = c + more * a, d + more * b
        assert steps + more > 0
    return (a, b), (c, d)


def gradients_at_the_bounds(white: int, largest: int) -> Iterator[tuple[int, int, int]]:
    """Yield (gx, gy, step) next to each bound in the first eighth of a turn, 0 <= gy <= gx.

    Steps are those of samples up to `white`; gx is at most `largest`.
    """
    steps = white + 1
    with localcontext() as context:
        context.prec = 60
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
        for step in range(steps // 8):
            bound = tangent((2 * step + 1) * pi / steps)
            for above, (gy, gx) in enumerate(nearest_fractions(bound, largest)):
                yield gx, gy, step + above


def window_with(gx: int, gy: int, white: int) -> NDArray[Any] | None:
    """Return nine samples with this gradient, 0 <= gy <= gx; None where there are none."""
    if (gx + gy) % 2:  # corners count once in both, the others twice in one
        gx, gy = 2 * gx, 2 * gy
    right = min(gx // 2, white)
    both = gx - 2 * right  # the sum of the corners on the right, their difference is `rest`
    bottom = max(0, -((min(both, 2 * white - both) - gy) // 2))
    rest = gy - 2 * bottom
    if both > 2 * white or bottom > white:
        return None
    return np.array([[0, 0, (both - rest) // 2], [0, 0, right], [0, bottom, (both + rest) // 2]])


MIRRORED = {
    # Of the first eighth: (gx, gy, the window, and its step of a turn of n).
    0: lambda w, k, n: (w, k),
    1: lambda w, k, n: (w.T, n // 4 - k),
    2: lambda w, k, n: (np.fliplr(w.T), n // 4 + k),
    3: lambda w, k, n: (np.fliplr(w), n // 2 - k),
    4: lambda w, k, n: (w[::-1, ::-1], n // 2 + k),
    5: lambda w, k, n: (w.T[::-1, ::-1], 3 * n // 4 - k),
    6: lambda w, k, n: (np.flipud(w.T), 3 * n // 4 + k),
    7: lambda w, k, n: (np.flipud(w), (n - k) % n),
}
"""The eight eighths of a turn, clockwise, as pictures that are mirrored and turned."""


@functools.cache
def pictures_at_the_bounds(dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return windows side by side, shape (3 n, 3 m, 1), and their steps, shape (n, m)."""
    white = int(np.iinfo(dtype).max)
    windows_, steps = [], []
    # All fractions of the last kind fit into nine samples, those of the first are the nearest.
    found = (gradients_at_the_bounds(white, n * white) for n in (4, 2, 1))
    for gx, gy, step in itertools.chain(*found):
        window = window_with(gx, gy, white)
        if window is not None:
            for mirror in MIRRORED.values():
                mirrored, turned = mirror(window, step, white + 1)
                windows_.append(mirrored)
                steps.append(turned)
    columns = 16  # of windows; divides their number with 8 and with 16 bits
    tiled = np.array(windows_).reshape(-1, columns, 3, 3).transpose(0, 2, 1, 3)
    picture = tiled.reshape(-1, 3 * columns, 1)
    return picture.astype(dtype), np.array(steps).reshape(-1, columns)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_angles_next_to_the_bounds_between_steps(dtype: type, level: str) -> None:
    source, wanted = pictures_at_the_bounds(np.dtype(dtype))
    assert wanted.size >= 3 * (np.iinfo(dtype).max + 1)
    output = apply(SPEC, source, {"form": "angle"}, Border.VALID, level)
    np.testing.assert_array_equal(output[::3, ::3, 0], wanted)


@pytest.mark.parametrize("white", [255, 65535])
def test_any_arctangent_tells_on_which_side_of_a_bound_a_gradient_is(white: int) -> None:
    """The margin of the directions: also for gradients that no nine samples have."""
    gx, gy, wanted = np.array(list(gradients_at_the_bounds(white, 4 * white))).T
    places = np.arctan(gy / gx) * ((white + 1) / (2 * np.pi))
    np.testing.assert_array_equal(np.rint(places), wanted)
    margin = np.abs(np.abs(places - wanted) - 0.5).min()
    assert margin > {255: 3.7e-6, 65535: 1.1e-10}[white] > 20 * 5e-12


@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_the_direction_of_an_edge_is_where_it_gets_brighter(level: str) -> None:
    """A half plane of white in each of the eight directions, at every type."""
    y, x = np.mgrid[-2:3, -2:3]
    sides = [-y, x - y, x, x + y, y, y - x, -x, -x - y]
    for (number, side), dtype in itertools.product(enumerate(sides), ("u1", "u2", "f4")):
        steps = turn(np.dtype(dtype))
        source = np.where(side > 0, steps - (steps > 1), 0).astype(dtype)[:, :, None]
        found = {
            form: apply(SPEC, source, {"form": form}, Border.REFLECT, level)[2, 2].tolist()
            for form in ("winner", "angle", "angle-colour")
        }
        assert found["winner"] == [(number + 1) * steps / 8 - (steps > 1)]
        assert found["angle"] == [(number - 2) % 8 * steps / 8]
        hue, _, bright = colorsys.rgb_to_hsv(*found["angle-colour"])
        assert hue == pytest.approx((number - 2) % 8 / 8, abs=0.002)
        assert bright >= source.max()
        for other, name in enumerate(COMPASS):
            values = {"form": "single", "direction": name}
            response = apply(SPEC, source, values, Border.REFLECT, level)[2, 2, 0]
            assert (response > 0) == ((number - other) % 8 in (0, 1, 7)), name


def test_an_angle_just_below_a_turn_is_none() -> None:
    """As float32 it would be 1, which is 0."""
    source = np.zeros((3, 3, 1), np.float32)
    source[1, 2], source[0, 1] = 1, 1e-9
    (angle_,) = apply(SPEC, source, {"form": "angle"}, Border.VALID)[0, 0]
    assert angle_ == 0
    source[0, 1] = 1e-3
    (angle_,) = apply(SPEC, source, {"form": "angle"}, Border.VALID)[0, 0]
    assert angle_ == pytest.approx(1 - 1e-3 / (2 * np.pi))


def test_the_colour_is_that_of_the_strongest_channel() -> None:
    source = np.zeros((3, 4, 3), np.uint8)
    source[:, 2:] = (20, 21, 3)
    source[1:, :, 2] = 9
    output = apply(SPEC, source, {"form": "angle-colour"}, Border.VALID)
    assert output[0, 0].tolist() == [84, 0, 0]
    grey_with_alpha = np.concatenate([source[:, :, 1:2], np.full((3, 4, 1), 200, np.uint8)], axis=2)
    output = apply(SPEC, grey_with_alpha, {"form": "angle-colour"}, Border.VALID)
    assert output.shape == (1, 2, 4)
    assert output[0, 0, :3].tolist() == [84, 0, 0]
