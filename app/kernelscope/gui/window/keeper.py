"""Saves layout, settings and the open files soon after they change, so that they survive a kill."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QDockWidget, QMainWindow

from kernelscope.gui.session.session import OF_SETTINGS, Session
from kernelscope.gui.session.subject import INPUT, MOMENT, Fields
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window import placement
from kernelscope.gui.window.last_session import LastSession

_DELAY = 500
"""Milliseconds after the last change: dragging a slider or an edge writes one file at its end."""

_LAYOUT = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide)


class Keeper(QObject):
    def __init__(
        self, window: QMainWindow, settings: Settings, session: Session, last: LastSession
    ) -> None:
        super().__init__(window)
        self._window, self._settings, self._session = window, settings, session
        self._last = last
        self._timer = QTimer(self, singleShot=True, interval=_DELAY)
        self._timer.timeout.connect(self.save)
        session.follow_later(self._on_session)
        for widget in (window, *window.findChildren(QDockWidget)):
            widget.installEventFilter(self)

    def _on_session(self, fields: Fields) -> None:
        if fields & (OF_SETTINGS | {INPUT, MOMENT}):
            self._timer.start()

    def save(self) -> None:
        self._timer.stop()
        with self._settings.together():
            placement.save(self._window, self._settings)
            self._last.keep()
            for group, texts in self._session.texts().items():
                self._settings.set_texts(group, texts)

    def close(self) -> None:
        self.save()
        for widget in (self._window, *self._window.findChildren(QDockWidget)):
            widget.removeEventFilter(self)
        self._session.schedule = lambda: None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _LAYOUT and self._window.isVisible():
            self._timer.start()
        return False
