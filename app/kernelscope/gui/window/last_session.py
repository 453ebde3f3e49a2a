"""The layout, settings and open files with their steps, saved as they change, to survive a kill."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDockWidget, QMainWindow

from kernelscope.base.errors import AppError
from kernelscope.base.text import one_line
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import RunSettings
from kernelscope.files import SAMPLES
from kernelscope.gui.model.documents import SAVED, Document
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.session.session import OF_SETTINGS, Session
from kernelscope.gui.session.subject import INPUT, MOMENT, Fields
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.parts import Watcher
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.open_pictures import OpenPictures

_KEY = "session"

_DELAY = 500
"""Milliseconds after the last change: dragging a slider or an edge writes one file at its end."""

_LAYOUT = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide)


class Kept(NamedTuple):
    paths: tuple[Path, ...] = ()
    steps: Mapping[Path, Pipeline] = {}
    front: Path | None = None  # the picture that was in front, which may be a sample
    states: Mapping[Path, int] = {}  # see `Document.state`

    def to_text(self) -> str:
        steps = {
            str(path): {
                "recipe": Recipe(tuple(each.step for each in pipeline.steps)).to_json(),
                "off": [n for n, each in enumerate(pipeline.steps) if not each.on],
                "place": pipeline.place,
            }
            for path, pipeline in self.steps.items()
        }
        content: dict[str, Any] = {"files": [str(each) for each in self.paths], "steps": steps}
        content["came"] = {str(path): state for path, state in self.states.items()}
        if self.front is not None:
            content["front"] = str(self.front)
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Kept:
        """Return the contents of `text`, as far as they can be read; settings may be damaged."""
        content: Any = None
        found = cls()
        with contextlib.suppress(ValueError, TypeError, LookupError):
            content = json.loads(text)
            found = cls(tuple(Path(each) for each in content["files"]))
            found = found._replace(front=Path(content["front"]))
        steps: dict[Path, Pipeline] = {}
        for path in found.paths:
            with contextlib.suppress(AppError, AssertionError, ValueError, TypeError, LookupError):
                kept = content["steps"][str(path)]
                recipe, off = Recipe.from_json(kept["recipe"]), kept["off"]
                each = (RunSettings(step, on=n not in off) for n, step in enumerate(recipe.steps))
                steps[path] = Pipeline(tuple(each), int(kept["place"]))
        states: dict[Path, int] = {}
        with contextlib.suppress(ValueError, TypeError, LookupError):
            known = ((path, int(content["came"].get(str(path), 0))) for path in found.paths)
            states = {path: min(state, SAVED) for path, state in known if state > 0}
        return found._replace(steps=steps, states=states)


class LastSession(Watcher):
    """Keeps the layout, the settings and the open files, and opens those of the session before."""

    def __init__(
        self, window: QMainWindow, settings: Settings, session: Session, pictures: OpenPictures
    ) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self._session, self._pictures = session, pictures
        self._before = Kept.from_text(settings.text(_KEY))
        self._timer = QTimer(self, singleShot=True, interval=_DELAY)
        self._timer.timeout.connect(self.save)
        session.follow_later(self._on_session)
        self.watch(window, *window.findChildren(QDockWidget))

    @property
    def is_there(self) -> bool:
        return bool(self._before.paths)

    @property
    def of_sample(self) -> bool:
        """Whether the sample of the start was in front, so that the last filter is meant for it."""
        return self._before.front == SAMPLES[0].path

    @property
    def offer(self) -> str:
        """The text of a button that opens the files."""
        names = [one_line(each.name) for each in self._before.paths]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        return f"Reopen {', '.join(names[:2])}{more}"

    @Action(
        "reopenSession",
        "Reopen &Last Session",
        need=commands.EARLIER,
        icon="load",
        help="window#opening-and-saving",
    )
    def reopen(self) -> None:
        """Open the files again that were open when the program was closed, each with its steps."""
        self._session.carried = dict(self._before.steps)
        paths, _, front, states = self._before
        self._pictures.open_again(paths, front, dict(states))

    def _keep_files(self) -> None:
        """Keep the open files; with nothing but samples, those that were kept before."""
        current = self._pictures.documents.current
        shown = current.locate() if current is not None else None
        front = shown.absolute() if shown is not None else None
        paths = tuple(self._pictures.files())
        if not paths:
            before = Kept.from_text(self._settings.text(_KEY))
            self._settings.set_text(_KEY, before._replace(front=front).to_text())
            return
        steps, states = dict(self._session.carried), {}
        for document in self._pictures.documents:
            path, pipeline = document.locate(), self._steps_of(document)
            if path is not None:
                states[path.absolute()] = document.state
                if pipeline is not None:
                    steps[path.absolute()] = pipeline
        steps = {path: each for path, each in steps.items() if path in paths}
        states = {path: each for path, each in states.items() if path in paths}
        self._settings.set_text(_KEY, Kept(paths, steps, front, states).to_text())

    def _steps_of(self, document: Document) -> Pipeline | None:
        subject, moment = self._session.subject, document.history.current
        if document.history is subject.history:
            return subject.pipeline
        settings = document.settings or (moment.settings if moment is not None else None)
        if settings is None:  # it was never in front
            return None
        if moment is None or moment.pipeline is None:
            return Pipeline.of(moment.steps if moment else (), settings)
        return moment.pipeline.edited(settings)

    def _on_session(self, fields: Fields) -> None:
        if fields & (OF_SETTINGS | {INPUT, MOMENT}):
            self._timer.start()

    def save(self) -> None:
        self._timer.stop()
        with self._settings.together():
            save_layout(self._window, self._settings)
            self._keep_files()
            for group, texts in self._session.texts().items():
                self._settings.set_texts(group, texts)

    def close(self) -> None:
        self.save()
        self.let_go()  # hiding the window changes the layout
        self._session.schedule = lambda: None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _LAYOUT and self._window.isVisible():
            self._timer.start()
        return False


STATE_VERSION = 7  # increased when docks or toolbars change, so that an old layout is not restored

_FIRST_SIZE = QSize(1600, 960)

_FRAME = QSize(16, 48)
"""Room for the frame that the desktop draws around the window; not known before it is shown."""


def save_layout(window: QMainWindow, settings: Settings) -> None:
    settings.set_blob("geometry", window.saveGeometry())
    settings.set_blob("state", window.saveState(STATE_VERSION))


def restore_layout(window: QMainWindow, settings: Settings) -> None:
    """Put `window` where it was, or else on the screen in a size that fits."""
    screen = window.screen().availableGeometry()
    first = _FIRST_SIZE.boundedTo(screen.size() - _FRAME)
    if not window.restoreGeometry(settings.blob("geometry")):
        window.resize(first)
    elif not _is_reachable(window.frameGeometry()):  # its screen may be gone
        window.setWindowState(Qt.WindowState.WindowNoState)
        window.resize(first)
        window.move(screen.topLeft())
    window.restoreState(settings.blob("state"), STATE_VERSION)


def _is_reachable(place: QRect) -> bool:
    """Return whether the middle of a window is on a screen, and the window not far larger."""
    screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    return any(
        screen.contains(place.center())
        and place.width() <= 2 * screen.width()
        and place.height() <= 2 * screen.height()
        for screen in screens
    )
