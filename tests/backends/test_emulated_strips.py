"""Strips of a picture have the rows of the whole: filters of one launch, and of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cuda.strips import strip
from kernelscope.schema.borders import Border
from tests.backends import emulated
from tests.filters import apply
from tests.oracle import OWN_FOOTPRINT
from tests.pairs import in_turn

pytestmark = [pytest.mark.slow, emulated.needs_compiler]

MASK = {"footprint": OWN_FOOTPRINT}
SETTINGS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("bilateral", {"size": 5}, ("tuned",)),
    ("median", MASK, ("shared", "tuned")),
    ("morphology", {"operation": "opening", "size": 3}, ("tuned",)),
    ("morphology", {"operation": "closing", **MASK}, ("global", "shared", "tuned")),
    ("morphology", {"operation": "gradient", **MASK}, ("tuned",)),
    ("morphology", {"operation": "white-top-hat", **MASK}, ("texture",)),
]


BORDERS = (Border.REFLECT, Border.WRAP, Border.VALID, Border.REDUCE)


@pytest.mark.parametrize(("setting", "border"), in_turn(SETTINGS, BORDERS, every=3))
def test_strips_have_the_rows_of_the_whole(
    setting: tuple[str, dict[str, Any], tuple[str, ...]], border: Border
) -> None:
    """At the edges, in the middle, of one row, and smaller than the mask."""
    filter_id, parameters, levels = setting
    spec = filters.get(filter_id)
    pixels = np.random.default_rng(2).integers(0, 256, (29, 37, 3)).astype(np.uint8)
    wanted = apply(spec, pixels, parameters, border)
    radius = spec.radius(spec.validate(parameters))
    for level in levels:
        for rows in ((0, 11), (11, 12), (12, len(wanted))):
            part = strip(len(pixels), rows, radius, border)
            found = emulated.run(filter_id, pixels, parameters, level, border, part=part)
            np.testing.assert_array_equal(found, wanted[slice(*rows)], f"{level} {rows}")
