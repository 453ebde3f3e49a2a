"""Regions and profile lines without a window: pixels, samples, changes, figures."""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import map_coordinates
from skimage.draw import polygon2mask
from skimage.metrics import peak_signal_noise_ratio

from kernelscope.engine.area import Corner
from kernelscope.gui.model.display import Units
from kernelscope.gui.model.measurements import (
    MOST_POINTS,
    ProfiledPicture,
    Statistics,
    as_csv,
    contrast_to_noise,
    length_of,
    measure,
    profile,
    profiles_as_csv,
    statistics,
    texts_of,
    to_measure,
)
from kernelscope.gui.model.regions import ITSELF, Against, Interest, Shape, box_of
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.images.image import Image
from kernelscope.images.planes import planes_of
from kernelscope.images.volume import Among, Volume
from kernelscope.schema.samples import Levels
from tests.gui.helpers import kept_regions


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def whole_mask(region: Interest, height: int, width: int) -> np.ndarray:
    """Return the pixels of a region in a whole picture."""
    rows, columns, mask = region.mask(height, width)
    whole = np.zeros((height, width), bool)
    whole[rows, columns] = mask
    return whole


def interest(shape: Shape, *corners: Corner) -> Interest:
    return Interest("R1", shape, corners)


def test_a_rectangle_has_the_pixels_between_its_edges() -> None:
    mask = whole_mask(interest(Shape.RECTANGLE, (2, 1), (4, 2)), 5, 6)
    assert np.argwhere(mask).tolist() == [[1, 2], [1, 3]]


def test_the_corner_opposite_to_each_handle() -> None:
    box = interest(Shape.RECTANGLE, (2, 1), (7, 5))
    for number in range(4):
        assert box.opposite(number) == box.handles[3 - number], number


def test_a_box_has_at_least_a_pixel_and_its_corners_in_order() -> None:
    assert box_of((4, 7), (4, 7)) == ((4, 7), (5, 8))
    assert box_of((9, 2), (3, 8)) == ((3, 2), (9, 8))


def test_a_region_is_cut_off_at_the_edges_of_the_picture() -> None:
    mask = whole_mask(interest(Shape.RECTANGLE, (-3, -2), (2, 1)), 5, 6)
    assert np.argwhere(mask).tolist() == [[0, 0], [0, 1]]
    assert not whole_mask(interest(Shape.ELLIPSE, (7, 0), (9, 5)), 5, 6).any()
    assert not whole_mask(interest(Shape.RECTANGLE, (-9, -9), (-2, -1)), 5, 6).any()


def test_an_ellipse_has_the_pixels_whose_centres_lie_within() -> None:
    mask = whole_mask(interest(Shape.ELLIPSE, (1, 2), (12, 9)), 12, 14)
    y, x = np.mgrid[:12, :14] + 0.5
    expected = ((x - 6.5) / 5.5) ** 2 + ((y - 5.5) / 3.5) ** 2 <= 1
    assert (mask == expected).all()
    assert mask[5, 1]
    assert not mask[2, 1]


def test_polygons_have_the_pixels_around_which_edges_go_oddly(rng: np.random.Generator) -> None:
    for _ in range(60):
        corners = tuple((int(x), int(y)) for x, y in rng.integers(-4, 24, (rng.integers(3, 8), 2)))
        mask = whole_mask(interest(Shape.POLYGON, *corners), 20, 18)
        y, x = np.mgrid[:20, :18]
        # Independent: whether the point is on the left or the right of an edge, by its sign.
        crossings = np.zeros((20, 18), int)
        for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True):
            side = (bx - ax) * (y + 0.5 - ay) - (by - ay) * (x + 0.5 - ax)
            up, down = (ay <= y + 0.5) & (y + 0.5 < by), (by <= y + 0.5) & (y + 0.5 < ay)
            crossings += (up & (side <= 0)) | (down & (side >= 0))
        assert (mask == (crossings % 2 == 1)).all()


