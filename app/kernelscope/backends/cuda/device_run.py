"""State of a run on one device, the filters that it applies, their pace, and their reports.

A `Pacer` cuts long launches into pieces, so that the display and Cancel never wait long. A launch
is a number of rows, each of which takes a number of steps of the kernel's outer loop. Its first
piece is small enough for any card; the time of each piece decides the size of the next::

    rows   0 ┌───────┬───────┬──────────────
             │ pilot │ piece │ piece …         first all rows of a step, in pieces of whole tiles,
           n └───────┴───────┴──────────────   then several steps of all rows at once
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin, CubinCache, resources
from kernelscope.engine.context import RunLog
from kernelscope.engine.control import CancelToken
from kernelscope.engine.timing import NOTABLE_EXCESS, KernelTime, LaunchReport, Metric
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch

LAUNCH_SECONDS = 0.05  # no launch should take longer: the display's watchdog and Cancel wait for it

PILOT_OPERATIONS = 2e9
"""Work of a launch that takes well under `LAUNCH_SECONDS` on any supported card."""

MOST_BLOCKS = 65_535  # of a grid along y or z, on every card


@dataclass(frozen=True)
class Piece:
    """Output rows ``start <= y < stop``, and steps of the kernel's outer loop, of a launch."""

    start: int
    stop: int
    first_step: int
    last_step: int

    @property
    def units(self) -> int:
        return (self.stop - self.start) * (self.last_step - self.first_step)


class Pacer:
    """Cuts a launch into pieces of about half of `LAUNCH_SECONDS`.

    The first piece has the `units` that an earlier run of the same launch found out, or is small
    enough for any card; its time decides about the others, also those of later repeats and slabs.
    Its unit is a step of one row. A piece has more than one step only if there is time for all
    rows, so that it has as many blocks as can be: those of a grid.
    """

    def __init__(
        self, launch: Launch, operations_per_row: float, units: float | None = None
    ) -> None:
        self._tile = launch.tile[-1] if launch.tile else 1
        self._most = MOST_BLOCKS * self._tile if launch.tile else sys.maxsize
        self._steps = max(launch.steps, 1)
        self._at_once = launch.steps_at_once or self._steps
        if units is None:
            units = PILOT_OPERATIONS / max(operations_per_row / self._steps, 1)
            units = units if launch.tile else units / 64  # one block uses a fraction of the card
        self.units = units

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """Yield the launches that together cover rows `first` to `last` and all steps."""
        step = 0
        while step < self._steps:
            count = int(self.units) // (last - first)
            after = step + max(1, min(count, self._at_once, self._steps - step))
            start = first
            while start < last:
                whole_tiles = int(self.units) // self._tile * self._tile
                stop = last if count else min(start + max(whole_tiles, self._tile), last)
                stop = min(stop, start + self._most)
                yield Piece(start, stop, step, after)
                start = stop
            step = after

    def is_one_piece(self, rows: int, seconds: float) -> bool:
        """Return whether some rows and all steps are one piece that should take no longer."""
        is_short = rows * self._steps * LAUNCH_SECONDS / 2 <= seconds * self.units
        return is_short and rows <= self._most and self._steps <= self._at_once

    def learn(self, units: int, seconds: float) -> None:
        """Note how long a launch of `units` took, unless it was but a remainder."""
        if 2 * units >= self.units:
            self.units = units * LAUNCH_SECONDS / 2 / max(seconds, 1e-6)


