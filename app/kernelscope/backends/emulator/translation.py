"""Makes C++ for the host of CUDA C++.

`emulator.h` has almost everything that CUDA adds, as macros and functions. What no macro can
express is replaced in the text, line for line: dynamic shared memory, instructions in assembler and
the linkage of kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HEADER = Path(__file__).with_name("emulator.h")

CHECKS = (HEADER.with_name("checks.h"),)
"""Finds mistakes."""

TRACE = tuple(HEADER.with_name(name) for name in ("counting.h", "vectors.h", "trace.h"))
"""Counts and records."""

_OPENING, _CLOSING = "([{", ")]}"
_DYNAMIC = re.compile(r"extern __shared__\s+(?:__align__\(\d+\)\s+)?([\w: ]+?)\s+(\w+)\[\];")
_OF_ALL = re.compile(f"^{_DYNAMIC.pattern}", re.MULTILINE)
_LINKAGE = re.compile(r'extern "C"(?=[^;{}]*__global__)')
_ASSEMBLER = re.compile(r"\basm(?: volatile)?\(")
_INSTRUCTION = re.compile(r"\b([a-z]\w*(?:\.\w+)+)\b(?= )")


def translate(
    source: str, defines: Mapping[str, str], kernel: str, *, watch: Sequence[Path] = ()
) -> str:
    """Return C++ that exports a function ``emulator_run`` for one kernel of a CUDA source.

    The source has its headers in place. `watch` are headers that look at accesses to memory, for a
    compiler that watches them.
    """
    text = _LINKAGE.sub("", _instructions_called(source))
    # Outside functions a macro, because the memory is another one for each block.
    text = _OF_ALL.sub(r"#define \2 ((\1*)DYNAMIC_SHARED_MEMORY)", text)
    text = _DYNAMIC.sub(r"\1* const \2 = (\1*)DYNAMIC_SHARED_MEMORY;", text)
    # Behind the header, whose names no macro may change.
    macros = "".join(f"#define {name} {value}\n" for name, value in sorted(defines.items()))
    header = _included(HEADER)
    if watch:
        header = "\n".join(["#define CHECKED", header, *map(_included, watch)])
    return f"{header}\n{macros}{text}\nEMULATE({kernel})\n"


def _included(path: Path) -> str:
    return f'#line 1 "{path.name}"\n{path.read_text(encoding="utf-8")}'


def _instructions_called(text: str) -> str:
    """Return `text` with calls of functions, named like them, in place of instructions."""
    parts, end = [], 0
    for match in _ASSEMBLER.finditer(text):
        stop = closing(text, match.end())
        fields = list(split(text[match.end() : stop], ":"))
        names = _INSTRUCTION.findall(fields[0])
        operands = [
            operand.strip().split("(", 1)[1].rsplit(")", 1)[0]
            for field in fields[1:3]
            for operand in split(field, ",")
            if operand.strip()
        ]
        # Moves between registers belong to the instruction.
        name = next((name for name in names if not name.startswith("mov.")), None)
        call = f"{name.replace('.', '_')}({', '.join(operands)})" if name else "(void)0"
        lines = text.count("\n", match.start(), stop)
        parts += [text[end : match.start()], call, "\n" * lines]
        end = stop + 1
    return "".join([*parts, text[end:]])


def closing(text: str, start: int) -> int:
    """Return where the bracket closes that was opened before `start`."""
    depth, quoted = 1, False
    for at in range(start, len(text)):
        quoted ^= text[at] == '"'
        if not quoted:
            depth += (text[at] in _OPENING) - (text[at] in _CLOSING)
        if depth == 0:
            return at
    return len(text)  # the compiler will report it


def split(text: str, mark: str) -> Iterator[str]:
    """Yield the parts of `text` between marks outside brackets and quotes."""
    depth, quoted, start = 0, False, 0
    for at, character in enumerate(text):
        quoted ^= character == '"'
        if quoted:
            continue
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == mark and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
