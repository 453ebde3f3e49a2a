"""Mean filter: every pixel becomes the average of the square around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.filters.borders import REDUCE, VALID, border_index, divide_round
from app.filters.jit import kernel
from app.filters.launch import CudaTask, Launch, level_launch
from app.filters.spec import (
    CONSTANT,
    GLOBAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    CpuPass,
    FilterSpec,
    FilterTask,
    OddParameter,
)


@kernel
def mean_serial_integer(
    source: Any, output: Any, radius: Any, border: Any, start: Any, stop: Any
) -> None:
    """Plain loops: for every sample, every cell of the mask."""
    height, width, channels = source.shape
    shift = radius if border == VALID else 0
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(channels):
                total = np.int64(0)
                count = 0
                for s in range(-radius, radius + 1):
                    yy = border_index(y + shift + s, height, border)
                    for t in range(-radius, radius + 1):
                        xx = border_index(x + shift + t, width, border)
                        if yy >= 0 and xx >= 0:
                            total += np.int64(source[yy, xx, c])
                            count += 1
                        elif border != REDUCE:
                            count += 1
                output[y, x, c] = divide_round(total, count)


@kernel
def mean_serial_float(
    source: Any, output: Any, radius: Any, border: Any, start: Any, stop: Any
) -> None:
    """As `mean_serial_integer`, summed in float64."""
    height, width, channels = source.shape
    shift = radius if border == VALID else 0
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(channels):
                total = 0.0
                count = 0
                for s in range(-radius, radius + 1):
                    yy = border_index(y + shift + s, height, border)
                    for t in range(-radius, radius + 1):
                        xx = border_index(x + shift + t, width, border)
                        if yy >= 0 and xx >= 0:
                            total += np.float64(source[yy, xx, c])
                            count += 1
                        elif border != REDUCE:
                            count += 1
                output[y, x, c] = np.float32(total / count)


def radius(parameters: Mapping[str, Any]) -> int:
    return int(parameters["size"]) // 2


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    serial = mean_serial_float if task.source.dtype == np.float32 else mean_serial_integer
    arguments = (task.source, task.output, radius(task.parameters), task.border.code)
    return [CpuPass(serial, arguments, task.output.shape[0])]


def plan_cuda(task: CudaTask) -> Launch:
    size = int(task.parameters["size"])
    return level_launch("mean", task, radius(task.parameters), size * size + 1, SIZE=size)


SPEC = FilterSpec(
    id="mean",
    name="Mean",
    category="Smoothing",
    summary="Averages the square around each pixel: smooths noise and edges alike.",
    source="Korčuška 2013, chapter 2; parallel computing report no. 5",
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
    radius=radius,
    plan_cpu=plan_cpu,
    plan_cuda=plan_cuda,
    gpu_levels=(SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE),
    gpu_gaps={CONSTANT.id: "All weights are one: there is no mask to keep in constant memory."},
)
