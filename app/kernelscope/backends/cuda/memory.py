"""Device memory: images that stay on the card, and page-locked staging."""

from __future__ import annotations

import logging
import mmap
import os
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.page_locked import is_page_locked
from kernelscope.backends.cuda.thread import OwnerThread

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
    """Device memory that nobody uses at the moment; on the card's thread only.

    A run allocates the same few sizes as the run before it. The driver waits for the card before it
    frees memory, and takes a tenth of a millisecond to map 16 MB again. So freed memory is kept, at
    most `most` bytes, and goes back to the driver if that has no more to give. Only the same size
    is given out again: who writes beyond it is found out as before.

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
        """Keep memory; free the oldest if that is too much."""
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


_logger = logging.getLogger(__name__)

CHUNK_BYTES = 2 << 20
"""Size of a piece in a staging buffer; the driver's own copy is as fast for less."""

BUFFERED_BYTES = 64 << 10
"""The driver reads so much ordinary memory before it returns: nobody has to wait for the copy."""

CHUNKS = 16
"""Pieces that the buffers hold. The CPU fills or empties half of them while the others are on their
way. With six threads on an H100's host, 64 MB came down in 4.7 ms through eight pieces, and in 3 ms
through sixteen."""

COPIERS = max(1, min(6, (os.cpu_count() or 1) - 1))
"""Threads of a device that copy between pageable memory and the buffers; one is slower than the
link."""


Chunk = tuple[int, NDArray[np.uint8]]
"""Bytes of an array, and where they begin: in the array, or on the card."""


class Resident:
    """Images on the card, by the host array they are a copy of; least recently used first.

    An entry goes when its host array does, so that memory follows the images that are open.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[int, tuple[weakref.ref[Any], Any, int]] = OrderedDict()
        # Numbers of entries whose array went, from whichever thread that happened in: whoever keeps
        # hundreds of results would otherwise pay for a look at each of them, several times a run.
        self._gone: deque[int] = deque()

    @property
    def size(self) -> int:
        """Bytes that `clear` would free."""
        return sum(size for _, _, size in self._entries.values())

    def get(self, pixels: object) -> Any | None:
        """Return the device copy of `pixels`, or of another `Source.key`; or None."""
        self.drop_dead()
        entry = self._entries.get(id(pixels))
        if entry is None:
            return None
        self._entries.move_to_end(id(pixels))
        return entry[1]

    def put(self, pixels: Any, allocation: Any, size: int | None = None) -> None:
        """Keep `allocation`, as large as `pixels` or of `size` bytes, for as long as they live."""
        self.drop_dead()
        size = pixels.nbytes if size is None else size
        key = id(pixels)
        reference = weakref.ref(pixels, lambda _: self._gone.append(key))
        self._entries[key] = (reference, allocation, size)

    def rename(self, old: NDArray[Any], new: NDArray[Any] | None) -> None:
        """Let the copy of `old`, if it is there, be that of `new`; free it without one."""
        entry = self._entries.pop(id(old), None)
        if entry is None:
            return
        if new is None:
            entry[1].free()
        else:
            self.put(new, entry[1], entry[2])

    def evict(self, keep: object = None) -> bool:
        """Free the least recently used image but `keep`; return whether there was one."""
        for key, (reference, allocation, _) in self._entries.items():
            if keep is None or reference() is not keep:
                del self._entries[key]
                allocation.free()
                return True
        return False

    def clear(self) -> None:
        while self.evict():
            pass

    def forget(self) -> None:
        """Drop all entries without freeing: for a context that is already lost."""
        self._entries.clear()

    @property
    def has_dead(self) -> bool:
        """Whether `drop_dead` would free anything."""
        return bool(self._gone)

    def drop_dead(self) -> None:
        """Free the copies of arrays that are gone."""
        while self._gone:
            key = self._gone.popleft()
            entry = self._entries.get(key)
            if entry is not None and entry[0]() is None:  # else it was evicted, or is another one's
                del self._entries[key]
                entry[1].free()


def upload_piece_bytes(cards: int) -> int:
    """Return the size of the pieces of an upload, where this many cards copy at the same time.

    Larger ones leave the host's Python more time for the launches of all cards: 512³ voxels took
    four H100s 66 ms in the median with pieces of 2 MiB, 49 with 4 and 43 with 8. But fewer copiers
    fill them: one card got 192 MiB in 9.6 ms with pieces of 2 MiB, and in 14 with 8.
    """
    return CHUNK_BYTES * min(1 << (cards - 1).bit_length(), CHUNKS // 4)


class _Filled:
    """Buffers that copiers have filled with pieces of an array, as they come."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[int, int, Any] | BaseException] = SimpleQueue()

    def fill(
        self, number: int, pieces: Sequence[Chunk], buffers: NDArray[np.uint8], some: range
    ) -> None:
        """Fill buffers with some of the pieces of a round; on the thread of a copier."""
        try:
            for place in some:
                target, piece = pieces[place]
                buffer = buffers[place, : piece.size]
                np.copyto(buffer, piece)
                self._queue.put((number, target, buffer))
        except BaseException as error:
            self._queue.put(error)

    def next(self) -> tuple[int, int, Any]:
        """Wait for the next one: the number of its round, the address of the piece, the buffer."""
        found = self._queue.get()
        if isinstance(found, BaseException):
            raise found
        return found


