"""CUDA sources: one self-contained text for each filter."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
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
