"""Times in words, with a unit that suits them."""

from __future__ import annotations

import math

from kernelscope.base.text import significant


def unit_of(seconds: float) -> tuple[str, float]:
    """Return the unit that a time is shown in, and its length in seconds."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:  # 0.9996 ms has three digits as 1.00 ms
            return unit, size
    return "µs", 1e-6


def duration(seconds: float) -> str:
    """Return a time to three digits: ``15.9 s``, ``2.31 ms``, ``605 µs``."""
    if not seconds:
        return "0 s"
    unit, size = unit_of(seconds)
    return f"{significant(seconds / size)} {unit}"


def about(seconds: float) -> str:
    """Return a duration to one or two digits: ``3 min``, ``1.2 s``, ``20 ms``, ``300 µs``."""
    if not math.isfinite(seconds):
        return ""
    if seconds >= 90:
        return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
    if seconds >= 1:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    rounded = float(f"{max(seconds, 1e-4):.1g}")
    unit, size = unit_of(rounded)
    return f"{rounded / size:.0f} {unit}"
