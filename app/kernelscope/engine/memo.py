"""The memo of steps that are done, so that none is computed twice.

`Memo.done` returns those at the beginning of a request, which `kernelscope.engine.steps` then
leaves out. A request has them as a tuple: the memo belongs to one thread, the run to another.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.request import Request, RunSettings, settings_of
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.step import Step
from kernelscope.engine.steps import joined
from kernelscope.images.source import Source, sizes_of

MOST_BYTES = 1 << 29
"""Limit for the outputs of steps in memory; those that were looked at least are dropped."""

_MOST_OF_SOURCE = 3
"""Results on one input: while a slider moves, those it leaves behind are dropped at once."""


MOST_RESULTS = 100  # results of all inputs: those of small pictures never reach the limit of bytes


@dataclass(eq=False)
class Facts:
    """The time, the thumbnail and the quality of the output of a step."""

    cost_key: str
    where: str
    seconds: float | None  # None if it was emulated
    measured: bool
    """The time is that of a measured run, see `kernelscope.engine.measuring`; otherwise, of one
    live run."""
    first: bool
    thumbnail: NDArray[np.uint8] | None = None
    judgement: Judgement | None = None
    reference: object = None
    """The picture that `judgement` refers to; None if it was compared with none."""

    @classmethod
    def of(cls, result: Result) -> Facts:
        timed = not result.is_emulated
        return cls(
            result.request.cost_key,
            result.where,
            result.seconds if timed else None,
            timed and result.repeats is not None,
            result.first,
        )


@dataclass(eq=False)
class _KeptResult:
    settings: tuple[Hashable, Hashable]
    """Those that were asked for, and those with the numbers that were estimated."""
    result: Result
    facts: Facts


class Memo:
    """The results of steps by their input, in bounded memory; the last ones are kept.

    - `limit`: bytes of inputs and outputs; the newest result is kept in any case.
    """

    def __init__(self, limit: int = MOST_BYTES) -> None:
        self.limit = limit
        self._entries: list[_KeptResult] = []

    def keep(self, result: Result) -> None:
        """Remember a whole result, or that of each of its steps.

        The time of a measured run is not replaced by that of a live one at the same place.
        """
        steps = [result.request.step.unestimated, *(each.step for each in result.request.then)]
        for step, part in zip(steps, result.parts or (result,), strict=True):
            self._keep(part, step)
        self._drop()

    def _keep(self, result: Result, asked: Step) -> None:
        source = result.request.source
        settings = settings_of(asked, source), settings_of(result.request.step.fixed, source)
        old = self._entry(source, settings[0])
        if old is not None and old.result is result:
            return
        facts = Facts.of(result)
        if old is not None:
            self._entries.remove(old)
            if old.facts.cost_key == facts.cost_key and old.facts.measured and not facts.measured:
                facts = old.facts
        self._entries.append(_KeptResult(settings, result, facts))

    def find(self, source: Source, step: Step) -> Result | None:
        entry = self._entry(source, settings_of(step, source))
        if entry is None:
            return None
        self._entries.remove(entry)
        self._entries.append(entry)
        return entry.result

    def facts(self, result: Result) -> Facts:
        return next(entry.facts for entry in self._entries if entry.result is result)

    def walk(self, source: Source, steps: Iterable[Step]) -> Iterator[Result]:
        for step in steps:
            result = self.find(source, step)
            if result is None:
                return
            yield result
            source = result.output

    def end(self, source: Source, first: Step, then: tuple[RunSettings, ...]) -> Result | None:
        """Return the result of all of these steps, from `source` on, if all of it is kept."""
        steps = [first, *(each.step for each in then)]
        parts = list(self.walk(source, steps))
        if len(parts) < len(steps):
            return None
        if len(parts) == 1:
            return parts[0]
        request = replace(parts[0].request, then=then, live=True, timed=False, reference=None)
        return joined(request, parts)

    def done(self, request: Request) -> tuple[Result, ...]:
        options = [request.options, *(each.options for each in request.then)]
        first = request.step if request.needs_estimates else request.step.fixed
        steps = [first, *(each.step for each in request.then)]
        found = zip(self.walk(request.source, steps), options, strict=False)
        return tuple(
            result
            for result, wanted in itertools.takewhile(
                lambda pair: pair[0].request.cost_key == pair[0].request.at(pair[1]).cost_key, found
            )
        )

    @property
    def bytes(self) -> int:
        """How much memory the inputs and outputs take."""
        kept = (entry.result for entry in self._entries)
        sources = (each for result in kept for each in (result.request.source, result.output))
        return sum(sizes_of(sources).values())

    def _entry(self, source: Source, wanted: Hashable) -> _KeptResult | None:
        for entry in reversed(self._entries):
            if entry.result.request.source is source and wanted in entry.settings:
                return entry
        return None

    def _drop(self) -> None:
        """Drop the outputs that were used least recently, until the rest is small."""
        counts: Counter[int] = Counter()
        for entry in list(reversed(self._entries)):
            counts[id(entry.result.request.source)] += 1
            if counts[id(entry.result.request.source)] > _MOST_OF_SOURCE:
                self._entries.remove(entry)
        del self._entries[:-MOST_RESULTS]
        while len(self._entries) > 1 and self.bytes > self.limit:
            del self._entries[0]
