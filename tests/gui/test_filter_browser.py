"""The dock Filters: thumbnails of all filters, the search, and choosing one."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from PIL import Image as PillowImage
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QApplication, QLabel, QTreeWidgetItem
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine import denoising
from kernelscope.engine.control import CancelToken
from kernelscope.engine.denoising import Proposal
from kernelscope.engine.request import RunSettings
from kernelscope.engine.step import Step
from kernelscope.gui.docks.filter_browser import FilterBrowser
from kernelscope.gui.model import sketches
from kernelscope.gui.model.filter_groups import VOLUMES, by_category
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.model.sketches import Sketch, ViewedPicture, kind_of_sketch
from kernelscope.gui.window import filter_shelf as shelf
from kernelscope.gui.window import steps as step_commands
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.helper import Helper
from kernelscope.images.image import Image
from kernelscope.schema.samples import Kind
from tests.gui.helpers import HEIGHT, WIDTH, Opener, load, press, write_picture
from tests.gui.test_volume_page import voxels, write
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("compiled_judging")


@pytest.fixture
def browser(qtbot: QtBot) -> FilterBrowser:
    made = FilterBrowser()
    made.set_groups(by_category(Kind.PICTURE))
    made.resize(220, 500)
    qtbot.addWidget(made)
    made.show()
    return made


def groups(browser: FilterBrowser) -> list[QTreeWidgetItem]:
    tree = browser.list
    items = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
    return [item for item in items if item is not None and not item.isHidden()]


def first(browser: FilterBrowser) -> QTreeWidgetItem:
    """Return the first filter that the search leaves."""
    (group, *_) = groups(browser)
    items = (group.child(row) for row in range(group.childCount()))
    return next(item for item in items if item is not None and not item.isHidden())


def headings(browser: FilterBrowser) -> list[str]:
    return [item.text(0) for item in groups(browser)]


def current(browser: FilterBrowser) -> str:
    return browser.list.currentItem().text(0)


# --- the search ---


def test_typing_narrows_and_enter_or_a_click_adopts(browser: FilterBrowser, qtbot: QtBot) -> None:
    assert sorted(browser.listed) == sorted(filters.discover())
    assert headings(browser) == list(by_category(Kind.PICTURE))

    qtbot.keyClicks(browser.search, "blur")
    means = {"mean", "weighted_mean", "rotating_mask", "threshold_mean"}
    assert set(browser.listed) == {"gaussian", *means}
    assert headings(browser) == ["Smoothing"]
    browser.search.clear()
    qtbot.keyClicks(browser.search, "gauss n")
    assert current(browser) == "Gaussian noise"
    with qtbot.waitSignal(browser.adopted) as adopted:
        qtbot.keyClick(browser.search, Qt.Key.Key_Return)
    assert adopted.args == ["gaussian_noise"]

    browser.search.setText("laplace")
    item = first(browser)
    with qtbot.waitSignal(browser.adopted) as clicked:
        qtbot.mouseClick(
            browser.list.viewport(),
            Qt.MouseButton.LeftButton,
            pos=browser.list.visualItemRect(item).center(),
        )
    assert clicked.args == ["laplace"]

    browser.search.clear()
    qtbot.keyClicks(browser.search, "xyz")
    notice = browser.findChild(QLabel, "noFilterFound")
    assert notice.isVisible()
    assert browser.listed == []
    qtbot.keyClick(browser.search, Qt.Key.Key_Return)  # adopts nothing
    browser.search.clear()
    assert not notice.isVisible()


def test_arrows_move_from_the_search_into_the_list_and_enter_adopts(
    qtbot: QtBot, browser: FilterBrowser
) -> None:
    browser.focus_search()
    qtbot.keyClicks(browser.search, "noise")
    before = current(browser)
    qtbot.keyClick(browser.search, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is browser.list)
    assert current(browser) != before
    chosen = current(browser)
    with qtbot.waitSignal(browser.adopted) as adopted:
        qtbot.keyClick(browser.list, Qt.Key.Key_Return)
    assert filters.get(adopted.args[0]).name == chosen


@pytest.mark.parametrize("where", ["search", "list"])
def test_escape_clears_the_search(qtbot: QtBot, browser: FilterBrowser, where: str) -> None:
    qtbot.keyClicks(browser.search, "sobel")
    assert browser.listed == ["sobel"]
    qtbot.keyClick(getattr(browser, where), Qt.Key.Key_Escape)
    assert browser.search.text() == ""
    assert len(browser.listed) == len(filters.discover())


def test_a_group_stays_closed_except_while_searching(browser: FilterBrowser, qtbot: QtBot) -> None:
    group = groups(browser)[headings(browser).index("Noise")]
    browser.list.scrollToItem(group)
    place = browser.list.visualItemRect(group).center()
    qtbot.mouseClick(browser.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert not group.isExpanded()
    browser.search.setText("poisson")
    assert groups(browser)[0].isExpanded()
    browser.search.clear()
    group = groups(browser)[headings(browser).index("Noise")]
    assert not group.isExpanded()
    assert "gaussian_noise" not in browser.in_view


def test_pictures_stay_while_the_search_hides_them(browser: FilterBrowser) -> None:
    image = QImage(72, 54, QImage.Format.Format_RGB888)
    image.fill(0x336699)
    browser.show_sketch("sobel", image, "", "Shown: the middle.")
    browser.show_sketch("nlm", None, "slow\n≈ 3 min", "Too slow.")
    browser.search.setText("median")
    browser.search.clear()
    assert browser.image("sobel") == image
    assert browser.note("nlm") == "slow\n≈ 3 min"


def test_readers_of_the_screen_hear_what_is_in_use(browser: FilterBrowser) -> None:
    browser.show_current("median")
    browser.show_sketch("median", None, "slow", "")
    browser.search.setText("median")
    item = first(browser)
    assert item.data(0, Qt.ItemDataRole.AccessibleTextRole) == "Median, slow, in use"
    browser.show_current("mean")
    assert item.data(0, Qt.ItemDataRole.AccessibleTextRole) == "Median, slow"


# --- in the window ---


class Sketching:
    """Takes the place of computing: draws the number of calls, and waits when asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[ViewedPicture, Step]] = []
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Event()
        self.given_up = 0
        self.asked: list[str] = []

    def sketch(
        self, scene: ViewedPicture, step: Step, backend: CpuBackend, token: CancelToken
    ) -> Sketch:
        self.calls.append((scene, step))
        self.entered.set()
        while not self.go.wait(0.005):
            if token.cancelled:
                self.given_up += 1
                token.check()
        if step.filter.id == "nlm":
            return Sketch(problem="Too slow for a thumbnail.", cost=181.0)
        return Sketch(np.full((6, 8, 1), 200, np.uint8), "a part")

    def names(self) -> list[str]:
        return [step.filter.id for _, step in self.calls]


