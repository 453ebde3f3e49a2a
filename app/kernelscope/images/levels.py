"""Black and white that the user gives, for sources whose type does not state them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from kernelscope.base.errors import InvalidParameter
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind, Levels, is_bytes

_Any = TypeVar("_Any", bound=Image | Volume)


def given_levels(white: float | None, black: float | None = None) -> Levels | None:
    """Return the levels that were given; None without any.

    Raises `InvalidParameter` if they are no range, or black comes alone.
    """
    if white is None and black is None:
        return None
    if white is None:
        raise InvalidParameter("Black is given without white.", "Give both, or white alone.")
    levels = Levels(0.0 if black is None else float(black), float(white))
    if not (math.isfinite(levels.span) and levels.span > 0):
        raise InvalidParameter(
            f"White, {levels.white:g}, is not above black, {levels.black:g}.",
            "Give a larger white, or a smaller black.",
        )
    least, most = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
    if max(map(abs, (*levels, levels.span))) > most or levels.span < least:
        raise InvalidParameter(
            f"From black, {levels.black:g}, to white, {levels.white:g}, is too far or too near "
            "for 32-bit floats.",
            f"Use numbers up to {most:.2g}, at least {least:.2g} apart.",
        )
    return levels


def own_levels(kind: Kind, dtype: np.dtype[Any]) -> str:
    """Return a notice that levels have no effect; empty where the type does not state its own."""
    if dtype.kind == "f" or (kind is Kind.VOLUME and not is_bytes(dtype)):
        return ""
    return f"White has no effect: that of a {kind} of {dtype} is the largest number of its type."


def with_levels(source: _Any, levels: Levels | None) -> _Any:
    """Return a source with the levels that were given, or with a notice if it has its own."""
    if levels is None:
        return source
    notice = own_levels_of(source)
    if not notice:
        return relevelled(source, levels)
    return replace(source, notices=(*source.notices, notice))


def relevelled(source: _Any, levels: Levels | None) -> _Any:
    """Return a source with other levels, or without any given; the same if it has its own."""
    if own_levels_of(source):
        return source
    notices = (_restated(each, levels) for each in source.notices)
    return replace(source, given_levels=levels, notices=tuple(notices))


RANGE = "Samples run from"


def range_notice(low: float, high: float, levels: Levels) -> str:
    """Return a notice of reading about floats beyond 0 and 1."""
    return f"{RANGE} {low:g} to {high:g}; {levels.describe()}."


def _restated(notice: str, levels: Levels | None) -> str:
    """Return a notice of reading with the levels that were given in place of the estimated."""
    if not notice.startswith(RANGE):
        return notice
    samples = notice.partition(";")[0].removesuffix(".")
    return f"{samples}; {levels.describe()}." if levels is not None else f"{samples}."


def takes_levels(source: Image | Volume) -> bool:
    """Return whether the type of a source states no black and white."""
    return not own_levels_of(source)


def own_levels_of(source: Image | Volume) -> str:
    if isinstance(source, Image):
        return own_levels(Kind.PICTURE, source.dtype)
    return own_levels(Kind.VOLUME, source.voxels.dtype)
