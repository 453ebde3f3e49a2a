"""Connects the dialogs for files with the pages: opening, saving, copying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QDropEvent, QGuiApplication

from kernelscope.base.errors import AppError
from kernelscope.base.text import enumerated
from kernelscope.engine.request import Request, RunSettings, alike
from kernelscope.engine.result import Result
from kernelscope.files import read_image
from kernelscope.files.samples import truth_of
from kernelscope.gui.model import replay
from kernelscope.gui.model.display import Display, PaneSide
from kernelscope.gui.model.history import ReferenceOrigin
from kernelscope.gui.session.canvas_view import DRAWN
from kernelscope.gui.session.subject import SHOWN, Savable
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.parts import Watcher
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.window.scans import VolumeSteps
from kernelscope.gui.window.whole_file import WholeFile
from kernelscope.images.image import Image
from kernelscope.images.scan import MAX_COMPONENTS
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:
    from kernelscope.gui.tools.phantom_dialog import PhantomOrder
    from kernelscope.gui.tools.space_window import SpaceWindow

_OLDER = (
    "The settings have changed since this result was computed. The figure shows the result, and "
    "its caption the settings that it was computed with."
)


class Files(QObject):
    """Takes files to the page that shows them, and results from the page in front."""

    def __init__(
        self, frame: Frame, runner: Runner, open_one: Callable[[Image | Volume], None]
    ) -> None:
        super().__init__(frame)
        self._frame, self._dialogs, self._recipes = frame, frame.file_dialogs, frame.recipes
        self._runner, self._scans, self._session = runner, frame.scans, frame.session
        self._background, self._open_one = frame.background, open_one
        dialogs, scans, show_status = self._dialogs, self._scans, frame.show_status
        self.space = SpaceOpener(frame)
        self.members = VolumeSteps(frame, self._open)
        self.whole_file = WholeFile(frame, runner, self.members)
        dialogs.series_found.connect(self.members.remember)
        dialogs.loaded.connect(self._open)
        dialogs.scan_loaded.connect(scans.open)
        dialogs.each_loaded.connect(scans.open_each)
        dialogs.component_loaded.connect(scans.add)
        dialogs.reference_loaded.connect(self._set_reference)
        dialogs.announced.connect(show_status)
        self.awaited: list[str] = []  # names of the files that are written when the run is done
        frame.recipes.saved.connect(lambda path: show_status(f"Saved {path.name}."))
        scans.add_wanted.connect(self._add_components)

    @Action("exportFigure", "Export Fi&gure…", "Ctrl+Alt+E", need=commands.OUTPUT)
    def export_figure(self) -> None:
        """Save input, output and their difference side by side, as PNG, SVG or PDF."""
        from kernelscope.gui.tools.figure_dialog import FigureDialog

        subject = self._session.subject
        if subject.output() is None:
            return
        note = _OLDER if self._older() else ""
        dialog = FigureDialog(subject, note, self._background, self._dialogs.settings, self._frame)
        dialog.saved.connect(lambda path: self._frame.show_status(f"Saved {path}."))
        dialogs.open_dialog(dialog)

    @Action("save", "&Save Output…", "Ctrl+S", need=commands.SOURCE, icon="save", label="Save")
    def save_output(self) -> None:
        """Save the output to a file; where only a part of it is there, all is computed for it."""
        self._save_result(every=False)

    def _save_result(self, *, every: bool) -> None:
        """Save the whole result whose part is in view; an older one if the user wants that."""
        subject = self._session.subject
        savable, run = subject.output(every=every), partial(self._run_to_save, every)
        if savable is None or (subject.is_stale and not subject.is_earlier):
            run()
        else:
            self._dialogs.save(savable, self._older(), run if self._session.settings else None)

    def _run_to_save(self, every: bool) -> None:
        """Ask for a file for the output of the present settings, then compute and write it."""
        request = self._runner.to_run()
        if request is None:
            return
        subject, source = self._session.subject, request.source
        savable = subject.savable(request, every)
        output = source.stand_in(request.whole_shape)
        if isinstance(output, Image):
            output = replace(output, metadata=cast(Image, source).metadata)

        def compute(path: Path, write: Callable[[Savable], object]) -> None:
            result = subject.result
            if result is not None and alike(result.request, request):
                write(savable(result.output))  # it came while the dialog was open
            else:
                self._await(request, path.name, lambda result: write(savable(result.output)))

        self._dialogs.save(savable(output)._replace(compute=compute))

    def _await(self, request: Request, name: str, write: Callable[[Result], object]) -> None:
        """Write a file when the run of `request` is done."""

        def finished(result: Result) -> None:
            self.awaited.remove(name)
            write(result)

        def given_up(why: str, *_: object) -> None:
            self.awaited.remove(name)
            text = f"{name} is not saved: the run {why}."
            # Later: a run that takes the place of another announces itself first.
            QTimer.singleShot(0, self, partial(self._show_awaited, text))

        task = self._runner.start(request)
        self.awaited.append(name)
        task.finished.connect(finished)
        task.stopped.connect(partial(given_up, "was stopped"))
        task.failed.connect(partial(given_up, "failed"))
        self._show_awaited()

    def _show_awaited(self, text: str = "") -> None:
        names = enumerated(self.awaited, "and")
        waits = f"Saving {names} when this run is done; Esc stops both." if names else ""
        self._frame.show_status("  ".join(filter(None, (text, waits))))

    @Action("saveAll", "Save &All Volumes…", "Ctrl+Alt+S", need=commands.MEMBERS, help="volumes")
    def save_all(self) -> None:
        """Save the output of every volume of the file as one file, or of all that were opened
        together, each with its own header; those that are not filtered yet are first.
        """
        if self.members.place[0] is not None:
            self.whole_file.save()
        else:
            self._save_result(every=True)

    @Action("saveView", "Save Residual or &Difference…", "Ctrl+Shift+S", need=commands.DIFFERENCE)
    def save_view(self) -> None:
        """Save the difference that is shown: amplified for pictures, as values for volumes."""
        difference = self._session.subject.difference()
        if difference is not None:
            self._background.start("change", difference, self._dialogs.save)

    @Action("saveRecipe", "&Save Recipe…", need=commands.SOURCE, help="window#recipes")
    def save_recipe(self) -> None:
        """Save the steps that led to the input, and the filter with its settings."""
        request = self._runner.request()
        if request is not None:
            history = self._session.subject.history
            steps = history.steps_to_end(request, unestimated=True)
            self._recipes.save(each.step for each in steps)

    @Action("copy", "&Copy Output", "Ctrl+C", need=commands.OUTPUT)
    def copy_output(self) -> None:
        """Copy the output to the clipboard; of volumes, the slice that was clicked last."""
        image = self._session.subject.output_as_picture()
        if image is not None:
            self._dialogs.copy(image, self._older())

    @Action(
        "copyCommand",
        "Copy as Command &Line",
        "Ctrl+Alt+C",
        need=commands.SOURCE,
        help="window#recipes",
    )
    def copy_command(self) -> None:
        """Copy the steps to the output as a command, for a terminal or a script."""
        self._copy_replay(replay.command_line, "The command is in the clipboard: {}")

    @Action(
        "copyPython", "Copy as P&ython", "Ctrl+Alt+P", need=commands.SOURCE, help="window#recipes"
    )
    def copy_python(self) -> None:
        """Copy the steps to the output as a program; of pictures."""
        if self._session.kind is Kind.VOLUME:
            self._frame.show_status(
                "The steps of volumes are copied as a command line (Ctrl+Alt+C), not as Python."
            )
            return
        self._copy_replay(replay.python, "The program is in the clipboard.")

    def _copy_replay(self, write: Callable[[Any, Sequence[RunSettings]], str], notice: str) -> None:
        request = self._runner.request()
        if request is None:
            return
        subject = self._session.subject
        text = write(subject.base, subject.history.steps_to_end(request))
        QGuiApplication.clipboard().setText(text)
        self._frame.show_status(notice.format(text))

    @Action("chooseReference", "&Choose Reference…", need=commands.SOURCE)
    def choose_reference(self) -> None:
        self._dialogs.choose_reference(self._session.kind)

    @Action("openSlice", "Open Slice as P&icture", need=commands.VOLUMES, help="volumes")
    def open_slice(self) -> None:
        """Open the slice that was clicked last as a picture."""
        picture = self._session.subject.slice_as_picture()
        if picture is not None:
            self._open(picture)

    def make_phantom(self, order: PhantomOrder) -> None:
        self._frame.show_status("Making a phantom…")
        self._background.start("open", order.make, lambda made: self._scans.open(*made))

    def _older(self) -> str:
        """Return the settings of the result, if those of the panel would make another one."""
        subject = self._session.subject
        return subject.result.settings if subject.result is not None and subject.is_stale else ""

    def _open(self, opened: object) -> None:
        if isinstance(opened, (Image, Volume)):
            self._open_one(opened)
        if isinstance(opened, Image):
            self.find_truth(opened)

    def find_truth(self, opened: Image) -> None:
        truth = truth_of(opened.path)
        if truth is not None:
            self._background.start(
                "truth",
                lambda: read_image(truth),
                lambda ideal: self._set_truth(opened, ideal),
            )

    def _set_truth(self, opened: Image, ideal: Image) -> None:
        pictures = self._session.pictures
        known = pictures.reference
        if pictures.source is opened and (known is None or known.origin is ReferenceOrigin.KEPT):
            pictures.set_reference(ideal, ReferenceOrigin.TRUTH)

    def _set_reference(self, image: Any) -> None:
        subject = self._session.subject
        if self._session.subject_of(image) is not subject:
            return  # the other kind is shown by now
        self._frame.show_status(f"{image.describe()}.")
        with dialogs.errors_shown(self._frame):
            subject.set_reference(image)

    def _add_components(self, paths: list[Path]) -> None:
        room = self._scans.subject.room
        if len(paths) > room:
            hint = f"At most {MAX_COMPONENTS} are filtered together: add {room} or fewer."
            dialogs.show_error(self._frame, AppError(f"{len(paths)} volumes are too many.", hint))
            return
        for path in paths:
            self._dialogs.open_component(path)
        if not paths:
            self._dialogs.choose_component()


def accept_copy(event: QDropEvent) -> None:
    """Accept a drop as a copy, so that a file manager does not remove its file."""
    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()


class SpaceOpener(Watcher):
    """Opens the 3-D view and shows the component in it that is on the page."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._frame, self._subject = frame, frame.session.volumes
        self.window: SpaceWindow | None = None
        self.watch(frame)

    @Action("space", "&3-D View", "Ctrl+3", need=commands.DEEP)
    def open(self) -> None:
        """Input and output of volumes from any side: maximum or surface."""
        if self.window is None:
            from kernelscope.gui.tools.space_window import SpaceWindow

            self.window = SpaceWindow(self._frame.background, self._frame)
            self.window.saving.connect(
                lambda image: self._frame.file_dialogs.save(Savable([image], image.title))
            )
            self._subject.when({SHOWN, DRAWN}, self._follow)
        self._follow()
        self.window.open()

    def _follow(self) -> None:
        if self.window is not None:
            subject = self._subject
            source = subject.part if subject.source is not None else None
            shown = subject.view.displays.of(PaneSide.INPUT)
            display = Display(shown.low, shown.high) if shown is not None else Display(0, 1)
            self.window.show_volumes(source, subject.shown_output, display)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Close the view with the main window; a spontaneous event only minimises that."""
        if event.type() == QEvent.Type.Hide and not event.spontaneous() and self.window is not None:
            self.window.close()
        return super().eventFilter(watched, event)
