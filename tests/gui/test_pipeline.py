"""The steps without a window: order, switches, the step in the form, and kept outputs."""

from __future__ import annotations

from typing import Any

import pytest

from kernelscope.engine.memo import Memo
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.gui.model.comparison import following
from kernelscope.gui.model.history import History, Moment
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.images.image import Image
from tests.engine.test_memo import made, picture


def settings(filter_id: str, *, on: bool = True, **parameters: Any) -> RunSettings:
    return RunSettings(Step.create(filter_id, parameters), on=on)


def pipeline(place: int = 1, *, alone: bool = False) -> Pipeline:
    steps = (
        settings("gaussian_noise"),
        settings("median"),
        settings("sobel", on=False),
        settings("mean"),
    )
    return Pipeline(steps, place, alone)


def names(steps: Any) -> list[str]:
    return [each.step.filter.id for each in steps]


def test_cards_that_are_off_take_no_part() -> None:
    steps = pipeline()
    assert names(steps.before) == ["gaussian_noise"]
    assert names(steps.after) == ["mean"]
    assert steps.then == (RunSettings(steps.steps[3].step),)
    assert pipeline(alone=True).then == ()
    assert [each.on for each in steps.steps].count(False) == 1


def test_the_form_goes_on_with_the_nearest_card_that_is_on() -> None:
    steps = pipeline().switched(1)
    assert steps.present.step.filter.id == "mean"
    last = pipeline(3).switched(3)
    assert last.present.step.filter.id == "median"
    assert pipeline().removed(1).present.step.filter.id == "mean"
    assert pipeline().removed(0).present.step.filter.id == "median"
    assert pipeline().switched(0).present.step.filter.id == "median"


def test_the_only_card_that_is_on_stays() -> None:
    only = Pipeline((settings("median"), settings("mean", on=False)), 0)
    assert not only.can_switch(0)
    assert only.switched(0) is only
    assert only.removed(0) is only
    assert only.removed(1).steps == only.steps[:1]


@pytest.mark.parametrize(("place", "to"), [(0, 1), (1, 0), (0, 3), (3, 0), (2, 1)])
def test_the_edited_card_stays_edited_when_cards_move(place: int, to: int) -> None:
    before = pipeline()
    after = before.moved(place, to)
    assert after.present is before.present
    assert after.steps[to] is before.steps[place]
    assert sorted(each.key for each in after.steps) == sorted(each.key for each in before.steps)


def test_a_copy_is_a_card_of_its_own() -> None:
    copied = pipeline().duplicated(1)
    assert names(copied.steps)[1:3] == ["median", "median"]
    assert copied.place == 2
    assert copied.steps[1].key != copied.steps[2].key
    off = pipeline().duplicated(2)
    assert off.present.step.filter.id == "median"
    assert not off.steps[3].on


def test_a_card_that_is_off_cannot_be_edited() -> None:
    steps = pipeline()
    assert steps.selected(2) is steps
    assert steps.selected(3).present.step.filter.id == "mean"


def test_alone_ends_where_nothing_follows() -> None:
    steps = pipeline(alone=True)
    assert not steps.switched(3).alone
    assert not steps.selected(3).alone
    assert steps.shown_alone(False).then


def test_a_new_card_works_on_the_output_that_is_shown() -> None:
    assert pipeline().followed().place == 4
    alone = pipeline(alone=True).followed()
    assert alone.place == 2
    assert names(alone.after) == ["mean"]
    assert not alone.alone


def test_editing_keeps_the_card() -> None:
    steps = pipeline()
    edited = steps.edited(settings("median", size=7))
    assert edited.present.step.parameters["size"] == 7
    assert edited.present.key == steps.present.key
    assert steps.edited(RunSettings(steps.present.step)) is steps


def test_a_caption_has_what_differs_from_the_defaults() -> None:
    assert settings("median").step.caption == ""
    assert "7" in settings("median", size=7).step.caption
    assert "estimated" in settings("nlm", filter_sigma=ESTIMATE).step.caption


def test_the_next_input_follows_all_steps_that_are_shown() -> None:
    source = picture()
    steps = Pipeline((settings("median"), settings("mean"), settings("sobel", on=False)), 0)
    outputs = Memo()
    first = made(source, steps.steps[0].step)
    second = made(first.image, steps.steps[1].step)
    outputs.keep(first)
    outputs.keep(second)
    end = outputs.end(source, steps.present.step, steps.then)
    assert end is not None
    moment = Moment(
        source, "Open", result=end, settings=RunSettings.of(end.request), pipeline=steps
    )
    new = following(moment)
    assert new.source is second.output
    assert names(new.steps) == ["median", "mean"]
    assert new.pipeline is not None
    assert names(new.pipeline.before) == ["median", "mean"]
    assert [each.on for each in new.pipeline.steps].count(False) == 1
    # An earlier run, without the later step, is shown: its output has no such step before it.
    other = following(Moment(source, "Open", result=first, pipeline=steps))
    assert other.pipeline is not None
    assert names(other.pipeline.before) == ["median"]


def test_steps_to_the_end_have_the_numbers_that_are_known() -> None:
    history: History[Image, Image] = History()
    source = picture()
    nlm = settings("nlm", filter_sigma=ESTIMATE, sigma=4.0, patch=5)
    steps = Pipeline((settings("median"), nlm), 0)
    history.push(Moment(source, "Open", pipeline=steps))
    request = Request(source, steps.steps[0].step)
    assert history.steps_to_end(request)[1].step.estimates == ("filter_sigma",)
    first = made(source, request.step)
    history.outputs.keep(first)
    numbers = nlm.step.with_numbers({"filter_sigma": 0.07})
    history.outputs.keep(made(first.image, numbers, estimated=True))
    assert history.steps_to_end(request)[1].step.parameters["filter_sigma"] == 0.07
    assert history.followed(request).then == steps.then
    assert len(history.followed(request).done) == 2
