"""Parameters that are numbers: one, the side of a mask, several, and radii along the axes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.schema.parameters.base import Parameter
from kernelscope.schema.parameters.numerals import (
    GROUP_BEFORE_POINT,
    number_text,
    other_spelling,
    read_number,
)
from kernelscope.schema.samples import Pixels


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

    placeholder = "N"
    affects_time: bool = True

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

    def allowed(self) -> str:
        return f"{self.minimum} to {self.maximum}{self._units}"

    def limits(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def variants(self, value: int, count: int) -> tuple[int, ...]:
        return neighbours(range(self.minimum, self.maximum + 1, self.step), value, count)

    def for_slice(self, value: int, number: int) -> int:
        return (value + number) % (self.maximum + 1) if self.counts_slices else value


@dataclass(frozen=True, kw_only=True)
class OddParameter(IntParameter):
    """The side of a square mask: an odd number of pixels; estimated as a `FloatParameter` is."""

    unit: str = "px"
    step: int = 2
    estimate: Callable[[Pixels, Mapping[str, Any]], float] | None = None
    estimated: bool = False

    sets_side = True

    def validate(self, value: Any) -> int:
        number = super().validate(value)
        if number % 2 == 0:
            raise self._refuse(
                f"{number} is even", f"A mask needs a centre: use {number - 1} or {number + 1}."
            )
        return number

    def allowed(self) -> str:
        return f"odd, {super().allowed()}"

    @property
    def has_estimate(self) -> bool:
        return self.estimate is not None

    @property
    def is_estimated(self) -> bool:
        return self.estimated

    def estimate_from(self, pixels: Pixels, values: Mapping[str, Any]) -> int:
        if self.estimate is None:
            raise NotImplementedError
        return int(self.estimate(pixels, values))

    def chip(self, value: int) -> str:
        return f"{value}×{value}"

    def for_side(self, side: int, weights: Callable[[int], Any]) -> int | None:
        return side if self.minimum <= side <= self.maximum else None


@dataclass(frozen=True, kw_only=True)
class FloatParameter(Parameter):
    """A finite real number in ``[minimum, maximum]``; the slider covers ``slider``."""

    minimum: float
    maximum: float
    slider: tuple[float, float] | None = None
    geometric: bool = False
    """Slider and steps go by factors, as suitable values span several powers of ten; the `slider`
    begins above 0 then, and `step` does not count."""
    step: float = 0.1
    decimals: int = 3
    estimate: Callable[[Pixels, Mapping[str, Any]], float] | None = None
    """Maps a picture, shape (height, width, channels) without alpha, or volumes, shape (depth,
    height, width, components), and the values of the filter's other parameters to a value that
    suits them."""
    estimated: bool = False
    """Whether it is estimated where the user sets nothing. The default is for requests, which have
    a number for everything."""
    absent: float | None = None
    """The value that stands for none; labels do not name it."""

    placeholder = "X"

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

    def limits(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def variants(self, value: float, count: int) -> tuple[float, ...]:
        usual = self.slider or (self.minimum, self.maximum)
        return around(value, count, (self.minimum, self.maximum), usual)

    @property
    def has_estimate(self) -> bool:
        return self.estimate is not None

    @property
    def is_estimated(self) -> bool:
        return self.estimated

    def estimate_from(self, pixels: Pixels, values: Mapping[str, Any]) -> float:
        """Return the estimate with four digits, within the limits."""
        if self.estimate is None:
            raise NotImplementedError
        number: float = rounded(self.estimate(pixels, values))
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
class NumbersParameter(Parameter):
    """None, one or several real numbers in ``[minimum, maximum]``, such as one per component."""

    minimum: float
    maximum: float
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
        numbers = ", ".join(f"{number:.3g}" for number in value)
        return (
            f"{self._sign} {numbers}{self.behind(value)}" if value else f"{self._sign} {self.none}"
        )

    def allowed(self) -> str:
        least, most = f"{self.minimum:g}", f"{self.maximum:g}"
        return f"up to {self.most} numbers, {least} to {most}{self._units}"

    def limits(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def variants(self, value: tuple[float, ...], count: int) -> tuple[tuple[float, ...], ...]:
        return scaled(value, count, (self.minimum, self.maximum))


Radii = tuple[int, int, int]
"""Along x, y and z."""


@dataclass(frozen=True, kw_only=True)
class RadiiParameter(Parameter):
    """Radii along x, y and z, whole numbers in ``[minimum, maximum]``.

    One number stands for three that are equal, and is how these are kept.
    """

    minimum: int
    maximum: int

    placeholder = "N[,N,N]"
    affects_time: bool = True

    def validate(self, value: Any) -> int | Radii:
        numbers = tuple(value) if isinstance(value, Iterable) else (value,)
        if len(numbers) not in (1, 3):
            problem = f"{len(numbers)} numbers are neither one nor three"
            raise self._refuse(problem, "Write one for all axes, or those along x, y and z.")
        for number in numbers:
            self._check(number)
        x, *others = map(int, numbers)
        if all(other == x for other in others):
            return x
        y, z = others
        return x, y, z

    def _check(self, number: Any) -> None:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise self._refuse(f"{number!r} is not a whole number")
        if not self.minimum <= number <= self.maximum:
            raise self._refuse(
                f"{number} is out of range", f"Use {self.minimum} to {self.maximum}."
            )

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
        return f"{self.minimum} to {self.maximum}{self._units}, or three along x, y and z"

    def limits(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}

    def variants(self, value: int | Radii, count: int) -> tuple[int | Radii, ...]:
        if not isinstance(value, int):
            return ()
        return neighbours(range(self.minimum, self.maximum + 1), value, count)

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
    sets_side = True

    def _check(self, number: Any) -> None:
        super()._check(number)
        if number % 2 == 0:
            raise self._refuse(
                f"{number} is even", f"A mask needs a centre: use {number - 1} or {number + 1}."
            )

    def chip(self, value: int | Radii) -> str:
        return "×".join(map(str, self.along_axes(value)))

    def allowed(self) -> str:
        return f"odd, {super().allowed()}"

    def variants(self, value: int | Radii, count: int) -> tuple[int | Radii, ...]:
        if not isinstance(value, int):
            return ()
        return neighbours(range(self.minimum, self.maximum + 1, 2), value, count)

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
        wanted = [value * factor for factor in _factors(count)]
    else:
        wanted = list(np.linspace(*usual, count))
    near = {min(max(_short(each), limits[0]), limits[1]) for each in wanted}
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


def _short(number: float) -> float:
    """Return `number` with three significant digits, which are easy to read and to distinguish."""
    return float(f"{number:.3g}")
