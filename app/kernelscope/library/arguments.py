"""The arguments of library functions: those of every function, and those of a filter.

An argument is data: name, type, default and text. Signatures, docstrings and the stub are made of
the same ones. The Python type of a parameter is an entry of `_KINDS` for each kind. Docstrings
have the numpydoc form.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.area import Area
from kernelscope.engine.step import ESTIMATE
from kernelscope.images.image import can_hold
from kernelscope.images.volume import AXES
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec, Unit
from kernelscope.schema.parameters import (
    AxesParameter,
    ChoiceParameter,
    FloatParameter,
    FootprintParameter,
    IntParameter,
    MaskParameter,
    NumbersParameter,
    OddParameter,
    Parameter,
    RadiiParameter,
)
from kernelscope.schema.samples import Kind


class Annotation(NamedTuple):
    """A type as it stands in code, and in the words of a docstring."""

    text: str
    words: str


def one_of(values: Iterable[str]) -> Annotation:
    """Return the type of a few texts."""
    listed = tuple(dict.fromkeys(values))
    text = ", ".join(quoted(value) for value in listed)
    words = ", ".join(repr(value) for value in listed)
    return Annotation(f"Literal[{text}]", f"{{{words}}}")


def quoted(text: str) -> str:
    """Return a text as it stands in code, in double quotes."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


_WHOLE = Annotation("int", "int")
_SIDE = Annotation("int | tuple[int, int]", "int or (int, int)")
_SIDES = Annotation(
    "int | tuple[int, int] | tuple[int, int, int]", "int, (int, int) or (int, int, int)"
)
_EACH_AXIS = " Several are in the order of the axes: that of the rows, which blurs down, first."
_CUBE_SIDES = " With three `axes` also a side for each of them, 1 or an odd number."
_REAL = Annotation("float", "float")
_REAL_OF_AXES = Annotation("float | tuple[float, float]", "float or (float, float)")
_REALS_OF_AXES = Annotation(
    "float | tuple[float, float] | tuple[float, float, float]",
    "float, (float, float) or (float, float, float)",
)
_REALS = Annotation("float | Sequence[float]", "float or sequence of float")
_RADII = Annotation("int | tuple[int, int, int]", "int or (int, int, int)")
_TABLE = Annotation("ArrayLike", "array_like, square, or str")


def _footprint(parameter: FootprintParameter) -> Annotation:
    named = one_of(each.value for each in parameter.choices)
    return Annotation(f"{named.text} | ArrayLike", f"{named.words} or array_like of bool")


_KINDS: Mapping[type[Parameter], Callable[[Any], Annotation]] = {
    FootprintParameter: _footprint,
    ChoiceParameter: lambda parameter: one_of(each.value for each in parameter.choices),
    OddParameter: lambda parameter: _SIDE,
    IntParameter: lambda parameter: _WHOLE,
    AxesParameter: lambda parameter: _REAL_OF_AXES,
    FloatParameter: lambda parameter: _REAL,
    NumbersParameter: lambda parameter: _REALS,
    RadiiParameter: lambda parameter: _RADII,
    MaskParameter: lambda parameter: _TABLE,
}


def annotation_of(parameter: Parameter) -> Annotation:
    found = next((_KINDS[kind] for kind in type(parameter).__mro__ if kind in _KINDS), None)
    if found is None:
        raise LookupError(f"{type(parameter).__name__} has no Python type in {__name__}")
    own = found(parameter)
    if not parameter.has_estimate:
        return own
    return Annotation(f"{own.text} | Literal[{quoted(ESTIMATE)}]", f"{own.words} or {ESTIMATE!r}")


_DEVICES = tuple(each.value for each in Device)

NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True)
class Argument:
    """An argument of a function.

    `default`: `NO_DEFAULT` for one that has to be given. `help`: sentences for the docstring.
    `named`: whether it is given by name only.
    """

    name: str
    annotation: Annotation
    help: str
    default: Any = NO_DEFAULT
    named: bool = True

    @property
    def parameter(self) -> inspect.Parameter:
        """The argument as a part of a signature."""
        kind = inspect.Parameter.KEYWORD_ONLY if self.named else _POSITIONAL
        return inspect.Parameter(
            self.name, kind, default=self.default, annotation=self.annotation.text
        )

    @property
    def heading(self) -> str:
        """The line of the argument in a docstring."""
        if self.default is NO_DEFAULT:
            return f"{self.name} : {self.annotation.words}"
        if self.default is None or self.default == ():
            return f"{self.name} : {self.annotation.words}, optional"
        return f"{self.name} : {self.annotation.words}, default {self.default!r}"


