"""Text that is safe to show: names of files may hold anything."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return `text` with its control characters spelt out, but for line breaks.

    A terminal would obey them: clear the screen, or show another name.
    """
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1]
        for character in text
    )


def one_line(text: str) -> str:
    """As `printable`, for what is a single line: a line break in a name is none."""
    return printable(text.replace("\n", "\\n"))
