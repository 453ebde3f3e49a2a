"""The exercises: texts and sources in ``resources/exercises``, and the cases they are graded by."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kernelscope.backends.trial.parent import Work
from kernelscope.backends.trial.plan import TrialPlan
from kernelscope.base import json_fields
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, Launch
from kernelscope.schema.levels import GLOBAL

FOLDER = RESOURCES / "exercises"

SHAPES = ((1, 1), (1, 7), (7, 1), (3, 131), (17, 33), (31, 64), (64, 256))
"""Of the pictures: less than a block, not a multiple of one, and whole blocks for counting."""

_BYTES = 1 << 16
_Side = Annotated[int, (1, 1024)]


@dataclass(frozen=True, eq=False)
class Exercise:
    id: str
    """Name of its folder."""
    # The text is Markdown.
    title: str
    text: str
    # Sources; the starter misses the goal.
    starter: str
    solution: str
    hints: tuple[str, ...]
    """Each says more than the one before."""
    filter_id: str
    """The filter of the program that computes the same."""
    parameters: Mapping[str, Any]
    launch: Launch
    goal: float | None
    """Most cells that may be read from global memory for each pixel."""
    tolerance: int = 0
    """By how many levels a pixel may differ, where floats are rounded."""

    @property
    def file(self) -> str:
        """Name of the source in messages of the compiler."""
        return f"{self.launch.kernel}.cu"

    def works(self) -> list[Work]:
        """Return the cases that it is graded by."""
        return [self._work(shape) for shape in SHAPES]

    def _work(self, shape: tuple[int, int]) -> Work:
        random = np.random.default_rng(shape)
        pixels = random.integers(0, 256, shape, np.uint8)
        picture = Image.from_array(pixels)
        request = Request.create(
            picture, self.filter_id, self.parameters, border=Border.NEAREST, level=GLOBAL.id
        )
        reference = TrialPlan.of(request, GLOBAL)
        files = tuple(file or self.filter_id for file in reference.files)
        own = replace(reference, plan=CudaPlan((self.launch,)), files=("",))
        return Work(picture.planes, own, replace(reference, files=files))


@functools.cache
def exercises() -> tuple[Exercise, ...]:
    """Return all exercises in their order; raise `InvalidJson` if a file of them is damaged."""
    return tuple(read_exercise(path.parent) for path in sorted(FOLDER.glob("*/exercise.json")))


@dataclass(frozen=True, kw_only=True)
class _Description:
    """The file of an exercise; see `Exercise` and `Launch`."""

    title: str
    filter: str
    parameters: Mapping[str, Any]
    kernel: str
    block: tuple[_Side, _Side]
    tile: tuple[_Side, _Side]
    shared_bytes: Annotated[int, (0, 48 << 10)]
    hints: tuple[str, ...]
    goal: Annotated[float, (0, 1e6)] | None = None
    tolerance: Annotated[int, (0, 1)] = 0
    texture: bool = False
    constants: Mapping[str, tuple[Annotated[int, (1 - (1 << 31), (1 << 31) - 1)], ...]] = field(
        default_factory=dict
    )
    tables: tuple[tuple[Annotated[int, (0, 255)], ...], ...] = ()


def read_exercise(folder: Path) -> Exercise:
    """Read the exercise in a folder; raise `AppError` if its description is damaged."""
    content = json_fields.read(folder / "exercise.json", _BYTES)
    content.only([each.name for each in fields(_Description)])
    described = content.record(_Description)
    launch = Launch(
        kernel=described.kernel,
        defines={},
        block=described.block,
        tile=described.tile,
        bytes_per_sample=2.0,
        operations_per_sample=1.0,
        tables=tuple(np.array(each, np.uint8) for each in described.tables),
        shared_bytes=described.shared_bytes,
        texture=described.texture,
        constants={name: np.array(each, np.int32) for name, each in described.constants.items()},
    )
    return Exercise(
        folder.name,
        described.title,
        (folder / "text.md").read_text(encoding="utf-8"),
        (folder / "starter.cu").read_text(encoding="utf-8"),
        (folder / "solution.cu").read_text(encoding="utf-8"),
        described.hints,
        described.filter,
        described.parameters,
        launch,
        described.goal,
        described.tolerance,
    )
