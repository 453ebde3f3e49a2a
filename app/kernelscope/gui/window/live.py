"""Live filtering: the output follows the settings without Run.

    a setting, the picture or the view changes
        -> touch: nothing waits in a queue, the latest settings win
        -> the visible part, or a piece of it where that is slow      badge: preview
        -> 0.2 s without a change: the whole result, if it is quick   badge: exact
           else all of the visible part, in two steps where that is slow
           a slow filter waits for Run, and the badge says how long that takes

Live results are not listed among the runs: they ran once, next to everything else. A gesture, which
ends when the user pauses, is one step for Undo.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from kernelscope.base.durations import about, duration
from kernelscope.base.errors import AppError
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings, alike
from kernelscope.engine.result import Result
from kernelscope.engine.run import expected
from kernelscope.gui.docks.headline import FreshnessBadge
from kernelscope.gui.model.freshness import (
    RESTING,
    Freshness,
    Pace,
    freshness,
    is_worthwhile,
    next_run,
    run_to_measure,
)
from kernelscope.gui.session.canvas_view import SEEN, SLICES
from kernelscope.gui.session.session import KIND, PLACES, RECORDED, SETTINGS, Session
from kernelscope.gui.session.subject import INPUT, MOMENT, PART, RESULT, REVERTED, SHOWN, Fields
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.work.background import Background, Later
from kernelscope.gui.work.tasks import Priority, Task
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

_logger = logging.getLogger(__name__)

REST_MS = 200  # a pause: so long without a change

_PATIENCE = 0.15
"""Seconds after which a run for settings that have changed is cancelled; a quicker one may end, or
a slider that moves would never show anything."""

COMPILING_SECONDS = 2.0
"""A live run that prepares its code for this long compiles: loading it is quicker."""

_WATCH_MS = 500

_LARGE = 1 << 22
"""Pixels from which copying a result from a GPU takes longer than reducing it there."""

_SETTING = "live"

_UNASKED = (Priority.LIVE, Priority.ERRAND)  # runs whose progress the badge shows

_COMPARED = (Device.AUTO.value, Device.CPU.value)
"""Devices whose cost is shown beside the time of a recorded GPU."""


def _is_of(request: Request, wanted: Request) -> bool:
    """Return whether `request` is `wanted`, or shows the pace of one of its steps."""
    steps = wanted.step, *(each.step for each in wanted.then)
    return alike(request, wanted) or (len(steps) > 1 and request.step in steps)


class Live(QObject):
    """Computes the output as the settings change, and keeps the badge true, also while it is off.

    - `rest`: ends a gesture: it starts again with each change, and runs out when the user pauses.
    - `last`: the last live result, of the whole or of a part.
    """

    refreshed = Signal()
    """The output on the screen, or how it relates to the settings, may have changed. The badge has
    changed at once; this comes once for several changes, after the output is painted."""

    def __init__(
        self,
        runner: Runner,
        session: Session,
        background: Background,
        settings: Settings,
        badge: FreshnessBadge,
    ) -> None:
        super().__init__(runner)
        self.runner, self.session, self.background = runner, session, background
        self._settings = settings
        self.badge = badge
        session.live = settings.text(_SETTING, "on") == "on"
        self.pace = Pace()
        self._announced = False  # whether the badge says that the run compiles
        self._watch = QTimer(self, interval=_WATCH_MS)
        self._watch.timeout.connect(self._on_watch)
        self._resting = True
        self._same_step = False  # whether the gesture that goes on has made a step for Undo already
        self._estimates = runner.estimates
        self._estimates.ended.connect(self._on_estimated)
        self.last: Result | None = None  # the last live result, of the whole or of a part
        self._failed: tuple[Request, str] | None = None
        """The last settings that could not be computed, and why."""
        self._refreshed = Later(self.refreshed.emit, self)
        self.rest = QTimer(self, singleShot=True, interval=REST_MS)
        self.rest.timeout.connect(self._on_rest)
        self._task: Task | None = None  # the live run in progress
        self._group: list[Request] = []
        """The request in progress, and those that do the same with the other channels of a
        composite: they are drawn at once, or the output would be shown in parts."""
        self._made: list[Result] = []  # results of the first of the group
        self._measures = False  # whether the time of the run in progress counts most
        self._begun: Task | None = None  # the first one of the group
        self._completed: object = None
        """The result and the channels that were filtered after it, once."""
        self._overtaken = False  # whether code has become ready since it began
        runner.tasks.began.connect(self._on_task_began)
        runner.tasks.ended.connect(self._on_task_ended)
        runner.changed.connect(self._follow)
        runner.finished.connect(self._learn)
        runner.pace = self._expect_run
        session.follow(self._on_session, early=True)  # the run begins before the rest is drawn

    def close(self) -> None:
        """Compute nothing any more: the window closes."""
        self.session.live = False
        self.rest.stop()
        self._refreshed.cancel()
        self._stop()

    @Action("live", "&Live", "Shift+F5", ticked=lambda live: live.session.live)
    def toggle(self) -> None:
        """Compute the output as the settings change; slow filters wait for Run."""
        on = self.session.live = not self.session.live
        self._settings.set_text(_SETTING, "on" if on else "off")
        if not on:
            self._stop()
        self.touch()

    @property
    def resting(self) -> bool:
        """Whether the settings have not changed for a moment, and nothing is computed."""
        return self._resting and self._at_work is None

    # --- changes ---

    def _on_session(self, fields: Fields) -> None:
        if MOMENT in fields:
            self._leave()  # its result is drawn anew
        elif SETTINGS in fields:
            self._uncover()
        if fields & {SETTINGS, PLACES, INPUT, SLICES, KIND}:
            self.touch()
        elif fields & {MOMENT, RESULT, REVERTED, SHOWN, SEEN, RECORDED}:
            self._follow()
        if fields & {SHOWN, PART}:
            self._refreshed.after_paint()

    def _has(self, wanted: Request) -> bool:
        """Return whether the whole result of the settings is there, if only about to be drawn."""
        result = self.session.subject.result
        return result is not None and alike(result.request, wanted)

    def _uncover(self) -> None:
        """Show the result again whose settings are back, where a part with others covers it."""
        subject = self.session.subject
        part = subject.previewed
        wanted = subject.wanted() if part is not None else None
        if part and wanted and self._has(wanted) and not alike(part, wanted):
            subject.note(RESULT)

    def touch(self) -> None:
        if self._resting:
            self._resting, self._same_step = False, False
        self.rest.start()
        self._follow()

    def _follow(self) -> None:
        wanted = self.session.subject.wanted()
        self._advance(wanted)
        self.refresh(wanted)

    def _advance(self, wanted: Request | None) -> None:
        """Compute the next part, unless something is under way that may end first."""
        subject = self.session.subject
        if not (self.session.live and self.runner.tasks.is_free(Priority.LIVE)):
            return
        if subject.is_behind:
            return  # the view shows another input still, and would take a part for its own
        if self._failed is not None and wanted is not None and alike(self._failed[0], wanted):
            return
        request = self._running
        if self._task is not None and request is not None:
            if wanted is None or (alike(request, wanted) and subject.shows_part(request)):
                return
            begun = self._begun or self._task
            if time.monotonic() - begun.begun < _PATIENCE:
                return  # its end starts the next one
            self._stop()
        if wanted is None:
            return
        if self._estimates.begin(wanted):
            self._run_next(wanted)

    def _run_next(self, wanted: Request) -> None:
        subject = self.session.subject
        shown = subject.shown
        known = shown is not None and alike(shown, wanted)
        if self._has(wanted):  # it is being drawn
            self._complete(wanted)
            return
        expect, parts = self._expecting(wanted), subject.visible_parts(wanted)
        if known and shown and shown.stand_in and self.pace.is_uncompiled(wanted):
            if shown.region is None or not parts:
                return  # the code is on its way
            expect = self._expect_part
        reduction = subject.reduction() if self._on_card(wanted) else 1
        # Every plane of a volume has a part before one has all that is in view.
        looks: list[tuple[bool, Region | Box | None]]
        firsts = subject.first_parts(wanted) or (None,)
        looks = [(False, each) for each in firsts]
        earlier = shown.region if self._resting and shown is not None and not known else None
        if self._resting:
            looks += [(True, each) for each in (*firsts, *(parts or (None,)))]
        repeats = False
        for looking, visible in looks:
            request = next_run(
                wanted,
                visible,
                expect,
                resting=self._resting,
                looking=looking,
                reduction=reduction,
            )
            if request is None:
                continue
            before, part = self._part_shown(request), request.region
            if (
                not looking
                and part != visible
                and isinstance(part, Region)
                and isinstance(earlier, Region)
                and earlier.contains(part)
            ):
                continue  # the view would shrink to it, and grow again
            if (
                looking
                and part not in (None, visible)
                and not (
                    visible in firsts
                    and isinstance(part, Region)
                    and (
                        part.contains(before)
                        if isinstance(before, Region)
                        else isinstance(earlier, Region)
                    )
                )
            ):
                continue  # another part would take turns with the first one for ever
            if is_worthwhile(before, part, visible):
                break
        else:
            # Nothing new would be shown, but the time of the whole may be a mistake.
            again = (run_to_measure(wanted, each, self.pace) for each in parts or (None,))
            request = next(filter(None, again), None) if self._resting else None
            repeats = True
        if request is None:
            return
        if known and shown is not None and shown.region is None and request.reduction > 1:
            return
        measures = repeats or expect(request) is None
        self._submit(request)
        self._measures = measures

    def _expecting(self, wanted: Request) -> Callable[[Request], float | None]:
        """Return a function of the seconds that a request takes for all channels of a composite."""
        count = 1 + len(self.session.subject.requests_beside(wanted))

        def expect(request: Request) -> float | None:
            seconds = self.pace.expect(request)
            return None if seconds is None else count * seconds

        return expect

    def _complete(self, wanted: Request) -> None:
        """Filter the other channels of a composite as the one in front was, if that is quick."""
        subject, result = self.session.subject, self.session.subject.result
        if result is None or not self._resting or not subject.lacks_channels():
            return
        others = subject.requests_beside(wanted)
        key = result, [each.source.title for each in others]
        seconds = self.pace.expect(wanted) or result.seconds
        if others and key != self._completed and len(others) * seconds <= RESTING:
            self._completed = key
            self._submit(wanted, result)

    def _part_shown(self, request: Request) -> Region | Box | None:
        """Return the part that need not be computed; any, once there is code, of a stand-in."""
        shown = self.session.subject.shown
        replaced = shown is not None and shown.stand_in and not self.pace.is_uncompiled(request)
        return None if replaced else self.session.subject.part_shown(request)

    def _submit(self, request: Request, known: Result | None = None) -> None:
        """Run a request, unless its result is `known`, and those of the channels beside it."""
        self._failed = None
        self._overtaken = self._measures = False
        # A preview by another method is one of a picture or of slices.
        hidden = request.region is None and request.source.kind is Kind.VOLUME
        self._group = [
            replace(each, live=True, stand_in=None if hidden else "")
            for each in (request, *self.session.subject.requests_beside(request))
        ]
        self._made = [] if known is None else [known]
        self._begun = None
        self._submit_next()

    def _submit_next(self) -> None:
        request = self._group[len(self._made)]
        task = self._task = self.runner.tasks.submit(request, Priority.LIVE)
        self._begun = self._begun or task
        task.finished.connect(self._on_finished)
        task.failed.connect(self._on_ended)
        task.stopped.connect(self._on_ended)

    @property
    def _running(self) -> Request | None:
        return self._group[0] if self._task is not None else None

    @property
    def _at_work(self) -> Task | None:
        """The run in progress that no one started: of the settings, or of a step before them."""
        task = self.runner.tasks.current
        return task if task is not None and task.priority in _UNASKED else None

    @property
    def compiling(self) -> bool:
        task = self._at_work
        if task is None or time.monotonic() - task.begun < COMPILING_SECONDS:
            return False
        return self.runner.tasks.live_stage() == "compile"

    def _on_watch(self) -> None:
        """Follow the stage of a run that takes long; shorter ones only end."""
        if self._at_work is None:
            self._watch.stop()
        elif self.compiling != self._announced:
            self.refresh(self.session.subject.wanted())

    def _on_card(self, wanted: Request) -> bool:
        """Return whether a large result is on a GPU, as far as the last one shows."""
        large = math.prod(wanted.whole_shape[:2]) > _LARGE
        return large and self.last is not None and self.last.device == Device.GPU

    def _on_rest(self) -> None:
        self._resting = True
        if self.session.live:
            self.session.subject.settle(as_step=not self._same_step)
        self._follow()

    def _leave(self) -> None:
        """End the gesture, because another moment is about to be shown."""
        self._stop()
        self._same_step = False

    def _stop(self) -> None:
        if self._task is not None:
            self._task.drop()
            self._task = None

    def end_gesture(self) -> None:
        """Compute at once as after a pause: a value was chosen, which nothing moves through."""
        self._stop()
        self.rest.stop()
        self._on_rest()

    # --- answers ---

    def _on_task_began(self, task: Task) -> None:
        if task.priority in _UNASKED:
            self._watch.start()
        if task.priority is Priority.ERRAND:
            self.refresh(self.session.subject.wanted())

    def _on_task_ended(self, task: Task) -> None:
        if task.is_job and task.priority > Priority.ERRAND:  # which was in the way
            self.touch()
        elif task.priority is Priority.ERRAND:
            self._follow()

    def record(self, request: Request, result: Result) -> None:
        """Learn how long a run took, or each of its steps."""
        for part in result.parts[len(request.done) :] or (replace(result, request=request),):
            self.pace.record(part.request, part.seconds, uncompiled=part.uncompiled)

    def use_compiled(self) -> None:
        """Compute with code that has become ready, also a shown result that did without."""
        self.pace.forget_uncompiled()
        self._overtaken = True
        subject = self.session.subject
        shown, result, wanted = subject.shown, subject.result, subject.wanted()
        subject.previews.drop_stand_ins()  # those in view stay until the output is there
        early = result is not None and result.uncompiled
        idle = self.session.live and self._at_work is None
        if early and idle and wanted is not None and self._has(wanted):
            self._same_step = True
            self._submit(wanted)
        elif idle and wanted and shown is not None and shown.stand_in and alike(shown, wanted):
            self._submit(replace(wanted, region=shown.region))
            self.refresh(wanted)
        else:
            self._follow()

    def _expect_run(self, request: Request) -> float | None:
        """Return the seconds that a run should take; none where only a bound is known."""
        if self.pace.is_uncompiled(request):
            return None
        measured = self._measured(request)
        unknown = measured is None and self.pace.is_bound(request)
        return None if unknown else measured or self.pace.expect(request)

    def _measured(self, request: Request) -> float | None:
        """Return the seconds that earlier runs predict, also those of other sessions."""
        return expected(request, self.session.backends, self.runner.tasks.costs)

    def _expect_part(self, request: Request) -> float | None:
        """Return the seconds for a part; none for the whole, which has to wait for its code."""
        return None if request.region is None else self.pace.expect(request)

    def _learn(self, result: Result) -> None:
        self.pace.record(result.request, result.seconds)

    def _on_finished(self, result: Result) -> None:
        request, self._task = self._running, None
        if request is None:
            return
        self.record(self._group[len(self._made)], result)
        self._made.append(result)
        if len(self._made) < len(self._group):
            self._submit_next()
        else:
            self._show(request)

    def _show(self, request: Request) -> None:
        """Show the result of a request, with those of the channels beside it."""
        result, *beside = self._made
        self.last = result
        subject = self.session.subject
        wanted = subject.wanted()
        # While a slider moves, results for where it was are better than none; the badge says so.
        useful = wanted is not None and (
            alike(request, wanted)
            or not (
                self._resting
                or self._has(wanted)
                or request.step.filter is not wanted.step.filter
                or request.then != wanted.then  # it showed the pace of a step
            )
        )
        before = subject.result.request if subject.result is not None else None
        if before is not None and not before.live and alike(before, request):
            useful = False  # Run has overtaken it
        shown = False
        if before is result.request:
            subject.keep_beside(result, beside)
        elif useful and request.source is subject.source:
            if request.region is None and request.reduction == 1 and not result.request.stand_in:
                first = subject.result is None  # of this input, which is a step already
                settings = RunSettings.of(request)
                subject.keep_beside(result, beside)
                subject.show_output(result, settings, same_step=self._same_step)
                self._same_step = not first
                shown = True  # which was followed already
            elif is_worthwhile(self._part_shown(request), request.region, request.region) and not (
                self._measures and self._shrinks_to(request)
            ):
                subject.show_preview(result, beside)  # or its time alone counts
        if result.uncompiled and self._overtaken:
            self.use_compiled()
        elif not shown:
            self._follow()

    def _on_estimated(self, error: Exception | None) -> None:
        if error is not None and self._task is None:
            self._on_ended(error)
        else:
            self._follow()

    def _shrinks_to(self, request: Request) -> bool:
        """Return whether a larger preview, of other settings, is in view in place of a part.

        A run that begins now would leave the part there, and nothing else, until its end.
        """
        before = self.session.subject.previewed
        if not self._resting or before is None or alike(before, request):
            return False
        old, new = before.region, request.region
        in_view = new in self.session.subject.visible_parts(request)
        if not (isinstance(old, Region) and isinstance(new, Region)):
            return False
        return old.contains(new) and not in_view

    def _on_ended(self, error: Exception | None = None) -> None:
        """Continue after a run that gave no result."""
        ended, self._task = self._running, None
        wanted = self.session.subject.wanted()
        if error is not None and wanted is not None and (ended is None or _is_of(ended, wanted)):
            if not isinstance(error, AppError):
                _logger.error("Live filtering failed", exc_info=error)
            self._failed = wanted, str(error)
            if ended is not None and self._made:  # another channel of a composite
                self._show(ended)
                return
        self._follow()

    # --- the badge ---

    def refresh(self, wanted: Request | None) -> None:
        subject = self.session.subject
        shown = subject.shown
        fresh = freshness(shown, wanted)
        self.badge.show_freshness(fresh, self._details(fresh, shown, wanted))
        at_work = (self.runner.busy, self._at_work is not None, self._estimates.pending)
        self._announced = self.compiling
        subject.note_work(at_work=any(at_work), compiling=self._announced)
        self._refreshed.soon()

    def _details(
        self, fresh: Freshness | None, shown: Request | None, wanted: Request | None
    ) -> str:
        if wanted is None or fresh is Freshness.EXACT:
            return ""
        failed = self._failed
        if failed is not None and alike(failed[0], wanted):
            return failed[1]
        part = ""
        if fresh in (Freshness.PREVIEW, Freshness.PART) and shown is not None:
            part = self.session.subject.describe_part(shown)
            if shown.stand_in and self.pace.is_uncompiled(wanted):
                part += " while the code still compiles"
                return part if self.runner.busy else f"{part}, Run (F5) computes the whole"
            if shown.stand_in and self._at_work is not None:
                return f"{part}, computing the output…"
        if self._estimates.pending:
            return part or "estimating…"
        if self.runner.busy or self._at_work is not None or not self._resting:
            return part or ("compiling (first use only)…" if self.compiling else "computing…")
        return ", ".join(filter(None, (part, self._cost(wanted))))

    def _cost(self, wanted: Request) -> str:
        # Without compiled code it takes ten to a thousand times as long.
        compiled = not self.pace.is_uncompiled(wanted)
        measured = self._measured(wanted) if compiled else None
        seconds = (measured or self.pace.expect(wanted)) if compiled else None
        if seconds is None:
            return (
                "Run (F5) computes it" if not self.session.live else "Run (F5) computes the whole"
            )
        devices = {
            Device.CPU: "on the CPU",
            Device.GPU: "on the GPU",
            Device.EMULATED: "to emulate",
        }
        where = devices.get(wanted.options.device, "here")
        bounded = measured is None and self.pace.is_bound(wanted)
        bound = "less than" if bounded else "about"
        text = f"Run (F5): {bound} {about(seconds)} {where}"
        slow = wanted.options.device.value in _COMPARED and seconds >= RESTING
        return text + self._elsewhere(wanted, seconds) if slow else text

    def _elsewhere(self, wanted: Request, seconds: float) -> str:
        """Return the time on a recorded machine, if it is known and much shorter."""
        found = self.session.recorded.elsewhere(wanted)
        if found is None or found.seconds > seconds / 2:
            return ""
        scaled = f", scaled from {found.figure.row.size}" if found.scaled else ""
        recorded = f"recorded {found.figure.date}{scaled}"
        takes = f"{'≈ ' if found.scaled else ''}{duration(found.seconds)}"
        return f", {takes} on {found.figure.card} ({recorded})"
