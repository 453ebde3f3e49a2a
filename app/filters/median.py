"""Median filter: every pixel becomes the middle value of the square around it.

An even number of cells (only with `Border.REDUCE`) has two middle values; the lower counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.filters.borders import REDUCE, VALID, border_index, fetch_row
from app.filters.jit import kernel
from app.filters.launch import CudaTask, Launch, level_launch
from app.filters.networks import BOTH, MINIMUM, median_program
from app.filters.spec import (
    CONSTANT,
    GLOBAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    Border,
    CpuPass,
    FilterSpec,
    FilterTask,
    OddParameter,
)

_LEVEL_1 = 24_576
"""Bytes of level-1 cache that the places of a network may take up."""

_BLOCK = 128
"""Samples are computed in multiples of this, which leaves the vector loops no remainder."""


_NETWORK_OPERATIONS = {3: 17, 5: 60, 7: 140, 9: 240}
"""Minima and maxima for each sample at level *tuned*; larger masks are searched bit by bit."""


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


@kernel
def run_program(code: Any, base: Any, buffer: Any, samples: Any, channels: Any) -> None:
    """Run a network on `samples` neighbouring samples; its places begin at ``buffer[base]``.

    Indices are unsigned because negative ones, which Python allows, rule out vector code.
    """
    for line in range(code.shape[0]):
        operation = code[line, 0]
        low = np.uint64(base[code[line, 1]])
        high = np.uint64(base[code[line, 2]])
        a = np.uint64(base[code[line, 3]] + code[line, 4] * channels)
        b = np.uint64(base[code[line, 5]] + code[line, 6] * channels)
        blocks = (samples + code[line, 7] * channels + _BLOCK - 1) // _BLOCK
        count = np.uint64(blocks * _BLOCK)
        if operation == BOTH:
            for i in range(count):
                u = buffer[a + i]
                v = buffer[b + i]
                buffer[low + i] = u if u < v else v
                buffer[high + i] = u if u > v else v
        elif operation == MINIMUM:
            for i in range(count):
                u = buffer[a + i]
                v = buffer[b + i]
                buffer[low + i] = u if u < v else v
        else:
            for i in range(count):
                u = buffer[a + i]
                v = buffer[b + i]
                buffer[high + i] = u if u > v else v


@kernel
def median_network(
    source: Any,
    output: Any,
    radius: Any,
    border: Any,
    code: Any,
    results: Any,
    inputs: Any,
    places: Any,
    chunk: Any,
    start: Any,
    stop: Any,
) -> None:
    """Run a network over groups of rows, `chunk` samples at a time.

    The padded rows that a group needs are kept in a ring; channels are samples side by side.
    """
    channels = source.shape[2]
    samples = output.shape[1] * channels
    padded = samples + 2 * radius * channels
    margin = 2 * radius * channels + 2 * _BLOCK
    pitch = samples + margin
    buffer = np.empty(inputs * pitch + (places - inputs) * (chunk + margin), source.dtype)
    base = np.empty(places, np.int64)
    for place in range(inputs, places):
        base[place] = inputs * pitch + (place - inputs) * (chunk + margin)
    flat = output.reshape(output.shape[0], samples)
    last = output.shape[0] - 1 + 2 * radius
    group = inputs - 2 * radius
    fetched = start
    for y in range(start, stop, group):
        while fetched < y + inputs:
            begin = fetched % inputs * pitch
            # The last group may reach beyond the image; nobody reads its surplus rows.
            line = buffer[begin : begin + padded]
            fetch_row(source, min(fetched, last), radius, border, line)
            fetched += 1
        for x in range(0, samples, chunk):
            for row in range(inputs):
                base[row] = (y + row) % inputs * pitch + x
            count = min(chunk, samples - x)
            run_program(code, base, buffer, count, channels)
            for row in range(min(group, stop - y)):
                begin = base[results[row]]
                flat[y + row, x : x + count] = buffer[begin : begin + count]


def radius(parameters: Mapping[str, Any]) -> int:
    return int(parameters["size"]) // 2


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    arguments = (task.source, task.output, radius(task.parameters))
    rows = task.output.shape[0]
    if task.level == "serial":
        return [CpuPass(median_serial, (*arguments, task.border.code), rows)]
    program = median_program(task.parameters["size"])
    share = _LEVEL_1 // (program.places * task.source.itemsize)
    chunk = max(2, share // _BLOCK) * _BLOCK
    network = (program.code, program.outputs, program.inputs, program.places, chunk)
    passes = [CpuPass(median_network, (*arguments, task.border.code, *network), rows)]
    if task.border is Border.REDUCE:
        passes.append(CpuPass(median_frame, arguments, rows))
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
    operations = bits * size * size
    return level_launch("median", task, radius(task.parameters), operations, SIZE=size)


SPEC = FilterSpec(
    id="median",
    name="Median",
    category="Smoothing",
    summary="Takes the middle value of the square around each pixel: removes specks, keeps edges.",
    source="Korčuška 2013, chapter 2; networks after Batcher 1968 and Adams 2021",
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
    gpu_levels=(SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
    gpu_gaps={
        CONSTANT.id: "There are no weights, and a table of comparisons for sorting the largest "
        "mask would take 75 KiB: constant memory has 64."
    },
)
