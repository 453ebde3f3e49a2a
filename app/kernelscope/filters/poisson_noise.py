"""Poisson noise: every sample becomes the count of photons that arrived at random.

    result = P(u photons / white) white / photons

where P(m) is a random number of the Poisson distribution with mean m and variance m. For example,
with 100 photons for white, 51 stands for 20 photons; their number has a standard deviation of
sqrt(20) = 4.5, so that two of three results lie between 40 and 62.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.noise import SEED, NoiseSpec, drawn_by
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Unit
from kernelscope.schema.parameters import IntParameter
from kernelscope.schema.samples import white_level

_COUNTABLE = 2.0**52
"""From here on the noise is below the precision of float32, and counts would overflow."""


def _draw(
    stream: np.random.RandomState, row: NDArray[np.float64], photons: float, white: float
) -> NDArray[np.float64]:
    """Count `photons` for `white`, in proportion for other samples, none below zero."""
    counts = np.maximum(row, 0.0) * photons / white
    countable = counts < _COUNTABLE
    counts[countable] = stream.poisson(counts[countable])
    return counts * white / photons


SPEC = NoiseSpec(
    id="poisson_noise",
    name="Poisson noise",
    summary="Simulates counted photons: the noise of low light, stronger in bright areas.",
    synonyms=("shot noise", "photons", "grain"),
    source="Shot noise; with 255 photons and 8 bit as MATLAB’s imnoise with “poisson”",
    parameters=(
        IntParameter(
            name="photons",
            label="Photons at white",
            symbol="photons",
            help="Number of photons of a white sample: the fewer, the more noise.",
            default=255,
            minimum=1,
            maximum=1_000_000,
            slider=(1, 1000),
        ),
        SEED,
    ),
    unit=Unit.LEVELS,
    implementations=drawn_by(
        lambda task: (float(task.parameters["photons"]), white_level(task.source.dtype)),
        _draw,
    ),
    explanation=Explanation(
        formula=r"g = \frac{k}{N}, \quad k \sim \operatorname{Poisson}(N u)",
        use="To try a denoiser on the noise of low light, which is stronger where it is bright.",
        avoid="The noise of electronics is the same everywhere: that is Gaussian noise.",
        example=Example(patch=EDGE),
        before={"photons": 30},
    ),
)
