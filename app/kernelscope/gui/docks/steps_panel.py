"""The panel *Steps*: the cards, and the buttons that change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from kernelscope.gui.docks.card_list import CardList
from kernelscope.gui.model.card_rows import StepRow
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.icons import icon
from kernelscope.gui.widgets.parts import dressed, in_column, text_label

_BUTTONS = ("duplicateStep", "deleteStep", "stepUp", "stepDown", "stepAlone")

_HINT = "Use as Input (Ctrl+U) adds a step on the output."
_OFF = "A step that is off cannot be edited: switch it on first (Space)."


class StepsPanel(QWidget):
    """Shows the steps to the output."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("stepsPanel")
        self.cards = CardList()
        self._hint = text_label(_HINT, "stepsHint", "note")
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(2)
        in_column((self.cards, 1), self._hint, self._buttons, of=self, margins=4, spacing=4)

    def set_actions(self, actions: Mapping[str, QAction], menu: Sequence[str]) -> None:
        """Offer the actions of steps as buttons, and those of `menu` in the context menu."""
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
            self.cards.addAction(actions[id_])

    def show_rows(self, rows: Sequence[StepRow], problem: str = "") -> None:
        """Show these cards, and why the later ones cannot be applied."""
        self.cards.show_rows(rows)
        off = "" if all(row.on for row in rows) else _OFF
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
