"""Files larger than memory: opened and created by their kind, and filtered into each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path

from kernelscope.base import memory
from kernelscope.base.errors import ImageWriteError, OutOfMemory
from kernelscope.big.lazy import tiff_sink, zarr_sink
from kernelscope.big.lazy.blocks import plan
from kernelscope.big.lazy.filtered import Filtered, filtered
from kernelscope.big.lazy.opening import open_source
from kernelscope.big.lazy.remote import Workers, describe
from kernelscope.big.lazy.streaming import Streamed, stream
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import DEFAULT_OPTIONS, Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request, naming
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute, usable
from kernelscope.files.lazy import Head, LazySource, Sides
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES, TIME_STEP
from kernelscope.files.write_errors import resolved
from kernelscope.images.levels import own_levels
from kernelscope.images.record import Record
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import UNIT, Kind, Levels

_SURVEY_RESERVE = 256 << 20
"""Bytes that the compiler takes, which is not loaded yet when the source is surveyed."""

_SLACK = 32 << 20  # bytes for which the allocator may hold memory that it does not use


@dataclass(frozen=True)
class Filed:
    kind: Kind
    shape: Sides  # that of the result: (height, width, channels), or (depth, height, width)
    steps: tuple[str, ...]  # each step in words
    record: Record
    """The properties of the source that its result kept, has in another form, or lost."""
    streamed: Streamed

    @property
    def notices(self) -> list[str]:
        return self.record.notices


def check_places(source: Path, target: Path) -> None:
    """Refuse a target of another format, or that is the source."""
    if not target.name.lower().endswith(tiff_sink.SUFFIXES + zarr_sink.SUFFIXES):
        raise ImageWriteError(
            f"{target.name}: only TIFF files and OME-Zarr folders are written in blocks.",
            "Use a name that ends in .tif or .ome.zarr.",
        )
    try:
        same = resolved(target) == source.resolve() or source.samefile(target)
    except OSError:  # one of them does not exist
        same = False
    if same:
        raise ImageWriteError(
            f"{target.name} is the input, which is read while the output is written.",
            "Choose another name.",
        )


def sink_for(
    path: Path, result: LazySource, head: Head
) -> AbstractContextManager[tiff_sink.TiffSink | zarr_sink.ZarrSink]:
    """Return a file for a result, which takes its place when the block ends."""
    if path.name.lower().endswith(zarr_sink.SUFFIXES):
        return zarr_sink.zarr_sink(path, result.shape, result.dtype, result.kind, head)
    return tiff_sink.tiff_sink(path, result.shape, result.dtype, result.kind, head)


def filter_file(
    recipe: Recipe,
    source: Path,
    target: Path,
    limit: float,
    backends: Mapping[str, Backend],
    *,
    number: int | None = None,
    options: RunOptions = DEFAULT_OPTIONS,
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
    workers: Workers | None = None,
    levels: Levels | None = None,
) -> Filed:
    """Filter a file in blocks, into another one that appears when it is complete.

    `limit`: bytes of memory that this process may take. `number`: from 1, of the volume in a file
    of several. `workers`: they compute the blocks, and each takes as much memory. `levels`:
    black and white of floats and volumes. On failure an existing target is unchanged.
    """
    token = token or CancelToken()
    costs = costs or Costs()
    check_places(source, target)
    here = options if workers is None else DEFAULT_OPTIONS  # workers may have other devices
    if here.device is not Device.AUTO:
        usable(here.device, backends)

    def compute(request: Request) -> Result:
        token.check()
        return execute(request, backends, token, costs=costs, learn=False)

    def cover(part: LazySource) -> Iterator[Box]:
        token.check()
        boxes = _planned(part, limit, _SURVEY_RESERVE)
        for done, box in enumerate(boxes):
            token.check()
            yield box
            progress("survey", (done + 1) / len(boxes))

    with closing(open_source(source, number)) as opened:
        last: LazySource = opened
        steps = list[Filtered]()
        for place, step in enumerate(recipe.steps, 1):
            several = len(recipe.steps) > 1
            with naming(f"Step {place}, {step.filter.name}: " if several else ""):
                last = filtered(last, step, compute, here, cover, levels)
            steps.append(last)
        _warm_up(last)
        _planned(last, limit, _SLACK)  # refuses too little memory before a file is made
        head = opened.head.moved(opened.shape, last.shape)
        with sink_for(target, last, head) as sink:
            boxes = _planned(last, limit, _SLACK, sink.grain)
            if workers is None:
                report = stream(last, sink, boxes, token, progress)
            else:
                task = describe(source, number, steps, options)
                report = workers.stream(last, sink, boxes, task, target, token, progress)
            sink.finish(token, progress)
            opened.check_unchanged()
        texts = tuple(each.description for each in steps)
        peaks = [each for each in (memory.peak(), report.peak_bytes) if each]
        report = replace(report, peak_bytes=max(peaks, default=None))
        record = _record(head, last, target)
        own = own_levels(opened.kind, opened.dtype) if levels else ""
        notices = [*_levels_notices(steps), *filter(None, [own])]
        record = replace(record, changed=(*record.changed, *notices))
        return Filed(last.kind, last.shape, texts, record, report)


def _levels_notices(steps: Sequence[Filtered]) -> list[str]:
    """Return a line about black and white of each step that knows them, if they are not usual."""
    return [
        f"{each.step.filter.name}: {each.levels.describe()}."
        for each in steps
        if each.step.filter.unit_for(each.step.parameters).knows_white
        and each.levels not in (None, UNIT)
    ]


def _record(head: Head, result: LazySource, target: Path) -> Record:
    """Return the properties of a file that a sink keeps and loses."""
    is_zarr = target.name.lower().endswith(zarr_sink.SUFFIXES)
    channels, channels_stay = head.channels, is_zarr or len(head.channels) == 1
    plural = "s" if len(channels) > 1 else ""
    further = head.ome.described() if head.ome else {}
    has_pyramid = head.ome is not None and head.ome.levels > 1
    facts = (
        ("colour profile", head.profile, not is_zarr),
        ("resolution", head.resolution, True),
        ("the distance of voxels", result.kind is Kind.VOLUME and head.steps, True),
        (f"channel name{plural}", any(each.name for each in channels), channels_stay),
        (f"channel colour{plural}", any(each.colour for each in channels), channels_stay),
        (
            "further OME metadata",
            any(each.facts for each in channels),
            target.name.lower().endswith(OME_SUFFIXES),
        ),
        (TIME_STEP, head.interval, not is_zarr),
        *((name, there, is_zarr) for name, there in further.items()),
        ("lower resolutions", has_pyramid and not is_zarr, False),
        *((other, True, False) for other in head.others),
    )
    changed = list(head.notices)
    if head.ome and has_pyramid and is_zarr:
        count = zarr_sink.level_count(result.kind, result.shape)
        levels = "one level" if count == 1 else f"{count} levels"
        changed.append(f"Its pyramid of {head.ome.levels} levels is made anew, with {levels}.")
    return Record.of(target.name, facts, changed)


def _planned(source: LazySource, limit: float, reserve: int, grain: Sides = (1, 1, 1)) -> list[Box]:
    """Return the blocks for the memory that the program and a reserve leave of the limit."""
    taken = memory.resident()
    try:
        return plan(source, limit - taken - reserve, grain)
    except OutOfMemory as error:
        own = (
            f"Of the {limit / 2**20:.0f} MiB allowed, the program itself needs "
            f"{(taken + reserve) / 2**20:.0f} MiB."
        )
        raise OutOfMemory(f"{error.message} {own}", error.hint) from None


def _warm_up(result: LazySource) -> None:
    """Compute a sample, so that the compiler's memory is taken before blocks are planned."""
    z, y, x = (side // 2 for side in result.shape)
    if result.kind is Kind.PICTURE:
        result.read(Box((z, y, 0), (1, 1, result.shape[2])))
    else:
        result.read(Box((z, y, x), (1, 1, 1)))
