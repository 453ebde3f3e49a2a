"""The filters. They are discovered, not listed: add a module and it is in the program.

A filter is a module of this package or, if it is large, a package in it, that has a `FilterSpec`
called ``SPEC``, whose id is the name of the module. Modules without one, such as ``shared``, are
not filters. See the page *Add a filter*.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kernelscope.base.errors import UnknownName
from kernelscope.base.once import once
from kernelscope.schema.filter import IN_3D, Diagnostic, FilterSpec
from kernelscope.schema.levels import USUAL_LEVELS, Level
from kernelscope.schema.samples import Kind


@once
def names() -> frozenset[str]:
    """Return the names of the modules of this package: the ids of filters, which are not imported.

    A module that has no filter is only called ``shared``.
    """
    return frozenset(each.name for each in pkgutil.iter_modules(__path__)) - {"shared"}


@once
def _of_module(name: str) -> FilterSpec | None:
    """Return the filter of a module; None if it has none."""
    spec: FilterSpec | None
    spec = getattr(importlib.import_module(f"{__name__}.{name}"), "SPEC", None)
    if spec is not None and spec.id != name:
        raise ImportError(f"filter {spec.id!r} must live in a module of that name")
    return spec


@once
def _all() -> Mapping[str, FilterSpec]:
    """Return every filter by its id: each module of this package that has a ``SPEC``."""
    specs = [spec for spec in map(_of_module, sorted(names())) if spec is not None]
    return MappingProxyType({spec.id: spec for spec in sorted(specs, key=lambda spec: spec.name)})


@functools.cache
def discover(kind: Kind = Kind.PICTURE) -> Mapping[str, FilterSpec]:
    """Return every filter of `kind` by its id, sorted by name."""
    return MappingProxyType({key: spec for key, spec in _all().items() if spec.kind is kind})


@functools.cache
def in_3d() -> Mapping[str, FilterSpec]:
    """Return every filter for pictures as it is with a mask through slices, by its own id."""
    found = (spec.in_3d for spec in _all().values() if spec.in_3d)
    return MappingProxyType({spec.id: spec for spec in found})


def find(filter_id: str) -> FilterSpec | None:
    """Return the filter with this id, of any kind, or None."""
    if filter_id in names():
        return _of_module(filter_id)
    base = filter_id.removesuffix(IN_3D)
    spec = _of_module(base) if base != filter_id and base in names() else None
    return spec.in_3d if spec else None


def get(filter_id: str) -> FilterSpec:
    """Return the filter called `filter_id`, of any kind (dashes and underscores are the same).

    No other filter is imported for it.
    """
    spec = find(filter_id.replace("-", "_"))
    if spec is None:
        names = ", ".join(name.replace("_", "-") for name in sorted(_all()))
        raise UnknownName(f"There is no filter “{filter_id}”.", f"Use one of {names}.")
    return spec


def diagnostic(
    filter_id: str, parameters: Mapping[str, Any], microscope: bool
) -> tuple[Diagnostic, tuple[Any, ...]]:
    """Return the map that goes with a filter of volumes, and its settings.

    A filter that has none gets the first one of another filter, with its defaults.
    """
    spec, values = get(filter_id), parameters
    if spec.diagnostic is None:
        spec = next(each for each in discover(Kind.VOLUME).values() if each.diagnostic)
        values = {}
    assert spec.diagnostic is not None
    return spec.diagnostic, spec.diagnostic.settings({**spec.defaults(), **values}, microscope)


def levels(device: str) -> dict[str, Level]:
    """Return every level that any filter has on a kind of device, by its id; usual ones first."""
    found = {level.id: level for level in USUAL_LEVELS[device]}
    for spec in _all().values():
        for level in spec.levels(device):
            found.setdefault(level.id, level)  # a filter may describe a usual level in other words
    return found
