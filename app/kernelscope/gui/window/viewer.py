"""The commands for looking at pictures and volumes: arrangement, colours, values, magnifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from kernelscope.gui.docks.display_panel import DisplayPanel
from kernelscope.gui.model.display import Arrangement, ColourMap, Units
from kernelscope.gui.session.canvas_view import DRAWN, PANES, CanvasView, Panes
from kernelscope.gui.session.session import KIND
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action, choice

if TYPE_CHECKING:
    from kernelscope.gui.window.frame import Frame

_MAPS = {
    ColourMap.GREY: "&Grey",
    ColourMap.INVERTED: "Grey, &inverted",
    ColourMap.VIRIDIS: "&Viridis",
    ColourMap.MAGMA: "&Magma",
    ColourMap.DIVERGING: "Blue to r&ed",
    ColourMap.RED: "&Red",
    ColourMap.GREEN: "Gree&n",
    ColourMap.BLUE: "&Blue",
    ColourMap.CYAN: "&Cyan",
    ColourMap.MAGENTA: "Magen&ta",
    ColourMap.YELLOW: "&Yellow",
}

_ARRANGEMENT, _UNITS, _PROBE = "viewer/arrangement", "viewer/units", "viewer/probe"
_LARGE = "viewer/large"
_SCALE_BAR = "viewer/scaleBar"


class Viewer(QObject):
    """Carries out the commands on the page in front, and keeps the ticks of the menu true."""

    def __init__(self, frame: Frame, button: QWidget) -> None:
        super().__init__(button)
        session = self._session = frame.session
        self._actions, self._settings, self._button = frame.actions_, frame.settings, button
        self.panel = DisplayPanel(session, button)
        session.when({KIND, DRAWN, PANES}, self.refresh)
        session.volumes.when({PANES}, self._remember)
        self._restore()

    @property
    def _view(self) -> CanvasView:
        return self._session.subject.view

    @property
    def _panes(self) -> Panes:
        return self._view.panes

    def _restore(self) -> None:
        """Look as the user last did."""
        texts = self._settings.text
        if (name := texts(_ARRANGEMENT)) in list(Arrangement):
            self._session.arrange(arrangement=Arrangement(name))
        if (name := texts(_UNITS)) in list(Units):
            self._session.arrange(units=Units(name))
        if large := texts(_LARGE):
            self._session.volumes.view.enlarge(0 if large == "on" else None)
        if texts(_PROBE) == "off":
            self._session.arrange(shows_values=False)
        if texts(_SCALE_BAR) == "off":
            self._session.arrange(scale_bar=False)
        self.refresh()

    def _remember(self) -> None:
        large = self._session.volumes.view.panes.enlarged
        if large is not None:  # else nothing was chosen
            self._settings.set_text(_LARGE, "on" if large else "off")

    @choice(
        "arrangement",
        lambda viewer: viewer._panes.arrangement,
        commands.SOURCE,
        Action(
            "sideBySide",
            "&Side by Side",
            "Alt+1",
            tip="Input on the left, output on the right",
            argument="side by side",
            icon="side",
        ),
        Action(
            "swipe",
            "S&wipe",
            "Alt+2",
            tip="One picture: input left of a line, output right of it; drag it, or press [ and ]",
            argument="swipe",
            icon="swipe",
        ),
        Action(
            "split",
            "S&plit",
            "Alt+3",
            tip="One picture: input above a line, output below it; drag it, or press [ and ]",
            argument="split",
            icon="split",
        ),
        Action(
            "outputAlone",
            "&Output Alone",
            "Alt+4",
            tip="The output takes all the room; hold Space over it to see the input",
            argument="output alone",
            icon="single",
        ),
    )
    def arrange(self, name: str) -> None:
        """Arrange input and output; `name` is a value of `Arrangement`."""
        self._session.arrange(arrangement=Arrangement(name))
        self._settings.set_text(_ARRANGEMENT, name)

    @Action(
        "inputInstead",
        "&Input in Place of the Output",
        "Ctrl+I",
        need=commands.SOURCE,
        ticked=lambda viewer: viewer._view.shows_input,
    )
    def show_input_instead(self) -> None:
        """Switch between input and output; in a picture or slice, hold Space."""
        self._view.show_input_instead()

    @Action(
        "displayControls", "&Level and Colours…", "Ctrl+D", need=commands.SOURCE, icon="display"
    )
    def show_controls(self) -> None:
        """Level, window, gamma and colours; the values stay as they are."""
        self.panel.open_below(self._button)

    @Action("automaticDisplay", "&Automatic Contrast", "Ctrl+L", need=commands.SOURCE)
    def choose_automatic(self) -> None:
        """Black and white at low and high percentiles, unless all is visible anyway."""
        self._view.show_automatic()

    @Action("fullDisplay", "&Full Range", "Ctrl+Shift+L", need=commands.SOURCE)
    def choose_full(self) -> None:
        """Draw 0 black and the largest value of the type white; of volumes, of the voxels."""
        self._view.show_full_range()

    @Action(
        "linkDisplays",
        "&Output as Input",
        need=commands.SOURCE,
        ticked=lambda viewer: viewer._view.displays.linked,
    )
    def toggle_link(self) -> None:
        """Draw the output with the levels of the input, so that the two can be compared."""
        self._view.link(not self._view.displays.linked)

    @choice(
        "map",
        lambda viewer: viewer._view.chosen_map,
        commands.SOURCE,
        *(Action(f"map{each.name.title()}", _MAPS[each], argument=each) for each in ColourMap),
    )
    def choose_map(self, name: str) -> None:
        """Draw grey pictures in these colours."""
        self._view.choose_map(ColourMap(name))
        self.refresh()  # the action of the chosen map stays ticked if it is chosen again

    @choice(
        "units",
        lambda viewer: viewer._panes.units,
        commands.SOURCE,
        Action(
            "unitsStored",
            "&As Stored",
            tip="The values in the file: 0 to 65535 for 16 bits",
            argument="stored",
        ),
        Action(
            "unitsBytes",
            "0 to &255",
            tip="Black is 0, white 255; in volumes, the brightest voxel",
            argument="0 to 255",
        ),
        Action(
            "unitsShare",
            "0 to &1",
            tip="Black is 0, white 1; in volumes, the brightest voxel",
            argument="0 to 1",
        ),
    )
    def choose_units(self, name: str) -> None:
        """Read values off in other units; `name` is a value of `Units`."""
        self._session.arrange(units=Units(name))
        self._settings.set_text(_UNITS, name)

    @Action(
        "probe",
        "Values at the &Cursor",
        "Ctrl+Shift+I",
        need=commands.SOURCE,
        ticked=lambda viewer: viewer._panes.shows_values,
    )
    def toggle_probe(self) -> None:
        """Write the values beside the cursor; Shift and arrow keys move it pixel by pixel."""
        shown = not self._panes.shows_values
        self._session.arrange(shows_values=shown)
        self._settings.set_text(_PROBE, "on" if shown else "off")

    @Action(
        "magnifier",
        "&Magnifier",
        "Ctrl+M",
        need=commands.SOURCE,
        ticked=lambda viewer: viewer._panes.magnified,
    )
    def toggle_magnifier(self) -> None:
        """Show the surroundings of the cursor enlarged, in input and output."""
        self._session.arrange(magnified=not self._panes.magnified)

    @Action(
        "scaleBar",
        "Scale &Bar",
        "Ctrl+Alt+B",
        need=commands.SCALE,
        ticked=lambda viewer: viewer._panes.scale_bar,
    )
    def toggle_scale_bar(self) -> None:
        """Draw a scale bar over pictures and slices that know the size of their pixels."""
        shown = not self._panes.scale_bar
        self._session.arrange(scale_bar=shown)
        self._settings.set_text(_SCALE_BAR, "on" if shown else "off")

    def refresh(self) -> None:
        self._actions.tick(self)
