"""Displays: the step of the colours that a value gets, and which one holds for which picture."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.gui.model.display import (
    ColourMap,
    Display,
    Displays,
    PaneSide,
    automatic_of,
    first_of,
    full_of,
    table,
)
from kernelscope.images.image import Image
from kernelscope.images.source import Channel
from kernelscope.images.volume import Among, Volume

RANDOM = np.random.default_rng(11)
RAMP = np.linspace(0, 1, 10_000).reshape(100, 100, 1)


def expected(display: Display, values: np.ndarray) -> np.ndarray:
    share = (values.astype(np.float64) - display.low) / (display.high - display.low)
    return np.rint(255 * np.clip(share, 0, 1) ** display.gamma)


@pytest.mark.parametrize(
    ("planes", "low", "high"),
    [
        (np.full((9, 9, 1), 3, np.uint8), 0, 255),
        ((RAMP * 65535).astype(np.uint16), 0, 65535),
        ((RAMP * 4095).astype(np.uint16), 8, 4086),
        (RAMP.astype(np.float32), 0, 1),
        ((RAMP * 1.1 - 0.05).astype(np.float32), 0, 1),
        ((RAMP * 85 - 20).astype(np.float32), -19.83, 64.83),
        ((RAMP * 0.01).astype(np.float32), 0.00002, 0.00998),
    ],
    ids=["8 bit", "16 bit", "12 in 16", "0 to 1", "with noise", "-20 to 65", "very dark"],
)
def test_automatic_display_shows_every_kind_of_picture(
    planes: np.ndarray, low: float, high: float
) -> None:
    display = Display.automatic(planes)
    assert (display.low, display.high) == pytest.approx((low, high), rel=1e-3)
    assert (display.gamma, display.colour_map) == (1, ColourMap.GREY)


def test_a_few_hot_pixels_do_not_decide() -> None:
    planes = (RANDOM.random((300, 300, 1)) * 100).astype(np.float32)
    planes[5, :30] = 1e6
    assert Display.automatic(planes).high < 101


def test_alpha_does_not_count() -> None:
    planes = np.full((40, 40, 2), 65535, np.uint16)
    planes[:, :, 0] = (RAMP[:40, :40, 0] * 4000).astype(np.uint16)
    assert Display.automatic(planes).high < 4001


@pytest.mark.parametrize("value", [0.0, -7.5])
def test_flat_pictures_have_a_display(value: float) -> None:
    display = Display.automatic(np.full((8, 8, 1), value, np.float32))
    assert display.low < display.high
    mostly = np.full((100, 100, 1), value, np.float32)
    mostly[0, 0] = 50
    assert Display.automatic(mostly).high == 50


@pytest.mark.parametrize("gamma", [1, 0.5, 2.2])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_steps_follow_the_formula(dtype: str, gamma: float) -> None:
    values = (RANDOM.random((50, 40, 3)) * 250).astype(dtype)
    display = Display(20, 180.5, gamma)
    steps = display.steps(values)
    assert steps.dtype == np.uint8
    wrong = np.abs(steps - expected(display, values))
    # Floats are looked up in 4096 steps where gamma is not 1, and rounded in single precision.
    assert wrong.max() <= (1 if dtype == "float32" else 0)
    assert (wrong > 0).mean() < 0.1


def test_shares_beyond_the_window_saturate() -> None:
    values = np.array([-1e9, 99, 100, 900, 901, 1e9], np.float32)
    assert Display(100, 900).steps(values).tolist() == [0, 0, 0, 255, 255, 255]


def test_eight_bits_as_they_are_need_no_copy() -> None:
    planes = RANDOM.integers(0, 256, (9, 9, 3), np.uint8)
    assert Display.full(planes.dtype).steps(planes) is planes
    assert Display(0, 254).steps(planes) is not planes


@pytest.mark.parametrize("display", [Display(0, 255, 2.2), Display(0, 254), Display(1, 255)])
def test_eight_bits_with_a_gamma_or_a_window_are_drawn_otherwise(display: Display) -> None:
    values = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(display.steps(values), expected(display, values))
    assert (display.steps(values) != values).any()


def test_full_16_bits_are_rounded_to_8() -> None:
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256, 1)
    assert (Display.full(values.dtype).steps(values) == np.rint(values / 257)).all()
    assert values[0, 5, 0] == 5, "samples are left as they are"


def test_description_leaves_out_the_usual() -> None:
    assert Display(100, 900).describe() == "display 100..900"
    display = Display(0.25, 0.75, 0.8, ColourMap.VIRIDIS)
    assert display.describe() == "display 0.25..0.75, gamma 0.8, Viridis"


def test_swapped_ends_are_moved_apart() -> None:
    display = Display(0, 1).spanning(5, 3)
    assert display.low == 5 < display.high


def test_colour_maps_run_from_dark_to_light_or_say_so() -> None:
    luma = {each: table(each) @ np.array([0.299, 0.587, 0.114]) for each in ColourMap}
    for each in (ColourMap.GREY, ColourMap.VIRIDIS, ColourMap.MAGMA):
        assert (np.diff(luma[each]) > -0.5).all()
    assert (np.diff(luma[ColourMap.INVERTED]) < 0).all()
    sides = luma[ColourMap.DIVERGING]
    assert (np.diff(sides[:128]) < 0.5).all()
    assert (np.diff(sides[128:]) > -0.5).all()
    assert table(ColourMap.GREY).tolist() == [[step] * 3 for step in range(256)]
    red, blue = table(ColourMap.DIVERGING)[192], table(ColourMap.DIVERGING)[64]
    assert red[0] > red[2]
    assert blue[2] > blue[0]


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


@pytest.mark.parametrize(
    ("share", "colour", "count", "black"),
    [
        (0.1, "0000ff", 4, 76),  # few cells on a background
        (0.1, "0000ff", 1, 50),  # there is nothing to add up with
        (0.1, "", 4, 50),
        (0.9, "0000ff", 4, 50),  # the median is that of cells, not of the background
    ],
)
def test_the_background_of_channels_that_add_up_is_black(
    share: float, colour: str, count: int, black: float
) -> None:
    values = np.full(1000, 76, np.uint16)
    values[: round(1000 * share)] = np.linspace(200, 400, round(1000 * share))
    values[-5:] = 50
    volume = Volume.from_array(
        values.reshape(10, 10, 10),
        channel=Channel("Hoechst", colour),
        among=(Among("C", 0, count),),
    )
    assert automatic_of(volume).low == pytest.approx(black, abs=1)
    assert automatic_of(volume).high == pytest.approx(400, abs=5)


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


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_window_of_a_file_comes_first_until_automatic_levels_are_chosen(by_hand: bool) -> None:
    displays, channel = Displays(), Channel("DAPI", "0000FF", window=(3.0, 17.0))
    voxels = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    volume = Volume.from_array(voxels, channel=channel)
    displays.remember(volume, first_of(volume))
    displays.show_input(volume, follows=False)
    displays.show_output(volume.with_voxels(voxels * 100))
    for side in PaneSide:
        assert displays.of(side) == Display(3, 17, 1.0, ColourMap.BLUE)
        assert not displays.is_automatic(side)
    if by_hand:
        displays.choose(PaneSide.INPUT, DARK)
    displays.choose(PaneSide.INPUT, None)
    assert displays.of(PaneSide.INPUT) == automatic_of(volume)
    assert displays.is_automatic(PaneSide.INPUT)
    displays.linked = False
    assert displays.of(PaneSide.OUTPUT) == automatic_of(volume.with_voxels(voxels * 100))


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
