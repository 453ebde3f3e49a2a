"""Runs the CPU passes of a filter, band by band.

The rows of a pass are cut into bands that take about 50 ms, so that Cancel works soon and progress
moves. Level *parallel* gives every thread the next band until none are left::

    rows     0 |-- band --|-- band --|-- band --|-- ...
    thread       1          2          1 (it was ready first)
"""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.machine import cpu_name
from kernelscope.base.parallel import core_count
from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Pass, Request
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.levels import Level

_BAND_SECONDS = 0.05
"""Intended duration of a band: a small part of the second in which Cancel has to work."""

_POLL_SECONDS = 0.05  # how often the cancel token is checked while the compiler runs


_logger = logging.getLogger(__name__)


def _finish(done: Pass, source: NDArray[Any], output: NDArray[Any]) -> None:
    """Set the alpha channel of `output` and lock it, or Numba would compile again for it."""
    done.filter.carry_alpha(source, output, done.parameters, done.border)
    output.flags.writeable = False


def _signature(sweep: CpuPass) -> Hashable:
    """Return a key of the kernel of a pass and of the types that Numba compiles it for."""
    return sweep.kernel, tuple(map(_kind, sweep.arguments))


def _kind(value: Any) -> object:
    """Return the same for values of one Numba type; `numba.typeof` takes ten times as long."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num & _OF_THE_TYPE
        if flags & _C_CONTIGUOUS:  # a line is contiguous in both ways
            flags &= ~_F_CONTIGUOUS
        return value.dtype, value.ndim, flags
    if isinstance(value, tuple):
        return type(value), tuple(map(_kind, value))
    return type(value)


def _is_constant(value: Any) -> bool:
    """Return whether there is no array in a value, or only such as nobody can write to."""
    if isinstance(value, np.ndarray):
        return not value.flags.writeable and not isinstance(value.base, np.ndarray)
    return not isinstance(value, tuple | list) or all(map(_is_constant, value))


_C_CONTIGUOUS, _F_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400  # as NumPy's headers

_OF_THE_TYPE = _C_CONTIGUOUS | _F_CONTIGUOUS | _ALIGNED | _WRITEABLE
"""Flags of arrays that Numba's types have."""


