"""Sobel filter: the gradient, large at edges, and its directions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelscope.filters.shared.border_kernels import VALID, fetch_row
from kernelscope.filters.shared.correlation import Finish, settle, taps, weighted_sum
from kernelscope.filters.shared.plain import gather, interior, no_simd, put, wide_cell
from kernelscope.filters.shared.rows_cuda import rows_launch, small
from kernelscope.filters.sobel import directions
from kernelscope.jit import inlined, kernel
from kernelscope.spec.filter import Cpu, CpuPass, FilterSpec, FilterTask
from kernelscope.spec.launch import Cuda, CudaPlan, CudaTask, Launch, by_size, level_launch
from kernelscope.spec.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.spec.parameters import Choice, ChoiceParameter

MASKS = np.array(
    [
        [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
        [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
        [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
        [[-2, -1, 0], [-1, 0, 1], [0, 1, 2]],
    ],
    np.int64,
)
"""gx, gy and the two diagonals. The other four of the eight directions are their opposites."""

FORMS = ("sum", "magnitude", "directions", *directions.FORMS)
_SUM, _MAGNITUDE, _DIRECTIONS = range(3)
"""Those that `sobel_serial` and `sobel_parallel` compute; `directions` does the others."""


@inlined
def steepness(samples: Any, place: Any, pitch: Any, step: Any, form: Any) -> Any:
    """Return the float64 result for the 3x3 window whose first cell is at `place`.

    Its rows are `pitch` samples apart, its columns `step`.
    """
    below = place + 2 * pitch
    a = wide_cell(samples, place)
    b = wide_cell(samples, place + step)
    c = wide_cell(samples, place + 2 * step)
    d = wide_cell(samples, place + pitch)
    f = wide_cell(samples, place + pitch + 2 * step)
    g = wide_cell(samples, below)
    h = wide_cell(samples, below + step)
    i = wide_cell(samples, below + 2 * step)
    gx = abs(c + 2 * f + i - a - 2 * d - g)
    gy = abs(g + 2 * h + i - a - 2 * b - c)
    if form == _SUM:
        return np.float64(gx + gy)
    if form == _MAGNITUDE:
        return np.sqrt(np.float64(gx) * gx + np.float64(gy) * gy)
    rising = abs(b + 2 * c + f - d - 2 * g - h)
    falling = abs(f + 2 * i + h - b - 2 * a - d)
    return np.float64(max(max(gx, gy), max(rising, falling)))


@kernel
def sobel_rim(
    source: Any,
    results: Any,
    form: Any,
    finish: Any,
    border: Any,
    y: Any,
    first: Any,
    last: Any,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`."""
    no_simd()
    channels = source.shape[2]
    window = np.empty(9, source.dtype)
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.size // channels)
        for x in range(left, right):
            for c in range(channels):
                gather(source, y, x, c, 1, border, window)
                put(results, x * channels + c, steepness(window, 0, 3, 1, form), finish)


