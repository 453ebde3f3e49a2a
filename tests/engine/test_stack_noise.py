"""Photons and read-out in stacks of microscopes: found, made equal, and brought back."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.stabilising import photon_sigmas
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_all
from kernelscope.filters.shared.noise_model import NoiseKind, NoiseModel
from kernelscope.filters.shared.stack_noise import StackNoise, find_photons
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import quick_compiler
from tests.pairs import in_turn

pytestmark = pytest.mark.slow

BACKENDS: dict[str, Any] = {}
Stack = NDArray[Any]


@pytest.fixture(autouse=True)
def _backend() -> Iterator[None]:
    BACKENDS["cpu"] = CpuBackend(threads=2)
    yield
    BACKENDS.pop("cpu").close()


@functools.cache
def light(seed: int = 0, shape: tuple[int, int, int] = (16, 160, 160)) -> NDArray[np.float64]:
    """Return blobs and filaments, blurred, up to 1; the background is 0.02."""
    random = np.random.default_rng(seed)
    voxels = np.zeros(shape)
    places = np.indices(shape)
    for _ in range(shape[1] * shape[2] // 4000):
        centre, radius = random.random(3) * shape, random.uniform(6, 14)
        away = [place - middle for place, middle in zip(places, centre, strict=True)]
        inside = (2 * away[0]) ** 2 + away[1] ** 2 + away[2] ** 2 < radius**2
        voxels[inside] += random.uniform(0.2, 0.8)
    for _ in range(shape[1] * shape[2] // 2500):
        start, angle = random.random(3) * shape, random.uniform(0, 2 * np.pi)
        along = np.arange(100)[:, None]
        line = start + along * [0, np.sin(angle), np.cos(angle)]
        line = line[(line < shape).all(1) & (line >= 0).all(1)].astype(int)
        voxels[tuple(line.T)] += random.uniform(3, 10)
    voxels = gaussian_filter(voxels, (0.8, 1.3, 1.3))
    made: NDArray[np.float64] = 0.02 + 0.98 * np.clip(voxels / np.quantile(voxels, 0.9995), 0, 1)
    return made


def stack(
    photons: float,
    gain: float,
    read: float,
    black: float,
    dtype: str,
    seed: int = 0,
    *,
    side: int = 160,
    top: int | None = None,
) -> Stack:
    """Return a stack whose white is so many photons; `top` is its highest level."""
    random = np.random.default_rng(seed + 10)
    levels = gain * random.poisson(light(seed, (16, side, side)) * photons) + black
    levels = levels + random.normal(0, read, levels.shape)
    if dtype == "float32":
        return levels.astype(dtype)
    return np.clip(np.rint(levels), 0, top or np.iinfo(dtype).max).astype(dtype)


def scan(*stacks: Stack, microscope: bool = True) -> Scan:
    volumes = (Volume.from_array(each.copy(), microscope=microscope) for each in stacks)
    return Scan(tuple(volumes))


def run(source: Scan, filter_id: str = "volume_dct", **parameters: Any) -> Result:
    return execute_all(Request(source, Step.create(filter_id, parameters)), BACKENDS)


def psnr(voxels: Stack, wanted: Stack, white: float) -> float:
    return float(10 * np.log10(white**2 / np.mean((voxels.astype(float) - wanted) ** 2)))


@pytest.mark.parametrize(
    ("camera", "seed"),
    in_turn(
        [
            (5, 30, 0, 0, "uint8"),
            (20, 10, 0, 0, "uint8"),
            (20, 10, 5, 10, "uint8"),
            (20, 2.17, 3.5, 100, "uint16"),
            (1000, 2.17, 3.5, 100, "uint16"),
            (1000, 5, 3, 50, "uint16"),
            (1000, 1, 1, 0, "float32"),
            (300, 0.5, 2, 1000, "int16"),
        ],
        range(2),
        every=2,
    ),
)
def test_finds_gain_and_the_noise_of_the_darkest_level(camera: Any, seed: int) -> None:
    """To 10 % the gain, and to 5 % the variance of the background, whatever is clipped."""
    top = 4095 if camera[1] == 5 else None  # of twelve bits
    photons, gain, read, black, dtype = camera
    noisy = stack(photons, gain, read, black, dtype, seed, side=256, top=top)
    found = find_photons(noisy)
    assert found.is_photons
    assert found.gain == pytest.approx(gain, rel=0.1)
    background = 0.02 * photons
    offset = found.model.offsets[0] * found.white**2
    dark = found.gain * (black + background * gain) + offset
    assert dark == pytest.approx(gain**2 * background + read**2, rel=0.05)
    assert 1 <= found.excess < 1.15
    if black or dtype == "float32":
        assert found.darkest == pytest.approx(black + background * gain, rel=0.05)
        assert found.darkest_sigma == pytest.approx(np.sqrt(dark), rel=0.05)
    else:
        assert found.darkest_sigma < 0.35 * gain + 1.5 * read


@pytest.mark.parametrize(
    ("sigma", "black", "seed"), [(0, 100, 3), (4, 100, 3), (10, 100, 3), (10, 0, 6), (20, 0, 4)]
)
def test_edges_without_blur_hide_no_photons_and_are_none(
    sigma: float, black: int, seed: int
) -> None:
    """Simulated cells of 100 to 300 photons; with Gaussian noise of `sigma` there is no slope,
    also where it is clipped at 0.
    """
    random, shape = np.random.default_rng(seed), (16, 128, 128)
    places, cells = np.indices(shape), np.full(shape, 5.0)
    for _ in range(12):
        centre, radius = random.random(3) * shape, random.uniform(6, 12)
        away = [place - middle for place, middle in zip(places, centre, strict=True)]
        inside = (2 * away[0]) ** 2 + away[1] ** 2 + away[2] ** 2 < radius**2
        cells[inside] = random.uniform(100, 300)
    levels = cells + random.normal(0, sigma or 2, shape)
    if not sigma:
        levels += random.poisson(cells) - cells
    found = find_photons(np.rint(levels + black).clip(0).astype(np.uint16))
    assert found.is_photons is not bool(sigma)
    if not sigma:
        assert found.gain == pytest.approx(1, rel=0.4)
        assert not found.model.sure


def test_borders_without_data_do_not_count() -> None:
    noisy = stack(100, 2.17, 3.5, 100, "uint16")
    noisy[:, :50] = noisy[:, :, :30] = 0
    found = find_photons(noisy)
    assert found.gain == pytest.approx(2.17, rel=0.15)
    assert found.darkest == pytest.approx(100 + 2 * 2.17, rel=0.05)


@pytest.mark.parametrize("sigma", in_turn([2, 5, 10, 20], every=3))
def test_gaussian_noise_is_none_of_photons(sigma: float) -> None:
    random = np.random.default_rng(4)
    noisy = 20 + 200 * light() + random.normal(0, sigma, light().shape)
    for each in (noisy.astype("float32"), np.clip(np.rint(noisy), 0, 255).astype("uint8")):
        assert not find_photons(each).is_photons
        result = run(scan(each))
        assert result.estimates["noise"] == "gaussian"
        one = run(scan(each), noise="gaussian")
        np.testing.assert_array_equal(result.scan.planes, one.scan.planes)


@pytest.mark.parametrize(
    "volume", [np.zeros((3, 90, 90)), np.ones((1, 1, 1)), np.full((9,) * 3, 7)]
)
def test_nothing_to_find(volume: Stack) -> None:
    """Chosen all the same, one sigma is removed, and a notice says so."""
    volume = volume.astype("uint8")
    assert not find_photons(volume, must=True).is_photons
    result = run(scan(volume), noise="camera")
    np.testing.assert_array_equal(result.scan.volumes[0].voxels, volume)
    assert any("no noise of photons was found" in notice for notice in result.notices)


@pytest.mark.parametrize(
    ("gain", "read", "black"), [(10, 0, 0), (30, 10, 0), (2.17, 3.5, 100), (1, 3, 500)]
)
@pytest.mark.parametrize("photons", [0.2, 1, 5, 50, 3000])
def test_the_inverse_has_no_bias(gain: float, read: float, black: float, photons: float) -> None:
    """The mean after Anscombe's transform becomes the mean before, to 3 % of sigma."""
    random = np.random.default_rng(3)
    levels = gain * random.poisson(photons, 200_000) + black + random.normal(0, read, 200_000)
    white = 2 * (black + gain * 3000)
    slope, offset = gain / white, (read**2 - gain * black) / white**2
    model = NoiseModel(NoiseKind.CAMERA, (0.01,), (slope,), (offset,))
    steps = StackNoise(model, white).steps(np.dtype("float32"), 0.01 * white)
    stable = steps.forward(levels.astype("float32").reshape(1, -1, 1))
    restored = float(steps.backward(np.full((1, 1, 1), stable.mean(dtype=float)))[0, 0, 0])
    sigma = np.sqrt(gain**2 * photons + read**2)
    assert abs(restored - (black + gain * photons)) < 0.03 * sigma
    if photons >= 5:
        assert stable.std(dtype=float) == pytest.approx(0.01 * white, rel=0.04)


