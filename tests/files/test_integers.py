"""One page of integers that pictures lack: their type and their numbers are kept, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from scipy import ndimage

import kernelscope as ks
from kernelscope.base.errors import AppError, ImageReadError, InvalidImage
from kernelscope.cli.main import main
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume, write_volume
from kernelscope.files.volumes.writing import record_of

pytestmark = pytest.mark.usefixtures("closed_session")

RECIPE = '{"format": "kernelscope recipe", "version": 2, "steps": [{"filter": "median"}]}'
TYPES = ["int8", "int16", "int32", "uint32", "int64", "uint64"]


def page(dtype: str, factor: int = 1) -> NDArray[Any]:
    """Return numbers of the whole range that filters hold exactly."""
    grid = (np.arange(900).reshape(30, 30) * factor) % 120
    return (grid if dtype.startswith("u") else grid - 60).astype(dtype)


def labels(dtype: str = "int32") -> NDArray[Any]:
    """Return four fields, which a median does not change but at their corners."""
    made = np.zeros((30, 30), dtype)
    made[:15, 15:], made[15:, :15], made[15:, 15:] = 70_000, 3, 2**24
    return made


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("suffix", [".tif", ".npy", ".nii"])
def test_type_and_numbers_are_kept(tmp_path: Path, dtype: str, suffix: str):
    tifffile.imwrite(tmp_path / "a.tif", page(dtype))
    assert is_volume(tmp_path / "a.tif")
    with pytest.raises(ImageReadError, match=f"its samples are of type {dtype}"):
        read_image(tmp_path / "a.tif")
    assert main(["apply", "median", str(tmp_path / "a.tif"), str(tmp_path / f"b{suffix}")]) == 0
    found = read_volume(tmp_path / f"b{suffix}").unscaled
    assert found.dtype == dtype
    expected = ks.median(page(dtype)[np.newaxis], axis="z")
    np.testing.assert_array_equal(found, expected)


def test_ome_has_no_integers_of_64_bits(tmp_path: Path):
    tifffile.imwrite(tmp_path / "a.tif", page("int64"))
    volume = read_volume(tmp_path / "a.tif")
    again = read_volume(write_volume(volume, tmp_path / "b.ome.tif"))
    np.testing.assert_array_equal(again.voxels, volume.voxels)
    assert record_of("b.ome.tif", volume).lost == ("voxels of type int64",)
    assert record_of("b.tif", volume).kept == ("voxels of type int64",)


@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
def test_in_the_library(dtype: str):
    array = page(dtype) > 0 if dtype == "bool" else page(dtype)
    made = ks.median(array)
    assert made.dtype == array.dtype
    assert made.shape == array.shape
    np.testing.assert_array_equal(made, ks.median(array.astype(np.float32)).astype(array.dtype))
    assert ks.median(array[:, :, np.newaxis]).shape == (30, 30, 1)


def test_brightness_of_frames_in_a_batch(tmp_path: Path):
    (tmp_path / "in").mkdir()
    for factor in (1, 2, 3):
        frame = np.full((30, 30), 100 * factor, np.int16)
        frame[:, ::3] -= 50 * factor
        tifffile.imwrite(tmp_path / f"in/frame{factor}.tif", frame)
    recipe = {"format": "kernelscope recipe", "version": 2, "steps": [{"filter": "median"}]}
    (tmp_path / "m.recipe.json").write_text(json.dumps(recipe))
    names = [str(tmp_path / name) for name in ("m.recipe.json", "in", "out")]
    assert main(["batch", names[0], names[1], "--out", names[2]]) == 0
    made = [tifffile.imread(tmp_path / f"out/frame{factor}.tif") for factor in (1, 2, 3)]
    assert {each.dtype for each in made} == {np.dtype(np.int16)}
    assert [each.mean() / made[0].mean() for each in made] == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_labels_survive_a_median(tmp_path: Path, dtype: str):
    tifffile.imwrite(tmp_path / "a.tif", labels(dtype))
    assert main(["apply", "median", str(tmp_path / "a.tif"), str(tmp_path / "b.tif")]) == 0
    made = tifffile.imread(tmp_path / "b.tif").reshape(30, 30)
    assert made.dtype == dtype
    np.testing.assert_array_equal(np.unique(made), [0, 3, 70_000, 2**24])
    np.testing.assert_array_equal(made[2:13, 2:13], labels(dtype)[2:13, 2:13])
    np.testing.assert_array_equal(ks.median(labels(dtype)), made)


def test_no_label_becomes_its_neighbour():
    numbers = np.random.default_rng(3).integers(0, 11_530_475, (200, 200)).astype(np.int32)
    kept = numbers.repeat(3, 0).repeat(3, 1)
    np.testing.assert_array_equal(ks.median(kept)[1::3, 1::3], numbers)
    negative = ks.negative(numbers)  # whose white is that of the volume all the same
    np.testing.assert_allclose(negative, numbers.max() - numbers, atol=1)


def test_too_large_to_be_exact(tmp_path: Path):
    large = labels() + 1  # 2**24 + 1 is no 32-bit float
    for name in ("a.tif", "a.npy"):
        path = tmp_path / name
        tifffile.imwrite(path, large) if name == "a.tif" else np.save(path, large)
        with pytest.raises(InvalidImage, match="filters hold whole numbers up to 16777216"):
            read_volume(path)
    np.testing.assert_array_equal(ks.median(large), ndimage.median_filter(large, 3))
    with pytest.raises(AppError, match="filters hold whole numbers up to"):
        ks.sobel(large)


def test_colours_are_refused(tmp_path: Path):
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((8, 8, 3), np.int16), photometric="rgb")
    with pytest.raises(ImageReadError, match="colours are of type int16"):
        read_image(tmp_path / "a.tif")


def test_a_folder_of_slices(tmp_path: Path):
    (tmp_path / "slices").mkdir()
    for number in (1, 2, 3):
        tifffile.imwrite(tmp_path / f"slices/s{number}.tif", page("int16", number))
    volume = read_volume(tmp_path / "slices")
    assert volume.voxels.dtype == np.int16
    for number in (1, 2, 3):
        np.testing.assert_array_equal(volume.voxels[number - 1], page("int16", number))
    tifffile.imwrite(tmp_path / "slices/s3.tif", page("int32"))
    with pytest.raises(ImageReadError, match="differ in type: int32 and int16"):
        read_volume(tmp_path / "slices")


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("target", ["b.tif", "b.ome.tif"])
@pytest.mark.parametrize("command", ["apply", "batch"])
def test_64_bit_floats_stay_and_the_record_names_those_that_were_filtered(
    tmp_path: Path,
    channels: int,
    target: str,
    command: str,
    capsys: pytest.CaptureFixture[str],
):
    """One page as several do: 0.1 is that of 32 bits, in 64."""
    shape = (9, 8) if channels == 1 else (9, 8, channels)
    how: dict[str, Any] = {"photometric": "minisblack" if channels == 1 else "rgb"}
    if channels == 4:
        how["extrasamples"] = ("unassalpha",)
    tifffile.imwrite(tmp_path / "a.tif", np.full(shape, 0.1), **how)
    if command == "apply":
        names = [str(tmp_path / name) for name in ("a.tif", target)]
        assert main(["apply", "median", *names, "--json"]) == 0
        changed = json.loads(capsys.readouterr().out)["record"]["changed"]
        made = tifffile.imread(tmp_path / target)
    else:
        (tmp_path / "r.json").write_text(RECIPE)
        options = ["--suffix", target[1:], "--out", str(tmp_path / "out")]
        options += ["--summary", str(tmp_path / "s.json"), "--quiet"]
        assert main(["batch", str(tmp_path / "r.json"), str(tmp_path / "a.tif"), *options]) == 0
        (found,) = json.loads((tmp_path / "s.json").read_text())["files"]
        changed, made = found["record"]["changed"], tifffile.imread(found["target"])
    assert changed == ["64-bit floats filtered as 32-bit floats."]
    assert made.dtype == np.float64
    assert made.shape == shape
    np.testing.assert_array_equal(made, np.float64(np.float32(0.1)))


def written_as_doubles(path: Path, numbers: NDArray[Any]) -> None:
    if path.suffix == ".npy":
        np.save(path, numbers[np.newaxis])
    elif path.suffix == ".nii":
        nibabel.save(nibabel.Nifti1Image(numbers[np.newaxis].T, np.eye(4)), path)
    else:
        tifffile.imwrite(path, numbers)


@pytest.mark.parametrize("name", ["a.npy", "a.nii", "a.tif"])
def test_no_number_becomes_0_without_a_word(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    read, what = (read_image, "samples") if name == "a.tif" else (read_volume, "voxels")
    numbers = np.linspace(-1, 2, 24).reshape(4, 6)
    for factor, most, inverse in ((1e-200, "2e-200", "1e200"), (5.5e-39, r"1\.1e-38", "1e38")):
        written_as_doubles(path, numbers * factor)
        with pytest.raises(
            InvalidImage,
            match=rf"^{name}: its values reach {most} only, which is too small for 32-bit floats\.",
        ) as refused:
            read(path)
        assert refused.value.hint == f"Multiply them, by {inverse} for instance."

    written_as_doubles(path, np.where(numbers < 0, 1e-46, numbers))
    notice = f"8 of 24 {what} are nearer to 0 than 32-bit floats reach: taken as 0."
    assert notice in read(path).notices
    written_as_doubles(path, np.where(numbers < 0, 1e-45, numbers))  # the last that they hold
    assert not any("nearer to 0" in each for each in read(path).notices)


def test_the_library_names_samples_that_become_0(caplog: pytest.LogCaptureFixture) -> None:
    numbers = np.linspace(0, 1, 1024).reshape(32, 32)
    numbers[0, 0] = 1e-60
    ks.nlm(numbers)
    assert "1 of 1024 samples is nearer to 0 than 32-bit floats reach: taken as 0." in caplog.text
    with pytest.raises(InvalidImage, match=r"^nlm\(\): image: its values reach 1e-50 only"):
        ks.nlm(numbers * 1e-50)
    assert ks.mean(numbers * 1e-200, size=3).max() == pytest.approx(1e-200, rel=0.1)
