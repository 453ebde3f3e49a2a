"""What to measure, as data: a plan, and its expansion to the rows that it asks for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelscope import filters
from kernelscope.bench import peers, rules
from kernelscope.bench.data import SEED, Content, Data, kind_of
from kernelscope.bench.rows import Row
from kernelscope.engine.backend import Backend
from kernelscope.engine.step import check_border
from kernelscope.errors import InvalidParameter
from kernelscope.json_fields import Field
from kernelscope.spec.blocks import Block, read_block, takes_block
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.levels import CPU_LEVELS, GPU_LEVELS
from kernelscope.spec.parameters import MaskParameter, OddParameter
from kernelscope.spec.samples import Kind

CPU, GPU = "cpu", "gpu"
DEVICES = (CPU, GPU)

Parameters = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One filter with each of its parameter sets, on each of the data.

    Attributes
    ----------
    filter : str
    parameters : tuple of mapping
        Those that labels name; valid.
    data : tuple of Data
    border : Border
    fixed : mapping
        What else differs from the defaults, in all of them.
    """

    filter: str
    parameters: tuple[Parameters, ...]
    data: tuple[Data, ...]
    border: Border = Border.REFLECT
    fixed: Parameters = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure, and how.

    Attributes
    ----------
    name : str
        Of the preset, or empty.
    sweeps : tuple of Sweep
    devices : tuple of str
        ``cpu``, ``gpu``.
    levels : tuple of str
        Levels of any device; empty for all.
    peers : bool
        Whether to time libraries too, on the same data.
    libraries : tuple of str
        Which ones; empty for all.
    repeat : int
        Timed runs of each row.
    cold : bool
        Whether caches are emptied before each run, see `rules`.
    longest : float
        Seconds that a run may take before it is timed on a smaller part.
    gpus : tuple of int
        By how many GPUs volumes are filtered, in turn; empty for as many as were chosen.
    blocks : tuple of tuple of int
        Threads of a GPU's blocks in x and y, in turn, at the levels that leave the choice to
        the user; empty for the plan's.
    """

    name: str = ""
    sweeps: tuple[Sweep, ...]
    devices: tuple[str, ...] = DEVICES
    levels: tuple[str, ...] = ()
    peers: bool = False
    repeat: int = rules.REPEAT
    cold: bool = True
    longest: float = rules.LONGEST
    gpus: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    libraries: tuple[str, ...] = ()

    def small(self, side: int = 32) -> Plan:
        """Return a plan of the same rows that takes a moment: for a first look, and tests."""
        sweeps = (
            replace(sweep, data=tuple(dict.fromkeys(each.at_most(side) for each in sweep.data)))
            for sweep in self.sweeps
        )
        return replace(self, sweeps=tuple(sweeps), repeat=1, cold=False)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back, of plain lists, mappings, texts and numbers."""
        return {
            "name": self.name,
            "sweeps": [_sweep_to_json(sweep) for sweep in self.sweeps],
            "devices": list(self.devices),
            "levels": list(self.levels),
            "peers": self.peers,
            "libraries": list(self.libraries),
            "repeat": self.repeat,
            "cold": self.cold,
            "longest": self.longest,
            "gpus": list(self.gpus),
            "blocks": [f"{width}x{height}" for width, height in self.blocks],
        }

    @classmethod
    def from_json(cls, content: Field) -> Plan:
        """Return the plan that `to_json` wrote.

        Raises
        ------
        InvalidJson
            If the content is no plan; the message names the value. (One for something that was
            opened is; but the report does not hold the picture, and its rows cannot run.)
        """
        return cls(
            name=content["name"].text(),
            sweeps=tuple(map(_sweep_from_json, content["sweeps"].elements())),
            devices=tuple(each.one_of(DEVICES) for each in content["devices"].elements()),
            levels=_texts(content, "levels"),
            peers=content["peers"].flag(),
            libraries=_texts(content, "libraries") if "libraries" in content else (),
            repeat=content["repeat"].whole(1, _MOST_REPEATS),
            cold=content["cold"].flag(),
            longest=content["longest"].number(*MEASURABLE),
            gpus=tuple(each.whole(1, MOST_GPUS) for each in _optional(content, "gpus")),
            blocks=tuple(each.from_text(read_block) for each in _optional(content, "blocks")),
        )


