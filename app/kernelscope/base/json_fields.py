"""Read JSON files that may have been edited or damaged.

`json` checks that a text is JSON. Whether it has the expected content is checked value by value,
through `Field`, which knows its path in the file::

    report = read(path)
    seconds = report["rows"].elements()[3]["seconds"].elements()[0].number(1e-12, 1e9)

    run.json: rows[3].seconds[0]: expected a number from 1e-12 to 1e+09, found "fast".

`Field.record` reads all of a data class, by the types of its fields.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import types
import typing
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn, TypeVar

from kernelscope.base.errors import AppError

Given = TypeVar("Given")
Value = TypeVar("Value")

MOST_BYTES = 1 << 28
"""Larger than any file that this program writes: such a file was chosen by mistake."""

_SHOWN = 40  # characters of a wrong value that a message repeats
_MOST_WHOLE = 1 << 63  # smaller whole numbers fit into a float and into any array
_MOST_COUNT, _MOST_NUMBER = 1 << 53, 1e18  # of the fields of a record
Size = Annotated[int, (1, _MOST_COUNT)]  # a field of a record that is at least 1

Number = Annotated[float, (-math.inf, math.inf)]
"""A field of a record that may be negative or infinite."""

_LONGEST = 300  # most characters of a problem or of a path in a message


class InvalidJson(AppError):
    """A JSON file that is damaged, or has other content than expected."""


class Field:
    """A value in a JSON text as `json` returned it, and the names and numbers that lead to it.

    Every method that reads it raises `InvalidJson` if the value is of another kind.
    """

    def __init__(self, value: Any, file: str, steps: tuple[str | int, ...] = ()) -> None:
        self.value = value
        self._file = file
        self._steps = steps

    def refuse(self, problem: str, hint: str = "") -> NoReturn:
        path = "".join(map(_written, self._steps)).removeprefix(".")
        where = f"{self._file}: {shortened(path)}" if path else self._file
        raise InvalidJson(f"{where}: {shortened(problem)}", hint)

    def _expected(self, what: str) -> NoReturn:
        self.refuse(f"expected {what}, found {_shown(self.value)}.")

    # --- objects and lists ---

    def __contains__(self, name: str) -> bool:
        return name in self._object()

    def __getitem__(self, name: str) -> Field:
        """Return a field of an object, which must exist."""
        fields = self._object()
        if name not in fields:
            self.refuse(f"“{name}” is missing.")
        return self._inner(fields[name], name)

    def fields(self) -> Iterator[tuple[str, Field]]:
        for name, value in self._object().items():
            yield _checked_text(self, name), self._inner(value, name)

    def only(self, known: Sequence[str]) -> None:
        """Refuse an object with fields other than `known`."""
        for name in self._object():
            if name not in known:
                self.refuse(f"there is no field {_shown(name)}.", f"Use {', '.join(known)}.")

    def elements(self, count: int | None = None) -> list[Field]:
        if not isinstance(self.value, list):
            self._expected("a list [...]")
        if count is not None and len(self.value) != count:
            self.refuse(f"expected {count} elements, found {len(self.value)}.")
        return [
            type(self)(value, self._file, (*self._steps, number))
            for number, value in enumerate(self.value)
        ]

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self._expected("an object {...}")
        return self.value

    def _inner(self, value: Any, name: str) -> Field:
        return type(self)(value, self._file, (*self._steps, name))

    # --- plain values ---

    def text(self) -> str:
        if not isinstance(self.value, str):
            self._expected("text")
        return _checked_text(self, self.value)

    def one_of(self, known: Collection[str]) -> str:
        if not isinstance(self.value, str) or self.value not in known:
            self._expected(f"one of {', '.join(known)}")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self._expected("true or false")
        return self.value

    def whole(self, least: int, most: int) -> int:
        if type(self.value) is not int or not least <= self.value <= most:
            self._expected(f"a whole number from {least} to {most}")
        return self.value

    def number(self, least: float, most: float) -> float:
        """Return a number from `least` to `most`; an infinite bound allows infinity."""
        try:
            number = float(self.value) if type(self.value) in (int, float) else math.nan
        except OverflowError:  # an int beyond every float
            number = math.nan
        if not least <= number <= most:
            self._expected(f"a number from {least:g} to {most:g}")
        return number

    def plain(self) -> str | bool | float | list[Any]:
        """Return a text, a truth value, a number of limited size, or a list of those."""
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
        """Return `convert` of a value read from this field; its `AppError` gets the path."""
        try:
            return convert(given)
        except AppError as error:
            self.refuse(error.message, error.hint)

    # --- records ---

    def record(self, kind: type[Value], **given: Any) -> Value:
        """Return a data class or named tuple, read from an object but for the fields `given`.

        Each field is read by its type, see `typed`; one that is left out has its default. A named
        tuple may be a list as well.
        """
        known = _fields_of(typing.cast(Any, kind))
        fields = {name: each for name, each in known.items() if name not in given}
        if isinstance(self.value, list) and not dataclasses.is_dataclass(kind):
            values = dict(zip(fields, self.elements(len(fields)), strict=True))
        else:
            values = {
                name: self[name] for name, each in fields.items() if each.needed or name in self
            }
        return kind(**{name: fields[name].read(each) for name, each in values.items()}, **given)

    def typed(self, kind: Any) -> Any:
        """Return text, a flag, a number, an enumeration, None, a tuple or mapping, or a record.

        Numbers are not negative. ``Annotated`` gives other bounds, the known texts, or a function
        that reads the field: ``Annotated[float, (-1, 1)]``, ``Annotated[str, ("x", "y")]``.
        """
        return _reader(kind)(self)

    def from_text(self, convert: Callable[[str], Value]) -> Value:
        return self.through(convert, self.text())


class OwnField(Field):
    """A value of another process of the program; names of files in it need not be UTF-8."""

    def text(self) -> str:
        if not isinstance(self.value, str):
            self._expected("text")
        return self.value


Read = Callable[[Field], Any]


class _RecordField(NamedTuple):
    read: Read
    needed: bool


@functools.cache
def _fields_of(kind: Any) -> Mapping[str, _RecordField]:
    hints = typing.get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        needed = {
            each.name: each.default is missing and each.default_factory is missing
            for each in dataclasses.fields(kind)
            if each.init
        }
    else:
        needed = {name: name not in kind._field_defaults for name in kind._fields}
    return {name: _RecordField(_reader(hints[name]), each) for name, each in needed.items()}


@functools.cache
def _reader(kind: Any) -> Read:
    """Return the function that reads a value of a type, see `Field.typed`."""
    generic = _GENERIC.get(typing.get_origin(kind))
    if generic is not None:
        return generic(*typing.get_args(kind))
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):  # no class: arrays, given by the caller
        return _enumeration(kind)
    return lambda field: field.record(kind)


def _optional(kind: Any, *_: Any) -> Read:
    read = _reader(kind)
    return lambda field: None if field.value is None else read(field)


def _tuple(*kinds: Any) -> Read:
    if kinds[-1] is ...:
        read = _reader(kinds[0])
        return lambda field: tuple(map(read, field.elements()))
    reads = [*map(_reader, kinds)]
    return lambda field: tuple(
        read(each) for read, each in zip(reads, field.elements(len(reads)), strict=True)
    )


def _mapping(names: type, kind: Any) -> Read:
    read = _reader(kind)

    def key(field: Field, name: str) -> str | int:
        if names is int and not name.isdecimal():
            field.refuse(f"{_shown(name)} is not a number.")
        return int(name) if names is int else name

    return lambda field: {key(field, name): read(each) for name, each in field.fields()}


def _annotated(kind: Any, rule: Any) -> Read:
    if callable(rule):
        return typing.cast(Read, rule)
    if kind is str:
        return lambda field: field.one_of(rule)
    if kind is int:
        return lambda field: field.whole(*rule)
    return lambda field: field.number(*rule)


def _enumeration(kind: type[Enum]) -> Read:
    known = [each.value for each in kind]

    def read(field: Field) -> Enum:
        if field.value not in known:
            field._expected(f"one of {', '.join(map(str, known))}")
        return kind(field.value)

    return read


_GENERIC: dict[Any, Callable[..., Read]] = {
    types.UnionType: _optional,
    typing.Union: _optional,
    tuple: _tuple,
    Mapping: _mapping,
    Annotated: _annotated,
}
_PLAIN: dict[Any, Read] = {
    Any: lambda field: field.value,
    str: lambda field: field.text(),
    bool: Field.flag,
    float: lambda field: field.number(0, _MOST_NUMBER),
    int: lambda field: field.whole(0, _MOST_COUNT),
}


def _written(step: str | int) -> str:
    """Return a step of a path: ``.name``, ``."any text"`` or ``[number]``."""
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step if step.isidentifier() else json.dumps(step)}"


def shortened(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _shown(value: Any) -> str:
    """Return a value for a message: on one line, and shortened."""
    match value:
        case list():
            return "a list"
        case dict():
            return "an object"
    # Escaped: no line break and no control character.
    return shortened(json.dumps(value), _SHOWN)


def _checked_text(field: Field, text: str) -> str:
    """Refuse unpaired surrogates, which JSON can encode but UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        field.refuse(f"{_shown(text)} contains half of a character.")
    return text


