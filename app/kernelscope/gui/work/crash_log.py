"""The file to which Python writes its call stacks when the process dies of a signal.

Qt, the CUDA driver and compiled kernels can end the process in ways that no `except` sees: a
segmentation fault, an abort, a stack that overflows. `faulthandler` then writes the Python frames
of all threads to a file that was opened at start.

Each process has a file of its own, ``crash-PID-TOKEN.txt``, which is locked as long as the
process lives and removed when it ends well. So at a start, files without a lock belong to
processes that died; more than the first line is the trace of a crash.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import platform
import secrets
import time
from io import FileIO
from pathlib import Path

import platformdirs

from kernelscope import __version__
from kernelscope.base import atomic

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_logger = logging.getLogger(__name__)

_PATTERN = "crash-*.txt"

_MOST_BYTES = 1 << 20  # more than the frames of all threads take: a larger file is not ours


def default_folder() -> Path:
    return platformdirs.user_log_path("kernelscope")


class CrashLog:
    """The file of this process; without a folder that can be written to nothing is kept."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"crash-{os.getpid()}-{secrets.token_hex(4)}.txt"
        self._file: FileIO | None = None
        try:
            atomic.own_folder(folder)
            # Unbuffered: nothing is flushed after a crash.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self._file = FileIO(os.open(self._path, flags, 0o600), "w")
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            self._file.write(f"{_headline()}\n".encode())
        except OSError as error:
            _logger.warning("crashes cannot be recorded in %s: %s", folder, error)
            self.close()
            return
        faulthandler.enable(self._file)

    def close(self) -> None:
        """Remove the file: the process ends well."""
        if self._file is None:
            return
        faulthandler.disable()
        if fcntl is None:  # Windows removes nothing that is open
            self._file.close()
        self._path.unlink(missing_ok=True)
        self._file.close()
        self._file = None


def take_crashes(folder: Path) -> str:
    """Return the reports of crashed processes in `folder`, oldest first, and remove them."""
    found = []
    for path in sorted(folder.glob(_PATTERN), key=_age):
        try:
            text = _take(path)
        except OSError as error:
            _logger.warning("%s cannot be read: %s", path, error)
            continue
        if text.partition("\n")[2].strip():  # more than the headline
            found.append(text.strip())
    return "\n\n".join(found)


def _take(path: Path) -> str:
    """Return the content of a file and remove it; nothing if its process is alive."""
    if fcntl is None:
        text = atomic.read_own(path, _MOST_BYTES).decode(errors="replace")
        try:
            path.unlink()
        except PermissionError:  # it is open
            return ""
        return text
    with path.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ""
        try:
            return atomic.read_own(path, _MOST_BYTES).decode(errors="replace")
        finally:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _headline() -> str:
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"Kernelscope {__version__}, Python {platform.python_version()}, {platform.platform()}, "
        f"process {os.getpid()}, started {started}"
    )
