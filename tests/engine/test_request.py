"""Requests are checked when they are made and do not change afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends import create_backends
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.engine.steps import execute_all
from kernelscope.engine.timing import Stage
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from tests.engine.fakes import request
from tests.pairs import together

PICTURE = Image.from_array(np.zeros((5, 9), np.uint8), "p")


def test_fills_in_defaults() -> None:
    made = Request.create(PICTURE, "threshold-mean", {"size": 5})
    assert made.step.filter is filters.get("threshold_mean")
    assert dict(made.step.parameters) == {"size": 5, "threshold": 20.0}
    assert made.step.border is Border.REFLECT


def test_later_changes_do_not_reach_it() -> None:
    parameters = {"size": 5}
    made = Request.create(PICTURE, "mean", parameters)
    parameters["size"] = 7
    assert made.step.parameters["size"] == 5
    with pytest.raises(TypeError):
        made.step.parameters["size"] = 7  # type: ignore[index]
    with pytest.raises(AttributeError):
        made.step.grey = True  # type: ignore[misc]


@together("border", [Border.REFLECT, Border.VALID])
@together("grey", [False, True])
@together("shape", [(5, 9), (5, 9, 3), (5, 9, 4)])
def test_the_shape_of_the_result_is_known_beforehand(
    shape: tuple[int, ...], grey: bool, border: Border
) -> None:
    picture = Image.from_array(np.zeros(shape, np.uint8))
    made = Request.create(picture, "mean", grey=grey, border=border)
    assert execute(made, create_backends()).image.planes.shape == made.output_shape


@pytest.mark.parametrize(
    ("shape", "converts"), [((5, 9), False), ((5, 9, 2), False), ((5, 9, 3), True)]
)
def test_colours_become_grey_in_a_pass_of_their_own(shape: tuple[int, ...], converts: bool) -> None:
    made = Request.create(
        Image.from_array(np.zeros(shape, np.uint8)), "mean", {"size": 5}, grey=True
    )
    *before, last = made.passes()
    assert last == (filters.get("mean"), {"size": 5}, Border.REFLECT)
    grey = filters.get("greyscale")
    assert before == [(grey, grey.defaults(), Border.REFLECT)] * converts


def test_volumes_have_no_colours() -> None:
    scan = Scan((Volume.from_array(np.zeros((3, 4, 5), np.uint8)),))
    made = Request.create(scan, "mean", grey=True, axis=2)
    assert len(made.passes()) == 1
    assert made.output_shape == (3, 4, 5, 1)
    assert made.describe() == "Mean, mask size 3 px, reflect border, slice by slice across x"


def test_options_with_a_block_that_no_gpu_has_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        RunOptions(block=(1025, 1))


def test_estimates_are_no_numbers() -> None:
    with pytest.raises(InvalidParameter):
        Request.create(PICTURE, "nlm", {"filter_sigma": "estimate"})


def test_ids_increase() -> None:
    assert request().id < request().id


@together(
    ("filter_id", "options", "message", "hint"),
    [
        ("blur", {}, "There is no filter “blur”.", "rotating-mask"),
        ("mean", {"parameters": {"sise": 3}}, "Mean has no parameter “sise”.", "It has: size."),
        ("mean", {"parameters": {"size": 4}}, "Mask size: 4 is even.", "use 3 or 5"),
        ("mean", {"parameters": {"size": 101}}, "Mask size: 101 is out of range.", "3 to 99"),
        (
            "mean",
            {"parameters": {"size": 7}, "border": Border.VALID},
            "The 7×7 neighbourhood does not fit into 9×5 pixels, so “valid” would leave nothing.",
            "Choose a smaller mask or another border.",
        ),
    ],
)
def test_refuses(filter_id: str, options: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Request.create(PICTURE, filter_id, **options)
    assert caught.value.message == message
    assert hint in caught.value.hint


def test_refuses_a_border_that_the_filter_does_not_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(filters.get("mean").__dict__, "borders", (Border.WRAP, Border.MIRROR))
    with pytest.raises(InvalidParameter) as caught:
        Request.create(PICTURE, "mean", border=Border.REDUCE)
    assert str(caught.value) == "Mean has no border “reduce”. Use one of wrap, mirror."


def test_valid_may_leave_a_single_row() -> None:
    Request.create(PICTURE, "mean", {"size": 5}, border=Border.VALID)


def test_describes_itself() -> None:
    made = Request.create(PICTURE, "mean", {"size": 5}, border=Border.WRAP, grey=True)
    assert made.describe() == "Mean, mask size 5 px, wrap border, in grey"
    result = Result(made, PICTURE, "cpu", "serial", ())
    assert result.describe() == "Mean, mask size 5 px, wrap border, in grey, CPU serial"
    assert (result.settings, result.where) == (made.describe(), "CPU serial")


def test_compiling_is_in_no_total() -> None:
    stages = (
        Stage("compile", 100.0, counted=False),
        Stage("compute", 2e-6),
        Stage("convert", 1e-6),
    )
    result = Result(request(), PICTURE, "cpu", "serial", stages)
    assert result.seconds == pytest.approx(3e-6)
    assert result.speed == pytest.approx(16 / 3)
    assert result.speed_unit == "megapixels/s"


def test_estimates_are_left_to_each_source_and_close_with_its_numbers() -> None:
    step = Step.create("nlm", {"filter_sigma": 0.05})
    assert step.estimates == ("sigma", "patch")
    assert (step.values["sigma"], step.values["filter_sigma"]) == (ESTIMATE, 0.05)
    assert step.parameters == Step.of_numbers("nlm", {"filter_sigma": 0.05}).parameters
    known = step.with_numbers({"sigma": 9.0, "patch": 5})
    assert (known.estimates, known.values) == (step.estimates, step.values)
    assert known != step == known.unestimated
    fixed = known.fixed
    assert fixed == Step.of_numbers("nlm", {"sigma": 9.0, "patch": 5, "filter_sigma": 0.05})
    assert fixed.unestimated is fixed, "nothing is estimated any more"
    asked, found = Request(PICTURE, known), Request(PICTURE, known, estimated=True)
    assert (asked.needs_estimates, found.needs_estimates) == (True, False)
    assert found.work == Request(PICTURE, fixed).work != asked.work
    assert asked.work == Request(PICTURE, step).work, "other numbers are only those of before"


def test_a_run_finds_the_numbers_that_a_request_needs() -> None:
    """They are never those that its step has from another source."""
    noise = np.random.default_rng(4).integers(0, 50, (20, 20)).astype(np.uint8)
    source = Image.from_array(noise, "noise")
    step = Step.create("nlm", {"search_radius": 1, "patch": 3}).with_numbers({"sigma": 99.0})
    backend = CpuBackend()
    with pytest.raises(AssertionError):
        execute(Request(source, step), {"cpu": backend})
    results = [
        execute_all(Request(source, each), {"cpu": backend}) for each in (step, step.unestimated)
    ]
    backend.close()
    assert len({each.request.step.parameters["sigma"] for each in results} | {99.0}) == 2
    assert all(each.request.estimated for each in results)


def test_the_place_of_settings_in_a_list_is_not_part_of_them() -> None:
    step = Step.create("median")
    one, other = RunSettings(step), RunSettings(step)
    assert (one == other, one.key == other.key) == (True, False)
    assert one != RunSettings(step, on=False)
