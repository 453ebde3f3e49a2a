"""Variables of a compiled kernel, and the lines of the source that its instructions come from."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.base.errors import AppError
from kernelscope.traffic.trace import SourceLine

_SECONDS = 60

_PLACE = re.compile(r"([\w-]+\.cuh?):(\d+)")


class Symbols:
    """The symbols of a library that is loaded: addresses and sizes of its arrays, by name.

    The lines take binutils: without it, `places` raises `AppError`.
    """

    def __init__(self, code: bytes, library: ctypes.CDLL) -> None:
        self._code = code
        self._places: dict[int, tuple[SourceLine, ...]] = {}
        self.constants: dict[str, tuple[int, int]] = {}
        self.shared: dict[str, tuple[int, int]] = {}
        known = ctypes.cast(library.emulator_run, ctypes.c_void_p).value or 0
        variables, run = _variables(code)
        for mangled, value, size in variables:
            place = known - run + value, size
            if mangled.startswith("_ZZ"):  # static in a function: kernels have shared ones alone
                if "8emulator" not in mangled:
                    self.shared[_last_name(mangled)] = place
            elif mangled.isidentifier() and not mangled.startswith("_"):
                self.constants[mangled] = place

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


_SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4")]
    + [(name, "<u8") for name in ("flags", "address", "offset", "size")]
    + [("link", "<u4"), ("info", "<u4"), ("alignment", "<u8"), ("entry", "<u8")]
)
_SYMBOL = np.dtype(
    [
        *(("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2")),
        *(("value", "<u8"), ("size", "<u8")),
    ]
)
_TABLE, _WRITABLE = 2, 1  # type and flag of a section
_OBJECT, _FUNCTION = 1, 2  # types of symbols


def _variables(code: bytes) -> tuple[list[tuple[str, int, int]], int]:
    """Return (name, address, size) of each variable of an ELF file of 64 bits, and `emulator_run`.

    To start binutils for it takes longer than a small kernel runs.
    """
    first, count = int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little")
    sections = np.frombuffer(code, _SECTION, count, first)
    table = sections[sections["type"] == _TABLE][0]
    symbols = np.frombuffer(code, _SYMBOL, int(table["size"]) // _SYMBOL.itemsize, table["offset"])
    names = int(sections[table["link"]]["offset"])

    def name(symbol: Any) -> str:
        start = names + int(symbol["name"])
        return code[start : code.index(b"\0", start)].decode()

    inside = symbols["section"] < count  # of a section of this file
    writable = sections["flags"][np.where(inside, symbols["section"], 0)] & _WRITABLE
    variables = symbols[inside & (writable != 0) & (symbols["info"] & 15 == _OBJECT)]
    functions = symbols[inside & (symbols["info"] & 15 == _FUNCTION)]
    run = next(each["value"] for each in functions if name(each) == "emulator_run")
    return [(name(each), int(each["value"]), int(each["size"])) for each in variables], int(run)


def _last_name(mangled: str) -> str:
    """Return the name of a static variable of a function, which its length precedes."""
    for match in reversed([*re.finditer(r"E(\d+)", mangled)]):
        end = match.end() + int(match[1])
        if end <= len(mangled) and re.fullmatch(r"(_\d+_?)?", mangled[end:]):
            return mangled[match.end() : end]
    return mangled


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
