"""From filters, sizes and mask sizes to the sweeps of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.bench.data import SEED, Data, kind_of
from kernelscope.bench.plan import Parameters, Sweep
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
