"""An object whose changes others follow, without Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Fields: TypeAlias = frozenset[str]
"""Names of the attributes that are others now."""

Follower: TypeAlias = Callable[[Fields], object]


class Observed:
    """Calls its followers when attributes have changed.

    Those of `follow` are called at the end of each change: the form and the picture. Those of
    `follow_later` are called once for all changes of a turn of the event loop, after the paint,
    if `schedule` brings its argument there.
    """

    def __init__(self, schedule: Callable[[], object] | None = None) -> None:
        self.schedule: Callable[[], object] = schedule or (lambda: None)
        """Has `call_later` called soon."""
        self._now: list[Follower] = []
        self._later: list[Follower] = []
        self._changed: set[str] = set()
        self._due: set[str] = set()
        self._depth = 0

    def follow(self, follower: Follower) -> None:
        """Call `follower` at the end of each change."""
        self._now.append(follower)

    def follow_later(self, follower: Follower) -> None:
        """Call `follower` once for several changes, after the paint."""
        self._later.append(follower)

    @contextmanager
    def changing(self, *fields: str) -> Iterator[None]:
        """Note that attributes change in this block, whose changes are one."""
        self._depth += 1
        try:
            yield
        finally:
            self._changed.update(fields)
            self._depth -= 1
            if not self._depth:
                self._tell()

    def _tell(self) -> None:
        # A follower may change something itself, as the form does that rounds a number.
        while self._changed and not self._depth:
            fields = frozenset(self._changed)
            self._changed.clear()
            self._due |= fields
            with self.changing():
                for follower in tuple(self._now):
                    follower(fields)
        if self._due:
            self.schedule()

    def call_later(self) -> None:
        """Call those of `follow_later`, if anything has changed since."""
        fields = frozenset(self._due)
        self._due.clear()
        if fields:
            for follower in tuple(self._later):
                follower(fields)
