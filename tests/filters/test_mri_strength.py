"""The estimated beta of MRI NLM against the errors that it has in fact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.base.jit import JitKernel
from kernelscope.filters.mri_nlm import SPEC, strength
from kernelscope.filters.mri_nlm.cpu import reach_of
from kernelscope.filters.mri_nlm.strength import (
    BETAS,
    draw_voxels,
    estimated_errors,
    suggest_beta,
)
from kernelscope.filters.shared.mri_sigma import estimate_around, estimate_local
from kernelscope.filters.shared.mri_sigma_map import estimate_smooth, map_sigma, sigmas_at
from kernelscope.filters.shared.non_local import of_least_error
from kernelscope.images.phantom import Contrast, ScannerNoise, add_noise, head
from tests.filters import apply
from tests.pairs import all_pairs

pytestmark = pytest.mark.slow


def squared_error(volume: NDArray[Any], truth: NDArray[Any]) -> float:
    return float(np.mean((volume.astype(float) - truth) ** 2))


def all_places(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.argwhere(np.ones(shape[:3], bool))


each_radius = pytest.mark.parametrize(
    "parameters",
    [
        {"search_radius": 2},
        {"search_radius": (3, 2, 1), "patch_radius": (1, 2, 1)},
        {"search_radius": 1, "patch_radius": 2},
        {"search_radius": (2, 4, 2), "patch_radius": (2, 1, 2), "dimensions": "2d"},
    ],
)


@each_radius
@pytest.mark.parametrize("components", [1, 2])
def test_errors_are_known_without_the_clean_volume(
    parameters: dict[str, Any], components: int
) -> None:
    """Inside a head, of Gaussian noise of known sigma, from weak to too strong."""
    contrasts = (Contrast.T1W, Contrast.T2W)[:components]
    truth = np.stack(list(head((20, 26, 24), contrasts).truth.values()), axis=-1)
    sigmas = np.array([12.0, 20.0])[:components]
    noise = np.random.default_rng(components).standard_normal(truth.shape)
    noisy = (truth + sigmas * noise).astype(np.float32)
    given = parameters | {"noise": "gaussian", "sigma_from": "given", "sigma": tuple(sigmas)}
    values = SPEC.validate(given)
    reach = reach_of(values)
    places = all_places(truth.shape)
    # Mirrored copies of a voxel beyond the border follow it, which is not reckoned with.
    inset = np.array(reach.margin)
    inside = ((places >= inset) & (places < np.array(truth.shape[:3]) - inset)).all(axis=1)
    places = places[inside]
    each = np.broadcast_to(sigmas, (len(places), components))
    betas = np.array([0.2, 0.5, 1.0, 3.0])
    found = estimated_errors(noisy, places, each, each**2, reach.search, reach.patch, False, betas)
    for k, beta in enumerate(betas.tolist()):
        result = apply(SPEC, noisy, given | {"beta": beta})
        for c in range(components):
            z, y, x = places.T
            actual = squared_error(result[z, y, x, c], truth[z, y, x, c])
            # The part of the noise above its variance is in the residual too.
            power = squared_error(noisy[z, y, x, c], truth[z, y, x, c])
            mean = found[c, k] / len(places) + power - sigmas[c] ** 2
            assert mean == pytest.approx(actual, rel=0.08, abs=0.04 * sigmas[c] ** 2), (beta, c)


@pytest.mark.parametrize("signal", [0.0, 1.5, 3.0, 30.0])
def test_errors_of_rician_noise_are_known(signal: float) -> None:
    """Where it is dark too; of a weak signal, an average of voxels falls on their mean."""
    truth = np.full((18, 18, 18), 10 * signal, np.float32)
    noisy = add_noise(truth, ScannerNoise.RICIAN, 10.0, seed=1).voxels
    parameters = {"search_radius": 2, "sigma_from": "given", "sigma": (10.0,)}
    reach = reach_of(SPEC.validate(parameters))
    places = all_places(truth.shape)
    inside = ((places >= 3) & (places < 15)).all(axis=1)
    places, sigmas = places[inside], np.full((inside.sum(), 1), 10.0)
    for beta in (0.3, 1.0):
        (found,) = estimated_errors(
            noisy[..., None],
            places,
            sigmas,
            sigmas**2,
            reach.search,
            reach.patch,
            True,
            np.array([beta]),
        )
        given = parameters | {"beta": beta, "noise": "rician" if signal == 0 else "gaussian"}
        result = apply(SPEC, noisy[..., None], given)[3:15, 3:15, 3:15, 0]
        actual = squared_error(result, np.asarray(noisy.mean() if signal else 0))
        assert found[0] / len(places) == pytest.approx(actual, rel=0.15, abs=4), beta


@each_radius
@pytest.mark.parametrize("rician", [False, True])
def test_numpy_finds_the_same_errors_while_there_is_no_code(
    parameters: dict[str, Any], rician: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At borders, in the dark, and where a component does not count too."""
    truth = np.stack(list(head((9, 14, 12), (Contrast.T1W, Contrast.T2W)).truth.values()), axis=-1)
    noise = 15 * np.random.default_rng(0).standard_normal(truth.shape)
    noisy = np.abs(truth + noise).astype(np.float32)
    places = all_places(truth.shape)[::5]
    sigmas = np.broadcast_to([12.0, 20.0], (len(places), 2))
    power = np.where(np.arange(2 * len(places)).reshape(-1, 2) % 7 == 0, 0, sigmas**2)
    reach = reach_of(SPEC.validate(parameters))
    given = (noisy, places, sigmas, power, reach.search, reach.patch, rician)
    wanted = estimated_errors(*given)
    monkeypatch.setattr(JitKernel, "would_wait", lambda *_: True)
    monkeypatch.setattr(strength, "risks", JitKernel(lambda *_: pytest.fail("no code")))
    np.testing.assert_allclose(estimated_errors(*given), wanted, rtol=1e-4)


