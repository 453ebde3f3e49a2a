"""Protocols of drawings over pictures, and of tools that take the mouse in their place.

Both work in picture coordinates: pixel (x, y) of the input covers x to x + 1 and y to y + 1. In
volumes, pixels are those of a slice as it is drawn. A `PairView` holds any
number of overlays, and at most one tool::

    pair.add_overlay(overlay)       # drawn in each view, above the picture
    pair.set_tool(tool)             # None gives the left button back to panning
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainter

from kernelscope.gui.model.displays import PaneSide


@dataclass(frozen=True)
class OverlayPlace:
    side: PaneSide  # the picture beneath; the output's where the two are divided by a line
    scale: float  # screen pixels (of the painter's widget) per pixel of the picture
    seen: QRectF  # the part of the scene that is in view, in picture coordinates
    plane: int | None = None  # the plane of a volume, by its number; None for a picture


@dataclass(frozen=True)
class Touch:
    point: QPointF  # in picture coordinates; may lie outside of the picture
    side: PaneSide
    scale: float  # screen pixels per pixel of the picture, across
    modifiers: Qt.KeyboardModifier
    plane: int | None = None  # as in `OverlayPlace`
    aspect: float = 1.0  # height of a pixel of the picture over its width

    def distance(self, x: float, y: float) -> float:
        """Return how far a point is away, in screen pixels: the larger of both directions."""
        across, down = x - self.point.x(), (y - self.point.y()) * self.aspect
        return max(abs(across), abs(down)) * self.scale


class Overlay(Protocol):
    def paint(self, painter: QPainter, place: OverlayPlace) -> None:
        """Draw in picture coordinates; pens are cosmetic so that lines keep their width."""


class Tool(Protocol):
    """Takes the left button and the keys from the views."""

    cursor: Qt.CursorShape  # shown over the pictures

    def press(self, touch: Touch) -> bool:
        """Begin a gesture; False leaves it to the view, which pans."""

    def drag(self, touch: Touch) -> None: ...
    def release(self, touch: Touch) -> None: ...
    def hover(self, touch: Touch) -> None: ...

    def key(self, event: QKeyEvent, plane: int | None = None) -> bool:
        """Return whether the key was for the tool; the view takes the others."""
