"""The filter browser at work: thumbnails for all filters, while nothing else needs the processor.

    picture, view, settings or filter change -> the sketch in progress is given up
    other work begins -> it takes the place of the sketch, see `Tasks`
    quiet for 0.4 s -> one sketch after the other, those in view first; the latest picture wins
    code that is not compiled yet -> the helper process, then the sketch

Each of these events leads to `_look`, which decides by the state as it is then. Where something is
in the way that no event ends, it looks again.

With Live off, nothing is computed without Run, and thumbnails are not either.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.durations import about
from kernelscope.base.errors import AppError
from kernelscope.engine.control import CancelToken
from kernelscope.engine.step import Step
from kernelscope.engine.worker import Job
from kernelscope.gui.model import sketches
from kernelscope.gui.model.filter_groups import by_category
from kernelscope.gui.model.sketches import Sketch, Sketches, ViewedPicture, kind_of_sketch, sketch
from kernelscope.gui.session.canvas_view import DRAWN, SEEN
from kernelscope.gui.session.session import FILTER, KIND, OF_SETTINGS
from kernelscope.gui.session.subject import INPUT, SHOWN, Fields
from kernelscope.gui.viewer.layer import as_qimage
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.live import Live
from kernelscope.gui.work.helper import Helper
from kernelscope.gui.work.tasks import Priority, Task
from kernelscope.images.volume import Volume

QUIET_MS = 400
"""Without a change for so long, thumbnails are computed: twice the rest of a live gesture."""

COMPILING_MS = 2000
"""The helper loads code in milliseconds, once it has started: if it takes longer, it compiles."""

_DISTURBING = OF_SETTINGS | {INPUT, SHOWN, SEEN}
"""Changes after which something else needs the processor, or other thumbnails are wanted."""

_PROBLEM, _SLOW, _COMPILING, _WAITING = "–", "slow", "compiling…", "waiting…"
"""Texts in place of a thumbnail; the tooltip has the reason."""

_ONCE = "Its code is compiled, which happens once on a computer and takes up to 20 s."
_QUEUED = "Others come first."
_FAILED = "There is no thumbnail: its code could not be prepared in the background."


class FilterShelf(QObject):
    """Fills the browser, keeps its thumbnails up to date, and switches to the filter chosen."""

    draws = True  # whether thumbnails are computed at all

    def __init__(self, frame: Frame, live: Live) -> None:
        super().__init__(frame)
        self._frame = frame
        self._dock = frame.docks[DockName.FILTERS]
        self.browser, self._session, self._runner = frame.filters, frame.session, live.runner
        self._live = live
        self._sketches = Sketches()
        self._scene: ViewedPicture | None = None
        self._task: Task | None = None
        self._compiled: set[str] = set()  # kinds of sketches whose code is in the cache
        self._tried: set[str] = set()  # kinds that the helper was asked for
        self._orders: list[str] = []  # those it has not answered yet; it works at the first
        self.compiles = QTimer(self, singleShot=True, interval=COMPILING_MS)
        self.compiles.timeout.connect(self._show_waiting)
        self.helper = Helper(sketches.__name__, self)
        self.helper.answered.connect(self._on_compiled)
        self.helper.ended.connect(self._on_helped)
        self._quiet = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._quiet.timeout.connect(self._look)
        self.browser.adopted.connect(self._session.set_filter)
        self._session.follow(self._on_session)
        live.refreshed.connect(self._on_live)
        self._dock.visibilityChanged.connect(lambda _: self.disturb())
        self.browser.search.textChanged.connect(lambda _: self.disturb())
        self._on_session(frozenset({KIND, FILTER}))

    def close(self) -> None:
        """Compute nothing any more: the window closes."""
        self.draws = False
        self._quiet.stop()
        self.compiles.stop()
        self._give_up()
        self.helper.close()

    @Action("findFilter", "&Find Filter…", "Ctrl+F", label="Browse", help="window#finding-a-filter")
    def find(self) -> None:
        """Search the filters by name, category or another word."""
        self._dock.show()
        self._dock.raise_()
        self.browser.focus_search()

    def _on_session(self, fields: Fields) -> None:
        if KIND in fields:
            self.browser.set_groups(by_category(self._session.kind))
        if FILTER in fields:
            self.browser.show_current(self._session.filter_id)
        if DRAWN in fields:
            self._on_display()
        if fields & _DISTURBING:
            self.disturb()

    def disturb(self) -> None:
        """Give up the thumbnail in progress: something else needs the processor."""
        self._give_up()
        self._quiet.start()

    def _give_up(self) -> None:
        if self._task is not None:
            self._task.drop()
            self._task = None

    def _on_live(self) -> None:
        if not self._draws:
            self._give_up()
        elif self._task is None and not self._quiet.isActive():
            self._quiet.start()

    def _on_display(self) -> None:
        """Draw the thumbnails that are there with another level, gamma or colours."""
        scene = self._scene
        if scene is not None:
            for step in self._all():
                known = self._sketches.of(scene, step)
                if known is not None:
                    self._show(scene, step, known)

    # --- one after the other ---

    @property
    def idle(self) -> bool:
        """Whether every thumbnail is there, or will not come."""
        return self._task is None and not self._quiet.isActive() and not self.helper.busy

    @property
    def _draws(self) -> bool:
        """Whether thumbnails are wanted; an event comes when that changes."""
        return self.draws and self._session.live and self._dock.isVisible()

    def _look(self) -> None:
        """Compute the next thumbnail, unless something else is under way."""
        if self._task is not None or not self._draws:
            return
        subject, tasks = self._session.subject, self._runner.tasks
        if subject.is_behind or not self._live.resting or not tasks.is_free(Priority.SKETCH):
            self._quiet.start()
            return
        scene = self._scene = subject.scene()
        if scene is None:
            return
        missing: list[Step] = []
        for step in self._all():
            known = self._sketches.of(scene, step)
            if known is not None:
                self._show(scene, step, known)
            elif kind_of_sketch(scene, step) in self._compiled:
                self._draw(scene, step)
                return
            else:
                missing.append(step)
        self._compile(scene, missing)

    def _all(self) -> list[Step]:
        """Return the filters with their settings, those in view first."""
        listed, seen = self.browser.listed, set(self.browser.in_view)
        found = []
        for filter_id in sorted(listed, key=lambda id_: id_ not in seen):
            try:
                found.append(self._session.step_of(filter_id))
            except AppError as error:  # its form has something else than a value
                self.browser.show_sketch(filter_id, None, _PROBLEM, error.message)
        return found

    def _draw(self, scene: ViewedPicture, step: Step) -> None:
        def work(_: object, token: CancelToken, report: Callable[[Sketch], None]) -> None:
            backend = CpuBackend(threads=1)
            try:
                report(sketch(scene, step, backend, token))
            finally:
                backend.close()

        def keep(made: Sketch) -> None:
            self._sketches.keep(scene, step, made)
            self._show(scene, step, made)

        def failed(error: Exception) -> None:
            keep(Sketch(problem=str(error)))
            self._on_ended()

        job = Job(work, "thumbnail", live=True)
        task = self._task = self._runner.tasks.submit(job, Priority.SKETCH)
        task.reported.connect(keep)
        task.failed.connect(failed)
        task.finished.connect(self._on_ended)
        task.stopped.connect(self.disturb)

    def _on_ended(self, *_: object) -> None:
        self._task = None
        self._look()

    def _show(self, scene: ViewedPicture, step: Step, made: Sketch) -> None:
        if made.planes is not None:
            volume = scene.anchor if isinstance(scene.anchor, Volume) else None
            display = self._session.subject.display_of(scene.image, volume)
            image = as_qimage(made.planes, display)
            self.browser.show_sketch(step.filter.id, image, "", f"Shown: {made.place}.")
            return
        if made.cost is None:
            self.browser.show_sketch(step.filter.id, None, _PROBLEM, made.problem)
            return
        cost = f"≈ {about(made.cost)}"
        tip = f"{made.problem} The whole picture should take {cost} on this CPU."
        self.browser.show_sketch(step.filter.id, None, f"{_SLOW}\n{cost}", tip)

    # --- code that is not compiled yet ---

    def _compile(self, scene: ViewedPicture, missing: list[Step]) -> None:
        """Let the helper compile for thumbnails; each is asked for once."""
        orders: dict[str, str] = {}
        for step in missing:
            kind = kind_of_sketch(scene, step)
            if kind not in self._tried:
                orders.setdefault(kind, sketches.order(scene, step))
        if orders and not self.helper.busy:
            self._tried.update(orders)
            self._orders = list(orders)
            self.compiles.start()
            self.helper.start(orders.values())
        self._show_waiting()

    def _show_waiting(self) -> None:
        """Give the reason in place of each thumbnail that is not there yet."""
        scene = self._scene
        if scene is None or not self._orders:
            return
        compiles = not self.compiles.isActive()
        for step in self._all():
            kind = kind_of_sketch(scene, step)
            if kind in self._compiled or self.browser.image(step.filter.id) is not None:
                continue
            first = compiles and kind == self._orders[0]
            note, tip = (_COMPILING, _ONCE) if first else (_WAITING, _QUEUED)
            self.browser.show_sketch(step.filter.id, None, note, tip)

    def _on_compiled(self, kind: str) -> None:
        self._compiled.add(kind)
        if kind in self._orders:
            self._orders.remove(kind)
            self.compiles.start()
        if not self._quiet.isActive():
            self._look()

    def _on_helped(self) -> None:
        """Ask for the rest: settings may have changed meanwhile."""
        scene, failed, self._orders = self._scene, self._orders, []
        self.compiles.stop()
        for step in self._all() if failed else ():
            if scene is not None and kind_of_sketch(scene, step) in failed:
                self.browser.show_sketch(step.filter.id, None, _PROBLEM, _FAILED)
        if not self._quiet.isActive():
            self._look()
