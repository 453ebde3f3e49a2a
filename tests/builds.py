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

from tests.paths import ROOT

_BUILDS = "KERNELSCOPE_BUILDS"
"""Environment variable: the folder."""

BYTECODE = ROOT / "build" / "bytecode"
"""Outlasts the session: Python compares the time and size of each source with those it compiled."""


def open_folder() -> Callable[[], None]:
    """Make the folder; return a function that removes it."""
    folder = os.environ[_BUILDS] = tempfile.mkdtemp(prefix="kernelscope-builds-")
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def keep_bytecode() -> None:
    """Have bytecode written to `BYTECODE` where it may not be written beside sources.

    Without it each session rewrites the assertions of all tests in each worker, which takes as long
    as half of the quick loop, and each of the hundreds of processes that tests start compiles the
    program and its libraries again, for two to three seconds of processor time.
    """
    if not sys.dont_write_bytecode:
        return
    try:
        BYTECODE.mkdir(parents=True, exist_ok=True)
        folder = BYTECODE
    except OSError:
        folder = Path(os.environ[_BUILDS], "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder)


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
