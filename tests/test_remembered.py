"""Facts about arrays are found once, and only while that is safe."""

from __future__ import annotations

import gc

import numpy as np

from kernelscope.base import remembered as module
from kernelscope.base.remembered import let_find, remembered


def test_a_fact_about_an_array_that_never_changes_is_found_once() -> None:
    array, other = np.arange(5), np.arange(5)
    array.flags.writeable = other.flags.writeable = False
    found: list[str] = []

    def find(name: str) -> int:
        found.append(name)
        return len(found)

    assert [remembered(array, "a", lambda: find("a")) for _ in range(2)] == [1, 1]
    assert remembered(array, "b", lambda: find("b")) == 2
    assert remembered(other, "a", lambda: find("a of other")) == 3
    assert found == ["a", "b", "a of other"]


def test_an_array_that_may_change_is_looked_at_again() -> None:
    array = np.arange(5)
    for number in (1, 7):
        array[0] = number
        assert remembered(array, "first", lambda: int(array[0])) == number


def test_nothing_is_kept_of_arrays_that_are_gone() -> None:
    array = np.arange(5)
    array.flags.writeable = False
    remembered(array, "a", lambda: 1)
    let_find(array, "b", lambda: 1)
    key = id(array)
    assert key in module._facts
    assert key in module._ways
    del array
    gc.collect()
    assert key not in module._facts
    assert key not in module._ways


def test_a_fact_that_somebody_has_a_quicker_way_to() -> None:
    array = np.arange(5)
    array.flags.writeable = False
    let_find(array, "last", lambda: 4)
    assert remembered(array, "last", lambda: 1 // 0) == 4
    assert remembered(array, "first", lambda: int(array[0])) == 0
