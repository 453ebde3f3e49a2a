"""The command ``batch``: results, failures, interruptions and their remains."""

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
import zarr
from PIL import Image as PillowImage
from PIL import PngImagePlugin

from kernelscope.backends.cuda import CudaBackend
from kernelscope.base.errors import ImageWriteError
from kernelscope.base.json_fields import Field
from kernelscope.big.batch import conductor
from kernelscope.big.batch.conductor import Batch
from kernelscope.big.batch.item import JOURNAL, Handling, Item
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
from kernelscope.files.volumes import (
    WRITABLE_VOLUMES,
    read_volumes,
    write_volume,
    zarr_source,
)
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import judge
from kernelscope.images.volume import Volume
from tests.cli.running import Said, refused, run
from tests.lazy.test_viewing import write as write_zarr


def pixels(seed: int, side: int = 20) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, (side, side + 3), np.uint8)


def write(name: str, samples: np.ndarray[Any, Any]) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    write_image(Image.from_array(samples), name)


@pytest.fixture(autouse=True)
def recipe(here: Path) -> None:
    """A recipe: r.json."""
    steps = Step.create("median", {"size": 3}), Step.create("mean", {})
    write_recipe(Recipe(steps), "r.json")


@pytest.fixture
def pictures(here: Path) -> None:
    """Six pictures, two of them in a folder below: in/0.png to in/below/5.png."""
    for number in range(6):
        write(f"in/{'below/' * (number > 3)}{number}.png", pixels(number))


def applied(image: np.ndarray[Any, Any], suffix: str = ".png") -> np.ndarray[Any, Any]:
    """Return the result of ``apply``."""
    write(f"source{suffix}", image)
    run(f"apply --recipe r.json source{suffix} target{suffix} --quiet")
    return read_image(f"target{suffix}").pixels


def batch(line: str, status: int = 0) -> Said:
    return run(f"batch r.json {line}", status=status)


def table(name: str) -> list[dict[str, Any]]:
    """Return the rows of a summary, in either format."""
    text = Path(name).read_text("utf-8")
    if name.endswith(".json"):
        rows: list[dict[str, Any]] = json.loads(text)["files"]
        return rows
    return list(csv.DictReader(io.StringIO(text)))


with_pictures = pytest.mark.usefixtures("pictures")
each_summary = pytest.mark.parametrize("summary", ["s.json", "s.csv"])


@with_pictures
def test_results_are_those_of_apply() -> None:
    start = time.perf_counter()
    batch("in --out out --summary s.json")
    taken = time.perf_counter() - start
    for number in range(6):
        made = read_image(Path("out", "below" if number > 3 else "", f"{number}.png")).pixels
        assert np.array_equal(made, applied(pixels(number)))
    rows = table("s.json")
    assert [row["status"] for row in rows] == ["done"] * 6
    assert all(row["size"] == "23×20" for row in rows)
    assert all(0 < row[each] < taken for row in rows for each in ("read", "filtered", "written"))


@with_pictures
def test_gpus_that_are_not_there_are_left_out() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert "--gpu has no effect" in batch("in --out out --gpu 0,1").err
    assert len(list(Path("out").rglob("*.png"))) == 6


