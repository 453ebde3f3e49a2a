"""The runs of the window: their parts, and which of them may be compared.

Runs of equal *work* (filter, settings, picture) at equal *place* (device, level, transfers) form
a `Series`. One series of each work is the baseline; the others show how many times as fast they
are, from the medians of their repeats:

    work: median 5×5 of camera.bmp      serial   10.2 10.0 10.1 ms   baseline
                                        parallel  2.1  2.0  2.0 ms   5.05×
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.bench.statistics import BASELINE
from kernelscope.engine.measuring import SLOW_SECONDS
from kernelscope.engine.request import Request
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.timing import Metric, Repeats, Stage
from kernelscope.gui.model.form_state import FormState
from kernelscope.gui.model.times import NOT_TIMED, SpeedUp, Spread
from kernelscope.gui.model.timing import Timing
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.spec.blocks import block_name
from kernelscope.spec.chips import Chip

MAX_RUNS = 300
"""Number of runs in the list; the oldest one without a star makes room."""

KERNEL, TRANSFERS, OTHER = "kernel", "transfers", "other stages"
"""The parts of a run."""

TOTAL = "total"

_TRANSFERS = {"upload": "↑", "hand over": "↑", "download": "↓"}
"""Stages that transfer data, and the direction."""

_PROBES = 1 << 16
"""Approximate number of samples that identify a picture."""


@dataclass(frozen=True)
class Part:
    """A part of a run, drawn as a bar of its length."""

    name: str
    seconds: float


@dataclass(eq=False)
class Run:
    """An entry of the list of runs.

    Attributes
    ----------
    source : int
        Identity of the source, which it does not keep in memory.
    where : str
        Device, level and block size in words: ``CPU serial``.
    work : hashable
        Equal for runs with the same filter, parameters, border, greyscale and picture.
    place : hashable
        Equal for runs with the same device, level, memory limit and transfers.
    seconds, speed : float or None
        None if it was emulated: such a run has no stages, transfers and kernels either.
    first : bool
        The first run of this work there, and too short for that not to matter: caches, memory
        and compiled code were not ready.
    warm : bool
        Its kernels were: a warm-up went before them, or it is not the first run. Their time is
        no upper bound, as that of small pictures is in runs that are not measured.
    repeats : Repeats or None
        Of a measured run.
    kernels : tuple of float
        Seconds of computing, of each repeat: the kernels on a GPU, else the stage *compute*.
    transfers : mapping of str to float
        Seconds of upload and download, in the total or overlapped by kernels.
    overlapped : bool
        Transfers took place while kernels ran.
    chips : tuple of Chip
        The settings, in a few characters each.
    form : FormState
        The settings, to be shown in the panel again.
    judgement : Judgement or None
        None without a reference.
    reference : Image or Volume or None
        The picture or volume of the judgement.
    result : Result or None
        None once its pictures are no longer kept.
    name : str
        Chosen by the user; may be empty.
    starred : bool
    thumbnail : ndarray, shape (height, width, 3), uint8, or None
        None until it is computed.
    """

    number: int
    filter_name: str
    source: int
    picture: str
    level: str
    level_name: str
    where: str
    settings: str
    size: str
    mode: str
    unit: str
    stages: tuple[Stage, ...]
    metrics: tuple[Metric, ...]
    seconds: float | None
    speed: float | None
    work: Hashable
    place: Hashable
    first: bool
    warm: bool
    repeats: Repeats | None
    kernels: tuple[float, ...]
    transfers: dict[str, float]
    overlapped: bool
    chips: tuple[Chip, ...]
    form: FormState
    judgement: Judgement | None
    reference: Image | Volume | None
    result: Result | None
    name: str = ""
    starred: bool = False
    thumbnail: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, number: int, result: Result, first: bool, form: FormState | None = None) -> Run:
        source, spec, timing = result.request.source, result.request.step.filter, Timing.of(result)
        seconds = added_up(timing.stages)
        transfers = {name: seconds[name] for name in _TRANSFERS if name in seconds}
        timed = timing.seconds is not None
        first = first and timed and timing.repeats is None
        exact = not any(each.is_upper_bound for each in timing.stages)
        return cls(
            number=number,
            filter_name=spec.short or spec.name,
            source=id(source),
            picture=source.title,
            level=result.level,
            level_name=result.level_name,
            where=where(result),
            settings=result.settings,
            size=source.size,
            mode=source.mode,
            unit=result.speed_unit,
            stages=timing.stages,
            metrics=timing.metrics,
            seconds=timing.seconds,
            speed=timing.speed,
            work=work_of(result.request),
            place=(where(result), tuple(transfers), result.request.options.memory_limit),
            first=first,
            warm=timed
            and exact
            and (not first or any(each.name == _WARM_UP for each in timing.stages)),
            repeats=timing.repeats,
            kernels=timing.kernels,
            transfers=transfers,
            overlapped=any(stage.overlapped for stage in timing.stages),
            chips=result.chips,
            form=form or FormState.of(result.request),
            judgement=result.quality,
            reference=result.request.reference,
            result=result,
        )

    @property
    def title(self) -> str:
        """The user's name for it, or else that of the filter."""
        return self.name or self.filter_name

    @property
    def totals(self) -> Spread:
        """The total of each repeat; of a run that was not measured, its only one."""
        if self.seconds is None:
            return Spread(())
        return Spread(self.repeats.totals if self.repeats else (self.seconds,))

    @property
    def measurement(self) -> str:
        """How its time was measured, in words: ``median of 5``, ``one run``."""
        if self.seconds is None:
            return NOT_TIMED
        count = len(self.totals.times)
        if count > 1:
            return f"median of {count}"
        return "first run" if self.first else "one run"

    @property
    def psnr(self) -> float | None:
        """Of the output, in decibels; None without a reference."""
        return self.judgement.after.psnr if self.judgement else None

    @property
    def gain(self) -> float | None:
        """How much closer to the reference the output is than the input, in decibels."""
        if self.judgement is None or self.judgement.before is None:
            return None
        gain = self.judgement.after.psnr - self.judgement.before.psnr
        return gain if math.isfinite(gain) else None

    def is_measured(self, quantity: str) -> bool:
        """Return whether its *kernel* or *total* may be compared."""
        if self.seconds is None:
            return False
        return self.warm if quantity == KERNEL else not self.first

    @property
    def kernel(self) -> float | None:
        """Seconds of computing, the median of its repeats."""
        return statistics.median(self.kernels) if self.kernels else None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that add up to the total; of overlapped transfers, the time that they add."""
        if self.seconds is None or self.kernel is None:
            return ()
        other = sum(
            stage.seconds
            for stage in self.stages
            if stage.counted and part_of(stage.name) == OTHER and stage.name != _SLABS
        )
        kernel = min(self.kernel, self.seconds - other) if self.overlapped else self.kernel
        carried = max(0.0, self.seconds - other - kernel)
        return Part(KERNEL, kernel), Part(TRANSFERS, carried), Part(OTHER, other)

    @property
    def arrows(self) -> str:
        """Directions of the transfers: ``↑↓``, or ``↓`` if the picture was on the GPU already."""
        return "".join(dict.fromkeys(_TRANSFERS[name] for name in self.transfers))


_COMPUTING = ("kernel", "compute")

_WARM_UP = "warm-up"

_SLABS = "slabs"
"""The stage in which kernels and transfers overlap."""


class Series:
    """The runs of the same work at the same place, oldest first.

    Attributes
    ----------
    timed : bool
        Whether its runs have times; emulated ones have none.
    count : int
        Repeats of runs that are not the first.
    kernel, total : Spread or None
        Of those whose kernels were warm, and of those that are not the first; None where there
        is none.
    """

    def __init__(self, runs: list[Run]) -> None:
        totals = tuple(time for run in runs if not run.first for time in run.totals.times)
        self.timed = any(run.seconds is not None for run in runs)
        kernels = tuple(seconds for run in runs if run.warm for seconds in run.kernels)
        self.where = runs[0].where
        self.place = runs[0].place
        self.count = len(totals)
        self.kernel = Spread(kernels) if kernels else None
        self.total = Spread(totals) if totals else None

    def spread(self, quantity: str) -> Spread | None:
        """Return the times of *kernel* or *total*."""
        return self.kernel if quantity == KERNEL else self.total


class Runs:
    """The last runs, newest first, and the baseline that the user chose for each kind of work."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._series: dict[Hashable, dict[Hashable, Series]] = {}
        self._chosen: dict[Hashable, Hashable] = {}
        self._seen: set[Hashable] = set()
        self._count = 0

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def add(self, result: Result, form: FormState | None = None) -> Run:
        """Put a finished run on top of the list."""
        self._count += 1
        key = work_of(result.request), where(result)
        slow = result.seconds >= SLOW_SECONDS
        first = (result.first or key not in self._seen) and not slow
        run = Run.of(self._count, result, first, form)
        self._seen.add(key)
        self._runs.insert(0, run)
        if len(self._runs) > MAX_RUNS:
            plain = [old for old in self._runs[1:] if not old.starred]
            others = [old for old in plain if not self.is_baseline(old)]
            self._runs.remove((others or plain or self._runs)[-1])
        self._gather()
        return run

    def remove(self, run: Run) -> None:
        """Forget a run."""
        self._runs.remove(run)
        self._gather()

    def clear(self) -> None:
        """Forget all runs; numbering continues, and warmed-up code still counts as warm."""
        self._runs.clear()
        self._chosen.clear()
        self._gather()

    def choose(self, run: Run) -> None:
        """Make the series of `run` the baseline of its work."""
        self._chosen[run.work] = run.place

    def series(self, run: Run) -> Series:
        """Return the series to which `run` belongs."""
        return self._series[run.work][run.place]

    def baseline(self, run: Run) -> Series | None:
        """Return the series with which others of the same work are compared, once there is one.

        It is the user's choice, else plain serial code, else the series measured first.
        """
        known = self._series.get(run.work, {})
        measured = [each for each in known.values() if each.kernel is not None]
        chosen = self._chosen.get(run.work)
        ranked = sorted(measured, key=lambda each: (each.place != chosen, each.where != BASELINE))
        return ranked[0] if ranked else None

    def is_baseline(self, run: Run) -> bool:
        base = self.baseline(run)
        return base is not None and base.place == run.place

    def has_others(self, run: Run) -> bool:
        """Return whether the work of `run` was done at another place too."""
        return len({each.where for each in self._series[run.work].values()}) > 1

    def has_rivals(self, run: Run) -> bool:
        """Return whether the work of `run` was timed at another place too."""
        timed = {each.where for each in self._series[run.work].values() if each.timed}
        return len(timed | {run.where}) > 1

    def speed_up(self, run: Run, quantity: str) -> SpeedUp | None:
        """Compare the series of `run` with the baseline of its work: *kernel* or *total*.

        None for the baseline itself, for cold runs, and until both were measured.
        """
        base = self.baseline(run)
        if not run.is_measured(quantity) or base is None or base.where == run.where:
            return None
        own, other = self.series(run).spread(quantity), base.spread(quantity)
        if own is None or other is None or not own.median or not other.median:
            return None
        return SpeedUp(quantity, base.where, other.median / own.median, other, own)

    def is_fastest(self, run: Run, quantity: str) -> bool:
        """Return whether its series is the fastest of this work, by more than one repeat."""
        spreads = [each.spread(quantity) for each in self._series[run.work].values()]
        medians = [spread.median for spread in spreads if spread is not None]
        own = self.series(run).spread(quantity)
        if own is None or not run.is_measured(quantity) or len(medians) < 2:
            return False
        return own.median == min(medians) and len(own.times) > 1

    def _gather(self) -> None:
        """Sort the runs into series, in order of appearance."""
        found: dict[Hashable, dict[Hashable, list[Run]]] = {}
        for run in reversed(self._runs):
            found.setdefault(run.work, {}).setdefault(run.place, []).append(run)
        self._series = {
            work: {place: Series(runs) for place, runs in places.items()}
            for work, places in found.items()
        }


