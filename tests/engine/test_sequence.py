"""Several steps as one run: which are computed, which are known, and the step of each error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import AppError, Cancelled, InvalidParameter
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_all, joined
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from tests.engine.fakes import FakeBackend

Backends = dict[str, CpuBackend]


def picture() -> Image:
    pixels = np.random.default_rng(5).integers(0, 256, (40, 50), np.uint8)
    return Image.from_array(pixels, "a picture")


def chain(*steps: Step) -> Request:
    first, *others = steps
    return Request(picture(), first, then=tuple(RunSettings(each) for each in others))


NOISE = Step.create("gaussian_noise")
MEDIAN = Step.create("median", {"size": 5})
MEAN = Step.create("mean", {"size": 7}, border=Border.VALID)


def test_each_step_works_on_the_output_of_the_one_before(backends: Backends) -> None:
    request = chain(NOISE, MEDIAN, MEAN)
    result = execute_all(request, backends)
    source = request.source
    for step, part in zip((NOISE, MEDIAN, MEAN), result.parts, strict=True):
        expected = execute(Request(source, step), backends)
        np.testing.assert_array_equal(part.output.pixels, expected.output.pixels)
        assert part.request.source is source
        source = part.output
    assert result.output is result.parts[-1].output
    assert result.output.title == "a picture"
    assert result.output.shape == request.whole_shape == (34, 44, 1)
    assert result.seconds == pytest.approx(sum(part.seconds for part in result.parts))
    starts = [stage.start for stage in result.stages if stage.name == "compute"]
    assert starts == sorted(starts)
    assert starts[1] >= result.parts[0].seconds
    assert result.caption == "Gaussian noise ▸ Median ▸ Mean · CPU parallel"


def test_known_results_are_not_computed_again(backends: Backends) -> None:
    request = chain(NOISE, MEDIAN, MEAN)
    whole = execute_all(request, backends)
    done: list[str] = []
    fake = FakeBackend("cpu", lambda asked, token, progress: done.append(asked.step.filter.id))
    result = execute_all(replace(request, done=whole.parts[:2]), {"cpu": fake})
    assert done == ["mean"]
    assert result.parts[:2] == whole.parts[:2]
    assert result.request.done == ()  # or each result would keep those before it


def test_only_the_first_step_is_measured(backends: Backends) -> None:
    result = execute_all(replace(chain(NOISE, MEDIAN), timed=True), backends)
    assert result.parts[0].repeats is not None
    assert result.parts[1].repeats is None
    assert result.repeats is None


def test_a_step_that_cannot_follow_is_refused_by_name() -> None:
    large = Step.create("mean", {"size": 31}, border=Border.VALID)
    with pytest.raises(InvalidParameter, match=r"^Mean, a later step: The 31×31 neighbourhood"):
        chain(large, large)
    with pytest.raises(InvalidParameter, match="other steps follow it"):
        replace(chain(NOISE, MEDIAN), region=Region(0, 0, 4, 4))


def test_an_error_names_the_later_step() -> None:
    def fail(request: Request, token: CancelToken, progress: Progress) -> None:
        if request.step.filter.id == "median":
            raise AppError("The device is full.", "Use less.")

    with pytest.raises(AppError, match=r"^Median, a later step: The device is full"):
        execute_all(chain(NOISE, MEDIAN), {"cpu": FakeBackend("cpu", fail)})


def test_cancel_is_heard_between_two_steps() -> None:
    token = CancelToken()
    done: list[str] = []

    def body(request: Request, _: CancelToken, progress: Progress) -> None:
        done.append(request.step.filter.id)
        token.cancel()

    with pytest.raises(Cancelled):
        execute_all(chain(NOISE, MEDIAN), {"cpu": FakeBackend("cpu", body)}, token)
    assert done == ["gaussian_noise"]


def test_a_joined_result_is_as_if_it_had_been_run(backends: Backends) -> None:
    request = chain(NOISE, MEDIAN)
    result = execute_all(request, backends)
    again = joined(request, result.parts)
    assert (again.output, again.stages) == (result.output, result.stages)
