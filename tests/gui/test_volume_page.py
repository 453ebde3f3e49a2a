"""Volumes in the window: opened, put together, filtered, compared and saved."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image as Pillow
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QInputDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QMessageBox,
    QPushButton,
    QSpinBox,
)
from pytestqt.qtbot import QtBot

from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import RunSettings
from kernelscope.engine.step import Step
from kernelscope.files import read_recipe, write_recipe
from kernelscope.files.names import stem_of
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.filters.shared.mri_sigma import estimate_local
from kernelscope.filters.shared.mri_sigma_map import estimate_smooth
from kernelscope.gui.model import comparison
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.figure import FigurePart
from kernelscope.gui.model.slice_drawing import Projection
from kernelscope.gui.session.subject import Savable
from kernelscope.gui.session.volume_subject import VolumeSubject
from kernelscope.gui.tools.file_dialogs import TogetherDialog
from kernelscope.gui.tools.phantom_dialog import PhantomDialog
from kernelscope.gui.widgets.form import LineEditor, ListEditor
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.widgets.parts import SnugLabel
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.judging.metrics import judge_volume
from kernelscope.images.phantom import Contrast
from kernelscope.images.volume import Among, Volume
from kernelscope.schema.samples import Kind
from tests.files.test_volumes_dicom import OTHER, pixels
from tests.files.test_volumes_dicom import write as write_slice
from tests.gui.helpers import (
    FakeCpu,
    answer,
    child,
    choose_files,
    dialog,
    dropping,
    files_of,
    headline,
    judged_by,
    load,
    press,
    run,
    save_as,
    show_quality,
    wait_until,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("compiled_judging")

SHAPE = (6, 9, 8)


def voxels(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2000, SHAPE).astype(np.int16)


def write(path: Path, array: np.ndarray, affine: np.ndarray | None = None) -> Path:
    """Write voxels, shape (depth, height, width), or several volumes of that shape."""
    axes = (2, 1, 0) if array.ndim == 3 else (3, 2, 1, 0)
    affine = np.diag([1.0, 1.5, 2.0, 1.0]) if affine is None else affine
    nibabel.save(nibabel.Nifti1Image(array.transpose(axes), affine), path)
    return path


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    return write(tmp_path / "T1.nii.gz", voxels())


def titles(window: MainWindow) -> list[str]:
    scan = window.session.volumes.source
    return [] if scan is None else [volume.title for volume in scan.volumes]


def open_scan(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    window.file_dialogs.open(path)
    qtbot.waitUntil(lambda: titles(window) == [path.name] and window.volumes.isVisible())


@pytest.fixture
def scanned(qtbot: QtBot, window: MainWindow, scan: Path) -> MainWindow:
    open_scan(qtbot, window, scan)
    return window


def add(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    before = titles(window)
    window.scans.components.add_wanted.emit([path])
    qtbot.waitUntil(lambda: titles(window) == [*before, path.name])


def caption(window: MainWindow, side: str = "Output") -> str:
    return child(window, QLabel, f"volume{side}Title").toolTip()


def shown_filters(window: MainWindow) -> list[str]:
    combo = child(window, QComboBox, "filter")
    return [combo.itemText(row) for row in range(combo.count())]


# --- opening ---


@pytest.mark.smoke
def test_a_volume_takes_the_place_of_the_picture_and_back(
    qtbot: QtBot, window: MainWindow, scan: Path, picture: Path
) -> None:
    load(qtbot, window, picture)
    window.session.set_filter("mean")
    open_scan(qtbot, window, scan)
    assert not window.pictures.canvas.isVisible()
    assert window.windowTitle() == "T1.nii.gz – Kernelscope"
    assert "8×9×6, 16 bit signed, 1×1.5×2 mm, RAS" in caption(window, "Input")
    assert shown_filters(window)[:2] == ["Volumes", "MRI NLM"]
    assert "Median" in shown_filters(window)
    assert window.session.filter_id == "mri_nlm"
    assert window.settings.recent_files == [scan, picture]
    assert not window.findChild(QAction, "undo").isEnabled()
    assert window.findChild(QAction, "filtermri_nlm").isChecked()

    load(qtbot, window, picture)
    qtbot.waitUntil(window.pictures.canvas.isVisible)
    assert window.session.filter_id == "mean"
    assert "MRI NLM" not in shown_filters(window)
    assert not window.scans.components.isVisible()


def test_a_folder_of_pictures_is_opened(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    folder = tmp_path / "slices"
    folder.mkdir()
    for number in range(3):
        Pillow.fromarray(np.full((5, 7), number, np.uint8)).save(folder / f"s{number}.png")
    window.findChild(QAction, "openFolder").trigger()
    chooser = dialog(qtbot, window, QFileDialog)
    assert chooser.fileMode() == QFileDialog.FileMode.Directory
    choose_files(chooser, folder)
    qtbot.waitUntil(lambda: titles(window) == ["slices"])
    assert window.session.volumes.source.volumes[0].voxels.shape == (3, 5, 7)


def test_one_of_several_series_is_asked_for(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for number in range(4):
        series = {"SeriesInstanceUID": OTHER, "SeriesNumber": 4} if number > 1 else {}
        write_slice(folder / f"{number}.dcm", pixels(number), number, **series)
    window.file_dialogs.open(folder)
    question = dialog(qtbot, window, QInputDialog)
    assert len(question.comboBoxItems()) == 2
    qtbot.keyClick(question.focusWidget(), Qt.Key.Key_Down)  # the list has the focus
    question.accept()
    qtbot.waitUntil(lambda: titles(window) == ["scans"])
    np.testing.assert_array_equal(window.session.volumes.source.volumes[0].voxels[0], pixels(2))


# --- components ---


def test_components_are_added_sorted_shown_and_removed(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path
) -> None:
    add(qtbot, scanned, write(tmp_path / "T2.nii", voxels(1)))
    add(qtbot, scanned, write(tmp_path / "PD.nii", voxels(2)))
    listed = child(scanned, QListWidget, "componentList")
    assert [listed.item(row).text() for row in range(3)] == ["T1.nii.gz", "T2.nii", "PD.nii"]
    listed.setCurrentRow(2)
    assert caption(scanned, "Input").startswith("Input: PD.nii, ")

    listed.model().moveRow(listed.rootIndex(), 2, listed.rootIndex(), 0)  # as dragging does
    qtbot.waitUntil(lambda: titles(scanned) == ["PD.nii", "T1.nii.gz", "T2.nii"])
    assert listed.currentRow() == 0  # the one that was shown still is
    assert caption(scanned, "Input").startswith("Input: PD.nii, ")
    np.testing.assert_array_equal(scanned.session.volumes.source.planes[..., 0], voxels(2))

    listed.setCurrentRow(1)
    listed.setFocus()
    qtbot.keyClick(listed, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: titles(scanned) == ["PD.nii", "T2.nii"])


def test_files_dropped_on_the_list_are_added(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path
) -> None:
    paths = [write(tmp_path / name, voxels(1)) for name in ("a.nii", "b.nii")]
    mime = files_of(paths)
    listed = child(scanned, QListWidget, "componentList")
    event = dropping(mime, at=5)
    listed.dropEvent(event)
    assert event.isAccepted()
    qtbot.waitUntil(lambda: sorted(titles(scanned)) == ["T1.nii.gz", "a.nii", "b.nii"])


def test_volumes_that_do_not_match_are_explained_and_left_out(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path
) -> None:
    scanned.file_dialogs.open_component(write(tmp_path / "small.nii", voxels()[1:]))
    problem = dialog(qtbot, scanned, ErrorDialog)
    texts = " ".join(label.text() for label in problem.findChildren(QLabel))
    assert "T1.nii.gz and small.nii differ in size: 8×9×6 and 8×9×5" in texts
    problem.reject()
    assert titles(scanned) == ["T1.nii.gz"]
    assert scanned.statusBar().currentMessage() == "", "nothing is being opened any more"
    add(qtbot, scanned, write(tmp_path / "T2.nii", voxels(1)))  # the failure is forgotten


# --- running ---


@pytest.mark.smoke
def test_a_run_shows_output_residual_and_timing(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path, cpu: FakeCpu
) -> None:
    add(qtbot, scanned, write(tmp_path / "T2.nii", voxels(1)))
    child(scanned, QLineEdit, "sigma").setText("20, 15")
    run(qtbot, scanned)
    request = cpu.requests[-1]
    assert request.source is scanned.session.volumes.source
    assert request.step.parameters["sigma"] == (20.0, 15.0)
    assert caption(scanned).startswith("Output: CPU parallel, MRI NLM")
    assert "Mvoxel/s" in headline(scanned)
    heading = scanned.runs.table.model().index(0, 0)
    assert heading.data().endswith("8×9×6")
    assert "2 volumes" in heading.data(Qt.ItemDataRole.ToolTipRole)
    assert scanned.volumes.canvas.output.shown is scanned.session.volumes.result.scan.volumes[0]

    press(qtbot, scanned, "F3")
    assert caption(scanned).startswith("Residual: output – input, ×")
    child(scanned, QListWidget, "componentList").setCurrentRow(1)
    assert scanned.volumes.canvas.output.shown is scanned.session.volumes.result.scan.volumes[1]
    press(qtbot, scanned, "F4")
    assert caption(scanned).startswith("Residual"), "there is no reference"
    scanned.set_view(View.DIFFERENCE)  # as it was left with another scan
    assert child(scanned, QLabel, "volumeOutputHint").text() == comparison.NO_REFERENCE


def test_a_filter_of_pictures_runs_slice_by_slice(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu
) -> None:
    scanned.session.set_filter("median")
    run(qtbot, scanned)
    assert len(cpu.requests) == SHAPE[0]
    assert cpu.requests[0].image.planes.shape == (*SHAPE[1:], 1)
    assert caption(scanned).startswith("Output: CPU parallel, Median, ")
    assert caption(scanned).endswith("slice by slice across z")
    scanned.volumes.canvas.choose_plane(2)  # sagittal: across x
    run(qtbot, scanned)
    assert len(cpu.requests) == SHAPE[0] + SHAPE[2]


def test_a_mask_goes_through_the_slices_if_that_is_chosen(
    qtbot: QtBot, window: MainWindow, scan: Path, picture: Path, cpu: FakeCpu
) -> None:
    session, mask = window.session, window.findChild(ListEditor, "maskDimensions")
    assert not mask.isVisibleTo(window)
    open_scan(qtbot, window, scan)
    assert not mask.isVisibleTo(window)  # MRI NLM has its own
    session.set_filter("median")
    session.set_values("median", {"size": 5})
    assert mask.isVisibleTo(window)
    run(qtbot, window)
    flat = len(cpu.requests)
    mask.set_value(True)
    assert session.require().step == Step.create("median_3d", {"size": 5})
    child(window, LineEditor, "size").setText("5, 5, 3")
    run(qtbot, window)
    assert len(cpu.requests) == flat + 1
    assert cpu.requests[-1].step.parameters["size"] == (5, 5, 3)
    assert caption(window).startswith("Output: CPU parallel, Median 3-D, mask size 5, 5, 3 voxels")
    # Other filters follow, as far as they have a mask of voxels.
    session.set_filter("sobel")
    assert session.spec.id == "sobel_3d"
    session.set_filter("nlm")
    assert session.spec.id == "nlm"
    assert not mask.isVisibleTo(window)
    session.set_filter("median")
    mask.set_value(False)
    assert session.require().step == Step.create("median", {"size": 5})
    # An earlier run brings its settings back.
    session.show(RunSettings(Step.create("mean_3d", {"size": (1, 3, 3)})))
    assert mask.value() is True
    assert session.require().step == Step.create("mean_3d", {"size": (1, 3, 3)})
    load(qtbot, window, picture)
    assert not session.in_3d
    assert session.spec.kind is Kind.PICTURE
    assert not mask.isVisibleTo(window)


def test_a_volume_of_another_size_follows_an_output(
    qtbot: QtBot, window: MainWindow, scan: Path, tmp_path: Path
) -> None:
    single = write(tmp_path / "single.nii", voxels()[:1, :4, :3])
    open_scan(qtbot, window, single)
    run(qtbot, window)
    open_scan(qtbot, window, scan)
    run(qtbot, window)
    press(qtbot, window, "Ctrl+PgUp")
    qtbot.waitUntil(lambda: titles(window) == ["single.nii"])
    assert window.volumes.canvas.output.shown.voxels.shape == (1, 4, 3)
    assert window.volumes.canvas.view.position == (0, 2, 1)


def test_what_was_estimated_is_told(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu, tmp_path: Path
) -> None:
    cpu.estimates = {"sigma": (30.9412,)}
    scanned.session.set_values("mri_nlm", {"beta": 1.0})
    run(qtbot, scanned)
    assert scanned.statusBar().currentMessage() == "", "once on the screen is enough"
    assert "sigma from volume, estimated sigma 30.94, beta 1" in caption(scanned)
    sigma = child(scanned, QLineEdit, "sigma")
    assert sigma.placeholderText() == "30.94 (estimated)"
    assert not sigma.isEnabled()
    child(scanned, QComboBox, "sigma_from").setCurrentText("Numbers")
    assert sigma.isEnabled()
    open_scan(qtbot, scanned, write(tmp_path / "T2.nii.gz", voxels()))
    assert sigma.placeholderText() == "estimated", "that was from another scan"
    assert scanned.statusBar().currentMessage().startswith("T2.nii.gz")
    press(qtbot, scanned, "Ctrl+PgUp")
    assert sigma.placeholderText() == "30.94 (estimated)"


def test_a_reference_is_chosen_kept_and_cleared(
    qtbot: QtBot, window: MainWindow, scan: Path, tmp_path: Path
) -> None:
    def choose(path: Path) -> None:
        window.findChild(QAction, "chooseReference").trigger()
        chooser = dialog(qtbot, window, QFileDialog)
        assert chooser.windowTitle() == "Reference Volume"
        choose_files(chooser, path)

    open_scan(qtbot, window, scan)
    show_quality(window)
    choose(write(tmp_path / "small.nii", voxels()[1:]))
    problem = dialog(qtbot, window, ErrorDialog)
    assert "cannot be compared with small.nii" in problem.text()
    problem.reject()
    choose(write(tmp_path / "truth.nii", voxels(7)))
    qtbot.waitUntil(lambda: judged_by(window) == "Compared with truth.nii (chosen)")
    open_scan(qtbot, window, write(tmp_path / "other.nii", voxels(3)))
    qtbot.waitUntil(lambda: judged_by(window) == "Compared with truth.nii (kept from before)")
    open_scan(qtbot, window, write(tmp_path / "low.nii", voxels()[1:]))
    qtbot.waitUntil(lambda: judged_by(window).startswith("No reference"))
    window.findChild(QAction, "inputAsReference").trigger()
    qtbot.waitUntil(lambda: judged_by(window) == "Compared with low.nii (chosen)")
    window.findChild(QAction, "clearReference").trigger()
    qtbot.waitUntil(lambda: judged_by(window).startswith("No reference"))


# --- recipes ---


@pytest.mark.parametrize("radius", [2, (3, 2, 1)])
def test_a_recipe_goes_over_a_volume_and_is_saved_again(
    qtbot: QtBot,
    scanned: MainWindow,
    tmp_path: Path,
    cpu: FakeCpu,
    radius: int | tuple[int, int, int],
) -> None:
    clean = scanned.session.volumes.source.volumes[0]
    steps = (
        Step.create("rician-noise", {"sigma": 0.1}, axis=2),
        Step.create("mri-nlm", {"search_radius": radius, "beta": 0.8765}),
    )
    write_recipe(Recipe(steps), tmp_path / "steps.json")
    press(qtbot, scanned, "Ctrl+Shift+R")
    chooser = dialog(qtbot, scanned, QFileDialog)
    choose_files(chooser, tmp_path / "steps.json")
    qtbot.waitUntil(lambda: scanned.session.volumes.result is not None and not scanned.runner.busy)
    assert [each.step.filter.id for each in cpu.requests] == ["rician_noise"] * SHAPE[2] + [
        "mri_nlm"
    ]
    assert cpu.requests[-1].step.parameters["search_radius"] == radius
    qtbot.waitUntil(lambda: caption(scanned, "Input").endswith("after Rician noise"))
    assert caption(scanned).startswith("Output: CPU parallel, MRI NLM, ")
    assert scanned.session.volumes.reference.image is clean
    scanned.session.show(RunSettings.of(scanned.session.volumes.result.request))
    scanned.findChild(QAction, "saveRecipe").trigger()
    save_as(qtbot, scanned, tmp_path / "again.json")
    assert read_recipe(tmp_path / "again.json").to_json() == Recipe(steps).to_json()
    press(qtbot, scanned, "Ctrl+Z")
    assert scanned.session.volumes.source.volumes == (clean,)


# --- noise ---


@pytest.fixture
def flat(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> np.ndarray:
    """Return the voxels of a flat scan with noise of 20, whose map of noise is shown."""
    voxels = 1000 + np.random.default_rng(5).normal(0, 20, (12, 16, 16))
    voxels = voxels.astype(np.float32)
    open_scan(qtbot, window, write(tmp_path / "flat.nii", voxels))
    press(qtbot, window, "F6")
    qtbot.waitUntil(lambda: caption(window).startswith("Noise: Rician sigma"))
    return voxels


@pytest.mark.slow
def test_noise_around_each_voxel_is_shown_and_saved(
    qtbot: QtBot, window: MainWindow, flat: np.ndarray, tmp_path: Path
) -> None:
    shown = window.volumes.canvas.output.shown
    assert 16 < np.median(shown.voxels) < 24
    np.testing.assert_array_equal(shown.voxels, estimate_smooth(flat))
    window.session.set_values("mri_nlm", {"sigma_from": "local", "window_radius": 1})
    press(qtbot, window, "F6")
    qtbot.waitUntil(lambda: "window radius 1" in caption(window))
    shown = window.volumes.canvas.output.shown
    np.testing.assert_array_equal(shown.voxels, estimate_local(flat, 1))
    assert "map " in child(window, SnugLabel, "pixel").full_text
    window.findChild(QAction, "saveView").trigger()
    save_as(qtbot, window, tmp_path / "noise.nii")
    qtbot.waitUntil((tmp_path / "noise.nii").exists)
    qtbot.waitUntil(lambda: tmp_path / "noise.nii" in window.settings.recent_files)
    np.testing.assert_array_equal(read_volume(tmp_path / "noise.nii").voxels, shown.voxels)
    press(qtbot, window, "F2")
    assert child(window, QLabel, "volumeOutputHint").text() == "Press Run (F5)"


def test_a_map_of_noise_is_marked_when_it_would_be_another(
    qtbot: QtBot, window: MainWindow, flat: np.ndarray, tmp_path: Path
) -> None:
    for name, other, first in (
        ("noise", "gaussian", "auto"),
        ("sigma_from", "local", "volume"),
        ("dimensions", "2d", "3d"),
    ):
        window.session.set_values("mri_nlm", {name: other})
        assert caption(window).startswith("Earlier settings – Noise: "), name
        window.session.set_values("mri_nlm", {name: first})
        assert caption(window).startswith("Noise: "), name
    window.session.set_values("mri_nlm", {"search_radius": 3})
    assert caption(window).startswith("Noise: "), "it has no part in the map"
    window.session.set_values("mri_nlm", {"sigma_from": "local", "window_radius": 1})
    press(qtbot, window, "F6")
    qtbot.waitUntil(lambda: "window radius 1" in caption(window))
    assert caption(window).startswith("Noise: ")
    window.session.set_values("mri_nlm", {"window_radius": 2})
    assert caption(window).startswith("Earlier settings – ")
    tifffile.imwrite(tmp_path / "flat.tif", flat, imagej=True)
    open_scan(qtbot, window, tmp_path / "flat.tif")
    press(qtbot, window, "F6")
    qtbot.waitUntil(lambda: "window radius 2" in caption(window))
    assert caption(window).startswith("Noise: Gaussian sigma"), "a microscope's is not Rician"


def test_a_view_that_is_chosen_while_noise_is_estimated_stays(
    qtbot: QtBot, scanned: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    diagnostic, made_with = scanned.session.volumes.map_of(scanned.session.require())
    go = threading.Event()

    def compute(voxels: np.ndarray, _: object) -> tuple[np.ndarray, str]:
        assert go.wait(PATIENCE)
        return np.ones(voxels.shape, np.float32), "Sigma"

    slow = replace(diagnostic, compute=compute)
    monkeypatch.setattr(VolumeSubject, "map_of", lambda *_: (slow, made_with))
    for keys in (("F6", "F2"), ("F6", "F2", "F6")):
        go.clear()
        for key in keys:
            press(qtbot, scanned, key)
        go.set()
        qtbot.waitUntil(lambda: scanned.statusBar().currentMessage().startswith("Sigma: median 1"))
        shows_map = keys[-1] == "F6"
        assert (scanned.session.volumes.map is not None) is shows_map
        assert scanned.actions_["viewOutput"].isChecked() is not shows_map
        scanned.show_status("")
    for _ in range(2):
        scanned.actions_["viewOutput"].trigger()
        assert scanned.actions_["viewOutput"].isChecked()
        assert scanned.session.volumes.map is None


# --- saving ---


def test_the_shown_output_is_saved_with_its_header(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path
) -> None:
    add(qtbot, scanned, write(tmp_path / "T2.nii", voxels(1)))
    run(qtbot, scanned)
    child(scanned, QListWidget, "componentList").setCurrentRow(1)
    press(qtbot, scanned, "Ctrl+S")
    chooser = dialog(qtbot, scanned, QFileDialog)
    assert chooser.selectedFiles()[0].endswith("T2-mri_nlm")
    assert chooser.nameFilters()[0].startswith("NIfTI, compressed")
    target = tmp_path / "out.nii.gz"
    save_as(qtbot, scanned, target)
    qtbot.waitUntil(lambda: target in scanned.settings.recent_files)
    saved = read_volume(target)
    np.testing.assert_array_equal(saved.voxels, np.rint(voxels(1) / 2).astype(np.int16))
    np.testing.assert_array_equal(saved.affine, np.diag([1.0, 1.5, 2.0, 1.0]))


def test_components_of_one_name_do_not_replace_each_other(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    saved: list[Path] = []
    window.file_dialogs.saved.connect(lambda volume, path: saved.append(path))
    for names in (
        ("T1", "T1"),
        ("T1", "T1", "T1", "T1"),
        ("a", "T1", "t1", "T1"),
        ("a", "T2", "4-T2", "T2"),
        ("out", "out", "a", "2-out"),
    ):
        volumes = [
            replace(Volume.from_array(voxels(seed), f"{name}.nii"), path=Path(f"{seed}/{name}.nii"))
            for seed, name in enumerate(names)
        ]
        saved.clear()
        folder = tmp_path / "-".join(names)
        folder.mkdir()
        window.file_dialogs.save(Savable(volumes, "out"))
        save_as(qtbot, window, folder / "out.nii")
        wait_until(qtbot, lambda names=names: len(saved) == len(names))
        assert len({path.name.casefold() for path in saved}) == len(names)
        for seed, path in enumerate(saved):
            np.testing.assert_array_equal(read_volume(path).voxels, voxels(seed))


def test_what_is_no_file_yet_is_saved_under_a_plain_name() -> None:
    made = Volume.from_array(voxels(), "Phantom T1w, 9 % Rician noise")
    assert stem_of(made) == "Phantom-T1w-9-Rician-noise"
    read = replace(made, path=Path("T1 of A.nii.gz"), title="T1 of A.nii.gz")
    assert stem_of(read) == "T1 of A"
    assert stem_of(replace(read, among=(Among("V", 2, 5),))) == "T1 of A-volume-3"


def test_residual_and_all_components_are_saved(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path
) -> None:
    save = scanned.findChild(QAction, "saveView")
    run(qtbot, scanned)
    assert not save.isEnabled()
    press(qtbot, scanned, "F3")
    assert save.isEnabled()
    save.trigger()
    assert dialog(qtbot, scanned, QFileDialog).selectedFiles()[0].endswith("T1-residual")
    save_as(qtbot, scanned, tmp_path / "residual.nii")
    qtbot.waitUntil(lambda: tmp_path / "residual.nii" in scanned.settings.recent_files)
    saved = read_volume(tmp_path / "residual.nii")
    expected = np.rint(voxels() / 2).astype(np.float32) - voxels()
    np.testing.assert_array_equal(saved.voxels, expected)

    press(qtbot, scanned, "F2")
    save_all = scanned.findChild(QAction, "saveAll")
    run(qtbot, scanned)
    assert not save_all.isEnabled()
    moved = np.array([[1.0, 0, 0, 0.01], [0, 1.5, 0, 0], [0, 0, 2.0, 0], [0, 0, 0, 1]])
    add(qtbot, scanned, write(tmp_path / "T2.nii", voxels(1), moved))
    run(qtbot, scanned)
    press(qtbot, scanned, "Ctrl+Alt+S")
    assert dialog(qtbot, scanned, QFileDialog).selectedFiles()[0].endswith("T1-mri_nlm")
    second = tmp_path / "out-T2.nii.gz"
    second.write_bytes(b"old")
    save_as(qtbot, scanned, tmp_path / "out.nii.gz")
    box = dialog(qtbot, scanned, QMessageBox)
    assert box.text() == "“out-T2.nii.gz” already exists."
    answer(qtbot, box, "Replace")
    qtbot.waitUntil(lambda: second in scanned.settings.recent_files)
    for name, seed, affine in (
        ("out.nii.gz", 0, np.diag([1.0, 1.5, 2.0, 1.0])),
        ("out-T2.nii.gz", 1, moved),
    ):
        saved = read_volume(tmp_path / name)
        np.testing.assert_array_equal(saved.voxels, np.rint(voxels(seed) / 2).astype(np.int16))
        assert saved.affine is not None
        np.testing.assert_allclose(saved.affine, affine, atol=1e-7)


# --- slices and phantoms ---


def test_a_slice_goes_to_the_filters_of_pictures_as_it_is_shown(
    qtbot: QtBot, scanned: MainWindow
) -> None:
    viewer = scanned.volumes.canvas
    viewer.input.views[1].pair.activate(viewer.input.views[1])
    viewer.go_to((2, 3, 4))
    plane, shades = viewer.view.planes[1], viewer.view.display
    scanned.findChild(QAction, "openSlice").trigger()
    qtbot.waitUntil(scanned.pictures.canvas.isVisible)
    image = scanned.pictures.canvas.input.shown
    assert image.title == "T1.nii.gz, coronal 4"
    np.testing.assert_allclose(
        image.pixels, (plane.cut(voxels(), 3) - shades.low) / shades.width, atol=1e-5
    )
    assert not scanned.findChild(QAction, "openSlice").isEnabled()


def test_a_slice_of_16_bits_keeps_its_values_and_the_size_of_its_pixels(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    stack = voxels().astype(np.uint16)
    path = tmp_path / "stack.ome.tif"
    write_volume(Volume.from_array(stack, spacing=(0.002, 0.0005, 0.00025)), path)
    open_scan(qtbot, window, path)
    index = window.volumes.canvas.view.position[0]
    window.findChild(QAction, "openSlice").trigger()
    qtbot.waitUntil(window.pictures.canvas.isVisible)
    image = window.pictures.canvas.input.shown
    assert image.dtype == np.uint16
    np.testing.assert_array_equal(image.pixels, stack[index])
    assert image.metadata.steps == pytest.approx({"y": 0.0005, "x": 0.00025})


def test_a_phantom_is_ordered_made_and_judged(qtbot: QtBot, window: MainWindow) -> None:
    window.findChild(QAction, "newPhantom").trigger()
    order = dialog(qtbot, window, PhantomDialog)
    for name, side in (("width", 20), ("height", 24), ("depth", 16)):
        child(order, QSpinBox, name).setValue(side)
    make = child(order, QPushButton, "makePhantom")
    first_contrast = child(order, QCheckBox, Contrast.T1W.value)
    first_contrast.setChecked(False)
    assert not make.isEnabled(), "there is nothing to be made"
    first_contrast.setChecked(True)
    child(order, QCheckBox, Contrast.T2W.value).setChecked(True)
    qtbot.mouseClick(make, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(titles(window)) == 2)
    first, second = window.session.volumes.source.volumes
    assert first.voxels.shape == (16, 24, 20)
    assert first.title == "Phantom T1w, 9 % Rician noise"
    assert second.title == "Phantom T2w, 9 % Rician noise"
    assert first.orientation == "RPS"
    run(qtbot, window)
    press(qtbot, window, "F4")
    assert caption(window).startswith("Difference: output – reference, ×")
    window.findChild(QDockWidget, "qualityDock").raise_()
    beside = child(window, QLabel, "referenceName")
    qtbot.waitUntil(lambda: beside.text() == "Compared with Phantom T1w (the truth)")
    figures = window.quality.text().splitlines()
    expected = judge_volume(first.voxels, window.session.volumes.reference.image.voxels)
    assert figures[1].split("\t")[:2] == ["PSNR", f"{expected.psnr:.2f} dB"]
    assert expected.peak is not None
    assert f"Range\t0 to {expected.peak:.4g}\t0 to {expected.peak:.4g}\t" in figures
    assert "worse" in figures[1]  # half of everything is further from the truth
    child(window, QListWidget, "componentList").setCurrentRow(1)
    qtbot.waitUntil(lambda: beside.text() == "Compared with Phantom T2w (the truth)")
    assert set(window.quality.histograms.histograms) == {"input", "output"}
    press(qtbot, window, "Ctrl+U")
    qtbot.waitUntil(lambda: window.session.volumes.result is None)
    run(qtbot, window)
    window.set_view(View.DIFFERENCE)
    assert caption(window).startswith("Difference: output – reference, ×")  # the truth stays


def test_the_residual_of_photons_is_in_units_of_its_sigma(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """Noise of 4 levels a photon and a read-out of 3 on a black of 100, by its formula."""
    random = np.random.default_rng(1)
    photons = np.broadcast_to(np.linspace(5, 400, 64), (8, 64, 64))
    stack = 100 + 4 * random.poisson(photons) + random.normal(0, 3, photons.shape)
    metadata: dict[str, object] = {"axes": "ZYX"}
    for axis in "XYZ":
        metadata |= {f"PhysicalSize{axis}": 0.2, f"PhysicalSize{axis}Unit": "µm"}
    path, voxels = tmp_path / "cells.ome.tif", stack.round().astype(np.uint16)
    tifffile.imwrite(path, voxels, ome=True, photometric="minisblack", metadata=metadata)
    open_scan(qtbot, window, path)
    subject, canvas = window.session.volumes, window.volumes.canvas
    window.session.set_filter("volume_dct")

    def residual(noise: str) -> tuple[np.ndarray, str]:
        window.set_view("output")
        window.session.set_values("volume_dct", {"noise": noise})
        run(qtbot, window)
        window.set_view("residual")
        qtbot.waitUntil(lambda: canvas.output.content.is_change)
        return subject.shown_output.voxels.astype(float), canvas.output.content.title

    output, title = residual("gaussian")
    assert title.startswith("Residual: output – input, ×")
    output, title = residual("camera")
    assert title == "Residual: (output – input) / σ of photons and read-out, ×1, up to ±3.98 σ"
    sigmas = np.sqrt(np.maximum(4 * (output - 100), 0) + 9)
    change = (output - voxels) / sigmas
    assert 1 < np.median(np.abs(change)) < 100
    lit = output > 400  # where sigma is that of the photons

    def front() -> np.ndarray:
        layer = canvas.output.views[0].front
        assert layer is not None
        assert layer.planes is not None
        return layer.planes[:, :, 0]

    canvas.go_to((4, 32, 56))
    z, y, x = canvas.view.position
    assert lit[z, y, x - 1]
    np.testing.assert_allclose(front()[lit[z]], change[z][lit[z]], rtol=0.1)
    display = canvas.output.views[0].front.display
    assert (display.low, display.high) == pytest.approx((-128 / 255 * 8, 127 / 255 * 8))
    texts: list[str] = []
    canvas.described.connect(texts.append)
    canvas.go_to((z, y, x - 1))
    read = re.search(r"residual (\S+) σ", texts[-1])
    assert read is not None
    assert float(read[1]) == pytest.approx(change[z, y, x - 1], rel=0.1)
    save = subject.difference()
    assert save is not None
    made = save()
    assert made.name == "cells-residual-in-sigma"
    (saved,) = made.images
    np.testing.assert_allclose(saved.voxels[lit], change[lit], rtol=0.1)
    figure = subject.figure()(View.RESIDUAL, FigurePart.WHOLE)
    assert figure.pictures[2].title == "Residual: (output − input) / σ"
    assert figure.pictures[2].display.high == pytest.approx(display.high), "as in the window"
    assert figure.pictures[2].bar == ("≤ −3.98 σ", "0", "≥ 3.98 σ")
    np.testing.assert_array_equal(figure.pictures[2].planes[:, :, 0], front())
    window.use_input_as_reference()
    figure = subject.figure()(View.DIFFERENCE, FigurePart.WHOLE)
    whole = (output - voxels)[z].astype(np.float32)
    np.testing.assert_array_equal(figure.pictures[2].planes[:, :, 0], whole)
    canvas.view.choose_look(replace(canvas.view.look, projection=Projection.MEAN))
    through = np.asarray(lit.all(0))
    np.testing.assert_allclose(front()[through], change.mean(0)[through], rtol=0.1)


def test_drawn_volumes_are_not_kept_alive(
    qtbot: QtBot, window: MainWindow, scan: Path, tmp_path: Path
) -> None:
    window.open_pictures.documents.limit = 0
    open_scan(qtbot, window, scan)
    first = weakref.ref(window.session.volumes.source.volumes[0])
    open_scan(qtbot, window, write(tmp_path / "other.nii", voxels(3)))

    def gone() -> bool:
        gc.collect()
        return first() is None

    qtbot.waitUntil(gone)


def test_a_volume_on_the_command_line(qtbot: QtBot, window: MainWindow, scan: Path) -> None:
    window.open_first(scan)
    qtbot.waitUntil(lambda: titles(window) == ["T1.nii.gz"])
    assert isinstance(window.session.volumes.source.volumes[0], Volume)


# --- NaN ---


def with_holes() -> np.ndarray:
    array = voxels().astype(np.float32)
    array[0] = np.nan
    return array


def test_nan_in_one_of_several_volumes(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    """It is asked for where it is met first, and the number holds for all volumes."""
    both = np.stack([np.nan_to_num(with_holes()), with_holes(), 3 * with_holes()])
    window.file_dialogs.open(write(tmp_path / "several.nii", both))
    qtbot.waitUntil(lambda: titles(window) == ["several.nii"])
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: "NaN" in dialog(qtbot, window, QInputDialog).labelText())
    asked = dialog(qtbot, window, QInputDialog)
    asked.setTextValue("7")
    asked.accept()
    for number in (1, 2):
        wanted = np.where(np.isnan(both[number]), 7, both[number])
        wait_until(
            qtbot, lambda wanted=wanted: np.array_equal(window.session.volumes.part.voxels, wanted)
        )
        press(qtbot, window, "Alt+.")


def test_a_number_for_nan_is_asked_for_until_it_is_one(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = write(tmp_path / "holes.nii", with_holes())
    for text in ("", "black", "1e39"):
        window.file_dialogs.open(path)
        chooser = dialog(qtbot, window, QInputDialog)
        chooser.setTextValue(text)
        chooser.accept()
        box = dialog(qtbot, window, ErrorDialog)
        assert "no number" in box.text() or "NaN cannot be replaced" in box.text()
        assert titles(window) == []
        box.reject()

    window.file_dialogs.open(path)
    chooser = dialog(qtbot, window, QInputDialog)
    assert "72 of 432 voxels are NaN" in chooser.labelText()
    assert chooser.textValue() == "0"
    line = chooser.findChild(QLineEdit)
    assert line is not None
    assert line.selectedText() == "0"  # or a minus would stand behind it
    qtbot.keyClicks(line, "0,5")
    chooser.accept()
    qtbot.waitUntil(lambda: titles(window) == ["holes.nii"])
    assert "filtered as 0.5, saved as NaN again." in window.statusBar().currentMessage()
    assert (window.session.volumes.source.volumes[0].voxels[0] == 0.5).all()


def test_components_and_references_are_asked_too(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, scan: Path
) -> None:
    path = write(tmp_path / "holes.nii", with_holes())
    open_scan(qtbot, window, scan)
    window.file_dialogs.open_component(path)
    dialog(qtbot, window, QInputDialog).accept()
    qtbot.waitUntil(lambda: titles(window) == [scan.name, "holes.nii"])
    window.file_dialogs.open_reference_volume(path)
    dialog(qtbot, window, QInputDialog).accept()
    qtbot.waitUntil(lambda: window.session.volumes.reference is not None)
    assert window.session.volumes.reference.image.title == "holes.nii"


def test_volumes_dropped_together_share_the_number(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    names = ("a.nii", "b.nii")
    paths = [write(tmp_path / name, n * with_holes()) for n, name in enumerate(names, 1)]
    window.file_dialogs.open_all(paths)
    dialog(qtbot, window, QInputDialog).accept()
    dialog(qtbot, window, TogetherDialog).findChild(QPushButton, "openTogether").click()
    qtbot.waitUntil(lambda: len(titles(window)) == 2)
    assert all(not np.isnan(each.voxels).any() for each in window.session.volumes.source.volumes)


def test_the_view_in_3d_follows_the_page_and_closes_with_the_window(
    qtbot: QtBot, window: MainWindow, scan: Path
) -> None:
    action = window.findChild(QAction, "space")
    assert not action.isEnabled()
    open_scan(qtbot, window, scan)
    action.trigger()
    space = window.files.space.window
    assert space is not None
    qtbot.waitUntil(lambda: space.settled)
    empty = space.views[1].grab().toImage()
    window.volumes.canvas.setFocus()
    run(qtbot, window)
    qtbot.waitUntil(lambda: space.settled and space.views[1].grab().toImage() != empty)
    before = space.views[0].grab().toImage()
    window.volumes.canvas.view.choose(Display(250, 350))
    qtbot.waitUntil(lambda: space.settled and space.views[0].grab().toImage() != before)
    window.close()
    assert not space.isVisible()
