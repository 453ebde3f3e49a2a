"""The medians from which the noise of a scan is estimated, found on the card that has it."""

from __future__ import annotations

import math

import numpy as np

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.cubins import CubinCache
from kernelscope.backends.cuda.sources import read_source
from kernelscope.engine.context import RunLog
from kernelscope.images.source import Source
from kernelscope.schema.samples import NoiseMedians

THREADS = 256
"""Of a block."""

PASSES = 6
"""Launches of ``haar_digit``: three digits of edges, and three of details and means."""

SEARCH_BYTES = 32824
"""Size of ``Search`` in haar.cu, which checks it."""


class ScanMedians:
    """The medians of haar.cu for a scan on the card, found for all components at a time.

    Its methods run on the card's thread.
    """

    def __init__(self, device: GpuContext, cache: CubinCache, image: Source, log: RunLog) -> None:
        self._device, self._cache, self._image, self._log = device, cache, image, log
        self._found: dict[tuple[float, int], list[NoiseMedians]] = {}

    def medians(self, number: int, share: float, stride: int) -> NoiseMedians | None:
        """Return those of a component, see `Components.noise_medians`; None without room."""
        key = share, stride
        if key not in self._found:
            source = self._device.resident.get(self._image.key)
            if source is None:
                return None
            try:
                self._found[key] = self._find(int(source), share, stride)
            except self._device.cuda.MemoryError:
                return None
        return self._found[key][number]

    def _find(self, source: int, share: float, stride: int) -> list[NoiseMedians]:
        device, (*sides, count) = self._device, self._image.shape
        has_several = [int(side > 1) for side in sides]
        blocks = [len(range(0, max(side - 1, 1), stride)) for side in sides]
        size = math.prod(blocks)
        macros = {"THREADS": str(THREADS)}
        cubin = self._cache.get("haar", read_source("haar"), device.architecture, macros)
        self._log.first |= not device.has_loaded(cubin)  # compiling is in the time of the run
        transform, digit = (device.function(cubin, name)[1] for name in ("haar", "haar_digit"))
        transform.prepare("PPPPP" + 10 * "i")
        digit.prepare("PPPPPiid")
        grid = min(device.attribute("MULTIPROCESSOR_COUNT"), -(-size // THREADS)), count
        launch = grid, (THREADS, 1, 1), device.stream
        found = np.empty((count, 4), np.float32)
        buffers = []
        try:
            for bytes_each in (4 * size, 4 * size, 4 * size, SEARCH_BYTES, 16):
                buffers.append(device.allocate(count * bytes_each, keep=self._image.key))
            *bands, searches, middles = map(int, buffers)
            device.cuda.memset_d8_async(searches, 0, count * SEARCH_BYTES, device.stream)
            transform.prepared_async_call(
                *launch, source, *bands, searches, *blocks, stride, *has_several, *sides[1:], count
            )
            for number in range(PASSES):
                digit.prepared_async_call(*launch, *bands, searches, middles, size, number, share)
            device.staging.download(middles, found)
        finally:
            device.free(*buffers)
        return [NoiseMedians((a, b), (c, d)) for a, b, c, d in found.tolist()]
