"""Custom mask against exact sums over NumPy's windows, and the ways a mask can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.filters.mask import PRESETS, SPEC
from kernelscope.schema.borders import Border
from kernelscope.schema.parameters import Mask
from tests.filters import apply
from tests.oracle import windows
from tests.pairs import together

LEVELS = pytest.mark.parametrize("level", ["serial", "parallel"])


def random_mask(size: int, low: int, high: int, fraction: float = 0.0) -> Mask:
    random = np.random.default_rng(size)
    weights = random.integers(low, high, (size, size), endpoint=True)
    if fraction:
        return tuple(map(tuple, (weights + fraction * random.random((size, size))).tolist()))
    return tuple(map(tuple, weights.tolist()))


CASES: list[dict[str, Any]] = [
    {},
    {"mask": random_mask(3, -9, 9), "divisor": "one", "negative": "offset"},
    {"mask": random_mask(5, -2, 7), "divisor": "sum", "negative": "absolute"},
    {"mask": random_mask(9, -3, 9), "divisor": "count", "negative": "clip"},
    {"mask": random_mask(15, -1_000_000, 1_000_000), "divisor": "sum", "negative": "absolute"},
    {"mask": random_mask(3, -2, 2, 0.7), "divisor": "one", "negative": "absolute"},
    {"mask": random_mask(7, 0, 5, 0.3), "divisor": "sum", "negative": "clip"},
]


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    if dtype.kind == "f":
        return 1e-5
    return 0 if all(isinstance(cell, int) for row in parameters["mask"] for cell in row) else 1


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    weights = np.array(parameters["mask"])
    cells, counted = windows(source, len(weights) // 2, border)
    sums = np.einsum("...st,st", cells, weights)
    if parameters["divisor"] == "count":
        sums = sums / counted.sum(axis=(-2, -1))
    elif parameters["divisor"] == "sum":
        divisors = np.einsum("...st,st", counted, weights)
        divisors = np.where(np.abs(divisors) < 1e-9 * np.abs(weights).sum(), 1, divisors)
        sums = sums / divisors
    if parameters["negative"] == "absolute":
        return np.abs(sums)
    if parameters["negative"] == "offset":
        return sums + {"u1": 128, "u2": 32768, "f4": 0.5}[source.dtype.str[1:]]
    return np.maximum(sums, 0)


@LEVELS
def test_ties_go_to_even_with_every_treatment(level: str) -> None:
    """Halves of both signs: the treatment must not shift which neighbour is even."""
    source = np.arange(256, dtype=np.uint8).reshape(1, 256, 1)
    for sign in (1, -1):
        # The sum is 4, but only the centre meets the image.
        halves = [[4 - 2 * sign, 0, 0], [0, 2 * sign, 0], [0, 0, 0]]
        for negative in ("clip", "absolute", "offset"):
            values = {"mask": halves, "divisor": "sum", "negative": negative}
            output = apply(SPEC, source, values, Border.CONSTANT, level)[0, :, 0]
            for sample, result in enumerate(output):
                exact = Fraction(2 * sign * sample, 4)
                if negative == "absolute":
                    exact = abs(exact)
                elif negative == "offset":
                    exact += 128
                assert result == min(max(round(exact), 0), 255)


@LEVELS
def test_a_mask_of_zeros_gives_black(level: str) -> None:
    source = np.full((4, 70, 3), 200, np.uint8)
    output = apply(SPEC, source, {"mask": [[0] * 3] * 3, "divisor": "one"}, Border.WRAP, level)
    assert (output == 0).all()


@pytest.mark.slow
@LEVELS
def test_floats_stay_finite(level: str) -> None:
    largest = np.finfo(np.float32).max
    source = np.array([largest, -largest, 0, 1], np.float32).reshape(1, 4, 1)
    mask = [[0, 0, 0], [0, 1e6, 0], [0, 0, 0]]
    for negative, wanted in (
        ("clip", [largest, 0, 0, 1e6]),
        ("absolute", [largest, largest, 0, 1e6]),
        ("offset", [largest, -largest, 0.5, 1e6 + 0.5]),
    ):
        parameters = {"mask": mask, "divisor": "one", "negative": negative}
        output = apply(SPEC, source, parameters, Border.REFLECT, level)
        np.testing.assert_array_equal(output[0, :, 0], np.array(wanted, np.float32))


@LEVELS
def test_reduce_divides_by_nothing_where_the_rest_adds_up_to_zero(level: str) -> None:
    """At the right edge the column of the 3 falls away; 0.1 + 0.2 - 0.3 leaves a crumb."""
    source = np.full((3, 5, 1), 7, np.uint8)
    for mask in ([[0, 0, 0], [-1, 1, 3], [0, 0, 0]], [[0, 0.1, 0], [0.2, -0.3, 3], [0, 0, 0]]):
        parameters = {"mask": mask, "divisor": "sum"}
        output = apply(SPEC, source, parameters, Border.REDUCE, level)
        assert output[1, 2, 0] == 7
        assert output[1, 4, 0] == 0


@together("preset", PRESETS)
def test_presets_fill_every_size(preset: Any) -> None:
    for size in range(3, 17, 2):
        values = SPEC.validate({"mask": preset.fill(size), **preset.settings})
        assert len(values["mask"]) == size
        flat = apply(SPEC, np.full((4, 5, 1), 100, np.uint8), values)
        if preset.settings["negative"] == "clip":
            assert (flat == 100).all(), "keeps the brightness"
        else:
            assert (flat == (128 if preset.settings["negative"] == "offset" else 0)).all()


def test_presets_are_the_masks_of_the_books() -> None:
    masks = {preset.name: preset.fill(3) for preset in PRESETS}
    assert masks["Gaussian"] == ((1, 2, 1), (2, 4, 2), (1, 2, 1))
    assert masks["Unsharp mask"] == ((-1, -2, -1), (-2, 28, -2), (-1, -2, -1))
    assert masks["Motion blur"] == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@together(
    ("text", "part"),
    [
        ("1 2; 3 4", "no centre"),
        ("1 2 1; 2 4; 1 2 1", "as many cells"),
        ("1 2 1; 2 x 2; 1 2 1", "row 2, column 2"),
        ("1 2 1; 2 nan 2; 1 2 1", "row 2, column 2"),
        ("1 2 1; 2 1e7 2; 1 2 1", "a million"),
        ("5", "out of range"),
        ("", "empty"),
    ],
)
def test_refuses_what_is_no_mask(text: str, part: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        SPEC.parameter("mask").parse(text)
    assert part in str(caught.value)


def test_mask_text_round_trips() -> None:
    parameter = SPEC.parameter("mask")
    mask = parameter.parse("1,2,1\n2\t4.5\t2\n1 -2e-3 1")
    assert mask == ((1, 2, 1), (2, 4.5, 2), (1, -0.002, 1))
    assert parameter.parse(parameter.format(mask)) == mask


@pytest.mark.parametrize(
    "mask", [[[-1, 0, 1]] * 3, [[0.1, 0.2, -0.3], [0, 0, 0], [0, 0, 0]], [[0] * 3] * 3]
)
def test_refuses_to_divide_by_a_sum_of_zero(mask: Any) -> None:
    with pytest.raises(InvalidParameter, match="add up to 0"):
        SPEC.validate({"mask": mask, "divisor": "sum"})
    for divisor in ("one", "count"):
        SPEC.validate({"mask": mask, "divisor": divisor})


@pytest.mark.parametrize(
    ("divisor", "words"),
    [
        ("one", "not divided"),
        ("count", "divided by kernel size"),
        ("sum", "divided by the sum of the weights"),
    ],
)
def test_the_division_reads_well_among_the_settings(divisor: str, words: str) -> None:
    settings = SPEC.validate({"mask": [[1] * 3] * 3, "divisor": divisor})
    assert f", {words}" in SPEC.describe(settings)
