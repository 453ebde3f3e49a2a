"""The experiments of the sources."""

from __future__ import annotations

import json

import pytest

from app.bench import PRESETS, Plan, Preset, expand, measure, presets
from app.bench.figures import Scope, all_figures
from app.engine.backend import Backend
from app.engine.control import CancelToken
from app.errors import InvalidParameter

EACH = pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)


@EACH
def test_expands_on_both_devices(preset: Preset, backends: dict[str, Backend]) -> None:
    cases = [case for group in expand(preset.plan, backends) for case in group.cases]
    assert {case.device for case in cases} == {"cpu", "gpu"}
    assert "serial" in {case.level for case in cases}, "the baseline"
    assert not [case for case in cases if case.reason and case.level != "constant"]


@EACH
def test_small_version_runs_on_the_cpu(preset: Preset, backends: dict[str, Backend]) -> None:
    del backends["gpu"]
    plan = preset.plan.small(8)
    rows = list(measure(plan, backends, CancelToken()))
    asked = {(sweep.filter, data.shape) for sweep in plan.sweeps for data in sweep.data}
    timed = [row for row in rows if row.device == "cpu"]
    assert {(row.filter, row.asked) for row in timed} == asked
    assert all(row.seconds for row in timed), [row.reason for row in timed]
    assert {row.reason for row in rows if row.device == "gpu"} == {
        "This program has no GPU backend."
    }


def test_labels_name_what_differs(backends: dict[str, Backend]) -> None:
    for name, label in (("N", "Non-local means, patch size 3"), ("F level", "Custom mask, 9×9")):
        group, *_ = expand(presets.get(name).plan, backends)
        assert group.cases[0].label == label


@EACH
def test_can_be_repeated_from_json(preset: Preset) -> None:
    content = json.loads(json.dumps(preset.plan.to_json()))
    assert Plan.from_json(content).to_json() == content
    assert content["name"] == preset.name


def test_every_figure_stands_beside_a_row(backends: dict[str, Backend]) -> None:
    """But for others' levels and several GPUs, whose figures belong to a preset all the same."""
    left = {id(figure): figure for figure in all_figures()}
    for preset in PRESETS.values():
        rows = [case.row() for group in expand(preset.plan, backends) for case in group.cases]
        assert bool(preset.figures) == bool(preset.sources)
        for figure in preset.figures:
            assert any(map(figure.is_about, rows)), figure
            if (
                not figure.level
                or figure.gpus > 1
                or figure.scope is Scope.NOT_STATED
                or any(map(figure.stands_beside, rows))
            ):
                left.pop(id(figure), None)
    assert {figure.source for figure in left.values()} <= {"V"}


@pytest.mark.parametrize(
    ("name", "found"), [("f tables", "F tables 1-3"), ("Quick look", "Quick look")]
)
def test_the_first_words_will_do(name: str, found: str) -> None:
    assert presets.get(name).name == found


@pytest.mark.parametrize(("name", "message"), [("x", "no preset “x”"), ("V tables", "not clear")])
def test_which_preset(name: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        presets.get(name)