def parse(text: str, file: str) -> Field:
    """Return all of a JSON text.

    Raises `InvalidJson` if it is not JSON, is nested too deeply, or has a name twice in an object,
    so that one of the values would be lost.
    """
    try:
        return Field(json.loads(text, object_pairs_hook=_unique), file)
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"{file}: this is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from None
    except RecursionError:
        raise InvalidJson(f"{file}: it is nested too deeply.") from None
    except ValueError as error:  # also for numbers with more digits than Python reads
        raise InvalidJson(f"{file}: {error}.") from None


def read(path: Path, most_bytes: int = MOST_BYTES) -> Field:
    """Return all of a JSON file.

    Raises `InvalidJson` as `parse`, or if the file cannot be read or is larger than `most_bytes`.
    """
    try:
        with path.open("rb") as handle:
            data = handle.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        detail = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise InvalidJson(f"{path} cannot be read: {detail}.") from error
    if len(data) > most_bytes:
        raise InvalidJson(f"{path}: it is larger than any file of this program.")
    try:
        text = data.decode("utf-8-sig")  # some editors on Windows write a byte order mark
    except UnicodeDecodeError:
        raise InvalidJson(f"{path}: this is not text in UTF-8.") from None
    return parse(text, str(path))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a repeated name, of which `json` would keep the last value only."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        count = Counter(name for name, _ in pairs)
        twice = next(name for name in count if count[name] > 1)
        raise ValueError(f"{_shown(twice)} occurs twice in the same object")
    return fields