def known(*sigmas: float) -> Any:
    return lambda places: np.broadcast_to(sigmas, (len(places), len(sigmas)))


def test_only_voxels_with_a_signal_count() -> None:
    truth = np.zeros((30, 30, 30, 2), np.float32)
    truth[:10, ..., 0], truth[20:, ..., 1] = 100, 50
    noisy = np.stack(
        [
            add_noise(np.ascontiguousarray(truth[..., c]), ScannerNoise.RICIAN, 10.0, c).voxels
            for c in (0, 1)
        ],
        axis=-1,
    )
    places, noise = draw_voxels(noisy, known(10.0, 10.0), True, True, 1000)
    assert len(places) == len(noise) == 1000
    depth = places[:, 0]
    assert (noise[depth < 10, 0] > 0).all()
    assert (noise[depth >= 20, 1] > 0).all()
    away = (depth > 10) & (depth < 19)
    assert away.mean() < 0.05  # a third of the volume
    assert (noise[depth > 10, 0] > 0).mean() < 0.05
    empty = add_noise(np.zeros((9, 9, 9), np.float32), ScannerNoise.RICIAN, 10.0).voxels
    places, noise = draw_voxels(empty[..., None], known(10.0), True, True, 50)
    assert len(places) == 50
    assert (noise > 0).all()


def test_the_best_lies_between_what_was_tried() -> None:
    exponents = np.log2(BETAS)
    for wanted in (-1.2, 0.0, 0.9):
        assert np.log2(of_least_error(3 + (exponents - wanted) ** 2, BETAS)) == pytest.approx(
            wanted
        )
    assert of_least_error(exponents, BETAS) == BETAS[0]
    assert of_least_error(-exponents, BETAS) == BETAS[-1]


