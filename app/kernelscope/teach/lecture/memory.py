"""Why memory matters: the reads of a small mask, and those that are necessary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope.base.durations import duration
from kernelscope.schema.levels import GLOBAL
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Bar, Board
from kernelscope.teach.lecture.page import (
    Count,
    LecturePage,
    LectureSubject,
    Shown,
    by_formula,
    by_plan,
    of_card,
)
from kernelscope.teach.lecture.parts import CARD, SHOWN, launch_of, published, side

_CROP = 17


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size, card = values["size"], SHOWN[values["card"]]
    launch = launch_of("mean", GLOBAL, subject.shape, {"size": size})
    samples = subject.pixels.size
    floor = samples * launch.bytes_per_sample / card.bandwidth
    unshared = samples * (size * size + 1) / card.bandwidth
    facts = (
        by_formula("Cells that each pixel of the result needs", f"{size * size}"),
        by_plan(
            "Bytes a pixel that must move: read once, write once", f"{launch.bytes_per_sample:g}"
        ),
        by_plan(
            "Operations for each of these bytes",
            f"{launch.operations_per_sample / launch.bytes_per_sample:.3g}",
        ),
        of_card(f"Bandwidth of {card.name}", f"{card.bandwidth / 1e9:,.0f} GB/s"),
        by_formula(f"Least time for {subject.size} pixels", duration(floor)),
        by_formula("The same if no cell were read from a cache", duration(unshared)),
    )
    return Shown(_drawing(subject, size, launch.bytes_per_sample), facts)


def _drawing(subject: LectureSubject, size: int, least: float) -> Board:
    board = Board(f"A mask of {size}×{size} on the picture, and the bytes it reads for a pixel")
    part, top, left = subject.part(_CROP, _CROP)
    board.heading(0, 16, "One pixel of the result", f"row {top}, column {left} on, enlarged")
    x, y, cell = board.fitted(0, 46, (380, 380), part)
    rows, columns = part.shape
    across, down = min(size, columns), min(size, rows)
    middle_x, middle_y = columns // 2, rows // 2
    first_x, first_y = middle_x - across // 2, middle_y - down // 2
    board.frame(x + first_x * cell, y + first_y * cell, across * cell, down * cell)
    board.frame(x + middle_x * cell, y + middle_y * cell, cell, cell, stroke=ACCENT, thickness=2.5)
    board.heading(410, 16, "Bytes for a pixel", "8-bit samples")
    board.bars(
        410,
        56,
        240,
        (
            Bar("asked for by the threads", size * size + 1, f"{size * size + 1}", STRONG),
            Bar("must move", least, f"{least:g}", ACCENT, hatched=True),
        ),
    )
    return board


def _counted(values: Mapping[str, Any]) -> Count:
    titles = "global loads", "global stores", "bytes of device memory"
    return Count("mean", (GLOBAL.id,), {"size": values["size"]}, titles)


PAGE = LecturePage(
    id="memory",
    controls=(side(5), CARD),
    show=_show,
    figures=lambda: published("M", filter="mean"),
    filters=("mean",),
    counted=_counted,
)
