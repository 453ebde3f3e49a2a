"""Collaborative filtering against NumPy to the last bit, and against the noise it is there for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.fft import idctn
from skimage import data
from skimage.metrics import peak_signal_noise_ratio

from kernelscope.filters.collaborative import SPEC
from kernelscope.filters.collaborative.cpu import TILE
from kernelscope.filters.collaborative.model import (
    LIMIT,
    NORMS,
    ONE,
    SEARCHES,
    SIDE,
    STEPS,
    WEIGHT_STEPS,
    WIENER,
    Numbers,
    numbers,
)
from kernelscope.filters.shared.vectors import of_lanes, padded_row
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.filters.test_sliding_dct import (
    assert_chroma_is_apart,
    backward,
    forward,
    fused,
    noisy,
)
from tests.oracle import PAD_MODES, to_dtype
from tests.pairs import together

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"sigma": 8.0, "noise": "white"},
    {"sigma": 12.0, "strength": 150.0, "setting": "fast", "noise": "correlated", "chroma": 50.0},
    {"sigma": 0.0, "noise": "camera"},
    {"sigma": 5.0},
]

F = np.float32
Floats = NDArray[np.float32]

PART = np.array([1 / 8, 1 / 8, 1 / 4, 1 / 4, *[1 / 2] * 4], F)
"""Of coefficients of wavelets, as they are transformed back."""


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """Allow nothing: all levels compute the same floats, and add up integers."""
    return 0


def slow_levels(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Leave the largest picture out at all levels: it is the oracle that takes long."""
    return ("serial", "parallel")


def to_wavelets(a: list[Any]) -> list[Any]:
    """Return the coefficients of bior1.5 of eight numbers on a circle, by lifting."""
    d = [a[2 * i + 1] - a[2 * i] for i in range(4)]
    u, v = (d[3] - d[1]) * F(0.171875), (d[0] - d[2]) * F(0.171875)
    s = [a[0] + a[1] + u, a[2] + a[3] + v, a[4] + a[5] - u, a[6] + a[7] - v]
    p, q = s[0] + s[1], s[2] + s[3]
    return [p + q, q - p, s[1] - s[0], s[3] - s[2], *d]


def from_wavelets(b: list[Any]) -> list[Any]:
    p, q, e, f, *d = b[0] - b[1], b[0] + b[1], *b[2:]
    u, v = (d[3] - d[1]) * F(0.171875), (d[0] - d[2]) * F(0.171875)
    s = [p - e - u, p + e - v, q - f + u, q + f + v]
    return [s[i] + sign * d[i] for i in range(4) for sign in (F(-1), F(1))]


def along(transform: Any, blocks: Floats, axis: int) -> Floats:
    return np.stack(transform(list(np.moveaxis(blocks, axis, 0))), axis)


def counts_of(count: int) -> list[int]:
    """Return how many blocks were added up for each coefficient of a stack."""
    return [count, *(count >> int(np.log2(number)) for number in range(1, count))]


def stacked(stacks: Floats) -> Floats:
    """Return sums and differences along stacks, shape (stacks, blocks, 8, 8)."""
    sums, found = stacks, list[Floats]()
    while sums.shape[1] > 1:
        found.insert(0, sums[:, ::2] - sums[:, 1::2])
        sums = sums[:, ::2] + sums[:, 1::2]
    return np.concatenate([sums, *found], axis=1)


def unstacked(stacks: Floats) -> Floats:
    sums = stacks[:, :1]
    while (n := sums.shape[1]) < stacks.shape[1]:
        differences = stacks[:, n : 2 * n]
        sums = np.stack([sums + differences, sums - differences], axis=2)
        sums = sums.reshape(len(stacks), 2 * n, 8, 8)
    return sums


def shares(variance: Floats, guide: Floats) -> NDArray[np.int64]:
    """Return nearly variance / (guide² + variance) in steps of 16 bits."""
    power = fused(guide, guide, variance)
    inverse = (np.int32(0x7EB50000) - power.view(np.int32)).view(F)
    near = fused(power * inverse, F(-1.9412878), F(2.7867577))
    exact = np.multiply(variance * F(65526) * inverse, near, dtype=np.float64)
    return np.rint(exact).astype(np.int64)


