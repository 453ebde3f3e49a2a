"""Reading JSON that people or accidents may have changed.

`json` says whether a text is JSON. Whether it holds what the program expects is asked value by
value, of a `Field`, which knows its place: ``rows[3].seconds[0]: expected a number from 1e-12 to
1e+09, found "fast"``.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from kernelscope.errors import AppError

Given = TypeVar("Given")
Value = TypeVar("Value")

MOST_BYTES = 1 << 28
"""More than any file of ours: a larger one was chosen by mistake."""

_SHOWN = 40
"""Characters of a wrong value that a message repeats."""

_MOST_WHOLE = 1 << 63
"""Every float and every array takes what is smaller."""

_LONGEST = 300
"""Characters of a problem, or of a place."""


class InvalidJson(AppError):
    """A JSON file that is damaged, or holds something else than expected."""


class Field:
    """A value in a JSON text, and where it stands.

    Every method that reads it raises `InvalidJson` where the value is something else.

    Parameters
    ----------
    value : object
        As `json` returned it.
    file : str
        What messages call the text.
    place : str
        Path of the value in the text, empty for all of it.
    """

    def __init__(self, value: Any, file: str, place: str = "") -> None:
        self.value = value
        self._file = file
        self._place = place

    def refuse(self, problem: str, hint: str = "") -> NoReturn:
        """Raise the error that names this value."""
        where = f"{self._file}: {_cut(self._place)}" if self._place else self._file
        raise InvalidJson(f"{where}: {_cut(problem)}", hint)

    def _expected(self, what: str) -> NoReturn:
        self.refuse(f"expected {what}, found {_shown(self.value)}.")

    # --- objects and lists ---

    def __contains__(self, name: str) -> bool:
        return name in self._object()

    def __getitem__(self, name: str) -> Field:
        """Return a field of an object; it has to be there."""
        fields = self._object()
        if name not in fields:
            self.refuse(f"“{name}” is missing.")
        return self._inner(fields[name], name)

    def fields(self) -> Iterator[tuple[str, Field]]:
        """Yield the names and the fields of an object."""
        for name, value in self._object().items():
            yield _checked_text(self, name), self._inner(value, name)

    def only(self, known: Sequence[str]) -> None:
        """Refuse an object with a field that is none of `known`."""
        for name in self._object():
            if name not in known:
                self.refuse(f"there is no field {_shown(name)}.", f"Use {', '.join(known)}.")

    def elements(self, count: int | None = None) -> list[Field]:
        """Return the elements of a list, of which there have to be `count` if that is given."""
        if not isinstance(self.value, list):
            self._expected("a list [...]")
        if count is not None and len(self.value) != count:
            self.refuse(f"expected {count} elements, found {len(self.value)}.")
        return [
            Field(value, self._file, f"{self._place}[{number}]")
            for number, value in enumerate(self.value)
        ]

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self._expected("an object {...}")
        return self.value

    def _inner(self, value: Any, name: str) -> Field:
        step = name if name.isidentifier() else json.dumps(name)
        return Field(value, self._file, f"{self._place}.{step}".removeprefix("."))

    # --- plain values ---

    def text(self) -> str:
        if not isinstance(self.value, str):
            self._expected("text")
        return _checked_text(self, self.value)

    def one_of(self, known: Collection[str]) -> str:
        """Return a text that is one of `known`."""
        if not isinstance(self.value, str) or self.value not in known:
            self._expected(f"one of {', '.join(known)}")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self._expected("true or false")
        return self.value

    def whole(self, least: int, most: int) -> int:
        """Return a whole number from `least` to `most`."""
        if type(self.value) is not int or not least <= self.value <= most:
            self._expected(f"a whole number from {least} to {most}")
        return self.value

    def number(self, least: float, most: float) -> float:
        """Return a number from `least` to `most`; infinities do where a bound is infinite."""
        expected = f"a number from {least:g} to {most:g}"
        if type(self.value) not in (int, float):
            self._expected(expected)
        try:
            number = float(self.value)
        except OverflowError:  # an int beyond every float
            number = math.nan
        if not least <= number <= most:
            self._expected(expected)
        return number

    def plain(self) -> str | bool | float | list[Any]:
        """Return a text, a truth value, a number, or a list of those; no number is huge."""
        if isinstance(self.value, list):
            return [each._scalar() for each in self.elements()]
        return self._scalar()

    def _scalar(self) -> str | bool | float:
        value = self.value
        if not isinstance(value, str | bool | int | float):
            self._expected("a text, a number, true or false")
        if isinstance(value, int) and abs(value) > _MOST_WHOLE:
            self._expected(f"a number up to {_MOST_WHOLE}")
        return value

    def through(self, convert: Callable[[Given], Value], given: Given) -> Value:
        """Return what `convert` makes of what was read here; its `AppError` gets the place."""
        try:
            return convert(given)
        except AppError as error:
            self.refuse(error.message, error.hint)

    def from_text(self, convert: Callable[[str], Value]) -> Value:
        """Return what `convert` makes of the text."""
        return self.through(convert, self.text())


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _shown(value: Any) -> str:
    """Return a value as a message shows it: on one line, and not all of a long one."""
    match value:
        case list():
            return "a list"
        case dict():
            return "an object"
    # With escapes: no line break or control of it gets out.
    return _cut(json.dumps(value), _SHOWN)


def _checked_text(field: Field, text: str) -> str:
    """Refuse half of a character, which JSON can spell and no file or screen can show."""
    try:
        text.encode()
    except UnicodeEncodeError:
        field.refuse(f"{_shown(text)} holds half of a character.")
    return text


def parse(text: str, file: str) -> Field:
    """Return all of a JSON text.

    Raises
    ------
    InvalidJson
        If it is none, nests too deep, or has a name twice in the same braces, of which one
        would be lost.
    """
    try:
        return Field(json.loads(text, object_pairs_hook=_unique), file)
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"{file}: this is no JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from None
    except RecursionError:
        raise InvalidJson(f"{file}: it is nested too deep.") from None
    except ValueError as error:  # Also a number of more digits than Python reads.
        raise InvalidJson(f"{file}: {error}.") from None


def read(path: Path, most_bytes: int = MOST_BYTES) -> Field:
    """Return all of a JSON file.

    Raises
    ------
    InvalidJson
        As `parse`, or if the file cannot be read or is larger than `most_bytes`.
    """
    try:
        with path.open("rb") as handle:
            data = handle.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character.
        detail = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise InvalidJson(f"{path} cannot be read: {detail}.") from error
    if len(data) > most_bytes:
        raise InvalidJson(f"{path}: no file of ours is this large.")
    try:
        text = data.decode("utf-8-sig")  # Some editors on Windows put a mark in front.
    except UnicodeDecodeError:
        raise InvalidJson(f"{path}: this is no text.") from None
    return parse(text, str(path))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice, of which `json` would drop one."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        count = Counter(name for name, _ in pairs)
        twice = next(name for name in count if count[name] > 1)
        raise ValueError(f"{_shown(twice)} stands twice in the same braces")
    return fields
