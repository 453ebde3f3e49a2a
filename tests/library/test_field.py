"""The cases of the tests that SciPy, scikit-image and CuPy have for the filters that we share.

Cases are theirs, expectations come from a definition or from the library itself, code is ours.

- SciPy's ``test_correlate01`` to ``26``, impulses, kernels, types: `test_masks`. A kernel of one
  axis is a mask with a row. There are no other origins, and no complex numbers.
- ``test_minimum_filter*``, ``test_maximum_filter*``, ``test_minmax_filter``: `test_extremes`. There
  are no origins; footprints have tests of their own.
- ``test_rank*``, ``test_median_filter``, ``test_gh_22250``, ``22333``, ``23046``, ``23075``:
  `test_medians`. There are no other ranks, and no percentiles.
- ``test_byte_order_median``: `test_byte_order`.
- ``test_sobel*``, ``test_multiple_modes_sobel``: `test_sobel`, both directions at once. There is
  one border for both axes.
- ``test_laplace*``, ``test_generic_laplace01``: `test_laplace`. There are no other derivatives.
- ``test_filter_axes``, ``test_filter_invalid_axes``, ``test_correlate_convolve_axes``: `test_axes`.
  One axis alone is no picture; three have tests of their own.
- ``test_zero_size``, ``test_edge_cases``, ``test_input_validation``: `test_nothing_and_little`.
- ``*_overlap``: `test_result_over_its_input`.
- Not here: ``test_extend*`` and ``test_edges``, which the contract has for every filter;
  ``test_gauss*``, as the Gaussian has tests of its own; ``test_prewitt*``,
  ``test_gaussian_laplace*``, ``test_generic_*``, ``test_*gradient_magnitude*``,
  ``test_valid_origins*``, of filters and arguments that do not exist; ``test_dtype_batch_memory``.
- scikit-image's ``test_median``: `test_medians`. Their ``mask`` is ``within`` here.
- cupyx's ``test_filters``, sizes 3 and 4, modes, constants, types, strides: `test_medians`,
  `test_extremes`, `test_orders`; arrays of four axes in `test_axes`.
- ``test_uniform*`` are `test_averages_have_masks_of_any_sides` of test_language.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage
from skimage import filters as skimage_filters

import kernelscope

ks: Any = kernelscope

MODES = ("reflect", "mirror", "nearest", "constant", "wrap")
TYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float32",
    "float64",
)
SMALL = np.array([[3, 2, 5, 1, 4], [7, 6, 9, 3, 5], [5, 8, 3, 7, 1]])


def samples(dtype: str, shape: tuple[int, ...] = (17, 23), seed: int = 1) -> NDArray[Any]:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    return random.integers(0, 100, shape).astype(dtype)


# Averages ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", MODES)
def test_masks(dtype: str, mode: str) -> None:
    image, random = samples(dtype), np.random.default_rng(2)
    for side in (3, 5):
        mask = random.integers(0, 9, (side, side))
        exact = ndimage.correlate(image.astype(float), mask.astype(float), mode=mode)
        found = ks.mask(image, mask=mask, divisor="one", mode=mode)
        limits = None if image.dtype.kind in "bf" else np.iinfo(image.dtype)
        if dtype == "bool":
            exact = exact > 0.5
        elif limits is not None:
            exact = exact.clip(limits.min, limits.max)
        np.testing.assert_allclose(found, exact, rtol=1e-6)


# Ranks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [3, 5, 2, 4, (3, 5), (1, 6)])
def test_extremes(dtype: str, size: Any) -> None:
    small = SMALL > 4 if dtype == "bool" else SMALL.astype(dtype)
    for image in (samples(dtype), small):
        for mode in MODES:
            for name in ("minimum", "maximum"):
                theirs = getattr(ndimage, f"{name}_filter")(image, size, mode=mode)
                found = getattr(ks, name)(image, size=size, mode=mode)
                np.testing.assert_array_equal(found, theirs, f"{name} {mode}", strict=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [3, 5, 7, 2, 4, (3, 5), (1, 6)])
def test_medians(dtype: str, size: Any) -> None:
    small = SMALL > 4 if dtype == "bool" else SMALL.astype(dtype)
    for image in (samples(dtype), small, samples(dtype, (1, 9)), samples(dtype, (9, 1))):
        for mode in MODES:
            theirs = ndimage.median_filter(image, size, mode=mode)
            np.testing.assert_array_equal(ks.median(image, size=size, mode=mode), theirs, mode)


@pytest.mark.parametrize("name", ["median", "mean", "minimum", "maximum", "weighted_mean"])
def test_byte_order(name: str) -> None:
    for dtype in ("<u2", ">u2", "<f4", ">f4", ">i4", ">f8"):
        image = samples(dtype)
        native = image.astype(image.dtype.newbyteorder("="))
        np.testing.assert_array_equal(getattr(ks, name)(image), getattr(ks, name)(native))


@pytest.mark.parametrize("name", ["median", "mean", "minimum", "maximum", "laplace"])
def test_orders(name: str) -> None:
    """Fortran's order, strides, steps backwards, read-only memory: the values count."""
    wide, function = samples("uint8", (40, 60)), getattr(ks, name)
    frozen = wide.copy()
    frozen.flags.writeable = False
    for image in (np.asfortranarray(wide), wide[::2, 3::3], wide[::-1, ::-1], wide.T, frozen):
        np.testing.assert_array_equal(function(image), function(image.copy(order="C")))


