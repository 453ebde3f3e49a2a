"""Draws a figure: into the preview, a PNG, an SVG or a PDF."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QPageSize,
    QPainter,
    QPainterPath,
    QPdfWriter,
    QPen,
    QTextOption,
    QTransform,
)
from PySide6.QtSvg import QSvgGenerator

from kernelscope.gui.model.display import table
from kernelscope.gui.model.figure import (
    Figure,
    FigureArea,
    FigureLayout,
    FigureStyle,
    Picture,
    lay_out,
)
from kernelscope.gui.model.regions import Interest
from kernelscope.gui.viewer.layer import as_qimage, is_smooth
from kernelscope.gui.viewer.marks import SIDES
from kernelscope.gui.viewer.region_tool import path_of
from kernelscope.gui.widgets.tiles import image_of

UNITS = 20  # units of the painter for a millimetre: whole sizes of letters are fine enough there

_DPI = round(UNITS * 25.4)

_MOST_SIDE = 8192  # pixels a side that a file for printing embeds; more are averaged


class FigurePainter:
    """Draws one figure in one style, at any scale; lengths in millimetres."""

    def __init__(self, figure: Figure, style: FigureStyle) -> None:
        self._figure, self._style = figure, style
        self._font = QFont()
        self._font.setPixelSize(round(style.text * UNITS))
        self.layout: FigureLayout = lay_out(figure, style, self._text_height)

    def _text_height(self, text: str, width: float) -> float:
        room = QRectF(0, 0, width * UNITS, 1e6)
        flags = int(Qt.TextFlag.TextWordWrap)
        return QFontMetricsF(self._font).boundingRect(room, flags, text).height() / UNITS

    # --- files ---

    def as_png(self) -> bytes:
        width, height = self.layout.size
        scale = self._style.dpi / 25.4
        image = QImage(
            QSize(round(width * scale), round(height * scale)), QImage.Format.Format_RGB32
        )
        image.setDotsPerMeterX(round(1000 * scale))
        image.setDotsPerMeterY(round(1000 * scale))
        painter = QPainter(image)
        painter.scale(scale / UNITS, scale / UNITS)
        self.paint(painter)
        painter.end()
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, "PNG")  # type: ignore[call-overload]
        return bytes(buffer.data().data())

    def as_svg(self) -> bytes:
        width, height = (UNITS * each for each in self.layout.size)
        buffer = QBuffer()
        target = QSvgGenerator()
        target.setOutputDevice(buffer)
        target.setResolution(_DPI)
        target.setSize(QSize(round(width), round(height)))
        target.setViewBox(QRectF(0, 0, width, height))
        target.setTitle(self._figure.caption)
        painter = QPainter(target)
        self.paint(painter)
        painter.end()
        return bytes(buffer.data().data())

    def as_pdf(self) -> bytes:
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        target = QPdfWriter(buffer)
        target.setTitle(self._figure.caption)
        target.setResolution(_DPI)
        size = QSizeF(*self.layout.size)
        match = QPageSize.SizeMatchPolicy.ExactMatch
        target.setPageSize(QPageSize(size, QPageSize.Unit.Millimeter, "", match))
        target.setPageMargins(QMarginsF())
        painter = QPainter(target)
        painter.setRenderHint(QPainter.RenderHint.LosslessImageRendering)
        self.paint(painter)
        painter.end()
        return bytes(buffer.data().data())

    # --- drawing ---

    def paint(self, painter: QPainter) -> None:
        layout, style = self.layout, self._style
        ground = QColor(Qt.GlobalColor.black if style.dark else Qt.GlobalColor.white)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(_rect(FigureArea(0, 0, *layout.size)), ground)
        painter.setFont(self._font)
        painter.setPen(QColor(Qt.GlobalColor.white if style.dark else Qt.GlobalColor.black))
        for number, area in enumerate(layout.titles):
            text = f"{chr(ord('a') + number)}   {self._figure.pictures[number].title}"
            metrics = QFontMetricsF(self._font)
            room = _rect(area)
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), text)
        for picture, area, bar in zip(
            self._figure.pictures, layout.pictures, layout.bars, strict=True
        ):
            self._draw_picture(painter, picture, area)
            if bar is not None:
                self._draw_bar(painter, picture, bar)
        if layout.scale_bar is not None:
            self._draw_scale_bar(painter, layout.pictures[0], *layout.scale_bar)
        if layout.caption is not None:
            wrapped = QTextOption()
            wrapped.setWrapMode(QTextOption.WrapMode.WordWrap)
            painter.drawText(_rect(layout.caption), self._figure.caption, wrapped)

    def _draw_picture(self, painter: QPainter, picture: Picture, area: FigureArea) -> None:
        image, room = as_qimage(picture.planes, picture.display), _rect(area)
        seen = painter.transform().map(QPointF(room.width(), 0)).x()
        scale = (seen - painter.transform().dx()) / image.width()
        to_pixels = isinstance(painter.device(), QImage)
        if to_pixels and scale < 1:  # bilinear interpolation would leave pixels out
            image = _averaged(image, round(scale * image.width()), round(scale * image.height()))
        elif max(image.width(), image.height()) > _MOST_SIDE:
            share = _MOST_SIDE / max(image.width(), image.height())
            image = _averaged(image, round(share * image.width()), round(share * image.height()))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, is_smooth(scale))
        painter.drawImage(room, image)
        height, width = picture.planes.shape[:2]
        painter.save()
        painter.setClipRect(room)
        if self._style.regions:
            to_paper = QTransform.fromTranslate(room.left(), room.top())
            to_paper.scale(room.width() / width, room.height() / height)
            for region in picture.regions:
                self._draw_region(painter, region, to_paper)
        if self._style.letters:
            for letter, side in zip(picture.letters, SIDES, strict=False):
                self._write(painter, letter, room.adjusted(*self._margins), side)
        painter.restore()

    @property
    def _margins(self) -> tuple[float, float, float, float]:
        gap = 0.3 * self._font.pixelSize()
        return gap, gap, -gap, -gap

    def _draw_region(self, painter: QPainter, region: Interest, to_paper: QTransform) -> None:
        path, size = to_paper.map(path_of(region)), self._font.pixelSize()
        for colour, width in ((QColor(0, 0, 0, 160), 0.22), (QColor(region.colour), 0.12)):
            painter.strokePath(path, QPen(colour, width * size))
        box = path.boundingRect()
        top = box.top() - 1.5 * size
        if top < to_paper.dy():  # it would be cut off
            top = box.top() + 0.2 * size
        above = QRectF(box.left() + 0.2 * size, top, 20 * size, 1.4 * size)
        self._write(painter, region.name, above, Qt.AlignmentFlag.AlignLeft, region.colour)

    def _write(
        self,
        painter: QPainter,
        text: str,
        room: QRectF,
        side: Qt.AlignmentFlag,
        colour: str = "#ffffff",
    ) -> None:
        metrics = QFontMetricsF(self._font)
        place = metrics.boundingRect(room, int(side), text)
        shape = QPainterPath()
        shape.addText(QPointF(place.left(), place.top() + metrics.ascent()), self._font, text)
        painter.strokePath(shape, QPen(QColor(0, 0, 0, 200), 0.16 * self._font.pixelSize()))
        painter.fillPath(shape, QColor(colour))

    def _draw_bar(self, painter: QPainter, picture: Picture, area: FigureArea) -> None:
        """Draw the colours from the lowest to the highest value, and three of the values."""
        assert picture.bar is not None
        colours, room = table(picture.display.colour_map), _rect(area)
        painter.drawImage(room, image_of(colours[None], QImage.Format.Format_RGB888))
        below = QRectF(room.left(), room.bottom(), room.width(), 1.4 * self._font.pixelSize())
        sides = (
            Qt.AlignmentFlag.AlignLeft,
            Qt.AlignmentFlag.AlignHCenter,
            Qt.AlignmentFlag.AlignRight,
        )
        for text, side in zip(picture.bar, sides, strict=True):
            painter.drawText(below, int(side | Qt.AlignmentFlag.AlignVCenter), text)

    def _draw_scale_bar(
        self, painter: QPainter, area: FigureArea, length: float, text: str
    ) -> None:
        """Draw a white bar with its length over it, seen on light and dark pictures alike."""
        room, size = _rect(area), self._font.pixelSize()
        left, bottom = room.left() + 0.6 * size, room.bottom() - 0.6 * size
        bar = QRectF(left, bottom - 0.3 * size, length * UNITS, 0.3 * size)
        outline = QPen(QColor(0, 0, 0, 200), 0.16 * size)
        outline.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        shape = QPainterPath()
        shape.addRect(bar)
        shape.addText(QPointF(left, bar.top() - 0.35 * size), self._font, text)
        painter.save()
        painter.setClipRect(room)
        painter.strokePath(shape, outline)
        painter.fillPath(shape, QColor(Qt.GlobalColor.white))
        painter.restore()


def _averaged(image: QImage, width: int, height: int) -> QImage:
    return image.scaled(
        max(1, width),
        max(1, height),
        Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )


def _rect(area: FigureArea) -> QRectF:
    return QRectF(*(UNITS * each for each in area))