@with_pictures
@pytest.mark.parametrize("chosen", ["--gpu 0,2", ""])
def test_each_gpu_that_is_there_takes_files(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sets: list[Any] = []

    class Noting(Batch):
        def __init__(self, *arguments: Any, more: Any, **named: Any) -> None:
            super().__init__(*arguments, more=more, **named)
            sets[:] = [arguments[2], *more]

    there = Availability(True, "made up")
    monkeypatch.setattr(CudaBackend, "_availability", there)
    monkeypatch.setattr("kernelscope.big.batch.conductor.Batch", Noting)
    monkeypatch.setenv("KERNELSCOPE_GPU", "0,2")
    batch(f"in --out out --device cpu {chosen}")
    assert [each["gpu"].ordinals for each in sets] == [(0,), (2,)]
    assert sets[0]["cpu"] is sets[1]["cpu"]
    assert len(list(Path("out").rglob("*.png"))) == 6


@with_pictures
def test_a_bad_file_does_not_stop_the_rest() -> None:
    Path("in/0.png").write_bytes(b"no picture")
    error = batch("in in/missing.png --out out --summary s.csv", status=1).err
    assert "0.png: this is no image" in error
    assert error.count("0.png") == error.count("missing.png") == 1
    assert Counter(row["status"] for row in table("s.csv")) == {"done": 5, "failed": 2}
    assert not Path("out/0.png").exists()


@with_pictures
def test_nothing_is_overwritten_without_the_word() -> None:
    Path("out").mkdir()
    Path("out/1.png").write_bytes(b"mine")
    assert "1.png: the file is there already" in batch("in --out out", status=1).err
    assert Path("out/1.png").read_bytes() == b"mine"
    assert "has the results of an earlier batch" in batch("in --out out", status=1).err
    batch("in --out out --overwrite")
    assert Path("out/1.png").read_bytes() != b"mine"


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
def test_a_killed_batch_is_resumed_and_nothing_is_computed_twice() -> None:
    out = Path("out")
    write_recipe(Recipe((Step.create("mean", {"size": 5}),)), "r.json")
    for number in range(60):
        write(f"in/{number:02}.png", pixels(number, 700))
    command = [sys.executable, "-m", "kernelscope", "batch", "r.json", "in", "--out", "out"]
    command += ["--device", "cpu"]
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
        assert np.array_equal(made, applied(pixels(number, 700)))


@with_pictures
def test_a_full_disk_is_said_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """After it, a file of that name is not taken for the result."""
    written = list[Path]()

    def full(image: Image, path: Path, **how: Any) -> Path:
        if len(written) == 3:
            raise ImageWriteError(f"{path.name}: the disk is full.", "Free some space.")
        written.append(path)
        return write_image(image, path, **how)

    with monkeypatch.context() as patch:
        patch.setattr("kernelscope.big.batch.conductor.write_image", full)
        said = batch("in --out out --jobs 1", status=1)
    assert said.err.count("the disk is full") == 3
    assert said.out.startswith("3 of 6 files")
    foreign = Path("out/3.png")
    assert not foreign.exists()
    foreign.write_bytes(b"from elsewhere")
    error = batch("in --out out --resume", status=1).err
    assert "3.png: the file is there already" in error
    assert foreign.read_bytes() == b"from elsewhere"
    foreign.unlink()
    batch("in --out out --resume")
    assert len(list(Path("out").rglob("*.png"))) == 6


@with_pictures
def test_a_journal_of_another_recipe_is_not_resumed() -> None:
    batch("in --out out")
    write_recipe(Recipe((Step.create("mean", {}),)), "r.json")
    assert "belongs to another recipe" in batch("in --out out --resume", status=1).err


@with_pictures
def test_a_file_that_changes_while_it_is_read_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(path: Path, **how: Any) -> Image:
        image = read_image(path, **how)
        if path.name == "3.png":
            with path.open("ab") as handle:
                handle.write(b"more")
        return image

    monkeypatch.setattr("kernelscope.big.batch.conductor.read_image", slow)
    error = batch("in --out out", status=1).err
    assert "3.png: the file changed while it was read" in error


@with_pictures
@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("in --summary s.txt", 2, "the name has no format"),
        ("in --reference no", 1, "no: there is no such folder"),
        ("in --quiet --verbose", 2, "--quiet: not allowed with argument --verbose"),
        ("in", 1, "a newer one may have written it"),
    ],
)
def test_refused_before_anything_is_written(line: str, status: int, message: str) -> None:
    if "newer" in message:
        content = json.loads(Path("r.json").read_text("utf-8"))
        Path("r.json").write_text(json.dumps(content | {"version": 99}), encoding="utf-8")
    assert message in refused(f"batch r.json {line} --out out", status=status)
    assert not Path("out").exists()


