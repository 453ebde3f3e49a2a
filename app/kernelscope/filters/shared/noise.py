"""Shared by the noise filters: their random numbers and their settings.

Row y draws from the Mersenne Twister ``numpy.random.RandomState(seeds[y])``, with
``seeds = numpy.random.SeedSequence(seed).generate_state(height)``: the
result does not depend on bands and threads, and seeds next to each other have nothing in
common. A row draws pixel by pixel and channel by channel; alpha draws nothing, so that it
does not change the noise of the colours.

Amounts of noise are fractions of white, which is 255, 65535 or, for float32, 1. Integer
results are rounded and saturated as usual; float32 results are not clipped to [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Line, Plane
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.correlation import Finish
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop
from kernelscope.schema.filter import Absent, Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.parameters import IntParameter
from kernelscope.schema.samples import colour_count

SEED = IntParameter(
    name="seed",
    counts_slices=True,
    label="Seed",
    help="The same seed gives the same noise.",
    default=0,
    minimum=0,
    maximum=2**31 - 1,
    slider=(0, 99),
)

Amounts = Callable[[CpuTask], tuple[float, ...]]
"""Maps a task to the numbers that its noise is drawn with."""

Draw = Callable[..., NDArray[Any]]
"""Maps a `RandomState`, the samples of a row (width, colours) and the amounts to noisy samples."""


def drawn_by(amounts: Amounts, draw: Draw) -> Mapping[str, Any]:
    """Return the implementations of a noise filter, which NumPy alone computes, row by row.

    Drawing the numbers takes nearly all the time, and code that Numba compiles draws them at the
    same pace. Serial and parallel are the same code: the two have to draw the same numbers.
    """

    def fill(source: Plane, output: Plane, seeds: Line, *rest: Any) -> None:
        *numbers, start, stop = rest
        colours, finish = colour_count(source.shape[2]), Finish.of(source.dtype, np.float64)
        stream = np.random.RandomState(0)  # to make one takes longer than to give it a seed
        for y in range(start, stop):
            stream.seed(seeds[y])
            row = source[y, :, :colours].astype(np.float64)
            output[y, :, :colours] = uncompiled.settled(draw(stream, row, *numbers), finish)

    kernel = uncompiled.Ready(fill)

    def plan(task: CpuTask) -> Sequence[CpuPass]:
        arguments = (task.source, task.output, _seeds(task), *amounts(task))
        return [CpuPass(kernel, arguments, task.source.shape[0])]

    return {"cpu": Cpu(plan, uncompiled=plan), "gpu": _NO_GPU}


def _seeds(task: CpuTask) -> NDArray[Any]:
    first, rows = task.origin[0], task.source.shape[0]
    return np.random.SeedSequence(task.parameters["seed"]).generate_state(first + rows)[first:]


_NO_GPU = Absent("Noise is drawn on the CPU only, so that a seed gives the same noise everywhere.")

NoiseSpec = partial(
    FilterSpec,
    category="Noise",
    borders=(Border.REFLECT,),  # no pixel looks at another: all borders are the same
    crop=Crop(rows=True),  # a row draws its numbers from the left
)
"""A `FilterSpec` with the fields that all noise filters share."""
