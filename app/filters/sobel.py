"""Sobel filter: the gradient, large at edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.filters.borders import VALID, border_index, fetch_row
from app.filters.correlation import Finish, settle, taps, weighted_sum
from app.filters.cuda_rows import rows_launch
from app.filters.jit import kernel
from app.filters.launch import CudaTask, Launch, level_launch
from app.filters.spec import (
    CONSTANT,
    GLOBAL,
    SERIAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    Choice,
    ChoiceParameter,
    CpuPass,
    FilterSpec,
    FilterTask,
)

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

FORMS = ("sum", "magnitude", "directions")
_SUM, _MAGNITUDE, _DIRECTIONS = range(3)


@kernel
def sobel_serial(
    source: Any,
    output: Any,
    masks: Any,
    form: Any,
    finish: Any,
    border: Any,
    start: Any,
    stop: Any,
) -> None:
    """Plain loops: for every sample, every cell of every mask. Sums are int64 or float64."""
    height, width, channels = source.shape
    shift = 1 if border == VALID else 0
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(channels):
                result = 0.0
                for m in range(masks.shape[0]):
                    total = 0 * masks[0, 0, 0]
                    for s in range(-1, 2):
                        yy = border_index(y + shift + s, height, border)
                        for t in range(-1, 2):
                            xx = border_index(x + shift + t, width, border)
                            if yy >= 0 and xx >= 0:
                                total += masks[m, 1 + s, 1 + t] * source[yy, xx, c]
                    gradient = np.float64(abs(total))
                    if form == _SUM:
                        result += gradient
                    elif form == _MAGNITUDE:
                        result += gradient * gradient
                    else:
                        result = max(result, gradient)
                if form == _MAGNITUDE:
                    result = np.sqrt(result)
                output[y, x, c] = settle(result, finish)


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


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    form = FORMS.index(task.parameters["form"])
    masks = MASKS if form == _DIRECTIONS else MASKS[:2]
    if task.level == SERIAL.id:
        if source.dtype.kind == "f":
            masks = masks.astype(np.float64)
        finish = Finish.of(source.dtype, np.float64)
        serial = (source, output, masks, form, finish, border.code)
        return [CpuPass(sobel_serial, serial, output.shape[0])]
    # Sums of squares of 8-bit gradients fit the 24 bits of float32. Those of 16-bit ones
    # need float64, which also brings the root near enough to tell on which side of a
    # half it is: it never is one, and is off by 1/4 / (2 * 65536) at least.
    work = np.float32 if source.dtype == np.uint8 else np.float64
    places, weights = (np.stack(part) for part in zip(*(taps(m, work) for m in masks), strict=True))
    finish = Finish.of(source.dtype, work)
    parallel = (source, output, places, weights, form, finish, border.code)
    return [CpuPass(sobel_parallel, parallel, output.shape[0])]


def plan_cuda(task: CudaTask) -> Launch:
    form = FORMS.index(task.parameters["form"])
    operations = (15, 18, 30)[form]
    if task.level == TUNED.id:
        return rows_launch("sobel", task, operations, FORM=form)
    return level_launch("sobel", task, 1, operations, FORM=form)


SPEC = FilterSpec(
    id="sobel",
    name="Sobel",
    category="Edges",
    summary="Finds edges with the first derivative, smoothed across its direction.",
    source="Korčuška 2013, section 1.4",
    parameters=(
        ChoiceParameter(
            name="form",
            label="Form",
            help="How the derivatives become one number.",
            default="sum",
            choices=(
                Choice("sum", "Sum", "|gx| + |gy|, horizontal and vertical derivative."),
                Choice("magnitude", "Magnitude", "√(gx² + gy²), the length of the gradient."),
                Choice("directions", "Eight directions", "The largest of the eight masks."),
            ),
        ),
    ),
    radius=radius,
    plan_cpu=plan_cpu,
    plan_cuda=plan_cuda,
    gpu_levels=(SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
    gpu_gaps={CONSTANT.id: "The weights are part of the code: nothing is kept in constant memory."},
)
