"""The experiments of the sources."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.json_fields import Field
from kernelscope.bench import presets
from kernelscope.bench.cases import expand
from kernelscope.bench.data import SALT_AND_PEPPER
from kernelscope.bench.figures import all_figures
from kernelscope.bench.plan import Plan
from kernelscope.bench.presets import PRESETS, Preset
from kernelscope.bench.runner import measure
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.images.image import Image
from tests.bench.stand_in import StandIn

EACH = pytest.mark.parametrize(
    "preset",
    [preset for preset in PRESETS.values() if "cpu" in preset.plan.devices],
    ids=lambda preset: preset.name,
)


@EACH
def test_expands_on_both_devices(preset: Preset, backends: dict[str, Backend]) -> None:
    cases = [case for group in expand(preset.plan, backends) for case in group.cases]
    assert {case.device for case in cases} == {"cpu", "gpu"}
    levels = {case.level for case in cases}
    assert "serial" in levels or preset.name.startswith("V table 4-"), "the baseline"
    assert "parallel" in levels or preset.name == "F graph 9", "the rival"
    lacking = [case for case in cases if case.reason and case.level != "constant"]
    assert {case.gpus for case in lacking} <= {2}


_MANY_FILTERS = ("Denoisers", "V noise models and windows")
"""Presets whose code takes 20 and 7 seconds to compile; each filter has tests of its own."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset",
    [
        pytest.param(
            preset,
            id=preset.name,
            marks=pytest.mark.exhaustive if preset.name in _MANY_FILTERS else (),
        )
        for preset in PRESETS.values()
        if "cpu" in preset.plan.devices
    ],
)
def test_small_version_runs_on_the_cpu(preset: Preset, backends: dict[str, Backend]) -> None:
    del backends["gpu"]
    plan = preset.plan.small(8)
    rows = list(measure(plan, backends, CancelToken()))
    asked = {(sweep.filter, data.shape) for sweep in plan.sweeps for data in sweep.data}
    timed = [row for row in rows if row.device == "cpu"]
    assert asked
    assert {(row.filter, row.asked) for row in timed} == asked
    assert all(row.seconds for row in timed), [row.reason for row in timed]
    lacking = {row.reason for row in rows if row.device == "gpu" and row.level != "constant"}
    assert lacking == {"This program has no GPU backend."}


def test_blocks_are_rows_of_their_own(backends: dict[str, Backend]) -> None:
    preset = presets.get("Block")
    assert [each.name for each in PRESETS.values() if "cpu" not in each.plan.devices] == [
        preset.name
    ]
    rows = [case.row() for group in expand(preset.plan, backends) for case in group.cases]
    shared = [row.series for row in rows if row.filter == "mask" and row.level == "shared"]
    assert shared == [f"GPU shared {block}" for block in ("8×8", "16×16", "32×8", "32×32", "256×1")]
    assert Plan.from_json(Field(preset.plan.to_json(), "here")) == preset.plan


def test_labels_name_what_differs(backends: dict[str, Backend]) -> None:
    for name, label in (("N", "Non-local means, patch size 3"), ("F level", "Custom mask, 9×9")):
        group, *_ = expand(presets.get(name).plan, backends)
        assert group.cases[0].label == label


def test_source_n_has_a_strength_of_its_own() -> None:
    """Whatever stands for it elsewhere where nobody sets it."""
    sweeps = [sweep for preset in PRESETS.values() for sweep in preset.plan.sweeps]
    strengths = {each.fixed.get("filter_sigma") for each in sweeps if each.filter == "nlm"}
    assert strengths == {0.02}


@EACH
def test_can_be_repeated_from_json(preset: Preset) -> None:
    content = json.loads(json.dumps(preset.plan.to_json()))
    assert Plan.from_json(Field(content, "here")).to_json() == content
    assert content["name"] == preset.name


def test_every_figure_is_about_a_preset(backends: dict[str, Backend], gpu: StandIn) -> None:
    """And stands beside a row of it, unless no filter here matches the measured one."""
    gpu.chosen = 2
    left = {id(figure): figure for figure in all_figures() if not figure.average}
    for preset in PRESETS.values():
        rows = [case.row() for group in expand(preset.plan, backends) for case in group.cases]
        assert bool(preset.figures) == bool(preset.sources)
        for figure in preset.figures:
            assert any(map(figure.is_about, rows)), figure
            if not figure.level or any(map(figure.stands_beside, rows)):
                left.pop(id(figure), None)
    assert list(left.values()) == []


def test_the_mean_is_taken_of_a_photograph_with_salt_and_pepper() -> None:
    (sweep,) = presets.get("M mean").plan.sweeps
    (data,) = sweep.data
    image, truth = data.make(), data.truth()
    assert isinstance(image, Image)
    assert truth is not None
    changed = image.pixels != truth.pixels
    assert set(image.pixels[changed].tolist()) == {0, 255}
    black = np.count_nonzero(image.pixels[changed] == 0) / changed.sum()
    assert np.mean(changed) == pytest.approx(SALT_AND_PEPPER, rel=0.1)
    assert black == pytest.approx(0.5, abs=0.05)


def test_volumes_are_as_the_tables_call_them() -> None:
    sizes = {
        name: [data.describe() for data in presets.get(name).plan.sweeps[0].data]
        for name in ("V tables 4-1", "V table 4-6")
    }
    assert sizes == {
        "V tables 4-1": ["256×256×37", "189×157×130"],
        "V table 4-6": ["428×247×338", "396×247×338"],
    }


@pytest.mark.parametrize(
    ("name", "found"), [("f tables", "F tables 1-3"), ("Quick look", "Quick look")]
)
def test_the_first_words_will_do(name: str, found: str) -> None:
    assert presets.get(name).name == found


@pytest.mark.parametrize(
    ("name", "message"), [("x", "no preset “x”"), ("V tables", "matches several presets")]
)
def test_which_preset(name: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        presets.get(name)


def test_only_the_presets_that_match_are_offered() -> None:
    with pytest.raises(InvalidParameter) as caught:
        presets.get("f")
    offered = caught.value.hint.removeprefix("Use one of: ").removesuffix(".").split("; ")
    assert offered == [name for name in presets.PRESETS if name.startswith("F")]
    assert 1 < len(offered) < len(presets.PRESETS)
