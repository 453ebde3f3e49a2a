"""Morphology against NumPy's windows and SciPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from kernelscope.filters.morphology import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.oracle import OWN_FOOTPRINT, extremes, footprint_of, to_dtype

CASES: list[dict[str, Any]] = [
    {"operation": "opening", "size": 5, "footprint": "disk"},
    {"operation": "closing", "size": 3},
    {"operation": "gradient", "footprint": OWN_FOOTPRINT},
    {"operation": "white-top-hat", "footprint": OWN_FOOTPRINT},
    {"operation": "black-top-hat", "size": 5, "footprint": "cross"},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    operation, mask = parameters["operation"], footprint_of(parameters)
    turned = np.rot90(mask, 2)

    def eroded(picture: NDArray[Any]) -> NDArray[Any]:
        return to_dtype(extremes(picture, mask, border, lowest=True), source.dtype)

    def dilated(picture: NDArray[Any]) -> NDArray[Any]:
        return to_dtype(extremes(picture, turned, border, lowest=False), source.dtype)

    wide = np.float64 if source.dtype.kind == "f" else np.int64
    if operation == "gradient":
        return dilated(source).astype(wide) - eroded(source)
    opens = operation in ("opening", "white-top-hat")
    made = (dilated(eroded(source)) if opens else eroded(dilated(source))).astype(wide)
    cut = 2 * (len(mask) // 2) if border is Border.VALID else 0
    inside = source[cut : source.shape[0] - cut, cut : source.shape[1] - cut]
    if operation == "white-top-hat":
        return inside - made
    return made - inside if operation == "black-top-hat" else made


SCIPY = {
    "opening": ndimage.grey_opening,
    "closing": ndimage.grey_closing,
    "gradient": ndimage.morphological_gradient,
    "white-top-hat": ndimage.white_tophat,
    "black-top-hat": ndimage.black_tophat,
}


@pytest.mark.parametrize("operation", SCIPY)
@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "constant", "wrap"])
def test_equals_scipy_with_every_mask(operation: str, mode: str) -> None:
    """Even and odd sides, without a centre, larger than the picture; floats of both signs."""
    random = np.random.default_rng(5)
    masks: list[Any] = [np.ones((5, 5)), [[0, 1, 0], [1, 1, 1], [0, 1, 0]], OWN_FOOTPRINT]
    masks += [random.random(shape) > 0.5 for shape in ((2, 2), (6, 3), (1, 9), (14, 15))]
    source = random.integers(-90, 90, (11, 13)).astype(np.float32)
    for mask in masks:
        wanted = SCIPY[operation](source, footprint=np.array(mask, bool), mode=mode)
        for level in SPEC.levels("cpu"):
            values = {"operation": operation, "footprint": mask}
            found = apply(SPEC, source[..., None], values, Border(mode), level.id)
            np.testing.assert_array_equal(found[..., 0], wanted, f"{level.id} {np.shape(mask)}")


def test_differences_of_bytes_do_not_wrap() -> None:
    """Zeros outside make a closing darker than its source; SciPy's result is 256 too large."""
    source = np.full((4, 5, 1), 200, np.uint8)
    values = {"operation": "black-top-hat", "size": 3}
    assert not apply(SPEC, source, values, Border.CONSTANT).any()
