"""Non-local means on the CPU: the passes of its levels.

All levels widen the image, add up weights and weighted samples, and divide one by the other; they
differ in how they add up: `serial`, or `window_tiles` and `image_turns` for level *parallel*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.parallel import core_count
from kernelscope.filters.nlm import image_turns, window_tiles
from kernelscope.filters.nlm.image_turns import nlm_image
from kernelscope.filters.nlm.pairs import VECTOR, WIDEST
from kernelscope.filters.nlm.search import PatchSearch, radius, whole
from kernelscope.filters.nlm.serial import nlm_serial
from kernelscope.filters.nlm.sums import (
    LONGEST,
    PatchMetric,
    Sums,
    count_itself,
    divide_sums,
    extend,
)
from kernelscope.filters.nlm.window_tiles import nlm_window
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.correlation import Finish
from kernelscope.filters.shared.non_local import falloff, noise_floor, patch_profile
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.samples import colour_count, white_level

CANDIDATES = 2**18
"""Most candidates in a unit of work of level *serial*, which is a pixel: the largest window has
fewer."""


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    colours = colour_count(source.shape[2])
    group = colours if parameters["colour"] == "joint" else 1
    height, width, _ = output.shape
    margin, half = radius(parameters), parameters["patch"] // 2
    search = PatchSearch(
        margin,
        max(height, width) if whole(parameters) else parameters["search_radius"],
        margin if task.border is Border.REDUCE else half,
    )
    extended: NDArray[np.float32] = np.zeros(
        (colours, height + 2 * margin, width + 2 * margin + 2 * VECTOR), np.float32
    )
    sums = Sums(
        np.zeros((colours, height, width), np.float32),
        np.zeros((colours // group, height, width), np.float32),
    )
    widen = (source, extended, margin, task.border.code)
    passes = [CpuPass(extend, widen, extended.shape[1], cost=0)]
    metric = metric_of(parameters, source.dtype, group)
    if task.level == SERIAL.id:
        rows = extended.shape[1]
        step = max(1, CANDIDATES // width) if whole(parameters) else rows
        for row in range(0, rows, step):
            arguments = (extended, sums, metric, search, (row, row + step))
            passes.append(CpuPass(nlm_serial, arguments, height * width))
    else:
        passes.append(CpuPass(count_itself, (extended, sums, margin), height, cost=0))
        metric = metric._replace(profile=(*metric.profile, *(np.float32(0),) * LONGEST)[:LONGEST])
        if whole(parameters):
            passes.extend(plan_image(extended, sums, metric, search))
        else:
            exact = is_exact(source.dtype, parameters, group)
            passes.extend(plan_window(extended, sums, metric, search, exact))
    finish = Finish.of(source.dtype, np.float32)
    passes.append(CpuPass(divide_sums, (sums, output, finish), height, cost=0))
    return passes


def metric_of(parameters: Mapping[str, Any], dtype: np.dtype[Any], group: int) -> PatchMetric:
    """Return how patches of `group` channels are compared."""
    profile = patch_profile(parameters).astype(np.float32)
    unit = group * white_level(dtype) ** 2
    scale = np.float32(-math.log2(math.e) / (unit * falloff(parameters)))
    return PatchMetric(
        group, profile, len(profile), scale, np.float32(unit * noise_floor(parameters))
    )


def uncompiled_passes(task: CpuTask) -> Sequence[CpuPass]:
    """Return the passes of NumPy; none where the whole image is searched, which takes minutes."""
    return () if whole(task.parameters) else uncompiled.by_numpy(_rows, step=64)(task)


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy, one offset of the window after the other."""
    parameters, reach = task.parameters, task.parameters["search_radius"]
    colours = colour_count(task.source.shape[2])
    group = colours if parameters["colour"] == "joint" else 1
    metric = metric_of(parameters, task.source.dtype, group)
    half, margin = parameters["patch"] // 2, radius(parameters)
    reduces = task.border is Border.REDUCE
    wide = replace(task, border=Border.REFLECT) if reduces else task
    found = uncompiled.cells(wide, margin, start, stop, np.float32).samples[..., :colours]
    counted = uncompiled.cells(task, margin, start, stop).inside if reduces else None
    rows, columns = stop - start, task.output.shape[1]

    def part(array: NDArray[Any], dy: int, dx: int, more: int = 0) -> NDArray[Any]:
        top, left = margin + dy - more, margin + dx - more
        return array[top : top + rows + 2 * more, left : left + columns + 2 * more]

    # Squares of these are exponents; `floor` is the exponent without loss of weight.
    natural = -metric.scale * math.log(2)
    scaled, floor = found * np.float32(math.sqrt(natural)), np.float32(metric.floor * natural)
    is_uniform = bool((metric.profile == 1).all())
    totals = np.zeros((rows, columns, colours), np.float32)
    weights = np.zeros((rows, columns, colours // group), np.float32)

    def add(weight: NDArray[Any], dy: int, dx: int) -> None:
        if counted is not None:
            weight = weight * part(counted, dy, dx)
        np.add(weights, weight, out=weights)
        np.add(totals, weight * part(found, dy, dx), out=totals)

    for dy in range(reach + 1):
        for dx in range(-reach if dy else 0, reach + 1):
            # Both ways at once: of the band, and of the pixels by this offset before it.
            first, before = -min(dx, 0), max(dx, 0)
            tall, wide = rows + dy + 2 * half, columns + abs(dx) + 2 * half
            top, left = margin - dy - half, margin - before - half
            squares = (
                scaled[top : top + tall, left : left + wide]
                - (scaled[top + dy : top + dy + tall, left + dx : left + dx + wide])
            )
            squares *= squares
            if group > 1:
                squares = squares.sum(-1, keepdims=True)
            if is_uniform:
                apart = uncompiled.along_both(squares, metric.side, np.add)
            else:
                apart = uncompiled.weighted_along_both(squares, metric.profile)
            np.subtract(floor, apart, out=apart)
            np.minimum(apart, 0, out=apart)
            weight = np.exp(apart, out=apart)
            add(weight[dy:, before : before + columns], dy, dx)
            if dy or dx:
                add(weight[:rows, first : first + columns], -dy, -dx)
    output = np.empty((rows, columns, task.source.shape[2]), task.source.dtype)
    output[..., :colours] = uncompiled.finished(task, totals / weights)
    return output


def is_exact(dtype: np.dtype[Any], parameters: Mapping[str, Any], group: int) -> bool:
    """Return whether float32 holds all sums of squared differences down a column of a patch."""
    largest = group * parameters["patch"] * white_level(dtype) ** 2
    return dtype.kind == "u" and parameters["weights"] != "gaussian" and largest <= 2**24


def plan_window(
    extended: NDArray[np.float32], sums: Sums, metric: PatchMetric, search: PatchSearch, exact: bool
) -> Iterator[CpuPass]:
    """Plan the passes of level *parallel* that search a window; `exact` is from `is_exact`."""
    colours, height, width = sums.samples.shape
    reach, groups, across = search.reach, colours // metric.group, -(-width // WIDEST)
    tall = window_tiles.tile_rows(height, across * groups, reach, core_count())
    units = -(-height // tall) * across * groups
    step = max(1, window_tiles.OFFSETS // (2 * reach + 1))
    for dy in range(0, reach + 1, step):
        dys = (dy, min(dy + step, reach + 1))
        arguments = (
            extended,
            sums,
            metric,
            search,
            tall,
            dys,
            exact or None,
            None if exact else True,
        )
        yield CpuPass(nlm_window, arguments, units)


def plan_image(
    extended: NDArray[np.float32], sums: Sums, metric: PatchMetric, search: PatchSearch
) -> Iterator[CpuPass]:
    """Plan the passes of level *parallel* that search the whole image."""
    colours, height, width = sums.samples.shape
    tiles = -(-height // image_turns.ROWS) * -(-width // WIDEST)
    for turn, share in product(range(tiles), range(image_turns.SHARES)):
        arguments = (extended, sums, metric, search.margin, turn, share)
        yield CpuPass(nlm_image, arguments, tiles * (colours // metric.group))
