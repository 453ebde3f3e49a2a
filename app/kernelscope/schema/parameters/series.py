"""Values around one that is set, to compare with it: the cells of a contact sheet."""

from __future__ import annotations

import numpy as np

Limits = tuple[float, float]
"""Minimum and maximum."""


def around(value: float, count: int, limits: Limits, usual: Limits) -> tuple[float, ...]:
    """Return values from a half to twice `value`; around 0, values of the `usual` range."""
    if value > 0 and limits[0] >= 0:
        wanted = [value * factor for factor in _factors(count)]
    else:
        wanted = list(np.linspace(*usual, count))
    near = {min(max(_short(each), limits[0]), limits[1]) for each in wanted}
    near.discard(min(near, key=lambda each: abs(each - value)))
    return tuple(sorted(near | {value}))


def scaled(value: tuple[float, ...], count: int, limits: Limits) -> tuple[tuple[float, ...], ...]:
    """Return all numbers times factors from a half to two; nothing if there are none."""
    if not any(value):
        return ()
    found = (
        tuple(float(np.clip(_short(each * factor), *limits)) for each in value)
        for factor in _factors(count)
        if factor != 1
    )
    return tuple(sorted({*found, value}, key=sum))


def neighbours(allowed: range, value: int, count: int) -> tuple[int, ...]:
    """Return `count` successive values of `allowed`, or all, with `value` near the middle."""
    first = allowed.index(value) - count // 2
    first = max(0, min(first, len(allowed) - count))
    return tuple(allowed[first : first + count])


def _factors(count: int) -> list[float]:
    """Return `count` factors from a half to two, in equal ratios."""
    return [float(each) for each in np.geomspace(0.5, 2, count)]


def _short(number: float) -> float:
    """Return `number` with three significant digits, which are easy to read and to distinguish."""
    return float(f"{number:.3g}")
