"""Which display holds for input and output, and for the pictures that follow."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import Displays, PaneSide
from kernelscope.images.image import Image

FULL, DARK = Display(0, 255), Display(0, 100)


def picture(dtype: str = "uint8") -> Image:
    return Image.from_array(np.ones((4, 5), dtype))


def test_only_outputs_of_the_same_type_take_the_levels_of_the_input() -> None:
    displays = Displays()
    displays.show_input(picture(), FULL, follows=False)
    displays.choose(PaneSide.INPUT, DARK)
    assert displays.linked
    displays.show_output(picture(), FULL)
    assert displays.of(PaneSide.OUTPUT) == DARK
    unit = Display(0, 1)
    displays.show_output(picture("float32"), unit)
    assert displays.of(PaneSide.OUTPUT) == unit


@pytest.mark.parametrize(
    ("dtype", "follows", "kept"),
    [("uint8", True, True), ("uint8", False, False), ("uint16", True, False)],
)
def test_a_chosen_display_stays_with_pictures_made_from_the_first(
    dtype: str, follows: bool, kept: bool
) -> None:
    displays = Displays()
    first = picture()
    displays.show_input(first, FULL, follows=False)
    displays.choose(PaneSide.INPUT, DARK)
    displays.show_input(picture(dtype), FULL, follows=follows)
    assert displays.of(PaneSide.INPUT) == (DARK if kept else FULL)
    displays.show_input(first, FULL, follows=False)
    assert displays.of(PaneSide.INPUT) == DARK, "the first one keeps its own"
