"""The kind of the noise in a picture, and the transform that makes camera noise white."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import convolve, gaussian_filter
from scipy.stats import norm, poisson
from skimage import data

from kernelscope.filters.nlm import SPEC as NLM
from kernelscope.filters.shared.jpeg_noise import jpeg_error
from kernelscope.filters.shared.noise_model import NoiseKind, NoiseModel, find_noise, opponents
from kernelscope.filters.shared.stabilise import NOISE_STEPS, Stabiliser, stabiliser
from tests.pairs import all_pairs, in_turn, together

F = np.float32
GREY = ("camera", "coins", "moon", "page", "text", "brick", "grass", "gravel")
COLOUR = ("astronaut", "coffee", "chelsea", "immunohistochemistry", "retina")
Picture = NDArray[Any]


def clean(name: str) -> NDArray[np.float64]:
    """Return the middle 256×256 of a picture, where white is 1."""
    image = np.atleast_3d(getattr(data, name)())[:, :, :3]
    top, left = (max(0, side - 256) // 2 for side in image.shape[:2])
    return image[top : top + 256, left : left + 256] / np.float64(255)


def white(picture: Picture, sigma: float = 20 / 255) -> Picture:
    return picture + np.random.default_rng(1).normal(0, sigma, picture.shape)


def camera(picture: Picture, photons: float = 100) -> Picture:
    random = np.random.default_rng(7)
    return (random.poisson(picture * photons) + random.normal(0, 1, picture.shape)) / photons


def blurred(picture: Picture, sigma: float = 20 / 255, pixels: float = 0.7) -> Picture:
    noise = np.random.default_rng(3).normal(0, 1, picture.shape)
    noise = gaussian_filter(noise, (pixels, pixels, 0), mode="wrap")
    return picture + noise * (sigma / noise.std())


def demosaiced(picture: Picture, photons: float) -> Picture:
    """Return a photo of which each pixel had one colour, in the curve of a screen."""
    linear, random = picture**2.2, np.random.default_rng(7)
    linear = (random.poisson(linear * photons) + random.normal(0, 2, linear.shape)) / photons
    y, x = np.indices(linear.shape[:2]) % 2
    sites = np.stack([(y == 0) & (x == 0), y != x, (y == 1) & (x == 1)], -1)
    others, green = [[1, 2, 1], [2, 4, 2], [1, 2, 1]], [[0, 1, 0], [1, 4, 1], [0, 1, 0]]
    masks = np.stack([others, green, others], -1) / 4
    planes = [
        convolve(linear[..., c] * sites[..., c], masks[..., c], mode="mirror") for c in range(3)
    ]
    return np.clip(np.stack(planes, -1), 0, 1) ** (1 / 2.2)


def in_type(samples: Picture, dtype: Any) -> Picture:
    if dtype is np.float32:
        return samples.astype(F)
    most = np.iinfo(dtype).max
    return np.clip(np.rint(samples * most), 0, most).astype(dtype)


# Kinds --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "picture", "dtype"),
    in_turn(
        (white, camera, blurred),
        ("camera", "coins", "astronaut"),
        (np.float32, np.uint8, np.uint16),
        every=3,
    ),
)
def test_the_kind_is_recognised(make: Callable[..., Picture], picture: str, dtype: Any) -> None:
    found = find_noise(in_type(make(clean(picture)), dtype))
    kinds = {white: NoiseKind.WHITE, camera: NoiseKind.CAMERA, blurred: NoiseKind.CORRELATED}
    assert found.kind == kinds[make]
    if make is camera:
        np.testing.assert_allclose(found.slopes, 1 / 100, rtol=0.1)
        assert max(found.offsets) < 3e-4  # that is 1e-4
    else:
        np.testing.assert_allclose(found.sigmas, 20 / 255, rtol=0.06)


@pytest.mark.parametrize(("picture", "sigma"), in_turn((*GREY, *COLOUR), (5, 10, 20, 50), every=3))
def test_white_noise_is_not_taken_for_another(picture: str, sigma: float) -> None:
    """Not even beside texture, whose spectrum falls as that of correlated noise does."""
    noisy = white(clean(picture), sigma / 255).astype(F)
    assert find_noise(noisy).kind == NoiseKind.WHITE


@pytest.mark.parametrize("picture", ["astronaut", "coffee", "retina", "chelsea"])
@pytest.mark.parametrize("photons", [100, 400])
def test_noise_of_demosaiced_photos_is_correlated(picture: str, photons: float) -> None:
    """It depends on the brightness as well, so that blocks differ as those of texture do."""
    photo = in_type(demosaiced(clean(picture), photons), np.uint8)
    found = find_noise(photo)
    assert found.kind == NoiseKind.CORRELATED
    without = in_type(demosaiced(clean(picture), 1e9), np.uint8)
    noise = np.moveaxis(photo / 255 - without / 255, 2, 0)
    assert found.sigma == pytest.approx(noise.std(), rel=0.45)  # near black there is most of it
    assert found.spectra is not None
    planes = found.sigma * np.sqrt(found.spectra.mean((1, 2)))
    np.testing.assert_allclose(planes, opponents(noise).std((1, 2)), rtol=0.45)


@pytest.mark.parametrize("picture", ["chelsea", "immunohistochemistry", "coffee", "retina"])
def test_texture_of_demosaiced_photos_is_not_taken_for_noise(picture: str) -> None:
    """It is as smooth as their noise, but in the difference of green and the other colours."""
    found = find_noise(in_type(demosaiced(clean(picture), 1e9), np.uint8))
    assert found.kind == NoiseKind.WHITE
    assert found.sigma < 0.5 / 255


@pytest.mark.parametrize("picture", ["coffee", "chelsea", "immunohistochemistry", "moon", "brick"])
def test_texture_of_photos_without_noise_is_not_taken_for_correlated_noise(picture: str) -> None:
    found = find_noise(in_type(clean(picture), np.uint8))
    assert found.kind != NoiseKind.CORRELATED
    of_file = {"chelsea": 3, "immunohistochemistry": 6}  # which are parts of decoded JPEG files
    assert found.sigma < of_file.get(picture, 1) / 255


@pytest.mark.parametrize(
    ("picture", "sigma", "dtype"),
    in_turn(("camera", "coins", "page"), (10, 20), (np.float32, np.uint8), every=2),
)
def test_edges_do_not_hide_correlated_noise(picture: str, sigma: float, dtype: Any) -> None:
    """Blurred by a pixel, it leaves hardly anything in high frequencies, and edges do."""
    whole = np.atleast_3d(getattr(data, picture)()) / np.float64(255)
    found = find_noise(in_type(blurred(whole, sigma / 255, 1), dtype))
    assert found.kind == NoiseKind.CORRELATED
    assert found.sigma * 255 == pytest.approx(sigma, rel=0.1)


@pytest.mark.parametrize(
    ("picture", "change"),
    in_turn(
        ("rocket", "logo", "brick", "moon", "camera"), ("JPEG", "softened", "enlarged"), every=2
    ),
)
def test_changed_photos_are_not_taken_for_correlated_noise(picture: str, change: str) -> None:
    """Of JPEG files many blocks are even: the power of rounding errors is no noise."""
    samples = getattr(data, picture)()
    photo = Image.fromarray(samples)
    if change == "JPEG":
        photo.convert("RGB").save(file := io.BytesIO(), "JPEG", quality=90)
        samples = Image.open(file)
    elif change == "softened":
        samples = gaussian_filter(samples, 1, axes=(0, 1))
    else:
        samples = photo.resize((2 * photo.width, 2 * photo.height), Image.Resampling.BICUBIC)
    found = find_noise(np.atleast_3d(np.asarray(samples)))
    assert found.kind != NoiseKind.CORRELATED


@pytest.mark.parametrize(
    ("picture", "quality", "subsampling"),
    [
        *[("astronaut", 85, 0), ("retina", 85, 0), ("rocket", 85, 0)],
        *[("astronaut", 92, 2), ("coffee", 92, 2), ("retina", 92, 2), ("rocket", 92, 2)],
    ],
)
def test_noise_of_jpeg_files_is_that_of_each_plane(
    picture: str, quality: int, subsampling: int
) -> None:
    """JPEG loses it in many frequencies of a block, and most of it in colours."""
    noisy = Image.fromarray(in_type(white(clean(picture), 10 / 255), np.uint8))
    noisy.save(file := io.BytesIO(), "JPEG", quality=quality, subsampling=subsampling)
    photo = np.asarray(Image.open(file))
    noise = opponents(np.moveaxis(photo / 255 - clean(picture), 2, 0))
    found = find_noise(photo)
    assert found.kind == NoiseKind.JPEG
    assert found.spectra is not None
    planes = found.sigma * np.sqrt(found.spectra.mean((1, 2)))
    assert planes[0] == pytest.approx(noise[0].std(), rel=0.15)
    assert max(planes[1:]) < (0.85 if subsampling == 0 else 0.35) * planes[0]


@pytest.mark.parametrize("subsampling", [1, 2])
def test_texture_everywhere_does_not_hide_the_noise_of_a_jpeg_file(subsampling: int) -> None:
    """Brightness has no more in the middle than in the highest frequencies: that is noise."""
    light = camera(clean("chelsea"), 100)
    noisy = Image.fromarray(in_type(np.clip(light, 0, 1), np.uint8))
    noisy.save(file := io.BytesIO(), "JPEG", quality=92, subsampling=subsampling)
    photo = np.asarray(Image.open(file))
    noise = opponents(np.moveaxis(photo / 255 - clean("chelsea"), 2, 0))
    found = find_noise(photo)
    assert found.spectra is not None
    planes = found.sigma * np.sqrt(found.spectra.mean((1, 2)))
    np.testing.assert_allclose(planes, noise.std((1, 2)), rtol=0.3)
    assert NLM.noise is not None  # which knows no spectrum, but has the same sigma
    for_nlm = NLM.noise.find(photo, "auto")
    assert (for_nlm.kind, for_nlm.sigma) == (NoiseKind.JPEG, found.sigma)
    assert for_nlm.spectra is None


def of_jpeg(picture: Picture, quality: int, subsampling: int) -> Picture:
    samples = Image.fromarray(in_type(picture, np.uint8).squeeze())
    if samples.mode == "L":
        samples.save(file := io.BytesIO(), "JPEG", quality=quality)
    else:
        samples.save(file := io.BytesIO(), "JPEG", quality=quality, subsampling=subsampling)
    return np.atleast_3d(np.asarray(Image.open(file)))


@pytest.mark.parametrize(
    ("picture", "sigma", "quality", "subsampling"),
    in_turn(
        ("astronaut", "coffee", "rocket", "immunohistochemistry", "camera"),
        (0, 2, 5, 10),
        (75, 85, 90, 95),
        (0, 2),
        every=4,
    ),
)
def test_the_error_of_a_jpeg_file_is_found_though_its_noise_became_zeros(
    picture: str, sigma: float, quality: int, subsampling: int
) -> None:
    """Sigma of white noise was 3 to 20 times too low: it looks at high frequencies."""
    photo = of_jpeg(white(clean(picture), sigma / 255), quality, subsampling)
    found = find_noise(photo)
    noise = opponents(np.moveaxis(photo / 255 - clean(picture), 2, 0))
    if found.kind is NoiseKind.WHITE:  # stronger than the steps
        assert found.sigma == pytest.approx(noise.std(), rel=0.1)
        return
    assert found.spectra is not None
    planes = found.sigma * np.sqrt(found.spectra.mean((1, 2)))
    assert planes[0] == pytest.approx(noise[0].std(), rel=0.5)
    assert find_noise(photo, NoiseKind.WHITE).sigma == pytest.approx(found.sigma)
    assert found.describe(1).startswith("noise of a JPEG file: sigma ")
    assert ", not sure: change the strength" in found.describe(1)


@pytest.mark.parametrize("quality", [85, 90, 95])
def test_texture_of_a_jpeg_file_with_weak_noise_is_not_taken_for_correlated(quality: int) -> None:
    """Its steps grow with the frequency, so that nothing fine is left of the texture either."""
    tissue = clean("immunohistochemistry")
    photo = of_jpeg(white(tissue, 2 / 255), quality, 0)
    found = find_noise(photo)
    assert found.kind is NoiseKind.JPEG
    assert found.sigma == pytest.approx((photo / 255 - tissue).std(), rel=0.2)


@pytest.mark.parametrize("picture", ["coffee", "rocket"])
def test_colours_hidden_by_texture_have_less_noise_in_a_jpeg_file(picture: str) -> None:
    """They were halved: noise that was correlated before is not that of brightness in them."""
    photo = of_jpeg(blurred(clean(picture), 10 / 255), 85, 2)
    noise = opponents(np.moveaxis(photo / 255 - clean(picture), 2, 0)).std((1, 2))
    found = find_noise(photo)
    assert found.kind is NoiseKind.CORRELATED
    assert found.spectra is not None
    planes = found.sigma * np.sqrt(found.spectra.mean((1, 2)))
    np.testing.assert_allclose(planes, noise, rtol=0.35)


@pytest.mark.parametrize("picture", ["camera", "astronaut", "text", "moon", "clock", "brick"])
def test_pictures_that_were_in_no_jpeg_file_have_no_error_of_one(picture: str) -> None:
    """Nor one that was smoothed, reduced or got noise after."""
    whole = np.atleast_3d(getattr(data, picture)()) / np.float64(255)
    for each in (whole, white(whole, 3 / 255), blurred(whole, 5 / 255)):
        assert jpeg_error(in_type(each, np.uint8)) is None
    changed = of_jpeg(whole, 85, 2).astype(np.float64) / 255
    for each in (white(changed, 5 / 255), blurred(changed, 10 / 255, 1)):
        assert jpeg_error(in_type(each, np.uint8)) is None


@pytest.mark.parametrize("corner", [(3, 5), (8, 4), (0, 8), (15, 9)])
@pytest.mark.parametrize("subsampling", [0, 2])
def test_a_jpeg_file_that_was_cropped_has_its_error(
    subsampling: int, corner: tuple[int, int]
) -> None:
    """Its blocks begin elsewhere, those of halved colours at even blocks only."""
    photo = of_jpeg(white(clean("astronaut"), 3 / 255), 85, subsampling)
    whole, part = jpeg_error(photo), jpeg_error(photo[corner[0] :, corner[1] :])
    assert whole is not None
    assert part is not None
    np.testing.assert_allclose(part.mean((1, 2)) ** 0.5, whole.mean((1, 2)) ** 0.5, rtol=0.08)


@pytest.mark.parametrize(("photons", "subsampling"), [(300, 1), (100, 0), (100, 2)])
def test_texture_in_a_jpeg_file_is_not_taken_for_noise(photons: int, subsampling: int) -> None:
    light = camera(clean("immunohistochemistry"), photons)
    noisy = Image.fromarray(in_type(np.clip(light, 0, 1), np.uint8))
    noisy.save(file := io.BytesIO(), "JPEG", quality=92, subsampling=subsampling)
    photo = np.asarray(Image.open(file))
    noise = (photo / 255 - clean("immunohistochemistry")).std()
    assert find_noise(photo).sigma == pytest.approx(noise, rel=0.15)


def test_noise_of_bright_tissue_is_not_taken_for_that_of_a_jpeg_file() -> None:
    """It differs by brightness, so that the flattest blocks have more than others."""
    tissue, random = clean("immunohistochemistry") ** 2.2, np.random.default_rng(2)
    noisy = random.poisson(tissue * 62) / 62 + random.normal(0, 0.009, tissue.shape)
    found = find_noise(in_type(np.clip(noisy, 0, 1) ** (1 / 2.2), np.uint8))
    assert found.kind == NoiseKind.WHITE


def test_clipping_does_not_hide_the_variance_of_light() -> None:
    """At 20 photons a third of white's noise is beyond it, and lost to bytes."""
    found = find_noise(in_type(camera(clean("camera"), 20), np.uint8))
    assert found.kind == NoiseKind.CAMERA
    assert found.slopes[0] == pytest.approx(1 / 20, rel=0.06)


