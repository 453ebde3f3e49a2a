"""Input and output side by side, panned and zoomed together."""

from __future__ import annotations

import math
from typing import Any, Protocol

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPixmap,
    QTransform,
)
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kernelscope.gui.canvas.camera import ZOOM_STEP, PictureCamera
from kernelscope.gui.canvas.pane import Pane
from kernelscope.gui.canvas.rendering import render
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.images.image import Image

_PAN_STEP = 0.1
"""Share of the view that an arrow key pans by."""

_ARROWS: dict[int, tuple[float, float]] = {
    Qt.Key.Key_Left: (-_PAN_STEP, 0),
    Qt.Key.Key_Right: (_PAN_STEP, 0),
    Qt.Key.Key_Up: (0, -_PAN_STEP),
    Qt.Key.Key_Down: (0, _PAN_STEP),
}


class _Picture(pg.GraphicsObject):  # type: ignore[misc]
    """Draws a picture: sharp pixels when magnified, averages when reduced."""

    def __init__(self) -> None:
        super().__init__()
        self.setFlag(self.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self._images: list[QImage] = []

    def show_images(self, images: list[QImage], offset: int) -> None:
        """Draw the first of `images`, or one of its halves; `offset` is its top left corner."""
        self.prepareGeometryChange()
        self._images = images
        self.setPos(offset, offset)
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(self._images[0].rect()) if self._images else QRectF()

    def paint(self, painter: QPainter, option: Any, widget: QWidget | None = None) -> None:
        if not self._images:
            return
        full = self._images[0]
        scale = abs(painter.deviceTransform().m11())
        level = min(max(0, int(-math.log2(scale))), len(self._images) - 1)
        image = self._images[level]
        x_ratio, y_ratio = full.width() / image.width(), full.height() / image.height()
        seen = QTransform.fromScale(1 / x_ratio, 1 / y_ratio).mapRect(option.exposedRect)
        part = seen.toAlignedRect().adjusted(-1, -1, 1, 1) & image.rect()
        target = QTransform.fromScale(x_ratio, y_ratio).mapRect(QRectF(part))
        if full.hasAlphaChannel():
            painter.fillRect(target, _chequers(painter.worldTransform()))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, scale < 1)
        # A copy of the visible part: Qt's scaling holds source positions in 16 bits and draws the
        # wrong pixels of a very wide or high picture.
        painter.drawImage(target, image.copy(part))


def _chequers(world: QTransform) -> QBrush:
    """Return the brush behind transparent pixels; its squares keep their size on screen."""
    tile = QPixmap(16, 16)
    tile.fill(QColor("#c8c8c8"))
    painter = QPainter(tile)
    painter.fillRect(QRect(0, 0, 8, 8), QColor("#989898"))
    painter.fillRect(QRect(8, 8, 8, 8), QColor("#989898"))
    painter.end()
    brush = QBrush(tile)
    brush.setTransform(world.inverted()[0])
    return brush