# Edges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_sobel(mode: str, dtype: str) -> None:
    """Roots are taken in float32."""
    image = samples(dtype)
    along = [ndimage.sobel(image.astype(float), axis, mode=mode) for axis in (0, 1)]
    found = ks.sobel(image.astype(np.float64), form="magnitude", mode=mode)
    np.testing.assert_allclose(found, np.hypot(*along), rtol=3e-6)
    if mode != "constant":  # skimage has a border of its own for it
        theirs = skimage_filters.sobel(image.astype(float), mode=mode) * 4 * np.sqrt(2)
        np.testing.assert_allclose(found, theirs, rtol=3e-6, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_laplace(mode: str, dtype: str) -> None:
    image = samples(dtype)
    theirs = ndimage.laplace(image.astype(np.float64), mode=mode)
    found = ks.laplace(image, mode=mode, negative="absolute")
    np.testing.assert_allclose(found, np.abs(theirs), rtol=1e-6)


# Axes, empty arrays, memory ---------------------------------------------------------------

NAMES = ("median", "mean", "minimum", "maximum")
THEIRS = ("median_filter", "uniform_filter", "minimum_filter", "maximum_filter")


@pytest.mark.parametrize(("name", "theirs"), list(zip(NAMES, THEIRS, strict=True)))
def test_axes(name: str, theirs: str) -> None:
    array = samples("float64", (4, 9, 5, 11))
    for axes in ((0, 1), (1, 3), (-1, 1), (2, -2), (3, 2)):
        places = [each % 4 for each in axes]
        if len(set(places)) < 2:
            with pytest.raises(ks.AppError, match="axes"):
                getattr(ks, name)(array, axes=axes)
            continue
        size = [3 if axis in places else 1 for axis in range(4)]
        expected = getattr(ndimage, theirs)(array, size)
        np.testing.assert_allclose(getattr(ks, name)(array, axes=axes), expected, rtol=1e-12)
    for wrong in ((0, 4), (0, -5), (0,), (0, 1, 2, 3), (0.5, 1)):
        with pytest.raises(ks.AppError, match="axes"):
            getattr(ks, name)(array, axes=wrong)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_and_little(name: str) -> None:
    function = getattr(ks, name)
    for shape in ((0, 5), (5, 0), (0, 0)):
        with pytest.raises(ks.AppError, match="no pixels"):
            function(np.zeros(shape))
    for mode in MODES:
        one = np.array([[7]], np.uint8)
        size = 5
        theirs = getattr(ndimage, THEIRS[NAMES.index(name)])(one.astype(float), size, mode=mode)
        assert function(one, size=size, mode=mode) == np.rint(theirs), mode


@pytest.mark.parametrize("name", NAMES)
def test_result_over_its_input(name: str) -> None:
    for dtype in ("uint8", "float64"):
        image = samples(dtype)
        expected = getattr(ks, name)(image)
        assert getattr(ks, name)(image, out=image) is image
        np.testing.assert_array_equal(image, expected)
