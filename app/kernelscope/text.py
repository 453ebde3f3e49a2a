"""Text made safe to show: file names may contain control characters."""

from __future__ import annotations


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
