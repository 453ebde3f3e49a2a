"""The times of a result that may be shown and compared: those of every device but the emulated GPU.

On the emulated GPU the processor simulates each thread of a block. The seconds that it takes are
those of neither a GPU nor the filter on the CPU, so panels, tables, tool tips and captions write
`kernelscope.gui.model.times.EMULATED` in their place. All of them take times from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.engine.options import Device
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Metric, Repeats, Stage


@dataclass(frozen=True)
class Timing:
    """The times of a result; without any if it was emulated."""

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
