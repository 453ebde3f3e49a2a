"""Controls that several pages have."""

from __future__ import annotations

from kernelscope.schema.parameters import Choice, ChoiceParameter, OddParameter
from kernelscope.teach.lecture.residence import SHOWN

_BLOCKS = ((8, 8), (16, 16), (32, 4), (32, 8), (32, 16), (32, 32))

BLOCK = ChoiceParameter(
    name="block",
    label="Block",
    help="Threads of a block in x and y",
    default="32x8",
    choices=tuple(Choice(f"{x}x{y}", f"{x}×{y} threads") for x, y in _BLOCKS),
)

CARD = ChoiceParameter(
    name="card",
    label="Card",
    help="The card whose data the page uses",
    default="H100",
    choices=tuple(Choice(name, name) for name in SHOWN),
)


def side(default: int, most: int = 15) -> OddParameter:
    return OddParameter(
        name="size",
        label="Mask size",
        help="Side of the square mask, in pixels",
        default=default,
        minimum=3,
        maximum=most,
    )


def block_of(text: str) -> tuple[int, int]:
    """Return the sides of a block of a choice."""
    columns, _, rows = text.partition("x")
    return int(columns), int(rows)
