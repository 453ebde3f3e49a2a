"""The files that are open and their steps, kept so that the next session can open them again."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QObject

from kernelscope.base.errors import AppError
from kernelscope.base.text import one_line
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import RunSettings
from kernelscope.files import SAMPLES
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.session.session import Session
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.open_pictures import OpenPictures

_KEY = "session"
_SAMPLES = {sample.path for sample in SAMPLES}


class Kept(NamedTuple):
    paths: tuple[Path, ...] = ()
    steps: Pipeline | None = None

    def to_text(self) -> str:
        content: dict[str, object] = {"files": [str(each) for each in self.paths]}
        if self.steps is not None:
            content["recipe"] = Recipe(tuple(each.step for each in self.steps.steps)).to_json()
            content["off"] = [n for n, each in enumerate(self.steps.steps) if not each.on]
            content["place"] = self.steps.place
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Kept:
        """Return the contents of `text`, as far as they can be read; settings may be damaged."""
        content: Any = None
        found = cls()
        with contextlib.suppress(ValueError, TypeError, LookupError):
            content = json.loads(text)
            found = cls(tuple(Path(each) for each in content["files"]))
        with contextlib.suppress(AppError, AssertionError, ValueError, TypeError, LookupError):
            recipe, off = Recipe.from_json(content["recipe"]), content["off"]
            steps = (RunSettings(step, on=n not in off) for n, step in enumerate(recipe.steps))
            found = found._replace(steps=Pipeline(tuple(steps), int(content["place"])))
        return found


class LastSession(QObject):
    """Keeps the open files in the settings, and opens those of the session before."""

    def __init__(self, settings: Settings, session: Session, pictures: OpenPictures) -> None:
        super().__init__(pictures)
        self._settings, self._session, self._pictures = settings, session, pictures
        self._before = Kept.from_text(settings.text(_KEY))

    @property
    def is_there(self) -> bool:
        return bool(self._before.paths)

    @property
    def offer(self) -> str:
        """A sentence that names the files; empty without any."""
        if not self.is_there:
            return ""
        first, *others = self._before.paths
        more = f" and {len(others)} more" if others else ""
        return f"File > Reopen Last Session opens {one_line(first.name)}{more} again."

    @Action(
        "reopenSession",
        "Reopen &Last Session",
        tip="Open the files again that were open when the program was closed, with their steps",
        need=commands.EARLIER,
        help="window#opening-and-saving",
    )
    def reopen(self) -> None:
        paths, steps = self._before
        self._session.carried = (steps, paths) if steps is not None else None
        self._pictures.open_all(paths)

    def keep(self) -> None:
        """Keep the open files; with nothing but samples, those that were kept before."""
        documents = self._pictures.documents
        front = documents.current
        ordered = sorted(documents, key=lambda each: each is not front)
        files = (each.locate() for each in ordered)
        own = (each.absolute() for each in files if each and each not in _SAMPLES)
        paths = tuple(dict.fromkeys(own))
        if not paths:
            return
        pipeline = self._session.subject.pipeline
        several = pipeline is not None and len(pipeline.steps) > 1
        kept = Kept(paths, pipeline if several else None)
        self._settings.set_text(_KEY, kept.to_text())
