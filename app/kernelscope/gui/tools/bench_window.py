"""The bench in a window: choose, measure, see, export; and whether all levels agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer
from PySide6.QtGui import QImage, QKeySequence, QPixmap, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QDialog,
    QFileDialog,
    QFrame,
    QHeaderView,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QProgressBar,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope import filters
from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.base.text import significant
from kernelscope.bench import figures
from kernelscope.bench.charts import Chart, Plot, Selection, all_whole, chart, choices
from kernelscope.bench.data import Data, kind_of
from kernelscope.bench.parity import Parity, verify
from kernelscope.bench.plan import CPU, DEVICES, GPU, Plan, Sweep
from kernelscope.bench.presets import PRESETS, QUICK_LOOK, Preset, grid
from kernelscope.bench.recorded import FOLDER, RecordedTime, entries, with_cpu
from kernelscope.bench.report import Report, facts, load, merge, save
from kernelscope.bench.rows import Row
from kernelscope.bench.rules import REPEAT
from kernelscope.bench.runner import BenchProgress, measure
from kernelscope.bench.statistics import (
    BASELINE,
    find_baseline,
    full_time,
    megapixels_per_second,
    speed_up,
    summarise,
)
from kernelscope.bench.tables import remarks, save_csv
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.engine.worker import Job
from kernelscope.gui.tools.bench_charts import ChartView, save_chart
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.form import Form, Listed, Text, Tick, Whole
from kernelscope.gui.widgets.layouts import FoldingRow, Scrolled
from kernelscope.gui.widgets.messages import close_box, headline
from kernelscope.gui.widgets.parts import (
    RIGHT,
    as_table,
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
from kernelscope.gui.widgets.tables import FigureDelegate
from kernelscope.gui.widgets.tiles import image_of
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.images.source import Source
from kernelscope.schema.blocks import block_name, read_block
from kernelscope.schema.samples import Kind, Pixels

OWN_CHOICE = "Own choice"

_LARGEST = 16384
_FIRST_FILTERS = ("median", "mean")
_ENABLED, _CHECKED = Qt.ItemFlag.ItemIsEnabled, Qt.CheckState.Checked
_SIZES, _MASKS = "256 512 1024", "3 5 9"
_ON = "Measure on the {}"


_OPTIONS = (
    Listed(
        "benchPreset",
        "&Preset",
        "",
        "The experiments of the four sources, or your own choice",
        entries=((OWN_CHOICE, ""), *((each.title, each.name) for each in PRESETS.values())),
    ),
    Text("benchSizes", "&Sizes", _SIZES, "Sides of square pictures, in pixels"),
    Tick(
        "benchOpenImage",
        "The &open image instead",
        help="Measure on the picture or volume of the main window",
        beside="",
    ),
    Text("benchMasks", "&Masks", _MASKS, "For the filters that have a mask size"),
    *(
        Tick(f"bench{each.capitalize()}", each.upper(), True, _ON.format(each.upper()), "Devices")
        for each in DEVICES
    ),
    Text(
        "benchBlocks",
        "&Blocks",
        help="Threads of a GPU's blocks, such as 8x8 16x16 256x1: a row for each, at levels up to "
        "texture; empty for the filter's own",
        hint="as planned",
    ),
    Whole(
        "benchRepeat",
        "&Repeats",
        REPEAT,
        "Timed runs of each row, after a warm-up that is not counted",
        low=1,
        high=99,
    ),
    Tick(
        "benchPeers",
        "Also &libraries, where installed",
        help="OpenCV, SciPy, scikit-image, CuPy, NPP and loops in C, on the same data in the same "
        "run; results are compared first",
        beside="",
    ),
)


class BenchForm(Form):
    """Presets, or filters, sizes and masks; devices, levels, libraries and repeats."""

    def __init__(self, opened: Callable[[], Source | None]) -> None:
        super().__init__("benchForm", _OPTIONS)
        self._opened = opened
        preset = self.editors["benchPreset"]
        preset.setMinimumContentsLength(24)
        entries = preset.view()  # long ones, which the box itself has no room for
        entries.setMinimumWidth(entries.sizeHintForColumn(0) + 2 * self.fontMetrics().height())
        self._summary = dressed(_Summary(self), "benchSummary")
        self._summary.setWordWrap(True)
        every = (*filters.discover().values(), *filters.discover(Kind.VOLUME).values())
        self._filters = _Checklist("benchFilters", "Filters", ((s.id, s.name) for s in every))
        self._filters.tick(_FIRST_FILTERS)
        on_cpu, on_gpu = filters.levels(CPU), filters.levels(GPU)
        self._level_devices = [CPU] * len(on_cpu) + [GPU] * len(on_gpu)
        levels = [(name, level.on(CPU.upper())) for name, level in on_cpu.items()]
        levels += [(name, level.on(GPU.upper())) for name, level in on_gpu.items()]
        self._levels = _Checklist("benchLevels", "Levels", levels)
        self._levels.tick(self._levels.offered)
        self.rows.insertRow(1, self._summary)
        self.rows.insertRow(2, "&Filters", self._filters)
        self.rows.insertRow(7, "&Levels", self._levels)
        self.changed.connect(self._on_option)
        self._on_preset()

    def _on_option(self, name: str) -> None:
        if name == "benchPreset":
            self._on_preset()
        elif name == "benchOpenImage":
            self.editors["benchSizes"].setDisabled(self.values[name])
        else:
            self._offer_levels()

    @property
    def preset(self) -> Preset | None:
        return PRESETS.get(self.values["benchPreset"])

    def set_preset(self, name: str) -> None:
        self.editors["benchPreset"].set_value(name)

    def choose_filter(self, filter_id: str) -> None:
        self.set_preset("")
        self._filters.tick((filter_id,))

    def set_gpu(self, available: bool) -> None:
        self.editors["benchGpu"].set_value(available)

    def plan(self) -> Plan:
        if self.problem is not None:
            raise self.problem
        devices = tuple(filter(self._is_ticked, DEVICES))
        if not devices:
            raise InvalidParameter("No device is chosen.", "Tick CPU or GPU.")
        levels = self._levels.ticked
        if not levels:
            raise InvalidParameter("No level is chosen.", "Tick at least one.")
        preset = self.preset
        plan = preset.plan if preset is not None else Plan(sweeps=self._sweeps())
        return replace(
            plan,
            devices=devices,
            levels=() if levels == self._levels.offered else tuple(levels),
            repeat=self.values["benchRepeat"],
            peers=self.values["benchPeers"],
            blocks=tuple(dict.fromkeys(map(read_block, self.values["benchBlocks"].split()))),
        )

    def _sweeps(self) -> tuple[Sweep, ...]:
        data = None
        names = self._filters.ticked
        if self.values["benchOpenImage"]:
            source = self._opened()
            if source is None:
                raise InvalidParameter("Nothing is open.", "Open an image, or choose sizes.")
            data = Data.of(source)
            names = [name for name in names if filters.get(name).kind is kind_of(data)]
        if not names:
            raise InvalidParameter("No filter is chosen that fits.", "Tick at least one.")
        sizes = (
            []
            if data is not None
            else _whole_numbers("Sizes", self.values["benchSizes"], (16, _LARGEST), _SIZES)
        )
        masks = _whole_numbers("Masks", self.values["benchMasks"], (1, 255), _MASKS)
        sweeps = grid(names, sizes, masks, data)
        if not sweeps:
            raise InvalidParameter(
                f"None of these filters has masks of {self.values['benchMasks']}.",
                "Give odd numbers such as 3 5 9.",
            )
        return sweeps

    def _is_ticked(self, device: str) -> bool:
        return bool(self.values[f"bench{device.capitalize()}"])

    def _offer_levels(self) -> None:
        """Grey the levels of a device that is not ticked: they count for nothing."""
        for (_, item), device in zip(self._levels.keyed(), self._level_devices, strict=True):
            flags = item.flags() | _ENABLED
            offered = self._is_ticked(device)
            item.setFlags(flags if offered else flags & ~_ENABLED)
            item.setToolTip("" if offered else f"The {device.upper()} is not ticked above.")

    def _on_preset(self) -> None:
        preset = self.preset
        own = (self.editors[name] for name in ("benchSizes", "benchMasks"))
        for widget in (self._filters, *own):
            self.rows.setRowVisible(widget, preset is None)
        self.editors["benchOpenImage"].setVisible(preset is None)
        self._summary.setText(
            f"{preset.summary}\n\n{_contents(preset.plan)}"
            if preset is not None
            else "Filters, sizes and masks as set below."
        )
        if preset is not None:
            chosen = preset.plan
            blocks = " ".join(map(block_name, chosen.blocks))
            self.show_values(benchRepeat=chosen.repeat, benchBlocks=blocks, benchCpu=True)
            self._offer_levels()
            self._levels.tick(chosen.levels or [key for key, _ in self._levels.keyed()])


def _whole_numbers(name: str, text: str, limits: tuple[int, int], example: str) -> list[int]:
    least, most = limits
    words = text.replace(",", " ").split()
    grouped = re.search(r"\d,\d{3}(?!\d)", text)  # 16,384 is one number to many
    if grouped or not words or not all(w.isdecimal() and least <= int(w) <= most for w in words):
        raise InvalidParameter(
            f"{name}: “{text}” is not a list of numbers from {least} to {most}.",
            f"Write for instance {example}.",
        )
    return list(dict.fromkeys(map(int, words)))


class _Summary(QLabel):
    """A wrapped text that keeps the height it needs, which the form would give to its lists."""

    def setText(self, text: str) -> None:
        super().setText(text)
        self._keep_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._keep_height()

    def _keep_height(self) -> None:
        self.setFixedHeight(self.heightForWidth(self.width()))


def _contents(plan: Plan) -> str:
    sizes: dict[str, dict[str, None]] = {}
    for sweep in plan.sweeps:
        of_filter = sizes.setdefault(filters.get(sweep.filter).name, {})
        of_filter.update(dict.fromkeys("×".join(map(str, data.shape[::-1])) for data in sweep.data))
    alike: dict[str, list[str]] = {}
    for name, of_filter in sizes.items():
        alike.setdefault(", ".join(of_filter), []).append(name)
    return "\n".join(f"{', '.join(names)}: {texts}" for texts, names in alike.items())


class _Checklist(QListWidget):
    """Entries to tick, each with a key."""

    def __init__(self, name: str, accessible_name: str, entries: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        dressed(self, name, accessible_name, tip=f"{accessible_name} to measure; Space ticks one")
        for key, text in entries:
            item = QListWidgetItem(text, self)
            item.setData(Qt.ItemDataRole.UserRole, key)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        self.setSpacing(1)  # the boxes to tick would touch each other
        self.setMinimumHeight(5 * self.fontMetrics().height())

    def keyed(self) -> list[tuple[str, QListWidgetItem]]:
        items = (self.item(row) for row in range(self.count()))
        return [(str(item.data(Qt.ItemDataRole.UserRole)), item) for item in items]

    @property
    def offered(self) -> list[str]:
        return [key for key, item in self.keyed() if item.flags() & _ENABLED]

    @property
    def ticked(self) -> list[str]:
        checked = [key for key, item in self.keyed() if item.checkState() is _CHECKED]
        return [key for key in self.offered if key in checked]

    def tick(self, keys: Collection[str]) -> None:
        for key, item in self.keyed():
            item.setCheckState(_CHECKED if key in keys else Qt.CheckState.Unchecked)


_COLUMNS = {
    "Filter": "The filter, its parameters, and the channels if there are several",
    "By": "Device and level, or library",
    "Size": "Width × height; of the timed part, where only a part was timed",
    "ms": "Median of computing: stage compute, the kernels, or a library’s call; after ≈ for all "
    "of the data, where a part was timed",
    "± %": "Half the interquartile range; left out where it is 0 in all lines",
    "End to end ms": "Of a GPU: upload, kernel and download",
    "MP/s": "Millions of pixels or voxels a second of computing",
    "Speed-up": "Times as fast as the baseline: whole runs or computing alone, as in the plot; ≈ "
    "where one was timed on a part.\nLibraries on a GPU are timed without transfers, and have no "
    "whole runs",
    "Authors’ figures (their hardware)": "Reported by the source’s author, not measured here",
    "Remark": "Differences of libraries, load by other programs, why there is no time",
}
"""The headings and their tooltips."""

_NUMBERS = range(3, 8)
_SPREAD, _SPEED_UP, _THEIRS, _REMARK = 4, 7, 8, 9
_WIDEST = 48  # characters of the authors' figures in view; the tooltip has the rest
_BESIDE = 5  # where the authors' figures stand: right of our time and its spread


class BenchTable(QTreeWidget):
    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[QTreeWidgetItem, Row]] = []
        as_table(self, "benchTable", "Results", tuple(_COLUMNS), right=_NUMBERS)
        self.setAlternatingRowColors(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        figures = FigureDelegate(self)
        for column in _NUMBERS:
            self.setItemDelegateForColumn(column, figures)
        for column, tip in enumerate(_COLUMNS.values()):
            self.headerItem().setToolTip(column, tip)
        header, width = self.header(), _WIDEST * self.fontMetrics().averageCharWidth()
        header.setStretchLastSection(False)  # remarks are scrolled to
        header.setSectionResizeMode(_THEIRS, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(_THEIRS, width)
        header.moveSection(_THEIRS, _BESIDE)  # beside ours, and never out of view

    def show_rows(self, rows: Sequence[Row]) -> None:
        self.clear()
        for column in (_SPREAD, _THEIRS):
            self.setColumnHidden(column, True)
        self._lines = []
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Add a line, without its speed-up: `compare` fills that for all."""
        size = f"{row.timed_size} of {row.size}" if row.is_part and row.seconds else row.size
        item = QTreeWidgetItem([row.title, row.name, size])
        for column in _NUMBERS:
            item.setTextAlignment(column, RIGHT)
        if row.seconds:
            summary = summarise(row.seconds)
            item.setText(3, _time(row, summary.median, waiting=False))
            spread = f"{50 * summary.spread:.0f}"
            item.setText(_SPREAD, spread)
            if spread != "0":
                self.setColumnHidden(_SPREAD, False)
            if row.waits != row.seconds:
                item.setText(5, _time(row, summarise(row.waits).median, waiting=True))
            item.setText(6, significant(megapixels_per_second(row)))
            said = [text for text in remarks(row) if not text.startswith("published: ")]
            if row.difference is not None and not row.difference.largest:
                said.insert(0, "same result as ours")
        else:
            said = [f"Not measured: {row.reason}"]
            item.setText(3, "none")
            for column in range(len(_COLUMNS)):
                item.setForeground(column, theme.quiet_text(self.palette()))
        found = list(figures.beside(row))
        item.setText(_THEIRS, "; ".join(figure.describe() for figure in found))
        item.setToolTip(
            _THEIRS,
            "\n".join(dict.fromkeys(f"{f.origin.author} on {f.origin.hardware}" for f in found)),
        )
        if found:
            self.setColumnHidden(_THEIRS, False)
        font = item.font(_THEIRS)
        font.setItalic(True)
        item.setFont(_THEIRS, font)
        item.setText(_REMARK, "; ".join(said))
        item.setToolTip(_REMARK, item.text(_REMARK))
        for column in range(_THEIRS):
            item.setToolTip(column, item.text(_REMARK) if row.reason else item.text(column))
        self.addTopLevelItem(item)
        self._lines.append((item, row))

    def select(self, title: str, size: str, level: str) -> None:
        there = {
            row.level: item for item, row in self._lines if (row.title, row.size) == (title, size)
        }
        if level in there:
            self.setCurrentItem(there[level])
        elif there:
            self.scrollToItem(next(iter(there.values())), self.ScrollHint.PositionAtTop)

    def compare(self, baseline: str, *, waiting: bool) -> None:
        """Fill the speed-up over the series `baseline`, of whole runs or of computing alone."""
        rows = [row for _, row in self._lines]
        for item, row in self._lines:
            base = find_baseline(rows, row, baseline) if row.seconds else None
            gain = speed_up(row, base, waiting) if base is not None else None
            item.setText(_SPEED_UP, gain.figure if gain is not None else "")


