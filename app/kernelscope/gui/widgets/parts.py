"""Builders: a widget with its names and tip, a button with its action, rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QAction, QColor, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QComboBox,
    QGraphicsScene,
    QGraphicsView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QMenu,
    QPushButton,
    QSplitter,
    QToolButton,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

from kernelscope.gui.widgets.theme import set_role


def look_at_every_item(view: QGraphicsView) -> None:
    """Have the scene of a plot keep no index of its items.

    Qt's index finds a removed item by its bounding rectangle. That of PyQtGraph's axes follows the
    plot beside them without a notice to Qt, so an axis stayed in the index after it was destroyed,
    and the next painting crashed. A plot has a few dozen items: an index would save no time.
    """
    view.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)


SELECTABLE = (
    Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
)
"""How labels with something to copy behave."""

RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter  # how figures stand in tables

AnyWidget = TypeVar("AnyWidget", bound=QWidget)
AnyBox = TypeVar("AnyBox", bound=QBoxLayout)

Item = QWidget | QLayout | int
"""A widget, a layout, or the share of the free room that is left empty here."""


def dressed(widget: AnyWidget, name: str, accessible: str = "", *, tip: str = "") -> AnyWidget:
    """Return `widget` with its object name, its name for screen readers, and its tooltip."""
    widget.setObjectName(name)
    if accessible:
        widget.setAccessibleName(accessible)
    if tip:
        widget.setToolTip(tip)
    return widget


def push_button(
    text: str, name: str, action: Callable[..., object], accessible: str = "", *, tip: str = ""
) -> QPushButton:
    """Return a button that calls `action`; Return in another field of a dialog does not.

    Its name for screen readers is by default its text, without mark of the key and dots.
    """
    accessible = accessible or text.replace("&", "").removesuffix("…")
    button = dressed(QPushButton(text), name, accessible, tip=tip)
    button.clicked.connect(action)
    button.setAutoDefault(False)
    return button


def tool_button(
    text: str,
    name: str,
    action: Callable[..., object] | None,
    accessible: str,
    *,
    tip: str = "",
    menu: QMenu | None = None,
) -> QToolButton:
    """Return a small button that calls `action`, or opens `menu`; Tab reaches it."""
    button = dressed(QToolButton(), name, accessible, tip=tip or accessible)
    button.setText(text)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    if action is not None:
        button.clicked.connect(lambda: action())
    else:
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    if menu is not None:
        button.setMenu(menu)
    return button


def switch(text: str, name: str, accessible: str = "", *, tip: str = "") -> QToolButton:
    """Return a small button that stays pressed while it is on; Tab reaches it."""
    button = dressed(QToolButton(), name, accessible or text, tip=tip)
    button.setText(text)
    button.setCheckable(True)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return button


def action_button(action: QAction, accessible: str = "") -> QToolButton:
    """Return a flat button of an action, named after it; Tab reaches it."""
    button = QToolButton()
    button.setDefaultAction(action)
    accessible = accessible or action.text().replace("&", "").removesuffix("…")
    dressed(button, f"{action.objectName()}Button", accessible)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    button.setAutoRaise(True)
    return button


def text_label(
    text: str = "",
    name: str = "",
    role: str = "",
    *,
    plain: bool = False,
    selectable: bool = False,
    parent: QWidget | None = None,
) -> QLabel:
    """Return a label whose lines wrap; `plain`: without markup; for `role` see `set_role`."""
    label = QLabel(text, parent)
    label.setObjectName(name)
    label.setWordWrap(True)
    if plain:
        label.setTextFormat(Qt.TextFormat.PlainText)
    if selectable:
        label.setTextInteractionFlags(SELECTABLE)
    if role:
        set_role(label, role)
    return label


def label_of(text: str, widget: QWidget) -> QLabel:
    label = QLabel(text)
    label.setBuddy(widget)
    return label


def labelled(text: str, widget: QWidget, name: str) -> tuple[QLabel, QWidget]:
    return label_of(text, widget), dressed(widget, name, text.replace("&", ""))


def tool_splitter(
    *widgets: QWidget,
    name: str = "",
    sizes: Sequence[int] = (),
    stretch: Sequence[int] = (),
    vertical: bool = False,
) -> QSplitter:
    """Return widgets beside each other, or below, with a line to drag; none can be dragged away."""
    splitter = QSplitter(Qt.Orientation.Vertical if vertical else Qt.Orientation.Horizontal)
    splitter.setObjectName(name)
    splitter.setChildrenCollapsible(False)
    for widget in widgets:
        splitter.addWidget(widget)
    for place, share in enumerate(stretch):
        splitter.setStretchFactor(place, share)
    if sizes:
        splitter.setSizes(list(sizes))
    return splitter


AnyTree = TypeVar("AnyTree", bound=QTreeWidget)


def as_table(
    tree: AnyTree, name: str, accessible: str, headings: Sequence[str], right: Iterable[int] = ()
) -> AnyTree:
    """Return `tree` as a table of whole rows, with the headings of figures right-aligned."""
    dressed(tree, name, accessible)
    tree.setHeaderLabels(list(headings))
    tree.setRootIsDecorated(False)
    tree.setUniformRowHeights(True)
    tree.setAllColumnsShowFocus(True)
    tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    for column in right:
        tree.headerItem().setTextAlignment(column, RIGHT)
    return tree


def swatch(colour: str, side: int = 12) -> QPixmap:
    square = QPixmap(side, side)
    square.fill(QColor(colour))
    return square


def refill(box: QComboBox, entries: Iterable[tuple[str, Any]], chosen: Any = None) -> None:
    """Offer texts with their data, without a signal; choose a datum or a text, else the first."""
    with QSignalBlocker(box):
        box.clear()
        for text, data in entries:
            box.addItem(text, data)
        place = box.findData(chosen) if chosen is not None else -1
        box.setCurrentIndex(max(0, place if place >= 0 else box.findText(str(chosen))))


def in_row(
    *items: Item | tuple[QWidget | QLayout, int],
    of: QWidget | None = None,
    margins: int | tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> QHBoxLayout:
    return _filled(QHBoxLayout(), items, of, margins, spacing)


def in_column(
    *items: Item | tuple[QWidget | QLayout, int],
    of: QWidget | None = None,
    margins: int | tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> QVBoxLayout:
    """Return a layout from top to bottom, of the widget `of`; pairs have a share of free room."""
    return _filled(QVBoxLayout(), items, of, margins, spacing)


def _filled(
    box: AnyBox,
    items: tuple[Item | tuple[QWidget | QLayout, int], ...],
    of: QWidget | None,
    margins: int | tuple[int, int, int, int] | None,
    spacing: int | None,
) -> AnyBox:
    if of is not None:
        of.setLayout(box)
    if margins is not None:
        box.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))
    if spacing is not None:
        box.setSpacing(spacing)
    for item in items:
        if isinstance(item, int):
            box.addStretch(item)
            continue
        content, share = item if isinstance(item, tuple) else (item, 0)
        if isinstance(content, QWidget):
            box.addWidget(content, share)
        else:
            box.addLayout(content, share)
    return box
