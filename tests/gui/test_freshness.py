"""Which part of a result is computed next, and whether the one on the screen is current."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope.engine.area import Area
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings, alike
from kernelscope.engine.step import Step
from kernelscope.gui.model.freshness import (
    AT_ONCE,
    EMULATED_SIDE,
    EMULATING,
    LOOKING,
    MOVING,
    RESTING,
    Freshness,
    Pace,
    freshness,
    is_worthwhile,
    next_run,
    pixels_of,
    run_to_measure,
)
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box

IMAGE = Image.from_array(np.zeros((1000, 2000), np.uint8))
SCAN = Scan((Volume.from_array(np.ones((4, 5, 6), np.float32), "volume"),))
HEAD = Scan((Volume.from_array(np.ones((40, 200, 300), np.float32), "head"),))
VISIBLE = Region(100, 200, 400, 600)


def wanted(filter_id: str = "median", source: Any = IMAGE, **parameters: Any) -> Request:
    return Request(source, Step.of_numbers(filter_id, parameters))


def per_pixel(seconds: float) -> Any:
    return lambda request: seconds * pixels_of(request)


def test_the_output_is_exact_only_for_all_of_the_same_settings() -> None:
    request = wanted(size=5)
    part = replace(request, region=VISIBLE, live=True)
    assert freshness(None, request) is None
    assert freshness(replace(request, live=True), request) is Freshness.EXACT
    assert freshness(part, request) is Freshness.PART
    other = Image.from_array(IMAGE.pixels.copy())
    step = replace(request.step, border=Border.WRAP)
    for different in (
        wanted(size=7),
        wanted("mean", size=5),
        replace(request, source=other),
        replace(request, step=step),
        replace(request, options=RunOptions(level="serial")),
        None,
    ):
        assert freshness(request, different) is Freshness.OUT_OF_DATE
        assert freshness(part, different) is Freshness.OUT_OF_DATE
    assert len({each.symbol for each in Freshness}) == 3


def test_the_visible_part_comes_first_and_the_whole_at_rest() -> None:
    request = wanted()
    cost = per_pixel(2 * AT_ONCE / (1000 * 2000))
    moving = next_run(request, VISIBLE, cost, resting=False)
    assert moving is not None
    assert moving.region == VISIBLE
    assert alike(moving, request)
    assert next_run(request, VISIBLE, cost, resting=True) is request
    quick = per_pixel(0.5 * AT_ONCE / (1000 * 2000))
    assert next_run(request, VISIBLE, quick, resting=False) is request


def test_the_emulated_gpu_computes_at_rest_where_that_is_quick() -> None:
    request = replace(wanted(), options=RunOptions(device=Device.EMULATED))
    quick = per_pixel(0.9 * EMULATING / (1000 * 2000))
    assert next_run(request, VISIBLE, quick, resting=False) is None
    assert next_run(request, VISIBLE, quick, resting=True) is request
    fair = per_pixel(0.9 * EMULATING / (402 * 602))
    part = next_run(request, VISIBLE, fair, resting=True)
    assert part is not None
    assert part.region == VISIBLE
    slow = per_pixel(1.1 * EMULATING / (400 * 600))
    assert next_run(request, VISIBLE, slow, resting=True) is None
    first = next_run(request, VISIBLE, lambda request: None, resting=True)
    assert first is not None
    assert isinstance(first.region, Region)
    assert first.region.pixels <= EMULATED_SIDE * EMULATED_SIDE
    assert next_run(request, VISIBLE, lambda request: None, resting=False) is None
    further = replace(request, region=None, then=(RunSettings(request.step, request.options),))
    assert next_run(further, VISIBLE, lambda request: None, resting=True) is None, "of the whole"


def test_an_unknown_cost_is_found_with_a_small_part_in_the_middle() -> None:
    first = next_run(wanted(), VISIBLE, lambda request: None, resting=True)
    assert first is not None
    assert isinstance(first.region, Region)
    assert VISIBLE.contains(first.region)
    assert 9000 < first.region.height * first.region.width < 9500
    assert first.region.top - VISIBLE.top == pytest.approx(
        VISIBLE.top + VISIBLE.height - first.region.top - first.region.height, abs=1
    )
    hidden = next_run(wanted(), None, lambda request: None, resting=True)
    assert hidden is not None
    assert hidden.region is not None


@pytest.mark.parametrize(("resting", "limit"), [(False, MOVING), (True, RESTING)])
def test_a_slow_filter_shows_as_much_as_there_is_time_for(resting: bool, limit: float) -> None:
    cost = per_pixel(limit / 40_000)
    part = next_run(wanted(), VISIBLE, cost, resting=resting)
    assert part is not None
    assert isinstance(part.region, Region)
    assert VISIBLE.contains(part.region)
    assert cost(part) == pytest.approx(limit, rel=0.02)


@pytest.mark.parametrize(
    ("request_", "view"),
    [
        (wanted(), VISIBLE),
        (wanted("mri_nlm", HEAD), Box.slice_of(HEAD.shape, 0, 7)),
    ],
)
def test_a_part_that_is_nearly_the_view_is_not_computed_before_it(
    request_: Request, view: Any
) -> None:
    """MRI NLM of a head computed 181×216 of a slice, and then all of its 181×217."""
    for share, is_all in ((1.24, True), (1.26, False)):
        cost = per_pixel(share * RESTING / pixels_of(replace(request_, region=view)))
        first = next_run(request_, view, cost, resting=True)
        assert first is not None
        assert (first.region == view) is is_all


def test_all_of_the_view_may_take_longer_once_a_part_of_it_is_shown() -> None:
    def run(seconds: float, *, resting: bool) -> Request | None:
        cost = per_pixel(seconds / pixels_of(replace(wanted(), region=VISIBLE)))
        return next_run(wanted(), VISIBLE, cost, resting=resting, looking=True)

    for resting, seconds, is_all in (
        (True, LOOKING, True),
        (True, 1.01 * LOOKING, False),
        (False, MOVING, True),
        (False, 1.01 * MOVING, False),
    ):
        part = run(seconds, resting=resting)
        assert part is not None
        assert (part.region == VISIBLE) is is_all
    beyond = run(1.5 * LOOKING, resting=True)
    assert beyond is not None
    assert isinstance(beyond.region, Region)
    share = beyond.region.pixels / VISIBLE.pixels
    assert share == pytest.approx(1 / 1.5, rel=0.03)


def test_a_part_grows_at_rest_until_the_cost_is_known() -> None:
    """Of a small part most is overhead: the preview stayed a stamp, and the whole "about 9 s"."""
    pace, parts = Pace(), [0]
    while True:
        request = next_run(wanted(), VISIBLE, pace.expect, resting=True)
        assert request is not None
        if request.region is None:
            break
        assert pixels_of(request) > parts[-1]
        parts.append(pixels_of(request))
        pace.record(request, 0.1 + parts[-1] * 1e-6)
    assert 2 < len(parts) < 9


def test_a_part_is_not_computed_again_for_a_little_more() -> None:
    shown = Region(100, 100, 100, 100)
    view = Region(90, 90, 400, 400)
    assert not is_worthwhile(shown, Region(110, 110, 50, 50), view), "it is on the screen"
    assert not is_worthwhile(shown, Region(95, 95, 110, 110), view)
    assert is_worthwhile(shown, Region(90, 90, 120, 120), view)
    assert is_worthwhile(shown, Region(110, 100, 100, 100), view), "the view was moved"
    assert is_worthwhile(shown, Region(95, 95, 110, 110), Region(95, 95, 110, 110)), "all of it"


def test_a_view_of_few_pixels_is_shown_whole() -> None:
    few = Region(0, 0, 12, 20)
    part = next_run(wanted(), few, per_pixel(1e-6), resting=False)
    assert part is not None
    assert part.region == few
    slower = next_run(wanted(size=3), few, per_pixel(1.01 * MOVING / (13 * 21)), resting=False)
    assert slower is not None, "there is nothing larger to see"
    assert slower.region == few


def test_a_very_slow_filter_waits_for_run() -> None:
    assert next_run(wanted(), VISIBLE, per_pixel(MOVING / 400), resting=False) is None
    assert next_run(wanted(), VISIBLE, per_pixel(RESTING / 400), resting=True) is None
    assert next_run(wanted("mri_nlm", SCAN), None, lambda request: None, resting=True) is None
    assert next_run(wanted("median", SCAN), None, lambda request: None, resting=True) is None
    whole_image = wanted("nlm", search="image")
    assert next_run(whole_image, VISIBLE, lambda request: None, resting=True) is None
    late = per_pixel(2 * RESTING / (1000 * 2000))
    assert next_run(wanted("ripple"), VISIBLE, late, resting=True) is None


def test_a_quick_filter_of_whole_pictures_is_tried_once() -> None:
    request = wanted("ripple")
    assert next_run(request, VISIBLE, lambda request: None, resting=False) is request
    assert next_run(request, VISIBLE, lambda request: MOVING / 2, resting=False) is request
    assert next_run(request, VISIBLE, lambda request: 2 * MOVING, resting=False) is None
    assert next_run(request, VISIBLE, lambda request: 2 * MOVING, resting=True) is request


def test_a_view_of_everything_asks_for_the_whole() -> None:
    everything = Region.all_of(IMAGE.planes.shape)
    cost = per_pixel(2 * AT_ONCE / (1000 * 2000))
    moving = next_run(wanted(), everything, cost, resting=False)
    assert moving is not None
    assert moving.region is None


def test_the_pace_of_a_kind_of_run_gives_the_time_of_others() -> None:
    pace = Pace()
    part = replace(wanted(size=5), region=Region(100, 100, 96, 96))
    assert pace.expect(part) is None
    pace.record(part, 0.001)
    assert pixels_of(part) == 100 * 100
    assert pace.expect(wanted(size=5)) == pytest.approx(0.001 * 2_000_000 / 10_000)
    assert pace.expect(wanted(size=7)) is None
    serial = replace(wanted(size=5), options=RunOptions(level="serial"))
    assert pace.expect(serial) is None
    pace.record(wanted(size=5), 0.01)
    assert pace.expect(part) == pytest.approx(0.01 * 10_000 / 2_000_000)


def test_one_run_that_waited_neither_sets_the_pace_nor_keeps_the_whole_back() -> None:
    pace, request = Pace(), wanted(size=5)
    part = replace(request, region=Region(100, 100, 96, 96))
    pace.record(part, 0.9 * RESTING)
    assert next_run(request, VISIBLE, pace.expect, resting=True) is not request
    again = run_to_measure(request, VISIBLE, pace)
    assert again is not None
    assert isinstance(again.region, Region)
    assert again.region.pixels == pytest.approx(96 * 96, rel=0.02)
    for seconds in (0.001, 2.0):
        assert not pace.is_sure(request)
        pace.record(part, seconds)
        assert pace.expect(part) == pytest.approx(0.001)
    assert next_run(request, VISIBLE, pace.expect, resting=True) is request
    for seconds in (1.0, 1.5):
        pace.record(part, seconds)
    assert pace.expect(part) == pytest.approx(1.0), "of the last three"
    assert pace.is_sure(request)
    assert run_to_measure(request, VISIBLE, pace) is None, "it is as slow as that"


@pytest.mark.parametrize("filter_id", ["ripple", "median"])
def test_a_run_that_takes_longer_than_any_may_unasked_is_believed_at_once(filter_id: str) -> None:
    """What is computed again is the whole of ripple, and a part of the median."""
    again = run_to_measure(wanted(filter_id), VISIBLE, Pace())
    assert again is not None
    for seconds in (0.99 * RESTING, 1.01 * RESTING):
        pace = Pace()
        for _ in range(2):
            pace.record(again, seconds)
            repeated = run_to_measure(wanted(filter_id), VISIBLE, pace)
            assert (repeated is not None) is (seconds < RESTING)


def test_runs_without_compiled_code_say_nothing_about_those_with_it() -> None:
    pace, request = Pace(), wanted(size=5)
    for _ in range(3):
        pace.record(request, 0.5, uncompiled=True)
    assert pace.is_sure(request)
    mean = wanted("mean")
    assert pace.is_uncompiled(replace(mean, then=(RunSettings(request.step, mean.options),)))
    pace.record(request, 4.0)
    assert pace.expect(request) == pytest.approx(4.0)
    assert not pace.is_sure(request)


def test_several_steps_are_sure_once_each_of_them_is() -> None:
    pace, first = Pace(), wanted(size=5)
    both = replace(first, then=(RunSettings(wanted("mean").step, first.options),))
    for filter_id in ("median", "mean"):
        for _ in range(3):
            part = run_to_measure(both, VISIBLE, pace)
            assert part is not None
            assert part.step.filter.id == filter_id
            assert part.region is not None
            pace.record(part, 0.1)
    assert run_to_measure(both, VISIBLE, pace) is None


def test_steps_of_unknown_cost_are_measured_by_a_part_of_each() -> None:
    """The whole ran, unasked and for minutes, where a slow step followed one that is edited."""
    first = wanted(size=5)
    later = RunSettings(wanted("collaborative").step, first.options)
    both, pace = replace(first, then=(later,)), Pace()
    for step, seconds in ((first.step, 0.001), (later.step, 0.5)):
        part = next_run(both, VISIBLE, pace.expect, resting=True)
        assert part is not None
        assert (part.step, part.then, part.source) == (step, (), IMAGE)
        assert isinstance(part.region, Region)
        assert part.region.pixels < 10_000
        pace.record(part, seconds)
    assert next_run(both, VISIBLE, pace.expect, resting=True) is None, "it takes 50 s"
    quick = Pace()
    for each in (first, *both.followers()):
        quick.record(each, 1.0)
    assert next_run(both, VISIBLE, quick.expect, resting=True) is both
    whole = replace(first, then=(RunSettings(wanted("ripple").step, first.options), later))
    assert next_run(whole, VISIBLE, pace.expect, resting=True) is None, "one is slow by itself"


def test_a_slice_is_measured_again_by_a_small_part_of_it() -> None:
    request, box = wanted("mri_nlm", HEAD), Box.slice_of(HEAD.shape, 0, 7)
    pace = Pace()
    part = replace(request, region=box.middle((1, 48, 48)))
    for _ in range(3):
        again = run_to_measure(request, box, pace)
        assert again is not None
        assert again.region == part.region
        pace.record(part, 2.0)
    assert run_to_measure(request, box, pace) is None
    other = Box.slice_of(HEAD.shape, 2, 7)
    assert run_to_measure(request, other, pace) is not None, "it is across another axis"


@pytest.mark.slow
def test_requests_of_the_same_settings_are_alike_however_they_were_made() -> None:
    """That is seen without their keys, which are the same then."""
    step, options = Step.of_numbers("nlm", {}), RunOptions()
    open_ = replace(step, estimates=("filter_sigma",))
    further = (RunSettings(Step.of_numbers("median"), options),)
    made = [
        Request(source, each, some, estimated=estimated, then=then)
        for source in (IMAGE, Image.from_array(IMAGE.pixels.copy()))
        for each in (step, Step.of_numbers("nlm", {}), open_)
        for some in (options, RunOptions(), RunOptions(level="serial"))
        for estimated in (False, True)
        for then in ((), further)
    ]
    for one, other in itertools.product(made, made):
        same = one.source is other.source
        keys = (one.work, one.cost_key) == (other.work, other.cost_key)
        assert alike(one, other) == (same and keys)
        settings = RunSettings(one.step, one.options)
        if not other.then:
            plain = replace(other, step=one.step, options=one.options)
            assert settings.made(other) == alike(other, plain)


def test_a_device_that_can_reduce_copies_only_what_is_seen_while_the_hand_moves() -> None:
    request, everything = wanted(), Region.all_of(IMAGE.planes.shape)
    cost = per_pixel(0.5 * AT_ONCE / (1000 * 2000))
    moving = next_run(request, everything, cost, resting=False, reduction=3)
    assert moving is not None
    assert (moving.reduction, moving.region, moving.output_shape) == (3, None, (334, 667, 1))
    assert freshness(moving, request) is Freshness.PREVIEW
    assert next_run(request, everything, cost, resting=True, reduction=3) is request
    part = next_run(request, VISIBLE, cost, resting=False, reduction=3)
    assert part is not None
    assert part.reduction == 1
    pace = Pace()
    pace.record(moving, 0.001)
    assert pace.expect(request) is None


def test_a_run_within_an_area_teaches_nothing_about_the_whole() -> None:
    image = Image.from_array(np.zeros((400, 400), np.uint8))
    area = Area.parse("rectangle 0,0 10,10")
    whole = Request.create(image, "nlm")
    limited = Request.create(image, "nlm", within=area)
    pace = Pace()
    pace.record(limited, 0.001)
    assert pace.expect(limited) == pytest.approx(0.001)
    assert pace.expect(whole) is None
    assert not alike(whole, limited)
