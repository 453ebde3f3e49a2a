"""Samples in regions of interest: profiles along lines; statistics, SNR and CNR as a table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.text import aligned
from kernelscope.engine.area import Corner
from kernelscope.engine.region import Region
from kernelscope.engine.result import Result
from kernelscope.gui.model.comparison import like_output, offset_of, output_of
from kernelscope.gui.model.display import (
    Display,
    Units,
    Viewed,
    automatic_of,
    dtype_of,
    name_of,
    samples_of,
    table,
)
from kernelscope.gui.model.regions import AS_DRAWN, ITSELF, Against, Axes, Interest, Shape
from kernelscope.gui.model.slice_drawing import Look, Projection, numbers, slab, slice_of
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.lengths import in_words, unit_of
from kernelscope.images.planes import Plane, Position
from kernelscope.images.volume import AXES, Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import white_level

CHANNELS = ("red", "green", "blue")

MOST_POINTS = 1 << 16  # of a line: more than across any picture, and few enough to be drawn at once

Steps: TypeAlias = tuple[float, float]  # width and height of a pixel in millimetres

Edges: TypeAlias = tuple[int, int, int, int]  # left, top, right and bottom

EARLIER = "earlier settings"


@dataclass(frozen=True)
class Output:
    """An output in view: the whole one, or a preview over it."""

    result: Result
    state: str = ""  # `EARLIER`, or the kind of preview; empty for the output of the settings
    # A preview of a slice.
    plane: int | None = None  # the number of its plane
    volume: Volume | None = None
    part: Box | None = None  # the voxels that are known, if not all of the slice
    beside: tuple[Volume, ...] = ()  # other channels of a composite

    @property
    def made(self) -> Made:
        return Made(self.result.settings, self.state)

    @property
    def beside_made(self) -> Made:
        """That of the other channels of a composite, whose estimates are their own."""
        requests = (
            replace(each, step=each.step.unestimated).describe() for each in self.result.requests
        )
        return Made("; then ".join(requests), self.state)


@dataclass(frozen=True)
class Made:
    """How an output was made; empty for input and reference."""

    settings: str = ""  # the filter and its settings in words
    state: str = ""  # as in `Output`


def named(picture: str, made: Made) -> str:
    """Return ``output, earlier settings``."""
    return ", ".join(filter(None, (picture, made.state)))


@dataclass(frozen=True)
class ProfiledPicture:
    """A picture, or a slice of a volume, that is measured."""

    name: str
    # Colours only, shape (height, width, channels).
    planes: NDArray[Any]
    reference: NDArray[Any] | None = None
    first: Corner = (0, 0)  # column and row of the input from which the first pixel comes
    plane: int | None = None  # the plane of a slice; see `Interest.plane`
    slice: str = ""  # name of the slice
    channel: str = ""  # of a volume, if its file names it
    ink: str = ""  # the colour of that in a composite, ``#00ff00``
    white: float | None = None
    """The value by which units are converted; by default, that of the type."""
    peak: float | None = None  # as in `statistics`
    steps: Steps | None = None  # width and height of a pixel in millimetres, where they are known
    made: Made = Made()
    file: str = ""  # its name, with the time and the channel
    axes: Axes = AS_DRAWN
    through: tuple[str, range] | None = None  # the axis across a slice, and the slices on it
    # Of a preview: the pixels that it has, and those of the whole output.
    known: Edges | None = None
    room: Edges = (0, 0, 0, 0)

    def covers(self, region: Interest) -> bool:
        """Return whether all pixels of a region are there that the whole output has."""
        if self.known is None:
            return True
        end = region.shape is Shape.LINE  # whose corners are pixels
        left, top, right, bottom = region.box
        box = left, top, right + end, bottom + end
        lows = all(max(box[n], self.room[n]) >= self.known[n] for n in (0, 1))
        return lows and all(min(box[n], self.room[n]) <= self.known[n] for n in (2, 3))

    @property
    def unit(self) -> float:
        return white_level(self.planes.dtype) if self.white is None else self.white


@dataclass(frozen=True)
class Profile:
    """The samples of one picture along a line, linearly interpolated between pixel centres."""

    line: Interest
    picture: str
    places: NDArray[np.float64]
    """Shape (points, 2): pixels to the right and down; whole numbers are centres of pixels of the
    input."""
    levels: NDArray[np.float64]
    """Shape (points, channels), in levels of the type; NaN where the picture has no pixel."""
    white: float  # white of the picture, by which units are converted
    # As in `ProfiledPicture`.
    steps: Steps | None = None
    channel: str = ""
    ink: str = ""
    made: Made = Made()
    axes: Axes = AS_DRAWN

    @property
    def unit(self) -> str:
        return "px" if self.steps is None else unit_of(self.steps)[0]

    @property
    def length(self) -> float:
        length = length_of(self.line, self.steps)
        return length if self.steps is None else length / unit_of(self.steps)[1]

    @property
    def distances(self) -> NDArray[np.float64]:
        return np.linspace(0.0, self.length, len(self.places))

    @property
    def channels(self) -> tuple[str, ...]:
        count = self.levels.shape[1]
        return CHANNELS[:count] if count > 1 else (self.channel,)

    @property
    def inside(self) -> NDArray[np.float64]:
        return self.levels[~np.isnan(self.levels[:, 0])]

    def values(self, units: Units) -> NDArray[np.float64]:
        if units is Units.STORED:
            return self.levels
        return self.levels * ((255 if units is Units.BYTES else 1) / self.white)


def profile(line: Interest, picture: ProfiledPicture) -> Profile:
    """Return the samples along a line, at most a pixel apart unless there are `MOST_POINTS`."""
    count = min(max(math.ceil(line.length), 1), MOST_POINTS) + 1
    (x, y), (end_x, end_y) = line.corners
    shares = np.linspace(0.0, 1.0, count)[:, np.newaxis]
    places = (1 - shares) * np.array([x, y]) + shares * np.array([end_x, end_y])
    levels = _interpolated(picture.planes, places - np.array(picture.first))
    if not picture.covers(line):
        levels = np.full_like(levels, np.nan)
    of = picture.steps, picture.channel, picture.ink, picture.made, picture.axes
    return Profile(line, picture.name, places, levels, picture.unit, *of)


def length_of(line: Interest, steps: Steps | None) -> float:
    (x, y), (end_x, end_y) = line.corners
    across, down = steps or (1.0, 1.0)
    return math.hypot((end_x - x) * across, (end_y - y) * down)


def _interpolated(planes: NDArray[Any], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return bilinear samples, NaN outside of the rectangle between the outermost centres."""
    height, width, channels = planes.shape
    columns, rows = places[:, 0], places[:, 1]
    inside = (columns >= 0) & (columns <= width - 1) & (rows >= 0) & (rows <= height - 1)
    levels = np.full((len(places), channels), np.nan)
    columns, rows = columns[inside], rows[inside]
    left, top = np.floor(columns).astype(int), np.floor(rows).astype(int)
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    across, down = (columns - left)[:, np.newaxis], (rows - top)[:, np.newaxis]
    upper = (1 - across) * planes[top, left] + across * planes[top, right]
    lower = (1 - across) * planes[bottom, left] + across * planes[bottom, right]
    levels[inside] = (1 - down) * upper + down * lower
    return levels