def cells(number: int, side: int = 256) -> Picture:
    """Return round cells on a dark ground: 0.04 and up to 1, as a microscope blurs them."""
    random, (y, x) = np.random.default_rng(number), np.indices((side, side))
    made = np.zeros((side, side))
    for _ in range(number):
        (top, left), radius = random.uniform(0.1, 0.9, 2) * side, random.uniform(10, 18)
        inside = (y - top) ** 2 + (x - left) ** 2 < radius**2
        made = np.maximum(made, inside * random.uniform(0.5, 1))
    return 0.04 + 0.96 * gaussian_filter(made, 1.2)[..., None]


def counted(picture: Picture, photons: float, gain: float, offset: float, read: float) -> Picture:
    """Return the levels of a camera: gain times photons and read-out, and an offset."""
    random = np.random.default_rng(7)
    electrons = random.poisson(picture * photons) + random.normal(0, read, picture.shape)
    return np.clip(np.rint(electrons * gain + offset), 0, 65535).astype(np.uint16)


@pytest.mark.parametrize(
    ("number", "photons", "gain", "offset"),
    [(20, 100, 3, 64), (8, 400, 3, 64), (12, 100, 0.5, 100), (12, 100, 1, 0)],
)
def test_noise_of_a_microscope_is_recognised_though_little_is_bright(
    number: int, photons: float, gain: float, offset: float
) -> None:
    """A small part of the range is used, and a camera adds an offset."""
    found = find_noise(counted(cells(number), photons, gain, offset, 2))
    assert found.kind is NoiseKind.CAMERA
    for part in (0.1, 0.5, 1):
        variance = gain**2 * (photons * part + 4)
        level = (gain * photons * part + offset) / 65535
        model = found.slopes[0] * level + found.offsets[0]
        assert model * 65535**2 == pytest.approx(variance, rel=0.25)


