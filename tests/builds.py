"""A folder for what the tests compile, shared by the workers of xdist and by later sessions."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.paths import ROOT

_BUILDS = "KERNELSCOPE_BUILDS"
"""Environment variable: the folder."""

KEPT = ROOT / "build" / "tests"
"""Outlasts the session, since the name of each file is a hash of everything that it was made of."""

_ROOM = 1 << 20
"""Bytes that have to fit into the folder, or it is not used."""

_MOST_AGE = 30 * 24 * 3600
"""Seconds after which a file that no session has used is removed."""


def open_folder() -> tuple[Callable[[], None], str]:
    """Make the folder; return how to clean up, and a line if it is one for this session only."""
    try:
        KEPT.mkdir(parents=True, exist_ok=True)
        _remove_old(KEPT)
        with tempfile.TemporaryFile(dir=KEPT) as probe:
            probe.write(bytes(_ROOM))
            probe.flush()
        os.environ[_BUILDS] = str(KEPT)
    except OSError as error:  # sources that may only be read, or a full disk
        try:
            folder = os.environ[_BUILDS] = tempfile.mkdtemp(prefix="kernelscope-builds-")
        except OSError as other:
            raise pytest.UsageError(f"{other}. Free some space, or set TMPDIR.") from other
        note = f"{KEPT} cannot be written ({error.strerror}): this run compiles everything again"
        return lambda: shutil.rmtree(folder, ignore_errors=True), note
    return lambda: None, ""


def _remove_old(folder: Path) -> None:
    """Remove files that were not used for long, and what interrupted sessions left there."""
    oldest = time.time() - _MOST_AGE
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
    for path in folder.glob("*/"):
        if path.stat().st_mtime < oldest and not any(path.iterdir()):
            path.rmdir()


def keep_bytecode() -> None:
    """Have bytecode written to the folder where it may not be written beside sources.

    Without it each session rewrites the assertions of all tests in each worker, which takes as long
    as half of the quick loop, and each of the hundreds of processes that tests start compiles the
    program and its libraries again, for two to three seconds of processor time. Python compares the
    time and size of each source with those that it compiled.
    """
    if sys.dont_write_bytecode:
        folder = str(kept("bytecode"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        sys.dont_write_bytecode, sys.pycache_prefix = False, folder


def kept(name: str) -> Path:
    """Return a folder in the folder."""
    return Path(os.environ[_BUILDS], name)


def built(make: Callable[[Path], None], suffix: str, *key: object) -> Path:
    """Return the file that `make` writes, written once for each `key`.

    The `key` has everything that decides the content, the version of a compiler too. Two workers
    that need it at the same moment both make it: waiting would take as long. A file that was cut
    off or comes from elsewhere is made again: g++ reports such a header as one that is missing.
    """
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
    path = Path(os.environ[_BUILDS], f"{digest}{suffix}")
    problem = ""
    try:
        if not _is_whole(path):
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                made = Path(folder, path.name)
                make(made)
                _sum_of(path).write_text(_digest(made), encoding="ascii")
                made.replace(path)
            _whole.add(path)
        for each in (path, _sum_of(path)):
            each.touch()  # still used, see `_remove_old`
    except OSError as error:  # a full disk
        problem = f"{path.parent} cannot be written: {error}. Free some space."
    except subprocess.CalledProcessError as error:  # the same in a compiler, or a wrong source
        lines = [*error.stderr.splitlines(), f"status {error.returncode}"]
        cause = next((line for line in lines if "error:" in line), lines[0])
        problem = f"{error.cmd[0]} wrote nothing to {path.parent}: {cause}"
    if problem:
        pytest.fail(problem, pytrace=False)
    return path


_whole: set[Path] = set()
"""Files that this process has made or looked at: to read a header takes a tenth of a second."""


def _is_whole(path: Path) -> bool:
    """Return whether a file is there as it was written."""
    both = path.exists() and _sum_of(path).exists()
    if both and path not in _whole:
        if _digest(path) != _sum_of(path).read_text("ascii", "replace"):
            return False
        _whole.add(path)
    return both


def _sum_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sum")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def version(compiler: str) -> str:
    """Return what a C++ compiler prints as its version."""
    return subprocess.run((compiler, "--version"), capture_output=True, text=True).stdout


def precompiled(header: str, command: Sequence[str], suffix: str = ".h.gch") -> Path:
    """Return the path of a C++ `header` that g++ has compiled, called with those flags.

    The text is beside it: g++ takes that where it cannot map the compiled one.
    """

    def write(path: Path) -> None:
        path.write_text(header, encoding="utf-8")

    def make(path: Path) -> None:
        language = ("-x", "c++-header") if suffix == ".h.gch" else ("-c", "-x", "c++")
        compile_ = (*command, *language, str(text), "-o", str(path))
        subprocess.run(compile_, check=True, stderr=subprocess.PIPE, text=True)

    key = header, command, version(command[0])
    text = built(write, ".h", *key)
    made = built(make, suffix, *key)
    return text if suffix == ".h.gch" else made
