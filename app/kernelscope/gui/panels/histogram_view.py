"""Histograms of input and output, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from kernelscope.gui.widgets import theme
from kernelscope.judging.histogram import Histogram

_DASHES = {
    Qt.PenStyle.SolidLine: "—",
    Qt.PenStyle.DashLine: "- -",
    Qt.PenStyle.DotLine: "···",
}
"""Line styles that distinguish channels without colour, and their marks in a legend."""


class HistogramView(QWidget):
    """Two plots with the same axes; pixels of each channel, counted by their value."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("histograms")
        self.histograms: dict[str, Histogram] = {}
        self._log = False
        self._plots: dict[str, pg.PlotWidget] = {}
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for column, name in enumerate(("input", "output")):
            plot = pg.PlotWidget(self)
            plot.setObjectName(f"{name}Histogram")
            plot.setAccessibleName(f"Histogram of the {name}")
            plot.setMouseEnabled(x=False, y=False)
            plot.setMenuEnabled(False)
            plot.hideButtons()
            plot.setMinimumSize(80, 60)
            plot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
            plot.getPlotItem().titleLabel.setMaximumHeight(18)
            plot.getAxis("left").setWidth(44)
            plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do in it
            self._plots[name] = plot
            layout.addWidget(plot, 0, column)
        self._plots["output"].setXLink(self._plots["input"])
        self._plots["output"].setYLink(self._plots["input"])
        self._draw()

    def show_histograms(self, histograms: dict[str, Histogram]) -> None:
        """Show those of “input” and “output”, as far as they are there."""
        self.histograms = histograms
        self._draw()

    def set_log(self, log: bool) -> None:
        """Count in powers of ten, so that rare values are seen."""
        self._log = log
        self._draw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        palette = self.palette()
        quiet = theme.quiet_text(palette)
        for name, plot in self._plots.items():
            plot.setBackground(palette.color(QPalette.ColorRole.Base))
            plot.clear()
            plot.setTitle(self._title(name), color=quiet, size="9pt")
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(quiet)
                plot.getAxis(side).setTextPen(quiet)
            plot.getPlotItem().setLogMode(y=self._log)
            if name in self.histograms:
                self._add_curves(plot, self.histograms[name])
        if self.histograms:
            self._set_ranges()

    def _title(self, name: str) -> str:
        """Return what stands above a plot; several channels are named in their colours."""
        channels = self.histograms[name].channels if name in self.histograms else ()
        legend = (
            f'<span style="color: {channel_colour(channel, self.palette()).name()}">'
            f"{dash} {channel}</span>"
            for channel, dash in zip(channels, _DASHES.values(), strict=False)
        )
        heading = name.capitalize()
        return f"{heading}: {'&nbsp; '.join(legend)}" if len(channels) > 1 else heading

    def _add_curves(self, plot: pg.PlotWidget, shown: Histogram) -> None:
        for channel, counts, dash in zip(shown.channels, shown.counts, _DASHES, strict=False):
            pen = pg.mkPen(channel_colour(channel, self.palette()), width=1, style=dash)
            # The logarithm of none is drawn as that of half a pixel.
            plot.plot(
                shown.edges, np.maximum(counts, 0.5) if self._log else counts, stepMode="center",
                pen=pen, name=channel,
            )  # fmt: skip

    def _set_ranges(self) -> None:
        low = min(each.edges[0] for each in self.histograms.values())
        high = max(each.edges[-1] for each in self.histograms.values())
        most: Any = max(each.counts.max() for each in self.histograms.values())
        plot = self._plots["input"]
        plot.setXRange(low, high, padding=0.01)
        if self._log:
            plot.setYRange(np.log10(0.5), np.log10(most), padding=0.05)
        else:
            plot.setYRange(0, most, padding=0.05)


def channel_colour(channel: str, palette: QPalette) -> QColor:
    """Return a colour for a channel that is readable on the base colour of `palette`."""
    dark = theme.is_dark(palette)
    match channel:
        case "red":
            return QColor("#ff7a70" if dark else "#c62828")
        case "green":
            return QColor("#6bd06f" if dark else "#2e7d32")
        case "blue":
            return QColor("#6fa8ff" if dark else "#1565c0")
        case _:
            return palette.color(QPalette.ColorRole.Text)
