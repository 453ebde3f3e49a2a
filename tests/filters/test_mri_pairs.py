"""Level parallel of MRI NLM: every pair of voxels once, in any order, for any part of a volume."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.mri_nlm import SPEC
from kernelscope.filters.mri_nlm.cpu import blocks_of, nlm_pairs
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask
from kernelscope.schema.levels import PARALLEL, SERIAL

pytestmark = pytest.mark.slow

GIVEN = {"sigma_from": "given"}
CASES: list[dict[str, Any]] = [
    {"search_radius": 5, "noise": "rician"},
    {"search_radius": 2, "patch_radius": 2, "noise": "gaussian"},
    {"search_radius": (3, 2, 1), "patch_radius": (1, 2, 1)},
    {"search_radius": (1, 7, 7)},
    {"search_radius": 6, "dimensions": "2d"},
]


def scan(shape: Sequence[int], components: int) -> NDArray[np.float32]:
    random = np.random.default_rng(sum(shape))
    voxels = random.uniform(0, 255, (*shape, components)).astype(np.float32)
    voxels.flags.writeable = False
    return voxels


def values(source: NDArray[np.float32], case: dict[str, Any]) -> dict[str, Any]:
    sigma = tuple(60.0 + 10 * c for c in range(source.shape[3]))
    chosen = SPEC.validate({**GIVEN, "sigma": sigma, **case})
    return dict(SPEC.resolve(source, chosen))


def run(
    source: NDArray[np.float32],
    parameters: dict[str, Any],
    level: str,
    box: Box | None = None,
    *,
    backwards: bool = False,
) -> NDArray[np.float32]:
    """Return the result of a level; `backwards` takes each pass unit by unit, from the last."""
    output = np.zeros((*(box.sides if box else source.shape[:3]), source.shape[3]), np.float32)
    passes: Sequence[CpuPass] = SPEC.implementation(Cpu).plan(
        CpuTask(source, output, parameters, Border.REFLECT, level, part=box)
    )
    for each in passes:
        units = range(each.rows)[::-1] if backwards else ()
        for unit in units:
            each.kernel(*each.arguments, unit, unit + 1)
        if not units:
            each.kernel(*each.arguments, 0, each.rows)
    return output


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(
    ("shape", "components"), [((11, 13, 21), 1), ((3, 30, 5), 3), ((20, 4, 12), 2), ((1, 1, 1), 1)]
)
def test_pairs_agree_with_serial(
    shape: tuple[int, int, int], components: int, case: dict[str, Any]
) -> None:
    source = scan(shape, components)
    parameters = values(source, case)
    wanted = run(source, parameters, SERIAL.id)
    actual = run(source, parameters, PARALLEL.id)
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=0.002)
    np.testing.assert_array_equal(run(source, parameters, PARALLEL.id, backwards=True), actual)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parts_have_the_bytes_of_the_whole(case: dict[str, Any]) -> None:
    """Of any size, smaller than the search window as well, and across the edges of blocks."""
    source = scan((19, 24, 9), 1)
    parameters = values(source, case)
    whole = run(source, parameters, PARALLEL.id)
    boxes = [Box.slice_of(source.shape, axis, place) for axis in range(3) for place in (0, 8)]
    boxes += [
        Box((7, 9, 2), (2, 2, 3)),
        Box((0, 4, 0), (19, 7, 9)),
        Box((5, 0, 1), (3, 24, 8)),
        Box((18, 23, 8), (1, 1, 1)),
        Box((6, 1, 0), (12, 22, 9)),
    ]
    for box in boxes:
        part = run(source, parameters, PARALLEL.id, box)
        np.testing.assert_array_equal(part, box.of(whole), str(box))


@pytest.mark.parametrize("search", [(5, 5), (0, 3), (7, 7)])
@pytest.mark.parametrize("first", [(0, 0), (3, 17)])
def test_blocks_of_a_pass_share_no_sums(first: tuple[int, int], search: tuple[int, int]) -> None:
    """They reach into later slices only, and into rows on both sides."""
    size, sides = (max(8, search[0]), max(10, 2 * search[1])), (40, 50)
    starts: list[tuple[int, int]] = []
    for blocks in blocks_of(first, sides, search, size):
        touched = np.zeros((120, 160), int)
        for z, y in blocks:
            starts.append((int(z), int(y)))
            reach = slice(y - search[1] + 40, y + size[1] + search[1] + 40)
            touched[z + 40 : z + size[0] + search[0] + 40, reach] += 1
        assert touched.max() == 1
    sides_of_block = range(size[0]), range(size[1])
    covered = {(z + k, y + b) for z, y in starts for k, b in itertools.product(*sides_of_block)}
    slices, rows = range(-search[0], sides[0]), range(-search[1], sides[1] + search[1])
    assert covered >= set(itertools.product(slices, rows))
    assert all((z + first[0]) % size[0] == (y + first[1]) % size[1] == 0 for z, y in starts)


def test_passes_are_few_and_their_units_short() -> None:
    source = scan((40, 64, 64), 1)
    task = CpuTask(
        source, source.copy(), values(source, {"search_radius": 5}), Border.REFLECT, PARALLEL.id
    )
    passes = [each for each in SPEC.implementation(Cpu).plan(task) if each.kernel is nlm_pairs]
    assert len(passes) == 4
    assert all(each.rows > 4 for each in passes)
