"""The exercises: texts and sources in ``resources/exercises``, their cases, and the grade of a try.

A kernel is graded by how many cases are right, and by how many cells it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.trial.parent import TrialOutcome
from kernelscope.backends.trial.protocol import TrialPlan, Work
from kernelscope.base import json_fields
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, Launch
from kernelscope.schema.levels import GLOBAL

FLOAT_TOLERANCE = 1e-5
"""Of floats, as a part of the range of the reference: sums in another order differ by less."""


@dataclass(frozen=True)
class WrongPixel:
    x: int
    y: int
    channel: int
    expected: float
    got: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """The pixels that differ; a pixel is wrong if any of its channels is."""

    wrong: NDArray[np.bool_]
    output: NDArray[Any]
    reference: NDArray[Any]

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.wrong))

    def pixel(self, x: int, y: int) -> WrongPixel:
        got, expected = (each[y, x].astype(np.float64) for each in (self.output, self.reference))
        away = np.abs(got - expected)
        channel = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
        return WrongPixel(x, y, channel, float(expected[channel]), float(got[channel]))

    def step(self, x: int, y: int, way: int) -> tuple[int, int] | None:
        """Return the next wrong pixel after (x, y), or before it (`way` -1), round and round."""
        places = np.flatnonzero(self.wrong)
        if not places.size:
            return None
        width = self.wrong.shape[1]
        here = y * width + x
        if way > 0:
            found = places[np.searchsorted(places, here, "right") % places.size]
        else:
            found = places[np.searchsorted(places, here, "left") - 1]
        return int(found % width), int(found // width)

    def nearest(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the wrong pixel that is nearest to a point."""
        rows, columns = np.nonzero(self.wrong)
        if not rows.size:
            return None
        best = int(np.argmin((rows - y) ** 2 + (columns - x) ** 2))
        return int(columns[best]), int(rows[best])


def compare(output: NDArray[Any], reference: NDArray[Any], tolerance: int = 0) -> Comparison:
    """Compare results of the same shape and type: integers by value, floats within a part of all.

    Integers may differ by `tolerance` levels.
    """
    if output.dtype.kind != "f":
        apart = np.abs(output.astype(np.int64) - reference)
        return Comparison((apart > tolerance).any(axis=-1), output, reference)
    finite = reference[np.isfinite(reference)]
    size = float(np.abs(finite).max()) if finite.size else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(output.astype(np.float64) - reference)
    same = (away <= FLOAT_TOLERANCE * size) | (output == reference)
    same |= np.isnan(output) & np.isnan(reference)
    return Comparison(~same.all(axis=-1), output, reference)


FOLDER = RESOURCES / "exercises"

SHAPES = ((1, 1), (1, 7), (7, 1), (3, 131), (17, 33), (31, 64), (64, 256))
"""Of the pictures: less than a block, not a multiple of one, and whole blocks for counting."""