def part_of(stage: str) -> str:
    """Return the part of a run to which a stage belongs."""
    if stage in _COMPUTING:
        return KERNEL
    return TRANSFERS if stage in _TRANSFERS else OTHER


def where(result: Result) -> str:
    """Return device, level and a chosen block size: ``GPU shared memory 16×16``."""
    block = result.request.options.block
    return f"{result.where} {block_name(block)}" if block is not None else result.where


def work_of(request: Request) -> Hashable:
    """Return a value that is equal for requests of the same work."""
    return (
        request.step.filter.id,
        tuple(sorted(request.step.parameters.items())),
        request.step.border,
        request.step.grey,
        request.step.within,
        request.step.axis if request.by_slices else "",
        tuple(map(_fingerprint, request.source.samples)),
    )


def _fingerprint(pixels: np.ndarray[Any, Any]) -> Hashable:
    """Return a value that identifies a picture: a checksum of its samples on a coarse grid."""
    step = max(1, round((pixels.size / _PROBES) ** (1 / pixels.ndim)))
    probes = np.ascontiguousarray(pixels[(slice(None, None, step),) * pixels.ndim])
    return pixels.shape, pixels.dtype.str, zlib.crc32(probes.tobytes())


def added_up(stages: Iterable[Stage]) -> dict[str, float]:
    """Return the seconds of each stage name, in order of first appearance."""
    seconds: dict[str, float] = {}
    for stage in stages:
        seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
    return seconds
