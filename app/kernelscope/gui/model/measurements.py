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
from kernelscope.gui.model.profiles import CHANNELS, Measured, profile
from kernelscope.gui.model.regions import Interest, Shape
from kernelscope.gui.model.statistics import Statistics, contrast_to_noise, statistics
from kernelscope.images.image import Image
from kernelscope.judging import colours
from kernelscope.spec.samples import white_level

COLUMNS = ("Region", "Picture", "Channel", "Samples", "Mean", "SD", "Min", "Max", "PSNR", "SNR")
"""Of the table; CNR follows."""

ALL_CHANNELS = "all"


@dataclass(frozen=True)
class Row:
    """The figures of one region in one channel of one picture.

    Attributes
    ----------
    unit : float
        White of the picture, by which units are converted.
    is_float : bool
        The samples are floats, or interpolated along a line.
    cnr : float or None
        Against the region that was chosen for it; None for that region itself and for lines.
    """

    region: str
    picture: str
    channel: str
    figures: Statistics
    unit: float
    is_float: bool
    cnr: float | None = None

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


def pictures(source: Image, result: Result | None, reference: Image | None) -> list[Measured]:
    """Return the pictures to measure, each with the part of the reference to compare with.

    Takes a while for large pictures: call it off the GUI thread.
    """
    target = colours(reference.planes) if reference is not None else None
    same = target is not None and target.shape[:2] == (source.height, source.width)
    measured = [Measured("input", colours(source.planes), target if same else None)]
    if result is not None:
        offset = offset_of(result.request)
        other = colours(like_output(reference, result).planes) if reference is not None else None
        planes = colours(result.image.planes)
        same_size = other is not None and other.shape[:2] == planes.shape[:2]
        measured.append(Measured("output", planes, other if same_size else None, offset))
    if target is not None and same:
        measured.append(Measured("reference", target))
    return measured


def measure(
    regions: Sequence[Interest], against: str, measured: Sequence[Measured]
) -> tuple[Row, ...]:
    """Return the figures of all regions.

    Parameters
    ----------
    against : str
        Name of the region with which CNR compares the others; empty for none.
    """
    rows = []
    lines = {region.name for region in regions if region.shape is Shape.LINE}
    for picture in measured:
        figures = {region.name: _by_channel(region, picture) for region in regions}
        other = figures.get(against, {})
        white = white_level(picture.planes.dtype)
        for name, channels in figures.items():
            for channel, each in channels.items():
                cnr = None
                if other and name != against and name not in lines:
                    cnr = contrast_to_noise(each, other[channel])
                is_float = picture.planes.dtype.kind == "f" or name in lines
                rows.append(Row(name, picture.name, channel, each, white, is_float, cnr))
    order = {region.name: number for number, region in enumerate(regions)}
    return tuple(sorted(rows, key=lambda row: order[row.region]))


def _by_channel(region: Interest, picture: Measured) -> dict[str, Statistics]:
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
    figures = {ALL_CHANNELS if channels > 1 else "": statistics(samples, target)}
    if channels > 1:
        same = target is not None and target.shape == samples.shape
        for number, name in enumerate(CHANNELS[:channels]):
            own = target[:, number] if target is not None and same else None
            figures[name] = statistics(samples[:, number], own)
    return figures


def as_csv(rows: Sequence[Row], units: Units, against: str) -> str:
    """Return the table with all digits; empty where there is no figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cnr = f"CNR against {against}" if against else "CNR"
    writer.writerow([*(name.lower() for name in COLUMNS[:8]), "psnr in dB", "snr", cnr, "units"])
    for row in rows:
        values = ["" if value is None or np.isnan(value) else value for value in row.values(units)]
        writer.writerow([row.region, row.picture, row.channel, *values, units.value])
    return text.getvalue()
