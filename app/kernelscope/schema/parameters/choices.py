"""Parameters with a few named values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.schema.parameters.base import Choice, Parameter

_NAMES = ("Gaussian", "Rician")


@dataclass(frozen=True, kw_only=True)
class ChoiceParameter(Parameter):
    choices: tuple[Choice, ...]

    affects_time: bool = True

    def validate(self, value: Any) -> str:
        values = [choice.value for choice in self.choices]
        if value not in values:
            raise self._refuse(f"there is no “{value}”", f"Use one of {', '.join(values)}.")
        return str(value)

    def caption(self, value: str) -> str:
        return self._label_of(value)

    def chip(self, value: str) -> str:
        return f"{self.symbol} {self._in_a_sentence(value)}".lstrip()

    def describe(self, value: str) -> str:
        return self._choice(value).phrase or f"{self.label.lower()} {self._in_a_sentence(value)}"

    def allowed(self) -> str:
        return ", ".join(choice.value for choice in self.choices)

    def limits(self) -> dict[str, Any]:
        return {"choices": [choice.value for choice in self.choices]}

    def named_values(self) -> tuple[Choice, ...]:
        return self.choices

    def variants(self, value: str, count: int) -> tuple[str, ...]:
        """Return all choices, or the first `count` with `value` among them."""
        values = [choice.value for choice in self.choices]
        if values.index(value) >= count:
            values = [*values[: count - 1], value]
        return tuple(values[:count])

    def _in_a_sentence(self, value: str) -> str:
        """Return the label with a small letter, unless it is a person's or of capitals."""
        label = self._label_of(value)
        return label if label.isupper() or label in _NAMES else label[0].lower() + label[1:]

    def _label_of(self, value: str) -> str:
        return self._choice(value).label

    def _choice(self, value: str) -> Choice:
        """Return the choice of a value; one that only the engine sets is its own label."""
        found = (choice for choice in self.choices if choice.value == value)
        return next(found, Choice(value, value))


Cells = tuple[tuple[int, ...], ...]
"""Rows of 0 and 1: which cells around a pixel belong to a mask."""

_ROWS = "Use rows of 0 and 1, such as [[0, 1, 0], [1, 1, 1], [0, 1, 0]]."


@dataclass(frozen=True, kw_only=True)
class FootprintParameter(ChoiceParameter):
    """The cells of a mask: a named shape, or a table of 0 and 1 with sides of its own.

    The centre of n cells in a row is number n // 2, from 0, as SciPy has it.
    """

    maximum: int
    """The longest side of a table."""
    cells_of: Callable[[Mapping[str, Any]], Cells] = lambda values: ((1,) * 3,) * 3
    """Returns the cells of a filter's values, to draw others from them."""

    placeholder = "SHAPE"
    form = "such as “0 1 0; 1 1 1; 0 1 0”"
    stored_as_text = True  # JSON would have a line for each cell

    def validate(self, value: Any) -> Any:
        if isinstance(value, str):
            return super().validate(value)
        try:
            axes = np.ndim(value)
        except ValueError:  # rows of different lengths
            axes = 2
        if axes != 2:
            raise self._refuse(f"an array of {axes} axes is no mask of a picture", _ROWS)
        return self._table([list(row) for row in value])

    def _table(self, rows: Sequence[Sequence[Any]]) -> Cells:
        widths = {len(row) for row in rows}
        if len(widths) != 1 or widths == {0}:
            raise self._refuse("its rows have no cells or differ in length", _ROWS)
        (width,) = widths
        if max(len(rows), width) > self.maximum:
            raise self._refuse(
                f"{len(rows)}×{width} cells are too many",
                f"Use up to {self.maximum}×{self.maximum}.",
            )
        cells = [
            [self._cell(cell, y, x) for x, cell in enumerate(row)] for y, row in enumerate(rows)
        ]
        if not any(map(any, cells)):
            raise self._refuse("no cell belongs to it", "Put a 1 where a cell is to count.")
        return tuple(map(tuple, cells))

    def _cell(self, cell: Any, y: int, x: int) -> int:
        """Return a cell as 0 or 1; as for SciPy, any number but 0 belongs to the mask."""
        if isinstance(cell, bool | np.bool_ | int | float | np.number):
            return int(bool(cell))
        raise self._refuse(f"row {y + 1}, column {x + 1} holds “{cell}”", "Write 0 or 1.")

    def parse(self, text: str) -> Any:
        """Read a name, or rows of 0 and 1 that are separated by ``;`` or line ends."""
        words = [line.replace(",", " ").split() for line in text.replace(";", "\n").splitlines()]
        rows = [row for row in words if row]
        if not {cell for row in rows for cell in row} <= {"0", "1"} or not rows:
            return super().validate(text.strip())
        return self._table([[int(cell) for cell in row] for row in rows])

    def format(self, value: Any) -> str:
        if isinstance(value, str):  # a name, or that of a table in words
            return value
        return "; ".join(" ".join(map(str, row)) for row in value)

    def brief(self, value: Any) -> str:
        return super().brief(value if isinstance(value, str) else self._own(value).lower())

    def is_absent(self, value: Any) -> bool:
        return bool(value == self.default)

    def allowed(self) -> str:
        return f"{super().allowed()}, or rows of 0 and 1, up to {self.maximum}×{self.maximum}"

    def limits(self) -> dict[str, Any]:
        return {**super().limits(), "maximum": self.maximum}

    def variants(self, value: Any, count: int) -> tuple[Any, ...]:
        named = tuple(choice.value for choice in self.choices)
        return super().variants(value, count) if value in named else (*named, value)[-count:]

    def _label_of(self, value: Any) -> str:
        return super()._label_of(value) if isinstance(value, str) else self._own(value)

    def _choice(self, value: Any) -> Choice:
        found = value if isinstance(value, str) else self._own(value)
        return super()._choice(found)

    @staticmethod
    def _own(value: Cells) -> str:
        return f"Own of {len(value)}×{len(value[0])}"
