"""Input and output in one histogram, with handles for level, window and gamma."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent
from PySide6.QtGui import QPaintEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QWidget

from kernelscope.gui.docks.picture_inks import CHANNEL_STYLES, PICTURE_STYLES
from kernelscope.gui.model import histogram_plot as model
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.histogram_plot import Curve, HeightScale, HistogramCurves
from kernelscope.gui.session.canvas_view import DRAWN, CanvasView
from kernelscope.gui.session.session import KIND, Session
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import dressed, in_column, in_row
from kernelscope.gui.work.later import Later
from kernelscope.images.judging.pictures import Histogram

if TYPE_CHECKING:
    from kernelscope.gui.docks.histogram_plot import HistogramPlot

_LEFT = 8  # pixels between the splitter and the legend


class HistogramView(QWidget):
    """The plot below its legend, and the display of the picture or volume in front.

    `histograms`: of “input” and “output”, as far as they are there. `by_channel`: whether channels
    have curves of their own.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("histograms")
        self.histograms: dict[str, Histogram] = {}
        self.scale, self.by_channel = HeightScale.LINEAR, False
        self._is_stale = False
        self._later = Later(self._draw, self)
        self._legend = dressed(QLabel(self), "histogramLegend")
        self.words = dressed(
            ElidedLabel(self), "histogramReading", "Values at the cursor of the histogram"
        )
        theme.set_role(self.words, "note")
        head = in_row(self._legend, (self.words, 1), spacing=10)
        self._column = in_column(head, of=self, margins=(_LEFT, 0, 0, 0), spacing=2)
        session.when({DRAWN, KIND}, self._follow)

    @functools.cached_property
    def plot(self) -> HistogramPlot:
        """The plot, made once it is seen: the window starts without PyQtGraph."""
        from kernelscope.gui.docks.histogram_plot import HistogramPlot

        plot = HistogramPlot(self)
        self._column.addWidget(plot, 1)
        plot.chosen.connect(self._choose)
        plot.reset.connect(self.choose_automatic)
        plot.dropped.connect(self._draw)
        plot.pointed.connect(self._say)
        return plot

    def show_histograms(self, histograms: dict[str, Histogram]) -> None:
        self.histograms = histograms
        if histograms or self._has_plot:
            self._draw()

    def set_scale(self, name: str) -> None:
        """Let heights grow with counts in another way; `name` is a value of `HeightScale`."""
        self.scale = HeightScale(name)
        self._follow()

    def set_by_channel(self, by_channel: bool) -> None:
        self.by_channel = by_channel
        self._follow()

    @property
    def has_channels(self) -> bool:
        return any(len(each.channels) > 1 for each in self.histograms.values())

    def choose_automatic(self) -> None:
        if self._view.display is not None:
            self._view.choose_automatic()

    @property
    def _has_plot(self) -> bool:
        return "plot" in vars(self)

    @property
    def _view(self) -> CanvasView:
        return self._session.subject.view

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._has_plot:
            self._draw()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._is_stale:  # it has come into view
            self._later.after_paint()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._has_plot:
            self._show_legend()

    def _choose(self, display: Display) -> None:
        self._view.choose(display)

    def _follow(self) -> None:
        """Follow, unless nobody sees it: a drag in a picture changes its display very often.

        A dock behind a tab counts as visible to Qt, but no part of it is.
        """
        if self.visibleRegion().isEmpty():
            self._is_stale = True
        else:
            self._draw()

    def _draw(self) -> None:
        self._is_stale = False
        view = self._view
        display = view.display
        if not self.histograms:
            self.plot.show_plot(None)
        elif not self.plot.is_held:  # while a handle is dragged, the axis stays under it
            axis = model.axis_for(self.histograms.values(), display)
            channels = self.by_channel and self.has_channels
            self.plot.show_plot(
                HistogramCurves.of(self.histograms, axis, self.scale, by_channel=channels)
            )
        self.plot.show_display(display, view.colour_map, whole=view.is_whole)
        self._show_legend()
        self._say()

    def _show_legend(self) -> None:
        from kernelscope.gui.docks.histogram_plot import pen_of

        curves: tuple[Curve, ...] = self.plot.plot.curves if self.plot.plot is not None else ()
        parts = []
        for number, curve in enumerate(curves):
            ink = pen_of(curve, number, self.palette()).color().name()  # the plot's may come later
            styles = CHANNEL_STYLES[number] if curve.channel else PICTURE_STYLES[curve.picture]
            name = curve.channel or curve.picture
            parts.append(f'<span style="color: {ink}">{styles[1]} {name}</span>')
        if curves and curves[0].channel:
            parts.insert(0, f"{curves[0].picture.capitalize()}:")
        self._legend.setText("&nbsp;&nbsp; ".join(parts))

    def _say(self) -> None:
        """Read off the handle that is moved or the value under the cursor; then the note."""
        plot, handle = self.plot.plot, self.plot.active_handle
        value, parts = self.plot.value_pointed_at, []
        if plot is not None:
            if handle is not None and self.plot.display is not None:
                parts.append(model.describe(self.plot.display, handle))
            elif value is not None:
                parts.append(plot.read(value))
            parts.append(plot.note())
        self.words.set_full_text(" · ".join(part for part in parts if part))
