"""Median filter: every pixel becomes the middle value of the square around it.

An even number of cells (only with `Border.REDUCE`) has two middle values; the lower counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.filters.borders import REDUCE, VALID, border_index, fetch_row
from app.filters.jit import intrinsic, kernel
from app.filters.launch import CudaTask, Launch, level_launch
from app.filters.networks import Lane, median_program
from app.filters.spec import (
    CONSTANT,
    GLOBAL,
    SERIAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    Border,
    CpuPass,
    FilterSpec,
    FilterTask,
    Level,
    OddParameter,
)

_VECTOR = 32
"""Bytes of a vector register (AVX2)."""

_LEVEL_1 = 24_576
"""Bytes of level-1 cache that the places of a network may take up."""

_SHORTEST = 256
"""Fewest samples to run a network on, lest starting its loops costs more than they do."""

_NETWORK_OPERATIONS = {3: 17, 5: 60, 7: 140, 9: 240}
"""Minima and maxima for each sample at level *tuned*; larger masks are searched bit by bit."""

SELECTION = Level(
    "selection",
    "Selection",
    "Each thread copies its window to shared memory and selects the middle value there (Hoare).",
)

_WINDOWS = 48 * 1024
"""Bytes of shared memory for the windows of a block, which every GPU has."""

_BLOCKS = ((32, 4), (32, 2), (32, 1), (16, 1), (8, 1))
"""Blocks, largest first. Threads that keep a window of 9 x 9 in registers fill a multiprocessor
better in small blocks; at level *selection* a block's windows have to fit its shared memory."""


