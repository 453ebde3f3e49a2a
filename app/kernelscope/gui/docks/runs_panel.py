"""The panel *Runs*: a strip of pictures, and beside it a table of times and quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLayout, QSizePolicy, QStackedWidget, QToolButton, QWidget

from kernelscope.gui.docks.bars import Legend
from kernelscope.gui.docks.run_choice import RunChoice
from kernelscope.gui.docks.run_strip import RunStrip
from kernelscope.gui.docks.run_table import RunTable
from kernelscope.gui.model.gallery import Gallery, RunOrder
from kernelscope.gui.model.runs import Run
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import (
    action_button,
    dressed,
    in_column,
    in_row,
    switch,
    text_label,
    tool_splitter,
)

_WIDE = 140  # characters from which on the strip and the table have room beside each other

_RUN = "Run (F5) measures the filter and keeps the picture here."
_EMPTY, _NONE_OF_IT = f"No runs yet. {_RUN}", f"No runs of this picture yet. {_RUN}"

SHOW, STAR, DELETE = "showRun", "starRun", "deleteRun"
"""Ids of the actions with a key of their own in the panel."""

KEYS = {
    Qt.Key.Key_Return: SHOW,
    Qt.Key.Key_Enter: SHOW,
    Qt.Key.Key_Space: STAR,
    Qt.Key.Key_Delete: DELETE,
}

BUTTONS = ("starRun", "saveRun", "deleteRun", "swipeRuns", "compareRuns")
"""Ids of the actions that have a button."""


class RunsPanel(QWidget):
    wanted = Signal(object)  # `Run`: It is to be shown, with its settings
    pair_wanted = Signal(object, object)  # `Run, Run`: Two were chosen to be compared in the viewer
    chosen = Signal()  # other runs are selected

    def __init__(self, gallery: Gallery, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runsPanel")
        self.gallery = gallery
        self._actions: Mapping[str, QAction] = {}
        self._selected: list[Run] = []
        self._current: Run | None = None
        self.table = RunTable(gallery)
        self.strip = RunStrip(self.table.rows, gallery)
        self._legend = Legend()
        self._note = dressed(_Note(), "runsNote")
        theme.set_role(self._note, "note")
        self._empty = text_label(_EMPTY, "runsEmpty")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        orders = ((each[0].upper() + each[1:], each.value) for each in RunOrder)
        tip = "Order of the pictures; a click on a heading sorts the table"
        self._order = choice_box("runsOrder", "Order of the pictures", orders, self._fill, tip=tip)
        self._picture = ""
        which, tip = ("This picture", "All pictures"), "List the runs of one picture, or all"
        pairs = zip(which, (False, True), strict=True)
        self._of = choice_box("runsOf", "Runs in the list", pairs, self.refresh, tip=tip)
        self._switch = self._table_switch()
        self._lay_out()
        for view in (self.strip, self.table):
            view.installEventFilter(self)
            view.choice.clicked.connect(self.wanted)
            view.choice.changed.connect(partial(self._on_chosen, view.choice))
        self.table.reordered.connect(self._fill)
        self.table.parts_shown.connect(lambda _: self._show_legend())
        self.refresh()

    # --- building ---

    def _table_switch(self) -> QToolButton:
        tip = "Times and quality of all runs in a table"
        button = switch("Table", "runsTableSwitch", tip=tip)
        button.toggled.connect(lambda: self._arrange())
        return button

    def _lay_out(self) -> None:
        self._tools = in_row(self._of, self._order, (self._note, 1), self._legend, self._switch)
        sides = self.strip, self.table
        self._splitter = tool_splitter(*sides, name="runsSplitter", sizes=(500, 500))
        self._views = QStackedWidget()
        self._views.addWidget(self._empty)
        self._views.addWidget(self._splitter)
        parts = (self._views, 1), self._tools
        layout = in_column(*parts, of=self, margins=(4, 2, 4, 2), spacing=2)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`

    def set_actions(self, actions: Mapping[str, QAction], ids: Sequence[str]) -> None:
        self._actions = actions
        for view in (self.strip, self.table):
            view.addActions([actions[id_] for id_ in ids])
        for place, id_ in enumerate(BUTTONS, start=2):
            button = action_button(actions[id_], actions[id_].iconText())
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
            button.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
            self._tools.insertWidget(place, button)

    # --- content ---

    @property
    def runs(self) -> list[Run]:
        """The runs in the list: those of the picture in front, unless all are wanted."""
        every = self._of.currentData() or not self._picture
        return list(self.gallery) if every else self.gallery.of(self._picture)

    @property
    def current(self) -> Run | None:
        return self._current if self._current in self.runs else None

    @property
    def selected(self) -> list[Run]:
        runs = self.runs
        return [run for run in self._selected if run in runs]

    def show_picture(self, title: str) -> None:
        if title != self._picture:
            self._picture = title
            self.refresh()

    def refresh(self) -> None:
        self._fill()
        listed = bool(self.runs)
        others = len(self.gallery.of(self._picture)) < len(self.gallery)
        self._of.setVisible(bool(self._picture) and others)
        self._empty.setText(_NONE_OF_IT if len(self.gallery) else _EMPTY)
        self._views.setCurrentIndex(1 if listed else 0)
        self._switch.setEnabled(listed)
        self._show_legend()
        self.chosen.emit()

    def _fill(self) -> None:
        """Show the runs as they are now in both views; the selection stays."""
        choices = self.table.choice, self.strip.choice
        blocked = [each.blockSignals(True) for each in choices]
        self.table.fill(self.runs)
        self.strip.fill(RunOrder(self._order.currentData()))
        for choice, before in zip(choices, blocked, strict=True):
            choice.select(self.selected, self.current)
            choice.blockSignals(before)

    def choose(self, run: Run | None) -> None:
        self._current, self._selected = run, [run] if run is not None else []
        for view in (self.strip, self.table):
            view.choice.select(self._selected, run)
        self.chosen.emit()

    def mark(self, shown: Run | None) -> None:
        self.strip.mark(shown)

    def show_note(self, text: str) -> None:
        self._note.set_full_text(text)

    def _on_chosen(self, choice: RunChoice) -> None:
        now = choice.selected
        before = [run for run in self._selected if run in now]
        added = [run for run in now if run not in before]
        self._selected, self._current = before + added, choice.current
        other = self.table if choice is self.strip.choice else self.strip
        other.choice.select(self._selected, self._current)
        self.chosen.emit()
        if len(self._selected) == 2 and added and before:
            self.pair_wanted.emit(*self._selected)

    # --- keys and layout ---

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys of runs before the views, and before shortcuts of the window, do."""
        kinds = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if isinstance(event, QKeyEvent) and event.type() in kinds:
            action = self._actions.get(KEYS.get(Qt.Key(event.key()), ""))
            plain = event.modifiers() in (
                Qt.KeyboardModifier.NoModifier,
                Qt.KeyboardModifier.KeypadModifier,
            )
            if action is not None and plain:
                event.accept()
                if event.type() == QEvent.Type.KeyPress and action.isEnabled():
                    action.trigger()
                return True
        return super().eventFilter(watched, event)

    def _arrange(self) -> None:
        """Show strip and table beside each other, or one of them where there is no room."""
        wide = self.width() >= _WIDE * self.fontMetrics().averageCharWidth()
        self._switch.setVisible(not wide)
        table = wide or self._switch.isChecked()
        self.strip.setVisible(wide or not table)
        self.table.setVisible(table)
        self._show_legend()

    def _show_legend(self) -> None:
        self._legend.setVisible(not self.table.isHidden() and bool(self.runs))

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 8 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        kinds = (QEvent.Type.FontChange, QEvent.Type.StyleChange, QEvent.Type.PaletteChange)
        if event.type() in kinds and hasattr(self, "_views"):
            # Not now: Qt goes through all widgets meanwhile.
            QTimer.singleShot(0, self, self._fill)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()


class _Note(ElidedLabel):
    """Shows its text in full or not at all: the button beside it has it as its tooltip."""

    def _elide(self) -> None:
        room = self.contentsRect().width()
        fits = self.fontMetrics().horizontalAdvance(self.full_text) <= room
        self.setText(self.full_text if fits else "")
