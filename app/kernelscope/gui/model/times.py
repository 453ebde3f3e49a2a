"""Times in words, their spread, and speed-ups."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from kernelscope.base import durations
from kernelscope.base.text import significant
from kernelscope.engine.options import Device
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Metric, Repeats, Stage


@dataclass(frozen=True)
class Timing:
    seconds: float | None = None  # total of the counted stages
    speed: float | None = None  # millions of pixels or voxels per second
    stages: tuple[Stage, ...] = ()
    metrics: tuple[Metric, ...] = ()
    repeats: Repeats | None = None
    kernels: tuple[float, ...] = ()
    """Seconds of computing, of each repeat: the kernels on a GPU, else the stage *compute*."""

    @classmethod
    def of(cls, result: Result) -> Timing:
        if result.is_emulated:
            return cls()
        return cls(
            result.seconds,
            result.speed,
            result.stages,
            result.metrics,
            result.repeats,
            _kernels(result),
        )


def _kernels(result: Result) -> tuple[float, ...]:
    """Return the seconds of computing of each repeat: of the run, or of the kernels in it."""
    name = "kernel" if result.device == Device.GPU else "compute"
    computing = [stage for stage in result.stages if stage.name == name]
    if len(computing) == 1 and computing[0].repeats:
        return computing[0].repeats
    return result.repeats.computing if result.repeats else (result.computing_seconds,)


UNSTEADY = 0.3
"""Half range, as a share of the median, above which a percentage says less than a warning."""

VARYING = "times vary"

EMULATED = "emulated"  # in place of a time that is not one: see `kernelscope.gui.model.times`

NOT_TIMED = "not timed"  # in place of how such a time was measured

WHY_NOT_TIMED = "Emulated on the processor, thread by thread: the time would not be that of a GPU."

BUSY = "other programs may be busy"  # the usual cause of it; the times alone do not prove it


@dataclass(frozen=True)
class Spread:
    """Repeats of a time, in seconds; none of an emulated run."""

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median_low(self.times)

    @property
    def half(self) -> float:
        """Half the range as a share of the median."""
        if not self.times:
            return 0.0
        return (max(self.times) - min(self.times)) / 2 / max(self.median, 1e-12)

    @property
    def unsteady(self) -> bool:
        """Whether the repeats differ so much that their median is hardly a measurement."""
        return self.half > UNSTEADY

    def describe(self) -> str:
        if len(self.times) <= 1:
            return duration(self.median if self.times else None)
        least, most = duration(min(self.times)), duration(max(self.times))
        return f"{duration(self.median)}, median of {len(self.times)} ({least} to {most})"


FEWEST_REPEATS = 3
"""Two pairs of repeats do not overlap by chance in one case of three; triples in one of ten."""


@dataclass(frozen=True)
class RunSpeedUp:
    """How many times as fast a run is as another that did the same work."""

    quantity: str
    # The names of the other run and of this one.
    over: str
    mine: str
    baseline: Spread
    own: Spread

    @property
    def factor(self) -> float:
        return self.baseline.median / self.own.median

    @property
    def few(self) -> bool:
        return min(len(self.own.times), len(self.baseline.times)) < FEWEST_REPEATS

    @property
    def varying(self) -> bool:
        return self.own.unsteady or self.baseline.unsteady

    @property
    def sure(self) -> bool:
        mine, other = self.own.times, self.baseline.times
        apart = max(mine) < min(other) or max(other) < min(mine)
        return apart and not self.few and not self.varying

    def __str__(self) -> str:
        return f"{'' if self.sure else '≈ '}{significant(self.factor)}×"

    def explain(self) -> str:
        lines = [
            f"{self.quantity}: {self.over} / {self.mine} = {significant(self.factor)}",
            f"{self.over}: {self.baseline.describe()}",
            f"{self.mine}: {self.own.describe()}",
        ]
        if self.few:
            lines.append(
                f"One of the two was measured less than {FEWEST_REPEATS} times: "
                "run it again to be sure."
            )
        elif self.varying:
            lines.append(f"{VARYING.capitalize()}: {BUSY}. Run it again to be sure.")
        elif not self.sure:
            lines.append("The repeats of the two overlap: the difference may be chance.")
        return "\n".join(lines)


def duration(seconds: float | None) -> str:
    """Return a time to three digits, ``605 µs``; ``emulated`` of None."""
    return EMULATED if seconds is None else durations.duration(seconds)
