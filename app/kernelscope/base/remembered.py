"""Facts about arrays that never change, found once for each, and the last form of a source."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from numpy.typing import NDArray

_Fact = TypeVar("_Fact")
_Made = TypeVar("_Made")

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


class LastMade:
    """The last object made from each source: the same for several runs, as a GPU knows it by it.

    Entries go with their sources.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: weakref.WeakKeyDictionary[Any, tuple[object, Any]]
        self._last = weakref.WeakKeyDictionary()

    def of(self, source: object, key: object, make: Callable[[], _Made]) -> _Made:
        """Return ``make()``, or the last one if that was made with an equal key."""
        with self._lock:
            known = self._last.get(source)
            if known is None or known[0] != key:
                known = self._last[source] = (key, make())
        made: _Made = known[1]
        return made
