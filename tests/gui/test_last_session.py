"""Settings survive the death of the process; files of the last session are opened again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDialog, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import RunSettings
from kernelscope.engine.step import Step
from kernelscope.files import SAMPLES
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.tools.preferences import Preferences
from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.messages import ErrorDialog, NoticeDialog
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.last_session import STATE_VERSION, Kept
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import Opener, child, dialog, load, run, settle, shown, write_picture
from tests.gui.test_drops import drop
from tests.gui.test_open_pictures import documents
from tests.gui.test_volume_page import titles, voxels, write
from tests.gui.test_volume_steps import write_film
from tests.patience import PATIENCE

_CHANGE = """
from kernelscope.gui import application
from kernelscope.gui.window import main_window
from kernelscope.gui.window.dock_list import DockName

class Window(main_window.MainWindow):
    def open_first(self, path):
        self.session.set_filter("nlm")
        self.session.set_values("nlm", {"search_radius": 4})
        self.docks[DockName.TIMING].show()
        print("changed", flush=True)

application.MainWindow = Window
application.run(None)
"""


@pytest.mark.slow
def test_settings_survive_a_kill(tmp_path: Path, open_window: Opener, store: Path) -> None:
    written = tmp_path / "kernelscope" / "settings.json"
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    command = [sys.executable, "-c", _CHANGE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "changed\n"
            end = time.monotonic() + PATIENCE
            while not (written.exists() and '"filter": "nlm"' in written.read_text()):
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            os.kill(process.pid, signal.SIGKILL)
    store.write_bytes(written.read_bytes())
    window = open_window(panels=False)
    assert window.session.filter_id == "nlm"
    assert window.session.require().step.parameters["search_radius"] == 4
    assert not window.docks[DockName.TIMING].isHidden()


def test_a_gesture_is_written_once(
    qtbot: QtBot, window: MainWindow, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.session.set_filter("nlm")
    qtbot.waitUntil(lambda: Settings(store).text("filter") == "nlm")
    writes = []
    flush = window.settings.flush
    monkeypatch.setattr(window.settings, "flush", lambda: (writes.append(1), flush()))
    slider = child(window, Slider, "search_radiusSlider")
    for place in range(slider.minimum(), slider.maximum() + 1):
        slider.setValue(place)
    last = str(window.session.require().step.parameters["search_radius"])
    qtbot.waitUntil(lambda: Settings(store).texts("filters/nlm")["search_radius"] == last)
    assert len(writes) == 1


def test_a_layout_is_kept_while_the_window_is_open(
    qtbot: QtBot, window: MainWindow, store: Path
) -> None:
    window.docks[DockName.QUALITY].close()

    def state() -> bytes:
        return bytes(window.saveState(STATE_VERSION).data())

    qtbot.waitUntil(lambda: bytes(Settings(store).blob("state").data()) == state())


def test_preferences_are_seen_and_kept_at_once(
    qtbot: QtBot,
    window: MainWindow,
    store: Path,
    stylist: Stylist,
) -> None:
    window.companions.show_preferences()
    shown: QDialog = dialog(qtbot, window, Preferences)
    for name, text in (("scheme", "Light"), ("textSize", "125 %")):
        box = shown.findChild(QComboBox, name)
        box.setCurrentIndex(box.findText(text))
    assert stylist.appearance == Appearance(Scheme.LIGHT, 1.25) == Appearance.load(Settings(store))
    assert not stylist.is_dark
    shown.reject()
    again = Preferences(window.settings)
    qtbot.addWidget(again)
    assert again.findChild(QComboBox, "scheme").currentText() == "Light"
    assert again.findChild(QComboBox, "textSize").currentText() == "125 %"


def show(qtbot: QtBot, window: MainWindow, name: str) -> None:
    document = next(each for each in documents(window) if each.title == name)
    window.open_pictures.show(document)
    settle(qtbot, window)


def test_the_session_before_is_opened_again_with_its_steps(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    paths = [write_picture(tmp_path / f"{name}.png", seed) for seed, name in enumerate("ab")]
    first = open_window()
    assert not first.actions_["reopenSession"].isEnabled()
    drop(first, paths)
    qtbot.waitUntil(lambda: len(documents(first)) == 2)
    first.session.set_filter("gaussian_noise")
    run(qtbot, first)
    first.page.use_output()
    qtbot.waitUntil(lambda: first.session.subject.result is None)
    first.session.set_filter("median")
    first.session.set_values("median", {"size": 5})
    settle(qtbot, first)
    first.close()

    second = open_window()
    load(qtbot, second, SAMPLES[0].path)
    assert second.actions_["reopenSession"].isEnabled()
    assert second.last_session.offer == "Reopen a.png, b.png"
    second.actions_["reopenSession"].trigger()
    qtbot.waitUntil(lambda: [each.title for each in documents(second)] == ["a.png", "b.png"])
    qtbot.waitUntil(lambda: second.session.subject.input is second.session.subject.source)
    pipeline = second.session.subject.pipeline
    assert pipeline is not None
    assert [each.step.filter.id for each in pipeline.steps] == ["gaussian_noise", "median"]
    assert pipeline.steps[1].step.parameters["size"] == 5


def test_each_file_has_its_own_steps_again(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    """All had those of the last one, also if they were not looked at before the next start."""
    sizes = {"a.png": 5, "b.png": 7, "c.png": 9}
    paths = [write_picture(tmp_path / name, seed) for seed, name in enumerate(sizes)]

    first = open_window()
    drop(first, paths)
    qtbot.waitUntil(lambda: len(documents(first)) == len(sizes))
    for name, size in sizes.items():
        show(qtbot, first, name)
        first.session.set_filter("mean")
        first.session.set_values("mean", {"size": size})
    show(qtbot, first, "b.png")
    first.close()
    for names in (["b.png"], ["b.png", "c.png", "a.png"]):
        window = open_window()
        window.actions_["reopenSession"].trigger()
        settle(qtbot, window)
        assert len(documents(window)) == len(sizes)
        for name in names:
            show(qtbot, window, name)
            assert window.session.require().step.parameters["size"] == sizes[name]
        window.close()


def test_a_picture_whose_other_step_was_chosen_is_opened_again(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    """Its only moment was replaced by one whose input is computed, and its file was dropped."""
    names = ["a.png", "b.png"]
    paths = [write_picture(tmp_path / name, seed) for seed, name in enumerate(names)]
    steps = tuple(RunSettings(Step.create(each)) for each in ("hot_pixels", "median"))
    first = open_window()
    first.session.carried = {paths[1]: Pipeline(steps, place=0)}
    for path in paths:
        load(qtbot, first, path)
    settle(qtbot, first)
    first.steps.edit(1)
    qtbot.waitUntil(lambda: len(first.session.subject.moment.steps) == 1)
    settle(qtbot, first)
    drop(first, [paths[1]])
    settle(qtbot, first)
    assert [each.title for each in documents(first)] == names, "it is open already"
    first.close()
    second = open_window()
    second.actions_["reopenSession"].trigger()
    qtbot.waitUntil(lambda: [each.title for each in documents(second)] == names)
    settle(qtbot, second)
    pipeline = second.session.subject.pipeline
    assert pipeline is not None
    assert [each.step.filter.id for each in pipeline.steps] == ["hot_pixels", "median"]


def test_files_with_channels_and_times_are_opened_again(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    names = ["bold.nii.gz", "film.ome.tif"]
    write(tmp_path / names[0], np.stack([voxels(n) for n in range(3)]))
    write_film(tmp_path / names[1])
    first = open_window()
    drop(first, [tmp_path / names[0]])
    qtbot.waitUntil(lambda: titles(first) == names[:1])
    first.session.set_filter("gaussian_noise")
    drop(first, [tmp_path / names[1]])
    qtbot.waitUntil(lambda: titles(first) == names[1:])
    settle(qtbot, first)
    assert [each.can_sleep for each in documents(first)] == [False, False], "at another volume"
    first.close()

    second = open_window()
    assert second.last_session.offer == "Reopen bold.nii.gz, film.ome.tif"
    second.actions_["reopenSession"].trigger()
    qtbot.waitUntil(lambda: [each.title for each in documents(second)] == names)
    settle(qtbot, second)
    show(qtbot, second, names[1])
    qtbot.waitUntil(lambda: second.files.members.count == 6)


def test_order_front_and_notes_are_as_they_were(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    """The one in front became the first, and “an output saved” became “as opened”."""
    names = ["a.png", "b.png", "c.png", "d.png", "e.nii"]
    paths = [write_picture(tmp_path / name, seed) for seed, name in enumerate(names[:4])]
    write(tmp_path / names[4], voxels(1))

    def tiles(window: MainWindow) -> list[str]:
        strip, role = window.film_strip, Qt.ItemDataRole.AccessibleTextRole
        return [strip.item(row).data(role) for row in range(strip.count())]

    first = open_window()
    drop(first, [*paths, tmp_path / names[4]])
    qtbot.waitUntil(lambda: [each.title for each in documents(first)] == names)
    settle(qtbot, first)
    show(qtbot, first, "b.png")
    run(qtbot, first)
    show(qtbot, first, "a.png")
    run(qtbot, first)
    savable = first.session.subject.output()
    assert savable is not None
    first.file_dialogs.saved.emit(savable, tmp_path / "saved.png")
    show(qtbot, first, "c.png")
    run(qtbot, first)
    first.page.use_output()
    settle(qtbot, first)
    before = tiles(first)
    states = ["an output saved", "output not saved", "has steps", "as opened", "no whole output"]
    for tile, name, state in zip(before, names, states, strict=True):
        assert tile.startswith(name), tile
        assert f", {state}" in tile
    assert before[2].endswith("in front")
    first.close()
    second = open_window()
    second.open_first(None)
    qtbot.waitUntil(lambda: shown(second) == SAMPLES[0].path.name)
    second.actions_["reopenSession"].trigger()
    qtbot.waitUntil(lambda: tiles(second) == before)


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (["gone.png"], NoticeDialog),
        (["gone.nii"], ErrorDialog),
        (["gone.nii", "too.nii"], ErrorDialog),
    ],
)
def test_steps_are_dropped_with_files_that_are_gone(
    qtbot: QtBot,
    window: MainWindow,
    picture: Path,
    tmp_path: Path,
    names: list[str],
    answer: type[QDialog],
) -> None:
    steps = tuple(RunSettings(Step.create(each)) for each in ("gaussian_noise", "median"))
    paths = tuple(tmp_path / name for name in names)
    window.last_session._before = Kept(paths, dict.fromkeys(paths, Pipeline(steps, place=1)))
    window.last_session.reopen()
    dialog(qtbot, window, answer).reject()
    load(qtbot, window, picture)
    settle(qtbot, window)
    pipeline = window.session.subject.pipeline
    assert pipeline is None or len(pipeline.steps) < 2


def test_samples_alone_leave_what_was_kept_before(
    qtbot: QtBot, open_window: Opener, picture: Path
) -> None:
    window = open_window()
    load(qtbot, window, picture)
    window.close()
    window = open_window()
    load(qtbot, window, SAMPLES[0].path)
    window.close()
    assert open_window().last_session.offer == "Reopen ramp.png"


def test_the_sample_of_the_start_has_its_own_filter_and_a_button_opens_the_files(
    qtbot: QtBot, open_window: Opener, picture: Path
) -> None:
    """It had the last filter of a photograph, and looked as if nothing was done to it."""

    def start() -> tuple[MainWindow, QToolButton]:
        window = open_window()
        window.open_first(None)
        qtbot.waitUntil(lambda: shown(window) == SAMPLES[0].path.name)
        (found,) = window.findChildren(QToolButton, "reopenSessionTool")
        return window, found

    window, button = start()
    assert not button.isVisible(), "there is no session before"
    window.session.set_filter("mean")
    window.close()
    window, button = start()
    assert window.session.filter_id == "mean", "the sample was worked on last"
    assert not button.isVisible()
    load(qtbot, window, picture)
    window.session.set_filter("median")
    window.session.set_values("median", {"size": 9})
    window.session.set_filter("nlm")
    window.close()
    window, button = start()
    assert window.session.filter_id == "median"
    assert window.session.require().step.parameters["size"] == 3
    assert button.isVisible()
    assert button.text() == f"Reopen {picture.name}"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(window) == picture.name)
    qtbot.waitUntil(lambda: not button.isVisible())
    assert window.session.filter_id == "nlm"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"files": 3}', '{"files": [3]}', '{"files": null}']
)
def test_damaged_settings_are_no_session(text: str) -> None:
    assert Kept.from_text(text) == Kept()


@pytest.mark.parametrize(
    "more",
    [
        "",
        ', "steps": 3',
        ', "steps": {"/a.png": {"recipe": 3, "off": [], "place": 0}}',
        ', "steps": {"/a.png": {"recipe": "{}", "off": [], "place": 0}}',
    ],
)
def test_files_are_opened_also_if_the_steps_cannot_be_read(more: str) -> None:
    assert Kept.from_text(f'{{"files": ["/a.png"]{more}}}') == Kept((Path("/a.png"),))


def test_steps_that_are_off_and_the_edited_one_are_kept() -> None:
    steps = Pipeline(
        (
            RunSettings(Step.create("median")),
            RunSettings(Step.create("mean", {"size": 7}), on=False),
        ),
        place=0,
    )
    one = Pipeline((RunSettings(Step.create("mean")),), place=0)
    paths = Path("/a.png"), Path("/é.nii"), Path("/b.png")
    kept = Kept(paths, {paths[0]: steps, paths[1]: one})
    assert Kept.from_text(kept.to_text()) == kept
