"""Forms of declarations, and the controls in them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st
from PySide6 import QtGui
from PySide6.QtCore import QEvent, QLocale, QPoint, QPointF, QSignalBlocker, Qt
from PySide6.QtGui import QGuiApplication, QMouseEvent, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollBar,
    QSpinBox,
    QStyleOptionComboBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.backend import Availability
from kernelscope.gui.docks.parameter_panel import FilterForm
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.session.session import Values
from kernelscope.gui.tools.bench_window import BenchForm
from kernelscope.gui.tools.phantom_dialog import PhantomDialog
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.widgets.controls import ChoiceBox, NumberBox, Slider, WholeBox
from kernelscope.gui.widgets.form import (
    AxesEditor,
    Form,
    Listed,
    NumberEditor,
    Real,
    Text,
    Tick,
    Whole,
    create_editor,
)
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.widgets.parts import ElidedLabel
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.schema.devices import Device
from kernelscope.schema.parameters import AxesParameter, FloatParameter, Parameter
from tests.gui.conftest import LOCALES
from tests.gui.helpers import FakeCpu, Opener, child, dialog, load, press, settle
from tests.schema.test_parameters import KINDS

OPTIONS = (
    Listed("where", "&Where", Device.CPU, "Where to compute", (("CPU", Device.CPU),), str.upper),
    Whole("repeat", "Re&peat", 1, "How often", low=1, high=9, unit="×"),
    Real("share", "Share", 0.5),
    Tick("fast", "&Fast"),
    Text("name", "Name", hint="of the run"),
)


@pytest.fixture
def form(qtbot: QtBot) -> Form:
    made = Form("made", OPTIONS)
    qtbot.addWidget(made)
    return made


def test_a_control_has_the_names_and_the_tip_of_its_option(form: Form) -> None:
    box = form.editors["repeat"]
    assert (box.objectName(), box.accessibleName(), box.toolTip()) == (
        *("repeat", "Repeat"),
        "How often",
    )
    assert form.labels["repeat"].buddy() is box
    assert form.editors["name"].placeholderText() == "of the run"


def test_the_state_follows_the_controls_in_their_own_types(form: Form) -> None:
    heard: list[str] = []
    form.changed.connect(heard.append)
    form.editors["repeat"].setValue(3)
    form.editors["share"].setValue(0.25)
    form.editors["fast"].click()
    form.editors["name"].setText("a")
    assert heard == ["repeat", "share", "fast", "name"]
    assert form.values == {
        **{"where": Device.CPU, "repeat": 3, "share": 0.25},
        **{"fast": True, "name": "a"},
    }
    assert form.values["where"] is Device.CPU  # Qt would make a plain text of it


def test_text_that_is_no_number_leaves_the_state_and_has_a_reason(form: Form) -> None:
    form.editors["repeat"].lineEdit().setText("10 ×")
    assert form.values["repeat"] == 1
    assert form.problem is not None
    assert "10" in form.problem.message
    form.show_values(share=0.75)
    assert form.editors["repeat"].typed() == "10", "what is typed stays"
    form.editors["repeat"].lineEdit().setText("9 ×")
    assert (form.values["repeat"], form.problem) == (9, None)


def test_showing_values_is_no_change_of_the_user(form: Form) -> None:
    heard: list[str] = []
    form.changed.connect(heard.append)
    form.show_values(where=Device.GPU, repeat=4, fast=True, name="b")
    assert heard == []
    assert form.values["where"] is Device.GPU
    assert form.editors["where"].currentText() == "GPU", "named, although it was not offered"
    assert form.editors["repeat"].value() == 4
    assert form.editors["fast"].isChecked()


def test_a_value_that_is_not_offered_now_stays_in_the_state(qtbot: QtBot) -> None:
    form = Form("made", [Listed("n", "N", 2, "", (("one", 1), ("two", 2)))])
    qtbot.addWidget(form)
    form.offer("n", [("one", 1)])
    assert form.values["n"] == 2
    form.offer("n", [("one", 1), ("two", 2)])
    assert form.editors["n"].currentText() == "two"


def test_the_shape_of_a_mask_is_a_list_that_also_shows_a_table(qtbot: QtBot) -> None:
    """One comes with a recipe; the size of the mask has no effect then."""
    spec = filters.get("median")
    form = FilterForm(spec)
    qtbot.addWidget(form)
    box, size = form.editors["footprint"], form.editors["size"]
    assert [box.itemText(place) for place in range(box.count())] == ["Square", "Disk", "Cross"]
    box.setCurrentIndex(1)
    assert form.state().numbers["footprint"] == "disk"
    assert size.isEnabled()
    table = ((0, 1), (1, 1))
    form.show_state(Values(spec.validate({"footprint": table}), ()))
    assert box.currentText() == "Own shape, 2 wide, 2 high"
    assert form.state().numbers["footprint"] == table
    assert not size.isEnabled()
    box.setCurrentIndex(0)
    assert form.state().numbers["footprint"] == "square"


@pytest.mark.parametrize("filter_id", ["median", "minimum", "maximum", "morphology"])
def test_a_mask_of_any_shape_is_drawn_from_the_one_in_front(qtbot: QtBot, filter_id: str) -> None:
    spec = filters.get(filter_id)
    form = FilterForm(spec)
    qtbot.addWidget(form)
    form.show()
    box = form.editors["footprint"]
    assert not box.sheet.isVisible()
    form.show_state(Values(spec.validate({"footprint": "disk", "size": 5}), ()))
    qtbot.mouseClick(box.draw, Qt.MouseButton.LeftButton)
    disk = ((0, 0, 1, 0, 0), (0, 1, 1, 1, 0), (1,) * 5, (0, 1, 1, 1, 0), (0, 0, 1, 0, 0))
    assert form.state().numbers["footprint"] == disk
    assert (box.sheet.isVisible(), box.draw.isVisible()) == (True, False)
    assert box.currentText() == "Own shape, 5 wide, 5 high"
    table = box.sheet.table
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Down, Qt.Key.Key_1, Qt.Key.Key_Right, Qt.Key.Key_0):
        qtbot.keyClick(table, key)
    drawn = ((1, 0, 1, 0, 0), (1, 0, 1, 1, 0), *disk[2:])
    assert form.state().numbers["footprint"] == drawn
    assert box.sheet.findChild(QLineEdit).text() == spec.parameter("footprint").format(drawn)
    box.setCurrentIndex(2)
    assert form.state().numbers["footprint"] == "cross"
    assert not box.sheet.isVisible()


def test_a_mask_is_drawn_with_the_mouse_and_by_text(qtbot: QtBot) -> None:
    form = FilterForm(filters.get("median"))
    qtbot.addWidget(form)
    form.show()
    box = form.editors["footprint"]
    box.draw.click()
    table, text = box.sheet.table, box.sheet.findChild(QLineEdit)
    changed = list[str]()
    form.changed.connect(changed.append)
    places = [table.visualItemRect(table.item(1, x)).center() for x in range(3)]
    qtbot.mousePress(table.viewport(), Qt.MouseButton.LeftButton, pos=places[0])
    for place in places[1:]:
        qtbot.mouseMove(table.viewport(), place)
        moved = QMouseEvent(
            QEvent.Type.MouseMove,
            QPointF(place),
            QPointF(table.viewport().mapToGlobal(place)),
            Qt.MouseButton.NoButton,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        QApplication.sendEvent(table.viewport(), moved)
    qtbot.mouseRelease(table.viewport(), Qt.MouseButton.LeftButton, pos=places[2])
    assert form.state().numbers["footprint"] == ((1, 1, 1), (0, 0, 0), (1, 1, 1))
    assert set(changed) == {"footprint"}
    text.clear()
    qtbot.keyClicks(text, "0 1; 1 1; 0 1")
    assert form.state().numbers["footprint"] == ((0, 1), (1, 1), (0, 1))
    assert (table.rowCount(), table.columnCount()) == (3, 2)
    assert box.currentText() == "Own shape, 2 wide, 3 high"
    qtbot.keyClicks(text, " 1")
    problem = form.state().problem
    assert problem is not None
    assert "differ in length" in str(problem)
    assert table.cells() == ((0, 1), (1, 1), (0, 1)), "the last that was one"
    for _ in range(2):
        qtbot.keyClick(text, Qt.Key.Key_Backspace)
    assert form.state().problem is None
    columns = form.findChild(QSpinBox, "footprintColumns")
    columns.setValue(4)
    assert form.state().numbers["footprint"] == ((0, 0, 1, 0), (0, 1, 1, 0), (0, 0, 1, 0))
    columns.setValue(1)
    assert form.state().numbers["footprint"] == ((1,), (1,), (1,))


def test_a_mask_without_cells_is_refused_with_the_reason(qtbot: QtBot) -> None:
    form = FilterForm(filters.get("minimum"))
    qtbot.addWidget(form)
    box = form.editors["footprint"]
    box.draw.click()
    rows, columns = (form.findChild(QSpinBox, f"footprint{n}") for n in ("Rows", "Columns"))
    rows.setValue(1)
    columns.setValue(1)
    assert form.state().numbers["footprint"] == ((1,),)
    qtbot.keyClick(box.sheet.table, Qt.Key.Key_Space)
    problem = form.state().problem
    assert problem is not None
    assert "no cell belongs to it" in str(problem)
    qtbot.keyClick(box.sheet.table, Qt.Key.Key_Space)
    assert form.state().problem is None


@pytest.fixture(params=LOCALES)
def locale(request: pytest.FixtureRequest) -> str:
    """Make the locale the user's, before there is any widget."""
    QLocale.setDefault(QLocale(request.param))
    return request.param


