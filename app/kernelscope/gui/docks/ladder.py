"""The ladder of levels: where the filter can run, how long it takes there, and whether it agrees.

  ◉ Auto: CPU parallel
■ ○ Serial         CPU  ▮▮▮▮▮▮▮▮▮▮▮   10.2 ms  ref
■ ○ Parallel       CPU  ▮▮             1.9 ms   ✓
▸ No GPU: recorded on H100, 22 Nov 2026
  mask size 3, 2048×2048
▾ Emulated GPU: 6 levels, not timed
■ ○ Global                          emulated    ✓
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QPoint, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QBrush,
    QColor,
    QIcon,
    QKeyEvent,
    QMouseEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.engine.options import Device
from kernelscope.gui.model.ladder import Agreement, KnownRung, RungPlace
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.parts import (
    HELP_ROLE,
    action_button,
    as_table,
    in_column,
    in_row,
    label_of,
    set_help,
    swatch,
    text_label,
    wrapped,
)
from kernelscope.gui.widgets.tables import BARS, BarDelegate, Column, FigureDelegate
from kernelscope.schema.levels import colour
from kernelscope.teach.manual import level_page

_NAME, _DEVICE, _BAR, _TIME, _PARITY = range(5)
_FEWEST = 4  # rungs that are in view in the smallest window
_HAND = 6  # pixels that the mouse moves between two clicks at one place
_PALE = 90  # opacity of the colour of a level that cannot run here
_INDENT = "   "  # before the further lines of a heading
_MARGIN = 6  # pixels beside the text of a cell
_LEAST_BAR = 24  # pixels that long names leave for the longest bar

_MEASURED = "Length: computing as a share of the longest time measured here"
_RECORDED = "Length: computing as a share of the longest recorded time"


class RungItem(QTreeWidgetItem):
    entry: KnownRung | None = None
    state: object = None  # as it is shown: setting it again takes its time

    @property
    def spans(self) -> bool:
        """Whether its name has the whole row: there is neither bar nor time."""
        return self.entry is not None and (
            self.entry.rung.level is None or self.entry.best is not None
        )


class LadderTree(QTreeWidget):
    """The rungs; those of devices that can be folded away are below a heading."""

    run_wanted = Signal(object)  # `RungPlace`: A rung was clicked, or Return pressed on it
    choose_wanted = Signal(object)  # `RungPlace`: Space was pressed: choose without running
    why_wanted = Signal(object)  # `KnownRung`: A rung that cannot run here was clicked

    def __init__(self) -> None:
        super().__init__()
        as_table(self, "ladderRungs", "Levels", [""] * 5)
        set_help(self, "window#the-ladder-of-levels")
        self.setUniformRowHeights(False)  # headings have two lines
        self.setHeaderHidden(True)
        self.setIndentation(0)
        self.setExpandsOnDoubleClick(False)
        self.setSelectionMode(QTreeWidget.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QTreeWidget.Shape.NoFrame)
        self.setItemDelegateForColumn(_BAR, BarDelegate(self))
        self.setItemDelegateForColumn(_TIME, FigureDelegate(self))
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setMinimumSectionSize(0)
        header.setStretchLastSection(False)
        header.setSectionResizeMode(_BAR, QHeaderView.ResizeMode.Stretch)
        self.chosen = RungPlace(Device.AUTO)
        self.headings: dict[Device, QTreeWidgetItem] = {}
        self._items: dict[Device | None, list[RungItem]] = {}  # the rungs below each heading
        self._folds: Mapping[Device, str] = {}
        self._entries: tuple[KnownRung, ...] = ()
        self._longest: dict[bool, float] = {}  # seconds, of measured times and of recorded ones
        self._toggled_at: QPoint | None = None
        """Where the mouse has been since it folded levels or unfolded them."""
        self._share_room()
        self.itemExpanded.connect(lambda _: self._fill())
        self.itemCollapsed.connect(lambda _: self._fill())
        stylist().restyled.connect(self._fill)

    def show_entries(
        self, entries: Sequence[KnownRung], chosen: RungPlace, folds: Mapping[Device, str]
    ) -> None:
        """Show rungs; `folds` has the lines over the rungs of devices that can be folded away."""
        before, self.chosen = self.chosen, chosen
        self._entries, self._folds = tuple(entries), folds
        # A recorded time is of another machine, and often of another size.
        self._longest = {
            is_recorded: max(
                each.seconds or 0.0 for each in entries if (each.time is None) is is_recorded
            )
            for is_recorded in {each.time is None for each in entries}
        }
        self._fill()
        item = self.rung_item(chosen) if chosen != before else None
        if item is not None:
            if chosen.device in self.headings and chosen.device is not before.device:
                self.headings[chosen.device].setExpanded(True)  # else it cannot be seen
            self.scrollToItem(item)

    def _fill(self) -> None:
        groups: dict[Device | None, list[KnownRung]] = {None: []}
        for entry in self._entries:
            own = entry.rung.place.device
            groups.setdefault(own if own in self._folds else None, []).append(entry)
        for gone in [each for each in self.headings if each not in groups]:
            self.invisibleRootItem().removeChild(self.headings.pop(gone))
            del self._items[gone]
        for device, group in groups.items():
            parent = self.invisibleRootItem()
            if device is not None:
                if device not in self.headings:
                    self.headings[device] = QTreeWidgetItem(self)
                parent = self.headings[device]
                self._show_heading(parent, self._folds[device], group)
            items = self._items.setdefault(device, [])
            while len(items) > len(group):
                parent.removeChild(items.pop())
            while len(items) < len(group):
                items.append(RungItem())
                parent.insertChild(len(items) - 1, items[-1])
            for item, entry in zip(items, group, strict=True):
                self._show(item, entry)
        self._share_room()
        if self.currentItem() is None and self._items.get(None):
            self.setCurrentItem(self._items[None][0])
        self.updateGeometry()

    def _show_heading(self, item: QTreeWidgetItem, text: str, group: list[KnownRung]) -> None:
        mark, how = ("▾", "fold") if item.isExpanded() else ("▸", "unfold")
        room = self.viewport().width() - 2 * _MARGIN
        lines = wrapped(f"{mark} {text}", room, self.fontMetrics(), _INDENT)
        item.setText(_NAME, "\n".join(lines))
        height = self._row_height + (len(lines) - 1) * self.fontMetrics().lineSpacing()
        item.setSizeHint(_NAME, QSize(0, height))
        other = any(entry.other_settings for entry in group)
        ink = theme.warning_text(self.palette()) if other else self.palette().text().color()
        item.setForeground(_NAME, ink)
        why = next(filter(None, (entry.caveat for entry in group)), "")
        tip = "\n".join(filter(None, (text, why, f"Click to {how}.")))
        item.setToolTip(_NAME, tip)
        item.setData(_NAME, Qt.ItemDataRole.AccessibleTextRole, " ".join(text.splitlines()))
        item.setFirstColumnSpanned(True)

    def _show(self, item: RungItem, entry: KnownRung) -> None:
        rung, palette, chosen = entry.rung, self.palette(), entry.rung.place == self.chosen
        longest = self._longest[entry.time is None]
        share = entry.seconds / longest if entry.seconds is not None and longest else 0.0
        state = entry, chosen, share, palette.cacheKey(), self.font().key()
        if item.state == state:
            return
        item.entry, item.state = entry, state
        text, quiet = palette.text().color(), theme.quiet_text(palette)
        ink = quiet if rung.obstacle else text
        parity = entry.parity.agreement if entry.parity is not None else None
        differs = parity is Agreement.DIFFERENT
        tip = entry.explain()
        how = "Click for the reason." if rung.obstacle else "Click to run here."
        cells = (
            (_name(entry, chosen=chosen), ink),
            (rung.device, quiet),
            ("", quiet),
            (
                entry.brief_time if not item.spans else "",
                ink if entry.seconds is not None else quiet,
            ),
            (parity.symbol if parity else "", theme.error_text(palette) if differs else quiet),
        )
        place = rung.place
        page = level_page(place.kernels.value, place.level) if place.level else ""
        spoken = f"{' '.join(tip.splitlines())}{', chosen' * chosen}"
        with QSignalBlocker(self.model()):  # for each of twenty, Qt would measure the row anew
            for column, (words, colour_) in enumerate(cells):
                item.setText(column, words)
                item.setForeground(column, colour_)
                item.setToolTip(column, f"{tip}\n{how}")
            if share:
                item.setToolTip(_BAR, f"{_RECORDED if entry.time is None else _MEASURED}\n{tip}")
            item.setData(_NAME, HELP_ROLE, page)
            item.setData(_NAME, Qt.ItemDataRole.AccessibleTextRole, spoken)
            item.setSizeHint(_BAR, QSize(0, self._row_height))
            if rung.level is not None:
                self._paint(item, entry, share, QColor(colour(rung.level)))
        first = self.indexFromItem(item, _NAME)
        self.model().dataChanged.emit(first, first.siblingAtColumn(_PARITY))
        if item.isFirstColumnSpanned() != item.spans:
            item.setFirstColumnSpanned(item.spans)

    def _paint(self, item: RungItem, entry: KnownRung, share: float, shade: QColor) -> None:
        """Give a rung its colour and a bar, hatched if its time is recorded."""
        pale = QColor(shade)
        pale.setAlpha(_PALE)
        own = (pale if entry.rung.obstacle else shade).name(QColor.NameFormat.HexArgb)
        item.setIcon(_NAME, QIcon(swatch(own, self._side)))
        bars: list[object] = []
        if share:
            bars = [(shade, 0.0, share)]
            if entry.time is None:
                hatched = QBrush(self.palette().base().color(), Qt.BrushStyle.BDiagPattern)
                bars.append((hatched, 0.0, share))
        item.setData(_BAR, BARS, bars)

    @property
    def _side(self) -> int:
        return self.fontMetrics().ascent() - 3

    @property
    def _row_height(self) -> int:
        return self.fontMetrics().height() + 5

    def _widths(self) -> dict[int, int]:
        """Return the widths in which nothing is cut off; devices are named if there are several."""
        metrics, rungs = self.fontMetrics(), [each for each in self._entries if each.rung.level]
        width = metrics.horizontalAdvance
        names = self._name_widths(lambda item: not item.spans)
        times = Column(("≈ 88.8 ms", *(each.brief_time for each in rungs)), metrics)
        apart = {each.rung.device for each in rungs if each.rung.place.device not in self._folds}
        return {
            _NAME: max(names, default=0),
            _DEVICE: max(map(width, apart)) + 2 * _MARGIN if len(apart) > 1 else 0,
            _TIME: times.width + 8,
            _PARITY: width("ref") + 8,
        }

    def _name_widths(self, wanted: Callable[[RungItem], bool]) -> list[int]:
        # Qt lays names out by fractions of pixels: they take up to 2 more than their advance.
        items = itertools.chain.from_iterable(self._items.values())
        chosen = [self.indexFromItem(each, _NAME) for each in items if wanted(each)]
        return [self.sizeHintForIndex(each).width() for each in chosen]

    def _share_room(self) -> None:
        self._needed = self._widths()
        hints = self._name_widths(lambda item: bool(item.entry and item.entry.best))
        self._widest_hint = max(hints, default=0)
        self.setColumnHidden(_DEVICE, not self._needed[_DEVICE])
        for column, width in self._needed.items():
            self.header().resizeSection(column, width)

    def entry(self) -> KnownRung | None:
        item = self.currentItem()
        return item.entry if isinstance(item, RungItem) else None

    def rung_item(self, place: RungPlace) -> RungItem | None:
        items = itertools.chain.from_iterable(self._items.values())
        return next((each for each in items if each.entry and each.entry.rung.place == place), None)

    def _use(self, item: QTreeWidgetItem, *, run: bool = True) -> None:
        if not isinstance(item, RungItem) or item.entry is None:
            item.setExpanded(not item.isExpanded())
        elif item.entry.rung.obstacle:
            self.why_wanted.emit(item.entry)
        else:
            (self.run_wanted if run else self.choose_wanted).emit(item.entry.rung.place)

    # --- Qt ---

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        place = event.position().toPoint()
        item = self.itemAt(place)
        if event.button() is not Qt.MouseButton.LeftButton or item is None:
            return
        before, self._toggled_at = self._toggled_at, None
        if not isinstance(item, RungItem):
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

    def sizeHint(self) -> QSize:
        height = 2 * self.frameWidth() + len(self._items.get(None, ())) * self._row_height
        for device, heading in self.headings.items():
            below = heading.isExpanded() * len(self._items.get(device, ()))
            height += heading.sizeHint(_NAME).height() + below * self._row_height
        return QSize(self.minimumSizeHint().width(), height)

    def minimumSizeHint(self) -> QSize:
        """Return a width in which no name is cut off, and the height of a few lines."""
        # Layouts ask more often than the widths change.
        bar = self.verticalScrollBar().sizeHint().width() + 2 * self.frameWidth()
        width = max(sum(self._needed.values()) + _LEAST_BAR, self._widest_hint)
        return QSize(width + bar, _FEWEST * self._row_height)


def _name(entry: KnownRung, *, chosen: bool) -> str:
    rung = entry.rung
    hint = f" · see {entry.best.filter}" if entry.best is not None else ""
    return f"{'◉' if chosen else '○'} {rung.name if rung.level else rung.full_name}{hint}"


class Ladder(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("ladder")
        self.rungs = LadderTree()
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
        """Show the rungs as `LadderTree` does; `note`: the levels that were skipped, and why."""
        self.rungs.show_entries(entries, chosen, folds)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._column.activate()  # Qt would do so after the columns above have asked for the height
        self.updateGeometry()
