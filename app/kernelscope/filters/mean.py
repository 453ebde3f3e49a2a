"""Mean filter: every pixel becomes the average of the square around it.

    10 20 30
    40 50 60    becomes 455 / 9 = 50.6, rounded to 51
    70 80 95

At level *parallel*, each sample is added to the sum of its column when it enters the mask and
subtracted when it leaves; `shared.box.window_sums` then adds up columns along the row. For bytes
`shared.box.mean_bytes` does the same in fewer steps, and small masks eight rows at a time.

Source: Korčuška 2013, section 1.3; parallel computing report no. 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelscope.base.jit import Index, Number, Plane, Record, kernel
from kernelscope.filters.shared import box, cubes, groups, uncompiled
from kernelscope.filters.shared.border_kernels import VALID
from kernelscope.filters.shared.box import (
    add_up,
    box_pays_from,
    mean_parallel,
    mean_rim,
    plan_box,
    sum_types,
)
from kernelscope.filters.shared.correlation import Divisor, Finish, rectangle
from kernelscope.filters.shared.cubes import AVERAGES, GAPS_IN_3D, cube_launch, instead
from kernelscope.filters.shared.plain import interior, put
from kernelscope.filters.shared.rows_cuda import QUAD, rows_launch, rows_pay_from
from kernelscope.filters.shared.vectors import blank_row
from kernelscope.schema.explanation import Example, Explanation, weighted
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
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
from kernelscope.schema.parameters import OddParameter


@kernel.plain
def mean_serial(
    source: Plane,
    output: Plane,
    size: Index,
    reach: Number,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell of the mask.

    `reach`, of the rim, is infinite. As a constant here it would let LLVM make the rim part of
    this kernel, whose loops then lack registers.
    """
    height, width, channels = source.shape
    radius = size // 2
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, radius, height, width, border)
        mean_rim(source, results, size, reach, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            total = add_up(samples, corner + x, pitch, channels, size)
            put(results, x, np.true_divide(total, size * size), finish)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    size = task.parameters["size"]
    if task.level == SERIAL.id:
        finish = Finish.of(source.dtype, np.float64)
        serial = (source, output, size, np.inf, finish, border.code)
        return [CpuPass(mean_serial, serial, output.shape[0])]
    if size <= box.LARGEST_OF_GROUPS and groups.applies(output, border):
        grouped = (source, output, box.Means.of(size), border.code)
        return [CpuPass(groups.sweep_rows, grouped, output.shape[0])]
    if box.applies(source, output, size, border):
        blank = blank_row(source[0].size)
        arguments = (source, output, blank, size, box.scale_of(size), border.code)
        return [CpuPass(box.mean_bytes, arguments, output.shape[0])]
    divisor = Divisor.of(np.ones((size, size), np.int64))
    like, work = sum_types(source.dtype, size)
    finish = Finish.of(source.dtype, work)
    parallel = (source, output, like, divisor, finish, None, border.code)
    return [CpuPass(mean_parallel, parallel, output.shape[0])]


_ROWS_OPERATIONS = 3.75
"""Additions, multiplications and byte moves for each byte of a 3x3 mask that goes down the rows."""

_ROWS_AHEAD = 4
"""Rows that such a thread has on their way: on an H100, 0.986 to 0.993 of the time with two."""


def _plan_tuned(task: CudaTask, size: int) -> tuple[Launch, float]:
    """Return the launch of level *tuned*, and the least samples for which it pays.

    3x3 of grey bytes goes down the rows, if these are whole double words: 0.90 of the time of sums
    that run on an H100 at 16384x16384, 0.76 at 4096x4096. 5x5 and 7x7 took longer.
    """
    grey_bytes = task.dtype.itemsize == 1 and task.shape[2] == 1
    if size == 3 and grey_bytes and task.shape[1] % (2 * QUAD) == 0:
        launch = rows_launch(
            "mean",
            task,
            size,
            _ROWS_OPERATIONS,
            packed=True,
            SIZE=size,
            GREY_BYTES=1,
            ROWS_AHEAD=_ROWS_AHEAD,
        )
        return launch, rows_pay_from(task)
    return plan_box("mean", task, size), box_pays_from(task, size)


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    size = int(task.parameters["size"])
    if task.level == TUNED.id:
        launch, least = _plan_tuned(task, size)
        return by_size(task, launch, plan_cuda, quick_level(task, size // 2, GLOBAL), least)
    return level_launch("mean", task, size // 2, size * size + 1, SIZE=size)


def _plan_cubes(task: CpuTask) -> Sequence[CpuPass]:
    return cubes.plan_average(task, np.ones, task.level == SERIAL.id)


def _plan_cubes_cuda(task: CudaTask) -> Launch:
    radii = cubes.radii_of(task.parameters["size"])
    return cube_launch("mean_3d", task, radii, operations=1)


_IN_3D = cubes.CubeSpec(
    id="mean_3d",
    name="Mean 3-D",
    category="Smoothing",
    summary="Averages the cube around each voxel: smooths noise and edges alike.",
    source="as the mean of pictures, in three dimensions",
    parameters=(cubes.sides(15, "Side of the cube that is averaged, or sides along x, y and z."),),
    radius=cubes.side_radius,
    averages=True,
    implementations={
        "cpu": Cpu(_plan_cubes, uncompiled=instead(_plan_cubes, AVERAGES)),
        "gpu": Cuda(_plan_cubes_cuda, (GLOBAL, SHARED), {CONSTANT.id: NO_MASK, **GAPS_IN_3D}),
    },
)

SPEC = FilterSpec(
    id="mean",
    name="Mean",
    category="Smoothing",
    summary="Averages the square around each pixel: smooths noise and edges alike.",
    synonyms=("average", "box blur", "blur", "boxcar"),
    source="Korčuška 2013, section 1.3; parallel computing report no. 5",
    parameters=(
        OddParameter(
            name="size",
            label="Mask size",
            help="Side of the square that is averaged.",
            default=3,
            minimum=3,
            maximum=99,
            slider=(3, 15),
        ),
    ),
    radius=cubes.side_radius,
    rectangle=rectangle(lambda side: np.ones(side, np.int64)),
    averages=True,
    in_3d=_IN_3D,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(uncompiled.mean_rows())),
        "gpu": Cuda(
            plan_cuda, (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED), {CONSTANT.id: NO_MASK}
        ),
    },
    explanation=Explanation(
        formula=r"g(y, x) = \frac{1}{n^2} \sum_{|s|,\,|t| \le r} u(y + s,\, x + t),"
        r" \quad n = 2r + 1",
        use="For even noise in areas without detail, and as the simplest case of a mask: its time "
        "is that of the memory.",
        avoid="It blurs edges, and spreads a speck over the whole mask instead of removing it: use "
        "the median there, the rotating mask near edges, non-local means for texture.",
        example=Example(
            masks=lambda values: {"1/n²": np.ones((values["size"], values["size"]))},
            working=lambda window, _: weighted(window, np.ones(window.shape), window.size),
        ),
    ),
)
