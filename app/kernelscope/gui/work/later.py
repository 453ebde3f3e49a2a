"""Calls that can wait until the picture is painted."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer

SOON_MS = 30
"""The wait after a change of a setting: most live runs end sooner, and none is seen."""

_EVENT = QEvent.Type(QEvent.registerEventType())

_AFTER_PAINTS = Qt.EventPriority.LowEventPriority.value - 1
"""Qt posts paints at the low priority. A timer of 0 ms may come before them."""


class Later(QObject):
    """Calls a function once for several requests, so that a picture is painted first.

    - `call`: brings something up to date that takes a while: a list, a chart, a headline.
    """

    def __init__(self, call: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._call = call
        self._is_posted = False
        self._timer = QTimer(self, singleShot=True, interval=SOON_MS)
        self._timer.timeout.connect(call)

    @property
    def is_due(self) -> bool:
        """Whether a call was requested and has not come yet."""
        return self._is_posted or self._timer.isActive()

    def soon(self) -> None:
        """Call within 30 ms, however many requests there are meanwhile."""
        if not self.is_due:
            self._timer.start()

    def after_paint(self) -> None:
        """Call when all that has changed by now has been painted."""
        self._timer.stop()
        if not self._is_posted:
            self._is_posted = True
            QCoreApplication.postEvent(self, QEvent(_EVENT), _AFTER_PAINTS)

    def cancel(self) -> None:
        """Call no more for earlier requests."""
        self._timer.stop()
        self._is_posted = False
        QCoreApplication.removePostedEvents(self, _EVENT)

    def customEvent(self, event: QEvent) -> None:
        self._is_posted = False
        self._call()
