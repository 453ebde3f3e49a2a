"""CUDA sources: one self-contained text for each filter."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelscope.base.paths import KERNELS

_ENDIF = re.compile(r"^\s*#(?:endif|else|elif)\b")
_INCLUDE = re.compile(r'^\s*#include\s+"([\w.]+)"\s*$', re.MULTILINE)


@functools.cache
def read_source(filter_id: str) -> str:
    """Return the filter's ``.cu`` with its headers put in place.

    ``#line`` directives keep file names and line numbers of compiler messages right.
    One text, because compilers that look for headers on disk cannot be cached by content,
    and NVRTC has no disk.
    """
    return _expand(KERNELS / f"{filter_id}.cu", set())


def _expand(path: Path, seen: set[str]) -> str:
    seen.add(path.name)
    lines = [f'#line 1 "{path.name}"']
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = _INCLUDE.match(line)
        if match is None:
            lines.append(line)
            if _ENDIF.match(line):  # directives between were not read if the condition was false
                lines.append(f'#line {number + 1} "{path.name}"')
            continue
        if match[1] not in seen:
            lines.append(_expand(path.with_name(match[1]), seen))
        lines.append(f'#line {number + 1} "{path.name}"')
    return "\n".join(lines)


@dataclass(frozen=True)
class SourceFile:
    """A file of a filter's CUDA source, for reading."""

    name: str
    text: str


def source_files(filter_id: str) -> tuple[SourceFile, ...]:
    """Return the filter's ``.cu`` and then its headers, each once, as they are included."""
    names = [f"{filter_id}.cu"]
    files = []
    for name in names:  # grows on the way
        text = (KERNELS / name).read_text(encoding="utf-8")
        files.append(SourceFile(name, text))
        names += [found for found in _INCLUDE.findall(text) if found not in names]
    return tuple(files)


def find_function(
    lines: Sequence[str], name: str, active: Sequence[bool] | None = None
) -> tuple[int, int] | None:
    """Return the first line of a function, with its comment, and the one after the last.

    - `active`: whether each line is compiled; a function in others is passed over.
    """
    kept = [n for n in range(len(lines)) if active is None or active[n]]
    start = next((n for n in kept if re.search(rf"\b{name}\(", lines[n])), None)
    if start is None:
        return None
    end = next((n for n in kept if n >= start and lines[n].startswith("}")), start)
    while start and lines[start - 1].startswith(("template", "//", 'extern "C"', "__")):
        start -= 1
    return start, end + 1


# The lines that the macros of a launch leave in ----------------------------------------
#
# A viewer has to know them, for a kernel may be written several times, one version a branch. The
# compiler's own preprocessor is not asked, because reading kernels needs no compiler.

_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_DEFINITION = re.compile(r"(\w+)(\(?)\s*(.*)")
_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|\d+(?![\w.])|\w+|&&|\|\||[=!<>]=|<<|>>|[-+*/%!<>()?:])")

_DEEPEST = 32  # macros within macros; more is a macro that names itself

_OPERATORS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": lambda a, b: a << b, ">>": lambda a, b: a >> b},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {
        "*": lambda a, b: a * b,
        "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "%": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    },
)
"""Of two operands, those that bind least first."""


class _Unknown(Exception):
    """A condition that depends on more than the macros: on the GPU, say."""


def active_lines(
    files: Sequence[SourceFile], defines: Mapping[str, str]
) -> dict[str, tuple[bool, ...]]:
    """Return whether each line of a source and its headers is compiled, by the name of the file.

    Directives count as the lines around them. Where a condition depends on the GPU as well, each of
    its branches counts as compiled.
    """
    reader = _Reader({file.name: file.text.split("\n") for file in files}, dict(defines))
    if files:
        reader.read(files[0].name)
    return {name: tuple(flags) for name, flags in reader.active.items()}


@dataclass(frozen=True)
class FunctionPlace:
    """Where a function is: its file, the first line (from 0) and the one after the last."""

    file: str
    start: int
    stop: int


def find_kernel(
    files: Sequence[SourceFile], name: str, defines: Mapping[str, str]
) -> FunctionPlace | None:
    """Return where the function `name` is, in the version that is compiled with `defines`."""
    active = active_lines(files, defines)
    for file in files:
        found = find_function(file.text.split("\n"), name, active[file.name])
        if found is not None:
            return FunctionPlace(file.name, *found)
    return None


