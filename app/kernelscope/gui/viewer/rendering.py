"""Pixels to and from the clipboard, and pictures drawn at one size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from kernelscope.gui.widgets.tiles import image_of
from kernelscope.images.image import Image


def to_clipboard(image: Image) -> QImage:
    """Return `image` for other programs, 16-bit samples kept, floats as 16 bit."""
    planes = image.planes
    if planes.dtype == np.uint8:
        return _as_qimage(planes)
    if planes.dtype == np.float32:
        planes = np.rint(planes.clip(0, 1) * np.float32(65535)).astype(np.uint16)
    if image.channels == 1:
        return image_of(planes, QImage.Format.Format_Grayscale16)
    layout = QImage.Format.Format_RGBA64 if image.has_alpha else QImage.Format.Format_RGBX64
    return image_of(_rgba(planes, 65535), layout)


def from_clipboard(image: QImage) -> NDArray[Any]:
    alpha = image.hasAlphaChannel()
    if image.pixelFormat().bitsPerPixel() > 32:
        pixels = _unwrap(image.convertToFormat(QImage.Format.Format_RGBA64), np.uint16, 4)
        return pixels if alpha else pixels[:, :, :3]
    if image.format() == QImage.Format.Format_Grayscale16:
        return _unwrap(image, np.uint16, 1)[:, :, 0]
    if alpha:
        return _unwrap(image.convertToFormat(QImage.Format.Format_RGBA8888), np.uint8, 4)
    if image.allGray():
        return _unwrap(image.convertToFormat(QImage.Format.Format_Grayscale8), np.uint8, 1)[:, :, 0]
    return _unwrap(image.convertToFormat(QImage.Format.Format_RGB888), np.uint8, 3)


def _as_qimage(planes: NDArray[np.uint8]) -> QImage:
    """Return 8-bit samples, shape (height, width, channels), as a QImage of their own."""
    match planes.shape[2]:
        case 1:
            return image_of(planes, QImage.Format.Format_Grayscale8)
        case 3:
            return image_of(planes, QImage.Format.Format_RGB888)
        case _:
            return image_of(_rgba(planes, 255), QImage.Format.Format_RGBA8888)


def _rgba(planes: NDArray[Any], opaque: int) -> NDArray[Any]:
    """Return grey with alpha, RGB or RGBA samples as RGBA."""
    result = np.empty((*planes.shape[:2], 4), planes.dtype)
    colours = planes[:, :, :1] if planes.shape[2] == 2 else planes[:, :, :3]
    result[:, :, :3] = colours
    result[:, :, 3] = planes[:, :, -1] if planes.shape[2] in (2, 4) else opaque
    return result


def _unwrap(image: QImage, dtype: type[np.generic], channels: int) -> NDArray[Any]:
    row = image.bytesPerLine() // np.dtype(dtype).itemsize
    flat = np.frombuffer(image.constBits(), dtype).reshape(image.height(), row)
    used = flat[:, : image.width() * channels]
    return used.reshape(image.height(), image.width(), channels).copy()


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
