"""The panel Steps with volumes: steps of filters for slices and for volumes, of all components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import FakeCpu, Opener, press
from tests.gui.test_steps import ran, settle, steps, take_steps
from tests.gui.test_volume_page import add, open_scan, voxels, write
from tests.gui.test_volume_steps import COUNT

pytestmark = pytest.mark.usefixtures("compiled_judging", "rests_soon")


@pytest.fixture
def live(qtbot: QtBot, open_window: Opener, tmp_path: Path, cpu: FakeCpu) -> MainWindow:
    """A live window with a scan of two components and three steps, the last of which is edited."""
    window = open_window(live=True)
    window.docks[DockName.STEPS].show()
    open_scan(qtbot, window, write(tmp_path / "T1.nii", voxels()))
    add(qtbot, window, write(tmp_path / "T2.nii", voxels(1)))
    take_steps(qtbot, window, "negative", "mri_nlm", "median")
    cpu.requests.clear()
    return window


def shown(window: MainWindow) -> np.ndarray:
    volume = window.volumes.canvas.output.shown
    assert volume is not None
    return volume.voxels


def test_an_earlier_step_is_edited_and_all_components_follow(
    qtbot: QtBot, live: MainWindow, cpu: FakeCpu
) -> None:
    end = live.session.subject.result.output
    live.steps.edit(1)
    settle(qtbot, live)
    assert steps(live) == ["negative", "mri_nlm*", "median"]
    assert live.session.subject.result.output is end
    assert ran(cpu) == []
    editor: Any = live.panel.form.editors["search_radius"]
    editor.set_value(2)
    settle(qtbot, live)
    assert set(ran(cpu)) == {"mri_nlm", "median"}, "the first step is kept"
    assert live.session.subject.result.output is not end
    assert len(live.session.subject.result.scan.volumes) == 2
    np.testing.assert_array_equal(shown(live), live.session.subject.result.scan.volumes[0].voxels)
    live.scans.components.choose(1)
    np.testing.assert_array_equal(shown(live), live.session.subject.result.scan.volumes[1].voxels)


def test_steps_across_another_axis_are_other_steps(
    qtbot: QtBot, live: MainWindow, cpu: FakeCpu
) -> None:
    live.volumes.canvas.choose_plane(2)
    qtbot.waitUntil(lambda: live.session.subject.result.request.step.axis == 2)
    settle(qtbot, live)
    assert [each.step.axis for each in live.session.subject.pipeline.steps] == [0, 0, 2]


def test_no_slices_are_shown_for_a_step_that_others_follow(
    qtbot: QtBot, live: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.steps.edit(1)
    settle(qtbot, live)
    request = live.session.subject.history.followed(
        live.session.subject.request(live.session.require())
    )
    assert request.then
    assert live.session.subject.visible_parts(request) == ()


def test_the_volumes_of_a_file_go_through_all_steps(
    qtbot: QtBot, open_window: Opener, tmp_path: Path, cpu: FakeCpu
) -> None:
    window = open_window(live=True)
    open_scan(qtbot, window, write(tmp_path / "b.nii", np.stack([voxels(n) for n in range(COUNT)])))
    window.session.set_filter("negative")
    settle(qtbot, window)
    window.page.use_output()
    qtbot.waitUntil(lambda: bool(window.session.subject.moment.steps))
    window.session.set_filter("mri_nlm")
    settle(qtbot, window)
    assert window.files.members.bar.isVisible(), "the steps begin at a volume of the file"
    cpu.requests.clear()
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: np.array_equal(window.session.volumes.part.voxels, voxels(1)))
    settle(qtbot, window)
    assert steps(window) == ["negative*", "mri_nlm"]
    assert window.session.freshness is Freshness.EXACT
    assert len(window.session.subject.result.parts) == 2
    assert window.session.subject.result.parts[0].request.source is window.session.subject.source
