"""Input and output in 3-D, side by side from the same direction."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QLabel, QWidget

from kernelscope.gui.model.camera import ZOOM_STEP
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.shear_warp import Rendering, SpaceStyle, ViewedVolume, Viewpoint, render
from kernelscope.gui.viewer import marks
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import Slider, choice_box
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, labelled, push_button
from kernelscope.gui.widgets.tiles import image_of
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume

_DEGREES = 0.4  # degrees by which a pixel of a drag turns the volume

_KEY_DEGREES = 10.0

_THRESHOLD = 64
"""Of the first surface, in steps of the window; below it the noise of the air is the surface."""

_MARGIN = 0.95  # share of the view that the sphere around the volume takes

_TURNS = {
    Qt.Key.Key_Left: (-_KEY_DEGREES, 0.0),
    Qt.Key.Key_Right: (_KEY_DEGREES, 0.0),
    Qt.Key.Key_Up: (0.0, _KEY_DEGREES),
    Qt.Key.Key_Down: (0.0, -_KEY_DEGREES),
}


class SpaceView(QWidget):
    turned = Signal(float, float)  # by degrees to the right and up
    zoomed = Signal(float)  # by a factor

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        dressed(self, name, f"{name} in 3-D; arrow keys turn it, plus and minus zoom")
        self.setMinimumSize(160, 160)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self._name = name
        self._hint = ""
        self._image: QImage | None = None
        self._matrix = np.zeros((2, 3))
        self._radius, self._zoom = 1.0, 1.0
        self._from = QPointF()

    def show_rendering(self, rendering: Rendering | None, radius: float, camera: Viewpoint) -> None:
        """Paint a rendering of a volume with this radius in millimetres, or a hint for None."""
        self._image = None
        self._hint = "No output yet" if rendering is None else ""
        if rendering is not None:
            self._image = image_of(rendering.steps, QImage.Format.Format_Grayscale8)
            self._matrix, self._radius, self._zoom = rendering.matrix, radius, camera.zoom
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if self._image is not None:
            scale = _MARGIN * self._zoom * min(self.width(), self.height()) / (2 * self._radius)
            (a, b, x), (c, d, y) = self._matrix.tolist()
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.translate(self.width() / 2, self.height() / 2)
            painter.scale(scale, scale)
            # Columns and rows are of the middles of pixels, which Qt has at 0.5.
            painter.setTransform(QTransform(a, c, b, d, x, y), combine=True)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Lighten)
            painter.drawImage(QPointF(-0.5, -0.5), self._image)
            painter.restore()
        else:
            painter.setPen(QColor(theme.CANVAS_QUIET))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._hint)
        marks.draw_name(painter, self._name, QPointF(6, 6), right=False, room=self.width())
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        way = event.position() - self._from
        self._from = event.position()
        if event.buttons() & Qt.MouseButton.LeftButton:  # the volume follows the hand
            self.turned.emit(-_DEGREES * way.x(), _DEGREES * way.y())

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.zoomed.emit(ZOOM_STEP ** (event.angleDelta().y() / 120))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        turn = _TURNS.get(Qt.Key(event.key()))
        if turn is not None:
            self.turned.emit(*turn)
        elif event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoomed.emit(ZOOM_STEP)
        elif event.key() == Qt.Key.Key_Minus:
            self.zoomed.emit(1 / ZOOM_STEP)
        else:
            super().keyPressEvent(event)


class SpaceWindow(ToolWindow):
    """Two views with one camera; renders off the GUI thread, the latest direction wins."""

    saving = Signal(object)  # `Image`: The user wants to save this picture of both views

    def __init__(
        self,
        background: Background,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("spaceWindow", "3-D View", parent)
        self.take_size(900, 560)
        self._background = background
        self.camera, self.style_ = Viewpoint(), SpaceStyle(surface=True, threshold=_THRESHOLD)
        self._volumes: tuple[Volume | None, ...] = (None, None)
        self._display = Display(0, 1)
        self._scenes: WeakKeyDictionary[Volume, tuple[Display, ViewedVolume]] = WeakKeyDictionary()
        self._busy = self._late = False
        self.views = (SpaceView("Input", self), SpaceView("Output", self))
        self._lay_out()
        for view in self.views:
            view.turned.connect(lambda right, up: self._look(self.camera.turned(right, up)))
            view.zoomed.connect(self._zoom)

    def show_volumes(self, source: Volume | None, output: Volume | None, display: Display) -> None:
        if (source, output, display) != (*self._volumes, self._display):
            self._volumes, self._display = (source, output), display
            if self.isVisible():
                self._render()

    def open(self) -> None:
        self.show_in_front()
        self.views[0].setFocus()
        self._render()

    @property
    def settled(self) -> bool:
        return not self._busy

    def _lay_out(self) -> None:
        tip = "The first visible value on each line of sight, or the largest"
        # A head is seen at once as a surface; its maximum is that of the scalp, nearly white.
        kinds = "Surface", "Maximum"
        self._kind = choice_box("spaceKind", "Kind of picture", kinds, tip=tip)
        self._threshold, self._opacity = Slider(self), Slider(self)
        for slider, most, value in ((self._threshold, 255, _THRESHOLD), (self._opacity, 100, 100)):
            slider.setRange(0, most)
            slider.setValue(value)
        threshold = labelled("&Threshold", self._threshold, "spaceThreshold")
        self._threshold.setToolTip("Darker voxels are invisible: fraction of the window of slices")
        opacity = labelled("&Opacity", self._opacity, "spaceOpacity")
        self._opacity.setToolTip("Opacity of the surface; the maximum is visible through it")
        front = push_button(
            "&Front", "spaceFront", lambda: self._look(Viewpoint(0, 0)), "Look from the front"
        )
        save = push_button(
            "&Save picture…",
            "spaceSave",
            lambda: self.saving.emit(self.picture()),
            "Save both views as a picture",
        )
        sliders = (threshold[0], (threshold[1], 1), opacity[0], (opacity[1], 1))
        row = in_row(self._kind, *sliders, front, save)
        views = in_row(*((view, 1) for view in self.views), spacing=6)
        self._note = dressed(QLabel(self), "spaceNote")
        theme.set_role(self._note, "note")
        in_column(row, (views, 1), self._note, of=self)
        self._kind.currentIndexChanged.connect(self._on_style)
        self._threshold.valueChanged.connect(self._on_style)
        self._opacity.valueChanged.connect(self._on_style)
        self._show_state()

    def picture(self) -> Image:
        grabbed = [view.grab().toImage() for view in self.views]
        layout = QImage.Format.Format_RGB888
        parts = []
        for each in grabbed:
            image = each.convertToFormat(layout)
            lines = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1)
            parts.append(lines[:, : 3 * image.width()].reshape(image.height(), -1, 3))
        title = self._volumes[0].title if self._volumes[0] is not None else "volume"
        return Image.from_array(np.concatenate(parts, axis=1), f"{title}-3d")

    # --- camera and style ---

    def _look(self, camera: Viewpoint) -> None:
        self.camera = camera
        self._render()

    def _zoom(self, factor: float) -> None:
        self._look(self.camera.zoomed(factor))

    def _on_style(self) -> None:
        surface = self._kind.currentText() == "Surface"
        if surface and not self.style_.surface and self._threshold.value() == 0:
            self._threshold.setValue(_THRESHOLD)
        self.style_ = replace(
            self.style_,
            surface=surface,
            threshold=self._threshold.value(),
            opacity=self._opacity.value() / 100,
        )
        self._render()

    def _show_state(self) -> None:
        self._opacity.setEnabled(self.style_.surface)
        camera = self.camera
        self._note.setText(
            f"Drag, or press the arrow keys, to turn; wheel, + and − zoom.   {camera.yaw:.0f}° "
            f"around, {camera.pitch:.0f}° up from the front, {100 * camera.zoom:.0f} %"
        )

    # --- rendering ---

    def _render(self) -> None:
        self._show_state()
        if self._busy:
            self._late = True
            return
        self._busy, self._late = True, False
        volumes, display, camera, style = self._volumes, self._display, self.camera, self.style_

        def work() -> list[tuple[Rendering | None, float]]:
            answers: list[tuple[Rendering | None, float]] = []
            for volume in volumes:
                if volume is None:
                    answers.append((None, 1.0))
                    continue
                scene = self._scene(volume, display)
                answers.append((render(scene, camera, style), scene.radius))
            return answers

        def show(answers: list[tuple[Rendering | None, float]]) -> None:
            for view, (rendering, radius) in zip(self.views, answers, strict=True):
                view.show_rendering(rendering, radius, camera)
            self._busy = False
            if self._late:
                self._render()

        def failed(error: Exception) -> None:
            self._busy = False
            self._background.report(error)

        self._background.start("space", work, show, failed)

    def _scene(self, volume: Volume, display: Display) -> ViewedVolume:
        """Return the scene of a volume; called on one thread at a time."""
        known = self._scenes.get(volume)
        if known is None or known[0] != display:
            known = display, ViewedVolume.of(volume, display)
            self._scenes[volume] = known
        return known[1]

    def leave(self) -> None:
        self._background.forget("space")
        self._busy = False
        self._scenes.clear()
