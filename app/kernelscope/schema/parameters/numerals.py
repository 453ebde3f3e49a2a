"""Numbers as people type them, with a decimal point or a decimal comma."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)
GROUP_BEFORE_POINT = re.compile(r"\d,\d{3}\.", re.ASCII)
"""``1,000.5``: either a thousand and a half, or 1 and 0.5."""


def read_number(text: str) -> float:
    """Return the number that `text` stands for, with a decimal point or a decimal comma.

    Raises `ValueError` if it is none, or two: ``1,000`` is one to some people and a thousand to
    others.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text) or _GROUPS.fullmatch(text):
        raise ValueError(text)
    return float(text.replace(",", "."))


def other_spelling(text: str) -> str:
    """Return how to write `text` where a comma leaves open which number it is; else nothing."""
    text = text.strip()
    if _GROUPS.fullmatch(text):
        return f"Write {text.replace(',', '.', 1).replace(',', '')} or {text.replace(',', '')}."
    return ""


def number_text(number: float) -> str:
    """Return the shortest text that reads back as the same `number`."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