def test_white_noise_is_not_sure_where_bright_parts_have_more() -> None:
    """Few photons of few cells, beside the read-out: no line is near enough."""
    found = find_noise(counted(cells(8), 20, 1, 0, 2))
    assert (found.kind, found.sure) == (NoiseKind.WHITE, False)


@pytest.mark.parametrize("factor", [4, 100])
def test_the_range_of_the_type_does_not_matter(factor: int) -> None:
    """Of two pictures, one with an offset; a hot pixel has nearly the highest level."""
    for picture in (counted(cells(20), 100, 3, 64, 2), counted(clean("coins"), 100, 1, 0, 1)):
        one, other = find_noise(picture), find_noise(picture * np.uint16(factor))
        assert one.kind is other.kind is NoiseKind.CAMERA
        assert other.sigma == pytest.approx(factor * one.sigma, rel=5e-3)
        assert other.slopes == pytest.approx([factor * each for each in one.slopes], rel=5e-3)
        picture[5, 5] = 65000
        assert find_noise(picture).slopes == pytest.approx(one.slopes, rel=0.05)


def test_channels_have_variances_of_their_own() -> None:
    noisy = np.concatenate(
        [
            camera(clean("astronaut")[..., c : c + 1], photons)
            for c, photons in enumerate((50, 200, 800))
        ],
        axis=2,
    )
    found = find_noise(noisy.astype(F))
    np.testing.assert_allclose(found.slopes, [1 / 50, 1 / 200, 1 / 800], rtol=0.2)
    unequal = white(clean("astronaut")) + 0.0
    unequal[..., 1] = clean("astronaut")[..., 1]
    unequal[..., 1] += np.random.default_rng(5).normal(0, 40 / 255, unequal.shape[:2])
    np.testing.assert_allclose(
        np.array(find_noise(unequal.astype(F)).sigmas) * 255, [20, 40, 20], rtol=0.05
    )


