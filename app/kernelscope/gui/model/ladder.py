"""The ladder: the levels of a filter as rungs, their times, and whether their results agree.

A `Rung` is a place where the filter can run, or a reason why it cannot. `LadderModel` keeps the
times of measured runs and hands out only those that belong to the settings and the picture in
question; after a change of either there are none, and they come back with the settings. Results
agree if they were compared: the reference is the serial level, or the first rung with a result.

    Auto               CPU parallel
    CPU  Serial        ▮▮▮▮▮▮▮▮▮▮▮▮   10.2 ms   reference
    CPU  Parallel      ▮▮▮▮▮           1.9 ms   ✓
    GPU  Tuned         ▨▨▨▨       18.1 µs/MP    recorded on an H100, with an axis of its own
    Emulated GPU  Tuned              emulated   ✓
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelscope.bench.recorded import BestShown, Recorded, RecordedTime, Wanted
from kernelscope.bench.rows import Difference
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.rungs import Rung, RungPlace
from kernelscope.gui.model.times import EMULATED, WHY_NOT_TIMED, Timing, duration
from kernelscope.images.source import Source
from kernelscope.schema.samples import Pixels

KEPT_BYTES = 256 << 20  # limit for results that are kept to be compared with those of other levels

LEAST_DECADES = 2.0  # the axis of the bars is logarithmic, and covers at least a factor of 100

NO_TIME = "–"

LIMIT = 30.0
"""Seconds that a level may take when all levels run; a slower one runs when it is clicked."""


class Agreement(StrEnum):
    REFERENCE = "reference"
    EQUAL = "equal"
    ROUNDING = "rounding"
    DIFFERENT = "different"

    @property
    def symbol(self) -> str:
        return {"reference": "ref", "equal": "✓", "rounding": "≈", "different": "≠"}[self]


@dataclass(frozen=True)
class RungParity:
    agreement: Agreement
    reference: str  # name of the reference level
    difference: Difference | None = None  # None for the reference itself

    def describe(self) -> str:
        if self.agreement is Agreement.REFERENCE:
            return "The other results are compared with this one."
        if self.agreement is Agreement.EQUAL:
            return f"Same result as {self.reference}, in every sample."
        assert self.difference is not None
        share, largest = self.difference.share, self.difference.largest
        text = f"{100 * share:.2f} % of the samples differ from {self.reference}"
        within = " (rounding of floats)" if self.agreement is Agreement.ROUNDING else ""
        return f"{text}, by up to {largest:.3g}{within}."


ROUNDING = 1e-4
"""Share of the largest value up to which floats may differ: levels add up in other orders."""


def compare(reference: str, expected: Pixels, found: Pixels) -> RungParity:
    """Compare two results of the same request; takes as long as reading both."""
    difference = Difference.between(expected, found)
    if not difference.largest:
        return RungParity(Agreement.EQUAL, reference, difference)
    most = max(abs(float(expected.max())), abs(float(expected.min())))
    small = expected.dtype.kind == "f" and difference.largest <= ROUNDING * most
    return RungParity(Agreement.ROUNDING if small else Agreement.DIFFERENT, reference, difference)


@dataclass(frozen=True)
class Time:
    # Medians: of the kernels or the stage *compute*, and of whole runs with transfers.
    computing: float
    total: float
    repeats: int
    # Of the computing.
    least: float
    most: float

    @classmethod
    def of(cls, result: Result) -> Time | None:
        repeats = Timing.of(result).repeats
        if repeats is None:
            return None
        return cls(
            computing=result.computing_seconds,
            total=result.seconds,
            repeats=len(repeats.totals),
            least=min(repeats.computing),
            most=max(repeats.computing),
        )


class LadderModel:
    """Times and agreement of levels, by the picture and the settings that they belong to."""

    def __init__(self) -> None:
        self._times: weakref.WeakKeyDictionary[Source, dict[Hashable, Time | None]] = (
            weakref.WeakKeyDictionary()
        )
        """None for a run that was emulated."""
        self._parity: weakref.WeakKeyDictionary[
            Source, dict[Hashable, dict[RungPlace, RungParity]]
        ] = weakref.WeakKeyDictionary()
        self._compared: Request | None = None
        """A request of the work that `_outputs` are results of."""
        self._outputs: dict[RungPlace, Source] = {}

    def add(self, result: Result) -> bool:
        """Keep time and output of a run that was measured or emulated; return whether it was."""
        request, time = result.request, Time.of(result)
        if request.region is not None or (time is None and not result.is_emulated):
            return False
        place = RungPlace(Device(result.device), result.level)
        key = _key(request, replace(request.options, device=place.device, level=place.level))
        self._times.setdefault(request.source, {})[key] = time
        if not self._is_compared(request):
            self._compared, self._outputs = request, {}
        known = self._parity.get(request.source, {}).get(request.work, {})
        if place in known and known[place].agreement is Agreement.REFERENCE:
            known.clear()  # the others were compared with an earlier result
        known.pop(place, None)
        self._outputs[place] = result.output
        self._drop_outputs(place)
        return True

    def time(self, request: Request, options: RunOptions) -> Time | None:
        return self._times.get(request.source, {}).get(_key(request, options))

    def has_run(self, request: Request, options: RunOptions) -> bool:
        """Return whether the work of `request` was done with these options, timed or emulated."""
        return _key(request, options) in self._times.get(request.source, {})

    def parity(self, request: Request, place: RungPlace) -> RungParity | None:
        return self._parity.get(request.source, {}).get(request.work, {}).get(place)

    def to_compare(
        self, request: Request, offered: Sequence[Rung]
    ) -> tuple[Rung, dict[RungPlace, tuple[Source, Source]]] | None:
        """Return the reference and the results that have not been compared with it.

        The pairs are those of the reference and of the other level.
        """
        if not self._is_compared(request):
            return None
        held = [rung for rung in offered if rung.place in self._outputs]
        reference = next(
            (rung for rung in held if rung.level is not None and rung.level.exact), None
        )
        if reference is None:
            return None
        known = self._parity.get(request.source, {}).get(request.work, {})
        expected = self._outputs[reference.place]
        pairs = {
            rung.place: (expected, self._outputs[rung.place])
            for rung in held
            if rung is not reference
            and (rung.place not in known or known[rung.place].reference != reference.full_name)
        }
        return reference, pairs

    def learn(
        self, request: Request, reference: Rung, found: Mapping[RungPlace, RungParity]
    ) -> None:
        own = {reference.place: RungParity(Agreement.REFERENCE, reference.full_name)}
        known = self._parity.setdefault(request.source, {}).setdefault(request.work, {})
        known.update({**found, **own} if found else {})

    def _is_compared(self, request: Request) -> bool:
        kept = self._compared
        return kept is not None and kept.source is request.source and kept.work == request.work

    def _drop_outputs(self, newest: RungPlace) -> None:
        """Drop the oldest results beyond the limit; one that is dropped cannot be compared."""
        for place in list(self._outputs):
            held = sum(array.nbytes for each in self._outputs.values() for array in each.arrays())
            if held <= KEPT_BYTES or place == newest:
                return
            del self._outputs[place]


def _key(request: Request, options: RunOptions) -> Hashable:
    """Return the work with its place; repeats of kernels take time, and change none."""
    return request.work, request.at(replace(options, repeat=1)).cost_key


class TimeScale:
    """The logarithmic axis of the bars, from just below the shortest time to the longest."""

    def __init__(self, seconds: Iterable[float]) -> None:
        logs = [math.log10(max(each, 1e-9)) for each in seconds]
        self._high = max(logs, default=0.0)
        self._low = min(min(logs, default=0.0) - 0.3, self._high - LEAST_DECADES)

    def share(self, seconds: float) -> float:
        log = math.log10(max(seconds, 1e-9))
        return min(1.0, max(0.0, (log - self._low) / (self._high - self._low)))


@dataclass(frozen=True)
class KnownRung:
    """A rung with all that is known about it."""

    rung: Rung
    time: Time | None = None  # measured here with the present settings on the present picture
    figure: RecordedTime | None = None  # recorded elsewhere; only for a rung that cannot run here
    per_million: bool = False
    """Whether the figure is of another size, so that its time is shown by the megapixel."""
    parity: RungParity | None = None
    remark: str = ""
    best: BestShown | None = None  # of a level that the filter lacks: where to see it
    has_run: bool = False
    """Whether there was a run with the present settings on the present picture."""
    beside: KnownRung | None = None  # the level that it is compared with; see `why`

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Seconds of computing and of the whole run, measured or recorded."""
        known = self.time or self.figure
        if isinstance(known, Time):
            return known.computing, known.total
        return (known.seconds, known.total) if known is not None else None

    @property
    def timing(self) -> str:
        if self.time is not None:
            return describe_time(self.time)
        if self.figure is not None:
            return describe_figure(self.figure)
        return WHY_NOT_TIMED if self.rung.place.device is Device.EMULATED else ""

    @property
    def caveat(self) -> str:
        """Why the levels of its device cannot run here, or are not timed; empty if neither."""
        if self.rung.obstacle and not self.rung.gap:
            return self.rung.obstacle
        return WHY_NOT_TIMED if self.rung.place.device is Device.EMULATED else ""

    @property
    def brief_time(self) -> str:
        """The time of computing for the column of times, or a word or sign in its place.

        Only a run on the emulated GPU leaves none.
        """
        if self.time is not None:
            return duration(self.time.computing)
        if self.figure is not None:
            about = "≈ " if self.figure.scaled else ""
            figure, seconds = self.figure, self.figure.seconds
            return f"{about}{figure.by_million if self.per_million else duration(seconds)}"
        return EMULATED if self.has_run else NO_TIME

    def explain(self) -> str:
        """Return all of it in lines, for a tooltip and for screen readers."""
        rung, lines = self.rung, [self.rung.full_name]
        if rung.level is not None:
            lines.append(rung.level.help)
        if rung.obstacle:
            lines.append(rung.obstacle)
        if self.best is not None:
            lines.append(self.best.describe())
        if self.timing:
            lines.append(self.timing)
        if self.parity is not None:
            lines.append(self.parity.describe())
        if self.remark:
            lines.append(self.remark)
        return "\n".join(lines)


