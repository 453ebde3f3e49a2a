"""The one text that is compiled from an edited source and the headers of the program."""

from __future__ import annotations

import re
from pathlib import Path

from kernelscope.base.paths import KERNELS, RESOURCES

_ENDIF = re.compile(r"^\s*#\s*(?:endif|else|elif)\b")
_FOLDERS = (KERNELS, RESOURCES / "exercises")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"(\w[\w-]*\.cuh)"\s*(?://.*)?$')


def expanded(name: str, text: str) -> str:
    """Return an edited source with the program's headers put in place, as `read_source` does.

    A header that the program does not have stays an ``#include``, about which the compiler
    complains at its line. The compiler's messages call the source `name`.
    """
    return "\n".join(_lines(name, text, set()))


def _lines(name: str, text: str, seen: set[str]) -> list[str]:
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        match = _INCLUDE.match(line)
        header = _header(match[1]) if match is not None else None
        if match is None or header is None:
            lines.append(line)
            if _ENDIF.match(line):  # directives between were not read if the condition was false
                lines.append(f'#line {number + 1} "{name}"')
            continue
        if match[1] not in seen:
            seen.add(match[1])
            lines += _lines(match[1], header.read_text(encoding="utf-8"), seen)
        lines.append(f'#line {number + 1} "{name}"')
    return lines


def header_text(name: str) -> str:
    """Return the text of a header of the program; empty if there is none of that name."""
    header = _header(name)
    return header.read_text(encoding="utf-8") if header is not None else ""


def _header(name: str) -> Path | None:
    """Return the file of a header; None if the program has none of that name."""
    return next((folder / name for folder in _FOLDERS if (folder / name).is_file()), None)
