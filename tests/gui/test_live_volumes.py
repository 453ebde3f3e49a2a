"""Slices of volumes are filtered before a run, and whatever is said about them is true."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QListWidget
from pytestqt.qtbot import QtBot
from scipy.ndimage import median_filter

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.backend import Availability
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import PaneSide
from kernelscope.gui.model.freshness import (
    LOOKING,
    MOVING,
    RESTING,
    Freshness,
    Pace,
    next_run,
    pixels_of,
)
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.gui.model.slice_previews import SlicePreviews, place_of
from kernelscope.gui.session.subject import PART
from kernelscope.gui.session.volume_subject import VolumeSubject
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.widgets import theme
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from tests.gui.helpers import FakeCpu, Opener, child, choose_place, hover, press, run
from tests.gui.test_live import badge, settled
from tests.gui.test_volume_page import SHAPE, add, open_scan, voxels, write
from tests.gui.test_volume_steps import write_film

pytestmark = pytest.mark.usefixtures("compiled_judging", "rests_soon")


def slow(monkeypatch: pytest.MonkeyPatch, whole: float = 100.0, part: float = 0.001) -> None:
    """Let whole results take long, and slices not."""
    monkeypatch.setattr(
        Pace, "expect", lambda self, request: whole if request.region is None else part
    )


@pytest.fixture
def window(open_window: Opener, monkeypatch: pytest.MonkeyPatch) -> MainWindow:
    slow(monkeypatch)
    return open_window(live=True)


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    return write(tmp_path / "T1.nii.gz", voxels())


@pytest.fixture
def scanned(qtbot: QtBot, window: MainWindow, scan: Path) -> MainWindow:
    open_scan(qtbot, window, scan)
    return window


def editor(window: MainWindow, name: str) -> Any:
    return window.panel.form.editors[name]


def contents(viewer: PairView) -> list[NDArray[Any] | None]:
    """Return the slice that each plane of the output shows, as it is drawn."""
    found: list[NDArray[Any] | None] = []
    for plane in viewer.view.planes:
        volume = viewer._content_at(viewer.view.position, (plane,)).shown
        index = viewer.view.position[plane.axis]
        found.append(None if volume is None else plane.cut(volume.voxels, index))
    return found


def notes(window: MainWindow) -> list[str]:
    return [view.note for view in window.volumes.canvas.output.views]


def previewed(qtbot: QtBot, window: MainWindow, count: int = 3) -> None:
    """Wait until so many planes show slices of the present settings."""

    def there() -> bool:
        shown = [each is not None for each in contents(window.volumes.canvas)]
        clean = not any("Earlier" in note for note in notes(window))
        return sum(shown) == count and clean and window.live.resting

    qtbot.waitUntil(there)


def halved(window: MainWindow, component: int = 0) -> list[NDArray[Any]]:
    """Return the slices in view that the fake processor makes."""
    viewer = window.volumes.canvas
    volume = window.session.volumes.source.volumes[component]
    whole = volume.with_voxels(volume.voxels / np.float32(2)).voxels
    return [plane.cut(whole, viewer.view.position[plane.axis]) for plane in viewer.view.planes]


@pytest.mark.slow
@pytest.mark.smoke
def test_the_slices_in_view_are_there_before_a_run(
    qtbot: QtBot, window: MainWindow, scan: Path
) -> None:
    listed: list[Any] = []
    window.runner.finished.connect(lambda *_: listed.append(1))
    open_scan(qtbot, window, scan)
    previewed(qtbot, window)
    for shown, wanted in zip(contents(window.volumes.canvas), halved(window), strict=True):
        np.testing.assert_array_equal(shown, wanted)
    assert window.session.freshness is Freshness.PART
    assert badge(window).startswith("◐ part: slices in view, of 8×9×6 voxels")
    assert child(window, QLabel, "volumeOutputTitle").toolTip().startswith("Preview: CPU")
    assert window.session.volumes.result is None
    assert not listed
    press(qtbot, window, "F5")
    settled(qtbot, window)
    assert window.volumes.canvas.output.shown is window.session.volumes.shown_output
    assert badge(window) == "● up to date"
    assert notes(window) == ["", "", ""]


def test_another_position_is_computed_and_steps_back_are_at_hand(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu
) -> None:
    previewed(qtbot, scanned)
    first, viewer = scanned.volumes.canvas.view.position, scanned.volumes.canvas
    cpu.go.clear()
    viewer.go_to((1, 2, 3))
    assert contents(viewer) == [None] * 3
    assert scanned.session.freshness is None, "nothing of this position is there"
    assert "computing…" in badge(scanned)
    cpu.one.release()
    qtbot.waitUntil(lambda: scanned.session.freshness is Freshness.PART)
    assert [each is not None for each in contents(viewer)] == [True, False, False]
    assert notes(scanned) == ["", "Not computed yet", "Not computed yet"]
    cpu.go.set()
    previewed(qtbot, scanned)
    for shown, wanted in zip(contents(viewer), halved(scanned), strict=True):
        np.testing.assert_array_equal(shown, wanted)
    before = len(cpu.requests)
    viewer.go_to(first)
    assert scanned.session.freshness is Freshness.PART
    previewed(qtbot, scanned)
    qtbot.waitUntil(lambda: scanned.live.resting)
    assert len(cpu.requests) == before


def test_planes_of_earlier_settings_are_marked(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu
) -> None:
    previewed(qtbot, scanned)
    cpu.go.clear()
    editor(scanned, "search_radius").set_value(2)
    qtbot.waitUntil(lambda: scanned.session.freshness is Freshness.OUT_OF_DATE)
    qtbot.waitUntil(lambda: notes(scanned) == ["Earlier settings"] * 3)
    cpu.one.release()
    qtbot.waitUntil(lambda: scanned.session.freshness is Freshness.PART)
    assert notes(scanned) == ["", "Earlier settings", "Earlier settings"]
    cpu.go.set()
    previewed(qtbot, scanned)
    assert all(each.request.step.parameters["search_radius"] == 2 for each in kept(scanned))


def test_a_residual_during_a_run_names_the_run_that_it_is_of(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu
) -> None:
    editor(scanned, "search_radius").set_value(3)
    run(qtbot, scanned)
    editor(scanned, "search_radius").set_value(2)
    output = scanned.volumes.canvas.output
    qtbot.waitUntil(lambda: "search radius 2" in output.title.toolTip())
    cpu.go.clear()
    scanned.runner.run()
    press(qtbot, scanned, "F3")
    qtbot.waitUntil(lambda: output.content.is_change)
    assert scanned.runner.busy
    title = output.title.full_text
    assert title.startswith("Earlier settings – Residual: output – input, ×")
    assert "search radius 3 voxels" in title
    cpu.go.set()
    qtbot.waitUntil(lambda: output.title.full_text.startswith("Residual: "))
    assert "search radius 2 voxels" in output.title.full_text


def kept(window: MainWindow) -> list[Any]:
    return [each for each in window.session.volumes.previews if place_of(each.request)]


def test_a_single_plane_and_a_plane_that_was_clicked_come_first(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu
) -> None:
    previewed(qtbot, scanned)
    scanned.volumes.canvas.choose_plane(2)
    scanned.volumes.canvas.go_to((1, 1, 1))
    qtbot.waitUntil(lambda: scanned.live.resting and scanned.session.freshness is Freshness.PART)
    assert cpu.requests[-1].region == Box.slice_of(SHAPE, 2, 1)
    scanned.volumes.canvas.choose_plane(None)
    previewed(qtbot, scanned)
    scanned.volumes.canvas.output.views[1].pair.activate(scanned.volumes.canvas.output.views[1])
    before = len(cpu.requests)
    scanned.volumes.canvas.go_to((4, 5, 6))
    previewed(qtbot, scanned)
    assert [each.region.sides.index(1) for each in cpu.requests[before:]] == [1, 0, 2]


def test_a_filter_for_pictures_shows_the_slice_that_it_works_on(
    qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu
) -> None:
    previewed(qtbot, scanned)
    scanned.session.set_filter("median")
    qtbot.waitUntil(lambda: notes(scanned) == ["", *["Earlier settings"] * 2])
    assert scanned.session.freshness is Freshness.PART
    before = len(cpu.requests)
    scanned.volumes.canvas.go_to((1, 2, 3))
    previewed(qtbot, scanned, 1)
    assert notes(scanned) == ["", "Not computed yet", "Not computed yet"]
    assert len(cpu.requests) == before + 1
    scanned.volumes.canvas.choose_plane(1)  # which changes the axis of the slices
    qtbot.waitUntil(lambda: len(cpu.requests) == before + 2)
    previewed(qtbot, scanned, 1)
    assert scanned.session.freshness is Freshness.PART


def test_the_settings_of_the_last_run_show_that_again(qtbot: QtBot, scanned: MainWindow) -> None:
    previewed(qtbot, scanned)
    press(qtbot, scanned, "F5")
    settled(qtbot, scanned)
    radius = editor(scanned, "search_radius")
    radius.set_value(2)
    qtbot.waitUntil(lambda: scanned.session.freshness is Freshness.PART)
    previewed(qtbot, scanned)
    radius.set_value(5)
    settled(qtbot, scanned)
    assert not scanned.session.volumes.previews
    assert scanned.session.volumes.previewed is None
    assert child(scanned, QLabel, "volumeOutputTitle").toolTip().startswith("Output: CPU")


def test_other_views_wait_for_a_run(qtbot: QtBot, scanned: MainWindow, cpu: FakeCpu) -> None:
    previewed(qtbot, scanned)
    viewer = scanned.volumes.canvas
    viewer.view.choose_look(Look(projection=Projection.MAXIMUM))
    qtbot.waitUntil(lambda: scanned.live.resting)
    assert contents(viewer) == [None] * 3
    before = len(cpu.requests)
    viewer.go_to((0, 0, 0))
    qtbot.waitUntil(lambda: scanned.live.resting)
    assert len(cpu.requests) == before
    viewer.view.enlarge(1)  # only the large plane is projected
    qtbot.waitUntil(lambda: [each is None for each in contents(viewer)] == [False, True, False])
    viewer.view.enlarge(None)
    viewer.view.choose_look(Look())
    previewed(qtbot, scanned)
    before = len(cpu.requests)
    scanned.set_view(View.RESIDUAL)
    qtbot.waitUntil(lambda: scanned.live.resting)
    assert scanned.session.freshness is None
    scanned.set_view(View.OUTPUT)
    previewed(qtbot, scanned)
    assert len(cpu.requests) == before, "they were kept"


def test_every_component_has_its_slices(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path, cpu: FakeCpu
) -> None:
    add(qtbot, scanned, write(tmp_path / "T2.nii.gz", voxels(1)))
    previewed(qtbot, scanned)
    before = len(cpu.requests)
    child(scanned, QListWidget, "componentList").setCurrentRow(1)
    previewed(qtbot, scanned)
    for shown, wanted in zip(contents(scanned.volumes.canvas), halved(scanned, 1), strict=True):
        np.testing.assert_array_equal(shown, wanted)
    assert len(cpu.requests) == before
    scanned.session.volumes.undo()  # the first volume alone
    qtbot.waitUntil(lambda: len(scanned.session.volumes.source.volumes) == 1)
    previewed(qtbot, scanned)
    np.testing.assert_array_equal(contents(scanned.volumes.canvas)[0], halved(scanned)[0])


def test_a_gpu_waits_for_run_and_says_why(
    qtbot: QtBot, open_window: Opener, scan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(monkeypatch)
    window = open_window(Availability(True, "a card"), live=True)
    window.find_gpu()
    open_scan(qtbot, window, scan)
    choose_place(window, "gpu", "tuned")
    qtbot.waitUntil(lambda: "The GPU filters volumes as a whole" in badge(window))
    assert window.session.freshness is None


def test_a_slow_slice_waits_until_the_hand_rests() -> None:
    volume = Volume.from_array(np.ones((40, 200, 300), np.float32), "v")
    wanted = Request(Scan((volume,)), Step.of_numbers("mri_nlm"))
    box = Box.slice_of(wanted.source.shape, 2, 7)

    def run(cost: float | None, *, resting: bool, looking: bool = False) -> Request | None:
        def expect(request: Request) -> float | None:
            return 100.0 if request.region is None else cost

        return next_run(wanted, box, expect, resting=resting, looking=looking)

    probe = run(None, resting=False)
    assert probe is not None
    assert probe.region == Box((0, 76, 7), (40, 48, 1))
    for cost, resting, there in (
        (MOVING, False, box),
        (4 * MOVING, False, Box((4, 69, 7), (32, 62, 1))),
        (4 * MOVING, True, box),
        (4 * RESTING, True, Box((4, 69, 7), (32, 62, 1))),
        (100 * RESTING, True, None),
    ):
        found = run(cost, resting=resting)
        assert (found.region if found is not None else None) == there
    for share, there in ((1, box), (4, Box((4, 69, 7), (32, 62, 1)))):
        found = run(share * LOOKING, resting=True, looking=True)
        assert found is not None
        assert found.region == there, "once a part is shown, the rest of the view may take longer"


def test_slow_slices_are_shown_in_part(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: FakeCpu
) -> None:
    """A stack of pictures: its planes across y and x are quick, that across z is not."""
    shape = (10, 400, 600)
    monkeypatch.setattr(
        Pace,
        "expect",
        lambda self, request: 1e-4 * pixels_of(request),  # 24 s for a plane across z
    )
    open_scan(qtbot, window, write(tmp_path / "stack.nii", np.ones(shape, np.uint8)))
    viewer = window.volumes.canvas
    part = Box((5, 129, 194), (1, 141, 212))
    qtbot.waitUntil(lambda: window.live.resting and badge(window).count("1 in part") == 1)
    assert badge(window).startswith("◐ part: slices in view, 1 in part, of 600×400×10 voxels")
    kept = window.session.volumes.previews.at(0, 5)
    assert kept is not None
    assert kept.part == part
    assert notes(window) == ["Part of the slice", "", ""]
    view = viewer.output.views[0]
    image = view.grab().toImage()
    assert image.pixelColor(view.point_of(300, 200).toPoint()) != QColor(theme.CANVAS_GROUND)
    outside = view.point_of(0, 0).toPoint() + QPoint(4, 4)
    assert image.pixelColor(outside) == QColor(theme.CANVAS_GROUND)
    said: list[str] = []
    viewer.described.connect(said.append)
    for place, there in (((300, 200), True), ((10, 10), False)):
        hover(view, QPointF(*place))
        assert ("output" in said[-1]) is there, said[-1]
    before = len(cpu.requests)
    window.live.touch()
    qtbot.waitUntil(lambda: window.live.resting)
    assert len(cpu.requests) == before, "it would show nothing new"


def test_sigma_stands_in_its_field_as_soon_as_a_preview_knows_it(
    qtbot: QtBot, scanned: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = scanned.session.volumes
    qtbot.waitUntil(lambda: bool(subject.previews_in_view))
    assert subject.result is None
    preview = subject.previews_in_view[-1]
    known = replace(preview, result=replace(preview.result, estimates={"sigma": (12.5,)}))
    monkeypatch.setattr(VolumeSubject, "previews_in_view", [known])
    subject.note(PART)
    assert editor(scanned, "sigma").placeholderText() == "12.5 (estimated)"


def test_an_unknown_slice_of_a_filter_for_pictures_is_tried_with_a_part() -> None:
    volume = Volume.from_array(np.ones((4, 200, 300), np.float32), "v")
    box = Box.slice_of((4, 200, 300), 0, 1)

    def run(filter_id: str, cost: float | None) -> Any:
        wanted = Request(Scan((volume,)), Step.of_numbers(filter_id, axis=0))
        expect = lambda request: 100.0 if request.region is None else cost  # noqa: E731
        found = next_run(wanted, box, expect, resting=True)
        return None if found is None else found.region

    assert run("median", None) == Box((1, 52, 102), (1, 96, 96))
    assert run("median", 4 * RESTING) == Box((1, 50, 75), (1, 100, 150))
    assert run("ripple", None) == box
    assert run("ripple", 4 * RESTING) is None, "a part takes as long"


def test_the_place_of_a_part_is_known_where_the_volume_is_thin() -> None:
    volume = Volume.from_array(np.ones((1, 80, 90), np.float32), "v")
    for box, place in (
        (Box((0, 20, 20), (1, 40, 40)), (0, 0)),
        (Box((0, 7, 20), (1, 1, 40)), (1, 7)),
        (Box((0, 20, 8), (1, 40, 1)), (2, 8)),
    ):
        request = Request(Scan((volume,)), Step.of_numbers("mri_nlm"), region=box)
        assert place_of(request) == place


def test_the_first_of_several_steps_is_measured_by_a_slice() -> None:
    volume = Volume.from_array(np.ones((40, 200, 300), np.float32), "v")
    later = RunSettings(Step.of_numbers("median"))
    wanted = Request(Scan((volume,)), Step.of_numbers("mri_nlm"), then=(later,))

    def run(of_first: float | None) -> Request | None:
        def expect(request: Request) -> float | None:
            return None if request.then else of_first

        return next_run(wanted, None, expect, resting=False)

    probe = run(None)
    assert probe is not None
    assert probe.then == ()
    assert probe.region == Box((20, 76, 126), (1, 48, 48))
    assert run(1.0) is None, "the later step is unknown: it waits for a run"


def test_slices_bound_the_time_of_the_whole() -> None:
    volume = Volume.from_array(np.ones((40, 20, 30), np.float32), "v")
    whole = Request(Scan((volume,)), Step.of_numbers("mri_nlm"))
    pace = Pace()
    for axis, seconds in ((0, 0.1), (2, 9.0)):
        box = Box.slice_of(whole.source.shape, axis, 3)
        pace.record(Request(whole.source, whole.step, region=box), seconds)
    assert pace.is_bound(whole)
    assert pace.expect(whole) == pytest.approx(0.1 * 40)
    other = Request(whole.source, whole.step, region=Box.slice_of(whole.source.shape, 1, 0))
    assert pace.expect(other) is None
    pace.record(whole, 1.5)
    assert not pace.is_bound(whole)
    assert pace.expect(whole) == pytest.approx(1.5)


def test_a_part_of_a_slice_lies_at_its_place(backends: dict[str, CpuBackend]) -> None:
    source = Scan((Volume.from_array(voxels(2).astype(np.float32), "v"),))
    for step in (
        Step.of_numbers("negative", axis=2),
        Step.of_numbers("mri_nlm", {"sigma": (5.0,)}),
    ):
        axis = step.axis or 0
        box = Box.slice_of(SHAPE, axis, 2).middle((4, 5, 3))
        part, previews = execute(Request(source, step, region=box), backends), SlicePreviews()
        assert previews.put(part)
        shown = previews.at(axis, 2)
        assert shown is not None
        assert shown.part == box
        np.testing.assert_array_equal(box.of(shown.volumes[0].voxels), part.scan.volumes[0].voxels)


def test_one_slice_is_kept_of_each_place(backends: dict[str, CpuBackend]) -> None:
    volume = Volume.from_array(voxels().astype(np.float32), "v")
    source = Scan((volume,))
    previews = SlicePreviews()
    step = Step.of_numbers("negative", axis=1)
    for number in range(70):
        box = Box.slice_of(source.shape, 1, number % 9)
        assert previews.put(execute(Request(source, step, region=box), backends))
    assert len(list(previews)) == 9
    shown = previews.at(1, 4)
    assert shown is not None
    assert shown.part is None
    assert shown.volumes[0].voxels.shape == SHAPE
    assert shown.volumes[0].voxels.base.nbytes == 6 * 8 * 4


@pytest.mark.slow
def test_what_is_shown_is_true_after_many_changes(
    qtbot: QtBot,
    real_window: MainWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backends: dict[str, CpuBackend],
) -> None:
    window, chance = real_window, random.Random(3)
    slow(monkeypatch)
    if not window.session.live:
        window.live.toggle()
    open_scan(qtbot, window, write(tmp_path / "a.nii", voxels(1)))
    viewer = window.volumes.canvas
    seen = dict.fromkeys([None, *Freshness], 0)
    known = dict[str, NDArray[Any]]()

    def compare() -> None:
        fresh = window.session.freshness
        assert window.live.badge.freshness is fresh
        seen[fresh] += 1
        if fresh not in (Freshness.PART, Freshness.EXACT):
            return
        request = window.session.subject.request(window.session.require())
        settings = str(request.step)
        if settings not in known:
            known[settings] = execute(request, backends).scan.volumes[0].voxels
        whole = known[settings]
        shown = contents(viewer)
        for plane, cut, note in zip(viewer.view.planes, shown, notes(window), strict=True):
            if cut is not None and note == "" and plane.axis in dict(viewer.view.places):
                wanted = plane.cut(whole, viewer.view.position[plane.axis])
                np.testing.assert_array_equal(cut, wanted, plane.name)

    def shows_a_result() -> bool:
        compare()
        return window.session.freshness in (Freshness.PART, Freshness.EXACT)

    depth, height, width = SHAPE
    below = chance.randrange
    actions = {
        "radius": lambda: editor(window, "search_radius").set_value(chance.randint(1, 3)),
        "sigma": lambda: editor(window, "sigma_from").set_value(
            chance.choice(("volume", "local", "adaptive"))
        ),
        "move": lambda: viewer.go_to((below(depth), below(height), below(width))),
        "plane": lambda: viewer.choose_plane(chance.choice((None, None, 0, 1, 2))),
        "undo": window.session.volumes.undo,
        "run": window.runner.run,
    }
    for _ in range(400):
        if seen[Freshness.PART] > 15 and seen[Freshness.OUT_OF_DATE] > 3:
            break
        actions[chance.choices(list(actions), (6, 3, 8, 2, 1, 1))[0]]()
        compare()
        if chance.random() < 0.4:  # on a busy machine, changes overtake all that is computed
            qtbot.waitUntil(shows_a_result)
        for _ in range(chance.choice((0, 1, 3, 10))):
            qtbot.wait(8)
            compare()
    else:
        pytest.fail(f"too few of each were seen: {seen}")


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_all_channels_of_a_composite_follow_a_setting_at_once(
    qtbot: QtBot,
    real_window: MainWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,
) -> None:
    """The channel in front alone was, so that the others seemed to be filtered away."""
    window, sizes = real_window, (3, 5, 7)
    if not whole:
        slow(monkeypatch)
    window.session.set_filter("median")
    film = write_film(tmp_path / "film.ome.tif")[0]
    open_scan(qtbot, window, tmp_path / "film.ome.tif")
    expected = {
        (size, channel): median_filter(each, (1, size, size), mode="reflect")
        for channel, each in enumerate(film)
        for size in sizes
    }
    viewer, subject = window.volumes.canvas, window.session.volumes
    seen: list[tuple[int, ...]] = []

    def look() -> None:
        """Note the mask of each channel of the output; both sides have the same channels."""
        plane, index = viewer.view.planes[0], viewer.view.position[0]
        front = contents(viewer)[0]
        content = viewer._content_at(viewer.view.position, (plane,))
        before, after = (
            [other for other, _ in viewer._look_of(plane, side, content).others(subject.part)]
            for side in PaneSide
        )
        if front is None:
            return
        assert len(before) == len(after)
        drawn = [front, *(plane.cut(each.voxels, index) for each in after)]
        made_with = [
            [n for n in sizes if np.array_equal(each, plane.cut(expected[n, channel], index))]
            for channel, each in enumerate(drawn)
        ]
        seen.append(tuple(size for found in made_with for size in found))

    window.live.refreshed.connect(look)
    for size in (5, 7, 3):
        window.session.set_values("median", {"size": size})
        qtbot.waitUntil(lambda both=(size, size): both in seen[-1:])  # type: ignore[misc]
    window.live.refreshed.disconnect(look)
    assert {len(set(each)) for each in seen} == {1}, "no settings are mixed"
    assert (subject.result is not None) is whole


def test_a_run_of_one_channel_is_followed_by_the_others(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    """Until then, and for good where that is slow, the input too shows the one in front alone."""
    window = open_window()
    write_film(tmp_path / "film.ome.tif")
    open_scan(qtbot, window, tmp_path / "film.ome.tif")
    viewer, subject = window.volumes.canvas, window.session.volumes
    qtbot.waitUntil(lambda: len(subject.view.look.beside) == 1)
    titles = [pane.title for pane in (viewer.input, viewer.output)]
    assert ", DAPI + RFP, " in titles[0].full_text
    run(qtbot, window)
    assert ", DAPI, " in titles[0].full_text
    assert titles[1].full_text.endswith(" · DAPI only")
    window.live.toggle()
    qtbot.waitUntil(lambda: not subject.lacks_channels())
    assert ", DAPI + RFP, " in titles[0].full_text
    assert titles[1].full_text.endswith(" · figures of DAPI")
