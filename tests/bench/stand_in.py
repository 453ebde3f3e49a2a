"""A GPU for tests: computes on the CPU, takes a given time, and reports a GPU's stages."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import OutOfMemory
from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.request import Request
from kernelscope.engine.timing import KernelTime, Metric
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import PARALLEL, Level

UPLOAD, KERNEL, DOWNLOAD = 0.003, 0.001, 0.002
COPY_RATE, PEAK_RATE = 1e12, 5e12


class StandIn(CpuBackend):
    """Attributes to set: whether there is such a device, a level without enough memory, how many
    share the work, how many launches are timed together, the names of its kernels, what its
    first runs take to make room, and the seconds of a launch."""

    id = "gpu"
    name = "GPU"
    available = True
    too_large_for = ""
    chosen = 1
    batch = 1
    kernels: tuple[str, ...] = ()
    launch = KERNEL

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.allocations: list[float] = []

    def availability(self) -> Availability:
        summary = "a stand-in" if self.available else "No GPU here."
        return Availability(self.available, summary, (), ("One", "Two"), self.chosen)

    def facts(self) -> Iterator[FactGroup]:
        yield FactGroup("Device", (Fact("Name", "a stand-in"),))
        yield FactGroup("Software", (Fact("Compiler", "NVRTC 1.0"),))

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels("gpu")

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        self.requests.append(request)
        if level.id == self.too_large_for:
            raise OutOfMemory("The GPU has too little memory.")
        result = super().run(request, PARALLEL, replace(context, log=RunLog()))
        context.log.add("compile", 5.0, counted=False)
        # Twice, as on a card: for the input and for the output.
        context.log.add("prepare", 0.0)
        context.log.add("upload", UPLOAD)
        context.log.add("prepare", 0.0)
        # The first of several launches finds the cache empty.
        repeats = (
            (9 * self.launch, *[self.launch] * (request.options.repeat - 1))
            if request.options.repeat > 1
            else ()
        )
        median = statistics.median(repeats) if repeats else self.launch
        parts = tuple(
            KernelTime(
                name, KERNEL / len(self.kernels), tuple(KERNEL / len(self.kernels) for _ in repeats)
            )
            for name in self.kernels
        )
        context.log.add("kernel", median, repeats=repeats, kernels=parts)
        if self.allocations:
            context.log.add("allocate", self.allocations.pop())
        context.log.add("download", DOWNLOAD)
        context.log.metrics += [
            Metric("copy rate", COPY_RATE, "B/s"),
            Metric("peak rate", PEAK_RATE, "op/s"),
            Metric("batch", self.batch, "launches"),
        ]
        return result
