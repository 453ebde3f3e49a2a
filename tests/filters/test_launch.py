"""Plans of the launches that look alike for every filter."""

from __future__ import annotations

import numpy as np
import pytest

from app import filters
from app.filters.launch import CudaTask, Launch
from app.filters.spec import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Border, FilterSpec, Level

SHAPE = (100, 90, 3)


def plan(spec: FilterSpec, level: Level, block: tuple[int, int] | None) -> Launch:
    task = CudaTask(
        SHAPE, SHAPE, np.dtype(np.uint16), spec.defaults(), Border.REFLECT, level.id, block
    )
    assert spec.plan_cuda is not None
    launch = spec.plan_cuda(task)
    assert isinstance(launch, Launch)
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