def profiles_as_csv(profiles: Sequence[Profile], units: Units) -> str:
    """Return profiles along one line as CSV with all digits, empty beyond a picture."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = [
        " ".join(filter(None, (named(each.picture, each.made), channel)))
        for each in profiles
        for channel in each.channels
    ]
    unit = profiles[0].unit if profiles else "px"
    axes = profiles[0].axes if profiles else AS_DRAWN
    writer.writerow([f"distance in {unit}", axes.across, axes.down, *heads, "units"])
    if not profiles:
        return text.getvalue()
    first = profiles[0]
    values = np.hstack([each.values(units) for each in profiles])
    places = first.places.copy()
    for column, count in enumerate((axes.width, axes.height)):
        if count is not None:
            places[:, column] = count - 1 - places[:, column]
    for distance, place, row in zip(first.distances, places, values, strict=True):
        cells = ["" if np.isnan(value) else value for value in row.tolist()]
        writer.writerow([float(distance), *place.tolist(), *cells, units.value])
    return text.getvalue()


RAYLEIGH = math.sqrt(2 - math.pi / 2)  # standard deviation of Rayleigh's law, of sigma 1: 0.655

_RAYLEIGH_RATIO = math.sqrt(math.pi / 2) / RAYLEIGH  # mean / standard deviation: 1.913

_UNLIKE = 0.1, 2.1
"""How far the ratio of a background may be from that, as a share: of many samples, and over the
root of their number, three standard errors (0.71 each)."""


@dataclass(frozen=True)
class Statistics:
    count: int  # number of samples: pixels times channels
    # In levels of the type; NaN without samples.
    mean: float
    deviation: float
    """Standard deviation of a sample, with count - 1 in the denominator; NaN for fewer than two."""
    low: float
    high: float
    psnr: float | None = None
    """Against the reference within the region, in decibels; None if they are not comparable."""

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio: mean / standard deviation; infinite in a flat region."""
        return _ratio(self.mean, self.deviation)

    @property
    def is_rayleigh(self) -> bool:
        """Whether mean / SD is that of Rayleigh's law; filtered or masked air has another one."""
        few, many = _UNLIKE[1] / math.sqrt(max(self.count, 1)), _UNLIKE[0]
        return abs(self.snr / _RAYLEIGH_RATIO - 1) <= many + few

    def snr_over(self, background: Statistics, *, rician: bool) -> float | None:
        """Return the signal as a multiple of the noise of a region without signal.

        That region has the offset of a camera, which is no signal. Of a magnitude image (`rician`)
        it follows Rayleigh's law instead, which has a mean without an offset and a deviation of
        0.655 of sigma (Gudbjartsson and Patz, 1995); None if it does not, as after a denoiser.
        """
        if rician and not background.is_rayleigh:
            return None
        if rician:
            return _ratio(self.mean, background.deviation / RAYLEIGH)
        return _ratio(self.mean - background.mean, background.deviation)


