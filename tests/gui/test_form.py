"""The generated form: options are declared once, controls and state follow."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QSpinBox
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.gui.docks.parameter_panel import FilterForm
from kernelscope.gui.session.session import Values
from kernelscope.gui.widgets.form import Form, Listed, Real, Text, Tick, Whole
from kernelscope.schema.devices import Device

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
    assert box.currentText() == "Own of 2×2"
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
    assert box.currentText() == "Own of 5×5"
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
    assert box.currentText() == "Own of 3×2"
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