MEASURABLE = 1e-12, 1e9
"""Seconds that a run may take: what is outside was changed by accident."""

_MOST_REPEATS = 1_000_000
MOST_GPUS = 1024
_LONGEST_SIDE = 1 << 20
_MOST_CELLS = 1 << 34
"""Bounds of what a plan in a file may ask for: beyond them it was changed by accident."""


def _texts(content: Field, name: str) -> tuple[str, ...]:
    return tuple(each.text() for each in content[name].elements())


def _optional(content: Field, name: str) -> list[Field]:
    """Return the elements of a list that older files lack."""
    return content[name].elements() if name in content else []


def _sweep_to_json(sweep: Sweep) -> dict[str, Any]:
    spec = filters.get(sweep.filter)

    def texts(values: Parameters) -> dict[str, str]:
        return {name: spec.parameter(name).format(value) for name, value in values.items()}

    return {
        "filter": sweep.filter,
        "border": str(sweep.border),
        "parameters": list(map(texts, sweep.parameters)),
        "fixed": texts(sweep.fixed),
        "data": [
            {
                "content": str(data.content),
                "shape": list(data.shape),
                "channels": data.channels,
                "title": data.title,
                "digest": data.digest,
            }
            for data in sweep.data
        ],
    }


def _sweep_from_json(content: Field) -> Sweep:
    spec = content["filter"].from_text(filters.get)
    border = Border(content["border"].one_of([str(border) for border in spec.borders]))
    parameters = tuple(_values(spec, each) for each in content["parameters"].elements())
    fixed = _values(spec, content["fixed"])
    for chosen in parameters:
        content.through(spec.validate, {**chosen, **fixed})
    return Sweep(
        filter=spec.id,
        parameters=parameters,
        fixed=fixed,
        data=tuple(_data_from_json(each, spec.kind) for each in content["data"].elements()),
        border=border,
    )


def _values(spec: FilterSpec, content: Field) -> Parameters:
    """Return the parameters that a report holds as texts."""
    return {
        name: value.from_text(value.through(spec.parameter, name).parse)
        for name, value in content.fields()
    }


def _data_from_json(content: Field, kind: Kind) -> Data:
    shape = shape_from_json(content["shape"], 3 if kind is Kind.VOLUME else 2)
    what = Content(content["content"].one_of([str(each) for each in Content]))
    if what is not Content.GIVEN and (what is Content.HEAD) != (kind is Kind.VOLUME):
        content["content"].refuse(f"{what} is nothing for a filter of {kind}s.")
    channels = content["channels"].whole(1, 4)
    return Data(what, shape, channels, content["title"].text())


def shape_from_json(content: Field, axes: int) -> tuple[int, ...]:
    """Return the sides of a picture (2 axes) or of a volume (3)."""
    shape = tuple(each.whole(1, _LONGEST_SIDE) for each in content.elements(axes))
    if math.prod(shape) > _MOST_CELLS:
        content.refuse("no memory holds as much.")
    return shape


# From the user's choice to a plan --------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Matter:
    """How to time a filter where nobody says more.

    Attributes
    ----------
    variants : tuple of mapping
        Parameters other than the mask size, in turn.
    border : Border
        One that the libraries have too.
    channels : int
    """

    variants: tuple[Parameters, ...] = ({},)
    border: Border = Border.REFLECT
    channels: int = 1


_MATTERS = {
    "greyscale": _Matter(channels=3),
    "laplace": _Matter(
        variants=tuple({"form": form, "negative": "absolute"} for form in ("4", "8", "5x5"))
    ),
    "mask": _Matter(variants=({"divisor": "one"},)),
    # OpenCV's median has no other border.
    "median": _Matter(border=Border.NEAREST),
    # The patches of OpenCV and scikit-image are uniform.
    "nlm": _Matter(variants=({}, {"weights": "uniform"}), border=Border.MIRROR),
    "sobel": _Matter(variants=tuple({"form": form} for form in ("sum", "magnitude", "directions"))),
}
"""A filter that is not mentioned is timed with its defaults."""


