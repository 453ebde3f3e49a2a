"""Parameters of a filter: values the user sets, how they are checked, read and written.

One class for each kind of value. The window makes an editor of each, the command line an option
and the documentation a row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelscope.errors import InvalidParameter
from kernelscope.spec.samples import Pixels
from kernelscope.text import enumerated

Mask = tuple[tuple[float, ...], ...]
"""A square convolution mask, row by row; integral weights are kept as ``int``."""

_LONGEST_MASK_TEXT = 40
"""A 3×3 mask of small numbers can be read in a label; 25 weights and more cannot."""


_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)
_GROUPED = re.compile(r"\d,\d{3}\.", re.ASCII)


def read_number(text: str) -> float:
    """Return the number that `text` stands for, with a decimal point or a decimal comma.

    Raises
    ------
    ValueError
        If it is none, or two: ``1,000`` is one to some people and a thousand to others.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text) or _GROUPS.fullmatch(text):
        raise ValueError(text)
    return float(text.replace(",", "."))


def _meant(text: str) -> str:
    """Return how to write `text` where a comma leaves open which number it is; else nothing."""
    text = text.strip()
    if _GROUPS.fullmatch(text):
        return f"Write {text.replace(',', '.', 1).replace(',', '')} or {text.replace(',', '')}."
    return ""


def _number_text(number: float) -> str:
    """Return the shortest text that reads back as the same `number`."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def _always(values: Mapping[str, Any]) -> bool:
    """Matter whatever the other parameters are."""
    return True


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A value that the user can set; a subclass for each kind of value.

    Attributes
    ----------
    name : str
        Python and command-line name (underscores become dashes in options).
    label : str
        Name in the window.
    help : str
        One sentence for the tooltip and ``--help``.
    default : object
        Value used when the user sets none.
    unit : str
        Unit shown behind the value, or empty.
    symbol : str
        Stands for the label on chips, such as ``σ``; by default the label itself.
    implies : mapping
        Values of other parameters that come with this one where it is typed on a command line,
        unless they are typed too.
    formerly : mapping
        Its default in recipes of earlier versions that had another one, by version: a file that
        leaves the parameter out keeps its result.
    matters : callable
        Maps the values of all parameters to whether this one affects the result. If it does
        not, labels omit it and the window disables it.
    """

    name: str
    label: str
    help: str
    default: Any
    unit: str = ""
    symbol: str = ""
    implies: Mapping[str, Any] = field(default_factory=dict)
    formerly: Mapping[int, Any] = field(default_factory=dict)
    matters: Callable[[Mapping[str, Any]], bool] = _always

    def validate(self, value: Any) -> Any:
        """Return `value` in canonical form, or raise `InvalidParameter`."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Return the value that `text` (from a command line or a file) stands for."""
        return self.validate(text)

    def format(self, value: Any) -> str:
        """Return the text that `parse` reads back as `value`."""
        return str(value)

    def describe(self, value: Any) -> str:
        """Return ``mask size 5 px``-like text for labels and logs."""
        return f"{self.label.lower()} {self.format(value)}{self.behind(value)}"

    def behind(self, value: Any) -> str:
        """Return a space and the unit of `value`: ``voxels``, or ``voxel`` after 1."""
        unit = self.unit.removesuffix("s") if value == 1 else self.unit
        return f" {unit}" if unit else ""

    def is_absent(self, value: Any) -> bool:
        """Return whether `value` stands for no value."""
        return False

    def _refuse(self, problem: str, way_out: str = "") -> InvalidParameter:
        return InvalidParameter(f"{self.label}: {problem}.", way_out)


