"""Keeps the runs of the window: from the result that came to the picture that is shown again.

runner.finished -> gallery.add -> [background: thumbnail, twin] -> gallery.keep -> panel
panel.wanted, commands -> show, star, rename, save, delete, compare
page.drawn -> the run that is shown -> strip, headline
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QInputDialog

from kernelscope.engine.request import RunSettings
from kernelscope.engine.result import Judgement, Result
from kernelscope.files.names import stem_of
from kernelscope.gui.model import runs
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.gallery import Examined, judge_run
from kernelscope.gui.model.runs import Run, figures_of
from kernelscope.gui.session.session import KIND
from kernelscope.gui.session.subject import (
    COMPONENT,
    JUDGED,
    MOMENT_SHOWN,
    PART,
    REFERENCE,
    SHOWN,
    Fields,
    Savable,
)
from kernelscope.gui.tools.picture_pair import RunPair
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window import menus
from kernelscope.gui.window.frame import Frame
from kernelscope.images.scan import Scan

_REST_MS = 250
"""A live result that stays this long is evaluated; each value of a slider that moves is not."""


class RunShelf(QObject):
    """Adds runs to the gallery and carries out the commands of the menu of runs."""

    removed = Signal()  # some of the runs

    def __init__(self, frame: Frame, show_again: Callable[[Result, RunSettings], None]) -> None:
        super().__init__(frame)
        self._frame, self._show_again = frame, show_again
        self._actions, self._background = frame.actions_, frame.background
        self._session, self.gallery = frame.session, frame.session.gallery
        self._told_of_room = False  # once is enough
        runs = self._runs = frame.runs
        runs.set_actions(self._actions, menus.actions_of(menus.RUNS))
        runs.wanted.connect(self._show)
        runs.pair_wanted.connect(self._swipe)
        runs.chosen.connect(self._on_chosen)
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self.judge_output)
        self._session.follow(self._on_session)
        self._on_chosen()

    def close(self) -> None:
        """Evaluate nothing any more: the window closes."""
        self._rest.stop()

    def _on_session(self, fields: Fields) -> None:
        if fields & {KIND, MOMENT_SHOWN, REFERENCE, COMPONENT}:
            self.judge()
        elif fields & {SHOWN, PART, JUDGED}:
            self.show_state()

    # --- runs that come ---

    def add(self, result: Result, settings: RunSettings | None = None) -> None:
        """Keep a finished run; its thumbnail comes a little later."""
        full = len(self.gallery) >= runs.MAX_RUNS
        run = self.gallery.add(result, settings)
        self._runs.refresh()
        self._runs.choose(run)

        def keep(examined: Examined) -> None:
            dropped = self.gallery.keep(run, examined)
            self._runs.refresh()
            if run.judgement is None:
                self.judge()  # a run aside, as of all levels, comes without a reference
            if dropped:
                self._frame.show_status(self._dropped(dropped))
            elif full and not self._told_of_room:
                self._told_of_room = True
                self._frame.show_status(
                    f"The list holds {runs.MAX_RUNS} runs: from now on the oldest makes room for "
                    "each new one. Runs with a star, and those that others are compared with, stay."
                )

        self._background.start(f"run {run.number}", lambda: self.gallery.examine(run), keep)

    def choose_shown(self) -> None:
        run = self._session.subject.run
        if run is not None:
            self._runs.choose(run)

    def _dropped(self, dropped: list[Run]) -> str:
        numbers = ", ".join(str(run.number) for run in dropped)
        pictures = "picture of run" if len(dropped) == 1 else "pictures of runs"
        return (
            f"The {pictures} {numbers} made room: runs keep {self.gallery.limit / 1e6:,.0f} MB. "
            "Settings and times stay."
        )

    def show_state(self) -> None:
        subject = self._session.subject
        result, run = subject.result, subject.run
        if subject.source is not None:
            self._runs.show_picture(subject.source.title)
        self._runs.mark(run)
        figures = None
        if result is not None and not self._is_preview:
            quality = subject.judgement
            reference = subject.reference
            if quality is None and run is not None and reference is not None:
                quality = run.judgement if run.reference is reference.image else None
            if quality is None and result.request.live:
                self._rest.start()
            remark = "live, one run" if result.request.live else "one run"
            figures = figures_of(result, run, quality, remark)
        self._frame.headline.show_figures(figures)

    def judge_output(self) -> None:
        """Evaluate a live result that stays; Run evaluates its own."""
        subject = self._session.subject
        part, result, reference = judged = subject.to_judge or (None, None, None)
        if part is None or result is None or reference is None or self._is_preview:
            return
        if judged == subject.judging:
            return
        subject.judging = judged
        self._background.start(
            "judge output",
            lambda: judge_run(result, part, reference.image),
            partial(subject.keep_judgement, judged),
        )

    @property
    def _is_preview(self) -> bool:
        """Whether a part of another result covers the one that is shown, or is about to."""
        previewed = self._session.subject.previewed
        return previewed is not None or self._session.freshness in (
            Freshness.PREVIEW,
            Freshness.PART,
        )

    def judge(self) -> None:
        """Compare the runs on the current input with the reference, where they were not yet."""
        subject = self._session.subject
        self.show_state()  # without the figures of the reference before
        if subject.source is None or subject.reference is None:
            return
        part, reference = subject.part, subject.reference.image
        runs = self.gallery.to_judge(subject.source, reference)
        results = [(run, run.result) for run in runs if run.result is not None]

        def work() -> list[tuple[Run, Judgement | None]]:
            return [(run, judge_run(result, part, reference)) for run, result in results]

        def show(judged: list[tuple[Run, Judgement | None]]) -> None:
            for run, judgement in judged:
                run.judgement, run.reference = judgement, reference
            self._runs.refresh()
            self.show_state()

        if results:
            self._background.start("judge runs", work, show)

    # --- commands ---

    @Action("showRun", "&Show Run", need=commands.CHOSEN)
    def show(self) -> None:
        """Show the picture of the selected run, and its settings (Return)."""
        run = self._runs.current
        if run is not None:
            self._show(run)

    @Action("starRun", "S&tar Run", need=commands.CHOSEN, label="Star")
    def star(self) -> None:
        """Mark or unmark the run (Space); its picture is kept longest."""
        runs = self._runs.selected
        starred = not all(run.starred for run in runs)
        for run in runs:
            run.starred = starred
        self._runs.refresh()

    @Action("renameRun", "Re&name Run…", need=commands.CHOSEN)
    def rename(self) -> None:
        """Give the run a name of your own."""
        run = self._runs.current
        if run is None:
            return

        def rename(name: str) -> None:
            run.name = name.strip()
            self._runs.refresh()

        dialog = QInputDialog(self._frame)
        dialog.setObjectName("renameRun")
        dialog.setWindowTitle("Rename Run")
        dialog.setLabelText(f"Name of run {run.number}; empty for “{run.filter_name}”:")
        dialog.setTextValue(run.name)
        dialog.textValueSelected.connect(rename)
        dialogs.open_dialog(dialog)

    @Action("saveRun", "Save &Picture of Run…", need=commands.KEPT, label="Save…")
    def save(self) -> None:
        """Save the output of the selected run."""
        if self._runs.current is not None:
            self.save_run(self._runs.current)

    def save_run(self, run: Run) -> Savable | None:
        if run.result is None:
            return None
        output = run.result.output
        images = output.volumes if isinstance(output, Scan) else [run.result.image]
        name = f"{stem_of(images[0])}-{run.name or run.run_settings.step.filter.id}-{run.number}"
        sources = [run.result.request.source]
        savable = Savable(images, name, sources=sources)
        self._frame.file_dialogs.save(savable)
        return savable

    @Action("deleteRun", "&Delete Runs", need=commands.CHOSEN, label="Delete")
    def delete(self) -> None:
        """Remove the selected runs with their pictures (Delete)."""
        runs = self._runs
        shown, gone = [run for _, run in runs.table.rows.places()], runs.selected
        if not gone:
            return
        places = [shown.index(run) for run in gone]
        for run in gone:
            self.gallery.remove(run)
        rest = [run for run in shown if run not in gone]
        runs.refresh()
        runs.choose(rest[min(min(places), len(rest) - 1)] if rest else None)
        self.show_state()
        self.removed.emit()

    @Action(
        "compareRuns", "&Compare With This Level", need=commands.BASELINE, label="Compare times"
    )
    def compare(self) -> None:
        """Make the selected run the baseline of all runs that did the same work."""
        run = self._runs.current
        if run is not None:
            self.gallery.choose(run)
            self._runs.refresh()

    @Action("swipeRuns", "Compare T&wo Runs", need=commands.PAIR, label="Compare pictures")
    def swipe(self) -> None:
        """Compare the pictures of the two selected runs in one view."""
        runs = self._runs.selected
        if len(runs) == 2:
            self._swipe(*runs)

    @Action("clearRuns", "C&lear List of Runs", need=commands.RUNS)
    def clear(self) -> None:
        """Forget the runs in the list and their pictures."""
        for run in self._runs.runs:
            self.gallery.remove(run)
        self._runs.refresh()
        self._runs.choose(None)
        self.removed.emit()

    # --- answers ---

    def _show(self, run: Run) -> None:
        if run.result is not None:
            self._show_again(run.result, run.run_settings)
            return
        self._session.show(run.run_settings)
        self._frame.show_status(_missing(run))

    def _swipe(self, first: Run, second: Run) -> None:
        gone = [run for run in (first, second) if run.result is None]
        if gone:
            self._frame.show_status(_missing(gone[0]))
        elif first.size != second.size:
            self._frame.show_status(
                f"Runs {first.number} and {second.number} are of pictures of different sizes: "
                f"{first.size} and {second.size}."
            )
        else:
            subject = self._session.subject_of(first.result and first.result.request.source)
            RunPair(first, second, subject, self._frame).show()

    def _on_chosen(self) -> None:
        runs = self._runs
        run, chosen = runs.current, runs.selected
        self._frame.timing.show_run(run)
        problem = self._no_baseline(run)
        kept = bool(chosen) and all(each.result is not None for each in chosen)
        able = run is not None and not problem
        self._actions.apply(
            replace(
                self._actions.state,
                runs=len(runs.runs),
                chosen=len(chosen),
                kept=kept,
                baseline=able,
            )
        )
        self._actions.name_comparison(run.where if run is not None else "", problem)
        runs.show_note(problem)

    def _no_baseline(self, run: Run | None) -> str:
        """Return why a run cannot be the baseline; empty if it can."""
        runs = self.gallery
        if run is None:
            return ""
        if run.seconds is None:
            return "An emulated run is compared with nothing: it is not timed."
        if not runs.has_rivals(run):
            return (
                f"Nothing to compare with {run.where} yet: run the same at another level (Ctrl+F5)."
            )
        if not run.warm:
            return "A first run is compared with nothing: run it again."
        if runs.is_baseline(run):
            return f"The other levels are compared with run {run.number}, {run.where}."
        return ""

    @Action("copyRuns", "C&opy Table of Runs", need=commands.RUNS)
    def copy_table(self) -> None:
        """Copy the table of runs as text, cells separated by tabs."""
        self._runs.table.copy()


def _missing(run: Run) -> str:
    """Return that the picture of a run was dropped, and the way to have it again."""
    return (
        f"The picture of run {run.number} is no longer in memory. Show the run to have its "
        "settings in the panel: Run (F5) computes it again."
    )
