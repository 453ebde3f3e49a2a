"""Filters all channels or all volumes of the file in front by the present steps, and saves them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject

from kernelscope.base import memory
from kernelscope.base.durations import duration
from kernelscope.base.errors import AppError, NotANumber
from kernelscope.base.text import one_line
from kernelscope.engine.worker import Job
from kernelscope.files.names import stem
from kernelscope.gui.model.volume_files import FilteredFile, VolumeDone
from kernelscope.gui.session.subject import Savable
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.window.scans import VolumeSteps

_COMPONENTS = "Components are filtered together: Run (F5) filters all of them."


class WholeFile(QObject):
    def __init__(self, frame: Frame, runner: Runner, members: VolumeSteps) -> None:
        super().__init__(frame)
        self._frame, self._runner, self._members = frame, runner, members
        self._subject = frame.session.volumes

    @Action(
        "filterChannels",
        "Filter All C&hannels",
        need=commands.MEMBERS,
        label="Filter all",
        help="volumes#volumes-of-a-file",
    )
    def filter_channels(self) -> None:
        """Filter each channel of the time in front with these steps and settings."""
        series, index, _ = self._members.place
        if series is not None and not series.along("C", index):
            self._frame.show_status("This file has no channels: its volumes are times.")
        else:
            self._filter(series.along("C", index) if series is not None else ())

    @Action(
        "filterFile",
        "Filter All &Volumes",
        need=commands.MEMBERS,
        label="Filter all",
        help="volumes#volumes-of-a-file",
    )
    def filter_file(self) -> None:
        """Filter all volumes of the file, every channel at every time, with these steps and
        settings.
        """
        self._filter(range(self._members.place[2]))

    def save(self) -> None:
        """Save the volumes that were filtered last, or else all, which are filtered first."""
        series, _, count = self._members.place
        filtered = self._members.filtered
        known = filtered is not None and filtered.series is series
        self._filter(filtered.places if filtered and known else range(count), self._save)

    def _save(self, filtered: FilteredFile) -> None:
        name = f"{stem(filtered.series.path)}-{filtered.steps[-1].step.filter.id}"
        self._frame.file_dialogs.save(Savable(filtered.outputs(), name, together=True))

    def _filter(
        self, places: Sequence[int], then: Callable[[FilteredFile], None] = lambda _: None
    ) -> None:
        """Filter volumes whose outputs are not known; then call ``then()``."""
        series, index, _ = self._members.place
        subject, base, before = self._subject, self._subject.base, self._members.filtered
        if series is None or base is None:
            self._frame.show_status(_COMPONENTS)
            return
        try:
            subject.session.require()
            steps, levels = subject.steps_of_all(), subject.levels
            filtered = FilteredFile(series, steps, levels, tuple(places))
            if before is not None and before.is_of(series, steps, levels):
                filtered.results = before.results
            count = len(filtered.missing)
            needed = 2 * count * base.volumes[0].voxels.nbytes
            memory.require(needed, f"to filter {series.counted(count)}")
        except AppError as error:
            self._runner.failed.emit(error)
            return
        self._members.filtered = filtered
        if not filtered.missing:
            self._frame.show_status(f"{series.counted(len(places))} are filtered so already.")
            then(filtered)
            return
        kept = {place: series.kept(place) for place in filtered.missing}
        known = {place: filtered.scan_of(each) for place, each in kept.items() if each is not None}
        known[index] = base
        begun, name = time.monotonic(), one_line(series.path.name)

        def take(report: object) -> None:
            if isinstance(report, VolumeDone):
                filtered.results[report.place] = report.result
                self._members.note_output(filtered, report.place)
            elif isinstance(report, NotANumber):
                self._frame.file_dialogs.ask_nan(report, replace_nan)

        def replace_nan(number: float) -> None:
            series.nan = number
            self._filter(places, then)

        def finish(_: object) -> None:
            if not filtered.missing:
                seconds = duration(time.monotonic() - begun)
                text = f"Filtered {series.counted(count)} of {name} in {seconds}."
                self._frame.show_status(f"{text}  File > Save All Volumes writes them to one file.")
                then(filtered)

        job = Job(partial(filtered.run, known, self._runner.tasks.costs), "a whole file")
        task = self._runner.begin(job, text=f"Filtering {series.counted(count)} of {name}")
        task.reported.connect(take)
        task.finished.connect(finish)
