"""The CUDA backend as the engine sees it."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda import components, executor, info, reduction, slabs
from kernelscope.backends.cuda.compiler import PACKAGED, Compiler, CubinCache, choose_compiler
from kernelscope.backends.cuda.device_run import DeviceRun, PreparedFilter, metrics
from kernelscope.backends.cuda.kernel import hold_cubin
from kernelscope.backends.cuda.probe import probe
from kernelscope.backends.cuda.reduction import ReducedView
from kernelscope.base.errors import DeviceUnavailable, OutOfMemory
from kernelscope.engine.backend import Availability, Fact, FactGroup, close_all
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import CudaTask
from kernelscope.schema.levels import Level
from kernelscope.schema.samples import Components, Kind

if TYPE_CHECKING:
    from kernelscope.backends.cuda.card import GpuContext

_logger = logging.getLogger(__name__)

_RESTART = "Restart Kernelscope to use the GPU again; until then choose CPU."
"""After an illegal access CUDA refuses every new context for the rest of the process."""


class CudaBackend:
    """One NVIDIA GPU, or several that share volumes and images too large for one.

    - `ordinals`: numbers of the devices. The first one filters images that are not shared.
    - `memory_limit`: use at most this many bytes of each device's memory for images.
    - `compiler`: by default nvcc where it works, else NVRTC.
    """

    id = "gpu"
    name = "GPU"

    def __init__(
        self,
        ordinals: Sequence[int] = (0,),
        memory_limit: int | None = None,
        compiler: Compiler | None = None,
    ) -> None:
        self._compiler = compiler
        self.ordinals = tuple(ordinals)
        self.memory_limit = memory_limit
        self._devices: list[GpuContext] = []
        self._lost = False
        self._opening = threading.RLock()

    @functools.cached_property
    def _availability(self) -> Availability:
        return probe(self.ordinals, self._compiler)

    def availability(self) -> Availability:
        return self._availability

    def facts(self) -> Iterator[FactGroup]:
        if not self.availability().available:
            return
        import pycuda.driver as cuda

        for ordinal in self.ordinals:
            for group in info.device_groups(cuda, ordinal):
                yield FactGroup(self._named(ordinal, group.title), group.facts)
        yield info.software_group(cuda, self._cache.compiler)
        for number, ordinal in enumerate(self.ordinals):
            with self._opening:  # it must not be closed meanwhile
                device = self._open()[number]
                rate = device.call(device.copy_rate)
            group = info.measured_group(rate, info.theoretical_bandwidth(cuda, ordinal))
            yield FactGroup(self._named(ordinal, group.title), group.facts)

    def load(self) -> tuple[Fact, ...]:
        if not self.availability().available:
            return ()
        import pycuda.driver as cuda

        return tuple(
            Fact(self._named(ordinal, fact.name), fact.value, fact.unit)
            for ordinal in self.ordinals
            for fact in info.load(cuda.Device(ordinal).pci_bus_id())
        )

    def _named(self, ordinal: int, name: str) -> str:
        """Say of which GPU something is, where there are several."""
        return f"GPU {ordinal}: {name}" if len(self.ordinals) > 1 else name

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels(self.id)

    @functools.cached_property
    def _cache(self) -> CubinCache:
        return CubinCache(self._compiler or choose_compiler(), packaged=PACKAGED)

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        devices = self._open()[: request.options.gpus]
        first = devices[0]
        try:
            with self._translated_errors(devices):
                work = self._filter, devices, request, level, context
                # One GPU's thread does all of it: a call to it takes as long as a small kernel.
                result = first.call(*work) if len(devices) == 1 else self._filter(*work[1:])
                if first.results.is_wanting:  # afterwards: nobody waits for it
                    first.submit(first.grow_results)
                return result
        except KeyboardInterrupt:
            context.token.cancel()  # the devices' threads go on otherwise
            raise

    def run_at(
        self, request: Request, level: Level, context: RunContext, source: int, target: int
    ) -> None:
        """Compute `request` from a picture on the first device into memory of it.

        - `request`: its source has the shape and type of the picture, and is not read: the request
          has everything that parameters need to know of it.
        - `source`, `target`: device addresses; the memory belongs to others.
        """
        device = self._open()[0]
        try:
            with self._translated_errors([device]):
                context.progress("compile", 0.0)
                values = request.step.filter.resolve(request.source.planes, request.known)
                steps = device.call(self._steps, device, request, values, level)
                device.call(_apply, DeviceRun(device, self._cache, steps), source, target, context)
        except KeyboardInterrupt:
            context.token.cancel()
            raise

    def fetch(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a copy of an array that lies on the first device."""
        device, output = self._open()[0], np.empty(shape, dtype)
        with self._translated_errors([device]):
            device.call(_when_idle, device, lambda: device.staging.download(address, output))
        return output

    def store(self, array: NDArray[Any], address: int) -> None:
        """Copy an array to memory of the first device."""
        device = self._open()[0]
        with self._translated_errors([device]):
            array = np.ascontiguousarray(array)
            device.call(_when_idle, device, lambda: device.staging.upload(array, address))

    def peak_at(self, address: int, samples: int) -> float:
        """Return the largest magnitude of 32-bit floats on the first device; NaN if unknown."""
        device = self._open()[0]
        with self._translated_errors([device]):
            look = functools.partial(reduction.peak_at, device, self._cache, address, samples)
            return float(device.call(_when_idle, device, look))

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        alike = first.pixels.shape == second.pixels.shape and first.mode == second.mode
        if not self._devices or not alike or first.has_alpha:
            return None
        with self._translated_errors(self._devices):
            device = self._devices[0]
            return device.call(
                reduction.mean_squared_error, device, self._cache, first.pixels, second.pixels
            )

    @contextmanager
    def _translated_errors(self, devices: Sequence[GpuContext]) -> Iterator[None]:
        """Translate CUDA's errors for the user; close everything if a device is lost."""
        try:
            yield
        except devices[0].cuda.Error as error:
            if not any(device.lost for device in devices):
                raise DeviceUnavailable(
                    f"The GPU cannot do this: {error}.", "Choose another level, or CPU."
                ) from error
            self._lost = True
            self.close()
            raise DeviceUnavailable(f"The GPU stopped with an error: {error}.", _RESTART) from error

    def _filter(
        self,
        devices: Sequence[GpuContext],
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        source, log = request.source, context.log
        samples = self._samples(devices, request, context)
        with log.stage("prepare"):
            parameters = request.step.filter.resolve(samples, request.known)
            log.estimates |= request.step.filter.estimates(request.step.parameters, parameters)
        with log.stage("compile", counted=False):
            context.progress("compile", 0.0)
            runs = [self._prepared(device, request, parameters, level) for device in devices]
            view = self._view(devices[0], request, runs[0].steps[-1].task)
        log.first |= any(step.is_new for run in runs for step in run.steps)
        notices = (step.plan.notice for step in runs[0].steps)
        log.notices += [notice for notice in (*notices, devices[0].results.pop_notice()) if notice]
        limit = request.options.memory_limit or self.memory_limit
        output, runs = slabs.apply(runs, source, limit, context, view)
        with log.stage("convert"):
            if source.kind is Kind.PICTURE:
                request.step.filter.carry_alpha(
                    source.planes, output, request.step.parameters, request.step.border
                )
            result = source.like(output, finite=self._is_finite(runs, output))
            # The card's copy lacks the carried-over alpha, and its voxels are not rounded.
            same = isinstance(result, Image) and not result.has_alpha
            resident = devices[0].resident
            devices[0].call(resident.rename, output, result.pixels if same else None)
        log.metrics += metrics(runs)
        log.launch = max(runs, key=lambda run: run.kernel_seconds).report
        return result

    def _samples(
        self, devices: Sequence[GpuContext], request: Request, context: RunContext
    ) -> NDArray[Any] | Components:
        """Return the source as the filter looks at it before the run, brought to one card."""
        source = request.source
        if len(devices) > 1 or request.options.memory_limit or self.memory_limit:
            return source.components
        return devices[0].call(components.known_by, devices[0], self._cache, source, context.log)

    def _prepared(
        self, device: GpuContext, request: Request, parameters: Mapping[str, Any], level: Level
    ) -> DeviceRun:
        options = request.options
        steps = device.call(self._steps, device, request, parameters, level)
        run = DeviceRun(device, self._cache, steps, options.repeat, options.cold, request.timed)
        if run.is_measured:
            device.call(hold_cubin, self._cache, device)
        return run

    def _is_finite(self, runs: Sequence[DeviceRun], output: NDArray[Any]) -> bool:
        """Return whether floats are known to be finite, from the cards, which look sooner."""
        if output.dtype.kind != "f" or output.nbytes < reduction.LOOK_BYTES:
            return False
        if all(run.is_finite for run in runs):
            return True
        device = runs[0].device
        return bool(device.call(reduction.is_finite, device, self._cache, output))

    def _view(self, device: GpuContext, request: Request, task: CudaTask) -> ReducedView | None:
        """Return the reduction of the result on the card, if the request has one.

        Alpha comes back on the host only, and weights colours: that is reduced there.
        """
        shape = task.output_shape
        if request.reduction == 1 or shape[-1] in (2, 4):
            return None
        return device.call(
            ReducedView.prepare, device, self._cache, shape, task.dtype, request.reduction
        )

    def _steps(
        self, device: GpuContext, request: Request, parameters: Mapping[str, Any], level: Level
    ) -> list[PreparedFilter]:
        """Return the filters to run, one after the other, each with its plan and its kernels.

        The device keeps those whose plans it keeps: they are the same for the next picture.
        """
        step, source = request.step, request.source
        where = source.shape, source.dtype, step.border, level.id, request.options.block
        to_grey = step.grey and not source.is_grey
        key = executor.plan_key(step.filter, parameters, self._cache, ("steps", to_grey, where))
        kept: list[PreparedFilter] | None = device.kept(key)
        if kept is None:
            kept = self._planned(device, request, parameters, level)
            if all(each.is_kept for each in kept):
                device.keep(key, kept)
        return kept

    def _planned(
        self, device: GpuContext, request: Request, parameters: Mapping[str, Any], level: Level
    ) -> list[PreparedFilter]:
        shape, dtype = request.source.shape, request.source.dtype
        *before, last = request.passes()
        todo = [(each, self.levels(each.filter)[-1].id, None) for each in before]
        chosen = (last._replace(parameters=parameters), level.id, request.options.block)
        steps = []
        for (spec, values, border), at, block in (*todo, chosen):
            output_shape = spec.output_shape(shape, values, border)
            task = CudaTask(shape, output_shape, dtype, values, border, at, block)
            steps.append(executor.prepare(spec, task, device, self._cache))
            shape = output_shape
        return steps

    def _open(self) -> list[GpuContext]:
        if self._lost:
            raise DeviceUnavailable("The GPU stopped with an error earlier.", _RESTART)
        devices = self._devices  # one look: `close` may replace it
        if len(devices) == len(self.ordinals):
            return devices
        with self._opening:
            for ordinal in self.ordinals[len(self._devices) :]:
                from kernelscope.backends.cuda.card import GpuContext

                self._devices.append(GpuContext(ordinal))
                _logger.info("opened GPU %d, %s", ordinal, self._devices[-1].handle.name())
            return self._devices

    def close(self) -> None:
        with self._opening:
            devices, self._devices = self._devices, []
            close_all(devices)


# Memory of the card that others own ----------------------------------------------------
#
# An address is lent for the time of a call. Its owner may have work of its own under way on it, on
# any stream of the device, and its pool may give out memory that such work still uses: everything
# that was begun on the device is waited for first. When a call returns, its result is there.


def _when_idle(device: GpuContext, work: Callable[[], Any]) -> Any:
    """Do some work when the device has done all that was begun on it; on its thread."""
    device.cuda.Context.synchronize()
    return work()


def _apply(run: DeviceRun, source: int, target: int, context: RunContext) -> None:
    """Filter the picture at an address into memory at another one; on the device's thread.

    Raises `OutOfMemory` if there is too little memory for the other needs of the kernels.
    """
    device = run.device
    run.token = context.token
    run.report_progress = lambda fraction: context.progress("kernel", fraction)
    device.cuda.Context.synchronize()
    try:
        executor.filter_rows(run, None, source, target)
    except device.cuda.MemoryError as error:
        raise OutOfMemory(
            "The GPU has too little free memory to filter an array that lies on it.",
            "Free other arrays, or copy it to the host first: it is filtered in strips then.",
        ) from error
    finally:
        run.free()
