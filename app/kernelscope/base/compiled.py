"""Compiled code on the disk: the one way in which the program keeps and loads it.

A file is used only if the user owns it, nobody else may write to it, it is no link, and its digest,
which covers its name, is right. Then nobody else can have made it, whoever may write to the folders
above; and a file that was cut off ends no process.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import tempfile
from pathlib import Path

from kernelscope.base import atomic
from kernelscope.base.errors import AppError

_logger = logging.getLogger(__name__)

_MOST_BYTES = 64 << 20  # more than any code has

_DIGEST = hashlib.sha256().digest_size


def cache_folder(name: str) -> Path:
    """Return the user's folder for a kind of code."""
    import platformdirs

    return platformdirs.user_cache_path("kernelscope", appauthor=False) / name


def load(path: Path) -> bytes | None:
    try:
        content = atomic.read_own(path, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        _logger.warning("kept code is not used, and will be compiled again: %s", error)
        return None
    code = _checked(path, content)
    if code is None:
        _logger.warning("%s is damaged and will be compiled again", path)
    return code


def load_packaged(path: Path) -> bytes | None:
    """Return code that came with the package, which is as trustworthy as its modules."""
    try:
        return _checked(path, path.read_bytes())
    except OSError:
        return None  # as usual: little code is there


def keep(path: Path, code: bytes, *, private: bool = True) -> None:
    if private:
        atomic.own_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(path, digest(path, code) + code, private=private, durable=False)


def try_to_keep(path: Path, code: bytes) -> None:
    """Keep code if that is possible; otherwise the next start compiles it again."""
    try:
        keep(path, code)
    except OSError as error:
        _logger.warning("compiled code cannot be kept in %s: %s", path.parent, error)


def digest(path: Path, code: bytes) -> bytes:
    """Return the start of a file: proof that the code is whole and belongs to this name."""
    return hashlib.sha256(path.name.encode() + code).digest()


def _checked(path: Path, content: bytes) -> bytes | None:
    code = content[_DIGEST:]
    return code if content[:_DIGEST] == digest(path, code) else None


def load_library(code: bytes) -> ctypes.CDLL:
    """Load a shared library from memory.

    Raises `AppError` if this computer's folder for temporary files does not allow it.
    """
    descriptor, path = tempfile.mkstemp(prefix="kernelscope-", suffix=".so")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(code)
        return ctypes.CDLL(path)
    except OSError as error:
        raise AppError(
            f"A compiled kernel cannot be loaded from {Path(path).parent}: {error}.",
            "Set TMPDIR to a folder on a disk that programs can be run from.",
        ) from error
    finally:
        Path(path).unlink(missing_ok=True)
