"""The levels of a filter by their counted traffic, and the time that a card needs for it at least.

A `CountedRung` holds the counts of a level, or the reason why it was not counted. `MemoryLadder`
adds a card: predictions, times of the same work on that card, recorded or of this session, and the
table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kernelscope.base.durations import duration
from kernelscope.bench.recorded import RecordedTime
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.levels import TUNED, Level
from kernelscope.traffic.gpus import Gpu
from kernelscope.traffic.totals import Key, Totals, figures, launch_totals, totals_of
from kernelscope.traffic.trace import SECTOR, Counts, Event, MemorySpace

# Lower bounds of a kernel's time on a card, from its counted traffic -------------------
#
# The traffic of a launch with a part of a card, divided by the part's rate, is a time below which
# the launch cannot come: the roofline of Williams, Waterman and Patterson (2009), with a roof for
# each memory. The largest bound is the prediction. ``resources/docs/gpu-levels.md`` describes the
# parts.

FAR = 1.5  # times the prediction from which on a measurement calls for an explanation


class Limiter(StrEnum):
    MEMORY = "device memory"
    CACHE = "L2 cache"
    LOADS = "loads and stores"
    TEXTURE = "texture units"
    ARITHMETIC = "arithmetic"


@dataclass(frozen=True)
class Prediction:
    seconds: float  # the largest bound of each launch, added up
    limit: Limiter  # the part behind most of it
    bounds: dict[Limiter, float]
    """Seconds that each part needs alone; those without a published rate are missing."""

    def is_far(self, measured: float) -> bool:
        """Return whether a time in seconds differs by more than `FAR` times."""
        return not self.seconds / FAR <= measured <= self.seconds * FAR


def predict(launches: Sequence[Counts], card: Gpu) -> Prediction:
    total, limits = 0.0, dict.fromkeys(Limiter, 0.0)
    bounds: dict[Limiter, float] = {}
    for each in launches:
        found = bounds_of(each, card)
        limit = max(found, key=lambda part: found[part])
        total += found[limit]
        limits[limit] += found[limit]
        for part, seconds in found.items():
            bounds[part] = bounds.get(part, 0.0) + seconds
    return Prediction(total, max(limits, key=lambda part: limits[part]), bounds)


def bounds_of(counts: Counts, card: Gpu) -> dict[Limiter, float]:
    """Return the seconds that each part of a card needs for a launch."""
    totals = launch_totals(counts)
    operations = counts.scene.operations * float(np.prod(counts.scene.output_shape))
    # Multiprocessors without a block do nothing.
    share = min(counts.scene.blocks / card.multiprocessors, 1.0)
    found = {
        Limiter.MEMORY: _memory_sectors(totals, card) * SECTOR / card.bandwidth,
        Limiter.LOADS: _load_clocks(totals, card) / (card.multiprocessors * share * card.clock),
    }
    if counts.scene.level != TUNED.id:  # there instructions may do more: tensor cores, packed bytes
        found[Limiter.ARITHMETIC] = operations / (2 * card.cores * share * card.clock)
    if card.cache_clock is not None:
        sectors = sum(each.block_sectors for each in totals.values())
        found[Limiter.CACHE] = sectors * SECTOR / (card.cache_clock * card.clock)
    fetches = totals.get((MemorySpace.TEXTURE, Event.READ))
    if fetches is not None and card.texels is not None:
        found[Limiter.TEXTURE] = fetches.accesses / (card.texels * share)
    return found


def _memory_sectors(totals: dict[Key, Totals], card: Gpu) -> float:
    """Return the sectors that go to device memory at least."""
    sectors = 0.0
    for (space, _), each in totals.items():
        if card.is_cached or space is MemorySpace.TEXTURE:
            sectors += each.footprint
        elif space is MemorySpace.GLOBAL:  # half a warp asks for one segment at least
            sectors += max(each.sectors, 2 * each.requests)
    return sectors


def _load_clocks(totals: dict[Key, Totals], card: Gpu) -> float:
    """Return the clocks of multiprocessors that loads and stores take, on all of them."""
    clocks = 0.0
    for (space, _), each in totals.items():
        if space is MemorySpace.GLOBAL:
            clocks += each.requests * card.load_clocks
        elif space is MemorySpace.SHARED:
            clocks += each.wavefronts * card.shared_clocks
    return clocks


SMALL = 64  # side of a picture whose accesses can be counted for every filter
SIDES = (SMALL, 512, 1024, 4096)  # of square pictures that are offered next to the open one

SHORT = 20e-6
"""Seconds below which starting a launch, 2 to 4 µs on an H100, is a good part of its time."""


class CountedRung(NamedTuple):
    level: Level
    counts: Sequence[Counts] = ()  # of each launch; empty if it was not counted
    refusal: str = ""  # why it was not

    @property
    def loads(self) -> tuple[tuple[MemorySpace, float], ...]:
        """The loads of threads for a pixel of the output, by memory; those without are missing."""
        if not self.counts:
            return ()
        totals = totals_of(self.counts)
        pixels = self.counts[-1].scene.pixels
        return tuple(
            (space, totals[space, Event.READ].accesses / pixels)
            for space in (
                MemorySpace.GLOBAL,
                MemorySpace.TEXTURE,
                MemorySpace.SHARED,
                MemorySpace.CONSTANT,
            )
            if (space, Event.READ) in totals
        )


@dataclass(frozen=True)
class TimedRung:
    rung: CountedRung
    prediction: Prediction | None
    figure: RecordedTime | None  # the recorded time of the same work on this card
    measured: float | None = None
    """Seconds of the same work in this session, on the card of this computer."""

    @property
    def seconds(self) -> float | None:
        if self.measured is not None or self.figure is None:
            return self.measured
        return self.figure.seconds

    @property
    def origin(self) -> str:
        """Where the time comes from: ``recorded 22 Nov 2026``."""
        if self.measured is not None or self.figure is None:
            return "measured"
        return f"recorded {self.figure.date}"

    @property
    def ratio(self) -> float | None:
        """The measured or recorded time over the predicted one; None without one of them."""
        if self.prediction is None or self.seconds is None:
            return None
        return self.seconds / self.prediction.seconds

    @property
    def is_far(self) -> bool:
        """Whether prediction and measured time differ by more than a factor of 1.5."""
        return self.ratio is not None and not 1 / FAR <= self.ratio <= FAR

    @property
    def is_scaled(self) -> bool:
        """Whether blocks were left out that are like others, whose counts stand for them."""
        return any(each.counted < each.scene.blocks for each in self.rung.counts)

    @property
    def blocks(self) -> tuple[int, int]:
        counts = self.rung.counts
        return sum(each.counted for each in counts), sum(each.scene.blocks for each in counts)

    @cached_property
    def loads(self) -> tuple[tuple[MemorySpace, float], ...]:
        return self.rung.loads

    def brief(self) -> str:
        """Return the times behind a bar: ``≥ 39 µs loads and stores  ▼ 65 µs, 1.7×``."""
        if self.prediction is None:
            return self.rung.refusal
        text = f"≥ {duration(self.prediction.seconds)} {self.prediction.limit}"
        if self.seconds is not None and self.ratio is not None:
            text += f"  ▼ {duration(self.seconds)}, {_factor(self.ratio)}×"
        return text

    def text(self) -> str:
        if self.prediction is None:
            return self.rung.refusal
        text = f"at least {duration(self.prediction.seconds)}, {self.prediction.limit}"
        if self.seconds is not None and self.ratio is not None:
            verb = self.origin.partition(" ")[0]
            text += f"; {verb} {duration(self.seconds)}, {_factor(self.ratio)} times that"
        return text

    def reason(self, card: Gpu) -> str:
        """Return why the measured time is so far off, where that is known; else empty."""
        if not self.is_far or self.seconds is None or self.prediction is None:
            return ""
        if self.seconds < self.prediction.seconds:
            limit = self.prediction.limit
            if limit in (Limiter.MEMORY, Limiter.CACHE):
                return "faster than the least time; pictures that fit into a cache stay there."
            return f"faster than the least time, whose estimate of {limit} is too high."
        if self.seconds < SHORT:
            return "launch overhead dominates such a short kernel."
        if max(each.scene.blocks for each in self.rung.counts) <= card.multiprocessors:
            return "a multiprocessor has one block at most, and waits for its loads."
        if self.prediction.limit is Limiter.MEMORY:
            return "data may move more than once, or too few loads be under way at a time."
        return "the least time leaves out instructions for addresses, borders and comparisons."


def _factor(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


class MemoryLadder:
    """The levels on a card.

    `recorded`: recorded times of the same work on the card, by the id of the level. `measured`:
    seconds of the same work by the id of the level, on the card of this computer.
    """

    def __init__(
        self,
        rungs: Sequence[CountedRung],
        card: Gpu,
        recorded: Mapping[str, RecordedTime] | None = None,
        measured: Mapping[str, float] | None = None,
    ) -> None:
        self.card = card
        self.steps = tuple(self._step(each, recorded or {}, measured or {}) for each in rungs)

    def _step(
        self, rung: CountedRung, recorded: Mapping[str, RecordedTime], measured: Mapping[str, float]
    ) -> TimedRung:
        prediction = predict(rung.counts, self.card) if rung.counts else None
        if self.card.is_here:
            return TimedRung(rung, prediction, None, measured.get(rung.level.id))
        return TimedRung(rung, prediction, recorded.get(rung.level.id))

    @cached_property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Rows of texts for a screen; a first cell of each is a title, the only one of a heading.

        The first row has the levels. Times follow, then the traffic for each pixel.
        """
        counted = [each for each in self.steps if each.prediction is not None]
        if not counted:
            return ()
        predictions = [each.prediction for each in counted if each.prediction is not None]
        rows = [("", *(each.rung.level.name for each in counted))]
        rows.append((f"TIME ON {self.card.name}",))
        rows.append((LEAST, *(duration(each.seconds) for each in predictions)))
        for part in Limiter:
            bounds = [each.bounds.get(part) for each in predictions]
            if any(bound is not None for bound in bounds):
                rows.append((f"    {part}", *map(_time, bounds)))
        if any(each.seconds is not None for each in counted):
            verb = "measured" if self.card.is_here else "recorded"
            rows.append((verb, *(_time(each.seconds) for each in counted)))
            if not self.card.is_here:
                dates = (each.figure.date if each.figure else NONE for each in counted)
                rows.append(("    on", *dates))
            rows.append((f"{verb} / least", *(_ratio(each) for each in counted)))
        rows.append(("TRAFFIC OF A PIXEL OF THE OUTPUT",))
        found = {each.rung.level.name: each.rung.counts for each in counted}
        rows += [(each.title, *each.texts()) for each in figures(found)]
        rows.append(("blocks counted", *(_blocks(each) for each in counted)))
        return tuple(rows)

    def csv(self, request: Request, delimiter: str = ",") -> str:
        """Return a line for each level with numbers alone; `request` is the work that was counted.

        The head has the unit of each number, and whether it was counted, is a bound or a time.
        """
        *slices, height, width, channels = request.source.shape
        about = {
            "filter": request.step.filter.name,
            "settings": "; ".join(chip.text for chip in request.chips()),
            "width (px)": width,
            "height (px)": height,
            **({"slices": slices[0]} if slices else {}),
            "channels": channels,
            "card": self.card.name,
        }
        found = {each.rung.level.id: each.rung.counts for each in self.steps if each.rung.counts}
        counted: dict[str, dict[str, float | None]] = {level_id: {} for level_id in found}
        for row in figures(found):
            head = f"counted: {row.title}" + (f" ({row.unit})" if row.unit else "")
            for numbers, value in zip(counted.values(), row.values, strict=True):
                numbers[head] = value
        verb = "measured" if self.card.is_here else "recorded"
        lines: list[dict[str, object]] = []
        for step in self.steps:
            bound, level = step.prediction, step.rung.level
            line: dict[str, object] = about | {"level": level.name}
            line["bound: least time (s)"] = bound and bound.seconds
            line["bound: set by"] = bound and bound.limit
            for part in Limiter:
                line[f"bound: {part} (s)"] = bound and bound.bounds.get(part)
            line[f"{verb}: time (s)"] = step.seconds
            line[f"{verb}: day"] = step.figure and step.figure.date
            line[f"{verb}: time / least time"] = step.ratio
            line |= counted.get(level.id, dict.fromkeys(next(iter(counted.values()), {})))
            line["counted: blocks"], line["blocks of the launches"] = step.blocks
            line["not counted because"] = step.rung.refusal
            lines.append(line)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(lines[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return text.getvalue()

    def remark(self) -> str:
        """Return the levels whose counts are scaled, as a sentence; empty if none are."""
        names = [each.rung.level.name for each in self.steps if each.is_scaled]
        if not names:
            return ""
        return (
            f"Scaled from blocks at the rim and one inside, not all were run: {', '.join(names)}."
        )

    def reasons(self) -> tuple[str, ...]:
        found: dict[str, list[str]] = {}
        for each in self.steps:
            if each.is_far and each.ratio is not None:
                found.setdefault(each.reason(self.card), []).append(
                    f"{each.rung.level.name} {_factor(each.ratio)} times"
                )
        return tuple(f"{', '.join(levels)}: {reason}" for reason, levels in found.items())


NONE, LEAST = "–", "least"


def _time(seconds: float | None) -> str:
    return NONE if seconds is None else duration(seconds)


def _blocks(step: TimedRung) -> str:
    run, blocks = step.blocks
    return f"{run:,} of {blocks:,}" if step.is_scaled else f"all {blocks:,}"


def _ratio(step: TimedRung) -> str:
    if step.ratio is None:
        return NONE
    return f"{step.ratio:.2f}{' !' if step.is_far else ''}"


def with_side(request: Request, side: int | None) -> Request:
    """Return the same work on a square picture that repeats the open one; None keeps it."""
    source = request.source
    if side is None or not isinstance(source, Image):
        return request
    height, width = source.pixels.shape[:2]
    repeats = (-(-side // height), -(-side // width)) + (1,) * (source.pixels.ndim - 2)
    pixels = np.tile(source.pixels, repeats)[:side, :side]
    picture = Image.from_array(np.ascontiguousarray(pixels), f"{source.title}, repeated")
    return Request(picture, replace(request.step.fixed, within=None), request.options)
