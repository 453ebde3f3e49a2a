"""The panel of parameters: black and white, and limiting a filter to a region."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image as Pillow
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QLabel, QLineEdit, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.engine.area import Area
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import Step
from kernelscope.files import read_image
from kernelscope.gui.docks.parameter_panel import LevelsForm, WithinBox
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.history import Moment
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.model.replay import command_line, python
from kernelscope.gui.session.session import Session
from kernelscope.gui.widgets.form import field_of
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.levels import relevelled
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Levels
from tests.gui.helpers import child, load, press, run

RAMP = np.linspace(-100, 3000, 60, dtype=np.float32).reshape(6, 10)
_Widget = TypeVar("_Widget", bound=QWidget)
GIVEN = Levels(-200.0, 4095.0)


def _session(array: NDArray[Any] = RAMP) -> Session:
    session = Session({})
    session.pictures.open_source(Image.from_array(array, "ramp"))
    session.pictures.note_moment()
    return session


def test_levels_are_those_of_the_input_and_a_step_for_undo() -> None:
    session = _session()
    subject = session.subject
    truth = Image.from_array(RAMP + 1, "truth")
    subject.set_reference(truth)
    assert subject.takes_levels
    subject.set_levels(None)
    assert subject.levels is None
    assert subject.levels_of_samples()() == Levels(-100.0, 3000.0)
    for _ in range(2):  # the second time they are there
        subject.set_levels(GIVEN)
    assert subject.levels == subject.source.levels == GIVEN
    assert subject.reference is not None
    assert subject.reference.image.levels == GIVEN
    assert subject.levels_of_samples()() == Levels(-100.0, 3000.0)
    assert subject.history.undo_name == "Black and White"
    subject.undo()
    assert subject.levels is None
    assert subject.source.levels == Levels(-100.0, 3000.0)
    subject.redo()
    subject.set_levels(None)
    assert subject.levels is None


def test_types_that_state_their_white_take_none() -> None:
    session = _session(np.zeros((4, 4), np.uint16))
    assert not session.subject.takes_levels
    assert not Session({}).subject.takes_levels, "without an input"


def test_steps_work_on_the_input_with_its_levels() -> None:
    session = _session()
    subject, source = session.subject, session.subject.source
    assert source is not None
    first = Request(source, Step.create("mean"))
    made = Image.from_array(RAMP * 0.9, "mean of ramp")
    subject.push(Moment(made, "Use as Input", steps=(first,)))
    subject.note_moment()
    subject.set_levels(GIVEN)
    assert subject.base is subject.source
    assert subject.levels == GIVEN
    pipeline = subject.pipeline
    assert pipeline is not None
    assert pipeline.steps[0].step.filter.id == "mean"


def test_the_chosen_volume_stays() -> None:
    session = Session({})
    volumes = [Volume.from_array(np.full((2, 3, 4), n, np.int16), f"v{n}") for n in (5, 7)]
    session.volumes.open_volumes(Scan(tuple(volumes)))
    session.volumes.note_moment()
    session.volumes.choose(1)
    session.volumes.set_levels(GIVEN)
    assert session.volumes.component == 1
    assert session.volumes.part.title == "v7"
    assert session.volumes.part.levels == session.volumes.levels == GIVEN


def test_notices_of_reading_name_the_levels_that_hold(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", RAMP)
    image = read_image(tmp_path / "a.tif")
    said = "Samples run from -100 to 3000"
    assert image.notices == (f"{said}; -100 is black and 3000 is white.",)
    given = relevelled(image, GIVEN)
    assert given.notices == (f"{said}; -200 is black and 4095 is white.",)
    assert relevelled(given, None).notices == (f"{said}.",)


def test_replayed_steps_have_the_levels() -> None:
    image = relevelled(Image.from_array(RAMP, "ramp"), GIVEN)
    steps = [RunSettings(Step.create("mean")), RunSettings(Step.create("negative"))]
    line = command_line(image, steps)
    assert "--white=4095.0" in line
    assert "--black=-200.0" in line
    lines = python(image, steps).splitlines()
    assert "pixels = ks.mean(pixels)" in lines
    assert "pixels = ks.negative(pixels, white=4095.0, black=-200.0)" in lines


class _Form:
    """The form of a session, under a hand."""

    def __init__(self, qtbot: QtBot, session: Session) -> None:
        self.session, self.background = session, Background()
        self.form = LevelsForm(session, self.background)
        qtbot.addWidget(self.form)
        self.form.show()
        self.black, self.white = self._part(QLineEdit, "black"), self._part(QLineEdit, "white")
        self.problem = self._part(QLabel, "levelsProblem")
        self.automatic = self._part(QToolButton, "levelsOfSamples")

    def _part(self, kind: type[_Widget], name: str) -> _Widget:
        found = self.form.findChild(kind, name)
        assert found is not None
        return found

    def type(self, field: QLineEdit, text: str) -> None:
        field.selectAll()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)


@pytest.fixture
def form(qtbot: QtBot) -> _Form:
    return _Form(qtbot, _session())


def test_the_estimate_is_shown_and_a_number_replaces_it(form: _Form, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: form.white.placeholderText() == "3000")
    assert form.black.placeholderText() == "-100"
    assert not form.automatic.isEnabled()
    form.type(form.white, "4095")
    assert form.session.subject.levels == Levels(0.0, 4095.0)
    assert form.black.text() == "0"
    form.type(form.black, "-2,123456789")
    assert form.session.subject.levels == Levels(-2.123456789, 4095.0)
    moments = len(form.session.subject.history.moments)
    form.black.editingFinished.emit()  # the focus leaves
    assert len(form.session.subject.history.moments) == moments
    QTest.mouseClick(form.automatic, Qt.MouseButton.LeftButton)
    assert form.session.subject.levels is None
    assert (form.white.text(), form.black.text()) == ("", "")


@pytest.mark.parametrize(
    ("white", "black", "problem"),
    [
        ("-3", "", "White, -3, is not above black, 0."),
        ("", "5", "Black is given without white."),
        ("much", "", "“much” is not a number."),
        ("1e999", "", "White, inf, is not above black, 0."),
    ],
)
def test_what_is_no_range_is_refused(form: _Form, white: str, black: str, problem: str) -> None:
    form.type(form.white, white)
    form.type(form.black, black)
    assert form.problem.text().startswith(problem)
    assert form.session.subject.levels is None
    form.type(form.black, "")
    form.type(form.white, "9")
    assert not form.problem.isVisible()


def test_hidden_where_the_type_states_white(form: _Form) -> None:
    assert form.form.isVisible()
    form.session.pictures.open_source(Image.from_array(np.zeros((4, 4), np.uint8), "bytes"))
    form.session.pictures.note_moment()
    assert not form.form.isVisible()


@pytest.fixture
def filtering(qtbot: QtBot, real_window: MainWindow, tmp_path: Path) -> MainWindow:
    """Return a window with noise, of which a median is shown live."""
    pixels = np.random.default_rng(1).integers(0, 256, (60, 80), np.uint8)
    path = tmp_path / "noise.png"
    Pillow.fromarray(pixels).save(path)
    load(qtbot, real_window, path)
    real_window.session.set_filter("median")
    exact(qtbot, real_window)
    return real_window


def exact(qtbot: QtBot, window: MainWindow) -> Image:
    """Return the output once it is that of the settings."""
    qtbot.waitUntil(lambda: window.session.freshness is Freshness.EXACT)
    result = window.session.subject.result
    assert result is not None
    return result.image


def filtered(window: MainWindow) -> np.ndarray:
    """Return which pixels differ from the input."""
    result, source = window.session.subject.result, window.session.subject.source
    assert result is not None
    return (result.image.planes != source.planes).any(2)


@pytest.mark.slow
def test_the_switch_follows_the_chosen_region(qtbot: QtBot, filtering: MainWindow) -> None:
    box = filtering.findChild(WithinBox, "within")
    assert not box.isVisible()
    whole = exact(qtbot, filtering)
    regions = filtering.measuring.regions
    regions.add(Shape.ELLIPSE, ((10, 8), (50, 40)))
    assert box.text() == "Filter only in R1"
    assert box.isVisible()
    box.click()
    assert filtering.session.freshness is Freshness.OUT_OF_DATE
    limited = exact(qtbot, filtering)
    area = Area.parse("ellipse 10,8 50,40")
    assert filtering.session.require().step.within == area
    mask = area.mask(Region(0, 0, 60, 80))
    assert (limited.planes[mask] == whole.planes[mask]).all()
    assert not filtered(filtering)[~mask].any()
    press(qtbot, filtering, "Ctrl+Alt+R")
    regions.put(regions.all[0].moved(20, 10))
    exact(qtbot, filtering)
    assert filtering.session.require().step.within == Area.parse("ellipse 30,18 70,50")
    assert not filtered(filtering)[:18].any()
    assert filtered(filtering)[18:50, 30:70].any()
    regions.choose(-1)  # nothing is chosen: the filter stays where it was
    assert box.text() == "Filter only in a region"
    assert filtering.session.require().step.within == Area.parse("ellipse 30,18 70,50")
    box.click()
    assert (exact(qtbot, filtering).planes == whole.planes).all()


@pytest.mark.slow
def test_a_line_is_no_area_and_the_next_session_has_no_limit(
    qtbot: QtBot, filtering: MainWindow
) -> None:
    box, regions = filtering.findChild(WithinBox, "within"), filtering.measuring.regions
    regions.add(Shape.LINE, ((1, 1), (9, 9)))
    assert not box.isVisible()
    regions.add(Shape.RECTANGLE, ((1, 1), (9, 9)))
    box.click()
    assert filtering.session.require().step.within is not None
    assert filtering.session.texts()["run"]["within"] == ""


def test_the_noise_that_a_run_found_stays_at_the_number_that_it_gave(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    """It stood in the status bar alone, until the next message."""
    load(qtbot, window, picture)
    window.session.set_filter("collaborative")
    label = window.panel.form.labels["sigma"]
    assert "noise: sigma" not in label.toolTip()
    run(qtbot, window)
    qtbot.waitUntil(lambda: "noise: sigma" in label.toolTip())
    window.show_status("")
    assert "of the range" in label.toolTip()
    assert label.toolTip() == field_of(window.panel.form.editors["sigma"]).toolTip()


@pytest.mark.slow
def test_a_text_that_is_typed_when_another_filter_is_chosen_is_none_of_that_filter(
    qtbot: QtBot, filtering: MainWindow
) -> None:
    """It got a parameter that it does not have: an exception."""
    session = filtering.session
    session.set_filter("poisson_noise")
    box = child(filtering, QAbstractSpinBox, "photonsBox")
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    box.selectAll()
    QTest.keyClicks(box, "0,05")
    assert session.settings is None, "it is no number of photons"
    child(filtering, QComboBox, "filter").setCurrentText("Sobel")
    assert "photons" not in session.values.numbers
    assert session.settings is not None
