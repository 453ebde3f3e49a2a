"""Text made safe to show, as file names may contain control characters; lists in words; names."""

from __future__ import annotations

from collections.abc import Sequence

PROGRAM = "kernelscope"
"""Name of the command."""


def printable(text: str) -> str:
    """Return `text` with its control characters escaped, except for line breaks.

    A terminal would execute them: clear the screen, or show another name.
    """
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1]
        for character in text
    )


def one_line(text: str) -> str:
    """Return `text` as `printable` does, with line breaks escaped too."""
    return printable(text.replace("\n", "\\n"))


def enumerated(words: Sequence[str], last: str = "and") -> str:
    """Return “A”, “A and B”, “A, B and C”; nothing for no words."""
    *others, final = words or ("",)
    return f"{', '.join(others)} {last} {final}" if others else final
