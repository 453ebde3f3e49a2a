"""The command ``denoise``: the filter that suits the noise, and the options of ``apply``."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

from kernelscope.cli import apply
from kernelscope.files.volumes import read_volume, read_volumes, write_volumes
from kernelscope.images.volume import Volume
from tests.cli.running import refused, run
from tests.gui.test_volume_page import voxels, write
from tests.lazy.test_viewing import write as write_zarr


@pytest.fixture
def specks(here: Path) -> None:
    draws = np.random.default_rng(1).random((40, 60))
    pixels = np.where(draws < 0.02, 0, np.where(draws > 0.98, 255, 128)).astype(np.uint8)
    Image.fromarray(pixels).save("specks.png")


LINE = "denoise specks.png out.png --device cpu"


@pytest.mark.usefixtures("specks")
def test_specks() -> None:
    assert np.mean(np.asarray(Image.open("specks.png")) != 128) == pytest.approx(0.035, abs=5e-4)
    assert "note: Median: specks in 3.5 % of the pixels\n" in run(LINE).err
    assert np.array_equal(np.asarray(Image.open("out.png")), np.full((40, 60), 128))
    assert run(f"{LINE} --quiet") == ("", "")
    (step,) = json.loads(run(f"{LINE} --size=5 --border mirror --json").out)["steps"]
    assert (step["filter"], step["parameters"]["size"], step["border"]) == ("median", 5, "mirror")


@pytest.mark.slow
def test_hot_pixels_are_a_step_before(here: Path) -> None:
    pixels = np.tile(np.arange(60, 188, dtype=np.uint8), (128, 1))
    pixels[::12, ::12] = 255
    Image.fromarray(pixels).save("hot.png")
    done = run("denoise hot.png out.png --device cpu --strength 80 --json")
    assert "; Hot pixels before it: 0.88 %" in done.err
    first, second = json.loads(done.out)["steps"]
    assert (first["filter"], second["filter"]) == ("hot-pixels", "collaborative")
    assert second["parameters"]["strength"] == 80
    there = np.asarray(Image.open("out.png"))[::12, ::12]
    assert np.abs(there - np.arange(60.0, 188, 12)).max() <= 2


@pytest.mark.slow
def test_noise_of_a_volume(here: Path) -> None:
    write(here / "head.nii", voxels())
    error = run("denoise head.nii out.nii --device cpu").err
    assert "note: Volume collaborative" in error
    assert "; other filters: " in error


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 0, 2), (1, 2, 0), None])
def test_a_single_slice_is_a_picture(axes: tuple[int, ...] | None) -> None:
    """Across any axis."""
    draws = np.random.default_rng(1).random((1, 40, 60))
    picture = np.where(draws < 0.02, 0, np.where(draws > 0.98, 255, 128)).astype(np.int16)
    flat, name = picture.transpose(axes or (0, 1, 2)), "in.npy"
    if axes is None:  # two channels, which are volumes of one slice
        name = "in.zarr"
        write_zarr(Path(name), np.stack([picture[0].astype(np.uint8)] * 2), "cyx", 1)
    else:
        np.save(name, flat)
    said = run(f"denoise {name} out.tif --device cpu")
    assert said.err.startswith("note: Median: specks in 3.5 % of the pixels\n")
    assert "compares voxels of the whole volume" not in said.err
    for each in read_volumes("out.tif"):
        assert np.array_equal(each.voxels, np.full_like(flat, 128))


def test_a_picture_of_any_size_is_seen_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.full((60, 80), 128, np.uint8)
    picture[25:35:2, 35:45:3] = 255
    Image.fromarray(picture).save("in.tif")
    monkeypatch.setattr(apply, "_SEEN", 20)
    error = run("denoise in.tif out.tif --device cpu --memory 8G").err
    assert error.startswith("note: Median: specks in 5 % of the pixels\n")
    tifffile.imwrite("deep.tif", np.zeros((3, 9, 9), np.uint8), photometric="minisblack")
    assert "cannot be computed in blocks" in run("denoise deep.tif o.tif --memory 8G", status=1).err


@pytest.mark.slow
def test_one_of_several_volumes() -> None:
    several = np.random.default_rng(2).normal(100, 9, (2, 9, 9, 9)).astype(np.float32)
    write_volumes([Volume.from_array(each) for each in several], "a.nii")
    run("denoise a.nii b.nii --device cpu --volume 2")
    found = read_volume("b.nii").voxels
    assert abs(found - several[1]).mean() < abs(found - several[0]).mean()


@pytest.mark.slow
def test_options_of_volumes_may_stand_before_files(here: Path) -> None:
    write(here / "head.nii", voxels())
    (step,) = json.loads(run("denoise --noise rician --json --device cpu head.nii out.nii").out)[
        "steps"
    ]
    assert step["parameters"]["noise"] == "rician"


@pytest.mark.usefixtures("specks")
@pytest.mark.parametrize(
    "line",
    [
        "--size 5 --border mirror specks.png out.png",
        "--size=5 specks.png --border mirror out.png",
        "--device cpu --json specks.png --size 5 out.png --border mirror",
        "--reference specks.png --border mirror --size 5 specks.png out.png",
    ],
)
def test_options_may_stand_before_files(line: str) -> None:
    given = line if "--json" in line else f"{line} --json --device cpu"
    (step,) = json.loads(run(f"denoise {given}").out)["steps"]
    assert (step["parameters"]["size"], step["border"]) == (5, "mirror")
    assert "OUTPUT" in refused("denoise --size 5 specks.png", status=2)
    assert "no option --sise" in refused("denoise --sise=5 specks.png out.png", status=2)
    assert "no “x”" in refused("denoise --noise x specks.png out.png")


def test_wrong_usage_and_missing_files() -> None:
    error = refused("denoise specks.png", status=2)
    assert "error: the following arguments are required: OUTPUT" in error
    assert "does not exist" in refused("denoise none.png out.png")


def test_the_residual_is_reported() -> None:
    noisy = np.random.default_rng(2).normal(128, 20, (80, 80)).clip(0, 255).astype(np.uint8)
    Image.fromarray(noisy).save("a.png")
    line = "apply sliding-dct a.png b.png --device cpu --sigma 7.8 --noise white"
    found = json.loads(run(f"{line} --json").out)["residual"]["correlation"]
    assert found == pytest.approx(0, abs=0.05)
    words = f"correlation of neighbours {found:.2f} (of white noise 0): white noise was removed"
    assert f"  residual: {words}\n" in run(line).out
    assert "residual" not in json.loads(run("apply negative a.png b.png --json").out)


def test_device_seconds_and_quality_are_reported() -> None:
    picture = np.random.default_rng(2).integers(0, 256, (40, 50), np.uint8)
    Image.fromarray(picture).save("a.png")
    line = "apply median a.png b.png --json --device cpu --level serial --reference input"
    (found,) = json.loads(run(line).out)["results"]
    error = np.asarray(Image.open("b.png")) - picture.astype(float)
    after = found["quality"]["after"]
    assert found["device"] == "CPU serial"
    assert 0 < found["seconds"] < 60
    assert after["mse"] == pytest.approx((error**2).mean())
    assert after["mae"] == pytest.approx(np.abs(error).mean())
    assert after["psnr"] == pytest.approx(10 * np.log10(255**2 / (error**2).mean()))
    Image.fromarray(np.full_like(picture, 7)).save("a.png")
    (found,) = json.loads(run(line).out, parse_constant=pytest.fail)["results"]
    assert found["quality"]["after"]["mse"] == 0
    assert found["quality"]["after"]["psnr"] is None  # it is infinite
    (found,) = json.loads(run("apply negative a.png b.png --json").out)["results"]
    assert "quality" not in found


def test_the_quality_of_volumes_has_the_bias() -> None:
    np.save("a.npy", np.full((5, 9, 9), 7, np.uint8))
    np.save("b.npy", np.full((5, 9, 9), 4, np.uint8))
    line = "apply median a.npy c.npy --json --reference b.npy"
    (found,) = json.loads(run(line).out)["results"]
    after = found["quality"]["after"]
    assert (after["mse"], after["mae"], after["bias"]) == (9, 3, 3)


def test_the_residuals_of_several_results_are_reported() -> None:
    noisy = np.random.default_rng(2).normal(128, 20, (32, 32, 32, 2)).astype(np.int16)
    nibabel.Nifti1Image(noisy, np.eye(4)).to_filename("a.nii")
    line = "apply volume-dct a.nii b.nii --device cpu --json --sigma 20 --noise gaussian"
    found = json.loads(run(line).out)["residual"]["correlations"]
    assert found == pytest.approx([0, 0], abs=0.1)
