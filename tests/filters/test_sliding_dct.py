"""Sliding DCT against NumPy to the last bit, and against the noise it is there for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.fft import dctn
from skimage import data
from skimage.metrics import peak_signal_noise_ratio

from kernelscope.filters.shared.cosine import SQUARES
from kernelscope.filters.shared.stabilise import estimate_sigma
from kernelscope.filters.sliding_dct import SPEC
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from tests.filters import apply
from tests.noise import white_of
from tests.oracle import PAD_MODES
from tests.pairs import together

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"sigma": 4.0, "noise": "white"},
    {"sigma": 15.0, "strength": 200.0, "noise": "correlated", "chroma": 50.0},
    {"sigma": 0.0, "noise": "camera"},
    {"sigma": 1e6},
]

F = np.float32


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """Allow nothing: all levels add up the same floats in the same order."""
    return 0


def fused(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once: the product is exact in twice the digits."""
    return (np.multiply(a, b, dtype=np.float64) + c).astype(F)


def forward(a: list[Any]) -> list[Any]:
    s, d = [a[i] + a[7 - i] for i in range(4)], [a[i] - a[7 - i] for i in range(4)]
    p, q, r, t = s[0] + s[3], s[1] + s[2], s[0] - s[3], s[1] - s[2]
    e, x, y, z = r + t, d[2] + d[3], d[1] + d[2], d[0] + d[1]
    turned = (x - z) * F(0.38268343)
    u, v = fused(x, F(0.54119610), turned), fused(z, F(1.30656296), turned)
    m, n = (fused(y, sign * F(0.70710678), d[0]) for sign in (F(1), F(-1)))
    e, f = (fused(e, sign * F(0.70710678), r) for sign in (F(1), F(-1)))
    return [p + q, m + v, e, n - u, p - q, n + u, f, m - v]


def backward(b: list[Any]) -> list[Any]:
    p, q, r = b[0] + b[4], b[0] - b[4], b[2] + b[6]
    t = fused(b[2] - b[6], F(1.41421356), -r)
    s = [p + r, q + t, q - t, p - r]
    m, n, x, z = b[1] + b[7], b[1] - b[7], b[5] + b[3], b[5] - b[3]
    turned = (z + n) * F(1.84775907)
    d = [m + x]
    d.append(fused(z, -F(2.61312593), turned) - d[0])
    d.append(fused(m - x, F(1.41421356), -d[1]))
    d.append(-(fused(n, F(1.08239220), -turned) + d[2]))
    return [s[i] + d[i] for i in range(4)] + [s[3 - i] - d[3 - i] for i in range(4)]


def spectra(plane: NDArray[Any]) -> list[list[NDArray[Any]]]:
    """Return the coefficients [k along x][q along y] of the blocks at all places."""
    height, width = plane.shape
    rows = forward([plane[:, i : width - 7 + i] for i in range(8)])
    return [forward([row[j : height - 7 + j] for j in range(8)]) for row in rows]


def means(kept: list[list[NDArray[Any]]], total: NDArray[Any]) -> NDArray[Any]:
    weight = F(1) / total
    height, width = weight.shape[0] - 7, weight.shape[1] - 7
    columns = [backward([value * weight for value in column]) for column in kept]
    zero = np.zeros((height, weight.shape[1]), F)
    sums = [zero.copy() for _ in range(8)]
    weights = zero.copy()
    for first in range(8):  # from the top block to the bottom one
        rows = slice(first, first + height)
        for k in range(8):
            sums[k] = sums[k] + columns[k][7 - first][rows]
        weights = weights + weight[rows]
    lines = backward(sums)
    top, bottom = np.zeros((height, width), F), np.zeros((height, width), F)
    for first in range(8):  # from the left one to the right one
        top = top + lines[7 - first][:, first : first + width]
        bottom = bottom + weights[:, first : first + width]
    return top * F(1 / 64) / bottom


