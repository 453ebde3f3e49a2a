"""How a filter runs: its place, border, greyscale, and options of a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QToolButton, QWidget

from kernelscope.engine.area import Area
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.errors import InvalidParameter
from kernelscope.gui.model.rungs import AUTO, Place, Rung, chosen_place, rungs
from kernelscope.gui.panels.editors import shrink
from kernelscope.gui.panels.gpu_options import GpuOptions
from kernelscope.gui.panels.within_box import WithinBox
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.spec.blocks import takes_block
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec


class RunOptionsForm(QWidget):
    """Border and greyscale, the options of a GPU, and the place, which the ladder shows.

    Signals
    -------
    changed
        `options` may return something else now.
    offered
        The rungs, or the one that is chosen, are others.
    kernel_wanted
        The user asks for the CUDA source.
    """

    changed = Signal()
    offered = Signal()
    kernel_wanted = Signal()

    def __init__(self, backends: Mapping[str, Backend], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runOptions")
        set_help(self, "filters#borders")
        self._backends = backends
        self._availability: dict[str, Availability] = {}
        self._spec: FilterSpec | None = None
        self._offers_grey = True
        self._wanted = AUTO
        self._wanted_border = Border.REFLECT
        self.rungs: tuple[Rung, ...] = ()
        self.place = AUTO
        self._has_block = False
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setVerticalSpacing(8)
        layout.setColumnStretch(1, 1)
        self._border = ChoiceBox(self)
        self._border.setObjectName("border")
        self._border.setAccessibleName("Border")
        self._border.setToolTip("Values of the image beyond its edges.")
        shrink(self._border)
        caption = QLabel("&Border", self)
        caption.setBuddy(self._border)
        layout.addWidget(caption, 0, 0)
        layout.addWidget(self._border, 0, 1, 1, 2)
        self._grey = QCheckBox("Convert to &greyscale first", self)
        self._grey.setObjectName("grey")
        self._grey.setAccessibleName("Convert to greyscale first")
        self._grey.setToolTip("ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B")
        layout.addWidget(self._grey, 1, 0, 1, 3)
        self._within = WithinBox(self)
        layout.addWidget(self._within, 2, 0, 1, 3)
        self._gpu_options = GpuOptions(self)
        layout.addWidget(self._gpu_options, 3, 0, 1, 3)
        kernel = QToolButton(self)
        kernel.setObjectName("viewKernelButton")
        kernel.setText("View kernel…")
        kernel.setAccessibleName("View kernel")
        kernel.setToolTip("The CUDA source of the filter at this level (Ctrl+K)")
        kernel.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        kernel.clicked.connect(self.kernel_wanted)
        layout.addWidget(kernel, 4, 1, 1, 2, Qt.AlignmentFlag.AlignRight)
        self._border.activated.connect(self._on_border)
        self._grey.toggled.connect(self.changed)
        self._within.changed.connect(self.changed)
        self._gpu_options.changed.connect(self.changed)
        self.set_availability({})

    def set_availability(self, availability: Mapping[str, Availability]) -> None:
        """Offer the devices that can be used; one that is not named is still looked for."""
        self._availability = dict(availability)
        self._offer_places()

    def set_filter(self, spec: FilterSpec) -> None:
        """Offer the choices of `spec`; earlier ones come back where they fit.

        The emulated GPU is not carried over between pictures and volumes: one that takes a second
        there takes many minutes here.
        """
        if self._spec is not None and spec.kind is not self._spec.kind:
            self._wanted = AUTO if self._wanted.device is Device.EMULATED else self._wanted
        self._spec = spec
        self._border.clear()
        for border in spec.borders:
            self._add_item(self._border, border.value.capitalize(), border.value, border.help)
        self._border.setCurrentIndex(max(0, self._border.findData(self._wanted_border)))
        self._offer_places()

    def offer_grey(self, offered: bool) -> None:
        """Offer the choices for pictures; volumes are grey and filtered as a whole."""
        self._offers_grey = offered
        self._grey.setVisible(offered)
        self._within.setVisible(offered)

    def offer_area(self, name: str, area: Area | None) -> None:
        """Offer to filter only a region of this name, or no region; see `WithinBox.offer`."""
        self._within.offer(name, area)

    @property
    def within(self) -> Area | None:
        """The part of pictures that is filtered; None for all of it."""
        return self._within.area if self._offers_grey else None

    def choose(self, place: Place) -> None:
        """Run there from now on; where the filter cannot, the nearest place stands in."""
        self._wanted = place
        before = self.place
        self._offer_places()
        if self.place != before:
            self.changed.emit()

    @property
    def border(self) -> Border:
        """The border that is chosen."""
        return Border(self._border.currentData())

    def border_for(self, spec: FilterSpec) -> Border:
        """Return the border that would be chosen with this filter."""
        return self._wanted_border if self._wanted_border in spec.borders else spec.borders[0]

    @property
    def grey(self) -> bool:
        """Whether to convert to greyscale first."""
        return self._offers_grey and self._grey.isChecked()

    def options(self, place: Place | None = None) -> RunOptions:
        """Return the options of a run, here or at another place; raises `InvalidParameter`."""
        if place is None:
            return self._gpu_options.options(*self.place, block=self._has_block)
        return self._gpu_options.options(*place, block=self._takes_block(place))

    def show_request(self, request: Request) -> None:
        """Show the options that `request` was made with, as far as they are offered here."""
        place = Place(request.options.device, request.options.level)
        self._restore(place, request.step.border, request.step.grey)
        self._within.show_area(request.step.within)
        self._gpu_options.show_request(request)

    def texts(self) -> dict[str, str]:
        """Return the options as texts to remember."""
        return {
            "device": self._wanted.device.value,
            "level": self._wanted.level or "",
            "border": self._wanted_border.value,
            "grey": "on" if self._grey.isChecked() else "off",
            "within": self._within.area.format() if self._within.area is not None else "",
            **self._gpu_options.texts(),
        }

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Show values that `texts` returned before."""
        device, border = texts.get("device", ""), texts.get("border", "")
        known = Device(device) if device in list(Device) else Device.AUTO
        self._restore(
            Place(known, texts.get("level") or None),
            Border(border) if border in list(Border) else Border.REFLECT,
            texts["grey"] == "on" if "grey" in texts else self._grey.isChecked(),
        )
        if "within" in texts:
            area = None
            with contextlib.suppress(InvalidParameter):  # none, or settings that were edited
                area = Area.parse(texts["within"])
            self._within.show_area(area)
        self._gpu_options.set_texts(texts)

    def _restore(self, place: Place, border: Border, grey: bool) -> None:
        self._wanted, self._wanted_border = place, border
        self._border.setCurrentIndex(max(0, self._border.findData(border)))
        self._offer_places()
        self._grey.setChecked(grey)

    def _offer_places(self) -> None:
        """Offer the places where the filter can run, and choose the wanted one of them."""
        if self._spec is None:
            return
        self.rungs = rungs(self._spec, self._backends, self._availability)
        self.place = chosen_place(self._wanted, self.rungs)
        usable = {rung.place.device for rung in self.rungs if not rung.obstacle}
        # Auto and the CPU are always there.
        emulated = self.place.device is Device.EMULATED
        on_card = Device.GPU in usable and self.place.device is not Device.CPU
        self._gpu_options.setEnabled(on_card or emulated)
        self._gpu_options.offer_card(not emulated)
        self._has_block = self._takes_block(self.place)
        self._gpu_options.offer_blocks(self._has_block)
        self.offered.emit()

    def _takes_block(self, place: Place) -> bool:
        """Return whether the user may choose the blocks there."""
        spec, level = self._spec, place.level
        return spec is not None and level is not None and takes_block(spec, level)

    def _on_border(self) -> None:
        self._wanted_border = Border(self._border.currentData())
        self.changed.emit()

    @staticmethod
    def _add_item(combo: QComboBox, name: str, data: Any, tip: str) -> None:
        combo.addItem(name, data)
        combo.setItemData(combo.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
