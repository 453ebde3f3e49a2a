"""Minimum, maximum and morphology at level parallel beside the plain loops, with masks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask

OPERATIONS = ("opening", "closing", "gradient", "white-top-hat", "black-top-hat")
FILTERS: list[tuple[str, dict[str, Any]]] = [
    ("minimum", {}),
    ("maximum", {}),
    *(("morphology", {"operation": each}) for each in OPERATIONS),
]
every = pytest.mark.parametrize(("name", "own"), FILTERS, ids=str)

CORNER = np.eye(7, dtype=bool)
CORNER[1:] = False
"""A mask of one cell, which is outside the image for all pixels of two of its edges."""


def both_levels(
    name: str, source: NDArray[Any], values: Mapping[str, Any], border: Border
) -> list[NDArray[Any]]:
    """Return the results of the plain loops, and of level parallel in bands of 7 rows and more."""
    spec = filters.get(name)
    values, source = spec.validate(values), source[..., np.newaxis]
    source.flags.writeable = False
    made = []
    for level in spec.levels("cpu"):
        output = np.empty(spec.output_shape(source.shape, values, border), source.dtype)
        task = CpuTask(source, output, values, border, level.id)
        for sweep in spec.implementation(Cpu).plan(task):
            for start, stop in pairwise((0, 7, sweep.rows)):
                sweep.kernel(*sweep.arguments, start, stop)
        made.append(output)
    return made


@every
def test_masks_of_any_shape(name: str, own: dict[str, Any]) -> None:
    """Runs of all lengths, masks larger than the image, and such as leave it altogether."""
    random = np.random.default_rng(4)
    source = random.integers(0, 256, (43, 26)).astype(np.uint8)
    runs = np.tri(31, dtype=bool)  # of 1 to 31 cells
    masks = [CORNER, CORNER[::-1], runs, *(random.random((n, n)) > 0.4 for n in (3, 4, 9, 15))]
    for mask, border in product(masks, filters.get(name).borders):
        if border is Border.VALID and 2 * len(mask) > 26:
            continue
        serial, parallel = both_levels(name, source, {**own, "footprint": mask}, border)
        np.testing.assert_array_equal(parallel, serial, f"{border} {mask}")


@every
@pytest.mark.parametrize(
    ("border", "values"),
    [(Border.WRAP, {"size": 15}), (Border.REDUCE, {"size": 9, "footprint": "disk"})],
    ids=str,
)
def test_pictures_of_several_blocks(
    name: str, own: dict[str, Any], border: Border, values: dict[str, Any]
) -> None:
    """Wider, too, than the part of a block whose columns are computed at a time."""
    source = np.random.default_rng(4).integers(0, 256, (90, 3100)).astype(np.uint8)
    serial, parallel = both_levels(name, source, {**own, **values}, border)
    np.testing.assert_array_equal(parallel, serial)
