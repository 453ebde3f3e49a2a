"""A function for each filter, made of its spec.

::

    median = function_of(filters.get("median"))
    median(image, size=5)              # an array of the type of `image`
    inspect.signature(median)          # (image, *, size: int = 3, border: ... = 'reflect', ...)

`typing.get_type_hints` looks up the names in annotations among those imported here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence  # noqa: F401
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal  # noqa: F401

import numpy as np
from numpy.typing import ArrayLike, NDArray  # noqa: F401

from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.errors import AppError
from kernelscope.images.image import Image
from kernelscope.images.volume import AXES
from kernelscope.library import arrays
from kernelscope.library.arguments import (
    Argument,
    area_of,
    arguments_of,
    border_of,
    check_choice,
    checked,
)
from kernelscope.library.docstrings import docstring_of
from kernelscope.library.session import session
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.levels import USUAL_LEVELS
from kernelscope.spec.samples import Kind

PACKAGE = "kernelscope"
"""The module that functions belong to, for `help` and pickles."""


def function_of(spec: FilterSpec) -> Callable[..., Any]:
    """Return the function of a filter, with signature, annotations and docstring."""
    call = _Call(spec)

    def function(*positional: Any, **named: Any) -> Any:
        return call(*positional, **named)

    signature = call.signature
    function.__name__ = function.__qualname__ = spec.id
    function.__module__ = PACKAGE
    function.__doc__ = docstring_of(spec, call.arguments)
    function.__annotations__ = {
        name: each.annotation for name, each in signature.parameters.items()
    } | {"return": signature.return_annotation}
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class _Call:
    """Calls of the function of one filter."""

    spec: FilterSpec

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        return arguments_of(self.spec)

    @cached_property
    def levels(self) -> list[str]:
        spec = self.spec
        return [each.id for device in USUAL_LEVELS for each in spec.levels(device)]

    @cached_property
    def signature(self) -> inspect.Signature:
        several = self.spec.kind is Kind.VOLUME
        one = "NDArray[Any]"
        returned = f"{one} | tuple[{one}, ...]" if several else one
        return inspect.Signature(
            [each.parameter for each in self.arguments], return_annotation=returned
        )

    def __call__(self, *positional: Any, **named: Any) -> Any:
        try:
            bound = self.signature.bind(*positional, **named)
        except TypeError as error:
            raise TypeError(f"{self.spec.id}() {error}") from None
        names = {each.name for each in self.spec.parameters}
        own = {name: value for name, value in bound.arguments.items() if name in names}
        bound.apply_defaults()
        with named_errors(self.spec.id):
            level = bound.arguments["level"]
            if level is not None:
                check_choice("level", level, self.levels)
            step = self._step(own, bound.arguments)
            return run_steps(Recipe((step,)), bound.arguments)

    def _step(self, own: Mapping[str, Any], given: Mapping[str, Any]) -> Step:
        """Return the step of the arguments that were given."""
        values = checked(self.spec, own)
        if self.spec.kind is Kind.VOLUME:
            return Step.create(self.spec.id, values)
        if "border" in given:
            border = border_of(self.spec, given["border"])
        else:
            border = self.spec.borders[0]
        axis, within = given["axis"], given["within"]
        if axis is not None:
            check_choice("axis", axis, AXES)
        return Step.create(
            self.spec.id,
            values,
            border=border,
            grey=bool(given["grey"]),
            axis=AXES.index(axis or AXES[0]),
            within=None if within is None else area_of(within),
        )


@contextmanager
def named_errors(function: str) -> Iterator[None]:
    """Put the name of a function before the message of an `AppError`."""
    try:
        yield
    except AppError as error:
        raise error.prefixed(f"{function}(): ") from error


def run_steps(recipe: Recipe, given: Mapping[str, Any]) -> Any:
    """Run a recipe on the arrays among the arguments of a function.

    Parameters
    ----------
    given : mapping
        ``image``, and whether it is a volume by ``axis``; or ``volume`` and ``components``; and
        the arguments of every function.

    Returns
    -------
    ndarray, or tuple of ndarray if there are components
    """
    check_choice("device", given["device"], [each.value for each in Device])
    options = RunOptions(Device(given["device"]), given.get("level"))
    callbacks = given["progress"], given["cancel"]
    if "volume" in given:
        names = ["volume", *(f"components[{i}]" for i in range(len(given["components"])))]
        listed = [given["volume"], *given["components"]]
        source = arrays.scan(list(zip(names, listed, strict=True)), given["nan"])
        made = arrays.of_source(session().run(recipe, source, options, *callbacks).output)
        return made if given["components"] else made[0]
    if given.get("axis") is not None:
        volume = arrays.scan([("image", given["image"])], given["nan"])
        return arrays.of_source(session().run(recipe, volume, options, *callbacks).output)[0]
    image = arrays.picture(given["image"], "image", given["nan"])
    output = session().run(recipe, image, options, *callbacks).output
    assert isinstance(output, Image)
    return arrays.of_picture(output, channels_last=np.shape(given["image"])[2:] == (1,))
