"""The Python types of parameters, for signatures, docstrings and the stub.

One entry of `_KINDS` for each kind of parameter, as the window has one editor for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kernelscope.engine.step import ESTIMATE
from kernelscope.schema.parameters import (
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    MaskParameter,
    NumbersParameter,
    Parameter,
    RadiiParameter,
)


class Annotation(NamedTuple):
    """A type as it stands in code, and in the words of a docstring."""

    text: str
    words: str


def one_of(values: Iterable[str]) -> Annotation:
    """Return the type of a few texts."""
    listed = tuple(dict.fromkeys(values))
    text = ", ".join(quoted(value) for value in listed)
    words = ", ".join(repr(value) for value in listed)
    return Annotation(f"Literal[{text}]", f"{{{words}}}")


def quoted(text: str) -> str:
    """Return a text as it stands in code, in double quotes."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def literal(value: Any) -> str:
    """Return a default as it stands in code."""
    return quoted(value) if isinstance(value, str) else repr(value)


_WHOLE = Annotation("int", "int")
_REAL = Annotation("float", "float")
_REALS = Annotation("float | Sequence[float]", "float or sequence of float")
_RADII = Annotation("int | tuple[int, int, int]", "int or (int, int, int)")
_TABLE = Annotation("ArrayLike", "array_like, square, or str")

_KINDS: Mapping[type[Parameter], Callable[[Any], Annotation]] = {
    ChoiceParameter: lambda parameter: one_of(each.value for each in parameter.choices),
    IntParameter: lambda parameter: _WHOLE,
    FloatParameter: lambda parameter: _REAL,
    NumbersParameter: lambda parameter: _REALS,
    RadiiParameter: lambda parameter: _RADII,
    MaskParameter: lambda parameter: _TABLE,
}


def annotation_of(parameter: Parameter) -> Annotation:
    """Return the type of a parameter, which may be an estimate."""
    found = next((_KINDS[kind] for kind in type(parameter).__mro__ if kind in _KINDS), None)
    if found is None:
        raise LookupError(f"{type(parameter).__name__} has no Python type in {__name__}")
    own = found(parameter)
    if not parameter.has_estimate:
        return own
    return Annotation(f"{own.text} | Literal[{quoted(ESTIMATE)}]", f"{own.words} or {ESTIMATE!r}")


def default_of(parameter: Parameter) -> Any:
    """Return the value of a parameter that is left out."""
    return ESTIMATE if parameter.is_estimated else parameter.default