class Placed(Protocol):
    """A rectangle of a picture: an `engine.region.Region`."""

    @property
    def top(self) -> int: ...
    @property
    def left(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def width(self) -> int: ...


class ImageView(Pane):
    """One picture under its caption.

    Scene coordinates are pixels of the input picture; a result that is smaller because of
    the border ``valid`` lies where its pixels come from.

    Signals
    -------
    moved
        The user panned or zoomed this view.
    resized
    hovered : QPointF or None
        Scene coordinates under the cursor; None when it left.
    """

    moved = Signal()
    resized = Signal()
    hovered = Signal(object)

    def __init__(self, name: str, heading: str, hint: str, parent: QWidget | None = None) -> None:
        super().__init__(name, heading, hint, parent, padding=24)
        self.image: Image | None = None
        self.offset = 0

        self._details = ElidedLabel(self)
        self._details.setObjectName(f"{name}Details")

        self.view_box = pg.ViewBox(
            invertY=True, lockAspect=True, enableMenu=False, defaultPadding=0
        )
        self._picture = _Picture()
        self._part = _Picture()
        self.view_box.addItem(self._picture)
        self.view_box.addItem(self._part)
        self.canvas = pg.GraphicsView(self)
        self.canvas.setObjectName(f"{name}Canvas")
        self.canvas.setAccessibleName(heading)
        self.canvas.setCentralItem(self.view_box)
        self.canvas.setAcceptDrops(False)  # the window takes them
        self.canvas.viewport().setAcceptDrops(False)
        self.canvas.setMinimumSize(120, 90)
        self.canvas.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.hint.setParent(self.canvas)

        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        for label in (self.title, self._details):
            label.setContentsMargins(2, 0, 2, 0)
            layout.addWidget(label)
        layout.addSpacing(4)
        layout.addWidget(self.canvas, 1)

        self.view_box.sigRangeChangedManually.connect(self._on_moved)
        self.view_box.sigResized.connect(self._on_resized)
        self.canvas.installEventFilter(self)  # keys
        self.canvas.viewport().installEventFilter(self)  # the mouse
        self.clear()
        self.follow_palette()

    @property
    def is_empty(self) -> bool:
        return self.image is None

    def show_picture(
        self,
        image: Image,
        images: list[QImage],
        offset: int,
        title: str,
        details: str,
        brief: str = "",
    ) -> None:
        """Show `images`; `image` provides the values under the cursor.

        Nothing is drawn without `images`: see `show_hint`. `brief` replaces `details` where there
        is no room for them.
        """
        self.image = image
        self.offset = offset
        self._picture.show_images(images, offset)
        self._part.show_images([], 0)
        self.hint.hide()
        self.set_caption(title)
        self._details.set_full_text(details, brief)

    def show_region(
        self,
        region: Placed,
        image: Image,
        offset: int | None = None,
        details: str = "",
        brief: str = "",
    ) -> None:
        """Draw a part of the whole result over the earlier picture, until the next one is shown.

        Parameters
        ----------
        region : Region
            In pixels of the whole result.
        image : Image
            The samples of the region.
        offset : int, optional
            Where the whole result begins in the input; by default where the earlier one does.
        details, brief : str
            As for `show_picture`; by default those of the earlier picture.
        """
        if offset is None:
            offset = self.offset
        if details:
            self._details.set_full_text(details, brief)
        self.hint.hide()
        self._part.show_images(render(image)[:1], 0)
        self._part.setPos(offset + region.left, offset + region.top)

    def clear(self) -> None:
        """Show the hint that the view began with instead of a picture."""
        self.image = None
        self.offset = 0
        self._picture.show_images([], 0)
        self._part.show_images([], 0)
        self.show_hint()
        self.set_caption(self.heading)
        self._details.set_full_text("")

    def value_at(self, x: int, y: int) -> str:
        """Return the sample values at a scene pixel as text; empty where there are none."""
        if self.image is None:
            return ""
        return value_in(self.image, x - self.offset, y - self.offset)

    @property
    def canvas_size(self) -> QSizeF:
        """Size of the drawing area in device-independent pixels."""
        return QSizeF(self.view_box.size())

    def camera(self) -> tuple[QPointF, float]:
        """Return the centre in scene coordinates, and screen pixels per picture pixel."""
        seen = self.view_box.viewRect()
        return seen.center(), self.view_box.width() / seen.width()

    def set_camera(self, centre: QPointF, scale: float) -> None:
        """Look at `centre`, magnified by `scale`."""
        width, height = self.view_box.width() / scale, self.view_box.height() / scale
        left, top = centre.x() - width / 2, centre.y() - height / 2
        if scale * self.devicePixelRatioF() == 1:  # one to one: pixel on pixel
            left, top = round(left), round(top)
        self.view_box.setRange(QRectF(left, top, width, height), padding=0)

    def eventFilter(self, watched: Any, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseMove:
            scene = self.canvas.mapToScene(event.position().toPoint())
            self.hovered.emit(self.view_box.mapSceneToView(scene))
        elif event.type() == QEvent.Type.Leave:
            self.hovered.emit(None)
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            arrow = _ARROWS.get(event.key())
            if arrow is not None:
                seen = self.view_box.viewRect()
                self.view_box.translateBy(x=arrow[0] * seen.width(), y=arrow[1] * seen.height())
                self.moved.emit()
                return True
        return super().eventFilter(watched, event)

    def follow_palette(self) -> None:
        super().follow_palette()
        self.canvas.setBackground(theme.canvas_ground(self.palette()))
        quiet = theme.quiet_text(self.palette()).name()
        self._details.setStyleSheet(f"color: {quiet}")

    def _on_moved(self) -> None:
        self.moved.emit()

    def _on_resized(self) -> None:
        self.hint.setGeometry(self.canvas.rect())
        self.resized.emit()


def value_in(image: Image, x: int, y: int) -> str:
    """Return the sample values at a pixel as text; empty outside of the picture."""
    if not (0 <= x < image.width and 0 <= y < image.height):
        return ""
    values = [
        f"{value:.4g}" if value.dtype.kind == "f" else str(value) for value in image.planes[y, x]
    ]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


class ImagePair(QWidget):
    """Input on the left, output on the right, with one camera for both.

    Attributes
    ----------
    reference : Image or None
        A picture whose values under the cursor are shown too.

    Signals
    -------
    described : str
        Position and values under the cursor; empty when there are none.
    zoomed : float
        Device pixels per picture pixel.
    """

    described = Signal(str)
    zoomed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("images")
        self.input = ImageView("input", "Input", "Open a picture (Ctrl+O) or drop one here", self)
        self.output = ImageView("output", "Output", "Press Run (F5)", self)
        self.reference: Image | None = None
        self._views = (self.input, self.output)
        self.camera = PictureCamera()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for view in self._views:
            row.addWidget(view, 1)
            view.moved.connect(lambda view=view: self._follow(view))
            view.resized.connect(self._apply_camera)
            view.hovered.connect(self._describe)

    def set_running(self, running: bool) -> None:
        """Show in place of an output whether it is being computed."""
        self.output.set_running(running)

    def fit(self) -> None:
        """Show the whole picture, and keep doing so when the window is resized."""
        self.camera.fitted = True
        self._apply_camera()

    def one_to_one(self) -> None:
        """Show each pixel of the picture as exactly one of the screen."""
        self.look_at(self.camera.centre, 1 / self.devicePixelRatioF())

    def zoom_in(self) -> None:
        self.look_at(self.camera.centre, self.camera.scale * ZOOM_STEP)

    def zoom_out(self) -> None:
        self.look_at(self.camera.centre, self.camera.scale / ZOOM_STEP)

    def look_at(self, centre: QPointF, scale: float) -> None:
        """Show the surroundings of a point of the picture, magnified by `scale`."""
        self.camera.look_at(centre, scale)
        self._apply_camera()

    def _follow(self, leader: ImageView) -> None:
        """Apply the move that the user made in one view to both."""
        self.camera.follow(*leader.camera())
        self._apply_camera()

    def _apply_camera(self) -> None:
        sizes = [view.canvas_size for view in self._views]
        if any(size.isEmpty() for size in sizes):
            return
        if self.camera.fitted and self.input.image is not None:
            image = self.input.image
            self.camera.fit(QSizeF(image.width, image.height), sizes)
        for view in self._views:
            view.set_camera(self.camera.centre, self.camera.scale)
        self.zoomed.emit(self.camera.scale * self.devicePixelRatioF())

    def _describe(self, position: QPointF | None) -> None:
        if position is None:
            self.described.emit("")
            return
        x, y = math.floor(position.x()), math.floor(position.y())
        before, after = self.input.value_at(x, y), self.output.value_at(x, y)
        text = f"x {x}, y {y}"
        if before:
            text += f"   input {before}"
        if after:
            text += f"   output {after}"
        if self.reference is not None and before:
            text += f"   reference {value_in(self.reference, x, y) or '–'}"
        self.described.emit(text if before or after else "")
