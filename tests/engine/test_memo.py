"""The memo of steps that are done: found by input and settings, in bounded memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.engine.memo import MOST_RESULTS, Memo
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.engine.timing import Repeats, Stage
from kernelscope.images.image import Image


def picture(value: int = 0) -> Image:
    return Image.from_array(np.full((8, 9), value, np.uint8), f"picture {value}")


def made(source: Image, step: Step, seconds: float = 0.5, **changes: Any) -> Result:
    options, estimated = changes.pop("options", RunOptions()), changes.pop("estimated", ())
    output = Image.from_array(source.pixels + 1, source.title)
    stages = (Stage("compute", seconds, True),)
    request = Request(source, step, options, estimated=estimated)
    return Result(request, output, "cpu", "parallel", stages, **changes)


def test_memo_are_found_by_their_input_and_step() -> None:
    memo, source, step = Memo(), picture(), Step.of_numbers("median", {"size": 5})
    first = made(source, step)
    memo.keep(first)
    assert memo.find(source, step) is first
    assert memo.find(picture(), step) is None
    assert memo.find(source, Step.of_numbers("median", {"size": 7})) is None
    second = made(first.image, step)
    memo.keep(second)
    assert list(memo.walk(source, [step, step, step])) == [first, second]


def test_an_estimated_number_is_found_by_the_estimate_and_by_the_number() -> None:
    memo, source = Memo(), picture()
    numbers = Step.of_numbers("nlm", {"filter_sigma": 0.04})
    estimating = replace(numbers, estimates=("filter_sigma",))
    result = made(source, estimating, estimated=True)
    memo.keep(result)
    wanted = estimating.unestimated
    assert wanted != estimating
    assert memo.find(source, wanted) is result
    assert memo.find(source, numbers) is result


def test_a_live_time_does_not_replace_a_measured_one() -> None:
    memo, source, step = Memo(), picture(), Step.of_numbers("median")
    measured = made(source, step, 0.1, repeats=Repeats((0.1,), (0.1,)))
    memo.keep(measured)
    live = made(source, step, 0.3)
    memo.keep(live)
    assert memo.find(source, step) is live
    assert (memo.facts(live).seconds, memo.facts(live).measured) == (0.1, True)
    memo.keep(made(source, step, 0.2, repeats=Repeats((0.2,), (0.2,))))
    found = memo.find(source, step)
    assert found is not None
    assert memo.facts(found).seconds == 0.2
    elsewhere = made(source, step, 0.4, options=RunOptions(device=Device.CPU, level="serial"))
    memo.keep(elsewhere)
    assert memo.facts(elsewhere).seconds == 0.4


def test_memory_is_bounded_and_the_newest_stays() -> None:
    memo = Memo(limit=432)  # three of them
    step = Step.of_numbers("median")
    results = [made(picture(number), step) for number in range(5)]  # of 144 bytes each
    for result in results:
        memo.keep(result)
        assert memo.bytes <= 432
    kept = [memo.find(each.request.source, step) is not None for each in results]
    assert kept == [False, False, True, True, True]
    memo.find(results[2].request.source, step)  # used last, so that the next one goes
    memo.keep(results[0])
    kept = [memo.find(each.request.source, step) is not None for each in results]
    assert kept == [True, False, True, False, True]
    tiny = Memo(limit=1)
    tiny.keep(results[0])
    assert tiny.find(results[0].request.source, step) is results[0]


def test_results_of_small_pictures_are_bounded_by_their_number() -> None:
    memo, step = Memo(), Step.of_numbers("median")
    sources = [picture(number % 200) for number in range(MOST_RESULTS + 3)]
    for source in sources:
        memo.keep(made(source, step))
    assert [memo.find(source, step) is not None for source in sources] == [
        number >= 3 for number in range(MOST_RESULTS + 3)
    ]


def test_a_slider_that_moves_leaves_few_memo() -> None:
    memo, source = Memo(), picture()
    for size in (3, 5, 7, 9, 11, 13):
        memo.keep(made(source, Step.of_numbers("median", {"size": size})))
    found = [
        size
        for size in (3, 5, 7, 9, 11, 13)
        if memo.find(source, Step.of_numbers("median", {"size": size}))
    ]
    assert found == [9, 11, 13]


def test_results_at_another_level_are_not_done() -> None:
    memo, source, step = Memo(), picture(), Step.of_numbers("median")
    memo.keep(made(source, step))
    then = (RunSettings(Step.of_numbers("mean")),)
    assert len(memo.done(Request(source, step, then=then))) == 1
    serial = RunOptions(device=Device.CPU, level="serial")
    assert memo.done(Request(source, step, serial, then=then)) == ()


def test_the_end_is_there_only_if_every_step_is() -> None:
    memo, source = Memo(), picture()
    median, mean = Step.create("median"), Step.create("mean")
    first, then = made(source, median), (RunSettings(mean),)
    memo.keep(first)
    assert memo.end(source, median, then) is None
    assert memo.end(source, median, ()) is first
    second = made(first.image, mean, first=True)
    memo.keep(second)
    end = memo.end(source, median, then)
    assert end is not None
    assert end.output is second.output
    assert end.request.then == then
    assert [stage.start for stage in end.stages] == [0, 0.5]
    assert end.first  # one of its steps was compiled
