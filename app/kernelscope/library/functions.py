"""A function for each filter, made of its spec.

::

    median = function_of(filters.get("median"))
    median(image, size=5)              # an array of the type of `image`
    inspect.signature(median)          # (image, *, size: int = 3, border: ... = 'reflect', ...)

`typing.get_type_hints` looks up the names in annotations among those imported here.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence  # noqa: F401
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal  # noqa: F401

from numpy.typing import ArrayLike, NDArray

from kernelscope.base.errors import InvalidParameter, naming
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.images.volume import AXES
from kernelscope.library.arguments import (
    CALLBACKS,
    PICTURE_ARGUMENTS,
    Argument,
    along_axes,
    are_three,
    area_of,
    arguments_of,
    border_of,
    check_choice,
    checked,
    docstring_of,
    flag,
    of_any_sides,
    reporter,
    step_arguments,
)
from kernelscope.library.quick import by_numpy, key_of, quick
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import USUAL_LEVELS
from kernelscope.schema.samples import Kind

_MOST_QUICK = 256
"""Calls of a function that are remembered: more have sizes or settings that never come again."""

PACKAGE = "kernelscope"  # the module that functions belong to, for `help` and pickles


def function_of(spec: FilterSpec) -> Callable[..., Any]:
    """Return the function of a filter, with signature, annotations and docstring."""
    call = _Call(spec)
    known_calls = call.quick

    def function(*positional: Any, **named: Any) -> Any:
        try:
            (array,) = positional
            key = key_of(array, named)
            known = known_calls.get(key) if key is not None else None
        except (TypeError, ValueError):  # no array, a mask, or an argument that is wrong
            key = known = None
        if known is not None:
            with naming(f"{spec.id}(): "):
                made = known(array)
            return made if made is not None else call(positional, named, None)
        return call(positional, named, key)

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
    def defaults(self) -> dict[str, Any]:
        """The default of each argument but the source."""
        return {each.name: each.default for each in self.arguments[1:]}

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

    @cached_property
    def quick(self) -> dict[tuple[Any, ...], Callable[[NDArray[Any]], NDArray[Any] | None]]:
        """Calls that were made before, see `kernelscope.library.quick`."""
        return {}

    def __call__(
        self, positional: tuple[Any, ...], named: dict[str, Any], key: tuple[Any, ...] | None
    ) -> Any:
        """Return the result by way of a request; prepare a quicker way for the next call."""
        source = self.arguments[0].name
        if not positional and source not in named:
            return self._left_open(named)
        bound = self._bound(positional, named)
        own, given = self._sorted(bound)
        with naming(f"{self.spec.id}(): "):
            if given["level"] is not None:
                check_choice("level", given["level"], self.levels)
            step = self.step(own, given)
            if key is not None and self.spec.kind is Kind.PICTURE:
                made = by_numpy(step, given, self.arguments, (self.spec.id, key))
                if made is not None:
                    return made
            made = self._run(step, given)
        if key is not None and self.spec.kind is Kind.PICTURE:
            shortcut = quick(step, given, self.arguments)
            if shortcut is not None:
                if len(self.quick) >= _MOST_QUICK:
                    self.quick.clear()
                self.quick[key] = shortcut
        return made

    def _sorted(self, bound: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters that were given, and all arguments with their defaults."""
        names = {each.name for each in self.spec.parameters}
        own = {name: value for name, value in bound.items() if name in names}
        given = {**self.defaults, **bound}
        return own, {**given, "progress": reporter(given["progress"])}

    def _left_open(self, named: dict[str, Any]) -> Any:
        """Return the recipe of one step, for a call without an array."""
        from kernelscope.library import recipes

        self._check_names(named)
        names = {each.name for each in step_arguments(self.spec)}
        others = sorted(named.keys() - names)
        if others:
            raise TypeError(
                f"{self.spec.id}() missing a required argument: {self.arguments[0].name!r} (a step "
                f"of a recipe, which needs none, has no {', '.join(others)})"
            )
        own, given = self._sorted(named)
        with naming(f"{self.spec.id}(): "):
            return recipes.Recipe(self.step(own, given))

    def _check_names(self, named: Mapping[str, Any]) -> None:
        """Raise `TypeError` for a keyword that the function does not have."""
        known = [each.name for each in self.arguments]
        unknown = sorted(named.keys() - set(known))
        if unknown:
            alike = difflib.get_close_matches(unknown[0], known, n=2)
            hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
            raise TypeError(
                f"{self.spec.id}() got an unexpected keyword argument {unknown[0]!r}{hint}"
            )

    def _bound(self, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that were given, by name.

        `inspect` takes 0.1 ms for it, and is left to calls other than the usual one: the source by
        its place, the others by their names.
        """
        if len(positional) == 1 and named.keys() <= self.defaults.keys():
            return {self.arguments[0].name: positional[0], **named}
        self._check_names(named)
        if len(positional) > 1:
            first, second = (each.name for each in self.arguments[:2])
            value = positional[1]
            shown = repr(value) if isinstance(value, str | int | float | tuple) else "..."
            raise TypeError(
                f"{self.spec.id}() takes one argument by position, and {len(positional)} were "
                f"given; write {self.spec.id}({first}, {second}={shown})"
            )
        try:
            return dict(self.signature.bind(*positional, **named).arguments)
        except TypeError as error:
            raise TypeError(f"{self.spec.id}() {error}") from None

    def _run(self, step: Step, given: Mapping[str, Any]) -> Any:
        """Return the result as an array, or as arrays if there are components."""
        from kernelscope.library import pictures  # with all of the engine
        from kernelscope.library.session import components_of, filtered_volumes

        if self.spec.kind is Kind.PICTURE:
            return pictures.filtered(Recipe((step,)), given)
        listed = components_of("volume", given["volume"], given["components"])
        return filtered_volumes(Recipe((step,)), listed, given)

    def step(self, own: Mapping[str, Any], given: Mapping[str, Any]) -> Step:
        """Return the step of the arguments that were given."""
        if self.spec.in_3d and are_three(given.get("axes")):
            spec = self.spec.in_3d
            names = {each.name for each in spec.parameters}
            sides = {
                name: along_axes(name, value)
                for name, value in own.items()
                # A word that is the default, as footprint="square", does no harm.
                if name in names or not isinstance(value, str) or value != self.defaults[name]
            }
            values = checked(spec, sides)
            return Step.create(spec.id, values, border=border_of(spec, given))
        spec, own = of_any_sides(self.spec, own)
        values = checked(spec, own)
        if spec.kind is Kind.VOLUME:
            return Step.create(spec.id, values)
        border = border_of(spec, given) if "border" in given else spec.borders[0]
        axis, within = given["axis"], given["within"]
        if axis is not None:
            check_choice("axis", axis, AXES)
        return Step.create(
            spec.id,
            values,
            border=border,
            grey=flag("grey", given["grey"]),
            axis=AXES.index(axis or AXES[0]),
            within=None if within is None else area_of(within),
        )


_OF_THE_END = {"border", "device", "grey", "level", "out", "progress"}
"""Arguments that a step before the last one does not get."""


def denoise(image: ArrayLike, **arguments: Any) -> NDArray[Any]:
    """Return a picture without its noise, by the filter that suits it.

    That is the median against black and white specks, and collaborative filtering against all
    other noise, whose kind and strength it estimates; hot pixels are mended before. Of a stack
    the first picture decides.

    Parameters
    ----------
    image : array_like, shape (height, width) or (height, width, channels)
        Any array of real numbers. A stack with `axes` or `axis`.
    **arguments
        Those of the filter's function that all have, such as `device`.

    Returns
    -------
    ndarray
        Of the type and shape of `image`.

    Raises
    ------
    AppError
        If it is no picture.
    """
    from kernelscope.engine.denoising import propose
    from kernelscope.library import pictures

    with naming("denoise(): "):
        if are_three(arguments.get("axes")):
            best = propose(None)
            ways = [f"ks.{each.id}(volume)" for each in (best.filter, *best.others)]
            raise InvalidParameter("axes: three make a volume.", f"Use {' or '.join(ways)}.")
        usual = {each.name: each.default for each in (*PICTURE_ARGUMENTS, *CALLBACKS)}
        proposal = propose(pictures.sample_picture({**usual, **arguments, "image": image}))
    if (first := proposal.first) is not None:
        names = {each.name for each in arguments_of(first)} - _OF_THE_END
        common = {name: value for name, value in arguments.items() if name in names}
        image = function_of(first)(image, **common)
    function = function_of(proposal.filter)
    made: NDArray[Any] = function(image, **{**proposal.values, **arguments})
    return made
