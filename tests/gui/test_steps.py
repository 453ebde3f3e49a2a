"""The panel Steps: steps that are added, switched, moved, edited and undone in the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAction, QFont, QFontMetrics
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.base.errors import DeviceUnavailable
from kernelscope.engine.area import Area
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import Step
from kernelscope.files import write_image
from kernelscope.gui.docks.steps_panel import StepList
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.history import ReferenceOrigin
from kernelscope.gui.model.pipeline import Pipeline, kept_steps
from kernelscope.gui.model.step_rows import StepRow
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from tests.gui.helpers import FakeCpu, Opener, child, load, press, run, wait_until, write_picture
from tests.gui.test_volume_page import open_scan, voxels, write

pytestmark = pytest.mark.usefixtures("compiled_judging", "rests_soon")


def settle(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until the output is exact and nothing is under way."""
    qtbot.waitUntil(
        lambda: (
            not window.session.subject.pending
            and window.session.freshness is Freshness.EXACT
            and window.live.resting
            and not window.session.subject.is_behind
        )
    )
    window.steps.refresh()


def steps(window: MainWindow) -> list[str]:
    """Return the filters of the steps: the edited one with a star, those off in brackets."""
    found = []
    pipeline = window.session.subject.pipeline
    assert pipeline is not None
    for place, settings in enumerate(pipeline.steps):
        name = settings.step.filter.id + "*" * (place == pipeline.place)
        found.append(name if settings.on else f"({name})")
    return found


def take_steps(qtbot: QtBot, window: MainWindow, *filters: str) -> None:
    """Apply filters one after the other; the last one stays edited."""
    for id_ in filters:
        window.session.set_filter(id_)
        settle(qtbot, window)
        if id_ != filters[-1]:
            before = window.session.subject.source
            window.page.use_output()
            wait_until(qtbot, lambda before=before: window.session.subject.source is not before)


@pytest.fixture
def live(qtbot: QtBot, open_window: Opener, picture: Path, cpu: FakeCpu) -> MainWindow:
    """A live window with three steps, of which the last is edited."""
    window = open_window(live=True)
    window.docks[DockName.STEPS].show()
    load(qtbot, window, picture)
    take_steps(qtbot, window, "gaussian_noise", "mean", "median")
    cpu.requests.clear()
    return window


def ran(cpu: FakeCpu) -> list[str]:
    return [request.step.filter.id for request in cpu.requests]