@pytest.mark.parametrize(
    ("filter_id", "least"), [("volume_dct", 6), ("volume_collaborative", 7.5), ("mri_nlm", 6)]
)
def test_more_decibels_than_with_one_sigma(filter_id: str, least: float) -> None:
    noisy, lit = stack(20, 10, 5, 10, "uint8", side=100), light(0, (16, 100, 100))
    wanted = np.minimum(10 + 200 * lit, 255)
    results = [run(scan(noisy), filter_id, noise=each) for each in ("auto", "camera", "gaussian")]
    noise = find_photons(noisy)
    numbers = f"gain {noise.gain:.3g} levels per photon, sigma {noise.darkest_sigma:.3g} at the "
    assert any(numbers in notice for notice in results[0].notices)
    assert results[0].estimates["noise"] == "camera"
    assert results[0].estimates["sigma"] == pytest.approx([noise.sigma])
    found, chosen, white = (result.scan.volumes[0].voxels for result in results)
    np.testing.assert_array_equal(found, chosen)
    assert psnr(found, wanted, 200) > psnr(white, wanted, 200) + least
    # No level without structure is brighter or darker on average than it was.
    dark = lit < 0.03
    assert found[dark].mean() == pytest.approx(noisy[dark].mean(), abs=0.5)


@pytest.mark.parametrize(
    ("filter_id", "given", "around"),
    [
        ("mri_nlm", {}, "3×3×3"),
        ("mri_nlm", {"dimensions": "2d"}, "3×3"),
        ("volume_dct", {}, "3×3×3"),
        ("median", {}, "3×3×3"),
    ],
)
def test_a_map_of_the_noise_follows_the_light(
    filter_id: str, given: dict[str, str], around: str
) -> None:
    """For files of a microscope, or where the noise of a camera is chosen; others have theirs."""
    noisy = stack(100, 2.17, 3.5, 100, "uint16")
    wanted = np.sqrt(2.17**2 * 100 * light() + 3.5**2)
    flat = np.random.default_rng(4).normal(50, 3, noisy.shape).astype("float32")
    camera = "camera noise: gain 2.09 levels per photon, sigma 4.69 at the darkest level, 104, sure"

    def show(voxels: Stack, microscope: bool, **values: str) -> tuple[Stack, str]:
        shown, settings = filters.diagnostic(filter_id, given | values, microscope)
        return shown.compute(voxels, settings)

    sigmas, text = show(noisy, True)
    assert text == f"{camera}; sigma at the mean of {around} voxels"
    errors = np.abs(sigmas / wanted - 1)
    assert np.median(errors) < 0.02
    assert np.quantile(errors, 0.9) < 0.12
    assert np.median(errors[light() > 0.3]) < 0.08
    assert show(noisy, False)[1].startswith("Rician sigma around each voxel")
    assert show(flat, True)[1].startswith("Gaussian sigma around each voxel")
    if filter_id != "median":  # its map has the defaults of another filter
        assert show(noisy, False, noise="camera")[1].startswith(camera)
        assert show(noisy, True, noise="rician")[1].startswith("Rician sigma")
        assert show(flat, False, noise="camera")[1].startswith("Gaussian sigma")