@pytest.mark.parametrize("exponent", [-80, -3, 40])
def test_shares_are_nearly_quotients(exponent: int) -> None:
    guide = (np.linspace(0, 9, 9999) * 2.0 ** (exponent / 2)).astype(F)
    variance = np.full_like(guide, 2.0**exponent)
    wanted = variance / (np.square(guide, dtype=np.float64) + variance)
    found = shares(variance, guide) / 65526
    np.testing.assert_allclose(found, wanted, rtol=1.2e-4, atol=1e-5)


def matches(
    cells: Floats, setting: str, most: int, largest: np.float32
) -> dict[int, list[list[tuple[int, int]]]]:
    """Return the groups of blocks, by how many they have."""
    step, reach = SEARCHES[setting]
    blocks = np.lib.stride_tricks.sliding_window_view(cells, (8, 8))
    height, width = blocks.shape[:2]
    found: dict[int, list[list[tuple[int, int]]]] = {}
    for y in sorted({*range(0, height, step), height - 1}):
        for x in sorted({*range(0, width, step), width - 1}):
            top, left = max(0, y - reach), max(0, x - reach)
            others = blocks[top : y + reach + 1, left : x + reach + 1]
            squares = np.square(others - blocks[y, x])
            columns = squares[..., 0, :]
            for row in range(1, 8):
                columns = columns + squares[..., row, :]
            total = columns[..., 0]
            for column in range(1, 8):
                total = total + columns[..., column]
            total[y - top, x - left] = -1
            total = np.where(total < largest, total, np.inf)
            order = np.argsort(total, axis=None, kind="stable")[:most]
            count = int(np.isfinite(total.ravel()[order]).sum())
            count = 1 << (count.bit_length() - 1)
            rows, columns_ = np.unravel_index(order[:count], total.shape)
            places = [(top + int(r), left + int(c)) for r, c in zip(rows, columns_, strict=True)]
            found.setdefault(count, []).append(places)
    return found


