"""Parts side by side: all of the array, once each; errors come through."""

from __future__ import annotations

import os

import numpy as np
import pytest

from kernelscope.base import parallel
from kernelscope.base.errors import Cancelled


@pytest.mark.parametrize("length", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("least", [1, 2000, 1 << 30])
def test_parts_are_the_whole(length: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "SMALLEST_PART", least)
    monkeypatch.setattr(parallel, "MOST_THREADS", 3)
    array = np.arange(length * 50.0).reshape(length, 50)
    done = np.zeros(length, int)

    def look(part: slice) -> float:
        done[part] += 1
        return float(array[part].sum())

    sums = parallel.in_parts(look, array)
    assert len(sums) == max(1, min(3, length, array.nbytes // least))
    assert sum(sums) == array.sum()
    assert (done == 1).all()


def test_an_error_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "SMALLEST_PART", 1)
    with pytest.raises(ZeroDivisionError):
        parallel.in_parts(lambda part: 1 // part.start, np.zeros((8, 100)))


def test_bands_are_summed_in_order_with_their_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "BAND_SAMPLES", 3 * 4)
    array = np.zeros((11, 4, 1))
    seen = []

    def work(start: int, stop: int) -> np.ndarray:
        seen.append((start, stop))
        return np.array([[start, stop]], dtype=object)

    bands = parallel.sum_of_bands(work, array, overlap=2)
    assert sorted(seen) == [(0, 5), (3, 8), (6, 11)]
    assert bands.tolist() == [[9, 24]]


def test_an_error_of_the_check_ends_the_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "BAND_SAMPLES", 4)

    def check() -> None:
        raise Cancelled

    def work(start: int, stop: int) -> np.ndarray:
        pytest.fail("a band was computed")

    with pytest.raises(Cancelled):
        parallel.sum_of_bands(work, np.zeros((8, 4, 1)), check=check)


def test_only_cores_that_the_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert parallel.core_count() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert parallel.core_count() == 64
