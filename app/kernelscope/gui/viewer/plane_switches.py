"""Chooses the plane of volumes that is shown alone, or all three."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kernelscope.gui.widgets.parts import dressed
from kernelscope.gui.widgets.switch import Switch
from kernelscope.images.planes import Plane

_ALL = 3
"""The choice of all planes in place of a single one."""


class PlaneSwitches(QWidget):
    """A switch for all planes, and one for each."""

    chosen = Signal(object)
    """`int or None`: Show this plane alone; all of them for None."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self._switches: dict[int, Switch] = {}
        for number, name in ((_ALL, "All"), (0, "Axial"), (1, "Coronal"), (2, "Sagittal")):
            switch = dressed(
                Switch(self),
                f"plane{number}Button",
                "Show all planes",
                tip="Double-click a plane to see it alone, and again to see all",
            )
            switch.setText(name)
            switch.setCheckable(True)
            switch.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            switch.clicked.connect(partial(self._on_click, number if number != _ALL else None))
            self._switches[number] = switch
            row.addWidget(switch)

    def name(self, planes: Sequence[Plane]) -> None:
        for number, plane in enumerate(planes):
            self._switches[number].setText(plane.name)
            self._switches[number].setAccessibleName(f"Show only: {plane.name}")

    def show_choice(self, number: int | None) -> None:
        for choice, switch in self._switches.items():
            switch.setChecked(choice == (_ALL if number is None else number))

    def _on_click(self, number: int | None, _checked: bool = False) -> None:
        self.chosen.emit(number)
