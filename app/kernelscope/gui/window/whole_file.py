"""Filters the file in front by the present steps: all of its volumes, or in blocks of any size."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from kernelscope.base import memory
from kernelscope.base.durations import duration
from kernelscope.base.errors import AppError, NotANumber
from kernelscope.base.text import one_line
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import RunSettings
from kernelscope.engine.worker import Job
from kernelscope.files.formats import Format
from kernelscope.files.names import name_of_steps, stem
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES
from kernelscope.files.volumes.volume_formats import ZARR
from kernelscope.gui.model.comparison import StepProgress
from kernelscope.gui.model.history import parts_of
from kernelscope.gui.model.volume_files import FilteredFile, VolumeDone
from kernelscope.gui.session.subject import Savable
from kernelscope.gui.tools.file_dialogs import name_filter
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.messages import choose_text_to_save
from kernelscope.gui.window.frame import Frame
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.window.scans import VolumeSteps
from kernelscope.schema.samples import Kind, Levels

_COMPONENTS = "Volumes that were opened together are filtered together: Run (F5) filters them all."

if TYPE_CHECKING:
    from kernelscope.big.lazy.files import Filed

_TIFF = Format("TIFF, OME-TIFF", (".tif", ".tiff"))
_ZARR = ZARR.writers[0].format


@dataclass(frozen=True)
class _Written:
    target: Path
    filed: Filed

    def describe(self) -> str:
        first, second, third = self.filed.shape
        sides = (second, first) if self.filed.kind is Kind.PICTURE else (third, second, first)
        took = duration(self.filed.streamed.seconds)
        several = f"{self.filed.volumes} volumes of " if self.filed.volumes > 1 else ""
        size = f"{several}{'×'.join(map(str, sides))}, in {took}."
        return "  ".join((f"Wrote {self.target}: {size}", *self.filed.notices))


def _filter_blocks(
    path: Path,
    recipe: Recipe,
    options: RunOptions,
    levels: Levels | None,
    target: Path,
    costs: Costs,
    backends: Mapping[str, Backend],
    token: CancelToken,
    report: Callable[[StepProgress | _Written], None],
) -> None:
    """Filter a file, all of its channels and times, in half of the free memory."""
    from kernelscope.big.lazy.files import filter_file

    filed = filter_file(
        recipe,
        path,
        target,
        memory.resident() + memory.available() / 2,
        backends,
        options=replace(options, level=None),
        token=token,
        progress=lambda stage, fraction: report(StepProgress("", stage, fraction)),
        costs=costs,
        levels=levels,
    )
    report(_Written(target, filed))


class WholeFile(QObject):
    done = Signal(object, object)
    """`Result, RunSettings`: Of every volume that was filtered."""

    def __init__(self, frame: Frame, runner: Runner, members: VolumeSteps) -> None:
        super().__init__(frame)
        self._frame, self._runner, self._members = frame, runner, members
        self._subject = frame.session.volumes

    @Action(
        "filterChannels",
        "Filter C&hannels of This Time",
        need=commands.MEMBERS,
        label="Filter channels",
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
        "Filter &All Volumes",
        need=commands.MEMBERS,
        label="Filter all",
        help="volumes#volumes-of-a-file",
    )
    def filter_file(self) -> None:
        """Filter all volumes of the file, every channel at every time, with these steps and
        settings.
        """
        self._filter(range(self._members.place[2]))

    @Action(
        "filterBlocks",
        "Filter in Bloc&ks…",
        need=commands.SOURCE,
        help="command-line#larger-than-memory",
    )
    def filter_in_blocks(self) -> None:
        """Filter the file that is open, a TIFF or an OME-Zarr of any size, all channels and times
        at the full resolution, by the present steps into another file.
        """
        from kernelscope.big.lazy.filtered import check
        from kernelscope.files.volumes.zarr_source import is_zarr

        session = self._frame.session
        base = session.subject.base
        paths = [each.path for each in parts_of(base)] if base is not None else []
        path = paths[0] if len(paths) == 1 else None
        if path is None:
            self._frame.show_status("Only single files are filtered in blocks: TIFF and OME-Zarr.")
            return
        try:
            recipe, options = self._runner.recipe(), session.require().options
            for step in recipe.steps:
                check(step, session.kind)
        except AppError as error:
            self._runner.failed.emit(error)
            return
        order = partial(_filter_blocks, path, recipe, options, session.subject.levels)
        kinds = (_ZARR, _TIFF) if is_zarr(path) else (_TIFF, _ZARR)
        is_ome = path.name.lower().endswith(OME_SUFFIXES)
        end = OME_SUFFIXES[0] if is_ome else kinds[0].suffixes[0]
        name = f"{stem(path)}-{name_of_steps(each.filter.id for each in recipe.steps)}{end}"

        def begin(target: Path) -> None:
            job = Job(partial(order, target, self._runner.tasks.costs), "blocks")
            task = self._runner.begin(job, text=f"Filtering {one_line(path.name)} in blocks")
            task.reported.connect(take)

        def take(report: object) -> None:
            if isinstance(report, _Written):
                self._frame.settings.add_recent(report.target)
                self._frame.show_status(report.describe())

        chosen = ";;".join(map(name_filter, kinds))
        dialog = choose_text_to_save(self._frame, "Filter in Blocks", name, begin, chosen)
        dialog.setDirectory(str(path.parent))

    def save(self) -> None:
        """Save all volumes of the file, or those that were filtered last if the user wants that;
        ask first where that takes filtering.
        """
        series, _, count = self._members.place
        try:
            missing = self._to_filter(range(count)).missing if series is not None else []
        except AppError as error:
            self._runner.failed.emit(error)
            return
        if series is None or not missing:
            self._filter(range(count), self._save)
            return
        filtered, run = self._members.filtered_of(series), self._subject.result
        part = filtered.places if filtered is not None else ()
        every, some = f"Save All {count}…", f"Save Only {len(part)}…"
        text = f"{len(missing)} of the {series.counted(count)} are not filtered by these settings."
        details = f"“{every}” filters them first"
        is_current = run is not None and self._subject.is_current(self._subject.session.settings)
        details += f"; that in front took {duration(run.seconds)}." if run and is_current else "."
        if 0 < len(part) < count:
            text = f"Of the {series.counted(count)}, {series.part(part)} were filtered last."
            details += f" “{some}” leaves the others out of the file."
        self._frame.file_dialogs.ask(
            "partOfFile",
            text,
            details,
            [every, *[some] * (0 < len(part) < count)],
            lambda answer: self._filter(range(count) if answer == every else part, self._save),
            usual=every,
        )

    def save_last(self) -> None:
        """Save the volumes that were filtered by the last settings, whatever is in front."""
        filtered = self._members.filtered
        if filtered is not None:
            self._save(replace(filtered, places=sorted(filtered.results)))

    def _save(self, filtered: FilteredFile) -> None:
        series, places = filtered.series, filtered.places
        made = name_of_steps(each.step.filter.id for each in filtered.steps)
        name = f"{stem(series.path)}-{made}"
        sources = [filtered.results[place].request.source for place in places]
        whole = series.counted(series.count) if len(places) < series.count else ""
        outputs, together = filtered.outputs(), filtered.is_block
        self._frame.file_dialogs.save(Savable(outputs, name, together, sources, whole))

    def _to_filter(self, places: Sequence[int]) -> FilteredFile:
        """Return volumes with the outputs that are known, that of the run in front included."""
        (series, index, _), subject = self._members.place, self._subject
        assert series is not None
        subject.session.require()
        filtered = FilteredFile(series, subject.steps_of_all(), subject.levels, tuple(places))
        before, run = self._members.filtered_of(series), subject.result
        if before is not None and before.is_of(series, filtered.steps, filtered.levels):
            filtered.results = before.results
        if run is None or run.request.source is not subject.base:
            return filtered
        all_steps = len(run.request.then) == len(filtered.steps) - 1
        if all_steps and subject.is_current(subject.session.settings):
            filtered.results.setdefault(index, run)
        return filtered

    def _filter(
        self, places: Sequence[int], then: Callable[[FilteredFile], None] = lambda _: None
    ) -> None:
        """Filter volumes whose outputs are not known; then call ``then()``."""
        series, index, _ = self._members.place
        base = self._subject.base
        if series is None or base is None:
            self._frame.show_status(_COMPONENTS)
            return
        try:
            filtered = self._to_filter(places)
            count = len(filtered.missing)
            needed = 2 * count * base.volumes[0].voxels.nbytes
            memory.require(needed, f"to filter {series.counted(count)}")
        except AppError as error:
            self._runner.failed.emit(error)
            return
        self._members.keep_filtered(filtered)
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
                result = filtered.results[report.place] = report.result
                self._members.note_output(filtered, report.place)
                first = result.parts[0] if result.parts else result
                self.done.emit(first, RunSettings.of(result.request))
                self._runner.aside_finished.emit()
            elif isinstance(report, NotANumber):
                self._frame.file_dialogs.ask_nan(report, replace_nan)

        def replace_nan(number: float) -> None:
            series.nan = number
            self._filter(places, then)

        def finish(_: object) -> None:
            if not filtered.missing:
                seconds = duration(time.monotonic() - begun)
                done, every = len(filtered.results), series.counted(series.count)
                rest = f"File > Save All Volumes writes all {every} to one file."
                if done < series.count:
                    rest = f"That makes {done} of the {every}."
                text = f"Filtered {series.counted(count)} of {name} in {seconds}."
                self._frame.show_status(f"{text}  {rest}")
                then(filtered)

        job = Job(partial(filtered.run, known, self._runner.tasks.costs), "a whole file")
        task = self._runner.begin(job, text=f"Filtering {series.counted(count)} of {name}")
        task.reported.connect(take)
        task.finished.connect(finish)