def test_the_spectrum_is_that_of_the_noise() -> None:
    """Of a grey plane: the transfer function of the blur, averaged by the blocks' window."""
    found = find_noise(blurred(np.full((512, 512, 1), 0.5)).astype(F))
    assert found.spectra is not None
    noise = gaussian_filter(np.random.default_rng(9).normal(0, 1, (1024, 1024)), 0.7, mode="wrap")
    blocks = noise.reshape(128, 8, 128, 8).transpose(0, 2, 1, 3)
    k = np.arange(8)
    matrix = np.cos(np.pi * np.outer(k, 2 * k + 1) / 16) / 2
    matrix[0] /= math.sqrt(2)
    wanted = ((matrix @ blocks @ matrix.T) ** 2).mean((0, 1))
    wanted /= wanted.mean()
    strong = wanted > 0.1
    np.testing.assert_allclose(found.spectra[0][strong], wanted[strong], rtol=0.25)
    assert (found.spectra[0][~strong] < 0.2).all()


def test_the_line_names_kind_numbers_and_certainty() -> None:
    model = NoiseModel(NoiseKind.CAMERA, (0.1,), (0.8 / 255,), (4 / 255**2,))
    assert model.describe(255) == "camera noise: variance 0.8·mean + 4, sure"
    grey = NoiseModel(NoiseKind.WHITE, (0.1, 0.102, 0.101), sure=False)
    way_out = "change the strength if the output is too soft or too grainy"
    assert grey.describe(255) == f"white noise: sigma 26, not sure: {way_out}"
    found = NOISE_STEPS.describe(grey, "auto", 255)
    assert found == f"white noise: sigma 10 % of the range, not sure: {way_out}"
    assert NOISE_STEPS.describe(model, "auto", 255) == model.describe(255), "a line of levels"
    assert NOISE_STEPS.describe(grey, "white", 255) == ""
    weak = NoiseModel(NoiseKind.WHITE, (8.5 / 65535,))
    assert NOISE_STEPS.describe(weak, "auto", 65535) == "white noise: sigma 8.5 levels, sure"
    unequal = NoiseModel(NoiseKind.CORRELATED, (0.1, 0.2))
    assert unequal.describe(1) == "correlated noise: sigma 0.1; 0.2, sure"


