"""The bench in a window: choose, measure, see, export; and whether all levels agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QKeySequence, QPixmap, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFileDialog,
    QFrame,
    QLabel,
    QMenu,
    QProgressBar,
    QWidget,
)

from kernelscope.base.errors import AppError
from kernelscope.bench import (
    QUICK_LOOK,
    Parity,
    Plan,
    Progress,
    Report,
    Row,
    facts,
    load,
    measure,
    merge,
    save,
    save_csv,
    verify,
)
from kernelscope.bench.charts import Chart, Plot, Selection, all_whole, chart, choices
from kernelscope.bench.plan import GPU
from kernelscope.bench.recorded import FOLDER, RecordedReport, RecordedTime, entries, with_cpu
from kernelscope.bench.statistics import BASELINE
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.engine.worker import Job
from kernelscope.gui.tools.bench.chart_view import ChartView
from kernelscope.gui.tools.bench.export import save_chart
from kernelscope.gui.tools.bench.form import BenchForm
from kernelscope.gui.tools.bench.table import BenchTable, named, series_name
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.layouts import FoldingRow, Scrolled
from kernelscope.gui.widgets.messages import close_box, headline
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    label_of,
    push_button,
    refill,
    text_label,
    tool_splitter,
)
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.images.source import Source
from kernelscope.schema.samples import Pixels

_SIDE = 480  # of the map on the screen, in pixels


class ParityDialog(QDialog):
    def __init__(self, parity: Parity, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("parityDialog")
        self.setWindowTitle("Verify levels")
        agree = not parity.largest
        title = "All levels agree" if agree else f"Levels differ by up to {parity.largest:g}"
        if len(parity.levels) == 1:
            title = "Only one level ran"
        lines = [
            f"{parity.describe()}",
            f"On {parity.source}.",
            f"Compared: {', '.join(parity.levels)}.",
            *parity.remarks,
            *(f"{level} did not run: {reason}" for level, reason in parity.reasons.items()),
        ]
        text = text_label("\n".join(lines), "parityText", plain=True, selectable=True)
        layout = in_column(headline(title), text, of=self)
        if not agree:
            layout.addWidget(_map(parity), 0, Qt.AlignmentFlag.AlignCenter)
            caption = text_label(
                "Where: black, no difference; the brighter, the larger; white, the largest"
                + (f" (slice {parity.place[0]})." if parity.map.ndim == 3 else ".")
            )
            caption.setObjectName("parityCaption")
            layout.addWidget(caption)
        layout.addWidget(close_box(self))
        self.setMinimumWidth(60 * self.fontMetrics().averageCharWidth())


def _map(parity: Parity) -> QLabel:
    differences = parity.map[parity.place[0]] if parity.map.ndim == 3 else parity.map
    grey = _reduced(differences, parity.largest)
    height, width = grey.shape
    image = QImage(grey.tobytes(), width, height, width, QImage.Format.Format_Grayscale8).copy()
    shown = dressed(QLabel(), "parityMap", "Map of the differences")
    scaled = image.scaled(_SIDE, _SIDE, Qt.AspectRatioMode.KeepAspectRatio)
    shown.setPixmap(QPixmap.fromImage(scaled))
    return shown


def _reduced(differences: Pixels, largest: float) -> Pixels:
    """Return as many bytes as the screen has room for, each the largest of its neighbourhood.

    Any difference is at least a dark grey, and a single pixel is not averaged away.
    """
    step = max(1, -(-max(differences.shape) // _SIDE))
    rows, columns = (range(0, side, step) for side in differences.shape)
    most = np.maximum.reduceat(np.maximum.reduceat(differences, rows, axis=0), columns, axis=1)
    grey = np.ceil(64 + 191 * (most.astype(np.float64) / largest))
    return np.where(most > 0, grey, 0).astype(np.uint8)


_TOPIC = "bench-results"

SHOWN_AFTER = 150
"""Milliseconds after which reading is shown; a state for a shorter time would only flicker."""


class ReportReader(QObject):
    """Reads reports on a thread; of several requests the latest is answered.

    `then` takes the paths and their reports, merged. `failed` takes the error of files that cannot
    be read.
    """

    slow = Signal(str)  # reading takes long enough to be shown: the names of the files
    ended = Signal()  # the latest request was answered or given up

    def __init__(
        self,
        background: Background,
        then: Callable[[list[Path], Report], None],
        failed: Callable[[Exception], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._background, self._then, self._failed = background, then, failed
        self._paths: list[Path] = []
        self._is_reading = False
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_AFTER)
        self._timer.timeout.connect(lambda: self.slow.emit(names(self._paths)))

    def read(self, paths: Sequence[Path]) -> None:
        self._paths = wanted = list(paths)
        self._is_reading = True
        self._timer.start()
        self._background.start(
            _TOPIC, lambda: merge([load(path) for path in wanted]), self._on_read, self._on_failed
        )

    def forget(self) -> bool:
        """Leave the files that are being read; return whether there were any."""
        was_reading = self._is_reading
        self._background.forget(_TOPIC)
        self._end()
        return was_reading

    def _on_read(self, report: Report) -> None:
        self._end()
        self._then(self._paths, report)

    def _on_failed(self, error: Exception) -> None:
        self._end()
        self._failed(error)

    def _end(self) -> None:
        self._is_reading = False
        self._timer.stop()
        self.ended.emit()


def names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


FIRST_HINT = "Choose a preset or filters on the left, and press Run (F5)."


class EmptyPlot(QWidget):
    """A hint, and below it the recorded results while nothing was measured.

    `entries`: the recorded results; an installation may lack them. `recorded` opens the list of
    recorded results.
    """

    chosen = Signal(Path)  # a recorded result is to be shown

    def __init__(self, entries: Sequence[RecordedReport], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hint = text_label("", "benchHint")
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recorded = push_button(
            "&Recorded results",
            "benchRecorded",
            lambda: None,
            tip="Show results that were measured on another machine",
        )
        self._has_entries = bool(entries)
        menu = dressed(QMenu(self.recorded), "benchRecordedMenu")
        for entry in entries:
            action = menu.addAction(entry.title.replace("&", "&&"))
            action.triggered.connect(lambda _=False, path=entry.path: self.chosen.emit(path))
        self.recorded.setMenu(menu)
        column = in_column(0, self._hint, of=self)
        column.addWidget(self.recorded, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch()

    def show_hint(self, text: str, *, offers: bool) -> None:
        self._hint.setText(text)
        self.recorded.setVisible(offers and self._has_entries)


def missing_for(plot: Plot, baseline: str) -> str:
    """Return the rows that a plot needs, for rows that it shows nothing of."""
    match plot:
        case Plot.STAGES:
            return "Needs rows of the GPU."
        case Plot.ROOFLINE:
            return "Needs rows of the GPU whose plans state bytes and operations."
        case Plot.SPEED_UP:
            return f"No row of {baseline} to compare with."
        case _:
            return "Nothing to show."


_Reporter = Callable[[Any], None]

STORY = FOLDER / "gpu-f-levels.json"
"""The recorded results in which every level of one filter gains over the one before it."""

_FIRST_LEVEL = "GPU global"
"""The level that others on a card are compared with: the first one that uses all of it."""

_SEEN = "bench/seen"
_REDRAW = 150  # milliseconds that new rows are gathered before plots are drawn again

_PLOTS = "PNG picture (*.png);;SVG drawing (*.svg)"
_WAITING = (
    "On: whole runs, with upload and download of the GPU, as a user waits for them. Off: computing "
    "alone. The authors’ figures are shown where they are of the same."
)
_NO_CHOICE = {
    Plot.STAGES: "This plot shows computing and transfers apart.",
    Plot.ROOFLINE: "A roofline covers computing only.",
}
"""Why a plot cannot be with transfers or without."""

_DATA = "JSON, all that was measured (*.json);;CSV table (*.csv)"
_REPORTS = "Results of the bench (*.json);;All files (*)"


class BenchWindow(ToolWindow):
    """Measures on the worker of the main window, which stays usable.

    `tasks`: whose worker measures, until a filter is run; the rows so far are kept. `current`
    returns the request that Run would make in the main window, which is verified, or None. `opened`
    returns the picture or the scan that is open, or None. `background`: on whose threads saved
    results are read.
    """

    def __init__(
        self,
        tasks: Tasks,
        settings: Settings,
        availability: Mapping[str, Availability],
        current: Callable[[], Request | None],
        opened: Callable[[], Source | None],
        background: Background,
        parent: QWidget | None = None,
    ) -> None:
        title, page = "Benchmark – Kernelscope", "benchmark#in-the-window"
        flags = Qt.WindowType.Window
        super().__init__("benchWindow", title, parent, help_page=page, flags=flags)
        self._tasks, self._settings, self._current = tasks, settings, current
        self._busy = False
        self._task: Task | None = None
        self._verifying = ""
        self._report: Report | None = None
        self._chart: Chart | None = None
        self._wanted = ""
        self._wanted_baseline = BASELINE
        self._at: tuple[str, str, str] | None = None
        """The label, the size and the level to be selected in the next results to open."""
        self._kernels_alone = False  # the next results to open are shown without transfers

        self.form = BenchForm(opened)
        self._may_have_gpu = True  # also while the search is not over
        if (gpu := availability.get(GPU)) is not None:
            self.form.set_gpu(gpu.available)
            self._may_have_gpu = gpu.available
        self._table = BenchTable()
        self.chart_view = ChartView()
        self._timer = QTimer(self, singleShot=True, interval=_REDRAW)
        self._timer.timeout.connect(self._refresh)
        self._reader = ReportReader(background, self._show_opened, self._on_unreadable, self)
        self._reader.slow.connect(self._on_slow_reading)
        self._lay_out()
        self._reader.ended.connect(lambda: self._progress.setRange(0, 1))
        QShortcut(QKeySequence("Esc"), self, self.cancel)
        QShortcut(QKeySequence("F5"), self, self.run)
        self._show_busy(False)
        self._show_state("Ready.")
        self._refresh()

    def open_story(self, filter_id: str, recorded: RecordedTime | None, level: str = "") -> None:
        """Open at a filter: its recorded kernels by level, where no card can measure them.

        `recorded`: one of them, whose report is opened; without one, that of another filter.
        `level`: selected in the table.
        """
        self.form.choose_filter(filter_id)
        path = recorded.path if recorded is not None else STORY
        if self._may_have_gpu or not path.is_file():
            return
        self._plot.setCurrentText(Plot.SPEED_UP)
        self._kernels_alone = True
        if recorded is not None:
            self._wanted = str(Selection(recorded.row.label))
            self._at = recorded.row.label, recorded.row.size, level
        self._wanted_baseline = _FIRST_LEVEL
        self.open_results([path])

    # --- actions of the buttons ---

    def run(self) -> None:
        try:
            plan = self.form.plan()
        except AppError as error:
            dialogs.show_error(self, error)
            return
        self._decline()
        self._measure(plan)

    def quick_look(self) -> None:
        """Answer the first question with few measurements and one picture."""
        self.form.set_preset(QUICK_LOOK.name)
        self._plot.setCurrentText(Plot.SPEED_UP)
        self.run()

    def cancel(self) -> None:
        """Stop measuring; rows that are complete are kept."""
        if self._busy and self._task is not None:
            self._show_state("Stopping…")
            self._task.cancel()

    def verify(self) -> None:
        """Compare the results of all levels of the chosen filter on the open image."""
        request = self._current()
        if request is None:
            self._show_state("Open a picture in the main window first.")
            return

        def work(backends: Mapping[str, Backend], token: CancelToken, report: _Reporter) -> None:
            step = request.step
            parity = verify(
                request.source, step.filter.id, step.parameters, backends, token,
                lambda text, fraction: report((text, fraction)), border=step.border,
            )  # fmt: skip
            report(parity)

        self._start(Job(work), f"Verifying {request.step.filter.name}…")
        self._verifying = request.step.filter.name

    def save_plot(self) -> None:
        if self._chart is not None:
            shown = self._chart
            self._choose_file("Save the plot", "bench.png", _PLOTS, lambda p: save_chart(shown, p))

    def save_data(self) -> None:
        if (report := self._report) is not None:

            def write(path: Path) -> None:
                (save_csv if path.suffix.lower() == ".csv" else save)(report, path)

            self._choose_file("Save the data", "bench.json", _DATA, write)

    def open_data(self) -> None:
        """Ask for JSON files that were saved, here or by the command, and show them as one run."""
        dialogs.choose_paths(
            self,
            "Open results",
            "openBenchDialog",
            self.open_results,
            kinds=_REPORTS.split(";;"),
            mode=QFileDialog.FileMode.ExistingFiles,
        )

    # --- measuring ---

    def _measure(self, plan: Plan) -> None:
        def work(backends: Mapping[str, Backend], token: CancelToken, report: _Reporter) -> None:
            report(Report(facts(backends, plan.peers), plan, ()))
            for row in measure(plan, backends, token, report):
                report(row)

        self._start(Job(work), "Starting…")

    def _start(self, job: Job, text: str) -> None:
        self._verifying = ""
        self._reader.forget()
        self._show_busy(True)
        self._progress.setRange(0, 0)
        self._show_state(text)
        task = self._task = self._tasks.submit(job, Priority.STARTED)
        task.reported.connect(self._on_reported)
        task.finished.connect(lambda _: self._on_finished())
        task.failed.connect(self._on_failed)
        task.stopped.connect(lambda: self._end("Stopped"))

    def _on_reported(self, value: Any) -> None:
        match value:
            case Report():
                self.show_report(value)
            case Row() if self._report is not None:
                self._report = replace(self._report, rows=(*self._report.rows, value))
                self._table.add(value)
                self._timer.start()
            case Progress():
                self._show_fraction(value.fraction)
                self._show_state(value.describe())
            case (str(text), float(fraction)):
                self._show_fraction(fraction)
                self._show_state(f"Verifying: {text}")
            case Parity():
                dialogs.open_dialog(ParityDialog(value, self))

    def _on_finished(self) -> None:
        self._end("Done", f"Verified {self._verifying}." if self._verifying else "Done.")

    def _on_failed(self, error: Exception) -> None:
        self._end("Failed")
        why = f": {error.message}" if isinstance(error, AppError) else "."
        self._show_state(f"Failed{why}")
        self.report(error)

    def _end(self, how: str, without_rows: str = "") -> None:
        self._show_busy(False)
        self._timer.stop()
        self._refresh()
        rows = self._report.rows if self._report is not None and not self._verifying else ()
        missing = sum(not row.seconds for row in rows)
        kept = f"{len(rows) - missing} rows measured" + (
            f", {missing} cannot run here (reasons in the table)." if missing else "."
        )
        self._show_state(f"{how}: {kept}" if rows else without_rows or f"{how}.")

    # --- showing ---

    def show_report(self, report: Report) -> None:
        self._report = report
        self._table.show_rows(report.rows)
        self._refresh()

    def _refresh(self) -> None:
        if self._report is not None:
            self._origin.set_full_text(self._report.origin())
        rows = self._report.rows if self._report is not None else ()
        series = {row.series: series_name(row) for row in rows if row.seconds}
        refill(self._baseline, [(name, id_) for id_, name in series.items()], self._wanted_baseline)
        plot = Plot(self._plot.currentText())
        fixed = _NO_CHOICE.get(plot, "")
        self._waiting.setEnabled(not fixed)
        self._waiting.setToolTip(fixed or _WAITING)
        found = choices(plot, rows)
        refill(self._about, [(str(each), each) for each in found], self._wanted)
        self._baseline.setEnabled(bool(series))
        self._about.setEnabled(bool(found))
        entries = self._about.view()  # long ones, which the box itself has no room for
        entries.setMinimumWidth(entries.sizeHintForColumn(0) + 2 * self.fontMetrics().height())
        self._table.compare(self._baseline_id, waiting=self._waiting.isChecked())
        self._draw()
        self._save_data.setEnabled(bool(rows))

    def _draw(self) -> None:
        choice = self._about.currentData()
        self._chart = None
        if isinstance(choice, Selection) and self._report is not None:
            plot, rows = Plot(self._plot.currentText()), self._report.rows
            waiting = self._waiting.isChecked()
            drawn = chart(plot, choice, rows, baseline=self._baseline_id, waiting=waiting)
            self._chart = named(drawn, rows)
        if self._chart is not None and not any(s.points for s in self._chart.series):
            self._chart = None
        self.chart_view.show_chart(self._chart)
        self.chart_view.setVisible(self._chart is not None)
        self._hint.setVisible(self._chart is None)
        self._hint.show_hint(self._hint_text(), offers=self._report is None)
        self._save_plot.setEnabled(self._chart is not None)

    def _hint_text(self) -> str:
        if self._report is None or not any(row.seconds for row in self._report.rows):
            return "Measuring…" if self._busy else FIRST_HINT
        baseline = self._baseline.currentText() or BASELINE
        return missing_for(Plot(self._plot.currentText()), baseline)

    @property
    def _baseline_id(self) -> str:
        return self._baseline.currentData() or BASELINE

    def _show_fraction(self, fraction: float) -> None:
        self._progress.setRange(0, 1000)
        self._progress.setValue(round(1000 * fraction))

    def _show_busy(self, busy: bool) -> None:
        self._busy = busy
        self._progress.setRange(0, 1)
        self._progress.setValue(0)
        self._cancel.setEnabled(busy)
        others = (self._run, self._verify, self._open, self._quick, self._hint.recorded)
        for widget in (self.form, *others):
            widget.setEnabled(not busy)

    def _show_state(self, text: str) -> None:
        self._state.setText(text)

    def open_results(self, paths: list[Path]) -> None:
        """Show the results of saved runs, merged, once they are read."""
        if self._busy:  # its rows would be added to those of the files
            self._show_state("Measuring: cancel it to open results.")
        else:
            self._reader.read(paths)

    def _show_opened(self, paths: list[Path], report: Report) -> None:
        with QSignalBlocker(self._waiting):  # else the rows before would be drawn once more
            self._waiting.setChecked(all_whole(report.rows) and not self._kernels_alone)
        self._kernels_alone = False
        self.show_report(report)
        at, self._at = self._at, None
        if at is not None:
            self._table.select(*at)
        else:
            self.form.set_preset(report.plan.name)  # Run measures the same here
        self._show_state(f"Opened {names(paths)}.")

    def _on_unreadable(self, error: Exception) -> None:
        if isinstance(error, AppError):
            self._show_state(f"Not opened: {error.message}")
        self.report(error)

    def _on_slow_reading(self, files: str) -> None:
        self._progress.setRange(0, 0)
        self._show_state(f"Reading {files}…")

    def _choose_file(
        self, title: str, name: str, kinds: str, write: Callable[[Path], object]
    ) -> None:
        suffixes = re.findall(r"\*(\.\w+)", kinds)

        def use(path: Path) -> None:
            try:
                if path.suffix.lower() not in suffixes:
                    raise AppError(
                        f"{path.name}: nothing is written in that format.",
                        f"Let the name end in {' or '.join(suffixes)}.",
                    )
                write(path)
            except AppError as error:
                dialogs.show_error(self, error)
            else:
                self._show_state(f"Saved {path.name}.")

        dialog = dialogs.choose_text_to_save(self, title, name, use, kinds)
        dialog.filterSelected.connect(
            lambda kind: dialog.setDefaultSuffix(kind.rpartition("*.")[2].rstrip(")"))
        )
        dialog.setObjectName("saveBenchDialog")

    # --- building ---

    def _lay_out(self) -> None:
        self._run = push_button(
            "&Run", "benchRun", self.run, tip="Measure with these settings (F5)"
        )
        self._cancel = push_button(
            "&Cancel", "benchCancel", self.cancel, tip="Stop; complete rows are kept (Esc)"
        )
        self._verify = push_button(
            "&Verify levels",
            "benchVerify",
            self.verify,
            tip="Run every level of the main window’s filter on the open image, and compare them",
        )
        self._save_plot = push_button(
            "Save p&lot…", "benchSavePlot", self.save_plot, tip="Save the plot as PNG or SVG"
        )
        self._save_data = push_button(
            "Save &data…", "benchSaveData", self.save_data, tip="Save all rows as JSON or CSV"
        )
        self._open = push_button(
            "&Open…",
            "benchOpen",
            self.open_data,
            tip="Show results that were saved as JSON; several are shown as one run",
        )
        self._progress = dressed(QProgressBar(), "benchProgress", "Progress")
        self._progress.setTextVisible(False)
        self._progress.setFixedHeight(8)
        self._state = text_label("", "benchState", plain=True)
        self._state.setMinimumHeight(3 * self.fontMetrics().height())
        self._state.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._hint = EmptyPlot(entries())
        self._hint.chosen.connect(lambda path: self.open_results(with_cpu(path)))
        self._origin = dressed(ElidedLabel(), "benchOrigin")
        self._origin.set_full_text("Nothing is measured yet.")
        side, upper, lower = QWidget(), QWidget(), QWidget()
        buttons = in_row((self._run, 3), (self._cancel, 2))
        below = self._progress, self._state, self._verify
        form = Scrolled(self.form, "benchScroll", "Settings")
        in_column((form, 1), buttons, *below, of=side, margins=(0, 0, 6, 0))
        plot = self._plot_bar(), (self.chart_view, 1), (self._hint, 1)
        in_column(*plot, of=upper, margins=0)
        tools = in_row((self._origin, 1), self._save_data, self._open)
        in_column(tools, (self._table, 1), of=lower, margins=0)
        right = tool_splitter(upper, lower, name="benchResults", sizes=(480, 240), vertical=True)
        unit = self.fontMetrics().averageCharWidth()
        widths = 44 * unit, 130 * unit
        both = tool_splitter(side, right, name="benchSplitter", sizes=widths, stretch=(0, 1))
        self._banner = self._offer()
        in_column(self._banner, (both, 1), close_box(self), of=self)
        self.take_size(1320, 760)

    def _plot_bar(self) -> QWidget:
        tip = "Contents of the plot"
        self._plot = choice_box("benchPlotKind", "Plot", Plot, self._refresh, tip=tip)
        self._about = choice_box("benchAbout", "Of", (), self._draw, tip="Rows that the plot shows")
        self._about.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._about.setMinimumContentsLength(12)
        self._about.textActivated.connect(self._want)
        tip = "Row that speed-ups refer to"
        self._baseline = choice_box("benchBaseline", "Baseline", tip=tip)
        self._baseline.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._baseline.textActivated.connect(self._want_baseline)
        self._waiting = dressed(QCheckBox("With &transfers"), "benchWaiting")
        self._waiting.setChecked(True)
        self._waiting.toggled.connect(self._refresh)
        chosen = QWidget()
        in_row(
            *(label_of("Plo&t", self._plot), self._plot),
            *(label_of("&Of", self._about), (self._about, 1)),
            *(label_of("&Over", self._baseline), self._baseline),
            of=chosen,
            margins=0,
        )
        return FoldingRow((chosen,), (self._waiting, self._save_plot), spacing=6)

    def _offer(self) -> QFrame:
        """Return the offer of a quick look, visible until it was answered once."""
        self._quick = push_button(
            "&Quick look", "benchQuick", self.quick_look, tip="Measure two filters at every level"
        )
        later = push_button(
            "&Not now", "benchLater", self._decline, tip="It stays in the list of presets"
        )
        gains = "What do you gain on this machine by using the GPU, and by each level? "
        gains += "A quick look answers that in about 20 seconds."
        if not self._may_have_gpu:
            gains = "This machine has no usable GPU. What do you gain by using all cores of the "
            gains += "CPU, and by each way of computing? A quick look answers that."
        frame = dressed(QFrame(), "benchOffer")
        frame.setFrameShape(QFrame.Shape.StyledPanel)
        text = text_label(gains, "benchOfferText")
        in_row((text, 1), self._quick, later, of=frame)
        frame.setVisible(not self._settings.text(_SEEN))
        return frame

    def _want(self, about: str) -> None:
        self._wanted = about

    def _want_baseline(self, name: str) -> None:
        """Remember the user's choice, also while rows are shown that lack it."""
        self._wanted_baseline = name
        self._refresh()

    def _decline(self) -> None:
        self._settings.set_text(_SEEN, "yes")
        self._banner.hide()

    def leave(self) -> None:
        if self._reader.forget():
            self._show_state("Ready.")
        self.cancel()
