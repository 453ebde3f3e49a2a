"""Pictures whose noise is not white: made white before a filter, and brought back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio

import kernelscope
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter
from kernelscope.big.lazy.filtered import filtered
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import estimate
from kernelscope.filters.shared.noise_model import NoiseKind, NoiseModel, find_noise
from kernelscope.filters.shared.stabilise import Stabiliser, Whitener
from kernelscope.filters.sliding_dct import SPEC
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.library.session import session
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import UNIT, Kind
from tests.filters import apply
from tests.filters.test_noise_model import blurred, camera, clean, in_type, white
from tests.lazy.arrays import ArraySource

pytestmark = pytest.mark.slow

F = np.float32
BACKENDS: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _backend() -> Iterator[None]:
    BACKENDS["cpu"] = CpuBackend(threads=2)
    yield
    BACKENDS.pop("cpu").close()


def image(samples: Any) -> Image:
    made = Image.from_array(samples)
    return replace(made, given_levels=UNIT) if made.dtype.kind == "f" else made


def run(samples: Any, **parameters: Any) -> Result:
    """Return the result for an estimated sigma unless there is one."""
    source = image(samples)
    request = Request.create(source, "sliding_dct", parameters)
    if "sigma" not in parameters:
        numbers = estimate(request, ["sigma"])
        request = Request.create(source, "sliding_dct", {**parameters, **numbers})
    return execute(request, BACKENDS)


def quality(result: Result, wanted: Any) -> float:
    planes = result.image.planes
    top = 1.0 if planes.dtype.kind == "f" else np.iinfo(planes.dtype).max
    return float(peak_signal_noise_ratio(wanted, np.clip(planes / top, 0, 1), data_range=1))


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize(
    ("picture", "photons", "least"),
    [("camera", 20, 26.8), ("camera", 100, 30.7), ("coins", 100, 28.8), ("astronaut", 100, 32.5)],
)
def test_removes_camera_noise(picture: str, photons: float, least: float, dtype: Any) -> None:
    """As well, to 0.1 dB, as with the variance that was drawn; with one sigma 19 to 31 dB."""
    wanted = clean(picture)
    noisy = in_type(camera(wanted, photons), dtype)
    found = run(noisy)
    assert quality(found, wanted) > least
    assert (
        f"Sliding DCT: {find_noise(noisy).describe(found.request.image.levels.span)}."
        in found.notices
    )
    count = wanted.shape[2]
    true = NoiseModel(
        NoiseKind.CAMERA,
        tuple(np.sqrt(wanted.mean((0, 1)) / photons + photons**-2.0)),
        (1 / photons,) * count,
        (photons**-2.0,) * count,
    )
    given = Request.create(image(noisy), "sliding_dct", {"sigma": 100 * true.sigma})
    known = quality(execute(replace(given, noise=true), BACKENDS), wanted)
    assert quality(found, wanted) > known - 0.12


def test_collaborative_filtering_gets_stable_pictures() -> None:
    """25.5 dB with one sigma; the authors' package with the true variance 31.20 dB."""
    source = image(in_type(camera(clean("camera")), np.uint8))
    numbers = estimate(Request(source, Step.of_numbers("collaborative", {})), ["sigma"])
    found = execute(Request.create(source, "collaborative", numbers), BACKENDS)
    assert quality(found, clean("camera")) > 31.15


@pytest.mark.parametrize(("picture", "least"), [("camera", 30.4), ("coins", 28.6)])
def test_non_local_means_gets_stable_pictures(picture: str, least: float) -> None:
    """As published it does not: 24.7 and 25.3 dB with one sigma."""
    source = image(in_type(camera(clean(picture)), np.uint8))
    step = Step.of_numbers("nlm", {})
    names = [each.name for each in step.filter.parameters if each.is_estimated]
    numbers = estimate(Request(source, step), names)
    found = execute(Request.create(source, "nlm", numbers), BACKENDS)
    assert quality(found, clean(picture)) > least
    published = Request.create(source, "nlm", {"weights": "gaussian", "filter_sigma": 0.02})
    other = Request.create(source, "nlm", {**published.step.parameters, "noise": "white"})
    results = [execute(each, BACKENDS) for each in (published, other)]
    np.testing.assert_array_equal(results[0].image.planes, results[1].image.planes)
    assert not results[0].notices


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize(("picture", "least"), [("camera", 27.5), ("moon", 32.7), ("brick", 30.5)])
def test_removes_correlated_noise(picture: str, least: float, dtype: Any) -> None:
    """Non-local means of the best strength, which it does not find: camera 27.47, moon 31.84."""
    wanted = clean(picture)
    assert quality(run(in_type(blurred(wanted), dtype)), wanted) > least


