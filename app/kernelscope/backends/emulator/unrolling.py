"""Makes a host compiler unroll the loops that a GPU's compiler unrolls.

How often a kernel reads a cell depends on it: a window that is unrolled is kept in registers, one
that is not is read again. `-O3` unrolls most loops of a known length; here those are marked that
the sources ask to unroll, and not to.
"""

from __future__ import annotations

import re

_ANY = re.compile(r"#pragma unroll[ ]*$", re.MULTILINE)
# Others may become a condition, see laps.py, which must not follow a pragma.
_ALWAYS = re.compile(
    r"#pragma unroll[ ]*$(?=\n\s*for \((?:int|unsigned) \w+ = \w+; )", re.MULTILINE
)
_NEVER = re.compile(r"#pragma unroll[ ]+1[ ]*$", re.MULTILINE)
_SOMETIMES = re.compile(
    r"#pragma unroll +(?P<times>\S+)\n"
    r"(?P<loop>\s*for \(int (?P<name>\w+) = [^;\n]*); (?P<condition>[^;\n]*);"
)

PRELUDE = """\
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
