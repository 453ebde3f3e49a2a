"""The files and steps of the session before, opened again."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import RunSettings
from kernelscope.engine.step import Step
from kernelscope.files import SAMPLES
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.widgets.messages import ErrorDialog, NoticeDialog
from kernelscope.gui.window.last_session import Kept
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import Opener, dialog, load, run, settle, write_picture
from tests.gui.test_drops import drop
from tests.gui.test_open_pictures import documents


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
    assert second.last_session.offer.startswith("File > Reopen Last Session opens a.png and 1 more")
    second.actions_["reopenSession"].trigger()
    qtbot.waitUntil(lambda: [each.title for each in documents(second)] == ["a.png", "b.png"])
    qtbot.waitUntil(lambda: second.session.subject.input is second.session.subject.source)
    pipeline = second.session.subject.pipeline
    assert pipeline is not None
    assert [each.step.filter.id for each in pipeline.steps] == ["gaussian_noise", "median"]
    assert pipeline.steps[1].step.parameters["size"] == 5


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
    window.last_session._before = Kept(paths, Pipeline(steps, place=1))
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
    assert open_window().last_session.offer == ("File > Reopen Last Session opens ramp.png again.")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"files": 3}', '{"files": [3]}', '{"files": null}']
)
def test_damaged_settings_are_no_session(text: str) -> None:
    assert Kept.from_text(text) == Kept()


@pytest.mark.parametrize(
    "more", ["", ', "recipe": 3, "off": [], "place": 0', ', "recipe": "{}", "off": [], "place": 0']
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
    kept = Kept((Path("/a.png"), Path("/é.nii")), steps)
    assert Kept.from_text(kept.to_text()) == kept
