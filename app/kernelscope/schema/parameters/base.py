"""The base of all kinds of parameters: everything that the faces ask of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.samples import Pixels


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
    affects_time: bool = False
    """Whether the time for a pixel depends on the value, and not only on the filter's radius."""

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
        return False

    @property
    def is_estimated(self) -> bool:
        """Whether the value is estimated where the user sets nothing."""
        return False

    def estimate_from(self, pixels: Pixels, values: Mapping[str, Any]) -> Any:
        """Return a value that suits `pixels` and the `values` of the other parameters."""
        raise NotImplementedError

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
