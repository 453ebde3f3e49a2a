"""Non-local means: patches compared in a search window, and the sums that levels share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope import filters
from kernelscope.base.errors import AppError
from kernelscope.schema.devices import Device
from kernelscope.schema.parameters import IntParameter, OddParameter
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.board import STRONG, Board
from kernelscope.teach.lecture.page import LecturePage, LectureSubject, Shown, by_formula, by_plan
from kernelscope.teach.lecture.parts import filtered, operations_of, plan_of, published

_SIDE = 64
_LEVELS = ("global", "shared", "tuned")
_STRENGTH = 0.1  # filter sigma of the example: smooths noise that the eye sees


def _show(subject: LectureSubject, values: Mapping[str, Any]) -> Shown:
    patch, reach = values["patch"], values["search_radius"]
    side = 2 * reach + 1
    parameters = {"patch": patch, "search_radius": reach, "filter_sigma": _STRENGTH}
    parameters["weights"] = "gaussian"
    facts = [
        by_formula("Patches compared, a pixel", f"{side * side:,}"),
        by_formula("Differences, each patch alone", f"{side * side * patch * patch:,}"),
    ]
    for level in filters.get("nlm").levels(Device.GPU):
        if level.id in _LEVELS:
            plan = plan_of("nlm", level, subject.shape, parameters)
            name = f"Operations, {level.name.lower()}"
            facts.append(by_plan(name, f"{operations_of(plan):,.0f}"))
    part, *_ = subject.part(_SIDE, _SIDE)
    board = Board(f"A detail before and after NLM; patches of {patch}×{patch} in {side}×{side}")
    try:
        result = filtered(part, "nlm", parameters)
    except AppError as error:
        board.heading(0, 16, error.message, error.hint)
        return Shown(board, tuple(facts))
    board.heading(0, 16, "Before", "solid: search window; blue: patch")
    x, y, cell = board.fitted(0, 46, (320, 320), part)
    rows, columns = part.shape
    for frame, ink in ((side, STRONG), (patch, ACCENT)):
        across, down = min(frame, columns), min(frame, rows)
        left, top = x + (columns - across) / 2 * cell, y + (rows - down) / 2 * cell
        board.frame(left, top, across * cell, down * cell, stroke=ink)
    board.heading(336, 16, "After", f"filter sigma {_STRENGTH:g}")
    board.fitted(336, 46, (320, 320), result)
    text = f"{side}×{side} patches of {patch}×{patch} pixels for every pixel of the result"
    board.text(0, 396, text, bold=True, size=15)
    return Shown(board, tuple(facts))


PAGE = LecturePage(
    id="nlm",
    controls=(
        OddParameter(
            name="patch",
            label="Patch size",
            help="Side of the squares that are compared",
            default=7,
            minimum=3,
            maximum=11,
        ),
        IntParameter(
            name="search_radius",
            label="Search radius",
            help="Radius of the search window",
            default=10,
            minimum=1,
            maximum=15,
            unit="px",
        ),
    ),
    show=_show,
    figures=lambda: published("N", quantity="time") + published("N", quantity="speed-up"),
    filters=("nlm",),
)