class _Reader:
    """Reads files as a preprocessor does, and notes the lines that it keeps."""

    def __init__(self, texts: Mapping[str, list[str]], macros: dict[str, str | None]) -> None:
        self._texts = texts
        self._macros = macros
        self.active = {name: [False] * len(lines) for name, lines in texts.items()}

    def read(self, name: str) -> None:
        """Read a file; one that is not there is left out."""
        branches: list[_Branches] = []
        for number, line in enumerate(self._texts.get(name, ())):
            match = _DIRECTIVE.match(line)
            word, rest = (match[1], _COMMENT.sub("", match[2]).strip()) if match else ("", "")
            if word in ("if", "ifdef", "ifndef"):
                outer = not branches or branches[-1].taken
                self.active[name][number] |= outer
                branches.append(_Branches(outer))
                self._branch(branches[-1], word, rest)
            elif word in ("elif", "else") and branches:
                self.active[name][number] |= branches[-1].outer
                self._branch(branches[-1], word, rest)
            elif word == "endif" and branches:
                self.active[name][number] |= branches.pop().outer
            elif not branches or branches[-1].taken:
                self.active[name][number] = True
                self._obey(word, rest)

    def _branch(self, branches: _Branches, word: str, rest: str) -> None:
        if not branches.outer or branches.done:
            branches.taken = False
            return
        try:
            if word == "else":
                holds = True
            elif word in ("if", "elif"):
                holds = bool(_Expression(rest, self._macros).value())
            else:
                holds = (rest in self._macros) == (word == "ifdef")
        except _Unknown:
            branches.taken = True  # and the next ones as well
            return
        branches.taken = branches.done = holds

    def _obey(self, word: str, rest: str) -> None:
        if word == "include":
            if rest.startswith('"'):
                self.read(rest.strip('"'))
        elif word == "undef":
            self._macros.pop(rest, None)
        elif word == "define":
            match = _DEFINITION.match(rest)
            if match is not None:  # no condition asks for a macro with parameters
                self._macros[match[1]] = None if match[2] else match[3]


@dataclass
class _Branches:
    """An ``#if`` and the rest of it."""

    outer: bool  # whether the lines around it are compiled
    # Whether the branch being read is; whether one was for certain, so that no other will be.
    taken: bool = False
    done: bool = False


class _Expression:
    def __init__(self, text: str, macros: Mapping[str, str | None], depth: int = 0) -> None:
        self._macros = macros
        self._depth = depth
        self._tokens: list[str] = []
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if match is None:
                raise _Unknown
            self._tokens.append(match[1])
            place = match.end()
        self._tokens.reverse()

    def value(self) -> int:
        """Return its value; raise `_Unknown` if it depends on the GPU, or is beyond this reader."""
        if self._depth > _DEEPEST:
            raise _Unknown
        value = self._choice()
        if self._tokens:
            raise _Unknown
        return value

    def _next(self, *accepted: str) -> str:
        """Take the next token if it is one of those, or any if none is given; else ''."""
        if self._tokens and (not accepted or self._tokens[-1] in accepted):
            return self._tokens.pop()
        return ""

    def _choice(self) -> int:
        condition = self._binary(0)
        if not self._next("?"):
            return condition
        first = self._choice()
        if not self._next(":"):
            raise _Unknown
        second = self._choice()
        return first if condition else second

    def _binary(self, rank: int) -> int:
        if rank == len(_OPERATORS):
            return self._unary()
        value = self._binary(rank + 1)
        while operator := self._next(*_OPERATORS[rank]):
            try:
                value = _OPERATORS[rank][operator](value, self._binary(rank + 1))
            except (ArithmeticError, ValueError):
                raise _Unknown from None
        return value

    def _unary(self) -> int:
        token = self._next()
        if token == "!":
            return int(not self._unary())
        if token in ("-", "+"):
            return self._unary() * (-1 if token == "-" else 1)
        if token == "(":
            value = self._choice()
            if not self._next(")"):
                raise _Unknown
            return value
        if token == "defined":
            bracket = self._next("(")
            known = self._next() in self._macros
            if bracket and not self._next(")"):
                raise _Unknown
            return int(known)
        if token[:1].isdigit():
            return int(token, 0)
        return self._name(token)

    def _name(self, name: str) -> int:
        if name.startswith("__") or not name.isidentifier():
            raise _Unknown  # __CUDA_ARCH__ is another for each GPU
        if name not in self._macros:
            return 0  # as in C
        text = self._macros[name]
        if text is None:
            raise _Unknown
        return _Expression(text, self._macros, self._depth + 1).value() if text else 0
