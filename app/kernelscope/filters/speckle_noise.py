"""Speckle noise: multiplies every sample by a normal random number of mean 1.

    result = u (1 + sigma n), where n has the standard normal distribution

With the default variance of 0.01, sigma is 0.1: two of three samples of 100 end between 90 and 110,
and black stays black.
"""

from __future__ import annotations

import math

import numpy as np

from kernelscope.base.jit import Index, Line, Number, Plane, Record, kernel
from kernelscope.filters.shared.correlation import settle
from kernelscope.filters.shared.noise import SEED, NoiseSpec, drawn_by
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.parameters import FloatParameter


@kernel
def speckle(
    source: Plane,
    output: Plane,
    colours: Index,
    seeds: Line,
    finish: Record,
    sigma: Number,
    start: Index,
    stop: Index,
) -> None:
    """Add to each sample its product with noise of standard deviation `sigma`."""
    for y in range(start, stop):
        np.random.seed(seeds[y])
        for x in range(source.shape[1]):
            for c in range(colours):
                sample = np.float64(source[y, x, c])
                noise = sigma * np.random.standard_normal()
                output[y, x, c] = settle(sample + sample * noise, finish)


SPEC = NoiseSpec(
    id="speckle_noise",
    name="Speckle noise",
    summary="Multiplies each sample by noise, as radar and ultrasound do: black stays black.",
    synonyms=("multiplicative noise", "ultrasound", "radar"),
    source="scikit-image, random_noise with mode “speckle”",
    parameters=(
        FloatParameter(
            name="variance",
            label="Variance",
            symbol="σ²",
            help="Variance of the factor, whose mean is 1.",
            default=0.01,
            minimum=0.0,
            maximum=1.0,
            slider=(0.0, 0.2),
            step=0.01,
            decimals=6,
        ),
        SEED,
    ),
    implementations=drawn_by(
        speckle,
        lambda task: (math.sqrt(task.parameters["variance"]),),
        lambda stream, row, sigma: row + row * (sigma * stream.standard_normal(row.shape)),
    ),
    explanation=Explanation(
        formula=r"g = u\, (1 + \sigma n), \quad n \sim \mathcal{N}(0, 1)",
        use="To try filters on the noise of radar and ultrasound, which grows with the brightness.",
        avoid="Shot noise grows with the root of the brightness: that is Poisson noise.",
        example=Example(patch=EDGE),
        before={"variance": 0.04},
    ),
)