def _time(row: Row, seconds: float, waiting: bool) -> str:
    """Return milliseconds; where a part was timed, with the estimate for the whole."""
    text = significant(1e3 * seconds)
    return f"{text} (≈ {significant(1e3 * full_time(row, waiting))})" if row.is_part else text


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
    image = image_of(grey, QImage.Format.Format_Grayscale8)
    shown = dressed(QLabel(), "parityMap", "Map of the differences")
    scaled = image.scaled(_SIDE, _SIDE, Qt.AspectRatioMode.KeepAspectRatio)
    shown.setPixmap(QPixmap.fromImage(scaled))
    return shown


def _reduced(differences: Pixels, largest: float) -> Pixels:
    """Return as many bytes as the screen holds: the largest of each place, none black."""
    step = max(1, -(-max(differences.shape) // _SIDE))
    rows, columns = (range(0, side, step) for side in differences.shape)
    most = np.maximum.reduceat(np.maximum.reduceat(differences, rows, axis=0), columns, axis=1)
    grey = np.ceil(64 + 191 * (most.astype(np.float64) / largest))
    return np.where(most > 0, grey, 0).astype(np.uint8)


_TOPIC = "bench-results"

_FIRST_HINT = "Choose a preset or filters on the left, and press Run (F5)."

_NEEDED = {
    Plot.STAGES: "Needs rows of the GPU.",
    Plot.ROOFLINE: "Needs rows of the GPU whose plans state bytes and operations.",
    Plot.SPEED_UP: "No row of {} to compare with.",
}
"""Why a plot shows nothing of the rows there are."""


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
    """Measures on the worker of the main window, until a filter is run there.

    `current`: the request of Run in the main window, which is verified. `opened`: the open picture
    or scan, if any.
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
        self._background = background
        self._busy = False
        self._task: Task | None = None
        self._verifying = ""
        self._report: Report | None = None
        self._chart: Chart | None = None
        self._wanted = ""
        self._wanted_baseline = BASELINE

        self.form = BenchForm(opened)
        self._may_have_gpu = True  # also while the search is not over
        if (gpu := availability.get(GPU)) is not None:
            self.form.set_gpu(gpu.available)
            self._may_have_gpu = gpu.available
        self._table = BenchTable()
        self.chart_view = ChartView()
        self._timer = QTimer(self, singleShot=True, interval=_REDRAW)
        self._timer.timeout.connect(self._refresh)
        self._reading = False  # whether files of results are
        self._lay_out()
        QShortcut(QKeySequence("Esc"), self, lambda: self.cancel() if self._busy else self.reject())
        QShortcut(QKeySequence("F5"), self, self.run)
        self._show_busy(False)
        self._show_state("Ready.")
        self._refresh()

    def open_story(self, filter_id: str, recorded: RecordedTime | None, level: str = "") -> None:
        """Open at the recorded kernels of a filter by level, where no card can measure them."""
        self.form.choose_filter(filter_id)
        path = recorded.path if recorded is not None else STORY
        if self._may_have_gpu or not path.is_file():
            return
        self._plot.setCurrentText(Plot.SPEED_UP)
        at = None
        if recorded is not None:
            self._wanted = str(Selection(recorded.row.title))
            at = recorded.row.title, recorded.row.size, level
        self._wanted_baseline = _FIRST_LEVEL
        self.open_results([path], computing=True, at=at)

    # --- actions of the buttons ---

    def run(self) -> None:
        with dialogs.errors_shown(self):
            plan = self.form.plan()
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
        if self._chart is not None and self._report is not None:
            shown, origin = self._chart, self._report.origin()

            def write(path: Path) -> None:
                save_chart(shown, path, origin=origin)

            self._choose_file("Save the plot", "bench.png", _PLOTS, write)

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
        self._end_reading()
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
            case BenchProgress():
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
            self._origin.setText(self._report.origin())
        rows = self._report.rows if self._report is not None else ()
        series = {row.series: row.name for row in rows if row.seconds}
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
            self._chart = chart(plot, choice, rows, baseline=self._baseline_id, waiting=waiting)
        if self._chart is not None and not any(s.points for s in self._chart.series):
            self._chart = None
        self.chart_view.show_chart(self._chart)
        self.chart_view.setVisible(self._chart is not None)
        self._empty.setVisible(self._chart is None)
        self._hint.setText(self._hint_text())
        self._recorded.setVisible(self._report is None and bool(self._recorded.menu().actions()))
        self._save_plot.setEnabled(self._chart is not None)

    def _hint_text(self) -> str:
        if self._report is None or not any(row.seconds for row in self._report.rows):
            return "Measuring…" if self._busy else _FIRST_HINT
        needed = _NEEDED.get(Plot(self._plot.currentText()), "Nothing to show.")
        return needed.format(self._baseline.currentText() or BASELINE)

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
        others = (self._run, self._verify, self._open, self._quick, self._recorded)
        for widget in (self.form, *others):
            widget.setEnabled(not busy)

    def _show_state(self, text: str) -> None:
        self._state.setText(text)

    def open_results(
        self,
        paths: list[Path],
        *,
        computing: bool = False,
        at: tuple[str, str, str] | None = None,
    ) -> None:
        """Show the results of saved runs, merged, once they are read.

        `computing`: without transfers. `at`: the title, size and level to be selected.
        """
        if self._busy:  # its rows would be added to those of the files
            self._show_state("Measuring: cancel it to open results.")
            return

        def show(report: Report) -> None:
            self._end_reading()
            with QSignalBlocker(self._waiting):  # else the rows before would be drawn once more
                self._waiting.setChecked(all_whole(report.rows) and not computing)
            self.show_report(report)
            if at is not None:
                self._table.select(*at)
            else:
                self.form.set_preset(report.plan.name)  # Run measures the same here
            self._show_state(f"Opened {names}.")

        def failed(error: Exception) -> None:
            self._end_reading()
            if isinstance(error, AppError):
                self._show_state(f"Not opened: {error.message}")
            self.report(error)

        names = ", ".join(path.name for path in paths)
        self._reading = True
        self._progress.setRange(0, 0)
        self._show_state(f"Reading {names}…")
        self._background.start(_TOPIC, lambda: merge([load(path) for path in paths]), show, failed)

    def _end_reading(self) -> bool:
        """Leave the files that are being read; return whether there were any."""
        was, self._reading = self._reading, False
        self._background.forget(_TOPIC)
        self._progress.setRange(0, 1)
        return was

    def _choose_file(
        self, title: str, name: str, kinds: str, write: Callable[[Path], object]
    ) -> None:
        suffixes = re.findall(r"\*(\.\w+)", kinds)

        def use(path: Path) -> None:
            if path.suffix.lower() not in suffixes:
                raise AppError(
                    f"{path.name}: nothing is written in that format.",
                    f"Let the name end in {' or '.join(suffixes)}.",
                )
            write(path)
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
        self._empty = self._empty_plot()
        self._origin = text_label("Nothing is measured yet.", "benchOrigin", plain=True)
        side, upper, lower = QWidget(), QWidget(), QWidget()
        buttons = in_row((self._run, 3), (self._cancel, 2))
        below = self._progress, self._state, self._verify
        form = Scrolled(self.form, "benchScroll", "Settings")
        in_column((form, 1), buttons, *below, of=side, margins=(0, 0, 6, 0))
        plot = self._plot_bar(), (self.chart_view, 1), (self._empty, 1)
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

    def _empty_plot(self) -> QWidget:
        """Return a hint, and below it the recorded results, which an installation may lack."""
        self._hint = text_label("", "benchHint")
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        tip = "Show results that were measured on another machine"
        self._recorded = push_button("&Recorded results", "benchRecorded", lambda: None, tip=tip)
        menu = dressed(QMenu(self._recorded), "benchRecordedMenu")
        for entry in entries():
            action = menu.addAction(entry.title.replace("&", "&&"))
            action.triggered.connect(
                lambda _=False, path=entry.path: self.open_results(with_cpu(path))
            )
        self._recorded.setMenu(menu)
        empty = QWidget()
        column = in_column(0, self._hint, of=empty)
        column.addWidget(self._recorded, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch()
        return empty

    def _plot_bar(self) -> QWidget:
        tip = "Contents of the plot"
        self._plot = choice_box("benchPlotKind", "Plot", Plot, self._refresh, tip=tip)
        self._about = choice_box("benchAbout", "Of", (), self._draw, tip="Rows that the plot shows")
        self._about.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._about.setMinimumContentsLength(12)  # in a narrow window
        self._about.textActivated.connect(partial(setattr, self, "_wanted"))
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

    def _want_baseline(self, name: str) -> None:
        """Remember the user's choice, also while rows are shown that lack it."""
        self._wanted_baseline = name
        self._refresh()

    def _decline(self) -> None:
        self._settings.set_text(_SEEN, "yes")
        self._banner.hide()

    def leave(self) -> None:
        if self._end_reading():
            self._show_state("Ready.")
        self.cancel()