class ReadyMemory:
    """Memory that the system gives to a new array while the card computes its content.

    A download into it is faster then: page faults are half the cost of a copy to a new array. The
    `copiers` will write to the pieces in turn when the download comes: after this.
    """

    def __init__(self, copiers: Sequence[OwnerThread], pieces: Sequence[NDArray[np.uint8]]) -> None:
        self._stopped = Event()
        self._touching = [
            copier.submit(self._touch, pieces[number :: len(copiers)])
            for number, copier in enumerate(copiers)
        ]

    def _touch(self, some: Sequence[NDArray[np.uint8]]) -> None:
        for piece in some:
            if self._stopped.is_set():
                return
            piece[:: mmap.PAGESIZE] = 0

    def stop(self) -> None:
        """Leave the rest to the download."""
        self._stopped.set()

    def abandon(self) -> None:
        """Stop, and wait: who tries again in other pieces has other threads write there."""
        self._stopped.set()
        wait(self._touching)


class Staging:
    """Copies between pageable arrays and the card through page-locked buffers.

    Chunk by chunk: the `copiers`, which others may use too, copy between the array and the buffers,
    and so share the page faults of a new array, while this thread keeps the link busy.
    """

    piece_bytes = CHUNK_BYTES  # of an upload: see `upload_piece_bytes`

    def __init__(self, stream: Any, copiers: Sequence[OwnerThread]) -> None:
        import pycuda.driver as cuda

        self._cuda = cuda
        self._stream = stream
        self._memory: Any = None
        try:
            self._memory = cuda.pagelocked_empty((CHUNKS, CHUNK_BYTES), np.uint8)
        except cuda.MemoryError:
            _logger.warning(
                "page-locked memory ran out: the driver copies without our buffers, more slowly"
            )
        self._events = [cuda.Event(cuda.event_flags.DISABLE_TIMING) for _ in range(CHUNKS)]
        self._copiers = copiers

    def upload(self, source: NDArray[Any], target: int, *, followed: bool = False) -> None:
        """Copy the C-contiguous `source` to device address `target`; returns when it is there.

        If only work on the same stream uses it (`followed`), it suffices that a small one was read.
        """
        locked = is_page_locked(source)
        if not self._has_buffers_for(source) or locked:
            self._cuda.memcpy_htod_async(target, source, self._stream)
            if locked or not followed or source.nbytes > BUFFERED_BYTES:
                self._stream.synchronize()
            return
        self._upload_pieces([(source, target)])

    def upload_all(self, sources: Sequence[tuple[NDArray[Any], int]]) -> None:
        """Copy C-contiguous arrays to device addresses, in one go; see `upload`."""
        others = []
        try:
            for source, target in sources:
                if not self._has_buffers_for(source) or is_page_locked(source):
                    self._cuda.memcpy_htod_async(target, source, self._stream)
                else:
                    others.append((source, target))
            if others:
                self._upload_pieces(others)
        finally:
            self._stream.synchronize()

    def _has_buffers_for(self, array: NDArray[Any]) -> bool:
        return self._memory is not None and array.nbytes > CHUNK_BYTES

    def _upload_pieces(self, sources: Sequence[tuple[NDArray[Any], int]]) -> None:
        """Copy arrays to their addresses through the buffers; returns when they are there.

        The pieces of a round fill half of the buffers, while those of the other half are sent.
        """
        size = self.piece_bytes
        pieces = [
            (target + start, piece)
            for source, target in sources
            for start, piece in _pieces(source, size)
        ]
        halves = self._memory.reshape(2, -1, size)
        most = halves.shape[1]
        rounds = [pieces[first : first + most] for first in range(0, len(pieces), most)]
        left = [len(some) for some in rounds]
        filled = _Filled()
        fillings: list[Future[None]] = []

        def fill(number: int) -> None:
            """Have the copiers fill the buffers of a round, each with pieces of its own."""
            count = len(self._copiers)
            for first in range(min(count, left[number])):
                copier = self._copiers[(number * most + first) % count]
                some = range(first, left[number], count)
                work = number, rounds[number], halves[number % 2], some
                fillings.append(copier.submit(filled.fill, *work))

        try:
            for number in range(min(2, len(rounds))):
                fill(number)
            coming = 2
            for _ in pieces:
                number, target, buffer = filled.next()
                self._cuda.memcpy_htod_async(target, buffer, self._stream)
                left[number] -= 1
                while coming < len(rounds) and not left[coming - 2]:
                    self._stream.synchronize()  # the buffers of that round are free then
                    fill(coming)
                    coming += 1
        finally:
            wait(fillings)  # they read the arrays
            self._stream.synchronize()

    def download(self, source: int, target: NDArray[Any]) -> None:
        """Copy from device address `source` into the C-contiguous `target`."""
        if self._memory is None or target.nbytes <= CHUNK_BYTES or is_page_locked(target):
            if self._memory is None:  # `ReadyMemory` may still be in the middle of a piece
                wait([copier.submit(lambda: None) for copier in self._copiers])
            self._cuda.memcpy_dtoh_async(target, source, self._stream)
            self._stream.synchronize()
            return
        arriving: deque[tuple[OwnerThread, Any, Any, Any]] = deque()
        emptying: deque[Future[None]] = deque()

        def receive() -> None:
            copier, event, buffer, piece = arriving.popleft()
            event.synchronize()
            emptying.append(copier.submit(np.copyto, piece, buffer))

        for number, (start, piece) in enumerate(_pieces(target)):
            if len(arriving) == CHUNKS // 2:
                receive()
            if number >= CHUNKS:
                emptying.popleft().result()
            buffer, event = self._chunk(number, piece.size)
            self._cuda.memcpy_dtoh_async(buffer, source + start, self._stream)
            event.record(self._stream)
            arriving.append((self._copiers[number % len(self._copiers)], event, buffer, piece))
        while arriving:
            receive()
        for copy in emptying:
            copy.result()

    def give_pages(self, target: NDArray[Any]) -> ReadyMemory:
        """Have the system give memory to a new array, until that is stopped; see `ReadyMemory`."""
        if target.nbytes <= CHUNK_BYTES or is_page_locked(target):
            return ReadyMemory([], [])
        return ReadyMemory(self._copiers, [piece for _, piece in _pieces(target)])

    @contextmanager
    def giving_pages_to(self, target: NDArray[Any]) -> Iterator[None]:
        """Have the system give memory to a new array while the block runs, as far as it gets."""
        pages = self.give_pages(target)
        try:
            yield
        except BaseException:
            pages.abandon()
            raise
        pages.stop()

    def _chunk(self, number: int, size: int) -> tuple[Any, Any]:
        """Return the buffer for piece `number`, and the event of its transfer."""
        return self._memory[number % CHUNKS, :size], self._events[number % CHUNKS]

    def free(self) -> None:
        """Give the page-locked memory back."""
        if self._memory is not None:
            self._memory.base.free()


def _pieces(array: NDArray[Any], size: int = CHUNK_BYTES) -> list[Chunk]:
    """Cut the bytes of an array into pieces: (first byte, bytes)."""
    data = array.reshape(-1).view(np.uint8)
    return [(start, data[start : start + size]) for start in range(0, data.size, size)]