def grid(
    names: Iterable[str],
    sizes: Sequence[int],
    masks: Sequence[int],
    data: Data | None = None,
) -> tuple[Sweep, ...]:
    """Return the sweeps over filters, sizes and mask sizes.

    Parameters
    ----------
    names : iterable of str
        Filter ids; none for all filters of the kind of `data`.
    sizes : sequence of int
        Sides of the square pictures (of cubes, for filters of volumes).
    masks : sequence of int
        Mask sizes, for the filters that have one; those that a filter does not take are left
        out.
    data : Data, optional
        What to filter instead of squares of these sizes, for instance the open picture.

    Raises
    ------
    InvalidParameter
        For a filter or a mask size that does not exist, or a filter that is not for `data`.
    """
    chosen = [filters.get(name) for name in names]
    if data is not None:
        kind = kind_of(data)
        chosen = chosen or list(filters.discover(kind).values())
        for spec in chosen:
            if spec.kind is not kind:
                raise InvalidParameter(f"{spec.name} is for {spec.kind}s, this is a {kind}.")
    sweeps = []
    for spec in chosen or filters.discover().values():
        matter = _MATTERS.get(spec.id, _Matter())
        wanted = (Data.square(spec, side, matter.channels) for side in sizes)
        parameters = tuple(cases(spec, masks))
        if parameters:
            sweeps.append(
                Sweep(
                    filter=spec.id,
                    parameters=parameters,
                    data=tuple(wanted) if data is None else (data,),
                    border=matter.border,
                )
            )
    return tuple(sweeps)


def cases(spec: FilterSpec, masks: Sequence[int]) -> Iterator[Parameters]:
    """Yield the parameters to time a filter with: each variant at each mask size it takes."""
    sized: list[dict[str, Any]] = [{}]
    for parameter in spec.parameters:
        match parameter:
            case OddParameter(minimum=least, maximum=most):
                sized = [{parameter.name: side} for side in masks if least <= side <= most]
            case MaskParameter(minimum=least, maximum=most):
                sized = [{parameter.name: weights(side)} for side in masks if least <= side <= most]
    for variant, size in itertools.product(_MATTERS.get(spec.id, _Matter()).variants, sized):
        values = {**size, **variant}
        spec.validate(values)
        yield values


def weights(side: int) -> tuple[tuple[int, ...], ...]:
    """Return a mask of whole weights with no structure that a filter could make use of."""
    table = np.random.default_rng(SEED).integers(-9, 10, (side, side))
    return tuple(tuple(int(weight) for weight in row) for row in table)


def label_of(spec: FilterSpec, chosen: Parameters) -> str:
    """Return the filter and the parameters that were chosen, for tables."""
    parts = [spec.name]
    for name, value in chosen.items():
        parameter = spec.parameter(name)
        if isinstance(parameter, MaskParameter):
            parts.append(f"{len(value)}×{len(value)}")
        else:
            parts.append(f"{parameter.label.lower()} {parameter.format(value)}")
    return ", ".join(parts)


