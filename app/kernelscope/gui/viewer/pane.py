"""One side of the canvas: a caption, and a hint where there is nothing to show below it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QWidget

from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import dressed, text_label

EARLIER = "Earlier settings – "
"""Precedes the caption of an output that Run would not produce with the current settings."""

RUNNING = "Running…"
COMPILING = "Compiling for these settings. Done once; later runs start at once."
"""The hint in place of an output while it is computed."""


class Pane(QWidget):
    """Base of the views of a picture and of a volume.

    Subclasses lay out `title` and say by `is_empty` whether anything is shown. `heading`: caption
    while nothing is shown. `hint` is shown in place of a picture at first. `padding`: pixels around
    hints.
    """

    views: tuple[PlaneCanvas, ...]
    """The drawing areas: of a picture one, of a volume one for each plane."""

    def __init__(
        self, name: str, heading: str, hint: str, parent: QWidget | None, padding: int
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.heading, self._first_hint, self._padding = heading, hint, padding
        self._stale = False
        self._caption = heading, ""
        self._title_colours = QPalette()
        self.title = dressed(ElidedLabel(self), f"{name}Title")
        theme.set_role(self.title, "title")
        self.hint = text_label(hint, f"{name}Hint", parent=self)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    @property
    def is_empty(self) -> bool:
        """Whether there is no picture or volume."""
        raise NotImplementedError

    def show_hint(self, text: str = "") -> None:
        """Show a hint over the pane, or else the first one."""
        self.hint.setText(text or self._first_hint)
        self.hint.show()

    def set_running(self, running: bool) -> None:
        """Replace the first hint by “Running…” while a run is in progress."""
        if self.hint.text() in (self._first_hint, RUNNING, COMPILING):
            self.hint.setText(RUNNING if running else self._first_hint)

    def show_compiling(self) -> None:
        """Replace “Running…” by the reason why the first run takes longer."""
        if self.hint.text() == RUNNING:
            self.hint.setText(COMPILING)

    def set_stale(self, stale: bool) -> None:
        """Mark the caption if Run would produce something else with the current settings."""
        if stale != self._stale:
            self._stale = stale
            self._draw_caption()

    def set_caption(self, text: str, brief: str = "") -> None:
        self._caption = text, brief
        self._draw_caption()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.follow_palette()

    def follow_palette(self) -> None:
        """Take the colours of the current theme."""
        self._draw_caption()
        for view in self.views:
            view.redraw()
        quiet = theme.canvas_quiet(self.palette()).name()
        self.hint.setStyleSheet(f"color: {quiet}; padding: {self._padding}px")

    def _draw_caption(self) -> None:
        text, brief = self._caption
        stale = self._stale and not self.is_empty
        mark = EARLIER if stale else ""
        self.title.set_full_text(mark + text, brief and mark + brief)
        colours = QPalette()
        if stale:  # not by a style sheet, which takes Qt half a millisecond
            colours.setColor(QPalette.ColorRole.WindowText, theme.warning_text(self.palette()))
        if colours != self._title_colours:
            self._title_colours = colours
            self.title.setPalette(colours)
