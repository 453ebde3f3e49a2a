"""Plans of the launches that look alike for every filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.filters.shared import correlation_cuda
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level
from tests.backends.specialisations import tuned_at_any_size
from tests.pairs import together

SHAPE = (100, 90, 3)


def plan(spec: FilterSpec, level: Level, block: tuple[int, int] | None) -> Launch:
    task = CudaTask(
        SHAPE, SHAPE, np.dtype(np.uint16), spec.defaults(), Border.REFLECT, level.id, block
    )
    (launch,) = CudaPlan.of(spec.implementation(Cuda).plan(task)).launches
    return launch


@together("level", [GLOBAL, SHARED, TEXTURE, SINGLE_BLOCK])
@together("block", [(8, 8), (32, 32), (256, 1), (16, 4)])
def test_a_block_that_is_asked_for(level: Level, block: tuple[int, int]) -> None:
    launch = plan(filters.get("mean"), level, block)
    assert launch.block == block
    assert launch.tile == (None if level is SINGLE_BLOCK else block)
    cells = (block[0] + 2) * (block[1] + 2) if level is SHARED else 0
    assert launch.shared_bytes == cells * SHAPE[2] * 2
    assert plan(filters.get("mean"), level, None).block != block or block == (32, 32)


def test_a_single_block_has_no_macros_of_another_block() -> None:
    launch = plan(filters.get("median"), SINGLE_BLOCK, None)
    assert launch.block == (32, 32)
    assert not {"BLOCK_COLUMNS", "BLOCK_ROWS"} & launch.defines.keys()


@together("filter_id", ["mean", "median", "sobel", "greyscale", "mask"])
def test_tuned_keeps_blocks_of_its_own(filter_id: str) -> None:
    spec = filters.get(filter_id)
    asked, usual = plan(spec, TUNED, (8, 8)), plan(spec, TUNED, None)
    assert (asked.block, asked.tile) == (usual.block, usual.tile)
    with tuned_at_any_size():
        asked, own = plan(spec, TUNED, (8, 8)), plan(spec, TUNED, None)
    assert (asked.block, asked.tile) == (own.block, own.tile)
    assert own.kernel == f"{filter_id}_tuned"


def plan_at(
    filter_id: str,
    level: str,
    side: int,
    parameters: Mapping[str, Any],
    channels: int = 1,
    dtype: str = "u1",
    border: Border = Border.REFLECT,
) -> CudaPlan:
    """Return the plan for a square picture."""
    spec = filters.get(filter_id)
    values, shape = spec.validate(parameters), (side, side, channels)
    result = spec.output_shape(shape, values, border)
    task = CudaTask(shape, result, np.dtype(dtype), values, border, level)
    return CudaPlan.of(spec.implementation(Cuda).plan(task))


def seen(made: CudaPlan) -> tuple[Any, ...]:
    """Return the content of a plan of one launch; arrays compare one by one."""
    (launch,) = made.launches
    constants = {name: values.tolist() for name, values in launch.constants.items()}
    size = launch.block, launch.tile, launch.shared_bytes
    return launch.kernel, dict(launch.defines), size, launch.tables, constants


BY_SIZE: list[tuple[str, dict[str, Any], str]] = [
    ("mask", {}, "constant"),
    ("mask", {"mask": ((1,) * 7,) * 7}, "shared"),
    ("weighted_mean", {"size": 3}, "constant"),
    ("weighted_mean", {"size": 5}, "shared"),
    ("weighted_mean", {"size": 15}, "shared"),
    ("laplace", {}, "constant"),
    ("sobel", {"form": "single"}, "global"),
    ("rotating_mask", {}, "shared"),
    ("mean", {"size": 3}, "global"),
    ("mean", {"size": 9}, "shared"),
    ("threshold_mean", {"size": 5}, "shared"),
    ("threshold_mean", {"size": 7}, "shared"),
    ("median", {"size": 11}, "shared"),
]


@together(("filter_id", "parameters", "level"), BY_SIZE)
def test_tuned_takes_a_quicker_level_for_a_small_picture(
    filter_id: str, parameters: dict[str, Any], level: str
) -> None:
    small, large = (plan_at(filter_id, "tuned", side, parameters) for side in (64, 8192))
    assert seen(small) == seen(plan_at(filter_id, level, 64, parameters))
    name = next(each.name for each in filters.get(filter_id).levels("gpu") if each.id == level)
    assert f"the kernel of level {name}," in small.notice
    assert large.launches[0].kernel == f"{filter_id}_tuned"
    assert not large.notice
    with tuned_at_any_size():
        assert plan_at(filter_id, "tuned", 64, parameters).launches[0].kernel.endswith("_tuned")


def planned(filter_id: str, side: int, *case: Any) -> Launch:
    """Return the only launch of level *tuned*; `case` is as that of `plan_at`."""
    channels, dtype, border, parameters = case
    (launch,) = plan_at(filter_id, "tuned", side, parameters, channels, dtype, border).launches
    return launch


@together(
    ("filter_id", "parameters", "border", "level"),
    [
        ("mask", {"mask": ((1,) * 9,) * 9}, Border.VALID, "constant"),
        ("mask", {"mask": ((1,) * 11,) * 11}, Border.VALID, "shared"),
        ("mask", {"mask": ((1,) * 7,) * 7}, Border.REDUCE, "constant"),
        ("mask", {"mask": ((1,) * 9,) * 9}, Border.REDUCE, "shared"),
        ("mask", {"mask": ((1,) * 5,) * 5}, Border.WRAP, "shared"),
        ("threshold_mean", {"size": 7}, Border.VALID, "global"),
        ("threshold_mean", {"size": 7}, Border.REDUCE, "global"),
        ("rotating_mask", {}, Border.VALID, "global"),
        ("rotating_mask", {}, Border.REDUCE, "global"),
        ("median", {"size": 11}, Border.VALID, "global"),
        ("median", {"size": 9}, Border.REDUCE, "global"),
        ("median", {"size": 11}, Border.REDUCE, "global"),
        ("median", {"size": 11}, Border.KEEP, "shared"),
    ],
)
def test_the_quicker_level_depends_on_the_border(
    filter_id: str, parameters: dict[str, Any], border: Border, level: str
) -> None:
    launch = planned(filter_id, 64, 1, "u1", border, parameters)
    assert launch.kernel == f"{filter_id}_{level}"


SPREAD = {"mask": (tuple(range(500, 515)),) * 15}


@together(
    ("filter_id", "parameters", "dtype", "channels", "border", "least"),
    [
        *(
            (filter_id, parameters, "u1", 1, Border.REFLECT, least)
            for filter_id, parameters, least in (
                ("mask", {}, 949),  # 949 * 949 is the first square above 900,000
                ("mask", {"mask": (tuple(range(1, 12)),) * 11}, 949),
                ("mask", {"mask": (tuple(range(1500, 1509)),) * 9}, 1024),  # tensor cores, 2**20
                ("mask", SPREAD, 1024),
                ("mask", {"mask": (tuple(range(9000, 9015)),) * 15}, 1024),  # of 64 bits
                ("weighted_mean", {"size": 3}, 949),
                ("weighted_mean", {"size": 15}, 693),  # 480,000: separable
                ("sobel", {"form": "single"}, 949),
                ("rotating_mask", {}, 448),
                ("mean", {"size": 3}, 1000),  # 9,000,000 cells, nine of them for a sample
                ("mean", {"size": 15}, 200),
                ("threshold_mean", {"size": 3}, 1000),
                ("median", {"size": 11}, 204),  # 40,000,000 comparisons, eight for each cell
            )
        ),
        # 900,000 samples are 548 * 548 pixels in colour, 3,600,000 are 1096 * 1096.
        ("mask", {}, "u1", 3, Border.VALID, 1096 + 2),
        ("mask", {}, "u1", 3, Border.REFLECT, 548),
        ("mask", {}, "u1", 1, Border.VALID, 949 + 2),
        ("mask", {}, "u2", 3, Border.VALID, 548 + 2),
        ("sobel", {"form": "sum"}, "u1", 3, Border.VALID, 1096 + 2),
        ("sobel", {"form": "winner"}, "u2", 3, Border.REFLECT, 548),
        ("sobel", {"form": "winner"}, "f4", 1, Border.REFLECT, 949),
        ("mask", {}, "f4", 3, Border.REFLECT, 548),
        ("mask", {"mask": ((1,) * 5,) * 5}, "f4", 3, Border.REFLECT, 1096),
        ("mask", {"mask": ((1,) * 9,) * 9}, "f4", 3, Border.REFLECT, 1096),
        ("mask", {"mask": ((1,) * 5,) * 5}, "u1", 3, Border.REFLECT, 548),
        ("mask", {"mask": ((1,) * 11,) * 11}, "f4", 3, Border.REFLECT, 548),
        ("mask", {"mask": ((1,) * 9,) * 9}, "f4", 1, Border.REFLECT, 949),
        ("mask", SPREAD, "u2", 1, Border.REFLECT, 3795),
        ("rotating_mask", {}, "u2", 1, Border.REFLECT, 633),
        ("rotating_mask", {}, "f4", 1, Border.REFLECT, 895),
        ("median", {"size": 11}, "f4", 1, Border.REFLECT, 102),  # 40,000,000 comparisons
        ("median", {"size": 9}, "f4", 1, Border.REDUCE, 139),  # 50,000,000
        ("threshold_mean", {"size": 3}, "u1", 1, Border.VALID, 1000 + 2),
        ("mean", {"size": 3}, "u2", 1, Border.REFLECT, 1055),
        ("mean", {"size": 3}, "u1", 3, Border.REFLECT, 609),
        ("weighted_mean", {"size": 3}, "u1", 1, Border.REDUCE, 949),
        ("weighted_mean", {"size": 9}, "u1", 1, Border.REDUCE, 490),  # 240,000
        ("weighted_mean", {"size": 15}, "u2", 1, Border.REDUCE, 380),  # 144,000
        ("mask", {"mask": (tuple(range(1500, 1509)),) * 9}, "u2", 3, Border.VALID, 1096 + 8),
    ],
)
def test_from_which_size_on_the_tuned_kernel_runs(
    filter_id: str,
    parameters: dict[str, Any],
    dtype: str,
    channels: int,
    border: Border,
    least: int,
) -> None:
    """It depends on type, channels and border as well."""
    before, after = (
        plan_at(filter_id, "tuned", side, parameters, channels, dtype, border)
        for side in (least - 1, least)
    )
    assert not before.launches[0].kernel.endswith("_tuned")
    assert before.notice
    assert after.launches[0].kernel == f"{filter_id}_tuned"
    assert not after.notice


@together(
    ("filter_id", "parameters", "dtype", "channels", "border", "level"),
    [
        ("mask", SPREAD, "u2", 3, Border.REFLECT, "shared"),
        ("sobel", {"form": "winner"}, "f4", 3, Border.REFLECT, "global"),
        ("threshold_mean", {"size": 3}, "f4", 1, Border.REFLECT, "global"),
        ("threshold_mean", {"size": 3}, "u1", 3, Border.VALID, "global"),
    ],
)
def test_some_tuned_kernels_pay_at_no_size(
    filter_id: str,
    parameters: dict[str, Any],
    dtype: str,
    channels: int,
    border: Border,
    level: str,
) -> None:
    launch = planned(filter_id, 16384, channels, dtype, border, parameters)
    assert launch.kernel == f"{filter_id}_{level}"


def test_large_masks_of_bytes_do_without_a_tile_in_large_pictures() -> None:
    sides = 547, 548  # 900,000 samples in colour
    kernels = [planned("mask", side, 3, "u1", Border.REFLECT, SPREAD).kernel for side in sides]
    assert kernels == ["mask_shared", "mask_constant"]


@together(
    ("dtype", "border", "level"),
    [
        ("u2", Border.REFLECT, "tuned"),
        ("u2", Border.REDUCE, "global"),
        ("f4", Border.REFLECT, "global"),
        ("f4", Border.REDUCE, "global"),
    ],
)
def test_slow_sums_need_larger_pictures(dtype: str, border: Border, level: str) -> None:
    assert planned("mean", 1500, 1, dtype, border, {}).kernel == f"mean_{level}"


def test_small_medians_have_a_shape_of_their_own() -> None:
    """Of 3x3 grey bytes, all cells of a thread are read at once; of 5x5, blocks have fewer rows."""
    small, large = (plan_at("median", "tuned", side, {"size": 3}) for side in (1020, 1024))
    assert small.launches[0].defines["ROWS_AT_ONCE"] == "2"
    assert small.launches[0].tile == (512, 2)
    assert "ROWS_AT_ONCE" not in large.launches[0].defines
    assert large.launches[0].tile == (512, 2)
    tiles = [
        plan_at("median", "tuned", side, {"size": 3}).launches[0].tile
        for side in (4096, 8192, 8200, 16384)
    ]
    assert tiles == [(1024, 8), (2048, 12), (1024, 12), (2048, 24)]
    sides = 64, 1024, 8192
    tiles = [plan_at("median", "tuned", side, {"size": 5}).launches[0].tile for side in sides]
    assert tiles == [(504, 4), (504, 8), (504, 16)]
    assert not small.notice


def rows_at(filter_id: str, side: int, parameters: Mapping[str, Any]) -> int:
    """Of kernels without tensor cores."""
    without = mock.patch.object(correlation_cuda, "products_pay", return_value=False)
    with tuned_at_any_size(), without:
        (launch,) = plan_at(filter_id, "tuned", side, parameters).launches
    assert launch.tile is not None
    return launch.tile[1]


def test_threads_go_down_more_rows_of_larger_pictures_and_masks() -> None:
    three, fifteen = {"mask": ((1,) * 3,) * 3}, {"mask": ((1,) * 15,) * 15}
    sides = (64, 1024, 2048, 4096, 16384)
    assert [rows_at("mask", side, three) for side in sides] == [2, 2, 6, 24, 64]
    assert [rows_at("mask", side, fifteen) for side in sides] == [2, 7, 30, 60, 64]


@pytest.mark.parametrize("level", [GLOBAL, SHARED, TEXTURE], ids=lambda level: level.id)
def test_other_levels_are_never_exchanged(level: Level) -> None:
    for side in (64, 8192):
        made = plan_at("mean", level.id, side, {})
        assert made.launches[0].kernel == f"mean_{level.id}"
        assert not made.notice


@pytest.mark.parametrize("filter_id", ["mean", "threshold_mean"])
def test_tiles_of_sums_are_higher_in_larger_pictures(filter_id: str) -> None:
    for size in (5, 31):
        rows = [rows_at(filter_id, side, {"size": size}) for side in (64, 1024, 4096, 16384)]
        assert rows == [16, 16, 48, 96]
