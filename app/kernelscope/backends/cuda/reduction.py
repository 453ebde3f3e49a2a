"""Sums and maxima over images that are on the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.card import Card
from kernelscope.backends.cuda.cubins import CubinCache
from kernelscope.backends.cuda.sources import read_source

THREADS = 256

LOOK_BYTES = 1 << 20
"""From here on the card looks for values that are not finite: the host takes 0.1 ms a MB."""

_INFINITE = 0x7F800000
"""The bits of the smallest magnitude that is no finite number."""


def mean_squared_error(
    device: Card, cache: CubinCache, first: NDArray[Any], second: NDArray[Any]
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


def is_finite(device: Card, cache: CubinCache, pixels: NDArray[np.float32]) -> bool | None:
    """Return whether all samples are finite; None if that is not known, as above."""
    there = device.resident.get(pixels)
    return None if there is None else is_finite_at(device, cache, int(there), pixels.size)


def is_finite_at(device: Card, cache: CubinCache, address: int, samples: int) -> bool | None:
    """Return whether all 32-bit floats at a device address are finite; None without room."""
    bits = np.dtype(np.uint32)
    largest = _of_blocks("largest", {}, device, cache, (address,), samples, bits)
    return None if largest is None else int(largest.max()) < _INFINITE


def _of_blocks(
    kernel: str,
    defines: dict[str, str],
    device: Card,
    cache: CubinCache,
    images: Sequence[Any],
    samples: int,
    dtype: np.dtype[Any],
) -> NDArray[Any] | None:
    """Return a number of each block of a kernel; None if there is no room for them."""
    cuda = device.cuda
    cubin = cache.get(
        kernel, read_source(kernel), device.architecture, defines | {"THREADS": str(THREADS)}
    )
    _, function = device.function(cubin, kernel)
    # As many blocks as the card runs at a time; the host adds up what they leave.
    resident_blocks = device.attribute("MAX_THREADS_PER_MULTIPROCESSOR") // THREADS
    most = device.attribute("MULTIPROCESSOR_COUNT") * resident_blocks
    found = np.empty(min(most, -(-samples // THREADS)), dtype)
    try:
        # Not `Card.allocate`, which might let go of the very images.
        target = device.pool.take(found.nbytes)
    except cuda.MemoryError:
        return None
    try:
        function.prepare("P" * len(images) + "PI")
        function.prepared_async_call(
            (found.size, 1),
            (THREADS, 1, 1),
            device.stream,
            *map(int, images),
            int(target),
            samples,
        )
        device.staging.download(int(target), found)
    finally:
        device.free(target)
    return found