def statistics(
    samples: NDArray[Any],
    reference: NDArray[Any] | None = None,
    peak: float | None = None,
) -> Statistics:
    """Return the figures of samples; PSNR with a `reference` of their shape.

    `peak`: white of the reference; by default of the type, which has to be the same then.
    """
    values = samples.astype(np.float64).reshape(-1)
    if not values.size:
        return Statistics(0, math.nan, math.nan, math.nan, math.nan)
    psnr = None
    same = reference is not None and (peak is not None or reference.dtype == samples.dtype)
    if reference is not None and same and reference.shape == samples.shape:
        error = float(np.mean((values - reference.astype(np.float64).reshape(-1)) ** 2))
        white = white_level(samples.dtype) if peak is None else peak
        psnr = 10 * math.log10(white * white / error) if error > 0 else math.inf
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    low, high = float(values.min()), float(values.max())
    return Statistics(values.size, float(values.mean()), deviation, low, high, psnr)


def contrast_to_noise(first: Statistics, second: Statistics) -> float:
    """Return |mean - mean'| / sqrt(deviation² + deviation'²) of two regions of one picture.

    It treats both alike, as for ultrasound; others divide by the deviation of the background.
    """
    noise = math.hypot(first.deviation, second.deviation)
    return _ratio(abs(first.mean - second.mean), noise)


def _ratio(signal: float, noise: float) -> float:
    """Return signal / noise; NaN where either is unknown or both are 0."""
    if math.isnan(signal) or math.isnan(noise) or (signal == 0 and noise == 0):
        return math.nan
    return signal / noise if noise else math.copysign(math.inf, signal)


COLUMNS = ("Region", "Picture", "Channel", "Samples", "Mean", "SD", "Min", "Max", "PSNR", "SNR")
"""Of the table; CNR follows."""

ALL_CHANNELS = "all"


