"""What a run on a GPU can be told besides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QFormLayout, QLabel, QSpinBox, QWidget

from app.engine.request import Request

_MIB = 1 << 20


class GpuOptions(QWidget):
    """Repeats of the kernel, and a limit of device memory."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("gpuOptions")
        layout = QFormLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)

        def add(name: str, label: str, tip: str) -> QSpinBox:
            box = QSpinBox(self)
            box.setObjectName(name)
            box.setAccessibleName(label.replace("&", ""))
            box.setToolTip(tip)
            caption = QLabel(label, self)
            caption.setBuddy(box)
            layout.addRow(caption, box)
            return box

        self._repeat = add(
            "repeat", "Re&peat kernel", "Run the kernel so often on a GPU and report the median."
        )
        self._repeat.setRange(1, 999)
        self._repeat.setSuffix(" ×")
        self._memory = add(
            "memoryLimit",
            "GPU &memory",
            "Most memory that images may take on a GPU; larger ones are filtered in strips.",
        )
        self._memory.setRange(0, 999_999)
        self._memory.setSuffix(" MiB")
        self._memory.setSpecialValueText("all that is free")

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments for `Request.create`."""
        return {
            "repeat": self._repeat.value(),
            "memory_limit": self._memory.value() * _MIB or None,
        }

    def show_request(self, request: Request) -> None:
        """Show the options that `request` was made with."""
        self._repeat.setValue(request.repeat)
        self._memory.setValue((request.memory_limit or 0) // _MIB)

    def texts(self) -> dict[str, str]:
        """Return the options as texts to remember."""
        return {"repeat": str(self._repeat.value()), "memoryLimit": str(self._memory.value())}

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Show what `texts` returned once."""
        for box, name in ((self._repeat, "repeat"), (self._memory, "memoryLimit")):
            text = texts.get(name, "")
            if text.isdecimal():
                box.setValue(int(text))