def test_a_picture_without_noise_to_find_has_white_noise() -> None:
    for samples in (
        np.full((1, 1, 1), 0.5, F),
        np.full((9, 200, 3), 7, np.uint8),
        np.zeros((100, 100, 1), F),
        np.full((100, 100, 3), 255, np.uint8),
        np.full((100, 100, 1), np.nan, F),
        np.full((100, 100, 1), 1e20, F),
    ):
        for kind in (None, *NoiseKind):
            found = find_noise(samples, kind)
            assert found.kind == NoiseKind.WHITE
            assert found.sigma == pytest.approx(
                0, abs=1e-4 * max(1, float(np.nanmax(samples, initial=0)))
            )


def test_a_part_may_be_grey() -> None:
    """It has nothing in the planes of colours."""
    random = np.random.default_rng(0)
    noise = random.normal(0, 0.03, (256, 256, 3))
    noise[:64] = noise[:64, :, :1]
    found = find_noise((np.linspace(0.2, 0.8, 256)[:, None, None] + noise).astype(F))
    assert found.kind == NoiseKind.WHITE
    assert found.sigma == pytest.approx(0.03, rel=0.03)


def test_few_pixels_do_not_show_the_kind() -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.1, (40, 40, 1)).astype(F)
    assert ", not sure: " in find_noise(noise).describe(1)
    assert not find_noise(noise[:, :, [0, 0, 0]]).sure


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sigma", "sure"), [("chelsea", 5, False), ("chelsea", 20, True)])
def test_sigma_is_not_sure_where_texture_leaves_it_open(
    name: str, sigma: float, sure: bool
) -> None:
    picture = clean(name)
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(0, sigma / 255, picture.shape)
        found = find_noise((picture + noise).astype(F))
        off = max(abs(each * 255 / sigma - 1) for each in found.sigmas)
        assert (found.kind, found.sure) == (NoiseKind.WHITE, sure)
        assert off < (0.05 if sure else 0.15)


