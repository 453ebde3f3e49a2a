"""State of a run on one device, and the filters that it applies."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.cuda.cubins import CubinCache
from kernelscope.backends.cuda.pacer import Pacer
from kernelscope.engine.context import RunLog
from kernelscope.engine.control import CancelToken
from kernelscope.engine.launch_report import LaunchReport
from kernelscope.engine.timing import KernelTime
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import CudaPlan, CudaTask


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
    radius: int
    """Rows that it needs above and below; all of them if `whole`."""
    whole: bool
    plan: CudaPlan
    cubins: tuple[Cubin, ...]
    """One for each launch of the plan."""
    is_new: bool = False
    """The device had not loaded all of them before."""
    is_kept: bool = False
    """The device keeps it for later runs."""

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
    timed: bool = False
    """It is one of several repeats that are runs of their own."""
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
    is_finite: bool = False
    """All floats of the slabs were looked at and are finite."""
    may_read_later: bool = False
    """Times of short launches may be read after the download that is waited for behind them."""
    unread: list[Callable[[], None]] = field(default_factory=list)
    """For each step whose times were not read: notes them once its launches are over."""
    batch: int = 1
    """Launches between two events of the kernel that did the most."""
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
