"""Docstrings in numpydoc form, made of a filter's texts and its arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from kernelscope.library.arguments import Argument
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind

WIDTH = 92  # columns of a docstring, without the indent of a function's body


def docstring_of(spec: FilterSpec, arguments: Sequence[Argument]) -> str:
    """Return the docstring of the function of a filter, without indent."""
    lines = [
        f"Return the result of the filter {spec.name}.",
        "",
        *_wrapped(spec.summary),
        *(("", *_wrapped(spec.explanation.use)) if spec.explanation.use else ()),
        *_section("Parameters", _entries(arguments)),
        *_section("Returns", _returns(spec)),
        *_section("Raises", _RAISES),
        *_section("Examples", _example(spec)),
        *_section("References", _wrapped(spec.source + ".")),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


_RAISES = (
    "AppError",
    "    For every problem that the caller can correct; the message names the argument.",
    "Cancelled",
    "    If `cancel` returned True.",
)


def _returns(spec: FilterSpec) -> Iterator[str]:
    if spec.kind is Kind.VOLUME:
        yield "ndarray, or tuple of ndarray with `components`"
        text = (
            "New arrays of the shape of the volumes, and of their type where it holds the values."
        )
        yield from _wrapped(text, "    ")
    else:
        yield "ndarray"
        yield from _wrapped("A new array of the type of `image`.", "    ")


def _example(spec: FilterSpec) -> Iterator[str]:
    """Yield a call that sets a parameter and the border."""
    arguments = ["volume" if spec.kind is Kind.VOLUME else "image"]
    for parameter in spec.parameters[:1]:
        others = parameter.variants(parameter.default, 3)
        arguments += [f"{parameter.name}={value!r}" for value in others[-1:]]
    if len(spec.borders) > 1:
        arguments.append(f"border={str(spec.borders[1])!r}")
    yield ">>> import kernelscope as ks"
    yield f">>> result = ks.{spec.id}({', '.join(arguments)})"


def _entries(arguments: Iterable[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield from _heading(argument.heading)
        yield from _wrapped(argument.help, "    ")


def _heading(text: str) -> list[str]:
    """Return the line of an argument; the rest of a long one is indented further."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="        ", break_on_hyphens=False)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return ["", title, "-" * len(title), *lines]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
