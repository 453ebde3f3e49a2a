"""Why a level is faster or slower than another: its counted loads, and times of both.

9.53 times as fast as Serial, measured here: 12.1 ms, Serial 115 ms.
1.47 times as fast as Global memory, recorded on H200, 28 Nov 2026, at 2048×2048: 11.3 µs, ...
Loads for a pixel: 2.25 from global memory, 25 from shared memory; Global memory: 27.7 from ...
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernelscope.base.durations import duration
from kernelscope.base.text import significant
from kernelscope.bench.memory_ladder import CountedRung, Limiter, MemoryLadder
from kernelscope.bench.recorded import Wanted
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import KnownRung
from kernelscope.gui.model.xray import NAMES
from kernelscope.schema.levels import GLOBAL
from kernelscope.traffic.gpus import GPUS
from kernelscope.traffic.totals import FROM_DEVICE, PAST_L1, figures
from kernelscope.traffic.trace import MemorySpace

_ALIKE, _FEW = 1.05, 1.25
"""Ratios of times, and of counted loads, up to which two levels are said to be alike."""

_MUCH = 2.0
"""Times by which loads fall more than the time does where the rest calls for an explanation."""

_STEADY = 1.5
"""Ratio of the longest to the shortest of repeated times up to which they are compared."""

_OF_CARD = MemorySpace.GLOBAL, MemorySpace.TEXTURE  # memories outside the multiprocessor


def with_neighbours(entries: Sequence[KnownRung]) -> list[KnownRung]:
    """Return the rungs, each with one to compare: level *global*, or the CPU's first."""
    found = []
    for entry in entries:
        place = entry.rung.place
        alike = [
            each
            for each in entries
            if each.rung.place.device is place.device and each.rung.level and not each.rung.gap
        ]
        usual = next((each for each in alike if each.rung.place.level == GLOBAL.id), None)
        others = [usual, *alike[:1]] if place.kernels is Device.GPU else alike[:1]
        other = next((each for each in others if each is not None and each is not entry), None)
        of_level = entry.rung.level is not None and not entry.rung.gap
        found.append(replace(entry, beside=other if of_level else None))
    return found


def times_of(entry: KnownRung) -> str:
    """Return by how much a level beats that beside it, and where both times come from; or ""."""
    times = _both(entry)
    if times is None or entry.beside is None:
        return ""
    name, own, other = entry.beside.rung.name, duration(times[0]), duration(times[1])
    figure = entry.figure if entry.time is None else None
    source = "measured here" if figure is None else f"recorded on {figure.card}, {figure.date}"
    varies = any(
        each.time is not None and each.time.most > _STEADY * each.time.least
        for each in (entry, entry.beside)
    )
    doubt = " Times vary: run both again before you compare them." if varies else ""
    if entry.other_settings:
        source += f" at other settings ({entry.other_settings})"
    elif figure is not None:
        source += f", at {figure.row.size}"
    return f"{_compared(times[1] / times[0], name)}, {source}: {own}, {name} {other}.{doubt}"


def loads_of(
    entry: KnownRung, counted: Mapping[str, CountedRung], request: Request, where: str = ""
) -> list[str]:
    """Return sentences on the counted loads of a level and the one beside it, and its bound.

    `request`: the work that was counted; `where`: its part, if it was a part.
    """
    level, beside = entry.rung.level, entry.beside
    if level is None or level.id not in counted:
        return []
    own = counted[level.id]
    if own.refusal:
        return [f"Loads were not counted: {own.refusal}"]
    is_whole = not where
    blocks = sum(each.counted for each in own.counts), sum(each.scene.blocks for each in own.counts)
    if blocks[0] < blocks[1]:
        where += f" in {blocks[0]:,} of {blocks[1]:,} blocks"
    head = f"Loads for a pixel, counted on the emulated GPU{where}"
    lines = [f"{head}: {_in_words(own)}."]
    other = counted.get(beside.rung.level.id) if beside and beside.rung.level else None
    if beside is None or other is None or other.refusal:
        return lines
    name = beside.rung.name
    lines[0] = f"{lines[0].removesuffix('.')}; {name}: {_in_words(other)}."
    more, before = _from_card(own), _from_card(other)
    if more and before:
        used = {space for each in (own, other) for space, _ in each.loads}
        spaces = " and ".join(NAMES[each] for each in _OF_CARD if each in used)
        lines.append(_because(entry, before / more, name, f"from {spaces} memory"))
        lines += _served(entry, own, other, before / more)
    return [*lines, *(_bounds(entry, own, other, request) if is_whole else ())]


