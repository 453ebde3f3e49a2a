"""Several volumes: those of one file, read as they are shown, and files opened together."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kernelscope.base.errors import AppError, NotANumber, OutOfMemory, SeveralVolumes, TooLarge
from kernelscope.base.text import one_line, without_name
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.steps import execute_all
from kernelscope.engine.timing import left
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume, series_of
from kernelscope.gui.model.comparison import StepProgress
from kernelscope.images.image import Image
from kernelscope.images.levels import relevelled
from kernelscope.images.scan import Scan
from kernelscope.images.source import sizes_of
from kernelscope.images.volume import Among, Volume, check_aligned
from kernelscope.schema.samples import Levels

if TYPE_CHECKING:
    from kernelscope.big.lazy.viewing import Resolution

MOST_BYTES = 1 << 28
"""Limit for the voxels of a file that are kept, so that they show at once the next time."""


@dataclass(eq=False)
class VolumeSeries:
    """A file of several volumes of one shape."""

    path: Path
    count: int  # number of volumes
    nan: float | None = None  # takes the place of NaN
    what: str = "volume"  # kind of the volumes: "volume" or "channel"
    names: tuple[str, ...] = ()  # of each, if they have names
    resolution: Resolution | None = None  # of an OME-Zarr too large to be read whole
    axes: tuple[Among, ...] = ()  # along which they are counted, the slowest first; none if one
    _kept: OrderedDict[int, Volume] = field(default_factory=OrderedDict)

    def counted(self, count: int) -> str:
        """Return ``3 channels`` for a number of its volumes."""
        return f"{count} {self.what}{'s' * (count != 1)}"

    def part(self, places: Sequence[int]) -> str:
        """Return ``4 channels of time 2`` for all channels of a time, or else ``4 volumes``."""
        if self.has_both and list(places) == self.along("C", places[0]):
            time = self.along("T", places[0]).index(places[0])
            return f"{len(places)} channels of time {time + 1}"
        return self.counted(len(places))

    def name(self, index: int) -> str:
        """Return the name of a volume, unless it is its number."""
        name = self.names[index] if self.names else ""
        return "" if name == f"{self.what} {index + 1}" or len(set(self.names)) == 1 else name

    def along(self, letter: str, index: int) -> list[int]:
        """Return the volumes that differ from one in their place on an axis only, that included."""
        place = next((n for n, axis in enumerate(self.axes) if axis.letter == letter), None)
        if place is None:
            return []
        faster = math.prod(axis.count for axis in self.axes[place + 1 :])
        count = self.axes[place].count
        first = index - index // faster % count * faster
        return [first + n * faster for n in range(count)]

    @property
    def has_both(self) -> bool:
        """Whether it has times and channels, and no other axis."""
        return sorted(axis.letter for axis in self.axes) == ["C", "T"]

    def read(self, index: int) -> Volume:
        """Return the volume at `index`, at once if `kept` has it; raises as `read_volume`."""
        if self.resolution is None:
            return read_volume(self.path, index + 1, nan=self.nan)
        from kernelscope.big.lazy.viewing import read_at

        volume = read_at(self.path, self.resolution, index + 1, nan=self.nan)
        assert isinstance(volume, Volume)
        return volume

    def keep(self, index: int, volume: Volume) -> None:
        """Keep a volume that was read, in place of those that were not shown for longest."""
        self._kept[index] = volume
        self._kept.move_to_end(index)
        while (
            len(self._kept) > 1 and sum(v.voxels.nbytes for v in self._kept.values()) > MOST_BYTES
        ):
            self._kept.popitem(last=False)

    def kept(self, index: int) -> Volume | None:
        found = self._kept.get(index)
        if found is not None:
            self._kept.move_to_end(index)
        return found


def read_file(
    path: Path, number: int | None = None, nan: float | None = None
) -> tuple[Image | Volume, VolumeSeries | None]:
    """Read a picture, or a volume: `number`, from 1, or the first of a file of several alike.

    An OME-Zarr, and a TIFF picture that is too large, are read at the finest resolution that fits
    into memory. Raises as `read_image`, `read_volume` and `read_at`.
    """
    from kernelscope.big.lazy.viewing import read_at, resolution_of
    from kernelscope.files.volumes.zarr_source import ZARR, is_zarr

    if path.name in ZARR:  # chosen in a dialog for files
        path = path.parent
    resolution = None
    try:
        if is_zarr(path) and not (found := resolution_of(path)).is_full:
            resolution = found
            return read_at(path, resolution, number, nan=nan), None
        if is_volume(path):
            return read_volume(path, number, nan=nan), None
        return _read_picture(path, nan), None
    except SeveralVolumes as error:
        if not error.alike:
            raise
        count, names = len(error.names), error.names
        series = VolumeSeries(path, count, nan, error.what, names, resolution)
    first = series.read(0)
    counted = math.prod(axis.count for axis in first.among) == series.count
    return first, replace(series, axes=first.among) if counted else series


def _read_picture(path: Path, nan: float | None) -> Image | Volume:
    try:
        return read_image(path, nan=nan)
    except (TooLarge, OutOfMemory):
        from kernelscope.big.lazy.opening import is_tiff
        from kernelscope.big.lazy.viewing import read_at, resolution_of

        if not is_tiff(path):
            raise
        return read_at(path, resolution_of(path), nan=nan)


@dataclass(frozen=True)
class VolumeDone:
    place: int
    result: Result


@dataclass(eq=False)
class FilteredFile:
    """Volumes of a file that are filtered by the same steps, one after the other."""

    series: VolumeSeries
    steps: tuple[RunSettings, ...]
    levels: Levels | None  # black and white, if they are given
    places: Sequence[int]  # those to filter
    results: dict[int, Result] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        return [place for place in self.places if place not in self.results]

    @property
    def bytes(self) -> int:
        outputs = (each.output for each in self.results.values())
        return sum(
            sizes_of([*outputs, *(each.request.source for each in self.results.values())]).values()
        )

    def is_of(
        self, series: VolumeSeries, steps: Sequence[RunSettings], levels: Levels | None
    ) -> bool:
        return (self.series, self.steps, self.levels) == (series, tuple(steps), levels)

    def scan_of(self, volume: Volume) -> Scan:
        return Scan((relevelled(volume, self.levels),))

    def run(
        self,
        known: Mapping[int, Scan],
        costs: Costs,
        backends: Mapping[str, Backend],
        token: CancelToken,
        report: Callable[[StepProgress | VolumeDone | NotANumber], None],
    ) -> None:
        """Filter the missing volumes, of which `known` need not be read; a job of the worker."""
        first, *then = self.steps
        missing = self.missing
        before: float | None = None  # how long the volume before took
        for done, place in enumerate(missing, 1):
            named = (f"{self.series.what} {done} of {len(missing)}", self.series.name(place))
            step = f"{', '.join(filter(None, named))}: "
            step = step[0].upper() + step[1:]

            begun = time.monotonic()
            rest: Callable[[], str | None] = partial(_left, before, len(missing) - done, begun)

            def progress(
                stage: str,
                fraction: float,
                step: str = step,
                rest: Callable[[], str | None] = rest,
            ) -> None:
                report(StepProgress(step, stage, fraction, rest()))

            token.check()
            progress("read", 0.0)
            try:
                source = known.get(place) or self.scan_of(self.series.read(place))
            except NotANumber as error:  # which the user answers
                report(error)
                return
            request = Request(source, first.step, first.options, then=tuple(then))
            result = execute_all(request, backends, token, progress, costs)
            report(VolumeDone(place, result))
            before = time.monotonic() - begun

    def outputs(self) -> list[Volume]:
        """Return the outputs as those of a file that has no other volumes."""
        volumes = [self.results[place].scan.volumes[0] for place in self.places]
        if not self.is_block:
            return volumes
        return [
            replace(
                each,
                among=tuple(
                    replace(axis, index=axis.index - span.start, count=len(span))
                    for axis, span in zip(each.among, self._spans, strict=True)
                    if len(span) > 1
                ),
            )
            for each in volumes
        ]

    @property
    def is_block(self) -> bool:
        """Whether one file can hold the places: neighbouring times, all with the same channels."""
        return not self._spans or len(self.places) == math.prod(map(len, self._spans))

    @property
    def _spans(self) -> list[range]:
        """The places from the first to the last one on each axis of the file."""
        volumes = [self.results[place].scan.volumes[0] for place in self.places]
        along = zip(*([axis.index for axis in each.among] for each in volumes), strict=True)
        return [range(min(places), max(places) + 1) for places in along]


def _left(each: float | None, count: int, begun: float) -> str | None:
    """Return the time left of a volume and `count` others, if `each` takes so long."""
    if each is None:
        return "" if count else None
    return f", {left(count * each + max(0.0, each - (time.monotonic() - begun)))}"


_ALONE = "Open it alone, then add the others."


@dataclass(frozen=True, eq=False)
class FoundFile:
    path: Path
    volume: Volume | None = None  # None if the file adds none
    problem: str = ""  # the reason for that, as a sentence
    series: VolumeSeries | None = None  # of a file of several, of which `volume` is the first


def read_together(paths: Sequence[Path], nan: float | None = None) -> list[FoundFile]:
    """Read files, each DICOM series once; raises `NotANumber` unless `nan` replaces it."""
    found: list[FoundFile] = []
    series: dict[tuple[Path, str], Path] = {}
    for path in paths:
        try:
            name = series_of(path)
            earlier = series.setdefault((path.parent, name), path) if name else path
            if earlier is not path:
                text = f"It belongs to the same series as {earlier.name}."
                found.append(FoundFile(path, problem=text))
                continue
            volume, several = read_file(path, nan=nan)
            assert isinstance(volume, Volume)
        except NotANumber:
            raise
        except SeveralVolumes as error:  # that have nothing in common
            problem = f"{without_name(error.message, one_line(path.name))} {_ALONE}"
            found.append(FoundFile(path, problem=problem))
        except AppError as error:
            found.append(FoundFile(path, problem=without_name(str(error), one_line(path.name))))
        else:
            copies = (each.path for each in found if each.volume and _equal(each.volume, volume))
            copy = next(copies, None)
            problem = f"It holds the same voxels as {copy.name}." if copy is not None else ""
            found.append(FoundFile(path, None if problem else volume, problem, several))
    return found


def misfit(first: Volume, other: Volume) -> str:
    try:
        check_aligned((first, other))
    except AppError as error:
        return error.message
    return ""


def _equal(first: Volume, second: Volume) -> bool:
    return first.spacing == second.spacing and np.array_equal(first.voxels, second.voxels)