def test_each_channel_has_noise_of_its_own() -> None:
    """As alone; one without photons among others is filtered with its own sigma."""
    random = np.random.default_rng(5)
    flat = (50 + 3 * random.normal(0, 1, light().shape)).astype("float32")
    stacks = [stack(20, 10, 0, 0, "uint8"), stack(100, 2.17, 3.5, 100, "uint16", 1), flat]
    together = run(scan(*stacks))
    gains = "; ".join(f"{find_photons(each).gain:.3g}" for each in stacks[:2])
    assert any(f"gain {gains} levels per photon" in each for each in together.notices)
    assert together.estimates["sigma"][2] == pytest.approx(3, rel=0.02)
    for number, each in enumerate(stacks):
        alone = run(scan(each))
        np.testing.assert_array_equal(
            together.scan.volumes[number].voxels, alone.scan.volumes[0].voxels
        )
    for number, each in enumerate(stacks[:2]):
        sigmas, noise = photon_sigmas(together.request, number), find_photons(each)
        assert sigmas is not None
        found = sigmas(np.array([noise.darkest + 100 * noise.gain], np.float32))
        assert found == pytest.approx(math.hypot(10 * noise.gain, noise.darkest_sigma), rel=1e-3)
    assert photon_sigmas(together.request, 2) is None
    two = replace(together.request, then=(RunSettings(Step.create("volume_dct")),))
    assert photon_sigmas(two, 0) is None, "the residual is that of both steps"


