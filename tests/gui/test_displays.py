"""Which display holds for input and output, and for the pictures that follow."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import Displays, PaneSide, automatic_of, full_of
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume

FULL, DARK = Display(0, 255), Display(0, 100)


def picture(displays: Displays, automatic: Display = FULL, dtype: str = "uint8") -> Image:
    made = Image.from_array(np.ones((4, 5), dtype))
    displays.remember(made, automatic)
    return made


def test_only_outputs_of_the_same_type_take_the_levels_of_the_input() -> None:
    displays = Displays()
    displays.show_input(picture(displays), follows=False)
    displays.choose(PaneSide.INPUT, DARK)
    assert displays.linked
    displays.show_output(picture(displays))
    assert displays.of(PaneSide.OUTPUT) == DARK
    unit = Display(0, 1)
    displays.show_output(picture(displays, unit, "float32"))
    assert displays.of(PaneSide.OUTPUT) == unit


@pytest.mark.parametrize(
    ("dtype", "follows", "kept"),
    [("uint8", True, True), ("uint8", False, False), ("uint16", True, False)],
)
def test_a_chosen_display_stays_with_pictures_made_from_the_first(
    dtype: str, follows: bool, kept: bool
) -> None:
    displays = Displays()
    first = picture(displays)
    displays.show_input(first, follows=False)
    displays.choose(PaneSide.INPUT, DARK)
    displays.show_input(picture(displays, FULL, dtype), follows=follows)
    assert displays.of(PaneSide.INPUT) == (DARK if kept else FULL)
    displays.show_input(first, follows=False)
    assert displays.of(PaneSide.INPUT) == DARK, "the first one keeps its own"


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_the_contrast_of_a_slice_and_of_its_volume_is_one(dtype: str) -> None:
    values = np.linspace(0, 4000, 64**2).astype(dtype).reshape(1, 64, 64)
    picture, volume = Image.from_array(values[0]), Volume.from_array(values)
    display = automatic_of(volume)
    assert display == automatic_of(picture)
    assert (display.low, display.high) == pytest.approx((8, 3992), abs=1)


def test_a_volume_has_no_white_but_that_of_its_voxels() -> None:
    values = np.random.default_rng(0).uniform(0, 100, (60, 60, 60)).astype(np.float32)
    values[30, 30, 30] = 1e9  # one hot voxel must not make everything black
    display = automatic_of(Volume.from_array(values))
    assert (display.low, display.high) == pytest.approx((0.2, 99.8), abs=0.2)
    mostly = np.zeros((10, 10, 10), np.uint8)
    mostly[5, 5, 5] = 200
    for shown in (automatic_of(Volume.from_array(mostly)), full_of(Volume.from_array(mostly))):
        assert shown == Display(0, 200)
    flat = automatic_of(Volume.from_array(np.full((4, 5, 6), 7, np.uint8)))
    assert flat.low == 7 < flat.high


def test_outputs_of_volumes_take_the_levels_of_the_input_in_every_type() -> None:
    displays = Displays()
    first = Volume.from_array(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    output = first.with_voxels(first.voxels / 2, as_float=True)
    displays.show_input(first, follows=False)
    displays.choose(PaneSide.INPUT, DARK)
    displays.show_output(output)
    assert displays.of(PaneSide.OUTPUT) == DARK
    displays.linked = False
    assert displays.of(PaneSide.OUTPUT) == automatic_of(output)


def test_another_component_has_its_own_levels_in_the_same_colours() -> None:
    displays = Displays()
    first, second = (
        Volume.from_array(np.arange(24, dtype=np.int16).reshape(2, 3, 4) * factor)
        for factor in (1, 10)
    )
    displays.show_input(first, follows=False)
    displays.choose(PaneSide.INPUT, Display(3, 5, 0.5, ColourMap.MAGMA))
    displays.show_input(second, follows=False, beside=True)
    own = automatic_of(second)
    assert displays.of(PaneSide.INPUT) == Display(own.low, own.high, 0.5, ColourMap.MAGMA)
    displays.show_input(first, follows=False, beside=True)
    assert displays.of(PaneSide.INPUT) == Display(3, 5, 0.5, ColourMap.MAGMA)