def passes(plane: NDArray[Any], sigma: float, spectrum: NDArray[Any]) -> NDArray[Any]:
    """Return the result of both passes; `spectrum` has the noise's power at [q along y][k]."""
    sigmas = sigma * np.sqrt(spectrum.T * SQUARES.reshape(8, 8))
    thresholds, inverses = np.minimum(2.7 * sigmas, 3e38), np.minimum(1 / sigmas, 3e38)
    found = spectra(plane)
    total = np.zeros_like(found[0][0])
    for k in range(8):
        for q in range(8):
            keep = (
                np.abs(found[k][q]) > F(thresholds[k, q]) if k + q else np.ones(total.shape, bool)
            )
            found[k][q] = np.where(keep, found[k][q], F(0))
            total = total + keep.astype(F)
    guide = spectra(means(found, total))
    found = spectra(plane[7:-7, 7:-7])
    total = np.zeros_like(found[0][0])
    for k in range(8):
        for q in range(8):
            ratio = guide[k][q] * F(inverses[k, q])
            gain = F(1) - F(1) / fused(ratio, ratio, F(1)) if k + q else np.ones_like(ratio)
            found[k][q] = found[k][q] * gain
            total = fused(gain, gain, total)
    return means(found, total)


def oracle(
    source: NDArray[Any],
    parameters: Mapping[str, Any],
    border: Border,
    spectra: NDArray[Any] | None = None,
) -> NDArray[Any]:
    values = SPEC.validate(parameters)
    if spectra is None:  # that of large pictures, if they are to have one, is found
        spectra = SPEC.resolve(source, values).get("spectra", np.ones((3, 8, 8)))
    spectra = spectra * np.array([1, *[(values["chroma"] / 100) ** 2] * 2])[:, None, None]
    sigma = values["sigma"] * values["strength"] / 100 / 100 * white_of(source)
    image = source
    if border is not Border.VALID:
        pad = ((14, 14), (14, 14), (0, 0))
        image = np.pad(source, pad, mode=PAD_MODES[border])  # type: ignore[call-overload]
    if sigma == 0:
        return image[14:-14, 14:-14]
    planes = [image[:, :, c].astype(F) for c in range(image.shape[2])]
    if len(planes) == 1:
        return passes(planes[0], sigma, spectra[0])[..., None]
    red, green, blue = planes
    grey = passes((red + green + blue) * F(0.57735027), sigma, spectra[0]) * F(0.57735027)
    across = passes((red - blue) * F(0.70710678), sigma, spectra[1]) * F(0.70710678)
    middle = passes((red + blue - (green + green)) * F(0.40824829), sigma, spectra[2])
    middle = middle * F(0.40824829)
    return np.stack(
        [grey + across + middle, grey - (middle + middle), grey - across + middle], axis=-1
    )


def noisy(clean: NDArray[Any], sigma: float) -> NDArray[np.float32]:
    noise = np.random.default_rng(5).normal(0, sigma, clean.shape)
    return (clean + noise).astype(np.float32)


def test_the_transform_is_that_of_scipy() -> None:
    block = np.random.default_rng(2).normal(0, 1, (8, 8)).astype(F)
    found = np.array(spectra(block))[..., 0, 0].T
    scales = np.sqrt(SQUARES.reshape(8, 8))
    np.testing.assert_allclose(found / scales, dctn(block, norm="ortho"), atol=2e-6)
    lines = np.array([backward(list(column)) for column in found.T]).T  # along y
    back = np.array([backward(list(line)) for line in lines])
    np.testing.assert_allclose(back / 64, block, atol=2e-6)


