"""The sources and results of runs on a card: several volumes come together, and leave one by one.

A filter reads the components of a voxel side by side. The card brings them together, and apart
again: the host would take several times as long as the filter. The card also finds the largest
voxel of each, and the details from which its noise is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import CubinCache
from kernelscope.backends.cuda.sources import read_source
from kernelscope.engine.context import RunLog
from kernelscope.images.source import Source
from kernelscope.schema.samples import Components, NoiseMedians, Pixels

_THREADS = 256
_BLOCKS = 8  # of a multiprocessor

_TYPES = {"uint8": "unsigned char", "uint16": "unsigned short", "int16": "short"}

_MOST_SHARE = 8
"""A scan is brought to the card before its run is planned if it takes less than one part in this
many of the memory that is free."""


_MOST_AT_ONCE = 1 << 30
"""Volumes up to these bytes are brought to the card together: its memory holds them twice then."""


def on_card(device: GpuContext, cache: CubinCache, image: Source, log: RunLog) -> Any:
    """Return the copy of a source on the card, made if it is not there yet; on its thread."""
    if device.resident.has_dead:
        with log.stage("free"):
            device.resident.drop_dead()
    source: Any = device.resident.get(image.key)
    if source is not None:
        return source
    size = _size(image)
    with log.stage("allocate"):
        source = device.allocate(size)
    try:
        with log.stage("upload"):
            if image.key is image:
                _upload(device, cache, image.samples, int(source))
            else:
                device.staging.upload(image.pixels, int(source), followed=True)
    except BaseException:
        device.free(source)
        raise
    device.resident.put(image.key, source, size)
    return source


def known_by(
    device: GpuContext, cache: CubinCache, image: Source, log: RunLog
) -> Pixels | Components:
    """Return the samples of a source for `FilterSpec.resolve`; the card finds some of them.

    A scan comes to the card for that, unless it is large; on the card's thread.
    """
    parts = image.components
    if not isinstance(parts, Components):
        return parts
    wanted = _size(image) * _MOST_SHARE
    if wanted > device.likely_free and wanted > device.free_memory():
        return parts
    try:
        on_card(device, cache, image, log)
    except device.cuda.MemoryError:
        return parts

    def peak(number: int) -> float | None:
        known = parts.peak(number)
        return device.call(find_peak, number) if known is None else known

    def find_peak(number: int) -> float | None:
        source = device.resident.get(image.key)
        if source is None:
            return None
        try:
            return _peak(device, cache, int(source) + 4 * number, parts.shape, image.key)
        except device.cuda.MemoryError:
            return None

    noise = ScanMedians(device, cache, image, log)
    return replace(
        parts, peak=peak, noise_medians=lambda *arguments: device.call(noise.medians, *arguments)
    )


def result(device: GpuContext, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return memory for a result; components of a volume lie one after the other."""
    if len(shape) == 4:
        return np.moveaxis(device.results.take((shape[3], *shape[:3]), dtype), 0, -1)
    taken: NDArray[Any] = device.results.take(shape, dtype)
    return taken


def memory_of(output: NDArray[Any]) -> NDArray[Any]:
    """Return the memory of a `result`, in the order in which it lies there."""
    return output if output.flags.c_contiguous else np.moveaxis(output, -1, 0)


def download(device: GpuContext, cache: CubinCache, source: int, output: NDArray[Any]) -> None:
    """Copy a result from the card into memory of `result`; on its thread."""
    if output.flags.c_contiguous:
        device.staging.download(source, output)
        return
    voxels, count = math.prod(output.shape[:-1]), output.shape[-1]
    buffer = device.allocate(4 * voxels)
    try:
        for number in range(count):
            first = source + 4 * number
            _launch("take", {}, device, cache, (first, int(buffer)), voxels, count)
            device.staging.download(int(buffer), output[..., number])
    finally:
        device.free(buffer)


def _size(image: Source) -> int:
    return math.prod(image.shape) * image.dtype.itemsize


def _upload(device: GpuContext, cache: CubinCache, parts: Sequence[Pixels], target: int) -> None:
    """Write volumes of one shape to the card as components, floats side by side."""
    at_once = len(parts) if sum(part.nbytes for part in parts) <= _MOST_AT_ONCE else 1
    for first in range(0, len(parts), at_once):
        some, buffers = parts[first : first + at_once], list[Any]()
        try:
            for part in some:
                buffers.append(device.allocate(part.nbytes))
            places = [int(buffer) for buffer in buffers]
            device.staging.upload_all(list(zip(some, places, strict=True)))
            for number, (part, place) in enumerate(zip(some, places, strict=True), start=first):
                name = part.dtype.name
                defines = {"SAMPLE": _TYPES[name]} if name in _TYPES else {}
                ends = place, target + 4 * number
                _launch("put", defines, device, cache, ends, part.size, len(parts))
            device.wait(device.stream)
        finally:
            device.free(*buffers)


def _peak(
    device: GpuContext, cache: CubinCache, first: int, shape: tuple[int, ...], keep: object
) -> float:
    """Return the largest magnitude of a component of `keep` whose first voxel is at an address."""
    found = np.zeros(1, np.float32)
    target = device.allocate(found.nbytes, keep)
    try:
        device.cuda.memset_d8_async(int(target), 0, found.nbytes, device.stream)
        voxels = math.prod(shape[:-1])
        _launch("peak", {}, device, cache, (first, int(target)), voxels, shape[-1])
        device.staging.download(int(target), found)
    finally:
        device.free(target)
    return float(found[0])


def _launch(
    kernel: str,
    defines: dict[str, str],
    device: GpuContext,
    cache: CubinCache,
    pointers: tuple[int, int],
    voxels: int,
    components: int,
) -> None:
    """Launch a kernel of components.cu on the device's stream."""
    cubin = cache.get("components", read_source("components"), device.architecture, defines)
    _, function = device.function(cubin, kernel)
    blocks = device.attribute("MULTIPROCESSOR_COUNT") * _BLOCKS
    function.prepare("PPII")
    function.prepared_async_call(
        (min(blocks, -(-voxels // _THREADS)), 1),
        (_THREADS, 1, 1),
        device.stream,
        *pointers,
        voxels,
        components,
    )


PASSES = 6  # launches of ``haar_digit``: three digits of edges, and three of details and means
SEARCH_BYTES = 32824  # size of ``Search`` in haar.cu, which checks it


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
        macros = {"THREADS": str(_THREADS)}
        cubin = self._cache.get("haar", read_source("haar"), device.architecture, macros)
        self._log.first |= not device.has_loaded(cubin)  # compiling is in the time of the run
        transform, digit = (device.function(cubin, name)[1] for name in ("haar", "haar_digit"))
        transform.prepare("PPPPP" + 10 * "i")
        digit.prepare("PPPPPiid")
        grid = min(device.attribute("MULTIPROCESSOR_COUNT"), -(-size // _THREADS)), count
        launch = grid, (_THREADS, 1, 1), device.stream
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