def test_a_simple_polygon_agrees_with_scikit_image() -> None:
    corners = ((2, 1), (15, 4), (11, 16), (3, 13))
    mask = whole_mask(interest(Shape.POLYGON, *corners), 20, 18)
    # Shrunk a little: scikit-image counts centres on an edge as well.
    inner, outer = (
        polygon2mask((20, 18), [((y - 8.5) * f + 8, (x - 7.5) * f + 7) for x, y in corners])
        for f in (1 - 1e-9, 1 + 1e-9)
    )
    assert (mask >= inner).all()
    assert (mask <= outer).all()
    assert mask.sum() > 100


def test_moving_and_resizing_keep_the_shape() -> None:
    triangle = interest(Shape.POLYGON, (0, 0), (4, 0), (0, 8))
    assert triangle.moved(2, 3).corners == ((2, 3), (6, 3), (2, 11))
    assert triangle.with_box(10, 20, 8, 4).corners == ((10, 20), (18, 20), (10, 24))
    assert triangle.with_corner(2, (1, 5)).corners == ((0, 0), (4, 0), (1, 5))
    box = interest(Shape.RECTANGLE, (2, 3), (5, 9))
    assert box.spanning((2, 3), (0, 1)).corners == ((0, 1), (2, 3))
    assert box.with_box(1, 1, 0, -4).box == (1, 1, 2, 2)


def test_names_are_unique_and_the_next_region_is_chosen_after_a_removal() -> None:
    acts: list[str] = []
    regions = kept_regions(acts)
    for left in (0, 10, 20):
        regions.add(Shape.RECTANGLE, ((left, 0), (left + 5, 5)))
    assert [each.name for each in regions.all] == ["R1", "R2", "R3"]
    assert len({each.colour for each in regions.all}) == 3
    regions.choose(1)
    regions.rename("R3")  # taken
    regions.rename("  lesion ")
    assert [each.name for each in regions.all] == ["R1", "lesion", "R3"]
    regions.remove()
    assert regions.chosen is regions.all[1]
    assert regions.chosen.name == "R3"
    regions.remove()
    assert regions.number == 0
    regions.remove()
    assert regions.chosen is None
    assert acts == [
        *("Draw R1", "Draw R2", "Draw R3", "Rename R2"),
        *("Delete lesion", "Delete R3", "Delete R1"),
    ]


def test_a_click_prefers_the_chosen_region_and_then_the_topmost() -> None:
    regions = kept_regions()
    for _ in range(3):
        regions.add(Shape.RECTANGLE, ((0, 0), (5, 5)))
    regions.choose(0)
    assert regions.at(2, 2) == 0
    regions.choose(-1)
    assert regions.at(2, 2) == 2
    assert regions.at(7, 2) == -1


def test_figures_are_those_of_numpy_and_scikit_image(rng: np.random.Generator) -> None:
    samples, reference = rng.integers(0, 256, (2, 500), np.uint8)
    figures = statistics(samples, reference)
    assert figures.count == 500
    assert figures.mean == pytest.approx(samples.mean())
    assert figures.deviation == pytest.approx(np.std(samples, ddof=1))
    assert (figures.low, figures.high) == (samples.min(), samples.max())
    assert figures.psnr == pytest.approx(peak_signal_noise_ratio(reference, samples))
    assert figures.snr == pytest.approx(samples.mean() / np.std(samples, ddof=1))


def test_figures_that_do_not_exist_are_no_numbers() -> None:
    empty = statistics(np.empty(0, np.uint8))
    assert empty.count == 0
    assert math.isnan(empty.mean)
    assert math.isnan(empty.snr)
    one = statistics(np.array([7], np.uint8), np.array([7], np.uint8))
    assert math.isnan(one.deviation)
    assert one.psnr == math.inf
    assert statistics(np.zeros(4, np.uint8), np.zeros(4, np.uint16)).psnr is None
    assert statistics(np.full(4, 9, np.uint8)).snr == math.inf


