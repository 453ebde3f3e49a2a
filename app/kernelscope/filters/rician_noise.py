"""Rician noise: the magnitude of a complex signal with Gaussian noise in both parts.

    result = sqrt((u + sigma n)² + (sigma m)²), where n and m have the normal distribution

The mean square is u² + 2 sigma²: dark places become brighter. For example, with sigma 20, black has
the mean square 800 (a mean of 25), and 100 has 10800, of which 104 is the root.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.noise import SEED, NoiseSpec, drawn_by
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Unit
from kernelscope.schema.parameters import FloatParameter
from kernelscope.schema.samples import white_level


def _draw(
    stream: np.random.RandomState, row: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    """Take samples for real parts; add noise of standard deviation `sigma` to both parts."""
    pairs = sigma * stream.standard_normal((*row.shape, 2))
    real, imaginary = row + pairs[..., 0], pairs[..., 1]
    return np.sqrt(real * real + imaginary * imaginary)


SPEC = NoiseSpec(
    id="rician_noise",
    name="Rician noise",
    summary="Adds the noise of magnitude MRI: nearly Gaussian where bright, Rayleigh in air.",
    synonyms=("mri noise", "magnitude"),
    source="Gudbjartsson and Patz, Magnetic Resonance in Medicine 34, 1995",
    parameters=(
        FloatParameter(
            name="sigma",
            label="Sigma",
            symbol="σ",
            help="Standard deviation of the real and the imaginary part, where white is 1.",
            default=0.03,
            minimum=0.0,
            maximum=1000.0,
            slider=(0.0, 0.25),
            step=0.01,
            decimals=4,
        ),
        SEED,
    ),
    unit=Unit.WHITE,
    implementations=drawn_by(
        lambda task: (task.parameters["sigma"] * white_level(task.source.dtype),), _draw
    ),
    explanation=Explanation(
        formula=r"g = \sqrt{(u + \sigma n_1)^2 + (\sigma n_2)^2}, \quad n_1, n_2 \sim"
        r" \mathcal{N}(0, 1)",
        use="To try a denoiser on the noise of magnitude MRI, which makes dark places brighter.",
        avoid="Pictures of cameras have no such noise.",
        example=Example(patch=EDGE),
        before={"sigma": 0.15},
    ),
)