_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def optional(annotation: Annotation) -> Annotation:
    return Annotation(f"{annotation.text} | None", annotation.words)


def _written(text: str) -> Iterator[Argument]:
    """Yield arguments that are written as in the stub, with the words of the type if it has others.

    One without a default is given by its place.
    """
    for head, words in re.findall(r"^(\S.*)\n((?: .*\n?)*)", textwrap.dedent(text), re.MULTILINE):
        found = re.fullmatch(r"(\w+): (.+?)(?: = (.+?))?(?: -- (.+))?", head)
        assert found, head
        name, kind, default, shown = found.groups()
        value = NO_DEFAULT if default is None else ast.literal_eval(default)
        annotation = Annotation(kind, shown or kind)
        yield Argument(name, annotation, " ".join(words.split()), value, default is not None)


IMAGE, VOLUME = _written("""
    image: ArrayLike -- array_like, shape (height, width) or (height, width, channels)
        Any array of real numbers; the result has its type. Every channel is filtered, see `alpha`
        and `channel_axis`. A stack with `axes` or `axis`.
    volume: ArrayLike -- array_like, shape (depth, height, width)
        Integers or floats, which are filtered as 32-bit floats.
    """)

COMPONENTS, GREY, WITHIN, NAN, WHITE, BLACK, CVAL = _written("""
    components: Sequence[ArrayLike] = () -- sequence of array_like
        Up to 3 more volumes of the same head, such as T2w and PDw, filtered together with it.
    grey: bool = False
        Convert to greyscale first (ITU-R 601).
    within: str | None = None -- str
        Filter only there and keep the rest: “rectangle 12,8 52,38”, “ellipse 12,8 52,38” or
        “polygon 0,0 40,0 20,30”, in pixels to the right and down.
    nan: float | None = None -- float
        Filter NaN as this number; the result has NaN there again.
    white: float | None = None -- float
        White of floats and of volumes, to which amounts are relative; by default 1 for samples
        between 0 and 1, else the largest. That of uint8 and uint16 pictures is 255 and 65535.
    black: float | None = None -- float
        Black beside `white`; by default 0, and without `white` the smallest sample if that is
        negative.
    cval: float = 0.0
        Value of the cells outside the image for border “constant”.
    """)

CHANNEL_AXIS, AXES_OF_PICTURES, ALPHA, OUT, PROGRESS, CANCEL = _written("""
    channel_axis: int | str | None = None -- int or str
        Axis of the channels; by default the last of three, if it has at most 4.
    axes: tuple[int | str, int | str] | None = None -- (int, int)
        Axes of the rows and the columns; the pictures along all others are filtered one by one.
    alpha: bool = False
        The last of 2 or 4 channels is alpha: it is kept, and colours under alpha 0 have no effect.
    out: NDArray[Any] | None = None -- ndarray
        Array of the result's shape and type to write it to; it is returned.
    progress: Callable[[str, float], object] | Any | None = None -- callable or bar of tqdm
        Called with a stage and the fraction of it that is done, 0 to 1.
    cancel: Callable[[], bool] | None = None -- callable
        Called often, on any thread; the function raises `Cancelled` soon after it returned True.
    """)

_PAIR, _THREE = "tuple[int | str, int | str]", "tuple[int | str, int | str, int | str]"

AXES_OF_CUBES = Argument(
    "axes",
    optional(Annotation(f"{_PAIR} | {_THREE}", "(int, int) or (int, int, int)")),
    "Axes of the rows and the columns, or three: slices, rows and columns of volumes that the "
    "mask goes through, as with scipy.ndimage. Pictures, or volumes, along all others are filtered "
    "one by one.",
    None,
)

AXIS = Argument(
    "axis",
    optional(one_of(AXES)),
    "Read the array as a volume of shape (depth, height, width) and filter its slices "
    "perpendicular to this axis.",
    None,
)

_OF_STEPS = ("border", "mode", "grey", "within", "axis")

MODES: Mapping[str, Border] = {
    **{str(border): border for border in tuple(Border)[:5]},
    "grid-mirror": Border.REFLECT,
    "symmetric": Border.REFLECT,
    "edge": Border.NEAREST,
    "grid-constant": Border.CONSTANT,
    "grid-wrap": Border.WRAP,
}
"""Borders by their names in scipy.ndimage and numpy.pad; “reflect” is that of scipy.ndimage."""

