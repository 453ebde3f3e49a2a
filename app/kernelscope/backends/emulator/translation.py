"""Makes C++ for the host of CUDA C++.

`emulator.h` has almost everything that CUDA adds, as macros and functions. What no macro can
express is replaced in the text, line for line: dynamic shared memory, instructions in assembler and
the linkage of kernels. For traces, loops are unrolled as a GPU's compiler does, and laps of others
are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HEADER = Path(__file__).with_name("emulator.h")

CHECKS = (HEADER.with_name("checks.h"),)  # finds mistakes

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


# Unrolled loops ------------------------------------------------------------------------
#
# How often a kernel reads a cell depends on it: a window that is unrolled is kept in registers, one
# that is not is read again. `-O3` unrolls most loops of a known length; here those are marked that
# the sources ask to unroll, and not to.

_ANY = re.compile(r"#pragma unroll[ ]*$", re.MULTILINE)
# Others may become a condition, see `laps_counted`, which must not follow a pragma.
_ALWAYS = re.compile(
    r"#pragma unroll[ ]*$(?=\n\s*for \((?:int|unsigned) \w+ = \w+; )", re.MULTILINE
)
_NEVER = re.compile(r"#pragma unroll[ ]+1[ ]*$", re.MULTILINE)
_SOMETIMES = re.compile(
    r"#pragma unroll +(?P<times>\S+)\n"
    r"(?P<loop>\s*for \(int (?P<name>\w+) = [^;\n]*); (?P<condition>[^;\n]*);"
)

UNROLLING = """\
namespace emulator {
// Whether a loop is unrolled may depend on a template, but not for a pragma of the host's
// compiler. In a loop that is not, all reads take place again.
template <int TIMES>
__attribute__((always_inline)) inline bool unrolled(int& index)
{
    if (TIMES <= 1) asm volatile("" : "+r"(index) : : "memory");
    return true;
}
}  // namespace emulator
"""


def unrolled(text: str) -> str:
    """Return the CUDA source `text` with its pragmas for the host; lines stay where they are."""
    text = _NEVER.sub("#pragma GCC unroll 1", text)
    text = _ANY.sub("", _ALWAYS.sub("#pragma GCC unroll 64", text))
    return _SOMETIMES.sub(
        r"\n\g<loop>; emulator::unrolled<(\g<times>)>(\g<name>) && (\g<condition>);", text
    )


# Laps ----------------------------------------------------------------------------------
#
# A loop that begins at the thread's own index, as those do that copy a tile, ends earlier for some
# lanes of a warp. On a GPU the others wait for them at its end. So that the n-th lap of one lane is
# joined with the n-th of the others, whatever happened in loops before, it counts its laps.

_LOOP = re.compile(r"(?P<pragma>#pragma GCC unroll 1\n)?(?P<space>[ \t]*)\bfor \(")


def laps_counted(text: str) -> str:
    """Return CUDA source, with the pragmas of the host's compiler, whose loops count laps.

    Those are the loops from a thread's index; lines stay where they are.
    """
    parts, end = [], 0
    for number, match in enumerate(_LOOP.finditer(text)):
        if match.start() < end:
            continue  # in the head of another loop
        stop = closing(text, match.end())
        fields = list(split(text[match.end() : stop], ";"))
        if len(fields) != 3 or "threadIdx" not in fields[0]:
            continue
        first, condition, step = fields
        pragma = '_Pragma("GCC unroll 1") ' if match["pragma"] else ""
        parts += [
            text[end : match.start()],
            "\n" * bool(pragma),
            match["space"],
            f"if (emulator::checks::Loop loop_({number}); false) {{}} else {pragma}",
            f"for ({first}; loop_.turn(), ({condition}); {step})",
        ]
        end = stop + 1
    return "".join([*parts, text[end:]])