def test_contrast_to_noise_divides_by_the_noise_of_both_regions() -> None:
    first, second = Statistics(10, 50, 3, 0, 0), Statistics(10, 30, 4, 0, 0)
    assert contrast_to_noise(first, second) == contrast_to_noise(second, first) == 4
    flat = Statistics(10, 30, 0, 0, 0)
    assert contrast_to_noise(flat, Statistics(10, 20, 0, 0, 0)) == math.inf
    assert math.isnan(contrast_to_noise(flat, flat))


def test_each_region_is_measured_in_each_picture_and_channel(rng: np.random.Generator) -> None:
    source = rng.integers(0, 256, (20, 30, 3), np.uint8)
    output = 255 - source[2:-2, 2:-2]
    regions = [
        Interest("a", Shape.RECTANGLE, ((0, 0), (6, 5))),
        Interest("b", Shape.RECTANGLE, ((10, 8), (14, 12))),
    ]
    rows = measure(
        regions,
        Against("b"),
        [ProfiledPicture("input", source), ProfiledPicture("output", output, None, (2, 2))],
    )
    assert [(row.region, row.picture, row.channel) for row in rows] == [
        (region, name, channel)
        for region in "ab"
        for name in ("input", "output")
        for channel in ("all", "red", "green", "blue")
    ]
    whole, red = rows[0], rows[1]
    assert whole.figures.count == 90
    assert red.figures.count == 30
    assert red.figures.mean == pytest.approx(source[:5, :6, 0].mean())
    cut = rows[5]  # the border cost the output two rows and columns
    assert cut.figures.count == 12
    assert cut.figures.mean == pytest.approx(255 - source[2:5, 2:6, 0].mean())
    other = statistics(source[8:12, 10:14, 0])
    assert red.cnr == contrast_to_noise(red.figures, other)
    assert all(row.cnr is None for row in rows if row.region == "b")


def test_the_white_of_floats_is_that_of_all_channels(rng: np.random.Generator) -> None:
    truth = rng.random((6, 5, 3), np.float32) * 4000
    source = Image.from_array(truth + 40)
    reference = replace(Image.from_array(truth), given_levels=Levels(0, 4000))
    region = Interest("a", Shape.RECTANGLE, ((0, 0), (5, 6)))
    rows = measure([region], Against(), to_measure(source, (), reference))
    found = [row.figures.psnr for row in rows if row.picture == "input"]
    assert found == pytest.approx([40.0] * 4, abs=1e-3)  # 20 log (4000 / 40)


def test_units_convert_levels_but_no_ratios() -> None:
    planes = np.array([[0, 65535], [0, 65535]], np.uint16)[:, :, np.newaxis]
    region = Interest("a", Shape.RECTANGLE, ((0, 0), (2, 2)))
    (row,) = measure([region], Against(), [ProfiledPicture("input", planes)])

    def texts(units: Units) -> tuple[str, ...]:
        return texts_of([row], units)[0]

    assert texts(Units.STORED)[1:5] == ("32768", "37837", "0", "65535")
    assert texts(Units.SHARE)[1:5] == ("0.50000", "0.5774", "0", "1.0000")
    assert texts(Units.BYTES)[4] == "255.00"
    assert row.values(Units.SHARE)[6] == row.values(Units.STORED)[6]
    assert texts(Units.SHARE)[5] == texts(Units.SHARE)[7] == "–"


