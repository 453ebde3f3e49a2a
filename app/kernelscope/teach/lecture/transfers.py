"""Where transfers eat the gain: kernels and whole runs, as they were recorded."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from kernelscope.base.durations import duration
from kernelscope.base.errors import AppError
from kernelscope.bench import recorded
from kernelscope.bench.recorded import figures_of
from kernelscope.bench.report import load
from kernelscope.schema.levels import SHARED
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Board
from kernelscope.teach.lecture.page import LecturePage, LectureSubject, Shown, as_recorded
from kernelscope.teach.lecture.parts import published, side

REPORT = "gpu-f-graphs.json"  # the recorded report with the sizes and masks of source F


@functools.cache
def _figures() -> tuple[recorded.RecordedTime, ...]:
    """Return the recorded figures of the median at level shared; none if it is not installed."""
    path = recorded.FOLDER / REPORT
    try:
        found = figures_of(load(path), path)
    except AppError:
        return ()
    return tuple(
        figure for figure in found if (figure.row.filter, figure.row.level) == ("median", SHARED.id)
    )


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size = str(values["size"])
    chosen = [figure for figure in _figures() if figure.row.parameters.get("size") == size]
    chosen.sort(key=lambda figure: figure.row.asked)
    board = Board(f"Kernel and whole run of the median {size}×{size}, by the size of the picture")
    board.heading(
        0,
        16,
        f"Median {size}×{size}, level shared: share of the whole run",
        "Orange: the kernel. Outlined: transfers, launches and conversions.",
    )
    facts = []
    for number, figure in enumerate(chosen):
        side_, share = figure.row.asked[0], figure.seconds / figure.total
        y = 62 + 88 * number
        board.text(0, y + 14, f"{side_}×{side_}", bold=True, size=15)
        times = f"{duration(figure.seconds)} of {duration(figure.total)}"
        board.text(656, y + 14, times, anchor="end")
        board.rectangle(0, y + 24, 652, 26, stroke=ACCENT, thickness=1.5, dashed=True)
        board.rectangle(0, y + 24, max(652 * share, 1.5), 26, fill=STRONG, stroke=STRONG)
        facts.append(
            as_recorded(
                f"{side_}×{side_}: not the kernel",
                f"{100 * (1 - share):.1f} %",
                f"{figure.card}, {figure.date}",
            )
        )
    if not chosen:
        board.text(0, 80, "No recorded figures of this mask are installed.", size=15)
        facts.append(as_recorded("Recorded runs", "none"))
    return Shown(board, tuple(facts))


PAGE = LecturePage(
    id="transfers",
    controls=(side(3, 9),),
    show=_show,
    figures=lambda: tuple(
        figure for figure in published("F", filter="median") if figure.parameters == {"size": "3"}
    ),
    filters=("median",),
)
