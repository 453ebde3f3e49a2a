"""A plan: the measurements to make, as data, and its JSON form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from kernelscope import filters
from kernelscope.base.json_fields import Field
from kernelscope.bench import rules
from kernelscope.bench.data import Content, Data
from kernelscope.schema.blocks import Block, read_block
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind

CPU, GPU = Device.CPU.value, Device.GPU.value
DEVICES = (CPU, GPU)

Parameters = Mapping[str, Any]

MEASURABLE = 1e-12, 1e9
"""Range of the longest run in seconds; a value outside it is taken for a damaged file."""

_MOST_CELLS = 1 << 34  # limits of a plan in a file; a value beyond them is taken for a damaged file
_Side = Annotated[int, (1, 1 << 20)]
GpuCount = Annotated[int, (1, 1024)]
KnownDevice = Annotated[str, DEVICES]
_Block = Annotated[Block, lambda field: field.from_text(read_block)]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    filter: str
    parameters: tuple[Parameters, ...]  # the parameters that appear in labels; valid
    data: tuple[Data, ...]
    border: Border = Border.REFLECT
    fixed: Parameters = field(default_factory=dict)
    """Further parameters that differ from the defaults, common to all."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    name: str = ""  # name of the preset, or empty
    sweeps: tuple[Sweep, ...]
    devices: tuple[KnownDevice, ...] = DEVICES
    levels: tuple[str, ...] = ()  # levels of any device; empty for all
    peers: bool = False  # whether to time libraries too, on the same data
    repeat: Annotated[int, (1, 1_000_000)] = rules.REPEAT  # timed runs of each row
    cold: bool = True  # whether caches are emptied before each run, see `rules`
    longest: Annotated[float, MEASURABLE] = rules.LONGEST
    """Longest run in seconds; a slower one is timed on a smaller part."""
    gpus: tuple[GpuCount, ...] = ()
    """Numbers of GPUs that filter volumes, in turn; empty for as many as were chosen."""
    blocks: tuple[_Block, ...] = ()
    """Threads of a GPU's blocks in x and y, in turn, at the levels that let the user choose the
    block; empty for the plan's."""
    libraries: tuple[str, ...] = ()  # the libraries; empty for all

    def small(self, side: int = 32) -> Plan:
        """Return a plan with the same rows on small data, for a first look and for tests."""
        sweeps = (
            replace(sweep, data=tuple(dict.fromkeys(each.at_most(side) for each in sweep.data)))
            for sweep in self.sweeps
        )
        return replace(self, sweeps=tuple(sweeps), repeat=1, cold=False)

    def to_json(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            **{name: list(v) if isinstance(v, tuple) else v for name, v in values.items()},
            "sweeps": [_sweep_to_json(sweep) for sweep in self.sweeps],
            "blocks": [f"{width}x{height}" for width, height in self.blocks],
        }

    @classmethod
    def from_json(cls, content: Field) -> Plan:
        """Return the plan that `to_json` wrote.

        (A plan for an opened source is valid; but the report does not hold the source, so its rows
        cannot run.)
        """
        return content.record(
            cls, sweeps=tuple(map(_sweep_from_json, content["sweeps"].elements()))
        )


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
    """Return the parameters that a report stores as texts."""
    return {
        name: value.from_text(value.through(spec.parameter, name).parse)
        for name, value in content.fields()
    }


def _data_from_json(content: Field, kind: Kind) -> Data:
    data = content.record(Data, shape=shape_from_json(content["shape"], kind), given=None)
    what = data.content
    if what is not Content.GIVEN and (what is Content.HEAD) != (kind is Kind.VOLUME):
        content["content"].refuse(f"{what} is nothing for a filter of {kind}s.")
    return data


def shape_from_json(content: Field, kind: Kind) -> tuple[int, ...]:
    """Return the sides of a picture or of a volume."""
    volume, picture = tuple[_Side, _Side, _Side], tuple[_Side, _Side]
    shape: tuple[int, ...] = content.typed(volume if kind is Kind.VOLUME else picture)
    if math.prod(shape) > _MOST_CELLS:
        content.refuse("no memory holds as much.")
    return shape
