"""Keeps the ladder up to date, and runs all levels one after the other.

    run_all -> Run, unless the output belongs to the settings
            -> for each level, the quickest first: run aside -> compare -> next
               a level that is expected to take longer than `LIMIT` is left out and named;
               one that turns out to is stopped; compiling does not count

Runs of the ladder are measured runs. Their results are listed, but the output stays that of the
chosen level. Results are compared between two runs, not during one, whose time it would spoil.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from PySide6.QtCore import QObject, QTimer, Signal

from kernelscope.base.durations import about
from kernelscope.base.errors import AppError
from kernelscope.bench.recorded import BestShown, Recorded, Wanted
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import chosen
from kernelscope.gui.docks.ladder import Ladder
from kernelscope.gui.model.ladder import (
    AUTO,
    LIMIT,
    KnownRung,
    LadderModel,
    Rung,
    RungParity,
    RungPlace,
    compare,
    expected_times,
    marked,
    only_cpu,
    race,
)
from kernelscope.gui.model.why import with_neighbours
from kernelscope.gui.session.session import FILTER, PLACES, SETTINGS, Session
from kernelscope.gui.session.subject import INPUT, SHOWN
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.work.background import Background, Later
from kernelscope.gui.work.tasks import Priority

_logger = logging.getLogger(__name__)

_NOT_RECORDED = "Its time is recorded neither for these settings nor for the nearest ones."

_EMULATED = "They check, count and X-ray kernels."
"""The purpose of the emulated levels, where there is no card."""

WORTH_SAYING = 1.0  # expected seconds of a level from which they are shown before it runs

_SOON_MS = 600
"""The wait before the recorded figures are read, which takes half a second of the processor."""


@dataclass(eq=False)
class Race:
    """The levels that run one after the other."""

    request: Request | None = None  # the work; None until the output belongs to the settings
    done: dict[RungPlace, str] = field(default_factory=dict)
    """Levels that ended, with a remark on those that did not end well."""
    running: Rung | None = None


class LevelRunner(QObject):
    why_wanted = Signal(object)  # `KnownRung`: the user asks about a level
    shown = Signal(object, object)
    """`Sequence[KnownRung], RungPlace or None`: The rungs that are shown, and the place that was
    chosen since the last ones."""

    def __init__(
        self, ladder: Ladder, session: Session, runner: Runner, background: Background
    ) -> None:
        super().__init__(runner)
        self._session, self._runner, self._background = session, runner, background
        self.ladder = ladder
        self.limit = LIMIT
        self._state = LadderModel(session.gallery)
        self._is_read = False  # whether the recorded figures have been read
        self._waiting: list[Callable[[], None]] = []  # to be called once the figures have been read
        self._read_soon = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._read_soon.timeout.connect(lambda: self._with_recorded(lambda: None))
        self.race: Race | None = None
        self._note = ""
        self._remarks: dict[RungPlace, str] = {}
        self._remarks_of: object = None
        self._closed = False
        self._limit = QTimer(self, singleShot=True)
        self._limit.timeout.connect(self._on_limit)
        self._next = QTimer(self, singleShot=True)
        """Goes on with the race once the window has dealt with the last result."""
        self._next.timeout.connect(self._go_on)
        self.ladder.rungs.run_wanted.connect(self.run_at)
        self.ladder.rungs.choose_wanted.connect(session.choose_place)
        self.ladder.rungs.why_wanted.connect(self.why_wanted)
        self._refresh = Later(self.refresh, self)
        session.when({PLACES}, self.refresh)
        session.when({FILTER, SETTINGS, INPUT, SHOWN}, self._follow)
        runner.finished.connect(lambda result, *_: self._on_result(result))
        runner.submitted.connect(self._on_submitted)
        runner.stopped.connect(self._on_stopped)
        runner.failed.connect(lambda _: self._end_race())

    def close(self) -> None:
        """Start nothing any more: the window closes."""
        self._closed = True
        self._read_soon.stop()
        self._limit.stop()
        self._next.stop()
        self._refresh.cancel()
        self.race = None

    # --- commands ---

    def run_at(self, place: RungPlace) -> None:
        self._end_race()
        self._session.choose_place(place)
        self._runner.run()

    @Action(
        "runLevels",
        "Run All Le&vels",
        "Ctrl+F5",
        need=commands.SOURCE,
        label="Run all",
        help="window#the-ladder-of-levels",
    )
    def run_all(self) -> None:
        """Run every level of the filter on the open picture, one after the other."""
        if self._session.subject.source is None:
            self._runner.request()  # says so
            return
        self._end_race()
        self._note = "Running all levels. Esc stops."
        self.race = Race()
        self._with_recorded(self._begin)

    @Action("whyLevel", "&Why This Level…", "Ctrl+Shift+W", help="window#the-ladder-of-levels")
    def explain(self) -> None:
        """The level under the cursor of the ladder: its idea, its figures and their source."""
        entry = self.ladder.rungs.entry()
        if entry is None or entry.rung.level is None:
            place = marked(self._session.place, self._session.rungs)
            entry = next(each for each in self.entries() if each.rung.place == place)
        self.why_wanted.emit(entry)

    @property
    def in_front(self) -> RungPlace:
        """The place under the cursor of the ladder if it has a kernel, else the chosen one."""
        entry = self.ladder.rungs.entry()
        has_kernel = entry is not None and not entry.rung.gap and entry.rung.level is not None
        if entry is not None and has_kernel and entry.rung.place.kernels is Device.GPU:
            return entry.rung.place
        return self._session.place

    # --- showing ---

    def entries(self) -> list[KnownRung]:
        request = self._session.subject.next_request()
        if request is None:
            return self._with_taken([KnownRung(rung) for rung in self._session.rungs], None)
        figures, wanted, by_million, other = {}, Wanted.by(request), False, ""
        if any(map(_is_missing, self._session.rungs)):
            figures = self._session.recorded.nearest(wanted)
            by_million = any(math.prod(f.row.asked) != wanted.pixels for f in figures.values())
            first = next(iter(figures.values()), None)
            if first is not None and not wanted.is_done_by(first):
                other = wanted.describe(first)  # of all: they are of one setting
        remarks = self._remarks if self._remarks_of == self._key(request) else {}
        found = []
        for rung in self._session.rungs:
            options = self._session.options_at(rung.place)
            figure = figures.get(rung.place.level or "") if _is_missing(rung) else None
            lacks_figure = self._is_read and _is_missing(rung) and figure is None
            found.append(
                KnownRung(
                    rung,
                    time=self._state.time(request, options),
                    figure=figure,
                    per_million=figure is not None and by_million,
                    other_settings=other if figure is not None else "",
                    parity=self._state.parity(request, rung.place),
                    remark=remarks.get(rung.place, _NOT_RECORDED if lacks_figure else ""),
                    best=self._best(rung, beside_others=lacks_figure and bool(figures)),
                    has_run=self._state.has_run(request, options),
                )
            )
        return self._with_taken(found, request)

    def _with_taken(self, entries: list[KnownRung], request: Request | None) -> list[KnownRung]:
        """Return the rungs with those beside them, Auto with the level that it took or takes."""
        auto, *others = with_neighbours(entries)
        found = self._taken(others, request)
        if found is not None:
            place, verb, why = found
            level = next(each for each in others if each.rung.place == place)
            because = " ".join((f"Auto {verb.format(level.rung.full_name)}.", *why))
            auto = replace(auto, taken=level, because=because)
        return [auto, *others]

    def _taken(
        self, others: list[KnownRung], request: Request | None
    ) -> tuple[RungPlace, str, Iterable[str]] | None:
        """Return the place that Auto took for the output, or else takes next, in words, and why."""
        result = self._session.subject.result
        for part in (result.parts or (result,)) if result is not None else ():
            options = part.request.options
            if (options.device, options.level) == AUTO and self._key(part.request) == self._key(
                request
            ):
                why = tuple(each for each in part.notices if each.startswith("Auto "))
                return RungPlace(Device(part.device), part.level), "took {} for this output", why
        next_run = "takes {} for the next run"
        usable = [each.rung.place for each in others if not each.rung.obstacle]
        real = [each for each in usable if each.device is not Device.EMULATED]
        if len({each.device for each in real}) == 1:
            return real[-1], next_run, ()
        if request is None:
            return None
        at_auto = request.at(self._session.options_at(AUTO))
        backend, level, why = chosen(at_auto, self._session.backends, self._runner.tasks.costs)
        return RungPlace(Device(backend.id), level.id), next_run, why

    def _best(self, rung: Rung, *, beside_others: bool) -> BestShown | None:
        """Return which filter shows a level that has no meaning for this one, or no figure
        `beside_others` that have one.
        """
        if rung.level is None or not (rung.gap or beside_others):
            return None
        found = self._session.recorded.best_shown(rung.level.id)
        is_own = found is not None and found.figure.row.filter == self._session.filter_id
        return None if is_own else found

    def _follow(self) -> None:
        """Follow a change of the settings or the picture; a race for others ends at once."""
        if self.race is not None:
            self.refresh()
        else:
            self._refresh.soon()

    def refresh(self) -> None:
        """Show the rungs of the present settings and picture, and end a race for others."""
        if self._closed:
            return
        request = self._session.subject.next_request()
        race, key = self.race, self._key(request)
        if race is not None and race.request is not None and key != self._key(race.request):
            self._end_race()
            if race.running is not None:
                self._runner.cancel()
        if self.race is None and self._remarks_of != key:
            self._note = ""
        if not self._is_read and any(rung.obstacle for rung in self._session.rungs):
            self._read()
        entries = self.entries()
        place = marked(self._session.place, self._session.rungs)
        note = self._note or only_cpu(self._session.spec)
        wanted = Wanted.by(request) if request is not None else None
        is_new = place != self.ladder.rungs.chosen
        self.ladder.show_entries(entries, place, folds=_folds(entries, wanted), note=note)
        self.shown.emit(entries, place if is_new else None)

    @staticmethod
    def _key(request: Request | None) -> object:
        return (id(request.source), request.work) if request is not None else None

    # --- recorded figures ---

    def _with_recorded(self, then: Callable[[], None]) -> None:
        """Call `then` once the recorded figures have been read."""
        if self._is_read:
            then()
            return
        self._waiting.append(then)
        if len(self._waiting) > 1:
            return  # they are being read

        def keep(recorded: Recorded) -> None:
            self._is_read = True
            self._session.set_recorded(recorded)
            self.refresh()
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each()

        def failed(error: Exception) -> None:
            _logger.error("Recorded figures could not be read", exc_info=error)
            keep(Recorded())

        self._background.start("recorded", Recorded.read, keep, failed)

    def _read(self) -> None:
        """Read the figures soon: at the start the picture and the output come first."""
        if not self._read_soon.isActive() and not self._waiting:
            self._read_soon.start()

    # --- results ---

    def _on_result(self, result: Result) -> None:
        self._limit.stop()
        race = self.race
        if race is not None and race.running is not None:
            race.done[race.running.place] = ""
            race.running = None
        self._state.renew(result)
        self.refresh()
        self._compare(result.request)

    def _compare(self, request: Request) -> None:
        """Compare the new results with the reference; then go on with the race."""
        found = self._state.to_compare(request, self._session.rungs)
        if found is None or not found[1]:
            self._next.start()
            return
        reference, pairs = found

        def work() -> dict[RungPlace, RungParity]:
            return {
                place: compare(reference.full_name, expected.planes, other.planes)
                for place, (expected, other) in pairs.items()
            }

        def learn(parities: dict[RungPlace, RungParity]) -> None:
            self._state.learn(request, reference, parities)
            self.refresh()
            self._next.start()

        def failed(error: Exception) -> None:
            _logger.error("Results could not be compared", exc_info=error)
            self._next.start()

        self._background.start("parity", work, learn, failed)

    # --- the race ---

    def _begin(self) -> None:
        if self.race is None:
            return
        if self._session.subject.is_current(self._session.settings):
            self._go_on()
            return
        self._runner.run()
        if not self._runner.busy:  # refused, and said so
            self._end_race()

    def _go_on(self) -> None:
        race_, request = self.race, self._session.subject.next_request()
        if race_ is None or self._closed or self._runner.busy:
            return
        if request is None:
            self._end_race()
            return
        race_.request = race_.request or request
        known = self._known(request)
        expected = expected_times(request, self._session.rungs, known, self._session.recorded)
        order, slow = race(self._session.rungs, expected)
        left = [rung for rung in order if rung.place not in known and rung.place not in race_.done]
        if not left:
            self._finish(race_, [rung for rung in slow if rung.place not in known], expected)
            return
        rung = left[0]
        seconds = expected.get(rung.place, 0.0)
        takes = f", about {about(seconds)}" if seconds >= WORTH_SAYING else ""
        count = f"{len(order) - len(left) + 1} of {len(order)}"
        self._note = f"Running {rung.full_name}{takes} ({count}). Esc stops."
        try:
            options = self._session.options_at(rung.place)
            following = Request(request.source, request.step.fixed, options, timed=True)
        except AppError as error:
            race_.done[rung.place] = error.message
            self._next.start()
            return
        race_.running = rung
        task = self._runner.begin(following, Priority.ASIDE)
        task.progressed.connect(self._on_progress)
        task.failed.connect(self._on_aside_failed)
        task.stopped.connect(self._on_stopped)
        self._limit.start(round(1000 * self.limit))
        self.refresh()

    def _known(self, request: Request) -> dict[RungPlace, float]:
        """Return the levels with a time for these settings, in seconds."""
        known = {}
        for rung in self._session.rungs:
            time = self._state.time(request, self._session.options_at(rung.place))
            if rung.level is not None and time is not None:
                known[rung.place] = time.computing
        return known

    def _finish(self, ended: Race, slow: list[Rung], expected: dict[RungPlace, float]) -> None:
        self._remarks = {place: text for place, text in ended.done.items() if text}
        for rung in slow:
            takes = about(expected[rung.place])
            self._remarks[rung.place] = f"Left out: about {takes} here. Click to run it."
        self._remarks_of = self._key(self._session.subject.next_request())
        names = {rung.place: rung.full_name for rung in self._session.rungs}
        words = [f"{names[place]} ({_brief(text)})" for place, text in self._remarks.items()]
        # Names of levels have commas, and some were begun.
        left = f"Not measured: {'; '.join(words)}. Click a level to run it." if words else ""
        self.race, self._note = None, left
        self.refresh()

    def _on_aside_failed(self, error: Exception) -> None:
        """Note why a level failed, and go on with the others."""
        self._limit.stop()
        if self.race is not None and self.race.running is not None:
            self.race.done[self.race.running.place] = str(error)
            self.race.running = None
            self._next.start()

    def _on_progress(self, stage: str, fraction: float) -> None:
        """Stop the clock of the limit while a level is compiled, which is done only once."""
        if self.race is None or self.race.running is None:
            return
        if stage != "compile":
            if not self._limit.isActive():
                self._limit.start()
        elif self._limit.isActive():
            self._limit.setInterval(self._limit.remainingTime())
            self._limit.stop()

    def _on_limit(self) -> None:
        """Stop a level that takes too long, and go on with the others."""
        race_ = self.race
        if race_ is None or race_.running is None:
            return
        place, race_.running = race_.running.place, None
        race_.done[place] = f"Stopped after {about(self.limit)}. Click to run it."
        self._runner.cancel()
        self._next.start()

    def _on_submitted(self) -> None:
        """End the race if another run begins than that of its own settings."""
        if self.race is not None and self.race.request is not None:
            self._end_race()

    def _on_stopped(self) -> None:
        """End the race if a run of it was stopped, unless for `limit`."""
        if self.race is not None and (self.race.running is not None or self.race.request is None):
            self._end_race()

    def _end_race(self) -> None:
        self._limit.stop()
        if self.race is not None:
            self.race, self._note = None, ""
            self.refresh()


def _is_missing(rung: Rung) -> bool:
    """Return whether a rung could run on a machine with the device."""
    return bool(rung.obstacle) and not rung.gap


def _folds(entries: list[KnownRung], wanted: Wanted | None) -> dict[Device, str]:
    """Return the lines over the levels of a missing GPU and of the emulated one."""
    folds = {}
    missing = [entry for entry in entries if _is_missing(entry.rung)]
    if missing:
        folds[missing[0].rung.place.device] = _fold_of_missing(missing, wanted)
    emulated = [entry.rung for entry in entries if entry.rung.place.device is Device.EMULATED]
    if emulated:
        title = f"{emulated[0].device}: {len(emulated)} levels, not timed"
        folds[Device.EMULATED] = f"{title}\n{_EMULATED}" if missing else title
    return folds


def _fold_of_missing(missing: list[KnownRung], wanted: Wanted | None) -> str:
    """Return the line over the levels of a missing device, and a second one for recorded times."""
    device = missing[0].rung.device
    entry = next((entry for entry in missing if entry.figure is not None), None)
    if wanted is None or entry is None or entry.figure is None:
        return f"No {device} here: {len(missing)} levels"
    figure = entry.figure
    other = entry.other_settings
    settings = f"⚠ Other settings: {other}" if other else wanted.describe(figure)
    heading = f"No {device}: recorded on {figure.card}, {figure.date}\n{settings}"
    if not entry.per_million:
        return heading
    many, whole = ("megapixel", "picture") if len(wanted.shape) == 2 else ("megavoxel", "volume")
    return f"{heading}\nTimes for one {many}, not for this {whole}"


def _brief(remark: str) -> str:
    """Return a remark for a line that has little room."""
    brief = remark.removesuffix(" Click to run it.").removeprefix("Left out: ").rstrip(".")
    return brief.replace("Stopped after", "stopped after")
