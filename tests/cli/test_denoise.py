"""The command ``denoise``: the filter that suits the noise, and the options of ``apply``."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image

from kernelscope.cli.main import main
from kernelscope.files.volumes import read_volume, write_volumes
from kernelscope.images.volume import Volume
from tests.gui.test_volume_page import voxels, write


@pytest.fixture
def specks(tmp_path: Path) -> Path:
    draws = np.random.default_rng(1).random((40, 60))
    pixels = np.where(draws < 0.02, 0, np.where(draws > 0.98, 255, 128)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "specks.png")
    return tmp_path / "specks.png"


def test_specks(specks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = specks.with_name("out.png")
    assert main(["denoise", str(specks), str(output), "--device", "cpu"]) == 0
    assert np.mean(np.asarray(Image.open(specks)) != 128) == pytest.approx(0.035, abs=5e-4)
    assert "note: Median: specks in 3.5 % of the pixels\n" in capsys.readouterr().err
    assert np.array_equal(np.asarray(Image.open(output)), np.full((40, 60), 128))


def test_options_of_apply_hold(specks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = specks.with_name("out.png")
    rest = ["--size=5", "--border", "mirror", "--device", "cpu", "--json"]
    assert main(["denoise", str(specks), str(output), *rest]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert (step["filter"], step["parameters"]["size"], step["border"]) == ("median", 5, "mirror")


@pytest.mark.slow
def test_noise_of_a_volume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "head.nii", voxels())
    assert main(["denoise", str(source), str(tmp_path / "out.nii"), "--device", "cpu"]) == 0
    error = capsys.readouterr().err
    assert "note: Volume collaborative" in error
    assert "; other filters: " in error


@pytest.mark.slow
def test_one_of_several_volumes(tmp_path: Path) -> None:
    several = np.random.default_rng(2).normal(100, 9, (2, 9, 9, 9)).astype(np.float32)
    source = write_volumes([Volume.from_array(each) for each in several], tmp_path / "a.nii")
    more = ["--device", "cpu", "--volume", "2"]
    assert main(["denoise", str(source), str(tmp_path / "b.nii"), *more]) == 0
    found = read_volume(tmp_path / "b.nii").voxels
    assert abs(found - several[1]).mean() < abs(found - several[0]).mean()


def test_quiet_says_nothing(specks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = specks.with_name("out.png")
    assert main(["denoise", str(specks), str(output), "--device", "cpu", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_wrong_usage_and_missing_files(specks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as wrong:
        main(["denoise", str(specks)])
    assert wrong.value.code == 2
    assert "error: the following arguments are required: OUTPUT" in capsys.readouterr().err
    assert main(["denoise", "none.png", "out.png"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_the_residual_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noisy = np.random.default_rng(2).normal(128, 20, (80, 80)).clip(0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(tmp_path / "a.png")
    files = [str(tmp_path / "a.png"), str(tmp_path / "b.png"), "--device", "cpu"]
    rest = ["--sigma", "7.8", "--noise", "white"]
    assert main(["apply", "sliding-dct", *files, *rest, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["residual"]["correlation"]
    assert found == pytest.approx(0, abs=0.05)
    assert main(["apply", "sliding-dct", *files, *rest]) == 0
    line = f"correlation of neighbours {found:.2f} (of white noise 0): white noise was removed"
    assert f"  residual: {line}\n" in capsys.readouterr().out
    assert main(["apply", "negative", *files, "--json"]) == 0
    assert "residual" not in json.loads(capsys.readouterr().out)


def test_the_residuals_of_several_results_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = np.random.default_rng(2).normal(128, 20, (32, 32, 32, 2)).astype(np.int16)
    nibabel.Nifti1Image(noisy, np.eye(4)).to_filename(tmp_path / "a.nii")
    files = [str(tmp_path / "a.nii"), str(tmp_path / "b.nii"), "--device", "cpu", "--json"]
    assert main(["apply", "volume-dct", *files, "--sigma", "20", "--noise", "gaussian"]) == 0
    found = json.loads(capsys.readouterr().out)["residual"]["correlations"]
    assert found == pytest.approx([0, 0], abs=0.1)
