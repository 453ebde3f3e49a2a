"""Plans of launches as plain data: JSON, and arrays in a file of their own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.rim import with_rim
from kernelscope.base import json_fields
from kernelscope.base.errors import AppError
from kernelscope.engine.request import Request
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch, planned
from kernelscope.schema.levels import Level

_MOST = 1 << 40
_MOST_BYTES = 16 << 20
_PLAIN = ("kernel", "bytes_per_sample", "operations_per_sample", "shared_bytes", "texture",
          "steps", "steps_at_once", "layers", "line", "aligned", "mapped")  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrialPlan:
    task: CudaTask
    """Without parameters: the launches have them in their macros and constants."""
    plan: CudaPlan
    files: tuple[str, ...]
    """For each launch the name of the program's source that has it, or empty for the source that is
    tried."""

    @classmethod
    def of(cls, request: Request, level: Level) -> TrialPlan:
        """Return the plan of the last filter of a request; raise `AppError` if none can be tried."""
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
        task = self.task
        content = {
            "shape": task.shape,
            "output_shape": task.output_shape,
            "dtype": str(task.dtype),
            "border": str(task.border),
            "level": task.level,
            "files": self.files,
            "scratch": {key: dataclasses.asdict(each) for key, each in self.plan.scratch.items()},
            "launches": [_launch_data(launch) for launch in self.plan.launches],
        }
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        arrays: dict[str, Any] = {}
        for number, launch in enumerate(self.plan.launches):
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
        task = CudaTask(
            _sizes(content["shape"]),
            _sizes(content["output_shape"]),
            np.dtype(content["dtype"].one_of(("uint8", "uint16", "float32"))),
            {},
            Border(content["border"].one_of([each.value for each in Border])),
            content["level"].text(),
        )
        launches = tuple(
            _launch(each, number, arrays)
            for number, each in enumerate(content["launches"].elements())
        )
        scratch = {
            key: Scratch(
                each["row_bytes"].whole(0, _MOST),
                each["more_bytes"].whole(0, _MOST),
                each["whole"].flag(),
                None if each["margin"].value is None else each["margin"].whole(0, _MOST),
            )
            for key, each in content["scratch"].fields()
        }
        files = tuple(each.text() for each in content["files"].elements(len(launches)))
        return cls(task, CudaPlan(launches, scratch), files)


def _launch_data(launch: Launch) -> dict[str, Any]:
    return {
        **{name: getattr(launch, name) for name in _PLAIN},
        "defines": dict(launch.defines),
        "block": launch.block,
        "tile": launch.tile,
        "texture_of": launch.texture_of,
        "scratch": launch.scratch,
    }


def _launch(content: json_fields.Field, number: int, arrays: Mapping[str, NDArray[Any]]) -> Launch:
    constants = {
        key.split("/", 2)[2]: values
        for key, values in arrays.items()
        if key.startswith(f"{number}/constant/")
    }
    count = sum(key.startswith(f"{number}/table/") for key in arrays)
    texture_of = content["texture_of"]
    at_once = content["steps_at_once"]
    return Launch(
        kernel=content["kernel"].text(),
        defines={name: each.text() for name, each in content["defines"].fields()},
        block=_sizes(content["block"]),
        bytes_per_sample=content["bytes_per_sample"].number(0, _MOST),
        operations_per_sample=content["operations_per_sample"].number(0, _MOST),
        tile=None if content["tile"].value is None else _sizes(content["tile"]),
        constants=constants,
        tables=tuple(arrays[f"{number}/table/{place}"] for place in range(count)),
        shared_bytes=content["shared_bytes"].whole(0, _MOST),
        texture=content["texture"].flag(),
        texture_of=None if texture_of.value is None else _named_size(texture_of),
        scratch=tuple(each.text() for each in content["scratch"].elements()),
        steps=content["steps"].whole(0, _MOST),
        steps_at_once=None if at_once.value is None else at_once.whole(1, _MOST),
        layers=content["layers"].whole(1, _MOST),
        line=content["line"].whole(0, _MOST),
        aligned=content["aligned"].flag(),
        mapped=content["mapped"].flag(),
    )


def _sizes(content: json_fields.Field) -> tuple[int, ...]:
    return tuple(each.whole(1, _MOST) for each in content.elements())


def _named_size(content: json_fields.Field) -> tuple[str, int]:
    name, size = content.elements(2)
    return name.text(), size.whole(1, _MOST)
