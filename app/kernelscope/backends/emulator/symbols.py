"""Variables of a compiled kernel, and the lines of the source that its instructions come from."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelscope.base.errors import AppError
from kernelscope.traffic.trace import SourceLine

_SECONDS = 60

_OBJECT = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [bBdDuV] (.+)$")
_SHARED = re.compile(r"\)::(\w+)$")
"""A static variable of a function: kernels have no others than shared ones."""

_PLACE = re.compile(r"([\w-]+\.cuh?):(\d+)")


class Symbols:
    """The symbols of a library that is loaded: addresses and sizes of its arrays, by name.

    Raises `AppError` if binutils is not installed.
    """

    def __init__(self, code: bytes, library: ctypes.CDLL) -> None:
        self._code = code
        self._places: dict[int, tuple[SourceLine, ...]] = {}
        self.constants: dict[str, tuple[int, int]] = {}
        self.shared: dict[str, tuple[int, int]] = {}
        known = ctypes.cast(library.emulator_run, ctypes.c_void_p).value or 0
        lines = _asked(code, "nm", "-C", "-S").splitlines()
        run = next(line for line in lines if line.endswith(" emulator_run"))
        base = known - int(run.split()[0], 16)
        for line in lines:
            match = _OBJECT.match(line)
            if match is None:
                continue
            place = base + int(match[1], 16), int(match[2], 16)
            shared = _SHARED.search(match[3])
            if shared and "emulator::" not in match[3]:
                self.shared[shared[1]] = place
            elif match[3].isidentifier():
                self.constants[match[3]] = place

    def places(self, instructions: Iterable[int]) -> dict[int, tuple[SourceLine, ...]]:
        """Return lines of a kernel's source for instructions; those of the emulator have none.

        Each has the innermost line first, and then those that it was inlined into.
        """
        wanted = set(instructions)
        missing = sorted(wanted - self._places.keys())
        if missing:
            answer = _asked(
                self._code, "addr2line", "-a", "-i", more=tuple(map(hex, missing)), named="-e"
            )
            self._places |= dict.fromkeys(missing, ()) | dict(_chains(answer))
        return {each: self._places[each] for each in wanted}

    def line(self, instruction: int) -> str:
        """Return the innermost line of an instruction as text; empty if it has none."""
        places = self.places((instruction,))[instruction]
        return str(places[0]) if places else ""


def _chains(answer: str) -> Iterator[tuple[int, tuple[SourceLine, ...]]]:
    """Yield addresses and their lines from the output of addr2line."""
    address, chain = -1, list[SourceLine]()
    for line in answer.splitlines():
        if line.startswith("0x"):
            if address >= 0:
                yield address, tuple(chain)
            address, chain = int(line, 16), []
        elif (match := _PLACE.search(line)) is not None:
            chain.append(SourceLine(match[1], int(match[2])))
    if address >= 0:
        yield address, tuple(chain)


def _asked(code: bytes, tool: str, *flags: str, more: tuple[str, ...] = (), named: str = "") -> str:
    """Return the output of a tool about a library."""
    path = shutil.which(tool)
    if path is None:
        raise AppError(f"{tool} is needed to name lines and was not found.", "Install binutils.")
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        library = Path(folder, "kernel.so")
        library.write_bytes(code)
        named_library = [named, str(library)] if named else [str(library)]
        done = subprocess.run(
            [path, *flags, *named_library, *more],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    return done.stdout
