"""Device memory that stays allocated for the next request of its size.

A run allocates the same few sizes as the run before it. The driver waits for the card before it
frees memory, and takes a tenth of a millisecond to map 16 MB again. So freed memory is kept here,
at most `MOST_BYTES` or `SHARE` of the card, whichever is less, and goes back to the driver if that
has no more to give. Only the same size is given out again: who writes beyond it is found out as
before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST_BYTES, SHARE = 1 << 30, 1 / 8
"""Most bytes that are kept unused, and their share of the card's memory."""


class Allocation:
    """Device memory of a pool; `free` gives it back to the pool."""

    def __init__(self, pool: Pool, memory: Any, size: int) -> None:
        self._pool, self._memory, self.size = pool, memory, size
        self._address = int(memory)

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        self._pool.put(self._memory, self.size)


class Pool:
    """Device memory that nobody uses at the moment, at most `most` bytes; on the card's thread
    only.

    `allocate` returns new memory of a number of bytes, with a method `free`.
    """

    def __init__(self, allocate: Callable[[int], Any], most: int) -> None:
        self._allocate, self._most = allocate, most
        self._kept: list[tuple[int, Any]] = []  # the one freed last at the end
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that `release` would give back."""
        return self._size

    def take(self, size: int) -> Allocation:
        """Return `size` bytes: kept ones if there are any of this size, else new ones."""
        for place in reversed(range(len(self._kept))):
            if self._kept[place][0] == size:
                _, memory = self._kept.pop(place)
                self._size -= size
                return Allocation(self, memory, size)
        return Allocation(self, self._allocate(size), size)

    def put(self, memory: Any, size: int) -> None:
        """Keep memory; free what was kept longest if that is too much."""
        self._kept.append((size, memory))
        self._size += size
        while self._size > self._most:
            self._free_first()

    def release(self) -> bool:
        """Give everything back to the driver; return whether there was anything."""
        had = bool(self._kept)
        while self._kept:
            self._free_first()
        return had

    def forget(self) -> None:
        """Drop everything without freeing: for a context that is already lost."""
        self._kept.clear()
        self._size = 0

    def _free_first(self) -> None:
        size, memory = self._kept.pop(0)
        self._size -= size
        memory.free()
