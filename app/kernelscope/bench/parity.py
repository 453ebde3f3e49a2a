"""Whether all levels of a filter give the same result, and where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import AppError
from kernelscope.bench.cases import label_of
from kernelscope.bench.plan import DEVICES
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.images.source import Source
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Pixels


@dataclass(frozen=True, eq=False)
class Parity:
    """Whether the levels of a filter agree, and the largest difference.

    `map` (shape (height, width) or (depth, height, width)): the largest difference between any two
    results at each pixel or voxel, of any channel, in the type of the samples.
    """

    label: str  # the filter and the parameters that were chosen
    source: str  # the filtered source, in words
    levels: tuple[str, ...]  # the levels that were compared, like ``CPU serial``; at least one
    reasons: Mapping[str, str]  # why other levels were not compared, by level
    largest: float
    """The largest difference between any two results, in levels or in the unit of floats."""
    pair: tuple[str, str]  # two levels that differ by that; the first gives less
    place: tuple[int, ...]  # where: (row, column, channel), or (slice, row, column, component)
    share: float  # share of the samples, 0 to 1, that are not the same in all results
    map: Pixels
    remarks: tuple[str, ...] = ()
    """Notices that only some of the runs gave, such as the kernel that was used."""

    def describe(self) -> str:
        if len(self.levels) == 1:
            return f"{self.label}: only {self.levels[0]} ran, so there is nothing to compare."
        if not self.largest:
            return f"{self.label}: {len(self.levels)} levels give the same result."
        less, more = self.pair
        return (
            f"{self.label}: {100 * self.share:.2f} % of the samples differ between "
            f"{len(self.levels)} levels, by up to {self.largest:g} "
            f"({less} and {more} at {self.place})."
        )


def verify(
    source: Source,
    filter_id: str,
    parameters: Mapping[str, Any],
    backends: Mapping[str, Backend],
    token: CancelToken,
    announce: Callable[[str, float], None] = lambda text, fraction: None,
    *,
    border: Border = Border.REFLECT,
    devices: Sequence[str] = DEVICES,
) -> Parity:
    """Run every level of a filter on the available `devices`, and compare the results.

    `announce` is called with the current level and the fraction of all levels that is done, 0 to 1.
    """
    plan = list(_levels(source, filter_id, parameters, border, backends, devices))
    envelope: _Envelope | None = None
    levels: list[str] = []
    notices: list[tuple[str, ...]] = []
    reasons: dict[str, str] = {}
    for number, (name, request) in enumerate(plan):

        def progress(stage: str, fraction: float, number: int = number, name: str = name) -> None:
            announce(name, (number + fraction * (stage != "compile")) / len(plan))

        progress("compile", 0.0)
        try:
            result = execute(request, backends, token, progress)
        except AppError as error:
            reasons[name] = error.message
            continue
        if envelope is None:
            envelope = _Envelope(result.output.planes)
        else:
            envelope.add(result.output.planes, len(levels))
        levels.append(name)
        notices.append(result.notices)
    if envelope is None:
        raise AppError(f"No level could run: {'; '.join(dict.fromkeys(reasons.values()))}")
    spread = envelope.spread()
    place = tuple(map(int, np.unravel_index(int(spread.argmax()), spread.shape)))
    return Parity(
        label=label_of(plan[0][1].step.filter, parameters),
        source=source.describe(),
        levels=tuple(levels),
        reasons=reasons,
        largest=float(spread[place]),
        pair=(levels[envelope.lowest[place]], levels[envelope.highest[place]]),
        place=place,
        share=np.count_nonzero(spread) / spread.size,
        map=spread.max(axis=-1),
        remarks=_remarks(levels, notices),
    )


def _remarks(levels: Sequence[str], notices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        f"{level}: {notice}"
        for level, own in zip(levels, notices, strict=True)
        for notice in own
        if not all(notice in others for others in notices)
    )


def _levels(
    source: Source,
    filter_id: str,
    parameters: Mapping[str, Any],
    border: Border,
    backends: Mapping[str, Backend],
    devices: Sequence[str],
) -> Iterator[tuple[str, Request]]:
    step = Step.of_numbers(filter_id, parameters, border=border)
    for device in map(Device, devices):
        backend = backends.get(device)
        if backend is None or not backend.availability().available:
            continue
        for level in backend.levels(step.filter):
            if level.exact:
                request = Request(source, step, RunOptions(device, level.id))
                yield f"{device.upper()} {level.id}", request


class _Envelope:
    """The smallest and the largest result at each sample, and the levels that gave them."""

    def __init__(self, first: Pixels) -> None:
        self.low, self.high = first.copy(), first.copy()
        self.lowest: NDArray[np.uint8] = np.zeros(first.shape, np.uint8)
        self.highest = self.lowest.copy()

    def add(self, result: Pixels, number: int) -> None:
        """Update the extremes with another result of the same shape and type."""
        below, above = result < self.low, result > self.high
        self.low[below], self.lowest[below] = result[below], number
        self.high[above], self.highest[above] = result[above], number

    def spread(self) -> Pixels:
        return np.asarray(self.high - self.low)
