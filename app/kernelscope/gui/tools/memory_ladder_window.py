"""All levels of a filter on one screen: counted traffic, least time on a card, recorded time."""

from __future__ import annotations

import logging
import threading

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QHeaderView, QWidget

from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.bench.memory_ladder import LEAST, SIDES, CountedRung, MemoryLadder, with_side
from kernelscope.bench.recorded import Recorded
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.session_times import SessionTimes
from kernelscope.gui.tools.memory_ladder_view import MemoryLadderView
from kernelscope.gui.widgets.messages import close_box, save_text
from kernelscope.gui.widgets.parts import (
    in_column,
    in_row,
    labelled,
    push_button,
    refill,
    text_label,
)
from kernelscope.gui.widgets.tool_window import FigureTable, ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import Level
from kernelscope.traffic.gpus import GPUS, Gpu, gpu_here

_logger = logging.getLogger(__name__)

_TOPIC, _OWN = "memory-ladder", "memory-ladder-card"
_USUAL = "H100"  # the card that recorded times are of

_CSV_FILES = "CSV table (*.csv)"

_NOTE = (
    "The least time assumes that the slowest unit is busy all the time; ◆ is a time of the same "
    "work on the same card, recorded or of this session. Its axis is logarithmic."
)


class MemoryLadderWindow(ToolWindow):
    """Counts what each level reads and writes, and predicts its least time on a card."""

    def __init__(
        self,
        background: Background,
        parent: QWidget | None = None,
        *,
        times: SessionTimes | None = None,
    ) -> None:
        page = "gpu-levels#the-memory-ladder"
        super().__init__("memoryLadderWindow", "Memory Ladder", parent, help_page=page)
        self.setSizeGripEnabled(True)
        self._background = background
        self._busy = threading.Lock()
        self._token = CancelToken()
        self._request: Request | None = None
        self._counted: Request | None = None
        self._recorded = Recorded()
        self._times = times or SessionTimes()
        self._found: tuple[CountedRung, ...] = ()
        self._left: tuple[Level, ...] = ()
        self._title = text_label("", "memoryLadderTitle", "title")
        self._bars = MemoryLadderView()
        self._remarks = text_label("", "memoryLadderRemarks", "note")
        self._remarks.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        box = close_box(self)
        box.button(box.StandardButton.Close).setAutoDefault(False)
        self._copy = push_button("C&opy Table", "memoryLadderCopy", self._copy_table)
        self._save = push_button("&Save Table…", "memoryLadderSave", self._save_table)
        for button in (self._copy, self._save):
            box.addButton(button, box.ButtonRole.ActionRole)
        self._table = FigureTable(
            "memoryLadderTable", "Times and traffic of the levels, for each pixel of the output"
        )
        height = self._table.fontMetrics().height()
        self._table.verticalHeader().setDefaultSectionSize(round(1.5 * height))
        in_column(
            self._make_choice(),
            self._title,
            self._bars,
            self._remarks,
            text_label(_NOTE, "", "note"),
            (self._table, 1),
            box,
            of=self,
        )
        self.take_room(150, 48, QSize(1180, 690))

    # --- widgets ---

    def _make_choice(self) -> QHBoxLayout:
        self._cards, self._sides = QComboBox(), QComboBox()
        for each in GPUS:
            self._cards.addItem(f"{each.name} ({each.year})", each)
        self._cards.setCurrentIndex([each.name for each in GPUS].index(_USUAL))
        self._cards.currentIndexChanged.connect(self._show)
        self._sides.currentIndexChanged.connect(self._count)
        card = labelled("&Card", self._cards, "memoryLadderCard")
        return in_row(*card, *labelled("&Picture", self._sides, "memoryLadderSide"), 1)

    # --- counting ---

    def show_request(
        self, request: Request, recorded: Recorded, gpu: Backend | None = None
    ) -> None:
        """Count the levels of a request's filter on its picture or scan.

        `recorded`: measurements of the project's cards. `gpu`: the GPU of this computer, if it can
        be used.
        """
        if not request.step.filter.levels(Device.GPU):
            raise AppError(
                f"{request.step.filter.name} has no kernel.",
                "Choose a filter that has levels on the GPU.",
            )
        self._request, self._recorded = request, recorded
        shape = "×".join(map(str, reversed(request.source.shape[:-1])))
        entries: list[tuple[str, int | None]] = [(f"Open: {shape}", None)]
        if isinstance(request.source, Image):
            entries += [(f"Repeated to {side}×{side}", side) for side in SIDES]
        refill(self._sides, entries)
        if gpu is not None and not self._has_own:
            self._background.start(_OWN, lambda: _card_of(gpu), self._add_card, _log)
        self._count()

    @property
    def _has_own(self) -> bool:
        """Whether the card of this computer is in the list."""
        return bool(self._cards.itemData(0).is_here)

    def _add_card(self, card: Gpu | None) -> None:
        """Offer the card of this computer, and show it."""
        if card is not None:
            self._cards.insertItem(0, f"This computer: {card.name}", card)
            self._cards.setCurrentIndex(0)

    def refresh(self) -> None:
        """Show the times of runs that have ended since."""
        if self.isVisible() and self._cards.currentData().is_here:
            self._show()

    def _count(self) -> None:
        if self._request is None or self._sides.currentIndex() < 0:
            return
        self._token.cancel()
        self._token = CancelToken()
        request = with_side(self._request, self._sides.currentData())
        self._found, self._left = (), tuple(request.step.filter.levels(Device.GPU))
        self._counted = request
        self._count_next(request)

    def _count_next(self, request: Request) -> None:
        self._show()
        if not self._left:
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
            if isinstance(error, Cancelled):
                return
            if not isinstance(error, AppError):
                raise error
            keep(CountedRung(level, refusal=f"{error.message} {error.hint}".strip()))

        self._background.start(_TOPIC, work, keep, fail)

    # --- showing ---

    def _show(self) -> None:
        if self._request is None:
            return
        ladder = self.ladder()
        counting = f": counting {self._left[0].name}…" if self._left else ""
        self._title.setText(f"{self._request.describe()}{counting}")
        self._bars.show_ladder(ladder, len(self._left))
        remarks = [each for each in (*ladder.reasons(), ladder.remark()) if each]
        self._remarks.setText("\n".join(remarks))
        self._remarks.setVisible(bool(remarks))
        self._fill(ladder.table)

    def _fill(self, rows: tuple[tuple[str, ...], ...]) -> None:
        self._copy.setEnabled(bool(rows))
        self._save.setEnabled(bool(rows))
        head, *body = rows or ((),)
        self._table.fill(head, body, strong=(LEAST,))
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        if head:
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)

    def _copy_table(self) -> None:
        """Put the table on the clipboard, with tabs between cells, for a spreadsheet."""
        text = "\n".join("\t".join(row) for row in self.ladder().table)
        QGuiApplication.clipboard().setText(text)

    def _save_table(self) -> None:
        assert self._request is not None
        name = f"{self._request.step.filter.id}-memory-ladder.csv"
        save_text(self, "Save Table", name, self.ladder().csv(), _CSV_FILES)

    def ladder(self) -> MemoryLadder:
        card: Gpu = self._cards.currentData()
        if self._counted is None:
            return MemoryLadder(self._found, card)
        recorded = self._recorded.same(self._counted, card.name)
        return MemoryLadder(self._found, card, recorded, self._times.same(self._counted))

    def leave(self) -> None:
        self._token.cancel()
        for topic in (_TOPIC, _OWN):
            self._background.forget(topic)


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
