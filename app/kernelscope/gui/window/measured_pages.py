"""The pages as measuring sees them: their regions, the tool that draws them, and the pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QRectF

from kernelscope.gui.model.arrangement import Units
from kernelscope.gui.model.measurements import pictures, size_of, slices, steps_of
from kernelscope.gui.model.profiles import ProfiledPicture
from kernelscope.gui.model.projection import Projection
from kernelscope.gui.model.regions import Interest, Regions
from kernelscope.gui.viewer.region_tool import RegionTool
from kernelscope.gui.window.pages.picture_page import PicturePage
from kernelscope.gui.window.pages.volume_page import VolumePage

_PROJECTED = "Figures of the slices through the crosshair, not of the projections."


class MeasuredPage(Protocol):
    """A page with regions."""

    regions: Regions
    tool: RegionTool
    """Draws them."""

    @property
    def units(self) -> Units:
        """The units in which values are read off."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to measure."""

    @property
    def has_output(self) -> bool: ...

    @property
    def note(self) -> str:
        """A sentence about the figures, where they are not those of the values in view."""

    def measured(self) -> Callable[[], list[ProfiledPicture]]:
        """Return a function that returns the pictures; call it off the GUI thread."""

    def size_of(self, region: Interest) -> str:
        """Return the size of a region in millimetres; empty where that is not known."""

    def use(self, used: bool) -> None:
        """Give the mouse and the keyboard to the tool, or take them back."""

    def focus(self) -> None:
        """Give the keyboard to the pictures."""

    def redraw(self) -> None:
        """Draw the regions again."""


class MeasuredPictures:
    """The regions of pictures."""

    def __init__(self, page: PicturePage, regions: Regions, leave: Callable[[], None]) -> None:
        self._subject, self._pair, self.regions = page.subject, page.images, regions
        pair = self._pair
        self.tool = RegionTool(regions, pair.update_overlays, leave, self._visible)
        pair.add_overlay(self.tool)

    def _visible(self) -> tuple[QRectF, None]:
        return self._pair.visible(), None

    @property
    def units(self) -> Units:
        return self._subject.view.panes.units

    @property
    def is_empty(self) -> bool:
        return self._subject.source is None

    @property
    def has_output(self) -> bool:
        return self._subject.result is not None

    @property
    def note(self) -> str:
        return ""

    def measured(self) -> Callable[[], list[ProfiledPicture]]:
        moment, reference = self._subject.moment, self._subject.reference
        image = reference.image if reference is not None else None
        return lambda: pictures(moment.source, moment.result, image)

    def size_of(self, region: Interest) -> str:
        return ""

    def use(self, used: bool) -> None:
        self._pair.set_tool(self.tool if used else None)

    def focus(self) -> None:
        self._pair.output.canvas.setFocus()

    def redraw(self) -> None:
        self._pair.update_overlays()


class MeasuredVolumes:
    """The regions of volumes: each belongs to a plane, and is measured in the slice in view."""

    def __init__(self, page: VolumePage, regions: Regions, leave: Callable[[], None]) -> None:
        self._subject, self._viewer, self.regions = page.subject, page.viewer, regions
        viewer = self._viewer
        self.tool = RegionTool(regions, viewer.update_overlays, leave, viewer.visible)
        viewer.add_overlay(self.tool)

    @property
    def units(self) -> Units:
        return self._subject.view.panes.units

    @property
    def is_empty(self) -> bool:
        return self._subject.source is None or self._subject.is_behind

    @property
    def has_output(self) -> bool:
        return self._subject.result is not None

    @property
    def note(self) -> str:
        return "" if self._subject.view.look.projection is Projection.SLICE else _PROJECTED

    def measured(self) -> Callable[[], list[ProfiledPicture]]:
        subject, view = self._subject, self._subject.view
        volume, output, reference = subject.part, subject.shown_output, subject.reference
        truth = reference.image if reference is not None else None
        planes, position = view.planes, view.position
        return lambda: slices(volume, output, truth, planes, position)

    def size_of(self, region: Interest) -> str:
        planes = self._subject.view.planes
        if self.is_empty or region.plane is None:
            return ""
        return size_of(region, steps_of(self._subject.part, planes[region.plane]))

    def use(self, used: bool) -> None:
        self._viewer.set_tool(self.tool if used else None)

    def focus(self) -> None:
        self._viewer.focus()

    def redraw(self) -> None:
        self._viewer.update_overlays()
