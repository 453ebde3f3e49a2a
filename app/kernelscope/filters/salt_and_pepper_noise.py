"""Salt and pepper noise: some samples become white or black, the others stay.

For each sample, a random number r in [0, 1) decides: below density / 2 it becomes black, from there
to the density white. With the default density of 0.05, of 1000 samples about 25 become black, 25
white, and 950 stay.
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
    stream: np.random.RandomState, row: NDArray[np.float64], density: float, white: float
) -> NDArray[np.float64]:
    """Replace the share `density` of the samples, by `white` and by zero alike."""
    chance = stream.random_sample(row.shape)
    return np.where(chance < density / 2, 0, np.where(chance < density, white, row))


SPEC = NoiseSpec(
    id="salt_and_pepper_noise",
    name="Salt and pepper noise",
    summary="Turns some samples white and as many black, as faulty cells and lost bits do.",
    synonyms=("impulse noise", "dead pixels", "specks"),
    source="Gonzalez and Woods, Digital Image Processing, chapter 5",
    parameters=(
        FloatParameter(
            name="density",
            label="Density",
            help="Share of the samples that turn black or white, in each channel.",
            default=0.05,
            minimum=0.0,
            maximum=1.0,
            slider=(0.0, 0.5),
            step=0.01,
            decimals=4,
        ),
        SEED,
    ),
    unit=Unit.LEVELS,
    implementations=drawn_by(
        lambda task: (task.parameters["density"], white_level(task.source.dtype)),
        _draw,
    ),
    explanation=Explanation(
        formula=r"g = \begin{cases} 0 & \text{if } r < p / 2 \\ 1 & \text{if } p / 2 \le r < p \\"
        r" u & \text{otherwise} \end{cases}, \quad r \sim \mathcal{U}(0, 1)",
        use="To try filters on faulty cells and lost bits; the median is made for them.",
        avoid="Noise of sensors changes all samples a little: use Gaussian or Poisson noise.",
        example=Example(patch=EDGE, parameters={"density": 0.2}),
        before={"density": 0.1},
    ),
)
