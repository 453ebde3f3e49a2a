"""Files with limited reading time: a damaged one may send a library into endless loops.

Parsing the structure of a file reads from it. Each file has an allowance of processor time for
that, which grows with its length; once it is used up, reading fails.
"""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path
from typing import Any

from kernelscope.files.formats import AGAIN, Unreadable

SECONDS = 0.8
SECONDS_PER_BYTE = 0.8 / 100e6
"""The program parses a file twice: to detect its format, and to read it."""
_CALLS = 64  # reads between two looks at the clock, which takes as long as a short read


class WatchedFile(io.BufferedReader):
    """A file that is read for a limited time of the thread that opened it.

    Once the allowance is used up, every further read fails, and so does closing the file: a library
    may have taken the failure for the end of the data, and continued.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("rb", 0))
        self._calls = 0
        self._exhausted = False
        self._modules = len(sys.modules)
        self._looked = time.thread_time()
        self._end: float | None = self._looked + SECONDS
        self.allow(os.fstat(self.fileno()).st_size)

    def allow(self, count: int) -> None:
        """Add the time for `count` more bytes, the uncompressed size that the file claims."""
        if self._end is not None:
            self._end += count * SECONDS_PER_BYTE

    def trust(self) -> None:
        """End the time limit: the structure is parsed, and the time left to decode is bounded."""
        self._watch(at_once=True)
        self._end = None

    def _watch(self, at_once: bool = False) -> None:
        self._calls += 1
        if self._end is None or (self._calls % _CALLS and not at_once and not self._exhausted):
            return
        now = time.thread_time()
        if len(sys.modules) != self._modules:  # a library was loaded, which is not the file's fault
            self._modules = len(sys.modules)
            self._end += now - self._looked
        self._looked = now
        if self._exhausted or now > self._end:
            self._exhausted = True
            raise Unreadable(
                "it takes too long to find the way through it; most likely it is damaged.", AGAIN
            )

    def read(self, size: int | None = -1, /) -> bytes:
        self._watch()
        return super().read(size)

    def read1(self, size: int = -1, /) -> bytes:
        self._watch()
        return super().read1(size)

    def readinto(self, buffer: Any, /) -> int:
        self._watch()
        return super().readinto(buffer)

    def readline(self, size: int | None = -1, /) -> bytes:
        self._watch()
        return super().readline(size)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if self._exhausted and error is None:
            self._watch(at_once=True)
