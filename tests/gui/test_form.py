"""The generated form: options are declared once, controls and state follow."""

from __future__ import annotations

import pytest
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
