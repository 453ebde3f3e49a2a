"""Laplace filter: the second derivative, large at edges of every direction.

The sum of the differences between the neighbours and the pixel, without a divisor; with form *4*:

    0  1  0       10 10 10
    1 -4  1       10 50 10    becomes 4 * 10 - 4 * 50 = -160, of which “absolute” leaves 160
    0  1  0       10 10 10

Source: Korčuška 2013, section 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Record, Voxels, kernel
from kernelscope.filters.shared import correlation_bytes, cubes, uncompiled
from kernelscope.filters.shared.correlation import (
    NEGATIVE,
    Divisor,
    Finish,
    mask_array,
    one_part,
    settle,
    unit_of,
)
from kernelscope.filters.shared.correlation_cuda import correlation_pays_from, cuda_correlation
from kernelscope.filters.shared.cubes import (
    AVERAGES,
    GAPS_IN_3D,
    blocks,
    cells_around,
    cube_launch,
    instead,
    put,
    summed,
)
from kernelscope.schema.explanation import EDGE, Cells, Example, Explanation, number, weighted
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch, by_size, quick_level
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import Choice, ChoiceParameter, Mask

MASKS: Mapping[str, Mask] = {
    "4": ((0, 1, 0), (1, -4, 1), (0, 1, 0)),
    "8": ((1, 1, 1), (1, -8, 1), (1, 1, 1)),
    "5x5": (
        (0, 0, 1, 0, 0),
        (0, 1, 2, 1, 0),
        (1, 2, -16, 2, 1),
        (0, 1, 2, 1, 0),
        (0, 0, 1, 0, 0),
    ),
}
"""The masks by form. All have a negative centre: the sum of the derivatives, not its opposite."""


def radius(parameters: Mapping[str, Any]) -> int:
    return len(MASKS[parameters["form"]]) // 2


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    weights = mask_array(MASKS[task.parameters["form"]])
    divisor = Divisor.one(len(weights))
    return correlation_bytes.plan(task, weights, divisor, task.parameters["negative"])


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    form, negative = task.parameters["form"], task.parameters["negative"]
    weights = MASKS[form]
    defines = {"FORM": int(form[0])} if task.level == TUNED.id else {}
    launch = cuda_correlation(
        task,
        "laplace",
        weights,
        one_part(len(weights)),
        negative,
        packed=True,
        **defines,
    )
    level = quick_level(task, len(weights) // 2, CONSTANT)
    least = correlation_pays_from(task, launch, len(weights))
    return by_size(task, launch, plan_cuda, level, least)


_RADII = (1, 1, 1)

_ROW = np.ones(3)


def cube_of(form: str) -> Any:
    """Return the mask of a form in three dimensions: of the 6 or of the 26 neighbours."""
    cube = np.ones((3, 3, 3), np.int64)
    if form == "4":
        steps = np.abs(np.indices(cube.shape) - 1).sum(axis=0)
        cube[steps > 1] = 0
    cube[1, 1, 1] -= cube.sum()
    return cube


@kernel
def laplace_faces(
    source: Voxels,
    output: Voxels,
    places: Record,
    radii: Record,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """The 6 neighbours, a row at a time; `start` and `stop` are units of `cubes.units`."""
    tall = output.shape[1]
    blocks = -(-tall // cubes.ROWS)
    own = np.empty(places.x.size)
    others = np.empty(places.x.size)
    none, three = np.zeros(3), np.ones(3)
    none[1] = 1
    three[1] = -6
    for unit in range(start, stop):
        z, top = unit // blocks, unit % blocks * cubes.ROWS
        for y in range(top, min(top + cubes.ROWS, tall)):
            cubes.sum_slices(source, three, places, z, y + 1, others)
            for t in (y, y + 2):
                cubes.sum_slices(source, none, places, z, t, own)
                cubes.add_scaled(own, 1.0, others)
            cubes.sum_slices(source, none, places, z, y + 1, own)
            for x in range(output.shape[2]):
                output[z, y, x, 0] = settle(others[x + 1] + (own[x] + own[x + 2]), finish)
            cubes.keep_row(source, output, places, radii, z, y)


def _plan_cubes(task: CpuTask) -> Sequence[CpuPass]:
    form, negative = task.parameters["form"], task.parameters["negative"]
    places = cubes.Places.of(task, _RADII)
    finish = cubes.finish_of(task, negative)
    both = (task.source, task.output)
    ones = tuple(np.ones(side) for side in task.output.shape[:3])
    if task.level == SERIAL.id:
        cube = cube_of(form).astype(np.float64).reshape(-1)
        serial = (*both, cube, ones, places, _RADII, finish)
        return [CpuPass(cubes.weigh_cubes_serial, serial, task.output.shape[0])]
    if form == "4":
        return [CpuPass(laplace_faces, (*both, places, _RADII, finish), cubes.units(task))]
    parallel = (*both, (_ROW,) * 3, ones, places, _RADII, finish, -27.0)
    return [CpuPass(cubes.weigh_cubes_parallel, parallel, cubes.units(task))]


def _faces(
    source: Voxels,
    output: Voxels,
    places: cubes.Places,
    radii: Record,
    finish: Finish,
    start: Index,
    stop: Index,
) -> None:
    """As `laplace_faces`, by NumPy."""
    for block in blocks(output, start, stop):
        cells = cells_around(source, places, radii, block)
        own = cells[1]
        columns = summed(cells, (1, -6, 1), 0)[0, 1:-1] + own[:-2] + own[2:]
        total = columns[:, 1:-1] + (own[1:-1, :-2] + own[1:-1, 2:])
        put(output, block, uncompiled.settled(total, finish), cells, places, radii)


_FORMS = {**AVERAGES, laplace_faces: _faces}


def _plan_cubes_cuda(task: CudaTask) -> Launch:
    form, negative = task.parameters["form"], task.parameters["negative"]
    return cube_launch(
        "laplace_3d", task, _RADII, operations=2, weights=cube_of(form), negative=negative
    )


def _masks(parameters: Mapping[str, Any]) -> Mapping[str, Cells]:
    return {"w": mask_array(MASKS[parameters["form"]])}


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    weights = _masks(parameters)["w"]
    total = float((weights * window).sum())
    return f"{weighted(window, weights)}, without its sign {number(abs(total))}"


_NEGATIVE = replace(NEGATIVE, default="absolute")

_IN_3D = cubes.CubeSpec(
    id="laplace_3d",
    name="Laplace 3-D",
    category="Edges",
    restores=False,
    summary="Finds surfaces of every direction with the second derivative.",
    source="as the Laplace filter of pictures, in three dimensions",
    parameters=(
        ChoiceParameter(
            name="form",
            label="Form",
            help="The mask; its centre is negative in both.",
            default="4",
            choices=(
                Choice("4", "6 neighbours", "The voxels that share a face: 6 of them, less 6."),
                Choice("8", "26 neighbours", "All voxels of 3×3×3: 26 of them, less 26."),
            ),
        ),
        _NEGATIVE,
    ),
    radius=lambda parameters: 1,
    implementations={
        "cpu": Cpu(_plan_cubes, uncompiled=instead(_plan_cubes, _FORMS)),
        "gpu": Cuda(_plan_cubes_cuda, (GLOBAL, CONSTANT, SHARED), GAPS_IN_3D),
    },
)

SPEC = FilterSpec(
    id="laplace",
    name="Laplace",
    category="Edges",
    restores=False,
    summary="Finds edges of every direction with the second derivative.",
    synonyms=("laplacian", "second derivative", "contour", "sharpen"),
    source="Gonzalez and Woods, Digital Image Processing, chapter 3; 5×5: chapter 10, Laplacian of "
    "a Gaussian, sign reversed; Korčuška 2013 uses 3×3 and 5×5 masks but prints neither",
    parameters=(
        ChoiceParameter(
            name="form",
            label="Form",
            help="The mask; its centre is negative in all of them.",
            default="4",
            choices=(
                Choice("4", "3×3, 4 neighbours", "0 1 0; 1 -4 1; 0 1 0"),
                Choice("8", "3×3, 8 neighbours", "1 1 1; 1 -8 1; 1 1 1"),
                Choice(
                    "5x5",
                    "5×5",
                    "The diamond 0 0 1 0 0; 0 1 2 1 0; 1 2 -16 2 1; 0 1 2 1 0; 0 0 1 0 0: "
                    "smooths first, so it answers less to noise.",
                ),
            ),
        ),
        # Clipped, every edge would lose a half. Korčuška 2013, section 5.1, takes abs() too.
        replace(NEGATIVE, default="absolute", formerly={1: "clip"}),
    ),
    radius=radius,
    unit=unit_of,
    in_3d=_IN_3D,
    implementations={
        "cpu": Cpu(
            plan_cpu,
            uncompiled=uncompiled.correlation(
                lambda task: mask_array(MASKS[task.parameters["form"]]),
                lambda task: one_part(2 * radius(task.parameters) + 1),
                lambda task: str(task.parameters["negative"]),
            ),
        ),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    bench=BenchDefaults(
        variants=tuple({"form": form, "negative": "absolute"} for form in ("4", "8", "5x5"))
    ),
    explanation=Explanation(
        formula=r"g(y, x) = \Big| \sum_{s,\,t} w(s, t)\, u(y + s,\, x + t) \Big|, \quad"
        r" \sum_{s,\,t} w(s, t) = 0",
        use="To find edges of all directions and fine detail at once, or to judge the sharpness of "
        "a picture.",
        avoid="It answers to noise more than to edges: smooth first, or use Sobel, which smooths "
        "across the direction of its derivative.",
        example=Example(patch=EDGE, masks=_masks, working=_working),
    ),
)
