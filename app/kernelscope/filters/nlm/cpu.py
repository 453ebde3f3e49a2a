"""Non-local means: every pixel becomes an average of the pixels that look like it.

The patches around two pixels i and j are compared cell by cell, G² times the squared difference
in units of white; the sum D over the patch, averaged over the colours, gives j the weight
exp(-D / filter_sigma) in the average for i. Candidates j are those of a window around i, or
all pixels of the image.

*Extended coordinates* are those of the image after `extend`, which widens it by the filter's
radius on each side; for ``valid`` it is the source itself.

Level *parallel* goes offset by offset. In a rectangle of pixels i, the squared differences to
the pixels j that lie at one offset are made once and shared by all patches: G² is separable,
so they are summed up down the columns and then along the row. (No moving sums: they would save
little here, would do for the uniform patch only, and would leave their rounding errors behind
bright places.) Each weight counts both ways, in the average for i and in that for j.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.nlm.cuda import GAPS, HOST_PARTITIONS, plan_nlm
from kernelscope.filters.nlm.strength import estimate_strength
from kernelscope.filters.shared.border_kernels import REDUCE, REFLECT, VALID, border_index
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.non_local import add_weighted, fused, patch_profile, power_of_two
from kernelscope.filters.shared.plain import cell, no_simd, rolled
from kernelscope.jit import inlined, kernel
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import CpuPass, FilterSpec, FilterTask
from kernelscope.spec.levels import CONSTANT, GLOBAL, SERIAL, SHARED, TEXTURE, TUNED
from kernelscope.spec.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    OddParameter,
)
from kernelscope.spec.samples import Pixels, colour_count, white_level

_VECTOR = 32
"""Samples that rows are rounded up to: a few vector registers, so that no loop has a rest."""

_PITCH = 640
"""Samples of a row of squares: `_WIDEST`, the largest search radius, a patch and a rest.

The compiler knows it, which spares a test of every two rows for overlap.
"""

_WIDEST = 512
"""Columns of a tile: what its loops start with is spread over many samples."""

_WINDOW_ROWS = 32
"""Rows of a tile of a window search, or the search radius if that is more.

