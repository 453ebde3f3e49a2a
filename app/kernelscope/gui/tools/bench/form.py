"""The form in which the user sets a measurement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QListWidget, QListWidgetItem

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.bench import PRESETS, Data, Plan, Preset, Sweep, grid
from kernelscope.bench.data import kind_of
from kernelscope.bench.plan import CPU, DEVICES, GPU
from kernelscope.bench.rules import REPEAT
from kernelscope.gui.widgets.form import Form, Listed, Text, Tick, Whole
from kernelscope.gui.widgets.parts import dressed
from kernelscope.images.source import Source
from kernelscope.schema.blocks import block_name, read_block
from kernelscope.schema.samples import Kind

OWN_CHOICE = "Own choice"

_LARGEST = 16384
_FIRST_FILTERS = ("median", "mean")
_ENABLED = Qt.ItemFlag.ItemIsEnabled
_SIZES, _MASKS = "256 512 1024", "3 5 9"
_ON = "Measure on the {}"


_OPTIONS = (
    Listed(
        "benchPreset",
        "&Preset",
        "",
        "The experiments of the four sources, or your own choice",
        entries=((OWN_CHOICE, ""), *((each.title, each.name) for each in PRESETS.values())),
    ),
    Text("benchSizes", "&Sizes", _SIZES, "Sides of square pictures, in pixels"),
    Tick(
        "benchOpenImage",
        "The &open image instead",
        help="Measure on the picture or volume of the main window",
        beside="",
    ),
    Text("benchMasks", "&Masks", _MASKS, "For the filters that have a mask size"),
    *(
        Tick(f"bench{each.capitalize()}", each.upper(), True, _ON.format(each.upper()), "Devices")
        for each in DEVICES
    ),
    Text(
        "benchBlocks",
        "&Blocks",
        help="Threads of a GPU's blocks, such as 8x8 16x16 256x1: a row for each, at levels up to "
        "texture; empty for the filter's own",
        hint="as planned",
    ),
    Whole(
        "benchRepeat",
        "&Repeats",
        REPEAT,
        "Timed runs of each row, after a warm-up that is not counted",
        low=1,
        high=99,
    ),
    Tick(
        "benchPeers",
        "Also &libraries, where installed",
        help="OpenCV, SciPy, scikit-image, CuPy, NPP and loops in C, on the same data in the same "
        "run; results are compared first",
        beside="",
    ),
)


class BenchForm(Form):
    """Presets, or filters, sizes and masks; devices, levels, libraries and repeats.

    `opened` returns the picture or the scan that is open, or None.
    """

    preset_changed = Signal(object)
    """`Preset or None`: Another one was chosen; None for the user's own choice."""

    def __init__(self, opened: Callable[[], Source | None]) -> None:
        super().__init__("benchForm", _OPTIONS)
        assert self.rows is not None
        self._opened = opened
        preset = self.editors["benchPreset"]
        preset.setMinimumContentsLength(24)
        entries = preset.view()  # long ones, which the box itself has no room for
        entries.setMinimumWidth(entries.sizeHintForColumn(0) + 2 * self.fontMetrics().height())
        self._summary = dressed(_Summary(self), "benchSummary")
        self._summary.setWordWrap(True)
        every = (*filters.discover().values(), *filters.discover(Kind.VOLUME).values())
        self._filters = _checklist(
            "benchFilters", "Filters", ((s.id, s.name) for s in every), _FIRST_FILTERS
        )
        on_cpu, on_gpu = filters.levels(CPU), filters.levels(GPU)
        self._level_devices = [CPU] * len(on_cpu) + [GPU] * len(on_gpu)
        levels = [(name, level.on(CPU.upper())) for name, level in on_cpu.items()]
        levels += [(name, level.on(GPU.upper())) for name, level in on_gpu.items()]
        self._levels = _checklist("benchLevels", "Levels", levels, [name for name, _ in levels])
        self.rows.insertRow(1, self._summary)
        self.rows.insertRow(2, "&Filters", self._filters)
        self.rows.insertRow(7, "&Levels", self._levels)
        self.changed.connect(self._on_option)
        self._on_preset()

    def _on_option(self, name: str) -> None:
        if name == "benchPreset":
            self._on_preset()
        elif name == "benchOpenImage":
            self.editors["benchSizes"].setDisabled(self.values[name])
        else:
            self._offer_levels()

    @property
    def preset(self) -> Preset | None:
        return PRESETS.get(self.values["benchPreset"])

    def set_preset(self, name: str) -> None:
        self.editors["benchPreset"].set_value(name)

    def choose_filter(self, filter_id: str) -> None:
        self.set_preset("")
        for item in _items(self._filters):
            item.setCheckState(_state(_key(item) == filter_id))

    def set_gpu(self, available: bool) -> None:
        self.editors["benchGpu"].set_value(available)

    def plan(self) -> Plan:
        if self.problem is not None:
            raise self.problem
        devices = tuple(filter(self._is_ticked, DEVICES))
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
            repeat=self.values["benchRepeat"],
            peers=self.values["benchPeers"],
            blocks=tuple(dict.fromkeys(map(read_block, self.values["benchBlocks"].split()))),
        )

    def _sweeps(self) -> tuple[Sweep, ...]:
        data = None
        names = _ticked(self._filters)
        if self.values["benchOpenImage"]:
            source = self._opened()
            if source is None:
                raise InvalidParameter("Nothing is open.", "Open an image, or choose sizes.")
            data = Data.of(source)
            names = [name for name in names if filters.get(name).kind is kind_of(data)]
        if not names:
            raise InvalidParameter("No filter is chosen that fits.", "Tick at least one.")
        sizes = (
            []
            if data is not None
            else _whole_numbers("Sizes", self.values["benchSizes"], (16, _LARGEST), _SIZES)
        )
        masks = _whole_numbers("Masks", self.values["benchMasks"], (1, 255), _MASKS)
        sweeps = grid(names, sizes, masks, data)
        if not sweeps:
            raise InvalidParameter(
                f"None of these filters has masks of {self.values['benchMasks']}.",
                "Give odd numbers such as 3 5 9.",
            )
        return sweeps

    def _is_ticked(self, device: str) -> bool:
        return bool(self.values[f"bench{device.capitalize()}"])

    def _offer_levels(self) -> None:
        """Grey the levels of a device that is not ticked: they count for nothing."""
        for item, device in zip(_items(self._levels), self._level_devices, strict=True):
            flags = item.flags() | _ENABLED
            offered = self._is_ticked(device)
            item.setFlags(flags if offered else flags & ~_ENABLED)
            item.setToolTip("" if offered else f"The {device.upper()} is not ticked above.")

    def _on_preset(self) -> None:
        preset = self.preset
        assert self.rows is not None
        own = (self.editors[name] for name in ("benchSizes", "benchMasks"))
        for widget in (self._filters, *own):
            self.rows.setRowVisible(widget, preset is None)
        self.editors["benchOpenImage"].setVisible(preset is None)
        self._summary.setText(
            f"{preset.summary}\n\n{_contents(preset.plan)}"
            if preset is not None
            else "Filters, sizes and masks as set below."
        )
        if preset is not None:
            chosen = preset.plan
            blocks = " ".join(map(block_name, chosen.blocks))
            self.show_values(benchRepeat=chosen.repeat, benchBlocks=blocks, benchCpu=True)
            self._offer_levels()
            for row in range(self._levels.count()):
                item = self._levels.item(row)
                wanted = not chosen.levels or item.data(Qt.ItemDataRole.UserRole) in chosen.levels
                item.setCheckState(_state(wanted))
        self.preset_changed.emit(preset)


def _whole_numbers(name: str, text: str, limits: tuple[int, int], example: str) -> list[int]:
    least, most = limits
    words = text.replace(",", " ").split()
    grouped = re.search(r"\d,\d{3}(?!\d)", text)  # 16,384 is one number to many
    if grouped or not words or not all(w.isdecimal() and least <= int(w) <= most for w in words):
        raise InvalidParameter(
            f"{name}: “{text}” is not a list of numbers from {least} to {most}.",
            f"Write for instance {example}.",
        )
    return list(dict.fromkeys(map(int, words)))


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
