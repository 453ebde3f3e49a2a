"""Two pictures or volumes in a viewer of their own, such as the outputs of two runs."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QToolBar, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.comparison import offset_of
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import Shown, automatic_of
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.model.runs import Run
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import in_column
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan

_ARRANGEMENTS = (Arrangement.SWIPE, Arrangement.SPLIT, Arrangement.SIDE_BY_SIDE)


class Half(NamedTuple):
    image: Shown
    name: str  # written at the divide
    # Above it, where both are side by side.
    title: str
    details: str = ""
    offset: int = 0  # coordinate of its first row and column, beside the other picture

    def drawn(self, display: Display) -> DrawnView:
        pyramid = Pyramid(self.image.planes) if isinstance(self.image, Image) else None
        return DrawnView(self.image, pyramid, self.offset, display)


class PicturePair(QWidget):
    """A viewer of two, with buttons for their arrangement.

    `display`: how both are drawn, as long as the user chooses no other.
    """

    def __init__(self, first: Half, second: Half, display: Display, parent: QWidget) -> None:
        super().__init__(parent)
        images = PairView(CanvasView(1 if isinstance(first.image, Image) else 3))
        self.images = images
        images.names = first.name, second.name
        images.wanted.connect(lambda work: images.take(work()))
        images.show_input(first.drawn(display), first.title, first.details)
        images.show_output(second.drawn(display), second.title, second.details)
        in_column(self._tools(), (images, 1), of=self, margins=0)
        images.view.arrange(arrangement=Arrangement.SWIPE)
        images.fit()
        self.setFocusProxy(images.output.views[0])  # Space and the brackets work at once

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

    `first` and `second`: on the left and on the right. Of volumes, their first component.
    """

    def __init__(self, first: Run, second: Run, parent: QWidget | None = None) -> None:
        title = f"Runs {first.number} and {second.number}"
        super().__init__("runPair", title, parent, help_page="window#the-list-of-runs")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.take_size(960, 680)
        left, right = _half(first), _half(second)
        pair = PicturePair(left, right, automatic_of(left.image), self)
        in_column((pair, 1), close_box(self), of=self)
        pair.setFocus()


def _half(run: Run) -> Half:
    assert run.result is not None
    output, offset = run.result.output, offset_of(run.result.request)
    if isinstance(output, Scan):
        return Half(output.volumes[0], f"Run {run.number}", describe(run))
    assert isinstance(output, Image)
    return Half(output, f"Run {run.number}", run.title, describe(run), offset)


def describe(run: Run) -> str:
    unusual = [chip.text for chip in run.chips if not chip.usual]
    parts = [f"{run.number}: {run.title}", *unusual, run.where]
    if run.psnr is not None:
        parts.append(f"{run.psnr:.2f} dB")
    return " · ".join(parts)
