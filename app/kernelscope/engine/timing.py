"""Stages of a run, their durations, the time left, and how a GPU launched its kernel."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_STEADY = 2.0  # no estimate is shown before a stage has lasted this many seconds


NOTABLE_EXCESS = 0.05  # share of a time from which on it is an upper bound: repeats differ by less


@dataclass(frozen=True)
class StagePart:
    """A piece of a stage that overlapped other stages."""

    device: int  # number of the GPU
    start: float  # seconds from the start of the run
    seconds: float


@dataclass(frozen=True)
class KernelTime:
    """How long one of several kernels of a stage took."""

    name: str  # of the function in the filter's ``.cu``
    seconds: float  # the median, where there were several repeats
    repeats: tuple[float, ...] = ()  # every repetition, where there were several


def added_up(kernels: Iterable[KernelTime]) -> tuple[KernelTime, ...]:
    found: dict[str, list[KernelTime]] = {}
    for kernel in kernels:
        found.setdefault(kernel.name, []).append(kernel)
    return tuple(
        KernelTime(
            name,
            sum(kernel.seconds for kernel in alike),
            tuple(map(sum, zip(*(kernel.repeats for kernel in alike), strict=True))),
        )
        for name, alike in found.items()
    )


class Stage(NamedTuple):  # made ten times a run: a frozen dataclass takes six times as long
    """A named part of a run and how long it took."""

    name: str
    """``prepare``, ``compile``, ``compute``, ``convert``, ``judge``; on a GPU also ``allocate`` and
    ``free`` (device memory), ``upload``, ``kernel``, ``hand over`` (parts that the host copies to
    the card between kernels), ``launch`` (the rest of the time for starting kernels) and
    ``download``, ``slabs``, where these overlap, ``warm-up``, which goes before the measured part,
    ``other repeats`` of a measured run, and ``repeat``: launches that the host queued too slowly to
    be measured, so that they were done again. Short kernels are waited for during the download,
    which is without their time."""
    seconds: float  # Wall-clock time, or device time between events for ``kernel``
    counted: bool = True
    """False for stages that are reported separately and are in no total, such as compiling."""
    repeats: tuple[float, ...] = ()
    """Every repetition, where there were several; `seconds` is their median."""
    overlapped: bool = False
    """True for stages within ``slabs``, which is counted: they ran at the same time, so that their
    sum exceeds it. With several devices the figures are those of the busiest one."""
    start: float = 0.0
    """When it began, in seconds from the start of the run. Kernels begin when the card does:
    *launch* begins before *kernel* and encloses it. Of several repeats it is the first."""
    parts: tuple[StagePart, ...] = ()
    """Where the stage overlapped others: its pieces, on each of the devices."""
    kernels: tuple[KernelTime, ...] = ()
    """The time of each kernel, where stage ``kernel`` has several."""
    excess: float = 0.0
    """The most seconds of it in which a GPU may have waited for the host to start kernels."""

    @property
    def is_upper_bound(self) -> bool:
        """Whether it may have taken a good deal less than `seconds`."""
        return self.excess > NOTABLE_EXCESS * self.seconds


@dataclass(frozen=True)
class Repeats:
    totals: tuple[float, ...]  # the counted stages of each repeat
    computing: tuple[float, ...]
    """The kernels of a GPU in each repeat, or its stage *compute* on the CPU."""


class Metric(NamedTuple):
    name: str
    """``effective rate`` (bytes that had to be read and written / kernel time), ``arithmetic rate``
    (operations / kernel time), ``copy rate`` (the rate of a copy on the card reaches, read +
    written) and ``peak rate`` (operations at most)."""
    value: float
    unit: str  # ``B/s`` or ``op/s``


class TimeLeft:
    """Estimates the time left in a stage from its progress."""

    def __init__(self) -> None:
        self._stage = ""
        self._start = (0.0, 0.0)

    def describe(self, stage: str, fraction: float) -> str:
        """Return text like ``, 12 s left``; empty until there is an estimate.

        - `stage`: a new name, or a fraction of 0, restarts the estimate.
        - `fraction`: how much of it is done, 0 to 1.
        """
        now = time.monotonic()
        if stage != self._stage or fraction == 0:
            self._stage, self._start = stage, (now, fraction)
        since, begun_at = self._start  # a stage may begin with a part that went fast
        elapsed = now - since
        if elapsed < _STEADY or fraction <= begun_at:
            return ""
        return f", {left(elapsed * (1 - fraction) / (fraction - begun_at))}"


def left(seconds: float) -> str:
    """Return ``12 s left`` or ``3 min left``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s left"
    return f"{round(seconds / 60)} min left"


@dataclass(frozen=True)
class Resources:
    registers: int  # for each thread
    spill_bytes: int  # stores and loads of registers that did not fit, for each thread
    stack_bytes: int  # local memory of each thread
    # Static shared memory of a block, constant bank of the module.
    shared_bytes: int
    constant_bytes: int


@dataclass(frozen=True)
class LaunchReport:
    filter_id: str
    kernel: str
    # Blocks and threads of a block, in x and y (and z).
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int  # dynamic shared memory of a block
    resources: Resources | None  # None if the compiler's log does not state them
    occupancy: float | None
    """Theoretical: resident warps / maximum of warps of a multiprocessor. None if the driver does
    not report it."""
    compiler: str = ""  # compiler of the kernel: ``nvcc 13.0 through PyCUDA``