@dataclass(frozen=True)
class RegionRow:
    region: str
    picture: str
    channel: str
    figures: Statistics
    unit: float  # white of the picture, by which units are converted
    is_float: bool  # the samples are floats, or interpolated along a line
    snr: float | None = None
    """Of the region by itself, or over the background that is chosen; None for that."""
    cnr: float | None = None
    """Against the selected region for it; None for that region itself and for lines."""
    slice: str = ""  # name of the slice of a volume; empty in pictures
    area: float | None = None
    """In squares of the unit; None for lines, and where the size of a pixel is not known."""
    area_unit: str = ""  # ``µm²``
    note: str = ""  # the reason why SNR is left out
    # As in `ProfiledPicture`.
    ink: str = ""
    made: Made = Made()
    file: str = ""
    place: Mapping[str, object] = field(default_factory=dict)  # columns of the CSV

    @property
    def heading(self) -> str:
        return f"{self.region} ({self.slice})" if self.slice else self.region

    def values(self, units: Units) -> tuple[float | None, ...]:
        factor, of = self.factor(units), self.figures
        levels = (of.mean, of.deviation, of.low, of.high)
        return (of.count, *(factor * each for each in levels), of.psnr, self.snr, self.cnr)

    def factor(self, units: Units) -> float:
        if units is Units.STORED:
            return 1.0
        return (255 if units is Units.BYTES else 1) / self.unit


_Figures = TypeVar("_Figures", RegionRow, Profile)


def marked(figures: Sequence[_Figures], outputs: Sequence[Output]) -> tuple[_Figures, ...]:
    """Return figures, marked as earlier if their output is not among those in view by now."""
    now = [made for each in outputs for made in (each.made, each.beside_made)]
    return tuple(
        each
        if each.picture != "output" or each.made in now
        else replace(each, made=replace(each.made, state=EARLIER))
        for each in figures
    )


_DIGITS = 5, 4, 5, 5, 4, 4, 4
"""Significant digits of the largest figure of a column, from the mean to CNR."""


def texts_of(rows: Sequence[RegionRow], units: Units) -> list[tuple[str, ...]]:
    """Return the figures as texts, aligned in each column; a dash for those that there are not."""
    if not rows:
        return []
    whole = units is Units.STORED and not any(row.is_float for row in rows)
    counts, *columns = zip(*(row.values(units) for row in rows), strict=True)
    texts = [[f"{count:d}" for count in counts]]
    for number, (column, digits) in enumerate(zip(columns, _DIGITS, strict=True)):
        known = [each if each is not None else math.nan for each in column]
        extreme, psnr = number in (2, 3), number == 4
        numbers = [f"{each:.0f}" for each in known] if extreme and whole else aligned(known, digits)
        unit = " dB" if psnr else ""
        pairs = zip(known, numbers, strict=True)
        texts.append([_text(value, number, unit) for value, number in pairs])
    return list(zip(*texts, strict=True))


def _text(value: float, number: str, unit: str = "") -> str:
    if math.isnan(value):
        return "–"
    return ("∞" if math.isinf(value) else number) + unit


def to_measure(
    part: Viewed,
    outputs: Sequence[Output],
    reference: Viewed | None,
    planes: Sequence[Plane | None] = (None,),
    position: Position = (0, 0, 0),
    looks: Sequence[Look] = (Look(),) * 3,
    display: Display | None = None,
) -> list[ProfiledPicture]:
    """Return the pictures, or the slices through a voxel, each with its part of the reference.

    `outputs`: those in view, previews first. `planes`: those of a volume; None for a picture.
    `looks`: of each plane, with its projection and the other channels of a composite. `display`: of
    the channel in front. The range of the reference from 0 counts as white for PSNR, as elsewhere,
    where the type does not state it. Takes a while.
    """
    states_white = isinstance(part, Image) and part.dtype.kind != "f"
    comparable = isinstance(part, Volume) or (reference and dtype_of(reference) == part.dtype)
    white = None if states_white else part.levels.span
    peak = reference.levels.span if reference is not None and comparable else None
    shown: list[tuple[str, Viewed, Viewed | None, Output | None]] = [
        ("input", part, reference, None)
    ]
    for made in outputs:
        truth = reference and like_output(reference, made.result)
        shown.append(("output", made.volume or output_of(made.result, part), truth, made))
    if reference is not None and _size(reference) == _size(part):
        shown.append(("reference", reference, None, None))
    composite = _Composite(part, looks[0], display) if isinstance(part, Volume) else None
    measured = []
    for name, each, target, output in shown:
        own = output.made if output is not None else Made()
        for number, (plane, look) in enumerate(zip(planes, looks, strict=False)):

            def cut(image: Viewed, plane: Plane | None = plane, look: Look = look) -> NDArray[Any]:
                if plane is None or not isinstance(image, Volume):
                    return colours(samples_of(image, plane, position))
                return slice_of(image, None, plane, position[plane.axis], look)[:, :, np.newaxis]

            if output is not None and output.plane not in (None, number):
                continue
            other = cut(target) if target is not None and _size(target) == _size(each) else None
            if plane is None or composite is None:
                first, *of_preview = _place(output)
                measured.append(
                    ProfiledPicture(
                        *(name, cut(each), other, first),
                        white=white,
                        peak=peak,
                        steps=steps_of(part, plane),
                        made=own,
                        file=name_of(reference if name == "reference" else part),
                        **dict(zip(("known", "room"), of_preview, strict=False)),
                    )
                )
                continue
            assert isinstance(each, Volume)
            for volume, channel, ink in composite.volumes(each, name, output):
                front = volume is each
                height, width = plane.cut(volume.voxels, 0).shape
                index, shape = position[plane.axis], volume.voxels.shape
                part_of = range(index, index + 1)
                if look.projection is not Projection.SLICE:
                    part_of = slab(index, look.slices, shape[plane.axis])
                measured.append(
                    ProfiledPicture(
                        name,
                        cut(volume),
                        other if front else None,
                        plane=number,
                        slice=_place_of(plane, position, look, volume),
                        channel=channel,
                        ink=ink,
                        white=white if front else volume.levels.span,
                        peak=peak,
                        steps=steps_of(volume, plane),
                        made=own if front or output is None else output.beside_made,
                        file=name_of(volume),
                        axes=Axes.of(plane, shape),
                        through=(AXES[plane.axis], part_of),
                        known=_drawn(output, plane, shape),
                        room=(0, 0, width, height),
                    )
                )
    return measured


