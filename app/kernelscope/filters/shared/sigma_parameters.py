"""Shared by the denoisers: how much noise there is, and how much of it is removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kernelscope.schema.parameters import FloatParameter
from kernelscope.schema.samples import Pixels


def sigma_parameter(
    estimate: Callable[[Pixels, Mapping[str, Any]], float],
    matters: Callable[[Mapping[str, Any]], bool] = lambda parameters: True,
) -> FloatParameter:
    return FloatParameter(
        name="sigma",
        label="Noise sigma",
        symbol="σ",
        help="Standard deviation of the noise in percent of white: 10 of 255 levels are 3.9 %; "
        "of camera noise, that of its mean variance.",
        default=4.0,
        minimum=0.0,
        maximum=1e6,
        slider=(0.1, 50.0),
        geometric=True,
        decimals=6,
        unit="%",
        estimate=estimate,
        estimated=True,
        matters=matters,
    )


STRENGTH = FloatParameter(
    name="strength",
    label="Strength",
    symbol="strength",
    help="Of the noise, how much is removed: 100 % suits its sigma, more smooths more.",
    default=100.0,
    minimum=0.0,
    maximum=1000.0,
    slider=(25.0, 400.0),
    geometric=True,
    decimals=1,
    unit="%",
    is_strength=True,
)

CHROMA = replace(
    STRENGTH,
    name="chroma",
    label="Chroma",
    symbol="chroma",
    help="Of the strength, how much is for the differences of the colours: more removes stains of "
    "colour and keeps the detail of the brightness. Grey pictures have none.",
    is_strength=False,
    of_colours=True,
)
"""Of filters that treat colours as opponents."""


def shares_of(parameters: Mapping[str, Any], planes: int) -> list[float]:
    """Return by how much sigma is multiplied for each opponent plane: the first is grey."""
    return [1.0, *[parameters["chroma"] / 100] * (planes - 1)]
