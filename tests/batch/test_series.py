"""DICOM series in a batch: one item each, as ``apply`` reads them."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.uid import BasicTextSRStorage, generate_uid

from kernelscope.base.once import once
from kernelscope.big.batch import task
from kernelscope.big.batch.item import FileState, Item
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import find_items
from kernelscope.big.batch.task import OPEN, TaskSettings, describe, filter_file, finish
from kernelscope.big.workers import worker_tools
from kernelscope.cli.main import main
from kernelscope.engine.backend import close_all
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import read_image, write_image, write_recipe
from kernelscope.files.formats import Unreadable
from kernelscope.files.volumes import dicom, read_volume
from kernelscope.images.image import Image
from tests.files.test_volumes_dicom import pixels
from tests.files.test_volumes_dicom import write as write_slice

RECIPE = Recipe((Step.create("median", {"size": 3}),))
OTHER = generate_uid()
NAMES: dict[str, Callable[[int], str]] = {
    "suffix": "IM{}.dcm".format,
    "capitals": "IM{}.IMA".format,
    "none": "IM{}".format,
    "numbers": "I.{:03}".format,
    "identifiers": "1.2.840.113619.2.{}".format,
}


def series(folder: Path, name: Callable[[int], str] = "IM{}".format, **tags: Any) -> Path:
    """Write four slices."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(4):
        write_slice(folder / name(index), pixels(index), index, **tags)
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_recipe(RECIPE, tmp_path / "median.recipe.json")
    return tmp_path / "median.recipe.json"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def batch(*arguments: object) -> int:
    return main(["batch", *map(str, arguments)])


def targets(found: list[Item], out: Path) -> list[str]:
    return sorted(each.target.relative_to(out).as_posix() for each in found)


def applied(recipe: Path, source: Path) -> Path:
    """Return the result of ``apply``."""
    target = recipe.with_name("applied.nii.gz")
    assert main(["apply", "--recipe", str(recipe), str(source), str(target), "--quiet"]) == 0
    return target


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tools = once(inspect.unwrap(worker_tools))  # closed at the end, unlike those of a process
    monkeypatch.setattr(task, "worker_tools", tools)
    yield
    close_all(tools(1)[0].values())


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_series_is_one_item_whatever_its_files_are_called(
    name: Callable[[int], str], tmp_path: Path, out: Path
) -> None:
    folder = series(tmp_path / "in/scan", name)
    for given, target in ((tmp_path / "in", "scan.nii.gz"), (folder, "scan.nii.gz")):
        (item,) = find_items([given], out).items
        assert item.target == out / target
        assert item.source == folder / name(0)
        assert item.slices == tuple(folder / name(index) for index in range(4))
    (item,) = find_items([folder], out, ".tif").items
    assert item.target == out / "scan.tif"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_slices_that_are_inputs_are_one_item_with_all_of_their_series(
    name: Callable[[int], str], tmp_path: Path, out: Path
) -> None:
    folder = series(tmp_path / "scan", name)
    (item,) = find_items([folder / name(2), folder / name(1), folder], out).items
    stem = name(2).removesuffix(".dcm").removesuffix(".IMA")
    assert (item.source, item.target) == (folder / name(2), out / f"{stem}.nii.gz")
    assert len(item.slices) == 4


def test_several_series_of_a_folder_and_whatever_lies_beside_them(
    tmp_path: Path, out: Path
) -> None:
    folder = series(tmp_path / "in/scan")
    series(folder, "T2_{}".format, SeriesInstanceUID=OTHER, SeriesNumber=4,
           SeriesDescription="../T2 w: <b>\x07")  # fmt: skip
    series(folder, "T2b_{}".format, SeriesInstanceUID=generate_uid(), SeriesNumber=4,
           SeriesDescription="T2 w: <B>")  # fmt: skip
    series(folder, "nameless{}".format, SeriesInstanceUID=generate_uid(), SeriesNumber=None,
           SeriesDescription=None)  # fmt: skip
    series(tmp_path / "in/deep/er")
    write_image(Image.from_array(pixels(1)), folder / "a.png")
    colour = np.zeros((5, 6, 3), np.uint8)
    how: dict[str, Any] = {
        "PhotometricInterpretation": "RGB",
        "SamplesPerPixel": 3,
        "PlanarConfiguration": 0,
    }
    write_slice(folder / "1.2.3", colour, 0, SeriesInstanceUID=generate_uid(), **how)
    write_slice(folder / "1.2.4", colour, 0, SeriesInstanceUID=generate_uid(), **how)
    write_slice(folder / "report", pixels(0), 0, PixelData=b"")
    report = pydicom.dcmread(folder / "report")
    del report.PixelData, report.Rows
    report.file_meta.MediaStorageSOPClassUID = report.SOPClassUID = BasicTextSRStorage
    report.save_as(folder / "report")
    (folder / "notes.txt").write_text("notes", encoding="utf-8")
    found = find_items([tmp_path / "in"], out)
    assert targets(found.items, out) == [
        "deep/er.nii.gz",
        "scan/1.2.3.tif",
        "scan/1.2.4.tif",
        "scan/2-4-T2-w-B.nii.gz",
        "scan/3-T1w.nii.gz",
        "scan/4-T2-w-b.nii.gz",
        "scan/a.png",
        "scan/series.nii.gz",
    ]
    assert found.left_out == 2
    assert sorted(len(each.slices) for each in found.items) == [0, 0, 0, 4, 4, 4, 4, 4]