def test_figures_of_a_column_have_their_decimals_below_each_other() -> None:
    planes = np.array([[10, 20, 120, 130], [12, 18, 100, 90]], np.float32)[:, :, np.newaxis]
    regions = [
        Interest("a", Shape.RECTANGLE, ((0, 0), (2, 2))),
        Interest("b", Shape.RECTANGLE, ((2, 0), (4, 2))),
    ]
    pictures = [ProfiledPicture("input", planes)]
    rows = texts_of(measure(regions, Against(background=ITSELF), pictures), Units.STORED)
    assert [row[1] for row in rows] == ["15.00", "110.00"]
    assert [row[3] for row in rows] == ["10.000", "90.000"]
    assert len({len(row[6].split(".")[1]) for row in rows}) == 1
    assert texts_of([], Units.STORED) == []


@pytest.mark.parametrize("rician", [False, True])
def test_snr_over_a_background_finds_the_noise_that_was_added(
    rng: np.random.Generator, rician: bool
) -> None:
    sigma, signal = 10.0, 200.0
    truth = np.zeros((200, 400))
    truth[:, 200:] = signal
    noise = rng.normal(0, sigma, (2, *truth.shape))
    noisy = np.hypot(truth + noise[0], noise[1]) if rician else truth + noise[0] + 110.7
    regions = [
        Interest("air", Shape.RECTANGLE, ((0, 0), (200, 200))),
        Interest("brain", Shape.RECTANGLE, ((200, 0), (400, 200))),
        Interest("along", Shape.LINE, ((200, 100), (399, 100))),
    ]
    picture = ProfiledPicture("input", noisy.astype(np.float32)[:, :, np.newaxis])
    against = Against("", "air", rician)
    air, brain, line = measure(regions, against, [picture])
    assert brain.snr == pytest.approx(signal / sigma, rel=0.02)
    assert air.snr is None
    assert line.snr == pytest.approx(signal / sigma, rel=0.02)
    assert brain.values(Units.STORED)[6] == brain.snr
    header = as_csv([brain], Units.STORED, against).split("\n")[0]
    assert f"SNR over air{', Rician' if rician else ', its mean subtracted'}" in header
    (alone,) = measure(regions[1:2], Against(background=ITSELF), [picture])
    assert alone.snr == alone.figures.snr
    (without,) = measure(regions[1:2], Against(), [picture])
    assert without.snr is None, "an offset would count as signal"


@pytest.mark.parametrize("air", ["noise", "denoised", "smoothed", "masked"])
def test_snr_over_air_that_is_not_rayleigh_is_left_out_with_the_reason(
    rng: np.random.Generator, air: str
) -> None:
    """A denoiser clips air near 0: SD / 0.655 of that made an SNR of 167 where it was 58."""
    noisy = np.hypot(*rng.normal(0, 10, (2, 100, 100)))
    made = {
        "noise": noisy,
        "denoised": np.maximum(noisy - 25, 0),
        "smoothed": (noisy + np.roll(noisy, 1, 0)) / 2,
        "masked": 0 * noisy,
    }[air]
    planes = np.hstack([made, rng.normal(200, 10, (100, 100))])[:, :, np.newaxis]
    regions = [
        Interest("air", Shape.RECTANGLE, ((0, 0), (100, 100))),
        Interest("brain", Shape.RECTANGLE, ((100, 0), (200, 100))),
        Interest("along", Shape.LINE, ((100, 50), (199, 50))),
    ]
    pictures = [ProfiledPicture("input", planes)]
    _, *signal = measure(regions, Against("", "air", rician=True), pictures)
    for row in signal:
        if air == "noise":
            assert row.snr == pytest.approx(20, rel=0.05)
            assert not row.note
        else:
            assert row.snr is None
            assert row.note.startswith("No SNR of the input: mean / SD of air is ")
    _, brain, _ = measure(regions, Against("", "air"), pictures)
    assert brain.snr is not None, "the user says that the background is none of Rician noise"


def test_few_samples_of_rician_noise_are_taken_for_it(rng: np.random.Generator) -> None:
    noise = np.hypot(*rng.normal(0, 10, (2, 1000, 25)))
    assert np.mean([statistics(each).is_rayleigh for each in noise]) > 0.99


