"""Parameters with a few named values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