def everything(qtbot: QtBot, window: MainWindow) -> list[QWidget]:
    """Return all of the program's widgets that hold controls, with the form of every filter."""
    for spec in filters.discover().values():
        window.session.set_filter(spec.id)
    whole = [window, PhantomDialog(), BenchForm(lambda: None), PairView(CanvasView(3))]
    for each in whole[1:]:
        qtbot.addWidget(each)
    return whole


def own(widget: QWidget, kind: type) -> list[Any]:
    """Return the controls of this kind, without the parts of Qt's own dialogs and lists."""
    return [
        each
        for each in widget.findChildren(kind)
        if not isinstance(each, QScrollBar) and not each.objectName().startswith("qt_")
    ]


def test_every_control_is_of_the_kind_that_knows_locales_and_wheels(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.companions.show_bench()
    counts = dict.fromkeys((QComboBox, QAbstractSpinBox, QAbstractSlider), 0)
    for widget in everything(qtbot, window):
        for kind in counts:
            for each in own(widget, kind):
                assert isinstance(each, ChoiceBox | NumberBox | WholeBox | Slider), each
                assert each.focusPolicy() is Qt.FocusPolicy.StrongFocus
                counts[kind] += 1
    assert min(counts.values()) > 3
    window.companions.bench.close()


def hosted(qtbot: QtBot, kind: type) -> Any:
    """Return a box in a window of its own, beside a button that can have the focus."""
    host = QWidget()
    qtbot.addWidget(host)
    row = QHBoxLayout(host)
    box = kind()
    row.addWidget(box)
    row.addWidget(QPushButton("other"))
    host.show()
    host.activateWindow()
    qtbot.waitUntil(host.isActiveWindow)
    box.host = host  # which lives as long
    return box


def leave(box: QWidget) -> None:
    """Give the focus to something else."""
    box.parentWidget().findChild(QPushButton).setFocus()
    assert not box.hasFocus()


def type_into(box: NumberBox | WholeBox, text: str) -> None:
    """Replace the text of the box, key by key."""
    box.setFocus()
    assert box.hasFocus()
    box.selectAll()
    QTest.keyClicks(box, text)


@pytest.mark.parametrize(
    "text",
    ["0.0000123456789", "1e-5", "+12.5", ".5", "0,000012", "1234567.5", "123456,75", "3", "1,67"],
)
def test_every_number_box_keeps_all_digits(locale: str, qtbot: QtBot, text: str) -> None:
    box = hosted(qtbot, NumberBox)
    box.setRange(-1e9, 1e9)
    wanted = float(text.replace(",", "."))
    type_into(box, text)
    assert box.value() == wanted
    leave(box)
    assert box.value() == wanted
    assert float(box.text()) == pytest.approx(wanted, rel=1e-5)
    type_into(box, "7")
    QGuiApplication.clipboard().setText(text)
    box.selectAll()
    QTest.keyClick(box, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert box.value() == wanted


REFUSED = ["1,000", "1.000,5", "1 234", "1\u202f234", "1\u00a0234,5", "1'000", "0,0,3", "1_0", "x"]


@pytest.mark.parametrize("text", [*REFUSED, "-1", "101", "1e999", ""])
@pytest.mark.parametrize("kind", [NumberBox, WholeBox])
def test_what_is_no_number_is_refused_and_never_made_one(
    locale: str, qtbot: QtBot, kind: type, text: str
) -> None:
    box = hosted(qtbot, kind)
    box.setRange(0, 100)
    box.setValue(42)
    QGuiApplication.clipboard().setText(text)
    box.setFocus()
    box.selectAll()
    if text:
        QTest.keyClick(box, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    else:
        QTest.keyClick(box, Qt.Key.Key_Delete)
    assert box.typed() == text
    assert not box.hasAcceptableInput()
    leave(box)
    assert (box.value(), box.text()) == (42, "42")


def test_leaving_a_box_takes_back_also_what_could_be_read_halfway(qtbot: QtBot) -> None:
    box = hosted(qtbot, WholeBox)
    box.setRange(1, 99)
    box.setValue(42)
    type_into(box, "1.5")
    assert box.typed() == "1.5"
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert box.value() == 42
    type_into(box, "15")
    QTest.keyClick(box, Qt.Key.Key_Return)
    type_into(box, "3,")
    leave(box)
    assert box.value() == 15


def test_special_text_and_unit_stand_for_what_they_say(qtbot: QtBot) -> None:
    box = hosted(qtbot, WholeBox)
    box.setRange(0, 100)
    box.setSuffix(" MiB")
    box.setSpecialValueText("all")
    assert (box.text(), box.value(), box.hasAcceptableInput()) == ("all", 0, True)
    box.lineEdit().setText("7 MiB")
    assert box.value() == 7
    box.lineEdit().setText("all")
    assert box.value() == 0
    leave(box)
    assert box.text() == "all"


@pytest.mark.smoke
def test_run_refuses_what_stands_in_a_box_by_name(
    locale: str, qtbot: QtBot, window: MainWindow, picture, cpu: FakeCpu
) -> None:
    load(qtbot, window, picture)
    window.session.set_filter("median")
    box = child(window, WholeBox, "sizeBox")
    box.setValue(7)
    problem = window.panel.findChild(QLabel, "problem")
    for text, says in (("5.5", "“5.5” is not a whole number"), ("99", "99 is out of range")):
        type_into(box, text)
        assert says in problem.text()
        assert problem.isVisible()
        press(qtbot, window, "F5")
        reported = dialog(qtbot, window, ErrorDialog)
        assert any(says in label.text() for label in reported.findChildren(QLabel))
        reported.reject()
        child(window, QComboBox, "filter").setFocus()
        assert box.value() == 7
        assert not problem.isVisible()
    assert cpu.requests == []


def test_run_refuses_what_stands_in_a_box_of_the_gpu_too(
    qtbot: QtBot, open_window: Opener, picture
) -> None:
    window = open_window(Availability(True, "test card"))
    window.find_gpu()
    qtbot.waitUntil(lambda: bool(window.companions.availability))
    load(qtbot, window, picture)
    window.session.set_filter("mean")
    window.session.choose_place(RungPlace(Device.GPU, "shared"))  # where they are shown
    settle(qtbot, window)
    for name, label in (("repeat", "Repeat kernel"), ("memoryLimit", "GPU memory")):
        box = child(window, WholeBox, name)
        box.parentWidget().setEnabled(True)
        before = box.text()
        type_into(box, "1.5")
        press(qtbot, window, "F5")
        reported = dialog(qtbot, window, ErrorDialog)
        assert any(f"{label}: “1.5”" in each.text() for each in reported.findChildren(QLabel))
        reported.reject()
        type_into(box, before)
    assert not window.runner.busy


@how(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(-1e15, 1e15).filter(lambda number: number == 0 or abs(number) > 1e-200))
def test_what_is_set_is_what_comes_back(qapp: QApplication, number: float) -> None:
    box = NumberBox()
    box.setRange(-1e15, 1e15)
    box.setValue(number)
    assert box.value() == number
    box.interpretText()
    assert box.value() == number
    assert math.isclose(float(box.text()), number, rel_tol=1e-5, abs_tol=1e-300)
    box.lineEdit().setText(repr(number))
    assert box.value() == number


def test_steps_leave_no_crumbs(qtbot: QtBot) -> None:
    box = hosted(qtbot, NumberBox)
    box.setRange(0, 10)
    box.setSingleStep(0.1)
    box.setValue(0.1)
    box.stepBy(2)
    assert (box.value(), box.text()) == (0.3, "0.3")


# --- text with numbers ---


def test_several_numbers_in_a_line(locale: str, qtbot: QtBot) -> None:
    spec = filters.get("mri_nlm").parameter("sigma")
    parent = QWidget()
    qtbot.addWidget(parent)
    line = create_editor(spec, parent)
    assert isinstance(line, QLineEdit)
    for text, wanted in (("20.5, 15", (20.5, 15.0)), ("20; 15,5,3", (20.0, 15.0, 5.0, 3.0))):
        line.setText(text)
        assert line.value() == wanted
    for text in ("0,05", "20,5; 15,5", "1 000,5"):
        line.setText(text)
        with pytest.raises(InvalidParameter, match="may be one number or two"):
            line.value()


@pytest.mark.parametrize("parameter", KINDS, ids=lambda each: type(each).__name__)
def test_each_kind_of_parameter_has_an_editor_with_its_default(
    parameter: Parameter, qtbot: QtBot
) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    editor = create_editor(parameter, parent)
    assert editor.value() == parameter.default
    assert editor.accessibleName() == parameter.label
    button = editor.findChild(QWidget, f"{parameter.name}Estimate")
    assert (button is not None) == parameter.has_estimate


# --- the wheel ---


def roll(widget: QWidget, down: int = 1) -> None:
    """Turn the wheel over the middle of a widget, as the desktop does it."""
    window = widget.window()
    place = QPointF(widget.mapTo(window, widget.rect().center()))
    QTest.wheelEvent(window.windowHandle(), place, QPoint(0, -120 * down))


def held(widget: Any) -> object:
    return widget.currentText() if isinstance(widget, QComboBox) else widget.value()


def test_the_wheel_and_extreme_numbers_change_what_has_the_focus_and_nothing_else(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.session.set_filter("nlm")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    for kind, name, down in (
        (NumberBox, "filter_sigmaBox", -1),
        (Slider, "search_radiusSlider", 1),
        (ChoiceBox, "search", 1),
    ):
        each = child(window, kind, name)
        before = held(each)
        each.setFocus()

        def turned(
            each: QWidget = each, down: int = down, before: object = before
        ) -> bool:  # once a form that is new is laid out
            window.panel.ensureWidgetVisible(each)
            roll(each, down)
            return held(each) != before

        qtbot.waitUntil(turned)

    window.session.set_filter("nlm")
    box, slider = (
        child(window, NumberBox, "filter_sigmaBox"),
        child(window, Slider, "filter_sigmaSlider"),
    )
    type_into(box, "497848.3")
    assert window.session.require().step.parameters["filter_sigma"] == 497848.3
    assert slider.value() == slider.maximum()
    type_into(box, "1e-8")
    assert slider.value() == 0

    window.resize(900, 420)
    bar = window.panel.verticalScrollBar()
    tried = 0
    for spec in filters.discover().values():
        window.session.set_filter(spec.id)
        QApplication.processEvents()  # a form takes its place
        window.findChild(QWidget, "inputCanvas").setFocus()
        controls = [
            each
            for kind in (ChoiceBox, NumberBox, WholeBox, Slider)
            for each in own(window.panel, kind)
            if each.isVisible() and each.isEnabled()
        ]
        for each in controls:
            before = window.session.require()
            bar.setValue(0)
            qtbot.waitUntil(lambda: bar.value() == 0)
            QApplication.processEvents()  # forms take their places
            window.panel.ensureWidgetVisible(each)
            QApplication.processEvents()
            start = bar.value()
            if not bar.maximum():
                continue  # all of the form is in sight
            if start == bar.maximum():
                bar.setValue(start := bar.maximum() - 1)
            roll(each)
            assert window.session.require() == before, each.objectName()
            assert bar.value() > start, f"{spec.id} {each.objectName()}"
            assert not each.hasFocus()
            tried += 1
    assert tried > 60

    # Last: sliders at their ends let the wheel pass in any case.
    for spec in filters.discover().values():
        window.session.set_filter(spec.id)
        for each in own(window.panel, WholeBox) + own(window.panel, NumberBox):
            for extreme in (each.maximum(), each.minimum()):
                each.setValue(extreme)
                assert each.value() == extreme


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.25, "0.25"),
        (2.0, "2"),
        (5 / 3, "1.66667"),
        (0.12345678, "0.12345678"),
        (0.123456789, "0.123457"),
        (1234567.5, "1234567.5"),
    ],
)
def test_a_number_is_shown_in_full_if_it_is_short(qtbot: QtBot, value: float, text: str) -> None:
    box = NumberBox()
    qtbot.addWidget(box)
    box.setRange(0, 1e9)
    box.setDecimals(1)
    box.setValue(value)
    assert (box.value(), box.textFromValue(box.value())) == (value, text)


@pytest.mark.parametrize("value", [5 / 3, 0.1, 12.3456, 1 / 7])
def test_a_number_and_its_unit_are_seen_whole(qtbot: QtBot, value: float) -> None:
    form = FilterForm(filters.get("nlm"))
    qtbot.addWidget(form)
    form.resize(260, 600)
    form.show()
    editor = form.editors["patch_sigma"]
    assert isinstance(editor, NumberEditor)
    editor.set_value(value)
    box = form.findChild(NumberBox, "patch_sigmaBox")
    qtbot.waitUntil(lambda: box.width() >= box.minimumWidth())
    line = box.lineEdit()
    assert line.text().endswith(" px")
    assert line.fontMetrics().horizontalAdvance(line.text()) < line.width()


def test_values_over_powers_of_ten_go_by_factors(qtbot: QtBot) -> None:
    """The best sigma of a picture with 12 of 16 bits was beyond the end of a linear slider."""
    (parameter,) = (p for p in filters.get("nlm").parameters if p.name == "filter_sigma")
    assert isinstance(parameter, FloatParameter)
    editor = NumberEditor(parameter)
    qtbot.addWidget(editor)
    slider, box = editor.findChild(Slider), editor.findChild(NumberBox)
    editor.set_value(9.487e-07)
    assert editor.value() == 9.487e-07
    assert 100 < slider.value() < 200
    slider.setValue(500)
    assert editor.value() == 3.16e-4
    assert slider.value() == 500
    box.stepBy(1)
    assert editor.value() == 3.48e-4
    box.stepBy(-2)
    assert editor.value() == 2.88e-4
    editor.set_value(1e-8)
    assert slider.value() == 0
    slider.setValue(1000)
    assert editor.value() == 1.0


def test_the_slider_reaches_a_small_value_that_is_there(qtbot: QtBot) -> None:
    """Noise of 8.5 of 65535 levels is 0.013 % of them, and the usual range begins at 0.1 %."""
    (parameter,) = (p for p in filters.get("nlm").parameters if p.name == "sigma")
    assert isinstance(parameter, FloatParameter)
    editor = NumberEditor(parameter)
    qtbot.addWidget(editor)
    slider = editor.findChild(Slider)
    editor.set_value(0.013)
    assert slider.value() > 0
    slider.setValue(0)
    assert editor.value() == 0.01
    slider.setValue(slider.maximum())
    assert editor.value() == 50


def test_a_choice_that_is_too_long_ends_in_dots(qtbot: QtBot) -> None:
    box = ChoiceBox()
    qtbot.addWidget(box)
    box.addItems(["short", "Korčuška 2013: level comparison (9x9, 4096²)"])
    box.setFixedWidth(150)

    def shown() -> str:
        option = QStyleOptionComboBox()
        box.initStyleOption(option)
        return str(option.currentText)

    assert shown() == "short"
    box.setCurrentIndex(1)
    assert shown().startswith("Korčuška 2013")
    assert shown().endswith("…")
    assert box.currentText().endswith("4096²)"), "the text itself, as screen readers take it"
    box.setFixedWidth(600)
    assert shown() == box.currentText()


def test_a_number_may_be_one_for_each_axis(qtbot: QtBot) -> None:
    """The line beside the box counts while something stands there; the slider empties it."""
    (parameter, _) = filters.get("gaussian").parameters
    assert isinstance(parameter, AxesParameter)
    qtbot.addWidget(editor := AxesEditor(parameter))
    slider = child(editor, Slider, "sigmaSlider")
    line = child(editor, QLineEdit, "sigmaAxes")
    changes: list[Any] = []
    editor.changed.connect(lambda: changes.append(editor.value()))
    assert editor.value() == 1.0
    line.setText("1, 2.5")
    assert changes == [(1.0, 2.5)]
    slider.setValue(1000)
    assert changes[1:] == [20.0]
    assert line.text() == ""
    editor.set_value((3.0, 0.5))
    assert editor.value() == (3.0, 0.5)
    editor.set_value(2.0)
    assert editor.value() == 2.0
    with QSignalBlocker(line):
        line.setText("1,2")
    with pytest.raises(InvalidParameter, match="may be one number or several"):
        editor.value()


@pytest.mark.parametrize("geometric", [False, True])
def test_a_slider_has_the_usual_range_and_no_more(qtbot: QtBot, geometric: bool) -> None:
    parameter = FloatParameter(
        name="strength",
        label="Strength",
        help="How much.",
        default=12.0,
        minimum=5.0,
        maximum=1000.0,
        slider=(10.0, 40.0),
        geometric=geometric,
    )
    qtbot.addWidget(editor := NumberEditor(parameter))
    slider = child(editor, Slider, "strengthSlider")
    for share, wanted in ((1.0, 40), (0.0, 10), (0.5, 20 if geometric else 25)):
        slider.setValue(round(share * slider.maximum()))
        assert editor.value() == pytest.approx(wanted, rel=1e-3)
    editor.set_value(1000.0)
    assert slider.value() == slider.maximum()


@pytest.mark.parametrize("name", ["<b>a</b>.tif", "a < b.tif", "plain.tif"])
def test_a_tooltip_shows_names_as_they_are(qtbot: QtBot, name: str) -> None:
    """Qt takes a text that looks like markup for markup, and would load its pictures."""
    label = ElidedLabel()
    qtbot.addWidget(label)
    label.set_full_text(name)
    document = QTextDocument()
    show = document.setHtml if QtGui.Qt.mightBeRichText(label.toolTip()) else document.setPlainText
    show(label.toolTip())
    assert document.toPlainText().replace("\xa0", " ") == name


@pytest.mark.parametrize(("count", "wanted"), [(3, 1), (4, 1), (4, 2)])
def test_a_click_in_the_groove_of_a_slider_goes_to_its_place(
    qtbot: QtBot, count: int, wanted: int
) -> None:
    slider = Slider()
    qtbot.addWidget(slider)
    slider.setRange(0, count - 1)
    slider.resize(400, 24)
    slider.show()
    qtbot.waitExposed(slider)
    left, middle = Qt.MouseButton.LeftButton, slider.height() // 2
    place = QPoint(round(slider.width() * wanted / (count - 1)), middle)
    qtbot.mousePress(slider, left, pos=place)
    assert slider.value() == wanted
    qtbot.mouseMove(slider, QPoint(slider.width() + 20, middle))
    assert slider.value() == count - 1, "it is dragged on"
    qtbot.mouseRelease(slider, left, pos=QPoint(slider.width() + 20, middle))
    assert not slider.isSliderDown()
