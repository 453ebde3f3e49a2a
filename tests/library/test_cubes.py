"""Three `axes`: the mask goes through volumes, as with scipy.ndimage."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

import kernelscope as ks
from kernelscope.base.errors import AppError
from tests.library.test_language import Labelled

VOLUME = np.random.default_rng(0).integers(0, 256, (6, 9, 11)).astype(np.uint8)

ALL = (0, 1, 2)


def test_the_mask_is_a_cube_or_has_a_side_for_each_axis() -> None:
    for size in (3, (1, 3, 5)):
        made = ks.median(VOLUME, size=size, axes=ALL)
        np.testing.assert_array_equal(made, ndimage.median_filter(VOLUME, size))
    made = ks.median(VOLUME, size=(1, 3, 5), axes=(2, 0, 1))
    np.testing.assert_array_equal(made, ndimage.median_filter(VOLUME, (3, 5, 1)))
    assert made.flags.writeable


def test_sums_are_those_of_scipy() -> None:
    exact = VOLUME.astype(np.int64)
    wanted = np.sqrt(sum(ndimage.sobel(exact, axis).astype(float) ** 2 for axis in ALL))
    made = ks.sobel(VOLUME.astype(float), form="magnitude", axes=ALL)
    np.testing.assert_allclose(made, wanted, rtol=1e-14)
    made = ks.laplace(VOLUME, axes=(-3, -2, -1))
    np.testing.assert_array_equal(made, np.abs(ndimage.laplace(exact)).clip(0, 255))
    weights = np.einsum("i,j,k->ijk", *[[1, 4, 6, 4, 1]] * 3)
    made = ks.weighted_mean(VOLUME, size=5, axes=ALL, mode="mirror")
    total = ndimage.correlate(exact, weights, mode="mirror")
    np.testing.assert_array_equal(made, np.rint(total / 4**6))


def test_the_gaussian_is_that_of_scipy() -> None:
    floats = VOLUME.astype(float)
    for border in ("reflect", "mirror", "nearest", "constant", "wrap"):
        made = ks.gaussian(floats, sigma=1.3, axes=ALL, border=border)
        wanted = ndimage.gaussian_filter(floats, 1.3, mode=border)
        np.testing.assert_allclose(made, wanted, rtol=1e-12)
    made = ks.gaussian(VOLUME, sigma=1.3, truncate=2.5, axes=ALL)
    wanted = ndimage.gaussian_filter(floats, 1.3, truncate=2.5)
    np.testing.assert_array_equal(made, np.rint(wanted))


def test_other_axes_count_volumes() -> None:
    series = np.random.default_rng(1).integers(-900, 900, (2, 6, 9, 11))
    wanted = np.stack([np.rint(ndimage.uniform_filter(each.astype(float), 3)) for each in series])
    for dtype in ("int64", "int16", "int32", "float64"):
        made = ks.mean(series.astype(dtype), size=3, axes=(1, 2, 3))
        assert made.dtype == dtype
        np.testing.assert_array_equal(np.rint(made), wanted)
    turned = series.transpose(2, 1, 3, 0)
    made = ks.mean(turned, size=3, axes=(1, 0, 2))
    np.testing.assert_array_equal(made, wanted.transpose(2, 1, 3, 0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32", "float64"])
def test_the_type_stays(dtype: str) -> None:
    volume = (VOLUME > 120) if dtype == "bool" else (VOLUME % 99).astype(dtype)
    made = ks.median(volume, size=3, axes=ALL)
    assert made.dtype == volume.dtype
    np.testing.assert_array_equal(made, ndimage.median_filter(volume.astype(float), 3))
    floats = ks.mean(volume, size=3, axes=ALL)
    assert floats.dtype == volume.dtype
    wanted = ndimage.uniform_filter(volume.astype(float), 3)
    tolerance = 0 if dtype == "float64" else 0.5 if volume.dtype.kind in "biu" else 0.05
    np.testing.assert_allclose(floats.astype(float), wanted, rtol=1e-13, atol=tolerance + 1e-13)


def test_integers_that_floats_do_not_hold_are_refused() -> None:
    volume = np.full((3, 7, 7), -(2**53))
    np.testing.assert_array_equal(ks.median(volume, axes=ALL), volume)
    volume[1, 1, 1] -= 1  # a 64-bit float rounds it to the number before
    with pytest.raises(AppError, match=r"64-bit floats, .* do not hold these integers"):
        ks.median(volume, axes=ALL)


def test_what_lies_outside() -> None:
    floats = VOLUME.astype(float)
    made = ks.mean(floats, size=(3, 5, 1), axes=ALL, border="constant", cval=7.5)
    wanted = ndimage.uniform_filter(floats, (3, 5, 1), mode="constant", cval=7.5)
    np.testing.assert_allclose(made, wanted, rtol=1e-13)
    with pytest.raises(AppError, match="have no value"):
        ks.mean(VOLUME, axes=ALL, border="constant", cval=7.5)


def test_nan_stays_where_it_was() -> None:
    for dtype in ("float32", "float64"):
        volume = VOLUME.astype(dtype)
        volume[2, 3, 4] = np.nan
        with pytest.raises(AppError, match="NaN"):
            ks.median(volume, axes=ALL)
        made = ks.median(volume, axes=ALL, nan=0.0)
        assert np.isnan(made[2, 3, 4])
        assert np.isnan(made).sum() == 1


def test_dask() -> None:
    dask = pytest.importorskip("dask.array")
    large = np.tile(VOLUME, (3, 3, 3))
    wanted = ndimage.median_filter(large, 3, mode="wrap")
    lazy: Any = ks.median(dask.from_array(large, chunks=(7, 13, 20)), axes=ALL, border="wrap")
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), wanted)
    with pytest.raises(AppError, match="black, white and sign"):
        ks.laplace(dask.from_array(large), negative="clip", axes=ALL)


def test_names_of_axes() -> None:
    named: Any = Labelled(VOLUME[:, np.newaxis], ("z", "t", "y", "x"), {})
    made: Any = ks.median(named, size=(3, 1, 5), axes=("z", "y", "x"))
    assert made.dims == named.dims
    np.testing.assert_array_equal(made.data[:, 0], ndimage.median_filter(VOLUME, (3, 1, 5)))


def test_a_recipe_takes_three_axes() -> None:
    recipe = ks.Recipe(ks.negative(), ks.median(size=3))
    made = recipe(VOLUME, axes=ALL)
    np.testing.assert_array_equal(made, ndimage.median_filter(255 - VOLUME, 3))
    stored = ks.Recipe.from_json(
        '{"format": "kernelscope recipe", "version": 3, "steps": [{"filter": "median", '
        '"dimensions": "3d", "parameters": {"size": [5, 3, 1]}}]}'
    )
    np.testing.assert_array_equal(stored(VOLUME), ndimage.median_filter(VOLUME, (1, 3, 5)))
    assert ks.Recipe.from_json(stored.to_json()) == stored


def test_out_and_progress() -> None:
    out = np.empty_like(VOLUME)
    done: list[float] = []
    made = ks.mean(VOLUME, axes=ALL, out=out, progress=lambda stage, part: done.append(part))
    assert made is out
    assert done
    with pytest.raises(ks.Cancelled):
        ks.mean(VOLUME, axes=ALL, cancel=lambda: True)


def refusals() -> list[tuple[dict[str, Any], str]]:
    return [
        ({"axes": (0, 1, 1)}, "does not name three axes"),
        ({"axes": (0, 1, 5)}, "has no axis 5"),
        ({"axes": (0, 1)}, ""),
        ({"axes": ALL, "size": 31}, "31 is out of range"),
        ({"axes": ALL, "size": (3, 3)}, "are not three sides"),
        ({"axes": ALL, "size": (2, 3, 3)}, "2 is even"),
        ({"axes": (1, 2), "size": (1, 3, 5)}, "are not two sides"),
        ({"axes": ALL, "border": "valid"}, "there is no “valid”"),
        ({"axes": ALL, "alpha": True}, "alpha: volumes have no colours"),
        ({"axes": ALL, "level": "tuned", "device": "emulated"}, "no level “tuned”"),
        ({"axes": ALL, "within": "rectangle 0,0 2,2"}, "within"),
        ({"axes": ALL, "axis": "z"}, "beside axes"),
        ({"axes": ALL, "grey": True}, "grey: volumes have no colours"),
    ]


@pytest.mark.parametrize(("arguments", "message"), refusals())
def test_what_cannot_be(arguments: dict[str, Any], message: str) -> None:
    if not message:
        assert ks.median(VOLUME, **arguments).shape == VOLUME.shape
        return
    with pytest.raises(AppError, match=message):
        ks.median(VOLUME, **arguments)


def test_filters_and_forms_without_three_dimensions() -> None:
    nlm: Any = ks.nlm
    for call, message in (
        (lambda: nlm(VOLUME, axes=ALL), "use MRI NLM"),
        (lambda: ks.sobel(VOLUME, form="angle", axes=ALL), "no “angle”"),
        (lambda: ks.sobel(VOLUME, form="single", direction="E", axes=ALL), "direction"),
        (lambda: ks.laplace(VOLUME, form="5x5", axes=ALL), "no “5x5”"),
        (lambda: ks.Recipe(ks.sobel(form="angle"))(VOLUME, axes=ALL), "angle"),
    ):
        with pytest.raises(AppError, match=message):
            call()


def test_defaults_of_other_forms_do_no_harm() -> None:
    made = ks.median(VOLUME, footprint="square", axes=ALL)
    np.testing.assert_array_equal(made, ks.median(VOLUME, axes=ALL))
    with pytest.raises(AppError, match="no parameter “footprint”"):
        ks.median(VOLUME, footprint="disk", axes=ALL)


def test_a_filter_without_a_mask_needs_none() -> None:
    negative: Any = ks.negative
    made: NDArray[Any] = negative(VOLUME, axes=ALL)
    np.testing.assert_array_equal(made, 255 - VOLUME)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"sigma_from": "local", "window_radius": 2},
        {"sigma_from": "adaptive"},
        {"sigma_from": "given", "sigma": 15.0, "search_radius": (3, 2, 1)},
        {"dimensions": "2d"},
    ],
)
def test_mri_nlm_gives_the_same_for_every_order_of_axes(parameters: dict[str, Any]) -> None:
    """Neither to the result nor to the strength that it is estimated from, but for rounding."""
    random = np.random.default_rng(0)
    voxels = np.abs(random.normal(60, 15, (14, 19, 19))).astype(np.float32)
    voxels[5:12, 6:15, 8:16] += 100
    wanted = ks.mri_nlm(voxels, **parameters)
    _, *orders = itertools.permutations(range(3))
    if "dimensions" in parameters:
        orders = [(0, 2, 1)]
    elif parameters:
        orders = [(1, 2, 0), (2, 1, 0)]
    for order in orders:
        own = dict(parameters)
        if "search_radius" in own:  # along x, y and z
            radii = own["search_radius"][::-1]
            own["search_radius"] = tuple(radii[axis] for axis in reversed(order))
        made = ks.mri_nlm(np.ascontiguousarray(voxels.transpose(order)), **own)
        np.testing.assert_allclose(made, wanted.transpose(order), atol=2e-3, err_msg=str(order))
