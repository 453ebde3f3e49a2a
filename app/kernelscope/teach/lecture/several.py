"""Several GPUs: shares of rows with halos, and the runs on one to four cards."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kernelscope.backends.cuda.strips import strip
from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import parse
from kernelscope.bench.plan import MEASURABLE
from kernelscope.bench.recorded import FOLDER, card_of, day
from kernelscope.schema.borders import Border
from kernelscope.schema.parameters import Choice, ChoiceParameter, IntParameter
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Board
from kernelscope.teach.lecture.page import (
    LecturePage,
    LectureSubject,
    Shown,
    as_recorded,
    by_formula,
    of_picture,
)
from kernelscope.teach.lecture.parts import published

RECORD = "gpus-waiting.json"
"""Recorded runs of MRI NLM on a volume of 512 a side, on one, two and four cards."""

_ROW = re.compile(r"volume of 512³, (\d) GPUs?(.*)")


class RecordedRun(NamedTuple):
    seconds: float  # from host array to host array
    where: str  # card and day; of a run apart from the others, where and when that was


@functools.cache
def recorded_runs() -> Mapping[int, RecordedRun]:
    try:
        found = parse((FOLDER / RECORD).read_text("utf-8"), RECORD)
        machine = {name: text.text() for name, text in found["machine"].fields()}
        runs = {}
        for row in found["rows"].elements():
            match = _ROW.fullmatch(row["name"].text())
            if match is None:
                continue
            apart = row["remark"].text().partition(",")[0] if "remark" in row else ""
            when = f"{apart}{match[2]}" if apart else day(machine["Date"])
            seconds = row["ms"].number(*MEASURABLE) / 1e3
            runs[int(match[1])] = RecordedRun(seconds, f"{card_of(machine['GPU'])}, {when}")
    except (OSError, AppError):
        return {}
    return runs


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    cards, reach = int(values["cards"]), values["reach"]
    height = subject.pixels.shape[0]
    ends = [height * number // cards for number in range(cards + 1)]
    shares = [
        strip(height, rows, reach, Border.REFLECT)
        for rows in itertools.pairwise(ends)
        if rows[0] < rows[1]
    ]
    copied = sum(each.source_rows for each in shares)
    facts = [
        of_picture("Rows of the picture", f"{height:,}"),
        by_formula("Rows that the cards receive together", f"{copied:,}"),
        by_formula("More than the picture has", f"{100 * (copied / height - 1):.2f} %"),
    ]
    runs = recorded_runs()
    if 1 in runs and cards in runs:
        now = runs[cards]
        facts.append(
            as_recorded(
                f"Whole run, MRI NLM of 512³ on {cards}",
                f"{1e3 * now.seconds:.1f} ms ({runs[1].seconds / now.seconds:.2f}×)",
                now.where,
            )
        )
    board = Board(f"The rows of the picture shared out to {cards} cards, with halos of {reach}")
    board.heading(
        0, 16, f"Shares of {cards}", "Solid: rows that a card computes. Dashed: with its halo."
    )
    x, y, cell = board.fitted(0, 46, (460, 390), subject.pixels)
    width = subject.pixels.shape[1] * cell
    for number, each in enumerate(shares):
        board.frame(
            x + 4, y + each.first * cell + 1, width - 8, (each.last - each.first) * cell - 2
        )
        top, high = each.source_first * cell, each.source_rows * cell
        board.frame(x + 12, y + top, width - 24, high, stroke=ACCENT, dashed=True, thickness=1.5)
        board.text(
            x + width + 10,
            y + (each.first + each.last) / 2 * cell + 4,
            f"card {number + 1}",
            fill=STRONG,
            bold=True,
        )
    return Shown(board, tuple(facts))


PAGE = LecturePage(
    id="several",
    controls=(
        ChoiceParameter(
            name="cards",
            label="Cards",
            help="Number of GPUs that share the picture",
            default="2",
            choices=tuple(Choice(str(n), str(n)) for n in (1, 2, 4)),
        ),
        IntParameter(
            name="reach",
            label="Radius",
            help="Rows above and below that a result needs",
            default=6,
            minimum=1,
            maximum=40,
            unit="rows",
        ),
    ),
    show=_show,
    figures=lambda: (
        tuple(
            figure
            for figure in published("V", channels=1, average=False, shape=(37, 256, 256))
            if figure.quantity == "time"
            and figure.parameters.get("dimensions") == "3d"
            and figure.variant in ("1 gpu", "2 gpus")
            and figure.parameters.get("patch_radius") == "1"
        )
        + published("V", quantity="scaling")
    ),
    filters=("mri_nlm",),
)
