"""Medians: the cost of sorting, and the noise that no mean removes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.base.errors import AppError
from kernelscope.schema.devices import Device
from kernelscope.schema.parameters import IntParameter
from kernelscope.teach.lecture.board import Board
from kernelscope.teach.lecture.page import (
    LecturePage,
    LectureSubject,
    Shown,
    by_formula,
    by_plan,
    of_picture,
)
from kernelscope.teach.lecture.parts import filtered, operations_of, plan_of, published, side

_SIDE = 96


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size, density = values["size"], values["density"]
    facts = [by_formula("Cells to rank, a pixel", f"{size * size}")]
    for level in filters.get("median").levels(Device.GPU):
        plan = plan_of("median", level, subject.shape, {"size": size})
        if level.id in _LEVELS:
            name = f"Operations, {level.name.lower()}"
            facts.append(by_plan(name, f"{operations_of(plan):,.0f}", plan.notice))
    clean, *_ = subject.part(_SIDE, _SIDE)
    try:
        noisy = filtered(clean, "salt_and_pepper_noise", {"density": density / 100})
        results = [filtered(noisy, name, {"size": size}) for name in ("mean", "median")]
    except AppError as error:
        board = Board(error.message)
        board.heading(0, 16, error.message, error.hint)
        return Shown(board, tuple(facts))
    pictures = dict(zip(("With noise", "Mean", "Median"), (noisy, *results), strict=True))
    pictures = {"The picture": clean, **pictures}
    extreme = {name: _extreme(each) for name, each in pictures.items()}
    facts += [
        of_picture(f"Black or white: {name.lower()}", f"{100 * share:.1f} %")
        for name, share in extreme.items()
    ]
    return Shown(_drawing(pictures, extreme, size), tuple(facts))


_LEVELS = ("global", "selection", "tuned")


def _extreme(pixels: NDArray[np.uint8]) -> float:
    """Return the share of pixels at either end of the scale, as this noise leaves them."""
    return float(((pixels == 0) | (pixels == 255)).mean())


def _drawing(
    pictures: Mapping[str, NDArray[np.uint8]], extreme: Mapping[str, float], size: int
) -> Board:
    board = Board(f"A detail with noise, and after a mean and a median of {size}×{size}")
    for number, (name, pixels) in enumerate(pictures.items()):
        left, top = number % 2 * 230, number // 2 * 222
        board.text(left, top + 14, f"{name}: {100 * extreme[name]:.1f} %", bold=True)
        board.fitted(left, top + 22, (190, 190), pixels)
    board.heading(460, 16, f"{size}×{size} = {size * size} cells")
    board.text(460, 38, "are ranked for each")
    board.text(460, 56, "pixel of the median.")
    board.text(460, 92, "Percentages: pixels")
    board.text(460, 110, "that are black or white.")
    board.text(460, 146, "The mean spreads each over")
    board.text(460, 164, "its mask instead.")
    return board


PAGE = LecturePage(
    id="medians",
    controls=(
        side(3, 9),
        IntParameter(
            name="density",
            label="Noise",
            help="Share of pixels that become black or white, before filtering",
            default=10,
            minimum=0,
            maximum=50,
            unit="%",
        ),
    ),
    show=_show,
    figures=lambda: published("F", filter="median", shape=(4096, 4096)),
    filters=("median",),
)
