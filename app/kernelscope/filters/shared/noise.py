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

from collections.abc import Sequence
from functools import partial

import numpy as np

from kernelscope.base.jit import JitKernel
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


NoiseSpec = partial(
    FilterSpec,
    category="Noise",
    borders=(Border.REFLECT,),  # no pixel looks at another: all borders are the same
    crop=Crop(rows=True),  # a row draws its numbers from the left
)
"""A `FilterSpec` with the fields that all noise filters share."""