MODE = Argument(
    "mode",
    optional(one_of(MODES)),
    "The border under the name that scipy.ndimage or numpy.pad has for it.",
    None,
)

DEVICE = Argument(
    "device",
    one_of(each.value for each in Device),
    "Where to compute. Integers have the same result on all of them.",
    Device.AUTO.value,
)

CALLBACKS = (PROGRESS, CANCEL)

_PLACES = (CHANNEL_AXIS, AXES_OF_PICTURES, ALPHA, GREY, WITHIN, AXIS)

SHARED = frozenset(each.name for each in (*_PLACES, CVAL, WHITE, BLACK, OUT, *CALLBACKS))
"""Names of the arguments that change more than parameters, border and device do."""

PICTURE_ARGUMENTS = (CHANNEL_AXIS, AXES_OF_PICTURES, ALPHA, AXIS, NAN, DEVICE)
"""Those that say how an array is read as pictures, and where they are filtered."""


def level_argument(spec: FilterSpec) -> Argument:
    levels = (*spec.levels(Device.CPU), *spec.levels(Device.GPU))
    return Argument(
        "level",
        optional(one_of(level.id for level in levels)),
        "Way of computing; by default the fastest of the device.",
        None,
    )


def arguments_of(spec: FilterSpec) -> tuple[Argument, ...]:
    return tuple(_arguments(spec))


def step_arguments(spec: FilterSpec) -> tuple[Argument, ...]:
    """Return the arguments that a step of a recipe has as well."""
    names = {*_OF_STEPS, *(each.name for each in spec.parameters)}
    return tuple(each for each in arguments_of(spec) if each.name in names)


def _arguments(spec: FilterSpec) -> Iterator[Argument]:
    is_volume = spec.kind is Kind.VOLUME
    yield VOLUME if is_volume else IMAGE
    for parameter in spec.parameters:
        cube = spec.in_3d and any(each.name == parameter.name for each in spec.in_3d.parameters)
        annotation, more = annotation_of(parameter), ""
        if cube and isinstance(parameter, OddParameter):
            annotation, more = _SIDES, _CUBE_SIDES
        elif isinstance(parameter, AxesParameter):
            annotation, more = (_REALS_OF_AXES if cube else annotation), _EACH_AXIS
        default = ESTIMATE if parameter.is_estimated else parameter.default
        yield Argument(parameter.name, annotation, _help(parameter) + more, default)
    if is_volume:
        yield COMPONENTS
    else:
        if len(spec.borders) > 1:
            yield from (_border(spec), MODE, CVAL)
        axes = AXES_OF_CUBES if spec.in_3d else AXES_OF_PICTURES
        yield from (CHANNEL_AXIS, axes, ALPHA, GREY, WITHIN, AXIS)
    if not isinstance(spec.unit, Unit) or spec.unit.knows_white:
        yield from (WHITE, BLACK)
    yield from (NAN, DEVICE, level_argument(spec), *CALLBACKS)
    if not is_volume:
        yield OUT


def _border(spec: FilterSpec) -> Argument:
    return Argument(
        "border",
        one_of(str(border) for border in spec.borders),
        "Treatment of cells outside the image.",
        str(spec.borders[0]),
    )


def _help(parameter: Parameter) -> str:
    """Return the sentence of a parameter with the values that it takes, or their meanings."""
    choices = [f"{each.value!r}: {each.help}" for each in parameter.named_values() if each.help]
    if choices:
        return f"{parameter.help} {' '.join(choices)}"
    if parameter.named_values():
        return parameter.help
    return f"{parameter.help} Allowed: {parameter.allowed()}."


