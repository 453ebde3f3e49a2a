"""Parameters of a filter: values the user sets, how they are checked, read and written.

One class for each kind of value::

    Parameter                 base: name, label, default; its methods are all that a kind defines
        BoundedParameter      numbers with limits:
            IntParameter          a whole number
                OddParameter      the side of a mask
            FloatParameter        a real number, which may be estimated from the picture
                AxesParameter     one for each axis, too
            NumbersParameter      none, one or several real numbers
            RadiiParameter        radii along x, y and z
                SidesParameter    the sides of a mask of voxels
        ChoiceParameter       one of a few named values
            FootprintParameter    or a table of cells
        MaskParameter         a table of weights

The window makes an editor of each, the command line an option and the documentation a row. They
ask the methods of `Parameter` and do not distinguish kinds; the window alone has a table with the
widget of each one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.text import enumerated, significant
from kernelscope.schema.samples import Pixels

_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)
GROUP_BEFORE_POINT = re.compile(r"\d,\d{3}\.", re.ASCII)
"""``1,000.5``: either a thousand and a half, or 1 and 0.5."""


def read_number(text: str) -> float:
    """Return the number that `text` stands for, with a decimal point or a decimal comma.

    Raises `ValueError` if it is none, or two: ``1,000`` is one to some people and a thousand to
    others.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text) or _GROUPS.fullmatch(text):
        raise ValueError(text)
    return float(text.replace(",", "."))


def other_spelling(text: str) -> str:
    """Return how to write `text` where a comma leaves open which number it is; else nothing."""
    text = text.strip()
    if _GROUPS.fullmatch(text):
        return f"Write {text.replace(',', '.', 1).replace(',', '')} or {text.replace(',', '')}."
    return ""


