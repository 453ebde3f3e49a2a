"""Measuring in pictures and volumes: the tool for regions, and the figures in their panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject

from kernelscope.gui.model.measurements import (
    EARLIER,
    Made,
    Profile,
    RegionRow,
    marked,
    measure,
    named,
    profile,
    seen,
)
from kernelscope.gui.model.regions import Interest, Regions, Shape
from kernelscope.gui.session.canvas_view import PANES, SLICES
from kernelscope.gui.session.session import KIND, REGION, SETTINGS
from kernelscope.gui.session.subject import (
    COMPONENT,
    INPUT,
    MOMENT,
    PART,
    REFERENCE,
    REGIONS,
    REVERTED,
    SHOWN,
)
from kernelscope.gui.viewer.region_tool import RegionTool
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action, choice
from kernelscope.gui.widgets.parts import set_help
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.live import Live
from kernelscope.gui.work.background import Later
from kernelscope.images.image import Image
from kernelscope.schema.samples import Kind

_MEASURED = frozenset({KIND, REFERENCE, SHOWN, COMPONENT, SLICES, PANES})
"""Changes after which there is something else to measure."""


class Measuring(QObject):
    """Carries out the commands for regions and keeps their figures true while the panel is visible.

    Pictures and volumes have regions of their own; the tool is chosen for both.
    """

    def __init__(self, frame: Frame, live: Live) -> None:
        panel, session = frame.measure, frame.session
        super().__init__(panel)
        self._frame, self._panel, self._session = frame, panel, session
        self._background, self._actions = frame.background, frame.actions_
        self._shape = ""
        self._later = Later(self._measure, self)
        self._shown: tuple[Interest, ...] = ()

        def leave() -> None:
            self.choose_tool("")

        self._tools: dict[Kind, RegionTool] = {}
        for kind, page in frame.pages.items():
            canvas = page.canvas
            tool = RegionTool(page.subject.regions, canvas.update_regions, leave, canvas.in_view)
            self._tools[kind] = tool
            canvas.add_regions(tool)
        panel.wanted.connect(self._later.soon)
        panel.compared.connect(lambda against: session.subject.compare_regions(against))
        panel.axes_of = lambda region: session.subject.axes_of(region)
        live.refreshed.connect(self._later.soon)
        session.when({KIND, INPUT}, self._on_front)
        session.when({KIND, REGION}, self._on_area)
        session.when({REGIONS}, self._on_regions)
        session.when({MOMENT, REVERTED}, self._on_moment)
        session.when(_MEASURED, self._later.soon)
        session.when({SETTINGS, SHOWN, PART}, self._mark)
        for shape in Shape:
            action = panel.add_menu.addAction(shape.capitalize())
            action.triggered.connect(lambda _=False, shape=shape: self.add(shape))

    @property
    def regions(self) -> Regions:
        return self.tool.regions

    @property
    def tool(self) -> RegionTool:
        return self._tools[self._session.kind]

    @choice(
        "measuring",
        lambda measuring: measuring._shape,
        commands.SOURCE,
        Action(
            "drawRectangle",
            "&Rectangle",
            "Ctrl+Alt+R",
            tip="Draw rectangles, move and resize them; Return adds one, Delete removes it",
            argument="rectangle",
            synonyms=("Draw a region",),
        ),
        Action(
            "drawEllipse",
            "&Ellipse",
            "Ctrl+Alt+O",
            tip="Draw ellipses, move and resize them; Return adds one, Delete removes it",
            argument="ellipse",
            synonyms=("Draw a region",),
        ),
        Action(
            "drawPolygon",
            "&Polygon",
            "Ctrl+Alt+G",
            tip="Click corner by corner; Return or a click on the first one completes the polygon",
            argument="polygon",
            synonyms=("Draw a region",),
        ),
        Action(
            "drawLine",
            "Profile &Line",
            "Ctrl+Alt+L",
            tip="Draw lines; the panel Measure plots input and output along the chosen one",
            argument="line",
        ),
        Action(
            "regionsOff",
            "&Move the Pictures",
            "Ctrl+Alt+M",
            tip="Move pictures or the crosshair with the left button and the arrow keys again",
            argument="",
        ),
    )
    def choose_tool(self, name: str) -> None:
        """Draw regions of a shape with the left button; an empty name gives the mouse back."""
        for kind, tool in self._tools.items():
            tool.drop_draft()
            if name:
                tool.shape = Shape(name)
            canvas = self._frame.pages[kind].canvas
            canvas.set_tool(tool if name else None)
            set_help(canvas, "window#measuring" if name else "")
        self._shape = name
        self._actions.tick(self)
        if name:
            self._frame.panel_buttons.open_by_itself(DockName.MEASURE)
            self._frame.pages[self._session.kind].canvas.focus()

    def add(self, shape: Shape) -> None:
        """Add a region in the middle of the view, ready to be moved."""
        subject = self._session.subject
        if subject.source is not None and not subject.is_behind:
            self.choose_tool(shape.value)
            self.tool.add(shape)

    @Action(
        "filterWithin",
        "&Filter Only in Region",
        need=commands.AREA,
        ticked=lambda measuring: measuring._session.within is not None,
        help="filters",
    )
    def filter_within(self) -> None:
        """Filter the selected region of interest and keep the rest of the picture."""
        self._session.limit(self._session.within is None)

    @Action("removeRegion", "&Delete Region", need=commands.REGION)
    def remove(self) -> None:
        """Delete the selected region; in a picture or slice, press Delete."""
        self.regions.remove()

    @Action("openRegion", "&Open Region at Full Resolution", need=commands.REGION)
    def open_region(self) -> None:
        """Open the part of the file in the selected region as a picture, where it is shown at a
        lower resolution.
        """
        from kernelscope.big.lazy.viewing import REDUCED, read_region

        base, chosen = self._session.subject.base, self.regions.chosen
        if not isinstance(base, Image) or base.path is None or REDUCED not in base.metadata.others:
            self._frame.show_status("Only pictures that are shown at a lower resolution have more.")
        elif chosen is not None:
            work = partial(read_region, base.path, chosen.box, base.shape)
            self._background.start("region", work, self._frame.file_dialogs.loaded.emit)

    def _on_front(self) -> None:
        self._panel.show_against(self._session.subject.against)
        if self._panel.regions is not self.regions:
            self._panel.show_regions_of(self.regions)
            self._shown = self.regions.all
            self._count()
        self._follow_panel(wanted=bool(self.regions.all))
        self.tool.drop_draft()

    def _follow_panel(self, *, wanted: bool) -> None:
        self._frame.panel_buttons.follow(DockName.MEASURE, wanted=wanted)

    def _on_moment(self) -> None:
        """Show the regions of another file; a filter is limited to none that it does not have."""
        if self.regions.all == self._shown:
            return
        self._panel.show_against(self._session.subject.against)
        self._on_regions()
        areas = [each.area for each in self._shown]
        if self._session.within is not None and self._session.within not in areas:
            self._session.limit(False)

    def _on_regions(self) -> None:
        self._shown = self.regions.all
        self._count()
        if self._shown:
            self._follow_panel(wanted=True)
        self._frame.pages[self._session.kind].canvas.update_regions()
        self._panel.show_regions()
        self._show_size()
        chosen = self.regions.chosen
        if self._session.kind is Kind.PICTURE:
            self._session.offer_region(
                chosen.name if chosen else "", chosen.area if chosen else None
            )
        self._later.soon()

    def _count(self) -> None:
        count, selected = len(self.regions.all), self.regions.chosen is not None
        self._actions.apply(replace(self._actions.state, regions=count, region=selected))

    def _on_area(self) -> None:
        session = self._session
        offered = session.kind is Kind.PICTURE and session.region[1] is not None
        area = offered or session.within is not None
        self._actions.apply(replace(self._actions.state, area=area))
        self._actions.tick(self)

    def _show_size(self) -> None:
        chosen = self.regions.chosen
        size = self._session.subject.size_of(chosen) if chosen is not None else ""
        self._panel.show_size(size)

    def _mark(self) -> None:
        """Mark the figures of outputs that are no longer in view, until there are new ones."""
        panel, subject = self._panel, self._session.subject
        if panel.rows and panel.isVisible() and not subject.is_behind:
            now = subject.outputs
            rows, profiles = marked(panel.rows, now), marked(panel.profile.profiles, now)
            if rows != panel.rows:
                panel.show_rows(rows, _notes(rows), profiles)

    def _measure(self) -> None:
        panel, subject, regions = self._panel, self._session.subject, self.regions
        if not panel.isVisible():
            return
        panel.units = subject.view.panes.units
        self._show_size()
        if subject.source is None or subject.is_behind or not regions.all:
            self._background.forget("measure")
            panel.show_rows((), "")
            return
        all_, against = regions.all, panel.against
        chosen, take = regions.chosen, subject.to_measure()
        line = chosen if chosen is not None and chosen.shape is Shape.LINE else None

        def work() -> tuple[tuple[RegionRow, ...], list[Profile]]:
            measured = take()
            along = seen(line, measured) if line is not None else []
            profiles = [profile(line, each) for each in along] if line is not None else []
            return measure(all_, against, measured), profiles

        def show(figures: tuple[tuple[RegionRow, ...], list[Profile]]) -> None:
            if subject.is_front:
                rows, profiles = figures
                panel.show_rows(rows, _notes(rows), profiles)

        self._background.start("measure", work, show)


def _notes(rows: Sequence[RegionRow]) -> str:
    """Return the settings of outputs that are not those of now, and why figures are left out."""
    made = dict.fromkeys(row.made for row in rows if row.made.state)
    states = [_made(each) for each in made]
    return " ".join(dict.fromkeys([*states, *filter(None, (row.note for row in rows))]))


def _made(made: Made) -> str:
    present = ", not the present ones" if made.state == EARLIER else ""
    return f"{named('Output', made)}{present}: {made.settings}."
