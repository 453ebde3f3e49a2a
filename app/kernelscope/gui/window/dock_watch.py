"""Work that only visible docks need, done as docks come into view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from kernelscope.gui.session.session import KIND
from kernelscope.gui.session.subject import COMPONENT, MOMENT_SHOWN, REFERENCE, REFERENCED
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.tool_bar import ToolBar

if TYPE_CHECKING:
    from kernelscope.gui.window.frame import Frame


class DockWatch(QObject):
    """Follows the docks; `QDockWidget.visibilityChanged` counts one behind a tab as unseen.

    The panel *Quality* is filled while its dock is visible; behind a tab it costs nothing.
    """

    def __init__(self, frame: Frame, tool_bar: ToolBar) -> None:
        super().__init__(frame)
        docks = self._docks = frame.docks
        self._actions, self._tool_bar, self._judging = frame.actions_, tool_bar, frame.judging
        frame.session.when({REFERENCED}, self.show_quality)
        frame.session.when({KIND, MOMENT_SHOWN, REFERENCE, COMPONENT}, self.judge)
        self._quality_seen = self._console_seen = False
        docks[DockName.CONTROLS].visibilityChanged.connect(self._on_controls_seen)
        docks[DockName.QUALITY].visibilityChanged.connect(self._on_quality_seen)
        docks[DockName.CONSOLE].visibilityChanged.connect(self._on_console_seen)

    @Action(
        "debug",
        "&Console",
        keys=("F12",),
        tip="The log: actions of the program with durations, and errors",
        checkable=True,
        ticked=lambda watch: watch._console_seen,
        help="window#kernels-benchmark-and-console",
    )
    def toggle_console(self) -> None:
        console, wanted = self._docks[DockName.CONSOLE], not self._console_seen
        console.setVisible(wanted)
        if wanted:
            console.raise_()

    def show_quality(self) -> None:
        """Bring the figures to the front once there are any, unless the user closed them."""
        quality = self._docks[DockName.QUALITY]
        if not quality.isHidden():
            quality.raise_()

    def judge(self) -> None:
        """Evaluate the output of the page in front, if the figures are in view."""
        if self._quality_seen:
            self._judging.fill_panel()

    def _on_quality_seen(self, seen: bool) -> None:
        self._quality_seen = seen
        self.judge()

    def _on_console_seen(self, seen: bool) -> None:
        """Keep the button down while the console is visible."""
        self._console_seen = seen
        self._actions.tick(self)

    def _on_controls_seen(self, seen: bool) -> None:
        """Show Run and Cancel in the tool bar while the settings are closed."""
        for id_ in ("run", "cancel"):
            self._tool_bar.offer(self._actions[id_], not seen)
