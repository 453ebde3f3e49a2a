"""Two pictures in a viewer of their own, such as the outputs of two runs."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QToolBar, QVBoxLayout, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.comparison import offset_of
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.model.runs import Run
from kernelscope.gui.session.canvas_view import DRAWN
from kernelscope.gui.viewer.image_views import ImagePair
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.gui.widgets.parts import in_column
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan

_ARRANGEMENTS = (Arrangement.SWIPE, Arrangement.SPLIT, Arrangement.SIDE_BY_SIDE)


class Half(NamedTuple):
    """One of the two pictures."""

    image: Image
    name: str  # written at the divide
    # Above the picture, where both are side by side.
    title: str
    details: str = ""
    offset: int = 0  # coordinate of its first row and column, beside the other picture


class PicturePair(QWidget):
    """A viewer of two pictures, with buttons for their arrangement.

    `display`: how both are drawn, as long as the user chooses no other.
    """

    def __init__(self, first: Half, second: Half, display: Display, parent: QWidget) -> None:
        super().__init__(parent)
        images = self.images = ImagePair(self)
        images.names = first.name, second.name
        for view, half in ((images.input, first), (images.output, second)):
            pyramid = Pyramid(half.image.planes)
            view.show_picture(half.image, pyramid, half.offset, half.title, half.details)
        images.view.camera.show([(first.image.width, first.image.height)])
        for half in (first, second):
            images.view.displays.remember(half.image, display)
        images.view.displays.show_input(first.image, follows=False)
        images.view.displays.show_output(second.image)
        images.view.note(DRAWN)
        in_column(self._tools(), (images, 1), of=self, margins=0)
        images.view.arrange(arrangement=Arrangement.SWIPE)
        images.fit()
        self.setFocusProxy(images.output.canvas)  # Space and the brackets work at once

    def _tools(self) -> QToolBar:
        """Return buttons for the arrangements; one is down at a time."""
        bar = QToolBar("Arrangement", self)
        group = QActionGroup(self)
        for arrangement in _ARRANGEMENTS:
            action = QAction(arrangement.value.capitalize(), self)
            action.setObjectName(f"pair{arrangement.name.title()}")
            action.setCheckable(True)
            action.setChecked(arrangement is Arrangement.SWIPE)
            action.triggered.connect(
                lambda _, chosen=arrangement: self.images.view.arrange(arrangement=chosen)
            )
            group.addAction(action)
            bar.addAction(action)
        return bar


class RunPair(ToolWindow):
    """The outputs of two runs in a viewer of their own; both must be in memory.

    `first` and `second`: on the left and on the right. Volumes are shown side by side, their first
    component.
    """

    def __init__(self, first: Run, second: Run, parent: QWidget | None = None) -> None:
        title = f"Runs {first.number} and {second.number}"
        super().__init__("runPair", title, parent, help_page="window#the-list-of-runs")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(960, 720)
        column = QVBoxLayout(self)
        assert first.result is not None
        assert second.result is not None
        left, right = first.result.output, second.result.output
        if isinstance(left, Scan) and isinstance(right, Scan):
            viewer = VolumeViewer(self)
            viewer.wanted.connect(lambda work: viewer.take(work()))
            viewer.show_input(left.volumes[0], describe(first))
            viewer.show_output(right.volumes[0], describe(second))
            column.addWidget(viewer)
            return
        assert isinstance(left, Image)
        assert isinstance(right, Image)
        display = Display.automatic(left.planes)
        pair = PicturePair(_half(first, left), _half(second, right), display, self)
        column.addWidget(pair)
        pair.setFocus()


def _half(run: Run, image: Image) -> Half:
    assert run.result is not None
    offset = offset_of(run.result.request)
    return Half(image, f"Run {run.number}", run.title, describe(run), offset)


def describe(run: Run) -> str:
    """Return number, settings, level and quality of a run, for its caption."""
    unusual = [chip.text for chip in run.chips if not chip.usual]
    parts = [f"{run.number}: {run.title}", *unusual, run.where]
    if run.psnr is not None:
        parts.append(f"{run.psnr:.2f} dB")
    return " · ".join(parts)
