"""A channel of a microscope: its name and the colour that it is shown in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Channel:
    """The meaning of the samples of a picture or volume."""

    name: str = ""
    """Such as a dye: "DAPI"; empty if unknown."""
    colour: str = ""
    """Six hexadecimal digits, red first; empty if unknown."""


UNKNOWN_CHANNEL = Channel()