@pytest.mark.parametrize("dimensions", ["3d", "2d"])
def test_sigma_at_some_voxels_is_that_of_the_filter(dimensions: str) -> None:
    deep = dimensions == "3d"
    volume = np.random.default_rng(0).rayleigh(20, (9, 11, 13, 2)).astype(np.float32)
    places = all_places(volume.shape)
    smooth = sigmas_at(map_sigma(volume, np.zeros(2), True, deep), places)
    for c in range(2):
        one = np.ascontiguousarray(volume[..., c])
        wanted = estimate_smooth(one, deep=deep, raised=True).ravel()
        np.testing.assert_allclose(smooth[:, c], wanted, rtol=1e-5)
        for window in (1, 2):
            local = estimate_around(volume, np.full(2, 18.0), window, True, deep, places)
            wanted = np.maximum(estimate_local(one, window, True, deep), 18).ravel()
            np.testing.assert_allclose(local[:, c], wanted, rtol=1e-5)


@pytest.mark.parametrize("sigma_from", ["volume", "adaptive", "local", "given"])
def test_it_knows_what_the_filter_divides_by(sigma_from: str) -> None:
    """By half of sigma, beta is four times as large, whether sigma is one number or many."""
    truth = head((36, 48, 40), [Contrast.T1W]).truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, 15.0, seed=3).voxels[..., None]
    parameters = {"search_radius": 2, "sigma_from": sigma_from, "sigma": (15.0,)}
    if sigma_from != "given":
        del parameters["sigma"]
    beta = suggest_beta(noisy, SPEC.validate(parameters))

    def error(factor: float) -> float:
        result = apply(SPEC, noisy, parameters | {"beta": min(4.0, beta * factor)})
        return squared_error(result[..., 0], truth)

    best = min(error(factor) for factor in (0.3, 0.45, 0.65, 0.8, 1.25, 1.6, 2.3))
    assert error(1) < best * 10**0.03  # 0.3 dB


def test_it_is_closer_to_the_best_than_any_number() -> None:
    """Mean over contrasts, noise and settings; see resources/bench/mri-strength.md for more."""
    losses, fixed = [], []
    windows = {"search_radius": 4}, {"search_radius": 2, "patch_radius": 2}
    for contrast, level, parameters in all_pairs(tuple(Contrast), (0.02, 0.08), windows):
        truth = head((26, 40, 32), [contrast], shading=0.2).truth[contrast]
        noise = add_noise(truth, ScannerNoise.RICIAN, level * 255, seed=50)
        noisy = noise.voxels[..., None]
        tried, suggested = [], suggest_beta(noisy, SPEC.validate(parameters))
        for beta in (suggested, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0):
            result = apply(SPEC, noisy, parameters | {"beta": beta})
            tried.append(10 * np.log10(squared_error(result[..., 0], truth)))
        loss = np.array(tried) - min(tried[1:])
        losses.append(loss[0])
        fixed.append(loss[1:])
    assert np.mean(losses) < 0.2
    assert np.mean(losses) < np.mean(fixed, axis=0).min() - 0.1


def test_it_has_no_units() -> None:
    truth = head((24, 32, 28), [Contrast.T1W]).truth[Contrast.T1W]
    noisy = add_noise(truth, ScannerNoise.RICIAN, 15.0).voxels[..., None]
    values = SPEC.validate({"search_radius": 2})
    beta = suggest_beta(noisy, values)
    assert suggest_beta(1024 * noisy, values) == pytest.approx(beta, rel=1e-4)
    assert 0.2 < beta < 3
    # A component that is empty only halves the distances, which beta makes up for.
    two = np.concatenate([noisy, np.zeros_like(noisy)], axis=-1)
    assert suggest_beta(two, values) == pytest.approx(beta / 2, rel=0.25)


def test_small_and_empty_volumes_have_an_estimate() -> None:
    for shape, sigma_from, (level, noise), dimensions in all_pairs(
        ((1, 1, 1, 1), (1, 8, 7, 2), (4, 1, 9, 1), (5, 6, 7, 4)),
        ("volume", "adaptive", "local"),
        ((500, 9), (0, 0), (7, 0)),
        ("3d", "2d"),
    ):
        volume = np.random.default_rng(0).normal(level, noise, shape).astype(np.float32)
        values = SPEC.validate(
            {"dimensions": dimensions, "sigma_from": sigma_from, "search_radius": 2}
        )
        assert BETAS[0] <= suggest_beta(volume, values) <= BETAS[-1]
