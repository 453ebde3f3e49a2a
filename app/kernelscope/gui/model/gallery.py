"""The gallery: every run with its picture, settings, times and quality, in bounded memory.

Arrays are counted once, however many runs refer to them: runs share their input, and a run whose
output equals that of an earlier run of the same work shares it. When the limit is exceeded, the
oldest pictures are dropped, then those with a star, last those that took long and are not saved;
settings, times and thumbnails stay::

    add(result)  ->  examine(run), on any thread  ->  keep(run, examined)  ->  dropped runs
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.engine.result import Judgement, Result
from kernelscope.gui.model.comparison import judge_both
from kernelscope.gui.model.display import Display, first_of, table
from kernelscope.gui.model.runs import Run, Runs
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source, sizes_of
from kernelscope.images.volume import Volume

MOST_BYTES = 1 << 30  # limit for pictures, if a quarter of the free memory is not less

LONG_SECONDS = 10.0
"""A run that takes longer is not lost by one key: neither one under way nor an unsaved output."""

THUMBNAIL_SIDE = 192  # longer side of a thumbnail in pixels: sharp at 200 % on a tile of 96


@dataclass(frozen=True)
class Examined:
    thumbnail: NDArray[np.uint8]
    twin: Run | None  # an earlier run of the same work whose output has the same bytes


class Gallery(Runs):
    """The runs of a window, newest first; pictures take `limit` bytes, or a quarter of the free."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        free = memory.available() / 4
        self.limit = limit if limit is not None else int(min(MOST_BYTES, free))
        self.saved: WeakSet[Any] = WeakSet()
        """The inputs of which an output was saved."""

    def examine(self, run: Run) -> Examined:
        """Return the thumbnail and the twin of a run; takes a while, so call it on any thread."""
        result = run.result
        assert result is not None
        twin = next((other for other in list(self) if _is_twin(other, run)), None)
        return Examined(thumbnail(result.output), twin)

    def keep(self, run: Run, examined: Examined) -> list[Run]:
        """Store the answer of `examine`; return the runs whose pictures were dropped for it."""
        if run not in self:
            return []  # it was deleted meanwhile
        run.thumbnail = examined.thumbnail
        twin = examined.twin.result if examined.twin is not None else None
        if twin is not None and run.result is not None:
            run.result = replace(run.result, output=twin.output)
        return self._drop()

    def of(self, picture: str) -> list[Run]:
        return [run for run in self if run.picture == picture]

    def find(self, result: Result) -> Run | None:
        request = result.request
        return next((run for run in self if run.result and run.result.request is request), None)

    def unsaved(self, of_no_file: Container[Hashable] = ()) -> list[Run]:
        """Return the newest run that took long of each input of which no output was saved.

        Volumes of a file count together that went through the same filter. Work that another run
        did quickly is computed again as quickly, but not on an input that will be gone.

        - `of_no_file`: fingerprints of inputs that no file has, of which any run counts.
        """
        quickest: dict[Hashable, float] = {}
        for run in self:
            if run.seconds is not None:
                quickest[run.work] = min(run.seconds, quickest.get(run.work, math.inf))
        saved = {source.fingerprint for source in self.saved}
        lost = [
            (run, run.result.request.source.fingerprint, _file_of(run.result.request.source))
            for run in self
            if run.result and run.result.request.source.fingerprint not in saved
        ]
        found: dict[Hashable, Run] = {}
        for run, volume, file in lost:
            seconds = {
                other: quickest.get(each.work, 0.0)
                for each, other, its_file in reversed(lost)
                if file and its_file == file and each.filter_name == run.filter_name
            }
            seconds[volume] = quickest.get(run.work, 0.0)
            if volume in of_no_file or sum(seconds.values()) >= LONG_SECONDS:
                found.setdefault(volume, run)
        return list(found.values())

    def to_judge(self, source: Source, reference: Image | Volume) -> list[Run]:
        """Return the runs on `source` to compare; those without pictures lose old figures."""
        runs = [run for run in self if run.source() is source]
        others = [run for run in runs if run.reference is not reference]
        for run in others:
            if run.result is None:
                run.judgement = run.reference = None
        return [run for run in others if run.result is not None]

    def distinguishing(self, run: Run) -> tuple[str, ...]:
        """Return the texts that distinguish a run: its volume among those of a file, and settings.

        Settings that differ among the runs of the filter; where none does, those that have not
        their default. The level comes behind them if the same work was done at several.
        """
        alike = [
            other
            for other in self
            if other.run_settings.step.filter is run.run_settings.step.filter
        ]
        texts = [{chip.name: chip.text for chip in other.chips} for other in alike]
        names = {name for each in texts for name in each}
        varying = {name for name in names if len({each.get(name) for each in texts}) > 1}
        chosen = (chip for chip in run.chips if chip.name in varying or not (varying or chip.usual))
        level = (run.level_name,) if self.has_others(run) else ()
        of_file = {other.member for other in self.of(run.picture)}
        member = (run.member,) if len(of_file) > 1 else ()
        return (*member, *(chip.text for chip in chosen), *level)

    @property
    def bytes(self) -> int:
        return _bytes(self)

    def _drop(self) -> list[Run]:
        """Drop the oldest pictures until the rest fits; that of the newest run is kept."""
        newest, *others = [run for run in self if run.result is not None]
        unsaved = self.unsaved()
        dropped: list[Run] = []
        while others and _bytes([newest, *others]) > self.limit:
            oldest = min(others, key=lambda run: (run in unsaved, run.starred, run.number))
            others.remove(oldest)
            dropped.append(oldest)
        for run in dropped:
            run.result = None
        return dropped


