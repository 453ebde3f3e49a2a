"""The row above the pictures: undo and redo, arrangement, view of the output, its display."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from kernelscope.gui.widgets.controls import WholeBox
from kernelscope.gui.widgets.parts import dressed, in_row, set_help, switch, tool_button
from kernelscope.images.judging.pictures import GAINS

_LEAST_HEIGHT = 26  # pixels: an easy target with small text as well


class _GainBox(WholeBox):
    """Steps through `GAINS`; any whole number can be typed."""

    def stepBy(self, steps: int) -> None:
        ahead = [gain for gain in GAINS if (gain - self.value()) * steps > 0]
        if ahead:
            self.setValue(ahead[0] if steps > 0 else ahead[-1])


class ViewBar(QWidget):
    """Actions on the input, arrangements, views, gain; a button opens levels and colours."""

    gain_changed = Signal()  # see `gain`

    def __init__(
        self,
        steps: Sequence[QAction],
        arrangements: Sequence[QAction],
        views: Sequence[QAction],
        display: QAction,
    ) -> None:
        self._ready = False  # Qt calls `changeEvent` while it makes the bar
        super().__init__()
        self.setObjectName("viewBar")
        set_help(self, "window#looking")
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self._steps = self._group(steps)
        row.addWidget(self._steps)
        row.addStretch(1)
        tip = "Buttons for which the window is too narrow"
        self._more = tool_button("»", "moreButton", None, "More buttons", tip=tip)
        self._more.setAutoRaise(True)
        self._more.setMinimumHeight(_LEAST_HEIGHT)
        self._more.setMenu(QMenu(self._more))
        row.addWidget(self._more)
        self._arrangements = self._group(arrangements)
        row.addWidget(self._arrangements)
        self._actions = {self._steps: steps, self._arrangements: arrangements}
        for action in views:
            row.addWidget(button := self._button(action))
            action.changed.connect(partial(self._offer, button))
            self._offer(button)
        row.addSpacing(4)

        self._gain = dressed(
            _GainBox(self), "gain", "Gain of differences", tip="How much differences are amplified"
        )
        self._gain.setRange(GAINS[0], GAINS[-1])
        self._gain.setPrefix("× ")
        self._gain.setMinimumWidth(68)
        self._gain.setKeyboardTracking(False)
        self._gain.valueChanged.connect(self._on_gain)
        self._auto = switch(
            "Auto",
            "autoGain",
            "Choose the gain automatically",
            tip="The largest gain with which few differences saturate",
        )
        self._auto.setChecked(True)
        self._auto.toggled.connect(self.gain_changed)
        for widget in (self._gain, self._auto):
            row.addWidget(widget)
        row.addSpacing(4)
        self.display_button = self._button(display, icon_only=True)
        row.addWidget(self.display_button)
        self._ready = True
        self.show_gain(None)

    def minimumSizeHint(self) -> QSize:
        width = self._least() + self._width_of(self._more)
        return QSize(width, self._row.minimumSize().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and self._ready:
            QTimer.singleShot(0, self, self._fit)  # once all buttons have the font

    def _fit(self) -> None:
        """Show the groups for which there is room, the rest in a menu; arrangements go first."""
        for button in self.findChildren(QToolButton):
            button.setMinimumHeight(max(_LEAST_HEIGHT, button.sizeHint().height()))
        room = self.width() - self._least()
        choices = ((self._steps, self._arrangements), (self._steps,), ())
        shown = next(
            groups
            for groups in choices
            if not groups or self._width_of(*groups, *self._rest(groups)) <= room
        )
        for group in self._actions:
            group.setVisible(group in shown)
        self._more.setVisible(len(shown) < len(self._actions))
        menu = self._more.menu()
        menu.clear()
        for group, actions in self._actions.items():
            if group not in shown:
                menu.addSeparator()
                menu.addActions(list(actions))

    def _rest(self, groups: tuple[QWidget, ...]) -> tuple[QWidget, ...]:
        return () if len(groups) == len(self._actions) else (self._more,)

    def _width_of(self, *widgets: QWidget) -> int:
        return sum(widget.sizeHint().width() + self._row.spacing() for widget in widgets)

    def _least(self) -> int:
        parts = (*self._actions, self._more)
        shown = (widget for widget in parts if not widget.isHidden())
        return self._row.minimumSize().width() - self._width_of(*shown)

    @property
    def gain(self) -> int | None:
        """The gain that the user set; None to choose one automatically."""
        return None if self._auto.isChecked() else self._gain.value()

    def show_gain(self, gain: int | None) -> None:
        if gain is not None:
            with QSignalBlocker(self._gain):
                self._gain.setValue(gain)
        shown = gain is not None
        if shown is self._gain.isHidden():
            for widget in (self._gain, self._auto):
                widget.setVisible(shown)
            self._fit()

    def _offer(self, button: QToolButton) -> None:
        """Show the button of a view that there is, or that is chosen."""
        action = button.defaultAction()
        offered = action.isEnabled() or action.isChecked()
        if offered is button.isHidden():
            button.setVisible(offered)
            if self._ready:
                self._fit()

    def _on_gain(self) -> None:
        if self._auto.isChecked():
            self._auto.setChecked(False)  # which emits the change
        else:
            self.gain_changed.emit()

    def _group(self, actions: Sequence[QAction]) -> QWidget:
        group = QWidget(self)
        buttons = (self._button(each, icon_only=not each.icon().isNull()) for each in actions)
        in_row(*buttons, of=group, margins=(0, 0, 6, 0), spacing=2)
        return group

    def _button(self, action: QAction, *, icon_only: bool = False) -> QToolButton:
        button = QToolButton(self)
        button.setDefaultAction(action)
        dressed(button, f"{action.objectName()}Button", action.toolTip())
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setAutoRaise(True)
        if icon_only:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        return button
