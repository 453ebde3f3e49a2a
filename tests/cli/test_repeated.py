"""An option that takes one value is refused where it is repeated: which one is meant?"""

from __future__ import annotations

import argparse

import pytest

from kernelscope import filters
from kernelscope.cli.arguments import apply_parser, filter_parser
from kernelscope.cli.common import Parser
from kernelscope.cli.main import main
from kernelscope.schema.samples import Kind


@pytest.mark.parametrize(
    ("arguments", "option", "way"),
    [
        ("apply gaussian-noise a.png b.png --sigma 10 --sigma 15", "--sigma", "all but one"),
        ("apply mean a.png b.png --size 3 : median --size 3 --size 5", "--size", "all but one"),
        ("apply mean a.png b.png --quality 3 --quality 3", "--quality", "all but one"),
        ("apply mean a.png b.png --gpu 0 --gpus 1", "--gpu/--gpus", "all but one"),
        ("apply --recipe a.json --recipe b.json a.png b.png", "--recipe", "all but one"),
        ("bench --sizes 64 --sizes 128", "--sizes", "its values after one"),
        ("batch a.json a.png --out x --out y", "--out", "all but one"),
        ("phantom a.nii --size 16 --size=20", "--size", "all but one"),
        ("trace median --size 3 --size 5", "--size", "all but one"),
    ],
)
def test_a_second_value_is_refused(
    arguments: str, option: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {option}: it is given more than once" in last
    assert way in last


def test_each_step_has_options_of_its_own() -> None:
    parser = filter_parser(filters.get("median"), [])
    for size in ("3", "5"):
        found = parser.parse_intermixed_args(["a", "b", "--size", size])
        assert int(size) in vars(found).values()


def test_no_option_of_a_filter_takes_the_last_of_several_values() -> None:
    parsers: list[argparse.ArgumentParser] = [apply_parser()]
    parsers += [
        filter_parser(spec, []) for kind in Kind for spec in filters.discover(kind).values()
    ]
    assert all(isinstance(each, Parser) for each in parsers)
    stores = {type(each) for parser in parsers for each in parser._actions if each.nargs != 0}
    assert argparse._StoreAction not in stores
