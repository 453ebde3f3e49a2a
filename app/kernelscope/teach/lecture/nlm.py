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
from kernelscope.teach.lecture.page import LecturePage, NamedNumber, NumberOrigin, Shown
from kernelscope.teach.lecture.plans import operations_of, plan_of
from kernelscope.teach.lecture.quoting import published
from kernelscope.teach.lecture.running import filtered
from kernelscope.teach.lecture.subject import Subject

_SIDE = 64
_LEVELS = ("global", "shared", "tuned")
_STRENGTH = 0.1
"""Filter sigma of the example: smooths noise that the eye sees."""


def _show(subject: Subject, values: Mapping[str, Any]) -> Shown:
    patch, reach = values["patch"], values["search_radius"]
    side = 2 * reach + 1
    parameters = {"patch": patch, "search_radius": reach, "filter_sigma": _STRENGTH}
    parameters["weights"] = "gaussian"
    facts = [
        NamedNumber("Patches compared, a pixel", f"{side * side:,}", NumberOrigin.FORMULA),
        NamedNumber("Differences, each patch alone",
             f"{side * side * patch * patch:,}", NumberOrigin.FORMULA),
    ]  # fmt: skip
    for level in filters.get("nlm").levels(Device.GPU):
        if level.id in _LEVELS:
            plan = plan_of("nlm", level, subject.shape, parameters)
            name = f"Operations, {level.name.lower()}"
            facts.append(NamedNumber(name, f"{operations_of(plan):,.0f}", NumberOrigin.PLAN))
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
    title="Non-local means",
    text=(
        "Non-local means averages pixels that look alike. To find them, it compares the patch "
        "around each pixel with every patch of a search window: thousands of differences for one "
        "result. Arithmetic now outweighs memory by far, and a card gains most.\n\n"
        "Two neighbours compare almost the same cells. At level *tuned* these differences are "
        "added up once, as running sums, and every patch takes its share. This saves more than "
        "any memory level can. In the whole image, as in source N, the work grows with the "
        "square of the number of pixels. Single wrong pixels look like no others, and stay."
    ),
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