_BYTES = 1 << 16
_Side = Annotated[int, (1, 1024)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Exercise:
    id: str  # name of its folder
    text: str  # Markdown
    # Sources; the starter misses the goal.
    starter: str
    solution: str
    # The rest is in the file of the exercise. Of its launch, see `Launch`:
    kernel: str
    block: tuple[_Side, _Side]
    tile: tuple[_Side, _Side]
    shared_bytes: Annotated[int, (0, 48 << 10)]
    texture: bool = False
    constants: Mapping[str, tuple[Annotated[int, (1 - (1 << 31), (1 << 31) - 1)], ...]] = field(
        default_factory=dict
    )
    tables: tuple[tuple[Annotated[int, (0, 255)], ...], ...] = ()
    title: str
    filter_id: str  # the filter of the program that computes the same
    level: str  # id of the level that it is about
    parameters: Mapping[str, Any]
    hints: tuple[str, ...]  # each says more than the one before
    goal: Annotated[float, (0, 1e6)] | None = None
    """Most cells that may be read from global memory for each pixel."""
    tolerance: Annotated[int, (0, 1)] = 0
    """By how many levels a pixel may differ, where floats are rounded."""

    @cached_property
    def launch(self) -> Launch:
        return Launch(
            kernel=self.kernel,
            defines={},
            block=self.block,
            tile=self.tile,
            bytes_per_sample=2.0,
            operations_per_sample=1.0,
            tables=tuple(np.array(each, np.uint8) for each in self.tables),
            shared_bytes=self.shared_bytes,
            texture=self.texture,
            constants={name: np.array(each, np.int32) for name, each in self.constants.items()},
        )

    @property
    def file(self) -> str:
        """Name of the source in messages of the compiler."""
        return f"{self.kernel}.cu"

    def works(self) -> list[Work]:
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


@cache
def exercises() -> tuple[Exercise, ...]:
    """Return all exercises in their order; raise `InvalidJson` if a file of them is damaged."""
    return tuple(read_exercise(path.parent) for path in sorted(FOLDER.glob("*/exercise.json")))


_FILES = {"text": "text.md", "starter": "starter.cu", "solution": "solution.cu"}


def read_exercise(folder: Path) -> Exercise:
    """Read the exercise in a folder; raise `AppError` if its description is damaged."""
    content = json_fields.read(folder / "exercise.json", _BYTES)
    texts = {name: (folder / file).read_text(encoding="utf-8") for name, file in _FILES.items()}
    content.only([each.name for each in fields(Exercise) if each.name not in {"id", *texts}])
    return content.record(Exercise, id=folder.name, **texts)


EMULATED = "the emulated GPU"


@dataclass(frozen=True, eq=False)
class Grade:
    """The comparison of a kernel with the program's own in each case."""

    comparisons: tuple[Comparison, ...]
    loads: float | None = None
    """Cells read from global memory for each pixel of the largest case, if they were counted."""
    goal: float | None = None  # most of those that are allowed
    titles: tuple[str, ...] = ()  # of the cases; there may be none, or empty ones
    memory: str = ""  # the fault of its accesses to memory, in a sentence; empty if none was found
    device: str = ""  # the card that it ran on; empty for the emulated GPU

    @property
    def right(self) -> int:
        """In how many cases every pixel is right."""
        return sum(not each.count for each in self.comparisons)

    @property
    def worst(self) -> Comparison:
        """The case to show: the first one with a wrong pixel, or the first one of all.

        Cases without titles differ in size alone: of those, the largest one with a wrong pixel.
        """
        wrong = [each for each in self.comparisons if each.count]
        if not any(self.titles):
            wrong.sort(key=lambda each: each.wrong.size, reverse=True)
        return wrong[0] if wrong else self.comparisons[0]

    @property
    def worst_case(self) -> int:
        """The number of that case, from 0 on."""
        return next(n for n, each in enumerate(self.comparisons) if each is self.worst)

    @property
    def reached(self) -> bool:
        """Whether it certainly reads no more than the goal allows."""
        return self.goal is None or (self.loads is not None and self.loads <= self.goal)

    @property
    def passed(self) -> bool:
        """Whether all is right, the memory is used well, and the goal is reached."""
        return self.right == len(self.comparisons) and self.reached and not self.memory

    def __str__(self) -> str:
        return f"{self._results()} {self.memory}".rstrip()

    def _results(self) -> str:
        worst, cases = self.worst, len(self.comparisons)
        height, width = worst.wrong.shape
        if self.right < cases:
            where = f"{worst.count:,} of {width} × {height} pixels"
            first = f"{where} differ from the program's own kernel"
            if cases == 1:
                return f"Wrong: {first}, on {self.device or EMULATED}."
            pairs = zip(self.titles, self.comparisons, strict=True) if self.titles else ()
            title = next((title for title, each in pairs if each.count), "")
            if title:
                count = f"{worst.count:,} of {worst.wrong.size:,} pixels"
                return f"Right in {self.right} of {cases} cases. First wrong: {title}, {count}."
            return f"Right on {self.right} of {cases} pictures. Of the largest wrong one, {first}."
        if cases == 1 and self.goal is None:
            own = f"the program's own kernel, on {self.device or EMULATED}"
            return f"Right: all {width} × {height} pixels equal those of {own}."
        if any(self.titles) and self.goal is None:
            return f"{'R' if self.memory else 'Passed: r'}ight in {cases} of {cases} cases."
        text = f"Right on all {cases} pictures."
        if self.goal is None or self.memory:
            return text
        if self.loads is None:
            return f"{text} Its reads from global memory were not counted."
        reads = f"{self.loads:.3g} cells a pixel from global memory"
        if self.reached:
            return f"Passed. {text} It reads {reads}; the goal is at most {self.goal:.3g}."
        return f"{text} But it reads {reads}; the goal is at most {self.goal:.3g}."


def grade_of(
    outcome: TrialOutcome,
    goal: float | None = None,
    titles: tuple[str, ...] = (),
    memory: str = "",
    tolerance: int = 0,
    loads: Sequence[int] = (),
) -> Grade | None:
    """Return the grade of a trial, in which pixels may differ by `tolerance` levels.

    - `loads`: for each case the cells read from global memory; none if they were not counted.

    None if nothing ran to its end.
    """
    if not outcome.results:
        return None
    comparisons = tuple(compare(*result, tolerance) for result in outcome.results)
    sizes = [each.wrong.size for each in comparisons]
    largest = sizes.index(max(sizes))
    count = loads[largest] / sizes[largest] if len(loads) == len(sizes) else None
    return Grade(comparisons, count, goal, titles, memory, outcome.report.device)