The level-2 cache has room for a few more; a lower tile would share fewer weights.
"""

_CANDIDATES = 2**18
"""Most candidates in a unit of work of level *serial*, a pixel; as many as a window has do."""

_OFFSETS = 512
"""Most offsets in a unit of work of a window search, which has to end well within a second."""

_IMAGE_ROWS = 16
"""Rows of a tile of a whole-image search."""

_SHARES = 4
"""Units of work in which any two tiles of a whole-image search meet: each has to end in time."""


class Search(NamedTuple):
    """Where candidates lie, in extended coordinates.

    Attributes
    ----------
    margin : int
        Row and column of the first pixel of the result.
    reach : int
        Largest distance from the pixel along an axis.
    edge : int
        No candidate is closer than this to the edge of the extended image.
    """

    margin: int
    reach: int
    edge: int


class Metric(NamedTuple):
    """How patches are compared.

    Attributes
    ----------
    group : int
        Channels that share a distance: all of them, or one.
    profile : ndarray of float32, shape (patch,), or tuple of as many
        See `patch_profile`; as a tuple its length is known to the compiler.
    scale : float32
        Makes a distance, in squared samples, the binary logarithm of its weight.
    """

    group: int
    profile: Any
    scale: np.float32


class Sums(NamedTuple):
    """What is added up over the candidates of each pixel of the result, in float32.

    Attributes
    ----------
    samples : ndarray, shape (colours, height', width')
        Weights times samples.
    weights : ndarray, shape (colours / group, height', width')
    """

    samples: NDArray[np.float32]
    weights: NDArray[np.float32]


class Scratch(NamedTuple):
    """Rows that `add_pairs` works in, `_PITCH` samples each; `squares` has two for each cell."""

    squares: Any
    folded: Any
    weights: Any


@kernel
def extend(source: Any, extended: Any, margin: Any, border: Any, start: Any, stop: Any) -> None:
    """Write rows `start` to `stop` of `extended` (channels, rows, columns and more), float32."""
    height, width, _ = source.shape
    shift = 0 if border == VALID else margin
    # What `reduce` leaves out are candidates; cells of patches are reflected.
    border = REFLECT if border == REDUCE else border
    for row in range(start, stop):
        y = border_index(row - shift, height, border)
        for column in range(width + 2 * shift):
            x = border_index(column - shift, width, border)
            for c in range(extended.shape[0]):
                extended[c, row, column] = source[y, x, c] if y >= 0 and x >= 0 else 0


@inlined
def distance(
    samples: Any, here: Any, there: Any, plane: Any, pitch: Any, group: Any, squares: Any
) -> Any:
    """Return the sum of G² times squared differences of two patches of `group` channels.

    Parameters
    ----------
    samples : ndarray of float32, one-dimensional
    here, there : int
        Places of the first cells of the patches.
    plane, pitch : int
        Samples from one channel to the next, and from one row.
    squares : ndarray of float32, shape (patch, patch)
        G².
    """
    no_simd()
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


@kernel
def nlm_serial(
    extended: Any, sums: Any, metric: Any, search: Any, rows: Any, start: Any, stop: Any
) -> None:
    """Plain loops: for pixels `start` to `stop`, every candidate and every cell of its patch.

    The candidates are those in extended rows from one of `rows` up to the other.
    """
    no_simd()
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
                    weight = np.exp2(metric.scale * apart)
                    weights += weight
                    for c in range(metric.group):
                        rolled()
                        totals[c] += weight * cell(samples, (first + c) * plane + yy * pitch + xx)
            for c in range(metric.group):
                sums.samples[first + c, y - margin, x - margin] += totals[c]
            sums.weights[first // metric.group, y - margin, x - margin] += weights


@fused
def square_differences(row: Any, other: Any, squares: Any, copies: Any) -> None:
    """Write (row - other)² to two places."""
    for x in range(squares.size):
        difference = row[x] - other[x]
        squares[x] = difference * difference
        copies[x] = difference * difference


@fused
def add_square_differences(row: Any, other: Any, squares: Any, copies: Any) -> None:
    """Add (row - other)² to what `square_differences` wrote."""
    for x in range(squares.size):
        difference = row[x] - other[x]
        square = squares[x] + difference * difference
        squares[x] = square
        copies[x] = square


@fused
def fold_rows(rows: Any, profile: Any, folded: Any) -> None:
    """Write the sum of as many `rows`, `_PITCH` apart, as there are weights in `profile`."""
    for x in range(folded.size):
        total = np.float32(0)
        for k in range(len(profile)):
            total += profile[k] * rows[k * _PITCH + x]
        folded[x] = total


@fused
def fold_columns(row: Any, profile: Any, folded: Any) -> None:
    """Write the sum of neighbours in `row`, weighted with `profile`."""
    for x in range(folded.size):
        total = np.float32(0)
        for k in range(len(profile)):
            total += profile[k] * row[k + x]
        folded[x] = total


@fused
def weigh(weights: Any, scale: Any, count: Any) -> None:
    """Turn distances into weights, and those from `count` on into 0."""
    # By itself, since this loop and that of `fold_columns` together need too many registers.
    for x in range(weights.size):
        weights[x] = power_of_two(scale * weights[x])
    weights[count:] = 0


@kernel
def add_row(weights: Any, total: Any) -> None:
    """Add `weights` to `total`."""
    for x in range(weights.size):
        total[x] += weights[x]


@kernel
def make_scratch(side: Any) -> Any:
    """Return rows for patches of `side`."""
    return Scratch(
        np.zeros(2 * side * _PITCH, np.float32),
        np.zeros(_PITCH, np.float32),
        np.zeros(_PITCH, np.float32),
    )


@kernel
def add_pairs(
    extended: Any,
    first: Any,
    here: Any,
    apart: Any,
    size: Any,
    sums: Any,
    place: Any,
    others: Any,
    other_place: Any,
    metric: Any,
    scratch: Any,
) -> None:
    """Let the pixels i of a rectangle and their partners j at an offset count for each other.

    Parameters
    ----------
    extended : ndarray of float32, shape (colours, rows, columns and at least 2 `_VECTOR`)
    first : int
        First channel of the group.
    here, apart, size : tuple of int
        Row and column of the first i, those of j less those of i, rows and columns.
    sums, others : ndarray of float32, shape (group + 1, rows, columns and `_VECTOR`)
        Where the averages for i and j are summed up: samples, and last the weights.
    place, other_place : tuple of int
        Row and column of the first i in `sums`, and of its j in `others`.
    """
    y, x = here
    dy, dx = apart
    rows, columns = size
    side = len(metric.profile)
    half = side // 2
    count = -(-columns // _VECTOR) * _VECTOR
    wide = -(-(count + 2 * half) // _VECTOR) * _VECTOR
    folded = scratch.folded[:wide]
    weights = scratch.weights[:count]
    for row in range(-2 * half, rows):
        # A ring of rows, each kept twice, so that those of a patch follow each other.
        slot = (row + 2 * half) % side * _PITCH
        again = slot + side * _PITCH
        low = y + row + half
        for c in range(first, first + metric.group):
            own = extended[c, low][x - half :]
            partner = extended[c, low + dy][x + dx - half :]
            squares = scratch.squares[slot : slot + wide]
            copies = scratch.squares[again : again + wide]
            if c == first:
                square_differences(own, partner, squares, copies)
            else:
                add_square_differences(own, partner, squares, copies)
        if row < 0:
            continue
        fold_rows(scratch.squares[row % side * _PITCH :], metric.profile, folded)
        fold_columns(folded, metric.profile, weights)
        weigh(weights, metric.scale, columns)
        sum_y, sum_x = place[0] + row, place[1]
        other_y, other_x = other_place[0] + row, other_place[1]
        for c in range(metric.group):
            own = extended[first + c, y + row][x:]
            partner = extended[first + c, y + row + dy][x + dx :]
            add_weighted(weights, partner, sums[c, sum_y][sum_x:])
            add_weighted(weights, own, others[c, other_y][other_x:])
        add_row(weights, sums[metric.group, sum_y][sum_x:])
        add_row(weights, others[metric.group, other_y][other_x:])


@kernel
def count_itself(extended: Any, sums: Any, margin: Any, start: Any, stop: Any) -> None:
    """Begin the sums of rows `start` to `stop`: every pixel has weight 1 in its own average."""
    colours, _, width = sums.samples.shape
    for y in range(start, stop):
        sums.weights[:, y] = 1
        for c in range(colours):
            for x in range(width):
                sums.samples[c, y, x] = extended[c, y + margin, x + margin]


@kernel
def add_tile(tile: Any, inset: Any, sums: Any, first: Any, corner: Any, size: Any) -> None:
    """Add the inside of `tile`, `inset` cells from its edges, to the sums of the image.

    `first` is the first channel of the group that `tile` has, `corner` its place in the result.
    """
    group = tile.shape[0] - 1
    for row in range(size[0]):
        for column in range(size[1]):
            y, x = corner[0] + row, corner[1] + column
            for c in range(group):
                sums.samples[first + c, y, x] += tile[c, inset + row, inset + column]
            sums.weights[first // group, y, x] += tile[group, inset + row, inset + column]


@kernel
def nlm_window(
    extended: Any, sums: Any, metric: Any, search: Any, tall: Any, dys: Any, start: Any, stop: Any
) -> None:
    """Search windows from one vertical offset of `dys` up to the other, both at least 0.

    A unit is a tile of `tall` rows and a group of channels. Sums are kept for the pixels
    around the tile too, but only so that every weight may count both ways; they are
    incomplete and dropped.
    """
    colours, height, width = sums.samples.shape
    margin, reach, edge = search
    groups = colours // metric.group
    across = -(-width // _WIDEST)
    y_end, x_end = height + 2 * margin - edge, width + 2 * margin - edge
    scratch = make_scratch(len(metric.profile))
    room = (tall + 2 * reach, min(width, _WIDEST) + 2 * reach + _VECTOR)
    local = np.empty((metric.group + 1, *room), np.float32)
    for unit in range(start, stop):
        first = unit % groups * metric.group
        tile = unit // groups
        corner = (tile // across * tall, tile % across * _WIDEST)
        size = (min(tall, height - corner[0]), min(_WIDEST, width - corner[1]))
        top, left = corner[0] + margin, corner[1] + margin
        local[:] = 0
        for dy in range(dys[0], dys[1]):
            y = max(edge, top - dy)
            rows = min(top + size[0], y_end - dy) - y
            for dx in range(-reach if dy else 1, reach + 1):
                # The pixel or its partner is in the tile, and both may be candidates.
                x = max(edge, edge - dx, left - max(dx, 0))
                columns = min(left + size[1] - min(dx, 0), x_end, x_end - dx) - x
                if rows <= 0 or columns <= 0:
                    continue
                place = (y - top + reach, x - left + reach)
                partners = (place[0] + dy, place[1] + dx)
                add_pairs(
                    extended,
                    first,
                    (y, x),
                    (dy, dx),
                    (rows, columns),
                    local,
                    place,
                    local,
                    partners,
                    metric,
                    scratch,
                )
        add_tile(local, reach, sums, first, corner, size)


@kernel
def nlm_image(
    extended: Any, sums: Any, metric: Any, margin: Any, turn: Any, share: Any, start: Any, stop: Any
) -> None:
    """Let tiles meet whose numbers add up to `turn`, modulo the number of tiles.

    In each turn a tile meets one tile, which may be itself, so that no two units add to the
    same sums; after as many turns as there are tiles each has met them all. Of the vertical
    offsets it is every `_SHARES`-th, from number `share` on.
    """
    colours, height, width = sums.samples.shape
    groups = colours // metric.group
    across = -(-width // _WIDEST)
    tiles = -(-height // _IMAGE_ROWS) * across
    scratch = make_scratch(len(metric.profile))
    own = np.empty((metric.group + 1, _IMAGE_ROWS, min(width, _WIDEST) + _VECTOR), np.float32)
    partners = np.empty_like(own)
    for unit in range(start, stop):
        first = unit % groups * metric.group
        tile = unit // groups
        partner = (turn - tile) % tiles
        if partner < tile:
            continue
        corner = (tile // across * _IMAGE_ROWS, tile % across * _WIDEST)
        size = (min(_IMAGE_ROWS, height - corner[0]), min(_WIDEST, width - corner[1]))
        other = (partner // across * _IMAGE_ROWS, partner % across * _WIDEST)
        other_size = (min(_IMAGE_ROWS, height - other[0]), min(_WIDEST, width - other[1]))
        own[:] = 0
        partners[:] = 0
        lowest = other[0] - corner[0] - size[0] + 1
        for dy in range(lowest + share, other[0] + other_size[0] - corner[0], _SHARES):
            y = max(corner[0], other[0] - dy)
            rows = min(corner[0] + size[0], other[0] + other_size[0] - dy) - y
            for dx in range(
                other[1] - corner[1] - size[1] + 1, other[1] + other_size[1] - corner[1]
            ):
                if tile == partner and (dy < 0 or (dy == 0 and dx <= 0)):
                    continue  # the other half of the offsets counts both ways
                x = max(corner[1], other[1] - dx)
                columns = min(corner[1] + size[1], other[1] + other_size[1] - dx) - x
                add_pairs(
                    extended,
                    first,
                    (y + margin, x + margin),
                    (dy, dx),
                    (rows, columns),
                    own,
                    (y - corner[0], x - corner[1]),
                    partners,
                    (y + dy - other[0], x + dx - other[1]),
                    metric,
                    scratch,
                )
        add_tile(own, 0, sums, first, corner, size)
        add_tile(partners, 0, sums, first, other, other_size)


@kernel
def divide_sums(sums: Any, output: Any, finish: Any, start: Any, stop: Any) -> None:
    """Write rows `start` to `stop` of the result."""
    colours, _, width = sums.samples.shape
    group = colours // sums.weights.shape[0]
    for y in range(start, stop):
        for x in range(width):
            for c in range(colours):
                mean = np.true_divide(sums.samples[c, y, x], sums.weights[c // group, y, x])
                output[y, x, c] = settle(mean, finish)


def radius(parameters: Mapping[str, Any]) -> int:
    half = int(parameters["patch"]) // 2
    return half if whole(parameters) else half + int(parameters["search_radius"])


def whole(parameters: Mapping[str, Any]) -> bool:
    return bool(parameters["search"] == "image")


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    colours = colour_count(source.shape[2])
    group = colours if parameters["colour"] == "joint" else 1
    height, width, _ = output.shape
    margin, half = radius(parameters), parameters["patch"] // 2
    search = Search(
        margin,
        max(height, width) if whole(parameters) else parameters["search_radius"],
        margin if task.border is Border.REDUCE else half,
    )
    extended: NDArray[np.float32] = np.zeros(
        (colours, height + 2 * margin, width + 2 * margin + 2 * _VECTOR), np.float32
    )
    sums = Sums(
        np.zeros((colours, height, width), np.float32),
        np.zeros((colours // group, height, width), np.float32),
    )
    widen = (source, extended, margin, task.border.code)
    passes = [CpuPass(extend, widen, extended.shape[1], cost=0)]
    profile = patch_profile(parameters).astype(np.float32)
    unit = group * white_level(source.dtype) ** 2 * parameters["filter_sigma"]
    metric = Metric(group, profile, np.float32(-math.log2(math.e) / unit))
    if task.level == SERIAL.id:
        rows = extended.shape[1]
        step = max(1, _CANDIDATES // width) if whole(parameters) else rows
        for row in range(0, rows, step):
            arguments = (extended, sums, metric, search, (row, row + step))
            passes.append(CpuPass(nlm_serial, arguments, height * width))
    else:
        passes.append(CpuPass(count_itself, (extended, sums, margin), height, cost=0))
        metric = metric._replace(profile=tuple(profile))
        passes.extend(plan_pairs(extended, sums, metric, search, whole(parameters)))
    finish = Finish.of(source.dtype, np.float32)
    passes.append(CpuPass(divide_sums, (sums, output, finish), height, cost=0))
    return passes


def plan_pairs(
    extended: NDArray[np.float32], sums: Sums, metric: Metric, search: Search, everywhere: bool
) -> Iterator[CpuPass]:
    """Plan the passes of level *parallel* that add up what pixels have from others."""
    colours, height, width = sums.samples.shape
    groups = colours // metric.group
    across = -(-width // _WIDEST)
    if not everywhere:
        tall = max(_WINDOW_ROWS, search.reach)
        units = -(-height // tall) * across * groups
        step = max(1, _OFFSETS // (2 * search.reach + 1))
        for dy in range(0, search.reach + 1, step):
            dys = (dy, min(dy + step, search.reach + 1))
            yield CpuPass(nlm_window, (extended, sums, metric, search, tall, dys), units)
        return
    tiles = -(-height // _IMAGE_ROWS) * across
    for turn, share in product(range(tiles), range(_SHARES)):
        arguments = (extended, sums, metric, search.margin, turn, share)
        yield CpuPass(nlm_image, arguments, tiles * groups)


def estimate_filter_sigma(pixels: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return a ``filter_sigma`` for the noise in `pixels`, within the parameter's range."""
    return min(max(estimate_strength(pixels, parameters), _SMALLEST), _LARGEST)


