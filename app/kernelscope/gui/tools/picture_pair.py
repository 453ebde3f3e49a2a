"""Two pictures over each other, in a viewer of their own: swipe, split or side by side."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QToolBar, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.viewer.image_views import ImagePair
from kernelscope.gui.widgets.parts import in_column
from kernelscope.images.image import Image

_ARRANGEMENTS = (Arrangement.SWIPE, Arrangement.SPLIT, Arrangement.SIDE_BY_SIDE)


class Half(NamedTuple):
    """One of the two pictures."""

    image: Image
    name: str
    """Written at the divide."""
    # Above the picture, where both are side by side.
    title: str
    details: str = ""
    offset: int = 0
    """Coordinate of its first row and column, beside the other picture."""


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
        images.displays.show_input(first.image, display, follows=False)
        images.displays.show_output(second.image, display)
        images.apply_displays()
        in_column(self._tools(), (images, 1), of=self, margins=0)
        images.arrange(Arrangement.SWIPE.value)
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
            action.triggered.connect(lambda _, name=arrangement.value: self.images.arrange(name))
            group.addAction(action)
            bar.addAction(action)
        return bar
