"""The colours of the parts of a run, and their legend."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette

from kernelscope.gui.model.runs import KERNEL, OTHER, TRANSFERS
from kernelscope.gui.widgets import theme

_COLOURS = {KERNEL: theme.kernel_fill, TRANSFERS: theme.transfers_fill, OTHER: theme.other_fill}


def part_colour(part: str, palette: QPalette) -> QColor:
    return _COLOURS[part](palette)


def legend(palette: QPalette) -> str:
    """Return the names of the parts, each behind a square of its colour, as rich text."""
    colours = ((part, part_colour(part, palette).name()) for part in _COLOURS)
    return "&nbsp;&nbsp; ".join(
        f'<span style="color: {ink}">■</span> {part}' for part, ink in colours
    )


LEGEND_TIP = "Colours of bars: light kernel, dark transfers, grey other stages"
