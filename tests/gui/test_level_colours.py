"""The colours of the memory levels: one each, readable in both themes."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtGui import QColor

from kernelscope.schema.level_colours import COLOURS, OTHER, colour
from kernelscope.schema.levels import CPU_LEVELS, GLOBAL, GPU_LEVELS
from tests.gui.helpers import contrast


def test_each_usual_level_has_a_colour_of_its_own() -> None:
    levels = [*CPU_LEVELS, *GPU_LEVELS]
    assert set(COLOURS) == {level.id for level in levels}
    assert len({colour(level) for level in levels}) == len(levels)
    assert colour(GLOBAL) == colour("global")
    assert colour("of one filter only") == OTHER not in COLOURS.values()


@pytest.mark.parametrize("name", [*COLOURS.values(), OTHER])
@pytest.mark.parametrize("ground", ["#ffffff", "#2a2a2a"])
def test_a_colour_is_readable_on_both_grounds(name: str, ground: str) -> None:
    assert contrast(name, ground) >= 3


def rgb(name: str) -> tuple[int, int, int]:
    colour = QColor(name)
    return colour.red(), colour.green(), colour.blue()


def test_colours_differ() -> None:
    for one, other in combinations([*COLOURS.values(), OTHER], 2):
        parts = zip(rgb(one), rgb(other), strict=True)
        assert sum(abs(a - b) for a, b in parts) > 60, (one, other)
