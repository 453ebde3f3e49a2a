"""The command ``batch``: results, failures, interruptions and what is left after them."""

from __future__ import annotations

import argparse
import csv
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image as PillowImage
from PIL import PngImagePlugin

from kernelscope.backends.cuda import CudaBackend
from kernelscope.base.errors import ImageWriteError
from kernelscope.base.json_fields import Field
from kernelscope.big.batch import JOURNAL, Batch, Handling, Item
from kernelscope.big.batch.task import TaskSettings, describe
from kernelscope.cli.arguments import apply_parser
from kernelscope.cli.batch import _handling, _parser
from kernelscope.cli.main import main
from kernelscope.cli.shared_options import run_options
from kernelscope.engine.backend import Availability
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import read_image, read_recipe, write_image, write_recipe
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import judge
from kernelscope.images.volume import Volume


def pixels(seed: int, side: int = 20) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, (side, side + 3), np.uint8)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "clean.recipe.json"
    write_recipe(Recipe((Step.create("median", {"size": 3}), Step.create("mean", {}))), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six pictures, two of them in a folder below."""
    for number in range(6):
        path = tmp_path / "in" / ("below" if number > 3 else "") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_image(Image.from_array(pixels(number)), path)
    return tmp_path / "in"


def applied(
    recipe: Path, image: np.ndarray[Any, Any], suffix: str = ".png"
) -> np.ndarray[Any, Any]:
    """Return the result of ``apply``."""
    source, target = (recipe.with_name(f"{name}{suffix}") for name in ("source", "target"))
    write_image(Image.from_array(image), source)
    assert main(["apply", "--recipe", str(recipe), str(source), str(target), "--quiet"]) == 0
    return read_image(target).pixels


def batch(*arguments: object) -> int:
    return main(["batch", *map(str, arguments)])


def test_results_are_those_of_apply(recipe: Path, folder: Path, tmp_path: Path) -> None:
    out, summary = tmp_path / "out", tmp_path / "s.json"
    start = time.perf_counter()
    assert batch(recipe, folder, "--out", out, "--summary", summary) == 0
    taken = time.perf_counter() - start
    for number in range(6):
        place = Path("below" if number > 3 else "", f"{number}.png")
        made = read_image(out / place).pixels
        assert np.array_equal(made, applied(recipe, pixels(number)))
    rows = json.loads(summary.read_text("utf-8"))["files"]
    assert [row["status"] for row in rows] == ["done"] * 6
    assert all(row["size"] == "23×20" for row in rows)
    assert all(0 < row[each] < taken for row in rows for each in ("read", "filtered", "written"))


def test_gpus_that_are_not_there_are_left_out(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert batch(recipe, folder, "--out", tmp_path / "out", "--gpu", "0,1") == 0
    assert "--gpu has no effect" in capsys.readouterr().err
    assert len(list((tmp_path / "out").rglob("*.png"))) == 6


@pytest.mark.parametrize("chosen", [["--gpu", "0,2"], []])
def test_each_gpu_that_is_there_takes_files(
    chosen: list[str], recipe: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets: list[Any] = []

    class Noting(Batch):
        def __init__(self, *arguments: Any, more: Any, **named: Any) -> None:
            super().__init__(*arguments, more=more, **named)
            sets[:] = [arguments[2], *more]

    there = Availability(True, "made up")
    monkeypatch.setattr(CudaBackend, "_availability", there)
    monkeypatch.setattr("kernelscope.big.batch.Batch", Noting)
    monkeypatch.setenv("KERNELSCOPE_GPU", "0,2")
    assert batch(recipe, folder, "--out", tmp_path / "out", "--device", "cpu", *chosen) == 0
    assert [each["gpu"].ordinals for each in sets] == [(0,), (2,)]
    assert sets[0]["cpu"] is sets[1]["cpu"]
    assert len(list((tmp_path / "out").rglob("*.png"))) == 6


def test_volumes_and_pictures_together(recipe: Path, tmp_path: Path) -> None:
    voxels = np.random.default_rng(1).integers(0, 255, (4, 12, 10), np.uint8)
    (tmp_path / "in").mkdir()
    write_volume(Volume.from_array(voxels, "head"), tmp_path / "in/head.nii.gz")
    write_image(Image.from_array(pixels(1)), tmp_path / "in/a.png")
    assert batch(recipe, tmp_path / "in", "--out", tmp_path / "out") == 0
    assert read_volume(tmp_path / "out/head.nii.gz").voxels.shape == (4, 12, 10)
    one = applied(recipe, voxels[2])
    assert np.array_equal(read_volume(tmp_path / "out/head.nii.gz").voxels[2], one)


def test_a_bad_file_does_not_stop_the_rest(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "0.png").write_bytes(b"no picture")
    summary = tmp_path / "s.csv"
    assert batch(recipe, folder, folder / "missing.png", "--out", tmp_path / "out",
                 "--summary", summary) == 1  # fmt: skip
    error = capsys.readouterr().err
    assert "0.png: this is no image" in error
    assert error.count("0.png") == error.count("missing.png") == 1
    rows = list(csv.DictReader(io.StringIO(summary.read_text("utf-8"))))
    assert Counter(row["status"] for row in rows) == {"done": 5, "failed": 2}
    assert not (tmp_path / "out/0.png").exists()


def test_nothing_is_overwritten_without_the_word(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "1.png").write_bytes(b"mine")
    assert batch(recipe, folder, "--out", out) == 1
    assert (out / "1.png").read_bytes() == b"mine"
    assert "1.png: the file is there already" in capsys.readouterr().err
    assert batch(recipe, folder, "--out", out) == 1
    assert "has the results of an earlier batch" in capsys.readouterr().err
    assert batch(recipe, folder, "--out", out, "--overwrite") == 0
    assert (out / "1.png").read_bytes() != b"mine"


def done_lines(out: Path) -> list[str]:
    """Return the names of the journal's finished results."""
    found = []
    for line in (out / JOURNAL).read_text("utf-8").splitlines():
        try:
            found.append(json.loads(line).get("done"))
        except ValueError:
            continue
    return [name for name in found if name]


@pytest.mark.slow
def test_a_killed_batch_is_resumed_and_nothing_is_computed_twice(tmp_path: Path) -> None:
    path, out = tmp_path / "slow.recipe.json", tmp_path / "out"
    write_recipe(Recipe((Step.create("mean", {"size": 5}),)), path)
    (tmp_path / "in").mkdir()
    for number in range(60):
        write_image(Image.from_array(pixels(number, 700)), tmp_path / f"in/{number:02}.png")
    command = [sys.executable, "-m", "kernelscope", "batch", str(path), str(tmp_path / "in")]
    command += ["--out", str(out), "--device", "cpu"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (out / JOURNAL).exists() or len(done_lines(out)) < 5:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {each.name: each.stat().st_mtime_ns for each in out.glob("*.png")}
    assert 5 <= len(before) < 60
    for name in before:  # each that is there is whole
        assert read_image(out / name).pixels.shape == (700, 703)
    with (out / JOURNAL).open("a", encoding="utf-8") as journal:
        journal.write('{"begin": "half a li')
    assert subprocess.run([*command, "--resume"], check=False).returncode == 0
    assert len(list(out.glob("*.png"))) == 60
    assert all((out / name).stat().st_mtime_ns == time_ for name, time_ in before.items())
    assert max(Counter(done_lines(out)).values()) == 1
    for number in (0, 30, 59):
        made = read_image(out / f"{number:02}.png").pixels
        assert np.array_equal(made, applied(path, pixels(number, 700)))


def test_after_a_failure_a_file_of_that_name_is_not_taken_for_the_result(
    recipe: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def full(image: Image, path: Path, **how: Any) -> Path:
        raise ImageWriteError(f"{path.name}: the disk is full.", "Free some space.")

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("kernelscope.big.batch.conductor.write_image", full)
        assert batch(recipe, folder, "--out", out) == 1
    (out / "2.png").write_bytes(b"from elsewhere")
    capsys.readouterr()
    assert batch(recipe, folder, "--out", out, "--resume") == 1
    assert "2.png: the file is there already" in capsys.readouterr().err
    assert (out / "2.png").read_bytes() == b"from elsewhere"


def test_a_recipe_that_makes_colours_is_checked_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "angle.recipe.json"
    write_recipe(Recipe((Step.create("sobel", {"form": "angle-colour"}),)), path)
    write_image(Image.from_array(pixels(1)), tmp_path / "a.png")
    assert batch(path, tmp_path / "a.png", "--suffix", ".pgm", "--out", tmp_path / "out") == 1
    assert "cannot keep" in capsys.readouterr().err


def test_a_journal_of_another_recipe_is_not_resumed(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert batch(recipe, folder, "--out", out) == 0
    write_recipe(Recipe((Step.create("mean", {}),)), recipe)
    assert batch(recipe, folder, "--out", out, "--resume") == 1
    assert "belongs to another recipe" in capsys.readouterr().err


def test_a_full_disk_is_said_for_each_file(
    recipe: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    written = list[Path]()

    def full(image: Image, path: Path, **how: Any) -> Path:
        if len(written) == 3:
            raise ImageWriteError(f"{path.name}: the disk is full.", "Free some space.")
        written.append(path)
        return write_image(image, path, **how)

    monkeypatch.setattr("kernelscope.big.batch.conductor.write_image", full)
    assert batch(recipe, folder, "--out", tmp_path / "out", "--jobs", 1) == 1
    captured = capsys.readouterr()
    assert captured.err.count("the disk is full") == 3
    assert captured.out.startswith("3 of 6 files")
    monkeypatch.undo()
    assert batch(recipe, folder, "--out", tmp_path / "out", "--resume") == 0
    assert len(list((tmp_path / "out").rglob("*.png"))) == 6


def test_a_file_that_changes_while_it_is_read_fails(
    recipe: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def slow(path: Path, **how: Any) -> Image:
        image = read_image(path, **how)
        if path.name == "3.png":
            with path.open("ab") as handle:
                handle.write(b"more")
        return image

    monkeypatch.setattr("kernelscope.big.batch.conductor.read_image", slow)
    assert batch(recipe, folder, "--out", tmp_path / "out") == 1
    assert "3.png: the file changed while it was read" in capsys.readouterr().err


def test_a_recipe_of_a_newer_version_is_refused(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(recipe.read_text("utf-8"))
    recipe.write_text(json.dumps(content | {"version": 99}), encoding="utf-8")
    assert batch(recipe, folder, "--out", tmp_path / "out") == 1
    assert "a newer one may have written it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_formats_that_lose_something_need_permission(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_image(Image.from_array(pixels(1).astype(np.uint16) * 257), tmp_path / "deep.tif")
    command = recipe, tmp_path / "deep.tif", "--suffix", ".jpg", "--out", tmp_path / "out"
    assert batch(*command) == 1
    assert "cannot keep" in capsys.readouterr().err
    assert batch(*command, "--lossy", "--overwrite") == 0


def test_the_name_of_the_summary_says_its_format(
    recipe: Path, folder: Path, tmp_path: Path
) -> None:
    assert batch(recipe, folder, "--out", tmp_path / "out", "--summary", tmp_path / "s.txt") == 2
    assert not (tmp_path / "out").exists()


def test_a_result_never_replaces_its_own_input(
    recipe: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = next(path for path in sorted(folder.rglob("*")) if path.suffix == ".png")
    before = source.read_bytes()
    assert batch(recipe, source, "--out", source.parent, "--overwrite") == 1
    assert "would replace its own input" in capsys.readouterr().err
    assert source.read_bytes() == before


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_each_picture_of_an_animation_is_a_page_of_the_result(
    recipe: Path, tmp_path: Path, suffix: str
) -> None:
    frames = [np.stack([pixels(seed + k) // 2 for k in range(3)], axis=-1) for seed in range(3)]
    first, *others = (PillowImage.fromarray(each) for each in frames)
    path, out = tmp_path / f"moving{suffix}", tmp_path / "out"
    first.save(path, save_all=True, append_images=others, lossless=True)
    summary = tmp_path / "s.json"
    assert batch(recipe, path, "--out", out, "--suffix", ".tif", "--summary", summary) == 0
    (row,) = json.loads(summary.read_text("utf-8"))["files"]
    assert row["size"] == "23×20, 3 pictures"
    with PillowImage.open(path) as moving, tifffile.TiffFile(out / "moving.tif") as made:
        assert len(made.pages) == 3
        for number, page in enumerate(made.pages):
            moving.seek(number)
            shown = np.asarray(moving.convert("RGB"))
            assert np.array_equal(page.asarray(), applied(recipe, shown))


def test_pages_of_a_tiff_keep_their_sizes_and_types(recipe: Path, tmp_path: Path) -> None:
    pages = [
        np.stack([pixels(1)] * 3, axis=-1),
        pixels(2, 30),
        pixels(3).astype(np.uint16) * 257,
    ]
    with tifffile.TiffWriter(tmp_path / "mixed.tif") as file:
        for each in pages:
            file.write(each, photometric="rgb" if each.ndim == 3 else "minisblack")
    assert batch(recipe, tmp_path / "mixed.tif", "--out", tmp_path / "out") == 0
    with tifffile.TiffFile(tmp_path / "out/mixed.tif") as made:
        assert len(made.pages) == 3
        for page, source in zip(made.pages, pages, strict=True):
            assert page.dtype == source.dtype
            expected = applied(recipe, source, ".tif")
            assert np.array_equal(page.asarray(), expected.reshape(source.shape))


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_volumes_of_a_file_stay_together_under_its_header(
    recipe: Path, tmp_path: Path, suffix: str
) -> None:
    voxels = np.random.default_rng(1).integers(0, 255, (9, 10, 4, 3), np.int16)
    image = nibabel.Nifti1Image(voxels, np.diag([2.0, 2.0, 3.0, 1.0]))
    image.header.set_zooms((2, 2, 3, 1.5))
    image.header["descrip"] = b"a scan"
    nibabel.save(image, tmp_path / f"f{suffix}")
    assert batch(recipe, tmp_path / f"f{suffix}", "--out", tmp_path / "out") == 0
    made = nibabel.load(tmp_path / f"out/f{suffix}")
    assert made.shape == voxels.shape
    assert made.header.binaryblock == nibabel.load(tmp_path / f"f{suffix}").header.binaryblock
    for number in range(3):
        one = nibabel.Nifti1Image(voxels[..., number], image.affine)
        nibabel.save(one, tmp_path / "one.nii")
        assert batch(recipe, tmp_path / "one.nii", "--out", tmp_path / f"alone{number}") == 0
        alone = nibabel.load(tmp_path / f"alone{number}/one.nii")
        assert np.array_equal(np.asarray(made.dataobj)[..., number], np.asarray(alone.dataobj))


@pytest.mark.parametrize(("name", "suffix", "reason"), [
    ("f.nii", ".npy", "several volumes are written to NIfTI and TIFF files only"),
    ("moving.gif", ".png", "several pictures are written to TIFF files only"),
])  # fmt: skip
def test_formats_of_one_picture_or_volume_are_refused_before_filtering(
    recipe: Path, tmp_path: Path, name: str, suffix: str, reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    voxels = np.random.default_rng(1).integers(0, 255, (9, 10, 4, 3), np.int16)
    nibabel.save(nibabel.Nifti1Image(voxels, None), tmp_path / "f.nii")
    first, *others = (PillowImage.fromarray(pixels(seed)) for seed in range(3))
    first.save(tmp_path / "moving.gif", save_all=True, append_images=others)
    assert batch(recipe, tmp_path / name, "--suffix", suffix, "--out", tmp_path / "out") == 1
    assert reason in capsys.readouterr().err
    assert not list((tmp_path / "out").glob(f"*{suffix}"))


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_results_are_compared_with_references_of_their_places(
    recipe: Path, folder: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ideal, summary = tmp_path / "ideal", tmp_path / f"s{suffix}"
    (ideal / "below").mkdir(parents=True)
    write_image(Image.from_array(pixels(10)), ideal / "0.png")
    write_image(Image.from_array(pixels(10)), ideal / "below/4.tif")  # of another suffix
    write_image(Image.from_array(applied(recipe, pixels(1))), ideal / "1.png")  # equal
    write_image(Image.from_array(pixels(10, 30)), ideal / "2.png")  # of another size
    (ideal / "3.png").write_bytes(b"no picture")
    assert batch(recipe, folder, "--out", tmp_path / "out", "--summary", summary,
                 "--reference", ideal) == 0  # fmt: skip
    text = summary.read_text("utf-8")
    table = json.loads(text)["files"] if suffix == ".json" else csv.DictReader(io.StringIO(text))
    rows = {Path(row["source"]).stem: row for row in table}
    for stem in ("0", "4"):
        before = judge(pixels(int(stem))[..., np.newaxis], pixels(10)[..., np.newaxis])
        made = applied(recipe, pixels(int(stem)))
        after = judge(made.reshape(20, 23, 1), pixels(10)[..., np.newaxis])
        assert float(rows[stem]["psnr_before"]) == pytest.approx(before.psnr, abs=1e-4)
        assert float(rows[stem]["psnr"]) == pytest.approx(after.psnr, abs=1e-4)
        assert float(rows[stem]["ssim_before"]) == pytest.approx(before.ssim)
        assert float(rows[stem]["ssim"]) == pytest.approx(after.ssim)
        assert rows[stem]["note"] == ""
    assert rows["1"]["psnr"] == "inf"
    assert float(rows["1"]["ssim"]) == 1
    assert "cannot be compared with the reference" in rows["2"]["note"]
    assert "The reference cannot be used: 3.png: this is no image" in rows["3"]["note"]
    assert rows["5"]["note"] == "There is no reference."
    assert all(rows[stem]["psnr"] in (None, "") for stem in ("2", "3", "5"))
    assert "3 results were not compared" in capsys.readouterr().err


def test_references_in_no_folder_are_an_error(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert batch(recipe, folder, "--out", tmp_path / "out", "--reference", tmp_path / "no") == 1
    assert "no: there is no such folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_volumes_are_compared_with_volumes(recipe: Path, tmp_path: Path) -> None:
    voxels = np.random.default_rng(1).integers(0, 255, (8, 12, 10), np.uint8)
    for place in ("in", "ideal"):
        (tmp_path / place).mkdir()
        write_volume(Volume.from_array(voxels, "head"), tmp_path / place / "head.nii.gz")
    summary = tmp_path / "s.json"
    assert batch(recipe, tmp_path / "in", "--out", tmp_path / "out", "--summary", summary,
                 "--reference", tmp_path / "ideal") == 0  # fmt: skip
    (row,) = json.loads(summary.read_text("utf-8"))["files"]
    assert row["psnr_before"] == "inf"
    assert 0 < row["psnr"] < 40


def test_an_ome_zarr_names_the_command_that_filters_it(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "scan.zarr/0/0").mkdir(parents=True)
    (folder / "scan.zarr/zarr.json").write_text("{}", encoding="utf-8")
    out = tmp_path / "deep/out"
    assert batch(recipe, folder, "--out", out) == 1
    text = capsys.readouterr().err
    assert text.count("failed:") == 1
    assert "scan.zarr: OME-Zarr is filtered in blocks" in text
    assert "apply --memory 2G" in text
    assert len(list(out.rglob("*.png"))) == 6


ODD_NAMES = (
    b"not utf-8 \xff\xfe.png", b"two\nlines.png", b"return\rhere.png", b"\x1b[2Jescape.png",
    b'"quoted".png', b"a, b; c.png", "\u2028separator.png".encode(), "nel\x85.png".encode(),
    b"back\\udcffslash.png", b"csi\xc2\x9b.png", b"<b>bold.png", b"l" * 251 + b".png",
)  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not allow such names")
@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_names_of_any_bytes_come_back_from_summary_and_journal(
    recipe: Path, tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source, out, summary = tmp_path / "in\x80", tmp_path / "out\x9b", tmp_path / f"s{suffix}"
    source.mkdir()
    for number, name in enumerate(ODD_NAMES):
        write_image(Image.from_array(pixels(number)), tmp_path / "a.png")
        (tmp_path / "a.png").rename(os.fsdecode(os.fsencode(source) + b"/" + name))
    (source / os.fsdecode(b"damaged\xff\x1b.png")).write_bytes(b"no picture")
    assert batch(recipe, source, "--out", out, "--summary", summary) == 1
    text = summary.read_text("utf-8")  # strictly
    shown = capfd.readouterr()
    for each in (text, shown.out, shown.err):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", each)
    if suffix == ".json":
        table = json.loads(text)["files"]
    else:
        table = list(csv.DictReader(io.StringIO(text)))
        for row in table:
            for key in ("source", "target"):
                if row[key].startswith('"'):
                    row[key] = json.loads(row[key])
    done = [row for row in table if row["status"] == "done"]
    assert {os.fsencode(Path(row["source"]).name) for row in done} == set(ODD_NAMES)
    assert all(Path(row["source"]).exists() and Path(row["target"]).exists() for row in done)
    assert batch(recipe, source, "--out", out, "--resume") == 1
    assert f"{len(ODD_NAMES)} were done before" in capfd.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not allow such names")
def test_names_that_are_too_long_are_failures_of_their_own(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result of a GIF with the longest name has a longer one; a name given may be too long."""
    PillowImage.fromarray(pixels(9)).save(folder / f"{'l' * 251}.gif")
    given = [recipe, folder, tmp_path / ("x" * 300), "--suffix", ".tiff"]
    assert batch(*given, "--out", tmp_path / "out") == 1
    text = capsys.readouterr().err
    assert "bug" not in text
    assert len(re.findall("failed: .*File name too long", text)) == 2
    assert len(list((tmp_path / "out").rglob("*.tiff"))) == 6


def _with_metadata(folder: Path) -> list[Path]:
    """Write files of which a result loses something, or whose reading converts something."""
    folder.mkdir()
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "scan of 3 May")
    picture = PillowImage.fromarray(np.stack([pixels(1)] * 3, axis=2))
    picture.save(folder / "text.png", pnginfo=texts)
    picture.convert("CMYK").save(folder / "four.jpg")
    picture.quantize(8).save(folder / "palette.png")
    picture.convert("1").save(folder / "bit.png")
    exif = PillowImage.Exif()
    exif[0x0112], exif[0x010F] = 6, "Maker"
    picture.save(folder / "turned.jpg", exif=exif)
    picture.save(folder / "camera.tif", exif=exif)
    tifffile.imwrite(folder / "extra.tif", np.zeros((9, 9, 5), np.uint8), photometric="rgb")
    picture.save(folder / "wrong.bmp", format="PNG")
    voxels = np.random.default_rng(1).integers(0, 255, (4, 12, 10), np.uint8)
    tifffile.imwrite(folder / "stack.tif", voxels, photometric="minisblack")
    scaled = nibabel.Nifti1Image(voxels.T.astype(np.int16), np.diag([1, 2, 3, 1]))
    scaled.header.set_slope_inter(2.5, 1)
    scaled.to_filename(folder / "scaled.nii")
    return sorted(folder.iterdir())


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_notices_are_those_of_apply(
    recipe: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, summary = tmp_path / "out", tmp_path / f"s{suffix}"
    files, named = _with_metadata(tmp_path / "in"), 0
    assert batch(recipe, tmp_path / "in", "--out", out, "--summary", summary) == 0
    printed = capsys.readouterr().err
    text = summary.read_text("utf-8")
    as_json = suffix == ".json"
    table = json.loads(text)["files"] if as_json else csv.DictReader(io.StringIO(text))
    rows = {Path(row["source"]).name: row for row in table}
    (tmp_path / "one").mkdir()
    for path in files:
        target = str(tmp_path / "one" / path.name)
        assert main(["apply", "--recipe", str(recipe), str(path), target, "--json"]) == 0
        shown = capsys.readouterr()
        record, lines = json.loads(shown.out)["record"], shown.err.splitlines()
        expected = list(dict.fromkeys(line.removeprefix("note: ") for line in lines))
        row = rows[path.name]
        assert row["notices"] == (expected if as_json else " ".join(expected)), path.name
        if as_json:
            assert row["record"] == record
        else:
            assert all(row[name] == "; ".join(record[name]) for name in record)
        named += bool(expected)
        for each in expected:  # by one file at least, if several have it
            assert each.replace(path.name, "") in printed.replace(path.name, "")
    assert named >= 7


def test_a_notice_of_many_files_is_printed_once(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    picture = PillowImage.fromarray(np.stack([pixels(1)] * 3, axis=2)).convert("CMYK")
    for number in range(3):
        picture.save(tmp_path / f"in/{number}.jpg")
    assert batch(recipe, tmp_path / "in", "--out", tmp_path / "out") == 0
    text = capsys.readouterr().err
    assert text.count("CMYK converted") == 1
    assert f"note: 3 files, such as {tmp_path / 'in/0.jpg'}: CMYK converted to RGB" in text
    assert batch(recipe, tmp_path / "in", "--out", tmp_path / "out", "--resume") == 0
    assert "CMYK" not in capsys.readouterr().err  # it was printed then; the summary has it again


ONLY_APPLY = {
    "--recipe": "an argument of its own here",
    "--save-recipe": "there is a recipe",
    "--json": "the summary has it",
    "--repeat": "measures one run",
    "--volume": "all volumes of a file are filtered",
    "--component": "pairs one file with others",
    "--output-component": "pairs one file with others",
    "--difference": "an output for each file",
    "--residual": "an output for each file",
    "--memory": "blocks of one file that is larger than memory",
}


def test_batch_has_the_options_of_apply_and_defines_them_once() -> None:
    def options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
        return {name: each for each in parser._actions for name in each.option_strings}

    mine, theirs = options(_parser()), options(apply_parser())
    assert theirs.keys() - mine.keys() == ONLY_APPLY.keys() - {"--save-recipe"}
    alone = {"-h", "--help", "--gpu", "--gpus", "--quiet", "--reference", "--scheduler"}
    for name in mine.keys() & theirs.keys() - alone - {"--local-cluster"}:
        assert (mine[name].help, mine[name].type) == (theirs[name].help, theirs[name].type), name


@pytest.mark.parametrize(
    "given",
    [["--axis", "y"], ["--float"], ["--quality", "30"], ["--nan", "7"], ["--level", "serial"]],
    ids=" ".join,
)
def test_options_do_what_they_do_in_apply(
    given: list[str], recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    random = np.random.default_rng(1)
    voxels = random.integers(0, 255, (4, 12, 10), np.uint8)
    write_volume(Volume.from_array(voxels, "head"), tmp_path / "in/head.nii.gz")
    write_image(Image.from_array(pixels(1)), tmp_path / "in/a.png")
    write_image(Image.from_array(pixels(2)), tmp_path / "in/b.jpg")
    hole = random.random((6, 7, 8), np.float32)
    hole[1, 2, 3] = np.nan
    if given[0] == "--nan":
        nibabel.Nifti1Image(hole, np.eye(4)).to_filename(tmp_path / "in/hole.nii")
    out = tmp_path / "out"
    assert batch(recipe, tmp_path / "in", "--out", out, *given) == 0
    (tmp_path / "one").mkdir()
    suits = {"--axis": (".nii.gz",), "--float": (".nii.gz",), "--quality": (".jpg",)}
    for path in sorted((tmp_path / "in").iterdir()):
        own = given if path.name.endswith(suits.get(given[0], (path.name,))) else []
        target = tmp_path / "one" / path.name
        assert main(["apply", "--recipe", str(recipe), str(path), str(target), *own]) == 0
        assert (out / path.name).read_bytes() == target.read_bytes(), path.name
    plain = tmp_path / "plain"
    if given[0] not in ("--level", "--nan"):
        assert batch(recipe, tmp_path / "in", "--out", plain) == 0
        names = [each.name for each in (tmp_path / "one").iterdir()]
        differ = [
            name for name in names if (out / name).read_bytes() != (plain / name).read_bytes()
        ]
        assert len(differ) == 1
    capsys.readouterr()
    assert batch(recipe, tmp_path / "in", "--out", out, "--resume") == (given[0] != "--level")
    shown = capsys.readouterr()
    if given[0] == "--level":  # it changes no result
        assert "were done before" in shown.out
    else:
        assert "belongs to another recipe, or other options" in shown.err


def test_a_worker_gets_all_options(recipe: Path, folder: Path, tmp_path: Path) -> None:
    given = _parser().parse_args(
        [str(recipe), str(folder), "--out", "x", "--block", "16x8", "--memory-limit", "1G",
         "--device", "gpu", "--level", "shared", "--nan", "2", "--float", "--quality", "7"]
    )  # fmt: skip
    options, handling = run_options(vars(given)), _handling(given)
    settings = TaskSettings(read_recipe(recipe), options, tmp_path, handling)
    task = json.loads(describe(0, Item(tmp_path / "a", tmp_path / "b"), settings))
    assert Field(task["options"], "task").record(RunOptions) == options
    assert Handling(**task["handling"]) == handling == Handling(2.0, True, False, 7)
    assert (options.block, options.memory_limit) == ((16, 8), 1 << 30)


def test_quiet_and_verbose(
    recipe: Path,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SystemExit):
        batch(recipe, folder, "--out", tmp_path / "out", "--quiet", "--verbose")
    assert "--quiet: not allowed with argument --verbose" in capsys.readouterr().err
    shown: list[object] = []
    monkeypatch.setattr("kernelscope.cli.batch.log_to_stderr", lambda: shown.append(None))
    caplog.set_level(logging.DEBUG, "kernelscope")
    assert batch(recipe, folder, "--out", tmp_path / "out", "--verbose") == 0
    assert len(shown) == 1
    assert "Read 0.png" in caplog.text
    assert "6 of 6 files" in capsys.readouterr().out
