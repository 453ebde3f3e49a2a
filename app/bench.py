"""Times filters by level, beside OpenCV where it is installed.

Rules: data are seeded noise; compiling and the runs that warm up are not counted; a time is
the median of the repeats of the *compute* stage, which on the CPU is everything but allocating
the output and wrapping it. OpenCV gets the same pixels, uses all its threads, and runs in turn
with ours; its result is compared with ours first. Where a level would take too long, a smaller
picture is used, and the row says so.
"""

from __future__ import annotations

import functools
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app import filters
from app.bench_subjects import subject
from app.engine.backend import Backend
from app.engine.control import CancelToken
from app.engine.image import Image
from app.engine.request import Device, Request, Result
from app.engine.run import execute
from app.errors import AppError
from app.filters.spec import FilterSpec, Level, MaskParameter, OddParameter, Pixels

_SEED = 20130521
_SMALLEST = 128
"""Side of the smallest square that a slow level falls back to, in pixels."""

LONGEST = 1.0
"""Seconds that one run may take before a smaller square is used."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to time.

    Attributes
    ----------
    filters : tuple of str
        Filter ids; empty for all.
    sizes : tuple of int
        Sides of the square pictures, in pixels.
    masks : tuple of int
        Mask sizes, for the filters that have one, in pixels.
    levels : tuple of str
        CPU levels.
    repeat : int
        Timed runs of each row.
    """

    filters: tuple[str, ...]
    sizes: tuple[int, ...]
    masks: tuple[int, ...]
    levels: tuple[str, ...]
    repeat: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """The times of one filter at one level.

    Attributes
    ----------
    label : str
        The filter and the parameters that were chosen, for tables.
    filter, border, device, level : str
    parameters : mapping of str to str
        Every parameter, in the form that the command line takes.
    width, height, channels : int
        Of the picture that was filtered.
    asked : int
        Side that was asked for; larger than `width` if that would have taken too long.
    seconds, peer_seconds : tuple of float
        Every repeat, ours and OpenCV's; the latter empty without OpenCV or a counterpart.
    difference : str
        How OpenCV's result differs from ours, or empty.
    """

    label: str
    filter: str
    parameters: Mapping[str, str]
    border: str
    device: str
    level: str
    width: int
    height: int
    channels: int
    asked: int
    seconds: tuple[float, ...]
    peer_seconds: tuple[float, ...] = ()
    difference: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def megapixels_per_second(self) -> float:
        return self.width * self.height / 1e6 / self.median

    @property
    def ratio(self) -> float | None:
        """Our time over OpenCV's: below 1 we are faster."""
        return self.median / statistics.median(self.peer_seconds) if self.peer_seconds else None


def measure(
    settings: Settings,
    backends: Mapping[str, Backend],
    token: CancelToken,
    announce: Callable[[str], None],
) -> Iterator[Row]:
    """Yield a row for each filter, parameter set, size and CPU level.

    Parameters
    ----------
    announce : callable
        Called with what is about to be timed.

    Raises
    ------
    AppError
        For a filter or a mask size that does not exist, before anything is timed.
    Cancelled
        If `token` was set.
    """
    cpu = backends[Device.CPU]
    specs = [filters.get(name) for name in settings.filters] or filters.discover().values()
    plan = [
        (spec, case, size, level)
        for spec in specs
        for case in cases(spec, settings.masks)
        for size in settings.sizes
        for level in cpu.levels(spec)
        if level.id in settings.levels
    ]
    for spec, case, _, _ in plan:
        spec.validate(case)
    for number, (spec, case, size, level) in enumerate(plan, 1):
        announce(f"{number}/{len(plan)}  {label_of(spec, case)}, {level.id}")
        yield _measure_row(spec, case, size, level, settings.repeat, backends, token)


def label_of(spec: FilterSpec, case: Mapping[str, Any]) -> str:
    """Return the filter and the parameters that were chosen, for tables."""
    parts = [spec.name]
    for name, value in case.items():
        parameter = spec.parameter(name)
        if isinstance(parameter, MaskParameter):
            parts.append(f"{len(value)}×{len(value)}")
        else:
            parts.append(f"{parameter.label.lower()} {parameter.format(value)}")
    return ", ".join(parts)


