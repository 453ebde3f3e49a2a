"""The runs of the window: their parts, which of them may be compared, and figures in one line.

Runs of equal *work* (filter, settings, picture) are compared: one of them is the baseline, and the
others, at another *place* (device, level, transfers), show how many times as fast they are. A
speed-up is the baseline's time divided by the run's own, as their rows show them:

    work: median 5×5 of camera.bmp      1  serial    10.0 ms   baseline
                                        2  parallel   2.0 ms   5×
                                        3  parallel   4.0 ms   2.5×
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.text import significant
from kernelscope.bench.statistics import BASELINE
from kernelscope.engine.measuring import SLOW_SECONDS
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Judgement, Result, estimate_notices
from kernelscope.engine.timing import Metric, Repeats, Stage
from kernelscope.gui.model.times import (
    BUSY,
    NOT_TIMED,
    VARYING,
    RunSpeedUp,
    Spread,
    Timing,
    duration,
)
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.blocks import block_name
from kernelscope.schema.filter import Chip
from kernelscope.schema.samples import Kind

MAX_RUNS = 300  # number of runs in the list; the oldest one without a star makes room

KERNEL, TRANSFERS, OTHER = "kernel", "transfers", "other stages"  # the parts of a run

TOTAL = "total"

_TRANSFERS = {"upload": "↑", "hand over": "↑", "download": "↓"}
"""Stages that transfer data, and the direction."""


@dataclass(frozen=True)
class RunPart:
    """A part of a run, drawn as a bar of its length."""

    name: str
    seconds: float


@dataclass(eq=False)
class Run:
    """An entry of the list of runs; its `thumbnail` is None until it is computed."""

    number: int
    filter_name: str
    source: weakref.ref[Source]  # which it does not keep in memory
    picture: str
    member: str  # of a file of several volumes, the one that was filtered: ``time 2, DAPI``
    device: str
    level: str
    level_name: str
    where: str  # device, level and block size in words: ``CPU serial``
    settings: str
    size: str
    mode: str
    unit: str
    stages: tuple[Stage, ...]
    metrics: tuple[Metric, ...]
    # None if it was emulated: such a run has no stages, transfers and kernels either.
    seconds: float | None
    speed: float | None
    work: Hashable  # see `Request.work`
    key: Hashable  # see `key_of`
    place: Hashable  # equal for runs with the same device, level, memory limit and transfers
    first: bool
    """The first run of this work there, and too short for that not to matter: caches, memory and
    compiled code were not ready."""
    warm: bool
    """Its kernels were: a warm-up went before them, or it is not the first run. Their time is no
    upper bound, as that of small pictures is in runs that are not measured."""
    repeats: Repeats | None  # of a measured run
    kernels: tuple[float, ...]
    """Seconds of computing, of each repeat: the kernels on a GPU, else the stage *compute*."""
    transfers: dict[str, float]
    """Seconds of upload and download, in the total or overlapped by kernels."""
    overlapped: bool  # transfers took place while kernels ran
    chips: tuple[Chip, ...]  # the settings, in a few characters each
    run_settings: RunSettings  # to be shown in the panel again
    judgement: Judgement | None  # None without a reference
    reference: Image | Volume | None  # the picture or volume of the judgement
    result: Result | None  # None once its pictures are no longer kept
    name: str = ""  # chosen by the user; may be empty
    starred: bool = False
    thumbnail: NDArray[np.uint8] | None = None

    @classmethod
    def of(
        cls, number: int, result: Result, first: bool, settings: RunSettings | None = None
    ) -> Run:
        source, spec, timing = result.request.source, result.request.step.filter, Timing.of(result)
        seconds = added_up(timing.stages)
        transfers = {name: seconds[name] for name in _TRANSFERS if name in seconds}
        timed = timing.seconds is not None
        first = first and timed and timing.repeats is None
        exact = not any(each.is_upper_bound for each in timing.stages)
        at = replace(result.request.options, device=Device(result.device), level=result.level)
        return cls(
            number=number,
            filter_name=spec.short or spec.name,
            source=weakref.ref(source),
            picture=source.title,
            member=source.volumes[0].place if isinstance(source, Scan) else "",
            device=result.device,
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
            work=result.request.work,
            key=key_of(result.request, at),
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
            run_settings=settings or RunSettings.of(result.request),
            judgement=result.quality,
            reference=result.request.reference,
            result=result,
        )

    @property
    def title(self) -> str:
        return self.name or self.filter_name

    @property
    def input(self) -> str:
        """Return ``film.tif, time 2, DAPI, 260×200``."""
        return ", ".join(filter(None, (self.picture, self.member, self.size)))

    @property
    def caption(self) -> str:
        """Return ``NLM · σ 0.0588 · CPU parallel``: the settings that have not their defaults."""
        unusual = (chip.text for chip in self.chips if not chip.usual)
        return " · ".join((self.filter_name, *unusual, self.where))

    @property
    def totals(self) -> Spread:
        if self.seconds is None:
            return Spread(())
        return Spread(self.repeats.totals if self.repeats else (self.seconds,))

    def spread(self, quantity: str) -> Spread:
        return Spread(self.kernels) if quantity == KERNEL else self.totals

    @property
    def measurement(self) -> str:
        if self.seconds is None:
            return NOT_TIMED
        count = len(self.totals.times)
        if count > 1:
            return f"median of {count}"
        return "first run" if self.first else "one run"

    @property
    def psnr(self) -> float | None:
        return self.judgement.after.psnr if self.judgement else None

    @property
    def gain(self) -> float | None:
        """How much closer to the reference the output is than the input, in decibels."""
        if self.judgement is None or self.judgement.before is None:
            return None
        gain = self.judgement.after.psnr - self.judgement.before.psnr
        return gain if math.isfinite(gain) else None

    def is_measured(self, quantity: str) -> bool:
        if self.seconds is None:
            return False
        return self.warm if quantity == KERNEL else not self.first

    @property
    def computing(self) -> float:
        return sum(stage.seconds for stage in self.stages if stage.name in _COMPUTING)

    @property
    def kernel(self) -> float | None:
        return self.spread(KERNEL).median if self.kernels else None

    @property
    def parts(self) -> tuple[RunPart, ...]:
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
        return RunPart(KERNEL, kernel), RunPart(TRANSFERS, carried), RunPart(OTHER, other)

    @property
    def arrows(self) -> str:
        """Directions of the transfers: ``↑↓``, or ``↓`` if the picture was on the GPU already."""
        return "".join(dict.fromkeys(_TRANSFERS[name] for name in self.transfers))


_COMPUTING = ("kernel", "compute")

_WARM_UP = "warm-up"

_SLABS = "slabs"  # the stage in which kernels and transfers overlap


class Runs:
    """The last runs, newest first, and the baseline that the user chose for each kind of work."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._alike: dict[Hashable, list[Run]] = {}  # the runs of each work, newest first
        self._chosen: dict[Hashable, Run] = {}
        self._seen: set[Hashable] = set()
        self._count = 0

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def add(self, result: Result, settings: RunSettings | None = None) -> Run:
        """Put a finished run on top of the list."""
        self._count += 1
        key = result.request.work, where(result)
        slow = result.seconds >= SLOW_SECONDS
        first = (result.first or key not in self._seen) and not slow
        run = Run.of(self._count, result, first, settings)
        self._seen.add(key)
        self._runs.insert(0, run)
        if len(self._runs) > MAX_RUNS:
            plain = [old for old in self._runs[1:] if not old.starred]
            others = [old for old in plain if not self.is_baseline(old)]
            self._runs.remove((others or plain or self._runs)[-1])
        self._gather()
        return run

    def on(self, request: Request) -> list[Run]:
        """Return the runs of the work of a request on its source, newest first."""
        alike = self._alike.get(request.work, ())
        return [run for run in alike if run.source() is request.source]

    def newest(self, request: Request, options: RunOptions) -> Run | None:
        """Return the last one of those that was measured or emulated with these options."""
        known = [r for r in self.on(request) if r.repeats is not None or r.seconds is None]
        if not known:
            return None
        key = key_of(request, options)
        return next((run for run in known if run.key == key), None)

    def kernels_of(self, request: Request) -> dict[str, float]:
        """Return the seconds of kernels by level for the work of a request on any source."""
        gpu = replace(request.options, device=Device.GPU)
        levels = request.step.filter.levels(Device.GPU)
        keys = {key_of(request, replace(gpu, level=each.id)): each.id for each in levels}
        alike = (run for run in reversed(self._runs) if run.key in keys)
        return {
            keys[run.key]: run.kernel
            for run in alike
            if run.size == request.source.size and run.warm and run.kernel is not None
        }

    def remove(self, run: Run) -> None:
        self._runs.remove(run)
        self._gather()

    def choose(self, run: Run) -> None:
        self._chosen[run.work] = run

    def baseline(self, run: Run) -> Run | None:
        """Return the user's choice, else the newest serial run, else that of the first place."""
        measured = [each for each in self._alike[run.work] if each.warm]
        if not measured:
            return None
        chosen = self._chosen.get(run.work)
        if chosen in measured:
            return chosen
        serial = [each for each in measured if each.where == BASELINE]
        alike = serial or [each for each in measured if each.place == measured[-1].place]
        return min(alike, key=lambda each: each.first)

    def is_baseline(self, run: Run) -> bool:
        return self.baseline(run) is run

    def has_others(self, run: Run) -> bool:
        """Return whether the work of `run` was done at another place too."""
        return len({each.where for each in self._alike[run.work]}) > 1

    def has_rivals(self, run: Run) -> bool:
        timed = {each.where for each in self._alike[run.work] if each.seconds is not None}
        return len(timed | {run.where}) > 1

    def speed_up(self, run: Run, quantity: str) -> RunSpeedUp | None:
        """Divide a baseline's time by that of `run`; None at its level, and for cold runs."""
        base = self.baseline(run)
        if base is None or base.where == run.where:
            return None
        own, other = run.spread(quantity), base.spread(quantity)
        if not (run.is_measured(quantity) and base.is_measured(quantity)):
            return None
        if not own.median or not other.median:
            return None
        names = f"{base.where} (run {base.number})", f"{run.where} (run {run.number})"
        return RunSpeedUp(quantity, *names, other, own)

    def is_fastest(self, run: Run, quantity: str) -> bool:
        """Return whether no other run of this work was as fast, as surely as repeats show it."""
        others = [
            each.spread(quantity)
            for each in self._alike[run.work]
            if each is not run and each.is_measured(quantity)
        ]
        own = run.spread(quantity)
        if not (run.is_measured(quantity) and others) or len(own.times) < 2 or own.unsteady:
            return False
        if any(each.median < own.median for each in others):
            return False
        gain = self.speed_up(run, quantity)
        if gain is not None and not gain.sure:
            return False
        return not any(each.unsteady and min(each.times) <= max(own.times) for each in others)

    def _gather(self) -> None:
        """Sort the runs by their work, and forget the choice of one that is gone."""
        self._alike = {}
        for run in self._runs:
            self._alike.setdefault(run.work, []).append(run)
        self._chosen = {
            work: run
            for work, run in self._chosen.items()
            if any(each is run for each in self._alike.get(work, ()))
        }


