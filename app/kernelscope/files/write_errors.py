"""Replaces the user's files and folders, and explains failures.

`kernelscope.base.atomic` writes; this module checks places and turns the system's errors into
`ImageWriteError`, with the name of the file, the cause and a way out.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from kernelscope.base import atomic
from kernelscope.base.errors import ImageWriteError, OutOfMemory
from kernelscope.base.installed import missing_package, pip_command

Made = TypeVar("Made")

_ELSEWHERE = "Choose another place."
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, through a temporary file in the same folder.

    An existing file keeps its permissions, and a link its target. On failure the old file is
    intact, and nothing else is left behind.
    """
    with explained(path):
        atomic.replace(_target(path), data)


def resolved(path: Path) -> Path:
    with explained(path):
        return atomic.target_of(path)


def replace_folder(
    path: Path, files: Iterable[tuple[str, bytes]], ours: Callable[[str], bool]
) -> None:
    """Write `files`, pairs of a name and its content, to a folder that appears when complete.

    `ours`: whether a file of this name may be replaced; a folder with any other file is left
    unchanged. On failure the old folder is intact, and nothing else is left behind.
    """
    check_folder(path, ours)
    with explained(path):
        atomic.replace_folder(atomic.target_of(path), files)


def check_folder(path: Path, ours: Callable[[str], bool]) -> None:
    """Refuse a place that `replace_folder` cannot write to, as far as is known beforehand."""
    with explained(path):
        target = atomic.target_of(path)
        if target.is_dir():
            others = sorted(each.name for each in target.iterdir() if not ours(each.name))
            if others:
                raise ImageWriteError(
                    f"{path.name}: this folder holds other things, such as {others[0]}.",
                    "Choose another name, or empty it first.",
                )
        elif target.exists():
            raise ImageWriteError(f"{path.name}: this is no folder.", "Choose another name.")
        elif not target.parent.is_dir():
            raise ImageWriteError(
                f"{path.name}: the folder {target.parent} does not exist.", _ELSEWHERE
            )
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target.parent))


def check_target(path: Path) -> None:
    """Refuse a place that `replace_file` cannot write to, as far as is known beforehand."""
    with explained(path):
        folder = _target(path).parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


@contextmanager
def saving(path: Path) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(
            f"{path.name}: there is not enough memory to save it.", "Close other programs."
        ) from error
    except ModuleNotFoundError as error:
        package = missing_package(error)
        if package is None:
            raise
        raise ImageWriteError(
            f"{path.name}: its format needs the package {package}, which is not installed.",
            f"Install it: {pip_command(package)}",
        ) from error


@contextmanager
def explained(path: Path) -> Iterator[None]:
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
    except ValueError as error:  # a null character
        raise ImageWriteError(f"{name}: the path cannot be used ({error}).", _ELSEWHERE) from error


@contextmanager
def replacing(path: Path, made: AbstractContextManager[Made]) -> Iterator[Made]:
    """Enter and leave `made`, of `atomic`, with errors explained; those of the block are not."""
    with explained(path):
        given = made.__enter__()
    try:
        yield given
    except BaseException as error:
        if not made.__exit__(type(error), error, error.__traceback__):
            raise
    else:
        with explained(path):
            made.__exit__(None, None, None)


def _target(path: Path) -> Path:
    """Return the target of `path`, if a file may be created there."""
    target = atomic.target_of(path)
    if not target.parent.is_dir():
        raise ImageWriteError(
            f"{path.name}: the folder {target.parent} does not exist.", _ELSEWHERE
        )
    _check_existing(target, path.name)
    return target


def _check_existing(target: Path, name: str) -> None:
    """Refuse to replace a file that could not be written in place either."""
    if not target.exists():
        return
    if not stat.S_ISREG(target.stat().st_mode):
        raise ImageWriteError(f"{name}: this is no ordinary file.", "Choose another name.")
    if not os.access(target, os.W_OK):
        raise ImageWriteError(
            f"{name}: the file is write-protected.", "Choose another name or another place."
        )
