"""Options that are given twice, and values that do not count beside the others."""

from __future__ import annotations

import argparse

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.cli.arguments import apply_parser, filter_parser
from kernelscope.cli.common import Parser
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.files.volumes import write_volume
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind
from tests.cli.running import refused, run


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
def test_a_second_value_is_refused(arguments: str, option: str, way: str) -> None:
    error = refused(arguments, status=2)
    assert f"argument {option}: it is given more than once" in error
    assert way in error


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


NOTE = "MRI NLM: window radius 1 voxel has no effect with these settings."


@pytest.mark.slow
def test_on_the_command_line() -> None:
    voxels = np.random.default_rng(0).integers(20, 200, (8, 16, 16), np.uint8)
    write_volume(Volume.from_array(voxels), "in.nii", lossy=True)
    line = "apply mri-nlm in.nii out.nii --device cpu --window-radius 1"
    assert f"note: {NOTE}" in run(f"{line} --adaptive --save-recipe a.json").err
    assert "no effect" not in run(f"{line} --sigma-from local").err
    assert f"note: {NOTE}" in run("apply --recipe a.json in.nii out.nii --device cpu").err


@pytest.mark.parametrize(
    ("filter_id", "values", "number"),
    [
        ("mri_nlm", {"sigma_from": "adaptive", "window_radius": 1}, 1),
        ("mri_nlm", {"sigma_from": "adaptive", "window_radius": 2}, 0),  # the default
        ("mri_nlm", {"sigma_from": "volume", "sigma": (3.0,)}, 1),
        ("nlm", {"search": "image", "search_radius": 3}, 1),
        ("nlm", {"search_radius": 3}, 0),
        ("nlm", {"weights": "uniform", "patch_sigma": 2.0}, 1),
        ("sobel", {"form": "sum", "direction": "S"}, 1),
        ("sobel", {"form": "single", "direction": "S"}, 0),
    ],
)
def test_which_values_have_none(filter_id: str, values: dict[str, object], number: int) -> None:
    assert len(Step.create(filter_id, values).without_effect(grey=False)) == number


OF_COLOURS = [
    pytest.param(spec.id, each.name, id=f"{spec.id}-{each.name}")
    for spec in filters.discover().values()
    for each in spec.parameters
    if each.of_colours
]


@pytest.mark.slow
@pytest.mark.parametrize(("filter_id", "name"), OF_COLOURS)
def test_those_of_colours_act_there_and_have_no_effect_in_grey(
    filter_id: str, name: str, backend: CpuBackend
) -> None:
    parameter = filters.get(filter_id).parameter(name)
    values = parameter.default, parameter.variants(parameter.default, 3)[-1]
    assert len({*values}) == 2
    colour = np.random.default_rng(1).normal((90, 120, 150), 9, (24, 31, 3)).astype(np.uint8)
    grey = np.ascontiguousarray(colour[..., :1])

    def results(pixels: NDArray[np.uint8], *, first: bool = False) -> list[NDArray[np.uint8]]:
        picture = Image.from_array(pixels, "a")
        requests = [
            Request.create(picture, filter_id, {name: value}, grey=first) for value in values
        ]
        assert (requests[0].work == requests[1].work) is requests[0].is_grey
        said = [name in [chip.name for chip in each.chips()] for each in requests]
        assert said == [not each.is_grey for each in requests]
        return [execute(each, {"cpu": backend}).image.planes for each in requests]

    one, other = results(colour)
    assert (one != other).any()
    for one, other in (results(grey), results(colour, first=True)):
        np.testing.assert_array_equal(one, other)


def test_in_grey_the_note_says_so() -> None:
    step = Step.create("collaborative", {"chroma": 50.0})
    assert step.without_effect(grey=False) == ()
    (note,) = step.without_effect(grey=True)
    assert note == "Collaborative filtering: chroma 50 % has no effect in grey."


@pytest.mark.parametrize("kind", Kind)
def test_defaults_have_no_note(kind: Kind) -> None:
    for filter_id in filters.discover(kind):
        assert Step.create(filter_id).without_effect(grey=True) == ()


def test_the_form_of_several_numbers() -> None:
    text = " ".join(run("apply mri-nlm --help").out.split())
    assert "--sigma X[, X...]" in text
    assert "several in quotes, with a comma and a space or with a semicolon: “20, 15, 30”" in text
    error = refused("apply mri-nlm a.nii b.nii --sigma 10,15")
    assert "Write “10.15” or “10, 15”" in error
