"""The colours of the memory levels: one each, readable in both themes."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtGui import QColor

from kernelscope.schema.levels import CPU_LEVELS, GLOBAL, GPU_LEVELS, OTHER_COLOUR, colour
from tests.gui.helpers import contrast

COLOURS = [level.colour for level in (*CPU_LEVELS, *GPU_LEVELS)]


def test_each_usual_level_has_a_colour_of_its_own() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    assert colour(GLOBAL) == colour("global")
    assert colour("of one filter only") == OTHER_COLOUR not in COLOURS


@pytest.mark.parametrize("name", [*COLOURS, OTHER_COLOUR])
@pytest.mark.parametrize("ground", ["#ffffff", "#2a2a2a"])
def test_a_colour_is_readable_on_both_grounds(name: str, ground: str) -> None:
    assert contrast(name, ground) >= 3


def rgb(name: str) -> tuple[int, int, int]:
    colour = QColor(name)
    return colour.red(), colour.green(), colour.blue()


def test_colours_differ() -> None:
    for one, other in combinations([*COLOURS, OTHER_COLOUR], 2):
        parts = zip(rgb(one), rgb(other), strict=True)
        assert sum(abs(a - b) for a, b in parts) > 60, (one, other)