def _because(entry: KnownRung, fewer: float, name: str, spaces: str) -> str:
    """Return by how much the loads from outside differ, and whether the times follow them."""
    alike = max(fewer, 1 / fewer) < _FEW
    if alike:
        said = f"about as many loads {spaces} as level {name}"
    elif fewer > 1:
        said = f"{_times(fewer)} fewer loads {spaces} than level {name}"
    else:
        said = f"{_times(1 / fewer)} as many loads {spaces} as level {name}"
    times = _both(entry)
    if times is None:
        return f"It has {said}."
    if _is_of_others(entry):
        return f"It has {said}. No time is recorded at these settings to compare them with."
    faster = times[1] / times[0]
    if max(faster, 1 / faster) < _ALIKE:
        return f"It takes as long, with {said}."
    word = "faster" if faster > 1 else "slower"
    if alike:
        return f"It is {word} with {said}: their number is not the reason."
    agrees = (faster > 1) is (fewer > 1)
    return f"It is {word}, and has {said}." if agrees else f"It is {word} in spite of {said}."


def _served(entry: KnownRung, own: CountedRung, other: CountedRung, fewer: float) -> Iterator[str]:
    """Yield why so many fewer loads gain so little time, where caches serve most of the others."""
    times = _both(entry)
    if times is None or _is_of_others(entry) or fewer < _MUCH * max(times[1] / times[0], 1):
        return
    mine, theirs = (
        {row.title: row.values[0] or 0.0 for row in figures({"": each.counts})}
        for each in (own, other)
    )
    if theirs[PAST_L1] < fewer / _MUCH * mine[PAST_L1]:
        parts = (
            f"{significant(mine[each])} {each} (there {significant(theirs[each])})"
            for each in (PAST_L1, FROM_DEVICE)
        )
        yield f"Caches can serve most of the others: a pixel takes {' and '.join(parts)}."


def _bounds(
    entry: KnownRung, counted: CountedRung, beside: CountedRung, request: Request
) -> list[str]:
    """Return the least times of the counted work on the card of the recorded time, and the rest."""
    figure, wanted = entry.figure, Wanted.by(request)
    if figure is None or figure.scaled or figure.row.border != request.step.border:
        return []
    if not wanted.is_done_by(figure):
        return []
    is_same = tuple(figure.row.asked) == tuple(wanted.shape)
    card = next((each for each in GPUS if each.name == figure.card), None)
    if card is None:
        return []
    recorded = {counted.level.id: figure} if is_same else {}
    step, other = MemoryLadder((counted, beside), card, recorded).steps
    reason = step.reason(card)
    size = "" if is_same else f", {'×'.join(map(str, reversed(wanted.shape)))}"
    text = f"On {card.name}{size}: {step.text()}{f': {reason}' if reason else '.'} "
    text += f"{other.rung.level.name}: {other.text()}."
    limits = {each.prediction and each.prediction.limit for each in (step, other)}
    shared = any(space is MemorySpace.SHARED for each in (step, other) for space, _ in each.loads)
    if limits == {Limiter.LOADS} and shared:
        text += " Loads from shared memory take their turns as well."
    return [text]


def _is_of_others(entry: KnownRung) -> bool:
    """Return whether its time is of other settings than those that were counted."""
    return entry.time is None and bool(entry.other_settings)


def _both(entry: KnownRung) -> tuple[float, float] | None:
    """Return the times of computing of a level and the one beside it, of one origin."""
    beside = entry.beside
    if beside is None:
        return None
    if entry.time is not None and beside.time is not None:
        return entry.time.computing, beside.time.computing
    own, other = entry.figure, beside.figure
    if entry.time is not None or own is None or other is None:
        return None
    if own.row.subject != other.row.subject or own.path != other.path:
        return None
    return own.seconds, other.seconds


def _compared(faster: float, name: str) -> str:
    if max(faster, 1 / faster) < _ALIKE:
        return f"As fast as {name}"
    if faster > 1:
        return f"{_times(faster)} as fast as {name}"
    return f"Takes {_times(1 / faster)} as long as {name}"


def _times(ratio: float) -> str:
    return f"{significant(ratio)} times"


def _in_words(counted: CountedRung) -> str:
    loads = counted.loads
    parts = [f"{significant(count)} from {NAMES[space]} memory" for space, count in loads]
    return ", ".join(parts) or "none"


def _from_card(counted: CountedRung) -> float:
    return math.fsum(count for space, count in counted.loads if space in _OF_CARD)
