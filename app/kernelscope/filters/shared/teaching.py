"""Fields that the specs of all teaching filters share."""

from __future__ import annotations

from functools import partial

from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import CONSTANT, TEXTURE

GAPS = {
    CONSTANT.id: "There is no mask to keep in constant memory.",
    TEXTURE.id: "Each sample is read once, in order: there is nothing to cache.",
}
"""Why they lack these levels, where they have no better reason."""

TeachingSpec = partial(
    FilterSpec,
    category="Teaching",
    restores=False,
    parameters=(),
    borders=(Border.REFLECT,),  # no mask reaches beyond the edge
)
"""A `FilterSpec` with the fields that all teaching filters share."""
