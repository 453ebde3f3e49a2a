"""The switch that limits a filter to a region of the picture."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QCheckBox, QWidget

from kernelscope.gui.session.session import KIND, REGION, Fields, Session

_TIP = (
    "Filters the selected region of interest and keeps the rest of the picture. The region keeps "
    "its values of the whole result: its neighbours outside are those of the input."
)
_NO_REGION = "Draw a region first (Ctrl+Alt+R)."


class WithinBox(QCheckBox):
    """Checked, it limits the filter to the selected region, and follows it."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("within")
        self._session = session
        self.toggled.connect(session.limit)
        session.follow(self._show)
        self._show(frozenset({REGION}))

    def _show(self, fields: Fields) -> None:
        """Name the region, or the place of one that is not chosen any more."""
        if not fields & {REGION, KIND}:
            return
        limit, (name, offered) = self._session.within, self._session.region
        with QSignalBlocker(self):
            self.setChecked(limit is not None)
        area = limit or offered
        name = name if area is not None and area == offered else ""
        self.setText(f"Filter only in {name or 'a region'}")
        self.setEnabled(area is not None)
        place = f"{area.describe()[:1].upper()}{area.describe()[1:]}. " if area is not None else ""
        tip = f"{place}{_TIP}" if area is not None else f"{_NO_REGION} {_TIP}"
        self.setToolTip(tip)
        self.setAccessibleName(self.text())
        self.setAccessibleDescription(tip)
