"""Textures: pixels outside the picture, answered by hardware or by the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from kernelscope.schema.borders import Border
from kernelscope.schema.launch import HARDWARE_BORDERS
from kernelscope.schema.levels import GLOBAL, TEXTURE
from kernelscope.schema.parameters import Choice, ChoiceParameter
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Board
from kernelscope.teach.lecture.page import (
    Count,
    LecturePage,
    LectureSubject,
    Shown,
    by_formula,
    by_plan,
)
from kernelscope.teach.lecture.parts import launch_of, published, side

_Mode = Literal["symmetric", "reflect", "edge", "constant", "wrap"]

MODES: Mapping[Border, _Mode] = {
    Border.REFLECT: "symmetric",
    Border.MIRROR: "reflect",
    Border.NEAREST: "edge",
    Border.CONSTANT: "constant",
    Border.WRAP: "wrap",
}
"""NumPy's names of the borders that put values outside of the picture."""

_CORNER, _MARGIN = 40, 24  # pixels of the picture's corner that are shown, and outside of it


def outside_reads(shape: tuple[int, ...], size: int) -> int:
    """Return the cells that a mask at every pixel reads outside of a picture."""
    inside = 1
    for length in shape[:2]:
        at = np.arange(length)
        reach = size // 2
        first, last = np.maximum(at - reach, 0), np.minimum(at + reach, length - 1)
        inside *= int((last - first + 1).sum())
    return shape[0] * shape[1] * size * size - inside


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size, border = values["size"], Border(values["border"])
    launch = launch_of("mean", TEXTURE, subject.shape, {"size": size})
    outside = outside_reads(subject.shape, size)
    share = outside / (subject.pixels.size * size * size)
    unit = "texture unit" if border in HARDWARE_BORDERS else "code of the kernel"
    facts = (
        by_plan("Reads through a texture", "yes" if launch.texture else "no"),
        by_formula("Reads outside the picture", f"{outside:,}"),
        by_formula("Of all reads", f"{100 * share:.2f} %"),
        by_plan("They are answered by the", unit),
        by_formula("Copy into an array first", f"{subject.pixels.size:,} bytes"),
    )
    return Shown(_drawing(subject, border, size), facts)


def _drawing(subject: LectureSubject, border: Border, size: int) -> Board:
    board = Board(f"The upper left corner of the picture, continued outside by {border}")
    corner = subject.pixels
    margin = (
        _MARGIN if border is not Border.MIRROR else min(_MARGIN, *(n - 1 for n in corner.shape))
    )
    padded = np.pad(corner, max(margin, 0), mode=MODES[border])
    side_ = _CORNER + margin
    part = np.ascontiguousarray(padded[:side_, :side_])
    board.heading(0, 16, f"Border {border}: {border.help}", "Solid frame: the picture begins.")
    x, y, cell = board.fitted(0, 46, (390, 390), part)
    rows, columns = part.shape
    board.frame(
        x + margin * cell, y + margin * cell, (columns - margin) * cell, (rows - margin) * cell
    )
    reach = size // 2
    left, top = (max(margin - reach, 0),) * 2
    across = min(size, columns - left) * cell
    board.frame(x + left * cell, y + top * cell, across, across, stroke=ACCENT)
    hardware = border in HARDWARE_BORDERS
    board.heading(420, 80, "Outside the picture:", "blue: the mask of the corner pixel")
    board.text(420, 136, "texture unit" if hardware else "kernel", size=22, bold=True)
    board.text(420, 162, "no test in the code" if hardware else "tests each coordinate", size=13)
    board.rectangle(
        420,
        176,
        140,
        8,
        fill=STRONG if not hardware else ACCENT,
        stroke="none",
        dashed=not hardware,
    )
    return board


def _counted(values: Mapping[str, Any]) -> Count:
    titles = "global loads", "texture fetches"
    return Count("mean", (GLOBAL.id, TEXTURE.id), {"size": values["size"]}, titles)


PAGE = LecturePage(
    id="textures",
    controls=(
        ChoiceParameter(
            name="border",
            label="Border",
            help="Values outside of the picture",
            default=str(Border.REFLECT),
            choices=tuple(Choice(str(each), str(each), each.help) for each in MODES),
        ),
        side(9),
    ),
    show=_show,
    figures=lambda: published("M", variant="shared") + published("M", variant="texture"),
    filters=("mean",),
    counted=_counted,
)
