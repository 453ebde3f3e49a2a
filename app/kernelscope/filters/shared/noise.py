"""Shared by the noise filters: their random numbers and their settings.

Row y draws from the Mersenne Twister ``numpy.random.RandomState(seeds[y])``, which Numba
implements too, with ``seeds = numpy.random.SeedSequence(seed).generate_state(height)``: the
result does not depend on bands and threads, and seeds next to each other have nothing in
common. A row draws pixel by pixel and channel by channel; alpha draws nothing, so that it
does not change the noise of the colours.

Amounts of noise are fractions of white, which is 255, 65535 or, for float32, 1. Integer
results are rounded and saturated as usual; float32 results are not clipped to [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import JitKernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.correlation import Finish
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop
from kernelscope.schema.filter import Absent, CpuPass, CpuTask, FilterSpec
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

NO_GPU = Absent("Noise is drawn on the CPU only, so that a seed gives the same noise everywhere.")


def plan_noise(task: CpuTask, kernel: JitKernel, *amounts: float) -> Sequence[CpuPass]:
    """Plan ``kernel(source, output, colours, seeds, finish, *amounts, start, stop)``.

    Serial and parallel are the same kernel: drawing the numbers takes nearly all the time,
    and the two have to draw the same ones.

    - `kernel`: gives the first `colours` channels of row y noise that is drawn after
      ``np.random.seed(seeds[y])``.
    """
    source = task.source
    height, _, channels = source.shape
    colours = colour_count(channels)
    first = task.origin[0]
    seeds = np.random.SeedSequence(task.parameters["seed"]).generate_state(first + height)[first:]
    finish = Finish.of(source.dtype, np.float64)
    return [CpuPass(kernel, (source, task.output, colours, seeds, finish, *amounts), height)]


Draw = Callable[[np.random.RandomState, NDArray[np.float64], CpuTask], NDArray[Any]]
"""Maps the numbers of a row, its samples (width, colours) and the task to the noisy samples."""


def uncompiled_noise(draw: Draw) -> Callable[[CpuTask], Sequence[CpuPass]]:
    """Return the plan of the same noise by NumPy, whose numbers Numba draws too."""

    def rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
        source, first = task.source, task.origin[0]
        seeds = np.random.SeedSequence(task.parameters["seed"]).generate_state(first + stop)[first:]
        output, colours = source[start:stop].copy(), colour_count(source.shape[2])
        for y in range(start, stop):
            row = source[y, :, :colours].astype(np.float64)
            noisy = draw(np.random.RandomState(seeds[y]), row, task)
            output[y - start, :, :colours] = uncompiled.finished(task, noisy)
        return output

    return uncompiled.by_numpy(rows)


NoiseSpec = partial(
    FilterSpec,
    category="Noise",
    borders=(Border.REFLECT,),  # no pixel looks at another: all borders are the same
    crop=Crop(rows=True),  # a row draws its numbers from the left
)
"""A `FilterSpec` with the fields that all noise filters share."""
