"""The CUDA backend as the engine sees it."""

from __future__ import annotations

import functools
import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from app import filters
from app.backends.cuda import executor, info, reduction
from app.backends.cuda.compiler import Compiler, CubinCache, choose_compiler
from app.backends.cuda.probe import probe
from app.engine.backend import Availability, Fact, FactGroup
from app.engine.control import CancelToken, Progress
from app.engine.image import Image
from app.engine.request import Request
from app.engine.scan import Scan
from app.engine.timing import Stopwatch
from app.errors import DeviceUnavailable
from app.filters.launch import CudaTask
from app.filters.spec import Border, FilterSpec, Level

if TYPE_CHECKING:
    from app.backends.cuda.device import Device

_logger = logging.getLogger(__name__)
_Value = TypeVar("_Value")

_RESTART = "Restart Kernelscope to use the GPU again; until then choose CPU."
"""After an illegal access CUDA refuses every new context for the rest of the process."""


class CudaBackend:
    """One NVIDIA GPU.

    Parameters
    ----------
    ordinal : int
        Number of the device.
    memory_limit : int, optional
        Use at most this many bytes of device memory for images.
    compiler : Compiler, optional
        By default nvcc where it works, else NVRTC.
    """

    id = "gpu"
    name = "GPU"

    def __init__(
        self,
        ordinal: int = 0,
        memory_limit: int | None = None,
        compiler: Compiler | None = None,
    ) -> None:
        self._compiler = compiler
        self.ordinal = ordinal
        self.memory_limit = memory_limit
        self._device: Device | None = None
        self._lost = False
        self._opening = threading.RLock()

    @functools.cached_property
    def _availability(self) -> Availability:
        return probe(self.ordinal, self._compiler)

    def availability(self) -> Availability:
        return self._availability

    def facts(self) -> Iterator[FactGroup]:
        if not self.availability().available:
            return
        import pycuda.driver as cuda

        yield from info.device_groups(cuda, self.ordinal)
        yield info.software_group(cuda, self._cache.compiler)
        with self._opening:  # it must not be closed meanwhile
            device = self._open()
            rate = device.call(device.copy_rate)
        yield info.measured_group(rate, info.theoretical_bandwidth(cuda, self.ordinal))

    def load(self) -> tuple[Fact, ...]:
        if not self.availability().available:
            return ()
        import pycuda.driver as cuda

        return info.load(cuda.Device(self.ordinal).pci_bus_id())

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.gpu_levels

    @functools.cached_property
    def _cache(self) -> CubinCache:
        return CubinCache(self._compiler or choose_compiler())

    def run(
        self,
        request: Request,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> Image | Scan:
        try:
            return self._call(self._filter, request, level, stopwatch, token, progress)
        except KeyboardInterrupt:
            token.cancel()  # the device's thread goes on otherwise
            raise

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        alike = first.pixels.shape == second.pixels.shape and first.mode == second.mode
        if self._device is None or not alike or first.has_alpha:
            return None
        return self._call(reduction.mean_squared_error, self._cache, first.pixels, second.pixels)

    def _call(self, function: Callable[..., _Value], *arguments: Any) -> _Value:
        """Return ``function(device, *arguments)``, called on the device's thread."""
        device = self._open()
        try:
            value: _Value = device.call(self._watch, function, device, *arguments)
            return value
        except device.cuda.Error as error:
            if not device.lost:
                raise DeviceUnavailable(
                    f"The GPU cannot do this: {error}.", "Choose another level, or CPU."
                ) from error
            self._lost = True
            self.close()
            raise DeviceUnavailable(f"The GPU stopped with an error: {error}.", _RESTART) from error

    def _watch(self, function: Callable[..., _Value], device: Device, *arguments: Any) -> _Value:
        try:
            return function(device, *arguments)
        except BaseException as error:
            if isinstance(error, device.cuda.Error):
                device.look_for_loss()
            if not device.lost:
                # Events and memory have to go on this thread; the error takes its frames elsewhere.
                traceback.clear_frames(error.__traceback__)
            raise

    def _filter(
        self,
        device: Device,
        request: Request,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> Image | Scan:
        source = request.source
        with stopwatch.stage("prepare"):
            parameters = request.filter.resolve(source.planes, request.parameters)
            stopwatch.estimates |= request.filter.estimates(request.parameters, parameters)
        with stopwatch.stage("compile", counted=False):
            progress("compile", 0.0)
            steps = self._steps(device, request, parameters, level)
        run = executor.Run(
            device, self._cache, stopwatch, token, progress, request.repeat, request.cold
        )
        output = executor.apply(steps, source, run, request.memory_limit or self.memory_limit)
        with stopwatch.stage("convert"):
            request.filter.carry_alpha(source.planes, output, request.parameters, request.border)
            result = source.like(output)
            # The card's alpha is not what was carried over, its voxels are not rounded.
            same = isinstance(result, Image) and not result.has_alpha
            device.resident.rename(output, result.pixels if same else None)
        stopwatch.metrics += run.metrics
        stopwatch.launch = run.report
        return result

    def _steps(
        self, device: Device, request: Request, parameters: Mapping[str, Any], level: Level
    ) -> list[executor.Step]:
        shape, dtype = request.source.planes.shape, request.source.planes.dtype
        steps = []
        todo = [(request.filter, parameters, request.border, level)]
        if request.grey and not request.image.is_grey:
            grey = filters.get("greyscale")
            todo.insert(0, (grey, grey.defaults(), Border.REFLECT, grey.gpu_levels[-1]))
        for spec, values, border, at in todo:
            output_shape = spec.output_shape(shape, values, border)
            task = CudaTask(shape, output_shape, dtype, values, border, at.id)
            steps.append(executor.prepare(spec, task, device, self._cache))
            shape = output_shape
        return steps

    def _open(self) -> Device:
        if self._lost:
            raise DeviceUnavailable("The GPU stopped with an error earlier.", _RESTART)
        with self._opening:
            if self._device is None:
                from app.backends.cuda.device import Device

                self._device = Device(self.ordinal)
                _logger.info("opened GPU %d, %s", self.ordinal, self._device.handle.name())
            return self._device

    def close(self) -> None:
        with self._opening:
            device, self._device = self._device, None
            if device is not None:
                device.close()
