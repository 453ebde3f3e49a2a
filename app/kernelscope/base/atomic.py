"""Replace files atomically: at every moment either the old or the new file is complete.

::

    write .kernelscope-0123456789abcdef.part  -->  fsync  -->  rename to the target

The new file first has a temporary name, in the folder of the target, and is locked while its
process lives. If the process is killed, the file stays without a lock, and the next process that
writes to the folder removes it. The system releases a lock when its process ends for any reason,
so a file that is still being written is never removed.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LEFT = re.compile(r"\.kernelscope-([0-9a-f]{16})\.(part|old)")

_OLD_AGE = 86400.0
"""Seconds after which a temporary file counts as abandoned, on systems without locks."""


def target_of(path: Path) -> Path:
    """Return where `path` leads, or raise `OSError` if it, or its folder, is a circle of links."""
    with contextlib.suppress(RuntimeError):  # of a circle, before Python 3.13
        target = path.resolve()
        if not any(each.is_symlink() for each in (target, *target.parents)):
            return target
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def replace(target: Path, data: bytes, *, private: bool = False, durable: bool = True) -> None:
    """Write `data` to `target`.

    - `private`: only the user may read it. Otherwise it keeps the permissions of an existing
      `target`.
    - `durable`: wait until it is on the disk, so that it survives a power cut.

    Raises `OSError` if it cannot be written. An existing `target` is unchanged then, and no
    temporary file is left behind.
    """
    with new_file(target, private=private, durable=durable) as handle:
        handle.write(data)


@contextlib.contextmanager
def new_file(
    target: Path, *, private: bool = False, durable: bool = True
) -> Iterator[io.BufferedRandom]:
    """Provide a file that takes the place of `target` when the block ends.

    If the block raises an exception, an existing `target` is unchanged, and no temporary file is
    left behind. Parameters and errors are those of `replace`.
    """
    remove_abandoned(target.parent)
    descriptor, temporary = _create(target, 0o600 if private else 0o666)
    try:
        try:
            with os.fdopen(descriptor, "w+b", closefd=False) as handle:
                yield handle
            if durable:
                os.fsync(descriptor)
            if target.exists() and not private:
                shutil.copymode(target, temporary)
            if fcntl is not None:  # while it is locked
                temporary.replace(target)
        finally:
            os.close(descriptor)
        if fcntl is None:  # Windows does not rename open files
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(target.parent)


def move(file: Path, target: Path) -> None:
    """Move a complete file or folder to `target`, which is on the same disk, in one step.

    It keeps the permissions of an existing `target`. Errors are those of `replace`.
    """
    if target.exists():
        shutil.copymode(target, file)
    if file.is_dir() and target.exists():
        _move_folder(file, target)
    else:
        file.replace(target)
    _sync_folder(target.parent)


def _move_folder(folder: Path, target: Path) -> None:
    """Replace a folder by another one, both of which `remove_abandoned` knows meanwhile."""
    made = _sibling(target)
    descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        if descriptor is not None:
            lock(descriptor)
        folder.rename(made)
        _exchange(made, target)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _exchange(made: Path, target: Path) -> None:
    """Let a folder take the place of `target`, which is moved aside and removed then."""
    old = made.with_suffix(".old")
    if target.exists():
        target.rename(old)
    try:
        made.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    _sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def replace_folder(target: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write `files`, pairs of a name and its content, to a folder that appears when complete.

    An existing folder passes on its permissions. It is moved aside under a name ending in
    ``.old``, and deleted after the new folder has taken its place.

    Raises `OSError` if it cannot be written. The old folder is intact then, and nothing else is
    left behind.
    """
    with new_folder(target) as made:
        for name, data in files:
            with (made / name).open("xb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Provide a folder that takes the place of `target` when the block ends.

    If the block raises an exception, an existing folder is intact, and nothing else is left
    behind. See `replace_folder`.
    """
    remove_abandoned(target.parent)
    descriptor, made = _create_folder(target)
    try:
        yield made
        _sync_folder(made)
        if target.exists():
            shutil.copymode(target, made)
        _exchange(made, target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


def own_folder(path: Path) -> None:
    """Make a folder that only the user can enter, or restrict an existing one to the user.

    Raises `OSError` if it cannot be made, or belongs to another user.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix":
        info = path.stat()
        if info.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        if stat.S_IMODE(info.st_mode) & 0o077:
            path.chmod(0o700)


def read_own(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file that only the user can have written.

    On Windows this depends on the permissions of the folder alone.

    Raises `FileNotFoundError` if there is none; `OSError` if it is a link or not a regular file,
    belongs to another user, can be written by others, or is larger than `most_bytes`.
    """
    # Do not follow a link, and do not wait for the other end of a pipe.
    flags = [getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")]
    with os.fdopen(os.open(path, os.O_RDONLY | sum(flags)), "rb") as handle:
        info = os.fstat(handle.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise OSError(f"{path} is not a regular file")
        if os.name == "posix" and info.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        if os.name == "posix" and info.st_mode & 0o022:
            raise PermissionError(f"others can write to {path}")
        content = handle.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise OSError(f"{path} is larger than {most_bytes} bytes")
        return content


def _create(target: Path, mode: int) -> tuple[int, Path]:
    while True:
        temporary = _sibling(target)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, mode)
        # Before it was locked, another process may have removed it as abandoned.
        if lock(descriptor) is not Lock.TAKEN and os.path.lexists(temporary):
            return descriptor, temporary
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _sibling(target: Path) -> Path:
    """Return a temporary name in the folder of `target`."""
    return target.with_name(f".kernelscope-{secrets.token_hex(8)}.part")


def _create_folder(target: Path) -> tuple[int | None, Path]:
    """Make a folder next to `target`, locked where the system can open a folder."""
    while True:
        made = _sibling(target)
        made.mkdir()
        if fcntl is None:
            return None, made
        # Before it was locked, another process may have removed it as abandoned.
        try:
            descriptor = os.open(made, os.O_RDONLY)
        except FileNotFoundError:
            continue
        if lock(descriptor) is not Lock.TAKEN and os.path.lexists(made):
            return descriptor, made
        os.close(descriptor)


class Lock(Enum):
    HELD = auto()
    TAKEN = auto()
    IMPOSSIBLE = auto()


def lock(descriptor: int) -> Lock:
    if fcntl is None:
        return Lock.IMPOSSIBLE
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Lock.TAKEN
    except OSError:  # a file system without locks
        return Lock.IMPOSSIBLE
    return Lock.HELD


def remove_abandoned(folder: Path) -> None:
    """Remove the files and folders of killed processes from a folder, as far as possible.

    A folder that was moved aside (``.old``) is removed only if the new one took its place.
    Otherwise the two may be the only copies of the user's data, and both stay.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _LEFT.fullmatch(entry.name)]:
            path = folder / name
            other = path.with_suffix(".part" if path.suffix == ".old" else ".old")
            if not os.path.lexists(other):
                with contextlib.suppress(OSError):
                    _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or a folder whose process has ended."""
    info = path.lstat()
    is_folder = stat.S_ISDIR(info.st_mode)
    if not is_folder and not stat.S_ISREG(info.st_mode):
        return
    if fcntl is None:
        if time.time() - info.st_mtime > _OLD_AGE:
            _delete(path, is_folder)
        return
    how = os.O_RDONLY if is_folder else os.O_RDWR  # NFS locks only files that can be written
    descriptor = os.open(path, how | os.O_NOFOLLOW)
    try:
        if lock(descriptor) is Lock.HELD:
            _delete(path, is_folder)
    finally:
        os.close(descriptor)


def _delete(path: Path, is_folder: bool) -> None:
    if is_folder:
        shutil.rmtree(path)
    else:
        path.unlink()


def _sync_folder(folder: Path) -> None:
    """Write a folder's new names to the disk, on systems that can open a folder."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
