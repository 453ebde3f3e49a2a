"""Plans: the experiments of the four sources and a short first run, from ``presets.toml``.

Also from filters, sizes and mask sizes to the sweeps of a plan (`grid`).

The published figures come from `kernelscope.bench.figures`; they were measured on other hardware.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter, UnknownName
from kernelscope.base.paths import RESOURCES
from kernelscope.bench.cases import subjects
from kernelscope.bench.data import SEED, Content, Data, kind_of
from kernelscope.bench.figures import PublishedFigure, all_figures, titled
from kernelscope.bench.plan import Parameters, Plan, Sweep
from kernelscope.schema.filter import FilterSpec


def grid(
    names: Iterable[str],
    sizes: Sequence[int],
    masks: Sequence[int],
    data: Data | None = None,
) -> tuple[Sweep, ...]:
    """Return the sweeps over filters, sizes and mask sizes.

    `names`: filter ids; none for all filters of the kind of `data`. `sizes`: sides of the square
    pictures (of cubes, for filters of volumes). `masks`: mask sizes, for the filters that have one;
    sizes that a filter does not support are left out. `data`: filter this instead of squares of
    these sizes, for example the open picture.
    """
    chosen = [filters.get(name) for name in names]
    if data is not None:
        kind = kind_of(data)
        chosen = chosen or list(filters.discover(kind).values())
        for spec in chosen:
            if spec.kind is not kind:
                raise InvalidParameter(f"{spec.name} filters {spec.kind}s, but this is a {kind}.")
    sweeps = []
    for spec in chosen or filters.discover().values():
        defaults = spec.bench
        wanted = (Data.square(spec, side, defaults.channels) for side in sizes)
        parameters = tuple(cases(spec, masks))
        if parameters:
            sweeps.append(
                Sweep(
                    filter=spec.id,
                    parameters=parameters,
                    data=tuple(wanted) if data is None else (data,),
                    border=defaults.border,
                )
            )
    return tuple(sweeps)


def cases(spec: FilterSpec, masks: Sequence[int]) -> Iterator[Parameters]:
    """Yield the parameters to time a filter with: each variant at each mask size it supports."""
    sized: list[dict[str, Any]] = [{}]
    for parameter in spec.parameters:
        if parameter.sets_side:
            tables = (parameter.for_side(side, weights) for side in masks)
            sized = [{parameter.name: each} for each in tables if each is not None]
    for variant, size in itertools.product(spec.bench.variants, sized):
        values = {**size, **variant}
        spec.validate(values)
        yield values


def weights(side: int) -> tuple[tuple[int, ...], ...]:
    """Return a mask of integer weights without any structure that a filter could exploit."""
    table = np.random.default_rng(SEED).integers(-9, 10, (side, side))
    return tuple(tuple(int(weight) for weight in row) for row in table)


@dataclass(frozen=True)
class Preset:
    name: str  # named after the sources' experiments
    summary: str  # its purpose, in one sentence
    plan: Plan
    sources: str = ""  # the sources whose figures are quoted, ``FMNV``; empty for none

    @property
    def title(self) -> str:
        """The name with the author of the source instead of its letter."""
        return titled(self.name)

    @cached_property
    def figures(self) -> tuple[PublishedFigure, ...]:
        rows = [case.row() for sweep in self.plan.sweeps for case in subjects(sweep)]
        return tuple(
            figure
            for figure in all_figures()
            if figure.source in self.sources and any(map(figure.is_about, rows))
        )


def _read() -> Iterator[Preset]:
    content = tomllib.loads((RESOURCES / "presets.toml").read_text(encoding="utf-8"))
    for fields in content["preset"]:
        name, summary = fields["name"], fields.pop("summary")
        sources = fields.pop("sources", "")
        sweeps = tuple(map(_sweep, fields.pop("sweep")))
        yield Preset(name, summary, Plan(sweeps=sweeps, **_values(fields)), sources)


def _sweep(fields: Mapping[str, Any]) -> Sweep:
    content, channels = Content(fields.get("data", Content.NOISE)), fields.get("channels", 1)
    fixed, parameters = fields.get("fixed", {}), fields.get("parameters")
    if "masks" in fields:
        parameters = [{"mask": weights(side)} for side in fields["masks"]]
        fixed = {"divisor": "count"}
    elif parameters is None:
        each: dict[str, list[Any]] = fields.get("each", {})
        combined = itertools.product(*each.values())
        parameters = [dict(zip(each, values, strict=True)) for values in combined]
    return Sweep(
        filter=fields["filter"],
        parameters=tuple(map(_values, parameters)),
        data=tuple(Data(content, _shape(size), channels) for size in fields["sizes"]),
        fixed=_values(fixed),
    )


def _shape(size: int | str) -> tuple[int, ...]:
    """Return (height, width) of a square, or (depth, height, width) of ``256x256x37``."""
    if isinstance(size, int):
        return size, size
    return tuple(reversed([int(side) for side in size.split("x")]))


def _values(fields: Parameters) -> dict[str, Any]:
    """Return the values with tuples, which cannot change, in place of lists."""
    return {name: _fixed(value) for name, value in fields.items()}


def _fixed(value: Any) -> Any:
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


PRESETS = {preset.name: preset for preset in _read()}  # of ``resources/presets.toml``, by name

QUICK_LOOK = PRESETS["Quick look"]


def get(name: str) -> Preset:
    found = [
        preset for preset in PRESETS.values() if preset.name.casefold().startswith(name.casefold())
    ]
    if len(found) != 1:
        names = "; ".join(preset.name for preset in found) or "; ".join(PRESETS)
        raise UnknownName(
            f"There is no preset “{name}”." if not found else f"“{name}” matches several presets.",
            f"Use one of: {names}.",
        )
    return found[0]
