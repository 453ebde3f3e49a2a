"""Parameters that are square tables of weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.text import enumerated
from kernelscope.schema.parameters.base import Parameter
from kernelscope.schema.parameters.numerals import number_text, read_number

Mask = tuple[tuple[float, ...], ...]
"""A square convolution mask, row by row; integral weights are kept as ``int``."""

_LONGEST_MASK_TEXT = 40
"""A 3×3 mask of small numbers can be read in a label; 25 weights and more cannot."""


@dataclass(frozen=True)
class MaskPreset:
    """A named way to fill a mask of any allowed size."""

    name: str
    fill: Callable[[int], Mask]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of the filter that go with this mask (its divisor, say)."""


@dataclass(frozen=True, kw_only=True)
class MaskParameter(Parameter):
    """A square table of weights with an odd side."""

    minimum: int
    maximum: int
    presets: tuple[MaskPreset, ...] = ()

    placeholder = "ROWS"
    sets_side = True
    stored_as_text = True  # JSON would have a line for each cell

    def _no_square(self, counts: Sequence[int]) -> InvalidParameter:
        """Return the error for rows with these numbers of cells."""
        if len(counts) == 1:
            cells = "1 cell" if counts[0] == 1 else f"{counts[0]} cells"
            return self._refuse(
                f"one row of {cells} makes no square",
                "Write rows with a semicolon between them, like “1 2 1; 2 4 2; 1 2 1”.",
            )
        widths = enumerated(list(map(str, sorted(set(counts)))), "and")
        return self._refuse(
            f"{len(counts)} rows of {widths} cells make no square",
            "Use as many cells in each row as there are rows.",
        )

    def validate(self, value: Any) -> Mask:
        rows = [list(row) for row in value]
        size = len(rows)
        for row in rows:
            if len(row) != size:
                raise self._no_square([len(each) for each in rows])
        if size % 2 == 0:
            raise self._refuse(f"{size}×{size} has no centre", "Use an odd number of rows.")
        if not self.minimum <= size <= self.maximum:
            raise self._refuse(
                f"{size}×{size} is out of range",
                f"Use {self.minimum}×{self.minimum} to {self.maximum}×{self.maximum}.",
            )
        return tuple(
            tuple(self.validate_cell(cell, y, x) for x, cell in enumerate(row))
            for y, row in enumerate(rows)
        )

    def validate_cell(self, cell: Any, y: int, x: int) -> float:
        """Return the weight in row `y`, column `x`, or raise `InvalidParameter`."""
        try:
            number = read_number(cell) if isinstance(cell, str) else float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self._refuse(f"row {y + 1}, column {x + 1} holds “{cell}”, which is not a number")
        if abs(number) > 1e6:
            raise self._refuse(
                f"row {y + 1}, column {x + 1} holds {number:g}", "Use weights up to a million."
            )
        return int(number) if number.is_integer() else number

    def parse(self, text: str) -> Mask:
        """Read rows that are separated by ``;`` or line ends, cells by spaces, commas or tabs.

        In rows with tabs, as spreadsheets write them, a comma is a decimal one.
        """
        lines = [line for line in text.replace(";", "\n").splitlines() if line.strip()]
        if not lines:
            raise self._refuse("it is empty", "Write rows like “1 2 1; 2 4 2; 1 2 1”.")
        return self.validate(
            [(line if "\t" in line.strip() else line.replace(",", " ")).split() for line in lines]
        )

    def format(self, value: Any) -> str:
        return "; ".join(" ".join(map(number_text, row)) for row in value)

    def describe(self, value: Any) -> str:
        """Return the weights if they are few and short, or else the size."""
        text = self.format(value)
        if len(text) > _LONGEST_MASK_TEXT:
            text = self.brief(value)
        return f"{self.label.lower()} {text}"

    def brief(self, value: Mask) -> str:
        """Return the size: a benchmark's time depends on that alone."""
        return f"{len(value)}×{len(value)}"

    def chip(self, value: Mask) -> str:
        return f"{self.brief(value)} weights"

    def allowed(self) -> str:
        return f"{self.minimum}×{self.minimum} to {self.maximum}×{self.maximum}"

    def limits(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def preset_names(self) -> tuple[str, ...]:
        return tuple(preset.name for preset in self.presets)

    def for_side(self, side: int, weights: Callable[[int], Any]) -> Any:
        return weights(side) if self.minimum <= side <= self.maximum else None
