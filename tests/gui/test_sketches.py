"""Sketches are true of their filters: parts of results, or a cost in their place."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import estimate
from kernelscope.gui.model import sketches
from kernelscope.gui.model.sketches import (
    HEIGHT,
    WIDTH,
    Sketch,
    Sketches,
    ViewedPicture,
    kind_of_sketch,
    sketch,
)
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border


def scene_of(height: int, width: int, centre: tuple[int, int] | None = None) -> ViewedPicture:
    pixels = np.random.default_rng(3).integers(0, 256, (height, width), np.uint8)
    image = Image.from_array(pixels, "noise")
    return ViewedPicture(image, centre or (width // 2, height // 2), image)


def draw(scene: ViewedPicture, step: Step, backend: CpuBackend, patience: float = 60.0) -> Sketch:
    return sketch(scene, step, backend, CancelToken(), patience)


def whole(scene: ViewedPicture, step: Step, backend: CpuBackend) -> np.ndarray:
    request = Request(scene.image, step, RunOptions(device=Device.CPU))
    return execute(request, {"cpu": backend}, learn=False).image.planes


@pytest.mark.parametrize(
    ("centre", "top", "left"),
    [((100, 80), 80 - HEIGHT // 2, 100 - WIDTH // 2), ((0, 0), 0, 0), ((199, 159), 106, 128)],
)
def test_a_sketch_is_the_middle_of_the_result_as_it_is(
    backend: CpuBackend, centre: tuple[int, int], top: int, left: int
) -> None:
    scene, step = scene_of(160, 200, centre), Step.create("median", {"size": 5})
    made = draw(scene, step, backend)
    expected = whole(scene, step, backend)[top : top + HEIGHT, left : left + WIDTH]
    np.testing.assert_array_equal(made.planes, expected)
    assert made.place == "72×54 pixels from the middle of the view, as they are"
    assert made.cost is None


def test_a_result_with_fewer_pixels_is_shown_around_the_same_place(backend: CpuBackend) -> None:
    scene = scene_of(160, 200, (100, 80))
    step = Step.create("mean", {"size": 9}, border=Border.VALID)
    made = draw(scene, step, backend)
    result = whole(scene, step, backend)
    top, left = 80 - 4 - HEIGHT // 2, 100 - 4 - WIDTH // 2
    np.testing.assert_array_equal(made.planes, result[top : top + HEIGHT, left : left + WIDTH])


def test_a_small_picture_is_shown_as_a_whole(backend: CpuBackend) -> None:
    scene, step = scene_of(20, 30), Step.create("negative")
    np.testing.assert_array_equal(draw(scene, step, backend).planes, 255 - scene.image.planes)


def test_a_pattern_of_the_pictures_size_is_shown_reduced(backend: CpuBackend) -> None:
    scene, step = scene_of(216, 288), Step.create("ripple")
    made = draw(scene, step, backend)
    assert made.place == "the whole picture, reduced to 72×54 pixels"
    np.testing.assert_array_equal(made.planes, whole(scene_of(54, 72), step, backend))


@pytest.mark.slow
def test_strengths_are_estimated_from_the_middle_of_the_view(backend: CpuBackend) -> None:
    scene, step = scene_of(300, 290, (200, 100)), Step.create("nlm", {"search_radius": 2})
    assert step.estimates == ("sigma", "patch", "filter_sigma")
    middle = Image.from_array(scene.image.pixels[:256, 34:290].copy(), "middle")
    numbers = estimate(Request(middle, step), step.estimates)
    expected = whole(scene, step.with_numbers(numbers).fixed, backend)
    top, left = 100 - HEIGHT // 2, 200 - WIDTH // 2
    np.testing.assert_array_equal(
        draw(scene, step, backend).planes, expected[top : top + HEIGHT, left : left + WIDTH]
    )


@pytest.mark.slow
def test_a_filter_that_is_too_slow_has_a_cost_in_place_of_a_picture(backend: CpuBackend) -> None:
    # With numbers of its own: their estimates took two thirds of the time.
    step = Step.of_numbers("nlm", {"search_radius": 12, "filter_sigma": 0.1})
    scene = scene_of(200, 200)
    draw(scene, step, backend)  # compiles
    made = draw(scene, step, backend, patience=0.0)
    assert made.planes is None
    assert made.problem == "Too slow for a thumbnail."
    assert made.cost is not None
    assert made.cost > 0
    larger = draw(scene_of(800, 800), step, backend, patience=0.0)
    assert larger.cost is not None
    assert larger.cost > 2 * made.cost  # of 16 times the pixels; times vary


@pytest.mark.slow
def test_a_search_in_the_whole_picture_costs_the_square_of_its_pixels(backend: CpuBackend) -> None:
    step = Step.of_numbers("nlm", {"search": "image", "filter_sigma": 0.1})
    small = scene_of(24, 32)
    np.testing.assert_array_equal(draw(small, step, backend).planes, whole(small, step, backend))
    made = draw(scene_of(480, 640), step, backend, patience=0.5)
    assert made.planes is None
    assert made.problem == "Every pixel looks at the whole picture."
    assert made.cost is not None
    assert made.cost > 5  # 307,200 pixels of 307,200 each
    between = scene_of(60, 80)  # quick enough as a whole
    np.testing.assert_array_equal(
        draw(between, step, backend).planes, whole(between, step, backend)[3:57, 4:76]
    )


def test_a_sketch_can_be_given_up(backend: CpuBackend) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        sketch(scene_of(100, 100), Step.create("median"), backend, token)


def test_an_impossible_filter_says_why(backend: CpuBackend) -> None:
    step = Step.create("mean", {"size": 9}, border=Border.VALID)
    made = draw(scene_of(5, 5), step, backend)
    assert made.planes is None
    assert "does not fit into 5×5 pixels" in made.problem


# --- kept ---


def test_sketches_are_kept_for_a_picture_until_the_view_moves() -> None:
    kept, made = Sketches(), Sketch(problem="a")
    scene, step = scene_of(10, 10), Step.create("median")
    mean = Step.create("mean")
    kept.keep(scene, step, made)
    kept.keep(scene, mean, made)
    assert kept.of(scene, step) is kept.of(scene, mean) is made
    assert (
        kept.of(ViewedPicture(scene.image, scene.centre, scene.image), Step.create("median"))
        is made
    )
    assert kept.of(scene, Step.create("median", {"size": 5})) is None
    moved = ViewedPicture(scene.image, (1, 1), scene.image)
    assert kept.of(moved, step) is None
    kept.keep(moved, step, Sketch(problem="b"))
    assert kept.of(scene, step) is None
    assert kept.of(moved, mean) is None


def test_sketches_of_the_last_four_pictures_are_kept() -> None:
    kept, step = Sketches(), Step.create("median")
    scenes = [scene_of(10, 10) for _ in range(5)]
    for scene in scenes:
        kept.keep(scene, step, Sketch(problem="a"))
    assert [kept.of(scene, step) is not None for scene in scenes] == [False, *4 * [True]]


# --- compiled ahead ---


def test_the_helper_answers_each_order_when_its_code_is_there() -> None:
    scene, answers = scene_of(10, 10), io.StringIO()
    steps = [Step.create("negative"), Step.create("median", {"size": 3})]
    orders = [sketches.order(scene, step) for step in steps]
    assert json.loads(orders[0])["dtype"] == "uint8"
    sketches.serve(orders, answers)
    assert answers.getvalue().splitlines() == [kind_of_sketch(scene, step) for step in steps]


def test_equal_kinds_need_the_same_code() -> None:
    step = Step.create("median")
    kind = kind_of_sketch(scene_of(10, 10), step)
    assert kind_of_sketch(scene_of(99, 50), step) == kind
    assert kind_of_sketch(scene_of(10, 10), Step.create("median", {"size": 13})) != kind
    image = Image.from_array(np.zeros((9, 9, 3), np.uint16), "colours")
    assert kind_of_sketch(ViewedPicture(image, (4, 4), image), step) != kind
