"""Several pictures and volumes at once: opens them, and switches between them.

    files dropped or chosen together -> read one after the other -> documents -> film strip
    film strip, Ctrl+PgUp and PgDown -> [read again] -> page.show_history
    closed -> kept, and opened again by Ctrl+Shift+T

Each file that is opened joins those that are open; a sample that was only looked at makes room for
it. A scan is a document as a picture is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal

from kernelscope.base.errors import AppError
from kernelscope.base.text import enumerated, one_line, without_name
from kernelscope.files import SAMPLES
from kernelscope.files.volumes import is_volume
from kernelscope.gui.model.documents import Document, Documents, path_of
from kernelscope.gui.model.gallery import thumbnail
from kernelscope.gui.model.volume_files import read_file
from kernelscope.gui.session.session import KIND
from kernelscope.gui.session.subject import INPUT, PART, REVERTED, SHOWN, Fields, Subject
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.messages import show_notice
from kernelscope.gui.window.frame import Frame
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume

_TOPIC = "several"

_SIDE = 96  # longer side of a thumbnail: twice that on the strip, for screens of 200 %

_MOST_PROBLEMS = 12  # files that a message explains

SAMPLE_PATHS = {sample.path for sample in SAMPLES}

_Read = tuple[Image, NDArray[np.uint8]]


class OpenPictures(QObject):
    """Conducts the open pictures; `opened` is called with each that was opened, once in front."""

    changed = Signal()  # other pictures are open, or another one is in front

    def __init__(self, frame: Frame, opened: Callable[[Image], None]) -> None:
        super().__init__(frame)
        self._frame, self.strip, self._session = frame, frame.film_strip, frame.session
        self._settings, self._background = frame.settings, frame.background
        self._opened = opened
        self.documents = Documents()
        self._waiting: list[Path] = []
        self._count = 0  # files of the round that goes on
        self._count_open = 0  # those of them that were open already
        self._shows_next = False  # whether the next picture that is read comes to the front
        self._volumes: list[Path] = []
        self._problems: list[tuple[str, str]] = []
        self._notice = ""  # to be said again when the next picture has been announced
        self._order: Sequence[Path] = ()  # those of the session before that are opened again
        self._states: dict[Path, int] = {}  # theirs, until they are open
        self._front: Path | None = None  # that to bring to the front once all of them are open
        self._shown: object = None
        """The picture in front and the numbers of open and closed ones at the last `changed`."""
        self.strip.wanted.connect(self.show)
        self.strip.closing.connect(self._close)
        frame.file_dialogs.several.connect(self.open_all)
        self._session.follow(self._on_session)

    # --- opening ---

    def open_all(self, paths: Sequence[Path]) -> None:
        if not self._waiting and not self._count:
            self._shows_next = True
        idle = not self._count
        self._waiting += paths
        self._count += len(paths)
        if idle:
            self._read_next()

    def open_again(
        self, paths: Sequence[Path], front: Path | None, states: dict[Path, int]
    ) -> None:
        """Open files in this order, that of `front` first, each with its `Document.state`."""
        self._order, self._front, self._states = paths, front, states
        self.open_all(sorted(paths, key=lambda each: each != front))

    def open_one(self, opened: Image | Volume) -> None:
        """Open a picture in front of those still being read, or a volume."""
        self._shows_next = False
        if self._is_open(opened if isinstance(opened, Image) else Scan((opened,)), front=True):
            return
        if isinstance(opened, Volume):
            self._frame.scans.open([opened])
        elif len(self.documents):
            self._add(opened, thumbnail(opened, _SIDE), front=True)
        else:
            self._session.pictures.open_source(opened)

    def _is_open(self, source: Image | Scan, *, front: bool) -> bool:
        """Return whether the file that was read is open, and bring it to the front if wanted."""
        document = self.documents.of_file(source)
        if document is not None and front:
            self.show(document)
            self._say(f"{document.title} is open already.")
        return document is not None

    def _read_next(self) -> None:
        if not self._waiting:
            self._end_round()
            return
        path = self._waiting.pop(0)
        number = self._count - len(self._waiting)
        self._frame.show_status(f"Opening {path.name}, {number} of {self._count}…")

        def read() -> _Read | None:
            if is_volume(path):
                return None
            image, _ = read_file(path)
            assert isinstance(image, Image)
            return image, thumbnail(image, _SIDE)

        def show(answer: _Read | None) -> None:
            if answer is None:
                self._volumes.append(path)
            else:
                image, small = answer
                if path not in SAMPLE_PATHS:
                    self._settings.add_recent(path)
                if self._is_open(image, front=self._shows_next):
                    self._count_open += 1
                else:
                    self._add(image, small, front=self._shows_next)
                self._shows_next = False
            self._read_next()

        def failed(error: Exception) -> None:
            if not isinstance(error, AppError):
                self._background.report(error)
            self._problems.append((one_line(path.name), str(error)))
            self._read_next()

        self._background.start(_TOPIC, read, show, failed)

    def files(self) -> list[Path]:
        """Return the files of the strip but for samples."""
        found = (each.locate() for each in self.documents)
        own = (each.absolute() for each in found if each and each not in SAMPLE_PATHS)
        return list(dict.fromkeys(own))

    def of_no_file(self) -> set[Hashable]:
        """Return the fingerprints of inputs that no file has, nor those that they are made of."""
        found: dict[int, Any] = {}
        for moment in (each for document in self.documents for each in document.history.moments):
            if path_of(moment.base) is None:
                found[id(moment.source)] = moment.source
        return {each.fingerprint for each in found.values()}

    def _has_sample(self) -> bool:
        """Return whether the picture that is shown, or was last, is a sample without work."""
        history = self._session.pictures.history
        return any(each.history is history and _is_sample(each) for each in self.documents)

    def _add(self, image: Image, small: NDArray[np.uint8], *, front: bool) -> None:
        if front and self._has_sample():
            self._session.pictures.open_source(image)
            self._opened(image)
            return
        document = Document.of(image, small)
        self.documents.add(document)
        if front or self.documents.current is None:
            self.show(document)
            self._opened(image)
        self._make_room()
        self.show_strip()

    def _end_round(self) -> None:
        problems, volumes, count = self._problems, self._volumes, self._count
        self._problems, self._volumes, self._count = [], [], 0
        opened = count - len(problems) - len(volumes) - self._count_open
        self._count_open = 0
        if opened:
            self._say(f"Opened {opened} pictures." if opened > 1 else "Opened 1 picture.")
        if volumes:
            self._frame.file_dialogs.open_volumes(volumes)
        else:
            self._front = None  # it was the first one
        if problems:
            shown = [
                f"{name}: {without_name(why, name)}" for name, why in problems[:_MOST_PROBLEMS]
            ]
            more = len(problems) - len(shown)
            shown += [f"… and {more} others."] * bool(more)
            text = f"{len(problems)} of {count} files could not be opened."
            show_notice(self._frame, text, "\n".join(shown))

    # --- in front ---

    def show(self, document: Document) -> None:
        """Bring a document to the front; one that sleeps is read again first."""
        if document.asleep:
            self._wake(document, lambda: self.show(document))
            return
        subject = self._subject_of(document)
        self._leave()
        self.documents.bring_to_front(document)
        if document.history is subject.history:
            self._session.bring_to_front(subject)
        else:
            subject.show_history(document.history, document.settings)
        self._make_room()
        self.show_strip()

    def _subject_of(self, document: Document) -> Subject[Any, Any]:
        return next(each for each in self._session.subjects if each.kind is document.kind)

    def bring_holder_of(self, source: object) -> None:
        holder = self.documents.holder_of(source)
        if holder is not None and holder is not self.documents.current:
            self._leave()
            self.documents.bring_to_front(holder)
            self._subject_of(holder).show_history(holder.history)

    @Action(
        "nextPicture",
        "Ne&xt Picture",
        "Ctrl+PgDown",
        tip="Show the next of the open pictures",
        need=commands.SEVERAL,
        argument=1,
    )
    @Action(
        "previousPicture",
        "Pre&vious Picture",
        "Ctrl+PgUp",
        tip="Show the previous one of the open pictures",
        need=commands.SEVERAL,
        argument=-1,
    )
    def step(self, step: int) -> None:
        document = self.documents.beside(step)
        if document is not None:
            self.show(document)

    @Action("closePicture", "Clos&e Picture", "Ctrl+W", need=commands.SEVERAL)
    def close_current(self) -> None:
        """Close the picture in front; its output stays until it is opened again."""
        if self.documents.current is not None:
            self._close(self.documents.current)

    @Action("reopenPicture", "Reopen &Closed Picture", "Ctrl+Shift+T", need=commands.CLOSED)
    def reopen(self) -> None:
        """Open the picture again that was closed last, with its output."""
        document = self.documents.reopen()
        if document is not None:
            self.show(document)
            self.show_strip()

    def _close(self, document: Document) -> None:
        if len(self.documents) < 2:
            self._frame.show_status("The last picture stays open.")
            return
        if document is self.documents.current:
            self._leave()
        following = self.documents.close(document)
        if following is not None:
            self.show(following)
        kept = ", with its output" if document.work else ""
        gone = self.documents.forgotten
        too_long = f" {gone.title} was closed too long ago for that." if gone is not None else ""
        self._say(f"Closed {document.title}; Ctrl+Shift+T opens it again{kept}.{too_long}")
        self._make_room()
        self.show_strip()

    def _wake(self, document: Document, then: Callable[[], None]) -> None:
        path = document.path
        assert path is not None
        self._frame.show_status(f"Opening {path.name} again…")

        def read() -> Image | Scan:
            source, _ = read_file(path)
            return source if isinstance(source, Image) else Scan((source,))

        def show(source: Image | Scan) -> None:
            if document.asleep:
                document.wake(source)
            then()

        self._background.start("open", read, show)

    def _leave(self) -> None:
        """Keep the settings with the picture that was in front."""
        current = self.documents.current
        if current is not None:
            current.settings = self._session.settings or current.settings

    def _make_room(self) -> None:
        shown = [subject.history for subject in self._session.subjects]
        results = [run.result for run in self._session.gallery.unsaved()]
        unsaved = [result.request.source for result in results if result is not None]
        self.documents.hold(shown, unsaved)
        lost = self.documents.trim()
        if lost:
            names = enumerated([f"{each.title} ({each.lost})" for each in lost], "and")
            self._say(f"Dropped to make room: {names}. The settings stay; Run computes it again.")

    # --- the picture in front ---

    def _on_session(self, fields: Fields) -> None:
        if fields & {INPUT, REVERTED, KIND}:
            self._follow()
        if INPUT in fields and self._notice:  # the picture in front is announced first
            notice, self._notice = self._notice, ""
            QTimer.singleShot(0, self, lambda: self._frame.show_status(notice))
        if fields & {SHOWN, PART, KIND}:
            self.show_strip()

    def _say(self, text: str) -> None:
        """Say in the status bar that something happened, and again after a picture is shown."""
        self._frame.show_status(text)
        if self._session.subject.is_behind:
            self._notice = text

    def _follow(self) -> None:
        subject = self._session.subject
        if subject.history.current is None:
            return
        document = self.documents.with_history(subject.history)
        if document is None:
            document = Document(subject.kind, history=subject.history)
            self.documents.add(document)
        self.documents.bring_to_front(document)
        self.show_strip()  # which looks up the paths from which others are read again
        self._make_room()
        if self._front is not None and set(self._order) <= set(self.files()):
            wanted, self._front = self._front, None  # volumes came after it
            QTimer.singleShot(0, self, partial(self._show_file, wanted))

    def _show_file(self, path: Path) -> None:
        for each in self.documents:
            if each.locate() == path and each is not self.documents.current:
                self.show(each)

    def show_strip(self) -> None:
        current = self.documents.current
        self.documents.arrange(self._order)
        for each in self.documents:
            path = each.locate()
            each.state = max(each.state, self._states.pop(path, 0) if path else 0)
            each.note_state(self._session.gallery.saved)
        # A sample that was only looked at needs no tile, as it makes room for the next picture.
        tiles = [each for each in self.documents if each is current or not _is_sample(each)]
        self._session.joins = not all(map(_is_sample, self.documents))
        if len(tiles) > 1:
            for each in tiles:
                if each is current or not each.size:  # the first one, which had no strip
                    each.describe(lambda source: thumbnail(source, _SIDE))
        self.strip.show_documents(tiles, current)
        shown = current, len(self.documents), self.documents.closed
        if shown != self._shown:  # not with each result that is drawn
            self._shown = shown
            self.changed.emit()


def _is_sample(document: Document) -> bool:
    history = document.history
    first = path_of(history.moments[0].source) if history.moments else None
    return first in SAMPLE_PATHS and document.work < 2 and len(history.moments) == 1
