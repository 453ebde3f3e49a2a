"""Effects on the reader of JSON texts that do not come from the program."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest

from kernelscope.base import json_fields
from kernelscope.base.json_fields import InvalidJson, Size, _unique, parse, read
from kernelscope.schema.blocks import read_block
from tests.pairs import together


def refusal(text: str) -> str:
    with pytest.raises(InvalidJson) as caught:
        parse(text, "my.json")
    return caught.value.message


class Counted(str):
    """A name that counts its comparisons."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str(self) == other

    __hash__ = str.__hash__


def test_a_name_that_stands_twice_is_not_looked_for_among_all_others() -> None:
    names = [Counted(f"n{number}") for number in range(2000)]
    with pytest.raises(ValueError, match='"n1999" occurs twice'):
        _unique([(name, 0) for name in (*names, Counted("n1999"))])
    assert 0 < Counted.comparisons < 10 * len(names)


def test_a_name_that_stands_twice_is_shown_on_one_short_line() -> None:
    long = "a" * 10_000
    assert len(refusal(f'{{"{long}": 1, "{long}": 2}}')) < 100
    message = refusal('{"\\ud800\\u001b[2J\\n": 1, "\\ud800\\u001b[2J\\n": 2}')
    assert message == 'my.json: "\\ud800\\u001b[2J\\n" occurs twice in the same object.'


def test_a_file_may_be_as_long_as_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[1, 2]")
    assert [each.value for each in read(path, 6).elements()] == [1, 2]
    with pytest.raises(InvalidJson, match="larger than any file of this program"):
        read(path, 5)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_may_be_as_large_as_every_array_takes(sign: int) -> None:
    largest = sign * (1 << 63)
    assert parse(f"[{largest}]", "a").plain() == [largest]
    with pytest.raises(InvalidJson, match=r"\[0\]: expected a number up to"):
        parse(f"[{largest + sign}]", "a").plain()


def test_a_long_value_is_cut() -> None:
    longest = json_fields._SHOWN
    for length, shown in ((longest, "x" * longest), (longest + 1, "x" * longest + "…")):
        assert json_fields.shortened("x" * length, longest) == shown


class _Kind(StrEnum):
    ROUND = "round"


class _Place(NamedTuple):
    file: str
    line: Size


_Block = Annotated[tuple[int, int], lambda field: field.from_text(read_block)]


@dataclass(frozen=True)
class _Record:
    kind: _Kind
    places: tuple[_Place, ...]
    sizes: tuple[Size, int]
    named: Mapping[int, float]
    left: int | None = None
    whole: bool = True
    shift: Annotated[float, (-1, 1)] = -0.5
    way: Annotated[str, ("north", "south")] = "north"
    block: _Block = (16, 4)


def test_a_record_is_read_by_the_types_of_its_fields() -> None:
    record = _Record(_Kind.ROUND, (_Place("a", 3),), (1, 0), {7: 0.5}, 2, shift=-1.0, block=(8, 8))
    content = {**dataclasses.asdict(record), "block": "8x8"}
    text = json.dumps(content)
    assert parse(text, "f").record(_Record) == record
    left_out = {name: content[name] for name in ("kind", "places", "sizes", "named")}
    expected = _Record(record.kind, record.places, record.sizes, record.named)
    assert parse(json.dumps(left_out), "f").record(_Record) == expected
    assert parse(text, "f").record(_Record, left=None) == dataclasses.replace(record, left=None)


@together(
    ("old", "new", "place"),
    [
        ('"round"', '"square"', "kind"),
        ("3]", "0]", r"places\[0\]\[1\]"),
        ('["a", 3]', '["a"]', r"places\[0\]"),
        ("[1, 0]", "[0, 0]", r"sizes\[0\]"),
        ('"7"', '"x"', "named"),
        ("0.25", "-0.25", 'named."7"'),
        ('"left": 2', '"left": 2.5', "left"),
        ('"named"', '"called"', "“named” is missing"),
        ("-0.5", "-1.5", "shift"),
        ('"north"', '"up"', "way"),
        ("16x4", "99x99", "block"),
        ("true", "1", "whole"),
    ],
)
def test_a_wrong_field_of_a_record_is_named(old: str, new: str, place: str) -> None:
    record = _Record(_Kind.ROUND, (_Place("a", 3),), (1, 0), {7: 0.25}, 2)
    text = json.dumps({**dataclasses.asdict(record), "block": "16x4"})
    assert old in text
    with pytest.raises(InvalidJson, match=place):
        parse(text.replace(old, new), "f").record(_Record)
    with pytest.raises(InvalidJson, match="expected an object"):
        parse("[1, 2, 3, 4, 5]", "f").record(_Record)


@pytest.mark.parametrize("text", ["NaN", "true", '"1"', "1" + 400 * "0"])
def test_no_bound_admits_what_is_no_number(text: str) -> None:
    field = parse(text, "my.json")
    with pytest.raises(InvalidJson, match=r"my\.json: expected a number from -inf to inf, found"):
        field.number(-math.inf, math.inf)
