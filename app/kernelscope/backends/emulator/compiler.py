"""Compiles translated kernels with a C++ compiler of this computer, and loads them.

Libraries are kept on disk like cubins: private, and checked before they are loaded.
"""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from kernelscope.backends.cuda.compiler import CompileError, Cubin, CubinCache
from kernelscope.base import compiled
from kernelscope.base.compiled import load_library

STANDARD = "c++17"

_SECONDS = 600
"""A kernel takes under a second to compile. The first one of Zig takes a minute, since it makes its
C++ library, and was stopped at 120 seconds on a computer with ten times as much work as cores."""

_FLAGS = (
    f"-std={STANDARD}",
    "-O2",
    "-fPIC",
    "-shared",
    "-w",
    # Shared memory of templates would be one for all libraries that have a kernel of that name.
    "-fvisibility=hidden",
    # As on a GPU: no excess precision, and integers that wrap around.
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fwrapv",
)

_WATCHED = (
    "-O1",
    "-gdwarf-4",  # binutils may mistake the names of files in newer tables
    "-g1",
    "-fsanitize=thread,bounds",
    "-fno-exceptions",
    "-nodefaultlibs",
    "-lgcc",
)
"""The compiler calls `checks.h` for each access to memory, in place of its own library."""


_TRACED = (
    "-O3",
    # Loops of a known length, as a GPU's compiler unrolls them.
    "--param=max-completely-peeled-insns=100000",
    "--param=max-completely-peel-times=64",
    "--param=max-peel-branches=512",
    # A pixel on the rim is written by an instruction of its own, as on a GPU.
    "-fno-tree-tail-merge",
    "-fno-crossjumping",
    # A block runs once: these passes, which come after the accesses are marked, do not pay.
    "-fno-schedule-insns2",
    "-fno-gcse",
    "-fno-rerun-cse-after-loop",
    "-fno-cse-follow-jumps",
    "-fno-cprop-registers",
    "-fno-ree",
    "-fno-peephole2",
    "-gdwarf-4",
    "-g1",
    "-fsanitize=thread",
    "-fsanitize-coverage=trace-pc",
    "-fno-exceptions",
    "-fno-gnu-unique",  # two copies of a library run at once
    "-nodefaultlibs",
    "-lgcc",
)
"""The compiler calls `trace.h` for each access to memory and each branch."""


class HostCompiler:
    """A C++ compiler that makes libraries for this computer."""

    through = ""

    def __init__(self, command: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
        self._command = command
        self._flags = (*_FLAGS, *more)
        self.name = Path(command[0]).name if len(command) == 1 else "Zig"

    def watching(self) -> HostCompiler:
        """Return the same compiler, for libraries that watch their accesses to memory."""
        return HostCompiler(self._command, _WATCHED)

    def tracing(self) -> HostCompiler:
        """Return the same compiler, for libraries that count and record their accesses."""
        return HostCompiler(self._command, _TRACED)

    @classmethod
    def find(cls, *more: str) -> HostCompiler | None:
        """Return g++, clang++ or the one in the package `ziglang`; None if none is installed.

        `more` are flags to add.
        """
        for name in ("g++", "clang++"):
            if path := shutil.which(name):
                return cls((path,), more)
        if importlib.util.find_spec("ziglang") is not None:
            return cls((sys.executable, "-m", "ziglang", "c++"), more)
        return None

    @functools.cached_property
    def _version(self) -> str:
        done = subprocess.run(
            [*self._command, "--version"], capture_output=True, text=True, timeout=_SECONDS
        )
        return done.stdout.partition("\n")[0]

    def version(self) -> str:
        return f"{self._version} {' '.join(self._flags)}"

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        """Return a shared library of `source`, which has its macros already.

        Raises `CompileError` with the compiler's messages.
        """
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
            text, library = Path(folder, f"{name}.cpp"), Path(folder, f"{name}.so")
            text.write_text(source, encoding="utf-8")
            try:
                done = subprocess.run(
                    [*self._command, text, *self._flags, "-o", library],
                    capture_output=True,
                    text=True,
                    timeout=_SECONDS,
                )
            except subprocess.TimeoutExpired as error:
                reason = f"it took more than {error.timeout:.0f} seconds. Try again."
                raise CompileError(name, self.name, reason) from error
            except OSError as error:
                raise CompileError(name, self.name, str(error)) from error
            if done.returncode:
                raise CompileError(name, self.name, done.stderr)
            return Cubin(library.read_bytes(), done.stderr)


def library_cache(compiler: HostCompiler) -> CubinCache:
    """Return the libraries that were compiled before, and where new ones go."""
    return CubinCache(compiler, compiled.cache_folder("emulator"))


_spare: dict[bytes, list[ctypes.CDLL]] = {}
_sparing = threading.Lock()


def take_library(code: bytes) -> ctypes.CDLL:
    """Return a loaded library that has no other user: a run has its state in static variables."""
    with _sparing:
        spare = _spare.get(code)
        return spare.pop() if spare else load_library(code)


def leave_libraries(libraries: dict[bytes, ctypes.CDLL]) -> None:
    """Leave libraries to those who take them next: with shared stacks they cannot be unloaded."""
    with _sparing:
        while libraries:
            code, library = libraries.popitem()
            _spare.setdefault(code, []).append(library)


def unload_library(library: ctypes.CDLL) -> None:
    """Let go of a library; no thread may be in it, and nobody may call it any more."""
    if sys.platform == "win32":
        _ctypes.FreeLibrary(library._handle)
    else:
        _ctypes.dlclose(library._handle)
