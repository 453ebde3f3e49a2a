"""Recorded figures: the project's own measurements, for machines without such a card.

The reports are JSON files in ``resources/bench``. `Recorded` finds, for the settings of a filter,
the recorded setting that is nearest, and the time of each level there::

    recorded, wanted = Recorded.read(), Wanted(step, (1024, 1024))
    for level, figure in recorded.nearest(wanted).items():
        print(level, figure.seconds, figure.setting, figure.card, figure.date)

A figure is never scaled to another size or setting. It belongs to the setting in
`RecordedTime.setting`.
Only `Recorded.elsewhere` scales, by the pixels and within limits, and returns that it did.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope import filters
from kernelscope.base.durations import duration
from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import parse
from kernelscope.base.paths import RESOURCES
from kernelscope.bench.figures import titled
from kernelscope.bench.report import FORMAT, Report, load
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import full_time
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS, Level
from kernelscope.schema.parameters import FootprintParameter

_logger = logging.getLogger(__name__)

FOLDER = RESOURCES / "bench"  # reports of the project's machines; an installation may lack it

_MISSING = 2.5
"""Distance that a level costs which a setting lacks: levels are compared at one setting."""

_BORDER, _CHANNELS, _SIZE = 0.25, 0.5, 0.25
"""Distance for another border, for other channels, and for each factor of two in pixels."""


_FURTHEST = 2.0  # powers of two in pixels up to which a time is scaled
_LEAST_SCALED = 0.002  # seconds below which a time is not proportional to the pixels

_SAMPLES = {2: np.dtype(np.uint8), 3: np.dtype(np.float32)}
"""Types of the recorded pictures and volumes, by their dimensions."""

_TYPES = {2: "8 bit", 3: "float"}  # their names


@dataclass(frozen=True)
class RecordedTime:
    row: Row  # the measurement
    machine: str  # name of the card or the processor
    date: str  # day of the measurement: ``22 Nov 2026``
    path: Path  # the report

    @functools.cached_property
    def seconds(self) -> float:
        return full_time(self.row)

    @functools.cached_property
    def total(self) -> float:
        return full_time(self.row, waiting=True)

    @functools.cached_property
    def values(self) -> Mapping[str, Any]:
        """The parameters; the filter may be unknown here until they are asked for."""
        return self.row.values(filters.get(self.row.filter))

    @property
    def by_million(self) -> str:
        """Computing for a million pixels or voxels: ``23.8 µs/MP``, ``1.2 ms/MV``."""
        unit = "MP" if len(self.row.asked) == 2 else "MV"
        return f"{duration(1e6 * self.seconds / math.prod(self.row.asked))}/{unit}"

    @property
    def scaled(self) -> bool:
        return self.row.is_part

    @property
    def card(self) -> str:
        return card_of(self.machine)

    @property
    def samples(self) -> str:
        return _TYPES[len(self.row.asked)]

    @property
    def setting(self) -> str:
        """The recorded filter, parameters, border, channels and size in words.

        The label of a row has only the parameters that its plan varies. The size of the mask is
        added, and those that differ from the defaults, lest a search in the whole image pass for
        the default radius.
        """
        row = self.row
        words = [row.label]
        for parameter in filters.get(row.filter).parameters:
            text = row.parameters.get(parameter.name)
            if text is None:
                continue
            value = parameter.parse(text)
            said = parameter.brief(value)
            differs = value != parameter.default and not parameter.is_absent(value)
            if (differs or parameter.sets_side) and said not in row.label:
                words.append(said)
        several = f", {row.channels} channels" if row.channels > 1 else ""
        return f"{', '.join(words)}, border {row.border}, {row.size}{several}"


@dataclass(frozen=True)
class Wanted:
    step: Step  # filter, parameters and border
    shape: tuple[int, ...]  # (height, width) or (depth, height, width)
    channels: int = 1  # those that are filtered
    dtype: np.dtype[Any] | None = None  # None for that of the recorded pictures or volumes

    @classmethod
    def by(cls, request: Request) -> Wanted:
        source, step = request.source, request.step
        channels = 1 if step.grey else source.shape[-1]
        return cls(step, source.shape[:-1], channels, source.dtype)

    @property
    def pixels(self) -> int:
        return math.prod(self.shape)

    def is_done_by(self, figure: RecordedTime) -> bool:
        """Return whether a figure is of these settings: filter, mask, samples and channels."""
        row, recorded = figure.row, figure.values
        spec, values = self.step.filter, self.step.parameters
        return (
            (row.filter, row.channels) == (spec.id, self.channels)
            and self._has_type_of(figure)
            and spec.radius(values) == spec.radius(recorded)
            and all(values[name] == recorded[name] for name in _measures(spec) | _shapes(spec))
        )

    def describe(self, figure: RecordedTime) -> str:
        """Return the settings and the size of a figure in short.

        ``mask size 3, 2048×2048``: the size of the mask always, and other values that differ.
        """
        row, recorded = figure.row, figure.values
        spec, values = self.step.filter, self.step.parameters
        side = 2 * spec.radius(recorded) + 1
        has_side = any(each.sets_side for each in spec.parameters)
        has_mask = side > 1 and spec.category not in _WITHOUT_MASK
        words = [f"mask {side}×{side}"] if has_mask and not (has_side or _measures(spec)) else []
        for parameter in spec.parameters:
            value, name = recorded[parameter.name], parameter.name
            differs = value != values[name]
            if name in _shapes(spec):
                words += [parameter.brief(value)] * differs
                continue
            if not parameter.matters(recorded) or parameter.is_absent(value):
                continue
            if parameter.sets_side or name in _measures(spec):
                brief = parameter.brief(value)
                words.append(brief if brief[0].isalpha() else f"mask {brief}")
            elif parameter.affects_time and differs:
                words.append(parameter.brief(value))
        if row.border != self.step.border:
            words.append(f"border {row.border}")
        if row.channels > 1 or self.channels > 1:
            words.append(f"{row.channels} channel{'s' * (row.channels > 1)}")
        if not self._has_type_of(figure):
            words.append(figure.samples)
        return ", ".join([*words, row.size])

    def _has_type_of(self, figure: RecordedTime) -> bool:
        return self.dtype in (None, _SAMPLES.get(len(figure.row.asked)))


_WITHOUT_MASK = ("Denoising", "Teaching")
"""Categories whose filters reach as far as they search, or as a tile: that is no mask."""


def _measures(spec: FilterSpec) -> frozenset[str]:
    """Return the names of the numbers on which the time depends: sizes and radii."""
    return frozenset(
        each.name for each in spec.parameters if each.affects_time and not each.named_values()
    )


def _shapes(spec: FilterSpec) -> frozenset[str]:
    """Return the names of the parameters that say which cells a mask has."""
    return frozenset(each.name for each in spec.parameters if isinstance(each, FootprintParameter))


@dataclass(frozen=True)
class BestShown:
    figure: RecordedTime
    before: Level
    factor: float

    @property
    def filter(self) -> str:
        return filters.get(self.figure.row.filter).name

    def describe(self) -> str:
        level, row = self.before.on("GPU"), self.figure
        return (
            f"{self.filter} shows it best: {self.factor:.2g} times as fast as {level} "
            f"({row.setting}; recorded on {row.card}, {row.date})."
        )


@dataclass(frozen=True)
class RecordedReport:
    path: Path
    title: str


@dataclass(frozen=True)
class Elsewhere:
    """The time that a run should take on a recorded machine."""

    seconds: float  # of the whole run with transfers, at the fastest level
    figure: RecordedTime  # the measurement that it follows from
    scaled: bool  # whether it was measured at another size, and scaled by the pixels


class _RecordedSetting:
    """The figures by level of one report that have the same filter and data."""

    def __init__(self, first: RecordedTime) -> None:
        self.first, self.row = first, first.row
        self.levels = {first.row.level: first}

    @property
    def values(self) -> Mapping[str, Any]:
        return self.first.values


class Recorded:
    """Recorded figures by filter and device; those of libraries, chosen blocks or several GPUs
    are left out."""

    def __init__(self, figures: Iterable[RecordedTime] = ()) -> None:
        # The window asks again with every change of a setting, and after each output.
        self._settings: dict[tuple[str, str], dict[Any, _RecordedSetting]] = {}
        self._last: tuple[object, list[_RecordedSetting]] = None, []
        for figure in figures:
            row = figure.row
            if not row.seconds or row.library or row.gpus != 1 or row.block is not None:
                continue
            settings = self._settings.setdefault((row.filter, row.device), {})
            key = row.subject, figure.path
            if key in settings:
                settings[key].levels.setdefault(row.level, figure)
            else:
                settings[key] = _RecordedSetting(figure)

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Recorded:
        """Return the figures of the reports in `folder`; files that are no reports are skipped."""
        figures: list[RecordedTime] = []
        for path in sorted(folder.glob("*.json")):
            if _head(path) is None:
                continue
            try:
                figures.extend(figures_of(load(path), path))
            except AppError as error:
                _logger.warning("%s holds no recorded figures: %s", path.name, error)
        return cls(figures)

    def nearest(self, wanted: Wanted, device: str = Device.GPU) -> dict[str, RecordedTime]:
        """Return the figures of each level on a device, at the nearest recorded setting.

        All of them are of one setting: one that does the wanted work if there is any, see
        `Wanted.is_done_by`, and of these one with most levels and of about the same size.
        """
        found = self._nearest(wanted, device)
        return dict(found[0].levels) if found else {}

    def nearest_of_each(self, wanted: Wanted, device: str = Device.GPU) -> dict[str, RecordedTime]:
        """Return the figures of each level, those that the nearest setting lacks from others."""
        levels: dict[str, RecordedTime] = {}
        for setting in self._nearest(wanted, device):
            for level, figure in setting.levels.items():
                levels.setdefault(level, figure)
        return levels

    @functools.cache  # noqa: B019 (read once, and kept as long as the program runs)
    def best_shown(self, level: str) -> BestShown | None:
        """Return where a level of a GPU gains most; None if it gains nowhere."""
        usual = [each.id for each in GPU_LEVELS]
        earlier = GPU_LEVELS[: usual.index(level)] if level in usual else ()
        found = [
            BestShown(figure, before[-1], setting.levels[before[-1].id].seconds / figure.seconds)
            for (_, device), settings in self._settings.items()
            for setting in settings.values()
            if device == Device.GPU
            and (figure := setting.levels.get(level)) is not None
            and (before := [each for each in earlier if each.id in setting.levels])
        ]
        best = max(found, key=lambda each: each.factor, default=None)
        return best if best is not None and best.factor > 1 else None

    def _nearest(self, wanted: Wanted, device: str) -> list[_RecordedSetting]:
        """Return the settings of a filter, the nearest first."""
        settings = self._settings.get((wanted.step.filter.id, device), {}).values()
        most = max((len(each.levels) for each in settings), default=0)

        def rank(each: _RecordedSetting) -> tuple[bool, float]:
            far = _distance(each, wanted.step, wanted.shape, wanted.channels)
            return not wanted.is_done_by(each.first), far + _MISSING * (most - len(each.levels))

        known, found = self._last
        if known != (wanted, device):
            found = sorted(settings, key=rank)
            self._last = (wanted, device), found
        return found

    def same(self, request: Request, card: str) -> dict[str, RecordedTime]:
        """Return a card's figures of levels for the work of a request, at its size.

        None are scaled. Values that change no work, such as those in a mask, may differ.
        """
        *size, channels = request.source.shape
        found = [each for each in self._alike(request) if list(each.row.asked) == size]
        levels: dict[str, RecordedTime] = {}
        for setting in sorted(
            found, key=lambda each: _distance(each, request.step, tuple(size), channels)
        ):
            for level, figure in setting.levels.items():
                if not figure.scaled and figure.card == card:
                    levels.setdefault(level, figure)
        return levels

    def sizes(self, request: Request, card: str = "") -> list[tuple[int, ...]]:
        """Return the sizes at which `same` has figures of a card, or of any; the nearest first."""
        found = {
            tuple(setting.row.asked)
            for setting in self._alike(request)
            for figure in setting.levels.values()
            if not figure.scaled and card in ("", figure.card)
        }
        pixels = math.prod(request.source.shape[:-1])
        return sorted(found, key=lambda size: (_octaves(math.prod(size), pixels), size))

    def _alike(self, request: Request) -> list[_RecordedSetting]:
        """Return the settings that do the work of a request, at any size."""
        step, channels = request.step, request.source.shape[-1]
        if not _is_timed(request):
            return []
        work = step.filter.work_per_pixel(step.parameters)
        return [
            each
            for each in self._settings.get((step.filter.id, Device.GPU), {}).values()
            if (each.row.channels, each.row.border) == (channels, step.border)
            and step.filter.work_per_pixel(each.values) == work
        ]

    def elsewhere(self, request: Request) -> Elsewhere | None:
        """Return how long a run should take on a recorded machine; None if that is not known.

        Only a measurement of the same filter counts, with the same work for each pixel, the same
        channels and type of samples, and from a quarter to four times the pixels. Scaled so, each
        report of the H100 predicts the others within a factor of 3.2, from 2 ms on (143 pairs of
        sizes); shorter times are mostly overhead, and are not scaled.
        """
        step, shape = request.step, request.source.shape
        size, pixels = shape[:-1], math.prod(shape[:-1])
        if not _is_timed(request):
            return None
        work = step.filter.work_per_pixel(step.parameters)
        furthest = 0.0 if step.filter.whole(step.parameters) else _FURTHEST
        found = []
        for setting in self._settings.get((step.filter.id, Device.GPU), {}).values():
            row = setting.row
            far = _octaves(pixels, math.prod(row.asked))
            if (
                len(row.asked) == len(size)
                and row.channels == shape[-1]
                and row.content != "given"
                and far <= furthest
                and step.filter.work_per_pixel(setting.values) == work
            ):
                whole = (figure for figure in setting.levels.values() if not figure.scaled)
                fastest = min(whole, key=lambda figure: figure.total, default=None)
                if fastest is not None:
                    found.append((far, fastest.total, fastest))
        if not found:
            return None
        far, _, figure = min(found, key=lambda each: each[:2])
        scale = pixels / math.prod(figure.row.asked)
        seconds = scale * figure.total
        if scale != 1 and seconds < _LEAST_SCALED:
            return None
        return Elsewhere(seconds, figure, scaled=scale != 1)


def figures_of(report: Report, path: Path) -> Iterable[RecordedTime]:
    date = day(report.machine.get("Date", ""))
    for row in report.rows:
        name = report.machine.get(row.device.upper(), row.device.upper()).partition(",")[0]
        count, times, card = name.partition(" × ")
        yield RecordedTime(row, card if times and count.isdecimal() else name, date, path)


@functools.cache
def entries(folder: Path = FOLDER) -> Sequence[RecordedReport]:
    found = []
    for path in sorted(folder.glob("gpu-*.json")):
        head = _head(path)
        if head is not None:
            plan = _title(head.plan.name, path.stem.removeprefix("gpu-"))
            card = head.machine.get("GPU", "").partition(",")[0].replace("NVIDIA ", "")
            when = day(head.machine.get("Date", ""))
            found.append(RecordedReport(path, f"{plan}, {card}, {when}"))
    return found


def with_cpu(path: Path) -> list[Path]:
    """Return the files to open for a recorded report of a GPU.

    The report of the same plan on a CPU goes before it if there is one: it has the serial code
    that published speed-ups are relative to.
    """
    beside = path.with_name(path.name.replace("gpu-", "cpu-", 1))
    return [beside, path] if beside != path and beside.is_file() else [path]


def _title(name: str, stem: str) -> str:
    """Return the title of a plan: its source by author instead of its letter, or its file's name.

    ``Korčuška 2013: tables 1-3``, ``Beside libraries 16384``
    """
    words = titled(name) or stem.replace("peers", "beside libraries").replace("nlm", "NLM").replace(
        "-", " "
    )
    return words[:1].upper() + words[1:]


def card_of(machine: str) -> str:
    """Return ``H100`` of ``NVIDIA H100 80GB HBM3``."""
    words = [word for word in machine.split() if word not in ("NVIDIA", "AMD")]
    return words[0] if words else machine


def day(date: str) -> str:
    """Return ``22 Nov 2026`` of a report's date, or the text itself if it is no date."""
    try:
        when = datetime.strptime(date[:10], "%Y-%m-%d")
    except ValueError:
        return date
    return f"{when.day} {_MONTHS[when.month - 1]} {when.year}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""English in every locale, as the rest of the interface."""


