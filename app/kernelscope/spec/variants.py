"""Values of a parameter to compare with the one that is set: the cells of a contact sheet."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.spec.parameters import (
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    NumbersParameter,
    Parameter,
    RadiiParameter,
)


def variants(parameter: Parameter, value: Any, count: int) -> tuple[Any, ...]:
    """Return up to `count` values to compare, in order, with `value` among them.

    Whole numbers have their neighbours, reals a half to twice their value, choices all others.
    There is nothing where values have no order and no list, as masks.
    """
    match parameter:
        case IntParameter():
            allowed = range(parameter.minimum, parameter.maximum + 1, parameter.step)
            return _neighbours(allowed, value, count)
        case RadiiParameter() if isinstance(value, int):
            return _neighbours(range(parameter.minimum, parameter.maximum + 1), value, count)
        case FloatParameter():
            return _reals(parameter, value, count)
        case NumbersParameter():
            return _scaled(parameter, value, count)
        case ChoiceParameter():
            return _choices(parameter, value, count)
        case _:
            return ()


def _reals(parameter: FloatParameter, value: float, count: int) -> tuple[float, ...]:
    """Return values from a half to twice `value`; around 0, values of the slider's range."""
    if value > 0 and parameter.minimum >= 0:
        wanted = [value * factor for factor in _factors(count)]
    else:
        low, high = parameter.slider or (parameter.minimum, parameter.maximum)
        wanted = list(np.linspace(low, high, count))
    near = {min(max(_short(each), parameter.minimum), parameter.maximum) for each in wanted}
    near.discard(min(near, key=lambda each: abs(each - value)))
    return tuple(sorted(near | {value}))


def _scaled(
    parameter: NumbersParameter, value: tuple[float, ...], count: int
) -> tuple[tuple[float, ...], ...]:
    """Return all numbers times factors from a half to two; nothing if there are none."""
    if not any(value):
        return ()
    limits = parameter.minimum, parameter.maximum
    scaled = (
        tuple(float(np.clip(_short(each * factor), *limits)) for each in value)
        for factor in _factors(count)
        if factor != 1
    )
    return tuple(sorted({*scaled, value}, key=sum))


def _choices(parameter: ChoiceParameter, value: str, count: int) -> tuple[str, ...]:
    """Return all choices, or the first `count` with `value` among them."""
    values = [choice.value for choice in parameter.choices]
    if values.index(value) >= count:
        values = [*values[: count - 1], value]
    return tuple(values[:count])


def _neighbours(allowed: range, value: int, count: int) -> tuple[int, ...]:
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
