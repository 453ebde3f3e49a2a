"""The emulated GPU as the engine sees it."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.compiler import CubinCache
from kernelscope.backends.cuda.rim import with_rim
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator.compiler import (
    HostCompiler,
    leave_libraries,
    library_cache,
    take_library,
)
from kernelscope.backends.emulator.launch import Memory, run_launch
from kernelscope.backends.emulator.translation import translate
from kernelscope.base.installed import install_command
from kernelscope.base.machine import cpu_name
from kernelscope.base.parallel import core_count
from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Pass, Request
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import CudaTask, Launch, planned
from kernelscope.schema.levels import Level

_NO_TIME = "Emulated on the processor: the time is not that of a GPU."

_MISSING = "No C++ compiler was found to compile the kernels with."


class EmulatorBackend:
    """A GPU that is not there: its kernels run on the processor, on as many cores as `threads`."""

    id = "emulated"
    name = "Emulated GPU"

    def __init__(self, compiler: HostCompiler | None = None, threads: int | None = None) -> None:
        self._given = compiler
        self._threads = threads or core_count()
        self._pools: list[ThreadPoolExecutor] = []
        self._libraries: dict[bytes, ctypes.CDLL] = {}
        self._loading = threading.Lock()

    @functools.cached_property
    def _compiler(self) -> HostCompiler | None:
        return self._given or HostCompiler.find()

    @functools.cached_property
    def _cache(self) -> CubinCache:
        assert self._compiler is not None
        return library_cache(self._compiler)

    def availability(self) -> Availability:
        if self._compiler is None:
            return Availability(False, _MISSING, (f"`{install_command('emulator')}`",))
        return Availability(True, f"{cpu_name()}, kernels compiled by {self._compiler.name}")

    def facts(self) -> Iterator[FactGroup]:
        if self._compiler is not None:
            version = self._compiler.version().partition(" -std")[0]
            yield FactGroup(
                "Emulated GPU",
                (
                    Fact("Compiler", version),
                    Fact("Cores that share the blocks", str(self._threads)),
                ),
            )

    def load(self) -> tuple[Fact, ...]:
        return ()

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels(Device.GPU)

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        pixels = request.source.planes
        *before, last = request.passes()
        for each in before:
            coloured, pixels = (
                pixels,
                self._filter(each, pixels, self.levels(each.filter)[-1], None, context),
            )
            each.filter.carry_alpha(coloured, pixels, each.parameters, each.border)
        output = self._filter(last, pixels, level, request.options.block, context)
        with context.log.stage("convert"):
            last.filter.carry_alpha(pixels, output, last.parameters, last.border)
            output.flags.writeable = False
            return request.source.like(output)

    def _filter(
        self,
        wanted: Pass,
        source: NDArray[Any],
        level: Level,
        block: tuple[int, int] | None,
        context: RunContext,
    ) -> NDArray[Any]:
        """Return the output of one pass; its alpha channel is not set yet."""
        spec, given, border = wanted
        with context.log.stage("prepare"):
            parameters = spec.resolve(source, given)
            context.log.estimates |= spec.estimates(given, parameters)
            shape, dtype = source.shape, source.dtype
            task, plan = planned(spec, shape, dtype, parameters, border, level.id, block)
            plan, files = with_rim(spec, task, plan)
            context.log.notices += [each for each in (plan.notice, _NO_TIME) if each]
        with context.log.stage("compile", counted=False):
            context.progress("compile", 0.0)
            libraries = [
                self._library(file, launch, context)
                for file, launch in zip(files, plan.launches, strict=True)
            ]
        with context.log.stage("compute"):
            memory = Memory.of(task, plan, source)
            work = np.cumsum([0.0, *(each.operations_per_sample for each in plan.launches)])
            for number, (library, launch) in enumerate(zip(libraries, plan.launches, strict=True)):

                def report(part: float, number: int = number) -> None:
                    done = work[number] + part * (work[number + 1] - work[number])
                    context.progress("compute", float(done / work[-1]))

                self._launch(library, launch, task, memory, context.token, report)
        return memory.output

    def _launch(
        self,
        library: ctypes.CDLL,
        launch: Launch,
        task: CudaTask,
        memory: Memory,
        token: CancelToken,
        report: Callable[[float], None],
    ) -> None:
        run_launch(library, launch, task, memory, self._workers(), token, report)

    def _library(self, file: str, launch: Launch, context: RunContext) -> ctypes.CDLL:
        """Return the library of a kernel, compiled or taken from the disk if need be."""
        context.token.check()
        text = translate(read_source(file), launch.defines, launch.kernel)
        code = self._cache.get(launch.kernel, text, "host", {}).code
        with self._loading:
            if code not in self._libraries:
                context.log.first = True
                self._libraries[code] = take_library(code)
            return self._libraries[code]

    def _workers(self) -> list[ThreadPoolExecutor]:
        while len(self._pools) < self._threads - 1:
            self._pools.append(ThreadPoolExecutor(1, f"kernelscope-emulator-{len(self._pools)}"))
        return self._pools

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        return None

    def close(self) -> None:
        pools, self._pools = self._pools, []
        for pool in pools:
            pool.shutdown()
        leave_libraries(self._libraries)