def test_formats_that_lack_the_colours_that_a_step_makes_need_permission() -> None:
    write_recipe(Recipe((Step.create("sobel", {"form": "angle-colour"}),)), "r.json")
    write("a.png", pixels(1))
    assert "cannot keep" in batch("a.png --suffix .pgm --out out", status=1).err


def test_formats_that_lose_something_are_refused_before_any_file_is_filtered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each failed in its turn, between files that had been filtered."""
    deep, samples = pixels(1).astype(np.uint16) * 257, np.stack([pixels(1)] * 4, axis=-1)
    for name, content in {
        "a.png": pixels(2),
        "b.png": deep,
        "c.tif": (pixels(1) / 255).astype(np.float32),
        "d.png": samples,
        "e.ppm": deep,
        "wide.tif": np.zeros((1, 65_501), np.uint8),
    }.items():
        write(f"in/{name}", content)
    np.save("in/volume.npy", np.zeros((3, 4, 5)))
    first, second = (PillowImage.fromarray(pixels(seed)) for seed in (1, 2))
    first.save("in/moving.gif", save_all=True, append_images=[second])
    read = list[str]()
    sources = conductor.read_sources
    monkeypatch.setattr(
        conductor,
        "read_sources",
        lambda item, handling: read.append(item.source.name) or sources(item, handling),
    )
    said = batch("in --suffix .jpg --out out", status=1)
    assert read == ["a.png"]
    keep = "to keep everything. Or add --lossy."
    assert said.err.splitlines()[:7] == [
        f"failed: in/b.png: b.jpg: JPEG cannot keep 16-bit depth. "
        f"Save it as PNG, OME-TIFF, TIFF, PGM or PPM {keep}",
        "failed: in/c.tif: c.jpg: JPEG cannot keep float samples. "
        f"Save it as OME-TIFF or TIFF {keep}",
        "failed: in/d.png: d.jpg: JPEG cannot keep transparency. "
        f"Save it as PNG, OME-TIFF, TIFF or WebP {keep}",
        f"failed: in/e.ppm: e.jpg: JPEG cannot keep 16-bit depth. "
        f"Save it as PNG, OME-TIFF, TIFF or PPM {keep}",
        "failed: in/moving.gif: moving.jpg: several pictures are written to TIFF files only. "
        "Save it as TIFF.",
        "failed: in/volume.npy: volume.jpg: volumes are not written as .jpg files. "
        f"Use one of {', '.join(each.suffixes[0] for each in WRITABLE_VOLUMES)}.",
        "failed: in/wide.tif: wide.jpg: JPEG holds at most 65500 pixels a side, "
        "and the picture has 65501×1. Save it as TIFF.",
    ]
    assert {each.name for each in Path("out").iterdir()} == {"a.jpg", JOURNAL}
    batch("in/b.png in/c.tif in/d.png in/e.ppm --suffix .jpg --out more --lossy")


@with_pictures
def test_a_second_batch_leaves_out_the_results_of_the_first() -> None:
    """They were filtered once more, under other names."""
    for more in ("--suffix .tif", "--suffix .bmp --overwrite", "--suffix .webp --overwrite"):
        inputs = " ".join(sorted(f"in/{each.name}" for each in Path("in").glob("?.*")))
        text = batch(f"{inputs} --out in --summary s.json {more}").err
        assert [Path(each["source"]).name for each in table("s.json")] == [
            f"{number}.png" for number in range(4)
        ]
    assert "note: 8 files are left out: results of an earlier batch of these files. Name" in text


@with_pictures
def test_a_result_never_replaces_its_own_input() -> None:
    before = Path("in/0.png").read_bytes()
    error = batch("in/0.png --out in --overwrite", status=1).err
    assert "would replace its own input" in error
    assert Path("in/0.png").read_bytes() == before


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_each_picture_of_an_animation_is_a_page_of_the_result(suffix: str) -> None:
    frames = [np.stack([pixels(seed + k) // 2 for k in range(3)], axis=-1) for seed in range(3)]
    first, *others = (PillowImage.fromarray(each) for each in frames)
    name = f"moving{suffix}"
    first.save(name, save_all=True, append_images=others, lossless=True)
    batch(f"{name} --out out --suffix .tif --summary s.json")
    (row,) = table("s.json")
    assert row["size"] == "23×20, 3 pictures"
    with PillowImage.open(name) as moving, tifffile.TiffFile("out/moving.tif") as made:
        assert len(made.pages) == 3
        for number, page in enumerate(made.pages):
            moving.seek(number)
            shown = np.asarray(moving.convert("RGB"))
            assert np.array_equal(page.asarray(), applied(shown))


def test_pages_of_a_tiff_keep_their_sizes_and_types() -> None:
    pages = [
        np.stack([pixels(1)] * 3, axis=-1),
        pixels(2, 30),
        pixels(3).astype(np.uint16) * 257,
    ]
    with tifffile.TiffWriter("mixed.tif") as file:
        for each in pages:
            file.write(each, photometric="rgb" if each.ndim == 3 else "minisblack")
    batch("mixed.tif --out out")
    with tifffile.TiffFile("out/mixed.tif") as made:
        assert len(made.pages) == 3
        for page, source in zip(made.pages, pages, strict=True):
            assert page.dtype == source.dtype
            expected = applied(source, ".tif")
            assert np.array_equal(page.asarray(), expected.reshape(source.shape))


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_volumes_of_a_file_stay_together_under_its_header(suffix: str) -> None:
    voxels = np.random.default_rng(1).integers(0, 255, (9, 10, 4, 3), np.int16)
    image = nibabel.Nifti1Image(voxels, np.diag([2.0, 2.0, 3.0, 1.0]))
    image.header.set_zooms((2, 2, 3, 1.5))
    image.header["descrip"] = b"a scan"
    nibabel.save(image, f"f{suffix}")
    batch(f"f{suffix} --out out")
    made = nibabel.load(f"out/f{suffix}")
    assert made.shape == voxels.shape
    assert made.header.binaryblock == nibabel.load(f"f{suffix}").header.binaryblock
    for number in range(3):
        nibabel.save(nibabel.Nifti1Image(voxels[..., number], image.affine), "one.nii")
        batch(f"one.nii --out alone{number}")
        alone = nibabel.load(f"alone{number}/one.nii")
        assert np.array_equal(np.asarray(made.dataobj)[..., number], np.asarray(alone.dataobj))


def test_formats_of_one_volume_are_refused_before_filtering() -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((9, 10, 4, 3), np.int16), None), "f.nii")
    reason = "several volumes are written to NIfTI, TIFF and OME-Zarr only"
    assert reason in batch("f.nii --suffix .npy --out out", status=1).err
    assert not list(Path("out").glob("*.npy"))


@with_pictures
@each_summary
def test_results_are_compared_with_references_of_their_places(summary: str) -> None:
    write("ideal/0.png", pixels(10))
    write("ideal/below/4.tif", pixels(10))  # of another suffix
    write("ideal/1.png", applied(pixels(1)))  # equal
    write("ideal/2.png", pixels(10, 30))  # of another size
    Path("ideal/3.png").write_bytes(b"no picture")
    error = batch(f"in --out out --summary {summary} --reference ideal").err
    rows = {Path(row["source"]).stem: row for row in table(summary)}
    for stem in ("0", "4"):
        before = judge(pixels(int(stem))[..., np.newaxis], pixels(10)[..., np.newaxis])
        made = applied(pixels(int(stem)))
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
    assert "3 results were not compared" in error


def test_volumes_are_compared_with_volumes() -> None:
    voxels = np.random.default_rng(1).integers(0, 255, (8, 12, 10), np.uint8)
    for place in ("in", "ideal"):
        Path(place).mkdir()
        write_volume(Volume.from_array(voxels, "head"), f"{place}/head.nii.gz")
    batch("in --out out --summary s.json --reference ideal")
    (row,) = table("s.json")
    assert row["psnr_before"] == "inf"
    assert 0 < row["psnr"] < 40


@with_pictures
def test_an_ome_zarr_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that changed is filtered again; the way out names the command of a large one."""
    voxels = np.arange(720, dtype=np.uint16).reshape(2, 4, 9, 10)
    write_zarr(Path("in/scan.ome.zarr"), voxels, "czyx", 1)
    batch("in --out deep/out")
    assert len(list(Path("deep/out").rglob("*.png"))) == 6
    tifffile.imwrite("same.ome.tif", voxels, photometric="minisblack", metadata={"axes": "CZYX"})
    run("apply --recipe r.json same.ome.tif wanted.ome.tif --quiet")
    wanted = [each.voxels for each in read_volumes("wanted.ome.tif")]
    made = Path("deep/out/scan.ome.tif")
    np.testing.assert_array_equal([each.voxels for each in read_volumes(made)], wanted)
    zarr.open_array("in/scan.ome.zarr/0")[...] = voxels[::-1]
    batch("in --out deep/out --resume --overwrite")
    np.testing.assert_array_equal([each.voxels for each in read_volumes(made)], wanted[::-1])
    monkeypatch.setattr(zarr_source, "MAX_VOXELS", 360)
    text = batch("in --out other", status=1).err
    assert text.count("failed:") == 1
    assert "voxels are too many to be read as a whole. Filter it in blocks: “apply --me" in text


