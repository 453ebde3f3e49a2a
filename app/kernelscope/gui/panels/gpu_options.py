"""The options of a run that concern a GPU alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFormLayout, QLabel, QWidget

from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.errors import InvalidParameter
from kernelscope.gui.model.form_state import MIB
from kernelscope.gui.panels.editors import shrink, tell_of_refusals
from kernelscope.gui.widgets.controls import ChoiceBox, WholeBox
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.spec.blocks import USUAL_BLOCKS, Block, block_name, read_block

_BLOCK = (
    "Threads of each block, across and down. The list of runs shows the cost of a size; the kernel "
    "does not change."
)
_NO_BLOCK = "Only the levels of a GPU up to texture have blocks of any size."

_MOST_DIGITS = 10
"""More digits than any of these numbers has; a longer text is damaged."""

_Box = TypeVar("_Box", WholeBox, ChoiceBox)


class GpuOptions(QWidget):
    """Blocks of threads, repeats of the kernel, and a limit of device memory."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("gpuOptions")
        set_help(self, "gpu-levels#how-a-run-uses-the-card")
        layout = QFormLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)

        def add(name: str, label: str, tip: str, box: _Box) -> _Box:
            box.setObjectName(name)
            box.setAccessibleName(label.replace("&", ""))
            box.setToolTip(tip)
            caption = QLabel(label, self)
            caption.setBuddy(box)
            layout.addRow(caption, box)
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
        self._repeat.setRange(1, 999)
        self._repeat.setSuffix(" ×")
        self._memory = add(
            "memoryLimit",
            "GPU &memory",
            "Limit of the GPU memory for images; larger ones are filtered in strips.",
            WholeBox(self),
        )
        self._memory.setRange(0, 999_999)
        self._memory.setSuffix(" MiB")
        self._memory.setSpecialValueText("all that is free")
        self._block.currentIndexChanged.connect(self.changed)
        for number in (self._repeat, self._memory):
            number.valueChanged.connect(self.changed)
            tell_of_refusals(number, self.changed)

    def offer_blocks(self, offered: bool) -> None:
        """Enable the choice of blocks, where it has an effect, or not."""
        self._block.setEnabled(offered)
        self._block.setToolTip(_BLOCK if offered else _NO_BLOCK)

    def offer_card(self, offered: bool) -> None:
        """Enable the options that only a real GPU has, or not."""
        self._repeat.setEnabled(offered)
        self._memory.setEnabled(offered)

    def options(self, device: Device, level: str | None, *, block: bool) -> RunOptions:
        """Return the options of a run on a device, with the chosen block if it takes one.

        Raises
        ------
        InvalidParameter
            While a number is being typed.
        """
        return RunOptions(
            device,
            level,
            self._repeat.checked(),
            self._memory.checked() * MIB or None,
            block=self._block.currentData() if block and self.isEnabled() else None,
        )

    def show_request(self, request: Request) -> None:
        """Show the options that `request` was made with."""
        self._show_block(request.options.block)
        self._repeat.setValue(request.options.repeat)
        self._memory.setValue((request.options.memory_limit or 0) // MIB)

    def texts(self) -> dict[str, str]:
        """Return the options as texts to remember."""
        block: Block | None = self._block.currentData()
        return {
            "block": block_name(block) if block else "",
            "repeat": str(self._repeat.value()),
            "memoryLimit": str(self._memory.value()),
        }

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Show values that `texts` returned before."""
        try:
            self._show_block(read_block(texts.get("block", "")))
        except InvalidParameter:  # none was chosen
            self._show_block(None)
        for box, name in ((self._repeat, "repeat"), (self._memory, "memoryLimit")):
            text = texts.get(name, "")
            if text.isdecimal() and len(text) < _MOST_DIGITS:
                box.setValue(int(text))

    def _show_block(self, block: Block | None) -> None:
        """Choose a block, which may be one that is not offered yet."""
        row = self._block.findData(block)
        if row < 0 and block is not None:
            self._block.addItem(_threads(block), block)
            row = self._block.count() - 1
        self._block.setCurrentIndex(row)


def _threads(block: Block) -> str:
    return f"{block_name(block)} threads"
