"""Do something once in a process, whichever of its threads asks first."""

from __future__ import annotations

import functools
import re
import threading
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_filtering = threading.Lock()


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function run once for its arguments; other threads wait for the result (decorator).

    `functools.cache` lets several threads run it at the same time, which is wrong for whatever
    registers something, changes a library, or makes something that there may be one of. After an
    exception the next call tries again.
    """
    lock = threading.RLock()  # one that calls itself must not wait for ever
    results: dict[tuple[object, ...], R] = {}

    @functools.wraps(function)
    def result(*arguments: P.args, **named: P.kwargs) -> R:
        key = (*arguments, *sorted(named.items())) if named else arguments
        if key not in results:
            with lock:
                if key not in results:
                    results[key] = function(*arguments, **named)
        return results[key]

    return result


def ignore_warnings(module: str) -> None:
    """Ignore the warnings of a library, on all threads; `module` matches its modules.

    `warnings.catch_warnings` would change the filters of other threads for a while, and
    `warnings.filterwarnings` takes a filter out before it puts it first again.
    """
    wanted = ("ignore", None, Warning, re.compile(module), 0)
    with _filtering:
        if wanted not in warnings.filters:
            warnings.filterwarnings("ignore", module=module)
