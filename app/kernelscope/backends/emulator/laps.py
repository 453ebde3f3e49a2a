"""Marks the loops that lanes of a warp may run through differently often.

A loop that begins at the thread's own index, as those do that copy a tile, ends earlier for some
lanes. On a GPU the others wait for them at its end. So that the n-th lap of one lane is joined
with the n-th of the others, whatever happened in loops before, such a loop counts its laps.
"""

from __future__ import annotations

import re

from kernelscope.backends.emulator.translation import closing, split

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
