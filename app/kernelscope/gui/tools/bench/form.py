"""The form in which the user sets a measurement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.bench import PRESETS, Data, Plan, Preset, Sweep, grid
from kernelscope.bench.data import kind_of
from kernelscope.bench.plan import CPU, DEVICES, GPU
from kernelscope.bench.rules import REPEAT
from kernelscope.gui.widgets.controls import ChoiceBox, WholeBox
from kernelscope.gui.widgets.parts import dressed
from kernelscope.images.source import Source
from kernelscope.schema.blocks import block_name, read_block
from kernelscope.schema.samples import Kind

OWN_CHOICE = "Own choice"

_LARGEST = 16384
_FIRST_FILTERS = ("median", "mean")
_ENABLED = Qt.ItemFlag.ItemIsEnabled
_SIZES, _MASKS = "256 512 1024", "3 5 9"


class BenchForm(QWidget):
    """Presets, or filters, sizes and masks; devices, levels, libraries and repeats.

    `opened` returns the picture or the scan that is open, or None.
    """

    preset_changed = Signal(object)
    """`Preset or None`: Another one was chosen; None for the user's own choice."""

    def __init__(self, opened: Callable[[], Source | None]) -> None:
        super().__init__()
        self.setObjectName("benchForm")
        self._opened = opened
        self._preset = dressed(
            ChoiceBox(self),
            "benchPreset",
            tip="The experiments of the four sources, or your own choice",
        )
        self._preset.addItem(OWN_CHOICE)
        for preset in PRESETS.values():
            self._preset.addItem(preset.title, preset.name)
        self._preset.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._preset.setMinimumContentsLength(24)
        entries = self._preset.view()  # long ones, which the box itself has no room for
        entries.setMinimumWidth(entries.sizeHintForColumn(0) + 2 * self.fontMetrics().height())
        self._preset.currentIndexChanged.connect(self._on_preset)
        self._summary = dressed(_Summary(self), "benchSummary")
        self._summary.setWordWrap(True)

        self._build_data()
        devices = self._build_devices()
        self._lay_out(devices)
        self._on_preset()

    def _build_data(self) -> None:
        """Build the fields of filters, sizes and masks."""
        every = (*filters.discover().values(), *filters.discover(Kind.VOLUME).values())
        self._filters = _checklist(
            "benchFilters", "Filters", ((s.id, s.name) for s in every), _FIRST_FILTERS
        )
        self._sizes = self._numbers("benchSizes", _SIZES, "Sides of square pictures, in pixels")
        self._masks = self._numbers("benchMasks", _MASKS, "For the filters that have a mask size")
        self._open_image = dressed(
            QCheckBox("The &open image instead", self),
            "benchOpenImage",
            tip="Measure on the picture or volume of the main window",
        )
        self._open_image.toggled.connect(self._sizes.setDisabled)

    def _build_devices(self) -> QHBoxLayout:
        """Build the fields of devices, levels and repeats; return the row of devices."""
        self._devices = {name: QCheckBox(name.upper(), self) for name in DEVICES}
        devices = QHBoxLayout()
        for name, box in self._devices.items():
            box.setObjectName(f"bench{name.capitalize()}")
            box.setToolTip(f"Measure on the {name.upper()}")
            box.setChecked(True)
            box.toggled.connect(self._offer_levels)
            devices.addWidget(box)
        devices.addStretch(1)
        on_cpu, on_gpu = filters.levels(CPU), filters.levels(GPU)
        self._level_devices = [CPU] * len(on_cpu) + [GPU] * len(on_gpu)
        levels = [(name, level.on(CPU.upper())) for name, level in on_cpu.items()]
        levels += [(name, level.on(GPU.upper())) for name, level in on_gpu.items()]
        self._levels = _checklist("benchLevels", "Levels", levels, [name for name, _ in levels])
        self._blocks = self._numbers(
            "benchBlocks",
            "",
            "Threads of a GPU's blocks, such as 8x8 16x16 256x1: a row for each, at levels up to "
            "texture; empty for the filter's own",
        )
        self._blocks.setPlaceholderText("as planned")
        self._peers = dressed(
            QCheckBox("Also &libraries, where installed", self),
            "benchPeers",
            tip="OpenCV, SciPy, scikit-image, CuPy, NPP and loops in C, on the same data in the "
            "same run; results are compared first",
        )
        self._repeat = dressed(
            WholeBox(self),
            "benchRepeat",
            tip="Timed runs of each row, after a warm-up that is not counted",
        )
        self._repeat.setRange(1, 99)
        self._repeat.setValue(REPEAT)
        return devices

    def _lay_out(self, devices: QHBoxLayout) -> None:
        form = self._form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        form.addRow("&Preset", self._preset)
        form.addRow(self._summary)
        for caption, widget in (
            ("&Filters", self._filters),
            ("&Sizes", self._sizes),
            ("", self._open_image),
            ("&Masks", self._masks),
        ):
            form.addRow(caption, widget)
        form.addRow("Devices", devices)
        form.addRow("&Levels", self._levels)
        form.addRow("&Blocks", self._blocks)
        form.addRow("&Repeats", self._repeat)
        form.addRow("", self._peers)
        self._preset.setAccessibleName("Preset")
        self._repeat.setAccessibleName("Repeats")

    @property
    def preset(self) -> Preset | None:
        return PRESETS.get(self._preset.currentData() or OWN_CHOICE)

    def set_preset(self, name: str) -> None:
        """Choose a preset by its name; any other name is the user's own choice."""
        self._preset.setCurrentIndex(max(0, self._preset.findData(name)))

    def set_gpu(self, available: bool) -> None:
        """Tick the GPU if there is one."""
        self._devices[GPU].setChecked(available)

    def plan(self) -> Plan:
        devices = tuple(name for name, box in self._devices.items() if box.isChecked())
        if not devices:
            raise InvalidParameter("No device is chosen.", "Tick CPU or GPU.")
        offered = [item for item in _items(self._levels) if item.flags() & _ENABLED]
        levels = [_key(item) for item in offered if item.checkState() is Qt.CheckState.Checked]
        if not levels:
            raise InvalidParameter("No level is chosen.", "Tick at least one.")
        preset = self.preset
        plan = preset.plan if preset is not None else Plan(sweeps=self._sweeps())
        return replace(
            plan,
            devices=devices,
            levels=() if len(levels) == len(offered) else tuple(levels),
            repeat=self._repeat.checked(),
            peers=self._peers.isChecked(),
            blocks=tuple(dict.fromkeys(map(read_block, self._blocks.text().split()))),
        )

    def _sweeps(self) -> tuple[Sweep, ...]:
        data = None
        names = _ticked(self._filters)
        if self._open_image.isChecked():
            source = self._opened()
            if source is None:
                raise InvalidParameter("Nothing is open.", "Open an image, or choose sizes.")
            data = Data.of(source)
            names = [name for name in names if filters.get(name).kind is kind_of(data)]
        if not names:
            raise InvalidParameter("No filter is chosen that fits.", "Tick at least one.")
        sizes = [] if data is not None else self._read(self._sizes, "Sizes", 16, _LARGEST)
        masks = self._read(self._masks, "Masks", 1, 255)
        sweeps = grid(names, sizes, masks, data)
        if not sweeps:
            raise InvalidParameter(
                f"None of these filters has masks of {self._masks.text()}.",
                "Give odd numbers such as 3 5 9.",
            )
        return sweeps

    def _read(self, field: QLineEdit, name: str, least: int, most: int) -> list[int]:
        """Return the numbers in a field, without doubles."""
        words = field.text().replace(",", " ").split()
        grouped = re.search(r"\d,\d{3}(?!\d)", field.text())  # 16,384 is one number to many
        if (
            grouped
            or not words
            or not all(w.isdecimal() and least <= int(w) <= most for w in words)
        ):
            raise InvalidParameter(
                f"{name}: “{field.text()}” is not a list of numbers from {least} to {most}.",
                f"Write for instance {_SIZES if field is self._sizes else _MASKS}.",
            )
        return list(dict.fromkeys(map(int, words)))

    def _numbers(self, name: str, text: str, tip: str) -> QLineEdit:
        return dressed(QLineEdit(text, self), name, tip, tip=tip)

    def _offer_levels(self) -> None:
        """Grey the levels of a device that is not ticked: they count for nothing."""
        for item, device in zip(_items(self._levels), self._level_devices, strict=True):
            flags = item.flags() | _ENABLED
            offered = self._devices[device].isChecked()
            item.setFlags(flags if offered else flags & ~_ENABLED)
            item.setToolTip("" if offered else f"The {device.upper()} is not ticked above.")

    def _on_preset(self) -> None:
        preset = self.preset
        for widget in (self._filters, self._sizes, self._masks, self._open_image):
            self._form.setRowVisible(widget, preset is None)
        self._summary.setText(
            f"{preset.summary}\n\n{_contents(preset.plan)}"
            if preset is not None
            else "Filters, sizes and masks as set below."
        )
        if preset is not None:
            chosen = preset.plan
            self._repeat.setValue(chosen.repeat)
            self._blocks.setText(" ".join(map(block_name, chosen.blocks)))
            for row in range(self._levels.count()):
                item = self._levels.item(row)
                wanted = not chosen.levels or item.data(Qt.ItemDataRole.UserRole) in chosen.levels
                item.setCheckState(_state(wanted))
            self._devices[CPU].setChecked(True)
        self.preset_changed.emit(preset)