@pytest.mark.parametrize("picture", ["camera", "grass", "retina"])
def test_white_noise_is_removed_as_ever(picture: str) -> None:
    noisy = white(clean(picture)).astype(F)
    np.testing.assert_array_equal(run(noisy).image.planes, run(noisy, noise="white").image.planes)


def test_unequal_channels_count_by_their_noise() -> None:
    wanted = clean("astronaut")
    noise = np.random.default_rng(1).normal(0, 1, wanted.shape) * np.array([15, 8, 30]) / 255
    noisy = (wanted + noise).astype(F)
    assert quality(run(noisy), wanted) > quality(run(noisy, noise="white"), wanted) + 0.2


def test_the_steps_are_those_around_the_filter() -> None:
    noisy = in_type(camera(clean("camera")), np.uint8)
    model = find_noise(noisy).with_sigma(0.09)
    steps = Stabiliser(model, noisy.dtype)
    wanted = steps.backward(apply(SPEC, steps.forward(noisy), {"sigma": 9.0, "noise": "white"}))
    np.testing.assert_array_equal(run(noisy, sigma=9.0).image.planes, wanted)


def test_nothing_is_changed_where_there_is_nothing_to_remove() -> None:
    noisy = in_type(camera(clean("camera")), np.uint8)
    for values in ({"sigma": 0.0}, {"sigma": 5.0, "strength": 0.0}):
        for noise in ("auto", "camera", "correlated"):
            np.testing.assert_array_equal(run(noisy, noise=noise, **values).image.planes, noisy)


def test_alpha_grey_and_sixteen_bits() -> None:
    grey = in_type(camera(clean("camera")), np.uint16)
    alone = run(grey).image.planes
    alpha = np.arange(grey.size, dtype=np.uint16).reshape(grey.shape) | 1
    both = run(np.concatenate([grey, alpha], axis=2)).image.planes
    np.testing.assert_array_equal(both[..., :1], alone)
    np.testing.assert_array_equal(both[..., 1:], alpha)
    colours = image(in_type(camera(clean("astronaut")), np.uint8))
    made = execute(Request.create(colours, "sliding_dct", {"sigma": 8.0}, grey=True), BACKENDS)
    assert made.image.planes.shape[2] == 1
    assert "camera noise" in " ".join(made.notices)


@pytest.mark.parametrize("exponent", [-66, 66])
@pytest.mark.parametrize("make", [camera, blurred])
def test_scale_does_not_matter(make: Any, exponent: int) -> None:
    source = np.clip(make(clean("coins")), 0, 1).astype(F)
    source[0, 0] = 1
    try:
        wanted = kernelscope.sliding_dct(source)
        actual = kernelscope.sliding_dct((source * 2.0**exponent).astype(F))
    finally:
        session().close()
    assert np.abs(wanted - source).max() > 0.05
    np.testing.assert_allclose(actual / 2.0**exponent, wanted, rtol=1e-4, atol=1e-5)


def test_slices_have_white_noise_unless_another_is_chosen() -> None:
    samples = in_type(camera(np.concatenate([clean("camera")] * 2, axis=2)), np.uint8)
    scan = Scan((Volume.from_array(np.moveaxis(samples, 2, 0)),))
    for noise, same in (("auto", "white"), ("camera", "camera")):
        request = Request.create(scan, "sliding_dct", {"sigma": 9.0, "noise": noise})
        output = execute(request, BACKENDS).output.planes
        for number in range(2):
            alone = run(samples[..., number : number + 1], sigma=9.0, noise=same).image.planes
            np.testing.assert_array_equal(output[number], alone)


def test_a_picture_read_in_blocks_is_refused() -> None:
    source = ArraySource(in_type(camera(clean("camera")), np.uint8), Kind.PICTURE)
    for noise in ("auto", "camera"):
        step = Step.of_numbers("sliding_dct", {"sigma": 9.0, "noise": noise})
        with pytest.raises(InvalidParameter, match="found from the whole picture"):
            filtered(source, step, lambda request: execute(request, BACKENDS))


def estimated(samples: Any, filter_id: str, **parameters: Any) -> Result:
    """Return the result of a filter with all its estimates."""
    source = image(samples)
    step = Step.of_numbers(filter_id, parameters)
    names = [each.name for each in step.filter.parameters if each.is_estimated]
    numbers = estimate(Request(source, step), [each for each in names if each not in parameters])
    return execute(Request.create(source, filter_id, {**parameters, **numbers}), BACKENDS)