def number_text(number: float) -> str:
    """Return the shortest text that reads back as the same `number`."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    help: str = ""
    switch: str = ""
    """Short form on the command line, an option without a value; or empty."""
    phrase: str = ""
    """How it is named in a list of settings; by default by the parameter and its label."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A value that the user can set; a subclass for each kind of value."""

    placeholder: ClassVar[str] = "VALUE"
    """Stands for the value in ``--help``, such as ``N``."""
    form: ClassVar[str] = ""
    """How a value of several parts is written, for ``--help``."""
    stored_as_text: ClassVar[bool] = False
    """Whether recipes hold the text of `format` in place of the value itself."""
    sets_side: ClassVar[bool] = False
    """Whether it sets the width of the filter's mask."""

    name: str
    """Python and command-line name (underscores become dashes in options)."""
    label: str
    """Name in the window."""
    help: str
    """One sentence for the tooltip and ``--help``."""
    default: Any
    """Value used when the user sets none."""
    unit: str = ""
    """Unit shown behind the value, or empty."""
    symbol: str = ""
    """Stands for the label on chips, such as ``σ``; by default the label itself."""
    implies: Mapping[str, Any] = field(default_factory=dict)
    """Values of other parameters that come with this one where it is typed on a command line,
    unless they are typed too."""
    formerly: Mapping[int, Any] = field(default_factory=dict)
    """Its default in recipes of earlier versions that had another one, by version: a file that
    leaves the parameter out keeps its result."""
    matters: Callable[[Mapping[str, Any]], bool] = lambda values: True
    """Maps the values of all parameters to whether this one affects the result. If it does not,
    labels omit it and the window disables it."""
    is_strength: bool = False
    """Whether it says how much is done to a picture: a contact sheet varies it first."""
    of_colours: bool = False
    """Whether it has no effect on a grey picture: the window does not show it there."""
    affects_time: bool = False
    """Whether the time for a pixel depends on the value, and not only on the filter's radius."""
    estimate: Callable[[Pixels, Mapping[str, Any]], Any] | None = None
    """Maps a picture, shape (height, width, channels) without alpha, or volumes, shape (depth,
    height, width, components), and the values of the filter's other parameters to a value that
    suits them."""
    estimated: bool = False
    """Whether it is estimated where the user sets nothing. The default is for requests, which have
    a value for everything."""

    def acts(self, values: Mapping[str, Any], *, grey: bool = False) -> bool:
        """Return whether it affects the result with these values of all, on a grey source or on
        one with colours."""
        return self.matters(values) and not (grey and self.of_colours)

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

    def brief(self, value: Any) -> str:
        """Return the label and the value without its unit, for rows of a benchmark."""
        return f"{self.label.lower()} {self.format(value)}"

    def caption(self, value: Any) -> str:
        """Return ``Mask size 5 px``: the description as a title."""
        text = self.describe(value)
        return text[:1].upper() + text[1:]

    def chip(self, value: Any) -> str:
        """Return ``7×7`` or ``σ 3.17 %``: as short as possible, with three digits and the unit."""
        return f"{self._sign} {self.format(value)}{self.behind(value)}"

    @property
    def _sign(self) -> str:
        return self.symbol or self.label.lower()

    def behind(self, value: Any) -> str:
        """Return a space and the unit of `value`: ``voxels``, or ``voxel`` after 1."""
        return self._units.removesuffix("s") if value == 1 else self._units

    @property
    def _units(self) -> str:
        return f" {self.unit}" if self.unit else ""

    def is_absent(self, value: Any) -> bool:
        return False

    def allowed(self) -> str:
        """Return the values that it takes, in words and with the unit."""
        raise NotImplementedError

    def limits(self) -> dict[str, Any]:
        """Return the values that it takes, as JSON: ``minimum`` and ``maximum``, or ``choices``."""
        raise NotImplementedError

    def named_values(self) -> tuple[Choice, ...]:
        """Return the values that it is limited to; none for numbers and masks."""
        return ()

    def preset_names(self) -> tuple[str, ...]:
        """Return the names of the ways to fill it."""
        return ()

    def variants(self, value: Any, count: int) -> tuple[Any, ...]:
        """Return up to `count` values to compare, in order, with `value` among them.

        Whole numbers have their neighbours, reals a half to twice their value, choices all others.
        There is nothing where values have no order and no list, as masks.
        """
        return ()

    @property
    def has_estimate(self) -> bool:
        """Whether the value can be estimated from the picture."""
        return self.estimate is not None

    @property
    def is_estimated(self) -> bool:
        return self.estimated

    def estimate_from(self, pixels: Pixels, values: Mapping[str, Any]) -> Any:
        """Return a value that suits `pixels` and the `values` of the other parameters."""
        assert self.estimate is not None
        return self.estimate(pixels, values)

    def in_unit(self, value: Any, factors: tuple[float, ...]) -> Any:
        """Return the value for samples that are divided by `factors`, one for each volume."""
        return value

    def for_slice(self, value: Any, number: int) -> Any:
        """Return the value for the slice of a volume with this number, from 0."""
        return value

    def for_side(self, side: int, weights: Callable[[int], Any]) -> Any:
        """Return the value that makes the filter's mask `side` pixels wide.

        None if there is no such value, as for all parameters without `sets_side`.

        - `weights`: maps a side to a mask.
        """
        return None

    def _refuse(self, problem: str, way_out: str = "") -> InvalidParameter:
        return InvalidParameter(f"{self.label}: {problem}.", way_out)


