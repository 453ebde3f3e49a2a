"""Short steps: their launches are queued, and read when the download behind them was waited for.

::

    host    queue: copy, event, launch, event, copy │ wait │ read the events
    card             ├─ copy ─┤ event ├── launch ──┤ event ├─ copy ─┤

Most of such a run is the host's part. So all that is the same for each picture of a shape is made
once, and kept by the device: only addresses are new. Any other step is launched by a `Kernel`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kernelscope.backends.cuda.arguments import geometry, set_constants, upload_tables
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.device_run import DeviceRun, PreparedFilter
from kernelscope.backends.cuda.kernel import Ready, Timed
from kernelscope.backends.cuda.pacer import Pacer
from kernelscope.engine.launch_report import LaunchReport
from kernelscope.schema.launch import Launch

SECONDS = 100e-6
"""Launches that should take no longer are short, by the first guess of `Pacer`, which
overestimates the time on every supported card. A wait of its own takes 10 µs."""


class _Short(NamedTuple):
    launch: Launch
    ready: Ready
    grid: tuple[int, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ShortStep:
    """The launches of a plan on a whole picture."""

    step: PreparedFilter
    launches: tuple[_Short, ...]
    """None of them if the step is not short: if one may take longer than `SECONDS`, or if the host
    has a part in it."""
    scratch: tuple[tuple[str, int], ...] = ()
    """Names and bytes of the buffers."""

    @classmethod
    def of(cls, step: PreparedFilter, device: GpuContext) -> ShortStep | None:
        """Return it for a step that the device keeps; None if it is not short."""
        if not step.is_kept:
            return None
        key = "short", id(step)
        made: ShortStep | None = device.kept(key)
        if made is None:
            made = cls._made(step, device)
            device.keep(key, made)
        return made if made.launches else None

    @classmethod
    def _made(cls, step: PreparedFilter, device: GpuContext) -> ShortStep:
        task, launches = step.task, step.plan.launches
        rows = task.output_shape[0]
        for launch in launches:
            pacer = Pacer(launch, task.busiest_row_samples * launch.operations_per_sample)
            if not launch.is_plain or not pacer.is_one_piece(rows, SECONDS):
                return cls(step, ())
        short = []
        for number, launch in enumerate(launches):
            ready = Ready.of(step, number, device)
            steps = (0, launch.steps) if launch.steps else ()
            numbers = (*geometry(task, 0, rows), *steps)
            grid = launch.grid(task.output_shape)
            short.append(_Short(launch, ready, grid, numbers))
        scratch = ((name, each.size(rows, rows)) for name, each in step.plan.scratch.items())
        return cls(step, tuple(short), tuple(scratch))

    def queue(self, source: int, target: int, run: DeviceRun) -> None:
        """Put the launches on the stream; `read_times` follows once they are over."""
        run.token.check()
        device, stream, begun = run.device, run.device.stream, time.perf_counter()
        name = self.step.spec.id
        scratch = {each: run.workspace.get((name, each), size) for each, size in self.scratch}
        queued = []
        for launch, ready, grid, numbers in self.launches:
            set_constants(launch, ready.module, device)
            tables = upload_tables(launch, name, run) if launch.tables else ()
            events = begin, end = device.take_events()
            queueing = time.perf_counter()
            begin.record(stream)
            ready.function.prepared_async_call(
                grid,
                ready.block,
                stream,
                source,
                target,
                *tables,
                *[scratch[each] for each in launch.scratch],
                *numbers,
                shared_size=launch.shared_bytes,
            )
            end.record(stream)
            queued.append(Timed(events, time.perf_counter() - queueing))
        run.unread.append(lambda: self._read(queued, begun, run))

    def _read(self, queued: Sequence[Timed], begun: float, run: DeviceRun) -> None:
        """Note the times of the launches, the work and the report of the longest."""
        taken, excess = [], 0.0
        for events, queueing in queued:
            begin, end = events
            seconds = float(end.time_since(begin)) * 1e-3
            run.device.give_events(events)
            taken.append([seconds])
            excess += min(queueing, seconds)
        run.excess += excess
        task = self.step.task
        run.note_kernels(
            self.step, taken, task.output_shape[0] * task.busiest_row_samples, begun, excess
        )
        run.note_longest(self.step, taken, lambda number: (self._report(number, run), 1))
        run.report_progress(1.0)

    def _report(self, number: int, run: DeviceRun) -> LaunchReport:
        short = self.launches[number]
        return short.ready.report(short.grid, run)


def read_times(run: DeviceRun) -> float:
    """Note the times of launches that were queued and are over; return their sum."""
    before, unread = run.kernel_seconds, run.unread.copy()
    run.unread.clear()
    for read in unread:
        read()
    return run.kernel_seconds - before