def _place(output: Output | None) -> tuple[Any, ...]:
    """Return the first pixel of an output of a picture; of a preview also `known` and `room`."""
    if output is None:
        return ((0, 0),)
    request = output.result.request
    start, region = offset_of(request), request.region
    if not isinstance(region, Region):
        return ((start, start),)
    left, top = start + region.left, start + region.top
    height, width = request.whole_shape[:2]
    known = left, top, left + region.width, top + region.height
    return (left, top), known, (start, start, start + width, start + height)


def _drawn(output: Output | None, plane: Plane, shape: tuple[int, ...]) -> Edges | None:
    """Return the edges of the voxels of a slice that a preview has; None if it has all."""
    if output is None or output.part is None:
        return None
    box = output.part
    z, y, x = (first + side - 1 for first, side in zip(box.first, box.sides, strict=True))
    places = plane.place(box.first, shape), plane.place((z, y, x), shape)
    columns, rows = zip(*places, strict=True)
    return min(columns), min(rows), max(columns) + 1, max(rows) + 1


class _Composite:
    """The channels that are drawn of a volume, or of a composite in whose front it is."""

    def __init__(self, front: Volume, look: Look, display: Display | None) -> None:
        self._front = front
        drawn = look.others(front)
        if look.shows(front) or not drawn:
            drawn = [(front, display or automatic_of(front)), *drawn]
        self._drawn = sorted(drawn, key=lambda pair: pair[0].channel_number)
        pairs = zip(look.beside, look.filtered, strict=False)
        self._filtered = {raw: made for (raw, _), (made, _) in pairs if made is not raw}
        names = [each.channel.name for each, _ in self._drawn]
        # Of several, one without a name of its own has its number.
        self._names = {
            each: name if len(names) == 1 or (name and names.count(name) == 1) else number
            for (each, _), name in zip(self._drawn, names, strict=True)
            for number in [f"channel {each.channel_number + 1}"]
        }

    def volumes(
        self, front: Volume, picture: str, output: Output | None = None
    ) -> Iterator[tuple[Volume, str, str]]:
        """Yield the volumes of input or output, with their names and the colours of several."""
        made = self._filtered
        if output is not None and output.volume is not None:
            others = {each.channel_number: each for each in output.beside}
            numbers = {raw: raw.channel_number for raw, _ in self._drawn}
            made = {raw: others[n] for raw, n in numbers.items() if n in others}
        for raw, display in self._drawn:
            is_front = raw is self._front
            volume = front if is_front else raw if picture == "input" else made.get(raw)
            if volume is not None and (is_front or picture != "reference"):
                light = table(display.colour_map)[-1].tobytes().hex()
                yield volume, self._names[raw], f"#{light}" if len(self._drawn) > 1 else ""


