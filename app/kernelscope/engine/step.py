"""The settings of a computation: a filter and all of its parameters, without a source.

A step may be saved, sent and repeated: a recipe is a sequence of steps. How it is run
(`kernelscope.engine.options`) is not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.area import Area
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import Parameter

ESTIMATE = "estimate"
"""In place of a number: estimate it from the source, once that is there."""


def default_text(parameter: Parameter) -> str:
    """Return the text of a parameter that is not set, as `Parameter.format` does."""
    return ESTIMATE if parameter.is_estimated else parameter.format(parameter.default)


def check_border(spec: FilterSpec, border: str) -> None:
    """Raise `InvalidParameter` for a border that the filter does not offer."""
    if border not in spec.borders:
        offered = ", ".join(spec.borders)
        raise InvalidParameter(f"{spec.name} has no border “{border}”.", f"Use one of {offered}.")


@dataclass(frozen=True)
class Step:
    """A filter and all of its settings. `create` and `of_numbers` validate."""

    filter: FilterSpec
    parameters: Mapping[str, Any]
    """A value for each parameter of the filter; some may be `ESTIMATE`."""
    border: Border = Border.REFLECT
    grey: bool = False  # convert to greyscale first (ITU-R 601)
    axis: int = 0
    """Where a filter for pictures gets volumes, its slices are perpendicular to this axis of the
    voxels: 0, 1 or 2 for z, y or x."""
    within: Area | None = None  # the part of a picture that is filtered; the rest is kept

    @classmethod
    def create(
        cls,
        filter_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        border: Border | None = None,
        grey: bool = False,
        axis: int = 0,
        within: Area | None = None,
    ) -> Step:
        """Return a checked step; the border is the filter's first one if none is given.

        Raises `InvalidParameter` for an unknown filter, a parameter out of range, or a border that
        the filter does not offer.
        """
        spec = filters.get(filter_id)
        defaults = {each.name: ESTIMATE for each in spec.parameters if each.is_estimated}
        values = {**defaults, **(parameters or {})}
        estimates = {
            name: ESTIMATE
            for name, value in values.items()
            if isinstance(value, str) and value == ESTIMATE and spec.parameter(name).has_estimate
        }
        numbers = {name: value for name, value in values.items() if name not in estimates}
        step = cls.of_numbers(
            filter_id, numbers, border=border, grey=grey, axis=axis, within=within
        )
        if not estimates:
            return step
        return replace(step, parameters=MappingProxyType({**step.parameters, **estimates}))

    @classmethod
    def of_numbers(
        cls,
        filter_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        border: Border | None = None,
        grey: bool = False,
        axis: int = 0,
        within: Area | None = None,
    ) -> Step:
        """Return a checked step as `create` does, but one that leaves nothing to be estimated.

        Every parameter that is not given has its default number, and `ESTIMATE` is refused.
        """
        spec = filters.get(filter_id)
        values = MappingProxyType(spec.validate(parameters or {}))
        border = spec.borders[0] if border is None else border
        check_border(spec, border)
        return cls(spec, values, border, grey, axis, within)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """A sentence about each value that was set and does not count beside the others."""
        values = [(each, self.parameters[each.name]) for each in self.filter.parameters]
        return tuple(
            f"{self.filter.name}: {each.describe(value)} has no effect with these settings."
            for each, value in values
            if value not in (each.default, ESTIMATE) and not each.matters(self.parameters)
        )

    @property
    def estimates(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, value in self.parameters.items()
            if isinstance(value, str) and value == ESTIMATE
        )

    def left_open(self, names: Iterable[str]) -> Step:
        """Return the step with these parameters left to be estimated."""
        left = dict.fromkeys(names, ESTIMATE)
        return replace(self, parameters={**self.parameters, **left}) if left else self

    def for_microscope(self) -> Step:
        """Return the step for a file of a microscope, where values are left to the data."""
        given = self.parameters
        values = {
            name: value
            for name, value in self.filter.microscope.items()
            if given[name] == self.filter.parameter(name).default != value
        }
        if not values:
            return self
        return replace(self, parameters=MappingProxyType({**given, **values}))

    def with_numbers(self, numbers: Mapping[str, float] | None = None) -> Step:
        """Return the step with `numbers` for the parameters that are to be estimated.

        Those that `numbers` lacks have their defaults.
        """
        names = self.estimates
        if not names and not numbers:
            return self  # checked already; a mask of 81 cells takes a third of a millisecond
        given = {name: value for name, value in self.parameters.items() if name not in names}
        values = self.filter.validate({**given, **(numbers or {})})
        return replace(self, parameters=MappingProxyType(values))
