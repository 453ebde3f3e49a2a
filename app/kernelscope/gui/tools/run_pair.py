"""Two runs over each other: swipe, split or side by side."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope.gui.model.comparison import offset_of
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.runs import Run
from kernelscope.gui.tools.picture_pair import Half, PicturePair
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan


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
