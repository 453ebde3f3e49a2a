"""The settings of a computation: a filter and all of its parameters, without a source.

A step may be saved, sent and repeated: a recipe is a sequence of steps. How it is run
(`kernelscope.engine.options`) is not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.base.text import enumerated
from kernelscope.engine.area import Area
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Chip, FilterSpec
from kernelscope.schema.parameters import Parameter
from kernelscope.schema.samples import Kind

ESTIMATE = "estimate"  # in place of a number: estimate it from the source, once that is there


def default_text(parameter: Parameter) -> str:
    """Return the text of a parameter that is not set, as `Parameter.format` does."""
    return ESTIMATE if parameter.is_estimated else parameter.format(parameter.default)


def check_border(spec: FilterSpec, border: str) -> None:
    if border not in spec.borders:
        offered = ", ".join(spec.borders)
        raise InvalidParameter(f"{spec.name} has no border “{border}”.", f"Use one of {offered}.")


def has_no_mask(step: Step) -> bool:
    """Return whether each pixel of a result depends on the same one of the source alone."""
    spec, numbers = step.filter, step.parameters
    return not (spec.radius(numbers) or spec.whole(numbers) or spec.noise)


@dataclass(frozen=True)
class Step:
    """A filter and all of its settings. `create` and `of_numbers` validate."""

    filter: FilterSpec
    parameters: Mapping[str, Any]  # a value for each parameter of the filter
    border: Border = Border.REFLECT
    grey: bool = False  # convert to greyscale first (ITU-R 601)
    axis: int = 0
    """Where a filter for pictures gets volumes, its slices are perpendicular to this axis of the
    voxels: 0, 1 or 2 for z, y or x."""
    within: Area | None = None  # the part of a picture that is filtered; the rest is kept
    estimates: tuple[str, ...] = ()
    """Parameters that every run estimates from its source: their numbers are those of the last
    estimate, or else the defaults."""

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
        values = {each.name: ESTIMATE for each in spec.parameters if each.is_estimated}
        values |= parameters or {}
        estimates = tuple(
            each.name
            for each in spec.parameters
            if each.has_estimate and isinstance(values.get(each.name), str)
            if values[each.name] == ESTIMATE
        )
        numbers = {name: value for name, value in values.items() if name not in estimates}
        step = cls.of_numbers(
            filter_id, numbers, border=border, grey=grey, axis=axis, within=within
        )
        return replace(step, estimates=estimates) if estimates else step

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
    def in_3d(self) -> Step:
        """The step with its mask through the slices of a volume.

        That of a filter without a mask is the same. Raises `InvalidParameter` if the filter, its
        border or a parameter has no meaning there.
        """
        spec = self.filter
        if spec.in_3d is None:
            if spec.kind is Kind.VOLUME or has_no_mask(self):
                return self
            words = set(spec.id.split("_"))
            kin = [
                each.name
                for each in filters.discover(Kind.VOLUME).values()
                if words & set(each.id.split("_"))
            ]
            offered = kin or [each.name.removesuffix(" 3-D") for each in filters.in_3d().values()]
            raise InvalidParameter(
                f"{spec.name} has no mask in three dimensions.",
                f"Filter slice by slice, or use {enumerated(offered, 'or')}.",
            )
        if self.within is not None:
            raise InvalidParameter(
                "Only pictures are filtered within a region.", "Filter the whole volume."
            )
        border = None if self.border is spec.borders[0] else self.border
        names = {each.name for each in spec.in_3d.parameters}
        for parameter in spec.parameters:
            given = self.parameters[parameter.name]
            if parameter.name not in names and given != parameter.default:
                raise InvalidParameter(
                    f"{parameter.label} has no meaning in three dimensions.", "Leave it out."
                )
        values = {name: value for name, value in self.parameters.items() if name in names}
        return Step.of_numbers(spec.in_3d.id, values, border=border)

    def without_effect(self, *, grey: bool) -> tuple[str, ...]:
        """Return a sentence about each value that was set and does not count: beside the others,
        or on a grey source."""
        sentences = []
        for each in self.filter.parameters:
            value = self.parameters[each.name]
            if value == each.default or each.name in self.estimates:
                continue
            if not each.acts(self.parameters, grey=grey):
                why = "with these settings" if not each.matters(self.parameters) else "in grey"
                sentences.append(f"{self.filter.name}: {each.describe(value)} has no effect {why}.")
        return tuple(sentences)

    @property
    def name(self) -> str:
        return self.filter.short or self.filter.name

    @property
    def values(self) -> dict[str, Any]:
        """The parameters as a recipe has them: `ESTIMATE` for those that are estimated."""
        return {**self.parameters, **dict.fromkeys(self.estimates, ESTIMATE)}

    @property
    def unestimated(self) -> Step:
        """The step for any source: with defaults in place of numbers that were estimated."""
        defaults = {name: self.filter.parameter(name).default for name in self.estimates}
        if not any(self.parameters[name] != number for name, number in defaults.items()):
            return self
        return replace(self, parameters=MappingProxyType({**self.parameters, **defaults}))

    @property
    def fixed(self) -> Step:
        """The step with its numbers as if all of them had been chosen."""
        return replace(self, estimates=()) if self.estimates else self

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The settings that differ from their defaults, for any source."""
        spec, names = self.filter, self.estimates
        chips = [each for each in spec.chips(self.unestimated.parameters) if not each.usual]
        chips = [each for each in chips if each.name not in names]
        chips += [
            Chip(name, f"{spec.parameter(name).label.lower()} estimated", False) for name in names
        ]
        if self.border is not spec.borders[0]:
            chips.append(Chip("border", f"{self.border} border", False))
        if self.grey:
            chips.append(Chip("grey", "in grey", False))
        if self.within is not None:
            chips.append(Chip("within", f"only {self.within.describe()}", False))
        return tuple(chips)

    @property
    def caption(self) -> str:
        return ", ".join(chip.text for chip in self.chips)

    def with_numbers(self, numbers: Mapping[str, float]) -> Step:
        """Return the step with these numbers, estimated from its source."""
        if not numbers:
            return self  # checked already; a mask of 81 cells takes a third of a millisecond
        values = self.filter.validate({**self.parameters, **numbers})
        return replace(self, parameters=MappingProxyType(values))