ODD_NAMES = (
    b"not utf-8 \xff\xfe.png", b"two\nlines.png", b"return\rhere.png", b"\x1b[2Jescape.png",
    b'"quoted".png', b"a, b; c.png", "\u2028separator.png".encode(), "nel\x85.png".encode(),
    b"back\\udcffslash.png", b"csi\xc2\x9b.png", b"<b>bold.png", b"l" * 251 + b".png",
)  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not allow such names")
@each_summary
def test_names_of_any_bytes_come_back_from_summary_and_journal(
    summary: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("in\x80").mkdir()
    for number, name in enumerate(ODD_NAMES):
        write("a.png", pixels(number))
        Path("a.png").rename(os.fsdecode("in\x80/".encode() + name))
    Path("in\x80", os.fsdecode(b"damaged\xff\x1b.png")).write_bytes(b"no picture")
    command = ["batch", "r.json", "in\x80", "--out", "out\x9b"]
    assert main([*command, "--summary", summary]) == 1
    shown = capfd.readouterr()
    for each in (Path(summary).read_text("utf-8"), shown.out, shown.err):  # strictly
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", each)
    rows = table(summary)
    for row in rows if summary == "s.csv" else []:
        for key in ("source", "target"):
            if row[key].startswith('"'):
                row[key] = json.loads(row[key])
    done = [row for row in rows if row["status"] == "done"]
    assert {os.fsencode(Path(row["source"]).name) for row in done} == set(ODD_NAMES)
    assert all(Path(row["source"]).exists() and Path(row["target"]).exists() for row in done)
    assert main([*command, "--resume"]) == 1
    assert f"{len(ODD_NAMES)} were done before" in capfd.readouterr().out


@with_pictures
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not allow such names")
def test_names_that_are_too_long_are_failures_of_their_own() -> None:
    """The result of a GIF with the longest name has a longer one; a name given may be too long."""
    PillowImage.fromarray(pixels(9)).save(f"in/{'l' * 251}.gif")
    text = batch(f"in {'x' * 300} --suffix .tiff --out out", status=1).err
    assert "bug" not in text
    assert len(re.findall("failed: .*File name too long", text)) == 2
    assert len(list(Path("out").rglob("*.tiff"))) == 6


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


@each_summary
def test_notices_are_those_of_apply(summary: str) -> None:
    files, named = _with_metadata(Path("in")), 0
    printed = batch(f"in --out out --summary {summary}").err
    rows = {Path(row["source"]).name: row for row in table(summary)}
    Path("one").mkdir()
    for path in files:
        said = run(f"apply --recipe r.json {path} one/{path.name} --json")
        record, lines = json.loads(said.out)["record"], said.err.splitlines()
        expected = list(dict.fromkeys(line.removeprefix("note: ") for line in lines))
        row = rows[path.name]
        if summary == "s.json":
            assert row["notices"] == expected, path.name
            assert row["record"] == record
        else:
            assert row["notices"] == " ".join(expected), path.name
            assert all(row[name] == "; ".join(record[name]) for name in record)
        named += bool(expected)
        for each in expected:  # by one file at least, if several have it
            assert each.replace(path.name, "") in printed.replace(path.name, "")
    assert named >= 7


def test_a_notice_of_many_files_is_printed_once() -> None:
    Path("in").mkdir()
    picture = PillowImage.fromarray(np.stack([pixels(1)] * 3, axis=2)).convert("CMYK")
    for number in range(3):
        picture.save(f"in/{number}.jpg")
    text = batch("in --out out").err
    assert text.count("CMYK converted") == 1
    assert "note: 3 files, such as in/0.jpg: CMYK converted to RGB" in text
    assert "CMYK" not in batch("in --out out --resume").err  # the summary has it again


@each_summary
def test_a_file_that_was_cut_off_is_marked(summary: str) -> None:
    for name in ("a", "b"):
        write(f"in/{name}.png", pixels(1, 99))
    path = Path("in/b.png")
    path.write_bytes(path.read_bytes()[:5000])
    printed = batch(f"in --out out --summary {summary}").out
    assert printed.splitlines()[-1].endswith(" s, 1 cut off")
    assert [row["status"] for row in table(summary)] == ["done", "done, cut off"]


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
    "given", ["--axis y", "--float", "--quality 30", "--nan 7", "--level serial"]
)
def test_options_do_the_same_as_in_apply(given: str) -> None:
    random = np.random.default_rng(1)
    write("in/a.png", pixels(1))
    write("in/b.jpg", pixels(2))
    voxels = random.integers(0, 255, (4, 12, 10), np.uint8)
    write_volume(Volume.from_array(voxels, "head"), "in/head.nii.gz")
    hole = random.random((6, 7, 8), np.float32)
    hole[1, 2, 3] = np.nan
    option = given.split()[0]
    if option == "--nan":
        nibabel.Nifti1Image(hole, np.eye(4)).to_filename("in/hole.nii")
    batch(f"in --out out {given}")
    Path("one").mkdir()
    suits = {"--axis": (".nii.gz",), "--float": (".nii.gz",), "--quality": (".jpg",)}
    names = sorted(path.name for path in Path("in").iterdir())
    for name in names:
        own = given if name.endswith(suits.get(option, (name,))) else ""
        run(f"apply --recipe r.json in/{name} one/{name} {own}")
        assert Path("out", name).read_bytes() == Path("one", name).read_bytes(), name
    if option not in ("--level", "--nan"):
        batch("in --out plain")
        differ = [
            name
            for name in names
            if Path("out", name).read_bytes() != Path("plain", name).read_bytes()
        ]
        assert len(differ) == 1
    shown = batch("in --out out --resume", status=int(option != "--level"))
    if option == "--level":  # it changes no result
        assert "were done before" in shown.out
    else:
        assert "belongs to another recipe, or other options" in shown.err


def test_a_worker_gets_all_options(here: Path) -> None:
    computing = "--block 16x8 --memory-limit 1G --device gpu --level shared"
    line = f"r.json in --out x {computing} --nan 2 --float --quality 7"
    given = _parser().parse_args(line.split())
    options, handling = run_options(vars(given)), _handling(given)
    settings = TaskSettings(read_recipe("r.json"), options, here, handling)
    task = json.loads(describe(0, Item(here / "a", here / "b"), settings))
    assert Field(task["options"], "task").record(RunOptions) == options
    assert Handling(**task["handling"]) == handling == Handling(2.0, True, False, 7)
    assert (options.block, options.memory_limit) == ((16, 8), 1 << 30)


@with_pictures
def test_verbose(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr("kernelscope.cli.batch.log_to_stderr", lambda: shown.append(None))
    caplog.set_level(logging.DEBUG, "kernelscope")
    assert "6 of 6 files" in batch("in --out out --verbose").out
    assert len(shown) == 1
    assert "Read 0.png" in caplog.text
