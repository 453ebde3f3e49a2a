"""The one place that writes files of the bench: reports, tables and plots."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kernelscope.base import atomic
from kernelscope.base.errors import AppError

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}


def write_text(path: Path, text: str) -> None:
    write(path, text.encode())


def write(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that it is never half written; or send `data` to a stream."""
    try:
        descriptor = _descriptor(path)
        if descriptor is not None:
            # Opening it again would write to the start of a file behind the stream.
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        elif is_stream(path):
            with path.open("wb") as stream:
                stream.write(data)
        else:
            atomic.replace(atomic.target_of(path), data, durable=False)
    except (OSError, ValueError) as error:  # a null character
        detail = error.strerror if isinstance(error, OSError) else error
        raise AppError(f"“{path}” cannot be written: {detail}.", "Choose another place.") from None


def is_stream(path: Path) -> bool:
    """Return whether `path` is a pipe, a device or a descriptor, which cannot be replaced.

    ``/dev/stdout`` is one even if the shell redirected it to a file: replacing that file would
    lose the other output.
    """
    if _descriptor(path) is not None:
        return True
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError):
        return False


def _descriptor(path: Path) -> int | None:
    """Return the number of the open file that `path` stands for; None if it is not one."""
    match = _DESCRIPTOR.fullmatch(str(path))
    return int(match[1]) if match else _STANDARD.get(str(path))
