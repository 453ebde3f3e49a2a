"""Sums and maxima over images that are on the card, and pictures made smaller to be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin, CubinCache
from kernelscope.backends.cuda.sources import read_source

BLOCK = (32, 8)  # threads in x and y


@dataclass(frozen=True)
class ReducedView:
    """The reduction of a picture of this shape and type by a factor."""

    shape: tuple[int, ...]  # (height, width, channels) of the picture, without alpha
    dtype: np.dtype[Any]
    factor: int
    cubin: Cubin

    @classmethod
    def prepare(
        cls,
        device: GpuContext,
        cache: CubinCache,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        factor: int,
    ) -> ReducedView:
        """Compile the kernel, or load it from the cache; on the thread of the device."""
        defines = {"SAMPLE_BITS": str(8 * dtype.itemsize)}
        cubin = cache.get("view", read_source("view"), device.architecture, defines)
        device.function(cubin, "view")
        return cls(shape, dtype, factor, cubin)

    def download(self, device: GpuContext, source: int) -> NDArray[Any]:
        """Return the reduced picture of the one at device address `source`."""
        height, width, channels = self.shape
        rows, columns = -(-height // self.factor), -(-width // self.factor)
        output = np.empty((rows, columns, channels), self.dtype)
        _, function = device.function(self.cubin, "view")
        target = device.allocate(output.nbytes)
        try:
            function.prepare("PPiiii")
            function.prepared_async_call(
                (-(-columns * channels // BLOCK[0]), -(-rows // BLOCK[1])),
                (*BLOCK, 1),
                device.stream,
                source,
                int(target),
                height,
                width,
                channels,
                self.factor,
            )
            device.staging.download(int(target), output)
        finally:
            device.free(target)
        return output


THREADS = 256

LOOK_BYTES = 1 << 20
"""From here on the card looks for values that are not finite: the host takes 0.1 ms a MB."""

_INFINITE = 0x7F800000  # the bits of the smallest magnitude that is no finite number


def mean_squared_error(
    device: GpuContext, cache: CubinCache, first: NDArray[Any], second: NDArray[Any]
) -> float | None:
    """Return the mean squared difference of two arrays of the same shape and type.

    None unless both are on the card already, and there is room for a few kilobytes more.
    """
    one, other = (device.resident.get(pixels) for pixels in (first, second))
    if one is None or other is None:
        return None
    bits = {"SAMPLE_BITS": str(8 * first.itemsize)}
    total = np.dtype(np.float64 if first.dtype.kind == "f" else np.uint64)
    sums = _of_blocks("squared_error", bits, device, cache, (one, other), first.size, total)
    return None if sums is None else float(sums.sum()) / first.size


def is_finite(device: GpuContext, cache: CubinCache, pixels: NDArray[np.float32]) -> bool | None:
    """Return whether all samples are finite; None if that is not known, as above."""
    there = device.resident.get(pixels)
    if there is None:
        return None
    look = FiniteLook(device, cache)
    try:
        look.queue(int(there), pixels.size)
        return look.read()
    finally:
        look.free()


def peak_at(device: GpuContext, cache: CubinCache, address: int, samples: int) -> float:
    """Return the largest magnitude of 32-bit floats at a device address; NaN without room."""
    dtype = np.dtype(np.uint32)
    found = _of_blocks("largest", {}, device, cache, (address,), samples, dtype)
    return math.nan if found is None else float(found.max().view(np.float32))


class FiniteLook:
    """Looks on the card for floats that are not finite; nobody waits for it before the answer."""

    def __init__(self, device: GpuContext, cache: CubinCache) -> None:
        self._device, self._cache = device, cache
        self._found: list[tuple[Any, int]] = []
        self._has_room = True

    def queue(self, address: int, samples: int) -> None:
        """Look at 32-bit floats at a device address, after the work in the queue of the stream."""
        found = _queue("largest", {}, self._device, self._cache, (address,), samples, 4)
        self._has_room &= found is not None
        if found is not None:
            self._found.append(found)

    def read(self) -> bool | None:
        """Wait; return whether all that was looked at is finite, None if there was no room."""
        if not self._has_room:
            return None
        found = [_read(self._device, *each, np.dtype(np.uint32)) for each in self._found]
        self.free(is_read=True)
        return all(int(largest.max()) < _INFINITE for largest in found)

    def free(self, *, is_read: bool = False) -> None:
        """Free its memory, after the launches; that of a lost context goes with it."""
        if self._device.lost:
            return
        if self._found and not is_read:
            self._device.wait(self._device.stream)
        self._device.free(*(memory for memory, _ in self._found))
        self._found.clear()


def _of_blocks(
    kernel: str,
    defines: dict[str, str],
    device: GpuContext,
    cache: CubinCache,
    images: Sequence[Any],
    samples: int,
    dtype: np.dtype[Any],
) -> NDArray[Any] | None:
    """Return a number of each block of a kernel; None if there is no room for them."""
    found = _queue(kernel, defines, device, cache, images, samples, dtype.itemsize)
    if found is None:
        return None
    try:
        return _read(device, *found, dtype)
    finally:
        device.free(found[0])


def _queue(
    kernel: str,
    defines: dict[str, str],
    device: GpuContext,
    cache: CubinCache,
    images: Sequence[Any],
    samples: int,
    itemsize: int,
) -> tuple[Any, int] | None:
    """Launch a kernel; return the memory in which each block leaves a number, and their count."""
    cubin = cache.get(
        kernel, read_source(kernel), device.architecture, defines | {"THREADS": str(THREADS)}
    )
    _, function = device.function(cubin, kernel)
    # As many blocks as the card runs at a time; the host adds up their results.
    resident_blocks = device.attribute("MAX_THREADS_PER_MULTIPROCESSOR") // THREADS
    most = device.attribute("MULTIPROCESSOR_COUNT") * resident_blocks
    blocks = min(most, -(-samples // THREADS))
    try:
        # Not `GpuContext.allocate`, which might let go of the very images.
        target = device.pool.take(blocks * itemsize)
    except device.cuda.MemoryError:
        return None
    try:
        function.prepare("P" * len(images) + "PI")
        grid, block = (blocks, 1), (THREADS, 1, 1)
        ends = (*map(int, images), int(target))
        function.prepared_async_call(grid, block, device.stream, *ends, samples)
    except BaseException:
        device.free(target)
        raise
    return target, blocks


def _read(device: GpuContext, memory: Any, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers that the blocks of a kernel left, once it is over."""
    found = np.empty(count, dtype)
    device.staging.download(int(memory), found)
    return found
