"""Plans of launches as plain data: JSON, and arrays in a file of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.rim import with_rim
from kernelscope.backends.trial.protocol import write_record
from kernelscope.base import json_fields
from kernelscope.base.errors import AppError
from kernelscope.engine.request import Request
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch, planned
from kernelscope.schema.levels import Level

_MOST_BYTES = 16 << 20
_PLAIN = [
    each.name
    for each in dataclasses.fields(Launch)
    if each.name not in ("constants", "tables", "hand_over")
]
"""The fields of a launch that are no arrays; a trial hands nothing over."""


@dataclass(frozen=True, eq=False)
class TrialPlan:
    task: CudaTask  # without parameters: the launches have them in their macros and constants
    plan: CudaPlan
    files: tuple[str, ...]
    """For each launch the name of the program's source that has it, or empty for the source that is
    tried."""

    @classmethod
    def of(cls, request: Request, level: Level) -> TrialPlan:
        """Return the plan of the last filter of a request; raise `AppError` if that is none."""
        *before, (spec, given, border) = request.passes()
        if before:
            raise AppError(
                "The filter converts to greyscale first; a trial runs one filter.",
                "Open a grey picture, or filter all channels.",
            )
        source = request.source.planes
        parameters = spec.resolve(source, given)
        shape, dtype, block = source.shape, source.dtype, request.options.block
        task, plan = planned(spec, shape, dtype, parameters, border, level.id, block)
        if any(launch.hand_over for launch in plan.launches):
            raise AppError(
                "At this level the host takes part between launches, which a trial cannot do.",
                "Choose another level; this one can be compiled.",
            )
        plan, names = with_rim(spec, task, plan)
        files = ("" if name == spec.id else name for name in names)
        return cls(dataclasses.replace(task, parameters={}), plan, tuple(files))

    def write(self, folder: Path, name: str) -> None:
        """Write ``NAME.json`` and ``NAME.npz``."""
        task, plan = self.task, self.plan
        data = _PlanData(
            *(task.shape, task.output_shape, str(task.dtype), task.border, task.level),
            *(self.files, dict(plan.scratch)),
        )
        plain = [{key: getattr(launch, key) for key in _PLAIN} for launch in plan.launches]
        write_record(folder / f"{name}.json", data, launches=plain)
        arrays: dict[str, Any] = {}
        for number, launch in enumerate(plan.launches):
            for key, values in launch.constants.items():
                arrays[f"{number}/constant/{key}"] = values
            for place, table in enumerate(launch.tables):
                arrays[f"{number}/table/{place}"] = table
        np.savez(folder / f"{name}.npz", **arrays)

    @classmethod
    def read(cls, folder: Path, name: str) -> TrialPlan:
        """Return the plan that was written under a name; raise `InvalidJson` if it is damaged."""
        content = json_fields.read(folder / f"{name}.json", _MOST_BYTES)
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        data = content.record(_PlanData)
        task = CudaTask(
            data.shape, data.output_shape, np.dtype(data.dtype), {}, data.border, data.level
        )
        launches = tuple(
            each.record(Launch, **_arrays(number, arrays), hand_over=None)
            for number, each in enumerate(content["launches"].elements(len(data.files)))
        )
        return cls(task, CudaPlan(launches, data.scratch), data.files)


@dataclass(frozen=True)
class _PlanData:
    shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: str
    border: Border
    level: str
    files: tuple[str, ...]
    scratch: Mapping[str, Scratch]


def _arrays(number: int, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the constants and the tables of a launch by number."""
    constants = {
        key.split("/", 2)[2]: values
        for key, values in arrays.items()
        if key.startswith(f"{number}/constant/")
    }
    count = sum(key.startswith(f"{number}/table/") for key in arrays)
    return {
        "constants": constants,
        "tables": tuple(arrays[f"{number}/table/{place}"] for place in range(count)),
    }