@dataclass(frozen=True, kw_only=True)
class IntParameter(Parameter):
    """A whole number in ``[minimum, maximum]``; the slider covers ``slider``.

    With `counts_slices`, each further slice of a volume gets the next number, as a seed does.
    """

    minimum: int
    maximum: int
    slider: tuple[int, int] | None = None
    step: int = 1
    counts_slices: bool = False

    def validate(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise self._refuse(f"{value!r} is not a whole number")
        if not self.minimum <= value <= self.maximum:
            raise self._refuse(f"{value} is out of range", f"Use {self.minimum} to {self.maximum}.")
        return int(value)

    def parse(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise self._refuse(f"“{text}” is not a whole number") from None
        return self.validate(value)


@dataclass(frozen=True, kw_only=True)
class OddParameter(IntParameter):
    """The side of a square mask: an odd number of pixels."""

    unit: str = "px"
    step: int = 2

    def validate(self, value: Any) -> int:
        number = super().validate(value)
        if number % 2 == 0:
            raise self._refuse(
                f"{number} is even", f"A mask needs a centre: use {number - 1} or {number + 1}."
            )
        return number


@dataclass(frozen=True, kw_only=True)
class FloatParameter(Parameter):
    """A finite real number in ``[minimum, maximum]``; the slider covers ``slider``.

    Attributes
    ----------
    estimate : callable, optional
        Maps a picture, shape (height, width, channels) without alpha, or volumes, shape (depth,
        height, width, components), and the values of the filter's other parameters to a value
        that suits them.
    estimated : bool
        Whether it is estimated where the user sets nothing. The default is for requests, which
        have a number for everything.
    absent : float, optional
        The value that stands for none; labels do not name it.
    """

    minimum: float
    maximum: float
    slider: tuple[float, float] | None = None
    step: float = 0.1
    decimals: int = 3
    estimate: Callable[[Pixels, Mapping[str, Any]], float] | None = None
    estimated: bool = False
    absent: float | None = None

    def validate(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise self._refuse(f"{value!r} is not a number")
        number = float(value)
        if not math.isfinite(number):
            raise self._refuse(f"{number} is not a finite number")
        if not self.minimum <= number <= self.maximum:
            raise self._refuse(
                f"{number:g} is out of range", f"Use {self.minimum:g} to {self.maximum:g}."
            )
        return number

    def parse(self, text: str) -> float:
        try:
            value = read_number(text)
        except ValueError:
            raise self._refuse(f"“{text}” is not a number", _meant(text)) from None
        return self.validate(value)

    def format(self, value: Any) -> str:
        return _number_text(value)

    def is_absent(self, value: Any) -> bool:
        return bool(value == self.absent)

    def describe(self, value: Any) -> str:
        """Return the value to six digits: a third would fill a line."""
        return super().describe(float(f"{value:g}"))


@dataclass(frozen=True, kw_only=True)
class NumbersParameter(Parameter):
    """None, one or several real numbers in ``[minimum, maximum]``, such as one per component.

    Attributes
    ----------
    most : int
        How many numbers there may be.
    none : str
        Text for labels and logs if there is no number.
    """

    minimum: float
    maximum: float
    most: int
    none: str
    default: tuple[float, ...] = ()

    def validate(self, value: Any) -> tuple[float, ...]:
        numbers = tuple(value) if isinstance(value, Iterable) else (value,)
        if len(numbers) > self.most:
            raise self._refuse(f"{len(numbers)} numbers are too many", f"Use up to {self.most}.")
        return tuple(self._validate_number(number) for number in numbers)

    def _validate_number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise self._refuse(f"{value!r} is not a number")
        number = float(value)
        if not self.minimum <= number <= self.maximum:
            raise self._refuse(
                f"{number:g} is out of range", f"Use {self.minimum:g} to {self.maximum:g}."
            )
        return number

    def parse(self, text: str) -> tuple[float, ...]:
        """Read numbers that are separated by commas, semicolons or spaces.

        A lone comma between digits may be a decimal one, and is refused.
        """
        numbers: list[float] = []
        try:
            for word in re.split(r"\s*;\s*|\s*,\s+|\s+", text.strip(" ;\t\r\n").rstrip(",")):
                if word.count(",") == 1 and ("." not in word or _GROUPED.search(word)):
                    point = word.replace(",", "" if "." in word else ".")
                    list_ = word.replace(",", ", ")
                    problem = f"“{word}” may be one number or two"
                    raise self._refuse(problem, f"Write “{point}” or “{list_}”.")
                numbers += [read_number(part) for part in word.split(",") if word]
        except ValueError:
            problem = f"“{text}” is not a list of numbers"
            raise self._refuse(problem, "Write “20, 15, 30”.") from None
        return self.validate(numbers)

    def format(self, value: Any) -> str:
        return ", ".join(map(_number_text, value))

    def describe(self, value: Any) -> str:
        return super().describe(value) if value else f"{self.label.lower()} {self.none}"


Radii = tuple[int, int, int]
"""Along x, y and z."""


@dataclass(frozen=True, kw_only=True)
class RadiiParameter(Parameter):
    """Radii along x, y and z, whole numbers in ``[minimum, maximum]``.

    One number stands for three that are equal, and is how these are kept.
    """

    minimum: int
    maximum: int

    def validate(self, value: Any) -> int | Radii:
        numbers = tuple(value) if isinstance(value, Iterable) else (value,)
        if len(numbers) not in (1, 3):
            problem = f"{len(numbers)} numbers are neither one nor three"
            raise self._refuse(problem, "Write one for all axes, or those along x, y and z.")
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise self._refuse(f"{number!r} is not a whole number")
            if not self.minimum <= number <= self.maximum:
                raise self._refuse(
                    f"{number} is out of range", f"Use {self.minimum} to {self.maximum}."
                )
        x, *others = map(int, numbers)
        if all(other == x for other in others):
            return x
        y, z = others
        return x, y, z

    def parse(self, text: str) -> int | Radii:
        """Read one or three numbers that are separated by commas, semicolons, spaces or ×."""
        listed = re.sub(r"(?<=\d)\s*[x×]\s*(?=\d)", ",", text).strip(" ,;\t\r\n")
        try:
            return self.validate([int(word) for word in re.split(r"[,;\s]+", listed) if word])
        except ValueError:
            problem = f"“{text}” is not one whole number or three"
            raise self._refuse(problem, "Write “5”, or “5, 5, 2” for x, y and z.") from None

    def format(self, value: Any) -> str:
        return str(value) if isinstance(value, int) else ", ".join(map(str, value))

    @staticmethod
    def along_axes(value: int | Radii) -> Radii:
        """Return the radii along x, y and z."""
        return (value, value, value) if isinstance(value, int) else value


@dataclass(frozen=True)
class Choice:
    """One of the values of a `ChoiceParameter`.

    Attributes
    ----------
    switch : str
        Short form on the command line, an option without a value; or empty.
    """

    value: str
    label: str
    help: str = ""
    switch: str = ""


@dataclass(frozen=True, kw_only=True)
class ChoiceParameter(Parameter):
    """One of a few named values."""

    choices: tuple[Choice, ...]

    def validate(self, value: Any) -> str:
        values = [choice.value for choice in self.choices]
        if value not in values:
            raise self._refuse(f"there is no “{value}”", f"Use one of {', '.join(values)}.")
        return str(value)


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
        return "; ".join(" ".join(map(_number_text, row)) for row in value)

    def describe(self, value: Any) -> str:
        """Return the weights if they are few and short, or else the size."""
        text = self.format(value)
        if len(text) > _LONGEST_MASK_TEXT:
            text = f"{len(value)}×{len(value)}"
        return f"{self.label.lower()} {text}"


def rounded(estimate: Any) -> Any:
    """Return one number or several with the four digits that an estimate is good for."""
    if isinstance(estimate, tuple):
        return tuple(rounded(number) for number in estimate)
    return float(f"{estimate:.4g}")
