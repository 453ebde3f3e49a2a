"""Builders: a widget with its names and tip, a button with its action, rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtWidgets import (
    QAbstractButton,
    QBoxLayout,
    QHBoxLayout,
    QLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

AnyWidget = TypeVar("AnyWidget", bound=QWidget)
AnyButton = TypeVar("AnyButton", bound=QAbstractButton)
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


def connected(button: AnyButton, action: Callable[..., object]) -> AnyButton:
    """Return `button`, which calls `action` when it is clicked."""
    button.clicked.connect(action)
    return button


def push_button(
    text: str, name: str, action: Callable[..., object], accessible: str = "", *, tip: str = ""
) -> QPushButton:
    """Return a button that calls `action`; Return in another field of a dialog does not."""
    button = connected(dressed(QPushButton(text), name, accessible, tip=tip), action)
    button.setAutoDefault(False)
    return button


def in_row(
    *items: Item | tuple[QWidget | QLayout, int],
    of: QWidget | None = None,
    margins: int | tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> QHBoxLayout:
    """Return a layout from left to right, of the widget `of`; see `in_column`."""
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
