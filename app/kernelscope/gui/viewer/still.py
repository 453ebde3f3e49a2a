"""A picture at one size, centred: as in a contact sheet or a blind test."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter


def place(image: QImage, room: QRectF) -> QRectF:
    scale = min(room.width() / image.width(), room.height() / image.height())
    scale = float(int(scale)) if scale >= 1 else scale
    width, height = scale * image.width(), scale * image.height()
    centre = room.center()
    return QRectF(round(centre.x() - width / 2), round(centre.y() - height / 2), width, height)


def draw_still(painter: QPainter, image: QImage, room: QRectF) -> None:
    """Draw `image` centred in `room`, smooth only where it is reduced."""
    area = place(image, room)
    smooth = area.width() < image.width()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
    painter.drawImage(area, image)
