"""Lengths: their units as files name them, and in words, in a unit that suits their size."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MICRO = 1e-3
_UNITS = {
    "pm": 1e-9,
    "picometer": 1e-9,
    "å": 1e-7,
    "angstrom": 1e-7,
    "nm": 1e-6,
    "nanometer": 1e-6,
    "um": _MICRO,
    "micron": _MICRO,
    "micrometer": _MICRO,
    "mm": 1.0,
    "millimeter": 1.0,
    "cm": 10.0,
    "centimeter": 10.0,
    "dm": 100.0,
    "decimeter": 100.0,
    "m": 1e3,
    "meter": 1e3,
    "km": 1e6,
    "kilometer": 1e6,
    "thou": 0.0254,
    "mil": 0.0254,
    "in": 25.4,
    "inch": 25.4,
    "inches": 25.4,
    "ft": 304.8,
    "foot": 304.8,
    "yd": 914.4,
    "yard": 914.4,
    "pt": 25.4 / 72,
}
"""Millimetres of the units of OME, ImageJ and OME-Zarr."""

_SHOWN = ((0.02e-3, "nm", 1e-6), (0.05, "µm", 1e-3), (1e3, "mm", 1.0))
"""Lengths below the first number are shown in that unit, which has this many millimetres."""


def millimetres(unit: object) -> float | None:
    """Return how many millimetres a unit has; None for pixels and unknown units.

    Plurals, British spelling, and both Unicode characters for micro and ångström are understood,
    as is ImageJ's way to write the micro sign in ASCII.
    """
    if not isinstance(unit, str):
        return None
    name = unit.strip().replace("\\u00B5", "µ").replace("\\u00b5", "µ").lower()
    # micro sign and Greek mu; ångström sign and letter; both decomposed by `lower` or not
    name = name.replace("µ", "u").replace("μ", "u").replace("\u212b", "å").replace("a\u030a", "å")
    name = name.replace("ångström", "angstrom").replace("metre", "meter")
    if name not in _UNITS and name.endswith("s"):
        name = name[:-1]
    return _UNITS.get(name)


def unit_of(lengths: Sequence[float]) -> tuple[str, float]:
    """Return the unit in which lengths in millimetres are shown, and its millimetres."""
    longest = max(lengths)
    for least, name, factor in _SHOWN:
        if longest < least:
            return name, factor
    return "m", 1e3


def in_words(lengths: Sequence[float], join: str = "×") -> str:
    if not lengths:
        return ""
    unit, factor = unit_of(lengths)
    return f"{join.join(f'{length / factor:.4g}' for length in lengths)} {unit}"


def is_length(value: float) -> bool:
    return 0 < value < math.inf
