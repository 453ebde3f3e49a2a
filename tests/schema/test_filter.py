"""Parameters: accepted values, refusals and their messages, and text round trips."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Absent, Cpu, FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan
from kernelscope.schema.levels import CPU_LEVELS, GLOBAL, GPU_LEVELS, SERIAL, Level
from kernelscope.schema.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    MaskParameter,
    NumbersParameter,
    OddParameter,
    Parameter,
    RadiiParameter,
    SidesParameter,
)
from tests.pairs import together

TEXTS: dict[str, Any] = {"name": "value", "label": "Value", "help": "A value."}
INT = IntParameter(**TEXTS, default=1, minimum=-5, maximum=100)
ODD = OddParameter(**TEXTS, default=3, minimum=3, maximum=99)
FLOAT = FloatParameter(**TEXTS, default=0.5, minimum=-1e6, maximum=1e6)
CHOICE = ChoiceParameter(**TEXTS, default="a", choices=(Choice("a", "A"), Choice("b", "B")))
RADII = RadiiParameter(**{**TEXTS, "default": 5}, minimum=1, maximum=7)
SIDES = SidesParameter(**{**TEXTS, "default": 3}, maximum=7)
NUMBERS = NumbersParameter(**TEXTS, minimum=0, maximum=1e9, most=4, none="estimated")
MASK = MaskParameter(**TEXTS, default=((1,) * 3,) * 3, minimum=3, maximum=9)

without_deadline = settings(deadline=None, max_examples=200)
cells = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6).filter(lambda x: not x.is_integer())
)
masks = st.sampled_from([3, 5, 9]).flatmap(
    lambda size: st.lists(
        st.lists(cells, min_size=size, max_size=size), min_size=size, max_size=size
    )
)


@pytest.mark.slow
@without_deadline
@given(
    st.one_of(
        st.tuples(st.just(INT), st.integers(-5, 100)),
        st.tuples(st.just(ODD), st.integers(1, 49).map(lambda k: 2 * k + 1)),
        st.tuples(st.just(FLOAT), st.floats(-1e6, 1e6)),
        st.tuples(st.just(CHOICE), st.sampled_from(["a", "b"])),
        st.tuples(st.just(NUMBERS), st.lists(st.floats(0, 1e9), max_size=4)),
        st.tuples(st.just(RADII), st.lists(st.integers(1, 7), min_size=3, max_size=3)),
        st.tuples(st.just(MASK), masks),
    )
)
def test_text_reads_back_as_the_same_value(pair: tuple[Parameter, Any]) -> None:
    parameter, raw = pair
    value = parameter.validate(raw)
    again = parameter.parse(parameter.format(value))
    assert again == value
    assert type(again) is type(value)
    assert parameter.validate(value) == value


@without_deadline
@given(st.sampled_from([INT, ODD, FLOAT, CHOICE, NUMBERS, RADII, MASK]), st.text(max_size=30))
def test_any_text_is_read_or_refused(parameter: Parameter, text: str) -> None:
    try:
        value = parameter.parse(text)
    except InvalidParameter:
        return
    assert parameter.validate(value) == value


@together(
    ("parameter", "value", "message"),
    [
        (INT, 101, "Value: 101 is out of range. Use -5 to 100."),
        (INT, 1.0, "Value: 1.0 is not a whole number."),
        (INT, True, "Value: True is not a whole number."),
        (INT, "1", "Value: '1' is not a whole number."),
        (ODD, 4, "Value: 4 is even. A mask needs a centre: use 3 or 5."),
        (ODD, 1, "Value: 1 is out of range. Use 3 to 99."),
        (FLOAT, math.nan, "Value: nan is not a finite number."),
        (FLOAT, math.inf, "Value: inf is not a finite number."),
        (FLOAT, 2e6, "Value: 2e+06 is out of range. Use -1e+06 to 1e+06."),
        (FLOAT, False, "Value: False is not a number."),
        (FLOAT, None, "Value: None is not a number."),
        (CHOICE, "c", "Value: there is no “c”. Use one of a, b."),
        (NUMBERS, (1, 2, 3, 4, 5), "Value: 5 numbers are too many. Use up to 4."),
        (NUMBERS, (1, -2), "Value: -2 is out of range. Use 0 to 1e+09."),
        (NUMBERS, (math.nan,), "Value: nan is not a finite number."),
        (NUMBERS, (True,), "Value: True is not a number."),
        (RADII, (5, 8, 5), "Value: 8 is out of range. Use 1 to 7."),
        (SIDES, (5, 4, 3), "Value: 4 is even. A mask needs a centre: use 3 or 5."),
        (SIDES, 9, "Value: 9 is out of range. Use 1 to 7."),
        (RADII, 0, "Value: 0 is out of range. Use 1 to 7."),
        (RADII, 2.5, "Value: 2.5 is not a whole number."),
        (RADII, (5, True, 5), "Value: True is not a whole number."),
        (
            RADII,
            (5, 5),
            "Value: 2 numbers are neither one nor three. Write one for all axes, or those along "
            "x, y and z.",
        ),
        (
            MASK,
            [[1, 2], [1, 2, 3], [1, 2, 3]],
            "Value: 3 rows of 2 and 3 cells make no square. "
            "Use as many cells in each row as there are rows.",
        ),
        (
            MASK,
            [[1, 2, 1]],
            "Value: one row of 3 cells makes no square. "
            "Write rows with a semicolon between them, like “1 2 1; 2 4 2; 1 2 1”.",
        ),
        (MASK, np.ones((4, 4)), "Value: 4×4 has no centre. Use an odd number of rows."),
        (MASK, np.ones((11, 11)), "Value: 11×11 is out of range. Use 3×3 to 9×9."),
        (
            MASK,
            [[1, 2, 3], [4, "x", 6], [7, 8, 9]],
            "Value: row 2, column 2 holds “x”, which is not a number.",
        ),
        (
            MASK,
            [[1, 2, 3], [4, 5, 6], [7, 8, math.nan]],
            "Value: row 3, column 3 holds “nan”, which is not a number.",
        ),
        (
            MASK,
            [[1e7, 2, 3], [4, 5, 6], [7, 8, 9]],
            "Value: row 1, column 1 holds 1e+07. Use weights up to a million.",
        ),
    ],
)
def test_refuses_with_the_cause(parameter: Parameter, value: Any, message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parameter.validate(value)
    assert str(caught.value) == message


@together(
    ("parameter", "text", "message"),
    [
        (INT, "two", "Value: “two” is not a whole number."),
        (INT, "1.5", "Value: “1.5” is not a whole number."),
        (FLOAT, "1,5,0", "Value: “1,5,0” is not a number."),
        (FLOAT, "1,500", "Value: “1,500” is not a number. Write 1.500 or 1500."),
        (FLOAT, "1_0", "Value: “1_0” is not a number."),
        (NUMBERS, "0,5", "Value: “0,5” may be one number or two. Write “0.5” or “0, 5”."),
        (
            NUMBERS,
            "1,234.5",
            "Value: “1,234.5” may be one number or two. Write “1234.5” or “1, 234.5”.",
        ),
        (
            MASK,
            "0,5 1 0,5; 1 4 1; 0,5 1 0,5",
            "Value: 3 rows of 3 and 5 cells make no square. "
            "Use as many cells in each row as there are rows.",
        ),
        (NUMBERS, "20, x", "Value: “20, x” is not a list of numbers. Write “20, 15, 30”."),
        (MASK, " ; ", "Value: it is empty. Write rows like “1 2 1; 2 4 2; 1 2 1”."),
    ],
)
def test_refuses_text_with_the_cause(parameter: Parameter, text: str, message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parameter.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["1 2 1; 2 4 2; 1 2 1", "1,2,1\n2,4,2\n\n1,2,1\n", "1\t2\t1\r\n2 4 2;1, 2, 1;"]
)
def test_masks_are_read_however_they_are_separated(text: str) -> None:
    value = MASK.parse(text)
    assert value == ((1, 2, 1), (2, 4, 2), (1, 2, 1))
    assert all(type(cell) is int for row in value for cell in row)


@together("text", ["20, 15.5", "20 15.5", " 20;15.5 ", "20,15.5,"])
def test_numbers_are_read_however_they_are_separated(text: str) -> None:
    assert NUMBERS.parse(text) == (20.0, 15.5)


@together("text", ["0.5", "0,5", ".5", ",5", "5e-1", "0,50", " +0,5 "])
def test_a_number_may_have_a_decimal_comma(text: str) -> None:
    assert FLOAT.parse(text) == 0.5


def test_a_comma_in_rows_with_tabs_is_a_decimal_one() -> None:
    assert MASK.parse("0,5\t1\t0,5\n1\t4\t1\n0,5\t1\t0,5") == (
        (0.5, 1, 0.5),
        (1, 4, 1),
        (0.5, 1, 0.5),
    )


def test_one_number_or_none_are_numbers_too() -> None:
    assert NUMBERS.validate(20) == (20.0,)
    assert NUMBERS.parse(" ") == NUMBERS.default == ()
    assert NUMBERS.describe((20.0, 15.5)) == "value 20, 15.5"
    assert NUMBERS.describe(()) == "value estimated"


@pytest.mark.parametrize("number", [np.int64(5), np.uint8(5), 5])
def test_numpy_numbers_become_plain_ones(number: Any) -> None:
    assert type(INT.validate(number)) is int
    assert type(FLOAT.validate(number)) is float


def spec(**changes: Any) -> FilterSpec:
    settings: dict[str, Any] = {
        "id": "fake",
        "name": "Fake",
        "category": "",
        "summary": "",
        "source": "",
        "parameters": (
            OddParameter(name="size", label="Mask size", help="", default=3, minimum=3, maximum=9),
            FloatParameter(name="sigma", label="Sigma", help="", default=1, minimum=0, maximum=9),
        ),
        "radius": lambda parameters: parameters["size"] // 2,
        "implementations": {"cpu": Cpu(lambda task: [])},
    }
    return FilterSpec(**settings | changes)


def test_validate_fills_in_defaults_and_checks_them_together() -> None:
    def check(parameters: Any) -> None:
        if parameters["sigma"] > parameters["size"]:
            raise InvalidParameter("Sigma is larger than the mask.")

    filter_spec = spec(check=check)
    assert filter_spec.validate({"size": 5}) == {"size": 5, "sigma": 1}
    with pytest.raises(InvalidParameter, match="larger than the mask"):
        filter_spec.validate({"sigma": 4.0})
    with pytest.raises(InvalidParameter, match="4 is even"):
        filter_spec.validate({"size": 4})
    with pytest.raises(InvalidParameter) as caught:
        filter_spec.validate({"width": 4})
    assert str(caught.value) == "Fake has no parameter “width”. It has: size, sigma."
    with pytest.raises(InvalidParameter, match="It has: none"):
        spec(parameters=()).validate({"width": 4})


def test_implementations_are_looked_up_by_device() -> None:
    own = Level("own", "Own", "")
    cuda = Cuda(lambda task: CudaPlan(()), (GLOBAL, own), {"tuned": "Not yet."})
    both = spec(implementations={"cpu": Cpu(lambda task: []), "gpu": cuda})
    assert both.levels("cpu") == CPU_LEVELS
    assert both.levels("gpu") == (GLOBAL, own)
    assert both.gaps("gpu") == {"tuned": "Not yet."}
    assert both.gaps("cpu") == both.gaps("abacus") == {}
    assert both.levels("abacus") == ()
    assert both.implementation(Cuda) is cuda
    assert both.implementation(Cpu) is both.implementations["cpu"]


def test_an_absent_implementation_gives_its_reason_at_every_usual_level() -> None:
    alone = spec(implementations={"cpu": Cpu(lambda task: []), "gpu": Absent("On the CPU only.")})
    assert alone.levels("gpu") == ()
    assert alone.gaps("gpu") == {level.id: "On the CPU only." for level in GPU_LEVELS}
    with pytest.raises(LookupError, match="filter 'fake' has no implementation Cuda"):
        alone.implementation(Cuda)


def test_a_usual_level_is_listed_in_its_usual_words() -> None:
    assert filters.levels("cpu")["serial"] is SERIAL, "though the median describes it differently"
    assert list(filters.levels("cpu"))[:2] == [level.id for level in CPU_LEVELS]
    assert list(filters.levels("gpu"))[:6] == [level.id for level in GPU_LEVELS]
    assert {"serial-bubble", "serial-huang"} <= set(filters.levels("cpu"))


def test_only_valid_makes_the_result_smaller() -> None:
    filter_spec = spec(output_channels=lambda channels, parameters: 1)
    for border in Border:
        expected = (6, 16, 1) if border is Border.VALID else (10, 20, 1)
        assert filter_spec.output_shape((10, 20, 3), {"size": 5}, border) == expected


def test_descriptions_are_short() -> None:
    assert spec().describe({"size": 5, "sigma": 0.5}) == "Fake, mask size 5 px, sigma 0.5"
    assert spec().describe({"size": 5, "sigma": 5 / 3}) == "Fake, mask size 5 px, sigma 1.66667"
    radius = IntParameter(
        name="radius", label="Radius", help="?", default=1, minimum=1, maximum=9, unit="voxels"
    )
    assert [radius.describe(value) for value in (1, 2)] == ["radius 1 voxel", "radius 2 voxels"]
    text = spec(parameters=(MASK,)).describe({"value": ((0.25,) * 9,) * 9})
    assert text.endswith(" 9×9")
    text = spec(parameters=(MASK,)).describe({"value": ((0, -1, 0), (-1, 5, -1), (0, -1, 0))})
    assert text.endswith(" 0 -1 0; -1 5 -1; 0 -1 0")


def test_borders_have_codes_and_help() -> None:
    *known, keep = Border
    assert [border.code for border in known] == list(range(7))
    assert keep.code == Border.NEAREST.code, "kernels do not know it"
    assert len({border.help for border in Border}) == 8


def test_filters_are_found_with_dashes_too() -> None:
    assert filters.get("rotating-mask") is filters.get("rotating_mask")
    names = [found.name for found in filters.discover().values()]
    assert names == sorted(names)


@together("found", filters.discover().values())
def test_every_filter_is_fully_described(found: FilterSpec) -> None:
    assert found.summary.endswith(".")
    assert all((found.name, found.category, found.source))
    assert found.validate(found.defaults()) == found.defaults()
    assert len({parameter.name for parameter in found.parameters}) == len(found.parameters)
    for parameter in found.parameters:
        assert parameter.help.endswith(".")
        assert parameter.parse(parameter.format(parameter.default)) == parameter.default


@together("found", filters.discover().values())
def test_citations_name_the_part_of_the_thesis_that_has_the_filter(found: FilterSpec) -> None:
    """Chapter 1 is the theory of filters, 5 their code; 3 is about the card's memory."""
    cited = re.findall(
        r"Korčuška 2013, (?:chapters?|section) (\d)(?:.\d)?(?: and (\d))?", found.source
    )
    assert cited or "Korčuška 2013," not in found.source
    having = {"3"} if found.category == "Teaching" else {"1", "5"}
    assert {chapter for pair in cited for chapter in pair if chapter} <= having


@together("text", ["5, 4, 2", "5 4 2", "5×4×2", "5x4 x 2", " 5,4;2 "])
def test_radii_are_one_number_or_three(text: str) -> None:
    assert RADII.parse(text) == RADII.validate([5, 4, 2]) == (5, 4, 2)
    assert RADII.format((5, 4, 2)) == "5, 4, 2"
    # Older recipes have one number, and three equal ones are kept as one.
    assert RADII.parse("5") == RADII.validate(5) == RADII.validate((5, 5, 5)) == 5
    assert RADII.format(5) == "5"
    assert RADII.along_axes(5) == (5, 5, 5)
    assert RADII.along_axes((5, 4, 2)) == (5, 4, 2)
    with pytest.raises(InvalidParameter, match="“5, x” is not one whole number or three"):
        RADII.parse("5, x")
