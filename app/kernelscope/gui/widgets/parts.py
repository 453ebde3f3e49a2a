"""Builders: a widget with its names, tip and page of the manual; buttons, labels, rows, columns.

set_help(form, "filter-median")               the widget and everything inside it
set_help(editor, "filter-median#mask-size")   a part of it has a paragraph of its own
item.setData(HELP_ROLE, "level-gpu-shared")   a line of a list
place_of(widget)                              the nearest place, from the widget outwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from PySide6 import QtGui
from PySide6.QtCore import (
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QSignalBlocker,
    QSize,
    Qt,
)
from PySide6.QtGui import QAction, QColor, QFontMetrics, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QComboBox,
    QFrame,
    QGraphicsScene,
    QGraphicsView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QMenu,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QToolBar,
    QToolButton,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from kernelscope.base.text import printable
from kernelscope.gui.widgets.theme import set_role

_PROPERTY = "helpPlace"

HELP_ROLE = Qt.ItemDataRole.UserRole + 97
"""Role of the place in the data of an item; far from the roles that lists have for themselves."""


def set_help(widget: QObject, place: str) -> None:
    """Let F1 on `widget`, or an action, and all inside it, open ``page`` or ``page#heading``."""
    widget.setProperty(_PROPERTY, place)


def place_of(widget: QWidget | None, cursor: QPoint | None = None) -> str:
    """Return the nearest place around a widget; of a list, of the line at `cursor` or current."""
    while widget is not None:
        if isinstance(widget, QAbstractItemView):
            found = _line(widget, cursor)
            if found:
                return found
        place = (_entry(widget) if isinstance(widget, QMenu) else "") or widget.property(_PROPERTY)
        if place:
            return str(place)
        widget = widget.parentWidget()
    return ""


def _entry(menu: QMenu) -> str:
    """Return the place of the highlighted entry of a menu; empty if it has none."""
    action = menu.activeAction()
    if action is None:
        return ""
    return str(action.property(_PROPERTY) or (action.menu() or action).property(_PROPERTY) or "")


def _line(view: QAbstractItemView, cursor: QPoint | None) -> str:
    """Return the place of a line of a list; empty if it has none."""
    index = view.currentIndex()
    if cursor is not None:
        index = view.indexAt(view.viewport().mapFromGlobal(cursor))
    return str(index.siblingAtColumn(0).data(HELP_ROLE) or "") if index.isValid() else ""


class Watcher(QObject):
    """An event filter that lets go of its widgets when their window closes.

    Destructors of widgets send events too. A filter in Python would get widgets that are half
    destroyed: 40 of each main window.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._watched: set[QObject] = set()

    def watch(self, *objects: QObject) -> None:
        for each in objects:
            if each not in self._watched:
                each.installEventFilter(self)
                self._watched.add(each)

    def let_go(self) -> None:
        for each in filter(isValid, self._watched):
            each.removeEventFilter(self)
        self._watched.clear()


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

Index = QModelIndex | QPersistentModelIndex  # how Qt gives a cell to models and delegates

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
    text: str,
    name: str,
    action: Callable[..., object],
    accessible: str = "",
    *,
    tip: str = "",
    stays: bool = False,
) -> QPushButton:
    """Return a button that calls `action`, with ``on`` if it `stays` down; never by Return."""
    accessible = accessible or text.replace("&", "").removesuffix("…")
    button = dressed(QPushButton(text), name, accessible, tip=tip)
    button.setCheckable(stays)
    (button.toggled if stays else button.clicked).connect(action)
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


def action_button(action: QAction) -> QToolButton:
    """Return a flat button of an action, named after it; Tab reaches it."""
    button = QToolButton()
    button.setDefaultAction(action)
    name = action.text().replace("&", "").removesuffix("…")
    dressed(button, f"{action.objectName()}Button", name)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    button.setAutoRaise(True)
    return button


def tool_row(name: str, *groups: Sequence[QAction], icons: bool = True) -> QToolBar:
    """Return buttons in a row, groups apart; a menu has the last, if there is no room for them."""
    bar, text = dressed(QToolBar(), name), Qt.ToolButtonStyle.ToolButtonTextOnly
    set_role(bar, "row")
    bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly if icons else text)
    bar.setIconSize(QSize(16, 16))
    layout = bar.layout()
    assert layout is not None
    layout.setContentsMargins(0, 0, 0, 0)
    more = bar.findChild(QToolButton, "qt_toolbar_ext_button")
    assert isinstance(more, QToolButton)
    more.setText("»")  # its picture could not be seen on dark ground
    more.setToolButtonStyle(text)
    dressed(more, more.objectName(), "More buttons")
    for number, group in enumerate(groups):
        if number:
            gap = QWidget()
            gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            bar.addWidget(gap)
        for action in group:
            bar.addAction(action)
            button = bar.widgetForAction(action)
            spoken = action.iconText().replace("&", "").removesuffix("…")
            dressed(button, f"{action.objectName()}Button", spoken)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return bar


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


def scrolled(content: QWidget) -> QScrollArea:
    """Return an area that scrolls `content` where the window, which keeps its size, is small."""
    area = QScrollArea()
    area.setObjectName(f"{content.objectName()}Scroll")
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setWidget(content)
    return area


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


def plain_tip(text: str) -> str:
    """Return a tooltip as plain text (to Qt “<b>.tif” is markup), control characters escaped."""
    text = printable(text)
    return QtGui.Qt.convertFromPlainText(text) if QtGui.Qt.mightBeRichText(text) else text


def wrapped(text: str, room: float, metrics: QFontMetrics, indent: str = "") -> list[str]:
    """Return the words on lines of `room` pixels, longer words alone; later lines indented."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        start = len(lines)
        for word in paragraph.split():
            longer = f"{lines[-1]} {word}" if len(lines) > start else ""
            if longer and metrics.horizontalAdvance(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(f"{indent}{word}" if lines else word)
    return lines


class ElidedLabel(QLabel):
    """One line that ends in “…” where there is no room; the tooltip has it all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.full_text = self._brief = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_full_text(self, text: str, brief: str = "") -> None:
        """Show `brief`, or without one `text`; the tooltip and screen readers have `text`."""
        if (text, brief) == (self.full_text, self._brief):
            return
        self.full_text, self._brief = text, brief
        self.setToolTip(plain_tip(text))
        self.setAccessibleDescription(text)
        self._elide()

    def sizeHint(self) -> QSize:
        """Return the height of a line of the font, so that two labels stay level in any script."""
        return QSize(super().sizeHint().width(), self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics, room = self.fontMetrics(), self.contentsRect().width()
        text = self._brief or self.full_text
        self.setText(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room))


class SnugLabel(ElidedLabel):
    """As wide as its text where there is room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def set_full_text(self, text: str, brief: str = "") -> None:
        before = self.full_text
        super().set_full_text(text, brief)
        if text != before:  # or the whole window would be laid out again
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        margins, text = self.contentsMargins(), self.fontMetrics().horizontalAdvance(self.full_text)
        return QSize(text + margins.left() + margins.right() + 2, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())