def test_results_are_those_of_apply(recipe: Path, tmp_path: Path, out: Path) -> None:
    series(tmp_path / "in/scan")
    write_image(Image.from_array(pixels(1)), tmp_path / "in/a.png")
    summary = tmp_path / "s.json"
    assert batch(recipe, tmp_path / "in", "--out", out, "--summary", summary) == 0
    one = applied(recipe, tmp_path / "in/scan")
    assert (out / "scan.nii.gz").read_bytes() == one.read_bytes()
    made = read_volume(out / "scan.nii.gz")
    assert made.voxels.shape == (4, 5, 6)
    assert made.spacing == pytest.approx((2.5, 0.5, 0.75))
    assert read_image(out / "a.png").pixels.shape == (5, 6)
    rows = {Path(row["target"]).name: row for row in json.loads(summary.read_text())["files"]}
    assert rows.keys() == {"a.png", "scan.nii.gz"}
    assert rows["scan.nii.gz"]["size"] == "6×5×4"
    assert rows["scan.nii.gz"]["notices"] == [
        "scan.nii.gz is saved without DICOM tags of the input.",
    ]


def _rewrite(folder: Path) -> None:
    write_slice(folder / "IM2", pixels(3), 2)


def _touch(folder: Path) -> None:
    state = (folder / "IM3").stat()
    os.utime(folder / "IM3", ns=(state.st_atime_ns, state.st_mtime_ns - 10**9))


def _add(folder: Path) -> None:
    write_slice(folder / "IM4", pixels(4), 4)


def _remove(folder: Path) -> None:
    (folder / "IM3").unlink()