def _place_of(plane: Plane, position: Position, look: Look, volume: Volume) -> str:
    """Return ``axial 5``, or ``maximum of axial 3–7``."""
    index, name = position[plane.axis], plane.name.lower()
    if look.projection is Projection.SLICE:
        return f"{name} {index + 1}"
    part = slab(index, look.slices, volume.voxels.shape[plane.axis])
    return f"{look.projection.value.lower()} of {name} {numbers(part)}"


def _size(image: Viewed) -> tuple[int, ...]:
    return image.shape[:2] if isinstance(image, Image) else image.voxels.shape


def steps_of(image: Viewed, plane: Plane | None) -> Steps | None:
    """Return the width and height of a pixel, or of a voxel in a plane; None if unknown."""
    if isinstance(image, Image):
        return image.metadata.pixel_size
    assert plane is not None
    axes = AXES[plane.columns], AXES[plane.rows]
    if not set(axes) <= image.steps.keys():
        return None
    return image.steps[axes[0]], image.steps[axes[1]]


def size_of(region: Interest, steps: Steps | None) -> str:
    """Return “12 × 7.5 mm”, or the length of a line; empty where pixels have no known size."""
    if steps is None:
        return ""
    if region.shape is Shape.LINE:
        return in_words([length_of(region, steps)])
    left, top, right, bottom = region.box
    return in_words([(right - left) * steps[0], (bottom - top) * steps[1]], " × ")


_NOT_RAYLEIGH = (
    "No SNR of the {}: mean / SD of {} is {} there, not {:.2f} as of Rician noise without signal. "
    "If it is no magnitude image, untick Rician."
)


_ELSEWHERE = "No {} of the {}: {} is measured in another output, the preview does not cover both."
_UNCOVERED = "The preview does not cover {}, and no output is there yet."


def seen(region: Interest, measured: Sequence[ProfiledPicture]) -> list[ProfiledPicture]:
    """Return the pictures in which a region is measured: of outputs the first that covers it."""
    found: dict[tuple[str, str], ProfiledPicture] = {}
    for picture in measured:
        key = picture.name, picture.channel
        if picture.plane == region.plane and (key not in found or not found[key].covers(region)):
            found[key] = picture
    return list(found.values())


def measure(
    regions: Sequence[Interest], against: Against, measured: Sequence[ProfiledPicture]
) -> tuple[RegionRow, ...]:
    """Return the figures of all regions, each in the slices of its plane."""
    rows, names = [], {region.name for region in regions}
    for picture_name in dict.fromkeys(picture.name for picture in measured):
        pairs = [
            (region, picture, _by_channel(region, picture))
            for region in regions
            for picture in seen(region, measured)
            if picture.name == picture_name
        ]
        all_found: dict[Made, dict[str, dict[str, Statistics]]] = {}
        for region, picture, channels in pairs:  # of a composite, each channel is a picture
            all_found.setdefault(picture.made, {}).setdefault(region.name, {}).update(channels)
        for region, picture, channels in pairs:
            is_line, found = region.shape is Shape.LINE, all_found[picture.made]
            others = {n: c for n, c in found.items() if n != region.name}
            shown_as = named(picture_name, picture.made)
            for channel, each in channels.items():
                cnr, snr, note = None, None, ""
                area, area_unit = _area(each.count, picture.steps) if not is_line else (None, "")
                if against.cnr in others and not is_line:
                    cnr = contrast_to_noise(each, others[against.cnr][channel])
                if against.background in others:
                    noise = others[against.background][channel]
                    snr = each.snr_over(noise, rician=against.rician)
                    if snr is None:
                        ratio = _text(noise.snr, f"{noise.snr:.2f}")
                        which = shown_as, against.background
                        note = _NOT_RAYLEIGH.format(*which, ratio, _RAYLEIGH_RATIO)
                elif against.background == ITSELF:
                    snr = each.snr
                note = note or _missing(region, picture, against, names - found.keys())
                is_float = picture.planes.dtype.kind == "f" or is_line
                of = region.name, picture.name, channel
                rows.append(
                    RegionRow(
                        *(*of, each, picture.unit, is_float, snr, cnr, picture.slice, area),
                        area_unit,
                        note,
                        picture.ink,
                        picture.made,
                        picture.file,
                        _columns(region, picture),
                    ),
                )
    order = {region.name: number for number, region in enumerate(regions)}
    return tuple(sorted(rows, key=lambda row: order[row.region]))


