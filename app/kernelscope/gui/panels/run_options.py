"""Where and how a filter runs: device, level, border, greyscale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QToolButton, QWidget

from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.gui.panels.editors import shrink
from kernelscope.gui.panels.gpu_options import GpuOptions
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.spec.blocks import takes_block
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.levels import GPU_LEVELS, Level

_DEVICES = {
    Device.AUTO: ("Auto", "The fastest device that this computer offers."),
    Device.CPU: ("CPU", "The processor of this computer."),
    Device.GPU: ("GPU", "The graphics card."),
}
_FASTEST = "The fastest level of the device."


class RunOptionsForm(QWidget):
    """Device, level, border and greyscale for the filter that is chosen.

    Options that this computer lacks are shown disabled, with the reason as tooltip.
    """

    changed = Signal()
    kernel_wanted = Signal()

    def __init__(self, backends: Mapping[str, Backend], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runOptions")
        self._backends = backends
        self._availability: dict[str, Availability] = {}
        self._spec: FilterSpec | None = None
        self._offers_grey = True
        self._wanted_device = Device.AUTO
        self._wanted_level: str | None = None
        self._wanted_border = Border.REFLECT
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setVerticalSpacing(8)
        layout.setColumnStretch(1, 1)

        def add(name: str, label: str, tip: str, columns: int = 2) -> QComboBox:
            combo = ChoiceBox(self)
            combo.setObjectName(name)
            combo.setAccessibleName(label.replace("&", ""))
            combo.setToolTip(tip)
            shrink(combo)
            caption = QLabel(label, self)
            caption.setBuddy(combo)
            row = layout.rowCount()
            layout.addWidget(caption, row, 0)
            layout.addWidget(combo, row, 1, 1, columns)
            return combo

        self._device = add("device", "&Device", "Where the filter runs.")
        self._level = add("level", "&Level", "How much of the hardware the filter may use.")
        kernel = QToolButton(self)
        kernel.setObjectName("viewKernelButton")
        kernel.setText("View kernel…")
        kernel.setAccessibleName("View kernel")
        kernel.setToolTip("The CUDA source of the filter at this level (Ctrl+K)")
        kernel.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        kernel.clicked.connect(self.kernel_wanted)
        row = layout.rowCount()  # of its own: names of levels are long
        layout.addWidget(kernel, row, 1, 1, 2, Qt.AlignmentFlag.AlignRight)
        self._border = add("border", "&Border", "What counts as the image outside of its edges.")
        self._grey = QCheckBox("Convert to &greyscale first", self)
        self._grey.setObjectName("grey")
        self._grey.setAccessibleName("Convert to greyscale first")
        self._grey.setToolTip("ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B")
        layout.addWidget(self._grey, layout.rowCount(), 0, 1, 3)
        self._gpu_options = GpuOptions(self)
        layout.addWidget(self._gpu_options, layout.rowCount(), 0, 1, 3)

        for device, (name, tip) in _DEVICES.items():
            self._add_item(self._device, name, device.value, tip)
        self._device.currentIndexChanged.connect(self._on_device)
        self._level.activated.connect(self._on_level)
        self._level.currentIndexChanged.connect(self._offer_blocks)
        self._border.activated.connect(self._on_border)
        self._grey.toggled.connect(self.changed)
        self._gpu_options.changed.connect(self.changed)
        self.set_availability({})

    def set_availability(self, availability: Mapping[str, Availability]) -> None:
        """Offer the devices that can be used; one that is not named is still looked for."""
        self._availability = dict(availability)
        self._offer_devices()

    def set_filter(self, spec: FilterSpec) -> None:
        """Offer what `spec` has; earlier choices come back where they fit."""
        self._spec = spec
        self._border.clear()
        for border in spec.borders:
            self._add_item(self._border, border.value.capitalize(), border.value, border.help)
        self._border.setCurrentIndex(max(0, self._border.findData(self._wanted_border)))
        self._offer_devices()

    def offer_grey(self, offered: bool) -> None:
        """Offer to convert to greyscale or not: volumes are grey."""
        self._offers_grey = offered
        self._grey.setVisible(offered)

    @property
    def device(self) -> Device:
        """The device that is chosen."""
        return Device(self._device.currentData())

    @property
    def border(self) -> Border:
        """The border that is chosen."""
        return Border(self._border.currentData())

    @property
    def grey(self) -> bool:
        """Whether to convert to greyscale first."""
        return self._offers_grey and self._grey.isChecked()

    def options(self) -> RunOptions:
        """Return the options of a run of the filter; raises `InvalidParameter`."""
        return self._gpu_options.options(self.device, self._level.currentData())

    def show_request(self, request: Request) -> None:
        """Show the options that `request` was made with, as far as they are offered here."""
        self._restore(
            request.options.device, request.options.level, request.step.border, request.step.grey
        )
        self._gpu_options.show_request(request)

    def texts(self) -> dict[str, str]:
        """Return the options as texts to remember."""
        return {
            "device": self._wanted_device.value,
            "level": self._wanted_level or "",
            "border": self._wanted_border.value,
            "grey": "on" if self._grey.isChecked() else "off",
            **self._gpu_options.texts(),
        }

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Show what `texts` returned once."""
        device, border = texts.get("device", ""), texts.get("border", "")
        self._restore(
            Device(device) if device in list(Device) else Device.AUTO,
            texts.get("level") or None,
            Border(border) if border in list(Border) else Border.REFLECT,
            texts["grey"] == "on" if "grey" in texts else self._grey.isChecked(),
        )
        self._gpu_options.set_texts(texts)

    def _restore(self, device: Device, level: str | None, border: Border, grey: bool) -> None:
        self._wanted_device, self._wanted_level, self._wanted_border = device, level, border
        self._border.setCurrentIndex(max(0, self._border.findData(border)))
        self._offer_devices()
        self._grey.setChecked(grey)

    def _offer_devices(self) -> None:
        """Enable the devices that can run the filter; Auto stands in for one that cannot."""
        for row in range(self._device.count()):
            device = Device(self._device.itemData(row))
            obstacle = self._obstacle(device.value)
            mark = self._mark(device.value)
            self._device.setItemText(row, f"{_DEVICES[device][0]}{mark}")
            self._enable(self._device, row, obstacle, _DEVICES[device][1])
        device = Device.AUTO if self._obstacle(self._wanted_device) else self._wanted_device
        with QSignalBlocker(self._device):
            self._device.setCurrentIndex(self._device.findData(device))
        self._fill_levels()

    def _fill_levels(self) -> None:
        """Offer the levels of the chosen device; of all devices for Auto."""
        on_gpu = self.device is not Device.CPU and not self._obstacle(Device.GPU.value)
        self._gpu_options.setEnabled(on_gpu)
        self._level.clear()
        self._add_item(self._level, "Fastest", None, _FASTEST)
        if self._spec is None:
            return
        device = self.device
        for backend in reversed(list(self._backends.values())):
            if device in (Device.AUTO, backend.id):
                gaps = self._spec.gaps(backend.id)
                for level in _with_gaps(backend.levels(self._spec), gaps):
                    name = f"{backend.name}: {level.name}" if device is Device.AUTO else level.name
                    name = f"{name}{self._mark(backend.id)}"
                    self._add_item(self._level, name, level.id, level.help)
                    row = self._level.count() - 1
                    obstacle = gaps.get(level.id) or self._obstacle(backend.id)
                    self._enable(self._level, row, obstacle, level.help)
        row = self._level.findData(self._wanted_level)
        usable = row >= 0 and self._level.model().item(row).isEnabled()  # type: ignore[attr-defined]
        self._level.setCurrentIndex(row if usable else 0)
        self._offer_blocks()

    def _offer_blocks(self) -> None:
        """Let the user choose blocks where the level that is chosen leaves the choice."""
        spec, level = self._spec, self._level.currentData()
        offered = spec is not None and level is not None and takes_block(spec, level)
        self._gpu_options.offer_blocks(offered)

    def _obstacle(self, device: str) -> str:
        """Return why a device cannot run the filter; empty if it can."""
        if device in (Device.AUTO, Device.CPU):
            return ""
        backend = self._backends.get(device)
        if backend is not None and self._spec is not None and not backend.levels(self._spec):
            return f"{self._spec.name} runs on the CPU only."
        state = self._availability.get(device)
        if state is None:
            return "Looking for a GPU…"
        return "" if state.available else state.summary

    def _mark(self, device: str) -> str:
        """Return what stands after the name of a device that this computer has not got ready."""
        state = self._availability.get(device)
        return "" if state is None or state.available else " (not available)"

    def _on_device(self) -> None:
        self._wanted_device = self.device
        self._fill_levels()
        self.changed.emit()

    def _on_level(self) -> None:
        self._wanted_level = self._level.currentData()
        self.changed.emit()

    def _on_border(self) -> None:
        self._wanted_border = Border(self._border.currentData())
        self.changed.emit()

    @staticmethod
    def _add_item(combo: QComboBox, name: str, data: Any, tip: str) -> None:
        combo.addItem(name, data)
        combo.setItemData(combo.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)

    @staticmethod
    def _enable(combo: QComboBox, row: int, obstacle: str, tip: str) -> None:
        model = combo.model()
        assert isinstance(model, QStandardItemModel)
        model.item(row).setEnabled(not obstacle)
        combo.setItemData(row, obstacle or tip, Qt.ItemDataRole.ToolTipRole)


def _with_gaps(levels: Iterable[Level], gaps: Mapping[str, str]) -> list[Level]:
    """Return `levels` and those that do not apply, each before what follows in `GPU_LEVELS`."""
    found = list(levels)
    for number, level in enumerate(GPU_LEVELS):
        if level.id in gaps:
            later = GPU_LEVELS[number + 1 :]
            place = next((n for n, each in enumerate(found) if each in later), len(found))
            found.insert(place, level)
    return found
