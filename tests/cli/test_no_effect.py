"""Values that were given and do not count beside the others are named, in every face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.cli.main import main
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.files.volumes import write_volume
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    voxels = np.random.default_rng(0).integers(20, 200, (8, 16, 16), np.uint8)
    return write_volume(Volume.from_array(voxels), tmp_path / "in.nii", lossy=True)


NOTE = "MRI NLM: window radius 1 voxel has no effect with these settings."


@pytest.mark.slow
def test_on_the_command_line(volume: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, recipe = str(volume.with_name("out.nii")), str(volume.with_name("a.recipe.json"))
    command = ["apply", "mri-nlm", str(volume), out, "--device", "cpu", "--window-radius", "1"]
    assert main([*command, "--adaptive", "--save-recipe", recipe]) == 0
    assert f"note: {NOTE}" in capsys.readouterr().err
    assert main([*command, "--sigma-from", "local"]) == 0
    assert "no effect" not in capsys.readouterr().err
    assert main(["apply", "--recipe", recipe, str(volume), out, "--device", "cpu"]) == 0
    assert f"note: {NOTE}" in capsys.readouterr().err


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


@pytest.fixture
def cpu() -> Iterator[CpuBackend]:
    backend = CpuBackend()
    yield backend
    backend.close()


OF_COLOURS = [
    pytest.param(spec.id, each.name, id=f"{spec.id}-{each.name}")
    for spec in filters.discover().values()
    for each in spec.parameters
    if each.of_colours
]


@pytest.mark.slow
@pytest.mark.parametrize(("filter_id", "name"), OF_COLOURS)
def test_those_of_colours_act_there_and_have_no_effect_in_grey(
    filter_id: str, name: str, cpu: CpuBackend
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
        return [execute(each, {"cpu": cpu}).image.planes for each in requests]

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


def test_the_help_has_the_form_of_several_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["apply", "mri-nlm", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--sigma X[, X...]" in text
    assert "several in quotes, with a comma and a space or with a semicolon: “20, 15, 30”" in text


def test_the_error_has_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "mri-nlm", "a.nii", "b.nii", "--sigma", "10,15"]) == 1
    assert "Write “10.15” or “10, 15”" in capsys.readouterr().err
