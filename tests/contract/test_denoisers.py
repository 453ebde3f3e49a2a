"""All denoisers with data that show nothing: nothing is lost, and nothing becomes NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.schema.samples import Kind
from tests.pairs import together

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("error"),
    pytest.mark.usefixtures("closed_session"),
]

F = np.float32


def denoisers(kind: Kind) -> list[str]:
    return [each.id for each in filters.discover(kind).values() if each.category == "Denoising"]


PICTURES, VOLUMES = denoisers(Kind.PICTURE), denoisers(Kind.VOLUME)
ALL = PICTURES + VOLUMES
OF_A_SIGMA = [each for each in ALL if each != "hot_pixels"]


def run(name: str, array: Any, **parameters: Any) -> NDArray[Any]:
    result: NDArray[Any] = getattr(ks, name)(array, device="cpu", **parameters)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert np.isfinite(result).all()
    return result


def noisy(name: str, *shape: int) -> NDArray[np.float32]:
    """Return a ramp with noise, from about 0.2 to 0.9: a picture, or a volume."""
    shape = shape or ((24, 30) if name in PICTURES else (9, 10, 11))
    ramp = 0.3 + 0.5 * np.linspace(0, 1, shape[-1])
    noise = np.random.default_rng(1).normal(0, 0.03, shape)
    return np.asarray((ramp + noise).clip(0.01, 0.99), F)


def white_noise(name: str) -> dict[str, Any]:
    """Return parameters of which none is estimated."""
    if name in VOLUMES:
        return {"sigma": 0.03, "noise": "gaussian"}
    more = {"patch": 3, "filter_sigma": 0.01} if name == "nlm" else {}
    return {"sigma": 3.0, "noise": "white", **more}


def without_noise(name: str) -> dict[str, Any]:
    noise = "white" if name in PICTURES else "gaussian"
    return {"sigma": 0.0, "noise": noise}


def test_all_are_there() -> None:
    assert {"nlm", "sliding_dct", "collaborative"} <= set(PICTURES)
    assert {"mri_nlm", "volume_dct", "volume_collaborative"} <= set(VOLUMES)


@pytest.mark.parametrize("name", ALL)
@together(
    ("dtype", "value"),
    [
        ("uint8", 0),
        ("uint8", 255),
        ("uint16", 7),
        ("int16", 255),
        ("float32", 0),
        ("float32", 7),
        ("float64", 255),
    ],
)
def test_constants_stay(name: str, value: int, dtype: str) -> None:
    if name in PICTURES and dtype == "float64":
        return  # results are float32
    array = np.full(noisy(name).shape, value, dtype)
    rtol = 1e-5 if array.dtype.kind == "f" else 0
    for parameters in ({}, white_noise(name) if name in OF_A_SIGMA else {}):
        np.testing.assert_allclose(run(name, array, **parameters), array, rtol=rtol)


@pytest.mark.parametrize("name", OF_A_SIGMA)
@together(
    ("sides", "dtype"),
    [
        ((1, 1, 1), "uint8"),
        ((1, 1, 1), "float32"),
        ((1, 2, 1), "uint8"),
        ((3, 2, 5), "float32"),
        ((1, 1, 40), "uint8"),
        ((1, 9, 9), "float32"),
    ],
)
def test_smaller_than_a_block(name: str, sides: tuple[int, int, int], dtype: str) -> None:
    shape = sides if name in VOLUMES else sides[1:]
    source = noisy(name, *shape)
    array = source if dtype == "float32" else np.rint(source * 255).astype(dtype)
    for parameters in ({}, white_noise(name)):
        found = run(name, array, **parameters)
        if name in PICTURES or parameters:  # Rician noise has a mean, which is taken away
            slack = (array.max() - array.min()) / 2 + 1
            assert found.min() >= array.min() - slack
            assert found.max() <= array.max() + slack


@pytest.mark.parametrize("name", OF_A_SIGMA)
def test_sigma_0_changes_nothing(name: str) -> None:
    """But for rounding: a sum of 32 cubes has five steps more than one of a cube."""
    tolerance = 1e-5 if name == "volume_collaborative" else 2e-6
    for factor in (1.0, 2.0**-66, 2.0**66):
        array = (noisy(name) * factor).astype(F)
        found = run(name, array, **without_noise(name))
        np.testing.assert_allclose(found, array, rtol=tolerance)
    if name != "mri_nlm":  # which has none
        np.testing.assert_array_equal(run(name, array, strength=0.0), array)
    if name in PICTURES:
        array = np.rint(noisy(name) * 255).astype(np.uint8)
        np.testing.assert_array_equal(run(name, array, **without_noise(name)), array)
        np.testing.assert_array_equal(run(name, array, strength=0.0), array)


@pytest.mark.parametrize("name", OF_A_SIGMA)
@pytest.mark.parametrize(
    ("sigma", "exponent"), [(1e3, -66), (1e30, -66), (1e3, 0), (1e30, 0), (1e3, 66), (1e18, 66)]
)
def test_sigma_larger_than_the_range(name: str, sigma: float, exponent: int) -> None:
    """Hardly more than a mean is left; of the groups of cubes not even that, as published."""
    array = (noisy(name) * 2.0**exponent).astype(F)
    if name in PICTURES:  # in percent
        sigma = min(sigma, 1e6)
        parameters = {"sigma": sigma, "noise": "white"}
    else:
        parameters = {"sigma": sigma * 2.0**exponent, "noise": "gaussian"}
    found = run(name, array, **parameters) / 2.0**exponent
    before = noisy(name)
    assert np.ptp(found) <= np.ptp(before)
    least = 0 if name == "volume_collaborative" else before.min() - 0.05
    assert least <= found.min() <= found.max() <= before.max() + 0.05


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("exponent", [-66, 66])
def test_the_unit_does_not_matter(name: str, exponent: int) -> None:
    """Of values of about 1e-20 and 1e20; of pictures also in colour."""
    for array in (noisy(name), noisy(name, 24, 30, 3))[: 2 if name in PICTURES else 1]:
        wanted = run(name, array)
        found = run(name, (array * 2.0**exponent).astype(F)) / 2.0**exponent
        # Estimates are rounded to some digits.
        np.testing.assert_allclose(found, wanted, rtol=2e-3)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("some", [True, False])
def test_nan_and_infinity_are_named(name: str, some: bool) -> None:
    array = noisy(name)
    array[(..., 3) if some else ...] = np.nan
    with pytest.raises(ks.NotANumber, match=rf"{name}\(\).*NaN"):
        run(name, array)
    found = getattr(ks, name)(array, device="cpu", nan=0.5)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(array))  # they stay in the result
    array[..., 3] = np.inf
    with pytest.raises(ks.AppError, match="infinite"):
        run(name, array, nan=0.5)


@pytest.mark.parametrize("name", ALL)
def test_negative_samples(name: str) -> None:
    array = noisy(name) - F(0.5)
    found = run(name, array)
    assert found.min() < -0.05
    assert found.max() > 0.05
    if name in VOLUMES:  # they are no magnitudes
        np.testing.assert_array_equal(found, run(name, array, noise="gaussian"))
        with pytest.raises(ks.InvalidParameter, match="Rician noise is that of magnitudes"):
            run(name, array, noise="rician")


@pytest.mark.parametrize("name", ALL)
def test_masks_stay_masks(name: str) -> None:
    mask = np.zeros(noisy(name).shape, bool)
    mask[..., :8] = True
    np.testing.assert_array_equal(run(name, mask), mask)
    for uniform in (mask | True, mask & False):
        np.testing.assert_array_equal(run(name, uniform), uniform)


@pytest.mark.parametrize("name", ALL)
@together("shape", [(2, 3, 4, 5), (1, 2, 8, 8, 8), (5,), ()])
def test_other_axes_are_refused(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ks.InvalidImage, match=rf"{name}\(\).*shape"):
        run(name, np.ones(shape, F))


@pytest.mark.parametrize("name", ALL)
def test_nothing_at_all_is_refused(name: str) -> None:
    with pytest.raises(ks.InvalidImage, match=rf"{name}\(\)"):
        run(name, noisy(name)[:0])
