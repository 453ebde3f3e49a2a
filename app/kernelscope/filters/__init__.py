"""*What* a filter is: one module each, found by looking, never listed by hand."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from kernelscope.errors import InvalidParameter
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.levels import CPU_LEVELS, GPU_LEVELS, Level
from kernelscope.spec.samples import Kind


@functools.cache
def _all() -> Mapping[str, FilterSpec]:
    """Return every filter by its id: each module of this package that has a ``SPEC``."""
    specs = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        spec = getattr(module, "SPEC", None)
        if spec is not None:
            if spec.id != module_info.name:
                raise ImportError(f"filter {spec.id!r} must live in a module of that name")
            specs[spec.id] = spec
    return MappingProxyType(dict(sorted(specs.items(), key=lambda item: item[1].name)))


@functools.cache
def discover(kind: Kind = Kind.PICTURE) -> Mapping[str, FilterSpec]:
    """Return every filter of `kind` by its id, sorted by name."""
    return MappingProxyType({key: spec for key, spec in _all().items() if spec.kind is kind})


def get(filter_id: str) -> FilterSpec:
    """Return the filter called `filter_id`, of any kind (dashes and underscores are the same)."""
    spec = _all().get(filter_id.replace("-", "_"))
    if spec is None:
        names = ", ".join(name.replace("_", "-") for name in sorted(_all()))
        raise InvalidParameter(f"There is no filter “{filter_id}”.", f"Use one of {names}.")
    return spec


def cpu_levels() -> dict[str, Level]:
    """Return every level that any filter has on the CPU, by its id."""
    own = {level.id: level for spec in _all().values() for level in spec.cpu_levels}
    usual = {level.id: level for level in CPU_LEVELS}
    return usual | {key: level for key, level in own.items() if key not in usual}


def gpu_levels() -> dict[str, Level]:
    """Return every level that any filter has on a GPU, by its id."""
    own = (level for spec in _all().values() for level in spec.gpu_levels)
    return {level.id: level for level in (*GPU_LEVELS, *own)}
