"""The ladder: the levels of a filter as rungs, their times, and whether their results agree.

A `Rung` is a place where the filter can run, or a reason why it cannot; Auto takes the CPU, or the
faster of CPU and GPU, never the emulated GPU, which needs a compiler. The times are those of the
measured runs in the list that have the settings and the picture in question; after a change of
either there are none, and they come back with the settings. Results agree if they were compared:
the reference is the serial level, or the first rung with a result.

    Auto               CPU parallel
    CPU  Serial        ▮▮▮▮▮▮▮▮▮▮▮▮   10.2 ms   reference
    CPU  Parallel      ▮▮              1.9 ms   ✓
    GPU  Tuned         ▨▨▨▨       18.1 µs/MP    recorded on an H100, with a scale of its own
    Emulated GPU  Tuned              emulated   ✓
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kernelscope.base.installed import install_command
from kernelscope.bench.recorded import BestShown, Recorded, RecordedTime, Wanted
from kernelscope.bench.rows import Difference
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.runs import Run, Runs
from kernelscope.gui.model.times import EMULATED, WHY_NOT_TIMED, duration
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS, Level
from kernelscope.schema.samples import Pixels


class RungPlace(NamedTuple):
    """Device and level of a run; without a level the fastest of the device."""

    device: Device
    level: str | None = None

    @property
    def kernels(self) -> Device:
        """The device whose kernels run there, and whose pages explain the level."""
        return Device.GPU if self.device is Device.EMULATED else self.device


AUTO = RungPlace(Device.AUTO)


@dataclass(frozen=True)
class Rung:
    place: RungPlace
    name: str  # name of the level: ``Shared memory``
    device: str = ""  # name of the device: ``GPU``; empty for Auto
    level: Level | None = None  # None for Auto
    obstacle: str = ""  # why it cannot run here; empty if it can
    gap: bool = False  # the level has no meaning for this filter, on any machine
    choice: str = ""  # of Auto: how it chooses, and why it cannot choose if it cannot

    @property
    def full_name(self) -> str:
        return self.level.on(self.device) if self.level is not None else self.name


def rungs(
    spec: FilterSpec, backends: Mapping[str, Backend], availability: Mapping[str, Availability]
) -> tuple[Rung, ...]:
    """Return Auto and the levels of CPU, GPU, and of the emulated one if there is a compiler.

    `availability` lacks a backend that is still being looked for.
    """
    found = []
    real = [each for each in backends.values() if each.id != Device.EMULATED]
    for backend in reversed(real):
        levels, gaps = backend.levels(spec), spec.gaps(backend.id)
        if backend.id != Device.CPU and not levels:
            continue  # `only_cpu` has the reason
        state = availability.get(backend.id)
        missing = ""
        if backend.id != Device.CPU and (state is None or not state.available):
            missing = f"Looking for a {backend.name}…"
            if state is not None:
                missing = f"{state.summary}{without_gpu(availability)}"
        for level in with_gaps(levels, gaps):
            gap = gaps.get(level.id, "")
            place = RungPlace(Device(backend.id), level.id)
            found.append(Rung(place, level.name, backend.name, level, gap or missing, bool(gap)))
    usable = [rung for rung in found if not rung.obstacle]
    devices = dict.fromkeys(rung.device for rung in usable)
    name = f"Auto: {usable[-1].full_name}" if len(devices) == 1 else "Auto: the faster device"
    auto = Rung(AUTO, name, choice=_choice(spec, usable, len(devices) == 1, found))
    return auto, *found, *_emulated(spec, backends, availability)


_LAST_LEVEL = "Of a device it takes the last level, which is meant to be the fastest."


def _choice(spec: FilterSpec, usable: list[Rung], alone: bool, found: list[Rung]) -> str:
    if not alone:
        return (
            "Auto chooses by the times of earlier runs of this filter on both devices, copies to "
            "the GPU included, and until it has both by the size of the picture. "
            f"{_LAST_LEVEL}"
        )
    reason = only_cpu(spec) or next(
        (rung.obstacle for rung in found if rung.obstacle and not rung.gap), ""
    )
    one = f"There is one device to choose: {usable[-1].device}."
    return " ".join(filter(None, (one, reason, _LAST_LEVEL)))


def _emulated(
    spec: FilterSpec, backends: Mapping[str, Backend], availability: Mapping[str, Availability]
) -> list[Rung]:
    """Return the levels of a filter on the emulated GPU, if there is a compiler for it."""
    backend = backends.get(Device.EMULATED.value)
    state = availability.get(Device.EMULATED.value)
    if backend is None or state is None or not state.available:
        return []
    return [
        Rung(RungPlace(Device.EMULATED, level.id), level.name, backend.name, level)
        for level in backend.levels(spec)
    ]


def without_gpu(availability: Mapping[str, Availability]) -> str:
    """Return how kernels run without a GPU, after a space; empty if that is not known yet."""
    state = availability.get(Device.EMULATED.value)
    if state is None:
        return ""
    if state.available:
        where = "in the group “Emulated GPU” of the levels"
        return f" GPU kernels run on the processor {where}, not timed."
    return (
        " To run GPU kernels on the processor, install g++ or clang++, or run: "
        f"{install_command('emulator')}"
    )


def only_cpu(spec: FilterSpec) -> str:
    if spec.levels(Device.GPU.value):
        return ""
    reasons = dict.fromkeys(spec.gaps(Device.GPU.value).values())
    return f"On the CPU only. {' '.join(reasons)}".strip()


def with_gaps(levels: Iterable[Level], gaps: Mapping[str, str]) -> list[Level]:
    found = list(levels)
    for number, level in enumerate(GPU_LEVELS):
        if level.id in gaps:
            later = GPU_LEVELS[number + 1 :]
            place = next((n for n, each in enumerate(found) if each in later), len(found))
            found.insert(place, level)
    return found


def chosen_place(wanted: RungPlace, offered: Sequence[Rung]) -> RungPlace:
    """Return the place where a run goes: the wanted one, else the device's fastest, else Auto."""
    usable = [rung.place for rung in offered if not rung.obstacle]
    if wanted in usable:
        return wanted
    if wanted.device is Device.AUTO:  # with a level, as older settings have it
        real = (place for place in usable if place.device is not Device.EMULATED)
        return next((place for place in real if place.level == wanted.level), AUTO)
    has_device = any(place.device is wanted.device for place in usable)
    return RungPlace(wanted.device) if has_device else AUTO


