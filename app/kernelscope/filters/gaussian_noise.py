"""Gaussian noise: adds normal random numbers of mean 0, the noise of source N.

    result = u + sigma n, where n has the standard normal distribution

and sigma² is the variance where white is 1. With the default 0.001, sigma is 0.0316 of white, or 8
levels of 255: two of three samples of 128 end between 120 and 136.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kernelscope.filters.shared.noise import SEED, NoiseSpec, drawn_by
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Unit
from kernelscope.schema.parameters import FloatParameter
from kernelscope.schema.samples import white_level


def sigma_of(parameters: Mapping[str, Any]) -> float:
    """Return the standard deviation as a fraction of white."""
    return float(parameters["sigma"] or math.sqrt(parameters["variance"]))


SPEC = NoiseSpec(
    id="gaussian_noise",
    name="Gaussian noise",
    summary="Adds normally distributed noise, as electronics do.",
    synonyms=("grain", "white noise"),
    source="Kasparidis, NLM report, Thessaloniki",
    parameters=(
        FloatParameter(
            name="variance",
            label="Variance",
            symbol="σ²",
            help="Variance of the noise where white is 1: the square of sigma.",
            default=0.001,
            minimum=0.0,
            maximum=1.0,
            slider=(0.0, 0.05),
            step=0.001,
            decimals=6,
            matters=lambda parameters: not parameters["sigma"],
        ),
        FloatParameter(
            name="sigma",
            label="Or sigma",
            symbol="σ",
            help="Standard deviation where white is 1; above 0 it replaces the variance.",
            default=0.0,
            minimum=0.0,
            maximum=1000.0,
            slider=(0.0, 0.25),
            step=0.01,
            decimals=4,
            absent=0.0,
        ),
        SEED,
    ),
    unit=Unit.WHITE,
    implementations=drawn_by(
        lambda task: (sigma_of(task.parameters) * white_level(task.source.dtype),),
        lambda stream, row, sigma: row + sigma * stream.standard_normal(row.shape),
    ),
    explanation=Explanation(
        formula=r"g = u + \sigma n, \quad n \sim \mathcal{N}(0, 1)",
        use="To try a denoiser on noise of known strength: the picture before is the reference.",
        avoid="Shot noise of low light is Poisson noise, and that of magnitude MRI is Rician.",
        example=Example(patch=EDGE, parameters={"sigma": 0.03}),
        before={"sigma": 0.1},
    ),
)
