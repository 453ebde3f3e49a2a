"""The runs of the window: their parts, and which of them may be compared.

Runs of equal *work* (filter, settings, picture) at equal *place* (device, level, transfers) form
a `Series`. One series of each work is the baseline; the others show how many times as fast they
are, from the medians of their repeats:

    work: median 5×5 of camera.bmp      serial   10.2 10.0 10.1 ms   baseline
                                        parallel  2.1  2.0  2.0 ms   5.05×
"""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.bench.statistics import BASELINE, short
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Metric, Stage
from kernelscope.spec.blocks import block_name

MAX_RUNS = 100

KEPT_RESULTS = 10
"""Number of runs whose images are kept; older runs keep their timings only."""

KEPT_BYTES = 512 << 20
"""Limit for these images in memory."""

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
    where : str
        Device, level and block size in words: ``CPU serial``.
    work : hashable
        Equal for runs with the same filter, parameters, border, greyscale and picture.
    place : hashable
        Equal for runs with the same device, level, memory limit and transfers.
    first : bool
        The first run of this work there: caches, memory and compiled code were not ready.
    warm : bool
        Its kernels were: a warm-up went before them, or it is not the first run.
    kernels : tuple of float
        Seconds of computing, of each repeat: the kernels on a GPU, else the stage *compute*.
    transfers : mapping of str to float
        Seconds of upload and download, in the total or overlapped by kernels.
    overlapped : bool
        Transfers took place while kernels ran.
    result : Result or None
        None once its images are no longer kept.
    """

    number: int
    where: str
    settings: str
    size: str
    mode: str
    unit: str
    stages: tuple[Stage, ...]
    metrics: tuple[Metric, ...]
    seconds: float
    speed: float
    work: Hashable
    place: Hashable
    first: bool
    warm: bool
    kernels: tuple[float, ...]
    transfers: dict[str, float]
    overlapped: bool
    result: Result | None

    @classmethod
    def of(cls, number: int, result: Result, first: bool) -> Run:
        source = result.request.source
        name = "kernel" if result.device == Device.GPU else "compute"
        computing = [stage for stage in result.stages if stage.name == name]
        repeats = computing[0].repeats if len(computing) == 1 else ()
        seconds = added_up(result.stages)
        transfers = {name: seconds[name] for name in _TRANSFERS if name in seconds}
        return cls(
            number=number,
            where=where(result),
            settings=result.settings,
            size=source.size,
            mode=source.mode,
            unit=result.speed_unit,
            stages=result.stages,
            metrics=result.metrics,
            seconds=result.seconds,
            speed=result.speed,
            work=work_of(result.request),
            place=(where(result), tuple(transfers), result.request.options.memory_limit),
            first=first,
            warm=not first or any(stage.name == _WARM_UP for stage in result.stages),
            kernels=repeats or (sum(stage.seconds for stage in computing),),
            transfers=transfers,
            overlapped=any(stage.overlapped for stage in result.stages),
            result=result,
        )

    def is_measured(self, quantity: str) -> bool:
        """Return whether its *kernel* or *total* may be compared."""
        return self.warm if quantity == KERNEL else not self.first

    @property
    def kernel(self) -> float:
        """Seconds of computing, the median of its repeats."""
        return statistics.median(self.kernels)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that add up to the total; of overlapped transfers, the time that they add."""
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


@dataclass(frozen=True)
class Spread:
    """Repeats of a time, in seconds."""

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def half(self) -> float:
        """Half the range as a share of the median."""
        return (max(self.times) - min(self.times)) / 2 / max(self.median, 1e-12)

    def describe(self) -> str:
        """Return ``median of 3, 1.6 to 1.72 ms``."""
        if len(self.times) == 1:
            return f"{milliseconds(self.median)} ms"
        least, most = milliseconds(min(self.times)), milliseconds(max(self.times))
        return f"{milliseconds(self.median)} ms, median of {len(self.times)} ({least} to {most} ms)"


FEWEST_REPEATS = 3
"""Two pairs of repeats do not overlap by chance in one case of three; triples in one of ten."""


