"""File > Batch: a recipe on many files, with a queue that can be paused, stopped and resumed.

    files dropped or added -> [background: find_items] -> queue
    Start -> [background: BatchRun] -> news, taken ten times a second -> queue

The work is that of ``kernelscope.big.batch``, as on the command line, with the same journal: a
batch that was stopped goes on where it was, also after the program was closed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QLabel,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QStackedLayout,
    QWidget,
)

from kernelscope.base.errors import AppError
from kernelscope.big.batch import FileState, FoundFiles, find_items
from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs
from kernelscope.engine.recipe import Recipe
from kernelscope.files import READABLE
from kernelscope.files.volumes import READABLE_VOLUMES
from kernelscope.gui.model.batch_queue import BatchQueue
from kernelscope.gui.model.batch_run import BatchOrder, BatchRun, BatchSettings, default_out
from kernelscope.gui.tools.batch_form import BatchForm
from kernelscope.gui.tools.batch_table import BatchRows, BatchTable, Thumbnails
from kernelscope.gui.tools.places import folder_for, name_filter
from kernelscope.gui.widgets import messages, theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, push_button
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background

_NEWS_MS = 100
_EMPTY = "Drop pictures, volumes or folders here,\nor add them with the buttons above."


class BatchWindow(ToolWindow):
    """Adds files to a queue and applies a recipe to them.

    `steps` returns the steps of the main window; raises `AppError` without any. `clock` returns the
    time in seconds.
    """

    result_wanted = Signal(object)  # `Path`: the result of a file is to be shown

    def __init__(
        self,
        background: Background,
        backends: Mapping[str, Backend],
        settings: Settings,
        steps: Callable[[], Recipe],
        costs: Costs,
        parent: QWidget | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("batchWindow", "Batch", parent, help_page="window#batches")
        self.setSizeGripEnabled(True)
        self.setAcceptDrops(True)
        self._background, self._backends, self._settings = background, backends, settings
        self._costs, self._clock = costs, clock
        self._inputs: list[Path] = []
        self._left_out: set[Path] = set()
        self._listing = self._starts = False
        """Whether files are looked for, and whether the batch starts when they are found."""
        self._run: BatchRun | None = None
        self._stopped: BatchOrder | None = None
        """The order of a batch that was stopped, which Start resumes."""
        self._then: Callable[[], object] | None = None  # to be called when the batch has ended
        self._question: QMessageBox | None = None
        self.queue = BatchQueue()
        self._thumbnails = Thumbnails(background, self)
        self._rows = BatchRows(self.queue, self._thumbnails)
        self.table = BatchTable(self._rows, self)
        self.form = BatchForm(steps, self)
        self._make_controls()
        self._lay_out()
        self._timer = QTimer(self, interval=_NEWS_MS)
        self._timer.timeout.connect(self._take_news)
        self._connect()
        self.form.show_settings(BatchSettings.of(settings.texts("batch")))
        self._show_state()

    # --- widgets ---

    def _make_controls(self) -> None:
        self._buttons: dict[str, QPushButton] = {}
        below = "Add all pictures and volumes in a folder and below it"
        selected = "Take the selected files out of the queue (Delete)"
        finished = "Stop; the files that are being written are finished"
        for id_, text, tip, action in (
            ("Add", "&Add files…", "Add pictures and volumes", self._choose_files),
            ("AddFolder", "Add f&older…", below, self._choose_folder),
            ("Remove", "R&emove", selected, lambda: self.remove(self.table.selected())),
            ("Clear", "Clea&r", "Take all files out of the queue", self.clear),
            ("OpenFolder", "Open Fol&der", "Show the results in the desktop", self._open_folder),
            ("Start", "&Start", "Filter the files", self.press_start),
            ("Cancel", "&Cancel", finished, self.cancel),
            ("Close", "Close", "Close this window", self.reject),
        ):
            self._buttons[id_] = push_button(text, f"batch{id_}", action, tip=tip)
        theme.set_role(self._buttons["Start"], "primary")
        self.only_failed = dressed(
            QCheckBox("On&ly failed", self),
            "batchOnlyFailed",
            "Only failed",
            tip="Show only the files that failed",
        )
        self._note = dressed(ElidedLabel(self), "batchNote")
        theme.set_role(self._note, "note")
        self._state = dressed(QLabel(self), "batchState")
        self._bar = dressed(QProgressBar(self), "batchProgress", "Progress of the batch")
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)

    def _lay_out(self) -> None:
        queue = [self._buttons[id_] for id_ in ("Add", "AddFolder", "Remove", "Clear")]
        batch = [self._buttons[id_] for id_ in ("OpenFolder", "Start", "Cancel", "Close")]
        top = in_row(*queue, (self._note, 1), self.only_failed)
        bottom = in_row((self._state, 1), *batch)
        empty = dressed(QLabel(_EMPTY, self), "batchEmpty")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(empty, "drop")
        self._stack = QStackedLayout()
        self._stack.addWidget(empty)
        self._stack.addWidget(self.table)
        in_column(top, (self._stack, 1), self.form, self._bar, bottom, of=self, spacing=10)
        self.take_room(140, 44, QSize(1060, 660))
        unit, line = self.fontMetrics().averageCharWidth(), self.fontMetrics().height()
        # Smaller, the queue would have room for one file, and the lists would be cut off.
        self.setMinimumSize(min(110 * unit, 720), min(30 * line, 420))

    def _connect(self) -> None:
        self.table.removing.connect(self.remove)
        self.table.result_wanted.connect(self.result_wanted)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._show_buttons())
        self.only_failed.toggled.connect(lambda _: self._show_rows())
        self.form.places_changed.connect(self._list)
        self.form.changed.connect(self._keep_settings)

    # --- files ---

    def _done(self) -> list[Path]:
        rows = self.queue.rows
        return [each.item.target for each in rows if each.state is FileState.DONE]

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._done()[0].parent)))

    def add(self, paths: Sequence[Path]) -> None:
        if self.queue.running or not paths:
            return
        self._left_out.difference_update(paths)
        self._inputs += [path.absolute() for path in paths if path.absolute() not in self._inputs]
        self.form.offer_out(default_out(self._inputs))
        self._list()

    def remove(self, places: Collection[int]) -> None:
        if self.queue.running:
            return
        chosen = set(places)
        self._left_out |= {self.queue.rows[place].item.source for place in chosen}
        self.queue.show(self.queue.without(chosen))
        self._show_rows()

    def clear(self) -> None:
        if not self.queue.running:
            self._inputs.clear()
            self._left_out.clear()
            self._list()

    def _list(self) -> None:
        folder, suffix = self.form.folder, self.form.suffix
        inputs, left_out = list(self._inputs), frozenset(self._left_out)
        if self.queue.running:
            return
        if not inputs or folder is None:
            self._background.forget("batch list")
            self._on_listed(FoundFiles())
            return

        def find() -> FoundFiles:
            found = find_items(inputs, folder, suffix)
            found.items = [item for item in found.items if item.source not in left_out]
            return found

        self._listing = True
        self._show_state()
        self._background.start("batch list", find, self._on_listed, self._on_unlisted)

    def _on_listed(self, found: FoundFiles) -> None:
        self._listing = False
        notes = [f"{path} cannot be read: {reason}." for path, reason in found.problems]
        if found.left_out:
            word = "file is" if found.left_out == 1 else "files are"
            notes.append(f"{found.left_out} {word} of no format that can be read.")
        if self._inputs and self.form.folder is None:
            notes.append("Choose an output folder.")
        self._note.set_full_text(" ".join(notes))
        self.queue.show(found.items)
        self._show_rows()
        if self._starts:
            self.start()

    def _on_unlisted(self, error: Exception) -> None:
        self._on_listed(FoundFiles())
        if isinstance(error, AppError):
            self._inputs.clear()
            self._note.set_full_text(str(error))
        else:
            self._background.report(error)

    def _choose_files(self) -> None:
        kinds = (*READABLE, *READABLE_VOLUMES)
        suffixes = dict.fromkeys(suffix for kind in kinds for suffix in kind.suffixes)
        every = f"All pictures and volumes ({' '.join(f'*{each}' for each in suffixes)})"
        messages.choose_paths(
            *(self, "Add Files", "batchAddDialog", self.add),
            folder=folder_for(self._settings, "open"),
            kinds=dict.fromkeys((every, *map(name_filter, kinds), "All files (*)")),
            mode=QFileDialog.FileMode.ExistingFiles,
        )

    def _choose_folder(self) -> None:
        messages.choose_paths(
            *(self, "Add Folder", "batchFolderDialog", self.add),
            folder=folder_for(self._settings, "open"),
            mode=QFileDialog.FileMode.Directory,
        )

    # --- the batch ---

    @property
    def running(self) -> bool:
        return self.queue.running

    def press_start(self) -> None:
        if self._run is None:
            self.start()
        elif self.queue.paused:
            self._run.pause.go_on()
            self.queue.go_on(self._clock())
        else:
            self._run.pause.pause()
            self.queue.pause(self._clock())
        self._show_state()

    def start(self) -> None:
        self.form.take_out()  # what is typed in its field
        self._starts, folder = self._listing, self.form.folder
        if self._run is not None or self._listing or folder is None or not self.queue.rows:
            return
        try:
            recipe = self.form.recipe()
        except AppError as error:
            messages.show_error(self, error)
            return
        settings = replace(self.form.settings(), device=self.form.device)
        items = tuple(row.item for row in self.queue.rows)
        order = BatchOrder(recipe, items, folder, settings, resumes=not settings.replaces)
        if order.same_work(self._stopped):
            order = BatchOrder(recipe, items, folder, settings, resumes=True)
        run = self._run = BatchRun(order, self._backends, self._costs)
        self._stopped = None
        self.only_failed.setChecked(False)
        self.queue.begin(self._clock())
        self._rows.refresh(range(len(items)))
        self._timer.start()
        self._show_state()
        self._background.start(
            "batch", run.work, lambda _: self._on_ended(), self._on_failed, must_finish=True
        )

    def cancel(self) -> None:
        if self._run is not None and not self.queue.stopping:
            self._run.cancel()
            self.queue.stop(self._clock())
            self._show_state()

    def _take_news(self) -> None:
        assert self._run is not None
        noted = {self.queue.note(event) for event in self._run.news()}
        self._rows.refresh(place for place in noted if place is not None)
        self._show_state()

    def _on_ended(self) -> None:
        run = self._run
        assert run is not None
        self._take_news()
        self._timer.stop()
        self._run = None
        self.queue.end(self._clock())
        self._stopped = run.order if self.queue.left else None
        self._show_rows()
        if self._question is not None:
            self._question.reject()
        then, self._then = self._then, None
        if then is not None:
            then()

    def _on_failed(self, error: Exception) -> None:
        self._then = None
        self._on_ended()
        self._stopped = None
        if isinstance(error, AppError):
            messages.show_error(self, error)
        else:
            self._background.report(error)

    # --- what is shown ---

    def refresh(self, available: Collection[str] | None = None) -> None:
        if available is not None:
            self.form.set_devices(available)
        self.form.show_recipe()

    def _show_rows(self) -> None:
        if self.only_failed.isChecked() and self.queue.failed:
            self._rows.show_failed()
        else:
            self._rows.show_all()
        self._stack.setCurrentIndex(1 if self.queue.rows else 0)
        self._show_state()

    def _show_state(self) -> None:
        queue = self.queue
        text = "Looking for files…" if self._listing else queue.describe(self._clock())
        self._state.setText(text)
        self._bar.setMaximum(max(1, len(queue)))
        self._bar.setValue(queue.ended)
        self.only_failed.setVisible(queue.failed > 0)
        self.form.setEnabled(not queue.running)
        self._show_buttons()

    def _show_buttons(self) -> None:
        queue, buttons = self.queue, self._buttons
        idle = not queue.running
        for id_, enabled in (
            ("Add", idle),
            ("AddFolder", idle),
            ("Remove", idle and self.table.selectionModel().hasSelection()),
            ("Clear", idle and bool(queue.rows or self._inputs)),
            ("Start", bool(queue.rows) and not queue.stopping),
            ("Cancel", queue.running and not queue.stopping),
        ):
            buttons[id_].setEnabled(enabled)
        buttons["OpenFolder"].setVisible(bool(self._done()))
        word = "&Start" if self._stopped is None else "Re&sume"
        if queue.running:
            word = "Re&sume" if queue.paused and not queue.stopping else "Pau&se"
        if buttons["Start"].text() != word:
            buttons["Start"].setText(word)
            buttons["Start"].setAccessibleName(word.replace("&", ""))

    def _keep_settings(self) -> None:
        self._settings.set_texts("batch", self.form.settings().texts())

    # --- closing ---

    def ask_to_stop(self, then: Callable[[], object]) -> None:
        """Ask whether to stop the batch; ``then()`` is called when it has ended."""
        if self.queue.stopping:
            self._then = then
            return
        if self._question is not None:
            self._question.raise_()
            return
        box = self._question = QMessageBox(self)
        box.setObjectName("batchQuestion")
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle("Kernelscope")
        box.setText(f"The batch is on its way: {self.queue.ended} of {len(self.queue)} files.")
        box.setInformativeText(
            "Files that are being written are finished first. The rest can be filtered later: "
            "Start skips what is done."
        )
        stop = box.addButton("&Stop the batch", QMessageBox.ButtonRole.AcceptRole)
        stay = box.addButton("&Keep running", QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(stay)
        box.setEscapeButton(stay)

        def answered() -> None:
            self._question = None
            if box.clickedButton() is stop and self.running:
                self._then = then
                self.cancel()

        box.finished.connect(lambda _: answered())
        messages.open_dialog(box)

    def leave(self) -> None:
        """Do nothing more: the main window closes."""
        self._timer.stop()
        self._thumbnails.close()

    # --- Qt ---

    def reject(self) -> None:
        """Close the window; a batch that is on its way is stopped after a question."""
        if self.running:
            self.ask_to_stop(self.reject)
        else:
            super().reject()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.refresh()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if not self.running and any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        urls = event.mimeData().urls()
        self.add([Path(url.toLocalFile()) for url in urls if url.isLocalFile()])
        event.acceptProposedAction()
