"""The table of measurements: figures of each region or line in input, output and reference."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelscope.engine.result import Result
from kernelscope.gui.model.arrangement import Units
from kernelscope.gui.model.comparison import like_output, offset_of
from kernelscope.gui.model.profiles import CHANNELS, ProfiledPicture, Steps, length_of, profile
from kernelscope.gui.model.regions import Interest, Shape
from kernelscope.gui.model.statistics import Statistics, contrast_to_noise, statistics
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.lengths import in_words
from kernelscope.images.planes import Plane, Position
from kernelscope.images.volume import AXES, Volume

COLUMNS = ("Region", "Picture", "Channel", "Samples", "Mean", "SD", "Min", "Max", "PSNR", "SNR")
"""Of the table; CNR follows."""

ALL_CHANNELS = "all"


@dataclass(frozen=True)
class RegionRow:
    """The figures of one region in one channel of one picture."""

    region: str
    picture: str
    channel: str
    figures: Statistics
    unit: float
    """White of the picture, by which units are converted."""
    is_float: bool
    """The samples are floats, or interpolated along a line."""
    cnr: float | None = None
    """Against the selected region for it; None for that region itself and for lines."""
    slice: str = ""
    """Name of the slice of a volume; empty in pictures."""
    area: float | None = None
    """In square millimetres; None for lines, and where the size of a pixel is not known."""

    @property
    def heading(self) -> str:
        """The region, with the slice in which it was measured."""
        return f"{self.region} ({self.slice})" if self.slice else self.region

    def values(self, units: Units) -> tuple[float | None, ...]:
        """Return the figures from the number of samples to CNR."""
        factor = 1.0
        if units is not Units.STORED:
            factor = (255 if units is Units.BYTES else 1) / self.unit
        of = self.figures
        levels = (of.mean, of.deviation, of.low, of.high)
        return (of.count, *(factor * each for each in levels), of.psnr, of.snr, self.cnr)

    def texts(self, units: Units) -> tuple[str, ...]:
        """Return the figures as texts, a dash for those that there are not."""
        whole = units is Units.STORED and not self.is_float
        count, mean, deviation, low, high, psnr, snr, cnr = self.values(units)
        return (
            f"{count:d}",
            _text(mean, ".5g"),
            _text(deviation, ".4g"),
            _text(low, ".0f" if whole else ".5g"),
            _text(high, ".0f" if whole else ".5g"),
            _text(psnr, ".2f", " dB"),
            _text(snr, ".4g"),
            _text(cnr, ".4g"),
        )


def _text(value: float | None, form: str, unit: str = "") -> str:
    if value is None or math.isnan(value):
        return "–"
    return ("∞" if math.isinf(value) else format(value, form)) + unit


def pictures(
    source: Image, result: Result | None, reference: Image | None
) -> list[ProfiledPicture]:
    """Return the pictures to measure, each with the part of the reference to compare with.

    Takes a while for large pictures: call it off the GUI thread.
    """
    target = colours(reference.planes) if reference is not None else None
    same = target is not None and target.shape[:2] == (source.height, source.width)
    white = source.levels.span if source.dtype.kind == "f" else None
    peak = (
        reference.levels.span if reference is not None and reference.dtype == source.dtype else None
    )
    own = target if same else None
    measured = [ProfiledPicture("input", colours(source.planes), own, white=white, peak=peak)]
    if result is not None:
        offset = offset_of(result.request)
        other = colours(like_output(reference, result).planes) if reference is not None else None
        planes = colours(result.image.planes)
        same_size = other is not None and other.shape[:2] == planes.shape[:2]
        target_of = other if same_size else None
        measured.append(
            ProfiledPicture("output", planes, target_of, offset, white=white, peak=peak)
        )
    if target is not None and same:
        measured.append(ProfiledPicture("reference", target, white=white))
    return measured


def slices(
    volume: Volume,
    output: Volume | None,
    reference: Volume | None,
    planes: Sequence[Plane],
    position: Position,
) -> list[ProfiledPicture]:
    """Return the slices to measure, through one voxel: those of each plane and each volume.

    As elsewhere, the range of the reference from 0 counts as white for PSNR. Takes a while for
    large volumes: call it off the GUI thread.
    """
    volumes = {"input": volume, "output": output, "reference": reference}
    white, peak = white_of(volume), white_of(reference) if reference is not None else None
    measured = []
    for name, each in volumes.items():
        for number, plane in enumerate(planes):
            if each is None or each.voxels.shape != volume.voxels.shape:
                continue
            index = position[plane.axis]
            target = None
            if reference is not None and each is not reference:
                target = plane.cut(reference.voxels, index)[:, :, np.newaxis]
            measured.append(
                ProfiledPicture(
                    name,
                    plane.cut(each.voxels, index)[:, :, np.newaxis],
                    target,
                    plane=number,
                    slice=f"{plane.name.lower()} {index + 1}",
                    white=white,
                    peak=peak,
                    steps=steps_of(volume, plane),
                )
            )
    return measured


def white_of(volume: Volume) -> float:
    """Return the value of voxels that is 1 in units from 0 to 1."""
    return volume.levels.span


def steps_of(volume: Volume, plane: Plane) -> Steps | None:
    """Return the width and height of a voxel in a plane; None if the file does not say."""
    axes = AXES[plane.columns], AXES[plane.rows]
    if not set(axes) <= volume.steps.keys():
        return None
    return volume.steps[axes[0]], volume.steps[axes[1]]


def size_of(region: Interest, steps: Steps | None) -> str:
    """Return “12 × 7.5 mm”, or the length of a line; empty where pixels have no known size."""
    if steps is None:
        return ""
    if region.shape is Shape.LINE:
        return in_words([length_of(region, steps)])
    left, top, right, bottom = region.box
    return in_words([(right - left) * steps[0], (bottom - top) * steps[1]], " × ")


def measure(
    regions: Sequence[Interest], against: str, measured: Sequence[ProfiledPicture]
) -> tuple[RegionRow, ...]:
    """Return the figures of all regions, each in the slices of its plane.

    - `against`: name of the region with which CNR compares the others; empty for none.
    """
    rows = []
    for picture_name in dict.fromkeys(picture.name for picture in measured):
        pairs = [
            (region, picture, _by_channel(region, picture))
            for region in regions
            for picture in measured
            if picture.name == picture_name and picture.plane == region.plane
        ]
        other = next((found for region, _, found in pairs if region.name == against), {})
        for region, picture, channels in pairs:
            is_line = region.shape is Shape.LINE
            for channel, each in channels.items():
                cnr = area = None
                if other and region.name != against and not is_line:
                    cnr = contrast_to_noise(each, other[channel])
                if picture.steps is not None and not is_line:
                    area = each.count * picture.steps[0] * picture.steps[1]
                is_float = picture.planes.dtype.kind == "f" or is_line
                names = region.name, picture.name, channel
                rows.append(
                    RegionRow(*names, each, picture.unit, is_float, cnr, picture.slice, area),
                )
    order = {region.name: number for number, region in enumerate(regions)}
    return tuple(sorted(rows, key=lambda row: order[row.region]))


def _by_channel(region: Interest, picture: ProfiledPicture) -> dict[str, Statistics]:
    """Return the figures of all channels together, and of each colour."""
    height, width, channels = picture.planes.shape
    if region.shape is Shape.LINE:
        values = profile(region, picture).inside
        named = {ALL_CHANNELS if channels > 1 else "": statistics(values)}
        if channels > 1:
            named |= {name: statistics(values[:, n]) for n, name in enumerate(CHANNELS)}
        return named
    placed = region.moved(-picture.offset, -picture.offset)
    rows, columns, mask = placed.mask(height, width)
    samples = picture.planes[rows, columns][mask]
    other = picture.reference
    target = other[rows, columns][mask] if other is not None else None
    figures = {ALL_CHANNELS if channels > 1 else "": statistics(samples, target, picture.peak)}
    if channels > 1:
        same = target is not None and target.shape == samples.shape
        for number, name in enumerate(CHANNELS[:channels]):
            own = target[:, number] if target is not None and same else None
            figures[name] = statistics(samples[:, number], own)
    return figures


def as_csv(rows: Sequence[RegionRow], units: Units, against: str) -> str:
    """Return the table with all digits; empty where there is no figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cnr = f"CNR against {against}" if against else "CNR"
    of_slices = any(row.slice for row in rows)
    heads = [*(name.lower() for name in COLUMNS[:8]), "psnr in dB", "snr", cnr, "units"]
    writer.writerow([*heads, "slice", "area in mm²"] if of_slices else heads)
    for row in rows:
        values = ["" if value is None or np.isnan(value) else value for value in row.values(units)]
        place = [row.slice, "" if row.area is None else row.area] if of_slices else []
        writer.writerow([row.region, row.picture, row.channel, *values, units.value, *place])
    return text.getvalue()
