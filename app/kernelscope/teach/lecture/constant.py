"""The constant cache: the weights of a mask, one at a time for a whole warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope.schema.levels import CONSTANT, GLOBAL
from kernelscope.schema.parameters import IntParameter
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
from kernelscope.teach.lecture.parts import WARP, launch_of, published, side

_PITCH = 20.0


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    size, apart = values["size"], values["apart"]
    mask = ((1,) * size,) * size
    launches = [
        launch_of("mask", level, subject.shape, {"mask": mask}) for level in (GLOBAL, CONSTANT)
    ]
    tables = sum(each.nbytes for each in launches[0].tables)
    kept = launches[1].constants.keys() - launches[0].constants.keys()
    constants = sum(launches[1].constants[name].nbytes for name in kept)
    facts = (
        by_formula("Weights that each thread reads", f"{size * size}"),
        by_plan("Weights in global memory at level global", f"{tables:,} bytes"),
        by_plan("In constant memory at level constant", f"{constants:,} bytes"),
        by_formula("Turns of the constant cache for one read of a warp", f"{apart}"),
        by_formula("For all weights of the mask", f"{apart * size * size:,}"),
    )
    return Shown(_drawing(subject, apart), facts)


def _drawing(subject: LectureSubject, apart: int) -> Board:
    board = Board(f"A warp of {WARP} threads asks the constant cache for {apart} weights at once")
    part, *_ = subject.part(1, WARP)
    board.heading(0, 16, "The pixels of a warp", "32 threads, a pixel of a row of the picture each")
    width = part.shape[1] * _PITCH
    board.picture(0, 46, width, 44, part)
    board.rectangle(0, 46, width, 44, thickness=1)
    for thread in range(WARP):
        target = thread % apart
        to_x = (target + 0.5) * _PITCH
        board.line(
            (thread + 0.5) * _PITCH, 92, to_x, 236, stroke=ACCENT, thickness=1.2, opacity=0.8
        )
    for weight in range(apart):
        board.rectangle(
            weight * _PITCH + 1, 238, _PITCH - 2, 34, fill=STRONG, opacity=0.6, thickness=1
        )
        board.text((weight + 0.5) * _PITCH, 260, f"{weight + 1}", size=11, anchor="middle")
    board.text(0, 298, "Weights asked for at once; the number is the turn in which each is sent.")
    kind = (
        "one turn: broadcast to all threads" if apart == 1 else f"{apart} turns, one after another"
    )
    board.text(0, 330, kind, size=20, bold=True)
    return board


def _counted(values: Mapping[str, Any]) -> Count:
    size = values["size"]
    return Count(
        "mask",
        (GLOBAL.id, CONSTANT.id),
        {"mask": ((1,) * size,) * size},
        ("global loads", "constant loads"),
    )


PAGE = LecturePage(
    id="constant",
    controls=(
        side(9),
        IntParameter(
            name="apart",
            label="Different weights",
            help="Addresses that the threads of a warp ask for at the same time",
            default=1,
            minimum=1,
            maximum=WARP,
        ),
    ),
    show=_show,
    figures=lambda: (
        published("F", variant="global memory") + published("F", variant="constant memory")
    ),
    filters=("mask",),
    counted=_counted,
)
