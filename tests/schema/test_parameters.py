"""The facts that the faces ask of a parameter, for each kind of value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernelscope.schema.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    MaskParameter,
    MaskPreset,
    NumbersParameter,
    OddParameter,
    Parameter,
    RadiiParameter,
    SidesParameter,
    rounded,
)

TEXTS: dict[str, Any] = {"name": "value", "label": "Value", "help": "A value.", "unit": "px"}
PIXELS = np.zeros((2, 2, 1), np.uint8)
ONES = ((1, 1, 1),) * 3
INT = IntParameter(**TEXTS, default=1, minimum=0, maximum=9, counts_slices=True)
ODD = OddParameter(**TEXTS, default=3, minimum=3, maximum=9)
FLOAT = FloatParameter(
    **TEXTS, default=0.5, minimum=0, maximum=2, symbol="σ", estimate=lambda pixels, values: 1.23456
)
NUMBERS = NumbersParameter(**TEXTS, minimum=0, maximum=50, most=4, none="estimated")
RADII = RadiiParameter(**TEXTS, default=5, minimum=1, maximum=7)
SIDES = SidesParameter(**TEXTS, default=3, maximum=7)
CHOICE = ChoiceParameter(
    **TEXTS, default="a", choices=(Choice("a", "First"), Choice("b", "NLM"), Choice("c", "Third"))
)
MASK = MaskParameter(
    **TEXTS, default=ONES, minimum=3, maximum=9, presets=(MaskPreset("Box", lambda side: ONES),)
)
KINDS = (INT, ODD, FLOAT, NUMBERS, RADII, SIDES, CHOICE, MASK)
each_kind = pytest.mark.parametrize("parameter", KINDS, ids=lambda each: type(each).__name__)


def _subclasses(kind: type[Parameter]) -> Iterator[type[Parameter]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_every_kind_is_here():
    own = {each for each in _subclasses(Parameter) if each.__module__.startswith("kernelscope.")}
    assert {type(each) for each in KINDS} == own


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (INT, "0 to 9 px"),
        (ODD, "odd, 3 to 9 px"),
        (FLOAT, "0 to 2 px"),
        (NUMBERS, "up to 4 numbers, 0 to 50 px"),
        (RADII, "1 to 7 px, or three along x, y and z"),
        (SIDES, "odd, 1 to 7 px, or three along x, y and z"),
        (CHOICE, "a, b, c"),
        (MASK, "3×3 to 9×9"),
    ],
)
def test_allowed_values_are_given_in_words(parameter: Parameter, text: str):
    assert parameter.allowed() == text


@each_kind
def test_limits_are_those_of_the_declaration(parameter: Any):
    if parameter is CHOICE:
        assert parameter.limits() == {"choices": ["a", "b", "c"]}
    else:
        assert parameter.limits() == {"minimum": parameter.minimum, "maximum": parameter.maximum}


@each_kind
def test_only_choices_have_named_values_and_only_masks_presets(parameter: Parameter):
    assert parameter.named_values() == (CHOICE.choices if parameter is CHOICE else ())
    assert parameter.preset_names() == (("Box",) if parameter is MASK else ())
    assert parameter.stored_as_text == (parameter is MASK)


@pytest.mark.parametrize(
    ("parameter", "value", "chip", "caption", "brief"),
    [
        (INT, 4, "value 4 px", "Value 4 px", "value 4"),
        (ODD, 7, "7×7", "Value 7 px", "value 7"),
        (FLOAT, 0.123456789, "σ 0.123 px", "Value 0.123457 px", "value 0.123456789"),
        (NUMBERS, (1.0, 2.5), "value 1, 2.5 px", "Value 1, 2.5 px", "value 1, 2.5"),
        (NUMBERS, (), "value estimated", "Value estimated", "value "),
        (RADII, (1, 2, 3), "value 1, 2, 3 px", "Value 1, 2, 3 px", "value 1, 2, 3"),
        (CHOICE, "a", "first", "First", "value a"),
        (CHOICE, "b", "NLM", "NLM", "value b"),
        (MASK, ONES, "3×3 weights", "Value 1 1 1; 1 1 1; 1 1 1", "3×3"),
    ],
)
def test_texts(parameter: Parameter, value: Any, chip: str, caption: str, brief: str):
    assert parameter.chip(value) == chip
    assert parameter.caption(value) == caption
    assert parameter.brief(value) == brief


@pytest.mark.parametrize(
    ("parameter", "value", "found"),
    [
        (INT, 0, (0, 1, 2)),
        (ODD, 9, (5, 7, 9)),
        (FLOAT, 1.0, (0.5, 1.0, 2.0)),
        (NUMBERS, (2.0, 4.0), ((1.0, 2.0), (2.0, 4.0), (4.0, 8.0))),
        (NUMBERS, (), ()),
        (RADII, 5, (4, 5, 6)),
        (RADII, (1, 2, 3), ()),
        (SIDES, 5, (3, 5, 7)),
        (SIDES, (1, 3, 5), ()),
        (CHOICE, "a", ("a", "b", "c")),
        (MASK, ONES, ()),
    ],
)
def test_variants_surround_the_value(parameter: Parameter, value: Any, found: tuple[Any, ...]):
    assert parameter.variants(value, 3) == found


def test_the_first_choices_leave_room_for_the_present_one():
    assert CHOICE.variants("c", 2) == ("a", "c")


@each_kind
def test_only_a_real_number_is_estimated(parameter: Parameter):
    assert parameter.has_estimate == (parameter is FLOAT)
    assert not parameter.is_estimated


def test_an_estimate_has_four_digits_within_the_limits():
    assert FLOAT.estimate_from(PIXELS, {}) == 1.235
    high = FloatParameter(
        **TEXTS,
        default=0,
        minimum=0,
        maximum=1,
        estimate=lambda pixels, values: 3.0,
        estimated=True,
    )
    assert high.estimate_from(PIXELS, {}) == 1
    assert high.is_estimated


def test_a_seed_counts_slices_and_starts_again_after_its_maximum():
    assert [INT.for_slice(8, number) for number in range(3)] == [8, 9, 0]
    plain = IntParameter(**TEXTS, default=1, minimum=0, maximum=9)
    assert plain.for_slice(8, 1) == 8


@each_kind
def test_the_side_of_a_mask_is_set_within_its_limits(parameter: Parameter):
    found = [parameter.for_side(side, lambda side: ("weights", side)) for side in (1, 5, 11)]
    middle = {"OddParameter": 5, "SidesParameter": 5, "MaskParameter": ("weights", 5)}.get(
        type(parameter).__name__
    )
    assert found == [None, middle, None]
    assert parameter.sets_side == (middle is not None)


@each_kind
def test_the_time_depends_on_whole_numbers_and_choices(parameter: Parameter):
    assert parameter.affects_time == (parameter in (INT, ODD, RADII, SIDES, CHOICE))


def test_an_estimated_size_stays_a_whole_number() -> None:
    assert ODD.format(rounded(7)) == "7"
    assert rounded((0.123456, 3)) == (0.1235, 3)
