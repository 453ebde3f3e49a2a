"""The switch that limits a filter to a region of the picture."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from kernelscope.engine.area import Area

_TIP = (
    "Filters the selected region of interest and keeps the rest of the picture. The region keeps "
    "its values of the whole result: its neighbours outside are those of the input."
)
_NO_REGION = "Draw a region first (Ctrl+Alt+R)."


class WithinBox(QCheckBox):
    """Checked, it limits the filter to the selected region, and follows it.

    Attributes
    ----------
    area : Area or None
        The part of the picture that is filtered; None for all of it.

    Signals
    -------
    changed
        `area` is another one.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("within")
        self.area: Area | None = None
        self._name = ""
        self._offered: Area | None = None
        self.toggled.connect(self._on_toggled)
        self._show()

    def offer(self, name: str, area: Area | None) -> None:
        """Offer a region; the filter stays limited to the last one where none is chosen now."""
        self._name, self._offered = name, area
        if self.isChecked() and area is not None and area != self.area:
            self.area = area
            self._show()
            self.changed.emit()
        else:
            self._show()

    def show_area(self, area: Area | None) -> None:
        """Show the limit of an earlier run."""
        self.area = area
        with QSignalBlocker(self):
            self.setChecked(area is not None)
        self._show()

    def _on_toggled(self, checked: bool) -> None:
        self.area = self._offered if checked else None
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        """Name the region, or the place of one that is not chosen any more."""
        area = self.area or self._offered
        name = self._name if area is not None and area == self._offered else ""
        self.setText(f"Filter only in {name or 'a region'}")
        self.setEnabled(area is not None)
        place = f"{area.describe()[:1].upper()}{area.describe()[1:]}. " if area is not None else ""
        tip = f"{place}{_TIP}" if area is not None else f"{_NO_REGION} {_TIP}"
        self.setToolTip(tip)
        self.setAccessibleName(self.text())
        self.setAccessibleDescription(tip)
