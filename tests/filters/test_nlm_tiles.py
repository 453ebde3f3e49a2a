"""Level parallel of non-local means in a window: tiles of any height, and sums that slide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.nlm import SPEC, window_tiles
from kernelscope.filters.nlm.cpu import is_exact
from kernelscope.filters.nlm.pairs import PITCH, WIDEST
from kernelscope.filters.nlm.window_tiles import SHARED, VECTOR, nlm_window, tile_rows
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask
from kernelscope.schema.levels import PARALLEL, SERIAL

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"weights": "uniform", "search_radius": 10, "patch": 3, "filter_sigma": 0.3},
    {"weights": "gaussian", "search_radius": 13, "patch": 5, "filter_sigma": 0.3},
    {"search_radius": 11, "patch": 7, "filter_sigma": 1.0, "sigma": 20.0},
]


def noise(shape: tuple[int, ...], dtype: type = np.uint8) -> NDArray[Any]:
    return np.random.default_rng(sum(shape)).integers(0, np.iinfo(dtype).max, shape, dtype, True)


def run(
    source: NDArray[Any], case: dict[str, Any], level: str = PARALLEL.id, backwards: bool = False
) -> NDArray[Any]:
    """Return the result of a level; `backwards` takes each pass unit by unit, from the last."""
    parameters = dict(SPEC.resolve(source, SPEC.validate(case)))
    output = np.zeros_like(source)
    task = CpuTask(source, output, parameters, Border.REDUCE, level)
    passes: list[CpuPass] = list(SPEC.implementation(Cpu).plan(task))
    for each in passes:
        units = range(each.rows)[::-1] if backwards else ()
        for unit in units:
            each.kernel(*each.arguments, unit, unit + 1)
        if not units:
            each.kernel(*each.arguments, 0, each.rows)
    return output


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("shape", [(71, 61, 1), (3, 530, 1), (40, 17, 3), (1, 1, 1)])
def test_tiles_of_any_height_have_the_same_bytes(
    shape: tuple[int, ...], case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = noise(shape).astype(np.float32) / 255 if case["patch"] == 5 else noise(shape)
    wanted = run(source, case)
    np.testing.assert_array_equal(run(source, case, backwards=True), wanted)
    for rows in (1, 7, 1000):
        monkeypatch.setattr(window_tiles, "tile_rows", lambda *_, rows=rows: rows)
        np.testing.assert_array_equal(run(source, case), wanted)
    difference = np.abs(run(source, case, SERIAL.id).astype(float) - wanted)
    assert difference.max() <= (1e-5 if case["patch"] == 5 else 1)


@pytest.mark.parametrize(("patch", "colours"), [(7, 1), (11, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_bright_places_leave_no_errors_behind(patch: int, colours: int, dtype: type) -> None:
    """Below them are the last bits, and weights that go by them; `serial` has no running sums."""
    source = noise((64, 40, colours), dtype) // (np.iinfo(dtype).max // 2 + 1)
    source[:30] *= np.iinfo(dtype).max
    unit = colours * np.iinfo(dtype).max ** 2
    case = {"weights": "uniform", "patch": patch, "search_radius": 6}
    # A weight of 1 / e for patches of which half of the cells differ by 1.
    case["filter_sigma"] = max(1e-8, colours * patch**2 / 2 / unit)
    difference = np.abs(run(source, case, SERIAL.id).astype(int) - run(source, case))
    assert np.count_nonzero(difference) < 3


def test_sums_slide_only_where_they_are_exact() -> None:
    for patch, weights in ((3, "uniform"), (11, "uniform"), (3, "corrected"), (11, "corrected")):
        for group in (1, 3):
            uniform = SPEC.validate({"weights": weights, "patch": patch})
            assert is_exact(np.dtype(np.uint8), uniform, group)
            assert not is_exact(np.dtype(np.uint16), uniform, group)
            assert not is_exact(np.dtype(np.float32), uniform, group)
            gaussian = SPEC.validate({"patch": patch, "weights": "gaussian"})
            assert not is_exact(np.dtype(np.uint8), gaussian, group)


def test_lines_have_room_for_the_widest_window() -> None:
    reach, patch = 50, 11
    assert reach + WIDEST + reach + VECTOR <= PITCH
    assert WIDEST + reach + 2 * VECTOR + patch <= PITCH
    assert SPEC.parameter("search_radius").validate(reach) == reach
    assert SHARED % window_tiles.TAPS == 0


@pytest.mark.parametrize(
    ("height", "across", "reach", "cores", "rows"),
    [(1024, 2, 10, 2, 128), (512, 1, 10, 2, 64), (64, 1, 10, 2, 32), (64, 1, 50, 2, 50)],
)
def test_tiles_are_high_where_there_are_enough(
    height: int, across: int, reach: int, cores: int, rows: int
) -> None:
    assert tile_rows(height, across, reach, cores) == rows


def test_units_are_short() -> None:
    source = noise((600, 40, 1))
    parameters = dict(SPEC.resolve(source, SPEC.validate({"search_radius": 50})))
    task = CpuTask(source, source.copy(), parameters, Border.REFLECT, PARALLEL.id)
    passes = [each for each in SPEC.implementation(Cpu).plan(task) if each.kernel is nlm_window]
    assert len(passes) == 26
