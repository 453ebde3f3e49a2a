"""One picture under its caption."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope.engine.region import Region
from kernelscope.gui.model.arrangement import Units
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.pane import Pane
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import dressed
from kernelscope.images.image import Image
from kernelscope.schema.samples import white_level


class ImageView(Pane):
    """One picture under its caption.

    Scene coordinates are pixels of the input picture; a result that is smaller because of the
    border ``valid`` lies where its pixels come from. `image`: the picture whose values are read
    off. `layer`: the picture as it is drawn.
    """

    patched = Signal(object)  # `Image`: A region of another result is shown

    def __init__(
        self, side: PaneSide, heading: str, hint: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(side.value, heading, hint, parent, padding=24)
        self.image: Image | None = None
        self.layer: Layer | None = None

        self._details = dressed(ElidedLabel(self), f"{side}Details")
        self.canvas = dressed(PlaneCanvas(side, self), f"{side}Canvas", heading)
        self.views = (self.canvas,)
        self.hint.setParent(self.canvas)

        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        for label in (self.title, self._details):
            label.setContentsMargins(2, 0, 2, 0)
            layout.addWidget(label)
        layout.addSpacing(4)
        layout.addWidget(self.canvas, 1)

        self.canvas.resized.connect(lambda: self.hint.setGeometry(self.canvas.rect()))
        self.clear()
        self.follow_palette()

    @property
    def is_empty(self) -> bool:
        return self.layer is None

    @property
    def offset(self) -> int:
        """Scene coordinate of the first row and column."""
        return self.layer.offset if self.layer is not None else 0

    def show_picture(
        self,
        image: Image,
        pyramid: Pyramid | None,
        offset: int,
        title: str,
        details: str,
        brief: str = "",
        *,
        display: Display | None = None,
    ) -> None:
        """Show `pyramid`; `image` provides the values under the cursor.

        Nothing is drawn without a `pyramid`: see `show_hint`. `brief` replaces `details`,
        which its tooltip has.
        """
        self.image = image
        self.layer = Layer(
            image.planes, pyramid, offset, display or Display.full(image.pixels.dtype)
        )
        self.hint.hide()
        self.set_caption(title)
        self._details.set_full_text(details, brief)

    def show_region(
        self,
        region: Region,
        image: Image,
        offset: int | None = None,
        details: str = "",
        brief: str = "",
    ) -> None:
        """Draw a part of another result over the picture, until the next one is shown.

        `region`: in pixels of that result. `image`: samples of the region; fewer are stretched.
        `offset`: scene coordinate of the first row and column of that result; by default that of
        the picture. `details` and `brief`: as for `show_picture`; by default those of the picture.
        """
        if self.layer is None:
            self.layer = Layer(None, None, offset or 0, Display.full(image.pixels.dtype))
        self.layer.put_region(region, image, self.offset if offset is None else offset)
        self.hint.hide()
        if details:
            self._details.set_full_text(details, brief)
        self.patched.emit(image)

    def clear(self) -> None:
        """Show the hint that the view began with instead of a picture."""
        self.image = self.layer = None
        self.show_hint()
        self.set_caption(self.heading)
        self._details.set_full_text("")

    def samples_at(self, x: int, y: int) -> NDArray[Any] | None:
        """Return the samples of all channels at a scene pixel; None where there are none."""
        return self.layer.samples_at(x, y) if self.layer is not None else None

    def follow_palette(self) -> None:
        super().follow_palette()
        quiet = theme.quiet_text(self.palette()).name()
        self._details.setStyleSheet(f"color: {quiet}")


def words_of(samples: NDArray[Any], units: Units = Units.STORED) -> list[str]:
    """Return the samples of one pixel as texts, one for each channel."""
    if units is Units.STORED and samples.dtype.kind != "f":
        return [str(value) for value in samples]
    values = samples.astype(np.float64)
    if units is not Units.STORED:
        values = values / white_level(samples.dtype) * (255 if units is Units.BYTES else 1)
    return [f"{value:.4g}" for value in values]


def text_of(samples: NDArray[Any] | None, units: Units = Units.STORED) -> str:
    """Return the samples of one pixel as one text; empty for None."""
    if samples is None:
        return ""
    words = words_of(samples, units)
    return words[0] if len(words) == 1 else f"({', '.join(words)})"