def judge_run(result: Result, part: Image | Volume, reference: Image | Volume) -> Judgement | None:
    """Compare a run on `part` with its reference, if they are comparable; takes a while."""
    if not result.request.step.filter.restores:
        return None
    judged = judge_both(part, result, reference)
    return Judgement(judged.before, judged.after) if judged.after is not None else None


def thumbnail(source: Source, side: int = THUMBNAIL_SIDE) -> NDArray[np.uint8]:
    """Return a small picture, of volumes the middle slice, in the display that it opens with."""
    if isinstance(source, Scan):
        display, voxels = first_of(source.volumes[0]), source.volumes[0].voxels
        planes = voxels[len(voxels) // 2, :, :, np.newaxis]
    else:
        display, planes = Display.automatic(source.planes), colours(source.planes)
    step = max(1, max(planes.shape[:2]) // (4 * side))
    planes = planes[::step, ::step]  # four samples in each direction are enough for a mean
    factor = math.ceil(max(planes.shape[:2]) / side)
    y, x = (min(factor, length) for length in planes.shape[:2])
    height, width = planes.shape[0] // y, planes.shape[1] // x
    blocks = planes[: height * y, : width * x].reshape(height, y, width, x, -1)
    steps = display.steps(blocks.astype(np.float32).mean(axis=(1, 3)))
    return steps if steps.shape[2] == 3 else table(display.colour_map)[steps[:, :, 0]]


def _bytes(runs: Iterable[Run]) -> int:
    results = [run.result for run in runs if run.result is not None]
    sources = [each for result in results for each in (result.request.source, result.output)]
    return sum(sizes_of(sources).values())


def _file_of(source: Source) -> Path | None:
    """Return the file that a volume is of; None for other sources."""
    return source.volumes[0].path if isinstance(source, Scan) else None


def _is_twin(other: Run, run: Run) -> bool:
    """Return whether an earlier run has an output with the same bytes."""
    kept, result = other.result, run.result
    if other.number >= run.number or other.work != run.work or kept is None or result is None:
        return False
    first, second = kept.output.arrays(), result.output.arrays()
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in pairs)
