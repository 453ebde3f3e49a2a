"""*What* a filter is: one module each, found by looking, never listed by hand."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.filters.spec import FilterSpec, Level


@functools.cache
def discover() -> Mapping[str, FilterSpec]:
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


def get(filter_id: str) -> FilterSpec:
    """Return the filter called `filter_id` (dashes and underscores are the same)."""
    spec = discover().get(filter_id.replace("-", "_"))
    if spec is None:
        names = ", ".join(name.replace("_", "-") for name in sorted(discover()))
        raise InvalidParameter(f"There is no filter “{filter_id}”.", f"Use one of {names}.")
    return spec


def gpu_levels() -> dict[str, Level]:
    """Return every level that any filter has on a GPU, by its id."""
    from app.filters.spec import GPU_LEVELS

    own = (level for spec in discover().values() for level in spec.gpu_levels)
    return {level.id: level for level in (*GPU_LEVELS, *own)}
