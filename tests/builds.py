"""A folder for what the tests compile: one for a session, shared by the workers of xdist."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

_BUILDS = "KERNELSCOPE_BUILDS"
"""Environment variable: the folder."""


def open_folder() -> Callable[[], None]:
    """Make the folder; return a function that removes it."""
    folder = os.environ[_BUILDS] = tempfile.mkdtemp(prefix="kernelscope-builds-")
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def keep_bytecode() -> None:
    """Have the processes of the tests write bytecode to the folder if they may not beside sources.

    Each of them, and there are hundreds, would compile the program and its libraries again, which
    takes two to three seconds of processor time.
    """
    if sys.dont_write_bytecode:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(os.environ[_BUILDS], "bytecode"))


def built(make: Callable[[Path], None], suffix: str, *key: object) -> Path:
    """Return the file that `make` writes, written once for each `key`.

    Two workers that need it at the same moment both make it: waiting would take as long.
    """
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
    path = Path(os.environ[_BUILDS], f"{digest}{suffix}")
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder, path.name)
            make(made)
            made.replace(path)
    return path


def precompiled(header: str, command: Sequence[str]) -> Path:
    """Return the path of a C++ `header` that g++ has compiled, called with those flags.

    The text is there as well: g++ takes it where it cannot map the compiled one.
    """

    def write(path: Path) -> None:
        path.write_text(header, encoding="utf-8")

    def make(path: Path) -> None:
        subprocess.run((*command, "-x", "c++-header", str(text), "-o", str(path)), check=True)

    text = built(write, ".h", header, command)
    built(make, ".h.gch", header, command)
    return text
