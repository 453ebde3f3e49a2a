"""One block or many: the picture cut into tiles, and the multiprocessors that take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope.schema.levels import GLOBAL, SINGLE_BLOCK, colour
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Bar, Board
from kernelscope.teach.lecture.page import (
    LecturePage,
    LectureSubject,
    Shown,
    by_formula,
    by_plan,
    of_card,
)
from kernelscope.teach.lecture.parts import BLOCK, CARD, SHOWN, block_of, launch_of, published
from kernelscope.traffic.gpus import Gpu

_FINEST = 2.5  # units of the narrowest tile of which a grid is drawn


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    card, block = SHOWN[values["card"]], block_of(values["block"])
    launch = launch_of("mean", GLOBAL, subject.shape, {"size": 3}, block=block)
    assert launch.tile is not None
    across, down = launch.grid(subject.shape)
    blocks = across * down
    working = min(blocks, card.multiprocessors)
    facts = (
        by_plan("Blocks of the grid", f"{across}×{down} = {blocks:,}"),
        by_plan("Threads of a block", f"{launch.block[0] * launch.block[1]:,}"),
        by_plan("Pixels of a tile", "×".join(map(str, launch.tile))),
        of_card(f"Multiprocessors of {card.name}", f"{card.multiprocessors}"),
        by_formula("Blocks for each of them", f"{blocks / card.multiprocessors:,.1f}"),
        by_formula("With many blocks, multiprocessors that work", f"{working}"),
    )
    return Shown(_drawing(subject, launch.tile, working, card), facts)


def _drawing(subject: LectureSubject, tile: tuple[int, ...], working: int, card: Gpu) -> Board:
    board = Board(f"The picture in tiles of {tile[0]}×{tile[1]}; {working} are in work at once")
    board.heading(
        0,
        16,
        f"{subject.size} pixels in tiles of {tile[0]}×{tile[1]}",
        "Filled: the first tile for each multiprocessor.",
    )
    x, y, cell = board.fitted(0, 46, (400, 390), subject.pixels)
    height, width = subject.pixels.shape
    wide, high = tile[0] * cell, tile[1] * cell
    across, down = -(-width // tile[0]), -(-height // tile[1])
    right, bottom = x + width * cell, y + height * cell
    for number in range(min(working, across * down)):
        left, top = x + number % across * wide, y + number // across * high
        board.rectangle(
            left,
            top,
            min(wide, right - left),
            min(high, bottom - top),
            fill=STRONG,
            opacity=0.55,
            stroke="#ffffff",
            thickness=0.4,
        )
    if min(wide, high) >= _FINEST:
        for column in range(across + 1):
            at = min(x + column * wide, right)
            board.line(at, y, at, bottom, stroke=ACCENT, thickness=0.5)
        for row in range(down + 1):
            at = min(y + row * high, bottom)
            board.line(x, at, right, at, stroke=ACCENT, thickness=0.5)
    board.heading(430, 16, "Multiprocessors", f"that work at once on {card.name}")
    board.bars(
        430,
        56,
        226,
        (
            Bar("one block", 1, "1", colour(SINGLE_BLOCK)),
            Bar("many blocks", working, f"{working}", colour(GLOBAL)),
            Bar("on the card", card.multiprocessors, f"{card.multiprocessors}", hatched=True),
        ),
    )
    return board


PAGE = LecturePage(
    id="blocks",
    controls=(BLOCK, CARD),
    show=_show,
    figures=lambda: published("M", variant="single-block") + published("M", variant="global"),
    filters=("mean",),
)