def key_of(request: Request, options: RunOptions) -> Hashable:
    """Return an equal value for requests that take the same time, whatever their repeats."""
    return request.at(replace(options, repeat=1)).cost_key


def part_of(stage: str) -> str:
    if stage in _COMPUTING:
        return KERNEL
    return TRANSFERS if stage in _TRANSFERS else OTHER


def where(result: Result) -> str:
    block = result.request.options.block
    return f"{result.where} {block_name(block)}" if block is not None else result.where


def added_up(stages: Iterable[Stage]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for stage in stages:
        seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
    return seconds


_WORTH_SHOWING = 0.1  # seconds of compiling that are worth showing: cached code is loaded in less


@dataclass(frozen=True)
class Figures:
    """The headline of a result, and a remark on how it was measured."""

    text: str  # ``2.50 ms, 105 MP/s, +3.1 dB``
    note: str  # ``CPU parallel, median of 5``
    detail: str = ""  # the figure behind a warning in `note`, which then ends with it; may be empty


def figures_of(
    result: Result,
    run: Run | None,
    quality: Judgement | None = None,
    remark: str = "one run",
) -> Figures:
    """Return the figures of a result; without a `run`, `remark` says how its time was taken."""
    unit = "MP/s" if result.request.source.kind is Kind.PICTURE else "Mvoxel/s"
    timing = Timing.of(result)
    cold = "≈ " if run is None and result.first and timing.seconds is not None else ""
    parts = [f"{cold}{duration(timing.seconds)}"]
    if timing.speed is not None:
        parts.append(f"{significant(timing.speed)} {unit}")
    else:
        remark = NOT_TIMED
    if quality is not None:
        parts.append(_describe(quality))
    if cold:
        remark = f"{remark}, the first"
    measurement = run.measurement if run is not None else remark
    where = run.where if run is not None else result.where
    note = [f"{where} while its code is prepared" if result.uncompiled else where, measurement]
    if timing.seconds is not None and result.compile_seconds >= _WORTH_SHOWING:
        note.append(f"compiled once, in {duration(result.compile_seconds)}")
    detail = ""
    if run is not None and len(run.totals.times) > 1:
        half = f"± {100 * run.totals.half:.0f} %"
        if run.totals.unsteady:
            detail = f"{half}: {run.totals.describe()}; {BUSY}"
        note.append(VARYING if detail else half)
    return Figures(", ".join(parts), ", ".join(note), detail)


def _describe(quality: Judgement) -> str:
    """Return by how much the output is better than the input, or else its PSNR."""
    before, after = quality.before, quality.after
    if not math.isfinite(after.psnr):
        return "equal to the reference"
    if before is None or not math.isfinite(before.psnr):
        return f"{after.psnr:.1f} dB"
    return describe_gain(after.psnr - before.psnr)


def describe_gain(decibels: float) -> str:
    """Return a difference of two PSNR with its sign: ``+3.1 dB``, ``±0.0 dB``."""
    if abs(decibels) < 0.05:
        return "±0.0 dB"
    return f"{decibels:+.1f} dB".replace("-", "−")


def describe_result(result: Result) -> str:
    """Return the notices of a run for the status bar; its time and place are in the headline."""
    # Estimates stand in their fields and over the output.
    estimated = estimate_notices(result.request, result.estimates)
    return "  ".join(notice for notice in result.notices if notice not in estimated)
