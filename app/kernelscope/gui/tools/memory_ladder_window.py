"""All levels of a filter on one screen: counted traffic, least time on a card, recorded time."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Hashable, Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QIcon
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.backends.emulator.tracing import TooManyAccesses, Tracer
from kernelscope.base.errors import AppError
from kernelscope.bench.memory_ladder import (
    FAR,
    LEAST,
    SIDES,
    SMALL,
    CountedRung,
    MemoryLadder,
    TimedRung,
    with_side,
)
from kernelscope.bench.recorded import Recorded, Wanted
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import describe_figure
from kernelscope.gui.model.runs import Runs
from kernelscope.gui.model.xray import NAMES, SIGNS
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.messages import close_box, save_text
from kernelscope.gui.widgets.parts import (
    as_table,
    in_column,
    in_row,
    labelled,
    push_button,
    refill,
    swatch,
    text_label,
)
from kernelscope.gui.widgets.tables import BARS, BarDelegate
from kernelscope.gui.widgets.tool_window import FigureTable, ToolWindow
from kernelscope.gui.work.background import Background, expected
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import Level, colour
from kernelscope.traffic.gpus import GPUS, Gpu, gpu_here
from kernelscope.traffic.trace import MemorySpace

_FILLS = {
    MemorySpace.GLOBAL: Qt.BrushStyle.SolidPattern,
    MemorySpace.TEXTURE: Qt.BrushStyle.Dense2Pattern,
    MemorySpace.SHARED: Qt.BrushStyle.Dense5Pattern,
    MemorySpace.CONSTANT: Qt.BrushStyle.BDiagPattern,
}
"""Density falls with the way to the memory."""


class MemoryLadderBars(QTreeWidget):
    """One row a level: its name, its loads by memory, its times."""

    def __init__(self) -> None:
        super().__init__()
        as_table(self, "memoryLadderBars", "Loads and least times of the levels", [""] * 3)
        self.setSelectionMode(QTreeWidget.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the table below has its figures
        header = self.header()
        header.setSectionsClickable(False)
        header.setStretchLastSection(False)
        self._bars = BarDelegate(self), BarDelegate(self)  # of the loads, and of the times
        for column, bars in enumerate(self._bars, 1):
            self.setItemDelegateForColumn(column, bars)
        for column in (1, 2):  # alike, so that neither moves when a longer text arrives
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self.in_front = ""  # id of the level whose row has a ground of its own

    def show_ladder(self, ladder: MemoryLadder, left: Sequence[Level] = ()) -> None:
        """Show the levels that are counted, and those that are `left` in their places."""
        steps = ladder.steps
        used = {space for each in steps for space, _ in each.loads}
        signs = "  ".join(f"{SIGNS[space]} {NAMES[space]}" for space in _FILLS if space in used)
        heads = "", f"Loads for a pixel\n{signs}", f"Least time on {ladder.card.name}"
        self.setHeaderLabels(list(heads))
        lines = [(each.rung.level.name, each.text()) for each in steps]
        lines += [(each.name, _COUNTING) for each in left]
        self.setAccessibleDescription("\n".join(map(": ".join, lines)))
        drawn = [(each.prediction, each.seconds) for each in steps if each.prediction is not None]
        longest = max((max(least.seconds, own or 0) for least, own in drawn), default=1.0)
        most = max((sum(count for _, count in each.loads) for each in steps), default=1)
        width = self.fontMetrics().horizontalAdvance
        briefs = [each.brief() for each in steps if each.prediction is not None]
        for bars, texts in zip(self._bars, (map(_loads_text, steps), briefs), strict=True):
            bars.texts = max(map(width, texts), default=0) + 12
        self.clear()
        for each in steps:
            self._add(each, most, longest)
        for level in left:
            self._add_row(QTreeWidgetItem([level.name, _COUNTING]), level)
        rows = _row_height(self) * len(lines)
        self.setFixedHeight(self.header().sizeHint().height() + rows + 2 * self.frameWidth())

    def _add(self, step: TimedRung, most: float, longest: float) -> None:
        name, shade = step.rung.level.name, QColor(colour(step.rung.level))
        if step.prediction is None:
            item = QTreeWidgetItem([f"{name}: {step.brief()}"])
            item.setForeground(0, theme.quiet_text(self.palette()))
        else:
            item = QTreeWidgetItem([name, _loads_text(step), step.brief()])
            ends = (0.0, *itertools.accumulate(count / most for _, count in step.loads))
            fills = (QBrush(shade, _FILLS[space]) for space, _ in step.loads)
            item.setData(1, BARS, list(zip(fills, ends, ends[1:], strict=False)))
            bars: list[tuple[QColor, float, float | None]]
            bars = [(shade, 0.0, step.prediction.seconds / longest)]
            if step.seconds is not None:
                is_far, palette = step.is_far, self.palette()
                ink = theme.warning_text(palette) if is_far else palette.text().color()
                bars.append((ink, step.seconds / longest, None))
            item.setData(2, BARS, bars)
            if step.measured is None and step.figure is not None:
                item.setToolTip(2, describe_figure(step.figure))
        self._add_row(item, step.rung.level)
        item.setFirstColumnSpanned(step.prediction is None)

    def _add_row(self, item: QTreeWidgetItem, level: Level) -> None:
        item.setSizeHint(1, QSize(0, _row_height(self)))
        item.setIcon(0, QIcon(swatch(colour(level), self.fontMetrics().height() // 2)))
        for column in range(3) if level.id == self.in_front else ():
            item.setBackground(column, self.palette().alternateBase())
        self.addTopLevelItem(item)


def _row_height(view: QWidget) -> int:
    return round(1.6 * view.fontMetrics().height())


def _loads_text(step: TimedRung) -> str:
    return "  ".join(f"{SIGNS[space]} {count:.3g}" for space, count in step.loads)


_logger = logging.getLogger(__name__)

_TOPIC, _OWN = "memory-ladder", "memory-ladder-card"
_USUAL = "H100"  # the card of a filter without recorded times

_CSV_FILES = "CSV table (*.csv)"

_COUNTING = "counting…"
_NOTE = (
    "The least time assumes that the slowest unit is busy all the time; ▼ is a time of the same "
    "work on the same card, recorded or of this session; ! if they are more than "
    f"{FAR:g} times apart."
)


class MemoryLadderWindow(ToolWindow):
    """Counts the accesses of each level, and predicts its least time on a card."""

    def __init__(self, background: Background, runs: Runs, parent: QWidget | None = None) -> None:
        page = "gpu-levels#the-memory-ladder"
        super().__init__("memoryLadderWindow", "Memory Ladder", parent, help_page=page)
        self.setSizeGripEnabled(True)
        self._background = background
        self._busy = threading.Lock()
        self._token = CancelToken()
        self._request: Request | None = None
        self._counted: Request | None = None
        self._recorded = Recorded()
        self._keeps_card = False  # one that the user has chosen, or that of this computer
        self._runs = runs
        self._found: tuple[CountedRung, ...] = ()
        self._known: dict[Hashable, tuple[CountedRung, ...]] = {}  # of all levels, by the work
        self._left: tuple[Level, ...] = ()
        self._title = text_label("", "memoryLadderTitle", "title")
        self._bars = MemoryLadderBars()
        self._remarks = text_label("", "memoryLadderRemarks", "note")
        self._remarks.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        box = close_box(self)
        box.button(box.StandardButton.Close).setAutoDefault(False)
        self._copy = push_button("C&opy table", "memoryLadderCopy", self._copy_table)
        self._save = push_button("&Save table…", "memoryLadderSave", self._save_table)
        for button in (self._copy, self._save):
            box.addButton(button, box.ButtonRole.ActionRole)
        self._table = FigureTable(
            "memoryLadderTable", "Times and traffic of the levels, for each pixel of the output"
        )
        in_column(
            self._make_choice(),
            self._title,
            self._bars,
            text_label(_NOTE, "", "note"),
            (self._table, 1),
            self._remarks,  # the only one that grows as levels are counted
            box,
            of=self,
        )
        self.take_room(190, 50, QSize(1280, 760))

    # --- widgets ---

    def _make_choice(self) -> QHBoxLayout:
        self._cards, self._sides = QComboBox(), QComboBox()
        for each in GPUS:
            self._cards.addItem(f"{each.name} ({each.year})", each)
        self._cards.setCurrentIndex([each.name for each in GPUS].index(_USUAL))
        self._cards.currentIndexChanged.connect(self._show)
        self._cards.activated.connect(self._keep_card)
        self._sides.currentIndexChanged.connect(self._count)
        card = labelled("&Card", self._cards, "memoryLadderCard")
        return in_row(*card, *labelled("&Picture", self._sides, "memoryLadderSide"), 1)

    def _keep_card(self) -> None:
        self._keeps_card = True

    def _choose_card(self) -> None:
        """Choose the card whose recorded times the levels show, unless the user has chosen one."""
        if self._keeps_card or self._request is None:
            return
        figures = self._recorded.nearest(Wanted.by(self._request)).values()
        cards = {figure.card for figure in figures} or {_USUAL}
        with QSignalBlocker(self._cards):
            place = next((i for i, each in enumerate(GPUS) if each.name in cards), None)
            if place is not None:
                self._cards.setCurrentIndex(place)

    # --- counting ---

    def show_request(
        self, request: Request, recorded: Recorded, gpu: Backend | None = None, level: str = ""
    ) -> None:
        """Count the levels of a request's filter; `recorded`: on the project's cards."""
        self._bars.in_front = level
        if not request.step.filter.levels(Device.GPU):
            raise AppError(
                f"{request.step.filter.name} has no kernel.",
                "Choose a filter that has levels on the GPU.",
            )
        self._request, self._recorded = request, recorded
        self._choose_card()
        shape = "×".join(map(str, reversed(request.source.shape[:-1])))
        entries: list[tuple[str, int | None]] = [(f"Open: {shape}", None)]
        if isinstance(request.source, Image):
            least = min(request.source.height, request.source.width)
            timed = {size[0] for size in recorded.sizes(request) if size[0] <= max(SIDES)}
            sides = [side for side in sorted({*SIDES, *timed}) if side > SMALL or side < least]
            entries += [(_name(side, request.source), side) for side in sides]
        refill(self._sides, entries)
        if gpu is not None and not self._cards.itemData(0).is_here:
            self._background.start(_OWN, lambda: _card_of(gpu), self._add_card, _log)
        self._count()

    def _add_card(self, card: Gpu | None) -> None:
        """Offer the card of this computer, and show it."""
        if card is not None:
            self._keep_card()
            self._cards.insertItem(0, f"This computer: {card.name}", card)
            self._cards.setCurrentIndex(0)

    def refresh(self) -> None:
        if self.isVisible() and self._cards.currentData().is_here:
            self._show()

    def _count(self) -> None:
        if self._request is None or self._sides.currentIndex() < 0:
            return
        self._token.cancel()
        self._token = CancelToken()
        request = with_side(self._request, self._sides.currentData())
        levels = tuple(request.step.filter.levels(Device.GPU))
        self._found = self._known.get(_work_of(request), ())
        self._left = () if self._found else levels
        self._counted = request
        self._count_next(request)

    def _count_next(self, request: Request) -> None:
        self._show()
        if not self._left:
            if not any(each.refusal for each in self._found):  # it may have lacked a compiler
                self._known[_work_of(request)] = self._found
            return
        level, token = self._left[0], self._token

        def work() -> CountedRung:
            with self._busy:
                tracer = Tracer()
                try:
                    return CountedRung(level, tracer.count(request, level, token))
                finally:
                    tracer.close()

        def keep(rung: CountedRung) -> None:
            self._found, self._left = (*self._found, rung), self._left[1:]
            self._count_next(request)

        def fail(error: Exception) -> None:
            failure = expected(error)
            if failure is None:
                return
            if isinstance(failure, TooManyAccesses) and self._sides.currentData() is None:
                small = self._sides.findData(SMALL)
                if small >= 0:  # counted in its place
                    self._sides.setCurrentIndex(small)
                    return
            keep(CountedRung(level, refusal=f"{failure.message} {failure.hint}".strip()))

        self._background.start(_TOPIC, work, keep, fail)

    # --- showing ---

    def _show(self) -> None:
        if self._request is None:
            return
        ladder = self.ladder()
        self._title.setText(self._request.describe())
        self._bars.show_ladder(ladder, self._left)
        remarks = [
            each for each in (*ladder.reasons(), ladder.remark(), self._elsewhere(ladder)) if each
        ]
        self._remarks.setText("\n".join(remarks))
        self._remarks.setVisible(bool(remarks))
        self._fill(ladder.table if not self._left else ())  # its rows and columns would move

    def _elsewhere(self, ladder: MemoryLadder) -> str:
        """Return the nearest size with recorded times, if there is none at this one."""
        if self._counted is None or self._left or any(each.figure for each in ladder.steps):
            return ""
        card = ladder.card
        sizes = [] if card.is_here else self._recorded.sizes(self._counted, card.name)
        if not sizes:
            return ""
        here, there = (
            "×".join(map(str, reversed(size)))
            for size in (self._counted.source.shape[:-1], sizes[0])
        )
        return (
            f"No time is recorded on {card.name} at {here}; the nearest size with one is {there}."
        )

    def _fill(self, rows: tuple[tuple[str, ...], ...]) -> None:
        self._copy.setEnabled(bool(rows))
        self._save.setEnabled(bool(rows))
        head, *body = rows or ((),)
        head = tuple(each.replace(" ", "\n") for each in head)  # narrow columns cut longer names
        self._table.fill(head, body, strong=(LEAST,))
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        if head:
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)

    def _copy_table(self) -> None:
        assert self._counted is not None
        QGuiApplication.clipboard().setText(self.ladder().csv(self._counted, delimiter="\t"))

    def _save_table(self) -> None:
        assert self._counted is not None
        name = f"{self._counted.step.filter.id}-memory-ladder.csv"
        save_text(self, "Save Table", name, self.ladder().csv(self._counted), _CSV_FILES)

    def ladder(self) -> MemoryLadder:
        card: Gpu = self._cards.currentData()
        if self._counted is None:
            return MemoryLadder(self._found, card)
        recorded = self._recorded.same(self._counted, card.name)
        return MemoryLadder(self._found, card, recorded, self._runs.kernels_of(self._counted))

    def leave(self) -> None:
        self._token.cancel()
        for topic in (_TOPIC, _OWN):
            self._background.forget(topic)


def _work_of(request: Request) -> Hashable:
    return request.work, request.options.block


def _name(side: int, picture: Image) -> str:
    within = side <= min(picture.height, picture.width)
    return f"{'Corner of' if within else 'Repeated to'} {side}×{side}"


def _card_of(gpu: Backend) -> Gpu | None:
    """Return the card of this computer; the slow facts, which come last, are not waited for."""
    facts: dict[str, str] = {}
    for group in gpu.facts():
        facts.update((each.name, each.value) for each in group.facts)
        found = gpu_here(facts)
        if found is not None:
            return found
    return None


def _log(error: Exception) -> None:
    _logger.error("The GPU does not answer", exc_info=error)
