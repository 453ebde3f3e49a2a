"""Do something once in a process, whichever of its threads asks first."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

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