@kernel
def sobel_serial(
    source: Any,
    output: Any,
    form: Any,
    finish: Any,
    border: Any,
    start: Any,
    stop: Any,
) -> None:
    """Plain loops: for every sample, its eight neighbours."""
    no_simd()
    height, width, channels = source.shape
    inset = 0 if border == VALID else 1
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, 1, height, width, border)
        sobel_rim(source, results, form, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            if channels == 1:  # a known step leaves fewer addresses to keep
                value = steepness(samples, corner + x, pitch, 1, form)
            else:
                value = steepness(samples, corner + x, pitch, channels, form)
            put(results, x, value, finish)


@kernel
def sobel_parallel(
    source: Any,
    output: Any,
    places: Any,
    weights: Any,
    form: Any,
    finish: Any,
    border: Any,
    start: Any,
    stop: Any,
) -> None:
    """Row by row over a ring of padded rows, in the type of `weights`.

    Parameters
    ----------
    places : ndarray of int64, shape (masks, taps, 2)
        Row and column of each weight in its mask.
    weights : ndarray of float32 or float64, shape (masks, taps)
    """
    channels = source.shape[2]
    length = output.shape[1] * channels
    stride = length + 2 * channels
    ring = np.empty(3 * stride, weights.dtype)
    offsets = np.empty(weights.shape[1], np.int64)
    gradient = np.empty(length, weights.dtype)
    results = np.empty(length, weights.dtype)
    for row in range(start, stop + 2):
        slot = row % 3 * stride
        fetch_row(source, row, 1, border, ring[slot : slot + stride])
        y = row - 2
        if y < start:
            continue
        results[:] = 0
        for m in range(weights.shape[0]):
            for i in range(offsets.size):
                offsets[i] = (y + places[m, i, 0]) % 3 * stride + places[m, i, 1] * channels
            weighted_sum(ring, offsets, weights[m], gradient)
            if form == _SUM:
                for x in range(length):
                    results[x] += abs(gradient[x])
            elif form == _MAGNITUDE:
                for x in range(length):
                    results[x] += gradient[x] * gradient[x]
            else:
                for x in range(length):
                    results[x] = max(results[x], abs(gradient[x]))
        if form == _MAGNITUDE:
            for x in range(length):
                results[x] = np.sqrt(results[x])
        samples = output[y].reshape(length)
        for x in range(length):
            samples[x] = settle(results[x], finish)


def radius(parameters: Mapping[str, Any]) -> int:
    return 1


def output_channels(channels: int, parameters: Mapping[str, Any]) -> int:
    return directions.output_channels(channels, parameters["form"])


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    form = FORMS.index(task.parameters["form"])
    if form > _DIRECTIONS:
        return directions.plan_directions(task)
    if task.level == SERIAL.id:
        finish = Finish.of(source.dtype, np.float64)
        serial = (source, output, form, finish, border.code)
        return [CpuPass(sobel_serial, serial, output.shape[0])]
    # Sums of squares of 8-bit gradients fit the 24 bits of float32. Those of 16-bit ones
    # need float64, which also brings the root near enough to tell on which side of a
    # half it is: it never is one, and is off by 1/4 / (2 * 65536) at least.
    masks = MASKS if form == _DIRECTIONS else MASKS[:2]
    work = np.float32 if source.dtype == np.uint8 else np.float64
    places, weights = (np.stack(part) for part in zip(*(taps(m, work) for m in masks), strict=True))
    finish = Finish.of(source.dtype, work)
    parallel = (source, output, places, weights, form, finish, border.code)
    return [CpuPass(sobel_parallel, parallel, output.shape[0])]


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    form = FORMS.index(task.parameters["form"])
    operations = (15, 18, 30, 30, 30, 100, 100)[form]
    alone = task.parameters["form"] == "single"
    direction = directions.COMPASS.index(task.parameters["direction"]) if alone else 0
    if task.level != TUNED.id:
        return level_launch("sobel", task, 1, operations, FORM=form, DIRECTION=direction)
    if task.parameters["form"].startswith("angle"):  # a thread a pixel, as at the other levels
        return level_launch("sobel", task, 1, operations, FORM=form, CHANNELS=task.shape[2])
    launch = rows_launch("sobel", task, 3, operations, FORM=form, DIRECTION=direction)
    # Eight masks of three floats each are so much work that the loads saved do not show.
    floats_in_colour = task.dtype.kind == "f" and task.shape[2] > 1
    never = task.parameters["form"] == "winner" and floats_in_colour
    return by_size(task, launch, plan_cuda, GLOBAL, math.inf if never else small(task))


SPEC = FilterSpec(
    id="sobel",
    name="Sobel",
    category="Edges",
    summary="Finds edges with the first derivative, smoothed across its direction.",
    source="Korčuška 2013, section 1.4, equations 3 and 4",
    parameters=(
        ChoiceParameter(
            name="form",
            label="Form",
            help="What is made of the derivatives.",
            default="sum",
            choices=(
                Choice("sum", "Sum", "|gx| + |gy|, horizontal and vertical derivative."),
                Choice("magnitude", "Magnitude", "√(gx² + gy²), the length of the gradient."),
                Choice("directions", "Eight directions", "The largest of the eight masks."),
                Choice("single", "One direction", "One of the eight masks alone, not below 0."),
                Choice(
                    "winner",
                    "Strongest direction",
                    "Which of the eight masks is the largest: the n-th of N, NE, E, SE, S, SW, W, "
                    "NW is n eighths of white, the first of several; 0 where there is no edge.",
                ),
                Choice(
                    "angle",
                    "Angle",
                    "atan2(gy, gx): 0 where it gets brighter to the right, then clockwise; a full "
                    "turn is 256, with 16 bits 65536, with floats 1. 0 also where there is no "
                    "edge.",
                ),
                Choice(
                    "angle-colour",
                    "Angle as a colour",
                    "The angle as hue: red where it gets brighter to the right, then clockwise "
                    "yellow, green, cyan, blue; √(gx² + gy²) as brightness, in colour pictures of "
                    "the channel where that is largest.",
                ),
            ),
        ),
        ChoiceParameter(
            name="direction",
            label="Direction",
            help="Where to it gets brighter at the edges that are found.",
            default="N",
            choices=tuple(Choice(name, name) for name in directions.COMPASS),
            matters=lambda values: values["form"] == "single",
        ),
    ),
    radius=radius,
    output_channels=output_channels,
    implementations={
        "cpu": Cpu(plan_cpu),
        "gpu": Cuda(
            plan_cuda,
            (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
            {CONSTANT.id: "The weights are part of the code: nothing is kept in constant memory."},
        ),
    },
)
