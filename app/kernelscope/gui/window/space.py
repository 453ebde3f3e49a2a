"""The 3-D view of the volumes that are open: made when it is asked for, and kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.session.canvas_view import DRAWN
from kernelscope.gui.session.subject import SHOWN
from kernelscope.gui.session.volume_subject import VolumeSubject
from kernelscope.gui.tools.file_dialogs import Pictures
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.work.background import Background

if TYPE_CHECKING:
    from kernelscope.gui.tools.space_window import SpaceWindow


class SpaceOpener(QObject):
    """Opens the 3-D view and shows the component in it that is on the page.

    Attributes
    ----------
    window : SpaceWindow or None
        None until it is opened.
    """

    def __init__(
        self,
        owner: QWidget,
        dialogs: Pictures,
        background: Background,
        subject: VolumeSubject,
        report: Callable[[Exception], None],
    ) -> None:
        super().__init__(owner)
        self._owner, self._dialogs, self._background = owner, dialogs, background
        self._subject, self._report = subject, report
        self.window: SpaceWindow | None = None
        owner.installEventFilter(self)

    @Action(
        "space",
        "&3-D View",
        keys=("Ctrl+3",),
        tip="Input and output of volumes from any side: maximum or surface",
        need=commands.VOLUMES,
    )
    def open(self) -> None:
        if self.window is None:
            from kernelscope.gui.tools.space_window import SpaceWindow

            self.window = SpaceWindow(self._background, self._report, self._owner)
            self.window.saving.connect(lambda image: self._dialogs.save([image], image.title))
            self._subject.when({SHOWN, DRAWN}, self._follow)
        self._follow()
        self.window.open()

    def _follow(self) -> None:
        if self.window is not None:
            subject = self._subject
            source = subject.part if subject.source is not None else None
            shown = subject.view.displays.of(PaneSide.INPUT)
            display = Display(shown.low, shown.high) if shown is not None else Display(0, 1)
            self.window.show_volumes(source, subject.shown_output, display)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Close the view with the main window; a spontaneous event only minimises that."""
        if event.type() == QEvent.Type.Hide and not event.spontaneous() and self.window is not None:
            self.window.close()
        return super().eventFilter(watched, event)
