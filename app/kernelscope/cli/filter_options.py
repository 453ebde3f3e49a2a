"""A filter's parameters as options of a command, and the step made from them."""

from __future__ import annotations

import argparse
from typing import Any

from kernelscope.cli.common import switches
from kernelscope.engine.area import Area
from kernelscope.engine.step import ESTIMATE, Step, default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import (
    Parameter,
)
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import allowed, option_of

_PREFIX = "parameter_"
"""Separates a filter's parameters from the options that every filter has."""


def add_filter_options(parser: argparse.ArgumentParser, spec: FilterSpec) -> None:
    """Add the parameters of a filter, and for pictures its border and ``--grey``.

    The parser omits options that are not given (``argument_default=SUPPRESS``).
    """
    group = parser.add_argument_group("parameters of this filter")
    for parameter in spec.parameters:
        group.add_argument(
            option_of(parameter),
            dest=_PREFIX + parameter.name,
            metavar=parameter.placeholder,
            type=_reader(parameter),
            help=escape(_parameter_help(parameter)),
        )
        for option, choice in switches(parameter).items():
            group.add_argument(
                option,
                dest=_PREFIX + parameter.name,
                action="store_const",
                const=choice.value,
                help=f"the same as {option_of(parameter)} {choice.value}",
            )
    if spec.kind is Kind.PICTURE:
        group.add_argument(
            "--border",
            choices=[str(border) for border in spec.borders],
            default=str(spec.borders[0]),
            help="treatment of cells outside the image (default: %(default)s)",
        )
        group.add_argument(
            "--grey", action="store_true", default=False, help="convert to greyscale first"
        )
        group.add_argument(
            "--within",
            metavar="AREA",
            type=Area.parse,
            default=None,
            help="filter only there and keep the rest: a shape and its corners in pixels, such as "
            "“rectangle 12,8 52,38”, “ellipse 12,8 52,38” or “polygon 0,0 40,0 20,30”",
        )


def step_of(spec: FilterSpec, found: argparse.Namespace) -> Step:
    typed = [parameter for parameter in spec.parameters if _PREFIX + parameter.name in found]
    given: dict[str, Any] = {}
    for parameter in typed:
        given |= parameter.implies
    given |= {parameter.name: getattr(found, _PREFIX + parameter.name) for parameter in typed}
    if spec.kind is Kind.VOLUME:
        return Step.create(spec.id, given)
    border = Border(found.border)
    return Step.create(spec.id, given, border=border, grey=found.grey, within=found.within)


def escape(text: str) -> str:
    """Protect text from the formatting that `argparse` applies to help."""
    return text.replace("%", "%%")


def _reader(parameter: Parameter) -> Any:
    """Return the function that reads a parameter's value from the command line."""
    if not parameter.has_estimate:
        return parameter.parse
    return lambda text: text if text == ESTIMATE else parameter.parse(text)


def _parameter_help(parameter: Parameter) -> str:
    default = default_text(parameter) or "none"
    form = f"; {parameter.form}" if parameter.form else ""
    return f"{parameter.help} ({allowed(parameter)}{form}; default: {default})"
