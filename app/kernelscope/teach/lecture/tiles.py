"""Tiles and halos: the pixels that a block loads into shared memory, for each of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope.schema.levels import GLOBAL, SHARED, colour
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Bar, Board
from kernelscope.teach.lecture.page import (
    Count,
    LecturePage,
    LectureSubject,
    Shown,
    by_formula,
    by_plan,
)
from kernelscope.teach.lecture.parts import BLOCK, block_of, launch_of, published, side


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size, block = values["size"], block_of(values["block"])
    launch = launch_of("mean", SHARED, subject.shape, {"size": size}, block=block)
    threads = launch.block[0] * launch.block[1]
    cells = launch.shared_bytes  # of bytes, in one channel
    a_pixel = cells / threads
    facts = (
        by_plan("Cells of the tile with its halo", f"{cells:,}"),
        by_plan("Halo, of all cells loaded", f"{100 * (1 - threads / cells):.1f} %"),
        by_plan("Cells from global memory, a pixel", f"{a_pixel:.3f}"),
        by_formula("The same at level global", f"{size * size}"),
        by_formula("Fewer reads, by a factor of", f"{size * size / a_pixel:.1f}"),
        by_plan("Shared memory of a block", f"{launch.shared_bytes:,} bytes"),
    )
    return Shown(_drawing(subject, size, launch.block, a_pixel), facts)


def _drawing(subject: LectureSubject, size: int, block: tuple[int, ...], a_pixel: float) -> Board:
    board = Board(f"A tile of {block[0]}×{block[1]} pixels with the halo of a {size}×{size} mask")
    reach = size // 2
    columns, rows = block[0] + 2 * reach, block[1] + 2 * reach
    part, *_ = subject.part(rows, columns)
    board.heading(
        0,
        16,
        f"Tile {block[0]}×{block[1]}, with halo {columns}×{rows}",
        "Dashed: loaded. Solid: computed by the block. Blue: cells of one thread.",
    )
    x, y, cell = board.fitted(0, 46, (440, 390), part)
    if part.shape == (rows, columns):
        inner = x + reach * cell, y + reach * cell
        board.frame(x + 1, y + 1, columns * cell - 2, rows * cell - 2, dashed=True)
        board.frame(*inner, block[0] * cell, block[1] * cell)
        start = x + (block[0] // 3) * cell, y + (block[1] // 2) * cell
        board.frame(*start, size * cell, size * cell, stroke=ACCENT)
    else:
        board.text(x, y + part.shape[0] * cell + 20, "The picture is smaller than the tile.")
    board.heading(460, 16, "Global reads", "cells for each pixel")
    board.bars(
        460,
        56,
        196,
        (
            Bar("global: each its own", size * size, f"{size * size}", colour(GLOBAL)),
            Bar("shared: the tile", a_pixel, f"{a_pixel:.2f}", colour(SHARED)),
            Bar("best possible", 1, "1", STRONG, hatched=True),
        ),
    )
    return board


def _counted(values: Mapping[str, Any]) -> Count:
    return Count(
        "mean",
        (GLOBAL.id, SHARED.id),
        {"size": values["size"]},
        ("global loads", "global sectors", "shared loads"),
        block_of(values["block"]),
    )


PAGE = LecturePage(
    id="tiles",
    controls=(side(9), BLOCK),
    show=_show,
    figures=lambda: published("F", filter="mask", shape=(4096, 4096), mask_side=9),
    filters=("mean", "mask"),
    counted=_counted,
)