class _Summary(QLabel):
    """A wrapped text that keeps the height it needs, which the form would give to its lists."""

    def setText(self, text: str) -> None:
        super().setText(text)
        self._keep_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._keep_height()

    def _keep_height(self) -> None:
        self.setFixedHeight(self.heightForWidth(self.width()))


def _contents(plan: Plan) -> str:
    """Return the filters of a plan and the sizes of their data."""
    sizes: dict[str, dict[str, None]] = {}
    for sweep in plan.sweeps:
        of_filter = sizes.setdefault(filters.get(sweep.filter).name, {})
        of_filter.update(dict.fromkeys("×".join(map(str, data.shape[::-1])) for data in sweep.data))
    alike: dict[str, list[str]] = {}
    for name, of_filter in sizes.items():
        alike.setdefault(", ".join(of_filter), []).append(name)
    return "\n".join(f"{', '.join(names)}: {texts}" for texts, names in alike.items())


def _checklist(
    name: str, accessible_name: str, entries: Iterable[tuple[str, str]], ticked: Iterable[str]
) -> QListWidget:
    chosen = set(ticked)
    box = dressed(
        QListWidget(), name, accessible_name, tip=f"{accessible_name} to measure; Space ticks one"
    )
    for key, text in entries:
        item = QListWidgetItem(text, box)
        item.setData(Qt.ItemDataRole.UserRole, key)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        item.setCheckState(_state(key in chosen))
    box.setSpacing(1)  # the boxes to tick would touch each other
    box.setMinimumHeight(5 * box.fontMetrics().height())
    return box


def _items(box: QListWidget) -> list[QListWidgetItem]:
    return [box.item(row) for row in range(box.count())]


def _key(item: QListWidgetItem) -> str:
    return str(item.data(Qt.ItemDataRole.UserRole))


def _ticked(box: QListWidget) -> list[str]:
    return [_key(item) for item in _items(box) if item.checkState() is Qt.CheckState.Checked]


def _state(checked: bool) -> Qt.CheckState:
    return Qt.CheckState.Checked if checked else Qt.CheckState.Unchecked
