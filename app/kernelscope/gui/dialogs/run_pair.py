"""Two runs over each other: swipe, split or side by side."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QDialog, QToolBar, QVBoxLayout, QWidget

from kernelscope.gui.canvas.image_views import ImagePair
from kernelscope.gui.canvas.volume_viewer import VolumeViewer
from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.comparison import offset_of
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.model.runs import Run
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan

_ARRANGEMENTS = (Arrangement.SWIPE, Arrangement.SPLIT, Arrangement.SIDE_BY_SIDE)


class RunPair(QDialog):
    """The outputs of two runs in a viewer of their own; both must be in memory.

    Parameters
    ----------
    first, second : Run
        On the left and on the right. Volumes are shown side by side, their first component.
    """

    def __init__(self, first: Run, second: Run, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runPair")
        self.setWindowTitle(f"Runs {first.number} and {second.number}")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(960, 720)
        column = QVBoxLayout(self)
        assert first.result is not None
        assert second.result is not None
        left, right = first.result.output, second.result.output
        if isinstance(left, Scan) and isinstance(right, Scan):
            viewer = VolumeViewer(self)
            viewer.show_input(left.volumes[0], describe(first))
            viewer.show_output(right.volumes[0], describe(second))
            column.addWidget(viewer)
            return
        assert isinstance(left, Image)
        assert isinstance(right, Image)
        self.images = ImagePair(self)
        display = Display.automatic(left.planes)
        for image, run, show in (
            (left, first, self.images.input),
            (right, second, self.images.output),
        ):
            assert run.result is not None
            offset = offset_of(run.result.request)
            show.show_picture(image, Pyramid(image.planes), offset, run.title, describe(run))
        self.images.displays.show_input(left, display, follows=False)
        self.images.displays.show_output(right, display)
        self.images.apply_displays()
        column.addWidget(self._tools())
        column.addWidget(self.images, 1)
        self.images.arrange(Arrangement.SWIPE.value)
        self.images.fit()
        self.images.setFocus()

    def _tools(self) -> QToolBar:
        """Return buttons for the arrangements; one is down at a time."""
        bar = QToolBar("Arrangement", self)
        group = QActionGroup(self)
        for arrangement in _ARRANGEMENTS:
            action = QAction(arrangement.value.capitalize(), self)
            action.setObjectName(f"pair{arrangement.name.title()}")
            action.setCheckable(True)
            action.setChecked(arrangement is Arrangement.SWIPE)
            action.triggered.connect(lambda _, name=arrangement.value: self.images.arrange(name))
            group.addAction(action)
            bar.addAction(action)
        return bar


def describe(run: Run) -> str:
    """Return number, settings, level and quality of a run, for its caption."""
    unusual = [chip.text for chip in run.chips if not chip.usual]
    parts = [f"{run.number}: {run.title}", *unusual, run.where]
    if run.psnr is not None:
        parts.append(f"{run.psnr:.2f} dB")
    return " · ".join(parts)
