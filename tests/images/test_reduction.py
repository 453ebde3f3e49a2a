"""Pictures reduced by averaging, against means taken by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.images import reduction
from kernelscope.images.reduction import reduced
from tests.pairs import together

RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the compiled code: small pictures would be reduced by NumPy until it is there."""
    types = {np.dtype(each) for each in ("uint8", "uint16", "float32")}
    monkeypatch.setattr(reduction, "_compiled", types)


def picture(dtype: str, shape: tuple[int, int, int]) -> np.ndarray:
    if dtype == "float32":
        return (RANDOM.random(shape, np.float32) * 300 - 100).astype(np.float32)
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def expected(planes: np.ndarray, factor: int) -> np.ndarray:
    """Return the means of all blocks, in double precision."""
    height, width = planes.shape[:2]
    rows = [planes[y : y + factor].astype(np.float64) for y in range(0, height, factor)]
    blocks = [
        [row[:, x : x + factor].mean((0, 1)) for x in range(0, width, factor)] for row in rows
    ]
    means = np.array(blocks)
    return means if planes.dtype == np.float32 else np.floor(means + 0.5)


@together("channels", [1, 3])
@together("dtype", ["uint8", "uint16", "float32"])
@together("factor", [2, 4, 8])
def test_blocks_are_averaged_also_at_the_edges(dtype: str, channels: int, factor: int) -> None:
    planes = picture(dtype, (43, 37, channels))
    result = reduced(planes, factor)
    assert result.dtype == planes.dtype
    if dtype == "float32":
        np.testing.assert_allclose(result, expected(planes, factor), rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(result, expected(planes, factor))


def test_white_stays_white_in_the_largest_blocks() -> None:
    for dtype in ("uint8", "uint16"):
        white = np.full((300, 520, 1), np.iinfo(dtype).max, dtype)
        np.testing.assert_array_equal(reduced(white, 256), white[:2, :3])


def test_picture_lower_than_a_block() -> None:
    planes = picture("uint8", (3, 70, 1))
    np.testing.assert_array_equal(reduced(planes, 16), expected(planes, 16))


def test_parts_of_several_threads_join() -> None:
    planes = picture("uint8", (4099, 2050, 1))
    np.testing.assert_array_equal(reduced(planes, 4)[:, :9], expected(planes[:, :36], 4))


@pytest.mark.parametrize("channels", [2, 4])
def test_colours_are_weighted_by_alpha(channels: int) -> None:
    planes = picture("uint8", (6, 9, channels))
    planes[:2, :2, -1] = 0  # a block that is not seen at all
    planes[2:4, :2, -1] = [[0, 0], [0, 255]]  # one pixel of it is
    result = reduced(planes, 2)
    assert result[0, 0].tolist() == [0] * channels
    assert result[1, 0, :-1].tolist() == planes[3, 1, :-1].tolist()
    assert result[1, 0, -1] == 64
    block = planes[4:6, 4:6].reshape(-1, channels).astype(float)
    alpha = block[:, -1:]
    mean = (block[:, :-1] * alpha).sum(0) / alpha.sum()
    np.testing.assert_array_equal(result[2, 2, :-1], np.floor(mean + 0.5))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize(
    ("factor", "shape"), [(2, (43, 37)), (4, (43, 37)), (16, (3, 70)), (2, (1405, 901))]
)
def test_numpy_gives_the_same_before_the_code_is_there(
    monkeypatch: pytest.MonkeyPatch, dtype: str, channels: int, factor: int, shape: tuple[int, int]
) -> None:
    planes = picture(dtype, (*shape, channels))
    monkeypatch.setattr(reduction, "_compiled", set())
    monkeypatch.setattr(reduction, "average_blocks", None)  # not even called
    early = reduced(planes, factor)
    monkeypatch.undo()
    reduction._compiled.add(planes.dtype)
    later = reduced(planes, factor)
    assert early.dtype == later.dtype
    if dtype == "float32":
        np.testing.assert_allclose(early, later, rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_array_equal(early, later)