_SMALLEST, _LARGEST = 1e-8, 1e9

SPEC = FilterSpec(
    id="nlm",
    name="Non-local means",
    category="Denoising",
    summary="Averages pixels that look alike, however far apart: removes noise, keeps detail.",
    source="Kasparidis, NLM report, Thessaloniki; after Buades, Coll and Morel 2005",
    parameters=(
        OddParameter(
            name="patch",
            label="Patch size",
            help="Side of the squares by which pixels are compared.",
            default=7,
            minimum=3,
            maximum=11,
        ),
        ChoiceParameter(
            name="search",
            label="Search in",
            help="Where a pixel looks for others that look like it.",
            default="window",
            choices=(
                Choice("window", "Window", "A square around the pixel."),
                Choice("image", "Whole image", "All pixels: slow, the square of their number."),
            ),
        ),
        IntParameter(
            name="search_radius",
            label="Search radius",
            help="How far the window reaches from the pixel; the whole image has no radius.",
            default=10,
            minimum=1,
            maximum=50,
            slider=(1, 20),
            unit="px",
            matters=lambda parameters: parameters["search"] == "window",
        ),
        FloatParameter(
            name="filter_sigma",
            label="Filter sigma",
            help="Distance of patches, where white is 1, at which a weight falls to 37 %: "
            "more smooths more. Source N has 0.02, for noise of variance 0.001.",
            default=0.02,
            minimum=_SMALLEST,
            maximum=_LARGEST,
            slider=(0.001, 0.2),
            step=0.005,
            decimals=8,
            estimate=estimate_filter_sigma,
            estimated=True,
            formerly={1: 0.02},
        ),
        FloatParameter(
            name="patch_sigma",
            label="Patch sigma",
            help="Standard deviation of the Gaussian over the patch: less looks at the middle.",
            default=5 / 3,
            minimum=0.1,
            maximum=100.0,
            slider=(0.5, 5.0),
            unit="px",
            matters=lambda parameters: parameters["weights"] == "gaussian",
        ),
        ChoiceParameter(
            name="weights",
            label="Patch weights",
            help="How much the cells of a patch count.",
            default="gaussian",
            choices=(
                Choice("gaussian", "Gaussian", "The middle counts most."),
                Choice("uniform", "Uniform", "All cells count alike."),
            ),
        ),
        ChoiceParameter(
            name="colour",
            label="Colours",
            help="Whether the channels of a colour picture share their weights.",
            default="joint",
            choices=(
                Choice("joint", "Together", "One distance over all channels: no false colours."),
                Choice("separate", "Each by itself", "Every channel is a grey picture."),
            ),
        ),
    ),
    radius=radius,
    plan_cpu=plan_cpu,
    plan_cuda=plan_nlm,
    gpu_levels=(GLOBAL, CONSTANT, HOST_PARTITIONS, SHARED, TEXTURE, TUNED),
    gpu_gaps=GAPS,
    # A patch that does not fit ends no average: the others may compare with it.
    borders=tuple(border for border in Border if border is not Border.KEEP),
    whole=whole,
)
