"""The mask table: keyboard, clipboard, files, presets, and refused input."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QLineEdit, QTableWidget
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.gui.docks.parameter_panel import FilterForm
from kernelscope.gui.widgets.masks import MaskEditor
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.schema.parameters import Mask, MaskParameter, MaskPreset

SHARPEN = ((0, -1, 0), (-1, 5, -1), (0, -1, 0))


def ones(size: int) -> Mask:
    return ((1,) * size,) * size


ONES = MaskPreset("Ones", ones, {"divisor": "count"})


@pytest.fixture
def editor(qtbot: QtBot) -> MaskEditor:
    parameter = MaskParameter(
        name="mask",
        label="Mask",
        help="Weights.",
        default=SHARPEN,
        minimum=3,
        maximum=31,
        presets=(ONES,),
    )
    editor = MaskEditor(parameter)
    qtbot.addWidget(editor)
    editor.show()
    qtbot.waitExposed(editor)
    return editor


def table_of(editor: MaskEditor) -> QTableWidget:
    table = editor.findChild(QTableWidget, "maskTable")
    assert table is not None
    return table


def note_of(editor: MaskEditor) -> str:
    return editor.findChild(QLabel, "maskNote").text()


def type_into(qtbot: QtBot, editor: MaskEditor, text: str, end: Qt.Key) -> None:
    """Type over the current cell and leave it by a key."""
    table = table_of(editor)
    qtbot.keyClicks(table, text[0])
    field = table.findChild(QLineEdit)
    qtbot.keyClicks(field, text[1:])
    qtbot.keyClick(field, end)
    qtbot.waitUntil(lambda: table.findChild(QLineEdit) is None)


def test_weights_keep_all_their_digits(editor: MaskEditor) -> None:
    mask = ((1 / 9, 0.1 + 0.2, 1e-12), (0, -123456.75, 0), (1, 2, 3))
    editor.set_value(mask)
    assert editor.value() == mask


def test_set_value_tells_once_and_only_of_changes(qtbot: QtBot, editor: MaskEditor) -> None:
    reported: list[None] = []
    editor.changed.connect(lambda: reported.append(None))
    editor.set_value(ones(3))
    editor.set_value(ones(3))
    assert len(reported) == 1


def test_set_value_refuses_and_keeps_the_table(editor: MaskEditor) -> None:
    with pytest.raises(InvalidParameter, match="no centre"):
        editor.set_value(ones(4))
    assert editor.value() == SHARPEN


@pytest.mark.parametrize("size", [3, 5, 7, 9, 31])
def test_growing_keeps_the_weights_centred(editor: MaskEditor, size: int) -> None:
    chooser = editor.findChild(QComboBox, "maskSize")
    chooser.setCurrentIndex(chooser.findData(size))
    grown = editor.value()
    first = size // 2 - 1
    assert len(grown) == size
    assert tuple(row[first : first + 3] for row in grown[first : first + 3]) == SHARPEN
    assert sum(map(sum, grown)) == 1
    chooser.setCurrentIndex(chooser.findData(3))
    assert editor.value() == SHARPEN


def test_typing_and_moving(qtbot: QtBot, editor: MaskEditor) -> None:
    table = table_of(editor)
    table.setFocus()
    table.setCurrentCell(0, 0)
    type_into(qtbot, editor, "-2.5", Qt.Key.Key_Tab)
    assert (table.currentRow(), table.currentColumn()) == (0, 1)
    type_into(qtbot, editor, "1/4", Qt.Key.Key_Return)
    assert (table.currentRow(), table.currentColumn()) == (1, 1)
    qtbot.keyClick(table, Qt.Key.Key_Return)
    qtbot.keyClick(table, Qt.Key.Key_Right)
    assert (table.currentRow(), table.currentColumn()) == (2, 2)
    type_into(qtbot, editor, "7", Qt.Key.Key_Escape)
    assert editor.value() == ((-2.5, 0.25, 0), (-1, 5, -1), (0, -1, 0))


def test_delete_clears_the_selected_cells(qtbot: QtBot, editor: MaskEditor) -> None:
    table = table_of(editor)
    table.setFocus()
    table.selectRow(1)
    qtbot.keyClick(table, Qt.Key.Key_Delete)
    assert editor.value() == ((0, -1, 0), (0, 0, 0), (0, -1, 0))


def test_tab_leaves_the_table_after_the_last_cell(qtbot: QtBot, editor: MaskEditor) -> None:
    table = table_of(editor)
    table.setFocus()
    table.setCurrentCell(2, 1)
    qtbot.keyClick(table, Qt.Key.Key_Tab)
    assert table.hasFocus()
    qtbot.keyClick(table, Qt.Key.Key_Tab)
    assert editor.focusWidget().objectName() == "maskCopy"
    qtbot.keyClick(editor.focusWidget(), Qt.Key.Key_Backtab)
    assert (table.hasFocus(), table.currentColumn()) == (True, 2)
    type_into(qtbot, editor, "8", Qt.Key.Key_Tab)
    assert editor.value()[2][2] == 8
    assert editor.focusWidget().objectName() == "maskCopy"
    qtbot.keyClick(editor.focusWidget(), Qt.Key.Key_Backtab)
    table.setCurrentCell(0, 0)
    qtbot.keyClick(table, Qt.Key.Key_Backtab)
    assert editor.focusWidget().objectName() == "maskPresets"


@pytest.mark.parametrize("text", ["x", "0,5,1", "1,000", "nan", "inf", "1/0", "2e6", "1/"])
def test_a_bad_cell_is_marked_and_named(editor: MaskEditor, text: str) -> None:
    assert (editor.value(), note_of(editor)) == (SHARPEN, "Sum of the weights: 1")
    item = table_of(editor).item(1, 2)
    reported: list[None] = []
    editor.changed.connect(lambda: reported.append(None))
    item.setText(text)
    with pytest.raises(InvalidParameter, match="row 2, column 3"):
        editor.value()
    assert "row 2, column 3" in item.toolTip()
    assert "row 2, column 3" in note_of(editor)
    fill = item.background().color()
    assert fill.red() > fill.green() + 20
    item.setText("4")
    assert editor.value()[1][2] == 4
    assert item.background().style() == Qt.BrushStyle.NoBrush
    assert note_of(editor) == "Sum of the weights: 6"
    assert len(reported) == 2
    item.setText("  ")
    assert editor.value()[1][2] == 0


def test_a_preset_fills_at_the_current_size(qtbot: QtBot, editor: MaskEditor) -> None:
    editor.set_value(((0,) * 5,) * 5)
    chosen: list[tuple[MaskPreset, Mask]] = []
    editor.presetChosen.connect(lambda preset: chosen.append((preset, editor.value())))
    action = next(a for a in editor.findChildren(QAction) if a.text() == "Ones")
    action.trigger()
    assert chosen == [(ONES, ones(5))]


@pytest.mark.parametrize(
    "text",
    ["1 2 3; 4 5 6; 7 8 9", "1,2,3\n4,5,6\n7,8,9\n", "1\t2\t3\r\n4\t5\t6\r\n7\t8\t9\r\n"],
)
def test_paste(qtbot: QtBot, editor: MaskEditor, text: str) -> None:
    QGuiApplication.clipboard().setText(text)
    table = table_of(editor)
    qtbot.keyClick(table, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert editor.value() == ((1, 2, 3), (4, 5, 6), (7, 8, 9))


def test_pasting_one_number_fills_the_selected_cells(qtbot: QtBot, editor: MaskEditor) -> None:
    QGuiApplication.clipboard().setText(" 0.5\n")
    table = table_of(editor)
    table.selectColumn(0)
    qtbot.keyClick(table, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert editor.value() == ((0.5, -1, 0), (0.5, 5, -1), (0.5, -1, 0))


@pytest.mark.parametrize("key", [Qt.Key.Key_C, Qt.Key.Key_V])
def test_the_window_does_not_take_the_keys_of_the_table(
    qtbot: QtBot, editor: MaskEditor, key: Qt.Key
) -> None:
    QGuiApplication.clipboard().setText("1 2 3; 4 5 6; 7 8 9")
    window_shortcut = QAction(editor)
    window_shortcut.setShortcuts([QKeySequence("Ctrl+C"), QKeySequence("Ctrl+V")])
    editor.addAction(window_shortcut)
    table_of(editor).setFocus()
    with qtbot.assertNotEmitted(window_shortcut.triggered):
        qtbot.keyClick(table_of(editor), key, Qt.KeyboardModifier.ControlModifier)
    copied = "\t" in QGuiApplication.clipboard().text()
    assert copied == (key == Qt.Key.Key_C)
    assert (editor.value() == SHARPEN) == copied


def open_error(editor: MaskEditor) -> str:
    """Return the message of the only error dialog, and close it."""
    (dialog,) = editor.findChildren(ErrorDialog)
    text = dialog.text()
    dialog.accept()
    return text


@pytest.mark.parametrize("text", ["", "1 2; 3 4", "1 2 3; 4 five 6; 7 8 9", "1 2 3; 4 5"])
def test_pasting_nonsense_is_reported(editor: MaskEditor, text: str) -> None:
    QGuiApplication.clipboard().setText(text)
    editor.paste()
    assert open_error(editor).startswith("The clipboard holds no mask.")
    assert editor.value() == SHARPEN


def test_copy_pastes_back(qtbot: QtBot, editor: MaskEditor) -> None:
    mask = ((1 / 3, 0, -1), (0, 2, 0), (0.5, 0, 1e-9))
    editor.set_value(mask)
    qtbot.keyClick(table_of(editor), Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().count("\t") == 6
    editor.set_value(SHARPEN)
    editor.paste()
    assert editor.value() == mask


def test_save_and_load(editor: MaskEditor, tmp_path: Path) -> None:
    path = tmp_path / "můj mask.txt"
    mask = ((1 / 3, 0, -1), (0, 2, 0), (0.5, 0, 1e-9))
    editor.set_value(mask)
    editor.save_to(path)
    assert len(path.read_text().splitlines()) == 3
    editor.set_value(ones(5))
    editor.load_from(path)
    assert editor.value() == mask


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x81", b"hello world", None, "a folder"])
def test_a_bad_file_is_reported_by_name(
    editor: MaskEditor, tmp_path: Path, content: bytes | str | None
) -> None:
    path = tmp_path / "m.txt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    with pytest.raises(AppError, match=r"m\.txt"):
        editor.load_from(path)
    assert editor.value() == SHARPEN


def test_a_place_that_cannot_be_written_is_reported(editor: MaskEditor, tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "m.txt"
    editor.save()
    (dialog,) = editor.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(path))
    assert f"m.txt: the folder {path.parent} does not exist." in open_error(editor)


def test_a_bad_mask_is_not_saved(editor: MaskEditor, tmp_path: Path) -> None:
    table_of(editor).item(0, 0).setText("x")
    with pytest.raises(AppError, match="row 1, column 1"):
        editor.save_to(tmp_path / "m.txt")
    assert not (tmp_path / "m.txt").exists()


def test_values_are_read_after_each_kind_of_change(qtbot: QtBot) -> None:
    form = FilterForm(filters.get("mask"))
    qtbot.addWidget(form)
    editor = form.editors["mask"]
    assert isinstance(editor, MaskEditor)
    first = form.state()
    assert form.state().same_as(first), "a mask that is not changed is one object"
    five = [[float(x == y) for x in range(5)] for y in range(5)]
    editor.set_value(five)
    assert form.state().numbers["mask"] == tuple(map(tuple, five))
    table = editor.findChild(QTableWidget)
    assert table is not None
    table.item(2, 2).setText("7.5")
    assert form.state().numbers["mask"][2][2] == 7.5
    table.item(0, 0).setText("?")
    read = form.state()
    assert isinstance(read.problem, InvalidParameter)
    assert read.numbers["mask"][2][2] == 7.5, "the last that could be read"
    assert not read.same_as(read)
