"""What was measured of one filter, on one picture or volume, by one level or library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelscope.spec.blocks import Block, block_name
from kernelscope.spec.samples import Pixels


@dataclass(frozen=True)
class Difference:
    """How a library's result differs from ours.

    Attributes
    ----------
    largest : float
        In levels, or in the unit of floats.
    share : float
        Of the samples that differ, 0 to 1.
    inside : bool
        Only samples were compared whose masks lie within the picture.
    """

    largest: float
    share: float
    inside: bool = False

    @classmethod
    def between(cls, ours: Pixels, theirs: Pixels, inside: bool = False) -> Difference:
        """Return how two results of the same shape differ."""
        if ours.dtype.kind == "f":
            distance = np.abs(ours.astype(np.float64) - theirs)
        else:  # unsigned: without the room that wider numbers of a large picture take
            distance = np.maximum(ours, theirs) - np.minimum(ours, theirs)
        if not distance.size:
            return cls(0.0, 0.0, inside)
        share = np.count_nonzero(distance) / distance.size
        return cls(float(distance.max()), share, inside)

    def describe(self) -> str:
        """Return it in words; empty if there is no difference."""
        if not self.largest:
            return ""
        where = " inside" if self.inside else ""
        return f"{self.share:.2%}{where} differ from ours, by up to {self.largest:g}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """The times of one filter by one level or library, or why there are none.

    Attributes
    ----------
    label : str
        The filter and the parameters that were chosen, for tables.
    filter, border : str
    parameters : mapping of str to str
        Every parameter, in the form that the command line takes.
    content : str
        What the data show, see `data.Content`.
    channels : int
        Channels or components.
    asked, shape : tuple of int
        Of the data: what was asked for, and the part that was timed, which is smaller if all
        would have taken too long. (height, width) or (depth, height, width).
    device : str
        ``cpu`` or ``gpu``.
    level : str
        A level of the device, or a library.
    library : bool
        Whether `level` is a library.
    gpus : int
        How many GPUs shared the work; the kernels' time is that of the busiest.
    block : tuple of int or None
        Threads of a GPU's blocks that were asked for; None for the plan's.
    seconds : tuple of float
        Every repeat of the computing: stage *compute*, the kernels, or a library's call.
    stages : mapping of str to tuple of float
        Every repeat of each counted stage, 0 where a run had none; empty for libraries.
    kernels : mapping of str to tuple of float
        Every repeat of each kernel, where a level has several that follow each other.
    bytes : float or None
        Least traffic with memory, read + written: of a level of the GPU what its plan says.
    operations : float or None
        Arithmetic of the plan of a level of the GPU.
    copy_rate, peak_rate : float or None
        Of the GPU: bytes per second of a copy on it, operations per second at most.
    batch : int
        Launches that each time of computing is the mean of, see `rules`.
    cache : str
        ``cold`` or ``warm``.
    load : float or None
        Cores that other programs kept busy meanwhile.
    psnr : float or None
        Of the result against the truth, in decibels, where there is one; None if a part was
        timed, which shows another picture.
    difference : Difference or None
        Of a library's result from ours.
    notices : tuple of str
    reason : str
        Why there are no times; empty if there are.
    machine : str
        Whose times they are where those of several machines stand side by side; else empty.
    """

    label: str
    filter: str
    parameters: Mapping[str, str]
    border: str
    content: str
    channels: int
    asked: tuple[int, ...]
    shape: tuple[int, ...]
    device: str
    level: str
    library: bool = False
    gpus: int = 1
    block: Block | None = None
    seconds: tuple[float, ...] = ()
    stages: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    kernels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    bytes: float | None = None
    operations: float | None = None
    copy_rate: float | None = None
    peak_rate: float | None = None
    batch: int = 1
    cache: str = ""
    load: float | None = None
    psnr: float | None = None
    difference: Difference | None = None
    notices: tuple[str, ...] = ()
    reason: str = ""
    machine: str = ""

    @property
    def series(self) -> str:
        """`runner`, of a machine where several are shown: ``NVIDIA H100: GPU shared``."""
        return f"{self.machine}: {self.runner}" if self.machine else self.runner

    @property
    def runner(self) -> str:
        """What ran it.

        ``CPU serial``, ``2 GPUs tuned``, ``GPU shared 16×16``, ``OpenCV``.
        """
        if self.library:
            return self.level
        several = self.device == "gpu" and self.gpus > 1
        block = f" {block_name(self.block)}" if self.block else ""
        return f"{f'{self.gpus} GPUs' if several else self.device.upper()} {self.level}{block}"

    @property
    def subject(self) -> tuple[Any, ...]:
        """What rows have to agree in to be compared: the filter and its data."""
        parameters = tuple(sorted(self.parameters.items()))
        return self.filter, parameters, self.border, self.content, self.channels, self.asked

    @property
    def pixels(self) -> int:
        """Pixels or voxels of what was timed."""
        return math.prod(self.shape)

    @property
    def size(self) -> str:
        """``1024×1024``, or ``189×157×130`` of a volume, of what was asked for."""
        return "×".join(map(str, reversed(self.asked)))

    @property
    def is_part(self) -> bool:
        """Whether less was timed than asked for, so that a time for all of it is scaled."""
        return self.shape != self.asked

    @property
    def timed_size(self) -> str:
        """`size` of what was timed."""
        return "×".join(map(str, reversed(self.shape)))

    @property
    def waits(self) -> tuple[float, ...]:
        """Every repeat of what a user waits for.

        On a GPU the run end to end; elsewhere, as there is nothing to carry, `seconds`.
        """
        if self.device == "gpu" and self.stages:
            return tuple(map(sum, zip(*self.stages.values(), strict=True)))
        return self.seconds
