"""The result of a request: its output, how it ran, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.timing import LaunchReport, Metric, Repeats, Stage
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import Quality
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.schema.filter import Chip
from kernelscope.schema.levels import Level
from kernelscope.schema.parameters import rounded


@dataclass(frozen=True)
class Judgement:
    """How close the input and the result are to a reference."""

    before: Quality | None  # None if it cannot be compared: in colour with a grey reference
    after: Quality


@dataclass(frozen=True, eq=False)
class Result:
    """The output of a request, and how the run went."""

    request: Request
    output: Source
    # Where it really ran: names of a backend and of one of its levels.
    device: str
    level: str
    stages: tuple[Stage, ...]  # in the order in which they happened
    notices: tuple[str, ...] = ()  # for the user to know: why Auto did not use the GPU
    metrics: tuple[Metric, ...] = ()  # other measurements; only a GPU has any
    launch: LaunchReport | None = None  # the kernel that did the work; only a GPU has one
    quality: Judgement | None = None
    """None without a reference, or if the result cannot be compared, as a notice then explains."""
    estimates: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that were estimated from the data, by name; notices have them in words."""
    first: bool = False
    """The process had not run this code before: it was compiled or loaded for this run, and found
    caches, clocks and page tables cold. A later run may well be faster."""
    repeats: Repeats | None = None
    """Of a measured run, see `kernelscope.engine.measuring`; the stages are then those of its
    median repeat."""
    correlation: float | None = None
    """Of neighbours in the part that a denoiser removed: near 0 if that was white noise alone."""
    changed: int | None = None  # samples, where the filter has a word for them
    parts: tuple[Result, ...] = ()  # the result of each step, where a request has several
    uncompiled: bool = False  # NumPy computed it: the code of the filter is still being compiled

    @property
    def image(self) -> Image:
        assert isinstance(self.output, Image)
        return self.output

    @property
    def scan(self) -> Scan:
        assert isinstance(self.output, Scan)
        return self.output

    @cached_property
    def seconds(self) -> float:
        """Total of the counted stages: the time that the user waited, without compiling."""
        return sum(stage.seconds for stage in self.stages if stage.counted)

    @property
    def computing_seconds(self) -> float:
        """Time of computing: the kernels of a GPU, or the stage *compute* of the CPU."""
        name = "kernel" if self.device == Device.GPU else "compute"
        return sum(stage.seconds for stage in self.stages if stage.name == name)

    @property
    def compile_seconds(self) -> float:
        """Time of compiling, which is in no total."""
        return sum(stage.seconds for stage in self.stages if stage.name == "compile")

    @property
    def speed(self) -> float:
        """Input pixels or voxels (not samples) per second of `seconds`, in millions.

        Of a step that is limited to an area, those of the box around it count.
        """
        region, area = self.request.region, self.request.step.within
        if region is None and area is not None:
            region = area.region(*self.request.source.shape[:2])
        shape = self.request.source.shape[:-1]
        pixels = region.pixels if region is not None else math.prod(shape)
        return pixels / 1e6 / max(self.seconds, 1e-9)

    @property
    def speed_unit(self) -> str:
        return f"mega{self.request.source.unit}/s"

    @property
    def settings(self) -> str:
        if self.parts:
            return "; then ".join(part.settings for part in self.parts)
        return self.request.describe(self.estimates)

    @property
    def caption(self) -> str:
        """Return ``NLM · σ 0.0588 · CPU parallel``: the settings that have not their defaults."""
        if self.parts:
            return f"{' ▸ '.join(part.name for part in self.parts)} · {self.where}"
        unusual = [chip.text for chip in self.chips if not chip.usual]
        word = self.request.step.filter.changed
        changed = [] if self.changed is None else [f"{self.changed} {word}"]
        return " · ".join((self.name, *unusual, *changed, self.where))

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(part.request for part in self.parts) or (self.request,)

    @property
    def name(self) -> str:
        spec = self.request.step.filter
        return spec.short or spec.name

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The settings of the request and the estimates as chips."""
        return self.request.chips(self.estimates)

    @property
    def where(self) -> str:
        """Device and level in words: ``CPU parallel``, ``Emulated GPU shared memory``."""
        if self.request.stand_in:
            return f"CPU, quick preview by {self.request.stand_in}"
        if self.uncompiled:
            return "CPU, by NumPy"
        device = "Emulated GPU" if self.device == Device.EMULATED else self.device.upper()
        known = self._level
        return known.on(device) if known is not None else f"{device} {self.level}"

    @property
    def level_name(self) -> str:
        known = self._level
        return known.name if known is not None else self.level

    @property
    def _level(self) -> Level | None:
        """The level; None of a made-up backend or another version's."""
        kernels = Device.GPU if self.device == Device.EMULATED else self.device
        offered = self.request.step.filter.levels(kernels)
        return next((each for each in offered if each.id == self.level), None)

    @property
    def is_emulated(self) -> bool:
        """Whether the emulated GPU computed it, or one of its steps.

        Its stages are then those of a simulation on the processor: `seconds` is how long the user
        waited, and neither the time of a GPU nor that of the filter on the CPU.
        """
        return self.device == Device.EMULATED or any(part.is_emulated for part in self.parts)

    def describe(self) -> str:
        """Return the settings, the estimates, device and level in words."""
        return f"{self.settings}, {self.where}"


def same_output(first: Result, second: Result) -> bool:
    """Return whether two results are of the same source and steps, wherever they ran."""
    one, other = first.request, second.request
    return first is second or (one.source is other.source and one.work == other.work)


def estimate_notices(request: Request, estimates: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence about each parameter that was estimated, with the volumes' names."""
    sentences = []
    for name, estimate in estimates.items():
        parameter = request.step.filter.parameter(name)
        if isinstance(estimate, str):
            found = f"{parameter.label.lower()} is {parameter.caption(estimate)}"
            sentences.append(f"{request.step.filter.name}: {found}, as the data have it.")
            continue
        text = parameter.format(rounded(estimate)) + parameter.behind(estimate)
        if len(request.source.titles) > 1:
            text = f"{text} (of {', '.join(request.source.titles)})"
        sentences.append(
            f"{request.step.filter.name}: {parameter.label.lower()} was estimated: {text}."
        )
    return tuple(sentences)