@pytest.mark.parametrize("change", [None, _rewrite, _touch, _add, _remove])
def test_a_series_is_filtered_again_if_any_slice_has_changed(
    change: Callable[[Path], None] | None,
    recipe: Path,
    tmp_path: Path,
    out: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = series(tmp_path / "scan")
    assert batch(recipe, folder, "--out", out) == 0
    if change is not None:
        change(folder)
    capsys.readouterr()
    assert batch(recipe, folder, "--out", out, "--resume", "--overwrite") == 0
    text = capsys.readouterr().out
    assert ("1 of 1" if change is not None else "1 were done before") in text
    depth = 5 if change is _add else 3 if change is _remove else 4
    assert read_volume(out / "scan.nii.gz").voxels.shape == (depth, 5, 6)


@pytest.mark.parametrize("kind", ["cut off", "no header", "no DICOM"])
@pytest.mark.parametrize("number", [1, 3])
def test_no_series_is_read_without_its_damaged_slice(
    kind: str, number: int, recipe: Path, tmp_path: Path, out: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Each of two series may be that of the damaged file; so is it with ``apply``."""
    folder = series(tmp_path / "in/scan")
    series(folder, "T2_{}".format, SeriesInstanceUID=OTHER, SeriesNumber=4)
    series(tmp_path / "in/good")
    data = (folder / f"IM{number}").read_bytes()
    damaged = {"cut off": data[:-30], "no header": data[:200], "no DICOM": b"text"}
    (folder / f"IM{number}").write_bytes(damaged[kind])
    summary = tmp_path / "s.json"
    assert batch(recipe, tmp_path / "in", "--out", out, "--summary", summary) == 1
    rows = json.loads(summary.read_text())["files"]
    failed = [row for row in rows if row["status"] == "failed"]
    # Its own header names the series, if it is complete.
    assert len(failed) == (1 if kind == "cut off" else 2)
    assert all(f"IM{number}" in row["reason"] for row in failed)
    assert len(rows) == 3
    assert (out / "good.nii.gz").exists()
    assert f"IM{number}" in capsys.readouterr().err


@pytest.mark.parametrize("beside", [False, True])
def test_files_that_must_not_be_read_count_if_they_may_be_slices(
    beside: bool, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = series(tmp_path / "scan") if beside else tmp_path
    for name in ("notes.txt", "closed.dcm"):
        (folder / name).write_bytes(b"")
    write_image(Image.from_array(pixels(1)), folder / "a.png")
    is_dicom = dicom.is_dicom

    def closed(path: Path) -> bool:
        if path.suffix in (".txt", ".dcm"):
            raise Unreadable(f"{path.name} cannot be read (Permission denied).")
        return is_dicom(path)

    monkeypatch.setattr(dicom, "is_dicom", closed)
    found = find_items([folder], out)
    sources = {item.source.name: {each.name for each in item.slices} for item in found.items}
    names = {f"IM{index}" for index in range(4)}
    if beside:
        assert sources == {"IM0": {*names, "notes.txt", "closed.dcm"}, "a.png": set()}
    else:
        assert sources == {"closed.dcm": set(), "a.png": set()}
        assert found.left_out == 1


def test_slices_of_a_series_may_be_described_in_several_ways(tmp_path: Path, out: Path) -> None:
    folder = series(tmp_path / "scan")
    write_slice(folder / "IM2", pixels(2), 2, SeriesDescription="T1w, again", SeriesNumber=8)
    for given in (folder, folder / "IM2"):
        (item,) = find_items([given], out).items
        assert len(item.slices) == 4


def test_a_damaged_file_alone_is_a_failure_of_its_own(
    recipe: Path, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = series(tmp_path / "scan")
    for file in list(folder.iterdir())[1:]:
        file.unlink()
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:200])
    assert batch(recipe, folder, "--out", out) == 1
    text = capsys.readouterr().err
    assert "damaged or cut off" in text or "cut off or damaged" in text
    assert "volume" not in text


@pytest.mark.parametrize("place", ["scan", "."])
def test_a_series_is_compared_with_the_series_of_its_place(
    place: str, recipe: Path, tmp_path: Path, out: Path
) -> None:
    series(tmp_path / "in" / place)
    series(tmp_path / "ideal" / place, "ideal{}.dcm".format)
    summary = tmp_path / "s.json"
    given = [recipe, tmp_path / "in", "--out", out, "--summary", summary, "--overwrite"]
    assert batch(*given, "--reference", tmp_path / "ideal") == 0
    (row,) = json.loads(summary.read_text())["files"]
    assert (row["psnr_before"], row["note"]) == ("inf", "")
    (tmp_path / "none").mkdir()
    assert batch(*given, "--reference", tmp_path / "none") == 0
    (row,) = json.loads(summary.read_text())["files"]
    assert row["note"] == "There is no reference."


@pytest.mark.usefixtures("worker")
def test_a_worker_gets_all_slices(recipe: Path, tmp_path: Path, out: Path) -> None:
    series(tmp_path / "scan")
    (item,) = find_items([tmp_path / "scan"], out).items
    settings = TaskSettings(RECIPE, RunOptions(), tmp_path / "parts", threads=1)
    settings.parts.mkdir()
    (settings.parts / OPEN).touch()
    answer = filter_file(describe(0, item, settings))
    assert json.loads(describe(0, item, settings))["slices"] == list(map(str, item.slices))
    journal = Journal(out, RECIPE)
    outcome = finish(item, answer, settings, journal)
    journal.close()
    assert outcome.status is FileState.DONE
    assert outcome.report.notices[-1] == "scan.nii.gz is saved without DICOM tags of the input."
    assert item.target.read_bytes() == applied(recipe, tmp_path / "scan").read_bytes()
    journal = Journal(out, RECIPE, resume=True)
    assert journal.is_done(item)
    assert journal.report(item) == outcome.report
    journal.close()


def test_no_result_leaves_the_output_folder(tmp_path: Path, out: Path) -> None:
    """Names collide, and one input is written with “..”."""
    (tmp_path / "deep").mkdir()
    for folder in (tmp_path, tmp_path / "deep"):
        write_image(Image.from_array(pixels(1)), folder / "a.png")
    found = find_items([tmp_path / "deep/../a.png", tmp_path / "deep/a.png"], out).items
    assert targets(found, out) == ["a.png", "deep/a.png"]
    assert all(".." not in each.target.parts for each in found)
