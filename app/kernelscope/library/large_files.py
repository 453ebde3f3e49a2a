"""Recipes on files larger than memory, for `kernelscope.library.recipes.Recipe.apply_file`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from kernelscope.base.errors import InvalidParameter
from kernelscope.big.lazy.files import Filed, filter_file
from kernelscope.engine.control import no_progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.images.levels import given_levels
from kernelscope.library.arguments import check_common
from kernelscope.library.session import PolledToken, session


def apply_file(
    recipe: Recipe,
    source: str | PathLike[str],
    target: str | PathLike[str],
    memory: int | str,
    number: int | None,
    given: Mapping[str, Any],
) -> Filed:
    """Filter a file in blocks; parameters and errors are those of `Recipe.apply_file`."""
    check_common({**given, "nan": None})
    limit = byte_count(memory)
    token = PolledToken(given["cancel"])
    try:
        return filter_file(
            recipe,
            Path(source),
            Path(target),
            limit,
            session().backends(),
            number=number,
            options=RunOptions(Device(given["device"]), given["level"]),
            token=token,
            progress=given["progress"] or no_progress,
            levels=given_levels(given["white"], given["black"]),
        )
    except BaseException:
        token.cancel()  # Ctrl+C, or an error of a callback: other threads would go on
        raise


def byte_count(memory: int | str) -> int:
    """Return a number of bytes, which may be a text such as ``"2G"``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", str(memory).upper())
    if isinstance(memory, bool) or match is None or float(match[1]) == 0:
        raise InvalidParameter(f"memory: {memory!r} is no size.", 'Use bytes, or a text as "2G".')
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " "))
