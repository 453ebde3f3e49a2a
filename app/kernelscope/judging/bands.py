"""Sums over a picture, band by band, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

BAND_SAMPLES = 1 << 19
"""Samples of a band: what a thread does before it looks at whether to go on."""


def total(
    work: Callable[[int, int], NDArray[Any]],
    array: NDArray[Any],
    overlap: int = 0,
    check: Callable[[], None] = lambda: None,
) -> NDArray[Any]:
    """Return the sum of ``work(start, stop)`` over bands of rows of `array`.

    Each band reaches `overlap` rows into the next. The threads take them as they can, but they
    are added up in order, so that floats give the same bits again. `check` is called before
    each, on any thread, and ends everything with what it raises.
    """

    def checked(band: tuple[int, int]) -> NDArray[Any]:
        check()
        return work(*band)

    with ThreadPoolExecutor() as pool:
        result: NDArray[Any] = sum(pool.map(checked, _cut(array, overlap)))  # type: ignore[assignment]
    return result


def _cut(array: NDArray[Any], overlap: int) -> Iterator[tuple[int, int]]:
    height = array.shape[0] - overlap
    rows = max(1, BAND_SAMPLES // (array.shape[1] * array.shape[2]))
    for start in range(0, height, rows):
        yield start, min(start + rows, height) + overlap
