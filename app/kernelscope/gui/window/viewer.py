"""The commands for looking at pictures and volumes: arrangement, colours, values, magnifier."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from kernelscope.gui.docks.display_panel import DisplayPanel, VolumeDisplayPanel
from kernelscope.gui.model.arrangement import Arrangement, Units
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action, choice
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.front import Pages

_ARRANGEMENT, _UNITS, _PROBE = "viewer/arrangement", "viewer/units", "viewer/probe"


class Viewer(QObject):
    """Carries out the commands on the page in front, and keeps the ticks of the menu true.

    Arrangement, probe and units are common to pictures and volumes; colours are not.

    Parameters
    ----------
    button : QWidget
        The panel of levels and colours pops up below it.
    """

    def __init__(
        self,
        pages: Pages,
        actions: Actions,
        button: QWidget,
        settings: Settings,
    ) -> None:
        pair, volumes = pages.pictures.images, pages.volumes.viewer
        super().__init__(pair)
        self._pair, self._volumes, self._pages = pair, volumes, pages
        self._actions = actions
        self._button, self._settings = button, settings
        self.panel = DisplayPanel(pair, button)
        self.volume_panel = VolumeDisplayPanel(volumes, button)
        pair.arranged.connect(self.refresh)
        pair.displayed.connect(self.refresh)
        volumes.displayed.connect(self.refresh)
        pages.watchers.append(self.refresh)
        self._restore()

    def _of_volumes(self) -> bool:
        """Return whether volumes are in front."""
        return self._pages.front is self._pages.volumes

    def _restore(self) -> None:
        """Look as the user last did."""
        texts = self._settings.text
        if (name := texts(_ARRANGEMENT)) in list(Arrangement):
            self._pair.arrange(name)
            self._volumes.arrange(name)
        if (name := texts(_UNITS)) in list(Units):
            self._pair.choose_units(name)
            self._volumes.choose_units(name)
        if texts(_PROBE) == "off":
            self._pair.toggle_probe()
            self._volumes.toggle_probe()
        self.refresh()

    @choice(
        "arrangement",
        lambda viewer: viewer._pair.arrangement,
        commands.SOURCE,
        Action(
            "sideBySide",
            "&Side by Side",
            keys=("Alt+1",),
            tip="Input on the left, output on the right",
            argument="side by side",
            icon="side",
        ),
        Action(
            "swipe",
            "S&wipe",
            keys=("Alt+2",),
            tip="One picture: input left of a line, output right of it; drag it, or press [ and ]",
            argument="swipe",
            icon="swipe",
        ),
        Action(
            "split",
            "S&plit",
            keys=("Alt+3",),
            tip="One picture: input above a line, output below it; drag it, or press [ and ]",
            argument="split",
            icon="split",
        ),
        Action(
            "outputAlone",
            "&Output Alone",
            keys=("Alt+4",),
            tip="The output takes all the room; hold Space over it to see the input",
            argument="output alone",
            icon="single",
        ),
    )
    def arrange(self, name: str) -> None:
        """Arrange input and output; `name` is a value of `Arrangement`."""
        self._pair.arrange(name)
        self._volumes.arrange(name)
        self._settings.set_text(_ARRANGEMENT, name)

    @Action(
        "inputInstead",
        "&Input in Place of the Output",
        keys=("Ctrl+I",),
        tip="Switch between input and output; in a picture or slice, hold Space",
        need=commands.SOURCE,
        checkable=True,
        ticked=lambda viewer: viewer._shows_input,
    )
    def show_input_instead(self) -> None:
        """Show the input in place of the output, or the output again."""
        if self._of_volumes():
            self._volumes.show_input_instead()
        else:
            self._pair.show_input_instead()

    @Action(
        "displayControls",
        "&Level and Colours…",
        keys=("Ctrl+D",),
        tip="Level, window, gamma and colours; the values stay as they are",
        need=commands.SOURCE,
        icon="display",
    )
    def show_controls(self) -> None:
        """Pop up the panel of levels and colours."""
        panel = self.volume_panel if self._of_volumes() else self.panel
        panel.open_below(self._button)

    @Action(
        "automaticDisplay",
        "&Automatic Contrast",
        keys=("Ctrl+L",),
        tip="Black and white at low and high percentiles, unless all is visible anyway",
        need=commands.SOURCE,
    )
    def choose_automatic(self) -> None:
        """Draw the pictures or volumes as the program would."""
        if self._of_volumes():
            self._volumes.control.choose_automatic()
            return
        for side in PaneSide:
            self._pair.choose_display(side, None)

    @Action(
        "fullDisplay",
        "&Full Range",
        keys=("Ctrl+Shift+L",),
        tip="Draw 0 black and the largest value of the type white; of volumes, of the voxels",
        need=commands.SOURCE,
    )
    def choose_full(self) -> None:
        """Draw 0 black and the largest value of the type white; of volumes, of the voxels."""
        if self._of_volumes():
            self._volumes.control.choose_full()
            return
        for side in PaneSide:
            self._pair.choose_full(side)

    @Action(
        "linkDisplays",
        "&Output as Input",
        tip="Draw the output with the levels of the input, so that the two can be compared",
        need=commands.PICTURE,
        checkable=True,
        ticked=lambda viewer: viewer._pair.displays.linked,
    )
    def toggle_link(self) -> None:
        """Draw the output with the levels of the input, or with its own."""
        self._pair.displays.linked = not self._pair.displays.linked
        self._pair.apply_displays()

    @choice(
        "map",
        lambda viewer: viewer._colour_map,
        commands.SOURCE,
        Action(
            "mapGrey",
            "&Grey",
            argument="Grey",
        ),
        Action(
            "mapInverted",
            "Grey, &inverted",
            argument="Grey, inverted",
        ),
        Action(
            "mapViridis",
            "&Viridis",
            argument="Viridis",
        ),
        Action(
            "mapMagma",
            "&Magma",
            argument="Magma",
        ),
        Action(
            "mapDiverging",
            "&Blue to red",
            argument="Blue to red",
        ),
    )
    def choose_map(self, name: str) -> None:
        """Draw grey pictures in other colours; `name` is a value of `ColourMap`."""
        if self._of_volumes():
            look = replace(self._volumes.look, colour_map=ColourMap(name))
            self._volumes.choose_look(look)
            self.refresh()  # the action of the chosen map stays ticked if it is chosen again
            return
        for side in PaneSide:
            display = self._pair.displays.of(side)
            if display is not None:
                new = Display(display.low, display.high, display.gamma, ColourMap(name))
                self._pair.choose_display(side, new)

    @choice(
        "units",
        lambda viewer: viewer._pair.units,
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
        self._pair.choose_units(name)
        self._volumes.choose_units(name)
        self._settings.set_text(_UNITS, name)
        self.refresh()

    @Action(
        "probe",
        "Values at the &Cursor",
        keys=("Ctrl+Shift+I",),
        tip="Write the values beside the cursor; Shift and arrow keys move it pixel by pixel",
        need=commands.SOURCE,
        checkable=True,
        ticked=lambda viewer: viewer._pair.shows_values,
    )
    def toggle_probe(self) -> None:
        """Write the values beside the cursor, or only into the status bar."""
        self._pair.toggle_probe()
        self._volumes.toggle_probe()
        self._settings.set_text(_PROBE, "on" if self._pair.shows_values else "off")
        self.refresh()

    @Action(
        "magnifier",
        "&Magnifier",
        keys=("Ctrl+M",),
        tip="Show the surroundings of the cursor enlarged, in input and output",
        need=commands.SOURCE,
        checkable=True,
        ticked=lambda viewer: viewer._pair.is_magnified,
    )
    def toggle_magnifier(self) -> None:
        """Show the surroundings of the cursor enlarged, or not."""
        self._pair.toggle_magnifier()
        self._volumes.probe.toggle_magnifier()
        self.refresh()

    def refresh(self) -> None:
        """Tick the actions that hold for the page in front."""
        self._actions.tick(self)

    @property
    def _colour_map(self) -> ColourMap:
        if self._of_volumes():
            return self._volumes.look.colour_map
        display = self._pair.displays.of(PaneSide.INPUT)
        return display.colour_map if display is not None else ColourMap.GREY

    @property
    def _shows_input(self) -> bool:
        return (self._volumes if self._of_volumes() else self._pair).shows_input
