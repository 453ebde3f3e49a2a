"""The open pictures and volumes: each with its history and its settings, within bounded memory.

Pictures behind the one in front may sleep: their pixels are dropped, the path and the settings
stay, and the file is read again when it is wanted. Those that have only been opened sleep first,
then those with an output that a run would compute again, last those whose input was computed; of
equals, those that were not in front for longest.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.engine.request import RunSettings
from kernelscope.gui.model import history
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.history import History, Moment
from kernelscope.gui.model.regions import Against, Interest
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.schema.samples import Kind

MOST_BYTES = 2 << 30
"""Limit for the pictures that are not in front, if a quarter of the free memory is not less."""

MOST_CLOSED = 10  # pictures that can be opened again after they were closed

SAVED = 4  # the state of a document of which an output was saved

Opened = Image | Scan


def size_of(source: Opened) -> str:
    """Return ``512×512, grey, 8 bit``."""
    return f"{source.size}, {source.mode}"


def path_of(source: Opened) -> Path | None:
    """Return the file that a source is of, which may have other channels and times as well."""
    if isinstance(source, Image):
        return source.path
    return source.volumes[0].path if len(source.volumes) == 1 else None


def _whole(source: Opened) -> bool:
    """Return whether its file has nothing else, so that the source can be read from it again."""
    return isinstance(source, Image) or not source.volumes[0].among


@dataclass(eq=False)
class Document:
    """An open picture, or volumes that are filtered together.

    `thumbnail`: ndarray, shape (height, width, 3), uint8.
    """

    kind: Kind
    title: str = ""
    path: Path | None = None  # the file to read again
    size: str = ""  # ``512×512, grey, 8 bit``; empty until `describe`
    thumbnail: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((1, 1, 3), np.uint8))
    history: History[Any, Any] = field(default_factory=History)  # empty while it sleeps
    settings: RunSettings | None = None  # the settings when it was left
    # Those of interest, and the ones that they are compared with, while it sleeps.
    regions: tuple[Interest, ...] = ()
    against: Against | None = None
    lost: str = ""  # the pictures that were dropped to save memory, in words
    state: int = 0
    """The furthest that it came, also in the session before: 0 as it was opened, 1 with settings
    or a part of an output, 2 with an output, 3 with steps, `SAVED`."""

    @classmethod
    def of(cls, source: Opened, thumbnail: NDArray[np.uint8]) -> Document:
        document = cls(source.kind, source.title, None, size_of(source), thumbnail)
        document.wake(source)
        document.locate()
        return document

    def describe(self, thumbnail: Callable[[Opened], NDArray[np.uint8]]) -> None:
        moment = self.history.current
        if moment is None:
            return
        source: Opened = moment.source
        if (self.title, self.size) != (source.title, size_of(source)):
            self.title, self.size = source.title, size_of(source)
            self.thumbnail = thumbnail(source)
        self.locate()

    def locate(self) -> Path | None:
        """Return the file of the input, or of the one before it in the history."""
        if self.asleep:
            return self.path
        read = [each for each in reversed(self._inputs) if path_of(each) is not None]
        self.path = next((path_of(each) for each in read if _whole(each)), None)
        return path_of(read[0]) if read else None

    @property
    def _inputs(self) -> list[Opened]:
        # The steps of a picture may be shown from the first moment on, or it was forgotten.
        return [each.base for each in self.history.moments]

    def is_of(self, path: Path, source: Opened) -> bool:
        if self.asleep:
            return self.path == path
        same = (each for each in self._inputs if path_of(each) == path)
        return any(each.fingerprint == source.fingerprint for each in same)

    @property
    def asleep(self) -> bool:
        return self.history.current is None

    @property
    def work(self) -> int:
        """Return 0 for a picture as it was opened, 1 with an output, 2 with a computed input."""
        moments = self.history.moments
        if any(moment.steps or moment.pipeline for moment in moments):
            return 2
        return int(any(moment.result is not None for moment in moments))

    def note_state(self, saved: Container[object]) -> None:
        """Note how far it came; `saved`: the inputs of which an output was saved."""
        moments = self.history.moments
        is_saved = any(each.source in saved for each in moments)
        settings = [self.settings, *(each.settings for each in moments)]
        left = any(each is not None for each in settings)
        work = self.work + 1 if self.work else int(left)
        self.state = max(self.state, SAVED * is_saved, work)

    @property
    def can_sleep(self) -> bool:
        return self.path is not None and not self.asleep

    def wake(self, source: Opened) -> None:
        """Take the picture that was read, or read again."""
        name = f"Open {source.title}"
        self.history.push(Moment(source, name, regions=self.regions, against=self.against))
        self.lost = ""

    def sleep(self) -> None:
        current = self.history.current
        if current is not None:
            self.settings, self.regions = self.settings or current.settings, current.regions
            self.against = current.against
        self.lost = ("", "its output", "its steps and their outputs")[self.work]
        settings_now, self.history = self.history.settings_now, History()
        self.history.settings_now = settings_now


class Documents:
    """The open pictures in the order of the film strip; those behind take `limit` bytes at most.

    `forgotten`: the one that cannot be opened again since the last was closed.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._open: list[Document] = []
        self._closed: list[Document] = []
        self._used: list[Document] = []  # those that were in front, the last one at the end
        self.current: Document | None = None
        self._held: list[Document] = []
        self.forgotten: Document | None = None
        self.limit = int(min(MOST_BYTES, memory.available() / 4)) if limit is None else limit

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open))

    @property
    def closed(self) -> int:
        return len(self._closed)

    def add(self, document: Document) -> None:
        self._open.append(document)

    def arrange(self, paths: Sequence[Path]) -> None:
        """Put the documents of these files in this order, among the others."""
        found = [document.locate() for document in self._open]
        places = [place for place, path in enumerate(found) if path in paths]
        ordered = sorted(places, key=lambda place: paths.index(found[place]))
        moved = [self._open[place] for place in ordered]
        for place, document in zip(places, moved, strict=True):
            self._open[place] = document

    def bring_to_front(self, document: Document) -> None:
        self.current = document
        if document in self._used:
            self._used.remove(document)
        self._used.append(document)

    def beside(self, step: int) -> Document | None:
        """Return the document this many places further, round the ends; None without another."""
        if self.current is None or len(self._open) < 2:
            return None
        return self._open[(self._open.index(self.current) + step) % len(self._open)]

    def hold(self, shown: Sequence[object], unsaved: Iterable[object]) -> None:
        """Let only others sleep than those of histories that pages show, and of these sources."""
        sources = set(map(id, unsaved))
        self._held = [
            each
            for each in (*self._closed, *self._open)
            if each.history in shown
            or any(id(moment.source) in sources for moment in each.history.moments)
        ]

    def holder_of(self, source: object) -> Document | None:
        return next(
            (
                each
                for each in self._open
                if any(moment.source is source for moment in each.history.moments)
            ),
            None,
        )

    def of_file(self, source: Opened) -> Document | None:
        """Return the document of the file that was read, unless the file was changed since."""
        path = path_of(source)
        return next((each for each in self._open if path and each.is_of(path, source)), None)

    def close(self, document: Document) -> Document | None:
        """Take a document out, for `reopen`; return the one to show now, if it was in front."""
        assert len(self._open) > 1
        place = self._open.index(document)
        self._open.remove(document)
        self._closed = [*self._closed, document]
        self.forgotten = self._closed.pop(0) if len(self._closed) > MOST_CLOSED else None
        if document is not self.current:
            return None
        self.current = None
        return self._open[min(place, len(self._open) - 1)]

    def reopen(self) -> Document | None:
        if not self._closed:
            return None
        document = self._closed.pop()
        self._open.append(document)
        return document

    def with_history(self, history: History[Any, Any]) -> Document | None:
        """Return the document with this history, which is open again if it was closed."""
        found = next((e for e in (*self._open, *self._closed) if e.history is history), None)
        if found in self._closed:
            self._closed.remove(found)
            self._open.append(found)
        return found

    def trim(self) -> list[Document]:
        """Let documents sleep until the others fit; return those that lost something."""
        candidates = sorted((each for each in self._behind if each.can_sleep), key=self._worth)
        lost = []
        for document in candidates:
            if self.bytes_behind <= self.limit:
                break
            document.sleep()
            if document.lost:
                lost.append(document)
        return lost

    @property
    def _behind(self) -> list[Document]:
        shown = (self.current, *self._held)
        return [each for each in (*self._closed, *self._open) if each not in shown]

    @property
    def bytes_behind(self) -> int:
        sizes: dict[int, int] = {}
        for each in self._behind:
            sizes |= each.history.sizes
        return sum(sizes.values())

    def _worth(self, document: Document) -> tuple[bool, int, int]:
        used = self._used.index(document) if document in self._used else -1
        return document in self._open, document.work, used


def describe_memory(
    shown: Sequence[History[Any, Any]], gallery: Gallery, documents: Documents
) -> str:
    """Return the memory of the process, and of the pictures, some of which are kept twice."""
    outputs = [each.outputs for each in shown]
    places = {
        "undo": (sum(each.bytes for each in shown), len(shown) * history.MOST_BYTES),
        "steps": (sum(each.bytes for each in outputs), sum(each.limit for each in outputs)),
        "runs": (gallery.bytes, gallery.limit),
        "pictures behind the one in front": (documents.bytes_behind, documents.limit),
    }
    kept = (f"{name} {_mib(each)} of {_mib(most)} MiB" for name, (each, most) in places.items())
    whole = memory.resident()
    process = f"{_mib(whole)} MiB in all, with libraries and compiled code. " if whole else ""
    return f"Memory: {process}Pictures: {', '.join(kept)}."


def _mib(count: int) -> int:
    return round(count / 2**20)
