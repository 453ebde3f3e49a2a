"""A file that stays open while its parts are read, and that must not change meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import ImageReadError
from kernelscope.files.formats import Unreadable
from kernelscope.files.reading import open_file

_CUT_OFF = "the file is cut off."


class OpenedFile:
    """Reads parts of a file on any thread.

    `handle`: for parsing, on one thread, before parts are read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = open_file(path)
        self._lock = threading.Lock()
        self._state = _state(os.fstat(self.handle.fileno()))

    @property
    def size(self) -> int:
        """Length in bytes when it was opened."""
        return self._state[0]

    def fill(self, offset: int, array: NDArray[Any]) -> None:
        """Read the bytes of a C-ordered array."""
        view = array.reshape(-1).view(np.uint8).data
        done = 0
        try:
            while done < len(view):
                with self._lock:
                    self.handle.seek(offset + done)
                    count = self.handle.readinto(view[done : done + 2**24])
                if not count:
                    self.check_unchanged()
                    raise ImageReadError(f"{self.path.name}: {_CUT_OFF}")
                done += count
        except OSError as error:
            raise ImageReadError(
                f"{self.path.name}: the file cannot be read ({error.strerror})."
            ) from error

    def bytes_at(self, offset: int, count: int) -> bytes:
        """Return some bytes, at most those up to the end of the file, as decoders expect."""
        data = np.empty(min(count, max(0, self.size - offset)), np.uint8)
        self.fill(offset, data)
        return data.tobytes()

    def check_unchanged(self) -> None:
        """Refuse a file that was written to, or replaced, since it was opened."""
        try:
            now = _state(self.path.stat())
        except OSError:
            now = None
        if now != self._state or _state(os.fstat(self.handle.fileno())) != self._state:
            raise ImageReadError(
                f"{self.path.name}: the file changed while it was read.",
                "Wait until it is complete, and filter it again.",
            )

    def close(self) -> None:
        self.handle.close()


def _state(info: os.stat_result) -> tuple[int, int, int]:
    """Return what differs once a file was written to or replaced: size, time, and place."""
    return info.st_size, info.st_mtime_ns, info.st_ino


def refused(path: Path, error: Unreadable) -> ImageReadError:
    """Return the error of a reader with the name of the file."""
    return ImageReadError(f"{path.name}: {error.cause}", error.hint)