def checked(spec: FilterSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters that were given, and of those that they imply."""
    values: dict[str, Any] = {}
    for name in given:
        values |= spec.parameter(name).implies
    return values | {name: _checked(spec.parameter(name), value) for name, value in given.items()}


def _checked(parameter: Parameter, value: Any) -> Any:
    if parameter.has_estimate and isinstance(value, str) and value == ESTIMATE:
        return value
    if isinstance(parameter, OddParameter) and isinstance(value, tuple | list) and value:
        value = _side(parameter.name, value)
    if isinstance(parameter, AxesParameter) and isinstance(value, Sequence | np.ndarray):
        value = value[::-1]  # along x and y, as recipes have it
    try:
        if isinstance(value, str) and parameter.stored_as_text:
            return parameter.parse(value)
        return parameter.validate(value)
    except InvalidParameter as error:
        cause = error.message.removeprefix(f"{parameter.label}: ")
        raise type(error)(f"{parameter.name}: {cause}", error.hint) from None
    except (TypeError, ValueError):  # of a type that no check expects
        raise InvalidParameter(
            f"{parameter.name}: {type(value).__name__} is the wrong type.",
            f"Use {parameter.allowed()}.",
        ) from None


def _side(name: str, sides: Sequence[Any]) -> Any:
    if len(sides) != 2:
        raise InvalidParameter(
            f"{name}: {tuple(sides)} are not two sides, and a picture has two axes.",
            "Use one number, or a height and a width.",
        )
    if sides[0] != sides[1]:
        raise InvalidParameter(
            f"{name}: {tuple(sides)} is no square, and the mask is one.",
            "Use one number; ks.mean averages over any rectangle, ks.mask over any cells.",
        )
    return sides[0]


def of_any_sides(
    spec: FilterSpec, given: Mapping[str, Any]
) -> tuple[FilterSpec, Mapping[str, Any]]:
    """Return the filter that has a mask of the sides that were given, and its parameters.

    That is the filter itself for squares of odd sides, and for values that it refuses.
    """
    sides = _sides(given.get("size"))
    if sides is None or (sides[0] == sides[1] and sides[0] % 2):
        return spec, given
    if spec.rectangle is not None:
        name, values = spec.rectangle(*sides)
        other, table = filters.get(name), "mask"
    elif _has_footprint(spec):
        square = spec.parameter("footprint").default
        shape = given.get("footprint", square)
        if not isinstance(shape, str) or shape != square:
            raise InvalidParameter(
                f"size: {sides[0]}×{sides[1]} is no square of an odd side, in which a footprint "
                "stands.",
                "Use one odd number, or give the cells of another mask as the footprint, "
                "without a size.",
            )
        other, table = spec, "footprint"
        values = {**given, "footprint": ((1,) * sides[1],) * sides[0]}
        del values["size"]
    else:
        return spec, given
    most: int = getattr(other.parameter(table), "maximum")  # noqa: B009 - of two kinds of tables
    if max(sides) // 2 * 2 + 1 > most:
        raise InvalidParameter(
            f"size: a mask of {sides[0]}×{sides[1]} cells is too large.",
            f"Use sides up to {most}, or a square: {spec.parameter('size').allowed()}.",
        )
    return other, values


def takes_any_sides(spec: FilterSpec, parameter: Parameter) -> bool:
    """Return whether masks of any sides may be given by this parameter: see `of_any_sides`."""
    return parameter.name == "size" and (spec.rectangle is not None or _has_footprint(spec))


def _has_footprint(spec: FilterSpec) -> bool:
    return any(each.name == "footprint" for each in spec.parameters)


def _sides(size: Any) -> tuple[int, int] | None:
    """Return height and width of a mask; None if the value is neither a number nor two."""
    pair = size if isinstance(size, tuple | list) else (size, size)
    if len(pair) != 2 or not all(
        isinstance(side, int | np.integer) and not isinstance(side, bool) and side > 0
        for side in pair
    ):
        return None
    return int(pair[0]), int(pair[1])


def are_three(axes: Any) -> bool:
    """Return whether an argument `axes` names three axes."""
    return isinstance(axes, Sequence | np.ndarray) and not isinstance(axes, str) and len(axes) == 3


def along_axes(name: str, value: Any) -> Any:
    """Return the sides of a mask along x, y and z, which are given in the order of the axes."""
    if name == "size" and isinstance(value, tuple | list):
        if len(value) != 3:
            raise InvalidParameter(
                f"size: {tuple(value)} are not three sides, and there are three axes.",
                "Use one number, or one for each axis.",
            )
        return tuple(reversed(value))
    return value


def check_choice(name: str, value: Any, offered: Sequence[str]) -> None:
    """Raise `InvalidParameter` for a text that is not among those offered."""
    if not isinstance(value, str) or value not in offered:
        raise InvalidParameter(
            f"{name}: there is no “{value}”.", f"Use one of {', '.join(offered)}."
        )


def area_of(value: Any) -> Area:
    try:
        return Area.parse(str(value))
    except InvalidParameter as error:
        raise error.prefixed("within: ") from None


def number_of(name: str, value: Any) -> float:
    """Return a real number, or raise `InvalidParameter` with the argument's name."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InvalidParameter(f"{name}: {value!r} is not a number.", "Use a number such as 0.")
    return float(value)


def cval_of(given: Mapping[str, Any], border: Border) -> float:
    """Return the value of cells outside the image."""
    cval = number_of("cval", given["cval"])
    if cval != 0 and border is not Border.CONSTANT:
        raise InvalidParameter(
            f"cval: border “{border}” has no constant outside.", "Use border “constant”."
        )
    return cval


def check_held(name: str, value: float, dtype: np.dtype[Any]) -> None:
    """Raise `InvalidParameter` for a number that samples of a type cannot be."""
    if dtype.kind != "f" and not can_hold(dtype, value):
        raise InvalidParameter(
            f"{name}: samples of type {dtype} have no value {value:g}.",
            "Convert the array to floats, or use another value.",
        )


def check_common(given: Mapping[str, Any]) -> None:
    """Raise `InvalidParameter` for a wrong value of an argument that every function has."""
    check_choice("device", given["device"], _DEVICES)
    for name in ("nan", "white", "black"):
        if given.get(name) is not None:
            number_of(name, given[name])
    for name in ("progress", "cancel"):
        if given[name] is not None and not callable(given[name]):
            raise InvalidParameter(
                f"{name}: {type(given[name]).__name__} cannot be called.", "Use a function."
            )


def reporter(progress: Any) -> Any:
    """Return a function that moves a bar of tqdm; anything else as it is."""
    if callable(progress) or not all(hasattr(progress, name) for name in ("update", "refresh")):
        return progress
    if progress.total is None:
        progress.total = 1

    def report(stage: str, fraction: float) -> None:
        progress.n = fraction * progress.total
        progress.set_description(stage, refresh=False)
        progress.refresh()

    return report


def flag(name: str, value: Any) -> bool:
    """Return True or False, or raise `InvalidParameter`."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameter(f"{name}: {value!r} is not True or False.")
    return bool(value)


def border_of(spec: FilterSpec, given: Mapping[str, Any]) -> Border:
    """Return the border that was given by our name or that of another library."""
    value, mode = given["border"], given["mode"]
    check_choice("border", value, [str(border) for border in spec.borders])
    if mode is None:
        return Border(value)
    offered = [name for name, border in MODES.items() if border in spec.borders]
    check_choice("mode", mode, offered)
    if Border(value) not in (MODES[mode], spec.borders[0]):
        raise InvalidParameter(f"mode: “{mode}” is not border “{value}”.", "Leave one of them out.")
    return MODES[mode]


WIDTH = 92  # columns of a docstring, without the indent of a function's body


def docstring_of(spec: FilterSpec, arguments: Sequence[Argument]) -> str:
    lines = [
        f"Return the result of the filter {spec.name}.",
        "",
        *_wrapped(spec.summary),
        *(("", *_wrapped(spec.explanation.use)) if spec.explanation.use else ()),
        *_section("Parameters", _entries(arguments)),
        *_section("Returns", _returns(spec)),
        *_section("Raises", _RAISES),
        *_section("Examples", _example(spec)),
        *_section("References", _wrapped(spec.source + ".")),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


_RAISES = (
    "AppError",
    "    For every problem that the caller can correct; the message names the argument.",
    "Cancelled",
    "    If `cancel` returned True.",
)


def _returns(spec: FilterSpec) -> Iterator[str]:
    if spec.kind is Kind.VOLUME:
        yield "ndarray, or tuple of ndarray with `components`"
        text = (
            "New arrays of the shape of the volumes, and of their type where it holds the values."
        )
        yield from _wrapped(text, "    ")
    else:
        yield "ndarray"
        yield from _wrapped("A new array of the type of `image`.", "    ")


def _example(spec: FilterSpec) -> Iterator[str]:
    arguments = ["volume" if spec.kind is Kind.VOLUME else "image"]
    for parameter in spec.parameters[:1]:
        others = parameter.variants(parameter.default, 3)
        arguments += [f"{parameter.name}={value!r}" for value in others[-1:]]
    if len(spec.borders) > 1:
        arguments.append(f"border={str(spec.borders[1])!r}")
    yield ">>> import kernelscope as ks"
    yield f">>> result = ks.{spec.id}({', '.join(arguments)})"


def _entries(arguments: Iterable[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield from _heading(argument.heading)
        yield from _wrapped(argument.help, "    ")


def _heading(text: str) -> list[str]:
    """Return the line of an argument; the rest of a long one is indented further."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="        ", break_on_hyphens=False)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return ["", title, "-" * len(title), *lines]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
