"""The main window: one page, the settings next to it, and everything that connects them.

    menus       call the methods of the window and of its parts that declare an action
    page        input and output, their history and reference: pictures or volumes
    panel       filter, parameters, device             --> runner --> worker
    runner      runs and recipes; the bar under the settings
    companions  kernel viewer, benchmark, dialogs
    files       opening and saving

The window knows neither pictures nor volumes: the session has the one in front. Its widgets are
made and placed by `Frame`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QToolButton, QWidget

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.durations import about
from kernelscope.base.text import enumerated
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.context import RunContext
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.files import SAMPLES
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.documents import describe_memory
from kernelscope.gui.model.gallery import LONG_SECONDS
from kernelscope.gui.model.ladder import AUTO
from kernelscope.gui.session.session import FILTER, FIRST_FILTER, KIND, OF_SETTINGS
from kernelscope.gui.session.subject import (
    INPUT,
    MOMENT,
    REFERENCE,
    RESULT,
    REVERTED,
    SETTLED,
    SHOWN,
    Fields,
    Savable,
)
from kernelscope.gui.tools.file_dialogs import Pictures
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.commands import Action, choice
from kernelscope.gui.widgets.parts import Watcher
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window import menus
from kernelscope.gui.window.actions import MenuKeys
from kernelscope.gui.window.companions import Companions
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.files import Files, accept_copy
from kernelscope.gui.window.filter_shelf import FilterShelf
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.last_session import LastSession, restore_layout
from kernelscope.gui.window.levels import LevelRunner
from kernelscope.gui.window.live import Live
from kernelscope.gui.window.measuring import Measuring
from kernelscope.gui.window.open_pictures import OpenPictures
from kernelscope.gui.window.run_shelf import RunShelf
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.window.steps import StepCommands
from kernelscope.gui.work.background import Later, Relay
from kernelscope.gui.work.tasks import Tasks
from kernelscope.images.image import Image
from kernelscope.images.reduction import compile_for
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind

_logger = logging.getLogger(__name__)

_GREETING = (
    "Change a setting: the output follows. F5 measures a run, Ctrl+Shift+H compares nine values."
)
"""The first line that a new user sees in the status bar."""

_OF_ACTIONS = frozenset({KIND, FILTER, MOMENT, REFERENCE, RESULT, REVERTED, SETTLED})
"""Changes after which other actions are possible."""

_OFFER_LETTERS = 44  # of the names in the tool bar: all its buttons fit at 1280 pixels

_PLAIN = "plain"  # name of the setting

_SAVE, _SAVE_ALL = "Save…", "Save Filtered Volumes…"

_PATIENCE = 2.0
"""Seconds that closing waits for a run to stop; only a kernel being compiled takes longer."""


class MainWindow(Frame):
    """Connects the widgets of the `Frame` with the runner, files and commands."""

    _close_when_saved = _leaves = False
    _quits_after: Savable | None = None  # which is being saved on the way out
    _cold = False  # whether no filter has been compiled for yet
    _greets = False  # whether the first picture is still to be announced, with a hint

    def __init__(
        self, backends: Mapping[str, Backend], settings: Settings, costs: Costs | None = None
    ) -> None:
        super().__init__(backends, settings)
        costs = costs or Costs()
        self.runner = Runner(
            Tasks(backends, self, costs),
            self.session,
            self._run_bar,
            self.background,
            self.show_status,
        )
        self.files = Files(self, self.runner, lambda opened: self.open_pictures.open_one(opened))
        self.open_pictures = OpenPictures(self, self.files.find_truth)
        self.last_session = LastSession(self, settings, self.session, self.open_pictures)
        self.companions = Companions(
            self,
            self.runner,
            costs,
            order_phantom=self.files.make_phantom,
            memory=self._describe_memory,
            in_front=lambda: self.levels.in_front,
            opened=self.open_pictures.files,
            end_gesture=lambda: self.live.end_gesture(),
        )
        self.live = Live(self.runner, self.session, self.background, settings, self.headline.badge)
        self.measuring = Measuring(self, self.live)
        self.run_shelf = RunShelf(self, self.show_again)
        self.runner.finished.connect(self.run_shelf.add)  # first: the ladder reads the list of runs
        self.files.whole_file.done.connect(self.run_shelf.add)
        self.levels = LevelRunner(self.ladder, self.session, self.runner, self.background)
        self.ladder.add_action(self.actions_["runLevels"])
        before: QWidget = self.ladder.rungs
        for name in ("runLevelsButton", "runButton", "cancelButton"):  # before the tool bar
            button = self.findChild(QToolButton, name)
            assert button is not None
            self.setTabOrder(before, button)
            before = button
        self.filter_shelf = FilterShelf(self, self.live)
        self._code_ready = Relay(self._on_code_ready)
        for backend in backends.values():
            if isinstance(backend, CpuBackend):
                backend.on_ready = self._code_ready.send
        self.steps = StepCommands(self.steps_panel, self.live, self.actions_)
        self._menu_keys = MenuKeys(self, self.actions_.values())
        self._connect()
        restore_layout(self, settings)
        self._show_plain()
        self._on_session(frozenset({KIND, FILTER}))

    # --- commands of the menus ---

    def find_gpu(self) -> None:
        backends = self.backends

        def look() -> dict[str, Availability]:
            return {backend.id: backend.availability() for backend in backends.values()}

        self.background.start("gpu", look, self._on_availability, self.report_bug)

    def show_again(self, result: Result, settings: RunSettings) -> None:
        subject = self.session.subject_of(result.request.source)
        with subject.changing():
            self.open_pictures.bring_holder_of(result.request.source)
            self.session.bring_to_front(subject)
            subject.show_again(result, settings)
            self.session.show(settings)

    @choice(
        "view",
        lambda window: None if window.session.subject.map else window.session.view,
        commands.NOTHING,
        Action(
            "viewOutput",
            "Show &Output",
            "F2",
            tip="The result of the run",
            argument="output",
            label="Output",
        ),
        Action(
            "viewResidual",
            "Show &Residual",
            "F3",
            tip="Output minus input: the changes that the filter made",
            argument="residual",
            label="Residual",
        ),
        Action(
            "viewDifference",
            "Show &Difference",
            "F4",
            tip="Output minus reference: the remaining error",
            need=commands.REFERENCE,
            argument="difference",
            label="Difference",
        ),
    )
    def set_view(self, name: str) -> None:
        """Show the output, or its difference to the input or the reference."""
        self.session.set_view(View(name), self._view_bar.gain)
        self.actions_.tick(self)

    def _on_gain(self) -> None:
        self.session.set_view(self.session.view, self._view_bar.gain)

    @Action("switchKind", "Picture or &Volume", "Ctrl+Shift+V", need=commands.OTHER, help="volumes")
    def switch_kind(self) -> None:
        """Switch between the open volume and the open picture."""
        if self.session.other.source is not None:
            self.session.bring_to_front(self.session.other)

    @Action("noiseMap", "Show &Noise Map", "F6", need=commands.VOLUMES, help="volumes")
    def show_noise_map(self) -> None:
        """Sigma around each voxel of the input, of the model of noise that the filter has."""
        with dialogs.errors_shown(self):
            settings = self.session.require()
            self.show_status("Estimating the noise around each voxel…")
            self.scans.show_noise(settings, self.show_status)

    def open_first(self, path: Path | None, *more: Path) -> None:
        """Open the files, or a sample picture; then compile the code that Run will need."""
        self._cold, self._greets = True, path is None
        if path is not None and more:
            self.file_dialogs.open_all((path, *more))
            return
        if path is None:
            self._offer_last_session()
            if not self.last_session.of_sample:  # the last filter was meant for another picture
                self.session.set_filter(FIRST_FILTER)
                self.session.reset()
        self.file_dialogs.open(path or SAMPLES[0].path)

    @Action(
        "plain",
        "Plain &Window",
        "Shift+F11",
        ticked=lambda window: window.is_plain,
        synonyms=("simple", "layout", "photographer", "hide levels", "hide times"),
        help="window#a-plain-window",
    )
    def toggle_plain(self) -> None:
        """Hide levels, times and lessons, for work on pictures; filters run at the level Auto."""
        self.settings.set_text(_PLAIN, "" if self.is_plain else "on")
        if self.is_plain:
            self.session.choose_place(AUTO)
            for name in (DockName.RUNS, DockName.TIMING):
                self.docks[name].hide()
        self._show_plain()

    @property
    def is_plain(self) -> bool:
        return self.settings.text(_PLAIN) == "on"

    def _show_plain(self) -> None:
        shown, learn = not self.is_plain, self.actions_.menu(menus.LEARN)
        self.ladder.setVisible(shown)
        self.headline.show_times(shown)
        learn.menuAction().setVisible(shown)
        for tool in (learn, self.actions_["gpuInfo"]):
            self._tool_bar.offer(tool, shown)
        self._refresh_actions()

    @Action("quit", "&Quit", "Ctrl+Q")
    def quit(self) -> None:
        self.close()

    @Action("undo", "&Undo", "Ctrl+Z", need=commands.UNDO, icon="undo", help="window#live")
    def undo(self) -> None:
        self.session.subject.undo()

    @Action(
        "redo", "&Redo", "Ctrl+Shift+Z Ctrl+Y", need=commands.REDO, icon="redo", help="window#live"
    )
    def redo(self) -> None:
        self.session.subject.redo()

    @Action(
        "reuse",
        "Use &Output as Input",
        "Ctrl+U Ctrl+Return",
        need=commands.OUTPUT,
        label="Use as input",
        help="window#steps",
    )
    def use_output(self) -> None:
        """Continue from the output, for example with another filter."""
        self.page.use_output()

    @Action("inputAsReference", "Use &Input as Reference", need=commands.SOURCE)
    def use_input_as_reference(self) -> None:
        subject = self.session.subject
        if subject.source is not None:
            subject.set_reference(subject.part)

    @Action("clearReference", "C&lear Reference", need=commands.REFERENCE)
    def clear_reference(self) -> None:
        self.session.subject.set_reference(None)

    @Action("fit", "&Fit to Window", "Ctrl+0")
    def fit(self) -> None:
        """Show the whole picture."""
        self.canvas.fit()

    @Action("oneToOne", "&Actual Size (1:1)", "Ctrl+1")
    def one_to_one(self) -> None:
        """Show one pixel of the picture as one pixel of the screen."""
        self.canvas.one_to_one()

    @Action("zoomIn", "Zoom &In", "Ctrl++ Ctrl+=")
    def zoom_in(self) -> None:
        self.canvas.zoom_in()

    @Action("zoomOut", "Zoom O&ut", "Ctrl+-")
    def zoom_out(self) -> None:
        self.canvas.zoom_out()

    # --- building ---

    def _connect(self) -> None:
        self.background.settled.connect(self._on_settled)
        self.file_dialogs.saved.connect(self._on_saved)
        self.actions_["cancel"].installEventFilter(self.runner)
        self.open_pictures.changed.connect(self._refresh_actions)
        self.open_pictures.changed.connect(self.companions.follow_pictures)
        self.filters.found.connect(lambda: self.page.canvas.focus())
        for page in self.pages.values():
            page.described.connect(self._status.pixel.set_full_text)
            page.zoomed.connect(self._status.zoom.setText)
        self.panel.add_browser(self.actions_["findFilter"])
        self.docks[DockName.FILTERS].visibilityChanged.connect(lambda _: self._offer_filters())
        self.panel.estimate_wanted.connect(self.runner.estimate)
        self.session.schedule = Later(self.session.call_later, self).after_paint
        self.session.follow(self._on_session)
        self._view_bar.gain_changed.connect(self._on_gain)
        self.actions_.mark_filter(self.session.filter_id)
        parts = (part for owner in (self, self.files) for part in vars(owner).values())
        self.actions_.bind(self, *parts)
        reopening = self.actions_["reopenSession"]
        room = _OFFER_LETTERS * self.fontMetrics().averageCharWidth()
        offer, cut = self.last_session.offer, Qt.TextElideMode.ElideMiddle
        reopening.setIconText(self.fontMetrics().elidedText(offer, cut, room).replace("&", "&&"))
        self._tool_bar.offer(reopening, False)
        self.runner.changed.connect(self._refresh_actions)
        self.runner.aside_finished.connect(self.run_shelf.choose_shown)
        self.runner.finished.connect(lambda result, _: self.companions.add_result(result))
        self.runner.failed.connect(self.report)
        self.recipes.loaded.connect(self.runner.run_recipe)
        self.levels.why_wanted.connect(self.companions.show_level)
        self.levels.shown.connect(self.companions.follow_levels)
        self.run_shelf.removed.connect(self.levels.refresh)

    # --- the session ---

    def _on_session(self, fields: Fields) -> None:
        subject = self.session.subject
        if KIND in fields:
            self._status.clear_figures()
            self._show_page()
        if FILTER in fields:
            self.actions_.mark_filter(self.session.filter_id)
        if fields & OF_SETTINGS:  # show no longer how a run with other settings ended
            self._status.withdraw(self.runner.described)
        if fields & {KIND, INPUT} and subject.source is not None:
            self.setWindowTitle(f"{subject.moment.source.title} – Kernelscope")
        if INPUT in fields:
            more = _GREETING if self._greets else self.session.take_notice()
            self.show_status("  ".join(filter(None, (subject.announce(), more))))
            self._greets = False
            self._offer_last_session()
            if self.focusWidget() in (None, self.panel):  # the one after the start
                self.page.canvas.focus()
            if not self.session.live:  # otherwise live runs prepare the code
                self._warm_up()
        if fields & {KIND, SHOWN}:
            self._view_bar.show_gain(subject.gain)
            self.actions_.tick(self)  # no view is, while a map of noise is shown
        if fields & _OF_ACTIONS:
            self._refresh_actions()
        elif SHOWN in fields:
            self.actions_.apply(replace(self.actions_.state, difference=subject.has_difference))

    def _offer_last_session(self) -> None:
        """Offer the files of the last session in the tool bar, until any is open."""
        offered = self.last_session.is_there and not self.open_pictures.files()
        self._tool_bar.offer(self.actions_["reopenSession"], offered)

    def _offer_filters(self) -> None:
        """Let the filter be chosen in one place: the browser, or the list while that is closed."""
        self.panel.show_chooser(self.docks[DockName.FILTERS].isHidden())

    def _warm_up(self) -> None:
        request = self.session.pictures.next_request() if self._cold else None
        if request is not None:
            self._cold = False
            self.background.start("warm-up", lambda: warm_up(request), self._on_code_ready)

    # --- state ---

    def _describe_memory(self) -> str:
        histories = [subject.history for subject in self.session.subjects]
        return describe_memory(histories, self.session.gallery, self.open_pictures.documents)

    def _on_availability(self, availability: dict[str, Availability]) -> None:
        self.companions.availability = availability
        self.session.set_availability(availability)

    def _on_code_ready(self, _: object) -> None:
        self.live.use_compiled()
        self.preparing.start()
        source = self.session.subject.source
        if isinstance(source, Image):  # drawn by NumPy until now, in two to four times the time
            dtype = source.dtype
            self.background.start("reduction", lambda: compile_for(dtype), lambda _: None)

    def _refresh_actions(self) -> None:
        subject, busy = self.session.subject, self.runner.busy
        source = subject.source
        self.actions_.refresh(
            replace(
                self.actions_.state,
                source=source is not None,
                volumes=subject.kind is Kind.VOLUME,
                scale=isinstance(source, Image) and source.metadata.pixel_size is not None,
                deep=self.session.is_deep,
                of_volumes=self.session.spec.kind is Kind.VOLUME,
                output=subject.result is not None,
                reference=subject.reference is not None,
                difference=subject.has_difference,
                members=self.files.members.count,
                other=self.session.other.source is not None,
                pictures=len(self.open_pictures.documents),
                plain=self.is_plain,
                earlier=self.last_session.is_there,
                closed=self.open_pictures.documents.closed,
                busy=busy,
                undo=subject.history.undo_name,
                redo=subject.history.redo_name,
            )
        )

    def _on_saved(self, savable: Savable, path: Path) -> None:
        self.settings.add_recent(path)
        self.session.gallery.saved.update(savable.sources)
        self.open_pictures.show_strip()
        if self._quits_after is not None and savable.sources is self._quits_after.sources:
            QTimer.singleShot(0, self, self.close)  # which asks about the next one

    def _asks_about_outputs(self) -> bool:
        """Ask whether to quit if that ends a long run, or one for a file, or loses outputs.

        Files come back with their steps. Lost are outputs that took long, and those of pictures
        that no file has.
        """
        seconds, of_no_file = self.runner.seconds, self.open_pictures.of_no_file()
        unsaved = self.session.gallery.unsaved(of_no_file)
        awaited = enumerated(self.files.awaited, "and")
        if self._leaves or not (unsaved or seconds >= LONG_SECONDS or awaited):
            return False
        texts = [f"The run under way has taken {about(seconds)}."] * (seconds >= LONG_SECONDS)
        texts += [f"{awaited}: to be written when the run is done."] * bool(awaited)
        names = enumerated(list(dict.fromkeys(run.picture for run in unsaved)), "and")
        times = sum(run.seconds or 0.0 for run in unsaved)
        texts += [f"The output of {names} is not saved; it took {about(times)}."] * bool(unsaved)
        lost = {run.result.request.source for run in unsaved if run.result is not None}
        gone = sorted({each.title for each in lost if each.fingerprint in of_no_file})
        texts += [f"No file has the input: {enumerated(gone)}."] * bool(gone)
        if self.open_pictures.files():
            texts.append("Reopen Last Session will open the files again, with their steps.")

        def answered(answer: str) -> None:
            if answer == _SAVE:
                self._quits_after = self.run_shelf.save_run(unsaved[0])
            elif answer == _SAVE_ALL:
                self.files.whole_file.save_last()
            else:
                self._leaves = True
                self.close()

        filtered = self.files.members.filtered
        of_file = filtered.results.values() if filtered is not None else ()
        together = sum(each.request.source in lost for each in of_file) > 1
        save = _SAVE_ALL if together else _SAVE
        answers = [*[save] * bool(unsaved), "Quit"]
        self.file_dialogs.ask("unsaved", "Quit?", "\n".join(texts), answers, answered, save)
        return True

    def _on_settled(self, well: bool) -> None:
        """Close if that only waited for a save; stay if the save failed."""
        if self._close_when_saved and well:
            self.close()
        self._close_when_saved = False

    # --- Qt ---

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if Pictures.can_take(event.mimeData()):
            accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if self.file_dialogs.take(event.mimeData()):
            accept_copy(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.companions.asks_first():
            event.ignore()
            return
        if self.background.owes:
            # A save that fails must be reported while the picture can still be saved elsewhere.
            self._close_when_saved = True
            self.show_status("The window closes when the picture is saved…")
            event.ignore()
            return
        if self._asks_about_outputs():  # the last to ask: “Quit” is of this moment, none is saved
            event.ignore()
            return
        self.panel_buttons.close_own()
        self.last_session.close()
        self.settings.flush()
        self.hide()  # closing may take a moment
        self.live.close()
        self.companions.close()
        self.levels.close()
        self.run_shelf.close()
        self.filter_shelf.close()
        self._code_ready.close()
        self.preparing.close_helper()
        self.runner.tasks.close(_PATIENCE)
        self.background.close()
        self.console.close()
        for each in self.findChildren(Watcher):
            each.let_go()
        super().closeEvent(event)


_SIDE = 16


def warm_up(request: Request) -> None:
    """Import Numba and compile the kernels of `request`, or load them from the disk cache.

    Runs the filter on a corner of the picture and forgets the result; kernels depend on the
    type of the pixels, not on their number. Compiling takes seconds the first time on a
    computer: call it off the GUI thread.
    """
    corner = Image.from_array(request.image.pixels[:_SIDE, :_SIDE], "warm-up")
    backend = CpuBackend(threads=1)
    try:
        wanted = Request(corner, replace(request.step, border=Border.REFLECT))
        # Not through the engine, which would report this as if the user had run it.
        _logger.info("Getting %s ready for the first run", request.step.filter.name)
        fastest = backend.levels(wanted.step.filter)[-1]
        backend.run(wanted, fastest, RunContext())
        _logger.info("%s is ready: its code is compiled", request.step.filter.name)
    finally:
        backend.close()
