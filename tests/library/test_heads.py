"""Phantoms, their noise, and figures of quality: those of the command line and of scikit-image."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

import kernelscope as ks
from kernelscope.cli.main import main
from kernelscope.files.volumes import read_volume


def photo(dtype: Any = np.uint8, channels: int = 3) -> NDArray[Any]:
    white = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return (np.random.default_rng(1).random((20, 30, channels)) * white).astype(dtype)


@pytest.mark.parametrize(
    ("line", "truth", "noise"),
    [
        ("", {}, {}),
        ("--weighting t2 --sigma 7 --seed 5", {"weighting": "t2"}, None),
        ("--voxel 9x8x7", {"voxel": (7, 8, 9)}, {"kind": "varying-rician"}),
    ],
)
def test_the_phantom_of_the_command_line(
    line: str, truth: dict[str, Any], noise: dict[str, Any] | None, here: Path
) -> None:
    if noise is None:
        noise = {"kind": "gaussian", "sigma": 7, "seed": 5}
    kind = ["--noise", noise["kind"]] if "kind" in noise else []
    size = ["--size", "22x21x20", "--quiet"]
    command = ["phantom", "noisy.nii", "--truth", "truth.nii", *size, *line.split(), *kind]
    assert main(command) == 0
    made = ks.phantom((20, 21, 22), **truth)
    np.testing.assert_array_equal(made, read_volume("truth.nii").voxels, strict=True)
    noisy = ks.noise(made, **noise)
    np.testing.assert_array_equal(noisy, read_volume("noisy.nii").voxels, strict=True)
    noisy[...] = 0


def test_one_number_is_a_cube() -> None:
    np.testing.assert_array_equal(ks.phantom(12), ks.phantom((12, 12, 12)))
    assert ks.phantom(12, shading=0.5).max() != ks.phantom(12).max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": 0}, "phantom(): shape: the volume has no voxels"),
        ({"shape": (3, 4)}, "phantom(): shape: (3, 4) is neither one number nor three."),
        ({"shape": "abc"}, "phantom(): shape: 'a' is not a number."),
        ({"shape": 2.5}, "phantom(): shape: 2.5 are not whole numbers."),
        ({"shape": 10**5}, "phantom(): shape: 100000×100000×100000 voxels are too many."),
        ({"shape": 8, "weighting": "t3"}, "phantom(): weighting: there is no “t3”."),
        ({"shape": 8, "voxel": -1}, "phantom(): A voxel of (-1.0, -1.0, -1.0) mm has no size."),
        ({"shape": 8, "shading": 2}, "phantom(): A shading of 2.0 is out of range."),
    ],
)
def test_wrong_phantoms(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ks.AppError) as error:
        ks.phantom(**arguments)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pink"}, "noise(): kind: there is no “pink”."),
        ({"sigma": -1}, "noise(): A sigma of -1.0 is out of range."),
        ({"sigma": "x"}, "noise(): sigma: 'x' is not a number."),
        ({"seed": -1}, "noise(): seed: -1 is out of range."),
        ({"seed": 0.5}, "noise(): seed: 0.5 is not a whole number."),
        ({"volume": np.zeros((4, 4))}, "noise(): volume: an array of shape (4, 4) is not a volume"),
    ],
)
def test_wrong_noise(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ks.AppError) as error:
        ks.noise(**({"volume": np.zeros((2, 3, 4))} | arguments))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_figures_are_those_of_scikit_image(dtype: Any) -> None:
    reference = photo(dtype)
    result = ks.mean(reference).astype(dtype)
    found = ks.quality(result, reference)
    white = 1 if reference.dtype.kind == "f" else np.iinfo(dtype).max
    assert math.isclose(
        found.psnr, peak_signal_noise_ratio(reference, result, data_range=white), rel_tol=1e-6
    )
    ssim = structural_similarity(reference, result, data_range=white, channel_axis=2)
    assert found.ssim is not None
    assert math.isclose(found.ssim, ssim, rel_tol=1e-5)


def test_a_grey_result_is_compared_with_grey() -> None:
    """As on the command line, which converts the reference."""
    image = photo()
    grey = ks.greyscale(image)
    assert ks.quality(grey, image).psnr == math.inf
    with pytest.raises(ks.Incomparable, match=r"quality\(\): A grey picture"):
        ks.quality(image, grey)


def test_alpha_is_not_compared() -> None:
    image = photo(channels=4)
    other = image.copy()
    other[:, :, 3] = 0
    assert ks.quality(other, image).mse == 0


def test_volumes_are_recognised_by_their_last_axis() -> None:
    truth = ks.phantom((8, 9, 10))
    noisy = ks.noise(truth)
    found = ks.quality(noisy, truth)
    assert "bias" in found.describe()
    assert math.isclose(found.mse, float(np.mean((noisy - truth) ** 2.0)), rel_tol=1e-4)
    thin = ks.quality(noisy[:, :, :3], truth[:, :, :3], volume=True)
    assert "bias" in thin.describe()
    assert "bias" not in ks.quality(noisy[:, :, :3], truth[:, :, :3]).describe()


def test_pictures_that_cannot_be_compared() -> None:
    with pytest.raises(ks.Incomparable, match=r"quality\(\): Pictures of 30×20 and 29×20 pixels"):
        ks.quality(photo(), photo()[:, 1:])
    with pytest.raises(ks.InvalidImage, match=r"quality\(\): reference: samples of type int64"):
        ks.quality(photo(), photo().astype(np.int64))


def test_comparing_can_be_cancelled() -> None:
    with pytest.raises(ks.Cancelled):
        ks.quality(photo(), photo(), cancel=lambda: True)


def test_correlation_of_what_was_removed() -> None:
    clean = photo(np.float32)
    clean = np.tile(clean, (4, 4, 1))
    noise = np.random.default_rng(1).normal(0, 0.05, clean.shape)
    neighbours = noise + np.roll(noise, 1, 0)
    assert ks.residual_correlation(clean + noise, clean) == pytest.approx(0, abs=0.05)
    assert ks.residual_correlation(clean + neighbours, clean) == pytest.approx(0.5, abs=0.05)
    grey = ks.greyscale(clean)
    assert ks.residual_correlation(clean, grey) is None
    assert ks.residual_correlation(clean + neighbours, grey) == pytest.approx(0.5, abs=0.05)
    volume = np.full((12, 20, 20), 100.0) + np.arange(12)[:, None, None]
    noisy = volume + np.random.default_rng(1).normal(0, 3, volume.shape)
    assert ks.residual_correlation(noisy, volume) == pytest.approx(0, abs=0.1)
    with pytest.raises(ks.Incomparable, match=r"residual_correlation\(\)"):
        ks.residual_correlation(clean[:-9], clean)
    with pytest.raises(ks.Incomparable, match=r"residual_correlation\(\)"):
        ks.residual_correlation(volume[:-3], volume)
