"""Text made safe to show and to store, as file names may hold any bytes; lists in words; names."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Sequence
from typing import Any
from unicodedata import category

PROGRAM = "kernelscope"  # name of the command


def printable(text: str) -> str:
    """Return `text` with its control characters escaped, except for line breaks.

    A terminal would execute them: clear the screen, or show another name. Spaces of any width stay:
    they group digits, and stand in names.
    """
    if text.replace("\n", "").isprintable():
        return text  # nearly always
    return "".join(
        character
        if character.isprintable() or character == "\n" or category(character) == "Zs"
        else repr(character)[1:-1]
        for character in text
    )


class PrintableFormatter(logging.Formatter):
    """Formats log records, which may name files, as `printable` does."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def one_line(text: str) -> str:
    """Return `text` as `printable` does, with line breaks escaped too."""
    return printable(text.replace("\n", "\\n"))


_ODD = "\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""Control characters, and bytes of names that are not UTF-8, as Python has them (surrogates)."""


def json_text(content: Any, indent: int | None = None) -> str:
    """Return JSON with the characters of names that no text file can hold as escapes.

    ``json.loads`` restores them: a byte 0xff that is not UTF-8 is written as ``\\udcff``, and
    ``os.fsencode`` makes it the byte again.
    """
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    return re.sub(f"[{_ODD}]", lambda found: f"\\u{ord(found[0]):04x}", text)


def table_text(name: str) -> str:
    """Return a name for a cell of a table; one that a cell cannot hold as a string of JSON.

    So whatever begins with a quotation mark is JSON, and everything else is the name itself.
    """
    return json_text(name) if re.search(f'^"|[\x00-\x1f{_ODD}]', name) else name


def without_name(text: str, name: str) -> str:
    """Return a message on a file to be written behind its name, which most of them begin with."""
    return text.removeprefix(f"{name}: ")


def enumerated(words: Sequence[str], last: str = "and") -> str:
    """Return “A”, “A and B”, “A, B and C”; nothing for no words."""
    *others, final = words or ("",)
    return f"{', '.join(others)} {last} {final}" if others else final


def significant(value: float) -> str:
    """Return a measured number with three significant digits, never as a power of ten.

    Zeros at the end are kept, so that numbers below each other are compared at the same digit.
    """
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".removesuffix(".")


def aligned(values: Sequence[float], digits: int) -> list[str]:
    """Return the numbers of a column with as many decimals as the largest has in `digits`."""
    largest = max((abs(each) for each in values if math.isfinite(each)), default=0.0)
    decimals = max(0, digits - 1 - math.floor(math.log10(largest))) if largest else 0
    return [f"{each:.{decimals}f}" for each in values]