def _distance(
    setting: _RecordedSetting, step: Step, shape: tuple[int, ...], channels: int
) -> float:
    """Return how far a recorded setting is from another one: 0 for the same.

    The radius counts most, since the work grows with it; the values in a mask count little.
    """
    row, recorded = setting.row, setting.values
    spec, wanted = step.filter, step.parameters
    sides = (2 * spec.radius(values) + 1 for values in (wanted, recorded))
    far = 2 * _octaves(*sides)
    for name, value in wanted.items():
        if value != recorded[name]:
            numbers = isinstance(value, int | float) and isinstance(recorded[name], int | float)
            far += min(0.5, 0.1 * _octaves(value, recorded[name])) if numbers else 0.5
    pixels = _octaves(math.prod(shape), math.prod(row.asked))
    return (
        far
        + _BORDER * (row.border != step.border)
        + _CHANNELS * (row.channels != channels)
        + _SIZE * pixels
    )


def _is_timed(request: Request) -> bool:
    """Return whether reports time such work: one step on all of a source of the usual type."""
    step, source = request.step, request.source
    converts = step.grey and source.shape[-1] > 1
    others = request.then or request.by_slices or step.within is not None or converts
    return not others and source.dtype == _SAMPLES.get(len(source.shape) - 1)


def _octaves(first: float, second: float) -> float:
    """Return the factor between two numbers as powers of two; those below 0 count as near 0."""
    return abs(math.log2(max(first, 1e-3) / max(second, 1e-3)))


@dataclass(frozen=True)
class _PlanName:
    name: str = ""


@dataclass(frozen=True)
class _Head:
    """A report without its rows."""

    machine: Mapping[str, str]
    plan: _PlanName


def _head(path: Path) -> _Head | None:
    """Return the head of a report; None if the file is none or cannot be read."""
    try:
        head, rows, _ = path.read_text("utf-8").partition('\n "rows": [')
        content = parse(f"{head}{rows}]}}" if rows else head, path.name)
        if isinstance(content.value, dict) and content.value.get("format") == FORMAT:
            return content.record(_Head)
    except (OSError, UnicodeDecodeError, AppError) as error:
        _logger.warning("%s cannot be read: %s", path, error)
    return None