def stage(
    planes: list[Floats],
    guides: list[Floats] | None,
    groups: dict[int, Any],
    found: Numbers,
) -> list[Floats]:
    """Return what a stage takes off each plane."""
    curve, unit = found.window, found.unit
    parts = np.outer(PART, PART)
    norms = [each.reshape(-1, 8, 8).transpose(0, 2, 1) for each in found.norms]  # along y, along x
    sums = [np.zeros(plane.shape, np.int64) for plane in planes]
    weights = [np.zeros(plane.shape, np.int64) for plane in planes]
    for count, group in groups.items():
        places = np.array(group)
        ys, xs = places[..., 0], places[..., 1]
        rows = ys[..., None, None] + np.arange(8)[:, None]
        columns = xs[..., None, None] + np.arange(8)
        added = np.array(counts_of(count))[:, None, None]
        for c, plane in enumerate(planes):
            change, back = (forward, backward) if guides else (to_wavelets, from_wavelets)
            spectra = stacked(along(change, along(change, plane[rows, columns], 2), 3))
            if guides is None:
                threshold = found.thresholds[c][np.log2(added).astype(int)] * norms[0][c]
                noise = np.abs(spectra) <= threshold
                noise[:, 0, 0, 0] = False
                left = np.where(noise, spectra * (F(1) / added.astype(F)) * parts, F(0))
                weight = F(1) / (~noise).sum((1, 2, 3)).astype(F)
            else:
                guide = stacked(along(forward, along(forward, guides[c][rows, columns], 2), 3))
                variance = found.variances[c][np.log2(added).astype(int)] * norms[1][c]
                factor = shares(variance, guide)
                factor[:, 0, 0, 0] = 0
                left = spectra * factor.astype(F) * (F(1) / (64 * 65536 * added).astype(F))
                total = ((255 - (factor >> 8)) ** 2).sum((1, 2, 3))
                weight = F(ONE) / total.astype(F)
            removed = along(back, along(back, unstacked(left), 3), 2)
            removed = np.clip(fused(removed, F(1 / (128 * float(unit))), F(0.5)), F(0), F(1))
            scale = (weight * F(2 * LIMIT * STEPS))[:, None, None, None]
            exact = np.multiply(removed - F(0.5), scale * np.outer(curve, curve), dtype=np.float64)
            steps = np.rint(exact).astype(np.int64)
            np.add.at(sums[c], (rows, columns), steps)
            whole = np.rint(weight * F(WEIGHT_STEPS)).astype(np.int64)
            np.add.at(weights[c], (ys, xs), np.broadcast_to(whole[:, None], ys.shape))
    quotient = F(float(unit) * (WEIGHT_STEPS // STEPS))
    taken = []
    for total, weight in zip(sums, weights, strict=True):
        assert max(np.abs(total).max(), weight.max()) < 2**31
        height, width = planes[0].shape
        wide = np.pad(weight.astype(F), ((7, 0), (7, 0)))
        below = np.zeros(weight.shape, F)
        for j in range(8):
            line = np.zeros(weight.shape, F)
            for k in range(8):
                line = line + curve[k] * wide[7 - j :, 7 - k :][:height, :width]
            below = below + curve[j] * line
        taken.append(total.astype(F) * quotient / below)
    return taken


def cells_of(plane: Floats, colours: int, dtype: np.dtype[Any]) -> Floats:
    cells = plane * F(0.57735027) if colours == 3 else plane
    return np.rint(cells) if dtype == np.uint8 else cells


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    values = SPEC.resolve(source, SPEC.validate(parameters))
    given = numbers(source.dtype, source.shape[2], values)
    if given is None:
        return source
    pad = ((8, 8), (8, 8), (0, 0))
    image = np.pad(source, pad, mode=PAD_MODES[border])  # type: ignore[call-overload]
    planes = [image[:, :, c].astype(F) for c in range(image.shape[2])]
    colours = len(planes)
    if colours == 3:
        red, green, blue = planes
        planes = [
            (red + green + blue) * F(0.57735027),
            (red - blue) * F(0.70710678),
            (red + blue - (green + green)) * F(0.40824829),
        ]
    first, second = given.tolerances
    cells = cells_of(planes[0], colours, source.dtype)
    groups = matches(cells, values["setting"], given.most, first)
    removed = stage(planes, None, groups, given)
    guides = [plane - noise for plane, noise in zip(planes, removed, strict=True)]
    cells = cells_of(guides[0], colours, source.dtype)
    if source.dtype == np.uint8:
        cells = np.clip(cells, 0, 255)
    groups = matches(cells, values["setting"], 32, second)
    removed = stage(planes, guides, groups, given)
    taken = [each[8:-8, 8:-8] for each in removed]
    if colours == 3:
        grey, across = taken[0] * F(0.57735027), taken[1] * F(0.70710678)
        middle = taken[2] * F(0.40824829)
        taken = [grey + across + middle, grey - (middle + middle), grey - across + middle]
    return source.astype(F) - np.stack(taken, axis=-1)


def test_groups_of_several_tiles_are_all_filtered() -> None:
    """Where tiles meet, as elsewhere: the contract's oracle for more groups than a tile has."""
    source = np.random.default_rng(2).integers(90, 160, (55, 250, 1)).astype(np.uint8)
    values = {"sigma": 8.0, "strength": 100.0, "noise": "white", "setting": "fast"}
    height, width = (SEARCHES["fast"].count(side + 2 * SIDE) for side in source.shape[:2])
    assert height > TILE[0]
    assert width > TILE[1]
    wanted = to_dtype(oracle(source, values, Border.REFLECT), source.dtype)
    np.testing.assert_array_equal(apply(SPEC, source, values), wanted)


def test_the_wavelet_transform_is_bior_1_5() -> None:
    """Of PyWavelets' taps on a circle, each row scaled to the norm 1; and its inverse."""
    pywt = pytest.importorskip("pywt")
    taps = np.array(pywt.Wavelet("bior1.5").dec_lo)

    def analyse(v: NDArray[Any]) -> NDArray[Any]:
        if v.size == 1:
            return v
        places = (2 * np.arange(v.size // 2)[:, None] + np.arange(10) - 4) % v.size
        return np.concatenate([analyse(v[places] @ taps), (v[1::2] - v[::2]) / 2**0.5])

    rows = np.stack([analyse(each) for each in np.eye(8)], axis=1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = np.stack(to_wavelets(list(np.eye(8, dtype=F))))
    np.testing.assert_allclose(found / np.sqrt(NORMS[::9])[:, None], rows, atol=1e-6)
    back = np.stack(from_wavelets(list(found * PART[:, None])))
    np.testing.assert_allclose(back, np.eye(8), atol=1e-6)


def test_norms_are_those_of_coefficients_of_noise() -> None:
    """Of noise whose blocks have a spectrum, as measured after both transforms."""
    power = 1 / (1 + np.add.outer(np.arange(8), 2 * np.arange(8))) ** 2.0
    power /= power.mean()  # more along x than along y
    values = {"sigma": 5.0, "strength": 100.0, "chroma": 100.0, "spectra": power[None]}
    found = numbers(np.dtype(F), 1, values)
    assert found is not None
    spectra = np.random.default_rng(1).normal(0, 1, (4000, 8, 8)) * np.sqrt(power)
    blocks = idctn(spectra, axes=(1, 2), norm="ortho").astype(F)
    for change, norms in ((to_wavelets, found.norms[0]), (forward, np.sqrt(found.norms[1]))):
        measured = along(change, along(change, blocks, 1), 2).std(0)
        np.testing.assert_allclose(measured.T, norms.reshape(8, 8), rtol=0.06)


@pytest.mark.parametrize(("least", "growth"), [(0.0, 1.2), (1.5, 1.1)])
def test_what_blocks_share_of_correlated_noise_counts(least: float, growth: float) -> None:
    """Up to a power that varies as much as its mean."""
    given = {"sigma": 5.0, "strength": 100.0, "chroma": 100.0}
    power = np.ones((3, 8, 8)) * np.array([0.5, 0, 2])[:, None, None]
    slope = np.tile([[least], [2 - least]], (4, 8))
    sloped = power.copy()
    sloped[2] *= slope  # one plane alone
    white, planes, uneven = (
        numbers(np.dtype(F), 3, {**given, **more})
        for more in ({}, {"spectra": power}, {"spectra": sloped})
    )
    assert white is not None
    assert planes is not None
    assert uneven is not None
    levels = np.outer(np.sqrt([0.5, 0, 2]), np.ones(6))
    for found in (planes, uneven):
        np.testing.assert_allclose(found.thresholds, white.thresholds * levels, rtol=1e-6)
        np.testing.assert_allclose(found.variances, white.variances * levels**2, rtol=1e-6)
        levels[2] *= growth ** np.arange(6)
    np.testing.assert_array_equal(planes.norms, white.norms)
    for one, other, plain in zip(uneven.norms, planes.norms, white.norms, strict=True):
        np.testing.assert_array_equal(one[:2], other[:2])
        assert np.ptp(one[2] / plain[2]) > 0.2


NUMBERS = {
    (5.0, 1): (16, 2500, 400, 2.0, (2.7, 2.7, 0.7, 1)),
    (20.0, 1): (16, 2500, 800, 2.5, (2.9, 2.9, 0.5, 2)),
    (30.0, 1): (32, 2880, 800, 2.5, (2.9, 2.9, 0.5, 2)),
    (50.0, 1): (32, 8000, 800, 2.5, (2.85, 3.1, 0.5, 2)),
    (10.0, 3): (16, 2500, 400, 2.0, (3.2, 2.9, 0.7, 1), (3.2, 2.9, 0.7, 1)),
    (20.0, 3): (32, 2500, 400, 2.0, (2.9, 2.9, 0.5, 2), (3.5, 3.2, 0.5, 2)),
    (30.0, 3): (32, 2500, 400, 2.0, (2.95, 2.4, 0.6, 1.7), (3.2, 2.7, 2.1, 3)),
    (50.0, 4): (32, 5000, 800, 2.0, (2.95, 2.4, 0.6, 1.7), (3.2, 2.7, 2.1, 3)),
}
"""By sigma of 255 and channels: blocks, tolerances of a pixel and beta; and of the first plane and
the last one thresholds and variances of the finest and the coarsest sums in units of sigma."""


def found_for(sigma: float, channels: int, dtype: Any = np.uint8) -> Numbers:
    values = {"sigma": sigma / 2.55, "strength": 100.0, "chroma": 100.0}
    found = numbers(np.dtype(dtype), channels, values)
    assert found is not None
    return found


@together(("case", "wanted"), NUMBERS.items())
@together("dtype", [np.uint8, np.uint16, F])
def test_given_numbers_follow_the_noise(case: tuple[float, int], wanted: Any, dtype: Any) -> None:
    found, (sigma, channels) = found_for(*case, dtype), case
    white = 1 if dtype is F else np.iinfo(dtype).max
    unit = white / 255
    most, *tolerances, beta, first, last = (*wanted, wanted[-1])[:6]
    assert found.most == most
    np.testing.assert_allclose(np.array(found.tolerances) / 64 / unit**2, tolerances, rtol=1e-5)
    np.testing.assert_array_equal(found.window, np.kaiser(8, beta).astype(F))
    added = 2.0 ** np.arange(6)
    thresholds = found.thresholds / np.sqrt(added) / (sigma * unit)
    variances = found.variances / added / (sigma * unit) ** 2
    assert thresholds.shape == variances.shape == (3 if channels > 1 else 1, 6)
    for plane, (finest, coarsest, least, largest) in ((0, first), (-1, last)):
        np.testing.assert_allclose(thresholds[plane, [0, 5]], [finest, coarsest], rtol=1e-5)
        np.testing.assert_allclose(variances[plane, [0, 5]], [least, largest], rtol=1e-5)


@together("setting", SEARCHES)
@together(("sigma", "channels"), NUMBERS)
def test_sums_fit_into_their_integers(setting: str, sigma: float, channels: int) -> None:
    """At the bound that `Numbers` names: all groups that reach a pixel, at their largest."""
    curve = found_for(sigma, channels).window
    step, reach = SEARCHES[setting]
    groups = (2 * reach + SIDE - 1) // step + 2  # along an axis, the last block's group as well
    most = np.sort(np.outer(curve, curve).astype(np.float64), axis=None)[-WIENER:].sum()
    assert groups**2 * (most + 1e-3) * LIMIT * STEPS + groups**2 * WIENER < 2**31
    assert (2 * reach // step + 2) ** 2 * WEIGHT_STEPS < 2**31


@pytest.mark.parametrize(
    ("picture", "sigma", "least"),
    [("camera", 20, 31.2), ("coins", 20, 28.7), ("moon", 20, 36.8), ("camera", 50, 26.5)],
)
def test_removes_noise(picture: str, sigma: float, least: float) -> None:
    """Above the sliding DCT: 30.7, 28.5, 36.6 and 25.8 dB."""
    clean = getattr(data, picture)().astype(np.float64)
    y, x = (side // 2 - 64 for side in clean.shape)
    clean = clean[y : y + 128, x : x + 128, None] / 255
    source = noisy(clean, sigma / 255)
    result = apply(SPEC, source, {"sigma": sigma / 2.55})
    quality = peak_signal_noise_ratio(clean, np.clip(result, 0, 1), data_range=1)
    assert quality > least


def test_filters_colours_better_than_one_by_one() -> None:
    clean = data.astronaut()[100:228, 150:278].astype(np.float64) / 255
    source = noisy(clean, 20 / 255)
    values = {"sigma": 20 / 2.55, "setting": "fast"}
    together = apply(SPEC, source, values)
    single = [apply(SPEC, source[:, :, c : c + 1], values) for c in range(3)]
    errors = [
        np.mean((np.clip(each, 0, 1) - clean) ** 2)
        for each in (together, np.concatenate(single, axis=2))
    ]
    assert errors[0] < 0.9 * errors[1]


def test_chroma_has_a_strength_of_its_own() -> None:
    assert_chroma_is_apart(SPEC, setting="fast")


def test_a_sigma_above_all_samples_leaves_the_brightness() -> None:
    source = np.random.default_rng(4).uniform(0.2, 0.8, (40, 40, 1)).astype(F)
    result = apply(SPEC, source, {"sigma": 1e6, "setting": "fast"})
    assert np.std(result) < 0.3 * np.std(source)
    assert np.mean(result) == pytest.approx(np.mean(source), abs=0.01)


def test_samples_without_a_value_stay_alone() -> None:
    """Blocks that have one lose no noise."""
    source = np.random.default_rng(6).normal(0.5, 0.05, (40, 40, 1)).astype(F)
    values = {"sigma": 5.0, "setting": "fast"}
    assert np.isnan(apply(SPEC, source * np.nan, values)).all()
    source[20, 20] = np.nan
    result = apply(SPEC, source, values)
    assert np.argwhere(np.isnan(result[..., 0])).tolist() == [[20, 20]]
    assert np.std(result[:8]) < 0.5 * np.std(source[:8])
    assert np.nanmax(np.abs(result - source)) < 0.25  # five sigma


def test_vectors_are_refused_to_code_that_calls_what_they_have_not() -> None:
    """A helper that had been renamed would have stayed one of single numbers."""
    with pytest.raises(KeyError):
        of_lanes(padded_row)
