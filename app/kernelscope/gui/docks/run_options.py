"""How a filter runs: its place, border, greyscale, and options of a GPU."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QWidget

from kernelscope.gui.docks.gpu_options import GpuOptions
from kernelscope.gui.session.session import FILTER, KIND, OPTIONS, REGION, Session
from kernelscope.gui.session.subject import Fields
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.editors import shrink
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed, label_of, tool_button
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind

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


class RunOptionsForm(QWidget):
    """Border and greyscale, the region, and the options of a GPU; the ladder shows the place."""

    kernel_wanted = Signal()  # the user asks for the CUDA source

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runOptions")
        set_help(self, "filters#borders")
        self._session = session
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setVerticalSpacing(8)
        layout.setColumnStretch(1, 1)
        self._border = dressed(
            ChoiceBox(self), "border", "Border", tip="Values of the image beyond its edges."
        )
        shrink(self._border)
        layout.addWidget(label_of("&Border", self._border), 0, 0)
        layout.addWidget(self._border, 0, 1, 1, 2)
        self._grey = dressed(
            QCheckBox("Convert to &greyscale first", self),
            "grey",
            "Convert to greyscale first",
            tip="ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B",
        )
        layout.addWidget(self._grey, 1, 0, 1, 3)
        self._within = WithinBox(session, self)
        layout.addWidget(self._within, 2, 0, 1, 3)
        self._gpu_options = GpuOptions(session, self)
        layout.addWidget(self._gpu_options, 3, 0, 1, 3)
        tip = "The CUDA source of the filter at this level (Ctrl+K)"
        kernel = tool_button(
            "View kernel…", "viewKernelButton", self.kernel_wanted.emit, "View kernel", tip=tip
        )
        layout.addWidget(kernel, 4, 1, 1, 2, Qt.AlignmentFlag.AlignRight)
        self._border.currentIndexChanged.connect(
            lambda _: session.set_border(Border(self._border.currentData()))
        )
        self._grey.toggled.connect(session.set_grey)
        session.follow(self._show)
        self._show(frozenset({FILTER, KIND}))

    def _show(self, fields: Fields) -> None:
        session = self._session
        with QSignalBlocker(self._border):
            if FILTER in fields:
                self._border.clear()
                for border in session.spec.borders:
                    self._border.addItem(border.value.capitalize(), border.value)
                    last = self._border.count() - 1
                    self._border.setItemData(last, border.help, Qt.ItemDataRole.ToolTipRole)
            if fields & {FILTER, OPTIONS}:
                self._border.setCurrentIndex(self._border.findData(session.border))
        if fields & {KIND, OPTIONS}:
            self._grey.setVisible(session.kind is Kind.PICTURE)
            self._within.setVisible(session.kind is Kind.PICTURE)
            with QSignalBlocker(self._grey):
                self._grey.setChecked(session.wishes_grey)
