"""Plans of the launches that look alike for every filter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from app import filters
from app.filters.cuda_box import SMALL
from app.filters.launch import SMALL_WORK, CudaPlan, CudaTask, Launch
from app.filters.spec import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Border, FilterSpec, Level
from tests.backends.specialisations import tuned_at_any_size

SHAPE = (100, 90, 3)


def plan(spec: FilterSpec, level: Level, block: tuple[int, int] | None) -> Launch:
    task = CudaTask(
        SHAPE, SHAPE, np.dtype(np.uint16), spec.defaults(), Border.REFLECT, level.id, block
    )
    assert spec.plan_cuda is not None
    (launch,) = CudaPlan.of(spec.plan_cuda(task)).launches
    return launch


@pytest.mark.parametrize("level", [GLOBAL, SHARED, TEXTURE, SINGLE_BLOCK], ids=lambda x: x.id)
@pytest.mark.parametrize("block", [(8, 8), (32, 32), (256, 1), (16, 4)])
def test_a_block_that_is_asked_for(level: Level, block: tuple[int, int]) -> None:
    launch = plan(filters.get("mean"), level, block)
    assert launch.block == block
    assert launch.tile == (None if level is SINGLE_BLOCK else block)
    cells = (block[0] + 2) * (block[1] + 2) if level is SHARED else 0
    assert launch.shared_bytes == cells * SHAPE[2] * 2
    assert plan(filters.get("mean"), level, None).block != block or block == (32, 32)


@pytest.mark.parametrize("filter_id", ["mean", "median", "sobel", "greyscale", "mask"])
def test_tuned_keeps_blocks_of_its_own(filter_id: str) -> None:
    spec = filters.get(filter_id)
    asked, usual = plan(spec, TUNED, (8, 8)), plan(spec, TUNED, None)
    assert (asked.block, asked.tile) == (usual.block, usual.tile)
    with tuned_at_any_size():
        asked, own = plan(spec, TUNED, (8, 8)), plan(spec, TUNED, None)
    assert (asked.block, asked.tile) == (own.block, own.tile)
    assert own.kernel == f"{filter_id}_tuned"


def plan_at(filter_id: str, level: str, side: int, parameters: Mapping[str, Any]) -> CudaPlan:
    """Return the plan for a square grey picture of bytes."""
    spec = filters.get(filter_id)
    values = spec.validate(parameters)
    task = CudaTask(
        (side, side, 1), (side, side, 1), np.dtype(np.uint8), values, Border.REFLECT, level
    )
    assert spec.plan_cuda is not None
    return CudaPlan.of(spec.plan_cuda(task))


def seen(made: CudaPlan) -> tuple[Any, ...]:
    """Return what a plan of one launch amounts to; arrays compare one by one."""
    (launch,) = made.launches
    constants = {name: values.tolist() for name, values in launch.constants.items()}
    size = launch.block, launch.tile, launch.shared_bytes
    return launch.kernel, dict(launch.defines), size, launch.tables, constants


BY_SIZE: list[tuple[str, dict[str, Any], str]] = [
    ("mask", {}, "constant"),
    ("mask", {"mask": ((1,) * 7,) * 7}, "shared"),
    ("weighted_mean", {"size": 5}, "constant"),
    ("weighted_mean", {"size": 15}, "shared"),
    ("laplace", {}, "constant"),
    ("sobel", {"form": "single"}, "global"),
    ("rotating_mask", {}, "shared"),
    ("mean", {"size": 3}, "global"),
    ("mean", {"size": 9}, "shared"),
    ("threshold_mean", {"size": 5}, "global"),
    ("threshold_mean", {"size": 7}, "shared"),
    ("median", {"size": 3}, "shared"),
    ("median", {"size": 11}, "shared"),
]


@pytest.mark.parametrize(("filter_id", "parameters", "level"), BY_SIZE)
def test_tuned_takes_a_quicker_level_for_a_small_picture(
    filter_id: str, parameters: dict[str, Any], level: str
) -> None:
    small, large = (plan_at(filter_id, "tuned", side, parameters) for side in (64, 8192))
    assert seen(small) == seen(plan_at(filter_id, level, 64, parameters))
    name = next(each.name for each in filters.get(filter_id).gpu_levels if each.id == level)
    assert f"the kernel of level {name}," in small.notice
    assert large.launches[0].kernel == f"{filter_id}_tuned"
    assert not large.notice
    with tuned_at_any_size():
        assert plan_at(filter_id, "tuned", 64, parameters).launches[0].kernel.endswith("_tuned")


@pytest.mark.parametrize(("filter_id", "parameters", "level"), BY_SIZE)
def test_the_work_of_the_quicker_level_decides(
    filter_id: str, parameters: dict[str, Any], level: str
) -> None:
    """From `SMALL_WORK`, or the part of it that is the filter's, on: not before."""
    (other,) = plan_at(filter_id, level, 64, parameters).launches
    share = SMALL if filter_id in ("mean", "threshold_mean") else 1.0
    least = math.ceil(math.sqrt(share * SMALL_WORK / other.operations_per_sample))
    for side, is_small in ((least - 1, True), (least, False)):
        made = plan_at(filter_id, "tuned", side, parameters)
        assert bool(made.notice) == is_small
        assert made.launches[0].kernel.endswith("_tuned") != is_small


@pytest.mark.parametrize("level", [GLOBAL, SHARED, TEXTURE], ids=lambda level: level.id)
def test_other_levels_are_never_exchanged(level: Level) -> None:
    for side in (64, 8192):
        made = plan_at("mean", level.id, side, {})
        assert made.launches[0].kernel == f"mean_{level.id}"
        assert not made.notice
