"""Gaussian filter: weights that fall off like a bell curve, one axis after the other.

    w(t) = exp(-t² / 2σ²) / sum of all,   t from -r to r,   r = truncate · σ, rounded

The mask is a product, w(s) w(t), and takes two passes of 2r + 1 cells, down the columns and then
along the rows, in place of one of (2r + 1)² cells. With σ = 1, cut off at 4 σ, these are 18 cells
in place of 81; with σ = 5, 82 in place of 1,681.

Weights and borders are those of ``scipy.ndimage.gaussian_filter`` with the same sigma and truncate.
SciPy adds up in float64, as float64 is here. Other types are added up in float32, in the same order
at every level, see `shared.separable`: floats differ from SciPy's by less than 2e-6 of the largest
magnitude. Bytes and 16 bit are SciPy's result of floats, rounded to the nearest, except where that
is within 0.001 and 0.1 levels of a tie. (SciPy itself drops the fraction of integers.)

Source: Gonzalez and Woods, Digital Image Processing, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared import cubes
from kernelscope.filters.shared.cubes import AVERAGES, GAPS_IN_3D, cube_launch, instead
from kernelscope.filters.shared.separable import (
    SIGMAS,
    TRUNCATE,
    check,
    radius,
    separable_cpu,
    separable_uncompiled,
    weights_of,
)
from kernelscope.filters.shared.separable_cuda import separable_cuda
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuPass, CpuTask, FilterSpec, Unit
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    return separable_cpu(task)


def plan_cuda(task: CudaTask) -> CudaPlan:
    return separable_cuda("gaussian", task)


def _rows(parameters: Mapping[str, Any], axes: int = 2) -> list[NDArray[np.float64]]:
    """Return all weights along y and x, or z, y and x."""
    return [np.concatenate([half[:0:-1], half]) for half in weights_of(parameters, axes)]


def _masks(parameters: Mapping[str, Any]) -> Mapping[str, Cells]:
    return {"w": np.outer(*_rows(parameters))}


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    down, row = _rows(parameters)
    columns = down @ window
    terms = " + ".join(f"{w:.3f}·{number(v)}" for w, v in zip(row, columns, strict=True))
    return f"columns first: v = {', '.join(map(number, columns))}; then {terms} = " + number(
        float(columns @ row)
    )


def _divisors(
    task: CpuTask | CudaTask,
    rows: Sequence[NDArray[np.float64]],
    places: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.float64], ...]:
    """Return the divisors of voxels along each axis, of which the product counts: mostly 1."""
    if task.border is Border.REDUCE:
        counted = ((each >= 0).astype(np.float64) for each in places)
        return tuple(np.correlate(each, row) for each, row in zip(counted, rows, strict=True))
    return tuple(np.ones(len(each) - len(row) + 1) for each, row in zip(places, rows, strict=True))


def _plan_cubes(task: CpuTask) -> Sequence[CpuPass]:
    rows = tuple(_rows(task.parameters, axes=3))
    z, y, x = (len(row) // 2 for row in rows)
    places = cubes.Places.of(task, (z, y, x))
    divisors = _divisors(task, rows, (places.z, places.y, places.x))
    finish = cubes.finish_of(task)
    arguments = (task.source, task.output, rows, divisors, places, (z, y, x), finish)
    if task.level == SERIAL.id:
        return [CpuPass(cubes.weigh_axes_serial, arguments, task.output.shape[0])]
    return [CpuPass(cubes.weigh_cubes_parallel, (*arguments, 0.0), cubes.units(task))]


_BLOCKS = ((32, 1, 8), (32, 8, 1), (32, 4, 2))
"""Threads of the passes along z, y and x: at level *shared* tiles are longest along their axis."""

_SHARED_BYTES = 48 * 1024  # shared memory of a block on every GPU

_NOTICE = (
    "Tiles for such a wide mask do not fit into shared memory: the kernels of level constant ran."
)


def _plan_cubes_cuda(task: CudaTask) -> CudaPlan:
    """Return three launches, along z, y and x; ``gaussian_3d.cu`` explains them."""
    rows = _rows(task.parameters, axes=3)
    z, y, x = (len(row) // 2 for row in rows)
    places = [
        cubes.places_along(0, size, size, reach, task.border)
        for size, reach in zip(task.shape[:3], (z, y, x), strict=True)
    ]
    divisors = np.concatenate(_divisors(task, rows, places))
    voxels = Scratch(8 * task.out_row_pixels)
    launches = []
    # A kernel takes the radius along x for that of its axis; the last one asks for those of all.
    reaches = ((z, z, z), (y, y, y), (z, y, x))
    for axis, (name, row, reach) in enumerate(zip("zyx", rows, reaches, strict=True)):
        launch = cube_launch(
            "gaussian_3d",
            task,
            reach,
            operations=0,
            block=_BLOCKS[axis],
            AXIS=axis,
        )
        tile = list(launch.block)
        tile[2 - axis] += 2 * reach[2]
        in_constant = task.level != GLOBAL.id
        launches.append(
            replace(
                launch,
                kernel=f"{launch.kernel}_{name}",
                tables=(divisors,) if in_constant else (row, divisors),
                constants={"line_weights": row} if in_constant else {},
                shared_bytes=8 * math.prod(tile) if task.level == SHARED.id else 0,
                operations_per_sample=2.0 * len(row),
                scratch=("along_z", "along_y"),
            )
        )
    if max(launch.shared_bytes for launch in launches) > _SHARED_BYTES:
        return replace(_plan_cubes_cuda(replace(task, level=CONSTANT.id)), notice=_NOTICE)
    return CudaPlan(tuple(launches), {"along_z": voxels, "along_y": voxels})


_IN_3D = cubes.CubeSpec(
    id="gaussian_3d",
    name="Gaussian 3-D",
    category="Smoothing",
    summary="Averages along all three axes with weights of a bell curve, of any width.",
    source="as the Gaussian filter of pictures, in three dimensions",
    parameters=(replace(SIGMAS, axes=3), TRUNCATE),
    radius=radius,
    check=check,
    averages=True,
    implementations={
        "cpu": Cpu(_plan_cubes, uncompiled=instead(_plan_cubes, AVERAGES)),
        "gpu": Cuda(_plan_cubes_cuda, (GLOBAL, CONSTANT, SHARED), GAPS_IN_3D),
    },
)

SPEC = FilterSpec(
    id="gaussian",
    name="Gaussian",
    category="Smoothing",
    summary="Averages with weights of a bell curve, of any width: the standard way to blur.",
    synonyms=("gaussian blur", "gauss", "blur", "smooth", "low-pass"),
    source="Gonzalez and Woods, Digital Image Processing, chapter 3",
    parameters=(SIGMAS, TRUNCATE),
    radius=radius,
    check=check,
    averages=True,
    in_3d=_IN_3D,
    unit=Unit.SQUARES,  # a sum of two cells is a float, too
    bench=BenchDefaults(variants=({"sigma": 1.0}, {"sigma": 4.0})),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=separable_uncompiled()),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    explanation=Explanation(
        formula=r"v(y, x) = \sum_{s=-r}^{r} w(s)\, u(y + s,\, x), \quad"
        r" g(y, x) = \sum_{t=-r}^{r} w(t)\, v(y,\, x + t)" + "\n"
        r"w(t) = \frac{e^{-t^2 / 2\sigma^2}}{\sum_{i=-r}^{r} e^{-i^2 / 2\sigma^2}}",
        use="To blur by any amount without a preferred direction, before a derivative or before a "
        "picture is made smaller; and to see how much two passes save.",
        avoid="It blurs edges as every average does. For specks use the median, for noise beside "
        "edges non-local means.",
        example=Example(parameters={"sigma": 0.5, "truncate": 2.0}, masks=_masks, working=_working),
    ),
)
