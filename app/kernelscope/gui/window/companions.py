"""The windows and dialogs that open next to the main window, except those for files."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QCursor, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from kernelscope.base.errors import AppError
from kernelscope.bench.recorded import RecordedTime, Wanted, with_cpu
from kernelscope.engine.backend import Availability
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.engine.timing import LaunchReport
from kernelscope.gui.model.kernel_edits import Edits
from kernelscope.gui.model.ladder import KnownRung, RungPlace, without_gpu
from kernelscope.gui.model.times import duration
from kernelscope.gui.session.canvas_view import SEEN, SLICES
from kernelscope.gui.session.session import OF_SETTINGS
from kernelscope.gui.session.subject import INPUT, SHOWN
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.parts import Watcher, place_of
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.runner import Runner
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device

if TYPE_CHECKING:
    from kernelscope.gui.model.trials import Version
    from kernelscope.gui.tools.batch_window import BatchWindow
    from kernelscope.gui.tools.bench_window import BenchWindow
    from kernelscope.gui.tools.contact_sheet import ContactSheet
    from kernelscope.gui.tools.exercise_window import ExerciseWindow
    from kernelscope.gui.tools.kernel_viewer import KernelViewer
    from kernelscope.gui.tools.lecture_window import LectureWindow
    from kernelscope.gui.tools.level_dialog import LevelDialog
    from kernelscope.gui.tools.manual_window import ManualWindow
    from kernelscope.gui.tools.memory_ladder_window import MemoryLadderWindow
    from kernelscope.gui.tools.phantom_dialog import PhantomOrder
    from kernelscope.gui.tools.xray_window import XrayWindow
    from kernelscope.teach.lecture.page import MeasuredTime

_STAND_IN = np.zeros((512, 512), np.uint8)
"""The picture that the kernel viewer plans a launch for while none is open."""

_MOST = 4  # runs of a filter that a page of the lecture has room for

_LOOKING = Availability(False, "Still looking for a GPU.")


class Companions:
    """Opens each window once and brings it to the front when it is asked for again."""

    def __init__(
        self,
        frame: Frame,
        runner: Runner,
        costs: Costs,
        *,
        order_phantom: Callable[[PhantomOrder], None],
        memory: Callable[[], str],
        in_front: Callable[[], RungPlace],
        opened: Callable[[], Sequence[Path]],
        end_gesture: Callable[[], None],
    ) -> None:
        self.frame, self.session, self.background = frame, frame.session, frame.background
        self.runner, self._costs = runner, costs
        self._order_phantom, self._memory, self._in_front = order_phantom, memory, in_front
        self._opened, self._end_gesture = opened, end_gesture
        self.availability: Mapping[str, Availability] = {}
        """Whether each backend can be used, as far as that is known."""
        self._launches: dict[str, LaunchReport] = {}
        self.session.when(OF_SETTINGS | {INPUT, SHOWN, SEEN, SLICES}, self._follow)
        self.context_help = ContextHelp(frame)
        self.context_help.watch(frame.panel.filter_box.view())  # open, it keeps the keyboard
        self.context_help.wanted.connect(self.show_page)

    def add_result(self, result: Result) -> None:
        """Keep the launch report of a run for the kernel viewer."""
        if self._has("memory_ladder"):
            self.memory_ladder.refresh()
        if result.launch is not None:
            self._launches[result.launch.kernel] = result.launch
            if self._has("kernel_viewer"):
                self.kernel_viewer.refresh()

    def _measured(self) -> tuple[MeasuredTime, ...]:
        """Return the newest runs on a GPU, each setting and level once, a few of each filter."""
        from kernelscope.teach.lecture.page import MeasuredTime

        found: dict[str, MeasuredTime] = {}
        for run in self.session.gallery:
            id_, what = run.run_settings.step.filter.id, f"{run.caption}, {run.input}: kernels"
            full = sum(each.filter_id == id_ for each in found.values()) >= _MOST
            if run.device == Device.GPU and run.kernel is not None and not full:
                found.setdefault(what, MeasuredTime(id_, what, duration(run.kernel)))
        return tuple(reversed(found.values()))

    def _has(self, name: str) -> bool:
        """Return whether a window was made; its property would make it."""
        return name in vars(self)

    # --- the windows, made when they are first asked for ---

    @functools.cached_property
    def kernel_viewer(self) -> KernelViewer:
        from kernelscope.gui.tools.kernel_viewer import KernelViewer

        made = KernelViewer(
            self.background, self._launches, self._edits(), self.frame, self._has_card
        )
        made.panel.xray_wanted.connect(self.show_version)
        return made

    @functools.cached_property
    def exercises(self) -> ExerciseWindow:
        from kernelscope.gui.tools.exercise_window import ExerciseWindow

        made = ExerciseWindow(self.background, self._edits(), self.frame.settings, self.frame)
        made.panel.xray_wanted.connect(self.show_version)
        return made

    @functools.cached_property
    def lecture(self) -> LectureWindow:
        from kernelscope.gui.tools.lecture_window import LectureWindow

        made = LectureWindow(
            self.background,
            lambda: self.session.subject.source,
            self._measured,
            self.frame,
        )
        dialogs.offer_help(made)
        return made

    @functools.cached_property
    def memory_ladder(self) -> MemoryLadderWindow:
        from kernelscope.gui.tools.memory_ladder_window import MemoryLadderWindow

        return MemoryLadderWindow(self.background, self.session.gallery, self.frame)

    @functools.cached_property
    def xray(self) -> XrayWindow:
        from kernelscope.gui.tools.xray_window import XrayWindow

        return XrayWindow(self.background, self.frame)

    @functools.cached_property
    def why(self) -> LevelDialog:
        from kernelscope.gui.tools.level_dialog import LevelDialog

        made = LevelDialog(self.background, self.frame)
        made.bench_wanted.connect(self.show_recorded)
        made.kernel_wanted.connect(self.show_kernel)
        made.xray_wanted.connect(self.show_xray)
        made.manual_wanted.connect(self.show_page)
        return made

    @functools.cached_property
    def bench(self) -> BenchWindow:
        from kernelscope.gui.tools.bench_window import BenchWindow

        return BenchWindow(
            self.runner.tasks,
            self.frame.settings,
            self.availability,
            current=self.runner.request,
            opened=lambda: self.session.subject.source,
            background=self.background,
            parent=self.frame,
        )

    @functools.cached_property
    def batch(self) -> BatchWindow:
        from kernelscope.gui.tools.batch_window import BatchWindow

        made = BatchWindow(
            self.background,
            self.frame.backends,
            self.frame.settings,
            self.runner.recipe,
            self._costs,
            self._opened,
            self.frame,
        )
        made.result_wanted.connect(self.frame.file_dialogs.open)
        made.changed.connect(lambda: self.frame.batch_progress.show_progress(made.progress))
        return made

    @functools.cached_property
    def contact_sheet(self) -> ContactSheet:
        from kernelscope.gui.tools.contact_sheet import ContactSheet

        made = ContactSheet(
            self.runner.tasks,
            self.runner.estimated_in_view,
            self.runner.alternatives,
            lambda request: self.session.subject.display_of(request.image),
            self.frame,
        )
        made.adopted.connect(self._adopt)
        self.runner.estimates.ended.connect(made.touch)
        return made

    def _adopt(self, step: Step) -> None:
        self.session.show(RunSettings(step, self.session.wished))
        self._end_gesture()

    # --- commands ---

    @Action("viewKernel", "View &Kernel…", "Ctrl+K", help="window#kernels-benchmark-and-console")
    def show_kernel(self, place: RungPlace | None = None) -> None:
        """The CUDA source of the filter at its level."""
        if place is None and self._level_in_front():
            place = self._in_front()
        with dialogs.errors_shown(self.frame):
            request = self.runner.create()
            if request is None:
                stand_in = Image.from_array(_STAND_IN, "no picture")
                request = self.session.require().request(stand_in)
            if place is not None:
                request = replace(request, options=self.session.options_at(place))
            self.kernel_viewer.show_request(request)
            self.kernel_viewer.show_in_front()

    def _level_in_front(self) -> str:
        """Return the level of a GPU that is in front; empty for one of the CPU."""
        place = self._in_front()
        return (place.level or "") if place.kernels is Device.GPU else ""

    def _has_card(self) -> bool:
        return self.availability.get(Device.GPU, _LOOKING).available

    @Action("exercises", "E&xercises…")
    def show_exercises(self) -> None:
        """Kernels to write yourself, graded without a GPU."""
        if not self.exercises.isVisible():
            self.exercises.open_at(self.session.filter_id, self._level_in_front())
        self.exercises.show_in_front()

    @Action("lecture", "&Lecture", help="lecture")
    def show_lecture(self) -> None:
        """Short pages on memory and speed, with live pictures of the open image."""
        values = dict(self.session.values.numbers)
        if (mask := values.get("mask")) is not None:
            values["size"] = len(mask)
        self.lecture.open(self._level_in_front(), self.session.filter_id, values)

    @Action("memoryLadder", "&Memory Ladder…", need=commands.SOURCE)
    def show_memory_ladder(self) -> None:
        """Counted traffic of all levels, and the least time for it on a graphics card."""
        with dialogs.errors_shown(self.frame):
            request = self.runner.create()
            if request is None:
                raise AppError("There is no picture to count reads of.", "Open one.")
            gpu = self.frame.backends.get(Device.GPU) if self._has_card() else None
            level = self._level_in_front()
            self.memory_ladder.show_request(request, self.session.recorded, gpu, level)
            self.memory_ladder.show_in_front()

    @Action("xray", "X-ra&y of a Pixel…", "Ctrl+Shift+X", need=commands.PIXELS)
    def show_xray(self, place: RungPlace | None = None) -> None:
        """Which cells a thread reads, step by step: that of the pixel under the pointer or, without
        one, in the middle of the view.
        """
        with dialogs.errors_shown(self.frame):
            request = self.runner.create()
            if request is None:
                raise AppError("There is no picture to look at.", "Open one.")
            in_view = self.runner.in_view()
            pixel = self.session.subject.probed()
            if pixel is None and in_view is not None and (region := in_view[1]) is not None:
                pixel = region.left + region.width // 2, region.top + region.height // 2
            level = place.level if place is not None else self._level_in_front() or None
            self.xray.show_request(request, pixel, level)
            self.xray.show_in_front()

    def show_version(self, version: Version, x: int, y: int) -> None:
        self.xray.show_version(version, (x, y))
        self.xray.show_in_front()

    def _edits(self) -> Edits:
        return Edits(self.frame.settings.folder_of("kernels"))

    @Action("benchmark", "&Benchmark…", "Ctrl+B", help="window#kernels-benchmark-and-console")
    def show_bench(self, story: bool = True) -> None:
        """Time filters, levels, devices and libraries against each other."""
        if story and not self._has("bench"):
            self.bench.open_story(*self._story())
        self.bench.show_in_front()

    def _story(self) -> tuple[str, RecordedTime | None, str]:
        """Return the filter in front, a recorded time of its levels, and the level in front."""
        filter_id, level = self.session.filter_id, self._level_in_front()
        request = None
        with contextlib.suppress(AppError):
            request = self.runner.create()
        if request is None:
            return filter_id, None, level
        figures = self.session.recorded.nearest(Wanted.by(request))
        return filter_id, next(iter(figures.values()), None), level

    @Action("batch", "&Batch…", "Ctrl+Shift+B", help="window#batches")
    def show_batch(self) -> None:
        """Apply the steps, or a recipe from a file, to many pictures and volumes."""
        available = [id_ for id_, each in self.availability.items() if each.available]
        self.batch.refresh(available)
        self.batch.show_in_front()

    def follow_pictures(self) -> None:
        """Let the batch window offer the files that are open now."""
        if self._has("batch"):
            self.batch.refresh()

    def asks_first(self) -> bool:
        """Return whether a batch is on its way; the window closes when it has been stopped."""
        if not self._has("batch") or not self.batch.running:
            return False
        batch, close = self.batch, self.frame.close
        if batch.queue.stopping:
            batch.stop(close)
            return True
        self.frame.file_dialogs.ask(
            "batchQuestion",
            f"The batch is on its way: {batch.queue.ended} of {len(batch.queue)} files.",
            "Files that are being written are finished first. The rest can be filtered later: "
            "Start skips what is done.",
            ["Stop and quit"],
            lambda _: batch.stop(close),
        )
        return True

    def show_recorded(self, path: Path | None) -> None:
        self.show_bench(story=path is None)
        if path is not None:
            self.bench.open_results(with_cpu(path))

    def show_level(self, entry: KnownRung) -> None:
        self._explain(entry)
        self.why.show_in_front()

    def follow_levels(self, entries: Sequence[KnownRung], chosen: RungPlace | None) -> None:
        """Explain the same level with other settings, or another one once it is chosen."""
        if not self._has("why") or not self.why.isVisible():
            return
        by_place = {entry.rung.place: entry for entry in entries}
        self._explain(by_place.get(chosen or self.why.place) or entries[0])

    def _explain(self, entry: KnownRung) -> None:
        request = None
        with contextlib.suppress(AppError):  # explained without valid settings as well
            request = self.runner.create()
        self.why.show_entry(entry, self.session.spec, request)

    @Action("help", "&Help on This", "F1", everywhere=True)
    def show_help(self) -> None:
        """The page on the part of the window under the pointer or with the focus."""
        self.show_page(self.context_help.place())

    def show_page(self, place: str) -> None:
        """Show a page of the manual, at a heading if `place` is ``page#heading``."""
        name, _, anchor = place.partition("#")
        self._manual().open_page(name, anchor)

    @Action(
        "gpuInfo",
        "&GPU Information…",
        icon="gpu",
        label="GPU info",
        help="gpu-levels#how-a-run-uses-the-card",
    )
    def show_gpu(self) -> None:
        """Properties of the GPU, or the steps to set one up."""
        from kernelscope.gui.tools.gpu_dialog import GpuDialog

        dialogs.open_dialog(
            GpuDialog(
                self.availability.get(Device.GPU, _LOOKING),
                self.frame,
                backend=self.frame.backends.get(Device.GPU),
                background=self.background,
                settings=self.frame.settings,
                without=without_gpu(self.availability).strip(),
            )
        )

    @Action("newPhantom", "New P&hantom…", "Ctrl+N", help="volumes#phantoms")
    def new_phantom(self) -> None:
        """Compute a head phantom with scanner noise and its noise-free original."""
        from kernelscope.gui.tools.phantom_dialog import PhantomDialog

        dialog = PhantomDialog(self.frame)
        dialog.ordered.connect(self._order_phantom)
        dialogs.open_dialog(dialog)

    @Action(
        "contactSheet",
        "Contact S&heet…",
        "Ctrl+Shift+H",
        need=commands.SOURCE,
        help="window#contact-sheet",
    )
    def show_contact_sheet(self) -> None:
        """Nine values of a parameter, each with its result in the visible part."""
        self.contact_sheet.show_in_front()

    def _follow(self) -> None:
        if self._has("contact_sheet"):
            self.contact_sheet.touch()

    def close(self) -> None:
        """Start no more work: the main window closes."""
        opened = vars(self)
        for name in {"contact_sheet", "lecture"} & opened.keys():
            opened[name].close()
        left = {"batch", "kernel_viewer", "exercises", "xray", "memory_ladder", "why"}
        for name in left & opened.keys():
            opened[name].leave()

    @Action("manual", "&Manual")
    def show_manual(self) -> None:
        """The pages of the manual, with a search over all of them."""
        self._manual()

    def _manual(self) -> ManualWindow:
        from kernelscope.gui.tools.manual_window import ManualWindow

        # A dialog that blocks the window would block a manual of the window too.
        parent = QApplication.activeModalWidget() or self.frame
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        manual = parent.findChild(ManualWindow, "manualWindow", direct) or ManualWindow(
            self.background, parent
        )
        manual.show_in_front()
        return manual

    @Action("palette", "&Command Palette…", "Ctrl+Shift+P")
    def show_palette(self) -> None:
        """Find any command or setting by a part of its name; run it, or go to its field."""
        from kernelscope.gui.tools.command_palette import Command, CommandPalette

        settings = [
            Command(
                title=commands.plain(option.label),
                place="Settings",
                keys=key,
                help=option.help,
                problem="" if editor.isEnabled() else "It has no effect with the other settings.",
                run=partial(self._go_to_setting, editor),
            )
            for option, editor, key in self.frame.panel.settings()
        ]
        CommandPalette([*self.frame.actions_.commands(), *settings], self.frame).show()

    def _go_to_setting(self, editor: QWidget) -> None:
        self.frame.docks[DockName.CONTROLS].show()
        self.frame.panel.focus_on(editor)

    @Action("shortcuts", "&Keyboard Shortcuts", help="window#keyboard-shortcuts")
    def show_shortcuts(self) -> None:
        """All keyboard shortcuts of the window."""
        from kernelscope.gui.tools.command_palette import ShortcutDialog

        dialogs.open_dialog(ShortcutDialog(self.frame.actions_.shortcuts(), self.frame))

    @Action("preferences", "Prefere&nces…", "Ctrl+,", icon="preferences", help="window")
    def show_preferences(self) -> None:
        """Theme and size of text."""
        from kernelscope.gui.tools.preferences import Preferences

        dialogs.open_dialog(Preferences(self.frame.settings, self.frame))

    @Action("about", "&About Kernelscope")
    def show_about(self) -> None:
        dialogs.show_about(self.frame, self._memory())


