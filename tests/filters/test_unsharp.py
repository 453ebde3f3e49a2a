"""Unsharp mask against NumPy, and scikit-image's function and its tests as far as they apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.gaussian import SPEC as GAUSSIAN
from kernelscope.filters.unsharp import SPEC
from kernelscope.schema.borders import Border
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.filters import apply
from tests.filters.test_gaussian import DTYPES, pixels, smooth
from tests.oracle import WHITES

CASES: list[dict[str, Any]] = [
    {},
    {"amount": 2.5, "sigma": 0.4, "truncate": 3.0},
    {"amount": 0.6, "sigma": 2.6, "threshold": 9.5},
    {"sigma": 13.0, "truncate": 3.0},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    mean = smooth(source, parameters["sigma"], parameters["truncate"], border)
    inset = (source.shape[0] - mean.shape[0]) // 2
    own = source[inset : inset + mean.shape[0], inset : inset + mean.shape[1]].astype(np.float64)
    least = parameters["threshold"] * WHITES[source.dtype.name] / 255
    difference = own - mean
    return np.where(np.abs(difference) >= least, own + parameters["amount"] * difference, own)


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    return 1e-5 if dtype.kind == "f" else 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("sigma", "amount"), [(1.0, 1.0), (5.0, 2.0), (0.5, 0.5)])
def test_equals_scikit_image(dtype: np.dtype[Any], sigma: float, amount: float) -> None:
    skimage_filters = pytest.importorskip("skimage.filters")
    source = pixels(dtype)
    white = WHITES[dtype.name]
    wanted = white * skimage_filters.unsharp_mask(source[..., 0] / white, sigma, amount)
    # Its border is `reflect`; it clips floats as well.
    actual = apply(SPEC, source, {"sigma": sigma, "amount": amount})[..., 0]
    room = {1: 0.51, 2: 0.6, 4: 1e-5}[dtype.itemsize]
    assert np.abs(np.clip(actual, 0, white) - wanted).max() <= room


def test_a_difference_below_the_threshold_stays() -> None:
    """A step of 20 differs from its Gaussian by 6 beside the edge: 20 · (1 - 0.7) at sigma 1."""
    source = np.full((30, 30, 1), 100, np.uint8)
    source[:, 15:] = 120
    beside = [
        int(apply(SPEC, source, {"threshold": threshold})[15, 15, 0])
        for threshold in (0.0, 5.9, 6.1, 255.0)
    ]
    assert beside == [126, 126, 120, 120]


def test_a_difference_of_the_threshold_itself_counts() -> None:
    source = np.zeros((9, 9, 1), np.float32)
    source[4, 4] = 1
    difference = float(1 - apply(GAUSSIAN, source, {"sigma": 1.0})[4, 4, 0])
    for factor, wanted in ((1.0, 1 + difference), (1 + 1e-6, 1.0)):
        for level in ("serial", "parallel"):
            output = apply(SPEC, source, {"threshold": 255 * factor * difference}, level=level)
            assert output[4, 4, 0] == pytest.approx(wanted, abs=1e-6)


def test_the_threshold_is_in_255ths_of_white() -> None:
    source = np.full((30, 30, 1), 100, np.uint16) * np.uint16(257)
    source[:, 15:] = 120 * 257
    for threshold, changed in ((5.9, True), (6.1, False)):
        output = apply(SPEC, source, {"threshold": threshold})
        assert (output[15, 15, 0] != source[15, 15, 0]) == changed
        floats = (source / 65535).astype(np.float32)
        output = apply(SPEC, floats, {"threshold": threshold})
        assert (output[15, 15, 0] != floats[15, 15, 0]) == changed


def test_no_amount_and_flat_pictures_change_nothing() -> None:
    source = pixels(np.dtype(np.uint16))
    np.testing.assert_array_equal(apply(SPEC, source, {"amount": 0.0}), source)
    flat = np.full((20, 20, 1), 77, np.uint8)
    np.testing.assert_array_equal(apply(SPEC, flat, {"amount": 10.0}), flat)


# Bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("border", SPEC.borders)
@pytest.mark.parametrize("dtype", DTYPES)
def test_serial_and_parallel_have_the_same_bits(dtype: np.dtype[Any], border: Border) -> None:
    source = pixels(dtype, (45, 67, 3))
    for case in CASES[:3]:
        serial = apply(SPEC, source, case, border, "serial")
        assert serial.tobytes() == apply(SPEC, source, case, border).tobytes()


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("level", SPEC.levels("gpu"))
def test_every_level_of_a_card_has_the_bits_of_the_processor(level: Any) -> None:
    for dtype, shape, border in (
        (DTYPES[2], (45, 90, 1), Border.VALID),
        (DTYPES[1], (37, 43, 3), Border.WRAP),
        (DTYPES[0], (37, 67, 4), Border.REDUCE),
    ):
        source = pixels(dtype, shape)
        for case in CASES[1:3]:
            actual = emulated.run("unsharp", source, case, level.id, border)
            assert actual.tobytes() == apply(SPEC, source, case, border).tobytes()
