"""Wall-clock stages of a run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

_STEADY = 2.0
"""Seconds of a stage after which its end can be foretold."""


@dataclass(frozen=True)
class Part:
    """A piece of a stage that went on beside other stages.

    Attributes
    ----------
    device : int
        Number of the GPU.
    start : float
        Seconds from the start of the run.
    seconds : float
    """

    device: int
    start: float
    seconds: float


@dataclass(frozen=True)
class KernelTime:
    """How long one of several kernels of a stage took.

    Attributes
    ----------
    name : str
        Of the function in the filter's ``.cu``.
    seconds : float
        The median, where there were several repeats.
    repeats : tuple of float
        Every repetition, where there were several.
    """

    name: str
    seconds: float
    repeats: tuple[float, ...] = ()


def added_up(kernels: Iterable[KernelTime]) -> tuple[KernelTime, ...]:
    """Return the time of each kernel over several stages, in order of first appearance."""
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


@dataclass(frozen=True)
class Stage:
    """A named part of a run and how long it took.

    Attributes
    ----------
    name : str
        ``prepare``, ``compile``, ``compute``, ``convert``, ``judge``; on a GPU also ``allocate``
        and ``free`` (device memory), ``upload``, ``kernel``, ``hand over`` (parts that the host
        copies to the card between kernels), ``launch`` (what starting kernels takes beside
        all these) and ``download``, ``slabs``, where these overlap, ``warm-up``, which goes
        before kernels that are measured, and ``repeat``: launches that the host queued too
        slowly to be measured, so that they were done again.
    seconds : float
        Wall-clock time, or device time between events for ``kernel``.
    counted : bool
        False for what is reported apart and is in no total, such as compiling.
    repeats : tuple of float
        Every repetition, where there were several; `seconds` is their median.
    overlapped : bool
        True for what was done while ``slabs``, which is counted, went by: with others at the
        same time, so that they would add up to more. Of several devices it is the busiest one.
    start : float
        When it began, in seconds from the start of the run. Kernels begin when the card does:
        *launch* begins before *kernel* and encloses it. Of several repeats it is the first.
    parts : tuple of Part
        Where the stage overlapped others: its pieces, on each of the devices.
    kernels : tuple of KernelTime
        Of stage ``kernel``, where it has several kernels: what each of them took.
    """

    name: str
    seconds: float
    counted: bool = True
    repeats: tuple[float, ...] = ()
    overlapped: bool = False
    start: float = 0.0
    parts: tuple[Part, ...] = ()
    kernels: tuple[KernelTime, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A figure other than a duration.

    Attributes
    ----------
    name : str
        ``effective rate`` (bytes that had to be read and written / kernel time),
        ``arithmetic rate`` (operations / kernel time), ``copy rate`` (what a copy on the
        card reaches, read + written) and ``peak rate`` (operations at most).
    value : float
    unit : str
        ``B/s`` or ``op/s``.
    """

    name: str
    value: float
    unit: str


class TimeLeft:
    """Foretells the end of stages from their progress."""

    def __init__(self) -> None:
        self._stage = ""
        self._start = (0.0, 0.0)

    def describe(self, stage: str, fraction: float) -> str:
        """Return ``, 12 s left``-like text, or nothing until that can be told.

        Parameters
        ----------
        stage : str
            Another one, or none of it done, starts anew.
        fraction : float
            How much of it is done, 0 to 1.
        """
        now = time.monotonic()
        if stage != self._stage or fraction == 0:
            self._stage, self._start = stage, (now, fraction)
        since, begun_at = self._start  # a stage may begin with a part that went fast
        elapsed = now - since
        if elapsed < _STEADY or fraction <= begun_at:
            return ""
        seconds = elapsed * (1 - fraction) / (fraction - begun_at)
        if seconds < 90:
            return f", {max(1, round(seconds))} s left"
        return f", {round(seconds / 60)} min left"
