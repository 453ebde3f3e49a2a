"""All levels of a filter on one screen: counted traffic, least time on a card, recorded time."""

from __future__ import annotations

import logging
import threading

from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetricsF,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
)
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QHeaderView, QSizePolicy, QWidget

from kernelscope.backends.emulator.tracing import TooManyAccesses, Tracer
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.bench.memory_ladder import (
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
from kernelscope.gui.model.ladder import TimeScale
from kernelscope.gui.model.runs import Runs
from kernelscope.gui.model.xray import NAMES, SIGNS
from kernelscope.gui.widgets import theme
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
from kernelscope.schema.levels import Level, colour
from kernelscope.traffic.gpus import GPUS, Gpu, gpu_here
from kernelscope.traffic.trace import MemorySpace

_ROW = 1.9  # height of a row in lines of text
_LOADS = 0.36  # part of the width that the loads have, beside the times
_SHORTEST = 60  # pixels that the longest bar has at least, where texts are long

_FILLS = {
    MemorySpace.GLOBAL: Qt.BrushStyle.SolidPattern,
    MemorySpace.TEXTURE: Qt.BrushStyle.Dense2Pattern,
    MemorySpace.SHARED: Qt.BrushStyle.Dense5Pattern,
    MemorySpace.CONSTANT: Qt.BrushStyle.BDiagPattern,
}
"""Density falls with the way to the memory."""

_MIDDLE = Qt.AlignmentFlag.AlignVCenter


class MemoryLadderView(QWidget):
    """One row a level: its name, its loads by memory, its times on a logarithmic axis."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("memoryLadderBars")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._steps: tuple[TimedRung, ...] = ()
        self._card = ""
        self._more = 0
        self.in_front = ""  # id of the level whose row has a ground of its own
        self._axis = TimeScale(())

    def show_ladder(self, ladder: MemoryLadder, more: int = 0) -> None:
        steps = self._steps = ladder.steps
        self._card = ladder.card.name
        self._more = more
        times = [each.prediction.seconds for each in steps if each.prediction is not None]
        times += [each.seconds for each in steps if each.seconds is not None]
        self._axis = TimeScale(times)
        self.setAccessibleName("Loads and least times of the levels")
        self.setAccessibleDescription(
            "\n".join(f"{each.rung.level.name}: {each.text()}" for each in steps)
        )
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        count = 1 + len(self._steps) + self._more
        return QSize(
            100 * self.fontMetrics().averageCharWidth(),
            round(count * _ROW * self.fontMetrics().height()) + 8,
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = QFontMetricsF(self.font())
        height = _ROW * metrics.height()
        rows = [
            QRectF(0, 4 + number * height, self.width(), height)
            for number in range(1 + len(self._steps))
        ]
        names = [each.rung.level.name for each in self._steps]
        left = max(map(metrics.horizontalAdvance, names), default=0.0) + height + 8
        times = left + _LOADS * (self.width() - left)
        self._paint_heads(painter, rows[0], left, times)
        labels = [_loads_text(each) for each in self._steps]
        room = max(map(metrics.horizontalAdvance, labels), default=0.0)
        longest_load = max(_SHORTEST, times - left - room - 28)
        briefs = [each.brief() for each in self._steps if each.prediction is not None]
        room = max(map(metrics.horizontalAdvance, briefs), default=0.0)
        longest_time = max(_SHORTEST, self.width() - times - room - 24)
        for step, row in zip(self._steps, rows[1:], strict=True):
            if step.rung.level.id == self.in_front:
                painter.fillRect(row, self.palette().alternateBase())
            self._paint_name(painter, step, row)
            if step.prediction is None:
                painter.setPen(theme.quiet_text(self.palette()))
                self._write(painter, row.adjusted(left, 0, -4, 0), step.brief())
                continue
            self._paint_loads(
                painter, step, row.adjusted(left, 0, times - row.right(), 0), longest_load
            )
            self._paint_times(painter, step, row.adjusted(times, 0, -4, 0), longest_time)
        painter.end()

    def _paint_heads(self, painter: QPainter, row: QRectF, left: float, times: float) -> None:
        painter.setPen(theme.quiet_text(self.palette()))
        used = {space for each in self._steps for space, _ in each.loads}
        signs = "  ".join(f"{SIGNS[space]} {NAMES[space]}" for space in _FILLS if space in used)
        upper = row.adjusted(left, 0, -4, -row.height() / 2)
        self._write(painter, upper.adjusted(0, 0, times - row.right() - 12, 0), "Loads for a pixel")
        self._write(painter, upper.adjusted(times - left, 0, 0, 0), f"Least time on {self._card}")
        self._write(painter, upper.translated(0, upper.height()), signs)

    def _write(self, painter: QPainter, place: QRectF, text: str) -> None:
        metrics = QFontMetricsF(self.font())
        elide = Qt.TextElideMode.ElideRight
        painter.drawText(place, _MIDDLE, metrics.elidedText(text, elide, place.width()))

    def _paint_name(self, painter: QPainter, step: TimedRung, row: QRectF) -> None:
        side = 0.7 * QFontMetricsF(self.font()).height()
        swatch = QRectF(2, row.center().y() - side / 2, side, side)
        painter.fillRect(swatch, QColor(colour(step.rung.level)))
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(row.adjusted(side + 10, 0, 0, 0), _MIDDLE, step.rung.level.name)

    def _paint_loads(self, painter: QPainter, step: TimedRung, row: QRectF, longest: float) -> None:
        most = max(sum(count for _, count in each.loads) for each in self._steps)
        shade, line = QColor(colour(step.rung.level)), QFontMetricsF(self.font()).height()
        x = row.left()
        painter.setPen(QPen(shade, 1))
        for space, count in step.loads:
            part = QRectF(x, row.center().y() - 0.4 * line, count / most * longest, 0.8 * line)
            painter.setBrush(QBrush(shade, _FILLS[space]))
            painter.drawRect(part)
            x = part.right()
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        self._write(painter, row.adjusted(x - row.left() + 8, 0, -8, 0), _loads_text(step))

    def _paint_times(self, painter: QPainter, step: TimedRung, row: QRectF, longest: float) -> None:
        assert step.prediction is not None
        line = QFontMetricsF(self.font()).height()
        length = max(2.0, self._axis.share(step.prediction.seconds) * longest)
        bar = QRectF(row.left(), row.center().y() - 0.4 * line, length, 0.8 * line)
        painter.fillRect(bar, QColor(colour(step.rung.level)))
        end = bar.right()
        if step.seconds is not None:
            x = row.left() + self._axis.share(step.seconds) * longest
            end = max(end, self._paint_mark(painter, step, bar, x))
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        self._write(painter, row.adjusted(end - row.left() + 8, 0, 0, 0), step.brief())

    def _paint_mark(self, painter: QPainter, step: TimedRung, bar: QRectF, x: float) -> float:
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        if step.is_far:
            ink = theme.warning_text(self.palette())
        painter.setPen(QPen(ink, 1.5, Qt.PenStyle.DotLine))
        y = bar.center().y()
        painter.drawLine(QPointF(min(bar.right(), x), y), QPointF(x, y))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        half = 0.3 * bar.height() + 2
        painter.drawPolygon(
            [QPointF(x - half, y - half), QPointF(x + half, y - half), QPointF(x, y + half)]
        )
        return x + half


def _loads_text(step: TimedRung) -> str:
    return "  ".join(f"{SIGNS[space]} {count:.3g}" for space, count in step.loads)


_logger = logging.getLogger(__name__)

_TOPIC, _OWN = "memory-ladder", "memory-ladder-card"
_USUAL = "H100"  # the card of a filter without recorded times

_CSV_FILES = "CSV table (*.csv)"

_NOTE = (
    "The least time assumes that the slowest unit is busy all the time; ▼ is a time of the same "
    "work on the same card, recorded or of this session. Its axis is logarithmic."
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
        self._left: tuple[Level, ...] = ()
        self._title = text_label("", "memoryLadderTitle", "title")
        self._bars = MemoryLadderView()
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
            sides = [side for side in SIDES if side > SMALL or side < least]
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
            if isinstance(error, TooManyAccesses) and self._sides.currentData() is None:
                small = self._sides.findData(SMALL)
                if small >= 0:  # counted in its place
                    self._sides.setCurrentIndex(small)
                    return
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
        head = tuple(each.replace(" ", "\n") for each in head)  # narrow columns cut longer names
        self._table.fill(head, body, strong=(LEAST,))
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        if head:
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)

    def _copy_table(self) -> None:
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
        return MemoryLadder(self._found, card, recorded, self._runs.kernels_of(self._counted))

    def leave(self) -> None:
        self._token.cancel()
        for topic in (_TOPIC, _OWN):
            self._background.forget(topic)


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