@together("exponent", [-66, 66])
@together("make", [white, camera, blurred])
def test_scale_does_not_matter(make: Callable[..., Picture], exponent: int) -> None:
    """Floats of 1e-20 and 1e20: sigma and b in their unit, and its square."""
    picture, factor = make(clean("coins")), 2.0**exponent
    one, other = find_noise(picture.astype(F)), find_noise((picture * factor).astype(F))
    assert other.kind == one.kind
    np.testing.assert_allclose(other.sigmas, np.array(one.sigmas) * factor, rtol=1e-4)
    np.testing.assert_allclose(other.slopes, np.array(one.slopes) * factor, rtol=1e-3)
    np.testing.assert_allclose(other.offsets, np.array(one.offsets) * factor**2, rtol=1e-3)


def test_samples_without_a_value_do_not_count() -> None:
    noisy = camera(clean("camera")).astype(F)
    noisy[100:120, 100:120] = np.nan
    found = find_noise(noisy)
    assert found.kind == NoiseKind.CAMERA
    assert found.slopes[0] == pytest.approx(1 / 100, rel=0.1)


# The transform ------------------------------------------------------------------------


def steps(a: float, b: float, dtype: Any = np.float32) -> Stabiliser:
    return Stabiliser(NoiseModel(NoiseKind.CAMERA, (1.0,), (a,), (b,)), np.dtype(dtype))


