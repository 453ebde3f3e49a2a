"""Device memory: images that stay on the card, and page-locked staging."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

STAGING_BYTES = 8 << 20
"""Size of one staging buffer: large enough for the full copy rate, small enough for L3."""

STAGING_BUFFERS = 2
"""One is filled by the CPU while the other is on its way."""


class Resident:
    """Images on the card, by the host array they are a copy of; least recently used first.

    An entry goes when its host array does, so that memory follows what the user has open.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[int, tuple[weakref.ref[Any], Any]] = OrderedDict()

    def get(self, pixels: NDArray[Any]) -> Any | None:
        """Return the device copy of `pixels`, or None."""
        self._drop_dead()
        entry = self._entries.get(id(pixels))
        if entry is None:
            return None
        self._entries.move_to_end(id(pixels))
        return entry[1]

    def put(self, pixels: NDArray[Any], allocation: Any) -> None:
        """Keep `allocation` for as long as `pixels` lives."""
        self._drop_dead()
        self._entries[id(pixels)] = (weakref.ref(pixels), allocation)

    def evict(self, keep: NDArray[Any] | None = None) -> bool:
        """Free the image that was used longest ago, other than `keep`; tell if there was one."""
        for key, (reference, allocation) in self._entries.items():
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

    def _drop_dead(self) -> None:
        for key in [key for key, (reference, _) in self._entries.items() if reference() is None]:
            self._entries.pop(key)[1].free()


class Staging:
    """Copies between pageable arrays and the card through page-locked buffers.

    Chunk by chunk, two buffers in turn, so that the CPU's copy and the transfer overlap.
    """

    def __init__(self, stream: Any) -> None:
        import pycuda.driver as cuda

        self._cuda = cuda
        self._stream = stream
        self._buffers = [
            cuda.pagelocked_empty(STAGING_BYTES, np.uint8) for _ in range(STAGING_BUFFERS)
        ]
        self._events = [cuda.Event(cuda.event_flags.DISABLE_TIMING) for _ in self._buffers]

    def upload(self, source: NDArray[Any], target: int) -> None:
        """Copy the C-contiguous `source` to device address `target`; returns when it is there."""
        data = source.reshape(-1).view(np.uint8)
        for number, start in enumerate(range(0, data.size, STAGING_BYTES)):
            buffer, event = self._turn(number)
            piece = data[start : start + STAGING_BYTES]
            buffer[: piece.size] = piece
            self._cuda.memcpy_htod_async(target + start, buffer[: piece.size], self._stream)
            event.record(self._stream)
        self._stream.synchronize()

    def download(self, source: int, target: NDArray[Any]) -> None:
        """Copy from device address `source` into the C-contiguous `target`."""
        data = target.reshape(-1).view(np.uint8)
        waiting: list[tuple[int, Any, Any]] = []
        for number, start in enumerate(range(0, data.size, STAGING_BYTES)):
            if len(waiting) == STAGING_BUFFERS:
                self._finish(waiting.pop(0), data)
            buffer, event = (
                self._buffers[number % STAGING_BUFFERS],
                self._events[number % STAGING_BUFFERS],
            )
            size = min(STAGING_BYTES, data.size - start)
            self._cuda.memcpy_dtoh_async(buffer[:size], source + start, self._stream)
            event.record(self._stream)
            waiting.append((start, buffer[:size], event))
        for piece in waiting:
            self._finish(piece, data)

    def _turn(self, number: int) -> tuple[Any, Any]:
        """Return the buffer for chunk `number`, once its last transfer is over."""
        buffer = self._buffers[number % STAGING_BUFFERS]
        event = self._events[number % STAGING_BUFFERS]
        if number >= STAGING_BUFFERS:
            event.synchronize()
        return buffer, event

    @staticmethod
    def _finish(piece: tuple[int, Any, Any], data: NDArray[Any]) -> None:
        start, buffer, event = piece
        event.synchronize()
        data[start : start + buffer.size] = buffer

    def free(self) -> None:
        for buffer in self._buffers:
            buffer.base.free()
        self._buffers = []
        self._events = []
