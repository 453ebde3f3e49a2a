"""Speckle noise: multiplies every sample by a normal random number of mean 1.

    result = u (1 + sigma n), where n has the standard normal distribution

With the default variance of 0.01, sigma is 0.1: two of three samples of 100 end between 90 and 110,
and black stays black.
"""

from __future__ import annotations

import math

from kernelscope.filters.shared.noise import SEED, NoiseSpec, drawn_by
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.parameters import FloatParameter

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
