"""Samples whose unit is not that of a photograph: any scale, any white, and none for alpha 0."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope.backends.cpu import CpuBackend
from kernelscope.big.lazy.filtered import filtered
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import UNIT, Kind, levels_between, levels_of
from tests.lazy.arrays import ArraySource
from tests.pairs import in_turn

SCALES = [1e-30, 2.0**-20, 255.0, 1e12, 1e30]

pytestmark = pytest.mark.slow


def picture(seed: int = 0) -> NDArray[np.float32]:
    """Return a noisy ramp between 0 and 1, whose white is 1."""
    noise = np.random.default_rng(seed).normal(0, 0.03, (40, 44))
    samples: NDArray[np.float32] = np.abs(np.linspace(0.1, 0.9, 44) + noise).astype(np.float32)
    return samples / samples.max()


def volume() -> NDArray[np.float32]:
    noise = np.random.default_rng(1).normal(0, 0.03, (6, 16, 18))
    return np.abs(np.where(np.arange(18) < 9, 0.2, 0.7) + noise).astype(np.float32)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, {}) for name in ("mean", "weighted_mean", "median", "rotating_mask", "nlm")),
        *((name, {}) for name in ("laplace", "threshold_mean", "negative", "greyscale")),
        *(("sobel", {"form": form}) for form in ("sum", "magnitude", "winner", "angle")),
        *((f"{kind}_noise", {"seed": 3}) for kind in ("gaussian", "rician", "poisson", "speckle")),
        ("salt_and_pepper_noise", {"seed": 3}),
        ("laplace", {"negative": "offset"}),
        (
            "mask",
            {"mask": [[0, -1, 0], [-1, 4, -1], [0, -1, 0]], "negative": "offset", "divisor": "one"},
        ),
    ],
)
def test_results_have_the_scale_of_the_picture(
    name: str, values: dict[str, Any], scale: float
) -> None:
    once = getattr(ks, name)(picture(), **values).astype(np.float64)
    scaled = getattr(ks, name)((picture() * scale).astype(np.float32), **values)
    np.testing.assert_allclose(scaled / scale, once, atol=2e-4, rtol=0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sigma_from", ["volume", "adaptive", "local", "given"])
def test_results_have_the_scale_of_the_volume(sigma_from: str, scale: float) -> None:
    def denoised(scale: float) -> NDArray[np.float64]:
        given: dict[str, Any] = {"sigma": 0.03 * scale} if sigma_from == "given" else {}
        given |= {"search_radius": 2, "sigma_from": sigma_from}
        return np.asarray(ks.mri_nlm((volume() * scale).astype(np.float32), **given), np.float64)

    np.testing.assert_allclose(denoised(scale) / scale, denoised(1), atol=1e-4, rtol=0)


def test_each_volume_has_its_own_unit() -> None:
    first, second = volume(), volume()[::-1].copy()
    both = ks.mri_nlm(first, components=(second,), search_radius=2)
    small = second * np.float32(2.0**-100)
    tiny = ks.mri_nlm(first, components=(small,), search_radius=2)
    np.testing.assert_allclose(tiny[0], both[0], atol=1e-4)
    np.testing.assert_allclose(tiny[1] * 2.0**100, both[1], atol=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [
        (0, 1, (0, 1)), (0, 0.01, (0, 1)), (-0.2, 1.2, (0, 1)), (0, 0, (0, 1)), (0, 255, (0, 255)),
        (3, 4095, (0, 4095)), (-1000, 3000, (-1000, 3000)), (-1, 1, (-1, 1)),
        (0, 1e-20, (0, 1e-20)), (-5, -5, (-5, 0)), (-0.5, 0.5, (-0.5, 0.5)),
        (-0.25, 0.5, (0, 1)), (-0.5, 1, (0, 1)), (0, 1.6, (0, 1.6)),
        (-0.3, 0.5, (-0.3, 0.5)),
    ],
)  # fmt: skip
def test_levels(low: float, high: float, levels: tuple[float, float]) -> None:
    assert levels_between(low, high) == levels
    samples = np.array([[[low], [high]]], np.float32)
    assert levels_of(samples) == pytest.approx(levels)
    assert Image.from_array(samples).levels == pytest.approx(levels)


@pytest.mark.parametrize("name", ["mask", "negative", "mean", "laplace", "sobel"])
@pytest.mark.parametrize("factor", [1, 0.4, 8])
def test_floats_around_zero_keep_their_sign(name: str, factor: float) -> None:
    """Between -0.5 and 0.5 they were taken for a photograph with noise, and clipped at 0."""
    samples = np.linspace(-0.5, 0.5, 64, dtype=np.float32).reshape(8, 8)
    found = getattr(ks, name)(samples * np.float32(factor))
    wanted = getattr(ks, name)(samples * np.float32(256)) / 256
    np.testing.assert_allclose(found / factor, wanted, atol=1e-6)
    if name == "mask":
        assert found.min() < -0.4 * factor


def test_levels_of_integers_are_those_of_their_type() -> None:
    assert levels_of(np.zeros((2, 2, 1), np.uint8)) == (0, 255)
    assert levels_of(np.zeros((2, 2, 1), np.uint16)) == (0, 65535)


def test_alpha_is_no_colour() -> None:
    planes = np.full((4, 4, 2), (0.5, 100), np.float32)
    assert Image.from_array(planes).levels == UNIT
    planes[..., 0] = 200
    out = ks.negative(planes, alpha=True)
    np.testing.assert_array_equal(out[..., 0], 0)
    np.testing.assert_array_equal(out[..., 1], 100)


def test_quality_of_floats_is_relative_to_the_reference() -> None:
    random = np.random.default_rng(0)
    reference = random.integers(0, 256, (40, 40), np.uint8)
    reference[0, :2] = 0, 255
    made = np.clip(reference + random.integers(-9, 10, reference.shape), 0, 255).astype(np.uint8)
    of_bytes = ks.quality(made, reference)
    of_floats = ks.quality(made.astype(np.float32), reference.astype(np.float32))
    assert (of_bytes.peak, of_floats.peak) == (None, 255)
    assert of_floats.psnr == pytest.approx(of_bytes.psnr)
    assert of_floats.ssim == pytest.approx(of_bytes.ssim)
    assert "(white is 255)" in of_floats.describe()
    for scale in (2.0**-90, 2.0**90):
        other = ks.quality(made * np.float32(scale), reference * np.float32(scale))
        assert other.psnr == pytest.approx(of_bytes.psnr)
        assert other.ssim == pytest.approx(of_bytes.ssim)
    given = ks.quality(made.astype(np.float32), reference.astype(np.float32), white=510)
    assert given.psnr == pytest.approx(of_bytes.psnr + 20 * np.log10(2))


def test_volumes_with_negative_voxels_have_their_range_as_white() -> None:
    reference = np.linspace(-1000, 3000, 8 * 9 * 10, dtype=np.float32).reshape(8, 9, 10)
    found = ks.quality(reference + 40, reference, volume=True)
    assert found.peak == 4000
    assert found.psnr == pytest.approx(40, abs=1e-4)


@pytest.mark.parametrize("name", ["nlm", "threshold_mean", "sobel"])
def test_a_region_has_the_unit_of_the_whole(name: str, backends: dict[str, CpuBackend]) -> None:
    samples = picture() * np.float32(300)
    samples[:20] /= 3
    image = Image.from_array(samples)
    values = {"filter_sigma": 0.02, "search_radius": 3} if name == "nlm" else {}
    request = Request.create(image, name, values)
    whole = execute(request, backends).image.planes
    part = Request(image, request.step, region=Region(2, 3, 9, 11))
    np.testing.assert_array_equal(execute(part, backends).image.planes, whole[2:11, 3:14])


# Transparent pixels -------------------------------------------------------------------


ROUND = ["mean", "weighted_mean", "median", "threshold_mean", "rotating_mask", "sobel", "laplace"]


def transparent(dtype: str, channels: int = 4) -> NDArray[Any]:
    """Return a picture of which a third, in blocks, is transparent."""
    random = np.random.default_rng(5)
    white = 1.0 if dtype == "float32" else np.iinfo(dtype).max
    planes = (random.uniform(0, 1, (30, 34, channels)) * white).astype(dtype)
    planes[..., -1] = white
    planes[4:12, 6:20, -1] = planes[20:, 25:, -1] = 0
    return planes


@pytest.mark.parametrize(
    ("name", "channels", "dtype"),
    in_turn([*ROUND, "nlm"], [2, 4], ["uint8", "uint16", "float32"], every=3),
)
def test_what_nobody_sees_has_no_effect(name: str, channels: int, dtype: str) -> None:
    planes = transparent(dtype, channels)
    other = planes.copy()
    hidden = planes[..., -1] == 0
    other[hidden, :-1] = np.random.default_rng(9).permutation(other[hidden, :-1])
    made = [getattr(ks, name)(each, alpha=True) for each in (planes, other)]
    np.testing.assert_array_equal(made[0][~hidden], made[1][~hidden])
    for source, result in zip((planes, other), made, strict=True):
        np.testing.assert_array_equal(result[..., -1], source[..., -1])
        np.testing.assert_array_equal(result[hidden], source[hidden])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_averages_are_weighted_by_alpha(dtype: str) -> None:
    """Integers are exact to the rounding of 16-bit products and sums; see *Decisions*.

    Of colour times alpha each is off by half a step, and the average by another half, of alpha the
    average alone: with the mean share of alpha s, the quotient is off by (1 + 1/2) / s of 65,535.
    """
    planes = transparent(dtype)
    planes[..., -1] = (planes[..., -1] * np.linspace(0.2, 1, 34)).astype(dtype)
    wide = np.pad(planes.astype(np.float64), ((1, 1), (1, 1), (0, 0)), mode="symmetric")
    above, below = np.zeros((30, 34, 3)), np.zeros((30, 34, 1))
    for dy in range(3):
        for dx in range(3):
            cells = wide[dy : dy + 30, dx : dx + 34]
            above += cells[..., :3] * cells[..., 3:]
            below += cells[..., 3:]
    seen = planes[..., -1] > 0
    wanted = (above[seen] / below[seen]).astype(np.float64)
    found = ks.mean(planes, size=3, alpha=True)[seen][:, :3].astype(np.float64)
    if dtype == "float32":
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        return
    white = np.iinfo(dtype).max
    share = below[seen] / 9 / white - 1 / 65535  # after its own rounding
    bound = 0.5 + 1.5 / share * white / 65535
    assert np.all(np.abs(found - wanted) <= bound)
    assert dtype == "uint16" or bound.max() < 1


@pytest.mark.parametrize("name", ["mean", "sobel", "median"])
@pytest.mark.parametrize("border", ["reflect", "valid", "constant", "keep"])
def test_regions_of_transparent_pictures(
    name: str, border: str, backends: dict[str, CpuBackend]
) -> None:
    image = Image.from_array(transparent("uint8"))
    request = Request.create(image, name, border=Border(border))
    whole = execute(request, backends).image.planes
    for region in (Region(0, 0, 9, 11), Region(8, 12, 10, 9), Region(15, 20, 12, 11)):
        part = Request(image, request.step, region=region)
        np.testing.assert_array_equal(
            execute(part, backends).image.planes, region.of(whole), err_msg=str(region)
        )


def test_opaque_pictures_are_filtered_as_they_are() -> None:
    planes = transparent("uint8")
    planes[..., -1] = 255
    np.testing.assert_array_equal(ks.mean(planes)[..., :3], ks.mean(planes[..., :3].copy()))


def test_edge_filters_are_not_compared_with_a_reference(backends: dict[str, CpuBackend]) -> None:
    image = Image.from_array(picture())
    for name, compared in (("sobel", False), ("laplace", False), ("mean", True)):
        result = execute(Request.create(image, name, reference=image), backends)
        assert (result.quality is not None) == compared
        assert any("not compared" in notice for notice in result.notices) != compared


# Signs and bytes ----------------------------------------------------------------------


def hounsfield() -> NDArray[np.int16]:
    """Return air around tissue."""
    voxels = np.full((4, 16, 18), -1000, np.int16)
    voxels[:, 4:12, 4:12] = 40
    return voxels


@pytest.mark.parametrize("mask", [((0, 1, 0), (1, 4, 1), (0, 1, 0)), ((1,) * 3,) * 3])
def test_a_mask_keeps_signs_that_are_no_overshoot(mask: Any) -> None:
    voxels = hounsfield()
    picture = voxels[0].astype(np.float32)
    for made in (ks.mask(voxels, mask=mask, axis="z")[0], ks.mask(picture, mask=mask)):
        assert made[0, 0] == -1000
        assert made[7, 7] == 40
        assert -1000 < made[4, 4] < 40
    photograph = picture / 3000 + np.float32(0.34)  # overshoot is clipped as before
    sharp = ks.mask(photograph, mask=((0, -2, 0), (-2, 9, -2), (0, -2, 0)))
    assert sharp.min() == 0


def test_regions_keep_the_sign_of_the_whole(
    backends: dict[str, CpuBackend], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kernelscope")  # as in the window, where runs are described
    samples = picture() * np.float32(100)
    samples[30:] -= 300
    image = Image.from_array(samples)
    sharp = ((0, -2, 0), (-2, 9, -2), (0, -2, 0))
    request = Request.create(image, "mask", {"mask": sharp})
    whole = execute(request, backends).image.planes
    for region in (Region(2, 3, 9, 11), Region(25, 0, 9, 11)):
        part = Request(image, request.step, region=region)
        np.testing.assert_array_equal(
            execute(part, backends).image.planes, region.of(whole), err_msg=str(region)
        )
    assert whole[:20].min() < 0


def test_blocks_refuse_to_clip_negative_samples(backends: dict[str, CpuBackend]) -> None:
    step = Step.of_numbers("mask", {"mask": ((1,) * 3,) * 3})
    for samples, kind in (
        (hounsfield()[0].astype(np.float32)[..., np.newaxis], Kind.PICTURE),
        (hounsfield(), Kind.VOLUME),
    ):
        with pytest.raises(ks.InvalidParameter, match="go down to -1000"):
            filtered(ArraySource(samples, kind), step, lambda one: execute(one, backends))


def test_what_a_filter_leaves_alone_keeps_its_bytes() -> None:
    samples = np.arange(256, dtype=np.float32).reshape(16, 16) * np.float32(1.37)
    made = ks.salt_and_pepper_noise(samples, density=0.3)
    assert set(made[made != samples]) == {0, samples.max()}


def test_slices_have_the_white_of_their_volume() -> None:
    """As PSNR of the volume has it: the range, where voxels are negative."""
    voxels = hounsfield()
    noisy = ks.gaussian_noise(voxels.astype(np.float32), axis="z", variance=0.01)
    assert np.std(noisy - voxels) == pytest.approx(0.1 * 1040, rel=0.1)
