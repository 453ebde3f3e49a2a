"""Runs the CPU passes of a filter, band by band."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from app import filters
from app.engine.backend import Availability, Fact, FactGroup
from app.engine.control import CancelToken, Progress
from app.engine.image import Image
from app.engine.request import Request
from app.engine.timing import Stopwatch
from app.filters.spec import SERIAL, Border, CpuPass, FilterSpec, FilterTask, Level
from app.machine import cpu_name

_FIRST_BAND = 16
"""Rows of the first band of each thread; later bands are sized from its speed."""

_BAND_SECONDS = 0.05
"""Aim for the duration of a band: a tenth of the time in which Cancel has to work."""


def core_count() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CpuBackend:
    """The host's processor: one thread for *serial*, all cores for the other levels."""

    id = "cpu"
    name = "CPU"

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or core_count()
        self._pool: ThreadPoolExecutor | None = None

    def availability(self) -> Availability:
        cores = f"{self._threads} core" + "s" * (self._threads > 1)
        return Availability(True, f"{platform.processor() or platform.machine()}, {cores}")

    def facts(self) -> Iterator[FactGroup]:
        yield FactGroup(
            "Processor",
            (
                Fact("Name", cpu_name()),
                Fact("Architecture", platform.machine()),
                Fact("Cores that this process may use", str(core_count())),
                Fact("Threads at level parallel", str(self._threads)),
            ),
        )

    def load(self) -> tuple[Fact, ...]:
        return ()

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.cpu_levels

    def run(
        self,
        request: Request,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> Image:
        image = request.image
        if request.grey and not image.is_grey:
            grey = filters.get("greyscale")
            pixels = self._filter(
                grey,
                image.planes,
                grey.defaults(),
                Border.REFLECT,
                level,
                stopwatch,
                token,
                progress,
            )
            image = Image.from_array(pixels, image.title)
        pixels = self._filter(
            request.filter,
            image.planes,
            dict(request.parameters),
            request.border,
            level,
            stopwatch,
            token,
            progress,
        )
        with stopwatch.stage("convert"):
            return Image.from_array(pixels, image.title)

    def _filter(
        self,
        spec: FilterSpec,
        source: np.ndarray[Any, Any],
        parameters: dict[str, Any],
        border: Border,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> np.ndarray[Any, Any]:
        """Return ``spec`` applied to `source`, shape (height, width, channels)."""
        with stopwatch.stage("prepare"):
            output = np.empty(spec.output_shape(source.shape, parameters, border), source.dtype)
            task = FilterTask(source, output, parameters, border, level.id)
            passes = spec.plan_cpu(task)
        with stopwatch.stage("compile", counted=False):
            progress("compile", 0.0)
            for sweep in passes:
                token.check()
                sweep.kernel.compile(*sweep.arguments, 0, 0)
        with stopwatch.stage("compute"):
            threads = 1 if level == SERIAL else self._threads
            for number, sweep in enumerate(passes):
                self._sweep(sweep, threads, token, progress, number / len(passes), 1 / len(passes))
        with stopwatch.stage("convert"):
            if source.shape[2] in (2, 4):
                radius = spec.radius(parameters) if border is Border.VALID else 0
                height, width = output.shape[:2]
                output[:, :, -1] = source[radius : radius + height, radius : radius + width, -1]
        return output

    def _sweep(
        self,
        sweep: CpuPass,
        threads: int,
        token: CancelToken,
        progress: Progress,
        done: float,
        share: float,
    ) -> None:
        """Run one pass; threads take the next band when they finish one."""
        lock = threading.Lock()
        next_row = 0
        finished_rows = 0

        def work(report: bool) -> None:
            nonlocal next_row, finished_rows
            band = _FIRST_BAND
            most = max(_FIRST_BAND, -(-sweep.rows // (4 * threads)))
            while not token.cancelled:
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
                    progress("compute", done + share * finished_rows / sweep.rows)

        helpers = [self._executor().submit(work, False) for _ in range(threads - 1)]
        try:
            work(True)
        finally:
            for helper in helpers:
                helper.result()
        token.check()

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max(1, self._threads - 1), "kernelscope-cpu")
        return self._pool

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
