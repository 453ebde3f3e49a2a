"""The panel *Steps*: the steps, and the buttons that change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QDropEvent, QFont, QFontMetrics, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListWidget,
    QStyle,
    QStyleOptionButton,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from kernelscope.gui.model.step_rows import StepRow
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import Index, dressed, in_column, plain_tip, text_label
from kernelscope.gui.widgets.theme import icon
from kernelscope.gui.widgets.tiles import (
    Tile,
    TileDelegate,
    TileLine,
    draw_tile,
    line_height,
    set_count,
)

_ROW = Qt.ItemDataRole.UserRole

_MARGIN, _GAP, _ACCENT = 4, 6, 3
_LINES = 3
_LONGEST = "≈ 40.3 ms measured"


class StepList(QListWidget):
    # The step at this place is to be edited, switched on or off, or removed.
    wanted = Signal(int)
    switched = Signal(int)
    removed = Signal(int)
    moved = Signal(int, int)  # a step was dragged from a place to another one

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "cardList", "Steps")
        self.setItemDelegate(_Painter(self))
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)  # a name that wraps makes a row higher
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setDragDropMode(QListWidget.DragDropMode.InternalMove)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.rows: tuple[StepRow, ...] = ()

    def show_rows(self, rows: Sequence[StepRow]) -> None:
        """Show these steps; the current one stays, or becomes the one that is edited."""
        if tuple(rows) == self.rows:
            return
        place = self.currentRow()
        key = self.rows[place].key if 0 <= place < len(self.rows) else 0
        edited = [row.key for row in self.rows if row.edited]
        self.rows = tuple(rows)
        blocked = self.blockSignals(True)
        set_count(self, len(rows))
        for number, row in enumerate(rows):
            item = self.item(number)
            item.setData(_ROW, row)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, row.describe())
            item.setToolTip(plain_tip(row.details))
        keys = [row.key for row in rows]
        now = next((row.key for row in rows if row.edited), 0)
        if key not in keys or edited != [now]:
            key = now
        if key in keys:
            self.setCurrentRow(keys.index(key))
        self.blockSignals(blocked)
        self.scheduleDelayedItemsLayout()  # another name may need another height
        self.updateGeometry()
        self.viewport().update()

    def step_height(self) -> int:
        return _LINES * self.fontMetrics().height() + 2 * _MARGIN + 2

    def switch_of(self, area: QRect) -> QRect:
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_IndicatorWidth)
        top = area.top() + (area.height() - side) // 2
        return QRect(area.left() + _MARGIN + _ACCENT, top, side, side)

    def sizeHint(self) -> QSize:
        return QSize(180, 3 * self.step_height() + 2 * self.frameWidth())

    def row_height(self, row: StepRow) -> int:
        """Return the height of a step, whose name wraps where the line is too short for it."""
        room = QRect(0, 0, self.text_room(QRect(0, 0, self.viewport().width(), 0)).width(), 0)
        extra = line_height(self.font(), room, _name(row)) - self.fontMetrics().height()
        return self.step_height() + max(extra, 0)

    def text_room(self, area: QRect) -> QRect:
        left = self.frame_of(area).right() + 1 + _GAP
        height = area.height() - 2 * _MARGIN
        return QRect(left, area.top() + _MARGIN + 1, area.right() - _MARGIN - left, height)

    def frame_of(self, area: QRect) -> QRect:
        side = self.step_height() - 2 * _MARGIN
        return QRect(self.switch_of(area).right() + _GAP, area.top() + _MARGIN, side, side)

    def minimumSizeHint(self) -> QSize:
        """Return a width at which neither words of names nor times are cut off."""
        left = self.text_room(QRect()).left() + _MARGIN
        letters = self.fontMetrics().horizontalAdvance(_LONGEST)
        bold = QFont(self.font())
        bold.setBold(True)
        words = [word for row in self.rows for word in row.settings.step.name.split()]
        text = max([letters, *map(QFontMetrics(bold).horizontalAdvance, words)])
        beside = self.verticalScrollBar().sizeHint().width() + 2 * self.frameWidth()
        return QSize(left + text + beside, self.step_height() + 2 * self.frameWidth())

    def mouseReleaseEvent(self, event: Any) -> None:
        point = event.position().toPoint()
        pressed = self.indexAt(point)
        dragged = self.state() is QAbstractItemView.State.DraggingState
        super().mouseReleaseEvent(event)
        if event.button() != Qt.MouseButton.LeftButton or not pressed.isValid() or dragged:
            return
        if self.switch_of(self.visualRect(pressed)).adjusted(-4, -8, 4, 8).contains(point):
            self.switched.emit(pressed.row())
        else:
            self.wanted.emit(pressed.row())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        signals: dict[int, Callable[[int], None]] = {
            Qt.Key.Key_Space: self.switched.emit,
            Qt.Key.Key_Return: self.wanted.emit,
            Qt.Key.Key_Enter: self.wanted.emit,
            Qt.Key.Key_Delete: self.removed.emit,
        }
        emit = signals.get(event.key())
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if emit is None or not plain or self.currentRow() < 0:
            super().keyPressEvent(event)
            return
        emit(self.currentRow())
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        place = self.currentRow()
        to = self.drop_place(event.position().toPoint(), place)
        event.setDropAction(Qt.DropAction.CopyAction)  # Qt would remove the moved row
        event.accept()
        if event.source() is self and to != place:
            self.moved.emit(place, to)

    def drop_place(self, point: QPoint, place: int) -> int:
        """Return the new place of the step at `place` when it is dropped at `point`."""
        index = self.indexAt(point)
        to = self.count()
        if index.isValid():
            to = index.row() + (point.y() > self.visualRect(index).center().y())
        return to - (to > place)


def _name(row: StepRow) -> TileLine:
    return TileLine(row.settings.step.name, bold=True, quiet=not row.settings.on, cut=None)


class _Painter(TileDelegate):
    def __init__(self, steps: StepList) -> None:
        super().__init__(steps, lambda: QSize(0, steps.step_height()))
        self._steps = steps

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, self._steps.row_height(index.data(_ROW)))

    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: StepRow = index.data(_ROW)
        palette, area = option.palette, option.rect
        if row.edited:
            painter.fillRect(area, palette.color(QPalette.ColorRole.AlternateBase))
            bar = QRect(area.left(), area.top() + 2, _ACCENT, area.height() - 4)
            painter.fillRect(bar, palette.color(QPalette.ColorRole.Accent))
        self._paint_switch(painter, row, area)
        frame, room = self._steps.frame_of(area), self._steps.text_room(area)
        current, stale = row.settings.on and row.fresh, row.settings.on and not row.fresh
        # Settings are in the form and the tip as well, a name nowhere else.
        gain = row.gain if current else ""
        lines = (
            _name(row),
            TileLine(row.settings.step.caption or "defaults", quiet=True, aside=gain),
            TileLine(row.state, quiet=True, ink=theme.warning_text(palette) if stale else None),
        )
        tile = Tile(row.thumbnail, lines, opacity=1.0 if current else 0.4)
        draw_tile(painter, tile, frame, room, palette)

    def _paint_switch(self, painter: QPainter, row: StepRow, area: QRect) -> None:
        option = QStyleOptionButton()
        option.initFrom(self._steps)
        option.rect = self._steps.switch_of(area)
        state = QStyle.StateFlag.State_On if row.settings.on else QStyle.StateFlag.State_Off
        option.state = QStyle.StateFlag.State_Enabled | state
        style = self._steps.style()
        style.drawPrimitive(
            QStyle.PrimitiveElement.PE_IndicatorCheckBox, option, painter, self._steps
        )


_BUTTONS = ("duplicateStep", "deleteStep", "stepUp", "stepDown", "stepAlone")

_HINT = "Use as input (Ctrl+U) adds a step on the output."
_OFF = "A step that is off cannot be edited: switch it on first (Space)."


class StepsPanel(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("stepsPanel")
        self.steps = StepList()
        self._hint = text_label(_HINT, "stepsHint", "note")
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(2)
        in_column((self.steps, 1), self._hint, self._buttons, of=self, margins=4, spacing=4)

    def set_actions(self, actions: Mapping[str, QAction], menu: Sequence[str]) -> None:
        add, action = self._plain_button("addStepButton"), actions["reuse"]
        add.setIcon(icon("add"))
        tip = "Add a step on the output, with the present settings at first (Ctrl+U)"
        dressed(add, "addStepButton", "Add step", tip=tip)
        add.clicked.connect(action.trigger)
        add.setEnabled(action.isEnabled())
        action.enabledChanged.connect(add.setEnabled)
        for id_ in _BUTTONS:
            self._button(actions[id_])
        self._buttons.addStretch(1)
        for id_ in menu:
            self.steps.addAction(actions[id_])

    def show_rows(self, rows: Sequence[StepRow], problem: str = "") -> None:
        """Show these steps, and why the later ones cannot be applied."""
        self.steps.show_rows(rows)
        off = "" if all(row.settings.on for row in rows) else _OFF
        text = problem or (_HINT if len(rows) < 2 else off)
        self._hint.setText(text)
        self._hint.setVisible(bool(text))
        theme.set_role(self._hint, "problem" if problem else "note")

    def _button(self, action: QAction) -> None:
        button = self._plain_button(f"{action.objectName()}Button")
        button.setDefaultAction(action)
        button.setAccessibleName(action.text().replace("&", ""))

    def _plain_button(self, name: str) -> QToolButton:
        button = dressed(QToolButton(self), name)
        button.setAutoRaise(True)
        button.setIconSize(QSize(16, 16))
        self._buttons.addWidget(button)
        return button
