"""How a filter runs: its border, greyscale, region, and the options of a GPU."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QCheckBox, QWidget

from kernelscope.engine.options import Device
from kernelscope.gui.session.session import (
    FILTER,
    KIND,
    MIB,
    MOST_MIB,
    MOST_REPEATS,
    OPTIONS,
    PLACES,
    REGION,
    Session,
)
from kernelscope.gui.session.subject import Fields
from kernelscope.gui.widgets.form import Form, Listed, Tick, Whole
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.schema.blocks import USUAL_BLOCKS, Block, block_name
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind

_TIP = (
    "Filters the selected region of interest and keeps the rest of the picture. The region keeps "
    "its values of the whole result: its neighbours outside are those of the input."
)
_BLOCK = (
    "Threads of each block, across and down. The list of runs shows the cost of a size; the kernel "
    "does not change."
)


def _threads(block: Block) -> str:
    return f"{block_name(block)} threads"


_OPTIONS = (
    Listed("border", "&Border", Border.REFLECT, "Values of the image beyond its edges."),
    Tick("grey", "Convert to &greyscale first", help="ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B"),
)
_GPU_OPTIONS = (
    Listed(
        "block",
        "Bloc&k",
        None,
        _BLOCK,
        entries=(("as planned", None), *((_threads(block), block) for block in USUAL_BLOCKS)),
        text_of=_threads,
    ),
    Whole(
        "repeat",
        "Re&peat kernel",
        1,
        "Number of runs of the kernel on a GPU, after a warm-up; the median is reported.",
        low=1,
        high=MOST_REPEATS,
        unit="×",
    ),
    Whole(
        "memoryLimit",
        "GPU &memory",
        0,
        "Limit of the GPU memory for images; larger ones are filtered in strips.",
        high=MOST_MIB,
        unit="MiB",
        lowest="all that is free",
    ),
)


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
        if not fields & {REGION, KIND}:
            return
        limit, (name, offered) = self._session.within, self._session.region
        with QSignalBlocker(self):
            self.setChecked(limit is not None)
        area = limit or offered
        name = name if area is not None and area == offered else ""
        self.setText(f"Filter only in {name or 'a region'}")
        self.setVisible(area is not None and self._session.kind is Kind.PICTURE)
        place = f"{area.describe()[:1].upper()}{area.describe()[1:]}. " if area is not None else ""
        tip = f"{place}{_TIP}"
        self.setToolTip(tip)
        self.setAccessibleName(self.text())
        self.setAccessibleDescription(tip)


class RunOptionsForm(Form):
    """Border and greyscale, the region, and the options of a GPU; the ladder shows the place."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__("runOptions", _OPTIONS, parent)
        set_help(self, "filters#borders")
        self._session = session
        self._within = WithinBox(session, self)
        self._gpu = Form("gpuOptions", _GPU_OPTIONS, self)
        set_help(self._gpu, "gpu-levels#how-a-run-uses-the-card")
        assert self.rows is not None
        for row in (self._within, self._gpu):
            self.rows.addRow(row)
        self.changed.connect(self._write)
        self._gpu.changed.connect(self._write_gpu)
        session.follow(self._show)
        self._show(frozenset({FILTER, KIND, OPTIONS, PLACES}))

    def _write(self, name: str) -> None:
        if name == "border":
            self._session.set_border(self.values[name])
        else:
            self._session.set_grey(self.values[name])

    def _write_gpu(self) -> None:
        values, session = self._gpu.values, self._session
        memory = values["memoryLimit"] * MIB or None
        options = replace(
            session.wished, block=values["block"], repeat=values["repeat"], memory_limit=memory
        )
        session.set_options(options, self._gpu.problem)

    def _show(self, fields: Fields) -> None:
        session, is_picture = self._session, self._session.kind is Kind.PICTURE
        if FILTER in fields:
            borders = session.spec.borders
            self.offer("border", ((border.value.capitalize(), border) for border in borders))
            for place, border in enumerate(borders):
                box = self.editors["border"]
                box.setItemData(place, border.help, Qt.ItemDataRole.ToolTipRole)
        if fields & {FILTER, OPTIONS}:
            self.show_values(border=session.border)
        if fields & {KIND, OPTIONS}:
            self.editors["grey"].setVisible(is_picture)
            self.show_values(grey=session.wishes_grey)
        if fields & {PLACES, FILTER}:
            self._offer_gpu()
        if OPTIONS in fields and session.refused is None:
            wished = session.wished
            memory = (wished.memory_limit or 0) // MIB
            self._gpu.show_values(block=wished.block, repeat=wished.repeat, memoryLimit=memory)

    def _offer_gpu(self) -> None:
        session, place = self._session, self._session.place
        usable = {rung.place.device for rung in session.rungs if not rung.obstacle}
        on_card = Device.GPU in usable and place.device in (Device.AUTO, Device.GPU)
        shown = {"block": session.takes_block(place), "repeat": on_card, "memoryLimit": on_card}
        for name, matters in shown.items():
            self._gpu.show_row(name, matters)
        self._gpu.setVisible(any(shown.values()))
