"""Occupancy: the blocks that fit on a multiprocessor at a time, and the limit that stops more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope.base.text import enumerated
from kernelscope.schema.levels import SHARED
from kernelscope.schema.parameters import IntParameter
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
from kernelscope.teach.lecture.parts import (
    BLOCK,
    CARD,
    SHOWN,
    Residence,
    block_of,
    launch_of,
    limits_of,
    residence,
)

_MASK = 9
_COLUMNS = 4


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    card, limits = SHOWN[values["card"]], limits_of(values["card"])
    block = block_of(values["block"])
    launch = launch_of("mean", SHARED, subject.shape, {"size": _MASK}, block=block)
    threads = launch.block[0] * launch.block[1]
    held = residence(limits, threads, values["registers"], launch.shared_bytes)
    facts = (
        by_plan("Shared memory of a block", f"{launch.shared_bytes:,} bytes"),
        by_plan("Warps of a block", f"{held.warps}"),
        by_formula("Blocks on a multiprocessor at a time", f"{held.blocks}"),
        by_formula("Reached first", enumerated(held.limits)),
        by_formula("Occupancy", f"{100 * held.occupancy:.1f} %"),
        of_card(
            f"Limits of {card.name}",
            f"{limits.threads:,} threads, {limits.registers:,} registers",
            "compute capability {}.{}".format(*card.capability),
        ),
    )
    return Shown(_drawing(subject, held, block), facts)


def _drawing(subject: LectureSubject, held: Residence, block: tuple[int, int]) -> Board:
    board = Board(f"{held.blocks} blocks on a multiprocessor, stopped by {enumerated(held.limits)}")
    board.heading(
        0,
        16,
        "One multiprocessor",
        f"{held.blocks} blocks of {held.warps} warps; {held.most_warps} warps fit",
    )
    rows = max(1, -(-held.blocks // _COLUMNS))
    high = min(90.0, 380 / rows)
    height, width = subject.pixels.shape[:2]
    # Blocks from the middle, where there is more to see than in a corner.
    middle = (height - rows * block[1]) // 2, (width - _COLUMNS * block[0]) // 2
    for number in range(held.blocks):
        x, y = number % _COLUMNS * 92, 46 + number // _COLUMNS * high
        top = (middle[0] + number // _COLUMNS * block[1]) % max(1, height - block[1])
        left = (middle[1] + number % _COLUMNS * block[0]) % max(1, width - block[0])
        tile = subject.pixels[top : top + block[1], left : left + block[0]]
        board.picture(x, y, 86, high - 6, tile)
        board.rectangle(x, y, 86, high - 6, stroke=ACCENT, thickness=1.5)
    if not held.blocks:
        board.text(0, 80, "The card refuses this launch.", size=18, bold=True)
    board.heading(400, 16, "Blocks that each limit allows", "the smallest decides")
    board.bars(
        400,
        56,
        256,
        [
            Bar(
                name + (" ← decides" if name in held.limits else ""),
                allowed,
                f"{allowed}",
                STRONG if name in held.limits else ACCENT,
                hatched=name not in held.limits,
            )
            for name, allowed in held.by.items()
        ],
    )
    return board


PAGE = LecturePage(
    id="occupancy",
    controls=(
        BLOCK,
        IntParameter(
            name="registers",
            label="Registers",
            help="Registers of a thread, which the compiler decides",
            default=32,
            minimum=16,
            maximum=255,
            step=8,
        ),
        CARD,
    ),
    show=_show,
    filters=("mean",),
)
