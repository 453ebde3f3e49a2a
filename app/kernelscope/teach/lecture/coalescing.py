"""Coalescing: the sectors of memory that a warp touches with one load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.schema.parameters import Choice, ChoiceParameter, IntParameter
from kernelscope.teach.lecture.board import STRONG, Board
from kernelscope.teach.lecture.page import Count, LecturePage, LectureSubject, Shown, by_formula
from kernelscope.teach.lecture.parts import WARP

SECTOR, LINE = 32, 128  # bytes that memory delivers at once, and of a line of the cache

_BYTES = {"1": "8 bit", "2": "16 bit", "4": "float"}
_FEWEST_LINES, _MOST_LINES = 7, 12
_SCALE = 4.6  # units of the drawing for a byte


def sectors(stride: int, first: int, sample_bytes: int) -> int:
    """Return the sectors that a load of a warp touches: thread t reads sample first + t·stride."""
    step = stride * sample_bytes
    if step >= SECTOR:
        return WARP
    start = first * sample_bytes
    # No sector is skipped by steps that are shorter than one.
    return (start + (WARP - 1) * step) // SECTOR - start // SECTOR + 1


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    stride, first, size = values["stride"], values["first"], int(values["sample"])
    touched = sectors(stride, first, size)
    used, fetched = WARP * size, SECTOR * touched
    facts = (
        by_formula("Sectors of 32 bytes that the warp touches", f"{touched}"),
        by_formula("Bytes that memory delivers", f"{fetched:,}"),
        by_formula("Bytes that the threads use", f"{used:,}"),
        by_formula("Used of the bytes delivered", f"{100 * used / fetched:.1f} %"),
    )
    return Shown(_drawing(subject, stride, first, size), facts)


def _drawing(subject: LectureSubject, stride: int, first: int, size: int) -> Board:
    board = Board("Memory in sectors of 32 bytes; those that a warp touches are framed")
    last = (first + (WARP - 1) * stride) * size // LINE
    lines = max(_FEWEST_LINES, min(last + 1, _MOST_LINES))
    board.heading(
        0,
        16,
        "Memory: pixels of the picture, row after row",
        "A line of the cache has 128 bytes: four sectors. Framed: delivered. "
        "Orange: read by a thread.",
    )
    left, top, pitch = 60, 52, 360 / lines
    high = 0.6 * pitch
    cells = LINE // size
    row = _memory(subject, lines * cells)
    reads = {first + thread * stride for thread in range(WARP)}
    for line in range(lines):
        y = top + line * pitch
        part = row[line * cells : (line + 1) * cells]
        board.picture(left, y, LINE * _SCALE, high, part[None, :])
        board.text(left - 8, y + 0.5 * high + 4, f"{line * LINE}", size=11, anchor="end")
        for cell in range(cells):
            if line * cells + cell in reads:
                x = left + cell * size * _SCALE
                board.rectangle(
                    x, y + high, size * _SCALE, 6, fill=STRONG, stroke="none", thickness=0
                )
        for sector in range(LINE // SECTOR):
            start = line * cells + sector * SECTOR // size
            x, width = left + sector * SECTOR * _SCALE, SECTOR * _SCALE
            if any(start <= each < start + SECTOR // size for each in reads):
                board.frame(x + 1, y, width - 2, high, thickness=2)
            else:
                board.rectangle(x, y, width, high, fill="#808080", opacity=0.55, thickness=0.5)
    if last + 1 > lines:
        more = f"… the warp reads on to byte {(last + 1) * LINE - 1}"
        board.text(left, top + lines * pitch + 12, more, size=13)
    return board


def _memory(subject: LectureSubject, samples: int) -> np.ndarray[Any, Any]:
    """Return the samples from the start of a row on, over the picture's end from its beginning."""
    _, top, _ = subject.part(1, 1)
    flat = subject.pixels.reshape(-1)
    start = top * subject.pixels.shape[1]
    return np.take(flat, range(start, start + samples), mode="wrap")


def _counted(values: Mapping[str, Any]) -> Count:
    """Return the negative, whose level *uncoalesced* lets a warp read down a column."""
    return Count("negative", ("uncoalesced", "global"), {}, ("global loads", "global sectors"))


PAGE = LecturePage(
    id="coalescing",
    controls=(
        IntParameter(
            name="stride",
            label="Stride",
            help="Samples from one thread's to the next",
            default=1,
            minimum=1,
            maximum=32,
        ),
        IntParameter(
            name="first",
            label="First sample",
            help="Offset of the first thread's sample from the start of a line",
            default=0,
            minimum=0,
            maximum=31,
        ),
        ChoiceParameter(
            name="sample",
            label="Sample",
            help="Type of a sample",
            default="4",
            choices=tuple(Choice(value, label) for value, label in _BYTES.items()),
        ),
    ),
    show=_show,
    counted=_counted,
)
