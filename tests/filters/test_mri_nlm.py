"""Non-local means of MRI volumes: formula, estimates of noise, and effects on a head."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import pywt
from numpy.typing import NDArray
from scipy import ndimage, special

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.files.volumes import read_volume
from kernelscope.filters.mri_nlm import SPEC
from kernelscope.filters.shared import mri_sigma_map as mri_sigma_map
from kernelscope.filters.shared.mri_sigma import (
    FLATTEST,
    air_sigma,
    estimate_global,
    estimate_local,
    object_sigmas,
    rician_factor,
    rician_variance,
    rician_variances,
)
from kernelscope.filters.shared.mri_sigma_map import estimate_smooth, map_sigma
from kernelscope.images.judging.metrics import judge_volume
from kernelscope.images.phantom import Contrast, Phantom, ScannerNoise, Tissue, add_noise, head
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from tests.filters import apply
from tests.pairs import together
from tests.scans import MNI_T1

pytestmark = pytest.mark.slow

F = np.float32

CASES: list[dict[str, Any]] = [
    {"dimensions": dimensions, "noise": noise, "sigma_from": sigma_from}
    | {"search_radius": 2, "window_radius": 1 + (noise == "rician")}
    | ({"sigma": (25.0,)} if sigma_from == "given" else {})
    for dimensions, noise, sigma_from in itertools.product(
        ("3d", "2d"),
        ("auto", "rician", "gaussian", "camera"),
        ("given", "volume", "local", "adaptive"),
    )
] + [
    {"search_radius": 1, "patch_radius": 2, "beta": 0.5, "sigma_from": "given", "sigma": (40.0,)},
    {"search_radius": 1, "patch_radius": 3, "beta": 3.0},
    {"search_radius": 3, "dimensions": "2d", "patch_radius": 2},
    # Thick slices: less along z, and each axis its own radius.
    {"search_radius": (3, 2, 1), "patch_radius": (1, 2, 1)},
    {"search_radius": (1, 2, 3), "patch_radius": (2, 1, 3), "sigma_from": "local"},
    {"search_radius": (2, 1, 7), "patch_radius": (1, 4, 5), "dimensions": "2d"},
    {"search_radius": 1, "patch_radius": 5, "sigma_from": "given", "sigma": (30.0,)},
    # The window's residuals reach further than search and patch.
    {"search_radius": 1, "sigma_from": "local", "window_radius": 2},
]

HEAD = (40, 56, 56)


# The oracle ---------------------------------------------------------------------------


def local_sigma(u: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any]:
    deep, side = parameters["dimensions"] == "3d", 2 * parameters["window_radius"] + 1

    def mean(a: NDArray[Any]) -> NDArray[Any]:
        return ndimage.uniform_filter(a, (side if deep else 1, side, side), mode="reflect")

    variances = []
    for plane in ((1, 2), (0, 2), (0, 1))[: 3 if deep else 1]:
        residual = u
        for axis in plane:
            residual = ndimage.correlate1d(residual, [1, -2, 1], axis, mode="reflect")
        variances.append(mean(residual**2 / 36))
    variance = np.min(variances, axis=0) * ({3: 1.30, 5: 1.14}[side] if deep else 1)
    if parameters["noise"] != "gaussian":
        power = mean(u * u)
        ratio = np.divide(variance, power, out=np.ones_like(power), where=power > 0)
        variance += np.clip((ratio - 0.11) / 0.06, 0, 1) * (power / 2 - variance)
    return np.sqrt(np.maximum(variance, 0))


def between_nodes(
    nodes: NDArray[Any], cell: tuple[int, ...], shape: tuple[int, ...]
) -> NDArray[Any]:
    steps = [(np.arange(n) + 0.5) / side - 0.5 for n, side in zip(shape, cell, strict=True)]
    return ndimage.map_coordinates(nodes, np.meshgrid(*steps, indexing="ij"), float, 1, "nearest")


def oracle(source: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any]:
    u = source.astype(float)
    sigma = np.broadcast_to(np.array(parameters["sigma"]), u.shape)
    if parameters["sigma_from"] == "adaptive":
        nodes, cell = parameters["sigma_map"].nodes, parameters["sigma_map"].cell
        sigma = np.stack([between_nodes(each, cell, u.shape[:3]) for each in nodes], -1)
    if parameters["sigma_from"] == "local":
        maps = [local_sigma(u[..., c], parameters) for c in range(u.shape[3])]
        sigma = np.maximum(np.stack(maps, -1), sigma)
    deep = parameters["dimensions"] == "3d"
    v, d = (
        np.broadcast_to(parameters[name], 3)[::-1] * [deep, 1, 1]
        for name in ("search_radius", "patch_radius")
    )
    margins = v + d
    wide = np.pad(u, [*((r, r) for r in margins), (0, 0)], mode="symmetric")

    def at(offset: Any, more: Any) -> NDArray[Any]:
        """Return the voxels at an offset, with so many more on each side."""
        begin = margins + offset - more
        ends = begin + u.shape[:3] + 2 * np.asarray(more)
        return wide[tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))]

    rician = parameters["noise"] != "gaussian"
    top = weights = np.zeros(())
    for offset in itertools.product(*(range(-r, r + 1) for r in v)):
        squares = (at(0, d) - at(offset, d)) ** 2
        for axis, radius in enumerate(d):
            patches = np.lib.stride_tricks.sliding_window_view(squares, 2 * radius + 1, axis)
            squares = patches.mean(-1)
        weight = np.exp(-np.mean(squares / (2 * parameters["beta"] * sigma**2), axis=3))
        top = top + weight[..., None] * at(offset, 0) ** (2 if rician else 1)
        weights = weights + weight
    mean = top / weights[..., None]
    return np.sqrt(np.maximum(mean - 2 * sigma**2, 0)) if rician else mean


@pytest.mark.parametrize("dimensions", ["3d", "2d"])
def test_each_component_has_its_own_sigma(dimensions: str) -> None:
    source = np.random.default_rng(0).uniform(0, 100, (5, 6, 7, 3)).astype(np.float32)
    parameters: dict[str, Any] = {
        "sigma_from": "given",
        "sigma": (20.0, 5.0, 60.0),
        "dimensions": dimensions,
    }
    parameters |= {"search_radius": 2}
    wanted = oracle(source, SPEC.validate(parameters))
    for level in ("serial", "parallel"):
        np.testing.assert_allclose(apply(SPEC, source, parameters, level=level), wanted, atol=1e-2)
    swapped = parameters | {"sigma": (60.0, 5.0, 20.0)}
    assert np.abs(apply(SPEC, source, swapped) - wanted).max() > 1


@pytest.mark.parametrize("empty", [0, 1])
def test_a_component_may_be_empty(empty: int) -> None:
    source = np.random.default_rng(0).uniform(0, 1e6, (5, 6, 7, 2)).astype(np.float32)
    source[..., empty] = 0
    for sigma_from in ("volume", "local", "adaptive"):
        parameters = SPEC.validate({"sigma_from": sigma_from, "search_radius": 2})
        wanted = oracle(source, SPEC.resolve(source, parameters))
        for level in ("serial", "parallel"):
            found = apply(SPEC, source, parameters, level=level)
            np.testing.assert_allclose(found, wanted, atol=100, err_msg=level)


@pytest.mark.parametrize("dimensions", ["3d", "2d"])
def test_a_head_may_be_cut_out(dimensions: str) -> None:
    """Windows around zeros see noise only through the mask that their residuals are made with."""
    source = np.random.default_rng(0).uniform(50, 100, (9, 10, 16, 1)).astype(np.float32)
    source[:, :, 6:] = 0
    parameters = {"sigma_from": "local", "search_radius": 1, "dimensions": dimensions}
    wanted = oracle(source, SPEC.resolve(source, SPEC.validate(parameters)))
    for level in ("serial", "parallel"):
        np.testing.assert_allclose(apply(SPEC, source, parameters, level=level), wanted, atol=0.01)


@together(
    ("value", "sigma", "rest"),
    [(7, 5, 0), (41, 29, 0), (239, 169, 0), (3, 2, 1), (17, 12, 1), (577, 408, 1)],
)
@together("scale", [2.0**-20, 1, 2.0**20])
@together("level", ["serial", "parallel"])
def test_rician_bias_next_to_what_it_leaves(
    value: int, sigma: int, rest: int, scale: float, level: str
) -> None:
    """Pell's numbers: value² is 2 sigma² - 1, of which 0 is left, or 2 sigma² + 1, which leaves 1.

    Float32 holds 27 such squares: in a flat volume nothing is rounded.
    """
    source = np.full((3, 4, 5, 2), value * scale, np.float32)
    source[..., 1] = 3 * scale
    parameters = {"sigma_from": "given", "sigma": (sigma * scale, 2 * scale), "search_radius": 1}
    found = apply(SPEC, source, parameters, level=level)
    np.testing.assert_array_equal(found, np.broadcast_to([rest * scale, scale], source.shape))


@pytest.mark.parametrize("noise", ["rician", "gaussian"])
@pytest.mark.parametrize("sigma", [0, 0.1])
@pytest.mark.parametrize("peak", [1e15, 1e-12])
def test_voxels_as_large_and_as_small_as_may_be(peak: float, sigma: float, noise: str) -> None:
    """Sums over the widest windows and patches of float32 neither overflow nor vanish.

    A sigma of 0 is raised to 1e-6 of the peak: the least squares that anything is divided by.
    """
    largest = 15**3 * (2e15) ** 2 * 11**3 * 4
    assert largest < np.finfo(np.float32).max
    signs = np.indices((1, 5, 7)).sum(axis=0)[..., None] % 2
    rng = np.random.default_rng(2)
    source = (rng.uniform(0.5, 1, signs.shape) * peak).astype(np.float32)
    if noise == "gaussian":
        source = np.where(signs, source, -source)
    source[0, 2, 3] = peak
    parameters = SPEC.validate(
        {"sigma_from": "given", "sigma": (sigma * peak,), "noise": noise, "dimensions": "2d"}
        | {"search_radius": 7, "patch_radius": 5, "beta": 1.0}
    )
    wanted = oracle(source, SPEC.resolve(source, parameters))
    for level in ("serial", "parallel"):
        found = apply(SPEC, source, parameters, level=level)
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-6 * peak, err_msg=level)


def test_larger_voxels_are_refused_and_smaller_ones_vanish() -> None:
    values = SPEC.validate({"sigma_from": "given", "sigma": (0.0,)})
    limit = np.float32(1e15)
    for sign in (1, -1):
        least = SPEC.resolve(np.full((1, 3, 3, 1), sign * limit), values)["sigma"]
        assert least == (pytest.approx(1e9),)
        with pytest.raises(InvalidImage, match="too large"):
            SPEC.resolve(np.full((1, 3, 3, 1), sign * np.nextafter(limit, np.inf)), values)
    tiny = np.full((1, 3, 3, 1), 1e-20, np.float32)
    assert SPEC.resolve(tiny, values)["sigma"] == (1e-18,)
    for level in ("serial", "parallel"):
        assert not apply(SPEC, tiny, {**values, "beta": 1.0}, level=level).any()


@pytest.mark.parametrize("level", ["serial", "parallel"])
@pytest.mark.parametrize("noise", ["rician", "gaussian"])
def test_sums_of_many_candidates_lose_no_more_than_their_roundings(level: str, noise: str) -> None:
    """15³ equal terms, whose roundings all go the same way for some values."""
    source = np.geomspace(1, 2, 25).astype(np.float32)
    for value in source:
        flat = np.full((2, 2, 3, 1), value)
        parameters = {"sigma_from": "given", "sigma": (1e-5,), "search_radius": 7, "noise": noise}
        found = apply(SPEC, flat, parameters, level=level)
        np.testing.assert_allclose(found, flat, 15**3 * 2.0**-24)


@pytest.mark.parametrize(("search", "patch"), [(2, 1), (3, 1), (2, 2)])
def test_dipy_where_definitions_meet(search: int, patch: int) -> None:
    """DIPY's classic Rician filter, away from the border, which it mirrors elsewhere.

    Its window reaches ``block_radius - patch_radius`` voxels, and its weights are
    ``exp(-mean squares / (sqrt(2) sigma²))``: beta is 1 / sqrt(2).
    """
    pytest.importorskip("dipy", minversion="1.12")
    from dipy.denoise.nlmeans import nlmeans

    source = np.random.default_rng(0).normal(100, 20, (14, 15, 16)).astype(np.float32)
    theirs = nlmeans(
        source.astype(float),
        np.full(source.shape, 20.0),
        patch_radius=patch,
        block_radius=search + patch,
        rician=True,
        method="classic",
    )
    ours = apply(
        SPEC,
        source[..., np.newaxis],
        {"search_radius": search, "patch_radius": patch, "beta": 1 / math.sqrt(2)}
        | {"sigma_from": "given", "sigma": (20.0,)},
    )
    inside = (slice(search + patch + 1, -search - patch - 1),) * 3
    np.testing.assert_allclose(ours[..., 0][inside], theirs[inside], atol=2e-3)


# Values refused, and values filled in -------------------------------------------------


def test_sigma_has_to_be_written_if_it_is_given() -> None:
    with pytest.raises(InvalidParameter, match="no value was given"):
        SPEC.validate({"sigma_from": "given"})


def test_as_many_sigmas_as_volumes() -> None:
    source = np.ones((2, 3, 4, 3), np.float32)
    two = SPEC.validate({"sigma_from": "given", "sigma": (1.0, 2.0)})
    with pytest.raises(InvalidParameter, match="2 numbers do not go with 3 volumes"):
        SPEC.resolve(source, two)
    one = SPEC.validate({"sigma_from": "given", "sigma": 5})
    assert SPEC.resolve(source, one)["sigma"] == (5.0, 5.0, 5.0)


def test_radius_is_what_slices_need() -> None:
    def radius(**parameters: Any) -> int:
        return SPEC.radius(SPEC.validate(parameters))

    assert radius(search_radius=5, patch_radius=2) == 7
    assert radius(search_radius=(5, 6, 2), patch_radius=(4, 3, 1)) == 3
    assert radius(search_radius=(5, 6, 1), patch_radius=1, sigma_from="local") == 7
    assert radius(search_radius=5, dimensions="2d") == 0
    assert radius(search_radius=1, sigma_from="local", window_radius=2) == 3


# Sigma --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def phantom() -> Phantom:
    return head(HEAD)


@pytest.fixture(scope="module")
def large() -> Phantom:
    return head((64, 96, 96))


@pytest.mark.parametrize("signal", [0.0, 1.0, 2.0, 3.0, 5.0, 20.0])
def test_variance_of_rician_noise_is_taken_back(signal: float) -> None:
    """Moments of the Rice distribution of sigma 7, from its Laguerre polynomial."""
    mean = math.sqrt(math.pi / 2) * special.hyp1f1(-0.5, 1, -(signal**2) / 2)
    variance = signal**2 + 2 - mean**2
    found = rician_variance(np.float32(49 * variance), np.float32(7 * mean))
    assert found == pytest.approx(49, rel=0.016)
    many = rician_variances(np.array([49 * variance]), np.array([7 * mean]))
    assert many == pytest.approx(found, rel=2e-3)
    assert rician_factor(np.array(signal**2 + 2)) == pytest.approx(variance, rel=0.008)


@pytest.mark.parametrize("contrast", Contrast)
@pytest.mark.parametrize("noise", [ScannerNoise.RICIAN, ScannerNoise.GAUSSIAN])
@pytest.mark.parametrize("sigma", [7.65, 12.75, 25.5, 38.25])
def test_sigma_of_a_volume(
    large: Phantom, contrast: str, noise: ScannerNoise, sigma: float
) -> None:
    noisy = add_noise(large.truth[Contrast(contrast)], noise, sigma, seed=1).voxels
    assert estimate_global(noisy, noise is ScannerNoise.RICIAN) == pytest.approx(sigma, rel=0.05)


def test_sigma_without_background_or_with_one_cut_out(large: Phantom) -> None:
    truth = large.truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, 12.75).voxels
    assert estimate_global(noisy[16:48, 24:72, 24:72]) == pytest.approx(12.75, rel=0.04)
    assert estimate_global(np.where(truth > 0, noisy, 0)) == pytest.approx(12.75, rel=0.04)
    assert estimate_global(noisy[32:33]) == pytest.approx(12.75, rel=0.08)


def test_sigma_of_a_large_volume_from_a_part_of_it() -> None:
    noisy = np.random.default_rng(0).normal(500, 9, (129, 160, 161)).astype(np.float32)
    assert estimate_global(noisy) == pytest.approx(9, rel=0.02)


@pytest.mark.parametrize("shape", [(6, 8, 10), (7, 9, 5), (1, 8, 7), (4, 1, 9)])
def test_sigma_from_the_finest_details(shape: tuple[int, int, int]) -> None:
    """PyWavelets' Haar transform of the voxels that have a partner along each axis."""
    volume = np.random.default_rng(0).uniform(0, 100, shape)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    even = tuple(slice(size // 2 * 2 if size > 1 else 1) for size in shape)
    bands = pywt.dwtn(volume[even], "haar", axes=axes)
    means, details = bands["a" * len(axes)], bands["d" * len(axes)]
    edges = sum(band**2 for name, band in bands.items() if name.count("d") == 1)
    inside = means >= means.mean()
    inside &= edges <= np.median(edges[inside])
    wanted = np.median(np.abs(details[inside])) / special.ndtri(0.75)
    assert estimate_global(volume, rician=False) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("deep", [True, False])
def test_local_sigma_follows_the_noise(large: Phantom, window: int, deep: bool) -> None:
    noisy = add_noise(large.truth[Contrast.T1W], ScannerNoise.VARYING_RICIAN, 6, seed=2)
    found = estimate_local(noisy.voxels, window, deep=deep) / noisy.sigma
    white = large.labels == Tissue.WHITE
    few = window == 1 and not deep  # nine residuals: their median is below the mean
    assert np.median(found[white]) == pytest.approx(1, abs=0.12 if few else 0.05)
    background = large.labels == Tissue.BACKGROUND
    assert found[background].mean() == pytest.approx(1, abs=0.2)
    plain = estimate_local(noisy.voxels, window, rician=False, deep=deep) / noisy.sigma
    assert plain[background].mean() < 0.75  # Rician noise without signal


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize(
    "noise", [ScannerNoise.RICIAN, ScannerNoise.VARYING_RICIAN, ScannerNoise.GAUSSIAN]
)
def test_smooth_sigma_follows_the_noise(large: Phantom, noise: ScannerNoise, deep: bool) -> None:
    noisy = add_noise(large.truth[Contrast.T1W], noise, 12, seed=2)
    rician = noise is not ScannerNoise.GAUSSIAN
    found = estimate_smooth(noisy.voxels, rician, deep) / noisy.sigma
    varies = noise is ScannerNoise.VARYING_RICIAN
    for tissue in (Tissue.WHITE, Tissue.GREY):
        ratio = found[large.labels == tissue]
        # Over a small head noise changes much within the reach of the averages.
        assert ratio.mean() == pytest.approx(1, abs=(0.08 if deep else 0.2) if varies else 0.04)
        assert ratio.std() < (0.13 if varies else 0.05)
    away = ndimage.binary_erosion(large.labels == Tissue.BACKGROUND, iterations=5, border_value=1)
    away &= ndimage.binary_fill_holes(large.labels > 0) == 0
    assert np.median(found[away]) == pytest.approx(1, rel=0.06)
    for_denoisers = estimate_smooth(noisy.voxels, rician, deep, raised=True) / noisy.sigma
    assert np.median(for_denoisers[away]) == pytest.approx(1.25 if rician else 1, rel=0.06)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
def test_smooth_sigma_of_whole_numbers_is_that_of_floats(dtype: type) -> None:
    rng = np.random.default_rng(4)
    noisy = rng.normal(128, 20, (10, 16, 18)).clip(0, 255) * (1 if dtype is np.uint8 else 100)
    noisy = noisy.astype(dtype)  # squares of these do not fit into their type
    wanted = estimate_smooth(noisy.astype(np.float32))
    np.testing.assert_array_equal(estimate_smooth(noisy), wanted)
    assert np.median(wanted) == pytest.approx(20 if dtype is np.uint8 else 2000, rel=0.2)


def test_smooth_sigma_where_no_signal_is_thinner_than_a_cell() -> None:
    """Four dark slices, none of whose cells of 4 x 4 x 4 is without signal."""
    truth = np.full((48, 40, 44), 200, np.float32)
    truth[22:26] = 0
    noisy = add_noise(truth, ScannerNoise.RICIAN, 10, seed=3).voxels
    found = np.median(estimate_smooth(noisy, raised=True), axis=(1, 2)) / 10
    far = np.append(found[:17], found[31:])
    np.testing.assert_allclose(far, 1, atol=0.06)
    assert found[23:25].min() > 1.1 * far.mean()  # between nodes it falls to its neighbours


def test_smooth_sigma_leaves_weak_signal_alone() -> None:
    """Of twice the noise, as fluid in T1w can have: raising sigma there would darken it."""
    truth = np.full((48, 40, 44), 20, np.float32)
    noisy = add_noise(truth, ScannerNoise.RICIAN, 10, seed=3).voxels
    assert estimate_smooth(noisy, raised=True).mean() / 10 == pytest.approx(1, abs=0.04)


def test_adaptive_sigma_of_a_small_head() -> None:
    """Skull and rim, which are thinner than a cell, are most of the error of a small head."""
    truth = head((48, 56, 48), (Contrast.T1W,)).truth[Contrast.T1W]
    truth = truth[..., np.newaxis]
    noisy = add_noise(truth[..., 0], ScannerNoise.RICIAN, 10, seed=2).voxels[..., np.newaxis]
    settings = {"search_radius": 2, "beta": 1.0}
    one, varying = (
        psnr(apply(SPEC, noisy, {**settings, "sigma_from": source}), truth)
        for source in ("volume", "adaptive")
    )
    assert varying > one + 1


def test_smooth_sigma_of_a_head_that_was_cut_out(large: Phantom) -> None:
    truth = large.truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, 12.75).voxels
    found = estimate_smooth(np.where(truth > 0, noisy, 0))[large.labels == Tissue.WHITE]
    assert found.mean() == pytest.approx(12.75, rel=0.03)


def test_smooth_sigma_from_a_part_of_a_large_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other pair of voxels, halves of 4 x 4 x 4: sigma, and that its nodes lie right."""
    sigma = np.linspace(5, 50, 180, dtype=np.float32)
    noise = np.random.default_rng(0).standard_normal((70, 93, 180), np.float32)
    volume = (500 + sigma * noise)[..., np.newaxis]
    whole = map_sigma(volume, np.zeros(1), rician=False)
    monkeypatch.setattr(mri_sigma_map, "_MOST", volume.size // 8)
    part = map_sigma(volume, np.zeros(1), rician=False)
    assert (whole.cell, part.cell) == ((2, 2, 2), (4, 4, 4))
    for found in (whole, part):
        along = between_nodes(found.nodes[0], found.cell, volume.shape[:3]).mean((0, 1))
        np.testing.assert_allclose(along[30:-30], sigma[30:-30], rtol=0.06)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 8, 7), (4, 1, 9), (1, 1, 9), (5, 6, 7), (2, 3, 2)]
)
def test_smooth_sigma_of_tiny_volumes(shape: tuple[int, int, int]) -> None:
    volume = np.random.default_rng(0).normal(500, 9, shape).astype(np.float32)
    for deep in (True, False):
        found = estimate_smooth(volume, deep=deep)
        assert found.shape == shape
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(estimate_smooth(np.zeros(shape, np.float32)), 0)


def test_local_sigma_is_that_of_the_filter() -> None:
    volume = np.random.default_rng(0).rayleigh(20, (6, 7, 8)).astype(np.float32)
    for deep, window in itertools.product((True, False), (1, 2)):
        parameters = {"dimensions": "3d" if deep else "2d", "window_radius": window}
        wanted = local_sigma(volume.astype(float), parameters | {"noise": "rician"})
        found = estimate_local(volume, window, deep=deep)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


# Effects on a head --------------------------------------------------------------------


def psnr(actual: NDArray[Any], truth: NDArray[Any]) -> float:
    return float(10 * np.log10(255**2 / np.mean((actual.astype(float) - truth) ** 2)))


def denoise(*volumes: NDArray[Any], **parameters: Any) -> NDArray[np.float32]:
    planes = np.stack(volumes, axis=-1)
    return apply(SPEC, planes, {"search_radius": 3} | parameters)


@pytest.mark.parametrize("sigma", [7.65, 12.75, 25.5])
def test_it_removes_noise(phantom: Phantom, sigma: float) -> None:
    truth = phantom.truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, sigma).voxels
    assert psnr(denoise(noisy)[..., 0], truth) > psnr(noisy, truth) + 7


@pytest.mark.parametrize("sigma", [7.65, 12.75, 25.5])
def test_the_rician_correction_removes_the_bias_of_the_background(
    phantom: Phantom, sigma: float
) -> None:
    noisy = add_noise(phantom.truth[Contrast.T1W], ScannerNoise.RICIAN, sigma).voxels
    background = phantom.labels == Tissue.BACKGROUND
    given = {"sigma_from": "given", "sigma": (sigma,)}
    plain = denoise(noisy, noise="gaussian", **given)[background].mean()
    corrected = denoise(noisy, **given)[background].mean()
    assert plain > 1.2 * sigma  # the mean of Rayleigh noise is 1.25 sigma
    assert corrected < 0.6 * sigma


def test_three_components_beat_one(phantom: Phantom) -> None:
    sigma = 20.4  # 8 % of the brightest tissue
    noisy = [
        add_noise(truth, ScannerNoise.RICIAN, sigma, seed).voxels
        for seed, truth in enumerate(phantom.truth.values())
    ]
    given = {"sigma_from": "given", "sigma": (sigma,)}
    together = denoise(*noisy, **given)
    inside = phantom.labels != Tissue.BACKGROUND
    for c, (contrast, truth) in enumerate(phantom.truth.items()):
        alone = denoise(noisy[c], **given)[..., 0]
        gain = psnr(together[inside, c], truth[inside]) - psnr(alone[inside], truth[inside])
        assert gain > (0 if contrast is Contrast.PDW else 0.7), contrast


@pytest.mark.parametrize("sigma_from", ["adaptive", "local"])
@pytest.mark.parametrize("noise", ["rician", "gaussian"])
def test_adaptive_beats_constant_where_noise_varies(
    phantom: Phantom, noise: str, sigma_from: str
) -> None:
    """Noise of 3 on one side of the head and 21 on the other."""
    truth = phantom.truth[Contrast.T1W]
    random = np.random.default_rng(1)
    sigma = np.linspace(3, 21, truth.shape[2])
    noisy = truth + sigma * random.standard_normal(truth.shape)
    if noise == "rician":
        noisy = np.hypot(noisy, sigma * random.standard_normal(truth.shape))
    noisy = noisy.astype(np.float32)
    constant = psnr(denoise(noisy, noise=noise)[..., 0], truth)
    adaptive = psnr(denoise(noisy, noise=noise, sigma_from=sigma_from)[..., 0], truth)
    assert adaptive > constant + (2.0 if noise == "rician" else 1.0)


@pytest.mark.parametrize("dimensions", ["3d", "2d"])
def test_adaptive_does_no_harm_where_noise_is_uniform(large: Phantom, dimensions: str) -> None:
    truth = large.truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, 20, seed=1).voxels
    constant, adaptive = (
        judge_volume(denoise(noisy, dimensions=dimensions, sigma_from=each)[..., 0], truth)
        for each in ("volume", "adaptive")
    )
    assert adaptive.psnr > constant.psnr - 0.2
    assert constant.ssim is not None
    assert adaptive.ssim is not None
    assert adaptive.ssim > constant.ssim


@pytest.mark.exhaustive
def test_adaptive_gains_on_the_phantom_whose_noise_varies() -> None:
    """That of the command ``phantom --noise varying-rician``, of its size and sigma."""
    truth = head((181, 217, 181), [Contrast.T1W]).truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.VARYING_RICIAN, 20)
    constant, adaptive = (
        judge_volume(denoise(noisy.voxels, search_radius=2, sigma_from=each)[..., 0], truth)
        for each in ("volume", "adaptive")
    )
    assert adaptive.psnr > constant.psnr + 0.5
    assert constant.ssim is not None
    assert adaptive.ssim is not None
    assert adaptive.ssim > constant.ssim


def test_what_was_estimated_is_known() -> None:
    source = np.random.default_rng(0).normal(100, 5, (8, 8, 8, 2)).astype(np.float32)
    for sigma_from, known in (
        ("volume", True),
        ("local", False),
        ("adaptive", False),
        ("given", False),
    ):
        given = SPEC.validate({"sigma_from": sigma_from, "sigma": (3.0,)})
        resolved = SPEC.resolve(source, given)
        sigma = {"sigma": resolved["sigma"]} if known else {}
        assert SPEC.estimates(given, resolved) == {"noise": "rician"} | sigma
        chosen = SPEC.validate(given | {"noise": "rician"})
        assert SPEC.estimates(chosen, SPEC.resolve(source, chosen)) == sigma
    text = SPEC.describe(SPEC.defaults(), {"sigma": (4.98761, 5.0)})
    assert text.endswith("sigma from volume, estimated sigma 4.988, 5, beta 1")
    assert "sigma 3, beta" in SPEC.describe(SPEC.validate({"sigma_from": "given", "sigma": 3}))


def test_volumes_look_through_slices(phantom: Phantom) -> None:
    truth = phantom.truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, 12.75).voxels
    flat = psnr(denoise(noisy, dimensions="2d", search_radius=5)[..., 0], truth)
    assert psnr(denoise(noisy)[..., 0], truth) > flat + 1


# A real head --------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [10.0, 20.0])
def test_a_scan_of_a_head_is_denoised(sigma: float) -> None:
    """The MNI template, part of which is background, with Rician noise of known sigma."""
    truth = read_volume(MNI_T1).voxels[80:104, 20:104, 20:104].astype(np.float32)
    noisy = add_noise(truth, ScannerNoise.RICIAN, sigma, seed=1).voxels
    assert estimate_global(noisy) == pytest.approx(sigma, rel=0.03)
    before, after = (judge_volume(each, truth) for each in (noisy, denoise(noisy)[..., 0]))
    assert after.psnr > before.psnr + 9
    assert before.ssim is not None
    assert after.ssim is not None
    assert after.ssim > before.ssim + 0.3
    assert abs(after.bias) < 0.3 * before.bias
    plain = judge_volume(denoise(noisy, noise="gaussian")[..., 0], truth)
    assert after.psnr > plain.psnr + 6
    flat = judge_volume(denoise(noisy, dimensions="2d")[..., 0], truth)
    assert after.psnr > flat.psnr + 0.7


def test_its_map_depends_on_what_the_noise_depends_on() -> None:
    """The window shows the map of the filter that is chosen, or of another with its defaults."""
    volume = np.random.default_rng(0).normal(100, 5, (6, 12, 12)).astype(np.float32)
    local = {"sigma_from": "local", "window_radius": 1}
    shown, settings = filters.diagnostic("mri_nlm", local, microscope=False)
    sigmas, text = shown.compute(volume, settings)
    np.testing.assert_array_equal(sigmas, estimate_local(volume, 1))
    assert text == "Rician sigma around each voxel, window radius 1"
    for name, value in (("noise", "gaussian"), ("dimensions", "2d"), ("sigma_from", "volume")):
        other_values = {**local, name: value}
        assert filters.diagnostic("mri_nlm", other_values, microscope=False)[1] != settings
    other, usual = filters.diagnostic("median", {"size": 5}, microscope=False)
    assert other is shown
    assert usual == filters.diagnostic("mri_nlm", {"search_radius": 3}, microscope=False)[1]
    sigmas, text = other.compute(volume, usual)
    np.testing.assert_array_equal(sigmas, estimate_smooth(volume))
    assert text == "Rician sigma around each voxel, smooth map"
    sigmas, text = other.compute(volume - 200, usual)
    np.testing.assert_array_equal(sigmas, estimate_smooth(volume - 200, rician=False))
    assert text == "Gaussian sigma around each voxel, smooth map"


@pytest.mark.parametrize("sigma_from", ["given", "volume", "local", "adaptive"])
@pytest.mark.parametrize("offset", [-1000.0, -50.0])  # air of a CT, and noise around zero
def test_negative_voxels_have_gaussian_noise(sigma_from: str, offset: float) -> None:
    noise = np.random.default_rng(1).normal(0, 8, (6, 20, 20, 1))
    source = (np.where(np.arange(20) < 10, offset, 40)[:, None] + noise).astype(np.float32)
    given: dict[str, Any] = {"sigma_from": sigma_from, "search_radius": 2, "beta": 1.0}
    given |= {"sigma": (8.0,)} if sigma_from == "given" else {}
    for level in ("serial", "parallel"):
        output = apply(SPEC, source, given, level=level)
        np.testing.assert_array_equal(
            output, apply(SPEC, source, given | {"noise": "gaussian"}, level=level)
        )
        assert output[3, 2, 2, 0] == pytest.approx(offset, abs=12)
    with pytest.raises(InvalidParameter, match="voxels go down to -"):
        apply(SPEC, source, given | {"noise": "rician"})
    magnitudes = np.abs(source)
    np.testing.assert_array_equal(
        apply(SPEC, magnitudes, given), apply(SPEC, magnitudes, given | {"noise": "rician"})
    )


@pytest.mark.parametrize(("value", "kind"), [(-1000, "Gaussian"), (1000, "Rician")])
def test_the_kind_of_noise_that_was_found_is_named(value: int, kind: str) -> None:
    volume = Volume.from_array(np.full((4, 9, 9), value, np.int16), "ct")
    request = Request.create(Scan((volume,)), "mri_nlm", {"search_radius": 1})
    result = execute(request, {"cpu": CpuBackend()})
    assert f"MRI NLM: noise is {kind}, as the data have it." in result.notices
    assert f"estimated noise {kind}" in result.settings
    assert result.output.samples[0].dtype == np.int16
    assert (result.output.samples[0] == value).all()


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
@pytest.mark.parametrize("sigma", [2.55, 12.75, 23.0])
def test_sigma_of_air_is_that_of_rayleigh_noise(sigma: float, dtype: Any) -> None:
    """Detail of the object, which raises its estimate at 1 %, has no part in it."""
    truth = head((64, 64, 64)).truth[Contrast.T1W].astype(np.float64)
    random = np.random.default_rng(6)
    noisy = np.hypot(
        truth + random.normal(0, sigma, truth.shape), random.normal(0, sigma, truth.shape)
    )
    volume = noisy.astype(F) if dtype is np.float32 else np.rint(noisy).astype(dtype)
    assert air_sigma(volume) == pytest.approx(sigma, rel=0.02)
    assert estimate_global(volume) == air_sigma(volume)
    for exponent in (-60, 60):
        scaled = (noisy * 2.0**exponent).astype(F)
        assert air_sigma(scaled) == pytest.approx(sigma * 2.0**exponent, rel=0.02)


def test_texture_in_slices_far_apart_is_not_noise_beside_air() -> None:
    """Voxels that differ from all their neighbours, as anatomy of thick slices does."""
    random = np.random.default_rng(8)
    truth = np.zeros((10, 128, 128))
    truth[:, 32:96, 32:96] = 400 + random.normal(0, 30, (10, 64, 64))
    noisy = np.hypot(truth + random.normal(0, 13, truth.shape), random.normal(0, 13, truth.shape))
    assert object_sigmas(noisy, True, FLATTEST)[0] > 26
    assert estimate_global(noisy) == pytest.approx(13, rel=0.03)


def test_air_that_is_not_noise_is_left_alone() -> None:
    random = np.random.default_rng(9)
    truth = head((64, 64, 64)).truth[Contrast.T1W].astype(np.float64)
    first, second = random.normal(0, 10, (2, *truth.shape))
    noisy = np.hypot(truth + first, second)
    places = np.indices(truth.shape) / 31.5 - 1
    uneven = 3 - 2 * np.sqrt((places**2).sum(0) / 3)
    for volume in (
        truth,
        np.where(truth > 0, noisy, 0),
        np.abs(truth + first),  # half a normal distribution
        ndimage.uniform_filter(noisy, 3),
        np.hypot(truth + first * uneven, second * uneven),
        noisy + 50,
        np.full(truth.shape, 7.0),
        np.zeros((1, 1, 1)),
        noisy[:2, :8, :8],
        np.full(truth.shape, np.nan),
    ):
        assert air_sigma(volume.astype(F)) is None


def test_noise_is_rician_unless_a_voxel_is_negative() -> None:
    for lowest, noise in ((0.0, "rician"), (-1e-30, "gaussian")):
        source = np.full((2, 3, 4, 1), 7, np.float32)
        source[1, 2, 3] = lowest
        given = SPEC.validate({"sigma_from": "given", "sigma": (1.0,)})
        assert SPEC.resolve(source, given)["noise"] == noise