@pytest.fixture
def thumbnails(monkeypatch: pytest.MonkeyPatch) -> Sketching:
    made = Sketching()

    def start(helper: Helper, lines: Any) -> None:
        for line in list(lines):
            made.asked.append(line)
        for line in made.asked[-len(filters.discover()) - 1 :]:
            helper.answered.emit(json.loads(line)["key"])
        helper.ended.emit()

    monkeypatch.setattr(shelf, "sketch", made.sketch)
    monkeypatch.setattr(shelf, "QUIET_MS", 20)
    monkeypatch.setattr(Helper, "start", start)
    return made


@pytest.fixture
def live(open_window: Opener, thumbnails: Sketching) -> MainWindow:
    window = open_window(live=True)
    window.resize(1400, 900)
    window.docks[DockName.FILTERS].show()
    return window


def all_drawn(window: MainWindow) -> bool:
    ids = filters.discover()
    return window.filter_shelf.idle and all(
        window.filters.image(id_) or window.filters.note(id_) for id_ in ids
    )


@pytest.mark.slow
@pytest.mark.smoke
def test_every_filter_gets_a_thumbnail_of_the_picture_once(
    qtbot: QtBot, live: MainWindow, picture: Path, thumbnails: Sketching
) -> None:
    load(qtbot, live, picture)
    qtbot.waitUntil(lambda: all_drawn(live))
    assert sorted(thumbnails.names()) == sorted(filters.discover())
    scene = thumbnails.calls[0][0]
    assert scene.image is live.session.pictures.source
    assert scene.centre == (WIDTH // 2, HEIGHT // 2)
    image = live.filters.image("median")
    assert (image.width(), image.height()) == (8, 6)
    assert image.pixelColor(0, 0).red() == 200
    assert live.filters.note("nlm") == "slow\n≈ 3 min"
    drawn = thumbnails.names()[: len(live.filters.in_view)]
    assert set(drawn) == set(live.filters.in_view)  # those that are seen came first


def test_thumbnails_say_what_they_wait_for(
    qtbot: QtBot,
    live: MainWindow,
    picture: Path,
    thumbnails: Sketching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Code that is compiled for the first time takes seconds for each filter."""
    helper, orders, left = live.filter_shelf.helper, list[str](), ["all"]
    monkeypatch.setattr(Helper, "start", lambda _, lines: orders.extend(lines))
    monkeypatch.setattr(Helper, "busy", property(lambda _: bool(orders and left)))
    live.filter_shelf.compiles.setInterval(200)
    load(qtbot, live, picture)
    qtbot.waitUntil(lambda: bool(orders))
    recipes = [json.loads(json.loads(line)["recipe"]) for line in orders]
    names = [recipe["steps"][0]["filter"].replace("-", "_") for recipe in recipes]
    assert {name: live.filters.note(name) for name in names} == dict.fromkeys(names, "waiting…")
    qtbot.waitUntil(lambda: live.filters.note(names[0]) == "compiling…")
    assert {live.filters.note(name) for name in names[1:]} == {"waiting…"}
    helper.answered.emit(json.loads(orders[0])["key"])
    qtbot.waitUntil(lambda: live.filters.image(names[0]) is not None)
    qtbot.waitUntil(lambda: live.filters.note(names[1]) == "compiling…")
    assert live.filters.note(names[0]) == ""
    for line in orders[1:-1]:
        helper.answered.emit(json.loads(line)["key"])
    left.clear()
    helper.ended.emit()
    qtbot.waitUntil(lambda: all_drawn(live))
    assert {live.filters.note(name) for name in names} == {"", "slow\n≈ 3 min", "–"}
    assert live.filters.note(names[-1]) == "–", "the helper ended without its code"


def test_choosing_one_switches_the_form_in_one_step(
    qtbot: QtBot, live: MainWindow, picture: Path
) -> None:
    load(qtbot, live, picture)
    qtbot.waitUntil(lambda: live.session.subject.result is not None and live.live.resting)
    before = live.session.filter_id
    press(qtbot, live, "Ctrl+F")
    assert live.focusWidget() is live.filters.search
    qtbot.keyClicks(live.filters.search, "rotating")
    qtbot.keyClick(live.filters.search, Qt.Key.Key_Return)
    assert live.session.filter_id == "rotating_mask"
    qtbot.waitUntil(
        lambda: (
            live.session.subject.result.request.step.filter.id == "rotating_mask"
            and live.live.resting
        )
    )
    live.session.subject.undo()
    qtbot.waitUntil(lambda: live.session.filter_id == before)
    assert not live.session.subject.history.undo_name


def test_a_run_stops_the_thumbnail_in_progress_at_once(
    qtbot: QtBot, live: MainWindow, picture: Path, thumbnails: Sketching
) -> None:
    thumbnails.go.clear()
    load(qtbot, live, picture)
    qtbot.waitUntil(thumbnails.entered.is_set)
    press(qtbot, live, "F5")
    qtbot.waitUntil(lambda: thumbnails.given_up == 1)
    thumbnails.go.set()
    qtbot.waitUntil(lambda: all_drawn(live))
    assert thumbnails.names().count(thumbnails.names()[0]) == 2  # begun again later


def test_with_live_off_or_the_dock_closed_nothing_is_computed(
    qtbot: QtBot, live: MainWindow, picture: Path, thumbnails: Sketching
) -> None:
    live.docks[DockName.FILTERS].hide()
    load(qtbot, live, picture)
    qtbot.waitUntil(lambda: live.live.resting and live.filter_shelf.idle)
    assert not thumbnails.calls
    live.live.toggle()
    live.docks[DockName.FILTERS].show()
    qtbot.waitUntil(lambda: live.filter_shelf.idle)
    assert not thumbnails.calls
    live.live.toggle()
    qtbot.waitUntil(lambda: all_drawn(live))


def test_code_is_compiled_elsewhere_and_asked_for_once(
    qtbot: QtBot, live: MainWindow, picture: Path, thumbnails: Sketching
) -> None:
    load(qtbot, live, picture)
    qtbot.waitUntil(lambda: all_drawn(live))
    assert len(thumbnails.asked) == len(filters.discover())
    load(qtbot, live, write_picture(picture.with_name("other.png"), 9))
    qtbot.waitUntil(lambda: len(thumbnails.calls) == 2 * len(filters.discover()))
    assert len(thumbnails.asked) == len(filters.discover())  # same types: the code is there


def test_volumes_have_their_filters_and_thumbnails_of_the_slice(
    qtbot: QtBot, live: MainWindow, tmp_path: Path, thumbnails: Sketching
) -> None:
    live.file_dialogs.open(write(tmp_path / "head.nii", voxels()))
    qtbot.waitUntil(lambda: live.page is live.volumes and live.session.volumes.source is not None)
    assert headings(live.filters)[0] == VOLUMES
    assert "mri_nlm" in live.filters.listed
    qtbot.waitUntil(lambda: bool(live.filters.image("median")))
    scene = next(scene for scene, step in thumbnails.calls if step.filter.id == "median")
    assert scene.anchor is live.session.volumes.part
    assert "slice" in scene.image.title


def test_denoise_of_a_picture_that_was_left_chooses_nothing(
    qtbot: QtBot, open_window: Opener, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, go, asked = open_window(live=False), threading.Event(), list[object]()

    def propose(image: Image) -> Proposal:
        asked.append(image)
        if len(asked) == 1:
            go.wait(PATIENCE)
        return Proposal(filters.get("median"), {"size": 3 + 2 * len(asked)}, "It suits.")

    monkeypatch.setattr(step_commands, "propose", propose)
    load(qtbot, window, picture)
    chosen: list[str] = []
    window.statusBar().messageChanged.connect(chosen.append)
    window.session.set_filter("mean")
    window.steps.denoise()
    load(qtbot, window, write_picture(picture.with_name("other.png"), 9))
    go.set()
    qtbot.waitUntil(lambda: not window.background._tasks)
    assert window.session.filter_id == "mean"
    assert "It suits." not in chosen
    window.steps.denoise()
    qtbot.waitUntil(lambda: window.session.filter_id == "median")
    assert window.session.values.numbers["size"] == 7


def test_denoise_pressed_again_keeps_the_choices_since(
    qtbot: QtBot, open_window: Opener, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, chroma = open_window(live=False), [120.0]
    session = window.session

    def propose(source: Image) -> Proposal:
        return Proposal(filters.get("collaborative"), {"chroma": chroma[0]}, "It suits")

    monkeypatch.setattr(step_commands, "propose", propose)

    def denoise() -> str:
        window.show_status("")
        window.steps.denoise()
        qtbot.waitUntil(lambda: window.statusBar().currentMessage().endswith("It suits"))
        return window.statusBar().currentMessage()

    load(qtbot, window, picture)
    session.set_values("collaborative", {"strength": 55.0})  # before the method was proposed
    assert denoise() == "It suits"
    assert session.values.numbers["strength"] == 100
    session.set_values("collaborative", {"strength": 70.0, "sigma": 3.0})
    chroma[0] = 130.0
    assert denoise() == "Kept: Noise sigma, Strength; It suits"
    assert [session.values.numbers[name] for name in ("strength", "sigma", "chroma")] == [
        70,
        3,
        130,
    ]
    assert not session.values.automatic
    session.set_values("collaborative", {"chroma": 90.0})
    denoise()
    assert session.values.numbers["chroma"] == 90

    load(qtbot, window, write_picture(picture.with_name("other.png"), 9))
    assert denoise().startswith("Kept: Strength; ")  # the rest is of the picture before
    assert session.values.numbers["strength"] == 70
    assert session.values.numbers["chroma"] == 130
    assert session.values.automatic == ("sigma",)

    session.set_filter("median")
    assert denoise() == "It suits"
    assert session.values.numbers["strength"] == 100


def test_denoise_chooses_the_filter_and_its_values_and_says_why(
    qtbot: QtBot, open_window: Opener, picture: Path, tmp_path: Path
) -> None:
    window = open_window(live=False)
    assert not window.findChild(QAction, "denoise").isEnabled()
    load(qtbot, window, picture)
    window.session.set_values("collaborative", {"sigma": 1.0})
    window.findChild(QAction, "denoise").trigger()
    qtbot.waitUntil(lambda: window.session.filter_id == "collaborative")
    assert window.session.values.automatic == ("sigma",)
    said = window.statusBar().currentMessage()
    assert said.startswith("Collaborative filtering: the best results of the denoisers")
    assert said.endswith("; other filters: Sliding DCT, Non-local means")
    window.show_status("another message")
    assert f"\n{picture.name}: {said}" in window.actions_["denoise"].toolTip()

    draws = np.random.default_rng(1).random((64, 64))
    specks = np.where(draws < 0.1, 0, np.where(draws > 0.9, 255, 128)).astype(np.uint8)
    path = tmp_path / "specks.png"
    PillowImage.fromarray(specks).save(path)
    load(qtbot, window, path)
    window.session.set_values("median", {"size": 9})
    window.session.set_filter("mean")
    window.findChild(QAction, "denoise").trigger()
    qtbot.waitUntil(lambda: window.session.filter_id == "median")
    assert window.session.values.numbers["size"] == 5
    assert window.statusBar().currentMessage() == "Median: specks in 20 % of the pixels"

    hot = np.tile(np.arange(60, 188, dtype=np.uint8), (128, 1))
    hot[::12, ::12] = 255
    path = tmp_path / "hot.png"
    PillowImage.fromarray(hot).save(path)
    load(qtbot, window, path)
    subject = window.session.subject
    for on in (True, True, False):  # the second time they are mended already
        if not on:
            window.steps.switch(0)
            qtbot.waitUntil(lambda: subject.pending is None and window.steps._task is None)
        window.findChild(QAction, "denoise").trigger()
        qtbot.waitUntil(lambda: not window.background._tasks and subject.pending is None)
        qtbot.waitUntil(lambda: window.session.filter_id == "collaborative")
        assert subject.pipeline is not None
        steps = [each.step.filter.id for each in subject.pipeline.steps]
        assert steps == ["hot_pixels", "collaborative"]
        assert subject.pipeline.place == 1
        assert subject.pipeline.steps[0].on is on
        assert (subject.source is not subject.base) is on
        assert ("Hot pixels stays off" in window.statusBar().currentMessage()) is not on


@pytest.mark.slow
def test_the_helper_compiles_in_a_process_of_its_own(qtbot: QtBot) -> None:
    image = Image.from_array(np.zeros((9, 9), np.uint8), "black")
    scene, step = ViewedPicture(image, (4, 4), image), Step.create("negative")
    helper = Helper(sketches.__name__)
    answers: list[str] = []
    helper.answered.connect(answers.append)
    # Its priority is low: beside a busy machine it may wait long.
    with qtbot.waitSignal(helper.ended, timeout=300_000):
        helper.start([sketches.order(scene, step)])
        assert helper.busy
    assert answers == [kind_of_sketch(scene, step)]
    assert not helper.busy
    helper.start([])
    helper.close()  # in the middle of its work
    assert not helper.busy


def test_a_helper_that_cannot_start_ends(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    helper = Helper("kernelscope.no_such_module")
    with qtbot.waitSignal(helper.ended):
        helper.start(["x"])
    assert "no_such_module failed" in caplog.text


def test_the_dock_opens_when_it_is_asked_for(window: MainWindow) -> None:
    assert not window.docks[DockName.FILTERS].isVisible()
    press_ = window.actions_["findFilter"]
    press_.trigger()
    assert window.docks[DockName.FILTERS].isVisible()


@pytest.mark.parametrize(
    ("before", "place", "after", "note"),
    [
        ("collaborative unsharp", 0, "collaborative* unsharp", "Step 1 stays as it is; "),
        ("unsharp -collaborative", 0, "unsharp collaborative*", "Step 2 stays as it is; "),
        ("hot_pixels nlm", 0, "hot_pixels nlm*", "Step 2 stays as it is; "),
        ("collaborative unsharp unsharp", 2, "collaborative* unsharp", "Step 1 stays as it is; "),
        ("hot_pixels unsharp", 1, "hot_pixels collaborative* unsharp", "Added as step 2; "),
        ("median unsharp", 0, "collaborative* median unsharp", "Added as step 1; "),
        ("mean mean", 1, "mean collaborative*", ""),
        ("-mean mean", 1, "collaborative* mean", "Added as step 2; "),
        ("mean mean=5", 1, "collaborative* mean mean", "Added as step 1; "),
    ],
)
def test_denoise_among_steps_loses_none_and_uses_a_denoiser_that_is_there(
    qtbot: QtBot,
    open_window: Opener,
    picture: Path,
    before: str,
    place: int,
    after: str,
    note: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = mock.Mock(wraps=denoising.propose)
    monkeypatch.setattr(step_commands, "propose", asked)
    window = open_window(live=False)
    load(qtbot, window, picture)
    opened = window.session.pictures.source
    subject = window.session.subject
    settings = {name: {"strength": 70.0} for name in ("collaborative", "nlm")}
    made = [
        RunSettings(
            Step.create(name, {"size": int(size)} if size else settings.get(name)),
            on=not word.startswith("-"),
        )
        for word in before.split()
        for name, _, size in [word.strip("-").partition("=")]
    ]
    pipeline = Pipeline(tuple(made), place)
    window.steps._apply(pipeline, "Steps")
    qtbot.waitUntil(lambda: subject.pending is None and window.steps._task is None)
    assert (subject.source is opened) is (place == 0 or before.startswith("-"))
    window.show_status("")
    window.steps.denoise()
    qtbot.waitUntil(lambda: not window.background._tasks and subject.pending is None)
    (source,) = asked.call_args.args
    assert (source is opened) is (before != "hot_pixels unsharp"), "as it was before filters"
    shown = subject.pipeline
    assert shown is not None
    words = [each.step.filter.id + "*" * (each is shown.present) for each in shown.steps if each.on]
    assert " ".join(words) == after
    strength = shown.present.step.parameters["strength"]
    assert strength == (70 if "stays" in note else 100)
    assert window.session.filter_id == shown.present.step.filter.id
    said = window.statusBar().currentMessage()
    assert f"{note}{'Non-local means' if 'nlm' in before else 'Collaborative'}" in said
    assert ("Non-local means; other filters: Collab" in said) == ("nlm" in before)
