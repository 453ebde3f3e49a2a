"""Sobel in three dimensions: the gradient, from three masks.

Each is the difference of the voxels before and behind along an axis, smoothed by 1 2 1 along both
others. Where voxels increase by 10 from slice to slice, gz = 16 * 2 * 10 = 320, gy = gx = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelscope.base.jit import Flag, Index, Line, Number, Record, Voxels, inlined, kernel
from kernelscope.filters.shared import cubes
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.cubes import (
    GAPS_IN_3D,
    blocks,
    cells_around,
    cube_launch,
    instead,
    put,
    summed,
)
from kernelscope.filters.shared.uncompiled import settled
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask
from kernelscope.schema.launch import Cuda, CudaTask, Launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED
from kernelscope.schema.parameters import Choice, ChoiceParameter

_RADII = (1, 1, 1)

_SMOOTH, _DIFFERENCE = (1, 2, 1), (-1, 0, 1)


@inlined
def length(gz: Number, gy: Number, gx: Number, magnitude: Flag) -> Any:
    if magnitude:
        return np.sqrt(gx * gx + gy * gy + gz * gz)
    return abs(gx) + abs(gy) + abs(gz)


@kernel.plain
def sobel_cubes_serial(
    source: Voxels,
    output: Voxels,
    smooth: Line,
    difference: Line,
    places: Record,
    radii: Record,
    magnitude: Flag,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every voxel, its 26 neighbours."""
    cells = np.empty(27, np.float64)
    for z in range(start, stop):
        for y in range(output.shape[1]):
            for x in range(output.shape[2]):
                cubes.gather_cube(source, places, radii, z, y, x, 1, cells)
                gz = gy = gx = 0.0
                i = 0
                for s in range(3):
                    for t in range(3):
                        for u in range(3):
                            gz += difference[s] * smooth[t] * smooth[u] * cells[i]
                            gy += smooth[s] * difference[t] * smooth[u] * cells[i]
                            gx += smooth[s] * smooth[t] * difference[u] * cells[i]
                            i += 1
                output[z, y, x, 0] = settle(length(gz, gy, gx, magnitude), finish)
            cubes.keep_row(source, output, places, radii, z, y)


@kernel
def sobel_cubes_parallel(
    source: Voxels,
    output: Voxels,
    smooth: Line,
    difference: Line,
    places: Record,
    radii: Record,
    magnitude: Flag,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """One axis after the other; `start` and `stop` are units of `cubes.units`."""
    tall, wide = output.shape[1], places.x.size
    blocks = -(-tall // cubes.ROWS)
    smoothed = np.empty((3, wide))  # along z, of the last three rows
    differences = np.empty((3, wide))
    along_x, along_y, along_z = np.empty(wide), np.empty(wide), np.empty(wide)
    for unit in range(start, stop):
        z, top = unit // blocks, unit % blocks * cubes.ROWS
        for t in range(top, min(top + cubes.ROWS, tall) + 2):
            cubes.sum_slices(source, smooth, places, z, t, smoothed[t % 3])
            cubes.sum_slices(source, difference, places, z, t, differences[t % 3])
            y = t - 2
            if y < top:
                continue
            along_x[:] = 0
            along_y[:] = 0
            along_z[:] = 0
            for s in range(3):
                cubes.add_scaled(smoothed[(y + s) % 3], smooth[s], along_x)
                cubes.add_scaled(smoothed[(y + s) % 3], difference[s], along_y)
                cubes.add_scaled(differences[(y + s) % 3], smooth[s], along_z)
            for x in range(output.shape[2]):
                gx = along_x[x + 2] - along_x[x]
                gy = along_y[x] + 2 * along_y[x + 1] + along_y[x + 2]
                gz = along_z[x] + 2 * along_z[x + 1] + along_z[x + 2]
                output[z, y, x, 0] = settle(length(gz, gy, gx, magnitude), finish)
            cubes.keep_row(source, output, places, radii, z, y)


def _by_numpy(
    source: Voxels,
    output: Voxels,
    smooth: Line,
    difference: Line,
    places: cubes.Places,
    radii: Record,
    magnitude: Flag,
    finish: Finish,
    start: Index,
    stop: Index,
) -> None:
    """As `sobel_cubes_parallel`."""
    for block in blocks(output, start, stop):
        cells = cells_around(source, places, radii, block)
        smoothed, differences = (summed(cells, row, 0)[0] for row in (smooth, difference))
        gx = summed(summed(smoothed, smooth, 0), difference, 1)
        gy = summed(summed(smoothed, difference, 0), smooth, 1)
        gz = summed(summed(differences, smooth, 0), smooth, 1)
        slope = length.function(gz, gy, gx, magnitude)
        put(output, block, settled(slope, finish), cells, places, radii)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    arguments = (
        *(task.source, task.output),
        *(np.array(_SMOOTH, np.float64), np.array(_DIFFERENCE, np.float64)),
        *(cubes.Places.of(task, _RADII), _RADII),
        *(task.parameters["form"] == "magnitude", cubes.finish_of(task)),
    )
    if task.level == SERIAL.id:
        return [CpuPass(sobel_cubes_serial, arguments, task.output.shape[0])]
    return [CpuPass(sobel_cubes_parallel, arguments, cubes.units(task))]


def plan_cuda(task: CudaTask) -> Launch:
    magnitude = int(task.parameters["form"] == "magnitude")
    return cube_launch("sobel_3d", task, _RADII, operations=4, MAGNITUDE=magnitude)


SPEC = cubes.CubeSpec(
    id="sobel_3d",
    name="Sobel 3-D",
    category="Edges",
    restores=False,
    summary="Finds surfaces with the first derivative, smoothed across its direction.",
    source="as the Sobel filter of pictures, in three dimensions",
    parameters=(
        ChoiceParameter(
            name="form",
            label="Form",
            help="How the derivatives are combined.",
            default="sum",
            choices=(
                Choice("sum", "Sum", "|gx| + |gy| + |gz|, the derivatives along the axes."),
                Choice("magnitude", "Magnitude", "√(gx² + gy² + gz²), the gradient's length."),
            ),
        ),
    ),
    radius=lambda parameters: 1,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=instead(plan_cpu, {sobel_cubes_parallel: _by_numpy})),
        "gpu": Cuda(
            plan_cuda,
            (GLOBAL, SHARED),
            {
                CONSTANT.id: "The weights are part of the code: nothing is kept in constant "
                "memory.",
                **GAPS_IN_3D,
            },
        ),
    },
)
