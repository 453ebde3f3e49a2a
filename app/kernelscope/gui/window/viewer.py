"""The commands for looking at pictures and volumes: arrangement, colours, values, magnifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model.arrangement import Arrangement, Units
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import Side
from kernelscope.gui.panels.display_panel import DisplayPanel
from kernelscope.gui.panels.volume_display_panel import VolumeDisplayPanel
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.front import Pages

_ARRANGEMENT, _UNITS, _PROBE = "viewer/arrangement", "viewer/units", "viewer/probe"


class Viewer(QObject):
    """Carries out the commands on the page in front, and keeps the ticks of the menu true.

    Arrangement, probe and units are common to pictures and volumes; colours are not.

    Parameters
    ----------
    actions : mapping of QAction by id
        Those of `kernelscope.view_menu`.
    button : QWidget
        The panel of levels and colours pops up below it.
    """

    def __init__(
        self,
        pages: Pages,
        actions: Mapping[str, QAction],
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

    def arrange(self, name: str) -> None:
        """Arrange input and output; `name` is a value of `Arrangement`."""
        self._pair.arrange(name)
        self._volumes.arrange(name)
        self._settings.set_text(_ARRANGEMENT, name)

    def show_input_instead(self) -> None:
        """Show the input in place of the output, or the output again."""
        if self._of_volumes():
            self._volumes.show_input_instead()
        else:
            self._pair.show_input_instead()

    def show_controls(self) -> None:
        """Pop up the panel of levels and colours."""
        panel = self.volume_panel if self._of_volumes() else self.panel
        panel.open_below(self._button)

    def choose_automatic(self) -> None:
        """Draw the pictures or volumes as the program would."""
        if self._of_volumes():
            self._volumes.control.choose_automatic()
            return
        for side in Side:
            self._pair.choose_display(side, None)

    def choose_full(self) -> None:
        """Draw 0 black and the largest value of the type white; of volumes, of the voxels."""
        if self._of_volumes():
            self._volumes.control.choose_full()
            return
        for side in Side:
            self._pair.choose_full(side)

    def toggle_link(self) -> None:
        """Draw the output with the levels of the input, or with its own."""
        self._pair.displays.linked = not self._pair.displays.linked
        self._pair.apply_displays()

    def choose_map(self, name: str) -> None:
        """Draw grey pictures in other colours; `name` is a value of `ColourMap`."""
        if self._of_volumes():
            look = replace(self._volumes.look, colour_map=ColourMap(name))
            self._volumes.choose_look(look)
            self.refresh()  # the action of the chosen map stays ticked if it is chosen again
            return
        for side in Side:
            display = self._pair.displays.of(side)
            if display is not None:
                new = Display(display.low, display.high, display.gamma, ColourMap(name))
                self._pair.choose_display(side, new)

    def choose_units(self, name: str) -> None:
        """Read values off in other units; `name` is a value of `Units`."""
        self._pair.choose_units(name)
        self._volumes.choose_units(name)
        self._settings.set_text(_UNITS, name)
        self.refresh()

    def toggle_probe(self) -> None:
        """Write the values beside the cursor, or only into the status bar."""
        self._pair.toggle_probe()
        self._volumes.toggle_probe()
        self._settings.set_text(_PROBE, "on" if self._pair.shows_values else "off")
        self.refresh()

    def toggle_magnifier(self) -> None:
        """Show the surroundings of the cursor enlarged, or not."""
        self._pair.toggle_magnifier()
        self._volumes.probe.toggle_magnifier()
        self.refresh()

    def refresh(self) -> None:
        """Tick the actions that hold for the page in front."""
        pair, displays = self._pair, self._pair.displays
        ticks = {
            Arrangement.SIDE_BY_SIDE: "sideBySide",
            Arrangement.SWIPE: "swipe",
            Arrangement.SPLIT: "split",
            Arrangement.OUTPUT: "outputAlone",
        }
        self._actions[ticks[pair.arrangement]].setChecked(True)
        units = {Units.STORED: "Stored", Units.BYTES: "Bytes", Units.SHARE: "Share"}
        self._actions[f"units{units[pair.units]}"].setChecked(True)
        display = displays.of(Side.INPUT)
        colour_map = display.colour_map if display is not None else ColourMap.GREY
        shows_input = pair.shows_input
        if self._of_volumes():
            colour_map, shows_input = self._volumes.look.colour_map, self._volumes.shows_input
        self._actions[f"map{colour_map.name.capitalize()}"].setChecked(True)
        for id_, checked in (
            ("inputInstead", shows_input),
            ("linkDisplays", displays.linked),
            ("probe", pair.shows_values),
            ("magnifier", pair.is_magnified),
        ):
            self._actions[id_].setChecked(checked)