def cases(spec: FilterSpec, masks: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the parameters to time a filter with: each variant at each mask size it takes."""
    sized: list[dict[str, Any]] = [{}]
    for parameter in spec.parameters:
        match parameter:
            case OddParameter(minimum=least, maximum=most):
                sized = [{parameter.name: side} for side in masks if least <= side <= most]
            case MaskParameter(minimum=least, maximum=most):
                sized = [{parameter.name: _mask(side)} for side in masks if least <= side <= most]
    for variant, size in itertools.product(subject(spec.id).variants, sized):
        yield {**size, **variant}


def _mask(side: int) -> list[list[int]]:
    """Return whole weights with no structure that a filter could make use of."""
    weights = np.random.default_rng(_SEED).integers(-9, 10, (side, side))
    return [[int(weight) for weight in row] for row in weights]


@functools.lru_cache(maxsize=16)
def picture(side: int, channels: int) -> Pixels:
    """Return seeded 8-bit noise, shape (side, side) or (side, side, channels), read-only."""
    shape = (side, side, channels) if channels > 1 else (side, side)
    pixels = np.random.default_rng(_SEED).integers(0, 256, shape, np.uint8)
    pixels.flags.writeable = False
    return pixels


def _measure_row(
    spec: FilterSpec,
    case: Mapping[str, Any],
    size: int,
    level: Level,
    repeat: int,
    backends: Mapping[str, Backend],
    token: CancelToken,
) -> Row:
    matter = subject(spec.id)

    def request(side: int) -> Request:
        return Request.create(
            Image.from_array(picture(side, matter.channels), "noise"),
            spec.id,
            case,
            border=matter.border,
            device=Device.CPU,
            level=level.id,
        )

    def run(what: Request) -> Result:
        return execute(what, backends, token)

    for side in sides_up_to(size):
        what = request(side)
        result = run(what)
        if 4 * _computing(result) > LONGEST:
            break
    pixels = what.image.pixels
    differs = ""
    if matter.peer is not None:
        theirs = matter.peer(pixels, what.parameters)
        differs = difference(result.image.pixels, theirs, "OpenCV")
    seconds = []
    peer_seconds = []
    for _ in range(repeat):
        seconds.append(_computing(run(what)))
        if matter.peer is not None:
            start = time.perf_counter()
            matter.peer(pixels, what.parameters)
            peer_seconds.append(time.perf_counter() - start)
    return Row(
        label=label_of(spec, case),
        filter=spec.id,
        parameters={
            parameter.name: parameter.format(what.parameters[parameter.name])
            for parameter in spec.parameters
        },
        border=str(matter.border),
        device=result.device,
        level=level.id,
        width=side,
        height=side,
        channels=matter.channels,
        asked=size,
        seconds=tuple(seconds),
        peer_seconds=tuple(peer_seconds),
        difference=differs,
    )


def sides_up_to(size: int) -> list[int]:
    """Return the sides to try, from a small part of `size` up to all of it."""
    halvings = max(0, (size // _SMALLEST).bit_length() - 1)
    return [size >> k for k in range(halvings, -1, -1)]


def _computing(result: Result) -> float:
    """Return the seconds that a run spent computing."""
    return sum(stage.seconds for stage in result.stages if stage.name == "compute")


def difference(ours: Pixels, theirs: Pixels, library: str) -> str:
    """Return in words how two results differ; empty if they are the same bytes."""
    distance = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
    if not distance.any():
        return ""
    share = np.count_nonzero(distance) / distance.size
    return f"{share:.2%} differ from {library}, by up to {distance.max()}"


@dataclass(frozen=True)
class Table:
    """Markdown that is aligned for a terminal too.

    Attributes
    ----------
    headings, widths : tuple
        Of the columns; widths in characters.
    text : tuple of int
        Columns that are aligned to the left.
    """

    headings: tuple[str, ...]
    widths: tuple[int, ...]
    text: tuple[int, ...]

    def head(self) -> str:
        """Return the first two lines."""
        rule = (
            "-" * width if column in self.text else "-" * (width - 1) + ":"
            for column, width in enumerate(self.widths)
        )
        return f"{self.line(self.headings)}\n| {' | '.join(rule)} |"

    def line(self, cells: Sequence[str]) -> str:
        """Return a line with these cells."""
        padded = (
            cell.ljust(width) if column in self.text else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, self.widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"


LEGEND = (
    "Medians of the compute stage on seeded noise, compiling and warm-up excluded. × OpenCV: our "
    "time over that of OpenCV, which uses all cores; below 1 we are faster."
)
TABLE = Table(
    ("filter", "level", "size", "ms", "MP/s", "× OpenCV", "remark"),
    (46, 8, 6, 9, 8, 8, 6),
    (0, 1, 6),
)


def format_row(row: Row) -> str:
    """Return the line of the table that shows `row`."""
    remarks = [row.difference] if row.difference else []
    if row.width < row.asked:
        remarks.append(f"{row.asked} would be slow")
    return TABLE.line(
        (
            row.label,
            row.level,
            str(row.width),
            f"{row.median * 1e3:.2f}",
            f"{row.megapixels_per_second:.1f}",
            f"{row.ratio:.2f}" if row.ratio is not None else "",
            "; ".join(remarks),
        )
    )


def save(path: Path, settings: Any, facts: Mapping[str, str], rows: Sequence[Any]) -> None:
    """Write everything that was measured as JSON.

    Raises
    ------
    AppError
        If `path` cannot be written.
    """
    report = {
        "machine": dict(facts),
        "settings": asdict(settings),
        "rows": [asdict(row) for row in rows],
    }
    try:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise AppError(f"{path} cannot be written: {error.strerror}.") from None
