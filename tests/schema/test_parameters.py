"""The facts that the faces ask of a parameter, for each kind of value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.parameters import (
    AxesParameter,
    BoundedParameter,
    Choice,
    ChoiceParameter,
    FloatParameter,
    FootprintParameter,
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
from tests.pairs import together

TEXTS: dict[str, Any] = {"name": "value", "label": "Value", "help": "A value.", "unit": "px"}
PIXELS = np.zeros((2, 2, 1), np.uint8)
ONES = ((1, 1, 1),) * 3
INT = IntParameter(**TEXTS, default=1, minimum=0, maximum=9, counts_slices=True)
ODD = OddParameter(**TEXTS, default=3, minimum=3, maximum=9)
FLOAT = FloatParameter(
    **TEXTS, default=0.5, minimum=0, maximum=2, symbol="σ", estimate=lambda pixels, values: 1.23456
)
AXES = AxesParameter(**TEXTS, default=0.5, minimum=0, maximum=20, axes=2)
NUMBERS = NumbersParameter(**TEXTS, minimum=0, maximum=50, most=4, none="estimated")
RADII = RadiiParameter(**TEXTS, default=5, minimum=1, maximum=7)
SIDES = SidesParameter(**TEXTS, default=3, maximum=7)
CHOICE = ChoiceParameter(
    **TEXTS, default="a", choices=(Choice("a", "First"), Choice("b", "NLM"), Choice("c", "Third"))
)
MASK = MaskParameter(
    **TEXTS, default=ONES, minimum=3, maximum=9, presets=(MaskPreset("Box", lambda side: ONES),)
)
CROSS = ((0, 1, 0), (1, 1, 1), (0, 1, 0))
FOOTPRINT = FootprintParameter(
    **TEXTS, default="all", choices=(Choice("all", "Square"), Choice("disk", "Disk")), maximum=5
)
KINDS = (INT, ODD, FLOAT, AXES, NUMBERS, RADII, SIDES, CHOICE, FOOTPRINT, MASK)
each_kind = pytest.mark.parametrize("parameter", KINDS, ids=lambda each: type(each).__name__)


def _subclasses(kind: type[Parameter]) -> Iterator[type[Parameter]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_every_kind_is_here():
    own = {each for each in _subclasses(Parameter) if each.__module__.startswith("kernelscope.")}
    assert {type(each) for each in KINDS} == own - {BoundedParameter}


@together(
    ("parameter", "text"),
    [
        (INT, "0 to 9 px"),
        (ODD, "odd, 3 to 9 px"),
        (FLOAT, "0 to 2 px"),
        (AXES, "0 to 20 px, or one for each axis"),
        (NUMBERS, "up to 4 numbers, 0 to 50 px"),
        (RADII, "1 to 7 px, or three along x, y and z"),
        (SIDES, "odd, 1 to 7 px, or three along x, y and z"),
        (CHOICE, "a, b, c"),
        (FOOTPRINT, "all, disk, or rows of 0 and 1, up to 5×5"),
        (MASK, "3×3 to 9×9"),
    ],
)
def test_allowed_values_are_given_in_words(parameter: Parameter, text: str):
    assert parameter.allowed() == text


@each_kind
def test_limits_are_those_of_the_declaration(parameter: Any):
    if parameter is CHOICE:
        assert parameter.limits() == {"choices": ["a", "b", "c"]}
    elif parameter is FOOTPRINT:
        assert parameter.limits() == {"choices": ["all", "disk"], "maximum": 5}
    else:
        assert parameter.limits() == {"minimum": parameter.minimum, "maximum": parameter.maximum}


@each_kind
def test_only_choices_have_named_values_and_only_masks_presets(parameter: Parameter):
    choices = parameter.choices if isinstance(parameter, ChoiceParameter) else ()
    assert parameter.named_values() == choices
    assert parameter.preset_names() == (("Box",) if parameter is MASK else ())
    assert parameter.stored_as_text == (parameter in (MASK, FOOTPRINT))


@together(
    ("parameter", "value", "chip", "caption", "brief"),
    [
        (INT, 4, "value 4 px", "Value 4 px", "value 4"),
        (ODD, 7, "7×7", "Value 7 px", "value 7"),
        (FLOAT, 0.123456789, "σ 0.123 px", "Value 0.123457 px", "value 0.123456789"),
        (AXES, (1.0, 2.5), "value 1×2.5 px", "Value 1×2.5 px", "value 1, 2.5"),
        (NUMBERS, (1.0, 2.5), "value 1.00, 2.50 px", "Value 1, 2.5 px", "value 1, 2.5"),
        (NUMBERS, (), "value estimated", "Value estimated", "value "),
        (RADII, (1, 2, 3), "value 1, 2, 3 px", "Value 1, 2, 3 px", "value 1, 2, 3"),
        (CHOICE, "a", "first", "First", "value a"),
        (CHOICE, "b", "NLM", "NLM", "value b"),
        (FOOTPRINT, "disk", "disk", "Disk", "value disk"),
        *(
            (FOOTPRINT, cells, text, text.capitalize(), f"value {text}")
            for cells, text in (
                (CROSS[:2], "own shape, 3 wide, 2 high"),
                (((1, 1),) * 5, "rectangle, 2 wide, 5 high"),
            )
        ),
        (MASK, ONES, "3×3 weights", "Value 1 1 1; 1 1 1; 1 1 1", "3×3"),
    ],
)
def test_texts(parameter: Parameter, value: Any, chip: str, caption: str, brief: str):
    assert parameter.chip(value) == chip
    assert parameter.caption(value) == caption
    assert parameter.brief(value) == brief


@together(
    ("parameter", "value", "found"),
    [
        (INT, 0, (0, 1, 2)),
        (ODD, 9, (5, 7, 9)),
        (FLOAT, 1.0, (0.5, 1.0, 2.0)),
        (AXES, 4.0, (2.0, 4.0, 8.0)),
        (AXES, (2.0, 4.0), ((1.0, 2.0), (2.0, 4.0), (4.0, 8.0))),
        (NUMBERS, (2.0, 4.0), ((1.0, 2.0), (2.0, 4.0), (4.0, 8.0))),
        (NUMBERS, (), ()),
        (RADII, 5, (4, 5, 6)),
        (RADII, (1, 2, 3), ()),
        (SIDES, 5, (3, 5, 7)),
        (SIDES, (1, 3, 5), ()),
        (CHOICE, "a", ("a", "b", "c")),
        (FOOTPRINT, "all", ("all", "disk")),
        (FOOTPRINT, CROSS, ("all", "disk", CROSS)),
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
    assert parameter.affects_time == (parameter in (INT, ODD, RADII, SIDES, CHOICE, FOOTPRINT))


def test_an_estimated_size_stays_a_whole_number() -> None:
    assert ODD.format(rounded(7)) == "7"
    assert rounded((0.123456, 3)) == (0.1235, 3)


@together(
    ("given", "cells"),
    [
        ("0 1 0; 1 1 1; 0 1 0", CROSS),
        ("0,1,0\n1,1,1\n0,1,0\n", CROSS),
        ("1 0", ((1, 0),)),
        (np.array(CROSS, bool), CROSS),
        (np.array(CROSS, float) * -0.5, CROSS),
        ([[True, False]], ((1, 0),)),
        ("disk", "disk"),
        (" disk ", "disk"),
    ],
)
def test_a_footprint_is_a_name_or_rows_of_cells(given: Any, cells: Any):
    read = FOOTPRINT.parse(given) if isinstance(given, str) else FOOTPRINT.validate(given)
    assert read == cells
    assert FOOTPRINT.parse(FOOTPRINT.format(read)) == read
    assert hash(read) == hash(cells)


@together(
    ("given", "part"),
    [
        (np.zeros((3, 3)), "no cell belongs to it"),
        (np.ones((6, 2)), "6×2 cells are too many"),
        (np.ones(3), "1 axes"),
        (np.ones((2, 2, 2)), "3 axes"),
        (7, "0 axes"),
        ([[1, 0], [1]], "differ in length"),
        ([[]], "no cells"),
        ([["1", "x"]], "row 1, column 1"),
        ("0 0; 0 0", "no cell belongs to it"),
        ("1 2; 2 1", "there is no “1 2; 2 1”"),
        ("blob", "Use one of all, disk"),
        ("", "there is no “”"),
    ],
)
def test_what_is_no_footprint_is_refused(given: Any, part: str):
    with pytest.raises(InvalidParameter) as caught:
        FOOTPRINT.parse(given) if isinstance(given, str) else FOOTPRINT.validate(given)
    assert part in str(caught.value)


@together(
    ("text", "value"),
    [
        ("1", 1.0),
        ("1.5", 1.5),
        ("1,5;2", (1.5, 2.0)),
        ("1x2", (1.0, 2.0)),
        ("1 × 2", (1.0, 2.0)),
        ("1, 2", (1.0, 2.0)),
        ("1.0,2.5", (1.0, 2.5)),
        ("1 2", (1.0, 2.0)),
        ("2;2", 2.0),
    ],
)
def test_numbers_of_axes_are_read(text: str, value: Any):
    assert AXES.parse(text) == value
    assert AXES.parse(AXES.format(value)) == value
    assert type(AXES.parse(text)) is type(value)


@together(
    ("text", "way"),
    [
        ("1,2", "Write “1.2” or “1x2”"),
        ("1,2,3", "Write “1x2x3”"),
        ("1x2x3", "Use one for all axes, or one for each"),
        ("1x21", "Use 0 to 20"),
        ("x2", ""),
        ("", ""),
    ],
)
def test_other_numbers_of_axes_are_refused(text: str, way: str):
    with pytest.raises(InvalidParameter) as caught:
        AXES.parse(text)
    assert way in caught.value.hint


def test_numbers_of_axes_are_validated():
    assert AXES.validate([1, 2]) == (1.0, 2.0)
    assert AXES.validate(np.array([3, 3])) == 3.0
    assert AXES.validate(np.float32(2)) == 2.0
    for wrong in ((), (1, 2, 3), (1, "2"), "12", (1, None), (1, np.nan), True):
        with pytest.raises(InvalidParameter):
            AXES.validate(wrong)
