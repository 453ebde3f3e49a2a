"""Greyscale conversion after ITU-R BT.601."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.filters.borders import divide_round
from app.filters.jit import kernel
from app.filters.spec import CpuPass, FilterSpec, FilterTask


@kernel
def greyscale_integer(source: Any, output: Any, start: Any, stop: Any) -> None:
    """Exact: the weights are whole thousandths, ties go to even."""
    for y in range(start, stop):
        for x in range(source.shape[1]):
            red = np.int64(source[y, x, 0])
            green = np.int64(source[y, x, 1])
            blue = np.int64(source[y, x, 2])
            output[y, x, 0] = divide_round(299 * red + 587 * green + 114 * blue, 1000)


@kernel
def greyscale_float(source: Any, output: Any, start: Any, stop: Any) -> None:
    """As `greyscale_integer`, in float64."""
    for y in range(start, stop):
        for x in range(source.shape[1]):
            red = np.float64(source[y, x, 0])
            green = np.float64(source[y, x, 1])
            blue = np.float64(source[y, x, 2])
            output[y, x, 0] = np.float32(0.299 * red + 0.587 * green + 0.114 * blue)


@kernel
def greyscale_copy(source: Any, output: Any, start: Any, stop: Any) -> None:
    """A grey image stays as it is."""
    output[start:stop] = source[start:stop]


def output_channels(channels: int) -> int:
    return channels if channels <= 2 else channels - 2


def radius(parameters: Mapping[str, Any]) -> int:
    return 0


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    if task.source.shape[2] <= 2:
        convert = greyscale_copy
    elif task.source.dtype == np.float32:
        convert = greyscale_float
    else:
        convert = greyscale_integer
    return [CpuPass(convert, (task.source, task.output), task.output.shape[0])]


SPEC = FilterSpec(
    id="greyscale",
    name="Greyscale",
    category="Colour",
    summary="Converts colour to grey with the weights of the eye (ITU-R BT.601).",
    source="ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B",
    parameters=(),
    radius=radius,
    plan_cpu=plan_cpu,
    output_channels=output_channels,
)
