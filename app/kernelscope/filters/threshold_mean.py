"""Mean with threshold: averages only where that changes a pixel little.

With n cells, their sum S, the pixel f and the threshold T, the mean is taken where
``|S - n f| <= T n``, the pixel elsewhere: the mean before rounding decides. T is given in
255ths of white. ``T n`` is a float64, so every backend computes it in this order:
``threshold * white / 255``, times n. For example:

    10 10 10                                with T = 50, 16: |140 - 9 * 60| = 400 <= 9 * 50
    10 60 10    has the mean 140 / 9 = 15.6:
    10 10 10                                with T = 40, 60: 400 > 9 * 40
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Number, Plane, Record, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import VALID
from kernelscope.filters.shared.box import (
    add_up,
    box_pays_from,
    choose,
    mean_parallel,
    mean_rim,
    plan_box,
    sum_types,
)
from kernelscope.filters.shared.correlation import Divisor, Finish
from kernelscope.filters.shared.cubes import side_radius
from kernelscope.filters.shared.plain import interior, put, wide_cell
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec, Unit
from kernelscope.schema.launch import (
    NO_MASK,
    Cuda,
    CudaPlan,
    CudaTask,
    Launch,
    by_size,
    level_launch,
    quick_level,
)
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import FloatParameter, OddParameter


@kernel.plain
def serial(
    source: Plane,
    output: Plane,
    size: Index,
    reach: Number,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell of the mask. Sums have the type of `sums`."""
    height, width, channels = source.shape
    radius = size // 2
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    middle = radius * (pitch + channels)
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, radius, height, width, border)
        mean_rim(source, results, size, reach, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            total = add_up(samples, corner + x, pitch, channels, size)
            pixel = wide_cell(samples, corner + x + middle)
            put(results, x, choose(total, size * size, pixel, reach), finish)


def threshold_of(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """Return T in the units of a sample."""
    white = 1 if dtype.kind == "f" else np.iinfo(dtype).max
    return float(parameters["threshold"]) * white / 255


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    size, rows = task.parameters["size"], output.shape[0]
    reach = threshold_of(task.parameters, source.dtype)
    if task.level == SERIAL.id:
        finish = Finish.of(source.dtype, np.float64)
        return [CpuPass(serial, (source, output, size, reach, finish, border.code), rows)]
    # The type that holds all sums holds n times a pixel too.
    empty, work = sum_types(source.dtype, size)
    finish = Finish.of(source.dtype, work)
    divisor = Divisor.of(np.ones((size, size), np.int64))
    arguments = (source, output, empty, divisor, finish, reach, border.code)
    return [CpuPass(mean_parallel, arguments, rows)]


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    size = task.parameters["size"]
    limits = threshold_of(task.parameters, task.dtype) * np.arange(size * size + 1.0)
    if task.dtype.kind != "f":
        limits = np.floor(limits).astype(np.int32)
    if task.level == TUNED.id:
        launch = plan_box("threshold_mean", task, size)
    else:
        operations = size * size + 4
        launch = level_launch("threshold_mean", task, size // 2, operations, SIZE=size)
    launch = replace(launch, constants={"limits": limits})
    level = quick_level(task, size // 2, GLOBAL)
    # Only nine cells: running sums of doubles save nothing, on an H100 at any size; nor do others
    # in colour, where the border leaves the levels no rim to ask for.
    without_rim = task.border is Border.VALID and task.shape[2] > 1
    never = size == 3 and (task.dtype.kind == "f" or without_rim)
    return by_size(task, launch, plan_cuda, level, math.inf if never else box_pays_from(task, size))


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    middle, mean = float(window[window.shape[0] // 2, window.shape[1] // 2]), window.mean()
    far, most = abs(mean - middle), float(parameters["threshold"])
    start = f"m = {number(window.sum())} / {window.size} = {number(mean)}; "
    compared = f"|{number(mean)} − {number(middle)}| = {number(far)}"
    if far <= most:
        return f"{start}{compared} ≤ {number(most)}, so that g = m = {number(mean)}"
    return f"{start}{compared} > {number(most)}, so that g = u = {number(middle)}"


SPEC = FilterSpec(
    id="threshold_mean",
    name="Mean with threshold",
    category="Smoothing",
    summary="Averages the square around each pixel where that changes the pixel little.",
    synonyms=("sigma filter", "edge-preserving", "blur", "average"),
    source="Korčuška 2013, section 1.3",
    parameters=(
        OddParameter(
            name="size",
            label="Mask size",
            help="Side of the square that is averaged.",
            default=3,
            minimum=3,
            maximum=31,
            slider=(3, 15),
        ),
        FloatParameter(
            name="threshold",
            label="Threshold",
            help="A pixel stays as it is if the mean differs from it by more than this.",
            default=20.0,
            minimum=0.0,
            maximum=255.0,
            step=1.0,
            decimals=1,
            unit="of 255",
            is_strength=True,
        ),
    ),
    radius=side_radius,
    unit=Unit.WHITE,
    implementations={
        "cpu": Cpu(
            plan_cpu,
            uncompiled=uncompiled.by_numpy(
                uncompiled.mean_rows(lambda task: threshold_of(task.parameters, task.source.dtype))
            ),
        ),
        "gpu": Cuda(
            plan_cuda,
            (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
            {CONSTANT.id: NO_MASK},
        ),
    },
    explanation=Explanation(
        formula=r"g = \begin{cases} m & \text{if } |m - u| \le T \\ u & \text{otherwise}"
        r" \end{cases}, \quad m(y, x) = \frac{1}{n^2} \sum_{|s|,\,|t| \le r} u(y + s,\, x + t)",
        use="To smooth weak noise in areas while edges stay where they are.",
        avoid="Pixels that differ much from their neighbours stay, so that specks stay too: use "
        "the median for these.",
        example=Example(working=_working),
    ),
)
