"""A page of the window: it draws its `Subject`, pictures (`PicturePage`) or volumes (`VolumePage`).

subject -- MOMENT, RESULT, REFERENCE, PART -->  page      draws
subject <-- note_moment, note_output ---------  page      once that is on the screen
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from kernelscope.engine.request import RunSettings
from kernelscope.gui.model.comparison import following
from kernelscope.gui.model.history import Moment, Opened, Part
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.session.canvas_view import SLICES
from kernelscope.gui.session.session import KIND, SETTINGS, VIEW
from kernelscope.gui.session.subject import (
    MOMENT,
    PART,
    REFERENCE,
    RESULT,
    SHOWN,
    WORK,
    Fields,
    Subject,
)
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.work.background import Background

_MARKED = frozenset({KIND, SETTINGS, MOMENT, RESULT, SHOWN, PART, SLICES})
"""Changes after which the output may be of other settings, or no longer."""


class Page(QWidget, Generic[Opened, Part]):
    """Shows an input and its output."""

    # Values under the cursor, and the magnification, for the status bar.
    described = Signal(str)
    zoomed = Signal(str)

    controls: QWidget | None = None
    """A widget of this page to be placed above the settings."""

    def __init__(
        self,
        subject: Subject[Opened, Part],
        canvas: PairView,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._background, self._report = subject.session, background, report
        self._subject: Subject[Opened, Part] = subject
        self.canvas = canvas
        canvas.setParent(self)
        canvas.zoomed.connect(lambda zoom: self.zoomed.emit(f"{100 * zoom:.0f} %"))
        canvas.reduction_wanted.connect(self._reduce)
        subject.when({MOMENT, RESULT}, self._show_moment)
        subject.when({REFERENCE}, self._redraw)
        subject.when({REFERENCE}, self.show_reference)
        subject.when({PART}, self._show_part)
        subject.when({WORK}, self._show_work)
        subject.session.follow(self._on_session)

    def _reduce(self, pyramid: Pyramid, level: int) -> None:
        """Average a large picture for a magnification at which it is looked at first."""
        self._background.start(
            "reduce", lambda: pyramid.samples(level), lambda _: self.canvas.redraw(), self._report
        )

    # --- from the subject to the screen ---

    def show_reference(self) -> None:
        """Show values of the reference under the cursor."""
        reference = self._subject.reference
        self.canvas.reference = reference.image if reference is not None else None

    def _show_work(self) -> None:
        self.canvas.set_running(self._subject.at_work)
        if self._subject.compiling:
            self.canvas.output.show_compiling()

    def _on_session(self, fields: Fields) -> None:
        if self._subject.is_front and self._subject.source is not None:
            if fields & {VIEW, KIND}:
                self._redraw()
            if fields & _MARKED:
                self._mark()

    def _show_moment(self) -> None:
        """Show the current moment of the history."""
        raise NotImplementedError

    def _redraw(self) -> None:
        """Draw the output, or its difference to the input or the reference, again."""
        raise NotImplementedError

    def _show_part(self) -> None:
        """Show a part of a result over the output."""
        raise NotImplementedError

    def _mark(self) -> None:
        """Mark the output if a run with the present settings would produce another one."""
        previewed, settings = self._subject.previewed, self._session.settings
        preview = previewed is not None and settings is not None and settings.made(previewed)
        self.canvas.output.set_stale(self._subject.is_stale and not preview)

    # --- commands ---

    def use_output(self) -> None:
        """Make the output the input, unless another input is shown by then."""
        moment = self._subject.history.current
        if moment is None or moment.result is None:
            return

        def work() -> tuple[Moment[Opened, Part], Any]:
            new = following(moment)
            return new, self._examine(new.source)

        def show(answer: tuple[Moment[Opened, Part], Any]) -> None:
            new, examined = answer
            if self._subject.source is moment.source:
                self._keep(new.source, examined)
                self._subject.push(new)

        self._background.start("use", work, show, self._report)

    def _examine(self, source: Opened) -> Any:
        """Prepare `source` for being shown, off the GUI thread; see `_keep`."""

    def _keep(self, source: Opened, examined: Any) -> None:
        """Store the answer of `_examine`."""

    def show_noise(self, settings: RunSettings, show_status: Callable[[str], None]) -> None:
        """Show a map of the noise in place of the output, where there is one."""
