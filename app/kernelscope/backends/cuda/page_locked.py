"""Page-locked host memory for results, which copies from a card reach without a buffer between.

A copy into ordinary memory goes through page-locked buffers, and the pages of a new array have to
be made first: 64 MB take 5 to 9 ms, and 1.2 ms into memory that was page-locked before. But
locking takes longer than it saves once. So blocks are kept: a result is an array on one of them,
and when it is gone, the next result has its block. They are made on a thread of their own, while
the user looks at the picture: once a second run had none of the size, and from then on whenever a
result took the last one.

The memory is the process's own, and only registered with the driver: results stay good when the
card is closed.
"""

from __future__ import annotations

import contextlib
import logging
import math
import mmap
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory

_logger = logging.getLogger(__name__)

LEAST_BYTES = 256 << 10  # smaller results are copied by the driver in less time than this is worth
_STEP = 2 << 20  # sizes of blocks are multiples of this, a huge page
_SURPLUS = 1.5  # a block may be larger than the result by this factor

_MOST_BYTES, _SHARE = 4 << 30, 1 / 8
"""Most bytes of the blocks of a card, and their share of the memory that is free."""

PORTABLE = 1  # CU_MEMHOSTREGISTER_PORTABLE: for all cards

_leased: dict[int, int] = {}
"""Sizes of the blocks of all cards that have been handed out, by address."""


def is_page_locked(array: NDArray[Any]) -> bool:
    """Return whether a C-contiguous array lies on a block."""
    if not _leased:
        return False
    start = array.ctypes.data
    return any(
        address <= start and start + array.nbytes <= address + size
        for address, size in tuple(_leased.items())
    )


class LockedMemory:
    """Memory that was mapped for results and registered with the driver."""

    def __init__(self, size: int) -> None:
        mapped = mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without them
                mapped.madvise(mmap.MADV_HUGEPAGE)
        self.bytes = np.frombuffer(mapped, np.uint8)
        self.address, self.size = int(self.bytes.ctypes.data), size


class Lease:
    """A block for as long as an array or a view of it lives: NumPy makes the array from this."""

    def __init__(self, block: LockedMemory, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.block = block
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.address, False),
            "version": 3,
        }


class ResultMemory:
    """Blocks for results, at most `most` bytes of them.

    Methods may be called on any thread, `grow` on one at a time. `lock` registers a block with the
    driver by address and size, and returns whether the driver could do it; `unlock` is the reverse.
    """

    def __init__(
        self,
        lock: Callable[[int, int], bool],
        unlock: Callable[[int], None],
        most: int | None = None,
    ) -> None:
        self._lock, self._unlock = lock, unlock
        free = min(_MOST_BYTES, memory.available() * _SHARE)
        self._most = int(free if most is None else most)
        self._free: list[LockedMemory] = []
        self._used: dict[int, LockedMemory] = {}
        # A result may die in the middle of any line, which can hold the mutex: it only comes here.
        self._returned: deque[LockedMemory] = deque()
        self._missed: Counter[int] = Counter()
        self._wanted: dict[int, None] = {}  # in the order in which they were
        self._closed = False
        self._notice = ""
        self._mutex = threading.Lock()

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array of this shape; on a block if one is free, else in ordinary memory."""
        size = math.prod(shape) * dtype.itemsize
        if size >= LEAST_BYTES:
            with self._mutex:
                block = self._fitting(size)
            if block is not None:
                lease = Lease(block, shape, dtype)
                weakref.finalize(lease, self._returned.append, block).atexit = False
                return np.asarray(lease)
        return np.empty(shape, dtype)

    @property
    def is_wanting(self) -> bool:
        """Whether `grow` would make blocks."""
        return bool(self._wanted) and not self._closed

    def pop_notice(self) -> str:
        """Return that page-locked memory ran out, once; empty if it did not."""
        if not self._notice:
            return ""
        with self._mutex:
            notice, self._notice = self._notice, ""
        return notice

    def grow(self) -> None:
        """Make a block of each size that is wanted; free ones go where all would be too many."""
        while (size := self._next_size()) is not None:
            block = self._make(size)  # meanwhile, results may take others
            with self._mutex:
                if block is not None and not self._closed:
                    self._free.append(block)
                    block = None
            if block is not None:
                self._unlock(block.address)

    def _next_size(self) -> int | None:
        """Return the bytes of a block to make, once there is room for it."""
        while True:
            unwanted = list[LockedMemory]()
            with self._mutex:
                self._collect()
                if not self._wanted or self._closed:
                    return None
                size = next(iter(self._wanted))
                del self._wanted[size]
                self._missed.pop(size, None)
                has_room = sum(block.size for block in self._used.values()) + size <= self._most
                while has_room and self._total + size > self._most:
                    unwanted.append(self._free.pop(0))
            for block in unwanted:
                self._unlock(block.address)
            if has_room:
                return size

    def close(self, *, lost: bool = False) -> None:
        """Unlock all blocks, unless they were `lost` with the context; results keep theirs."""
        with self._mutex:
            self._collect()
            self._closed = True
            for block in (*self._free, *self._used.values()):
                if not lost:
                    self._unlock(block.address)
                _leased.pop(block.address, None)
            self._free.clear()
            self._used.clear()

    @property
    def _total(self) -> int:
        return sum(block.size for block in (*self._free, *self._used.values()))

    def _fitting(self, size: int) -> LockedMemory | None:
        """Return the smallest free block for `size` bytes, or note that there is none."""
        self._collect()
        most, usual = max(_SURPLUS * size, size + _STEP), -(-size // _STEP) * _STEP
        fitting = [block for block in self._free if size <= block.size <= most]
        if not fitting:
            self._missed[usual] += 1
            if self._missed[usual] > 1:
                self._wanted[usual] = None
            return None
        if len(fitting) == 1 and self._total + usual <= self._most:
            self._wanted[usual] = None  # for the next result, which may come while this one is kept
        block = min(fitting, key=lambda block: block.size)
        self._free.remove(block)
        self._used[block.address] = block
        _leased[block.address] = block.size
        return block

    def _collect(self) -> None:
        """Have the blocks of results that are gone free again."""
        while self._returned:
            block = self._returned.popleft()
            if self._used.pop(block.address, None) is not None:
                del _leased[block.address]
                self._free.append(block)

    def _make(self, size: int) -> LockedMemory | None:
        """Return a new block, or None if the system has no more memory for it."""
        try:
            block = LockedMemory(size)
        except (OSError, MemoryError):  # the process may not use as much address space
            self._give_up()
            return None
        # The driver holds up the whole process while it has the system give pages to a block.
        block.bytes[:: mmap.PAGESIZE] = 0
        if self._lock(block.address, size):
            return block
        self._give_up()
        return None

    def _give_up(self) -> None:
        with self._mutex:
            self._most = self._total
            self._notice = (
                f"Page-locked memory ran out at {self._most >> 20} MiB: further results of a GPU "
                "are copied through buffers, which takes longer."
            )
            _logger.warning("%s", self._notice)
