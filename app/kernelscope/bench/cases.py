"""Expand a plan into its rows: one case each, including those that cannot run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelscope import filters
from kernelscope.base.errors import UnknownName
from kernelscope.bench import peers
from kernelscope.bench.data import Data
from kernelscope.bench.plan import DEVICES, GPU, Parameters, Plan, Sweep
from kernelscope.bench.rows import Row
from kernelscope.engine.backend import Backend
from kernelscope.engine.step import check_border
from kernelscope.schema.blocks import Block, takes_block
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import USUAL_LEVELS
from kernelscope.schema.samples import Kind


@dataclass(frozen=True, kw_only=True)
class Case:
    label: str  # the filter and the parameters that distinguish it from others, for tables
    filter: str
    parameters: Parameters  # those that differ from the defaults
    border: Border
    data: Data
    device: str
    level: str  # a level of the device, or a library
    library: bool = False
    gpus: int = 1  # how many GPUs share the work
    reason: str = ""  # why it cannot run; empty if it can, as far as is known
    block: Block | None = None  # threads of a GPU's blocks; None for the plan's

    @property
    def spec(self) -> FilterSpec:
        return filters.get(self.filter)

    def row(self, **measured: Any) -> Row:
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
    cases: tuple[Case, ...]

    @property
    def runnable(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if not case.reason)


def expand(plan: Plan, backends: Mapping[str, Backend]) -> tuple[Group, ...]:
    """Return the cases of a plan, including those that cannot run here."""
    for device in plan.devices:
        if device not in DEVICES:
            raise UnknownName(f"There is no device “{device}”.", "Use cpu or gpu.")
    known = {level for device in DEVICES for level in filters.levels(device)}
    for level in plan.levels:
        if level not in known:
            raise UnknownName(
                f"There is no level “{level}”.", f"Use one of {', '.join(sorted(known))}."
            )
    for library in plan.libraries:
        if library not in peers.names():
            raise UnknownName(
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
    spec = base.spec
    missing = ""
    if backend is None:
        missing = f"This program has no {base.device.upper()} backend."
    elif not backend.availability().available:
        missing = backend.availability().summary
    usual = USUAL_LEVELS[base.device]
    offered = [
        level.id
        for level in (spec.levels(base.device) if backend is None else backend.levels(spec))
    ]
    # A filter does not lack a level that only another filter has.
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
        gap = spec.gaps(base.device).get(level) or f"{spec.name} has no level {level}."
        yield replace(base, level=level, reason=gap)
    if plan.peers:
        for library in peers.libraries(base.device, spec.id):
            if not plan.libraries or library.name in plan.libraries:
                reason = missing or library.missing()
                yield replace(base, level=library.name, library=True, reason=reason)


def label_of(spec: FilterSpec, chosen: Parameters) -> str:
    parts = (spec.parameter(name).brief(value) for name, value in chosen.items())
    return ", ".join([spec.name, *parts])