def _area(count: int, steps: Steps | None) -> tuple[float | None, str]:
    if steps is None:
        return None, ""
    unit, length = unit_of(steps)
    return count * (steps[0] / length) * (steps[1] / length), f"{unit}²"


def _columns(region: Interest, picture: ProfiledPicture) -> dict[str, object]:
    """Return shape and place as the file counts its pixels, for the CSV."""
    axes, end = picture.axes, region.shape is Shape.LINE
    placed = axes.turned(region)
    left, top, right, bottom = placed.box
    first = {axes.across: left, axes.down: top}
    size = {axes.across: right + end - left, axes.down: bottom + end - top}
    if picture.through is not None:
        axis, slices = picture.through
        first[axis], size[axis] = slices.start, len(slices)
    found: dict[str, object] = {"shape": region.shape.value}
    found |= dict(sorted(first.items()))
    found |= {f"size {axis}": size[axis] for axis in sorted(size)}
    named = region.shape in (Shape.POLYGON, Shape.LINE)
    found["corners"] = " ".join(f"{x},{y}" for x, y in placed.corners) if named else ""
    return found


def _missing(
    region: Interest, picture: ProfiledPicture, against: Against, away: Collection[str]
) -> str:
    """Return why figures of a region are missing; `away`: regions that another output has."""
    if not picture.covers(region):
        return _UNCOVERED.format(region.name)
    ratios = [("SNR", against.background)]
    if region.shape is not Shape.LINE:
        ratios.append(("CNR", against.cnr))
    shown_as = named(picture.name, picture.made)
    notes = [_ELSEWHERE.format(ratio, shown_as, name) for ratio, name in ratios if name in away]
    return notes[0] if notes else ""


def _by_channel(region: Interest, picture: ProfiledPicture) -> dict[str, Statistics]:
    height, width, channels = picture.planes.shape
    if region.shape is Shape.LINE:
        values = profile(region, picture).inside
        named = {ALL_CHANNELS if channels > 1 else picture.channel: statistics(values)}
        if channels > 1:
            named |= {name: statistics(values[:, n]) for n, name in enumerate(CHANNELS)}
        return named
    left, top = picture.first
    rows, columns, mask = region.moved(-left, -top).mask(height, width)
    mask &= picture.covers(region)
    samples = picture.planes[rows, columns][mask]
    other = picture.reference
    target = other[rows, columns][mask] if other is not None else None
    whole = ALL_CHANNELS if channels > 1 else picture.channel
    figures = {whole: statistics(samples, target, picture.peak)}
    if channels > 1:
        same = target is not None and target.shape == samples.shape
        for number, name in enumerate(CHANNELS[:channels]):
            own = target[:, number] if target is not None and same else None
            figures[name] = statistics(samples[:, number], own, picture.peak)
    return figures


def as_csv(rows: Sequence[RegionRow], units: Units, against: Against) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cnr = f"CNR against {against.cnr}" if against.cnr else "CNR"
    snr = against.snr if against.background not in ("", ITSELF) else "snr"
    of_slices = any(row.slice for row in rows)
    has_area = of_slices or any(row.area is not None for row in rows)
    heads = [*(name.lower() for name in COLUMNS[:8]), "psnr in dB", snr, cnr, "units", "sum"]
    heads += ["file", "filter and settings", "state", *(rows[0].place if rows else ())]
    writer.writerow([*heads, *["slice"] * of_slices, *["area", "area unit"] * has_area])
    for row in rows:
        total = row.factor(units) * row.figures.mean * row.figures.count
        figures = (*row.values(units), units.value, total)
        values = [
            "" if value is None or (isinstance(value, float) and np.isnan(value)) else value
            for value in figures
        ]
        made = row.file, row.made.settings, row.made.state, *row.place.values()
        area = ["" if row.area is None else row.area, row.area_unit] * has_area
        cut = [row.slice] * of_slices
        writer.writerow([row.region, row.picture, row.channel, *values, *made, *cut, *area])
    return text.getvalue()