@pytest.mark.slow
@together(
    "a, read, photons",
    all_pairs(
        (1.0, 0.1, 3e-20, 5e19),
        (0.0, 0.5, 3.0),
        (0.0, 0.3, 1.0, 3.0, 20.0, 59.0, 70.0, 300.0, 5000.0),
    ),
)
def test_the_inverse_is_exact_and_unbiased(a: float, read: float, photons: float) -> None:
    """The mean of the transform, by SciPy's distributions, becomes the mean of the samples."""
    transform = steps(a, (a * read) ** 2)
    counts = np.arange(int(photons + 12 * math.sqrt(photons + 1)) + 10)
    chances = poisson.pmf(counts, photons)
    nodes = np.linspace(-7, 7, 141)
    weights = norm.pdf(nodes) / norm.pdf(nodes).sum()
    samples = a * (counts[:, None] + read * nodes)
    stable = transform.forward(samples.reshape(-1, 1, 1).astype(F)).astype(np.float64)
    expected = (stable.reshape(samples.shape) @ weights) @ chances
    actual = transform.backward(np.full((1, 1, 1), expected, F))[0, 0, 0] / a
    assert actual == pytest.approx(photons, rel=1e-3, abs=4e-3)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.1, 0.0), (2.0, 9.0)])
def test_the_noise_becomes_white(a: float, b: float) -> None:
    random = np.random.default_rng(2)
    for mean in (5 * a, 30 * a, 1000 * a):
        samples = a * random.poisson(mean / a, 100000) + random.normal(0, math.sqrt(b), 100000)
        stable = steps(a, b).forward(samples.reshape(-1, 1, 1).astype(F))
        assert stable.std() == pytest.approx(1, abs=0.03)  # `sigma` of the model


def test_clipped_means_are_restored() -> None:
    """White in bytes loses half of its noise, and half a sigma of its mean."""
    a, b = 1 / 100, 1e-4
    transform = steps(a, b, np.uint8)
    random = np.random.default_rng(4)
    for mean in (0.0, 0.5, 0.9, 0.97):
        noisy = random.poisson(mean / a, 50000) * a + random.normal(0, 0.01, 50000)
        stable = transform.forward(in_type(noisy, np.uint8).reshape(-1, 1, 1))
        average = np.full((1, 1, 1), stable.mean(dtype=np.float64), F)
        assert abs(float(transform.backward(average)[0, 0, 0]) - 255 * mean) <= 1.5


def test_black_stays_black_and_no_value_none() -> None:
    transform = steps(0.01, 1e-4)
    assert transform.forward(np.zeros((1, 1, 1), F))[0, 0, 0] == 0
    assert np.isnan(transform.backward(np.full((1, 1, 1), np.nan, F))).all()
    assert transform.backward(np.full((1, 1, 1), np.inf, F))[0, 0, 0] == np.inf
    assert transform.backward(np.full((1, 1, 1), -9, F))[0, 0, 0] == 0


def test_alpha_stays() -> None:
    model = NoiseModel(NoiseKind.CAMERA, (0.1,), (0.01,), (1e-4,))
    source = np.array([[[10, 77], [200, 255]]], np.uint8)
    transform = Stabiliser(model, source.dtype)
    stable = transform.forward(source)
    np.testing.assert_array_equal(stable[..., 1], source[..., 1])
    np.testing.assert_array_equal(transform.backward(stable)[..., 1], source[..., 1])


@pytest.mark.parametrize("kind", [NoiseKind.WHITE, NoiseKind.CORRELATED])
def test_only_camera_noise_needs_steps(kind: NoiseKind) -> None:
    for sigmas in ((0.0,), (0.05, 0.1, 0.2)):
        assert stabiliser(NoiseModel(kind, sigmas), np.dtype(F)) is None
    assert stabiliser(NoiseModel(NoiseKind.CAMERA, (0.0,), (0.0,), (0.0,)), np.dtype(F)) is None