def describe_time(time: Time) -> str:
    """Return ``Computing 2.31 ms, median of 5 (2.20 ms to 2.50 ms); whole run 2.49 ms``."""
    text = f"Computing {duration(time.computing)}"
    if time.repeats > 1:
        spread = f"{duration(time.least)} to {duration(time.most)}"
        text = f"{text}, median of {time.repeats} ({spread})"
    return f"{text}; whole run {duration(time.total)}. Measured here, with these settings."


def describe_figure(figure: RecordedTime) -> str:
    """Return a recorded time with its setting, machine and date."""
    about = "≈ " if figure.scaled else ""
    part = f" Timed on {figure.row.timed_size} and scaled." if figure.scaled else ""
    return (
        f"Recorded, not measured here: computing {about}{duration(figure.seconds)}, whole run "
        f"{about}{duration(figure.total)}, for {figure.setting}, {figure.samples}, on "
        f"{figure.machine}, {figure.date}.{part}"
    )


def race(
    offered: Sequence[Rung], expected: Mapping[RungPlace, float]
) -> tuple[list[Rung], list[Rung]]:
    """Return the rungs to run one after the other, and those that would take too long.

    They run in the order of their expected time. Those whose time is unknown follow, the last
    ones offered, which are the fastest of their device, before the others. The emulated GPU takes
    no part: it has no times.
    """
    usable = [
        rung
        for rung in offered
        if rung.level is not None and not rung.obstacle and rung.place.device is not Device.EMULATED
    ]
    slow = [rung for rung in usable if expected.get(rung.place, 0.0) > LIMIT]
    ranks = {rung.place: number for number, rung in enumerate(reversed(usable))}

    def order(rung: Rung) -> tuple[float, int]:
        return expected.get(rung.place, math.inf), ranks[rung.place]

    return sorted((rung for rung in usable if rung not in slow), key=order), slow


def expected_times(
    request: Request,
    offered: Sequence[Rung],
    known: Mapping[RungPlace, float],
    recorded: Recorded,
) -> dict[RungPlace, float]:
    """Estimate the computing of levels in seconds, from one that was measured.

    Its time is multiplied by the ratio of the two levels in the recorded figures of that kind of
    device, at the nearest recorded setting. Measured times are passed through.
    """
    found = dict(known)
    for device in {rung.place.device for rung in offered if rung.level is not None}:
        measured = {
            rung.place: known[rung.place]
            for rung in offered
            if rung.place.device is device and rung.place in known
        }
        if not measured:
            continue
        figures = recorded.nearest_of_each(Wanted.by(request), device.value)
        for rung in offered:
            place = rung.place
            if place.device is not device or place in known or place.level not in figures:
                continue
            mine = figures[place.level]
            for other, seconds in measured.items():
                beside = figures.get(other.level or "")
                if beside is not None and beside.row.subject == mine.row.subject:
                    found[place] = seconds * mine.seconds / beside.seconds
                    break
    return found
