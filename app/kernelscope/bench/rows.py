"""The measurements of one filter on one picture or volume, by one level or library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from kernelscope import filters
from kernelscope.bench.data import MOST_CHANNELS, Content
from kernelscope.bench.plan import MEASURABLE, GpuCount, KnownDevice
from kernelscope.schema.blocks import MOST_THREADS, block_name
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import Level
from kernelscope.schema.samples import Pixels

# Upper limits; a larger value is taken for a damaged file.
_Seconds = Annotated[float, (0, MEASURABLE[1])]
_Amount = Annotated[float, (0, 1e30)]
_Rate = Annotated[float, (1, 1e30)]
_Threads = Annotated[int, (1, MOST_THREADS)]


@dataclass(frozen=True)
class Difference:
    largest: Annotated[float, (0, math.inf)]  # in grey levels, or in the unit of floats
    share: Annotated[float, (0, 1)]  # of the samples that differ, 0 to 1
    inside: bool = False  # only samples whose masks lie within the picture were compared

    @classmethod
    def between(cls, ours: Pixels, theirs: Pixels, inside: bool = False) -> Difference:
        if ours.dtype.kind == "f":
            distance = np.abs(ours.astype(np.float64) - theirs)
        else:  # unsigned differences, because wider types would double the memory
            distance = np.maximum(ours, theirs) - np.minimum(ours, theirs)
        if not distance.size:
            return cls(0.0, 0.0, inside)
        share = np.count_nonzero(distance) / distance.size
        return cls(float(distance.max()), share, inside)

    def describe(self) -> str:
        if not self.largest:
            return ""
        where = " inside" if self.inside else ""
        return f"{100 * self.share:.2f} %{where} differ from ours, by up to {self.largest:g}"


@dataclass(frozen=True, kw_only=True)
class Row:
    label: str  # the filter and the parameters that were chosen, for tables
    filter: str
    parameters: Mapping[str, str]  # every parameter, in the form that the command line takes
    border: Annotated[str, tuple(Border)]
    content: Annotated[str, tuple(Content)]
    channels: Annotated[int, (1, MOST_CHANNELS)]  # or components
    # Shapes of the requested data and of the part that was timed, which is smaller if all would
    # have taken too long. (height, width) or (depth, height, width).
    asked: tuple[int, ...]
    shape: tuple[int, ...]
    device: KnownDevice
    level: str  # a level of the device, or a library
    library: bool = False  # whether `level` is a library
    gpus: GpuCount = 1  # how many GPUs shared the work; the kernels' time is that of the busiest
    block: tuple[_Threads, _Threads] | None = None
    """Requested threads of a GPU's blocks; None for the plan's."""
    seconds: tuple[Annotated[float, MEASURABLE], ...] = ()
    """Every repeat of the computing: stage *compute*, the kernels, or a library's call."""
    stages: Mapping[str, tuple[_Seconds, ...]] = field(default_factory=dict)
    """Every repeat of each counted stage, 0 if a run skipped it; empty for libraries."""
    kernels: Mapping[str, tuple[_Seconds, ...]] = field(default_factory=dict)
    """Every repeat of each kernel, if a level runs several in sequence."""
    bytes: _Amount | None = None
    """Minimum memory traffic, read + written, by the plan of a level of the GPU."""
    operations: _Amount | None = None  # arithmetic operations by the plan of a level of the GPU
    # Of the GPU: bytes per second of a copy in its memory, peak operations per second.
    copy_rate: _Rate | None = None
    peak_rate: _Rate | None = None
    batch: Annotated[int, (1, 1 << 40)] = 1
    """Number of launches that each computing time is the mean of, see `rules`."""
    cache: str = ""  # ``cold`` or ``warm``
    load: _Amount | None = None
    """Mean number of cores that other programs kept busy during the measurement."""
    psnr: Annotated[float, (-math.inf, math.inf)] | None = None
    """Of the result against the noise-free picture, in decibels; None without one, or if a part was
    timed, which shows another picture."""
    difference: Difference | None = None  # between a library's result and ours
    notices: tuple[str, ...] = ()
    reason: str = ""  # why there are no times; empty if there are
    machine: str = ""  # the machine, if the rows of several are shown together; else empty

    @property
    def title(self) -> str:
        """The label, and the channels or components if there are several: ``Mean, RGB``."""
        if self.channels == 1:
            return self.label
        if len(self.asked) == 3:
            return f"{self.label}, {self.channels} components"
        return f"{self.label}, {'RGB' if self.channels == 3 else f'{self.channels} channels'}"

    @property
    def series(self) -> str:
        """`runner`, preceded by the machine if several are shown: ``NVIDIA H100: GPU shared``."""
        return f"{self.machine}: {self.runner}" if self.machine else self.runner

    @property
    def name(self) -> str:
        """`series` with the level in words: ``GPU shared memory 16×16``."""
        level = self._level
        if level is None:
            return self.series
        device, _, block = self.runner.partition(f" {self.level}")
        name = f"{level.on(device)}{block}"
        return f"{self.machine}: {name}" if self.machine else name

    @property
    def level_name(self) -> str:
        return self._level.name if self._level is not None else self.level

    @property
    def _level(self) -> Level | None:
        """None of a library, and of a level that is no longer there."""
        return None if self.library else filters.levels(self.device).get(self.level)

    @property
    def runner(self) -> str:
        """The device and level, or the library, that computed it.

        ``CPU serial``, ``2 GPUs tuned``, ``GPU shared 16×16``, ``OpenCV``.
        """
        if self.library:
            return self.level
        several = self.device == Device.GPU and self.gpus > 1
        block = f" {block_name(self.block)}" if self.block else ""
        return f"{f'{self.gpus} GPUs' if several else self.device.upper()} {self.level}{block}"

    @property
    def subject(self) -> tuple[Any, ...]:
        parameters = tuple(sorted(self.parameters.items()))
        return self.filter, parameters, self.border, self.content, self.channels, self.asked

    def values(self, spec: FilterSpec) -> dict[str, Any]:
        """Return the parameters as `spec`, its filter, takes them.

        A report of another version may lack a parameter, which has its default then, or have
        others, which are left out.
        """
        known = {parameter.name: parameter for parameter in spec.parameters}
        return spec.defaults() | {
            name: known[name].parse(text) for name, text in self.parameters.items() if name in known
        }

    @property
    def pixels(self) -> int:
        return math.prod(self.shape)

    @property
    def size(self) -> str:
        return "×".join(map(str, reversed(self.asked)))

    @property
    def is_part(self) -> bool:
        """Whether only a part of the data was timed, so that a time for all of it is scaled."""
        return self.shape != self.asked

    @property
    def timed_size(self) -> str:
        return "×".join(map(str, reversed(self.shape)))

    @property
    def waits(self) -> tuple[float, ...]:
        """Every repeat of the time that a user waits for.

        On a GPU the run end to end; elsewhere `seconds`, as there are no transfers.
        """
        if self.device == Device.GPU and self.stages:
            return tuple(map(sum, zip(*self.stages.values(), strict=True)))
        return self.seconds

    @property
    def is_whole(self) -> bool:
        """Whether `waits` is the time of whole runs.

        It is not of libraries on a GPU: their data are there, and only the call is timed.
        """
        return not (self.library and self.device == Device.GPU and not self.stages)