def test_csv_has_all_digits_and_gaps_for_missing_figures() -> None:
    planes = np.array([[1, 2, 4]], np.uint8)[:, :, np.newaxis]
    region = Interest("left, top", Shape.RECTANGLE, ((0, 0), (3, 1)))
    header, line = as_csv(
        measure([region], Against(), [ProfiledPicture("input", planes)]),
        *(Units.STORED, Against("b")),
    ).split("\n")[:2]
    assert header.endswith(
        "snr,CNR against b,units,sum,file,filter and settings,state,shape,x,y,size x,size y,corners"
    )
    assert line.startswith('"left, top",input,,3,2.3333333333333335,1.527525231651946')
    assert line.endswith(",,,stored,7.0,,,,rectangle,0,0,3,1,")


def test_csv_has_the_places_of_voxels_and_areas_in_the_units_of_the_file() -> None:
    """They counted from the top of the drawn slice, where the cursor counts from below."""
    rng = np.random.default_rng(0)
    volume = replace(
        Volume.from_array(rng.integers(0, 2000, (6, 9, 8)).astype(np.uint16), "cells.tif"),
        spacing=(2e-4, 2e-4, 5e-4),
        stated="xyz",
        among=(Among("T", 1, 3), Among("C", 0, 2)),
    )
    planes, corners = planes_of(volume), ((1, 2), (4, 3), (2, 5))
    regions = [
        Interest("R1", Shape.RECTANGLE, ((1, 0), (5, 2)), plane=1),
        Interest("P1", Shape.POLYGON, corners, plane=1),
        Interest("L1", Shape.LINE, ((1, 0), (5, 3)), plane=1),
        Interest("R2", Shape.ELLIPSE, ((2, 3), (4, 7)), plane=0),
    ]
    looks = [Look(projection=Projection.MEAN, slices=3), Look(), Look()]
    measured = to_measure(volume, (), None, planes, (4, 3, 2), looks)
    text = as_csv(measure(regions, Against(), measured), Units.STORED, Against())
    box, polygon, line, flat = csv.DictReader(text.splitlines())
    names = "x", "y", "z", "size x", "size y", "size z"
    assert [int(box[name]) for name in names] == [1, 3, 4, 4, 1, 2]
    inside = volume.voxels[4:6, 3, 1:5]
    assert float(box["mean"]) == pytest.approx(inside.mean())
    assert float(box["sum"]) == pytest.approx(inside.sum())
    assert (box["file"], box["slice"]) == ("cells.tif, time 2, channel 1", "across y 4")
    assert float(box["area"]) == pytest.approx(8 * 0.2 * 0.5)
    assert box["area unit"] == "µm²"
    assert (polygon["shape"], polygon["corners"]) == ("polygon", "1,4 4,3 2,1")
    assert line["corners"] == "1,5 5,2"
    assert [int(flat[name]) for name in names] == [2, 3, 3, 2, 4, 3]
    along = profile(regions[2], measured[1])
    rows = list(csv.DictReader(profiles_as_csv([along], Units.STORED).splitlines()))
    assert [(row["x"], row["z"]) for row in (rows[0], rows[-1])] == [("1.0", "5.0"), ("5.0", "2.0")]
    assert float(rows[0]["input"]) == volume.voxels[5, 3, 1]


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
    cropped = profile(ends, ProfiledPicture("output", planes[2:-2, 2:-2], None, (2, 2))).levels[
        :, 0
    ]
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
    assert ends.contains(14.4, 3.5, reach=2)
    assert not ends.contains(14.6, 3.5, reach=2)
    assert ends.contains(1.6, 3.5, reach=1)
    assert not ends.contains(1.4, 3.5, reach=1)
    assert ends.resized(3, -2).corners == ((2, 3), (15, 1))
    assert line((4, 4), (4, 4)).contains(4.5, 4.5)
    regions = kept_regions()
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
