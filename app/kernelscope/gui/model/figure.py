"""A figure for a paper or a slide: pictures side by side, with a scale bar and a caption.

All lengths are millimetres from the top left corner, so that the file for a printer, the one for
a browser and the preview have the same layout::

    +--------------------------------------+
    | a  Input     b  Output    c  Residual|  titles
    | +---------+  +---------+  +---------+|
    | |         |  |         |  |         ||
    | | --- 10mm|  |         |  |         ||  scale bar in the first picture
    | +---------+  +---------+  +---------+|
    |                           [ bar     ]|  colours of the values, where not plain grey
    | Median, mask size 3 px ...           |  caption
    +--------------------------------------+
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.text import enumerated
from kernelscope.bench.statistics import short
from kernelscope.engine.region import Region
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.stabilising import Sigmas
from kernelscope.gui.model.comparison import View, like_output, offset_of, output_of
from kernelscope.gui.model.display import ColourMap, Display, Viewed
from kernelscope.gui.model.regions import Interest
from kernelscope.gui.model.slice_drawing import (
    Look,
    Projection,
    added_light,
    channel_name,
    in_colours,
    moment,
    numbers,
    slab,
    slice_of,
)
from kernelscope.gui.model.times import NOT_TIMED, Timing, duration
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.lengths import in_words
from kernelscope.images.planes import Plane, Position
from kernelscope.images.volume import Volume

_SHARE = 99.8
"""Percentile of the changes that has the last colour; a few larger ones would hide the rest."""


class FigurePart(StrEnum):
    """Which part of the input and output a figure shows."""

    WHOLE = "whole"
    VIEW = "in view"
    PLANES = "three planes"
    CHANNELS = "channels"  # of a composite: each in grey, and all in their colours


_NAMES = {View.RESIDUAL: "Residual: output − input", View.DIFFERENCE: "Output − reference"}


def row_of(
    result: Result,
    part: Viewed,
    reference: Viewed | None,
    displays: Sequence[Display],
    third: View | None,
    region: Region | None = None,
    regions: Sequence[Interest] = (),
    place: tuple[Plane | None, Position] = (None, (0, 0, 0)),
    look: Look = Look(),  # noqa: B008 (it never changes)
    sigmas: Sigmas | None = None,
    limit: float | None = None,
) -> tuple[Picture, ...]:
    """Return input, output and the wanted change: of a picture, or of slices as on the screen.

    `part`: the picture, or the volume, of the input. `displays`: of input and output. `third`:
    `View.RESIDUAL` or, with a reference, `View.DIFFERENCE`. `region`: the part of the output to
    show; by default all of it. `regions`: of interest, in pixels of the input. `place`: a plane,
    and a voxel of the slice. `look`: the projection, and the other channels of a composite, whose
    changes are those of the channel in front. `sigmas`: they divide the residual of a volume.
    `limit`: the change that has the last colour; by default, few are larger.

    Raises `Incomparable`: if the reference has another size.
    """
    source, output = like_output(part, result), output_of(result, part)
    (plane, position), pixel, letters = place, (1.0, 1.0), ""
    if isinstance(part, Volume) and plane is not None:
        pixel, letters = (part.spacing[plane.columns], part.spacing[plane.rows]), plane.letters
    elif isinstance(part, Image):
        pixel = part.metadata.pixel_size or pixel

    def cut(image: Viewed, minus: Viewed | None = None) -> NDArray[Any]:
        if isinstance(image, Volume):
            assert plane is not None
            assert minus is None or isinstance(minus, Volume)
            index, divided = position[plane.axis], sigmas if third is View.RESIDUAL else None
            planes = slice_of(image, minus, plane, index, look, divided)[:, :, np.newaxis]
        elif minus is None:
            planes = image.planes
        else:
            assert isinstance(minus, Image)
            planes = colours(image.planes).astype(np.float32) - colours(minus.planes)
        planes = np.ascontiguousarray(planes)
        return planes if region is None else region.of(planes)

    def drawn(title: str, image: Viewed, display: Display, look: Look) -> Picture:
        own = cut(image)
        if not look.beside or not isinstance(image, Volume):
            return Picture(title, own, display, pixel, _bar(display))
        front = [(own[:, :, 0], display)] if look.shows(image) else []
        others = [(cut(each)[:, :, 0], each_display) for each, each_display in look.others(image)]
        light = added_light(own.shape[:2], (*front, *others))
        return Picture(title, light, Display.full(np.dtype(np.uint8)), pixel)

    only = look.filtered_only(part) if isinstance(part, Volume) else ""
    titles = "Input", f"Output ({only})" if only else "Output"
    looks = look, look.of_output
    pictures = list(map(drawn, titles, (source, output), displays, looks))
    other = source if third is View.RESIDUAL else reference and like_output(reference, result)
    if third in _NAMES and other is not None:
        title, unit = _NAMES[third], ""
        if sigmas is not None and third is View.RESIDUAL:
            title, unit = "Residual: (output − input) / σ", " σ"
        if look.beside and isinstance(part, Volume) and part.channel.name:
            title = f"{title} ({part.channel.name})"
        pictures.append(_change(title, cut(output, other), pixel, limit, unit))
    offset = offset_of(result.request)
    left, top = (region.left, region.top) if region is not None else (0, 0)
    placed = tuple(each.moved(-left - offset, -top - offset) for each in regions)
    return tuple(replace(each, regions=placed, letters=letters) for each in pictures)


def channel_rows(
    front: Viewed,
    displays: Sequence[Display],
    look: Look,
    row: Callable[..., tuple[Picture, ...]],
) -> list[tuple[Picture, ...]]:
    """Return a row of input and one of output: each channel that is not hidden, in grey, and all.

    `row`: as `row_of`, of displays and a look.
    """
    assert isinstance(front, Volume)

    def grey(pairs: Sequence[tuple[Volume, Display]]) -> tuple[tuple[Volume, Display], ...]:
        return tuple((each, replace(own, colour_map=ColourMap.GREY)) for each, own in pairs)

    own = [replace(each, colour_map=ColourMap.GREY) for each in displays]
    volumes = sorted([front, *(each for each, _ in look.beside)], key=lambda v: v.channel_number)
    numbers = frozenset(each.channel_number for each in volumes)
    alone = replace(look, beside=grey(look.beside), filtered=grey(look.filtered))
    drawings: list[tuple[str, Sequence[Display], Look]] = [
        (
            channel_name(each),
            own,
            replace(alone, hidden=numbers - {each.channel_number}),
        )
        for each in volumes
        if look.shows(each)
    ]
    columns = [
        [replace(each, title=f"{each.title}: {name}") for each in row(shown, look=drawn)]
        for name, shown, drawn in [*drawings, ("merge", displays, look)]
    ]
    return list(zip(*columns, strict=True))


def of_planes(rows: Sequence[Sequence[Picture]]) -> tuple[Picture, ...]:
    """Return the pictures of several planes below each other, with one scale for all changes."""
    change = len(rows[0]) - 1
    most = max((row[change] for row in rows), key=lambda each: (each.display.high, each.bar or ()))
    changes = bool(most.bar) and most.display.low == -most.display.high
    return tuple(
        replace(each, display=most.display, bar=most.bar) if changes and n == change else each
        for row in rows
        for n, each in enumerate(row)
    )


def slices_in_words(
    part: Viewed,
    planes: Sequence[tuple[Plane | None, Look]],
    position: Position,
    display: Display,
) -> str:
    """Return channels with their colours, time, projection and place of slices; empty for a
    picture.

    `display`: of the channel in front.
    """
    if isinstance(part, Image):
        return ""
    place = ""
    if part.flat_axis is None:
        slices = []
        for each, own in planes:
            assert each is not None
            index, side = position[each.axis], part.voxels.shape[each.axis]
            one = own.projection is Projection.SLICE
            taken = range(index, index + 1) if one else slab(index, own.slices, side)
            of = "" if one else f"{own.projection.value.lower()} of "
            slices.append(f"{of}slice{'s' * (len(taken) > 1)} {numbers(taken)} {each.name.lower()}")
        place = enumerated(slices, "and")
    channels, look = part.channel.name, planes[0][1]
    if look.beside:
        front = [(part, display)] if look.shows(part) else []
        channels = in_colours((*front, *look.others(part)))
    others_than_channels = tuple(axis for axis in part.among if axis.letter != "C")
    when = replace(part, among=others_than_channels).place
    for axis in part.among:
        seconds = moment(part.interval, axis.index) if axis.letter == "T" else ""
        when += f" ({seconds})" if seconds else ""
    return ", ".join(filter(None, (channels, when, place, part.oblique)))


def unit_of(part: Viewed) -> str:
    if isinstance(part, Image):
        return "mm" if part.metadata.pixel_size else "px"
    return "mm" if part.stated else "voxels"


def caption_of(
    result: Result,
    judgement: Judgement | None,
    place: str = "",
    *,
    in_part: bool = False,
    channel: str = "",
) -> str:
    """Return input, settings, device, time and quality: of the whole, also if `in_part`.

    `channel`: the name of that of the result, if outputs of others are drawn with it.
    """
    timing = Timing.of(result)
    count = len(timing.repeats.totals) if timing.repeats is not None else 1
    measured = f"median of {count}" if count > 1 else "one run"
    taken = f"{duration(timing.seconds)} ({measured})" if timing.seconds is not None else NOT_TIMED
    title = ", ".join(filter(None, (result.request.source.title, place)))
    settings = f"{result.settings}."
    if channel and any(each.estimates for each in result.parts or (result,)):
        settings += f" Its estimates are those of {channel}: each channel has its own."
    text = f"{title}. {settings} {result.where}: {taken}."
    if judgement is None or not np.isfinite(judgement.after.psnr):
        return text
    of_whole = f" of the whole {result.request.source.kind}" if place or in_part else ""
    after = f"{judgement.after.psnr:.2f} dB{of_whole}"
    if judgement.before is None or not np.isfinite(judgement.before.psnr):
        return f"{text} PSNR {after}."
    return f"{text} PSNR {judgement.before.psnr:.2f} → {after}."


def region_in_view(
    seen: tuple[float, float, float, float], height: int, width: int, offset: int = 0
) -> Region | None:
    """Return the part of an output or slice that is `seen`; None for nothing, or all of it."""
    part = part_in_view(seen, height, width, offset)
    return None if part == Region(0, 0, height, width) else part


def part_in_view(
    seen: tuple[float, float, float, float], height: int, width: int, offset: int = 0
) -> Region | None:
    """Return the pixels that are at least partly seen; `offset`: of the first on the input."""
    left, top = (max(0, math.floor(each - offset)) for each in seen[:2])
    right, bottom = (math.ceil(each - offset) for each in seen[2:])
    right, bottom = min(right, width), min(bottom, height)
    if left >= right or top >= bottom:
        return None
    return Region(top, left, bottom - top, right - left)


def _bar(display: Display) -> tuple[str, str, str] | None:
    return None if display.colour_map.is_grey else described(display.low, display.high)


def _change(
    title: str,
    change: NDArray[np.float32],
    pixel: tuple[float, float],
    limit: float | None = None,
    unit: str = "",
) -> Picture:
    """Return a change around the middle of a diverging map; of colours, around grey."""
    most = float(np.abs(change).max())
    limit = limit or float(np.percentile(np.abs(change), _SHARE)) or most or 1.0
    grey = change.shape[2] == 1
    display = Display(-limit, limit, 1.0, ColourMap.DIVERGING if grey else ColourMap.GREY)
    low, middle, high = described(-limit, limit)
    low, high = f"{low}{unit}", f"{high}{unit}"
    if most > limit:  # a few samples lie beyond, and have the colours of the ends
        low, high = f"≤ {low}", f"≥ {high}"
    return Picture(title, change, display, pixel, (low, middle, high))


MM_A_POINT = 25.4 / 72

WIDTHS = {"One column, 84 mm": 84.0, "Two columns, 174 mm": 174.0, "Slide, 254 mm": 254.0}
"""Usual widths of figures in millimetres: of most journals, and of a slide of 16:9."""

_GAP = 2.0
_BAR_HEIGHT = 2.2
_LINE = 1.35  # height of a line of text, in sizes of its letters


class FigureArea(NamedTuple):
    left: float
    top: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True, eq=False)
class Picture:
    """One of the pictures of a figure.

    `planes`: ndarray, shape (height, width, channels).
    """

    title: str
    planes: NDArray[Any]
    display: Display  # how its values are drawn
    pixel: tuple[float, float] = (1.0, 1.0)
    """Width and height of a pixel: in `unit`, or equal numbers if the pixels are square."""
    bar: tuple[str, str, str] | None = None
    """The lowest, the middle and the highest value of the colour bar; None for no bar."""
    regions: tuple[Interest, ...] = ()  # in pixels of this picture
    letters: str = ""  # of the directions: up, down, left and right

    @property
    def width(self) -> float:
        """In units of `pixel`."""
        return float(self.planes.shape[1] * self.pixel[0])

    @property
    def aspect(self) -> float:
        return float(self.planes.shape[0] * self.pixel[1] / self.width)


@dataclass(frozen=True, eq=False)
class Figure:
    pictures: tuple[Picture, ...]
    caption: str
    unit: str = "px"  # of the scale bar; see `unit_of`
    rows: int = 1  # of pictures below each other, all in one scale


@dataclass(frozen=True)
class FigureStyle:
    width: float = 174.0  # in millimetres
    points: float = 8.0  # size of the text
    dpi: int = 300  # pixels an inch of a PNG
    dark: bool = False  # white text on black, for slides
    # Which of these are drawn.
    titles: bool = True
    scale_bar: bool = True
    caption: bool = True
    regions: bool = True
    letters: bool = True

    @property
    def text(self) -> float:
        return self.points * MM_A_POINT


@dataclass(frozen=True)
class FigureLayout:
    """Where the parts of a figure lie; an empty tuple or None for those that are not drawn."""

    size: tuple[float, float]
    titles: tuple[FigureArea, ...]
    pictures: tuple[FigureArea, ...]
    bars: tuple[FigureArea | None, ...]
    scale_bar: tuple[float, str] | None
    caption: FigureArea | None


def lay_out(
    figure: Figure, style: FigureStyle, text_height: Callable[[str, float], float]
) -> FigureLayout:
    """Return the places of all parts.

    `text_height`: returns the height of a text that is wrapped at a width, both in millimetres.

    Returns the scale bar as its length in millimetres on paper, and its label.
    """
    count = len(figure.pictures) // figure.rows
    width = (style.width - _GAP * (count - 1)) / count
    lefts = [number * (width + _GAP) for number in range(count)]
    titles: list[FigureArea] = []
    pictures: list[FigureArea] = []
    bottom, widest = -_GAP, max(each.width for each in figure.pictures)
    named: list[str] = []
    for first in range(0, len(figure.pictures), count):
        row, top = figure.pictures[first : first + count], bottom + _GAP
        before, named = named, [each.title for each in row]
        if style.titles and named != before:  # planes have those of the row above
            titles += (FigureArea(left, top, width, _LINE * style.text) for left in lefts)
            top += _LINE * style.text
        for left, each in zip(lefts, row, strict=True):
            # Rows of planes have one scale; the pictures of a single row are as wide as each other.
            own = width * each.width / widest if figure.rows > 1 else width
            pictures.append(FigureArea(left + (width - own) / 2, top, own, own * each.aspect))
        bottom = max(each.bottom for each in pictures[first:])
    bars: list[FigureArea | None] = [None] * (len(pictures) - count)
    for left, each in zip(lefts, figure.pictures[-count:], strict=True):
        place = FigureArea(left, bottom + _GAP / 2, width, _BAR_HEIGHT)
        bars.append(place if each.bar else None)
    if any(bars):
        bottom += _GAP / 2 + _BAR_HEIGHT + _LINE * style.text
    caption = None
    if style.caption and figure.caption:
        height = text_height(figure.caption, style.width)
        caption = FigureArea(0.0, bottom + _GAP / 2, style.width, height)
        bottom = caption.bottom
    first_width = pictures[0].width
    bar = scale_bar(figure.pictures[0], first_width, figure.unit) if style.scale_bar else None
    size = style.width, bottom
    return FigureLayout(size, tuple(titles), tuple(pictures), tuple(bars), bar, caption)


def round_length(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten up to `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    # A half, since the logarithm of 99.99999999999999 is rounded to 2.
    return next(step * power for step in (5, 2, 1, 0.5) if step * power <= most)


def scale_bar(picture: Picture, width: float, unit: str) -> tuple[float, str]:
    """Return a round length of about a quarter of a picture: on paper in mm, and in words.

    512 pixels on 80 mm get a bar of 100 px, which is 15.6 mm long.
    """
    whole = picture.width
    length = round_length(whole / 4)
    text = in_words([length]) if unit == "mm" else f"{short(length)} {unit}"
    return length / whole * width, text


def _short(value: float) -> str:
    """Return three digits, and all of those before the point: ``1170``."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def described(low: float, high: float) -> tuple[str, str, str]:
    values = (low, (low + high) / 2, high)
    texts = ["0" if abs(each) < 1e-9 * (high - low) else _short(each) for each in values]
    lowest, middle, highest = (text.replace("-", "−") for text in texts)
    return lowest, middle, highest
