"""Figures: their layout in millimetres, their content, and the files that are written."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QPlainTextEdit,
)
from pytestqt.qtbot import QtBot

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.run import execute
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import ColourMap, Display
from kernelscope.gui.model.drawn_view import draw
from kernelscope.gui.model.figure import (
    Figure,
    FigureStyle,
    Picture,
    caption_of,
    channel_rows,
    described,
    lay_out,
    of_planes,
    region_in_view,
    row_of,
    scale_bar,
    slices_in_words,
)
from kernelscope.gui.model.regions import Interest, Shape
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.gui.tools.figure_dialog import FigureDialog
from kernelscope.gui.viewer.figure_painter import FigurePainter
from kernelscope.gui.viewer.layer import as_qimage
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import judge
from kernelscope.images.planes import planes_of
from kernelscope.images.scan import Scan
from kernelscope.images.source import Channel
from kernelscope.images.volume import Among, Volume
from kernelscope.schema.borders import Border
from tests.gui.helpers import child, choose_files, dialog, press, run

FULL = Display(0, 255)
WIDTH, HEIGHT = 48, 36


def grey(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 1), np.uint8)


def result_of(filter_id: str, planes: np.ndarray, **options: Any) -> Result:
    backend = CpuBackend(threads=1)
    try:
        image = Image.from_array(planes, "in.png")
        return execute(Request.create(image, filter_id, **options), {"cpu": backend})
    finally:
        backend.close()


def result_of_volumes(before: Volume, after: np.ndarray) -> Result:
    request = Request.create(Scan((before,)), "mean")
    return Result(request, Scan((before.with_voxels(after),)), "CPU", "parallel", ())


def channels_of(*named: tuple[str, int]) -> list[Volume]:
    """Return the channels of a file, each of one value."""
    return [
        replace(
            Volume.from_array(np.full((2, 4, 5), value, np.uint8), "cells"),
            channel=Channel(name),
            among=(Among("C", number, len(named)),),
        )
        for number, (name, value) in enumerate(named)
    ]


# --- layout ---


def test_pictures_share_the_width_and_keep_their_shape() -> None:
    pictures = (
        Picture("Input", grey(), FULL),
        Picture("Output", grey(), FULL, pixel=(1.0, 2.0)),
        Picture("Residual", grey(), FULL, bar=("−1", "0", "1")),
    )
    style = FigureStyle(width=100, points=10)
    made = lay_out(Figure(pictures, "Some caption"), style, lambda text, width: 7.0)
    assert [area.left for area in made.pictures] == pytest.approx([0, 34, 68])
    assert [area.width for area in made.pictures] == pytest.approx([32, 32, 32])
    assert made.pictures[0].height == pytest.approx(32 * HEIGHT / WIDTH)
    assert made.pictures[1].height == pytest.approx(64 * HEIGHT / WIDTH), "tall voxels"
    assert made.bars[:2] == (None, None)
    bar, caption = made.bars[2], made.caption
    assert bar is not None
    assert caption is not None
    assert bar.top > made.pictures[1].bottom, "below the tallest"
    assert caption.top > bar.bottom + style.text, "below the labels of the bar"
    assert made.size[0] == 100
    assert made.size[1] == pytest.approx(caption.top + 7)


def test_what_is_switched_off_takes_no_room() -> None:
    figure = Figure((Picture("Input", grey(), FULL),), "Some caption")
    style = FigureStyle(width=60, titles=False, scale_bar=False, caption=False)
    made = lay_out(figure, style, lambda text, width: 7.0)
    assert made.size[0] == 60
    assert made.size[1] == pytest.approx(60 * HEIGHT / WIDTH)
    assert (made.titles, made.scale_bar, made.caption) == ((), None, None)


@pytest.mark.parametrize(
    ("pixels", "size", "text", "share"),
    [
        (512, 1.0, "100 px", 100 / 512),
        (80, 1.0, "20 px", 0.25),
        (79, 1.0, "10 px", 10 / 79),
        (181, 0.5, "20 px", 20 / 90.5),
        (2, 1.0, "0.5 px", 0.25),
        (100_000, 1.0, "20,000 px", 0.2),
        (400, 0.9999999999999998, "50 px", 0.125),
    ],
)
def test_the_scale_bar_has_a_round_length(
    pixels: int, size: float, text: str, share: float
) -> None:
    planes = np.zeros((1, pixels, 1), np.uint8)
    length, label = scale_bar(Picture("Input", planes, FULL, (size, size)), 80.0, "px")
    assert label == text
    assert length == pytest.approx(80 * share)


def test_bars_have_three_values() -> None:
    assert described(-0.25, 0.25) == ("−0.25", "0", "0.25")
    assert described(0, 255) == ("0", "128", "255")
    assert described(84.25, 1172.4) == ("84.2", "628", "1172")
    assert described(-40000, 40000) == ("−40000", "0", "40000")


# --- content ---


def test_a_residual_is_centred_and_keeps_its_sign() -> None:
    planes = grey()
    result = result_of("negative", planes)
    first, second, change = row_of(result, result.request.image, None, (FULL, FULL), View.RESIDUAL)
    np.testing.assert_array_equal(first.planes, planes)
    np.testing.assert_array_equal(second.planes, 255 - planes)
    np.testing.assert_array_equal(change.planes, 255.0 - 2.0 * planes)
    assert change.display.low == -change.display.high
    assert change.display.colour_map is ColourMap.DIVERGING
    assert change.bar is not None
    assert (first.bar, second.bar) == (None, None)


def test_a_residual_has_the_range_of_the_window() -> None:
    result = result_of("negative", grey())
    limit = draw(View.RESIDUAL, result, None, 4).limit(FULL)
    assert limit == 127 / 4
    image = result.request.image
    *_, change = row_of(result, image, None, (FULL, FULL), View.RESIDUAL, limit=limit)
    assert (change.display.low, change.display.high) == (-limit, limit)
    assert change.bar == ("≤ −31.8", "0", "≥ 31.8")


def test_a_valid_border_crops_the_input_alike() -> None:
    planes = grey()
    result = result_of("mean", planes, parameters={"size": 5}, border=Border.VALID)
    first, second = row_of(result, result.request.image, None, (FULL, FULL), None)
    np.testing.assert_array_equal(first.planes, planes[2:-2, 2:-2])
    assert second.planes.shape == first.planes.shape
    part = Region(3, 4, 5, 6)
    first, second = row_of(result, result.request.image, None, (FULL, FULL), None, part)
    np.testing.assert_array_equal(first.planes, planes[5:10, 6:12])
    np.testing.assert_array_equal(second.planes, result.image.planes[3:8, 4:10])


def test_equal_pictures_have_a_residual_of_nothing() -> None:
    result = result_of("mean", np.full((8, 8, 1), 7, np.uint8), parameters={"size": 3})
    *_, change = row_of(result, result.request.image, None, (FULL, FULL), View.RESIDUAL)
    assert (change.display.low, change.display.high) == (-1, 1)
    assert not change.planes.any()


def test_a_bar_says_that_changes_lie_beyond_it() -> None:
    planes = np.full((40, 40, 1), 128, np.uint8)
    planes[20, 20] = 0
    result = result_of("median", planes, parameters={"size": 3})
    *_, change = row_of(result, result.request.image, None, (FULL, FULL), View.RESIDUAL)
    assert change.display.high == change.planes.max() == 128
    assert change.bar == ("−128", "0", "128"), "the only change has the last colour itself"
    planes[:6] = 127  # a few small changes, so that the percentile is one of them
    result = result_of("mean", planes, parameters={"size": 3})
    *_, change = row_of(result, result.request.image, None, (FULL, FULL), View.RESIDUAL)
    assert change.display.high < change.planes.max()
    assert change.bar is not None
    assert change.bar[0].startswith("≤ −")
    assert change.bar[2].startswith("≥ ")


def test_the_part_in_view_is_that_of_the_output() -> None:
    result = result_of("mean", grey(), parameters={"size": 5}, border=Border.VALID)
    size = result.image.height, result.image.width
    assert region_in_view((-50, -50, 500, 500), *size, 2) is None, "all of it"
    assert region_in_view((100, 0, 200, 10), *size, 2) is None, "nothing of it"
    assert region_in_view((6.5, 3.2, 11.5, 9.0), *size, 2) == Region(1, 4, 6, 6)


def test_the_caption_has_settings_time_and_quality() -> None:
    planes = grey()
    result = result_of("mean", planes, parameters={"size": 5})
    text = caption_of(result, None)
    assert text.startswith("in.png. Mean, mask size 5 px")
    assert re.search(r"CPU \w+: [\d.]+ (s|ms|µs) \(one run\)\.$", text)
    truth = np.zeros_like(planes)
    judged = Judgement(judge(planes, truth), judge(result.image.planes, truth))
    before, after = (f"{each.psnr:.2f}" for each in (judged.before, judged.after) if each)
    assert caption_of(result, judged).endswith(f"PSNR {before} → {after} dB.")
    volume = Volume.from_array(np.zeros((2, 3, 4), np.float32))
    of_slice = caption_of(result_of_volumes(volume, volume.voxels), judged, "Axial slice 3")
    assert "slice 3" in of_slice
    assert of_slice.endswith(" dB of the whole volume.")
    assert caption_of(result, judged, in_part=True).endswith(" dB of the whole picture.")


def test_slices_lie_as_on_the_screen() -> None:
    voxels = np.random.default_rng(3).random((4, 5, 6), np.float32)
    volume = Volume.from_array(
        voxels, "head", spacing=(3.0, 2.0, 1.0), affine=np.diag([1, 2, 3, 1])
    )
    result = result_of_volumes(volume, voxels / 2)
    for plane in planes_of(volume):
        place = plane, (2, 2, 2)
        first, second, change = row_of(
            result, volume, None, (FULL, FULL), View.RESIDUAL, place=place
        )
        np.testing.assert_array_equal(first.planes[:, :, 0], plane.cut(voxels, 2))
        np.testing.assert_allclose(change.planes[:, :, 0], -plane.cut(voxels, 2) / 2)
        rows, columns = (volume.spacing[axis] for axis in (plane.rows, plane.columns))
        assert first.pixel == second.pixel == change.pixel == (columns, rows)


def test_a_figure_of_a_composite_has_the_channels_that_are_not_hidden() -> None:
    blue, green, red = channels_of(("DAPI", 100), ("GFP", 50), ("RFP", 200))
    maps = ColourMap.BLUE, ColourMap.GREEN, ColourMap.RED
    front, *others = (replace(FULL, colour_map=each) for each in maps)
    beside = (green, others[0]), (red, others[1])
    result, plane = result_of_volumes(blue, blue.voxels // 2), planes_of(blue)[0]
    every, made = "DAPI in blue, GFP in green, RFP in red", replace(red, title="made")
    some = beside[0], (made, others[1])
    for hidden, filtered, first, second, words, only in (
        ((), beside, (200, 50, 100), (0, 0, 50), every, " (DAPI only)"),
        ((), some, (200, 50, 100), (200, 0, 50), every, " (DAPI, RFP only)"),
        ((0,), some, (200, 50, 0), (200, 0, 0), "GFP in green, RFP in red", " (RFP only)"),
        ((1,), some, (200, 0, 100), (200, 0, 50), "DAPI in blue, RFP in red", ""),
        ((0, 2), beside, (0, 50, 0), (0, 0, 0), "GFP in green", " (not filtered)"),
        ((0, 1, 2), beside, (0, 0, 0), (0, 0, 0), "", ""),
    ):
        look = Look(beside=beside, filtered=filtered, hidden=frozenset(hidden))
        place = plane, (0, 0, 0)
        pictures = row_of(result, blue, None, (front, front), None, place=place, look=look)
        assert [each.planes[3, 4].tolist() for each in pictures] == [[*first], [*second]]
        assert [each.planes.shape for each in pictures] == [(4, 5, 3)] * 2
        assert pictures[1].title == f"Output{only}"
        text = slices_in_words(blue, [(plane, look)], (0, 0, 0), front)
        assert text.startswith(words or "slice 1")


def test_a_figure_of_channels_has_each_in_grey_and_the_merge() -> None:
    maps = ColourMap.BLUE, ColourMap.GREEN, ColourMap.RED
    blue, green, red = channels_of(("DAPI", 100), ("GFP", 50), ("", 200))
    shown = [replace(FULL, colour_map=each) for each in maps]
    made = replace(red, voxels=red.voxels // 4)
    look = Look(
        beside=((blue, shown[0]), (red, shown[2])), filtered=((blue, shown[0]), (made, shown[2]))
    )
    result, plane = result_of_volumes(green, green.voxels // 2), planes_of(green)[0]
    row = partial(row_of, result, green, None, third=None, place=(plane, (0, 0, 0)))
    for hidden, channels in (
        (frozenset[int](), ["DAPI", "GFP", "channel 3", "merge"]),
        (frozenset({1}), ["DAPI", "channel 3", "merge"]),
    ):
        both = channel_rows(green, (shown[1],) * 2, replace(look, hidden=hidden), row)
        for title, pictures in zip(("Input", "Output"), both, strict=True):
            titles = [each.title.split(": ") for each in pictures]
            assert [first.partition(" (")[0] for first, _ in titles] == [title] * len(channels)
            assert [name for _, name in titles] == channels
    seen = [[each.planes[3, 4].tolist() for each in pictures] for pictures in both]
    assert seen[0] == [[100] * 3, [200] * 3, [200, 0, 100]]
    assert seen[1] == [[0] * 3, [50] * 3, [50, 0, 0]]
    assert both[1][0].title == "Output (not filtered): DAPI"
    figure = Figure(of_planes(both), "", "voxels", 2)
    found = lay_out(figure, FigureStyle(), lambda *_: 0.0)
    assert len(found.titles) == len(found.pictures) == 6
    for area, picture in zip(found.titles, found.pictures, strict=True):
        assert area.bottom == pytest.approx(picture.top)


# --- files ---


@pytest.fixture
def painter(qapp: object) -> FigurePainter:
    planes = np.zeros((30, 60, 1), np.uint8)
    planes[:, 30:] = 200
    figure = Figure(
        (Picture("Input", planes, FULL), Picture("Output", planes, FULL)), "Caption <1>"
    )
    return FigurePainter(figure, FigureStyle(width=100, dpi=254))


def test_a_png_has_its_size_resolution_and_pixels(painter: FigurePainter) -> None:
    with Pillow.open(io.BytesIO(painter.as_png())) as image:
        assert image.width == 1000
        assert image.height == round(10 * painter.layout.size[1])
        assert image.info["dpi"] == pytest.approx((254, 254), abs=0.1)
        area = painter.layout.pictures[1]
        row = round(10 * (area.top + area.height / 4))
        values = [image.getpixel((round(10 * x), row)) for x in (area.left + 5, area.left + 40)]
        assert values == [(0, 0, 0), (200, 200, 200)]
        assert image.getpixel((round(10 * (area.left - 1)), row)) == (255, 255, 255), "between"


def test_an_svg_embeds_its_pictures_without_loss(painter: FigurePainter) -> None:
    text = painter.as_svg().decode()
    root = ElementTree.fromstring(text)
    width, height = painter.layout.size
    assert float(root.get("width", "").removesuffix("mm")) == pytest.approx(width, abs=0.1)
    assert float(root.get("height", "").removesuffix("mm")) == pytest.approx(height, abs=0.1)
    assert text.count("data:image/png;base64") == 2
    assert "Caption &lt;1&gt;" in text


def test_a_pdf_is_one_page_of_its_size(painter: FigurePainter) -> None:
    data = painter.as_pdf()
    assert data.startswith(b"%PDF-")
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", data)
    width, height = painter.layout.size
    assert len(boxes) == 1
    assert [float(each) for each in boxes[0]] == pytest.approx(
        [width / 25.4 * 72, height / 25.4 * 72], abs=1
    )
    assert b"DCTDecode" not in data, "JPEG would lose detail"


# --- the dialog ---


def _dialog(qtbot: QtBot, window: MainWindow) -> FigureDialog:
    press(qtbot, window, "Ctrl+Alt+E")
    made = child(window, FigureDialog, "figureDialog")
    qtbot.waitUntil(lambda: made.save_button.isEnabled())
    return made


@pytest.mark.slow
@pytest.mark.smoke
def test_a_figure_is_laid_out_and_saved(qtbot: QtBot, loaded: MainWindow, tmp_path: Path) -> None:
    assert not loaded.actions_["exportFigure"].isEnabled()
    run(qtbot, loaded)
    made = _dialog(qtbot, loaded)
    made.caption.setFocus()
    for name in ("copyButton", "saveButton", "closeButton"):
        made.focusNextChild()
        focused = made.focusWidget()
        assert focused is not None
        assert focused.objectName() == name, "the default button would be first"
    third = child(made, QComboBox, "figureThird")
    assert [third.itemText(k) for k in range(third.count())] == ["Nothing more", "Residual"]
    third.setCurrentIndex(1)
    qtbot.waitUntil(lambda: made.figure is not None and len(made.figure.pictures) == 3)
    child(made, QDoubleSpinBox, "figureWidth").setValue(120)
    child(made, QCheckBox, "figureWithCaption").setChecked(False)
    path = tmp_path / "figure.svg"
    made.save_button.click()
    choose_files(child(made, QFileDialog, "figureFile"), path)
    qtbot.waitUntil(path.exists)
    assert 'width="120' in path.read_text(encoding="utf-8")
    qtbot.waitUntil(lambda: not loaded.findChildren(FigureDialog))
    assert str(path) in loaded.statusBar().currentMessage()


def test_a_result_of_earlier_settings_is_said_to_be_one(qtbot: QtBot, loaded: MainWindow) -> None:
    run(qtbot, loaded)
    loaded.session.set_filter("mean")
    made = _dialog(qtbot, loaded)
    assert "have changed since" in made.note
    assert "Median" in child(made, QPlainTextEdit, "figureCaption").toPlainText()
    made.reject()
    loaded.session.set_filter("median")
    made = _dialog(qtbot, loaded)
    assert made.note == ""
    made.reject()


def test_the_figure_is_that_of_the_moment_when_it_was_begun(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """A file that was dropped before opens behind the dialog; its changes then had no result."""
    run(qtbot, loaded)
    made = _dialog(qtbot, loaded)
    caption = made.caption.toPlainText()
    loaded.session.pictures.open_source(Image.from_array(np.zeros((9, 9), np.uint8), "other"))
    assert loaded.session.subject.result is None
    third = child(made, QComboBox, "figureThird")
    third.setCurrentIndex(1)
    qtbot.waitUntil(lambda: made.figure is not None and len(made.figure.pictures) == 3)
    assert made.figure is not None
    assert made.figure.caption == caption
    made.reject()


def test_a_place_that_cannot_be_written_is_explained(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    run(qtbot, loaded)
    made = _dialog(qtbot, loaded)
    made.save_button.click()
    choose_files(child(made, QFileDialog, "figureFile"), tmp_path / "missing" / "x.png")
    error = dialog(qtbot, made, ErrorDialog)
    assert "missing" in error.text()
    error.reject()
    assert made.isVisible()
    made.reject()


def test_three_planes_have_one_scale_their_letters_and_their_regions() -> None:
    voxels = np.random.default_rng(0).normal(100, 20, (10, 20, 30)).astype(np.float32)
    before = Volume.from_array(voxels, "a", spacing=(2.0, 1.0, 1.0), affine=np.diag([1.0, 1, 2, 1]))
    changed = voxels * np.float32(0.9)
    changed[5] -= 50
    result, planes = result_of_volumes(before, changed), planes_of(before)
    region = Interest("lesion", Shape.ELLIPSE, ((3, 4), (9, 8)), plane=0)
    rows = [
        row_of(
            result,
            before,
            None,
            (Display(0, 255), Display(0, 255)),
            View.RESIDUAL,
            regions=[region] if number == 0 else [],
            place=(plane, (5, 5, 5)),
        )
        for number, plane in enumerate(planes)
    ]
    pictures = of_planes(rows)
    assert len(pictures) == 9
    assert {each.bar for each in pictures[2::3]} == {pictures[2].bar}, "one scale of changes"
    assert pictures[0].bar is None
    assert [each.letters for each in pictures[::3]] == [plane.letters for plane in planes]
    assert [bool(each.regions) for each in pictures[::3]] == [True, False, False]
    made = lay_out(Figure(pictures, "", "mm", 3), FigureStyle(width=94), lambda text, width: 0)
    scales = [area.width / each.width for area, each in zip(made.pictures, pictures, strict=True)]
    assert scales == pytest.approx([scales[0]] * 9), "a millimetre is as long everywhere"
    tops = sorted({area.top for area in made.pictures})
    assert len(tops) == 3
    for upper, lower in zip(made.pictures[:6], made.pictures[3:], strict=True):
        assert lower.top >= upper.bottom
    assert len(made.titles) == 3
    assert made.bars[:8] == (None,) * 8
    assert made.bars[8] is not None


def test_regions_move_with_the_part_that_is_shown() -> None:
    region = Interest("R1", Shape.RECTANGLE, ((10, 9), (14, 12)))
    result = result_of("median", grey(), border=Border.VALID)
    part = Region(top=2, left=3, height=20, width=30)
    (picture, _) = row_of(result, result.request.image, None, (FULL, FULL), None, part, [region])
    assert picture.regions[0].corners == ((6, 6), (10, 9)), "the border cost a row and a column"


@pytest.mark.parametrize("shown", [True, False])
def test_outlines_names_and_letters_are_drawn(qtbot: QtBot, shown: bool) -> None:
    planes = np.full((60, 60, 1), 90, np.uint8)
    region = Interest("R1", Shape.RECTANGLE, ((20, 30), (40, 50)), "#ff0000")
    picture = Picture("Input", planes, FULL, regions=(region,), letters="APRL")
    style = FigureStyle(width=60, titles=False, scale_bar=False, caption=False)
    style = replace(style, regions=shown, letters=shown)
    with Pillow.open(io.BytesIO(FigurePainter(Figure((picture,), ""), style).as_png())) as file:
        drawn = np.asarray(file.convert("RGB")).astype(int)
    red = (drawn[..., 0] - drawn[..., 1] > 80).any(axis=1).nonzero()[0] / len(drawn)
    assert bool(red.size) is shown
    top, bottom = drawn[: len(drawn) // 10], drawn[-len(drawn) // 10 :]
    assert [bool(each.max() > 200) for each in (top, bottom)] == [shown] * 2, "letters at the edges"
    if shown:
        assert red.max() == pytest.approx(50 / 60, abs=0.02)


def test_a_figure_has_the_channels_of_a_composite_and_the_projection() -> None:
    """It is that of the screen: channels in their colours, in the output those that are filtered,
    and the projection; the change is that of the channel in front.
    """
    voxels = np.random.default_rng(4).integers(0, 200, (3, 8, 5, 6)).astype(np.uint8)
    front, other, filtered = (
        replace(Volume.from_array(each), channel=Channel(name), among=(Among("C", n, 2),))
        for each, name, n in zip(voxels, ("GFP", "DAPI", "DAPI"), (1, 0, 0), strict=True)
    )
    result, plane = result_of_volumes(front, front.voxels // 2), planes_of(front)[0]
    red, green = (Display(0, 255, 1.0, each) for each in (ColourMap.RED, ColourMap.GREEN))
    look = Look(Projection.MAXIMUM, 3, beside=((other, red),), filtered=((filtered, red),))
    place = plane, (4, 2, 2)
    pictures = row_of(result, front, None, (green,) * 2, View.RESIDUAL, place=place, look=look)
    seen = [each[3:6].max(0) for each in (front.voxels, front.voxels // 2, other.voxels)]
    for picture, (first, second) in zip(
        pictures, ((seen[2], seen[0]), (filtered.voxels[3:6].max(0), seen[1])), strict=False
    ):
        wanted = np.stack([first, second, np.zeros_like(first)], -1)
        np.testing.assert_array_equal(drawn_pixels(picture), wanted)
        assert picture.bar is None
    assert [each.title for each in pictures[:2]] == ["Input", "Output"]
    assert pictures[2].title == "Residual: output − input (GFP)"
    change = (front.voxels // 2).astype(int)[3:6] - front.voxels[3:6]
    np.testing.assert_array_equal(pictures[2].planes[:, :, 0], change.min(0))
    words = slices_in_words(front, [(plane, look)], (4, 2, 2), green)
    assert words == "DAPI in red, GFP in green, maximum of slices 4–6 across z"
    later = replace(front, among=(Among("T", 2, 5), *front.among), interval=2.5)
    words = slices_in_words(later, [(plane, look)], (4, 2, 2), green)
    assert words.startswith("DAPI in red, GFP in green, time 3 (5 s), maximum of slices 4–6")
    estimated = replace(result, estimates={"size": 5})
    assert "those of GFP: each channel has its own" in caption_of(estimated, None, channel="GFP")
    raw = replace(look, filtered=((other, red),))
    _, output = row_of(result, front, None, (green,) * 2, None, place=place, look=raw)
    assert output.title == "Output (GFP only)"


def drawn_pixels(picture: Picture) -> np.ndarray:
    image = as_qimage(picture.planes, picture.display)
    colours = [
        [image.pixelColor(x, y) for x in range(image.width())] for y in range(image.height())
    ]
    return np.array([[(c.red(), c.green(), c.blue()) for c in row] for row in colours])
