"""Compiles the usual code of filters while the window is open, and shows how far that is."""

from __future__ import annotations

import json

from PySide6.QtWidgets import QProgressBar, QWidget

from kernelscope.backends import warm_up
from kernelscope.base.durations import about
from kernelscope.gui.session.session import FILTER, Session
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed, in_row
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.helper import Helper

_TIP = (
    "The code of the common filters is compiled once, in another process. Filters that are not "
    "ready yet show their first results by NumPy, more slowly."
)


class Preparing(QWidget):
    """A name, a bar and the time left; hidden while nothing is compiled.

    `helper`: the process, with low priority.
    """

    def __init__(self, session: Session, background: Background) -> None:
        super().__init__()
        self.setObjectName("preparing")
        set_help(self, "window#compiling")
        self._background = background
        self._used = {session.filter_id: None}
        session.when({FILTER}, lambda: self._used.setdefault(session.filter_id))
        self.wanted = False
        """Whether code is compiled ahead at all."""
        self.helper = Helper(warm_up.__name__, self)
        self.helper.answered.connect(self._show)
        self.helper.ended.connect(self.hide)
        self._label = dressed(ElidedLabel(self), "preparingText", tip=_TIP)
        theme.set_role(self._label, "note")
        self._bar = dressed(QProgressBar(self), "preparingBar", "Filters compiled", tip=_TIP)
        self._bar.setTextVisible(False)
        self._bar.setFixedSize(80, 8)
        in_row(self._label, self._bar, of=self, margins=(8, 0, 4, 0), spacing=6)
        self.hide()

    def start(self) -> None:
        """Begin, unless all is compiled; once."""
        if self.wanted:
            self.wanted = False
            self._background.start("warm-up", warm_up.is_done, self._begin, lambda _: None)

    def close_helper(self) -> None:
        """Compile nothing any more: the window closes, and the next one goes on."""
        self.wanted = False
        self.helper.close()

    def _begin(self, is_done: bool) -> None:
        if not is_done and not self.helper.busy:
            self.helper.start(self._used)

    def _show(self, line: str) -> None:
        done = warm_up.Done(*json.loads(line))
        if not done.next:
            self.hide()
            return
        left = f", {about(done.left)} left" if done.left else ""
        text = f"Compiling {done.next}{left}"
        self._label.set_full_text(text)
        self._label.setFixedWidth(self._label.fontMetrics().horizontalAdvance(text) + 4)
        self._bar.setRange(0, done.of)
        self._bar.setValue(done.number)
        self.show()
