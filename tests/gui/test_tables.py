"""Figures below each other, and rows that Ctrl+C copies."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QAction, QColor, QFont, QFontMetrics, QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QMainWindow, QTreeWidget, QTreeWidgetItem
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets.tables import (
    BARS,
    BarDelegate,
    Column,
    CopyableTree,
    FigureDelegate,
    parts_of,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("14.5 ms", ("14", ".5", " ms")),
        ("589 µs", ("589", "", " µs")),
        ("≈ 1,234.5×", ("≈ 1,234", ".5", "×")),
        ("0.9400", ("0", ".9400", "")),
        ("–", None),
        ("see Median", None),
        ("360 (≈ 1,441)", None),
    ],
)
def test_a_figure_has_a_whole_part_decimals_and_a_unit(
    text: str, parts: tuple[str, str, str] | None
) -> None:
    assert parts_of(text) == parts


def ink(column: Column, text: str, width: int) -> list[int]:
    """Return the columns of pixels that a text leaves ink in, drawn in a cell of this width."""
    image = QImage(width, 40, QImage.Format.Format_Grayscale8)
    image.fill(0)
    painter = QPainter(image)
    painter.setPen(Qt.GlobalColor.white)
    column.paint(painter, QRect(0, 0, width, 40), text)
    painter.end()
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(40, image.bytesPerLine())
    found: list[int] = np.flatnonzero(pixels[:, :width].any(axis=0)).tolist()
    return found


def test_digits_before_the_point_end_at_one_place_whatever_follows(qtbot: QtBot) -> None:
    texts = ("4 s", "4.48 µs", "14.4 ms", "–")
    metrics = QFontMetrics(QFont())
    column, room = Column(texts, metrics), 200
    digit = metrics.horizontalAdvance("4")
    point = room - sum(max(map(metrics.horizontalAdvance, each)) for each in (
        (".48", ".4"), (" s", " µs", " ms")
    ))  # fmt: skip
    for text in texts[:3]:
        before = [x for x in ink(column, text, room) if x < point]
        assert point - digit <= max(before) < point, text
    assert max(ink(column, "–", room)) >= room - metrics.horizontalAdvance("–")
    narrow = column.width - 1
    assert max(ink(column, "4 s", narrow)) >= narrow - digit, "right-aligned where it does not fit"


def test_a_column_of_a_view_has_room_for_its_parts_and_follows_changes(qtbot: QtBot) -> None:
    tree = QTreeWidget()
    qtbot.addWidget(tree)
    tree.setColumnCount(1)
    delegate = FigureDelegate(tree)
    tree.setItemDelegateForColumn(0, delegate)
    item = QTreeWidgetItem(["1.25 s"])
    tree.addTopLevelItem(item)
    narrow = tree.sizeHintForColumn(0)
    tree.addTopLevelItem(QTreeWidgetItem(["1,000 µs"]))
    wide = tree.sizeHintForColumn(0)
    assert wide >= Column(("1.25 s", "1,000 µs"), tree.fontMetrics()).width > narrow
    item.setText(0, "7 s")
    assert tree.sizeHintForColumn(0) < wide


def test_the_tree_comes_before_the_window(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    others: list[str] = []
    for key in ("Ctrl+C", "Ctrl+V"):
        action = QAction(window)
        action.setShortcut(key)
        action.triggered.connect(lambda _=False, key=key: others.append(key))
        window.addAction(action)
    tree = CopyableTree(lambda: "a\tb")
    window.setCentralWidget(tree)
    window.show()
    qtbot.waitExposed(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    tree.setFocus()
    QGuiApplication.clipboard().setText("before")
    qtbot.keyClick(tree, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert others == ["Ctrl+V"]
    assert QGuiApplication.clipboard().text() == "a\tb"


def test_bars_without_room_stay_in_their_cell(qtbot: QtBot) -> None:
    """Texts wider than the column made its bars negative: marks stood in the column before."""
    tree, bars = QTreeWidget(), BarDelegate()
    qtbot.addWidget(tree)
    bars.texts = 500
    tree.setColumnCount(2)
    tree.header().setMinimumSectionSize(0)
    tree.setItemDelegateForColumn(1, bars)
    item = QTreeWidgetItem(tree, ["", ""])
    item.setData(1, BARS, [(QColor("#ff0000"), 1.0, None)])
    tree.resize(400, 100)
    tree.header().resizeSection(0, 300)
    row = tree.visualItemRect(item)
    picture = tree.viewport().grab().toImage()
    middle = 300 * picture.devicePixelRatio()
    red = [
        x
        for x in range(picture.width())
        for y in range(round(row.bottom() * picture.devicePixelRatio()))
        if picture.pixelColor(x, y).red() > 200 and picture.pixelColor(x, y).green() < 50
    ]
    assert red
    assert min(red) >= middle - 12, "half of the mark"
