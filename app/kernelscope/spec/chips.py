"""Settings in a few characters each, for captions and thumbnails."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelscope.spec.parameters import (
    ChoiceParameter,
    FloatParameter,
    MaskParameter,
    NumbersParameter,
    OddParameter,
    Parameter,
)


class Chip(NamedTuple):
    """A setting.

    Attributes
    ----------
    name : str
        Of the parameter; equal names on two runs are the same setting.
    text : str
        ``σ 0.0222``.
    usual : bool
        It has its default, and may be left out.
    """

    name: str
    text: str
    usual: bool


def chip_text(parameter: Parameter, value: Any) -> str:
    """Return ``r 10``, ``7×7`` or ``σ 0.0222``: as short as possible, with three digits."""
    symbol = parameter.symbol or parameter.label.lower()
    match parameter:
        case OddParameter():
            return f"{value}×{value}"
        case MaskParameter():
            return f"{len(value)}×{len(value)} weights"
        case FloatParameter():
            return f"{symbol} {value:.3g}"
        case NumbersParameter():
            numbers = ", ".join(f"{number:.3g}" for number in value)
            return f"{symbol} {numbers or parameter.none}"
        case ChoiceParameter():
            label = next(choice.label for choice in parameter.choices if choice.value == value)
            own = label if label.isupper() else label[0].lower() + label[1:]
            return f"{parameter.symbol} {own}".lstrip()
    return f"{symbol} {parameter.format(value)}"
