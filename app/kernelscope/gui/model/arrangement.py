"""The ways in which input and output share the room for pictures."""

from __future__ import annotations

from enum import StrEnum


class Arrangement(StrEnum):
    SIDE_BY_SIDE = "side by side"
    SWIPE = "swipe"
    """One picture: the input left of a line, the output right of it."""
    SPLIT = "split"
    """One picture: the input above a line, the output below it."""
    OUTPUT = "output alone"

    @property
    def is_divided(self) -> bool:
        return self in (Arrangement.SWIPE, Arrangement.SPLIT)


class Units(StrEnum):
    """The units in which sample values are read off; the value is the name in the interface."""

    STORED = "stored"
    BYTES = "0 to 255"
    SHARE = "0 to 1"
