"""Do something once in a process, whichever thread asks first, or once for an array."""

from __future__ import annotations

import re
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar

from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

_filtering = threading.Lock()


class Once(Generic[P, R]):
    """A function that runs once for each set of arguments; see `once`."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._lock = threading.RLock()  # one that calls itself must not wait for ever
        self._results: dict[tuple[object, ...], R] = {}
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        key = (*arguments, *sorted(named.items()))
        if key not in self._results:
            with self._lock:
                if key not in self._results:
                    self._results[key] = self._function(*arguments, **named)
        return self._results[key]


def once(function: Callable[P, R]) -> Once[P, R]:
    """Let a function run once, while other threads wait for its result (decorator).

    `functools.cache` lets several threads run it at the same time, which is wrong for whatever
    registers something, changes a library, or makes something that there may be one of. After an
    exception the next call tries again.
    """
    return Once(function)


def ignore_warnings(module: str) -> None:
    """Ignore what a library warns of, on all threads; `module` matches its modules.

    `warnings.catch_warnings` would change the filters of other threads for a while, and
    `warnings.filterwarnings` takes a filter out before it puts it first again.
    """
    wanted = ("ignore", None, Warning, re.compile(module), 0)
    with _filtering:
        if wanted not in warnings.filters:
            warnings.filterwarnings("ignore", module=module)


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
