"""Measuring in pictures and volumes: the tool for regions, and the figures in their panel."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDockWidget, QWidget

from kernelscope.gui.docks.measure_panel import MeasurePanel
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.measurements import RegionRow, measure
from kernelscope.gui.model.profiles import Profile, profile
from kernelscope.gui.model.regions import Regions, Shape
from kernelscope.gui.session.canvas_view import PANES, SLICES
from kernelscope.gui.session.session import KIND, Session
from kernelscope.gui.session.subject import REFERENCE, SHOWN
from kernelscope.gui.session.volume_subject import COMPONENT
from kernelscope.gui.viewer.region_tool import RegionTool
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action, choice
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.live import Live
from kernelscope.gui.window.measured_pages import MeasuredPage, MeasuredPictures, MeasuredVolumes
from kernelscope.gui.window.pages.picture_page import PicturePage
from kernelscope.gui.window.pages.volume_page import VolumePage
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.later import Later
from kernelscope.schema.samples import Kind

_EARLIER = "Output: figures of the last complete output, which is not the one of these settings."

_MEASURED = frozenset({KIND, REFERENCE, SHOWN, COMPONENT, SLICES, PANES})
"""Changes after which there is something else to measure."""


class Measuring(QObject):
    """Carries out the commands for regions, and keeps their figures true.

    Pictures and volumes have regions of their own; the tool is chosen for both.

    Parameters
    ----------
    panel : MeasurePanel
        Filled while it is visible.
    session : Session
        It is offered the selected region of pictures as the part to filter.
    """

    def __init__(
        self,
        panel: MeasurePanel,
        pictures: PicturePage,
        volumes: VolumePage,
        session: Session,
        background: Background,
        actions: Actions,
        live: Live,
        report: Callable[[Exception], None],
    ) -> None:
        super().__init__(panel)
        self._panel, self._session = panel, session
        self._background, self._actions = background, actions
        self._report = report
        self._shape = ""
        self._later = Later(self._measure, self)

        def leave() -> None:
            self.choose_tool("")

        self._of_pictures = MeasuredPictures(pictures, panel.regions, leave)
        self._of_volumes = MeasuredVolumes(volumes, Regions(), leave)
        self._both: tuple[MeasuredPage, ...] = (self._of_pictures, self._of_volumes)
        for each in self._both:
            each.regions.changed = self._on_regions
        panel.wanted.connect(self._later.soon)
        live.refreshed.connect(self._later.soon)
        session.when({KIND}, self._on_front)
        session.when(_MEASURED, self._later.soon)
        for shape in Shape:
            action = panel.add_menu.addAction(shape.capitalize())
            action.triggered.connect(lambda _=False, shape=shape: self.add(shape))

    @property
    def _front(self) -> MeasuredPage:
        of_pictures = self._session.kind is Kind.PICTURE
        return self._of_pictures if of_pictures else self._of_volumes

    @property
    def regions(self) -> Regions:
        """The regions of the page in front."""
        return self._front.regions

    @property
    def tool(self) -> RegionTool:
        """The tool of the page in front."""
        return self._front.tool

    @choice(
        "measuring",
        lambda measuring: measuring._shape,
        commands.SOURCE,
        Action(
            "drawRectangle",
            "&Rectangle",
            keys=("Ctrl+Alt+R",),
            tip="Draw rectangles, move and resize them; Return adds one, Delete removes it",
            argument="rectangle",
        ),
        Action(
            "drawEllipse",
            "&Ellipse",
            keys=("Ctrl+Alt+O",),
            tip="Draw ellipses, move and resize them; Return adds one, Delete removes it",
            argument="ellipse",
        ),
        Action(
            "drawPolygon",
            "&Polygon",
            keys=("Ctrl+Alt+G",),
            tip="Click corner by corner; Return or a click on the first one completes the polygon",
            argument="polygon",
        ),
        Action(
            "drawLine",
            "Profile &Line",
            keys=("Ctrl+Alt+L",),
            tip="Draw lines; the panel Measure plots input and output along the chosen one",
            argument="line",
        ),
        Action(
            "regionsOff",
            "&Move the Pictures",
            keys=("Ctrl+Alt+M",),
            tip="Move pictures or the crosshair with the left button and the arrow keys again",
            argument="",
        ),
    )
    def choose_tool(self, name: str) -> None:
        """Draw regions of a shape with the left button; an empty name gives the mouse back."""
        for each in self._both:
            each.tool.drop_draft()
            if name:
                each.tool.shape = Shape(name)
            each.use(bool(name))
        self._shape = name
        self._actions.tick(self)
        if name:
            self._show_panel()
            self._front.focus()

    def add(self, shape: Shape) -> None:
        """Add a region in the middle of the view, ready to be moved."""
        if not self._front.is_empty:
            self.choose_tool(shape.value)
            self.tool.add(shape)

    @Action(
        "removeRegion",
        "&Delete Region",
        tip="Delete the selected region; in a picture or slice, press Delete",
        need=commands.SOURCE,
    )
    def remove(self) -> None:
        """Remove the selected region."""
        self.regions.remove()

    def _show_panel(self) -> None:
        widget: QWidget | None = self._panel
        while widget is not None and not isinstance(widget, QDockWidget):
            widget = widget.parentWidget()
        if widget is not None:
            widget.show()
            widget.raise_()

    def _on_front(self) -> None:
        """Show the regions of what came to the front."""
        if self._panel.regions is not self.regions:
            self._panel.show_regions_of(self.regions)

    def _on_regions(self) -> None:
        self._front.redraw()
        self._panel.show_regions()
        self._show_size()
        chosen = self.regions.chosen
        if self._front is self._of_pictures:
            self._session.offer_region(
                chosen.name if chosen else "", chosen.area if chosen else None
            )
        self._later.soon()

    def _show_size(self) -> None:
        chosen = self.regions.chosen
        self._panel.show_size(self._front.size_of(chosen) if chosen is not None else "")

    def _measure(self) -> None:
        """Compute the figures on another thread, if they are in view."""
        panel, front = self._panel, self._front
        if not panel.isVisible():
            return
        panel.units = front.units
        self._show_size()
        if front.is_empty or not front.regions.all:
            self._background.forget("measure")
            panel.show_rows((), "")
            return
        regions, against, has_output = front.regions.all, panel.against, front.has_output
        chosen, take = front.regions.chosen, front.measured()
        line = chosen if chosen is not None and chosen.shape is Shape.LINE else None

        def work() -> tuple[tuple[RegionRow, ...], list[Profile]]:
            measured = take()
            along = [each for each in measured if line is not None and each.plane == line.plane]
            profiles = [profile(line, each) for each in along] if line is not None else []
            return measure(regions, against, measured), profiles

        def show(figures: tuple[tuple[RegionRow, ...], list[Profile]]) -> None:
            if self._front is not front:
                return
            rows, profiles = figures
            earlier = self._session.freshness not in (Freshness.EXACT, None) and has_output
            notes = (_EARLIER if earlier else "", front.note)
            panel.show_rows(rows, " ".join(filter(None, notes)), profiles)

        self._background.start("measure", work, show, self._report)
