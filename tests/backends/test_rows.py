"""The kernels that go down rows of grey bytes: every sum, words of each number, and strips."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cuda.strips import strip
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.backends.specialisations import tuned_at_any_size
from tests.contract.test_pictures import expected
from tests.pairs import in_turn

pytestmark = [needs_compiler, pytest.mark.slow]

SIZE = {"size": 3}


def picture(height: int, width: int) -> NDArray[np.uint8]:
    """Return noise of which two fifths are black and white."""
    random = np.random.default_rng(width)
    values = random.integers(0, 256, (height, width, 1))
    values[random.random(values.shape) < 0.2] = 0
    values[random.random(values.shape) < 0.2] = 255
    return values.astype(np.uint8)


def planned(filter_id: str, shape: tuple[int, int, int]) -> Launch:
    spec = filters.get(filter_id)
    dtype = np.dtype(np.uint8)
    task = CudaTask(shape, shape, dtype, spec.validate(SIZE), Border.REFLECT, "tuned")
    with tuned_at_any_size():
        (launch,) = CudaPlan.of(spec.implementation(Cuda).plan(task)).launches
    return launch


WIDTHS = {("mean", 1104): "2", ("mean", 1096): "2"}
WIDTHS |= {("median", 1104): "4", ("median", 1096): "2", ("median", 1100): "1"}
"""Filters and widths, and how many words of four a thread has."""

BORDERS = [border for border in filters.get("median").borders if border is not Border.KEEP]


def test_how_many_words_a_thread_has() -> None:
    for (filter_id, width), words in WIDTHS.items():
        launch = planned(filter_id, (61, width, 1))
        assert launch.defines["GREY_BYTES"] == "1"
        assert launch.defines.get("WIDE", "1") == words
    for width in (1100, 1101):
        assert "GREY_BYTES" not in planned("mean", (61, width, 1)).defines
    assert "GREY_BYTES" not in planned("median", (61, 1101, 1)).defines


@pytest.mark.parametrize(("kind", "border"), in_turn([*WIDTHS], BORDERS, every=2))
def test_pictures_of_each_width(kind: tuple[str, int], border: Border) -> None:
    """Two blocks or three side by side, and as many below each other; fewer rows than the mask."""
    filter_id, width = kind
    shapes = [(61, width), (4, width), (3, width)]
    if border is not Border.VALID:
        shapes += [(2, width), (1, width), (7, width // 4 % 4 * 4 or 16), (2, 48)]
    for height, columns in shapes:
        pixels = picture(height, columns)
        np.testing.assert_array_equal(
            emulated.run(filter_id, pixels, SIZE, "tuned", border),
            expected(filter_id, pixels, SIZE, border),
            f"{height} x {columns}",
        )


@pytest.mark.parametrize(("kind", "border"), in_turn([*WIDTHS], BORDERS, every=2))
def test_strips_of_which_only_the_needed_rows_are_there(
    kind: tuple[str, int], border: Border
) -> None:
    """Rows behind the last one of a strip come first under `wrap`; others are never read."""
    filter_id, width = kind
    pixels = picture(41, width)
    whole = expected(filter_id, pixels, SIZE, border)
    bounds = 0, 1, 20, 38, len(whole)
    for rows in itertools.pairwise(bounds):
        part = strip(len(pixels), rows, 1, border)
        actual = emulated.run(filter_id, pixels, SIZE, "tuned", border, part=part)
        np.testing.assert_array_equal(actual, whole[slice(*rows)], str(rows))


def windows_of_every_sum() -> NDArray[np.uint8]:
    """Return 3 x 3 windows of each sum, side by side: even ones, and ones of black and white."""
    sums = np.arange(9 * 255 + 1)
    even = (sums[:, None] + np.arange(9)) // 9
    steep = np.clip(sums[:, None] - 255 * np.arange(9), 0, 255)
    cells = np.concatenate([even, steep, steep[:, ::-1]])
    columns = 48
    cells = np.pad(cells, ((0, -len(cells) % columns), (0, 0))).reshape(-1, columns, 3, 3)
    board = cells.swapaxes(1, 2).reshape(-1, 3 * columns, 1)
    return np.pad(board, ((0, 0), (8, 8), (0, 0))).astype(np.uint8)  # away from the border


def test_the_mean_of_every_sum() -> None:
    """A ninth as a 16-bit float is too small; its products stay on the right side of each tie."""
    pixels = windows_of_every_sum()
    centres = emulated.run("mean", pixels, SIZE, "tuned")[1::3, 9:-8:3].ravel()
    sums = np.arange(9 * 255 + 1)
    for start in range(0, 3 * len(sums), len(sums)):
        np.testing.assert_array_equal(centres[start : start + len(sums)], np.rint(sums / 9))


@pytest.mark.parametrize("width", [2048, 2056, 2060])
def test_the_median_of_every_window_of_two_values(width: int) -> None:
    """What orders zeros and ones orders all values; the windows lie at each place of a word."""
    cells = np.arange(512)[:, None] >> np.arange(9) & 1
    board = np.zeros((7, width), np.uint8)
    for n, window in enumerate(255 * cells.reshape(-1, 3, 3)):
        board[2:5, 4 * n : 4 * n + 3] = window
    for shift in range(4):
        pixels = np.roll(board, shift, axis=1)[:, :, None]
        np.testing.assert_array_equal(
            emulated.run("median", pixels, SIZE, "tuned"),
            expected("median", pixels, SIZE, Border.REFLECT),
        )
