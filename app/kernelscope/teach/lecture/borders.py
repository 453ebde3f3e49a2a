"""Borders: the rim of a result, by the rule for pixels outside of the picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.base.errors import AppError
from kernelscope.schema.borders import Border
from kernelscope.schema.parameters import Choice, ChoiceParameter
from kernelscope.teach.lecture.board import STRONG, Board
from kernelscope.teach.lecture.page import (
    LecturePage,
    LectureSubject,
    Shown,
    by_formula,
    of_picture,
)
from kernelscope.teach.lecture.parts import filtered, side

_MOST = 512  # side of the part that is filtered: `wrap` needs the opposite edge

_SHOWN = 40


def rim_pixels(shape: tuple[int, ...], size: int) -> int:
    inner = [max(0, length - 2 * (size // 2)) for length in shape[:2]]
    return shape[0] * shape[1] - inner[0] * inner[1]


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size, border = values["size"], Border(values["border"])
    part = subject.pixels[:_MOST, :_MOST]
    rim = rim_pixels(part.shape, size)
    facts = [
        by_formula("Pixels whose mask reaches outside", f"{rim:,}"),
        by_formula("Of the picture", f"{100 * rim / part.size:.2f} %"),
    ]
    try:
        result = filtered(part, "mean", {"size": size}, border)
    except AppError as error:
        board = Board(f"Mean {size}×{size} with border {border}: {error.message}")
        board.heading(0, 16, error.message, error.hint)
        return Shown(board, tuple(facts))
    facts.append(of_picture("Size of the result", "×".join(map(str, reversed(result.shape)))))
    if result.shape == part.shape:
        usual = filtered(part, "mean", {"size": size}, Border.REFLECT)
        apart = np.abs(result.astype(int) - usual)
        facts += [
            of_picture("Pixels that differ from border reflect", f"{np.count_nonzero(apart):,}"),
            of_picture("Largest difference, of 255", f"{apart.max()}"),
        ]
    return Shown(_drawing(part, result, size, border), tuple(facts))


def _drawing(
    part: np.ndarray[Any, Any], result: np.ndarray[Any, Any], size: int, border: Border
) -> Board:
    board = Board(f"The upper left corner before and after a mean {size}×{size}, border {border}")
    corners = part[:_SHOWN, :_SHOWN], result[:_SHOWN, :_SHOWN]
    titles = "Before", f"Mean {size}×{size}"
    notes = "the corner, enlarged", f"border {border}"
    for left, pixels, title, note in zip((0, 336), corners, titles, notes, strict=True):
        board.heading(left, 16, title, note)
        x, y, cell = board.fitted(left, 46, (320, 320), pixels)
        reach = min(size // 2, *pixels.shape)
        if pixels is corners[0] or border is not Border.VALID:
            rows, columns = pixels.shape
            board.frame(
                x + reach * cell,
                y + reach * cell,
                max(0, columns - reach) * cell,
                max(0, rows - reach) * cell,
                stroke=STRONG,
            )
    board.text(0, 390, "Inside the frame every border gives the same result.")
    board.text(0, 412, f"{border}: {border.help}.", size=12)
    return board


PAGE = LecturePage(
    id="borders",
    controls=(
        ChoiceParameter(
            name="border",
            label="Border",
            help="Values outside of the picture",
            default=str(Border.CONSTANT),
            choices=tuple(Choice(str(each), str(each), each.help) for each in Border),
        ),
        side(9),
    ),
    show=_show,
    filters=("mean",),
)
