"""The plot of a profile line: levels of input, output and reference along it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette, QShowEvent
from PySide6.QtWidgets import QLabel, QWidget

from kernelscope.gui.docks.picture_inks import PICTURE_STYLES, channel_colour, picture_colour
from kernelscope.gui.model.arrangement import Units
from kernelscope.gui.model.profiles import Profile, profiles_as_csv
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.messages import save_text
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    look_at_every_item,
    tool_button,
)

_CSV_FILES = "Tables (*.csv);;All files (*)"


class ProfileView(QWidget):
    """Levels along a line over the distance from its first end.

    `profiles`: one for each picture; empty without a line. `units`: of the levels.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("profile")
        self.profiles: tuple[Profile, ...] = ()
        self.units = Units.STORED
        self._heading = dressed(ElidedLabel(self), "profileHeading")
        self._legend = dressed(QLabel(self), "profileLegend")
        copy = tool_button(
            "Copy", "copyProfile", self.copy, "Copy the profile, as CSV with all digits"
        )
        save = tool_button(
            "Save…", "saveProfile", self.save, "Save the profile as CSV with all digits"
        )
        head = in_row(self._legend, (self._heading, 1), copy, save, spacing=8)
        self._column = in_column(head, of=self, margins=0, spacing=2)

    @functools.cached_property
    def plot(self) -> Any:
        """The plot, made once it is seen: the window starts without PyQtGraph."""
        import pyqtgraph as pg

        name = "Levels along the line"
        plot = dressed(pg.PlotWidget(self, enableMenu=False), "profilePlot", name)
        look_at_every_item(plot)
        plot.setMouseEnabled(x=False, y=False)
        plot.hideButtons()
        plot.setMinimumSize(180, 60)
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do in it
        self._column.addWidget(plot, 1)
        return plot

    def show_profiles(self, profiles: Sequence[Profile], units: Units) -> None:
        self.profiles, self.units = tuple(profiles), units
        if profiles or "plot" in vars(self):
            self._draw()

    def csv(self) -> str:
        return profiles_as_csv(self.profiles, self.units)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.csv())

    def save(self) -> None:
        name = self.profiles[0].line.name if self.profiles else "profile"
        save_text(self, "Save Profile", f"{name}.csv", self.csv(), _CSV_FILES)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if "plot" not in vars(self):
            self._draw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and "plot" in vars(self):
            self._draw()

    def _draw(self) -> None:
        import pyqtgraph as pg

        palette, quiet = self.palette(), theme.quiet_text(self.palette())
        plot = self.plot
        plot.clear()
        plot.setBackground(palette.color(QPalette.ColorRole.Base))
        for side in ("left", "bottom"):
            plot.getAxis(side).setPen(quiet)
            plot.getAxis(side).setTextPen(quiet)
            plot.getAxis(side).enableAutoSIPrefix(False)
        plot.getAxis("left").setWidth(52)
        text = brief = ""
        if self.profiles:
            line = self.profiles[0].line
            unit = self.profiles[0].unit
            length = f"{self.profiles[0].length:.4g} {unit}"
            text = (
                f"{line.name}: {length.replace('px', 'pixels')} from the first end; "
                f"units {self.units}, linear interpolation"
            )
            brief = f"{line.name}, {length}"
        self._heading.set_full_text(text, brief)
        self._legend.setText(self._legend_text())
        plot.setAccessibleDescription(text)
        for profile in self.profiles:
            style, _ = PICTURE_STYLES[profile.picture]
            values = profile.values(self.units)
            if not len(profile.inside):
                continue  # PyQtGraph would look for the least and the greatest of nothing
            for number, channel in enumerate(profile.channels):
                pen = pg.mkPen(self._ink(profile.picture, channel), width=1.5, style=style)
                plot.plot(profile.distances, values[:, number], pen=pen, connect="finite")

    def _ink(self, picture: str, channel: str) -> QColor:
        if channel:
            return channel_colour(channel, self.palette())
        return picture_colour(picture, self.palette())

    def _legend_text(self) -> str:
        quiet = theme.quiet_text(self.palette())
        parts = []
        for profile in self.profiles:
            grey = profile.channels == ("",)
            ink = self._ink(profile.picture, "") if grey else quiet
            _, dash = PICTURE_STYLES[profile.picture]
            parts.append(f'<span style="color: {ink.name()}">{dash} {profile.picture}</span>')
        return "&nbsp;&nbsp; ".join(parts)
