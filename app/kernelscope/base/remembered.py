"""Facts about arrays that never change, found once for each."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from numpy.typing import NDArray

_Fact = TypeVar("_Fact")

_facts: dict[int, dict[Hashable, Any]] = {}
_ways: dict[int, dict[Hashable, Callable[[], Any]]] = {}
# Both by the identity of the array, and then by name; they go when the array does.


def remembered(array: NDArray[Any], name: Hashable, find: Callable[[], _Fact]) -> _Fact:
    """Return ``find()``, from the second time on without calling it.

    An array that may be written to is looked at every time. `name` distinguishes the facts about an
    array.
    """
    if array.flags.writeable:
        return find()
    facts = _about(array, _facts)
    if name not in facts:
        facts[name] = _ways.get(id(array), {}).get(name, find)()
    fact: _Fact = facts[name]
    return fact


def let_find(array: NDArray[Any], name: Hashable, find: Callable[[], Any]) -> None:
    """Let `remembered` call `find` for a fact, of which the caller has a quicker way."""
    _about(array, _ways)[name] = find


def _about(array: NDArray[Any], kept: dict[int, dict[Hashable, Any]]) -> dict[Hashable, Any]:
    key = id(array)
    if key not in kept:
        kept[key] = {}
        weakref.finalize(array, kept.pop, key, None).atexit = False
    return kept[key]