def test_changes_of_the_darkest_voxels_are_measured_in_a_sigma_as_well() -> None:
    found = find_photons(stack(20, 10, 5, 10, "uint8"))
    noise = StackNoise(replace(found.model, offsets=(0.0,)), white=250)
    assert noise.darkest_sigma == 0
    assert noise.sigmas_at(np.zeros(1, np.float32)) == pytest.approx(250e-6)
    assert (noise.sigmas_around(np.zeros((3, 4, 5), np.uint8), deep=True) > 0).all()


def test_sigma_that_is_given_is_that_of_the_mean() -> None:
    """The sigma that was found gives the same result, a smaller one removes less."""
    noisy = stack(20, 10, 0, 0, "uint8")
    found = run(scan(noisy))
    given = {"noise": "camera", "sigma_from": "given"}
    again = run(scan(noisy), **given, sigma=found.estimates["sigma"])
    np.testing.assert_array_equal(again.scan.planes, found.scan.planes)
    weak = run(scan(noisy), **given, sigma=(found.estimates["sigma"][0] / 2,))
    assert (
        np.abs(weak.scan.planes - noisy[..., None]).mean()
        < 0.8 * np.abs(found.scan.planes - noisy[..., None]).mean()
    )
    adaptive = run(scan(noisy), noise="camera", sigma_from="adaptive")
    wanted = np.minimum(200 * light(), 255)
    assert psnr(adaptive.scan.planes[..., 0], wanted, 200) > 35


def test_only_stacks_of_microscopes_have_photons_unless_chosen() -> None:
    noisy = stack(20, 10, 0, 0, "uint8")
    head = run(scan(noisy, microscope=False))
    assert head.estimates["noise"] == "rician"
    chosen = run(scan(noisy, microscope=False), noise="camera")
    np.testing.assert_array_equal(chosen.scan.planes, run(scan(noisy)).scan.planes)


def test_tiny_units_have_the_same_result() -> None:
    noisy = stack(100, 2, 1, 0, "float32")
    result, tiny = run(scan(noisy)), run(scan(noisy * np.float32(2.0**-60)))
    np.testing.assert_allclose(tiny.scan.planes * 2.0**60, result.scan.planes, rtol=1e-4, atol=1e-2)
    assert tiny.estimates["sigma"][0] * 2.0**60 == pytest.approx(result.estimates["sigma"][0])


def test_parts_have_the_bytes_of_the_whole() -> None:
    source = scan(stack(20, 10, 0, 0, "uint8"))
    for parameters in ({}, {"sigma_from": "adaptive"}):
        request = Request.create(source, "volume_dct", parameters)
        whole = execute(request, BACKENDS).scan.volumes[0].voxels
        box = Box((3, 20, 30), (2, 40, 50))
        part = execute(replace(request, region=box), BACKENDS).scan.volumes[0].voxels
        np.testing.assert_array_equal(part, box.of(whole))


@needs_compiler
@pytest.mark.parametrize("filter_id", ["volume_dct", "mri_nlm"])
def test_all_levels_have_the_same_bytes(filter_id: str) -> None:
    noisy = stack(20, 10, 5, 10, "uint8")[4:10, :112, :112]
    values = {"noise": "camera"} | ({"search_radius": 1, "beta": 1.0} if "nlm" in filter_id else {})
    source, results = scan(noisy), {}
    BACKENDS["emulated"] = EmulatorBackend(quick_compiler(), threads=2)
    for device in (Device.CPU, Device.EMULATED):
        for level in BACKENDS[device].levels(Request.create(source, filter_id).step.filter):
            request = Request.create(source, filter_id, values, device=device, level=level.id)
            result = execute(request, BACKENDS)
            assert any("gain" in each for each in result.notices)
            results[device, level.id] = result.scan.volumes[0].voxels
    BACKENDS.pop("emulated").close()
    first = results[Device.CPU, "serial"]
    assert np.abs(first.astype(int) - noisy).max() > 10
    for place, voxels in results.items():
        # Levels of MRI NLM add floats in different orders.
        apart = np.abs(voxels.astype(int) - first)
        assert apart.max() <= (filter_id == "mri_nlm"), place
        assert apart.mean() < 1e-4
