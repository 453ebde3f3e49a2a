"""Rows that fit into device memory, and rows of a slab: arithmetic on plans, without a card."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda import rim, slabs
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch
from tests.backends.weighted_rows import WeightedRows


def step_of(
    shape: tuple[int, ...],
    *,
    radius: int = 0,
    whole: bool = False,
    scratch: dict[str, Scratch] | None = None,
    texture: bool = False,
) -> Any:
    """Return a filter of bytes, with the buffers that its plan says."""
    task = CudaTask(shape, shape, np.dtype(np.uint8), {}, Border.REFLECT, "x")
    launch = Launch("k", {}, (32, 8), 1.0, 1.0, texture=texture)
    return SimpleNamespace(
        task=task, radius=radius, whole=whole, plan=CudaPlan((launch,), scratch or {})
    )


def test_the_worked_example_of_the_module() -> None:
    step = step_of((100, 1000, 1), radius=1)
    assert slabs.needs([step]) == (1000, 1000, 0, 0)
    assert slabs.rows_that_fit([step], 100_000) == 24
    assert slabs.rows_that_fit([step], 99_999) == 23
    assert slabs.rows_that_fit([step], 0) == 0


def test_needs_are_those_of_all_buffers() -> None:
    """Scratch grows with the rows of a slab, its halo does not; one for all rows is a constant."""
    scratch = {"part": Scratch(7, 30), "all": Scratch(11, 2, whole=True)}
    step = step_of((100, 1000, 1), scratch=scratch)
    assert slabs.needs([step]) == (1000, 1000, 7, 30 + 100 * 11 + 2)
    assert slabs.needs([step_of((100, 1000, 1), texture=True)]) == (1000, 1000, 1000, 0)
    first, last = step_of((100, 10, 3)), step_of((100, 10, 1))
    assert slabs.needs([first, last]) == (30, 10, 30, 0)


@pytest.mark.parametrize("more", [-1, 0])
def test_one_piece_fits_to_the_byte(more: int) -> None:
    step = step_of((100, 1000, 1), scratch={"part": Scratch(7, 30)})
    assert slabs.fits([step], 100 * 2007 + 30 + more) == (more == 0)


def test_a_filter_of_the_whole_image_has_its_source_once() -> None:
    step = step_of((100, 1000, 1), whole=True)
    assert slabs.rows_that_fit([step], 100 * 1000 + 2 * 5 * 1000) == 5
    assert slabs.rows_that_fit([step], 100 * 1000 + 2 * 5 * 1000 - 1) == 4


@pytest.mark.parametrize(("channels", "fits"), [(3, True), (4, False)])
def test_a_piece_has_fewer_samples_than_32_bits_count(channels: int, fits: bool) -> None:
    """Source and result are bytes; 2**29 pixels of four samples are one too many."""
    task = CudaTask(
        (2**14, 2**15, channels), (2**14, 2**15, channels), np.dtype(np.uint8), {}, Border.WRAP, "x"
    )
    step: Any = SimpleNamespace(task=task, plan=CudaPlan(()))
    assert slabs.fits([step], 1 << 50) == fits


def test_every_card_gets_as_many_slabs_of_whole_tiles() -> None:
    steps = [WeightedRows((509, 3, 2, 1)).step]
    assert steps[0].plan.launches[0].tile == (8, 4, 2)
    assert slabs.slab_rows(steps, 1000, 1) == 510
    assert slabs.slab_rows(steps, 100, 1) == 86  # in 6
    assert slabs.slab_rows(steps, 100, 2) == 86  # in 3 each
    assert slabs.slab_rows(steps, 100, 4) == 64  # in 2 each
    assert slabs.slab_rows(steps, 3, 2) == 3  # no more, however the tiles are


def test_tiles_of_the_kept_rim_need_not_be_whole() -> None:
    """Their 32 rows and 30 of a filter's tile would otherwise make slabs of 480."""
    step = WeightedRows((509, 3, 2, 1)).step
    own, *_ = step.plan.launches
    launches = replace(own, tile=(8, 4, 30)), replace(own, tile=(8, 32), kernel=rim.KERNEL)
    step = replace(step, plan=replace(step.plan, launches=launches))
    assert slabs.slab_rows([step], 500, 4) == 150


def test_slabs_of_large_rows_are_four_times_their_halo() -> None:
    steps = [WeightedRows((512, 1024, 1024, 1), radius=20).step]
    assert slabs.slab_rows(steps, 512, 1) == 128  # 160 wanted: in 4
    assert slabs.slab_rows(steps, 30, 1) == 30  # one more would not fit


def test_slabs_begin_where_tiles_of_the_whole_do() -> None:
    """If their results would differ in the last digit."""
    step = WeightedRows((509, 3, 2, 1)).step
    launches = tuple(replace(launch, aligned=True) for launch in step.plan.launches)
    steps = [replace(step, plan=replace(step.plan, launches=launches))]
    assert slabs.slab_rows(steps, 100, 4) == 64
    assert slabs.slab_rows(steps, 3, 2) == 2
    assert slabs.slab_rows(steps, 1, 2) == 0
    assert slabs.slab_rows([step], 1, 2) == 1
