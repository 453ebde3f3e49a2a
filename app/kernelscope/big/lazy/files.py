"""Files larger than memory: opened and created by their kind, and filtered into each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from kernelscope.base import memory
from kernelscope.base.errors import ImageWriteError, OutOfMemory, SeveralVolumes, naming
from kernelscope.big.lazy import tiff_sink
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
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute, usable
from kernelscope.files.lazy import Head, LazySource, Sides
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES, TIME_STEP
from kernelscope.files.volumes import zarr_sink
from kernelscope.files.write_errors import resolved
from kernelscope.images.levels import own_levels
from kernelscope.images.record import Record
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import UNIT, Kind, Levels

_SURVEY_RESERVE = 256 << 20
"""Bytes that the compiler takes, which is not loaded yet when the source is surveyed."""

_OWN_LEVELS = "Black and white are those of each volume."

_SLACK = 32 << 20  # bytes for which the allocator may hold memory that it does not use


@dataclass(frozen=True)
class Filed:
    kind: Kind
    shape: Sides  # that of the result: (height, width, channels), or (depth, height, width)
    steps: tuple[str, ...]  # each step in words
    record: Record
    """The properties of the source that its result kept, has in another form, or lost."""
    streamed: Streamed
    volumes: int = 1  # of one shape each

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
    of several; by default all channels and times go into one file, each with its own estimates.
    `workers`: they compute the blocks, and each takes as much memory. `levels`:
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

    def cover(advance: Progress, part: LazySource) -> Iterator[Box]:
        token.check()
        boxes = _planned(part, limit, _SURVEY_RESERVE)
        for done, box in enumerate(boxes):
            token.check()
            yield box
            advance("survey", (done + 1) / len(boxes))

    numbers, joint = _chosen(source, number)
    reports, texts, ends = list[Streamed](), list[list[str]](), list[list[str]]()
    with ExitStack() as files:
        first = files.enter_context(closing(open_source(source, numbers[0])))
        sink: tiff_sink.TiffSink | zarr_sink.ZarrSink | None = None
        head = joint or replace(first.head, among=())
        for place, each in enumerate(numbers):

            def advance(stage: str, fraction: float, done: int = place) -> None:
                progress(stage, (done + fraction) / len(numbers))

            again = closing(open_source(source, each)) if place else nullcontext(first)
            with again as opened:
                last: LazySource = opened
                steps = list[Filtered]()
                for count, step in enumerate(recipe.steps, 1):
                    several = len(recipe.steps) > 1
                    with naming(f"Step {count}, {step.filter.name}: " if several else ""):
                        last = filtered(last, step, compute, here, partial(cover, advance), levels)
                    steps.append(last)
                if sink is None:
                    _warm_up(last)
                    _planned(last, limit, _SLACK)  # refuses too little memory before a file is made
                    head = head.moved(opened.shape, last.shape)
                    sink = files.enter_context(sink_for(target, last, head))
                boxes = _planned(last, limit, _SLACK, sink.grain)
                written = sink.part(place) if joint else sink
                if workers is None:
                    report = stream(last, written, boxes, token, advance)
                else:
                    task = describe(source, each, steps, options)
                    report = workers.stream(last, written, boxes, task, target, token, advance)
                opened.check_unchanged()
                reports.append(report)
                texts.append([each.description for each in steps])
                ends.append(_levels_notices(steps))
        assert sink is not None
        sink.finish(token, progress)
        first.check_unchanged()
        record = _record(head, last, target)
        notices = ends[0] if ends.count(ends[0]) == len(ends) else [_OWN_LEVELS]
        notices += filter(None, [own_levels(first.kind, first.dtype) if levels else ""])
    record = replace(record, changed=(*record.changed, *notices))
    words = tuple(map(_in_words, zip(*texts, strict=True)))
    return Filed(last.kind, last.shape, words, record, _sum(reports), len(numbers))


def _chosen(source: Path, number: int | None) -> tuple[Sequence[int | None], Head | None]:
    """Return the volumes of a file to filter, and the head of all, if there are several.

    Raises as `open_source`, also for several volumes that are no channels or times.
    """
    try:
        open_source(source, number).close()
        return [number], None
    except SeveralVolumes as error:
        first = _head(source, 1)
        axes = list(first.among)
        counts = [axis.count for axis in axes]
        known = {axis.letter for axis in axes} <= {"C", "T"}
        if not error.alike or not known or math.prod(counts) != len(error.names):
            raise
    numbers = np.arange(1, math.prod(counts) + 1).reshape(counts)
    if [axis.letter for axis in axes] == ["C", "T"]:  # files have times outside
        numbers, axes = numbers.T, axes[::-1]
    of_one_time = numbers.reshape(-1, axes[-1].count)[0] if axes[-1].letter == "C" else [1]
    order = numbers.ravel().tolist()
    last = _head(source, order[-1])  # notices about one of the volumes are not those of another
    heads = [first, *(_head(source, int(each)) for each in of_one_time[1:])]
    ome = first.ome
    if ome is not None and ome.omero:
        each = [head.ome.omero.get("channels", ()) for head in heads if head.ome]
        ome = replace(ome, omero={**ome.omero, "channels": list(itertools.chain(*each))})
    joint = replace(
        first,
        channels=tuple(head.channel for head in heads),
        among=tuple(axes),
        ome=ome,
        notices=tuple(text for text in first.notices if text in last.notices),
    )
    return order, joint


def _head(source: Path, number: int) -> Head:
    with closing(open_source(source, number)) as opened:
        return opened.head


def _in_words(texts: tuple[str, ...]) -> str:
    """Return the step of all volumes in words; numbers may be estimated for each."""
    others = len(set(texts)) > 1
    return f"{texts[0]} (other volumes: as estimated for each)" if others else texts[0]


def _sum(reports: Sequence[Streamed]) -> Streamed:
    peaks = [peak for peak in (memory.peak(), *(each.peak_bytes for each in reports)) if peak]
    return Streamed(
        sum(each.blocks for each in reports),
        sum(each.samples for each in reports),
        sum(each.seconds for each in reports),
        max(peaks, default=None),
    )


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
    channels = head.channels
    channels_stay = is_zarr or len(channels) == 1 or bool(head.among)
    has_times = any(axis.letter == "T" for axis in head.among)
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
        (TIME_STEP, head.interval, not is_zarr or has_times),
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