START = "index"  # the page if nothing around a widget names one


class ContextHelp(Watcher):
    """Finds the page about the widget in use."""

    wanted = Signal(str)  # open this place: from a list that keeps the keyboard for itself

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._rest = QCursor.pos()  # where the mouse was when the focus changed
        self.watch(*window.findChildren(QMenu))  # which keep the keyboard for themselves
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus)

    def place(self) -> str:
        """Return page, or ``page#heading``, about the widget in use; an open menu is closed."""
        popup = QApplication.activePopupWidget()
        if isinstance(popup, QMenu):
            found = place_of(popup) or START
            _close_popups()
            return found
        cursor = QCursor.pos()
        under = QApplication.widgetAt(cursor)
        active = QApplication.activeWindow()
        pointed = under is not None and active is not None and under.window() is active
        if pointed and cursor != self._rest:
            found = place_of(under, cursor)
            if found:
                return found
        return place_of(QApplication.focusWidget() or active) or START

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        is_help = isinstance(event, QKeyEvent) and event.matches(
            QKeySequence.StandardKey.HelpContents
        )
        if event.type() == QEvent.Type.KeyPress and is_help and isinstance(watched, QWidget):
            place = place_of(watched) or START
            _close_popups()
            self.wanted.emit(place)
            return True
        return super().eventFilter(watched, event)

    def _on_focus(self, *_: object) -> None:
        self._rest = QCursor.pos()


def _close_popups() -> None:
    """Close the list or menu that is open, and the menus that it opened from."""
    while (popup := QApplication.activePopupWidget()) is not None:
        popup.close()
