"""Facts about arrays that never change, found once for each."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from numpy.typing import NDArray

_Fact = TypeVar("_Fact")

_facts: dict[int, dict[Hashable, Any]] = {}
"""By the identity of the array, and then by name; they go when the array does."""


def remembered(array: NDArray[Any], name: Hashable, find: Callable[[], _Fact]) -> _Fact:
    """Return ``find()``, from the second time on without calling it.

    An array that may be written to is looked at every time.

    Parameters
    ----------
    name : hashable
        Distinguishes the facts about an array.
    """
    if array.flags.writeable:
        return find()
    key = id(array)
    if key not in _facts:
        _facts[key] = {}
        weakref.finalize(array, _facts.pop, key, None).atexit = False
    facts = _facts[key]
    if name not in facts:
        facts[name] = find()
    fact: _Fact = facts[name]
    return fact
