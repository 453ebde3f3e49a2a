"""The ladder of levels: where the filter can run, how long it takes there, and whether it agrees.

◉ Auto: CPU parallel
○ ■ Serial         CPU  ▮▮▮▮▮▮▮▮▮▮▮   10.2 ms  ref
○ ■ Parallel       CPU  ▮▮▮▮           1.9 ms   ✓
▸ No GPU: recorded on H100, 22 Nov 2026
  mask size 3, 2048×2048
▾ Emulated GPU: 6 levels, not timed
○ ■ Global         Emulated GPU     emulated  ✓
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import (
    QEvent,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QBrush,
    QColor,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from kernelscope.engine.options import Device
from kernelscope.gui.model.ladder import Agreement, KnownRung, Rung, RungPlace, TimeScale
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import (
    HELP_ROLE,
    Index,
    action_button,
    dressed,
    in_column,
    in_row,
    label_of,
    set_help,
    text_label,
    wrapped,
)
from kernelscope.gui.widgets.tables import Column
from kernelscope.gui.widgets.tiles import set_count
from kernelscope.schema.levels import colour
from kernelscope.teach.manual import level_page

_ENTRY = Qt.ItemDataRole.UserRole

_FEWEST = 4  # rungs that are in view in the smallest window
_HAND = 6  # pixels that the mouse moves between two clicks at one place
_PALE = 90  # opacity of the part of a bar that is not computing
_INDENT = "   "  # before the further lines of a heading
_MARGIN = 6  # pixels beside the text of a heading
_LEAST_BAR = 24  # pixels that long names leave for the longest bar


class LadderList(QListWidget):
    run_wanted = Signal(object)  # `RungPlace`: A rung was clicked, or Return pressed on it
    choose_wanted = Signal(object)  # `RungPlace`: Space was pressed: choose without running
    why_wanted = Signal(object)  # `KnownRung`: A rung that cannot run here was clicked

    def __init__(self, parent: QWidget | None = None) -> None:
        self._ready = False  # Qt calls `changeEvent` while it makes the list
        super().__init__(parent)
        dressed(self, "ladderRungs", "Levels")
        set_help(self, "window#the-ladder-of-levels")
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setItemDelegate(_RungDelegate(self))
        self.chosen = RungPlace(Device.AUTO)
        self.axis, self.recorded_axis = TimeScale(()), TimeScale(())
        self._toggled_at: QPoint | None = None
        """Where the mouse has been since it folded levels or unfolded them."""
        self._unfolded: set[Device] = set()
        self._entries: tuple[KnownRung, ...] = ()
        self._folds: Mapping[Device, str] = {}
        self._ready = True

    def show_entries(
        self, entries: Sequence[KnownRung], chosen: RungPlace, folds: Mapping[Device, str]
    ) -> None:
        """Show rungs; `folds` has the lines over the rungs of devices that can be folded away."""
        changed = chosen != self.chosen
        if chosen.device is not self.chosen.device:
            self._unfolded.add(chosen.device)  # a choice that cannot be seen would surprise
        self.chosen, self._entries, self._folds = chosen, tuple(entries), folds
        # A recorded time is of another machine, and often of another size.
        self.axis, self.recorded_axis = (
            TimeScale(
                value
                for entry in entries
                if entry.seconds is not None and (entry.time is None) == recorded
                for value in entry.seconds
            )
            for recorded in (False, True)
        )
        self._fill()
        item = self.rung_item(chosen) if changed else None
        if item is not None:
            self.scrollToItem(item)

    def _fill(self) -> None:
        shown: list[KnownRung | Device] = []
        for entry in self._entries:
            device = entry.rung.place.device
            if device in self._folds:
                if device not in shown:
                    shown.append(device)
                if device not in self._unfolded:
                    continue
            shown.append(entry)
        set_count(self, len(shown))
        for number, what in enumerate(shown):
            self._show(self.item(number), what)
        if self.currentRow() < 0:
            self.setCurrentRow(0)
        self.updateGeometry()
        self.viewport().update()

    def _show(self, item: QListWidgetItem, what: KnownRung | Device) -> None:
        if isinstance(what, Device):
            text, unfolded = self._folds[what], what in self._unfolded
            room = self.viewport().width() - 2 * _MARGIN
            mark = "▾" if unfolded else "▸"
            lines = wrapped(f"{mark} {text}", room, self.fontMetrics(), _INDENT)
            item.setText("\n".join(lines))
            metrics = self.fontMetrics()
            height = _row_height(metrics) + (len(lines) - 1) * metrics.lineSpacing()
            item.setSizeHint(QSize(100, height))
            item.setData(_ENTRY, what)
            item.setData(HELP_ROLE, "")
            how = "Click to fold." if unfolded else "Click to unfold."
            alike = (entry for entry in self._entries if entry.rung.place.device is what)
            why = next(filter(None, (entry.caveat for entry in alike)), "")
            item.setToolTip("\n".join(filter(None, (text, why, how))))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, " ".join(text.splitlines()))
            return
        rung = what.rung
        item.setText(rung.full_name)
        item.setSizeHint(QSize(100, _row_height(self.fontMetrics())))
        item.setData(_ENTRY, what)
        place = rung.place
        item.setData(HELP_ROLE, level_page(place.kernels.value, place.level) if place.level else "")
        how = "Click for the reason." if rung.obstacle else "Click to run here."
        item.setToolTip(f"{what.explain()}\n{how}")
        chosen = ", chosen" if rung.place == self.chosen else ""
        spoken = " ".join(what.explain().splitlines())
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{spoken}{chosen}")

    def entry(self) -> KnownRung | None:
        item = self.currentItem()
        found = item.data(_ENTRY) if item is not None else None
        return found if isinstance(found, KnownRung) else None

    @property
    def names(self) -> list[str]:
        """The names of the levels that are shown, each with its device as `device_of` has it."""
        rungs = (each.rung for each in self._levels())
        return [f"{rung.name}  {self.device_of(rung)}".rstrip() for rung in rungs]

    @property
    def times(self) -> list[str]:
        return [each.brief_time for each in self._levels()]

    def _levels(self) -> list[KnownRung]:
        found = (self.item(row).data(_ENTRY) for row in range(self.count()))
        return [each for each in found if isinstance(each, KnownRung) and each.rung.level]

    def device_of(self, rung: Rung) -> str:
        """Return the device to write behind a name; none below a line that names it."""
        return "" if self.is_folding(rung.place.device) else rung.device

    def rung_item(self, place: RungPlace) -> QListWidgetItem | None:
        for row in range(self.count()):
            entry = self.item(row).data(_ENTRY)
            if isinstance(entry, KnownRung) and entry.rung.place == place:
                return self.item(row)
        return None

    def is_folding(self, device: Device) -> bool:
        return device in self._folds

    def toggle_fold(self, device: Device) -> None:
        self._unfolded ^= {device}
        self._fill()

    def _use(self, item: QListWidgetItem, *, run: bool = True) -> None:
        entry = item.data(_ENTRY)
        if not isinstance(entry, KnownRung):
            self.toggle_fold(Device(entry))
        elif entry.rung.obstacle:
            self.why_wanted.emit(entry)
        elif run:
            self.run_wanted.emit(entry.rung.place)
        else:
            self.choose_wanted.emit(entry.rung.place)

    # --- Qt ---

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        place = event.position().toPoint()
        item = self.itemAt(place)
        if event.button() is not Qt.MouseButton.LeftButton or item is None:
            return
        before, self._toggled_at = self._toggled_at, None
        if not isinstance(item.data(_ENTRY), KnownRung):
            self._toggled_at = place
        elif before is not None and (place - before).manhattanLength() < _HAND:
            return  # the rung has moved under the mouse, and would run
        self._use(item)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.currentItem()
        if item is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._use(item)
        elif item is not None and event.key() == Qt.Key.Key_Space:
            self._use(item, run=False)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            QTimer.singleShot(0, self, self._fill)  # headings wrap; not while Qt lays out

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and self._ready:
            # Rows are as high as their text. Not now: Qt goes through all widgets meanwhile.
            QTimer.singleShot(0, self, self._fill)

    def sizeHint(self) -> QSize:
        heights = (self.item(row).sizeHint().height() for row in range(self.count()))
        return QSize(self.minimumSizeHint().width(), sum(heights) + 2 * self.frameWidth())

    def minimumSizeHint(self) -> QSize:
        """Return a width in which no name is cut off, and the height of a few lines."""
        metrics = self.fontMetrics()
        entries = [each for each in self._entries if each.rung.level]
        names = [each.rung.name for each in entries]  # devices stand behind where there is room
        times = [each.brief_time for each in entries]
        bar = self.verticalScrollBar().sizeHint().width() + 2 * (_MARGIN + self.frameWidth())
        width = _needed(metrics, names) + sum(_figure_widths(metrics, times)) + _LEAST_BAR + bar
        return QSize(width, _FEWEST * _row_height(metrics))


def _row_height(metrics: QFontMetrics) -> int:
    return metrics.height() + 5


def _figure_widths(metrics: QFontMetrics, times: Iterable[str]) -> tuple[int, int]:
    return Column(("≈ 88.8 ms", *times), metrics).width + 1, metrics.horizontalAdvance("ref") + 4


def name_width(
    metrics: QFontMetrics, width: int, names: Sequence[str], times: Sequence[str] = ()
) -> int:
    """Return the width of mark and name: half the rung, or more, as the times repeat the bars."""
    room = width - sum(_figure_widths(metrics, times)) - _LEAST_BAR
    return min(max(width // 2, _needed(metrics, names)), room)


def _needed(metrics: QFontMetrics, names: Sequence[str]) -> int:
    longest = max((metrics.horizontalAdvance(each) for each in names), default=0)
    return 16 + metrics.ascent() + 2 + longest + 8


class _RungDelegate(QStyledItemDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry = index.data(_ENTRY)
        rungs = self.parent()
        if not isinstance(entry, KnownRung) or not isinstance(rungs, LadderList):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_ground(painter, option)
        palette = option.palette
        text, quiet = palette.color(QPalette.ColorRole.Text), theme.quiet_text(palette)
        area = option.rect.adjusted(4, 0, -4, 0)
        metrics = option.fontMetrics
        time, tick = _figure_widths(metrics, rungs.times)
        name = name_width(metrics, area.width(), rungs.names, rungs.times)
        chosen = entry.rung.place == rungs.chosen
        _paint_mark(painter, text if chosen else quiet, area, filled=chosen)
        left = area.left() + 16
        if entry.rung.level is None:
            whole = QRect(left, area.top(), area.right() - left, area.height())
            _paint_text(painter, text, whole, entry.rung.full_name)
            painter.restore()
            return
        side = metrics.ascent() - 3
        swatch = QRectF(left, area.center().y() - side / 2 + 1, side, side)
        shade = QColor(colour(entry.rung.level))
        if entry.rung.obstacle:  # paler: it cannot run here
            shade.setAlpha(_PALE)
        painter.fillRect(swatch, shade)
        left += side + 5
        room = QRect(left, area.top(), area.left() + name - left - 4, area.height())
        ink = quiet if entry.rung.obstacle else text
        _paint_text(painter, ink, room, entry.rung.name)
        device = rungs.device_of(entry.rung)
        rest = room.adjusted(metrics.horizontalAdvance(f"{entry.rung.name}  "), 0, 0, 0)
        if rest.width() > metrics.horizontalAdvance(device):  # rounded; else it is cut off
            _paint_text(painter, quiet, rest, device)
        bar = QRect(
            area.left() + name, area.top(), area.width() - name - time - tick, area.height()
        )
        axis = rungs.axis if entry.time is not None else rungs.recorded_axis
        _paint_bar(painter, entry, bar, axis, palette.color(QPalette.ColorRole.Base))
        figures = QRect(bar.right() + 1, area.top(), time, area.height())
        paler, words = quiet if entry.seconds is None else ink, entry.brief_time
        if entry.best is not None:  # in the room of the bar that it has not
            figures, words = figures.united(bar), f"see {entry.best.filter}"
        painter.setPen(paler)
        times = ("≈ 88.8 ms", *rungs.times) if entry.best is None else ()
        Column(times, metrics).paint(painter, figures, words)
        if entry.parity is not None:
            agreement = entry.parity.agreement
            mark = theme.error_text(palette) if agreement is Agreement.DIFFERENT else quiet
            place = QRect(figures.right() + 1, area.top(), tick, area.height())
            _paint_text(painter, mark, place, agreement.symbol, Qt.AlignmentFlag.AlignRight)
        painter.restore()


def _paint_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    tint = option.palette.color(QPalette.ColorRole.Text)
    if option.state & QStyle.StateFlag.State_MouseOver:
        tint.setAlpha(24)
        painter.fillRect(option.rect, tint)
    if option.state & QStyle.StateFlag.State_HasFocus:
        painter.setPen(QPen(option.palette.color(QPalette.ColorRole.Highlight), 1))
        painter.drawRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5))


def _paint_mark(painter: QPainter, ink: QColor, area: QRect, *, filled: bool) -> None:
    centre = QPointF(area.left() + 6, area.center().y() + 1)
    painter.setPen(QPen(ink, 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(centre, 4.5, 4.5)
    if filled:
        painter.setBrush(ink)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(centre, 2.5, 2.5)


def _paint_text(
    painter: QPainter,
    ink: QColor,
    place: QRect,
    text: str,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
) -> None:
    painter.setPen(ink)
    elided = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, place.width())
    painter.drawText(place, align | Qt.AlignmentFlag.AlignVCenter, elided)


def _paint_bar(
    painter: QPainter, entry: KnownRung, area: QRect, axis: TimeScale, ground: QColor
) -> None:
    """Draw computing in full colour and the whole run pale; recorded figures are hatched."""
    seconds = entry.seconds
    if seconds is None or entry.rung.level is None:
        return
    shade = QColor(colour(entry.rung.level))
    height = max(6, area.height() - 10)
    top = area.center().y() - height / 2 + 1
    computing, total = (axis.share(each) * area.width() for each in seconds)
    pale = QColor(shade)
    pale.setAlpha(_PALE)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.fillRect(QRectF(area.left(), top, max(2.0, total), height), pale)
    body = QRectF(area.left(), top, max(2.0, computing), height)
    painter.fillRect(body, shade)
    if entry.time is None:
        painter.fillRect(body, QBrush(ground, Qt.BrushStyle.BDiagPattern))


class Ladder(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("ladder")
        self.rungs = LadderList(self)
        self._title = label_of("&Levels", self.rungs)
        self._note = text_label("", "ladderNote", parent=self)
        self._buttons = in_row((self._title, 1), margins=(8, 0, 4, 0))
        parts = self._buttons, (self.rungs, 1), self._note
        self._column = in_column(*parts, of=self, margins=(0, 4, 0, 4), spacing=2)
        self._note.setContentsMargins(8, 0, 8, 0)
        self._note.hide()

    def add_action(self, action: QAction) -> None:
        self._buttons.addWidget(action_button(action))

    def show_entries(
        self,
        entries: Sequence[KnownRung],
        chosen: RungPlace,
        *,
        folds: Mapping[Device, str],
        note: str = "",
    ) -> None:
        """Show the rungs as `LadderList` does; `note`: the levels that were skipped, and why."""
        self.rungs.show_entries(entries, chosen, folds)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._column.activate()  # Qt would do so after the columns above have asked for the height
        self.updateGeometry()
