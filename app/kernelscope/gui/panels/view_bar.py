"""The row above the pictures: undo and redo, arrangement, view of the output, its display."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kernelscope.gui.widgets.controls import WholeBox
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.switch import Switch
from kernelscope.judging.gains import GAINS


class _GainBox(WholeBox):
    """Steps through `GAINS`; any whole number can be typed."""

    def stepBy(self, steps: int) -> None:
        ahead = [gain for gain in GAINS if (gain - self.value()) * steps > 0]
        if ahead:
            self.setValue(ahead[0] if steps > 0 else ahead[-1])


class ViewBar(QWidget):
    """Buttons for actions on the input, arrangements and views; the gain of differences.

    Attributes
    ----------
    display_button : Switch
        Opens the panel of levels and colours.

    Signals
    -------
    gain_changed
        See `gain`.
    """

    gain_changed = Signal()

    def __init__(
        self,
        steps: Sequence[QAction],
        arrangements: Sequence[QAction],
        views: Sequence[QAction],
        display: QAction,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("viewBar")
        set_help(self, "window#looking")
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for action in steps:
            row.addWidget(self._button(action, icon_only=not action.icon().isNull()))
        row.addStretch(1)
        self._arrangements = QWidget(self)
        group = QHBoxLayout(self._arrangements)
        group.setContentsMargins(0, 0, 6, 0)
        group.setSpacing(2)
        for action in arrangements:
            group.addWidget(self._button(action, icon_only=True))
        row.addWidget(self._arrangements)
        for action in views:
            row.addWidget(self._button(action))
        row.addSpacing(4)

        self._gain = _GainBox(self)
        self._gain.setObjectName("gain")
        self._gain.setAccessibleName("Gain of differences")
        self._gain.setToolTip("How much differences are amplified")
        self._gain.setRange(GAINS[0], GAINS[-1])
        self._gain.setPrefix("× ")
        self._gain.setMinimumWidth(68)
        self._gain.setKeyboardTracking(False)
        self._gain.valueChanged.connect(self._on_gain)
        self._auto = Switch(self)
        self._auto.setObjectName("autoGain")
        self._auto.setText("Auto")
        self._auto.setAccessibleName("Choose the gain automatically")
        self._auto.setToolTip("The largest gain with which few differences saturate")
        self._auto.setCheckable(True)
        self._auto.setChecked(True)
        self._auto.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._auto.toggled.connect(self.gain_changed)
        for widget in (self._gain, self._auto):
            row.addWidget(widget)
        row.addSpacing(4)
        self.display_button = self._button(display, icon_only=True)
        row.addWidget(self.display_button)
        self.show_gain(None)

    def minimumSizeHint(self) -> QSize:
        """Return the size without the arrangements, which a narrow window has in its menu only."""
        size = self._row.minimumSize()
        return QSize(self._width_without(), size.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() - self._width_without()
        self._arrangements.setVisible(room >= self._arrangements.sizeHint().width() + 2)

    def _width_without(self) -> int:
        """Return the least width without the arrangements."""
        width = self._row.minimumSize().width()
        if self._arrangements.isHidden():
            return width
        return width - self._arrangements.sizeHint().width() - 2

    @property
    def gain(self) -> int | None:
        """The gain that the user set; None to choose one automatically."""
        return None if self._auto.isChecked() else self._gain.value()

    def show_gain(self, gain: int | None) -> None:
        """Show the gain of the drawing; None disables it."""
        for widget in (self._gain, self._auto):
            widget.setEnabled(gain is not None)
        if gain is not None:
            with QSignalBlocker(self._gain):
                self._gain.setValue(gain)

    def _on_gain(self) -> None:
        if self._auto.isChecked():
            self._auto.setChecked(False)  # which emits the change
        else:
            self.gain_changed.emit()

    def _button(self, action: QAction, *, icon_only: bool = False) -> Switch:
        button = Switch(self)
        button.setDefaultAction(action)
        button.setObjectName(f"{action.objectName()}Button")
        button.setAccessibleName(action.toolTip())
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setMinimumHeight(26)
        button.setAutoRaise(True)
        if icon_only:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        return button
