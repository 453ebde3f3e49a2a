"""Replaces files so that at every moment either the old or the new one is whole."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import ImageWriteError

_ELSEWHERE = "Choose another place."
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, through a temporary file in the same folder.

    The permissions of an existing file are kept, and a link keeps pointing where it does.

    Raises
    ------
    ImageWriteError
        If the place does not exist, is write-protected or full. The old file is whole then,
        and nothing else is left behind.
    """
    with _explained(path):
        _write(_target(path), data)


def resolved(path: Path) -> Path:
    """Return where `path` leads to.

    Raises
    ------
    ImageWriteError
        If the system cannot follow it: a null character, a name that is too long.
    """
    with _explained(path):
        return path.resolve()


def check_target(path: Path) -> None:
    """Refuse a place that `replace_file` could not write to, as far as that shows beforehand.

    Raises
    ------
    ImageWriteError
        If the place does not exist or is write-protected.
    """
    with _explained(path):
        folder = _target(path).parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the system's errors into words for the user."""
    name = path.name
    try:
        yield
    except PermissionError as error:
        raise ImageWriteError(
            f"{name}: you are not allowed to write to {path.absolute().parent}.", _ELSEWHERE
        ) from error
    except OSError as error:
        if error.errno in _FULL:
            raise ImageWriteError(
                f"{name}: the disk is full.", "Free some space, or choose another place."
            ) from error
        raise ImageWriteError(
            f"{name}: the file cannot be written ({error.strerror}).", _ELSEWHERE
        ) from error
    except (ValueError, RuntimeError) as error:  # A null character; a circle of links.
        raise ImageWriteError(f"{name}: the path cannot be used ({error}).", _ELSEWHERE) from error


def _target(path: Path) -> Path:
    """Return where `path` leads to, if a file may stand there."""
    target = path.resolve()
    if not target.parent.is_dir():
        raise ImageWriteError(
            f"{path.name}: the folder {target.parent} does not exist.", _ELSEWHERE
        )
    _check_existing(target, path.name)
    return target


def _check_existing(target: Path, name: str) -> None:
    """Refuse to replace what a plain write could not have written either."""
    if not target.exists():
        return
    if not stat.S_ISREG(target.stat().st_mode):
        raise ImageWriteError(f"{name}: this is no ordinary file.", "Choose another name.")
    if not os.access(target, os.W_OK):
        raise ImageWriteError(
            f"{name}: the file is write-protected.", "Choose another name or another place."
        )


def _write(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".kernelscope-{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a power cut, on systems that can open a folder."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