# From a plan to its rows -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row to be: a filter, its data, and what runs it.

    Attributes
    ----------
    label : str
        The filter and those parameters that tell it from others, for tables.
    parameters : mapping
        Those that differ from the defaults.
    level : str
        A level of the device, or a library.
    gpus : int
        How many GPUs share the work.
    reason : str
        Why it cannot run; empty if it can, as far as is known.
    block : tuple of int or None
        Threads of a GPU's blocks; None for the plan's.
    """

    label: str
    filter: str
    parameters: Parameters
    border: Border
    data: Data
    device: str
    level: str
    library: bool = False
    gpus: int = 1
    reason: str = ""
    block: Block | None = None

    @property
    def spec(self) -> FilterSpec:
        return filters.get(self.filter)

    def row(self, **measured: Any) -> Row:
        """Return the row of this case; without `measured`, one without times."""
        spec = self.spec
        values = spec.validate(self.parameters)
        known: dict[str, Any] = {"shape": self.data.shape, "reason": self.reason}
        return Row(
            label=self.label,
            filter=spec.id,
            parameters={name: spec.parameter(name).format(value) for name, value in values.items()},
            border=str(self.border),
            content=str(self.data.content),
            channels=self.data.channels,
            asked=self.data.shape,
            device=self.device,
            level=self.level,
            library=self.library,
            gpus=self.gpus,
            block=self.block,
            **(known | measured),
        )


@dataclass(frozen=True)
class Group:
    """The cases of one filter on the same data and device, which take turns."""

    cases: tuple[Case, ...]

    @property
    def runnable(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if not case.reason)


def expand(plan: Plan, backends: Mapping[str, Backend]) -> tuple[Group, ...]:
    """Return what a plan asks for, those rows included that cannot run here.

    Raises
    ------
    AppError
        For a filter, a parameter, a device or a level that does not exist: such a plan is
        wrong on every machine.
    """
    for device in plan.devices:
        if device not in DEVICES:
            raise InvalidParameter(f"There is no device “{device}”.", "Use cpu or gpu.")
    known = {*filters.cpu_levels(), *filters.gpu_levels()}
    for level in plan.levels:
        if level not in known:
            raise InvalidParameter(
                f"There is no level “{level}”.", f"Use one of {', '.join(sorted(known))}."
            )
    for library in plan.libraries:
        if library not in peers.names():
            raise InvalidParameter(
                f"There is no library “{library}”.", f"Use one of {', '.join(peers.names())}."
            )
    groups = []
    for sweep in plan.sweeps:
        check_border(filters.get(sweep.filter), sweep.border)
        for base, device in itertools.product(subjects(sweep), plan.devices):
            here = replace(base, device=device)
            cases = tuple(_cases_of(here, plan, backends.get(device)))
            if cases:
                groups.append(Group(cases))
    return tuple(groups)


def subjects(sweep: Sweep) -> Iterator[Case]:
    """Yield a case for each parameter set on each of the data, for no device yet."""
    spec = filters.get(sweep.filter)
    for chosen, data in itertools.product(sweep.parameters, sweep.data):
        values = {**chosen, **sweep.fixed}
        spec.validate(values)
        yield Case(
            label=label_of(spec, chosen),
            filter=spec.id,
            parameters=values,
            border=sweep.border,
            data=data,
            device="",
            level="",
        )


def _cases_of(base: Case, plan: Plan, backend: Backend | None) -> Iterator[Case]:
    """Yield the cases of one device."""
    spec = base.spec
    missing = ""
    if backend is None:
        missing = f"This program has no {base.device.upper()} backend."
    elif not backend.availability().available:
        missing = backend.availability().summary
    usual = CPU_LEVELS if base.device == CPU else GPU_LEVELS
    offered = [
        level.id
        for level in (
            backend.levels(spec)
            if backend is not None
            else (spec.cpu_levels if base.device == CPU else spec.gpu_levels)
        )
    ]
    # A level of another filter's own is nothing that this one lacks.
    lacking = [level.id for level in usual if level.id not in offered and level.id in plan.levels]
    chosen = 1 if backend is None else backend.availability().chosen
    counts = (plan.gpus or (chosen,)) if base.device == GPU and spec.kind is Kind.VOLUME else (1,)
    for gpus, level in itertools.product(counts, offered):
        if not plan.levels or level in plan.levels:
            few = f"Too few GPUs were chosen: {chosen} of {gpus}." if gpus > chosen else ""
            chooses = base.device == GPU and takes_block(spec, level)
            for block in (plan.blocks if chooses else ()) or (None,):
                yield replace(base, level=level, gpus=gpus, block=block, reason=missing or few)
    for level in lacking:
        gap = spec.gpu_gaps.get(level) or f"{spec.name} has no level {level}."
        yield replace(base, level=level, reason=gap)
    if plan.peers:
        for library in peers.libraries(base.device, spec.id):
            if not plan.libraries or library.name in plan.libraries:
                reason = missing or library.missing()
                yield replace(base, level=library.name, library=True, reason=reason)
