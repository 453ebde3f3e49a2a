"""Maximum against NumPy's windows; it and the minimum against SciPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from kernelscope import filters
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from tests.filters import apply
from tests.filters.test_minimum import CASES as CASES
from tests.oracle import extremes, footprint_of

EXTREMES = {"maximum": ndimage.maximum_filter, "minimum": ndimage.minimum_filter}
both = pytest.mark.parametrize("spec", [*map(filters.get, EXTREMES)], ids=[*EXTREMES])


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    return extremes(source, footprint_of(parameters), border, lowest=False)


@both
@pytest.mark.parametrize("size", range(3, 32, 2))
def test_every_size(spec: FilterSpec, size: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, (70, 45, 1)).astype(np.uint8)
    wanted = EXTREMES[spec.id](source[..., 0], size, mode="mirror")
    for level in spec.levels("cpu"):
        found = apply(spec, source, {"size": size}, Border.MIRROR, level.id)
        np.testing.assert_array_equal(found[..., 0], wanted)


@both
@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "constant", "wrap"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_masks_larger_than_the_image(spec: FilterSpec, mode: str, dtype: type[Any]) -> None:
    source = np.random.default_rng(1).integers(0, 200, (5, 4, 3)).astype(dtype) - dtype(90)
    wanted = EXTREMES[spec.id](source, (15, 15, 1), mode=mode)
    for level in spec.levels("cpu"):
        found = apply(spec, source, {"size": 15}, Border(mode), level.id)
        np.testing.assert_array_equal(found, wanted)