@dataclass(frozen=True)
class SpeedUp:
    """How many times as fast a kind of run is as another that did the same work.

    Attributes
    ----------
    sure : bool
        Both were repeated often enough, and no repeat of the one took as long as any of the other.
    """

    quantity: str
    over: str
    factor: float
    baseline: Spread
    own: Spread

    @property
    def few(self) -> bool:
        """Whether one of the two has too few repeats for more than an approximate factor."""
        return min(len(self.own.times), len(self.baseline.times)) < FEWEST_REPEATS

    @property
    def sure(self) -> bool:
        mine, other = self.own.times, self.baseline.times
        return not self.few and (max(mine) < min(other) or max(other) < min(mine))

    def __str__(self) -> str:
        about = "" if self.sure else "about "
        return f"{about}{short(self.factor)}× over {self.over}"

    def explain(self, mine: str) -> str:
        """Return the division in full; `mine` names this kind of run."""
        lines = [
            f"{self.quantity}: {self.over} / {mine} = {short(self.factor)}",
            f"{self.over}: {self.baseline.describe()}",
            f"{mine}: {self.own.describe()}",
        ]
        if self.few:
            lines.append(
                f"One of the two was measured less than {FEWEST_REPEATS} times: "
                "run it again to be sure."
            )
        elif not self.sure:
            lines.append("The repeats of the two overlap: the difference may be chance.")
        return "\n".join(lines)


class Series:
    """The runs of the same work at the same place, oldest first.

    Attributes
    ----------
    count : int
        Runs that are not the first.
    kernel, total : Spread or None
        Of those whose kernels were warm, and of those that are not the first; None where there
        is none.
    """

    def __init__(self, runs: list[Run]) -> None:
        totals = tuple(run.seconds for run in runs if not run.first)
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

    def add(self, result: Result) -> Run:
        """Put a finished run on top of the list."""
        self._count += 1
        key = work_of(result.request), where(result)
        run = Run.of(self._count, result, first=result.first or key not in self._seen)
        self._seen.add(key)
        self._runs.insert(0, run)
        if len(self._runs) > MAX_RUNS:
            others = [old for old in self._runs[1:] if not self.is_baseline(old)]
            self._runs.remove((others or self._runs)[-1])
        self._drop_images()
        self._gather()
        return run

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
        measured = run.is_measured(quantity) and own is not None and len(medians) > 1
        return measured and own is not None and own.median == min(medians) and len(own.times) > 1

    def _gather(self) -> None:
        """Sort the runs into series, in order of appearance."""
        found: dict[Hashable, dict[Hashable, list[Run]]] = {}
        for run in reversed(self._runs):
            found.setdefault(run.work, {}).setdefault(run.place, []).append(run)
        self._series = {
            work: {place: Series(runs) for place, runs in places.items()}
            for work, places in found.items()
        }

    def _drop_images(self) -> None:
        """Release the images of older runs; those of the newest one are always kept."""
        pixels: dict[int, int] = {}
        for place, run in enumerate(self._runs):
            if run.result is None:
                continue
            for image in (run.result.request.source, run.result.output):
                pixels |= {id(array): array.nbytes for array in image.arrays()}
            if place >= KEPT_RESULTS or (place and sum(pixels.values()) > KEPT_BYTES):
                run.result = None


def part_of(stage: str) -> str:
    """Return the part of a run to which a stage belongs."""
    if stage in _COMPUTING:
        return KERNEL
    return TRANSFERS if stage in _TRANSFERS else OTHER


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, with four digits."""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 999.95 else f"{value:#.4g}"


def duration(seconds: float) -> str:
    """Return ``1.615 ms``, or ``15.97 s``."""
    return f"{seconds:#.4g} s" if seconds >= 1 else f"{milliseconds(seconds)} ms"


def where(result: Result) -> str:
    """Return device, level and a chosen block size: ``GPU shared 16×16``."""
    block = result.request.options.block
    return f"{result.where} {block_name(block)}" if block is not None else result.where


def work_of(request: Request) -> Hashable:
    """Return a value that is equal for requests of the same work."""
    return (
        request.step.filter.id,
        tuple(sorted(request.step.parameters.items())),
        request.step.border,
        request.step.grey,
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
