"""Greyscale against the formula of ITU-R BT.601."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.filters.greyscale import SPEC
from app.filters.spec import Border, FilterTask

CASES: list[dict[str, Any]] = [{}]

WEIGHTS = np.array([299, 587, 114])


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    if source.shape[2] == 1:
        return source
    # Thousandths are divided last, so that ties are exact.
    exact = source.astype(np.float64) @ WEIGHTS.astype(np.float64) / 1000
    return exact[:, :, None]


def test_ties_go_to_even_at_every_level() -> None:
    green, blue = (axis.ravel() for axis in np.mgrid[:256, :256])
    for red in (0, 1, 128, 255):
        total = 299 * red + 587 * green + 114 * blue
        tie = total % 1000 == 500
        assert tie.any()
        source = np.stack([np.full_like(green, red), green, blue], 1)[tie].astype(np.uint8)[None]
        for level in SPEC.cpu_levels:
            output = np.empty((1, source.shape[1], 1), np.uint8)
            for sweep in SPEC.plan_cpu(FilterTask(source, output, {}, Border.REFLECT, level.id)):
                sweep.kernel(*sweep.arguments, 0, sweep.rows)
            below = total[tie] // 1000
            np.testing.assert_array_equal(output[0, :, 0], below + below % 2, level.id)
