"""Running recipes: every step on the result of the last one, evaluated, cancelled and named."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda.compiler import CompileError
from kernelscope.base.errors import (
    Cancelled,
    DeviceUnavailable,
    InvalidParameter,
    OutOfMemory,
    SeveralVolumes,
)
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Measurement, Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.slices import picture_of
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.engine.steps import estimate, execute_recipe, recipe_request, run_steps
from kernelscope.engine.transparency import to_grey
from kernelscope.filters.shared import mri_noise as mri_noise
from kernelscope.filters.shared.mri_sigma_map import map_sigma
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import judge, judge_volume
from kernelscope.images.phantom import ScannerNoise, add_noise
from kernelscope.images.phantom import head as phantom_head
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS, Level
from kernelscope.schema.parameters import FloatParameter
from tests.engine.fakes import FakeBackend

Backends = dict[str, CpuBackend]


def picture(*shape: int, dtype: str = "uint8") -> Image:
    values = np.random.default_rng(5).integers(0, 256, shape)
    return Image.from_array(values.astype(dtype), "a picture")


def recipe(*steps: str | Step) -> Recipe:
    return Recipe(tuple(Step.create(step) if isinstance(step, str) else step for step in steps))


class Chooser(FakeBackend):
    """A GPU that lacks the noise filters."""

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return () if spec.category == "Noise" else GPU_LEVELS


def machine(gpu: bool = True) -> dict[str, FakeBackend]:
    return {"gpu": Chooser("gpu", available=gpu), "cpu": FakeBackend("cpu")}


def places(recipe: Recipe, **options: Any) -> list[tuple[str, str]]:
    results = execute_recipe(recipe, picture(4, 4), machine(), options=RunOptions(**options))
    return [(result.device, result.level) for result in results]


def test_shapes_are_known_beforehand(backends: Backends) -> None:
    steps = recipe(
        Step.create("median", {"size": 5}, border=Border.VALID), "greyscale", "gaussian-noise"
    )
    image = picture(20, 30, 4)
    found = [result.image.planes.shape for result in execute_recipe(steps, image, backends)]
    assert recipe_request(steps, image).shapes == found == [(16, 26, 4), (16, 26, 2), (16, 26, 2)]


def test_a_step_without_room_is_named_before_the_first_runs() -> None:
    def body(*_: object) -> None:
        pytest.fail("a step ran")

    small = Step.create("mean", {"size": 5}, border=Border.VALID)
    with pytest.raises(InvalidParameter) as caught:
        list(
            execute_recipe(
                recipe(small, "median", small), picture(8, 8), {"cpu": FakeBackend(body=body)}
            )
        )
    assert caught.value.message.startswith("Step 3, Mean: The 5×5 neighbourhood does not fit")


def test_failures_name_the_step() -> None:
    def body(request: Request, *_: object) -> None:
        if request.step.filter.id == "median":
            raise MemoryError

    results = execute_recipe(
        recipe("mean", "median"), picture(4, 4), {"cpu": FakeBackend(body=body)}
    )
    next(results)
    with pytest.raises(OutOfMemory, match=r"^Step 2, Median: There is not enough memory"):
        next(results)


def test_an_estimate_without_enough_memory_names_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(pixels: object, parameters: object) -> float:
        raise MemoryError

    parameter = filters.get("nlm").parameter("filter_sigma")
    assert isinstance(parameter, FloatParameter)
    monkeypatch.setitem(vars(parameter), "estimate", fail)
    results = execute_recipe(recipe("mean", "nlm"), picture(9, 9), machine())
    next(results)
    with pytest.raises(OutOfMemory, match=r"^Step 2, Non-local means: There is not enough memory"):
        next(results)


def test_a_failure_that_names_its_step_keeps_what_else_it_has() -> None:
    def body(*_: object) -> None:
        raise CompileError("mean", "nvcc", "mean.cu(7): error: no such name\nmore")

    results = execute_recipe(
        recipe("mean", "median"), picture(4, 4), {"cpu": FakeBackend(body=body)}
    )
    with pytest.raises(CompileError) as caught:
        next(results)
    assert str(caught.value) == (
        "Step 1, Mean: nvcc could not compile mean.cu: mean.cu(7): error: no such name"
    )
    assert caught.value.log.endswith("more")
    several = SeveralVolumes("Two.", "Choose.", ("a", "b")).prefixed("Step 1: ")
    assert (str(several), several.names) == ("Step 1: Two. Choose.", ("a", "b"))


def test_progress_is_that_of_all_steps_and_never_falls() -> None:
    def body(request: Request, token: CancelToken, progress: Any) -> None:
        for stage, fraction in (("compile", 0.0), ("compute", 0.5), ("convert", 0.0)):
            progress(stage, fraction)

    seen: list[tuple[str, float]] = []
    fake = {"cpu": FakeBackend(body=body)}
    steps = recipe("mean", "median")
    list(execute_recipe(steps, picture(4, 4), fake, progress=lambda *args: seen.append(args)))
    assert seen == [
        ("step 1 of 2, compile", 0.0),
        ("step 1 of 2, compute", 0.25),
        ("step 1 of 2, convert", 0.25),
        ("step 2 of 2, compile", 0.5),
        ("step 2 of 2, compute", 0.75),
        ("step 2 of 2, convert", 0.75),
    ]
    seen.clear()
    list(execute_recipe(recipe("mean"), picture(4, 4), fake, progress=lambda *a: seen.append(a)))
    assert seen[1] == ("compute", 0.5)


def test_cancel_is_heard_while_a_step_is_prepared() -> None:
    """An estimate takes seconds, and the filter of the step would begin after it."""
    token = CancelToken()

    def refer(request: Request) -> Request:
        token.cancel()
        return request

    def body(*_: object) -> None:
        pytest.fail("the step ran")

    request = recipe_request(recipe("mean"), picture(4, 4))
    with pytest.raises(Cancelled):
        list(run_steps(request, {"cpu": FakeBackend(body=body)}, token, refer=refer))


# Device and level ---------------------------------------------------------------------


def test_device_and_level_hold_for_the_steps_that_have_them() -> None:
    steps = recipe("gaussian-noise", "mean")
    assert places(steps, device=Device.GPU) == [("cpu", "parallel"), ("gpu", "tuned")]
    assert places(steps, device=Device.CPU) == [("cpu", "parallel")] * 2
    assert places(steps, level="shared") == [("cpu", "parallel"), ("gpu", "shared")]
    assert places(steps, level="serial") == [("cpu", "serial")] * 2
    assert places(steps, device=Device.GPU, level="shared")[1] == ("gpu", "shared")


def test_a_step_that_cannot_have_the_device_or_level_is_told() -> None:
    def notices(**options: Any) -> list[tuple[str, ...]]:
        steps = recipe("gaussian-noise", "mean")
        return [
            r.notices
            for r in execute_recipe(steps, picture(4, 4), machine(), options=RunOptions(**options))
        ]

    assert notices(device=Device.GPU) == [
        ("Gaussian noise does not run on the GPU: it runs where it is fastest.",),
        (),
    ]
    assert notices(level="shared")[0][0].startswith("Gaussian noise has no level “shared”: ")


def test_what_no_step_has_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="Gaussian noise does not run on the GPU"):
        places(recipe("gaussian-noise"), device=Device.GPU)
    with pytest.raises(InvalidParameter, match=r"^Step 1, Mean: Mean has no level “warp”"):
        places(recipe("mean", "median"), level="warp")


def test_a_device_that_cannot_be_used_is_refused_before_the_first_step_runs() -> None:
    results = execute_recipe(
        recipe("gaussian-noise", "mean"),
        picture(4, 4),
        machine(gpu=False),
        options=RunOptions(Device.GPU),
    )
    with pytest.raises(DeviceUnavailable, match="fake GPU") as caught:
        next(results)
    assert "Step" not in caught.value.message


# Requests of recipes --------------------------------------------------------------------


def test_a_recipe_is_a_request_of_all_its_steps() -> None:
    nlm = Step.create("nlm", {"filter_sigma": ESTIMATE})
    whole = recipe_request(recipe(nlm, "sobel", nlm), picture(9, 9), RunOptions(Device.GPU))
    assert [each.step.filter.id for each in whole.then] == ["sobel", "nlm"]
    assert whole.shapes == [(9, 9, 1)] * 3
    assert {each.options.device for each in whole.then} == {Device.GPU}
    assert (whole.needs_estimates, whole.step) == (True, nlm)
    last = whole.alone(3, picture(9, 9))
    assert (last.needs_estimates, last.step, last.then, last.recipe) == (True, nlm, (), False)
    assert whole.prefix(2) == "Step 2, Sobel: "
    assert recipe_request(recipe("mean"), picture(9, 9)).prefix(1) == ""


def test_the_first_step_that_cannot_be_is_named_as_well() -> None:
    large = Step.create("mean", {"size": 31}, border=Border.VALID)
    with pytest.raises(InvalidParameter, match=r"^Step 1, Mean: The 31×31"):
        recipe_request(recipe(large, "mean"), picture(9, 9))
    with pytest.raises(InvalidParameter, match=r"^The 31×31"):
        recipe_request(recipe(large), picture(9, 9))


def test_a_caller_may_give_each_step_its_reference_and_its_progress() -> None:
    image, seen, asked = picture(9, 9), list[object](), list[Request]()

    def refer(request: Request) -> Request:
        asked.append(request)
        return replace(request, reference=request.image)

    def report(number: int) -> Progress:
        return lambda stage, fraction: seen.append((number, stage, fraction))

    def body(request: Request, token: CancelToken, progress: Progress) -> None:
        progress("compute", 0.5)

    request = recipe_request(recipe("mean", "median"), image)
    fake = {"cpu": FakeBackend(body=body)}
    first, second = run_steps(request, fake, report=report, refer=refer)
    assert [each.source for each in asked] == [image, first.output]
    assert second.request.reference is first.output
    assert seen == [(1, "compute", 0.5), (1, "judge", 0.0), (2, "compute", 0.5), (2, "judge", 0.0)]


# Judging and estimates ----------------------------------------------------------------


@pytest.mark.slow
def test_every_step_is_judged(backends: Backends) -> None:
    image = picture(30, 20, 3)
    first, second = execute_recipe(
        recipe("speckle-noise", "median"), image, backends, reference=image
    )
    assert first.quality is not None
    assert second.quality is not None
    assert first.quality.before is not None
    assert first.quality.before.mse == 0
    assert first.quality.after == second.quality.before
    assert second.quality.after == judge(second.image.planes, image.planes)


def test_the_reference_turns_grey_with_the_picture(backends: Backends) -> None:
    image = picture(30, 20, 4)
    grey = execute(Request.create(image, "greyscale"), backends).image
    np.testing.assert_array_equal(to_grey(image).pixels, grey.pixels)
    assert to_grey(grey) is grey
    steps = recipe("mean", Step.create("median", grey=True), "mean")
    qualities = [r.quality for r in execute_recipe(steps, image, backends, reference=image)]
    results = [result.image.planes for result in execute_recipe(steps, image, backends)]
    for quality, result, reference in zip(qualities, results, (image, grey, grey), strict=True):
        assert quality is not None
        assert quality.after == judge(colours(result), colours(reference.planes))


@pytest.mark.slow
@pytest.mark.parametrize("grey", [False, True])
def test_an_estimate_is_made_of_the_picture_that_is_there(grey: bool, backends: Backends) -> None:
    image = Image.from_array(np.full((40, 40, 4), 128, np.uint8))
    noise = Step.create("gaussian-noise", {"variance": 0.001})
    options = {"patch": 3, "search_radius": 1}
    nlm = Step.create("nlm", {**options, "filter_sigma": ESTIMATE}, grey=grey)
    noisy, result = execute_recipe(recipe(noise, nlm), image, backends)
    source = to_grey(noisy.image) if grey else noisy.image
    (parameter,) = (p for p in filters.get("nlm").parameters if p.name == "filter_sigma")
    assert isinstance(parameter, FloatParameter)
    assert parameter.estimate is not None
    expected = parameter.estimate(colours(source.planes), result.request.step.parameters)
    number = result.request.step.parameters["filter_sigma"]
    sigma = result.request.step.parameters["sigma"]
    assert number == pytest.approx(expected, rel=1e-3)
    assert result.request.step.parameters["patch"] == 3
    assert f"Non-local means: filter sigma was estimated: {number:.4g}." in result.notices
    assert f"Non-local means: noise sigma was estimated: {sigma:.4g} %." in result.notices
    numbers = {**options, "filter_sigma": number, "sigma": sigma}
    by_hand = Request.create(noisy.image, "nlm", numbers, grey=grey)
    np.testing.assert_array_equal(execute(by_hand, backends).image.pixels, result.image.pixels)


@pytest.mark.slow
@pytest.mark.parametrize("components", [2, 4])
def test_volumes_are_estimated_together(components: int) -> None:
    """The last of two or four components is no alpha."""
    clean = phantom_head((16, 24, 20)).truth
    truths = [*clean.values(), *clean.values()][-components:]
    volumes = [
        Volume.from_array(
            add_noise(truth, ScannerNoise.RICIAN, 20 + 20 * seed, seed).voxels, "noisy"
        )
        for seed, truth in enumerate(truths)
    ]
    request = Request.create(Scan(tuple(volumes)), "mri-nlm", {"search_radius": 1})
    parameter = request.step.filter.parameter("beta")
    assert isinstance(parameter, FloatParameter)
    assert parameter.estimate is not None
    expected = parameter.estimate(request.scan.planes, request.step.parameters)
    fewer = parameter.estimate(request.scan.planes[..., :-1], request.step.parameters)
    assert estimate(request, ["beta"])["beta"] == pytest.approx(expected, rel=1e-3)
    assert fewer != pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_the_map_of_sigma_is_made_once_a_request(
    backends: Backends, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def count(*arguments: Any) -> Any:
        made.append(map_sigma(*arguments))
        time.sleep(0.2)
        return made[-1]

    monkeypatch.setattr(mri_noise, "map_sigma", count)
    truth = phantom_head((16, 24, 20)).truth
    (clean, *_) = truth.values()
    scan = Scan((Volume.from_array(add_noise(clean, ScannerNoise.RICIAN, 20, 0).voxels, "noisy"),))
    settings = {"sigma_from": "adaptive", "search_radius": 1}
    (result,) = execute_recipe(recipe(Step.create("mri_nlm", settings)), scan, backends)
    assert len(made) == 1
    beta = estimate(Request.create(scan, "mri_nlm", settings), ["beta"])["beta"]
    again = execute(Request.create(scan, "mri_nlm", settings | {"beta": beta}), backends)
    assert len(made) == 3  # nothing is kept from one request to the next
    np.testing.assert_array_equal(result.scan.planes, again.scan.planes)
    assert result.request.step.fixed == again.request.step
    for run in (result, again):  # neither looks quicker than the other
        measuring = max(run.stages, key=lambda stage: stage.seconds * (stage.name == "prepare"))
        assert measuring.seconds > 0.2
        assert measuring.counted
        assert measuring.start >= 0
    assert result.stages[0].name == "prepare"
    assert result.stages[1].start >= result.stages[0].seconds


def test_pictures_and_slices_are_not_measured() -> None:
    flat = Image.from_array(np.full((40, 40), 128, np.uint8))
    assert Measurement.of(Request.create(flat, "nlm")) is None
    scan = Scan((Volume.from_array(np.full((3, 9, 9), 128, np.uint8)),))
    assert Measurement.of(Request.create(scan, "nlm")) is None


def test_an_estimate_lies_within_the_range() -> None:
    flat = Image.from_array(np.full((40, 40), 128, np.uint8))
    (parameter,) = (p for p in filters.get("nlm").parameters if p.name == "filter_sigma")
    numbers = estimate(Request.create(flat, "nlm"), ["filter_sigma", "sigma"])
    assert isinstance(parameter, FloatParameter)
    assert numbers == {"sigma": 0, "filter_sigma": parameter.minimum}


def test_results_come_as_they_are_ready() -> None:
    ran: list[str] = []
    fake = FakeBackend(body=lambda request, token, progress: ran.append(request.step.filter.id))
    results = execute_recipe(recipe("mean", "median"), picture(4, 4), {"cpu": fake})
    assert isinstance(next(results), Result)
    assert ran == ["mean"]


# Volumes ------------------------------------------------------------------------------


def head() -> Volume:
    voxels = np.random.default_rng(5).integers(100, 900, (5, 16, 18)).astype(np.int16)
    return Volume.from_array(voxels, "a head")


@pytest.mark.slow
def test_volumes_go_from_step_to_step(backends: Backends) -> None:
    volume = head()
    steps = recipe(
        Step.create("rician-noise", axis=1), Step.create("mri-nlm", {"search_radius": 1})
    )
    first, second = execute_recipe(steps, Scan((volume,)), backends, reference=volume)
    assert recipe_request(steps, Scan((volume,))).shapes == [(5, 16, 18, 1)] * 2
    assert first.request.by_slices
    assert first.request.step.axis == 1
    assert second.request.scan is first.scan
    assert first.quality is not None
    assert second.quality is not None
    assert first.quality.after == judge_volume(first.scan.volumes[0].voxels, volume.voxels)
    assert second.quality.before == first.quality.after
    (sigma,) = second.estimates["sigma"]
    assert f"MRI NLM: sigma was estimated: {sigma:.4g}." in second.notices
    assert f"estimated sigma {sigma:.4g}" in second.describe()


def test_slices_are_estimated_in_the_middle(backends: Backends) -> None:
    volume = head()
    nlm = {"patch": 3, "search_radius": 1, "filter_sigma": ESTIMATE}
    (result,) = execute_recipe(recipe(Step.create("nlm", nlm, axis=2)), Scan((volume,)), backends)
    middle = Request.create(picture_of(volume, 2, 9), "nlm", {"patch": 3, "search_radius": 1})
    expected = estimate(middle, ["sigma", "filter_sigma"])["filter_sigma"]
    assert result.request.step.parameters["filter_sigma"] == expected


def test_a_filter_of_volumes_in_a_recipe_for_pictures_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"^Step 2, MRI NLM: MRI NLM is for volumes"):
        recipe_request(recipe("mean", "mri-nlm"), picture(4, 4))
