"""Measuring in pictures: the tool for regions of interest, and the figures in their panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget

from kernelscope.engine.area import Area
from kernelscope.gui.canvas.region_tool import RegionTool
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.measurements import Row, measure, pictures
from kernelscope.gui.model.profiles import Profile, profile
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.pages.picture_page import PicturePage
from kernelscope.gui.panels.measure_panel import MeasurePanel
from kernelscope.gui.window.live import Live
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.later import Later

_EARLIER = "Output: figures of the last complete output, which is not the one of these settings."
_ACTIONS = {
    "": "regionsOff",
    Shape.RECTANGLE: "drawRectangle",
    Shape.ELLIPSE: "drawEllipse",
    Shape.POLYGON: "drawPolygon",
    Shape.LINE: "drawLine",
}


class Measuring(QObject):
    """Carries out the commands for regions, and keeps their figures true.

    Attributes
    ----------
    regions : Regions
        Those of the panel.

    Parameters
    ----------
    panel : MeasurePanel
        Filled while it is visible.
    live : Live
        Knows how the output on the screen relates to the settings.
    offer_area : callable
        Offers the chosen region as the part of the picture to filter.
    """

    def __init__(
        self,
        panel: MeasurePanel,
        page: PicturePage,
        background: Background,
        actions: Mapping[str, QAction],
        live: Live,
        report: Callable[[Exception], None],
        offer_area: Callable[[str, Area | None], None],
    ) -> None:
        super().__init__(page)
        self.regions = regions = panel.regions
        self._panel, self._page = panel, page
        self._background, self._actions = background, actions
        self._live, self._report, self._offer_area = live, report, offer_area
        pair = page.images
        self._later = Later(self._measure, self)
        self.tool = RegionTool(
            regions, pair.update_overlays, lambda: self.choose_tool(""), pair.visible
        )
        pair.add_overlay(self.tool)
        regions.changed = self._on_regions
        panel.wanted.connect(self._later.soon)
        page.subject_changed.connect(self._later.soon)
        page.drawn.connect(lambda *_: self._later.soon())
        pair.read_in.connect(self._later.soon)
        live.refreshed.connect(self._later.soon)
        for shape in Shape:
            action = panel.add_menu.addAction(shape.capitalize())
            action.triggered.connect(lambda _=False, shape=shape: self.add(shape))
        actions[_ACTIONS[""]].setChecked(True)

    def choose_tool(self, name: str) -> None:
        """Draw regions of a shape with the left button; an empty name moves the pictures again."""
        pair = self._page.images
        self.tool.drop_draft()
        if name:
            self.tool.shape = Shape(name)
            self._show_panel()
        pair.set_tool(self.tool if name else None)
        self._actions[_ACTIONS[Shape(name) if name else ""]].setChecked(True)
        if name:
            pair.output.canvas.setFocus()

    def add(self, shape: Shape) -> None:
        """Add a region in the middle of the view, ready to be moved."""
        if self._page.source is not None:
            self.choose_tool(shape.value)
            self.tool.add(shape)

    def remove(self) -> None:
        """Remove the chosen region."""
        self.regions.remove()

    def _show_panel(self) -> None:
        dock = self._panel.parentWidget()
        if isinstance(dock, QDockWidget):
            dock.show()
            dock.raise_()

    def _on_regions(self) -> None:
        self._page.images.update_overlays()
        self._panel.show_regions()
        chosen = self.regions.chosen
        self._offer_area(chosen.name if chosen else "", chosen.area if chosen else None)
        self._later.soon()

    def _measure(self) -> None:
        """Compute the figures on another thread, if they are in view."""
        panel, page = self._panel, self._page
        if not panel.isVisible():
            return
        panel.units = page.images.units
        if page.source is None or not self.regions.all:
            self._background.forget("measure")
            panel.show_rows((), "")
            return
        moment, regions, against = page.moment, self.regions.all, panel.against
        reference = page.reference.image if page.reference is not None else None

        chosen = self.regions.chosen
        line = chosen if chosen is not None and chosen.shape is Shape.LINE else None

        def work() -> tuple[tuple[Row, ...], list[Profile]]:
            measured = pictures(moment.source, moment.result, reference)
            profiles = [profile(line, each) for each in measured] if line is not None else []
            return measure(regions, against, measured), profiles

        def show(figures: tuple[tuple[Row, ...], list[Profile]]) -> None:
            rows, profiles = figures
            earlier = self._live.freshness not in (Freshness.EXACT, None)
            note = _EARLIER if earlier and moment.result is not None else ""
            panel.show_rows(rows, note, profiles)

        self._background.start("measure", work, show, self._report)
