"""The steps of a pipeline in words: the effect of each, and whether it is current."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.memo import Facts
from kernelscope.engine.request import RunSettings
from kernelscope.engine.result import Judgement, Result
from kernelscope.gui.model.comparison import following
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.gallery import judge_run, thumbnail
from kernelscope.gui.model.history import Moment, parts_of
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.model.runs import describe_gain
from kernelscope.gui.model.times import EMULATED, WHY_NOT_TIMED, duration
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume


@dataclass(frozen=True)
class StepRow:
    settings: RunSettings
    key: int  # of the step
    number: int  # from 1
    edited: bool  # the form edits it
    fresh: bool
    """Picture, time and quality belong to its settings; they are those of earlier ones
    otherwise."""
    # ``2.50 ms live`` and ``+3.1 dB``; empty where unknown.
    time: str = ""
    gain: str = ""
    details: str = ""  # all settings, device and level, and how the time was taken
    thumbnail: NDArray[np.uint8] | None = field(default=None, compare=False)
    pictured: int = 0  # changes with the thumbnail

    @property
    def state(self) -> str:
        if not self.settings.on:
            return "off"
        return self.time if self.fresh else f"{Freshness.OUT_OF_DATE.symbol} out of date"

    def describe(self) -> str:
        step = self.settings.step
        parts = [f"Step {self.number}, {step.name}", step.caption, "edited" * self.edited]
        parts += [self.state, self.gain if self.fresh else ""]
        return ", ".join(filter(None, parts))


class ShownStep(NamedTuple):
    """A step that is on, its result on the output of the one before, and the facts of that."""

    settings: RunSettings
    result: Result | None
    facts: Facts | None


def rows_of(
    pipeline: Pipeline, steps: Sequence[ShownStep], last: MutableMapping[int, Facts]
) -> list[StepRow]:
    """Return a row for each step; `last` keeps the facts that each had, by its key."""
    found = {step.settings.key: step for step in steps}
    rows = []
    for place, settings in enumerate(pipeline.steps):
        step = found.get(settings.key, ShownStep(settings, None, None))
        facts = step.facts
        old = last.get(settings.key)
        if facts is not None:
            last[settings.key] = facts
        picture = facts.thumbnail if facts is not None else None
        if picture is None and old is not None:
            picture = old.thumbnail
        rows.append(
            StepRow(
                settings,
                settings.key,
                place + 1,
                place == pipeline.place,
                facts is not None,
                _time(step),
                _gain(facts.judgement) if facts is not None else "",
                _details(settings, facts),
                picture,
                id(picture),
            )
        )
    for key in set(last) - {each.key for each in pipeline.steps}:
        del last[key]
    return rows


def _time(step: ShownStep) -> str:
    settings, result, facts = step
    if facts is None or result is None:
        return ""
    if facts.cost_key != result.request.at(settings.options).cost_key:
        return ""
    if facts.seconds is None:
        return EMULATED
    about = "≈ " if facts.first else ""
    return f"{about}{duration(facts.seconds)} {'measured' if facts.measured else 'live'}"


def _gain(judgement: Judgement | None) -> str:
    """Return by how much a step brought its input nearer to the reference."""
    if judgement is None or judgement.before is None:
        return ""
    before, after = judgement.before.psnr, judgement.after.psnr
    if not (math.isfinite(before) and math.isfinite(after)):
        return ""
    return describe_gain(after - before)


def _details(settings: RunSettings, facts: Facts | None) -> str:
    lines = [settings.step.filter.name, settings.step.caption or "All settings: defaults."]
    if not settings.on:
        lines.append("Off: it has no effect on the output.")
    elif facts is None:
        lines.append("Not computed with these settings and this input yet.")
    elif facts.seconds is None:
        lines.append(f"{facts.where}: {WHY_NOT_TIMED}")
    elif facts.measured:
        lines.append(f"{duration(facts.seconds)} on {facts.where}: measured by Run.")
    else:
        lines.append(
            f"{duration(facts.seconds)} on {facts.where}: one live run, next to everything "
            "else. Run (F5) measures the step that is edited."
        )
    return "\n".join(lines)


def examine(
    steps: Sequence[ShownStep],
    first: Moment[Any, Any],
    shown: Moment[Any, Any],
    reference: object,
) -> Callable[[], None] | None:
    """Return work for a thread: thumbnails and qualities that are missing; None if none are."""
    done = [(result, facts) for _, result, facts in steps if result and facts]
    if all(facts.thumbnail is not None and facts.reference is reference for _, facts in done):
        return None

    def work() -> None:
        moment = replace(first, steps=(), pipeline=None, settings=None, result=None)
        for result, facts in done:
            source = result.request.source
            if source is shown.source:
                moment = replace(moment, source=source, references=shown.references)
            if facts.thumbnail is None:
                facts.thumbnail = thumbnail(result.output)
            if facts.reference is not reference:
                facts.judgement = _judge(moment, result) if source is moment.source else None
                facts.reference = reference
            if source is not moment.source:
                return
            moment = following(replace(moment, result=result))

    return work


def _judge(moment: Moment[Any, Any], result: Result) -> Judgement | None:
    for part in parts_of(moment.source):
        reference = moment.references.get(part)
        if reference is not None:
            return judge_run(result, part, reference.image)
    return None


def carried(new: Moment[Any, Any], old: Moment[Any, Any]) -> Moment[Any, Any]:
    """Return `new` with the references of `old` for parts of the same shape that have none."""
    references = dict(new.references)
    parts: Any = zip(parts_of(old.source), parts_of(new.source), strict=False)
    for before, after in parts:
        known = old.references.get(before)
        if known is not None and _shape(after) == _shape(before):
            references.setdefault(after, known)
    return replace(new, references=references)


def _shape(part: Image | Volume) -> tuple[int, ...]:
    return part.voxels.shape if isinstance(part, Volume) else part.shape
