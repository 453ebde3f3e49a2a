"""The rotating mask against nine windows tried one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.rotating_mask import SPEC
from kernelscope.images.image import DTYPES
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
from kernelscope.schema.levels import Level
from tests.oracle import to_dtype, windows

CASES: list[dict[str, Any]] = [{}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    cells, counted = windows(source, 2, border)
    best: tuple[NDArray[Any], NDArray[Any]] | None = None
    for y, x in np.ndindex(3, 3):
        n = total = square = np.zeros((), np.int64)
        for s, t in np.ndindex(3, 3):  # in the order that float sums have to keep
            cell = cells[..., y + s, x + t]
            n = n + counted[..., y + s, x + t].astype(np.int64)
            total = total + cell
            square = square + cell * cell
        # n divides 36, so these are the variance and the mean over a common denominator.
        variance = (n * square - total * total) * (36 // n) ** 2
        mean = total * (36 // n)
        if best is None:
            best = variance, mean
            continue
        better = (variance < best[0]) | ((variance == best[0]) & (mean < best[1]))
        best = np.where(better, variance, best[0]), np.where(better, mean, best[1])
    assert best is not None
    return np.asarray(best[1] / 36)


def apply(pixels: NDArray[Any], level: str) -> NDArray[Any]:
    source = pixels[:, :, None]
    source.flags.writeable = False
    output = np.empty_like(source)
    for sweep in SPEC.implementation(Cpu).plan(CpuTask(source, output, {}, Border.REFLECT, level)):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return output[:, :, 0]


@pytest.mark.parametrize("level", SPEC.levels("cpu"), ids=lambda level: level.id)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
class TestRotatingMask:
    @pytest.mark.slow
    def test_keeps_a_step(self, dtype: np.dtype[Any], level: Level) -> None:
        step = np.zeros((9, 12), dtype)
        step[:, 5:] = 1
        np.testing.assert_array_equal(apply(step, level.id), step)

    def test_takes_the_darker_of_two_even_windows(self, dtype: np.dtype[Any], level: Level) -> None:
        steps = np.full((9, 6), 9, dtype)
        steps[:, :2] = 5
        steps[:, 3:] = 13
        # Windows around column 2: 5 5 9, 5 9 13, 9 13 13: the first and the last are equally even.
        assert apply(steps, level.id)[4, 2] == to_dtype(np.array(19 / 3), dtype)

    def test_holds_the_largest_variance(self, dtype: np.dtype[Any], level: Level) -> None:
        white = 1 if dtype.kind == "f" else np.iinfo(dtype).max
        board = (np.indices((16, 40)).sum(0) % 2 * white).astype(dtype)
        # Four or five white cells of nine: the same variance, so the smaller mean.
        expected = to_dtype(np.full((12, 36), 4 * white / 9), dtype)
        np.testing.assert_array_equal(apply(board, level.id)[2:-2, 2:-2], expected)