@together(
    ("picture", "sigma", "least"),
    [("camera", 20, 30.0), ("camera", 50, 25.9), ("coins", 20, 28.6), ("moon", 20, 37.0)],
)
def test_removes_noise(picture: str, sigma: float, least: float) -> None:
    """Above non-local means of the best strength: 29.5, 24.1, 28.3 and 35.0 dB."""
    clean = getattr(data, picture)().astype(np.float64)
    y, x = (side // 2 - 128 for side in clean.shape)
    clean = clean[y : y + 256, x : x + 256, None] / 255
    source = noisy(clean, sigma / 255)
    result = apply(SPEC, source, {"sigma": sigma / 2.55})
    quality = peak_signal_noise_ratio(clean, np.clip(result, 0, 1), data_range=1)
    assert quality > least
    blind = apply(SPEC, source, {"sigma": estimate_sigma(source, {})})
    assert peak_signal_noise_ratio(clean, np.clip(blind, 0, 1), data_range=1) > quality - 0.1


def test_filters_colours_better_than_one_by_one() -> None:
    clean = data.astronaut()[100:300, 150:350].astype(np.float64) / 255
    source = noisy(clean, 20 / 255)
    together = apply(SPEC, source, {"sigma": 20 / 2.55})
    single = [apply(SPEC, source[:, :, c : c + 1], {"sigma": 20 / 2.55}) for c in range(3)]
    errors = [
        np.mean((np.clip(each, 0, 1) - clean) ** 2)
        for each in (together, np.concatenate(single, axis=2))
    ]
    assert errors[0] < 0.9 * errors[1]


def differences(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return red less blue, and both less twice green, of each pixel."""
    red, green, blue = np.moveaxis(pixels.astype(np.float64), 2, 0)
    return np.stack([red - blue, red + blue - 2 * green])


def assert_chroma_is_apart(spec: FilterSpec, **values: Any) -> None:
    """Check the strength of differences of colours: no part of the brightness is in it."""
    clean = np.broadcast_to(np.linspace(0.3, 0.7, 64)[:, None, None], (64, 64, 3))
    source = noisy(clean, 20 / 255)
    given = {"sigma": 20 / 2.55, **values}
    usual, none, half, twice = (
        apply(spec, source, {**given, "chroma": chroma}) for chroma in (100.0, 0.0, 50.0, 200.0)
    )
    for each in (none, half, twice):
        np.testing.assert_allclose(each.sum(2), usual.sum(2), atol=1e-4)
    np.testing.assert_allclose(differences(none), differences(source), atol=1e-5)
    left = [differences(each).std() for each in (source, half, usual, twice)]
    assert 0.9 * left[0] > left[1] > 2 * left[2] > 2 * left[3]
    np.testing.assert_array_equal(apply(spec, source, given), usual)
    grey = source[..., :1]
    np.testing.assert_array_equal(
        apply(spec, grey, {**given, "chroma": 300.0}), apply(spec, grey, given)
    )


def test_chroma_has_a_strength_of_its_own() -> None:
    assert_chroma_is_apart(SPEC)


def test_a_sigma_above_all_samples_leaves_means() -> None:
    source = np.random.default_rng(4).uniform(0, 1, (40, 40, 1)).astype(F)
    result = apply(SPEC, source, {"sigma": 1e6})
    k = 8 - np.abs(np.arange(-7, 8))  # twice a mean of eight
    wide = np.pad(source[..., 0].astype(np.float64), 7, mode="symmetric")
    view = np.lib.stride_tricks.sliding_window_view(wide, (15, 15))
    wanted = (view * np.outer(k, k)).sum(axis=(-2, -1)) / 8**4
    np.testing.assert_allclose(result[..., 0], wanted, rtol=1e-5)


def test_samples_without_a_value_spread_and_end() -> None:
    source = np.full((40, 40, 1), 0.5, F)
    assert np.isnan(apply(SPEC, source * np.nan, {"sigma": 5.0})).all()
    source[20, 20] = np.nan
    result = apply(SPEC, source, {"sigma": 5.0})
    assert np.isnan(result[20, 20])
    assert np.isfinite(result[0, 0])
    assert np.isfinite(result[35:, 35:]).all()
