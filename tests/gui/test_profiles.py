"""Profile lines without a window: their samples, their changes and their table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from kernelscope.engine.area import Corner
from kernelscope.gui.model.displays import Units
from kernelscope.gui.model.measurements import (
    MOST_POINTS,
    Against,
    ProfiledPicture,
    length_of,
    measure,
    profile,
    profiles_as_csv,
    texts_of,
)
from kernelscope.gui.model.regions import Interest, Regions, Shape


def line(*ends: Corner) -> Interest:
    return Interest("L1", Shape.LINE, ends)


def test_samples_are_those_of_scipy_and_gaps_beyond_the_picture() -> None:
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 65536, (17, 23, 3), np.uint16)
    for _ in range(40):
        ends = [(int(x), int(y)) for x, y in rng.integers(-6, 30, (2, 2))]
        sampled = profile(line(*ends), ProfiledPicture("input", planes))
        places = sampled.places
        assert places[0].tolist() == list(ends[0])
        assert places[-1].tolist() == list(ends[1])
        steps = np.hypot(*np.diff(places, axis=0).T)
        assert steps.max() <= 1 + 1e-9
        assert sampled.distances == pytest.approx(np.hypot(*(places - places[0]).T))
        for channel in range(3):
            expected = map_coordinates(
                planes[:, :, channel].astype(float), places[:, ::-1].T, order=1, cval=np.nan
            )
            inside = ((places >= 0) & (places <= (22, 16))).all(1)
            assert np.isnan(sampled.levels[~inside]).all()
            assert sampled.levels[inside, channel] == pytest.approx(expected[inside])


def test_an_output_that_the_border_cropped_is_read_at_the_same_places() -> None:
    planes = np.arange(100, dtype=np.uint8).reshape(10, 10, 1)
    ends = line((0, 4), (9, 4))
    whole = profile(ends, ProfiledPicture("input", planes)).levels[:, 0]
    cropped = profile(ends, ProfiledPicture("output", planes[2:-2, 2:-2], None, 2)).levels[:, 0]
    assert np.isnan(cropped).tolist() == [True] * 2 + [False] * 6 + [True] * 2
    assert (cropped[2:-2] == whole[2:-2]).all()


def test_a_line_of_one_pixel_has_its_level() -> None:
    planes = np.array([[[7]]], np.uint8)
    sampled = profile(line((0, 0), (0, 0)), ProfiledPicture("input", planes))
    assert sampled.levels.tolist() == [[7], [7]]
    assert sampled.distances.tolist() == [0, 0]


def test_a_line_far_beyond_the_picture_has_few_points() -> None:
    """One that was drawn on a tiny magnification kept a thread busy for minutes."""
    planes = np.full((4, 4, 1), 9, np.uint8)
    sampled = profile(
        line((-2_000_000_000, 1), (2_000_000_000, 1)), ProfiledPicture("input", planes)
    )
    assert len(sampled.places) == MOST_POINTS + 1
    assert sampled.places[-1].tolist() == [2_000_000_000, 1]


def test_figures_of_a_line_are_those_of_its_samples() -> None:
    planes = np.array([[10, 20, 40], [0, 0, 0]], np.uint8)[:, :, np.newaxis]
    region = Interest("R1", Shape.RECTANGLE, ((0, 0), (3, 1)))
    along, box = measure(
        [line((0, 0), (5, 0)), region], Against("R1"), [ProfiledPicture("input", planes)]
    )
    assert along.figures == box.figures  # beyond the picture there is nothing to count
    assert along.cnr is None
    assert texts_of([along], Units.STORED)[0][3] == "10.000"
    sloping = measure([line((0, 0), (1, 1))], Against(), [ProfiledPicture("input", planes)])[0]
    # Three points: 10, the mean of the four pixels around the middle, and 0.
    assert sloping.figures.mean == pytest.approx((10 + (10 + 20) / 4 + 0) / 3)


def test_csv_has_places_levels_and_units() -> None:
    planes = np.array([[0, 51, 255]], np.uint8)[:, :, np.newaxis]
    ends = line((1, 0), (3, 0))
    text = profiles_as_csv(
        [profile(ends, ProfiledPicture(name, planes)) for name in ("input", "output")], Units.SHARE
    )
    assert text.splitlines() == [
        "distance in px,x,y,input,output,units",
        "0.0,1.0,0.0,0.2,0.2,0 to 1",
        "1.0,2.0,0.0,1.0,1.0,0 to 1",
        "2.0,3.0,0.0,,,0 to 1",
    ]
    colours = profile(ends, ProfiledPicture("input", np.repeat(planes, 3, 2)))
    assert "input red,input green,input blue" in profiles_as_csv([colours], Units.STORED)


def test_lines_are_hit_nearby_and_resized_at_their_last_end() -> None:
    ends = line((2, 3), (12, 3))
    assert ends.length == 10
    assert ends.handles == ((2.5, 3.5), (12.5, 3.5))
    assert ends.contains(7, 4.5, reach=1)
    assert not ends.contains(7, 4.6, reach=1)
    assert not ends.contains(14.6, 3.5, reach=2)
    assert ends.resized(3, -2).corners == ((2, 3), (15, 1))
    assert line((4, 4), (4, 4)).contains(4.5, 4.5)
    regions = Regions()
    regions.add(Shape.LINE, ends.corners)
    assert regions.all[0].name == "L1"
    assert regions.at(7, 5, reach=2) == 0
    regions.choose(-1)
    assert regions.at(7, 5, reach=2) == 0
    assert regions.at(7, 5) == -1
    assert math.isclose(line((0, 0), (3, 4)).length, 5)


def test_a_line_is_as_long_as_its_pixels_are_wide_and_high() -> None:
    line = Interest("L1", Shape.LINE, ((1, 2), (4, 6)))
    assert length_of(line, None) == 5
    assert length_of(line, (0.5, 2.0)) == pytest.approx(math.hypot(1.5, 8.0))
