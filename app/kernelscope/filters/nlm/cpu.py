"""Non-local means on the CPU: the passes of its levels.

All levels widen the image, add up weights and weighted samples, and divide one by the other; they
differ in how they add up: `nlm_serial`, or `window_tiles` and `nlm_image` for level *parallel*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Record, inlined, kernel
from kernelscope.base.parallel import core_count
from kernelscope.filters.nlm import window_tiles
from kernelscope.filters.nlm.pairs import (
    LONGEST,
    VECTOR,
    WIDEST,
    PairTile,
    PatchMetric,
    PatchSearch,
    Sums,
    add_pairs,
    add_tile,
    count_itself,
    divide_sums,
    extend,
    make_scratch,
    radius,
    tile_at,
    whole,
    with_partners_in,
)
from kernelscope.filters.nlm.window_tiles import nlm_window
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.correlation import Finish
from kernelscope.filters.shared.non_local import falloff, noise_floor, patch_profile
from kernelscope.filters.shared.plain import cell, rolled
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.samples import colour_count, white_level

# Level *serial* of non-local means: plain loops over pixels, candidates and cells ------
#
# For each pixel i and each candidate j, the patches around both are compared cell by cell. With
# patches of 3x3, uniform weights and one channel, for example:
#
#     around i   1 2 3     around j   1 2 5     squares   0 0 4
#                4 5 6                4 5 6               0 0 0     D = 4 + 1 = 5
#                7 8 9                7 9 9               0 1 0
#
# j then has the weight exp(-5 / filter_sigma), for samples where white is 1, in the average for
# i. A window of (2 r + 1)² candidates with patches of g² cells takes (2 r + 1)² g² comparisons a
# pixel; for that level *parallel* finds shorter ways.


@inlined.plain
def distance(
    samples: Line,
    here: Index,
    there: Index,
    plane: Index,
    pitch: Index,
    group: Index,
    squares: Array,
) -> Any:
    """Return the sum of G² times squared differences of two patches of `group` channels.

    - `samples`: float32, one-dimensional.
    - `here`, `there`: places of the first cells of the patches.
    - `plane`, `pitch`: samples from one channel to the next, and from one row.
    - `squares`: float32, shape (patch, patch). G².
    """
    side = squares.shape[0]
    total = np.float32(0)
    for c in range(group):
        for s in range(side):
            row = c * plane + s * pitch
            for t in range(side):
                rolled()
                difference = cell(samples, here + row + t) - cell(samples, there + row + t)
                total += squares[s, t] * difference * difference
    return total


@kernel.plain
def nlm_serial(
    extended: Array,
    sums: Record,
    metric: Record,
    search: Record,
    rows: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for pixels `start` to `stop`, every candidate and every cell of its patch.

    The candidates are those in extended rows from one of `rows` up to the other.
    """
    colours, height, width = sums.samples.shape
    margin, reach, edge = search
    pitch = extended.shape[2]
    plane = extended.shape[1] * pitch
    samples = extended.reshape(extended.size)
    side = metric.profile.size
    half = side // 2
    squares = np.empty((side, side), np.float32)
    for s in range(side):
        for t in range(side):
            squares[s, t] = metric.profile[s] * metric.profile[t]
    totals = np.empty(metric.group)
    for pixel in range(start, stop):
        y = pixel // width + margin
        x = pixel % width + margin
        top = max(rows[0], edge, y - reach)
        bottom = min(rows[1], height + 2 * margin - edge, y + reach + 1)
        left, right = max(edge, x - reach), min(width + 2 * margin - edge, x + reach + 1)
        for first in range(0, colours, metric.group):
            # Patches begin half their side above and to the left of their pixel.
            corner = first * plane - half * pitch - half
            here = corner + y * pitch + x
            totals[:] = 0
            weights = 0.0
            for yy in range(top, bottom):
                for xx in range(left, right):
                    there = corner + yy * pitch + xx
                    apart = distance(samples, here, there, plane, pitch, metric.group, squares)
                    weight = np.exp2(metric.scale * max(apart - metric.floor, np.float32(0)))
                    weights += weight
                    for c in range(metric.group):
                        rolled()
                        totals[c] += weight * cell(samples, (first + c) * plane + yy * pitch + xx)
            for c in range(metric.group):
                sums.samples[first + c, y - margin, x - margin] += totals[c]
            sums.weights[first // metric.group, y - margin, x - margin] += weights


# Level *parallel* with a search of the whole image: tiles meet as in a tournament -------
#
# Every pair of tiles has to meet once, and since every weight counts both ways, no two threads may
# add to the same tile at a time. In turn t, the tiles meet whose numbers add up to t, modulo the
# number of tiles; with four tiles:
#
#     turn 0    0-0  1-3  2-2
#     turn 1    0-1  2-3
#     turn 2    0-2  1-1  3-3
#     turn 3    0-3  1-2
#
# Each tile meets one tile in a turn, which may be itself, and all of them in as many turns.

ROWS = 16  # rows of a tile
SHARES = 4  # units of work for each meeting of two tiles, so that a run can be cancelled soon


@kernel
def nlm_image(
    extended: Array,
    sums: Record,
    metric: Record,
    margin: Index,
    turn: Index,
    share: Index,
    start: Index,
    stop: Index,
) -> None:
    """Let tiles meet whose numbers add up to `turn`, modulo the number of tiles.

    Of the vertical offsets of two tiles it is every `SHARES`-th, from number `share` on.
    """
    colours, height, width = sums.samples.shape
    groups = colours // metric.group
    size, shape = (ROWS, WIDEST), (height, width)
    tiles = -(-height // ROWS) * -(-width // WIDEST)
    scratch = make_scratch(metric.side)
    own = np.empty((metric.group + 1, ROWS, min(width, WIDEST) + VECTOR), np.float32)
    others = np.empty_like(own)
    for unit in range(start, stop):
        first = unit % groups * metric.group
        planes = extended[first : first + metric.group]
        number = unit // groups
        partner = (turn - number) % tiles
        if partner < number:
            continue
        pixels = tile_at(number, size, margin, shape)
        partners = tile_at(partner, size, margin, shape)
        tile, other = PairTile(own, pixels.y, pixels.x), PairTile(others, partners.y, partners.x)
        own[:] = 0
        others[:] = 0
        down, right = partners.y - pixels.y, partners.x - pixels.x
        for dy in range(down - pixels.rows + 1 + share, down + partners.rows, SHARES):
            for dx in range(right - pixels.columns + 1, right + partners.columns):
                if number == partner and (dy < 0 or (dy == 0 and dx <= 0)):
                    continue  # the other half of the offsets counts both ways
                near = with_partners_in(pixels, partners, dy, dx)
                add_pairs(planes, near, (dy, dx), tile, other, metric, scratch)
        add_tile(tile, pixels, sums, first, margin)
        add_tile(other, partners, sums, first, margin)


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
    """Return the results of a band by NumPy, one offset of the window after the other.

    The padded rows of a channel are one line: an offset is a distance along it, whatever row it
    leads to. Results between the ends of two rows are not used.
    """
    parameters, reach = task.parameters, task.parameters["search_radius"]
    colours = colour_count(task.source.shape[2])
    group = colours if parameters["colour"] == "joint" else 1
    metric = metric_of(parameters, task.source.dtype, group)
    half, margin = parameters["patch"] // 2, radius(parameters)
    reduces = task.border is Border.REDUCE
    wide = replace(task, border=Border.REFLECT) if reduces else task
    found = uncompiled.cells(wide, margin, start, stop, np.float32).samples[..., :colours]
    inside = uncompiled.cells(task, margin, start, stop).inside if reduces else None
    counted = None if inside is None else inside.astype(np.float32).reshape(-1)
    pitch, columns = found.shape[1], task.output.shape[1]
    lines = np.moveaxis(found, 2, 0).reshape(colours, -1)
    # Squares of these are exponents; `floor` is the exponent without loss of weight.
    scaled = lines * np.sqrt(-metric.scale)
    floor = np.float32(-metric.scale * metric.floor)
    is_uniform = bool((metric.profile == 1).all())
    corner, first = half * pitch + half, margin * pitch + margin
    count = (stop - start - 1) * pitch + columns
    zeros = np.zeros(count + reach * (pitch + 1), np.float32)
    totals = np.zeros((colours // group, group, stop - start, pitch), np.float32)
    weights = np.zeros((colours // group, 1, stop - start, pitch), np.float32)
    sums = totals.reshape(colours, -1)[:, :count], weights.reshape(len(weights), -1)[:, :count]

    def add(number: int, weight: NDArray[Any], offset: int) -> None:
        at = slice(first + offset, first + offset + count)
        if counted is not None:
            weight = weight * counted[at]
        sums[1][number] += weight
        for c in range(number * group, number * group + group):
            sums[0][c] += weight * lines[c, at]

    for dy, dx in product(range(reach + 1), range(-reach, reach + 1)):
        offset = dy * pitch + dx
        if offset < 0:
            continue  # the other half of the offsets counts both ways
        cells = slice(first - offset - corner, first + count + corner)
        partners = slice(cells.start + offset, cells.stop + offset)
        for number, planes in enumerate(scaled.reshape(-1, group, scaled.shape[1])):
            squares = reduce(
                np.add, (np.square(plane[cells] - plane[partners]) for plane in planes)
            )
            for step in (pitch, 1):
                squares = (
                    uncompiled.combined(squares, metric.side, step, np.add)
                    if is_uniform
                    else uncompiled.weighted(squares, metric.profile, step)
                )
            np.subtract(floor, squares, out=squares)
            weight = np.exp2(np.minimum(squares, zeros[: squares.size], out=squares), out=squares)
            add(number, weight[offset:], offset)
            if offset:
                add(number, weight[:count], -offset)
    means = (totals[..., :columns] / weights[..., :columns]).reshape(colours, -1, columns)
    output = np.empty((stop - start, columns, task.source.shape[2]), task.source.dtype)
    output[..., :colours] = uncompiled.finished(task, np.moveaxis(means, 0, 2))
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
    tiles = -(-height // ROWS) * -(-width // WIDEST)
    for turn, share in product(range(tiles), range(SHARES)):
        arguments = (extended, sums, metric, search.margin, turn, share)
        yield CpuPass(nlm_image, arguments, tiles * (colours // metric.group))