class CpuBackend:
    """The host's processor: one thread for *serial* and its variants, all cores for *parallel*.

    Several threads may call `run` at once; they share the cores.
    """

    id = Device.CPU.value
    name = "CPU"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or core_count()
        self._pool: ThreadPoolExecutor | None = None
        self._compiler: ThreadPoolExecutor | None = None
        self._opening = threading.Lock()
        self._compiled: dict[Hashable, Callable[..., Any]] = {}
        """The code of kernels, by the types that it is compiled for."""
        self._ordered: set[Hashable] = set()
        """Kernels that are compiled while live runs do without."""
        self._failed: set[Hashable] = set()
        """Kernels of which that failed, where another method stands in: runs say why."""
        self.on_ready: Callable[[str], None] | None = None
        """Called with the filter's name, on any thread, when the code is ready that live runs did
        without, or a run has to say why it is not. None: they wait for it."""

    def availability(self) -> Availability:
        cores = f"{self.threads} core" + "s" * (self.threads > 1)
        return Availability(True, f"{cpu_name()}, {cores}")

    def facts(self) -> Iterator[FactGroup]:
        yield FactGroup(
            "Processor",
            (
                Fact("Name", cpu_name()),
                Fact("Architecture", platform.machine()),
                Fact("Cores that this process may use", str(core_count())),
                Fact("Threads at level parallel", str(self.threads)),
            ),
        )

    def load(self) -> tuple[Fact, ...]:
        return ()

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels(self.id)

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        last, pixels, filtered = self._passed(request, request.source.planes, level, context)
        with context.log.stage("convert"):
            _finish(last, pixels, filtered)
            return request.target.like(filtered)

    def filtered(
        self, request: Request, pixels: NDArray[Any], level: Level, context: RunContext
    ) -> NDArray[Any]:
        """Return the planes that the passes of a request make, of any type and without alpha."""
        return self._passed(request, pixels, level, context)[2]

    def _passed(
        self, request: Request, pixels: NDArray[Any], level: Level, context: RunContext
    ) -> tuple[Pass, NDArray[Any], NDArray[Any]]:
        """Return the last pass of a request, its source, and its output without alpha."""
        *before, last = request.passes()
        for each in before:
            coloured, pixels = pixels, self._filter(each, pixels, level, context, request)
            with context.log.stage("convert"):
                _finish(each, coloured, pixels)
        return last, pixels, self._filter(last, pixels, level, context, request)

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        return None

    def compute(self, spec: FilterSpec, task: CpuTask, threads: int) -> bool:
        """Compute a task of a few milliseconds, which is neither logged nor cancelled.

        Return False, with nothing done, if a kernel is not compiled yet. Alpha is not set.
        """
        passes = spec.implementation(Cpu).plan(task)
        codes = [self._compiled.get(_signature(sweep)) for sweep in passes]
        if None in codes:
            return False
        for sweep, code in zip(passes, codes, strict=True):
            assert code is not None
            if threads == 1:
                code(*sweep.arguments, 0, sweep.rows)
            else:
                self._share(sweep, code, min(threads, self.threads))
        spec.keep_rim(task.source, task.output, task.parameters, task.border)
        return True

    def code_of(
        self, spec: FilterSpec, task: CpuTask
    ) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        """Return compiled code and its arguments after source and output, for all tasks like this.

        None if it takes more than one pass, or one that writes to an array of its own.
        """
        passes = spec.implementation(Cpu).plan(task)
        first = passes[0]
        code = self._compiled.get(_signature(first))
        source, output, *others = first.arguments
        is_all = len(passes) == 1 and source is task.source and output is task.output
        if not is_all or code is None or task.border is Border.KEEP or not _is_constant(others):
            return None
        return code, (*others, 0, first.rows)

    def _share(self, sweep: CpuPass, code: Callable[..., Any], threads: int) -> None:
        """Run a short pass; threads that are late find no rows left."""
        rows = -(-sweep.rows // (2 * threads))
        starts = iter(range(0, sweep.rows, rows))

        def work() -> None:
            for start in starts:  # `next` of a range is atomic
                code(*sweep.arguments, start, min(start + rows, sweep.rows))

        helpers = [self._executor().submit(work) for _ in range(threads - 1)]
        work()
        for helper in helpers:
            if not helper.cancel():
                helper.result()

    def _filter(
        self,
        wanted: Pass,
        source: NDArray[Any],
        level: Level,
        context: RunContext,
        request: Request,
    ) -> NDArray[Any]:
        """Return the output of one of a request's passes over the planes of an image or a scan.

        The alpha channel of the output is not set yet.
        """
        spec, parameters, border = wanted
        with context.log.stage("prepare"):
            shape = spec.output_shape(source.shape, parameters, border)
            box = request.region if isinstance(request.region, Box) else None
            if box is not None:
                shape = (*box.sides, *shape[3:])
            output = np.empty(shape, source.dtype)
            given, parameters = parameters, request.resolved or spec.resolve(source, parameters)
            context.log.estimates |= spec.estimates(given, parameters)
            task = CpuTask(source, output, parameters, border, level.id, request.origin, box)
            compiled = spec.implementation(Cpu).plan(task)
            passes: Sequence[CpuPass] = ()
            implementation = spec.implementation(Cpu)
            accepted = request.stand_in is not None or not implementation.stand_in
            if accepted and not self._may_wait(compiled, request):
                passes = implementation.uncompiled(task)
        if passes:
            context.log.uncompiled, context.log.stand_in = True, implementation.stand_in
        else:
            passes = compiled
            with context.log.stage("compile", counted=False):
                self._compile(passes, context)
        with context.log.stage("compute"):
            done, total = 0.0, sum(sweep.cost for sweep in passes)
            for sweep in passes:
                part = sweep.cost / total
                self._sweep(sweep, done, part, level, context)
                done += part
            spec.keep_rim(source, output, parameters, border)
        if passes is not compiled:
            self._order(spec.name, compiled, stood_in=bool(implementation.stand_in))
        return output

    def _may_wait(self, passes: Sequence[CpuPass], request: Request) -> bool:
        """Return whether a run has its code, or waits for it."""
        if self.on_ready is None or not request.live:
            return True
        signatures = {_signature(sweep) for sweep in passes}
        return signatures <= self._compiled.keys() or bool(signatures & self._failed)

    def _order(self, name: str, passes: Sequence[CpuPass], *, stood_in: bool) -> None:
        """Have the code of passes compiled, or loaded, for the runs to come."""
        wanted = {_signature(sweep) for sweep in passes}
        if wanted <= self._ordered:
            return
        self._ordered |= wanted
        # Views, as the output is about to be locked, which would be another type.
        kept = [
            replace(
                sweep,
                arguments=tuple(
                    each.view() if isinstance(each, np.ndarray) else each
                    for each in sweep.arguments
                ),
            )
            for sweep in passes
        ]

        def prepare() -> None:
            try:
                self._compile_all(kept, RunContext())
            except Exception:
                _logger.exception("The code of %s could not be compiled", name)
                if not stood_in:
                    return  # NumPy goes on in its place
                self._failed |= wanted
            if self.on_ready is not None:
                self.on_ready(name)

        self._compiling_thread().submit(prepare)

    def _compile(self, passes: Sequence[CpuPass], context: RunContext) -> None:
        """Compile the kernels, or load them from the disk cache.

        On a separate thread, because a compiler cannot be interrupted: after a cancel it
        continues, the next run waits for it, and its work is not lost.
        """
        context.token.check()
        context.progress("compile", 0.0)
        if all(_signature(sweep) in self._compiled for sweep in passes):
            return  # handing it to the thread takes longer than many a kernel
        compiling = self._compiling_thread().submit(self._compile_all, passes, context)
        while not wait([compiling], timeout=_POLL_SECONDS).done:
            context.token.check()
        compiling.result()

    def _compile_all(self, passes: Sequence[CpuPass], context: RunContext) -> None:
        for sweep in passes:
            context.token.check()
            bands = (*sweep.arguments, 0, 0)
            context.log.first |= sweep.kernel.compile(*bands)
            self._compiled[_signature(sweep)] = sweep.kernel.entry(*bands)

    def _compiling_thread(self) -> ThreadPoolExecutor:
        with self._opening:
            if self._compiler is None:
                self._compiler = ThreadPoolExecutor(1, "kernelscope-compile")
            return self._compiler

    def _sweep(
        self, sweep: CpuPass, done: float, share: float, level: Level, context: RunContext
    ) -> None:
        """Run one pass; threads take the next band when they finish one."""
        threads = 1 if level.single else self.threads
        lock = threading.Lock()
        next_row = 0
        finished_rows = 0

        def work(report: bool) -> None:
            nonlocal next_row, finished_rows
            # How long a row takes is unknown until the first is done, and it may be long.
            band = 1
            most = -(-sweep.rows // (4 * threads))
            while not context.token.cancelled:
                with lock:
                    start = next_row
                    stop = next_row = min(start + band, sweep.rows)
                if start == stop:
                    return
                begin = time.perf_counter()
                sweep.kernel(*sweep.arguments, start, stop)
                seconds = max(time.perf_counter() - begin, 1e-6)
                band = max(1, min(most, int((stop - start) * _BAND_SECONDS / seconds)))
                with lock:
                    finished_rows += stop - start
                if report:
                    context.progress("compute", done + share * finished_rows / sweep.rows)

        def work_or_stop_all(report: bool) -> None:
            nonlocal next_row
            try:
                work(report)
            except BaseException:
                with lock:
                    next_row = sweep.rows
                raise

        helpers = [self._executor().submit(work_or_stop_all, False) for _ in range(threads - 1)]
        try:
            work_or_stop_all(True)
        finally:
            # Those still queued wait for threads that work for another request: no rows are left.
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
        context.token.check()
        context.progress("compute", done + share)  # helpers may have done the last rows, or all

    def _executor(self) -> ThreadPoolExecutor:
        with self._opening:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max(1, self.threads - 1), "kernelscope-cpu")
            return self._pool

    def close(self) -> None:
        for pool in (self._pool, self._compiler):
            if pool is not None:
                pool.shutdown(cancel_futures=True)  # code that was ordered ahead takes seconds
        self._pool = self._compiler = None