@pytest.mark.parametrize(
    ("filter_id", "picture", "least"),
    [
        ("collaborative", "camera", 28.1),
        ("collaborative", "moon", 33.1),
        ("collaborative", "astronaut", 28.8),
        ("nlm", "camera", 27.1),
        pytest.param("nlm", "moon", 32.3, marks=pytest.mark.exhaustive),
    ],
)
def test_correlated_noise_is_removed(filter_id: str, picture: str, least: float) -> None:
    """Made white, but for colours of collaborative filtering.

    With one sigma: collaborative 26.2, 27.3 and 27.0 dB, non-local means 26.9 and 29.2.
    """
    wanted = clean(picture)
    assert quality(estimated(in_type(blurred(wanted), np.uint8), filter_id), wanted) > least


@pytest.mark.parametrize(("picture", "least"), [("moon", 30.2), ("astronaut", 28.2)])
def test_frequencies_without_noise_are_kept_in_groups_of_blocks(picture: str, least: float) -> None:
    """Such noise made white is hardly found again: 24.5 and 26.8 dB."""
    wanted = clean(picture)
    samples = in_type(blurred(wanted, pixels=1.0), np.uint8)
    assert not find_noise(samples).whitens
    assert quality(estimated(samples, "collaborative"), wanted) > least


NUMBERS = {
    "sliding_dct": {"sigma": 8.0},
    "nlm": {"sigma": 8.0, "patch": 3, "search_radius": 2, "filter_sigma": 0.01},
}


@pytest.mark.parametrize("make", [camera, blurred])
@pytest.mark.parametrize("border", [Border.REFLECT, Border.VALID, Border.CONSTANT, Border.WRAP])
@pytest.mark.parametrize(
    ("filter_id", "alpha"), [("sliding_dct", False), ("nlm", False), ("nlm", True)]
)
def test_a_region_has_the_bytes_of_the_whole(
    make: Any, border: Border, filter_id: str, alpha: bool
) -> None:
    samples = in_type(make(clean("astronaut" if alpha else "camera")), np.uint8)
    if alpha:
        samples = np.concatenate([samples, np.full_like(samples[..., :1], 255)], axis=2)
        samples[60:70, 60:90, 3] = 0
    request = Request.create(image(samples), filter_id, NUMBERS[filter_id], border=border)
    region = Region(50, 20, 70, 90)
    part = execute(replace(request, region=region), BACKENDS)
    whole = execute(request, BACKENDS)
    np.testing.assert_array_equal(part.image.planes, region.of(whole.image.planes))
    changed = whole.image.planes[..., 0] != samples[: whole.image.height, : whole.image.width, 0]
    assert changed.mean() > 0.3


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("picture", ["camera", "astronaut"])
def test_a_whitened_picture_comes_back_as_it_was(picture: str, dtype: Any) -> None:
    noisy = in_type(blurred(clean(picture)), dtype)
    steps = Whitener(find_noise(noisy, NoiseKind.CORRELATED), noisy.dtype)
    stable = steps.forward(noisy)
    np.testing.assert_array_equal(steps.backward(stable, stable, noisy), noisy)
    found = find_noise(stable)
    assert found.kind is NoiseKind.WHITE
    assert found.sigma == pytest.approx(20 / 255, rel=0.15)


@pytest.mark.parametrize(
    ("picture", "colour", "given"),
    [
        ("astronaut", "joint", {"patch": 3}),
        ("coffee", "separate", {"patch": 5}),
        # The patch is estimated as well, which takes most of the time.
        pytest.param("astronaut", "separate", {}, marks=pytest.mark.exhaustive),
        pytest.param("coffee", "joint", {}, marks=pytest.mark.exhaustive),
    ],
)
def test_unequal_channels_are_made_alike(picture: str, colour: str, given: dict[str, int]) -> None:
    wanted = clean(picture)
    noise = np.random.default_rng(1).normal(0, 1, wanted.shape) * np.array([15, 8, 30]) / 255
    noisy = (wanted + noise).astype(F)
    alike, one = (
        quality(estimated(noisy, "nlm", colour=colour, noise=noise, **given), wanted)
        for noise in ("auto", "white")
    )
    single = [estimated(noisy[..., [c]], "nlm", noise="white", **given) for c in range(3)]
    apart = np.clip(np.dstack([each.image.planes for each in single]), 0, 1)
    three = float(peak_signal_noise_ratio(wanted, apart, data_range=1))
    if colour == "joint":
        assert alike > max(one, three) + 0.5
    else:  # the patch and the strength are those of all
        assert alike > one + 2.9
        assert alike == pytest.approx(three, abs=0.4)