def marked(place: RungPlace, offered: Sequence[Rung]) -> RungPlace:
    """Return the rung that stands for a place: for a device alone, its fastest usable level."""
    usable = [rung.place for rung in offered if not rung.obstacle]
    if place in usable:
        return place
    return [each for each in usable if each.device is place.device][-1]


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
    def of(cls, run: Run) -> Time | None:
        repeats = run.repeats
        if repeats is None or run.seconds is None:
            return None
        return cls(
            computing=run.computing,
            total=run.seconds,
            repeats=len(repeats.totals),
            least=min(repeats.computing),
            most=max(repeats.computing),
        )


class LadderModel:
    """Times and agreement of levels, by the runs of a picture with the settings in question."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._parity: weakref.WeakKeyDictionary[
            Source, dict[Hashable, dict[RungPlace, RungParity]]
        ] = weakref.WeakKeyDictionary()

    def renew(self, result: Result) -> None:
        """Forget how the results before this one agreed."""
        request, place = result.request, RungPlace(Device(result.device), result.level)
        known = self._parity.get(request.source, {}).get(request.work, {})
        if place in known and known[place].agreement is Agreement.REFERENCE:
            known.clear()  # the others were compared with an earlier result
        known.pop(place, None)

    def time(self, request: Request, options: RunOptions) -> Time | None:
        run = self._runs.newest(request, options)
        return Time.of(run) if run is not None else None

    def has_run(self, request: Request, options: RunOptions) -> bool:
        """Return whether the work of `request` was done with these options, timed or emulated."""
        return self._runs.newest(request, options) is not None

    def parity(self, request: Request, place: RungPlace) -> RungParity | None:
        return self._parity.get(request.source, {}).get(request.work, {}).get(place)

    def to_compare(
        self, request: Request, offered: Sequence[Rung]
    ) -> tuple[Rung, dict[RungPlace, tuple[Source, Source]]] | None:
        """Return the reference, and pairs of its result and one that was not compared with it."""
        outputs: dict[RungPlace, Source] = {}
        for run in self._runs.on(request):
            if run.result is not None:
                place = RungPlace(Device(run.device), run.level)
                outputs.setdefault(place, run.result.output)
        held = [rung for rung in offered if rung.place in outputs]
        reference = next(
            (rung for rung in held if rung.level is not None and rung.level.exact), None
        )
        if reference is None:
            return None
        known = self._parity.get(request.source, {}).get(request.work, {})
        expected = outputs[reference.place]
        pairs = {
            rung.place: (expected, outputs[rung.place])
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


@dataclass(frozen=True)
class KnownRung:
    rung: Rung
    time: Time | None = None  # measured here with the present settings on the present picture
    figure: RecordedTime | None = None  # recorded elsewhere; only for a rung that cannot run here
    per_million: bool = False
    """Whether the figure is of another size, so that its time is shown by the megapixel."""
    other_settings: str = ""  # those of the figure in short, if they are not the present ones
    parity: RungParity | None = None
    remark: str = ""
    best: BestShown | None = None  # of a level without a figure of this filter: where to see it
    has_run: bool = False
    """Whether there was a run with the present settings on the present picture."""
    beside: KnownRung | None = None  # the level that it is compared with; see `why`
    taken: KnownRung | None = None  # of Auto: the level of the output, or else of the next run
    because: str = ""  # of Auto: for which run it took that level, and why

    @property
    def seconds(self) -> float | None:
        """Seconds of computing, measured or recorded."""
        if self.time is not None:
            return self.time.computing
        return self.figure.seconds if self.figure is not None else None

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
        """The time of computing, or a word in its place, as for a run on the emulated GPU."""
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
        if self.because:
            lines.append(self.because)
        if rung.level is not None:
            lines.append(rung.level.help)
        if rung.obstacle:
            lines.append(rung.obstacle)
        if self.best is not None:
            lines.append(self.best.describe())
        if self.timing:
            lines.append(self.timing)
        if self.other_settings:
            lines.append(f"These are other settings: {self.other_settings}.")
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
    """Return the rungs to run, the quickest first, and those that would take too long.

    Those whose time is unknown come last, the fastest of each device (the last offered) before its
    others. The emulated GPU has no times.
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
    """Return measured times, and others by the ratio of levels in the nearest recorded setting."""
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
