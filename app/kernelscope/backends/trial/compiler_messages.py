"""Errors and warnings out of the output of compilers, with their files and lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST_MESSAGES = 200  # a missing bracket can cause thousands

ERROR, WARNING = "error", "warning"

_NVCC = re.compile(
    r"^(?P<file>[^\s():]+)\((?P<line>\d+)\): "
    r"(?P<kind>(?:catastrophic |fatal )?error|warning)(?: #(?P<code>[\w-]+))?: (?P<text>.*)$"
)
_GCC = re.compile(
    r"^(?P<file>[^\s():]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>(?:fatal )?error|warning): (?P<text>.*?)(?: \[(?P<code>-W[^\]]+)\])?$"
)
_ASSEMBLER = re.compile(r"^\s*ptxas (?P<kind>error|fatal|warning)\s*: (?P<text>.*)$")
_LINKER = re.compile(r"(?P<text>undefined (?:reference to|symbol:?) .*)$")
_CARET = re.compile(r"^\s*\^\s*$")


@dataclass(frozen=True)
class CompilerMessage:
    kind: str  # `ERROR` or `WARNING`
    text: str
    file: str = ""  # empty if it is about no line, as those of the assembler
    line: int = 0  # from 1 on; 0 if it is about no line
    column: int = 0  # from 1 on, in characters; 0 if it is unknown


def parse(log: str) -> tuple[CompilerMessage, ...]:
    """Return the messages in the output of NVRTC, nvcc, g++ or clang, each once, errors first."""
    found: dict[CompilerMessage, None] = {}
    lines = log.replace("\0", "\n").splitlines()  # NVRTC has one in front of ptxas's errors
    for number, line in enumerate(lines):
        match = _NVCC.match(line) or _GCC.match(line)
        if match is None:
            other = _ASSEMBLER.match(line)
            linker = _LINKER.search(line)
            if other is not None:
                kind = WARNING if other["kind"] == WARNING else ERROR
                found.setdefault(CompilerMessage(kind, other["text"].strip()))
            elif linker is not None:
                found.setdefault(CompilerMessage(ERROR, linker["text"].strip()))
            continue
        column = match.groupdict().get("column")
        found.setdefault(
            CompilerMessage(
                WARNING if match["kind"] == WARNING else ERROR,
                match["text"].strip(),
                match["file"],
                int(match["line"]),
                int(column) if column else _column(lines[number + 1 : number + 4]),
            )
        )
    ordered = sorted(found, key=lambda each: each.kind != ERROR)
    return tuple(ordered[:MOST_MESSAGES])


def _column(following: Iterable[str]) -> int:
    """Return the column that a caret below the quoted line points at; 0 without one."""
    quoted = ""
    for line in following:
        if _CARET.match(line):
            # NVRTC puts two spaces in front of the line that it quotes.
            return max(line.index("^") - 1, 0) if quoted.startswith("  ") else 0
        quoted = line
    return 0
