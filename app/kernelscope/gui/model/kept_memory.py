"""How much memory the pictures take that a window keeps, and within which bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kernelscope.base import memory
from kernelscope.gui.model import history
from kernelscope.gui.model.documents import Documents
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.history import History


class KeptPictures(NamedTuple):
    name: str
    bytes: int
    limit: int

    def describe(self) -> str:
        """Return ``undo 12 of 1024 MiB``."""
        return f"{self.name} {_mebibytes(self.bytes)} of {_mebibytes(self.limit)} MiB"


def kept_by(
    histories: Iterable[History[Any, Any]], gallery: Gallery, documents: Documents
) -> list[KeptPictures]:
    """Return the places, of which several may keep the same picture."""
    shown = list(histories)
    outputs = [each.outputs for each in shown]
    return [
        KeptPictures("undo", sum(each.bytes for each in shown), len(shown) * history.MOST_BYTES),
        KeptPictures(
            "steps", sum(each.bytes for each in outputs), sum(each.limit for each in outputs)
        ),
        KeptPictures("runs", gallery.bytes, gallery.limit),
        KeptPictures("pictures behind the one in front", documents.bytes_behind, documents.limit),
    ]


def describe(kept: Iterable[KeptPictures]) -> str:
    """Return the memory of the process, as far as the system says, and its pictures."""
    whole = memory.resident()
    process = f"{_mebibytes(whole)} MiB in all, with libraries and compiled code. " if whole else ""
    return f"Memory: {process}Pictures: {', '.join(each.describe() for each in kept)}."


def _mebibytes(count: int) -> int:
    return round(count / 2**20)
