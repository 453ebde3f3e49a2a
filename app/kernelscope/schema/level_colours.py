"""One colour for each memory level, the same in the ladder, in tables and in plots.

The hues are those of Okabe and Ito (2008), with the lightness changed until each colour has a
contrast of at least 3 with a white and with a dark (#2a2a2a) ground, so that one set serves both
themes. That leaves little room for differences in lightness: people who see few colours
distinguish most pairs, not all. A colour is therefore never shown without the name of the level,
a symbol or a place of its own.
"""

from __future__ import annotations

from types import MappingProxyType

from kernelscope.schema.levels import (
    CONSTANT,
    GLOBAL,
    PARALLEL,
    SERIAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    Level,
)

OTHER = "#9a6b48"
"""The colour of levels that only one filter has."""

COLOURS = MappingProxyType(
    {
        SERIAL.id: "#777777",
        PARALLEL.id: "#ad8f00",
        SINGLE_BLOCK.id: "#cf5bb8",
        GLOBAL.id: "#c94d00",
        CONSTANT.id: "#7d6ce8",
        SHARED.id: "#00a583",
        TEXTURE.id: "#1f8fdc",
        TUNED.id: "#d63a5e",
    }
)
"""Colours by the id of the level."""


def colour(level: Level | str) -> str:
    """Return the colour of a level, or of the level with this id, as ``#rrggbb``."""
    return COLOURS.get(level if isinstance(level, str) else level.id, OTHER)
