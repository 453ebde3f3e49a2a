"""The median of cubes: the middle value of all voxels around one.

At level *parallel*, the networks of `networks.cube_program` compute two rows of small cubes at a
time, from the lines of all slices that they touch; others are selected from, voxel by voxel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelscope.base.jit import Flag, Index, Line, Record, Voxels, intrinsic, kernel
from kernelscope.filters.median.cpu import LEVEL_1, SHORTEST
from kernelscope.filters.median.kernels import VECTOR, emit_program, middle
from kernelscope.filters.median.networks import cube_program
from kernelscope.filters.shared import cubes
from kernelscope.filters.shared.cubes import (
    GAPS_IN_3D,
    blocks,
    cells_around,
    cube_launch,
    instead,
    put,
)
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import WHOLE, Cpu, CpuPass, CpuTask
from kernelscope.schema.launch import Cuda, CudaTask, Launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED

_LARGEST_NETWORK = 125
"""Cells of a mask up to which a network is run: that of 5×5×5 compiles in some seconds."""


@kernel
def select_row(
    source: Voxels,
    output: Voxels,
    places: Record,
    radii: Record,
    outside: Flag,
    cells: Line,
    z: Index,
    y: Index,
    inside: Flag,
) -> None:
    """Hoare's selection for the voxels of a row whose mask fits, or those where it does not.

    `outside`: whether cells outside the volume are zeros; else they do not count.
    """
    for x in range(output.shape[2]):
        if cubes.is_inside(places.fits, z, y, x) == inside:
            found = cubes.gather_cube(source, places, radii, z, y, x, outside, cells)
            output[z, y, x, 0] = middle(cells, found)


@kernel
def median_cubes(
    source: Voxels,
    output: Voxels,
    places: Record,
    radii: Record,
    outside: Flag,
    rows: Index,
    start: Index,
    stop: Index,
) -> None:
    """Select for every voxel; a unit of work is this many `rows` of a slice."""
    tall = output.shape[1]
    blocks = -(-tall // rows)
    count = (2 * radii[0] + 1) * (2 * radii[1] + 1) * (2 * radii[2] + 1)
    cells = np.empty(count, source.dtype)
    for unit in range(start, stop):
        z, top = unit // blocks, unit % blocks * rows
        for y in range(top, min(top + rows, tall)):
            select_row(source, output, places, radii, outside, cells, z, y, True)
            cubes.keep_row(source, output, places, radii, z, y)


@intrinsic
def run_cube_network(
    context: Any,
    builder: Any,
    types: Any,
    mask: Any,
    base: Any,
    buffer: Any,
    samples: Any,
    step: Any,
) -> None:
    """As `kernels.run_network` for a box of voxels: `mask` are three tuples as long as its sides.

    `step` is from a column to the next.
    """
    deep, tall, wide = map(len, types[0])
    program = cube_program((deep, tall, wide))
    emit_program(context, builder, program, types, (base, buffer, samples, step))


@kernel
def fetch_line(source: Voxels, places: Record, s: Index, t: Index, line: Line) -> None:
    """Write the voxels at all places along x of a row; those outside are zeros."""
    zz, yy = places.z[s], places.y[t]
    for u in range(places.x.size):
        xx = places.x[u]
        line[u] = source[zz, yy, xx, 0] if zz >= 0 and yy >= 0 and xx >= 0 else 0


@kernel
def median_cubes_parallel(
    source: Voxels,
    output: Voxels,
    places: Record,
    radii: Record,
    reduce: Flag,
    mask: Record,
    results: Line,
    nodes: Index,
    chunk: Index,
    start: Index,
    stop: Index,
) -> None:
    """Run a network over groups of rows, `chunk` voxels at a time; a ring has the lines they need.

    - `reduce`: voxels whose mask does not fit are selected from the cells inside; else they stay.
    """
    tall, voxels, wide = output.shape[1], output.shape[2], places.x.size
    blocks = -(-tall // cubes.ROWS)
    deep, side, group = len(mask[0]), len(mask[1]), results.size
    rows = side + group - 1
    inputs = rows * deep
    # Loops go beyond their end by less than a vector.
    pitch = wide + VECTOR
    stride = chunk + len(mask[2]) + VECTOR
    buffer = np.empty(inputs * pitch + (nodes - inputs) * stride, source.dtype)
    base = np.empty(nodes, np.int64)
    cells = np.empty(deep * side * len(mask[2]), source.dtype)
    for place in range(inputs, nodes):
        base[place] = inputs * pitch + (place - inputs) * stride
    for unit in range(start, stop):
        z, top = unit // blocks, unit % blocks * cubes.ROWS
        bottom = min(top + cubes.ROWS, tall)
        fetched = top
        for y in range(top, bottom, group):
            while fetched < y + rows:
                # The last group may reach beyond the result; its surplus rows are not kept.
                t = min(fetched, places.y.size - 1)
                for s in range(deep):
                    begin = (fetched % rows * deep + s) * pitch
                    fetch_line(source, places, z + s, t, buffer[begin : begin + wide])
                fetched += 1
            for x in range(0, voxels, chunk):
                count = min(chunk, voxels - x)
                for line in range(inputs):
                    place = (y + line // deep) % rows * deep + line % deep
                    base[line] = place * pitch + x
                run_cube_network(mask, base, buffer, count, 1)
                for row in range(min(group, bottom - y)):
                    begin = base[results[row]]
                    for i in range(count):
                        output[z, y + row, x + i, 0] = buffer[begin + i]
            for row in range(y, min(y + group, bottom)):
                if reduce:
                    select_row(source, output, places, radii, False, cells, z, row, False)
                else:
                    cubes.keep_row(source, output, places, radii, z, row)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    radii = cubes.radii_of(task.parameters["size"])
    sides = tuple(2 * radius + 1 for radius in radii)
    reduce = task.border is Border.REDUCE
    if task.level == SERIAL.id or math.prod(sides) > _LARGEST_NETWORK:
        serial = task.level == SERIAL.id
        rows = task.output.shape[1] if serial else cubes.ROWS
        units = task.output.shape[0] if serial else cubes.units(task)
        places = cubes.Places.of(task, radii)
        selected = (task.source, task.output, places, radii, not reduce, rows)
        return [CpuPass(median_cubes, selected, units)]
    program = cube_program((sides[0], sides[1], sides[2]))
    nodes = len(program.places)
    share = LEVEL_1 // (nodes * task.source.itemsize)
    chunk = max(SHORTEST, share // VECTOR * VECTOR)
    places = cubes.Places.of(task, radii, (Border.KEEP, Border.REDUCE))
    network = (tuple((0,) * side for side in sides), np.array(program.results), nodes, chunk)
    arguments = (task.source, task.output, places, radii, reduce, *network)
    return [CpuPass(median_cubes_parallel, arguments, cubes.units(task))]


def _by_numpy(
    source: Voxels, output: Voxels, places: cubes.Places, radii: Record, outside: Flag, *rest: Any
) -> None:
    """As `median_cubes`, which is the same as the network."""
    sides = tuple(2 * radius + 1 for radius in radii)
    for block in blocks(output, *rest[-2:]):
        cells = cells_around(source, places, radii, block, 0 if outside else np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(cells, sides)[0]
        found = np.sort(windows.reshape(*windows.shape[:2], -1), axis=-1)
        inside = np.ones(found.shape, bool) if outside else found < np.inf
        counts = inside.sum(axis=-1, keepdims=True)
        medians = np.take_along_axis(found, (counts - 1) // 2, -1)[..., 0]
        put(output, block, medians, cells, places, radii)


def _network(
    source: Voxels, output: Voxels, places: cubes.Places, radii: Record, reduce: Flag, *rest: Any
) -> None:
    if reduce:  # whose rim is selected
        everywhere = (0, output.shape[0], 0, output.shape[1], 0, output.shape[2])
        places = places._replace(fits=everywhere)
    _by_numpy(source, output, places, radii, not reduce, *rest)


_FORMS = {median_cubes: _by_numpy, median_cubes_parallel: _network}


def plan_cuda(task: CudaTask) -> Launch:
    radii = cubes.radii_of(task.parameters["size"])
    bits = 17 if task.parameters.get(WHOLE) else 32
    return cube_launch("median_3d", task, radii, operations=2 * bits, KEY_BITS=bits)


SPEC = cubes.CubeSpec(
    id="median_3d",
    name="Median 3-D",
    category="Smoothing",
    summary="Takes the middle value of the cube around each voxel: removes specks, keeps edges.",
    source="as the median of pictures, in three dimensions",
    parameters=(
        cubes.sides(11, "Side of the cube whose middle value is taken, or sides along x, y and z."),
    ),
    radius=cubes.side_radius,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=instead(plan_cpu, _FORMS)),
        "gpu": Cuda(
            plan_cuda,
            (GLOBAL, SHARED),
            {CONSTANT.id: "There is no mask to keep in constant memory.", **GAPS_IN_3D},
        ),
    },
)
