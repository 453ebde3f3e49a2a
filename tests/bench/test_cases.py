"""Plans, and the rows that they ask for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.base.json_fields import Field, parse
from kernelscope.bench import peers
from kernelscope.bench.cases import Case, expand
from kernelscope.bench.data import Content, Data
from kernelscope.bench.plan import Plan
from kernelscope.bench.presets import cases, grid
from kernelscope.engine.backend import Backend
from kernelscope.images.image import Image
from tests.bench.stand_in import StandIn


def expanded(plan: Plan, backends: dict[str, Backend]) -> list[Case]:
    return [case for group in expand(plan, backends) for case in group.cases]


def test_a_grid_is_every_filter_mask_size_device_and_level(backends: dict[str, Backend]) -> None:
    plan = Plan(sweeps=grid(["mean", "sobel"], [16, 32], [3, 5]), levels=("serial", "tuned"))
    found = [
        (case.filter, dict(case.parameters), case.data.shape, case.level)
        for case in expanded(plan, backends)
    ]
    expected = [
        (name, parameters, (size, size), level)
        for name, sets in (
            ("mean", [{"size": 3}, {"size": 5}]),
            ("sobel", [{"form": form} for form in ("sum", "magnitude", "directions")]),
        )
        for parameters in sets
        for size in (16, 32)
        for level in ("serial", "tuned")
    ]
    assert found == expected


def test_volumes_are_filtered_by_as_many_gpus_as_a_plan_says(
    backends: dict[str, Backend], gpu: StandIn
) -> None:
    plan = Plan(
        sweeps=(*grid(["mean"], [16], [3]), *grid(["mri_nlm"], [8], [3])),
        levels=("serial", "shared"),
        gpus=(1, 2),
    )

    def found() -> list[tuple[str, str, str]]:
        rows = (case.row() for case in expanded(plan, backends))
        return [(row.filter, row.series, row.reason) for row in rows]

    pictures = [("mean", "CPU serial", ""), ("mean", "GPU shared", "")]
    volumes = [("mri_nlm", "CPU serial", ""), ("mri_nlm", "GPU shared", "")]
    few = "Too few GPUs were chosen: 1 of 2."
    assert found() == [*pictures, *volumes, ("mri_nlm", "2 GPUs shared", few)]
    gpu.chosen = 2
    assert found() == [*pictures, *volumes, ("mri_nlm", "2 GPUs shared", "")]
    plan = replace(plan, gpus=())
    assert found() == [*pictures, volumes[0], ("mri_nlm", "2 GPUs shared", "")]
    assert Plan.from_json(Field(replace(plan, gpus=(1, 2)).to_json(), "here")).gpus == (1, 2)
    older = plan.to_json()
    del older["gpus"], older["libraries"]
    assert Plan.from_json(Field(older, "here")) == plan


def test_without_names_all_filters_of_the_kind() -> None:
    assert {sweep.filter for sweep in grid([], [16], [3])} == set(filters.discover())


def test_a_mask_size_that_a_filter_lacks_is_left_out() -> None:
    assert list(cases(filters.get("weighted_mean"), [3, 99])) == [{"size": 3}]
    assert grid(["weighted_mean"], [16], [99]) == ()


def test_filters_of_volumes_get_volumes() -> None:
    (sweep,) = grid(["mri-nlm"], [12], [3])
    assert sweep.data == (Data(Content.HEAD, (12, 12, 12)),)


def test_the_open_picture_is_what_every_filter_gets() -> None:
    image = Image.from_array(np.zeros((20, 30, 3), np.uint8), "photo")
    sweeps = grid(["mean", "greyscale"], [], [3], Data.of(image))
    assert {sweep.data for sweep in sweeps} == {(Data.of(image),)}
    with pytest.raises(InvalidParameter, match="filters volumes"):
        grid(["mri_nlm"], [], [3], Data.of(image))


def test_what_filters_are_timed_with_is_theirs() -> None:
    assert any(spec.bench.variants != ({},) for spec in filters.discover().values())
    for spec in filters.discover().values():
        assert spec.bench.variants
        assert spec.bench.border in spec.borders
        for variant in spec.bench.variants:
            spec.validate(variant)


def test_bench_knows_only_filters_that_exist() -> None:
    for library in peers.discover().values():
        assert library.makers
        assert set(library.makers) <= set(filters.discover())


# Rows that cannot run --------------------------------------------------------------------


def test_without_a_gpu_its_rows_stay_with_the_reason(
    backends: dict[str, Backend], gpu: StandIn
) -> None:
    gpu.available = False
    plan = Plan(sweeps=grid(["mean"], [16], [3]), peers=True)
    reasons = {case.level: case.reason for case in expanded(plan, backends) if case.device == "gpu"}
    assert set(reasons) == {level.id for level in filters.get("mean").levels("gpu")} | {
        "NPP",
        "CuPy",
    }
    assert set(reasons.values()) == {"No GPU here."}


def test_without_a_backend_too() -> None:
    plan = Plan(sweeps=grid(["mean"], [16], [3]), devices=("gpu",))
    assert {case.reason for case in expanded(plan, {})} == {"This program has no GPU backend."}


def test_a_level_that_means_nothing_for_a_filter(backends: dict[str, Backend]) -> None:
    plan = Plan(sweeps=grid(["mean"], [16], [3]), levels=("constant", "host-partitions"))
    (case,) = expanded(plan, backends)
    assert case.reason == filters.get("mean").gaps("gpu")["constant"]
    assert case.row().reason == case.reason
    assert case.row().seconds == ()


def test_blocks_are_rows_where_they_can_be_chosen(backends: dict[str, Backend]) -> None:
    levels = ("serial", "global", "constant", "tuned")
    plan = Plan(sweeps=grid(["mean"], [16], [3]), levels=levels, blocks=((8, 8), (32, 32)))
    assert [(case.level, case.block) for case in expanded(plan, backends)] == [
        ("serial", None),
        ("global", (8, 8)),
        ("global", (32, 32)),
        ("tuned", None),
        ("constant", None),  # with the reason why there is no such level
    ]


def test_libraries_that_are_not_installed(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    known = peers.discover()
    absent = replace(known["SciPy"], module="no_such_module")
    monkeypatch.setattr(peers, "discover", lambda: {**known, "SciPy": absent})
    plan = Plan(sweeps=grid(["mean"], [16], [3]), devices=("cpu",), peers=True)
    reasons = {case.level: case.reason for case in expanded(plan, backends) if case.library}
    assert reasons["SciPy"] == "SciPy is not installed."


# Mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": ("fast",)}, "no level “fast”"),
        ({"devices": ("tpu",)}, "no device “tpu”"),
    ],
)
def test_plans_that_are_wrong_everywhere(
    changes: dict[str, tuple[str, ...]], message: str, backends: dict[str, Backend]
) -> None:
    plan = Plan(sweeps=grid(["mean"], [16], [3]))
    with pytest.raises(InvalidParameter, match=message):
        expand(replace(plan, **changes), backends)  # type: ignore[arg-type]


def test_wrong_filters_and_masks() -> None:
    with pytest.raises(AppError, match="4 is even"):
        grid(["mean"], [16], [3, 4])
    with pytest.raises(AppError, match="no filter “blur”"):
        grid(["blur"], [16], [3])


# JSON ----------------------------------------------------------------------------------


def test_a_plan_survives_json(backends: dict[str, Backend]) -> None:
    plan = Plan(
        name="mine",
        sweeps=(*grid([], [16, 32], [3, 9]), *grid(["mri_nlm"], [8], [])),
        devices=("cpu",),
        levels=("serial",),
        peers=True,
        repeat=4,
        cold=False,
        longest=2.5,
    )
    again = Plan.from_json(parse(json.dumps(plan.to_json()), "here"))
    assert again.to_json() == plan.to_json()
    assert [case.row() for case in expanded(again, backends)] == [
        case.row() for case in expanded(plan, backends)
    ]


def test_a_given_picture_is_named_and_not_made_up() -> None:
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8), "photo")
    content = Plan(sweeps=grid(["mean"], [], [3], Data.of(image))).to_json()
    assert content["sweeps"][0]["data"][0]["title"] == "photo"
    assert len(content["sweeps"][0]["data"][0]["digest"]) == 16
    (data,) = Plan.from_json(Field(content, "here")).sweeps[0].data
    with pytest.raises(AppError, match="“photo” is not open"):
        data.make()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "x.json: plan: “sweeps” is missing."),
        ({"sweeps": [], "name": 3}, "x.json: plan.name: expected text, found 3."),
        (
            {"sweeps": [], "longest": 0},
            "x.json: plan.longest: expected a number from 1e-12 to 1e+09, found 0.",
        ),
        (
            {"sweeps": [], "blocks": ["1x1"]},
            "x.json: plan.blocks[0]: A block of 1×1 has 1 threads. "
            "Choose sides with a product of 32 to 1024.",
        ),
        ({"name": "x", "sweeps": 3}, "x.json: plan.sweeps: expected a list [...], found 3."),
        (
            {"name": "x", "sweeps": [{"filter": "mean"}]},
            "x.json: plan.sweeps[0]: “border” is missing.",
        ),
    ],
)
def test_what_is_no_plan(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(AppError) as caught:
        Plan.from_json(Field(wrong, "x.json", ("plan",)))
    assert str(caught.value) == message


# Data ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "sides"),
    [
        ((4096, 4096), [64, 128, 256, 512, 1024, 2048, 4096]),
        ((600, 600), [75, 150, 300, 600]),
        ((130, 130), [65, 130]),
        ((7, 7), [7]),
        ((37, 256, 256), [4, 9, 18, 37]),
        ((130, 157, 189), [16, 32, 65, 130]),
    ],
)
def test_parts_to_try(shape: tuple[int, ...], sides: list[int]) -> None:
    content = Content.NOISE if len(shape) == 2 else Content.HEAD
    parts = list(Data(content, shape).parts())
    assert [part.shape[0] for part in parts] == sides
    assert parts[-1].shape == shape


@pytest.mark.parametrize(
    "data",
    [
        Data(Content.NOISE, (8, 9)),
        Data(Content.NOISE, (8, 9), 3),
        Data(Content.PHOTOGRAPH, (64, 64)),
        Data(Content.HEAD, (5, 6, 7)),
        Data(Content.HEAD, (5, 6, 7), 3),
    ],
    ids=lambda data: f"{data.content} {data.channels}",
)
def test_data_are_the_same_each_time_but_elsewhere(data: Data) -> None:
    first, second = data.make().planes, data.make().planes
    assert first.shape == (*data.shape, data.channels)
    np.testing.assert_array_equal(first, second)
    assert not np.shares_memory(first, second)
    assert np.ptp(first) > 0


def test_only_the_photograph_knows_its_truth() -> None:
    photograph = Data(Content.PHOTOGRAPH, (128, 128))
    truth = photograph.truth()
    assert truth is not None
    noise = photograph.make().planes.astype(float) - truth.planes
    assert noise.std() == pytest.approx(255 * np.sqrt(0.001), rel=0.1)
    assert Data(Content.NOISE, (128, 128)).truth() is None


def test_a_part_of_what_was_given_is_its_corner(tmp_path: Path) -> None:
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8), "photo")
    part = Data.of(image).at_most(3).make().planes
    np.testing.assert_array_equal(part[:, :, 0], image.pixels[:3, :3])


def test_the_phantom_has_three_components() -> None:
    with pytest.raises(InvalidParameter, match="no 4 components"):
        Data(Content.HEAD, (4, 4, 4), 4).make()
