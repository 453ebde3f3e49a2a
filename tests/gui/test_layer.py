"""Pictures as they are drawn, pixel by pixel against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRect, QSizeF
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from kernelscope.engine.region import Region
from kernelscope.gui.model.display import ColourMap, Display, table
from kernelscope.gui.model.drawn_view import DrawnView, Pyramid
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.gui.viewer import layer
from kernelscope.gui.viewer.layer import Layer, Slabs, is_smooth
from kernelscope.images import reduction
from kernelscope.images.image import Image
from kernelscope.images.planes import planes_of
from kernelscope.images.volume import Volume

pytestmark = pytest.mark.usefixtures("qapp")

RANDOM = np.random.default_rng(17)
GROUND = QColor("#010203")


def paint(
    layer: Layer, scale: float, origin: tuple[float, float] = (0, 0), side: int = 60
) -> np.ndarray:
    """Return the layer as red, green and blue, shape (side, side, 3)."""
    room = QImage(side, side, QImage.Format.Format_RGB32)
    room.fill(GROUND)
    painter = QPainter(room)
    wanted: list[object] = []
    layer.paint(
        painter,
        QPointF(*origin),
        QSizeF(scale, scale),
        room.rect(),
        lambda *each: wanted.append(each),
    )
    painter.end()
    assert not wanted
    pixels = np.frombuffer(room.constBits(), np.uint8).reshape(side, side, 4)
    return pixels[:, :, 2::-1].astype(int)


def layer_of(pixels: np.ndarray, display: Display | None = None, offset: int = 0) -> Layer:
    image = Image.from_array(pixels)
    pyramid = Pyramid(image.planes).prepare(1 / 8)
    return Layer(image.planes, pyramid, offset, display or Display.full(image.pixels.dtype))


@pytest.mark.parametrize(
    ("pixels", "shown"),
    [
        (np.array([[0, 255, 17]], np.uint8), [0, 255, 17]),
        (np.array([[0, 65535, 0x1234]], np.uint16), [0, 255, 0x12]),
        (np.array([[-3, 7, 0.2]], np.float32), [0, 255, 51]),
    ],
    ids=["uint8", "uint16", "float32"],
)
def test_black_is_black_and_white_white(pixels: np.ndarray, shown: list[int]) -> None:
    drawn = paint(layer_of(pixels), 1)
    assert drawn[0, :3].tolist() == [[value] * 3 for value in shown]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("scale", [1, 4, 7])
def test_whole_multiples_are_sharp(dtype: str, channels: int, scale: int) -> None:
    pixels = (RANDOM.random((80, 80, channels)) * 900).astype(dtype)
    display = Display(100, 700, 0.7)
    drawn = paint(layer_of(pixels, display), scale, (10, 20))
    cut = display.steps(pixels)[20:, 10:].repeat(scale, 0).repeat(scale, 1)[:60, :60]
    np.testing.assert_array_equal(drawn, np.broadcast_to(cut, drawn.shape))


def test_between_whole_multiples_it_is_smooth() -> None:
    assert [is_smooth(scale) for scale in (0.7, 1, 1.5, 2, 2.9, 3, 3.5)] == [
        *(True, False, True, False, True, False, False),
    ]
    edge = np.zeros((30, 30), np.uint8)
    edge[:, 15:] = 200
    row = paint(layer_of(edge), 1.5)[20, :, 0]
    assert set(row[:45].tolist()) - {0, 200}
    assert row[:21].tolist() == [0] * 21


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_reduced_pictures_are_averages(dtype: str) -> None:
    chequers = (np.indices((240, 250)).sum(0) % 2 * 200).astype(dtype)
    drawn = paint(layer_of(chequers, Display(0, 200)), 1 / 8, side=30)
    assert set(drawn.ravel().tolist()) <= {127, 128}
    blocks = (RANDOM.random((60, 60)).repeat(4, 0).repeat(4, 1) * 200).astype(dtype)
    drawn = paint(layer_of(blocks, Display(0, 200)), 1 / 4)
    expected = Display(0, 200).steps(blocks[::4, ::4])
    np.testing.assert_array_equal(drawn[:, :, 0], expected)


def test_colour_maps_are_applied() -> None:
    pixels = RANDOM.integers(0, 256, (60, 60), np.uint8)
    for colour_map in ColourMap:
        drawn = paint(layer_of(pixels, Display(0, 255, 1, colour_map)), 1)
        np.testing.assert_array_equal(drawn, table(colour_map)[pixels])
    colours = RANDOM.integers(0, 256, (60, 60, 3), np.uint8)
    inverted = paint(layer_of(colours, Display(0, 255, 1, ColourMap.INVERTED)), 1)
    np.testing.assert_array_equal(inverted, 255 - colours)


def test_another_display_draws_the_same_picture_again() -> None:
    pixels = RANDOM.integers(0, 4096, (60, 60), np.uint16)
    layer = layer_of(pixels)
    assert paint(layer, 1).max() <= 16
    layer.display = Display(0, 4095)
    np.testing.assert_array_equal(paint(layer, 1)[:, :, 0], np.rint(pixels / 4095 * 255))


def test_transparency_lets_chequers_through() -> None:
    pixels = np.zeros((60, 60, 4), np.uint8)
    pixels[:, :, 0] = 250
    pixels[:, 30:, 3] = 255
    drawn = paint(layer_of(pixels), 1)
    assert {tuple(pixel) for pixel in drawn[:, 30:].reshape(-1, 3)} == {(250, 0, 0)}
    assert {tuple(pixel) for pixel in drawn[:, :30].reshape(-1, 3)} == {(0xC8,) * 3, (0x98,) * 3}


def test_pixels_end_with_the_picture() -> None:
    layer = layer_of(np.arange(6, dtype=np.uint8).reshape(2, 3), offset=1)
    read = [layer.samples_at(x, y) for x, y in ((1, 1), (3, 2), (0, 1), (1, 0), (4, 1), (1, 3))]
    assert [None if each is None else each.tolist() for each in read] == [[0], [5], *[None] * 4]


def test_nothing_is_drawn_outside_of_the_picture() -> None:
    pixels = np.full((15, 17), 255, np.uint8)
    for scale in (1 / 4, 1, 2.5):
        drawn = paint(layer_of(pixels, offset=2), scale)
        right, bottom = 19 * scale, 17 * scale
        rows, columns = np.indices((60, 60))
        outside = (columns > right) | (rows > bottom) | (columns < 2 * scale - 1)
        ground = [GROUND.red(), GROUND.green(), GROUND.blue()]
        assert (drawn[outside] == ground).all()
        assert drawn[int(bottom) - 2, int(right) - 2].tolist() == [255] * 3


def test_far_end_of_a_wide_picture() -> None:
    pixels = RANDOM.integers(0, 256, (60, 70_000), np.uint8)
    drawn = paint(layer_of(pixels), 2, (69_970, 0))
    expected = pixels[:30, 69_970:].repeat(2, 0).repeat(2, 1)
    np.testing.assert_array_equal(drawn[:, :, 0], expected)


def test_region_lies_framed_over_the_picture() -> None:
    """The output of earlier settings, which it is compared with, was dimmed to a third."""
    layer = layer_of(np.full((60, 60), 200, np.uint8))
    layer.put_region(Region(10, 20, 5, 6), Image.from_array(np.full((5, 6), 90, np.uint8)), 3)
    drawn = paint(layer, 1)[:, :, 0]
    inside = np.zeros((60, 60), bool)
    inside[13:18, 23:29] = True
    assert (drawn[inside] == 90).all()
    around = np.zeros((60, 60), bool)
    around[10:21, 20:32] = True
    assert (drawn[~around] == 200).all()
    assert set(drawn[around & ~inside]) == {0, 255}
    assert layer.samples_at(23, 13).tolist() == [90]
    assert layer.samples_at(22, 13) is None  # of other settings than the region
    layer.put_region(Region(0, 0, 60, 60), Image.from_array(np.full((30, 30), 7, np.uint8)), 0)
    assert (paint(layer, 1) == 7).all()  # stretched
    assert layer.samples_at(59, 59).tolist() == [7]


def test_region_without_a_picture() -> None:
    layer = Layer(None, None, 0, Display(0, 255))
    assert layer.area.isEmpty()
    layer.put_region(Region(1, 2, 3, 4), Image.from_array(np.full((3, 4), 90, np.uint8)), 0)
    assert (paint(layer, 1)[1:4, 2:6] == 90).all()
    assert layer.samples_at(0, 0) is None


def test_large_pictures_are_drawn_aliased_until_they_are_averaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduction, "_compiled", set())
    monkeypatch.setattr(reduction, "_FRAME", 0)  # as if it were large
    pixels = RANDOM.integers(0, 256, (120, 120), np.uint8)
    image = Image.from_array(pixels)
    pyramid = Pyramid(image.planes)
    layer = Layer(image.planes, pyramid, 0, Display(0, 255))
    room = QImage(60, 60, QImage.Format.Format_RGB32)
    wanted = []

    def draw() -> np.ndarray:
        painter = QPainter(room)
        half, seen = QSizeF(0.5, 0.5), QRect(0, 0, 60, 60)
        layer.paint(painter, QPointF(), half, seen, lambda *each: wanted.append(each))
        painter.end()
        return np.frombuffer(room.constBits(), np.uint8).reshape(60, 60, 4)[:, :, 0]

    np.testing.assert_array_equal(draw(), pixels[::2, ::2])
    assert wanted == [(pyramid, 1)]
    pyramid.samples(1)
    means = pixels.reshape(60, 2, 60, 2).astype(float).mean((1, 3))
    np.testing.assert_array_equal(draw(), np.floor(means + 0.5))
    assert len(wanted) == 1


def test_each_level_is_made_once_and_only_when_wanted(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    real = reduction.reduced
    monkeypatch.setattr(
        reduction, "reduced", lambda planes, factor: made.append(factor) or real(planes, factor)
    )
    pyramid = Pyramid(np.zeros((64, 300, 1), np.uint8))
    assert [pyramid.level_for(scale) for scale in (3, 1, 0.6, 0.5, 0.26, 0.25, 1e-9)] == [
        *(0, 0, 0, 1, 1, 2, 8)
    ]
    pyramid.prepare(1)
    assert made == []
    pyramid.prepare(0.25)
    pyramid.prepare(0.2)
    assert made == [4]


def test_a_projected_difference_is_not_that_of_a_volume_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its place in memory, by which it was known, may be given to another one."""
    monkeypatch.setattr(layer, "id", lambda _: 0, raising=False)
    slabs, look = Slabs(), Look(projection=Projection.MAXIMUM)
    shown, *others = (Volume.from_array(np.full((4, 8, 8), n, np.uint8)) for n in (50, 10, 20))
    for minus, expected in zip(others, (40, 30), strict=True):
        values = slabs.values(shown, minus, planes_of(shown)[0], 0, look)
        assert np.all(np.asarray(values) == expected)


def test_a_residual_in_sigmas_lies_over_the_anatomy_in_its_own_window() -> None:
    """Its colours saturate at half of that window, in sigmas, whatever the levels of the input."""
    before = Volume.from_array(np.full((3, 4, 5), 100, np.uint8))
    changes = np.broadcast_to(np.arange(5) * 4, (3, 4, 5))
    after = before.with_voxels((100 + changes).astype(np.uint8))
    sigma = np.float32(2)
    content = DrawnView(
        after, minus=before, gain=1, window=16.0, sigmas=lambda voxels: np.full_like(voxels, sigma)
    )
    look, plane = Look(overlaid=True, opacity=1.0), planes_of(before)[0]
    made, drawn = Slabs().draw(content, plane, 1, Display(0, 1000), look)
    assert drawn
    assert made is not None
    assert made.in_sigmas
    shares = np.array([0, 2, 4, 6, 8]) / 8
    colours = table(ColourMap.DIVERGING)[(191 + np.rint(shares * 63)).astype(int)]
    ground = Display(0, 1000).steps(np.array([100.0]))[0]
    wanted = ground + (colours - float(ground)) * shares[:, np.newaxis]
    np.testing.assert_allclose(paint(made, 1)[0, :5], wanted, atol=2)