class Workspace:
    """Device memory that a run needs on the way, kept from one slab to the next.

    `keep` is the key of the source that has to stay on the card. `stage` returns a context that
    times its block under a name: ``allocate``, ``free``.
    """

    def __init__(
        self, device: GpuContext, stage: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self.keep: object = None
        self._device, self._stage = device, stage
        self._kept: dict[Hashable, tuple[Any, int]] = {}

    def get(self, name: Hashable, size: int) -> int:
        """Return the address of `size` bytes or more, the same ones for a name while they do."""
        allocation, there = self._kept.pop(name, (None, 0))
        if allocation is None or there < size:
            if allocation is not None:
                with self._stage("free"):
                    self._device.free(allocation)
            with self._stage("allocate"):
                allocation, there = self._device.allocate(size, self.keep), size
        self._kept[name] = allocation, there
        return int(allocation)

    def free(self) -> None:
        """Free everything, unless the context is lost: its allocations must not be touched."""
        if self._kept and not self._device.lost:
            with self._stage("free"):
                self._device.free(*(allocation for allocation, _ in self._kept.values()))
            self._kept.clear()


@dataclass(frozen=True)
class PreparedFilter:
    """A filter to apply to the image on the card, ready to be launched."""

    spec: FilterSpec
    task: CudaTask
    radius: int  # rows that it needs above and below; all of them if `whole`
    whole: bool
    plan: CudaPlan
    cubins: tuple[Cubin, ...]  # one for each launch of the plan
    is_new: bool = False  # the device had not loaded all of them before
    is_kept: bool = False  # the device keeps it for later runs

    def done(self, number: int, fraction: float) -> float:
        """Return how much of the work is done when a part of launch `number` is."""
        work = [launch.operations_per_sample for launch in self.plan.launches]
        return (sum(work[:number]) + work[number] * fraction) / sum(work)


@dataclass
class DeviceRun:
    """State and results of one device during a run.

    `workspace` is the memory that the launches allocate, `spare` that which only measuring needs,
    whose allocation is in no stage. The caller of `filter_rows` frees both: `free`.
    """

    device: GpuContext
    cache: CubinCache
    steps: Sequence[PreparedFilter]
    repeat: int = 1
    cold: bool = False
    timed: bool = False  # it is one of several repeats that are runs of their own
    token: CancelToken = field(default_factory=CancelToken)
    report_progress: Callable[[float], None] = lambda fraction: None
    """Progress callback: fraction of the kernels' work on the current rows that is done."""
    log: RunLog = field(default_factory=RunLog)
    report: LaunchReport | None = None
    longest: tuple[str, float] = ("", 0.0)
    excess: float = 0.0
    """Most seconds for which the card may have waited for the host while kernels were timed."""
    busy_seconds: float = 0.0
    """How long the card ran timed kernels, every repeat and every launch of a batch."""
    is_finite: bool = False  # all floats of the slabs were looked at and are finite
    may_read_later: bool = False
    """Times of short launches may be read after the download that is waited for behind them."""
    unread: list[Callable[[], None]] = field(default_factory=list)
    """For each step whose times were not read: notes them once its launches are over."""
    batch: int = 1  # launches between two events of the kernel that did the most
    kernel_seconds: float = 0.0
    kernel_bytes: float = 0.0
    kernel_operations: float = 0.0

    def __post_init__(self) -> None:
        self.workspace = Workspace(self.device, lambda name: self.log.stage(name))
        self.spare = Workspace(self.device, lambda name: nullcontext())
        self.pacers: dict[Hashable, Pacer] = {}
        self.warm: set[str] = set()

    @property
    def is_measured(self) -> bool:
        """Whether its times are to be compared: the card is held until launches are queued."""
        return self.timed or self.cold or self.repeat > 1

    def note_kernels(
        self,
        step: PreparedFilter,
        taken: Sequence[Sequence[float]],
        samples: int,
        begun: float | None,
        excess: float,
    ) -> None:
        """Add the stage of the kernels of a step, and count their traffic and arithmetic.

        - `taken`: seconds of each kernel in each repeat.
        - `samples`: how many they worked on.
        - `begun`: when the first one began, by `time.perf_counter`.
        - `excess`: most seconds of these for which the card may have waited for the host.
        """
        totals = tuple(map(sum, zip(*taken, strict=True)))
        several = len(totals) > 1
        seconds = statistics.median(totals) if several else totals[0]
        kernels: tuple[KernelTime, ...] = ()
        if len(taken) > 1:
            kernels = tuple(
                KernelTime(planned.kernel, statistics.median(times), tuple(times) * several)
                for planned, times in zip(step.plan.launches, taken, strict=True)
            )
        self.log.add(
            "kernel",
            seconds,
            repeats=totals if several else (),
            begun=begun,
            excess=excess / len(totals),
            kernels=kernels,
        )
        self.kernel_seconds += seconds
        for planned in step.plan.launches:
            self.kernel_bytes += planned.bytes_per_sample * samples
            self.kernel_operations += planned.operations_per_sample * samples

    def note_longest(
        self,
        step: PreparedFilter,
        taken: Sequence[Sequence[float]],
        report_of: Callable[[int], tuple[LaunchReport, int]],
    ) -> None:
        """Keep the report of the kernel that took longest in the last step.

        `report_of` returns the report of a kernel by its number, and the launches timed together.
        """
        times = [sum(each) for each in taken]
        number = times.index(max(times))
        # A strip of rim rows alone says little of the step that other strips belong to as well.
        if self.longest[0] != step.spec.id or self.longest[1] <= times[number]:
            self.longest = step.spec.id, times[number]
            self.report, self.batch = report_of(number)

    def free(self) -> None:
        """Free the memory of the launches, and let go of the image.

        The run refers to itself, so that it lives until garbage is collected: the image, and its
        copy on the card, would as well.
        """
        if not self.device.lost:  # events of a lost context go once PyCUDA knows of it
            self.unread.clear()
        self.workspace.free()
        self.spare.free()
        self.workspace.keep = self.spare.keep = None

    def restart(self, origin: float) -> None:
        """Discard the results of a failed attempt; the run started at `origin`."""
        self.log = RunLog(origin)
        self.kernel_seconds = self.kernel_bytes = self.kernel_operations = self.excess = 0.0
        self.longest = ("", 0.0)
        self.workspace.keep = self.spare.keep = None


@dataclass(frozen=True)
class RowPlace:
    """Where the rows of source and output are on the card, and which they are."""

    source: int
    target: int
    first: int
    last: int
    source_row: int
    source_rows: int
    all_rows: int  # of the output
    is_whole: bool  # not a strip
    hardware_border: bool


def metrics(runs: Sequence[DeviceRun]) -> list[Metric]:
    """Return the metrics of all launches, of devices that worked at the same time.

    Rates of kernels are left out where the time of the kernels is an upper bound.
    """
    seconds = max(1e-9, *(run.kernel_seconds for run in runs))
    found = []
    if not any(run.excess > NOTABLE_EXCESS * run.kernel_seconds for run in runs):
        done = sum(run.kernel_bytes for run in runs), sum(run.kernel_operations for run in runs)
        found = [
            Metric("effective rate", done[0] / seconds, "B/s"),
            Metric("arithmetic rate", done[1] / seconds, "op/s"),
        ]
    batch = max(runs, key=lambda run: run.kernel_seconds).batch
    if batch > 1:
        found.append(Metric("batch", batch, "launches"))
    devices = [run.device for run in runs]
    for name, rates, unit in (
        ("copy rate", [_copy_rate(device) for device in devices], "B/s"),
        ("peak rate", [device.peak_rate for device in devices], "op/s"),
    ):
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(rates):
            found.append(Metric(name, sum(known), unit))
    return found


def _copy_rate(device: GpuContext) -> float | None:
    """Return `GpuContext.copy_rate`; once it is known, its thread has no part in it."""
    return device.known_copy_rate or device.call(device.copy_rate)


def launch_report(
    step: PreparedFilter,
    launch: Launch,
    cubin: Cubin,
    grid: tuple[int, ...],
    block: tuple[int, int, int],
    run: DeviceRun,
) -> LaunchReport:
    """Return how a kernel was launched, in blocks of `block`, with the compiler's report."""
    device, threads = run.device, math.prod(block)
    most = device.attribute("MAX_THREADS_PER_MULTIPROCESSOR")
    blocks = device.resident_blocks(cubin, launch.kernel, threads, launch.shared_bytes)
    return LaunchReport(
        step.spec.id,
        launch.kernel,
        grid,
        block[: len(launch.block)],
        launch.shared_bytes,
        resources(cubin.log, launch.kernel),
        None if blocks is None else blocks * threads / most,
        cubin.compiler or run.cache.title,
    )