@dataclass(frozen=True, kw_only=True)
class BoundedParameter(Parameter):
    """Numbers in ``[minimum, maximum]``."""

    minimum: float
    maximum: float

    def allowed(self) -> str:
        return f"{self.minimum} to {self.maximum}{self._units}"

    def limits(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def _whole(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise self._refuse(f"{value!r} is not a whole number")
        if not self.minimum <= value <= self.maximum:
            raise self._refuse(f"{value} is out of range", f"Use {self.minimum} to {self.maximum}.")
        return int(value)

    def _odd(self, value: Any) -> int:
        number = self._whole(value)
        if number % 2 == 0:
            raise self._refuse(
                f"{number} is even", f"A mask needs a centre: use {number - 1} or {number + 1}."
            )
        return number

    def _real(self, value: Any) -> float:
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


@dataclass(frozen=True, kw_only=True)
class IntParameter(BoundedParameter):
    """A whole number in ``[minimum, maximum]``; the slider covers ``slider``.

    With `counts_slices`, each further slice of a volume gets the next number, as a seed does.
    """

    minimum: int
    maximum: int
    slider: tuple[int, int] | None = None
    step: int = 1
    counts_slices: bool = False

    placeholder = "N"
    affects_time: bool = True

    def validate(self, value: Any) -> int:
        return self._whole(value)

    def parse(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise self._refuse(f"“{text}” is not a whole number") from None
        return self.validate(value)

    def variants(self, value: int, count: int) -> tuple[int, ...]:
        return neighbours(range(self.minimum, self.maximum + 1, self.step), value, count)

    def for_slice(self, value: int, number: int) -> int:
        return (value + number) % (self.maximum + 1) if self.counts_slices else value


@dataclass(frozen=True, kw_only=True)
class OddParameter(IntParameter):
    """The side of a square mask: an odd number of pixels; estimated as a `FloatParameter` is."""

    unit: str = "px"
    step: int = 2

    sets_side = True

    def validate(self, value: Any) -> int:
        return self._odd(value)

    def allowed(self) -> str:
        return f"odd, {super().allowed()}"

    def estimate_from(self, pixels: Pixels, values: Mapping[str, Any]) -> int:
        return int(super().estimate_from(pixels, values))

    def chip(self, value: int) -> str:
        return f"{value}×{value}"

    def for_side(self, side: int, weights: Callable[[int], Any]) -> int | None:
        return side if self.minimum <= side <= self.maximum else None


@dataclass(frozen=True, kw_only=True)
class FloatParameter(BoundedParameter):
    """A finite real number in ``[minimum, maximum]``; the slider covers ``slider``."""

    slider: tuple[float, float] | None = None
    geometric: bool = False
    """Slider and steps go by factors, as suitable values span several powers of ten; the `slider`
    begins above 0 then, and `step` does not count."""
    step: float = 0.1
    decimals: int = 3
    absent: float | None = None
    """The value that stands for none; labels do not name it."""

    placeholder = "X"

    def validate(self, value: Any) -> float:
        return self._real(value)

    def parse(self, text: str) -> float:
        try:
            value = read_number(text)
        except ValueError:
            raise self._refuse(f"“{text}” is not a number", other_spelling(text)) from None
        return self.validate(value)

    def format(self, value: Any) -> str:
        return number_text(value)

    def is_absent(self, value: Any) -> bool:
        return bool(value == self.absent)

    def describe(self, value: Any) -> str:
        """Return the value to six digits: a third would fill a line."""
        return super().describe(float(f"{value:g}"))

    def chip(self, value: float) -> str:
        return f"{self._sign} {value:.3g}{self.behind(value)}"

    def allowed(self) -> str:
        return f"{self.minimum:g} to {self.maximum:g}{self._units}"

    def variants(self, value: float, count: int) -> tuple[float, ...]:
        usual = self.slider or (self.minimum, self.maximum)
        return around(value, count, (self.minimum, self.maximum), usual)

    def estimate_from(self, pixels: Pixels, values: Mapping[str, Any]) -> float:
        """Return the estimate with four digits, within the limits."""
        number: float = rounded(super().estimate_from(pixels, values))
        return min(max(number, self.minimum), self.maximum)


@dataclass(frozen=True, kw_only=True)
class AxesParameter(FloatParameter):
    """A real number for all axes, or one for each: along x and y, and z if `axes` is 3.

    Numbers that are all equal are kept as one.
    """

    axes: int = 2

    placeholder = "X[xX...]"

    @property
    def form(self) -> str:  # type: ignore[override]
        """How several are written, for ``--help``."""
        return f"along {self._names}, as {'x'.join('123'[: self.axes])}"

    @property
    def _names(self) -> str:
        return "x and y" if self.axes == 2 else "x, y and z"

    def validate(self, value: Any) -> Any:
        if isinstance(value, str) or not isinstance(value, Iterable):
            return super().validate(value)
        numbers = tuple(super(AxesParameter, self).validate(each) for each in value)
        if len(numbers) not in (1, self.axes):
            problem = f"{len(numbers)} numbers are neither one nor {self.axes}"
            raise self._refuse(problem, "Use one for all axes, or one for each.")
        return numbers if len(set(numbers)) > 1 else numbers[0]

    def parse(self, text: str) -> Any:
        """Read one number, or several between semicolons, spaces, × or, with points, commas.

        “1,2” is refused: it may be one number with a decimal comma, or two.
        """
        words = re.split(r"\s*[;×]\s*|\s*,\s+|(?<=\d)\s*x\s*(?=\d)|\s+", text.strip())
        if len(words) == 1 and words[0].count(",") == self.axes - 1 and "." in words[0]:
            words = words[0].split(",")
        if len(words) == 1 and re.fullmatch(r"\d+(,\d+)+", words[0]):
            one, several = words[0].replace(",", ".", 1), words[0].replace(",", "x")
            way = f"Write “{one}” or “{several}”." if one.count(",") == 0 else f"Write “{several}”."
            raise self._refuse(f"“{text}” may be one number or several", way)
        parts = [super(AxesParameter, self).parse(each) for each in words]
        return self.validate(parts)

    def format(self, value: Any) -> str:
        if isinstance(value, tuple):
            return ", ".join(map(number_text, value))
        return super().format(value)

    def is_absent(self, value: Any) -> bool:
        return not isinstance(value, tuple) and super().is_absent(value)

    def describe(self, value: Any) -> str:
        if isinstance(value, tuple):
            numbers = "×".join(f"{each:g}" for each in value)
            return f"{self.label.lower()} {numbers}{self._units}"
        return super().describe(value)

    def chip(self, value: Any) -> str:
        if isinstance(value, tuple):
            return f"{self._sign} {'×'.join(f'{each:.3g}' for each in value)}{self._units}"
        return super().chip(value)

    def allowed(self) -> str:
        return f"{super().allowed()}, or one for each axis"

    def variants(self, value: Any, count: int) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return scaled(value, count, (self.minimum, self.maximum))
        return super().variants(value, count)


@dataclass(frozen=True, kw_only=True)
class NumbersParameter(BoundedParameter):
    """None, one or several real numbers in ``[minimum, maximum]``, such as one per component."""

    most: int
    """How many numbers there may be."""
    none: str
    """Text for labels and logs if there is no number."""
    of_samples: bool = False
    """Whether the numbers have the unit of the samples, one for each volume."""
    default: tuple[float, ...] = ()

    placeholder = "X[, X...]"
    form = "several in quotes, with a comma and a space or with a semicolon: “20, 15, 30”"

    def validate(self, value: Any) -> tuple[float, ...]:
        numbers = tuple(value) if isinstance(value, Iterable) else (value,)
        if len(numbers) > self.most:
            raise self._refuse(f"{len(numbers)} numbers are too many", f"Use up to {self.most}.")
        return tuple(map(self._real, numbers))

    def parse(self, text: str) -> tuple[float, ...]:
        """Read numbers that are separated by commas, semicolons or spaces.

        A lone comma between digits may be a decimal one, and is refused.
        """
        numbers: list[float] = []
        try:
            for word in re.split(r"\s*;\s*|\s*,\s+|\s+", text.strip(" ;\t\r\n").rstrip(",")):
                if word.count(",") == 1 and ("." not in word or GROUP_BEFORE_POINT.search(word)):
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
        return ", ".join(map(number_text, value))

    def in_unit(self, value: Any, factors: tuple[float, ...]) -> Any:
        if not self.of_samples or not value:
            return value
        numbers = value * len(factors) if len(value) == 1 else value
        if len(numbers) != len(factors):
            return value  # which the filter refuses
        return tuple(number / factor for number, factor in zip(numbers, factors, strict=True))

    def describe(self, value: Any) -> str:
        return super().describe(value) if value else f"{self.label.lower()} {self.none}"

    def chip(self, value: tuple[float, ...]) -> str:
        texts = [f"{number:.3g}" for number in value]
        if any("." in text for text in texts):  # 23.1, 23.0
            texts = [significant(number) for number in value]
        numbers = ", ".join(texts)
        return (
            f"{self._sign} {numbers}{self.behind(value)}" if value else f"{self._sign} {self.none}"
        )

    def allowed(self) -> str:
        least, most = f"{self.minimum:g}", f"{self.maximum:g}"
        return f"up to {self.most} numbers, {least} to {most}{self._units}"

    def variants(self, value: tuple[float, ...], count: int) -> tuple[tuple[float, ...], ...]:
        return scaled(value, count, (self.minimum, self.maximum))


Radii = tuple[int, int, int]
"""Along x, y and z."""


@dataclass(frozen=True, kw_only=True)
class RadiiParameter(BoundedParameter):
    """Radii along x, y and z, whole numbers in ``[minimum, maximum]``.

    One number stands for three that are equal, and is how these are kept.
    """

    minimum: int
    maximum: int

    steps: ClassVar[int] = 1
    placeholder = "N[,N,N]"
    affects_time: bool = True

    def validate(self, value: Any) -> int | Radii:
        numbers = tuple(value) if isinstance(value, Iterable) else (value,)
        if len(numbers) not in (1, 3):
            problem = f"{len(numbers)} numbers are neither one nor three"
            raise self._refuse(problem, "Write one for all axes, or those along x, y and z.")
        x, *others = map(self._check, numbers)
        if all(other == x for other in others):
            return x
        y, z = others
        return x, y, z

    def _check(self, number: Any) -> int:
        return self._whole(number)

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

    def allowed(self) -> str:
        return f"{super().allowed()}, or three along x, y and z"

    def variants(self, value: int | Radii, count: int) -> tuple[int | Radii, ...]:
        if not isinstance(value, int):
            return ()
        return neighbours(range(self.minimum, self.maximum + 1, self.steps), value, count)

    @staticmethod
    def along_axes(value: int | Radii) -> Radii:
        """Return the radii along x, y and z."""
        return (value, value, value) if isinstance(value, int) else value


@dataclass(frozen=True, kw_only=True)
class SidesParameter(RadiiParameter):
    """The sides of a mask of voxels along x, y and z: odd numbers, or one for all three.

    A side of 1 keeps the mask within the slices, rows or columns.
    """

    unit: str = "voxels"
    minimum: int = 1
    steps = 2
    sets_side = True

    def _check(self, number: Any) -> int:
        return self._odd(number)

    def chip(self, value: int | Radii) -> str:
        return "×".join(map(str, self.along_axes(value)))

    def allowed(self) -> str:
        return f"odd, {super().allowed()}"

    def for_side(self, side: int, weights: Callable[[int], Any]) -> int | None:
        return side if 1 < side <= self.maximum else None


def rounded(estimate: Any) -> Any:
    """Return one number or several with the four digits that an estimate is good for."""
    if isinstance(estimate, str | int):  # a choice, or a size
        return estimate
    if isinstance(estimate, tuple):
        return tuple(rounded(number) for number in estimate)
    return float(f"{estimate:.4g}")


Limits = tuple[float, float]
"""Minimum and maximum."""


def around(value: float, count: int, limits: Limits, usual: Limits) -> tuple[float, ...]:
    """Return values from a half to twice `value`; around 0, values of the `usual` range."""
    if value > 0 and limits[0] >= 0:
        wanted = [_short(value * factor, 2) for factor in _factors(count)]
    else:
        wanted = [_short(each) for each in np.linspace(*usual, count)]
    near = {min(max(each, limits[0]), limits[1]) for each in wanted}
    near.discard(min(near, key=lambda each: abs(each - value)))
    return tuple(sorted(near | {value}))


def scaled(value: tuple[float, ...], count: int, limits: Limits) -> tuple[tuple[float, ...], ...]:
    """Return all numbers times factors from a half to two; nothing if there are none."""
    if not any(value):
        return ()
    found = (
        tuple(float(np.clip(_short(each * factor), *limits)) for each in value)
        for factor in _factors(count)
        if factor != 1
    )
    return tuple(sorted({*found, value}, key=sum))


def neighbours(allowed: range, value: int, count: int) -> tuple[int, ...]:
    """Return `count` successive values of `allowed`, or all, with `value` near the middle."""
    first = allowed.index(value) - count // 2
    first = max(0, min(first, len(allowed) - count))
    return tuple(allowed[first : first + count])


def _factors(count: int) -> list[float]:
    """Return `count` factors from a half to two, in equal ratios."""
    return [float(each) for each in np.geomspace(0.5, 2, count)]


def _short(number: float, digits: int = 3) -> float:
    """Return `number` with few significant digits, which are easy to read and to distinguish."""
    return float(f"{number:.{digits}g}")


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
        shape = "Rectangle" if all(map(all, value)) else "Own shape"
        return f"{shape}, {len(value[0])} wide, {len(value)} high"


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
