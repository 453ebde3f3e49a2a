"""Sums over images that are on the card."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.card import Card
from kernelscope.backends.cuda.compiler import CubinCache
from kernelscope.backends.cuda.sources import read_source

THREADS = 256


def mean_squared_error(
    device: Card, cache: CubinCache, first: NDArray[Any], second: NDArray[Any]
) -> float | None:
    """Return the mean squared difference of two arrays of the same shape and type.

    None unless both are on the card already, and there is room for a few kilobytes more.
    """
    one, other = (device.resident.get(pixels) for pixels in (first, second))
    if one is None or other is None:
        return None
    cuda, samples = device.cuda, first.size
    cubin = cache.get(
        "squared_error",
        read_source("squared_error"),
        device.architecture,
        {"SAMPLE_BITS": str(8 * first.itemsize), "THREADS": str(THREADS)},
    )
    _, function = device.function(cubin, "squared_error")
    # As many blocks as the card runs at a time; each leaves a sum for the host to add up.
    attribute, handle = cuda.device_attribute, device.handle
    resident_blocks = handle.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // THREADS
    most = handle.get_attribute(attribute.MULTIPROCESSOR_COUNT) * resident_blocks
    blocks = min(most, -(-samples // THREADS))
    sums = np.empty(blocks, np.float64 if first.dtype.kind == "f" else np.uint64)
    try:
        # Not `Card.allocate`, which might let go of the very images.
        target = cuda.mem_alloc(sums.nbytes)
    except cuda.MemoryError:
        return None
    try:
        function.prepare("PPPI")
        function.prepared_async_call(
            (blocks, 1),
            (THREADS, 1, 1),
            device.stream,
            int(one),
            int(other),
            int(target),
            samples,
        )
        device.staging.download(int(target), sums)
    finally:
        device.free(target)
    return float(sums.sum()) / samples
