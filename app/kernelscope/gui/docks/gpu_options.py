"""The options of a run that concern a GPU alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QFormLayout, QWidget

from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.options import Device
from kernelscope.gui.session.session import (
    FILTER,
    MIB,
    MOST_MIB,
    MOST_REPEATS,
    OPTIONS,
    PLACES,
    Session,
)
from kernelscope.gui.session.subject import Fields
from kernelscope.gui.widgets.controls import ChoiceBox, WholeBox
from kernelscope.gui.widgets.editors import shrink, tell_of_refusals
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed
from kernelscope.schema.blocks import USUAL_BLOCKS, Block, block_name

_BLOCK = (
    "Threads of each block, across and down. The list of runs shows the cost of a size; the kernel "
    "does not change."
)
_NO_BLOCK = "Only the levels of a GPU up to texture have blocks of any size."

_Box = TypeVar("_Box", WholeBox, ChoiceBox)


class GpuOptions(QWidget):
    """Blocks of threads, repeats of the kernel, and a limit of device memory."""

    _typed = Signal()  # a text became no number, or one again

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("gpuOptions")
        set_help(self, "gpu-levels#how-a-run-uses-the-card")
        layout = QFormLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)

        def add(name: str, label: str, tip: str, box: _Box) -> _Box:
            layout.addRow(label, dressed(box, name, label.replace("&", ""), tip=tip))
            return box

        self._block = add("block", "Bloc&k", _BLOCK, ChoiceBox(self))
        shrink(self._block)
        self._block.addItem("as planned", None)
        for block in USUAL_BLOCKS:
            self._block.addItem(_threads(block), block)
        self._repeat = add(
            "repeat",
            "Re&peat kernel",
            "Number of runs of the kernel on a GPU, after a warm-up; the median is reported.",
            WholeBox(self),
        )
        self._repeat.setRange(1, MOST_REPEATS)
        self._repeat.setSuffix(" ×")
        self._memory = add(
            "memoryLimit",
            "GPU &memory",
            "Limit of the GPU memory for images; larger ones are filtered in strips.",
            WholeBox(self),
        )
        self._memory.setRange(0, MOST_MIB)
        self._memory.setSuffix(" MiB")
        self._memory.setSpecialValueText("all that is free")
        self._block.currentIndexChanged.connect(self._write)
        for number in (self._repeat, self._memory):
            number.valueChanged.connect(self._write)
            tell_of_refusals(number, self._typed)
        self._typed.connect(self._write)
        session.follow(self._show)
        self._show(frozenset({OPTIONS, PLACES}))

    def _write(self) -> None:
        session, block = self._session, self._block.currentData()
        try:
            repeat, memory = self._repeat.checked(), self._memory.checked() * MIB or None
        except InvalidParameter as error:
            session.set_options(session.wished, error)
            return
        session.set_options(
            replace(session.wished, block=block, repeat=repeat, memory_limit=memory)
        )

    def _show(self, fields: Fields) -> None:
        session, place = self._session, self._session.place
        if fields & {PLACES, FILTER}:
            usable = {rung.place.device for rung in session.rungs if not rung.obstacle}
            # Auto and the CPU are always there.
            emulated = place.device is Device.EMULATED
            on_card = Device.GPU in usable and place.device is not Device.CPU
            takes_block = session.takes_block(place)
            self.setEnabled(on_card or emulated)
            self._block.setEnabled(takes_block)
            self._block.setToolTip(_BLOCK if takes_block else _NO_BLOCK)
            for each in (self._repeat, self._memory):
                each.setEnabled(not emulated)
        if OPTIONS in fields and session.refused is None:
            wished = session.wished
            with QSignalBlocker(self._block):
                self._show_block(wished.block)
            for box, value in (
                (self._repeat, wished.repeat),
                (self._memory, (wished.memory_limit or 0) // MIB),
            ):
                if box.value() != value:  # or what is being typed would be lost
                    with QSignalBlocker(box):
                        box.setValue(value)

    def _show_block(self, block: Block | None) -> None:
        """Choose a block, which may be one that is not offered yet."""
        row = self._block.findData(block)
        if row < 0 and block is not None:
            self._block.addItem(_threads(block), block)
            row = self._block.count() - 1
        self._block.setCurrentIndex(row)


def _threads(block: Block) -> str:
    return f"{block_name(block)} threads"
