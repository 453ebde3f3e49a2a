"""Several pictures at once: opens them one after the other, and switches between them.

    files dropped or chosen together -> read one after the other -> documents -> film strip
    film strip, Ctrl+PgUp and PgDown -> [read again] -> page.show_history
    closed -> kept, and opened again by Ctrl+Shift+T

One picture that is opened alone takes the place of the one in front, and Undo returns to that. As
soon as there are several, each that is opened joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.base.errors import AppError
from kernelscope.base.text import enumerated, one_line, without_name
from kernelscope.files import SAMPLES, read_image
from kernelscope.files.volumes import is_volume
from kernelscope.gui.docks.film_strip import FilmStrip
from kernelscope.gui.model.documents import Document, Documents
from kernelscope.gui.model.gallery import thumbnail
from kernelscope.gui.session.session import KIND, Session
from kernelscope.gui.session.subject import INPUT, REVERTED, SHOWN, Fields
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.messages import show_error, show_notice
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image

_TOPIC = "several"

_SIDE = 96
"""Longer side of a thumbnail: twice that on the strip, for screens of 200 %."""

_MOST_PROBLEMS = 12
"""Files that a message explains."""

_SAMPLES = {sample.path for sample in SAMPLES}

_Read = tuple[Image, NDArray[np.uint8]]


class OpenPictures(QObject):
    """Conducts the open pictures of the window.

    - `settings`: recent files.
    - `opened`: called with each picture that was opened, once it is in front.
    """

    changed = Signal()
    """Other pictures are open, or another one is in front."""
    volumes_found = Signal(list)
    """Volumes among the files that were opened together."""
    announced = Signal(str)
    """One line for the status bar."""

    def __init__(
        self,
        window: QWidget,
        strip: FilmStrip,
        session: Session,
        settings: Settings,
        background: Background,
        opened: Callable[[Image], None],
        report: Callable[[Exception], None],
    ) -> None:
        super().__init__(window)
        self._window, self.strip, self._session = window, strip, session
        self._subject = session.pictures
        self._settings, self._background = settings, background
        self._opened, self._report = opened, report
        self.documents = Documents()
        self._waiting: list[Path] = []
        self._count = 0
        """Files of the round that goes on."""
        self._shows_next = False
        """Whether the next picture that is read comes to the front."""
        self._volumes: list[Path] = []
        self._problems: list[tuple[str, str]] = []
        self._notice = ""
        """To be said again when the next picture has been announced."""
        self._shown: object = None
        """The picture in front and the numbers of open and closed ones at the last `changed`."""
        strip.wanted.connect(self.show)
        strip.closing.connect(self._close)
        session.follow(self._on_session)

    # --- opening ---

    def open_all(self, paths: Sequence[Path]) -> None:
        """Open every file; the first picture comes to the front, problems are listed at the end."""
        if not self._waiting and not self._count:
            self._shows_next = True
        idle = not self._count
        self._waiting += paths
        self._count += len(paths)
        if idle:
            self._read_next()

    def open_one(self, image: Image) -> None:
        """Open a picture that was read: next to the others, or in place of the only one.

        It stays in front of the files that are still being read.
        """
        self._shows_next = False
        if len(self.documents) < 2:
            self._subject.open_picture(image)
        else:
            self._add(image, thumbnail(image, _SIDE), front=True)

    def _read_next(self) -> None:
        if not self._waiting:
            self._end_round()
            return
        path = self._waiting.pop(0)
        number = self._count - len(self._waiting)
        self.announced.emit(f"Opening {path.name}, {number} of {self._count}…")

        def read() -> _Read | None:
            if is_volume(path):
                return None
            image = read_image(path)
            return image, thumbnail(image, _SIDE)

        def show(answer: _Read | None) -> None:
            if answer is None:
                self._volumes.append(path)
            else:
                image, small = answer
                if path not in _SAMPLES:
                    self._settings.add_recent(path)
                self._add(image, small, front=self._shows_next)
                self._shows_next = False
            self._read_next()

        def failed(error: Exception) -> None:
            if not isinstance(error, AppError):
                self._report(error)
            self._problems.append((one_line(path.name), str(error)))
            self._read_next()

        self._background.start(_TOPIC, read, show, failed)

    def _add(self, image: Image, small: NDArray[np.uint8], *, front: bool) -> None:
        """Add a document; a sample picture in front that was only looked at makes room for it."""
        current = self.documents.current
        if len(self.documents) == 1 and front and current is not None and _is_sample(current):
            self._subject.open_picture(image)
            self._opened(image)
            return
        document = Document.of(image, small)
        self.documents.add(document)
        if front or current is None:
            self.show(document)
            self._opened(image)
        self._make_room()
        self._show_strip()

    def _end_round(self) -> None:
        problems, volumes, count = self._problems, self._volumes, self._count
        self._problems, self._volumes, self._count = [], [], 0
        opened = count - len(problems) - len(volumes)
        if opened:
            self._say(f"Opened {opened} pictures." if opened > 1 else "Opened 1 picture.")
        if volumes:
            self.volumes_found.emit(volumes)
        if problems:
            shown = [
                f"{name}: {without_name(why, name)}" for name, why in problems[:_MOST_PROBLEMS]
            ]
            more = len(problems) - len(shown)
            shown += [f"… and {more} others."] * bool(more)
            text = f"{len(problems)} of {count} files could not be opened."
            show_notice(self._window, text, "\n".join(shown))

    # --- in front ---

    def show(self, document: Document) -> None:
        """Bring a document to the front; one that sleeps is read again first."""
        if document.asleep:
            self._wake(document, lambda: self.show(document))
            return
        if document is self.documents.current and document.history is self._subject.history:
            self._session.bring_to_front(self._subject)
            return
        self._leave()
        self.documents.bring_to_front(document)
        self._subject.show_history(document.history, document.form)
        self._make_room()
        self._show_strip()

    def bring_holder_of(self, source: object) -> None:
        """Bring the document with this input to the front."""
        holder = self.documents.holder_of(source)
        if holder is not None and holder is not self.documents.current:
            self._leave()
            self.documents.bring_to_front(holder)
            self._subject.show_history(holder.history)

    @Action(
        "nextPicture",
        "Ne&xt Picture",
        keys=("Ctrl+PgDown",),
        tip="Show the next of the open pictures",
        need=commands.SEVERAL,
        argument=1,
    )
    @Action(
        "previousPicture",
        "Pre&vious Picture",
        keys=("Ctrl+PgUp",),
        tip="Show the previous one of the open pictures",
        need=commands.SEVERAL,
        argument=-1,
    )
    def step(self, step: int) -> None:
        """Show the next picture, or the previous one."""
        document = self.documents.beside(step)
        if document is not None:
            self.show(document)

    @Action(
        "closePicture",
        "Clos&e Picture",
        keys=("Ctrl+W",),
        tip="Close the picture in front; its output stays until it is opened again",
        need=commands.SEVERAL,
    )
    def close_current(self) -> None:
        """Close the picture in front."""
        if self.documents.current is not None:
            self._close(self.documents.current)

    @Action(
        "reopenPicture",
        "Reopen &Closed Picture",
        keys=("Ctrl+Shift+T",),
        tip="Open the picture again that was closed last, with its output",
        need=commands.CLOSED,
    )
    def reopen(self) -> None:
        """Open the picture again that was closed last."""
        document = self.documents.reopen()
        if document is not None:
            self.show(document)
            self._show_strip()

    def _close(self, document: Document) -> None:
        if len(self.documents) < 2:
            self.announced.emit("The last picture stays open.")
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
        self._show_strip()

    def _wake(self, document: Document, then: Callable[[], None]) -> None:
        path = document.path
        assert path is not None
        self.announced.emit(f"Opening {path.name} again…")

        def show(image: Image) -> None:
            if document.asleep:
                document.wake(image)
            then()

        def failed(error: Exception) -> None:
            self.announced.emit("")
            if isinstance(error, AppError):
                show_error(self._window, error)
            else:
                self._report(error)

        self._background.start("open", lambda: read_image(path), show, failed)

    def _leave(self) -> None:
        """Keep the settings with the picture that was in front."""
        current = self.documents.current
        if current is not None and self._subject.is_front:
            current.form = self._session.settings or current.form

    def _make_room(self) -> None:
        lost = self.documents.trim()
        if lost:
            names = enumerated([f"{each.title} ({each.lost})" for each in lost], "and")
            self._say(f"Dropped to make room: {names}. The settings stay; Run computes it again.")

    # --- the picture in front ---

    def _on_session(self, fields: Fields) -> None:
        if fields & {INPUT, REVERTED}:
            self._follow()
        if INPUT in fields and self._notice:  # the picture in front is announced first
            notice, self._notice = self._notice, ""
            QTimer.singleShot(0, self, lambda: self.announced.emit(notice))
        if fields & {SHOWN, KIND}:
            self._show_strip()

    def _say(self, text: str) -> None:
        """Say in the status bar that something happened, and again after a picture is shown."""
        self.announced.emit(text)
        if self._subject.is_behind:
            self._notice = text

    def _follow(self) -> None:
        """Find the document whose history is shown, or make the first one."""
        history = self._subject.history
        if history.current is None:
            return
        document = next((each for each in self.documents if each.history is history), None)
        if document is None:
            small = np.zeros((1, 1, 3), np.uint8)  # until there is a strip
            source = self._subject.moment.source
            document = Document(source.title, source.path, "", small, history)
            self.documents.add(document)
        self.documents.bring_to_front(document)
        self._show_strip()

    def _show_strip(self) -> None:
        current = self.documents.current
        if len(self.documents) > 1:
            for each in self.documents:
                if each is current or not each.size:  # the first one, which had no strip
                    self._describe(each)
        # While volumes are shown, no picture is in front.
        self.strip.show_documents(self.documents, current if self._subject.is_front else None)
        shown = id(current), len(self.documents), self.documents.closed
        if shown != self._shown:  # not with each result that is drawn
            self._shown = shown
            self.changed.emit()

    def _describe(self, document: Document) -> None:
        """Let the strip follow the picture in front, which may be another by now."""
        moment = document.history.current
        if moment is None:
            return
        source = moment.source
        size = f"{source.width}×{source.height}, {source.mode}"
        if (document.title, document.size) != (source.title, size):
            document.title, document.size = source.title, size
            document.thumbnail = thumbnail(source, _SIDE)
        read = [each for each in document.history.moments if not each.steps and each.source.path]
        document.path = read[-1].source.path if read else None


def _is_sample(document: Document) -> bool:
    """Return whether a document is a sample picture without any work of the user."""
    return document.path in _SAMPLES and document.work < 2 and len(document.history.moments) == 1
