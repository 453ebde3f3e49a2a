"""Recipes: several filters with their settings, one after the other, and their form as text.

A recipe says *what* to do, so that it gives the same picture wherever it runs; device, level
and the like say *how* (`kernelscope.engine.options`) and are not part of it.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from kernelscope import filters
from kernelscope.base import json_fields
from kernelscope.base.errors import InvalidRecipe
from kernelscope.base.json_fields import Field, InvalidJson
from kernelscope.engine.area import Area
from kernelscope.engine.step import ESTIMATE, Step, check_border
from kernelscope.images.volume import AXES
from kernelscope.schema.borders import Border
from kernelscope.schema.parameters import Parameter

FORMAT = "kernelscope recipe"
VERSION = 3
"""Increases with every change that would give a file another result; see `Parameter.formerly`."""


DIMENSIONS = ("2d", "3d")
"""Of the mask of a filter for pictures on volumes: in each slice, or through them."""


@dataclass(frozen=True)
class Recipe:
    steps: tuple[Step, ...]  # at least one

    def __post_init__(self) -> None:
        if not self.steps:
            raise InvalidRecipe("The recipe has no steps.", "It needs at least one filter.")

    def to_json(self) -> str:
        """Return the recipe as text that people can read and change."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "steps": [
                {
                    "filter": step.filter.base_id.replace("_", "-"),
                    **({"dimensions": "3d"} if step.filter.is_in_3d else {}),
                    "parameters": {
                        name: _plain(step.filter.parameter(name), value)
                        for name, value in step.values.items()
                    },
                    "border": str(step.border),
                    "grey": step.grey,
                    **({"axis": AXES[step.axis]} if step.axis else {}),
                    **({"within": step.within.format()} if step.within else {}),
                }
                for step in self.steps
            ],
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str = "recipe") -> Recipe:
        """Return the recipe in `text`.

        Parameters, border, grey and axis have their defaults where they are left out: those of
        the time of the file's version.

        - `name`: name of the text in messages.

        Raises `InvalidRecipe` if it is no recipe, of a later version, or has a step that cannot be;
        the message has the path of the value: ``steps[0].parameters.size``.
        """
        try:
            return _recipe(json_fields.parse(text, name), name)
        except InvalidJson as error:
            raise InvalidRecipe(error.message, error.hint) from None


def _plain(parameter: Parameter, value: Any) -> Any:
    """Return a value as recipes hold it."""
    return parameter.format(value) if parameter.stored_as_text else value


def _recipe(content: Field, name: str) -> Recipe:
    if not isinstance(content.value, dict) or content.value.get("format") != FORMAT:
        raise InvalidRecipe(
            f"{name}: this is no recipe.", f'One starts with {{"format": "{FORMAT}".'
        )
    version = content["version"].whole(1, _NEWEST)
    if version > VERSION:
        content["version"].refuse(
            f"version {version} of recipes is unknown.",
            f"This program reads versions 1 to {VERSION}; a newer one may have written it.",
        )
    content.only(("format", "version", "steps"))
    steps = content["steps"].elements()
    if not steps:
        content["steps"].refuse("there are no steps.", "It needs at least one filter.")
    return Recipe(tuple(_step(step, version) for step in steps))


_NEWEST = 1000  # upper limit of version numbers; a larger one is not a version


def _step(content: Field, version: int) -> Step:
    content.only(("filter", "dimensions", "parameters", "border", "grey", "axis", "within"))
    spec = content["filter"].from_text(filters.get)
    if "dimensions" in content and content["dimensions"].one_of(DIMENSIONS) == "3d":
        if spec.in_3d is None:
            content["dimensions"].refuse(
                f"{spec.name} has no mask in three dimensions.", "Leave it out."
            )
        assert spec.in_3d is not None
        spec = spec.in_3d
    border = spec.borders[0]
    if "border" in content:
        content["border"].from_text(functools.partial(check_border, spec))
        border = Border(content["border"].text())
    former = {each.name: each.formerly for each in spec.parameters if version in each.formerly}
    values = {name: defaults[version] for name, defaults in former.items()}
    if "parameters" in content:
        values |= {
            name: _value(value.through(spec.parameter, name), value)
            for name, value in content["parameters"].fields()
        }
    grey = "grey" in content and content["grey"].flag()
    axis = AXES.index(content["axis"].one_of(AXES)) if "axis" in content else 0
    within = content["within"].from_text(Area.parse) if "within" in content else None
    create = functools.partial(
        Step.create, spec.id, border=border, grey=grey, axis=axis, within=within
    )
    return content.through(create, values)


def _value(parameter: Parameter, content: Field) -> Any:
    if parameter.stored_as_text:
        return content.from_text(parameter.parse)
    if content.value == ESTIMATE and parameter.has_estimate:
        return ESTIMATE
    return content.through(parameter.validate, content.plain())
