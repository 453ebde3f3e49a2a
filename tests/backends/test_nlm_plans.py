"""Non-local means of pictures: common parts of the levels' launches, and additions of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope.filters.nlm import SPEC
from kernelscope.filters.nlm.cuda import PART
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from tests.pairs import together

PLAIN = ("global", "constant", "texture", "host-partitions", "shared")


def plan(
    level: str,
    shape: tuple[int, int, int] = (70, 90, 1),
    border: Border = Border.REFLECT,
    block: tuple[int, int] | None = None,
    **parameters: Any,
) -> CudaPlan:
    values = SPEC.validate(parameters)
    out_shape = SPEC.output_shape(shape, values, border)
    task = CudaTask(shape, out_shape, np.dtype(np.float32), values, border, level, block)
    return CudaPlan.of(SPEC.implementation(Cuda).plan(task))


@pytest.mark.parametrize("search", ["window", "image"])
def test_levels_differ_in_memory_alone(search: str) -> None:
    """The same passes, blocks, steps and specialisation; host partitions a launch a step."""
    plans = {level: plan(level, search=search) for level in PLAIN}
    names = {level: [launch.kernel for launch in made.launches] for level, made in plans.items()}
    assert names == {
        level: [
            "nlm_pad",
            *(f"nlm_{level.replace('-', '_')}_{part}" for part in ("weights", "mean")),
        ]
        for level in PLAIN
    }
    first = plans["global"].launches
    for level, made in plans.items():
        for mine, other in zip(made.launches, first, strict=True):
            assert (mine.block, mine.tile, mine.steps) == (other.block, other.tile, other.steps)
            assert mine.defines == other.defines
            assert mine.operations_per_sample == other.operations_per_sample
            assert (mine.steps_at_once == 1) == (level == "host-partitions" and mine.steps > 0)
            in_shared = level in ("shared", "host-partitions") and mine.steps > 0
            assert (mine.shared_bytes > 0) == in_shared
            assert bool(mine.tables) == (level == "global" and mine.steps > 0)
            assert mine.texture == (level == "texture" and mine.steps > 0)
            assert ("padded" in mine.scratch) != mine.texture


def test_only_padding_depends_on_the_border() -> None:
    made = [plan("shared", border=border) for border in SPEC.borders]
    assert len({launch.launches[0].defines["BORDER"] for launch in made}) == len(SPEC.borders) - 1
    (defines,) = {tuple(launch.launches[1].defines.items()) for launch in made}
    assert dict(defines)["BORDER"] == str(Border.REFLECT.code)
    # `reduce` has patches that are reflected, and fewer candidates.
    inside = {
        border: one.launches[1].constants["search"][2]
        for border, one in zip(SPEC.borders, made, strict=True)
    }
    assert [border for border, flag in inside.items() if flag] == [Border.REDUCE]


@together("block", [(8, 8), (16, 16), (32, 32)])
@together("level", PLAIN)
def test_a_block_that_is_asked_for(level: str, block: tuple[int, int]) -> None:
    radius, patch = 4, 5
    for launch in plan(level, block=block, search_radius=radius, patch=patch).launches:
        assert launch.block == launch.tile == block
        if launch.shared_bytes:
            assert launch.defines["THREADS"] == str(block[0] * block[1])
            rows, columns = block[1] + patch - 1, block[0] + 2 * radius + patch - 1
            assert launch.shared_bytes == 4 * rows * columns
    tuned, usual = plan("tuned", block=block), plan("tuned")
    assert [one.block for one in tuned.launches] == [one.block for one in usual.launches]


@together("colours", [1, 3])
@together("search", ["window", "image"])
def test_the_host_hands_over_every_candidate_with_its_patch(search: str, colours: int) -> None:
    shape, patch, radius = (70, 90, colours), 5, 3
    made = plan("host-partitions", shape, search=search, patch=patch, search_radius=radius)
    handed = made.launches[1].hand_over
    assert handed is not None
    assert made.launches[2].hand_over == handed
    margin = patch // 2 + (radius if search == "window" else 0)
    rows, columns = shape[0] + 2 * margin, shape[1] + 2 * margin
    assert handed.pitch == colours * columns
    assert handed.lines == colours
    assert made.scratch["padded"].size(shape[0], shape[0]) == 4 * rows * handed.pitch
    cells = np.arange(rows * columns).reshape(rows, 1, columns)
    parts = [cells[part[0], :, part[1]] for part in handed.parts]
    assert len(parts) == made.launches[1].steps
    most = made.scratch["handed"].size(shape[0], shape[0])
    assert max(part.size for part in parts) * 4 * colours <= most
    # The first cells of the patches of all candidates: of all pixels, or of one for each offset.
    inside = [part[: 1 - patch, 0, : 1 - patch] for part in parts]
    if search == "image":
        assert np.array_equal(
            np.sort(np.concatenate([part.ravel() for part in inside])),
            cells[: 1 - patch, 0, : 1 - patch].ravel(),
        )
        assert {part.shape for part in inside} <= {(h, w) for h in (PART, 6) for w in (PART, 26)}
    else:
        for step, part in enumerate(inside):
            assert np.array_equal(part, cells[step : step + shape[0], 0, : 1 - patch])


def test_a_strip_of_a_window_search_hands_over_its_own_rows() -> None:
    made = plan("host-partitions", search_radius=3, patch=5)
    handed = made.launches[1].hand_over
    assert handed is not None
    rows = 11
    padded = made.scratch["padded"].size(rows, 70) // (4 * handed.pitch)
    assert padded == rows + 2 * (3 + 2)
    for part, _ in handed.parts:
        assert len(range(padded)[part]) == rows + 5 - 1


@pytest.mark.parametrize("search", ["window", "image"])
def test_tuned_shares_small_pictures_among_more_blocks(search: str) -> None:
    small, large = (
        plan("tuned", (side, side, 1), search=search, weights="gaussian") for side in (64, 4096)
    )
    first, mean = small.launches
    assert first.layers > 1
    assert first.grid((64, 64, 1)) == (*replace(first, layers=1).grid((64, 64, 1)), first.layers)
    assert (first.kernel, mean.kernel) == ("nlm_tuned", "nlm_tuned_mean")
    assert mean.layers == 1
    assert large.launches[0].layers == 1
    # Rows of candidates that a strip shares out have to begin where a tile of the whole does.
    assert first.aligned == (search == "image")
    if search == "image":
        rows = 64 + first.tile[-1] - 1 if first.tile else 0
        assert (first.steps - 1) * first.layers < rows <= first.steps * first.layers
    else:
        assert first.layers <= 21
        assert len(large.launches) == 1
