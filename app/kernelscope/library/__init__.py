"""The program as functions: NumPy arrays in, NumPy arrays out.

``import kernelscope as ks`` shows the members of this package as its own: a function for each
filter (`functions`), `recipes.Recipe`, `heads.phantom`, `heads.noise`, `comparison.quality`, and
the errors. They are generated from the specs, or imported on first use: importing the package
costs nothing. ``.ci/generate.py`` writes ``kernelscope/__init__.pyi``, which describes them for
editors.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from kernelscope import filters
from kernelscope.library import functions
from kernelscope.schema.samples import Kind

ERRORS = (
    "AppError",
    "Cancelled",
    "DeviceUnavailable",
    "Incomparable",
    "InvalidImage",
    "InvalidParameter",
    "InvalidRecipe",
    "NotANumber",
    "OutOfMemory",
)
"""The errors that functions raise, from `kernelscope.base.errors`."""

MODULES: Mapping[str, str] = {
    **dict.fromkeys(ERRORS, "kernelscope.base.errors"),
    "Recipe": "kernelscope.library.recipes",
    "denoise": "kernelscope.library.functions",
    "noise": "kernelscope.library.heads",
    "phantom": "kernelscope.library.heads",
    "quality": "kernelscope.library.comparison",
    "residual_correlation": "kernelscope.library.comparison",
}
"""The modules of members that are no filters."""


def names() -> list[str]:
    return sorted({*MODULES, *(key for kind in Kind for key in filters.discover(kind))})


def member(name: str) -> Any:
    """Return the member of that name, or None."""
    if name in MODULES:
        return getattr(importlib.import_module(MODULES[name]), name)
    spec = filters.find(name)
    return functions.function_of(spec) if spec else None
