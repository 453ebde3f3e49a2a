"""Median filter: every pixel becomes the middle value of the square around it.

An even number of cells (only with `Border.REDUCE`) has two middle values; the lower counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.errors import InvalidImage
from kernelscope.filters.median.networks import Lane, median_program
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, fetch_row
from kernelscope.filters.shared.plain import cell, interior, no_simd
from kernelscope.jit import inlined, intrinsic, kernel
from kernelscope.spec.filter import (
    CONSTANT,
    GLOBAL,
    PARALLEL,
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
from kernelscope.spec.launch import CudaPlan, CudaTask, Launch, by_size, level_launch

_VECTOR = 32
"""Bytes of a vector register (AVX2)."""

_LEVEL_1 = 24_576
"""Bytes of level-1 cache that the places of a network may take up."""

_SHORTEST = 256
"""Fewest samples to run a network on, lest starting its loops costs more than they do."""

_EXCHANGES = 2**24
"""Most pairs that are compared in a unit of work of level `BUBBLE`: it has to end in time."""

_NETWORK_OPERATIONS = {3: 17, 5: 60, 7: 140, 9: 240}
"""Minima and maxima for each sample at level *tuned*; larger masks are searched bit by bit."""

_SMALL_WORK, _SMALL_WORK_CUT = 40e6, 50e6
"""Comparisons of a level that searches bit by bit, for one channel of a whole picture, from which
on level *tuned* is quicker, whose work grows less with the mask; measured on an H100 for 3x3 to
11x11. By channel, as the channels keep a thread of either level busy one after another. More where
the border cuts windows, of which the tuned kernel has all threads of a block look at each."""

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

PLAIN = replace(
    SERIAL, help="One thread, plain loops: Hoare's selection picks the middle cell of each mask."
)
BUBBLE = Level(
    "serial-bubble",
    "Serial, bubble sort",
    "One thread, plain loops: sorts the cells of each mask by exchanging neighbours.",
    single=True,
)
HUANG = Level(
    "serial-huang",
    "Serial, Huang",
    "One thread: counts values while the mask moves along the row; for 8 and 16 bits.",
    single=True,
)


@inlined
def middle(cells: Any, count: Any) -> Any:
    """Return the (lower) median of ``cells[:count]``, which it reorders (Hoare's quickselect)."""
    no_simd()
    rank = (count - 1) // 2
    low = 0
    high = count - 1
    while low < high:
        pivot = cell(cells, (low + high) // 2)
        i = low
        j = high
        while i <= j:
            while cell(cells, i) < pivot:
                i += 1
            while pivot < cell(cells, j):
                j -= 1
            if i <= j:
                exchange(cells, i, j)
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return cell(cells, rank)


@inlined
def exchange(cells: Any, i: Any, j: Any) -> None:
    """Let two cells change places."""
    kept = cell(cells, i)
    cells[np.uintp(i)] = cell(cells, j)
    cells[np.uintp(j)] = kept


@inlined
def sorted_middle(cells: Any, count: Any) -> Any:
    """As `middle`, after sorting all cells by exchanging neighbours (bubble sort)."""
    no_simd()
    for last in range(count - 1, 0, -1):
        for i in range(last):
            if cell(cells, i) > cell(cells, i + 1):
                exchange(cells, i, i + 1)
    return cell(cells, (count - 1) // 2)


@kernel
def median_rim(
    source: Any,
    output: Any,
    radius: Any,
    border: Any,
    bubble: Any,
    cells: Any,
    y: Any,
    first: Any,
    last: Any,
) -> None:
    """Compute output row `y` from column `first` up to `last`, whatever the border."""
    no_simd()
    height, width, channels = source.shape
    for x in range(first, last):
        for c in range(channels):
            count = 0
            for s in range(-radius, radius + 1):
                yy = border_index(y + s, height, border)
                for t in range(-radius, radius + 1):
                    xx = border_index(x + t, width, border)
                    if yy >= 0 and xx >= 0:
                        cells[count] = source[yy, xx, c]
                        count += 1
                    elif border != REDUCE:
                        cells[count] = 0
                        count += 1
            output[y, x, c] = sorted_middle(cells, count) if bubble else middle(cells, count)


@kernel
def median_serial(
    source: Any,
    output: Any,
    radius: Any,
    border: Any,
    bubble: Any,
    columns: Any,
    start: Any,
    stop: Any,
) -> None:
    """Plain loops: for every sample, pick the middle one of the cells of the mask.

    Of each row from one of `columns` up to the other. `bubble` sorts the cells instead.
    """
    no_simd()
    height, width, channels = source.shape
    side = 2 * radius + 1
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    cells = np.empty(side * side, source.dtype)
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        first = min(max(first, columns[0]), columns[1])
        last = min(max(last, columns[0]), columns[1])
        median_rim(source, output, radius, border, bubble, cells, y, columns[0], first)
        results = output[y].reshape(output.shape[1] * channels)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            count = 0
            for s in range(side):
                row = corner + x + s * pitch
                for t in range(side):
                    cells[np.uintp(count)] = cell(samples, row + t * channels)
                    count += 1
            results[x] = sorted_middle(cells, count) if bubble else middle(cells, count)
        median_rim(source, output, radius, border, bubble, cells, y, last, columns[1])


@inlined
def count_cell(value: Any, step: Any, shift: Any, groups: Any, counts: Any) -> None:
    """Add `step` to the counts of a value and of its group, 2**shift neighbouring values."""
    counts[np.uintp(value)] += step
    groups[np.uintp(value >> shift)] += step


@kernel
def count_rim(
    source: Any,
    y: Any,
    x: Any,
    c: Any,
    radius: Any,
    border: Any,
    step: Any,
    shift: Any,
    groups: Any,
    counts: Any,
) -> Any:
    """Count a column of the mask, whatever the border; return `step` times its cells."""
    no_simd()
    height, width, _ = source.shape
    total = 0
    xx = border_index(x, width, border)
    for s in range(-radius, radius + 1):
        yy = border_index(y + s, height, border)
        if yy >= 0 and xx >= 0:
            count_cell(np.int64(source[yy, xx, c]), step, shift, groups, counts)
            total += step
        elif border != REDUCE:
            count_cell(0, step, shift, groups, counts)
            total += step
    return total


@kernel
def median_huang(
    source: Any, output: Any, radius: Any, border: Any, shift: Any, start: Any, stop: Any
) -> None:
    """Count the cells by value while the mask moves along the row, column by column (Huang).

    There are 4**shift values; groups of 2**shift of them are counted too, which shortens the
    way to the middle one.
    """
    no_simd()
    height, width, channels = source.shape
    side = 2 * radius + 1
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    counts = np.empty(1 << 2 * shift, np.int32)
    groups = np.empty(1 << shift, np.int32)
    for y in range(start, stop):
        middle_y = y - inset + radius
        inside = radius <= middle_y < height - radius
        top = (middle_y - radius) * pitch
        for c in range(channels):
            counts[:] = 0
            groups[:] = 0
            total = 0
            for x in range(1 - side, output.shape[1]):
                # The column that joins the mask, and below the one that leaves it.
                new = x - inset + 2 * radius
                if inside and 0 <= new < width:
                    place = top + new * channels + c
                    for s in range(side):
                        value = np.int64(cell(samples, place + s * pitch))
                        count_cell(value, 1, shift, groups, counts)
                    total += side
                else:
                    total += count_rim(
                        source, middle_y, new, c, radius, border, 1, shift, groups, counts
                    )
                if x < 0:
                    continue
                # How many values below the middle one are still to be passed.
                left = (total - 1) // 2
                group = 0
                while left >= cell(groups, group):
                    left -= cell(groups, group)
                    group += 1
                value = group << shift
                while left >= cell(counts, value):
                    left -= cell(counts, value)
                    value += 1
                output[y, x, c] = value
                old = x - inset
                if inside and 0 <= old < width:
                    place = top + old * channels + c
                    for s in range(side):
                        value = np.int64(cell(samples, place + s * pitch))
                        count_cell(value, -1, shift, groups, counts)
                    total -= side
                else:
                    total += count_rim(
                        source, middle_y, old, c, radius, border, -1, shift, groups, counts
                    )


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
        median_rim(source, output, radius, REDUCE, False, cells, y, 0, left)
        median_rim(source, output, radius, REDUCE, False, cells, y, right, width)


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


def plan_serial(task: FilterTask, size: int) -> Iterator[CpuPass]:
    """Plan the levels that run on one thread."""
    arguments = (task.source, task.output, size // 2, task.border.code)
    rows, width = task.output.shape[:2]
    if task.level != HUANG.id:
        bubble = task.level == BUBBLE.id
        step = max(1, _EXCHANGES // size**4) if bubble else width
        for first in range(0, width, step):
            columns = (first, min(first + step, width))
            yield CpuPass(median_serial, (*arguments, bubble, columns), rows)
    elif task.source.dtype.kind == "f":
        raise InvalidImage(
            "Values with fractions cannot be counted one by one, as Huang's histogram does.",
            "Choose another level, or a picture of 8 or 16 bits.",
        )
    else:
        yield CpuPass(median_huang, (*arguments, 4 * task.source.itemsize), rows)


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    size = task.parameters["size"]
    rows = task.output.shape[0]
    if task.level != PARALLEL.id:
        return list(plan_serial(task, size))
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


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    size = int(task.parameters["size"])
    bits = 8 * task.dtype.itemsize
    if task.level == TUNED.id:
        block, tile = (32, 8), (32, 32)
        network = _NETWORK_OPERATIONS.get(size)
        if network is not None:
            # Samples of 8 or 16 bits are compared two at a time, one far below the other.
            rows = (16 if size == 3 else 8) * (1 if bits == 32 else 2)
            block, tile = (32, 4), (128, rows)
        tuned = Launch(
            kernel="median_tuned",
            defines=task.defines(SIZE=size, TUNED=1),
            block=block,
            tile=tile,
            bytes_per_sample=2.0 * task.dtype.itemsize,
            operations_per_sample=network or 6 * size * bits,
        )
        # Where the border cuts windows, a tile has all of its cells looked at one by one; under
        # `valid` it spares nobody the rim, as there is none.
        level = GLOBAL if task.border in (Border.REDUCE, Border.VALID) else SHARED
        work = _SMALL_WORK_CUT if task.border is Border.REDUCE else _SMALL_WORK
        least = task.shape[2] * work / (bits * size * size)
        return by_size(task, tuned, plan_cuda, level, least)
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
    cpu_levels=(PLAIN, BUBBLE, HUANG, PARALLEL),
    gpu_levels=(SINGLE_BLOCK, GLOBAL, SELECTION, SHARED, TEXTURE, TUNED),
    gpu_gaps={
        CONSTANT.id: "There are no weights, and a table of comparisons for sorting the largest "
        "mask would take 75 KiB: constant memory has 64."
    },
)
