"""Level, window and gamma of what is in front, the same for pictures and volumes."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.viewer.image_views import ImagePair
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.images.planes import GreyWindow


class GreyLevels(QObject):
    """How something is drawn, and the choice of the user."""

    changed = Signal()
    """It is drawn in another way, whoever chose that."""

    @property
    def display(self) -> Display | None:
        """How it is drawn; None while nothing is open."""
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        raise NotImplementedError

    @property
    def colour_map(self) -> ColourMap:
        """The colours that are drawn: a picture in colour has only the grey maps."""
        return self.display.colour_map if self.display is not None else ColourMap.GREY

    @property
    def sides(self) -> tuple[PaneSide, ...]:
        """The pictures to choose from where they are drawn separately; else empty."""
        return ()

    def choose_side(self, side: PaneSide) -> None:
        """Be about the input or the output, where they are drawn separately."""

    def choose(self, display: Display) -> None:
        raise NotImplementedError

    def choose_automatic(self) -> None:
        """Draw it with the contrast that the program finds."""
        raise NotImplementedError


class PictureLevels(GreyLevels):
    """The display of the input, which is that of the output unless the two are separate."""

    def __init__(self, pair: ImagePair) -> None:
        super().__init__(pair)
        self._pair, self._side = pair, PaneSide.OUTPUT
        pair.displayed.connect(self.changed)

    @property
    def side(self) -> PaneSide:
        return self._side if self.sides else PaneSide.INPUT

    @property
    def display(self) -> Display | None:
        return self._pair.displays.of(self.side)

    @property
    def is_whole(self) -> bool:
        image = self._pair.displays.image(self.side)
        return image is not None and image.pixels.dtype.kind == "u"

    @property
    def colour_map(self) -> ColourMap:
        image = self._pair.displays.image(self.side)
        chosen = super().colour_map
        return chosen if chosen.is_grey or (image and image.is_grey) else ColourMap.GREY

    @property
    def sides(self) -> tuple[PaneSide, ...]:
        displays = self._pair.displays
        known = displays.of(PaneSide.INPUT) is not None and displays.of(PaneSide.OUTPUT) is not None
        separate = known and displays.ruling(PaneSide.OUTPUT) is PaneSide.OUTPUT
        return tuple(PaneSide) if separate else ()

    def choose_side(self, side: PaneSide) -> None:
        if side is not self._side:
            self._side = side
            self.changed.emit()

    def choose(self, display: Display) -> None:
        self._pair.choose_display(self.side, display)

    def choose_automatic(self) -> None:
        self._pair.choose_display(self.side, None)


class VolumeLevels(GreyLevels):
    """Level and window of a volume, and the gamma and colours of all volumes."""

    def __init__(self, viewer: VolumeViewer) -> None:
        super().__init__(viewer)
        self._viewer = viewer
        viewer.control.changed.connect(self.changed)
        viewer.displayed.connect(self.changed)

    @property
    def display(self) -> Display | None:
        if self._viewer.input.volume is None:
            return None
        window, look = self._viewer.window_, self._viewer.look
        return Display(window.low, window.low + window.width, look.gamma, look.colour_map)

    @property
    def is_whole(self) -> bool:
        volume = self._viewer.input.volume
        return volume is not None and volume.voxels.dtype.kind in "iu"

    def choose(self, display: Display) -> None:
        old = self.display
        if old is None:
            return
        if (display.low, display.high) != (old.low, old.high):
            self._viewer.set_window(GreyWindow(display.level, display.width))
        look = self._viewer.look
        self._viewer.choose_look(replace(look, gamma=display.gamma, colour_map=display.colour_map))

    def choose_automatic(self) -> None:
        self._viewer.choose_look(replace(self._viewer.look, gamma=1.0))
        self._viewer.control.choose_automatic()
