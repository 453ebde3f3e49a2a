"""Parts side by side: all of the array, once each; errors come through."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope import parallel as parts


@pytest.mark.parametrize("length", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("least", [1, 2000, 1 << 30])
def test_parts_are_the_whole(length: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SMALLEST_PART", least)
    monkeypatch.setattr(parts, "MOST_THREADS", 3)
    array = np.arange(length * 50.0).reshape(length, 50)
    done = np.zeros(length, int)

    def look(part: slice) -> float:
        done[part] += 1
        return float(array[part].sum())

    sums = parts.in_parts(look, array)
    assert len(sums) == max(1, min(3, length, array.nbytes // least))
    assert sum(sums) == array.sum()
    assert (done == 1).all()


def test_an_error_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SMALLEST_PART", 1)
    with pytest.raises(ZeroDivisionError):
        parts.in_parts(lambda part: 1 // part.start, np.zeros((8, 100)))