@pytest.mark.smoke
def test_without_steps_there_is_one_card_and_a_hint(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    window.docks[DockName.STEPS].show()
    load(qtbot, window, picture)
    window.session.set_filter("mean")
    window.steps.refresh()
    (row,) = window.steps_panel.steps.rows
    assert (row.settings.step.name, row.edited, row.fresh) == ("Mean", True, False)
    assert "Ctrl+U" in child(window, object, "stepsHint").text()
    assert not window.actions_["deleteStep"].isEnabled()
    run(qtbot, window)
    window.steps.refresh()
    (row,) = window.steps_panel.steps.rows
    assert row.fresh


def test_steps_show_what_they_took_and_the_edited_one_is_shown_alone(
    qtbot: QtBot, live: MainWindow, cpu: FakeCpu
) -> None:
    rows = live.steps_panel.steps.rows
    assert steps(live) == ["gaussian_noise", "mean", "median*"]
    assert all(row.fresh and row.time.endswith("live") for row in rows)
    cpu.go.clear()
    live.session.set_values("median", {"size": 7})
    live.steps.refresh()
    fresh = [row.fresh for row in live.steps_panel.steps.rows]
    assert fresh == [True, True, False]
    assert "out of date" in live.steps_panel.steps.rows[2].describe()
    cpu.go.set()
    settle(qtbot, live)
    assert all(row.fresh for row in live.steps_panel.steps.rows)
    qtbot.waitUntil(lambda: all(r.thumbnail is not None for r in live.steps_panel.steps.rows))

    live.steps.edit(0)
    settle(qtbot, live)
    window_end = live.session.subject.result.output
    live.findChild(QAction, "stepAlone").trigger()
    settle(qtbot, live)
    assert live.session.subject.result.request.then == ()
    assert live.session.subject.result.output is not window_end
    assert live.findChild(QAction, "stepAlone").isChecked()
    live.findChild(QAction, "stepAlone").trigger()
    settle(qtbot, live)
    assert live.session.subject.result.output is window_end


def test_an_earlier_step_is_edited_and_later_ones_follow(
    qtbot: QtBot, live: MainWindow, cpu: FakeCpu
) -> None:
    end = live.session.subject.result.output
    original = live.session.subject.moment.steps[0].source
    live.steps.edit(0)
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise*", "mean", "median"]
    assert live.session.filter_id == "gaussian_noise"
    assert live.session.subject.source is original
    assert live.session.subject.result.output is end
    assert ran(cpu) == []  # nothing was computed to look at it
    live.session.set_values("gaussian_noise", {"variance": 0.02})
    settle(qtbot, live)
    assert ran(cpu)[-3:] == ["gaussian_noise", "mean", "median"]
    live.steps.edit(1)
    settle(qtbot, live)
    cpu.requests.clear()
    live.session.set_values("mean", {"size": 7})
    settle(qtbot, live)
    assert set(ran(cpu)) == {"mean", "median"}  # the earlier step is kept
    shown = live.pictures.canvas.output.shown
    np.testing.assert_array_equal(shown.pixels, live.session.subject.result.parts[-1].output.pixels)


def test_switching_a_step_off_and_undo(qtbot: QtBot, live: MainWindow, cpu: FakeCpu) -> None:
    end = live.session.subject.result.output
    live.steps.switch(0)
    settle(qtbot, live)
    assert steps(live) == ["(gaussian_noise)", "mean", "median*"]
    assert ran(cpu)[:2] == ["mean", "median"]
    assert live.session.subject.moment.steps[0].step.filter.id == "mean"
    assert live.findChild(QAction, "undo").text() == "&Undo Switch Off Gaussian noise"
    press(qtbot, live, "Ctrl+Z")
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise", "mean", "median*"]
    assert live.session.subject.result.output is end
    cpu.requests.clear()
    press(qtbot, live, "Ctrl+Y")
    settle(qtbot, live)
    assert steps(live) == ["(gaussian_noise)", "mean", "median*"]
    assert ran(cpu) == []


def test_the_edited_step_goes_off_and_the_form_goes_on(qtbot: QtBot, live: MainWindow) -> None:
    live.steps.switch(2)
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise", "mean*", "(median)"]
    assert live.session.filter_id == "mean"
    live.steps.edit(2)
    assert "switch it on first" in live.statusBar().currentMessage()
    live.steps.switch(1)
    settle(qtbot, live)
    live.steps.switch(0)
    assert steps(live) == ["gaussian_noise*", "(mean)", "(median)"]
    assert "stays on" in live.statusBar().currentMessage()


def test_keys_move_switch_and_edit(qtbot: QtBot, live: MainWindow) -> None:
    list_ = live.steps_panel.steps
    list_.setFocus()
    list_.setCurrentRow(2)
    press(qtbot, live, "Alt+Up")
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise", "median*", "mean"]
    assert list_.currentRow() == 1
    press(qtbot, live, "Alt+Up")
    settle(qtbot, live)
    assert steps(live) == ["median*", "gaussian_noise", "mean"]
    list_.setFocus()
    list_.setCurrentRow(2)
    qtbot.keyClick(list_, Qt.Key.Key_Space)
    settle(qtbot, live)
    assert steps(live) == ["median*", "gaussian_noise", "(mean)"]
    list_.setCurrentRow(1)
    qtbot.keyClick(list_, Qt.Key.Key_Return)
    settle(qtbot, live)
    assert steps(live) == ["median", "gaussian_noise*", "(mean)"]
    list_.setCurrentRow(2)
    qtbot.keyClick(list_, Qt.Key.Key_Delete)
    settle(qtbot, live)
    assert steps(live) == ["median", "gaussian_noise*"]


def test_the_mouse_switches_edits_and_drops(qtbot: QtBot, live: MainWindow) -> None:
    list_ = live.steps_panel.steps
    area = list_.visualRect(list_.model().index(0, 0))
    switch = list_.switch_of(area).center()
    qtbot.mouseClick(list_.viewport(), Qt.MouseButton.LeftButton, pos=switch)
    settle(qtbot, live)
    assert steps(live) == ["(gaussian_noise)", "mean", "median*"]
    area = list_.visualRect(list_.model().index(1, 0))
    qtbot.mouseClick(list_.viewport(), Qt.MouseButton.LeftButton, pos=area.center())
    settle(qtbot, live)
    assert steps(live) == ["(gaussian_noise)", "mean*", "median"]
    upper, lower = QPoint(area.center().x(), area.top() + 2), QPoint(20, area.bottom() - 2)
    assert [list_.drop_place(point, 0) for point in (upper, lower)] == [0, 1]
    assert [list_.drop_place(point, 2) for point in (upper, lower)] == [1, 2]
    assert list_.drop_place(QPoint(5, 5000), 0) == 2
    list_.moved.emit(0, 2)
    settle(qtbot, live)
    assert steps(live) == ["mean*", "median", "(gaussian_noise)"]


def test_run_measures_the_edited_step_and_references_stay(
    qtbot: QtBot, live: MainWindow, cpu: FakeCpu
) -> None:
    live.steps.edit(1)
    settle(qtbot, live)
    press(qtbot, live, "F5")
    qtbot.waitUntil(lambda: len(live.session.gallery) == 1 and not live.runner.busy)
    settle(qtbot, live)
    assert ran(cpu) == ["mean", "median"]
    (listed,) = live.session.gallery
    assert listed.run_settings.step.filter.id == "mean"
    assert listed.result is live.session.subject.result.parts[0]  # not the end of the steps
    assert len(live.session.subject.result.parts) == 2

    reference = live.session.subject.reference
    assert reference.origin is ReferenceOrigin.NOISE
    live.steps.edit(0)
    settle(qtbot, live)
    live.steps.edit(2)
    settle(qtbot, live)
    assert live.session.subject.reference.image is reference.image
    outputs, request = live.session.subject.history.outputs, live.session.subject.result.request
    result = outputs.find(request.source, request.step)
    assert result is not None
    facts = outputs.facts(result)
    qtbot.waitUntil(lambda: facts.judgement is not None)
    assert facts.reference is reference.image


def test_an_evicted_input_is_computed_again(qtbot: QtBot, live: MainWindow, cpu: FakeCpu) -> None:
    outputs = live.session.subject.history.outputs
    outputs.limit = 1
    live.session.set_values("median", {"size": 7})
    settle(qtbot, live)
    live.steps.edit(0)
    settle(qtbot, live)
    cpu.requests.clear()
    live.steps.edit(2)
    qtbot.waitUntil(lambda: steps(live)[2].endswith("*") and live.session.filter_id == "median")
    settle(qtbot, live)
    assert ran(cpu)[:2] == ["gaussian_noise", "mean"]


def status(window: MainWindow) -> str:
    return window.statusBar().currentMessage()


def test_a_picture_that_is_opened_gets_the_steps(
    qtbot: QtBot, live: MainWindow, picture: Path, cpu: FakeCpu
) -> None:
    live.steps.switch(1)
    settle(qtbot, live)
    before, end = steps(live), live.session.subject.result.output
    other = write_picture(picture.with_name("other.png"), 5)
    load(qtbot, live, other)
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise*", "(mean)", "median"]
    assert live.session.filter_id == "gaussian_noise"
    assert live.session.subject.result.request.image.title == "other.png"
    assert [each.step.filter.id for each in live.session.subject.result.requests] == [
        "gaussian_noise", "median",
    ]  # fmt: skip
    press(qtbot, live, "Ctrl+PgUp")
    settle(qtbot, live)
    assert steps(live) == before
    assert live.session.subject.result.output is end
    assert live.session.filter_id == "median"


@pytest.mark.parametrize("fails", [False, True])
def test_a_large_picture_gets_its_steps_once_a_part_of_each_was_measured(
    qtbot: QtBot, live: MainWindow, picture: Path, cpu: FakeCpu, fails: bool
) -> None:
    """A step that fails is not measured for ever."""
    pixels = np.random.default_rng(1).integers(0, 256, (200, 200), np.uint16)
    write_image(Image.from_array(pixels, "large"), picture.with_name("large.png"))
    cpu.error = DeviceUnavailable("The card is busy.", "Wait.") if fails else None
    load(qtbot, live, picture.with_name("large.png"))
    if fails:
        badge = live.live.badge
        qtbot.waitUntil(lambda: "The card is busy." in badge.full_text)
        qtbot.waitUntil(lambda: live.live.resting)
        assert len(cpu.requests) == 1
        return
    settle(qtbot, live)
    *parts, noise, mean, median = cpu.requests
    whole = [noise, mean, median]
    assert [each.image.shape[:2] for each in whole] == [(200, 200)] * 3
    assert all(each.image.shape[0] < 110 for each in parts)
    measured = dict.fromkeys(each.step.filter.id for each in parts)
    assert list(measured) == ["gaussian_noise", "mean", "median"]


def test_the_steps_that_are_kept_are_named(qtbot: QtBot, live: MainWindow, picture: Path) -> None:
    load(qtbot, live, write_picture(picture.with_name("other.png"), 5))
    assert status(live).endswith("Its steps: Gaussian noise, Mean and Median.")


def test_pictures_that_join_get_the_steps_when_they_are_looked_at(
    qtbot: QtBot, live: MainWindow, picture: Path
) -> None:
    paths = [write_picture(picture.with_name(f"{n}.png"), n) for n in range(2)]
    live.open_pictures.open_all(paths)
    wait_until(qtbot, lambda: len(live.open_pictures.documents) == 3)
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise*", "mean", "median"]
    live.steps.delete(1)
    settle(qtbot, live)
    live.open_pictures.step(1)
    wait_until(qtbot, lambda: live.session.subject.source.title == "1.png")
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise*", "median"]
    live.open_pictures.step(1)
    settle(qtbot, live)
    assert steps(live) == ["gaussian_noise", "mean", "median*"], "it has steps of its own"


def test_steps_go_to_volumes_and_back_as_far_as_they_fit(
    qtbot: QtBot, live: MainWindow, picture: Path, tmp_path: Path
) -> None:
    live.session.set_border(Border.VALID)
    settle(qtbot, live)
    open_scan(qtbot, live, write(tmp_path / "head.nii", voxels()))
    assert steps(live) == ["gaussian_noise*", "mean"]
    assert live.session.filter_id == "gaussian_noise"
    assert "Not applied: Median. Slices have to keep their size" in status(live)
    live.session.set_filter("mri_nlm")
    wait_until(qtbot, lambda: not live.runner.busy)
    assert steps(live) == ["mri_nlm*", "mean"]
    load(qtbot, live, write_picture(picture.with_name("other.png"), 5))
    settle(qtbot, live)
    assert steps(live) == ["mean*"]
    assert "Not applied: MRI NLM. MRI NLM is for volumes; other.png is a picture." in status(live)


def test_the_next_volume_of_a_file_and_other_volumes_get_the_steps(
    qtbot: QtBot, live: MainWindow, tmp_path: Path
) -> None:
    file = write(tmp_path / "several.nii", np.stack([voxels(3), voxels(4)]))
    open_scan(qtbot, live, file)
    assert steps(live) == ["gaussian_noise*", "mean", "median"]
    before = live.session.subject.source
    live.files.members.next()
    wait_until(qtbot, lambda: live.session.subject.source is not before)
    assert steps(live) == ["gaussian_noise*", "mean", "median"]
    open_scan(qtbot, live, write(tmp_path / "head.nii", voxels()))
    assert steps(live) == ["gaussian_noise*", "mean", "median"]
    live.scans.add(Volume.from_array(voxels(1), "T2"))
    wait_until(qtbot, lambda: len(live.session.subject.source.volumes) == 2)
    assert steps(live) == ["gaussian_noise*", "mean", "median"]


def test_what_belongs_to_one_picture_is_not_applied_to_another() -> None:
    small = Image.from_array(np.zeros((20, 30), np.uint8), "small.png")
    area = Area.parse("rectangle 40,40 60,60")
    inside = RunSettings(Step.create("median", within=area))
    kept = kept_steps(Pipeline((RunSettings(Step.create("nlm")), inside), 1), small, 0)
    assert kept is not None
    assert [each.step.filter.id for each in kept.pipeline.steps] == ["nlm"]
    assert kept.pipeline.present.step.estimates == Step.create("nlm").estimates, (
        "estimated for this picture anew"
    )
    ((name, why),) = kept.lost
    assert name == "Median"
    assert why.endswith("lies outside of small.png.")
    nlm = Step.create("nlm")
    made = Request(small, nlm.with_numbers({"sigma": 3.0}), estimated=True)
    pipeline = Pipeline.of([made], inside)
    assert pipeline.steps[0].step.estimates == ()
    assert pipeline.reopened([made]).steps[0].step == nlm
    alone = RunSettings(Step.create("mri_nlm"))
    assert kept_steps(Pipeline((alone, alone), 0), small, 0) is None


def test_cards_do_not_follow_to_the_other_page(
    qtbot: QtBot, live: MainWindow, tmp_path: Path
) -> None:
    """A picture that was being read took the place of volumes whose step was being copied."""
    open_scan(qtbot, live, write(tmp_path / "head.nii", voxels()))
    live.session.set_filter("mean")
    wait_until(qtbot, lambda: not live.runner.busy)
    pictures, volumes = live.session.subjects
    result = volumes.source
    live.steps.duplicate()
    live.session.bring_to_front(pictures)
    wait_until(qtbot, lambda: not live.background.owes)
    assert pictures.moment.source is not result
    assert volumes.source is result


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_names_of_steps_are_whole_where_the_panel_is_narrowest(qtbot: QtBot, scale: float) -> None:
    """*Collaborative filtering* was cut beside its gain."""
    listed = StepList()
    qtbot.addWidget(listed)
    font = listed.font()
    font.setPointSizeF(font.pointSizeF() * scale)
    listed.setFont(font)
    image = Image.from_array(np.zeros((9, 9), np.uint8))
    names = sorted(filters.discover())
    rows = [
        StepRow(
            RunSettings.of(Request.create(image, name)), n, n + 1, n == 0, True, gain="+12.3 dB"
        )
        for n, name in enumerate(names)
    ]
    listed.show_rows(rows)
    listed.resize(listed.minimumSizeHint().width(), 9999)
    listed.show()
    bold = QFont(listed.font())
    bold.setBold(True)
    for number, row in enumerate(rows):
        area = listed.visualItemRect(listed.item(number))
        room = listed.text_room(area)
        lines = QFontMetrics(bold).boundingRect(
            QRect(0, 0, room.width(), 0), Qt.TextFlag.TextWordWrap, row.settings.step.name
        )
        assert lines.width() <= room.width(), row.settings.step.name
        below = 2 * listed.fontMetrics().height()
        assert lines.height() + below <= room.height(), row.settings.step.name
    heights = {listed.visualItemRect(listed.item(n)).height() for n in range(len(rows))}
    assert len(heights) == 2, "one line or two"
