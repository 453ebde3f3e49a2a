"""The bars of the window: tools above, Run and its progress under the settings, status below."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRect, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QMenu,
    QProgressBar,
    QSizePolicy,
    QStatusBar,
    QStyle,
    QStyleOption,
    QToolBar,
    QToolButton,
    QWidget,
)

from kernelscope.backends import warm_up
from kernelscope.base.text import one_line
from kernelscope.engine.timing import TimeLeft, left
from kernelscope.gui.session.session import FILTER, Session
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.commands import WindowState, plain
from kernelscope.gui.widgets.parts import (
    ElidedLabel,
    SnugLabel,
    dressed,
    in_column,
    in_row,
    plain_tip,
    set_help,
    switch,
)
from kernelscope.gui.widgets.theme import icon
from kernelscope.gui.window.dock_list import DOCKS, Dock, DockName, DockSide
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.helper import Helper

_ROOM, _BUTTON_HEIGHT, _GAP = 8, 28, 5
"""Pixels around icon and text, the minimum height of an easy target, and pixels between both."""


class ToolBar(QToolBar):
    """The commands of the first minute as buttons in groups; those of `right` at the far end."""

    def __init__(
        self,
        left: Sequence[Sequence[QAction | QMenu]],
        right: Sequence[Sequence[QAction | QMenu]],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Tool Bar", parent)
        self.setObjectName("toolBar")
        self.setMovable(False)
        self._size_icons()
        stylist().restyled.connect(self._size_icons)
        self._places: dict[QAction | QMenu, QAction] = {}
        self._add(left)
        gap = QWidget(self)
        gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(gap)
        self._add(right)

    def _size_icons(self) -> None:
        side = max(16, self.fontMetrics().height())
        self.setIconSize(QSize(side + _GAP, side))

    def _add(self, groups: Sequence[Sequence[QAction | QMenu]]) -> None:
        for number, group in enumerate(groups):
            if number:
                self.addSeparator()
            for action in group:
                button = QToolButton(self)
                if isinstance(action, QMenu):
                    button.setText(plain(action.title()))
                    button.setIcon(icon("learn"))
                    button.setToolTip("Why levels are as fast as they are, and kernels of your own")
                    button.setMenu(action)
                    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
                else:
                    button.setDefaultAction(action)
                button.setObjectName(f"{action.objectName()}Tool")
                button.setAccessibleName(button.text())
                button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
                button.setFocusPolicy(
                    Qt.FocusPolicy.TabFocus
                )  # after a click, Space is the picture's
                button.setAutoRaise(True)
                hint = button.sizeHint()
                button.setMinimumSize(hint.width() + _ROOM, max(hint.height(), _BUTTON_HEIGHT))
                self._places[action] = self.addWidget(button)

    def offer(self, action: QAction | QMenu, offered: bool) -> None:
        self._places[action].setVisible(offered)


_STAGES = {
    "compile": "Compiling (first use only)…",
    "estimate": "Estimating…",
    "judge": "Judging",
}


_LEAST_SECONDS = 2.0  # a run that should end sooner has no time left to be shown

_TICK_MS = 250


class RunBar(QWidget):
    def __init__(self, run: QAction, cancel: QAction) -> None:
        super().__init__()
        self.setObjectName("runBar")
        set_help(self, "window#the-list-of-runs")
        buttons = QHBoxLayout()
        for action in (run, cancel):
            button = QToolButton(self)
            button.setDefaultAction(action)
            button.setObjectName(f"{action.objectName()}Button")
            button.setAccessibleName(action.text().replace("&", ""))
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)  # in the middle
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setMinimumHeight(34)
            theme.set_role(button, "primary" if action is run else "")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            buttons.addWidget(button, 3 if action is run else 2)
        self._bar = dressed(QProgressBar(self), "progress", "Progress")
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(8)
        policy = self._bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # or the levels above would move with each run
        self._bar.setSizePolicy(policy)
        self._label = dressed(ElidedLabel(self), "runState")
        self._time_left = TimeLeft()
        self._expected: float | None = None
        self._begun, self._guessed = 0.0, ""
        self._ticks = QTimer(self, interval=_TICK_MS)
        self._ticks.timeout.connect(self._show_guess)
        rows = buttons, self._bar, self._label
        in_column(*rows, of=self, margins=(9, 6, 9, 4), spacing=4)
        self.show_idle("")

    def expect(self, seconds: float | None) -> None:
        """Begin a run that should take this many seconds, without compiling; None if unknown."""
        self._expected = seconds if seconds is not None and seconds >= _LEAST_SECONDS else None
        self._begun = time.monotonic()

    def show_progress(
        self, stage: str, fraction: float, step: str = "", left: str | None = None
    ) -> None:
        """Show a stage of the run `step`; time stands in for the fraction if the pace is known."""
        if stage in _STAGES and stage != "judge":
            self._begun = time.monotonic()  # it is no part of the time that is expected
        guesses = self._expected is not None and stage not in _STAGES and not step
        if guesses and fraction == 0:
            self._guessed = stage
            self._ticks.start()
            self._bar.show()
            self._show_guess()
            return
        self._ticks.stop()
        self._bar.show()
        if fraction > 0:
            self._bar.setRange(0, 100)
            self._bar.setValue(round(100 * fraction))
        else:
            self._bar.setRange(0, 0)
        known = _STAGES.get(stage, stage.capitalize())
        text = f"{known} {100 * fraction:.0f} %" if fraction > 0 else known
        if left is None:
            left = self._time_left.describe(step + stage, fraction)
        self._label.set_full_text(f"{step}{text}{left}")

    def show_idle(self, text: str) -> None:
        """Hide the bar, and show how the last run ended if there is something to say."""
        self._ticks.stop()
        self._expected = None
        self._bar.setRange(0, 100)
        self._bar.setValue(0)
        self._label.set_full_text(text)
        self._bar.hide()

    def _show_guess(self) -> None:
        """Show how much of the expected time has passed; nothing is known once it is over."""
        assert self._expected is not None
        rest = self._expected - (time.monotonic() - self._begun)
        name = self._guessed.capitalize()
        if rest <= 0:
            self._bar.setRange(0, 0)
            self._label.set_full_text(f"{name}, longer than expected")
            return
        self._bar.setRange(0, 100)
        self._bar.setValue(round(100 * (1 - rest / self._expected)))
        self._label.set_full_text(f"{name}, about {left(rest)}")


_TIP = (
    "The code of the common filters is compiled once, in another process. Filters that are not "
    "ready yet show their first results by NumPy, more slowly."
)


class Preparing(QWidget):
    """The code that `helper` compiles, by name, a bar and how many are left; else hidden."""

    def __init__(self, session: Session, background: Background) -> None:
        super().__init__()
        self.setObjectName("preparing")
        set_help(self, "window#compiling")
        self._background = background
        self._used = {session.filter_id: None}
        session.when({FILTER}, lambda: self._used.setdefault(session.filter_id))
        self.wanted = False  # whether code is compiled ahead at all
        self.helper = Helper(warm_up.__name__, self)
        self.helper.answered.connect(self._show)
        self.helper.ended.connect(self.hide)
        self._label = dressed(ElidedLabel(self), "preparingText", tip=_TIP)
        theme.set_role(self._label, "note")
        self._bar = dressed(QProgressBar(self), "preparingBar", "Filters compiled", tip=_TIP)
        self._bar.setTextVisible(False)
        self._bar.setFixedSize(80, 8)
        in_row(self._label, self._bar, of=self, margins=(8, 0, 4, 0), spacing=6)
        # The bar shares free width between widgets that grow, and would cut the message.
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.hide()

    def start(self) -> None:
        """Begin, unless all is compiled; once."""
        if self.wanted:
            self.wanted = False
            self._background.start("warm-up", warm_up.is_done, self._begin, lambda _: None)

    def close_helper(self) -> None:
        """Compile nothing any more: the window closes, and the next one goes on."""
        self.wanted = False
        self.helper.close()

    def _begin(self, is_done: bool) -> None:
        if not is_done and not self.helper.busy:
            self.helper.start(self._used)

    def _show(self, line: str) -> None:
        done = warm_up.Done(*json.loads(line))
        if not done.next:
            self.hide()
            return
        # No time: one piece takes a second, another a minute. Short: the message is beside it.
        left = done.of - done.number
        text = f"Compiling, {left} left"
        self._label.set_full_text(f"Compiling {done.next}, {left} of {done.of} left. {_TIP}", text)
        self._label.setFixedWidth(self._label.fontMetrics().horizontalAdvance(text) + 4)
        self._bar.setRange(0, done.of)
        self._bar.setValue(done.number)
        self.show()


class BatchProgress(QToolButton):
    """The progress of a batch whose window may be closed: a click opens it; else hidden."""

    def __init__(self, batch: QAction) -> None:
        super().__init__()
        dressed(self, "batchProgress", "Batch", tip="Open the window Batch")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAutoRaise(True)
        self.clicked.connect(batch.trigger)
        self.hide()

    def show_progress(self, text: str) -> None:
        self.setText(f"Batch: {text}")
        self.setAccessibleName(self.text())
        self.setVisible(bool(text))


_MARGIN = 6  # pixels left of the message, as in Qt's own status bar, and between it and the labels


class StatusBar(QStatusBar):
    """Its message ends in “…” before the labels on the right (Qt's would be cut in a letter)."""

    def __init__(self, working: Sequence[QWidget], panels: QWidget) -> None:
        super().__init__()
        self.setObjectName("statusBar")
        self._message = ""  # without the tips of buttons and menus, which Qt shows in its place
        self.messageChanged.connect(self._on_changed)
        self.pixel = dressed(SnugLabel(self), "pixel", "Position and values under the cursor")
        self.zoom = dressed(QLabel(self), "zoom", "Zoom")
        for label in (self.pixel, self.zoom):
            label.setContentsMargins(12, 0, 0, 0)
        # Buttons last: zoom and values are as wide as their texts, and would move them.
        self._permanent = [*working, self.pixel, self.zoom, panels]
        for widget in self._permanent:
            self.addPermanentWidget(widget)
        stylist().restyled.connect(self._make_room)

    def _make_room(self) -> None:
        """Give the labels the room that another size of text needs."""
        for label in (self.pixel, self.zoom):
            label.updateGeometry()

    def clear_figures(self) -> None:
        """Empty the labels on the right, which belong to a page."""
        self.pixel.set_full_text("")
        self.zoom.clear()

    def showMessage(self, message: str, timeout: int | None = 0) -> None:
        self._message = one_line(message)
        super().showMessage(self._message, timeout)

    def withdraw(self, message: str) -> None:
        """Clear the message if it is still this one."""
        if message and self._message == one_line(message):
            self.showMessage("")

    def _on_changed(self, text: str) -> None:
        if self._message and not text:  # the tip ended, with which Qt clears the bar
            super().showMessage(self._message)
        else:
            self.setToolTip(plain_tip(text))

    def shown_message(self) -> str:
        return self.fontMetrics().elidedText(
            self.currentMessage(), Qt.TextElideMode.ElideRight, self._area().width()
        )

    def _area(self) -> QRect:
        right = min(each.x() for each in self._permanent if not each.isHidden()) - _MARGIN
        return QRect(_MARGIN, 0, right - _MARGIN, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        panel = QStyle.PrimitiveElement.PE_PanelStatusBar
        self.style().drawPrimitive(panel, option, painter, self)
        painter.setPen(self.palette().windowText().color())
        painter.drawText(self._area(), Qt.AlignmentFlag.AlignVCenter, self.shown_message())


_PANEL_HEIGHT = 190  # pixels of the panels at the bottom when the first of them opens


class PanelButtons(QWidget):
    """A button for each panel at the bottom that has something: it opens or closes the panel."""

    def __init__(self, window: QMainWindow, docks: Mapping[DockName, QDockWidget]) -> None:
        super().__init__(window)
        self.setObjectName("panelButtons")
        self._window, self._docks = window, docks
        self._state = WindowState()
        self._buttons: dict[DockName, QToolButton] = {}
        self._own: dict[DockName, bool] = {}
        """Panels that opened by themselves, and whether they were left open."""
        for each in DOCKS:
            if each.side is DockSide.BOTTOM:
                button = switch(each.title, f"{each.name}PanelButton", f"Panel {each.title}")
                button.setAutoRaise(True)
                button.clicked.connect(
                    lambda wanted, name=each.name: self._on_clicked(name, wanted)
                )
                docks[each.name].visibilityChanged.connect(lambda _: self._show())
                docks[each.name].toggleViewAction().triggered.connect(
                    lambda _, name=each.name: self._own.pop(name, None)
                )
                self._buttons[each.name] = button
        in_row(*self._buttons.values(), of=self, margins=0, spacing=2)
        dressed(self, "panelButtons", "Panels at the bottom")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._show()

    def sizeHint(self) -> QSize:
        """As high as with a button: the pictures would move when the first one comes."""
        heights = [each.sizeHint().height() for each in self._buttons.values()]
        return super().sizeHint().expandedTo(QSize(0, max(heights)))

    def show_state(self, state: WindowState) -> None:
        """Offer panels that have something; those beside the pictures open by themselves."""
        before, self._state = self._state, state
        for each in DOCKS:
            met = each.need.met(state)
            if each.side is DockSide.LEFT and met is not each.need.met(before):
                self._docks[each.name].setVisible(met)
        self._show()

    def open(self, name: DockName) -> None:
        """Show a panel in place of the others at the bottom, those that float apart."""
        open_ = [each for each in self._at_the_bottom() if not each.isHidden()]
        dock = self._docks[name]
        dock.show()
        dock.raise_()
        if not open_:
            self._window.resizeDocks([dock], [_PANEL_HEIGHT], Qt.Orientation.Vertical)
        for each in open_:
            each.setVisible(each is dock)

    def open_by_itself(self, name: DockName) -> None:
        """Open a panel that was not asked for: `follow` may close it again."""
        if self._docks[name].isHidden():
            self._own[name] = True
        self.open(name)

    def follow(self, name: DockName, *, wanted: bool) -> None:
        """Open or close a panel that opened by itself, unless the user has done either since."""
        shown = not self._docks[name].isHidden()
        if self._own.get(name) is not shown:
            self._own.pop(name, None)
        elif shown and not wanted:
            self._own[name] = False
            self._docks[name].hide()
        elif wanted and all(each.isHidden() for each in self._at_the_bottom()):
            self._own[name] = True
            self.open(name)

    def close_own(self) -> None:
        """Close the panels that opened by themselves: they do not come back with the layout."""
        for name in tuple(self._own):
            self.follow(name, wanted=False)

    def _on_clicked(self, name: DockName, wanted: bool) -> None:
        self._own.pop(name, None)
        if wanted:
            self.open(name)
            return
        for each in self._at_the_bottom():
            each.hide()

    def _at_the_bottom(self) -> list[QDockWidget]:
        docks = [self._docks[name] for name in self._buttons]
        return [each for each in docks if not each.isFloating()]

    def _show(self) -> None:
        for each in DOCKS:
            button = self._buttons.get(each.name)
            if button is None:
                continue
            dock = self._docks[each.name]
            button.setVisible(each.need.met(self._state) or not dock.isHidden())
            button.setText(_title(each, self._state))
            button.setChecked(not dock.isHidden() and not dock.visibleRegion().isEmpty())


def _title(dock: Dock, state: WindowState) -> str:
    number = {DockName.RUNS: state.runs, DockName.MEASURE: state.regions}.get(dock.name)
    return f"{dock.title} {number}" if number else dock.title