@kernel
def middle(cells: Any, count: Any) -> Any:
    """Return the (lower) median of ``cells[:count]``, which it reorders (Hoare's quickselect)."""
    rank = (count - 1) // 2
    low = 0
    high = count - 1
    while low < high:
        pivot = cells[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while cells[i] < pivot:
                i += 1
            while pivot < cells[j]:
                j -= 1
            if i <= j:
                cells[i], cells[j] = cells[j], cells[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return cells[rank]


@kernel
def median_span(
    source: Any, output: Any, radius: Any, border: Any, cells: Any, y: Any, first: Any, last: Any
) -> None:
    """Compute output row `y` from column `first` up to `last`, cell by cell."""
    height, width, channels = source.shape
    shift = radius if border == VALID else 0
    for x in range(first, last):
        for c in range(channels):
            count = 0
            for s in range(-radius, radius + 1):
                yy = border_index(y + shift + s, height, border)
                for t in range(-radius, radius + 1):
                    xx = border_index(x + shift + t, width, border)
                    if yy >= 0 and xx >= 0:
                        cells[count] = source[yy, xx, c]
                        count += 1
                    elif border != REDUCE:
                        cells[count] = 0
                        count += 1
            output[y, x, c] = middle(cells, count)


@kernel
def count_column(
    source: Any,
    y: Any,
    x: Any,
    c: Any,
    radius: Any,
    border: Any,
    step: Any,
    groups: Any,
    counts: Any,
) -> Any:
    """Add `step` to the counts of the cells in column `x` of a mask around row `y`.

    `groups` counts runs of neighbouring values. Returns `step` times the number of cells.
    """
    height, width, _ = source.shape
    run = counts.size // groups.size
    total = 0
    xx = border_index(x, width, border)
    for s in range(-radius, radius + 1):
        yy = border_index(y + s, height, border)
        outside = yy < 0 or xx < 0
        if outside and border == REDUCE:
            continue
        value = 0 if outside else source[yy, xx, c]
        groups[value // run] += step
        counts[value] += step
        total += step
    return total


@kernel
def median_serial_counting(
    source: Any, output: Any, radius: Any, border: Any, values: Any, start: Any, stop: Any
) -> None:
    """Plain loops, but cells are counted by value while the mask moves along the row (Huang).

    `values` is the number of values that a sample can have.
    """
    shift = radius if border == VALID else 0
    counts = np.zeros(values, np.int32)
    groups = np.zeros(int(np.sqrt(values)), np.int32)
    run = counts.size // groups.size
    for y in range(start, stop):
        for c in range(output.shape[2]):
            counts[:] = 0
            groups[:] = 0
            total = 0
            for x in range(-2 * radius, output.shape[1]):
                new = x + shift + radius
                total += count_column(source, y + shift, new, c, radius, border, 1, groups, counts)
                if x < 0:
                    continue
                # How many values below the middle one are still to be passed.
                left = (total - 1) // 2
                group = 0
                while left >= groups[group]:
                    left -= groups[group]
                    group += 1
                value = group * run
                while left >= counts[value]:
                    left -= counts[value]
                    value += 1
                output[y, x, c] = value
                old = x + shift - radius
                total += count_column(source, y + shift, old, c, radius, border, -1, groups, counts)


@kernel
def median_serial(
    source: Any, output: Any, radius: Any, border: Any, start: Any, stop: Any
) -> None:
    """Plain loops: for every sample, pick the middle one of the cells of the mask."""
    cells = np.empty((2 * radius + 1) ** 2, source.dtype)
    for y in range(start, stop):
        median_span(source, output, radius, border, cells, y, 0, output.shape[1])


@kernel
def median_frame(source: Any, output: Any, radius: Any, start: Any, stop: Any) -> None:
    """Compute the pixels whose mask is reduced, at the edges of the image."""
    cells = np.empty((2 * radius + 1) ** 2, source.dtype)
    height, width = output.shape[:2]
    for y in range(start, stop):
        left = right = width
        if radius <= y < height - radius:
            left = min(radius, width)
            right = max(left, width - radius)
        median_span(source, output, radius, REDUCE, cells, y, 0, left)
        median_span(source, output, radius, REDUCE, cells, y, right, width)


@intrinsic
def run_network(
    context: Any,
    builder: Any,
    types: Any,
    mask: Any,
    base: Any,
    buffer: Any,
    samples: Any,
    channels: Any,
) -> None:
    """Compute `samples` neighbouring samples of a few rows of medians.

    Emits the network for ``len(mask)`` as a loop over vectors for each of its stages. Its
    places begin at ``buffer[base[place]]``.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    program = median_program(len(types[0]))
    base = context.make_array(types[1])(context, builder, base).data
    buffer = context.make_array(types[2])(context, builder, buffer).data
    sample = buffer.type.pointee
    align = context.get_abi_sizeof(sample)
    length = _VECTOR // align
    vector = ir.VectorType(sample, length).as_pointer()
    compare = builder.icmp_unsigned if isinstance(sample, ir.IntType) else builder.fcmp_ordered
    intp = samples.type

    def address(lane: Lane) -> Any:
        place = builder.load(builder.gep(base, [intp(program.places[lane.node])]))
        return builder.gep(buffer, [builder.add(place, builder.mul(channels, intp(lane.shift)))])

    for stage in program.stages:
        # Addresses are taken before the loop: for all LLVM knows, its stores change `base`.
        read = {lane: address(lane) for lane in stage.reads}
        written = {node: address(Lane(node)) for node in stage.writes}
        count = builder.add(samples, builder.mul(channels, intp(stage.reach)))
        before = builder.block
        loop = builder.append_basic_block()
        after = builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(intp)
        i.add_incoming(intp(0), before)
        known = {
            lane: builder.load(builder.bitcast(builder.gep(start, [i]), vector), align=align)
            for lane, start in read.items()
        }
        for node, (larger, a, b) in stage.operations.items():
            u, v = known[a], known[b]
            known[Lane(node)] = builder.select(compare(">" if larger else "<", u, v), u, v)
        for node, start in written.items():
            target = builder.bitcast(builder.gep(start, [i]), vector)
            builder.store(known[Lane(node)], target, align=align)
        following = builder.add(i, intp(length))
        i.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)


@kernel
def median_parallel(
    source: Any,
    output: Any,
    border: Any,
    mask: Any,
    results: Any,
    places: Any,
    chunk: Any,
    start: Any,
    stop: Any,
) -> None:
    """Run a network over groups of rows, `chunk` samples at a time.

    The padded rows that a group needs are kept in a ring; channels are samples side by side.
    `mask` is a tuple as long as the mask is wide: that makes its size known to the compiler.
    """
    channels = source.shape[2]
    radius = len(mask) // 2
    group = results.size
    inputs = group + 2 * radius
    last_input = output.shape[0] - 1 + 2 * radius
    samples = output.shape[1] * channels
    padded = samples + 2 * radius * channels
    # Loops go beyond their end by less than a vector.
    pitch = padded + _VECTOR
    stride = chunk + 2 * radius * channels + _VECTOR
    buffer = np.empty(inputs * pitch + (places - inputs) * stride, source.dtype)
    base = np.empty(places, np.int64)
    for place in range(inputs, places):
        base[place] = inputs * pitch + (place - inputs) * stride
    flat = output.reshape(output.shape[0], samples)
    fetched = start
    for y in range(start, stop, group):
        while fetched < y + inputs:
            begin = fetched % inputs * pitch
            line = buffer[begin : begin + padded]
            # The last group may reach beyond the image; its surplus results are not kept.
            fetch_row(source, min(fetched, last_input), radius, border, line)
            fetched += 1
        for x in range(0, samples, chunk):
            count = min(chunk, samples - x)
            for row in range(inputs):
                base[row] = (y + row) % inputs * pitch + x
            run_network(mask, base, buffer, count, channels)
            for row in range(min(group, stop - y)):
                begin = base[results[row]]
                result = buffer[begin : begin + count]
                target = flat[y + row, x : x + count]
                # A loop, because Numba copies slices sample by sample.
                for i in range(count):
                    target[i] = result[i]


def radius(parameters: Mapping[str, Any]) -> int:
    return int(parameters["size"]) // 2


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    size = task.parameters["size"]
    rows = task.output.shape[0]
    if task.level == SERIAL.id:
        arguments = (task.source, task.output, size // 2, task.border.code)
        if task.source.dtype == np.float32 or size == 3:  # 9 cells are picked from as fast
            return [CpuPass(median_serial, arguments, rows)]
        values = int(np.iinfo(task.source.dtype).max) + 1
        return [CpuPass(median_serial_counting, (*arguments, values), rows)]
    program = median_program(size)
    places = len(program.places)
    share = _LEVEL_1 // (places * task.source.itemsize)
    chunk = max(_SHORTEST, share // _VECTOR * _VECTOR)
    network = ((0,) * size, np.array(program.results), places, chunk)
    passes = [
        CpuPass(median_parallel, (task.source, task.output, task.border.code, *network), rows)
    ]
    if task.border is Border.REDUCE:
        passes.append(CpuPass(median_frame, (task.source, task.output, size // 2), rows))
    return passes


def plan_cuda(task: CudaTask) -> Launch:
    size = int(task.parameters["size"])
    bits = 8 * task.dtype.itemsize
    if task.level == TUNED.id:
        block, tile = (32, 8), (32, 32)
        network = _NETWORK_OPERATIONS.get(size)
        if network is not None:
            # Samples of 8 or 16 bits are compared two at a time, one far below the other.
            rows = (16 if size == 3 else 8) * (1 if bits == 32 else 2)
            block, tile = (32, 4), (128, rows)
        return Launch(
            kernel="median_tuned",
            defines=task.defines(SIZE=size, TUNED=1),
            block=block,
            tile=tile,
            bytes_per_sample=2.0 * task.dtype.itemsize,
            operations_per_sample=network or 6 * size * bits,
        )
    reach = radius(task.parameters)
    if task.level == SELECTION.id:
        window = size * size * task.dtype.itemsize
        usual = next(block for block in _BLOCKS if math.prod(block) * window <= _WINDOWS)
        launch = level_launch("median", task, reach, 4 * size * size, block=usual, SIZE=size)
        return replace(launch, shared_bytes=math.prod(launch.block) * window)
    return level_launch("median", task, reach, bits * size * size, block=_BLOCKS[0], SIZE=size)


SPEC = FilterSpec(
    id="median",
    name="Median",
    category="Smoothing",
    summary="Takes the middle value of the square around each pixel: removes specks, keeps edges.",
    source="Korčuška 2013, chapters 1 and 5; counting after Huang, Yang and Tang 1979, networks "
    "after Batcher 1968 and Adams 2021",
    parameters=(
        OddParameter(
            name="size",
            label="Mask size",
            help="Side of the square whose middle value is taken.",
            default=3,
            minimum=3,
            maximum=31,
            slider=(3, 9),
        ),
    ),
    radius=radius,
    plan_cpu=plan_cpu,
    plan_cuda=plan_cuda,
    gpu_levels=(SINGLE_BLOCK, GLOBAL, SELECTION, SHARED, TEXTURE, TUNED),
    gpu_gaps={
        CONSTANT.id: "There are no weights, and a table of comparisons for sorting the largest "
        "mask would take 75 KiB: constant memory has 64."
    },
)
