"""The moments of a page: which are kept, and the settings that belong to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import Step
from kernelscope.gui.model import history
from kernelscope.gui.model.history import History, Moment
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume


def image(name: str) -> Image:
    return Image.from_array(np.zeros((4, 5), np.uint8), name)


def form(filter_id: str) -> RunSettings:
    return RunSettings(Step.of_numbers(filter_id), RunOptions())


def names(made: History[Any, Any]) -> list[str]:
    moments, _ = made.state
    return [moment.name for moment in moments]


def filled(*steps: str) -> History[Any, Any]:
    made: History[Any, Any] = History()
    for step in steps:
        made.push(Moment(image(step), step))
    return made


def test_the_oldest_moment_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_MOMENTS", 3)
    made = filled("a", "b", "c", "d")
    assert names(made) == ["b", "c", "d"]
    assert made.current is not None
    assert made.current.name == "d"


def test_what_undo_left_behind_goes_before_the_current_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = filled("a", "b", "c")
    made.undo()
    made.undo()
    monkeypatch.setattr(history, "MOST_MOMENTS", 2)
    made.amend(name="A")
    assert names(made) == ["A", "b"], "the last one that redo led to"
    assert made.redo_name == "b"


def test_what_was_taken_back_and_gone_on_from_is_forgotten() -> None:
    made = filled("a", "b", "c")
    made.undo()
    assert (made.undo_name, made.redo_name) == ("b", "c")
    made.push(Moment(image("d"), "d"))
    assert (names(made), made.undo_name, made.redo_name) == (["a", "b", "d"], "d", "")
    made.undo()
    made.undo()
    assert (made.undo_name, made.redo_name) == ("", "b")


def test_as_many_moments_stay_as_there_are_bytes_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_BYTES", 2 * 4 * 5)
    assert names(filled("a", "b", "c")) == ["b", "c"]
    monkeypatch.setattr(history, "MOST_BYTES", 2 * 4 * 5 - 1)
    assert names(filled("a", "b", "c")) == ["c"]


def test_a_moment_stays_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_BYTES", 1)
    assert names(filled("a", "b")) == ["b"]


def test_settings_stay_with_an_input_that_was_not_filtered_yet() -> None:
    made: History[Any, Any] = History()
    made.settings_now = lambda: form("median")
    made.push(Moment(image("a"), "a"))
    assert made.current is not None
    assert made.current.settings is None
    made.push(Moment(image("b"), "b"))  # which leaves the first one
    made.settings_now = lambda: form("mean")
    made.undo()
    assert made.current.settings == form("median")
    made.redo()
    assert made.current.settings == form("mean")


def test_settings_of_a_result_stay_those_of_its_run() -> None:
    made: History[Any, Any] = History()
    result: Any = type("Result", (), {"output": image("out"), "parts": ()})()
    made.push(Moment(image("a"), "a", result=result, settings=form("median")))
    made.settings_now = lambda: form("mean")
    made.push(Moment(image("b"), "b"))
    made.undo()
    assert made.current is not None
    assert made.current.settings == form("median")


def test_a_result_is_current_with_its_settings_but_along_any_axis() -> None:
    """The axis follows the plane that was clicked, and is no setting of the form."""
    voxels = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6)
    scan = Scan((Volume.from_array(voxels, "head"),))
    request = Request.create(scan, "median", {"size": 3}, axis=2)
    step, options = Step.of_numbers("median", {"size": 3}), RunOptions()
    assert step.axis != request.step.axis
    assert RunSettings(step, options).made(request)
    assert RunSettings(replace(step, grey=True), options).made(request), "no colours"
    assert not RunSettings(Step.of_numbers("median", {"size": 5}), options).made(request)
    assert not RunSettings(step, replace(options, repeat=2)).made(request)
    assert not RunSettings(step, replace(options, level="serial")).made(request)
    colours = Image.from_array(np.zeros((4, 5, 3), np.uint8), "a")
    picture = Request.create(colours, "median", {"size": 3})
    assert RunSettings(step, options).made(picture)
    assert not RunSettings(replace(step, grey=True), options).made(picture)
