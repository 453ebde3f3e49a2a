"""Collaborative filtering of volumes: cubes that are alike are filtered together.

The noise is made one of sigma 1 first: voxels are divided by sigma, which may vary over the head,
and Rician noise is made Gaussian. Reference cubes of 4×4×4 voxels lie 3 voxels apart (in the first
stage 4 along z and y, which costs less than 0.01 dB), and for each one the 32 that are most alike
are found in a window of 9×9×9 places. They become a group: each is transformed by the discrete
cosine transform, and the group by Haar's, so that the parts that all share are in few
coefficients. A first stage keeps those above 3.2 sigma; a second one finds the groups in the first
result, and multiplies the coefficients of the noisy volume by b² / (b² + (0.9 sigma)²), where b
are those of the first result (Wiener's filter, with less noise: the groups were chosen as alike):

    g = mean of all cubes that cover a voxel, weighted by 1 / the coefficients that were kept, or
        1 / the sum of the squares of the factors, and by a window that is less at their rims

The result gets its sigma back, and its mean as it would be without Rician noise. Several volumes
are filtered one by one.

Cubes are added up as whole numbers, of 1 / 2^26 sigma, so that their order does not matter: all
levels have the same bytes.

Sources: Maggioni, Katkovnik, Egiazarian and Foi, "Nonlocal transform-domain filter for volumetric
data denoising and reconstruction", IEEE Transactions on Image Processing 22, 2013 (BM4D); Rician
noise after Foi, "Noise estimation and removal in MR imaging: the variance-stabilization approach",
ISBI 2011.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Record, kernel
from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.volume_noise import (
    RIM,
    Ends,
    StabilisedSpec,
    copy_slices,
    extend_stabilised,
    noise_model,
    removed_sigma,
    restore,
)
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, Disturbance, Remedy
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

# The numbers that all levels share -----------------------------------------------------
#
# Places, of cubes and of voxels, are those of the volume; the *domain* is the volume and `PAD`
# voxels around it, which mirror it. All cubes lie in the domain.

SIDE = 4  # of a cube
STEPS = (4, 4, 3), (3, 3, 3)
"""From one reference cube to the next along z, y and x, in the two stages: at most `SIDE`."""

SEARCH = 4  # how far from the reference cube similar ones are looked for, along each axis
PAD = 4  # voxels of the domain beyond the volume: those at its rim are in as many cubes as others

GROUP = 32
"""Cubes of a group: every window has more places than that, 125 at least. A bound of distances
would leave groups small where noise is weak: at 8 and 6 sigma² in the two stages, a phantom with
1 % of noise lost 0.9 dB, and real anatomy 0.6."""

REACH = 2 * SEARCH + SIDE - 1
"""How far a stage looks: from a voxel to its reference cubes, and from there to similar ones."""

BEFORE, AFTER = SEARCH + SIDE - 1, SEARCH
"""A voxel is in cubes of references from so far before it to so far after it."""

SCALE = 2.0**26
"""Of the whole numbers that are added up. Voxels are at most 1e6 sigma, a cube's weight is at most
1, and less than 2^13 cubes cover a voxel: sums stay below 2^62."""

_HARD = 3.2  # coefficients of up to this many sigma are noise in the first stage
_WIENER = 0.9  # sigma of the noise in groups, in the second
_LARGEST = 3e38


def numbers(parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the threshold of the first stage, and 1 / 0.9 sigma for the second."""
    sigma = removed_sigma(parameters)
    inverse = min(1 / max(_WIENER * sigma, 1e-38), _LARGEST)
    return np.array([_HARD * sigma, inverse], np.float32)


def window() -> NDArray[np.float32]:
    """Return the weights of the cells of a cube: a Kaiser window along each axis."""
    line = np.kaiser(SIDE, 2.6)
    cube: NDArray[np.float32] = np.einsum("z,y,x->zyx", line, line, line).astype(np.float32)
    return cube.reshape(-1)


def references(size: int, step: int) -> int:
    """Return how many reference cubes a domain has along an axis of this many voxels of volume.

    Number k is at ``min(step k - PAD, size)``: the last one ends with the domain.
    """
    return -(-(size + PAD) // step) + 1


# On the CPU ----------------------------------------------------------------------------
#
# A row of reference cubes is compared with all places around at once: for each offset, the squared
# differences of `PITCH` columns. Level *serial* has the same loops without vectors: `plain` is None
# for level *parallel*.
#
# Groups add to sums that they share with their neighbours. References are cut into squares of 4 x 4
# rows, which are four passes like the colours of a chessboard: squares of a pass never meet.

PITCH = 64  # columns that are compared at once: the compiler knows it
ROW = 21  # reference cubes in them

SQUARE = 4
"""Rows of references of a square along z and y, 3 or 4 voxels apart: squares of a colour are eight
rows apart, 24 voxels at least, and the sums that they add to are less high."""

CELLS = 64  # of a cube

C1 = np.float32(0.65328148)
C3 = np.float32(0.27059805)
HALF = np.float32(0.5)
ROOT = np.float32(0.70710678)
ONE = np.float32(1)
UNITS = np.float32(SCALE)
SHARES = np.float32(2**18)
"""Of the squares of factors, which are added up as whole numbers: 2048 of them are below 2^31."""


class Part(NamedTuple):
    """A part of the domain that buffers have: its first voxel and its sides, along z, y and x.

    The sizes are those of the volume.
    """

    first: tuple[int, int, int]
    sides: tuple[int, int, int]
    sizes: tuple[int, int, int]

    @classmethod
    def around(
        cls, first: Sequence[int], sides: Sequence[int], sizes: Sequence[int], reach: int
    ) -> Part:
        """Return a box and `reach` voxels around it, as far as there is a domain."""
        starts = [max(start - reach, -PAD) for start in first]
        ends = [
            min(start + side + reach, size + PAD)
            for start, side, size in zip(first, sides, sizes, strict=True)
        ]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        return cls(_three(starts), _three(lengths), _three(sizes))


def _three(values: Sequence[int]) -> tuple[int, int, int]:
    z, y, x = values
    return z, y, x


@kernel
def transform(cubes: Line, plain: Flag) -> None:
    """Replace cubes by their coefficients: along x, along y, along z."""
    for axis in range(3):
        step = 1 << 2 * axis  # from one number of a line to the next
        for high in range(0, CELLS * GROUP, 4 * step):
            for low in range(step):
                i = np.uintp(high + low)
                s = np.uintp(step)
                a, b = cubes[i], cubes[i + s]
                c, d = cubes[i + np.uintp(2) * s], cubes[i + np.uintp(3) * s]
                s0, s1, d0, d1 = a + d, b + c, a - d, b - c
                cubes[i] = (s0 + s1) * HALF
                cubes[i + s] = d0 * C1 + d1 * C3
                cubes[i + np.uintp(2) * s] = (s0 - s1) * HALF
                cubes[i + np.uintp(3) * s] = d0 * C3 - d1 * C1


@kernel
def transform_back(cubes: Line, plain: Flag) -> None:
    """Replace coefficients by cubes: along z, along y, along x."""
    for turn in range(3):
        step = 16 >> 2 * turn
        for high in range(0, CELLS * GROUP, 4 * step):
            for low in range(step):
                i = np.uintp(high + low)
                s = np.uintp(step)
                a, b = cubes[i], cubes[i + s]
                c, d = cubes[i + np.uintp(2) * s], cubes[i + np.uintp(3) * s]
                p, q = (a + c) * HALF, (a - c) * HALF
                r, t = b * C1 + d * C3, b * C3 - d * C1
                cubes[i] = p + r
                cubes[i + s] = q + t
                cubes[i + np.uintp(2) * s] = q - t
                cubes[i + np.uintp(3) * s] = p - r


@kernel
def pair_up(cubes: Line, first: Index, second: Index) -> None:
    """Replace two cubes by their sum and their difference, over the root of 2."""
    for k in range(CELLS):
        i, j = np.uintp(first + k), np.uintp(second + k)
        a, b = cubes[i], cubes[j]
        cubes[i] = (a + b) * ROOT
        cubes[j] = (a - b) * ROOT


@kernel
def haar(cubes: Line, back: Flag, plain: Flag) -> None:
    """Transform the cells of cubes along the group; or back.

    Sums stay in the place of the first cube of a pair, differences in that of the second.
    """
    step = GROUP >> 1 if back else 1
    while 0 < step < GROUP:
        for m in range(0, GROUP, 2 * step):
            pair_up(cubes, CELLS * m, CELLS * (m + step))
        step = step >> 1 if back else step << 1


@kernel
def shrink_hard(cubes: Line, threshold: Number, plain: Flag) -> Any:
    """Zero coefficients of up to `threshold`; return 1 / how many are left."""
    zero = np.float32(0)
    kept: Any = np.int32(0)
    for k in range(CELLS * GROUP):
        i = np.uintp(k)
        keep = abs(cubes[i]) > threshold
        cubes[i] = cubes[i] if keep else zero
        kept += np.int32(keep)
    return np.true_divide(ONE, np.float32(max(kept, 1)))


@kernel
def shrink_wiener(cubes: Line, guides: Line, inverse: Number, plain: Flag) -> Any:
    """Multiply by b² / (b² + (0.9 sigma)²); return 1 / the sum of the factors' squares."""
    half = np.float32(0.5)
    total: Any = np.int32(0)
    for k in range(CELLS * GROUP):
        i = np.uintp(k)
        ratio = guides[i] * inverse
        gain = ONE - np.true_divide(ONE, ratio * ratio + ONE)
        cubes[i] *= gain
        total += np.int32(gain * gain * SHARES + half)
    return np.true_divide(ONE, max(np.true_divide(np.float32(total), SHARES), ONE))


@kernel
def gather(volume: Line, pitch: Record, places: Line, cubes: Line) -> None:
    """Copy cubes; `pitch` is from slice to slice and from row to row of the volume."""
    for m in range(GROUP):
        at = np.uintp(places[m])
        for n in range(16):
            i = at + np.uintp((n >> 2) * pitch[0] + (n & 3) * pitch[1])
            k = np.uintp(CELLS * m + 4 * n)
            for x in range(4):
                cubes[k + np.uintp(x)] = volume[i + np.uintp(x)]


@kernel
def scatter(
    cubes: Line,
    pitch: Record,
    places: Line,
    weight: Number,
    window: Line,
    sums: Line,
    weights: Line,
) -> None:
    """Add cubes times `weight` and `window` to the sums, and `weight` to those of the places."""
    share = np.int64(np.rint(weight * UNITS))
    for m in range(GROUP):
        at = np.uintp(places[m])
        weights[at] += share
        for n in range(16):
            i = at + np.uintp((n >> 2) * pitch[0] + (n & 3) * pitch[1])
            for x in range(4):
                k = np.uintp(4 * n + x)
                value = cubes[np.uintp(CELLS * m) + k] * weight * (window[k] * UNITS)
                sums[i + np.uintp(x)] += np.int64(np.rint(value))


@kernel
def differences(volume: Line, own: Index, other: Index, pitch: Record, line: Line) -> None:
    """Write for each of `PITCH` columns the sum of 4 x 4 squared differences."""
    for x in range(PITCH):
        line[np.uintp(x)] = np.float32(0)
    for n in range(16):
        row = (n >> 2) * pitch[0] + (n & 3) * pitch[1]
        p, q = np.uintp(own + row), np.uintp(other + row)
        for x in range(PITCH):
            difference = volume[p + np.uintp(x)] - volume[q + np.uintp(x)]
            line[np.uintp(x)] += difference * difference


@kernel
def insert(best: Line, places: Line, distance: Number, place: Index) -> None:
    """Put a place where its distance belongs, behind equal ones; the last one falls out."""
    m = GROUP - 1
    while m > 1 and best[m - 1] > distance:  # best[0] is -1: m > 1 spares tests of signs
        best[m], places[m] = best[m - 1], places[m - 1]
        m -= 1
    best[m], places[m] = distance, place


@kernel
def match_row(
    volume: Line,
    pitch: Record,
    row: Index,
    columns: Line,
    many: Index,
    low: Record,
    high: Record,
    best: Array,
    places: Array,
    plain: Flag,
) -> None:
    """Find the cubes that are most alike for a row of references, the own one first.

    - `row`: where the first reference of the row is in `volume`.
    - `columns`: of the `many` references, counted from there.
    - `low`, `high`: the smallest and largest offset along z and y, and along x the smallest and
      largest column.
    """
    line = np.empty(PITCH, np.float32)
    for j in range(many):
        best[j], places[j] = np.float32(np.inf), row + columns[j]
        best[j, 0] = np.float32(-1)
    for dz in range(low[0], high[0] + 1):
        for dy in range(low[1], high[1] + 1):
            for dx in range(-SEARCH, SEARCH + 1):
                if dz == 0 and dy == 0 and dx == 0:
                    continue
                other = row + dz * pitch[0] + dy * pitch[1] + dx
                differences(volume, row, other, pitch, line)
                for j in range(many):
                    x = columns[j]
                    if x + dx < low[2] or x + dx > high[2]:
                        continue
                    i = np.uintp(x)
                    distance = line[i] + line[i + np.uintp(1)] + line[i + np.uintp(2)]
                    distance += line[i + np.uintp(3)]
                    if distance < best[j, GROUP - 1]:
                        insert(best[j], places[j], distance, other + x)


@kernel
def filter_squares(
    volume: Array,
    guide: Array,
    part: Record,
    grid: Record,
    noise: Number,
    window: Line,
    wiener: Flag,
    sums: Array,
    weights: Array,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Match, filter and add up the groups of squares `start` to `stop` of a colour.

    - `volume`, `guide`: float32, shape (components, slices, rows, columns). The noisy volume, and
      that in which cubes are compared, with `SEARCH` voxels in front of `part` and behind it, and
      `PITCH` columns more.
    - `part`: its first voxel, and the sizes of the volume: see `Part`.
    - `grid`: numbers of the first references, how many there are along each axis, the steps from
      one to the next, and the colour.
    - `noise`: one of `numbers`.
    """
    first, sizes = part
    begin, counts, steps, colour = grid
    pitch = (volume.shape[2] * volume.shape[3], volume.shape[3])
    best = np.empty((ROW, GROUP), np.float32)
    places = np.empty((ROW, GROUP), np.int64)
    columns = np.empty(ROW, np.int64)
    cubes = np.empty(CELLS * GROUP, np.float32)
    guides = np.empty(CELLS * GROUP, np.float32)
    tall = (-(-counts[1] // SQUARE) + 1 - colour[1]) // 2
    deep = (-(-counts[0] // SQUARE) + 1 - colour[0]) // 2
    for unit in range(start, stop):
        c = unit // (deep * tall)
        front = (2 * (unit // tall % deep) + colour[0]) * SQUARE
        top = (2 * (unit % tall) + colour[1]) * SQUARE
        noisy, compared = volume[c].reshape(-1), guide[c].reshape(-1)
        own, shares = sums[c].reshape(-1), weights[c].reshape(-1)
        for n in range(SQUARE * SQUARE):
            kz, ky = front + n // SQUARE, top + n % SQUARE
            if kz >= counts[0] or ky >= counts[1]:
                continue
            z = min(steps[0] * (begin[0] + kz) - PAD, sizes[0])
            y = min(steps[1] * (begin[1] + ky) - PAD, sizes[1])
            low_z, high_z = max(-SEARCH, -PAD - z), min(SEARCH, sizes[0] - z)
            low_y, high_y = max(-SEARCH, -PAD - y), min(SEARCH, sizes[1] - y)
            for left in range(0, counts[2], ROW):
                many = min(ROW, counts[2] - left)
                x = min(steps[2] * (begin[2] + left) - PAD, sizes[2])
                for j in range(many):
                    columns[j] = min(steps[2] * (begin[2] + left + j) - PAD, sizes[2]) - x
                row = (z - first[0] + SEARCH) * pitch[0] + (y - first[1] + SEARCH) * pitch[1]
                row += x - first[2] + SEARCH
                low, high = (low_z, low_y, -PAD - x), (high_z, high_y, sizes[2] - x)
                match_row(
                    compared,
                    pitch,
                    row,
                    columns,
                    many,
                    low,
                    high,
                    best,
                    places,
                    plain,
                )
                for j in range(many):
                    gather(noisy, pitch, places[j], cubes)
                    transform(cubes, plain)
                    haar(cubes, False, plain)
                    if wiener:
                        gather(compared, pitch, places[j], guides)
                        transform(guides, plain)
                        haar(guides, False, plain)
                        weight = shrink_wiener(cubes, guides, noise, plain)
                    else:
                        weight = shrink_hard(cubes, noise, plain)
                    haar(cubes, True, plain)
                    transform_back(cubes, plain)
                    scatter(cubes, pitch, places[j], weight, window, own, shares)


@kernel
def clear(sums: Array, weights: Array, start: Index, stop: Index) -> None:
    """Zero slices `start` to `stop`."""
    sums[:, start:stop] = 0
    weights[:, start:stop] = 0


@kernel
def divide(
    sums: Array,
    weights: Array,
    window: Line,
    shift: Record,
    output: Array,
    corner: Record,
    size: Record,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write the means of slices `start` to `stop` of a box of the output.

    The box has `size` and begins at `corner` of the output and at `shift` of the sums.
    """
    lines = np.empty(size[2], np.float32)
    for z in range(start, stop):
        for c in range(output.shape[0]):
            for y in range(size[1]):
                lines[:] = 0
                for k in range(CELLS):
                    row = weights[c, z + shift[0] - (k >> 4), y + shift[1] - (k >> 2 & 3)]
                    before = shift[2] - (k & 3)
                    for x in range(size[2]):
                        lines[x] += np.float32(row[np.uintp(before + x)]) * window[k]
                row = sums[c, z + shift[0], y + shift[1]]
                for x in range(size[2]):
                    mean = np.float32(row[np.uintp(shift[2] + x)])
                    output[c, corner[0] + z, corner[1] + y, corner[2] + x] = np.true_divide(
                        mean, lines[np.uintp(x)]
                    )


def grid_of(
    part: Part, steps: tuple[int, int, int]
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the first references whose cubes can reach a part, and how many along each axis."""
    begin, counts = [], []
    axes = zip(part.first, part.sides, part.sizes, steps, strict=True)
    for first, side, size, step in axes:
        last = references(size, step) - 1
        low = min(max(-(-(first - BEFORE + PAD) // step), 0), last)
        end = first + side - 1 + AFTER
        # The last reference is less than a step from the one before it.
        high = last if end >= size else (end + PAD) // step
        begin.append(low)
        counts.append(high + 1 - low)
    return _three(begin), _three(counts)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    components, plain = source.shape[3], (True if task.level == SERIAL.id else None)
    first = task.part.first if task.part is not None else (0, 0, 0)
    sides, sizes = output.shape[:3], source.shape[:3]
    if not removed_sigma(parameters):
        return [CpuPass(copy_slices, (source, output, first, plain), sides[0])]
    everything = Part.around(first, sides, sizes, 2 * REACH)
    needed = Part.around(first, sides, sizes, REACH)
    result = Part(_three(first), _three(sides), _three(sizes))
    pads = (2 * SEARCH, 2 * SEARCH, 2 * SEARCH + PITCH)
    shape = (components, *(n + pad for n, pad in zip(everything.sides, pads, strict=True)))
    extended, basic = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    sums, weights = np.empty(shape, np.int64), np.empty(shape, np.int64)
    filtered = np.empty((components, *sides), np.float32)
    model, noise, cells = noise_model(parameters, components), numbers(parameters), window()
    before = tuple(SEARCH - start for start in everything.first)
    extending = (source, extended, before, model, plain)
    passes = [CpuPass(extend_stabilised, extending, shape[1], cost=0.02)]

    def stage(guide: Any, part: Part, wiener: bool, target: Any, corner: Any) -> None:
        passes.append(CpuPass(clear, (sums, weights), shape[1], cost=0.01))
        steps = STEPS[int(wiener)]
        grid = *grid_of(part, steps), steps
        squares = [-(-count // SQUARE) for count in grid[1][:2]]
        for colour in ((0, 0), (0, 1), (1, 0), (1, 1)):
            units = [(n + 1 - odd) // 2 for n, odd in zip(squares, colour, strict=True)]
            arguments = (
                *(extended, guide, (everything.first, everything.sizes), (*grid, colour)),
                *(noise[int(wiener)], cells, wiener, sums, weights, plain),
            )
            count = components * units[0] * units[1]
            if count:  # of a small volume, some colours have no squares
                passes.append(CpuPass(filter_squares, arguments, count, cost=0.25))
        shift = tuple(
            start - begin + SEARCH
            for start, begin in zip(part.first, everything.first, strict=True)
        )
        dividing = (sums, weights, cells, shift, target, corner, part.sides, plain)
        passes.append(CpuPass(divide, dividing, part.sides[0], cost=0.02))

    inside = tuple(
        start - begin + SEARCH for start, begin in zip(needed.first, everything.first, strict=True)
    )
    stage(extended, needed, False, basic, inside)
    stage(basic, result, True, filtered, (0, 0, 0))
    passes.append(CpuPass(restore, (filtered, output, first, model, plain), sides[0], cost=0.02))
    return passes


# On the GPU ----------------------------------------------------------------------------

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The volume is extended once, so that no cube meets a border.",
}

_WARPS = 8  # references of a block: macro ``WARPS``

_SHARED_BYTES = 4 * (SIDE + 2 * SEARCH) * ((SIDE + 2 * SEARCH) * (32 + 2 * SEARCH + 1) + 5)
"""The structure ``Memory``."""

_DEEP = 4  # voxels of a thread that divides, one behind the other: the macro ``DEEP``
_TUNED_WARPS = 14  # the same of those that filter at level *tuned*: macro ``GROUP_WARPS``

_WIDE, _TALL = STEPS[0][2] * (_WARPS - 1) + SIDE + 2 * SEARCH, SIDE + 2 * SEARCH
_PLACES = 2 * SEARCH + 1

_MATCH_BYTES = 4 * (2 * _TALL**2 * _WIDE + 32 * _PLACES**2 + _WARPS * (_PLACES**3 + 14))
"""The structure ``MatchMemory``."""

_GROUPS = (7, 6)
"""References of a block at level *tuned*: macros ``GROUPS_WIDE`` and ``GROUPS_TALL``."""

_MATCHING, _FILTERING = 3 * _PLACES**3 * SIDE**3, 27000
"""Operations of a reference cube, about: squared differences; transforms and adding up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``volume_collaborative.cu`` explains them."""
    constants = {"numbers": numbers(task.parameters), "window": window()}
    ends = Ends(task, "volume_collaborative", constants)
    if not removed_sigma(task.parameters):
        return CudaPlan((ends.copy,))
    tuned = task.level == TUNED.id

    def operations(of_a_cube: int, steps: tuple[int, int, int]) -> float:
        return of_a_cube / math.prod(steps)

    def stage(name: str, steps: tuple[int, int, int], *scratch: str) -> Launch:
        launch = ends.launch(
            f"{task.level}_{name}",
            *scratch,
            block=(32, _WARPS, 1),
            operations=operations(_MATCHING + _FILTERING, steps),
        )
        z, y, x = steps
        return replace(
            launch,
            tile=(_WARPS * x, y, z),
            shared_bytes=_SHARED_BYTES if task.level == SHARED.id else 0,
            steps=2,  # to clear the sums, and to add to them
            steps_at_once=1,
        )

    def means(name: str, target: str) -> Launch:
        launch = ends.launch(name, "sums", "weights", target, operations=200.0)
        return replace(launch, tile=(*launch.block[:2], _DEEP))

    def match(name: str, steps: tuple[int, int, int], compared: str) -> Launch:
        launch = ends.launch(
            f"tuned_match_{name}",
            compared,
            "places",
            block=(32, _WARPS, 1),
            operations=operations(_MATCHING, steps),
        )
        z, y, x = steps
        return replace(launch, tile=(_WARPS * x, y, z), shared_bytes=_MATCH_BYTES)

    def groups(name: str, steps: tuple[int, int, int], *compared: str) -> Launch:
        launch = stage(name, steps, *compared, "places", "sums", "weights")
        z, y, x = steps
        cells = _TALL * (y * (_GROUPS[1] - 1) + _TALL) * 32
        # The structure ``GroupMemory``.
        floats = (2 + len(compared)) * cells + _TUNED_WARPS * SIDE**3 // 2 * 36 + 1
        return replace(
            launch,
            operations_per_sample=operations(_FILTERING, steps),
            block=(32, _TUNED_WARPS, 1),
            tile=(_GROUPS[0] * x, _GROUPS[1] * y, z),
            shared_bytes=4 * floats,
        )

    if tuned:
        first: tuple[Launch, ...] = (
            match("hard", STEPS[0], "extended"),
            groups("hard", STEPS[0], "extended"),
        )
        second: tuple[Launch, ...] = (
            match("wiener", STEPS[1], "basic"),
            groups("wiener", STEPS[1], "extended", "basic"),
        )
    else:
        first = (stage("hard", STEPS[0], "extended", "sums", "weights"),)
        second = (stage("wiener", STEPS[1], "extended", "basic", "sums", "weights"),)
    launches = (
        ends.before,
        *first,
        means("first", "basic"),
        *second,
        means("second", "filtered"),
        ends.after,
    )
    floats, wholes = (ends.around(PAD, 2 * REACH, values=values) for values in (1, 2))
    scratch = {
        "extended": floats,
        "basic": floats,
        "sums": wholes,
        "weights": wholes,
        "filtered": ends.around(0),
    }
    if not tuned:
        return CudaPlan(launches, scratch)
    launches = tuple(replace(each, defines={**each.defines, "TUNED": "1"}) for each in launches)
    # Of the references of a slice; and of those of slices before and behind.
    _, height, width, components = task.shape
    z, y, x = STEPS[1]
    bytes_ = 2 * GROUP * components * references(height, y) * references(width, x)
    scratch["places"] = Scratch(-(-bytes_ // z), (2 * 2 * REACH // z + 4) * bytes_)
    notice = "This GPU has too little shared memory for level tuned: level shared is used."
    smaller = replace(plan_cuda(replace(task, level=SHARED.id)), notice=notice)
    return CudaPlan(launches, scratch, smaller=smaller)


SPEC = StabilisedSpec(
    id="volume_collaborative",
    name="Volume collaborative",
    summary="Filters groups of similar cubes (BM4D): the least error in brain MRI, the slowest.",
    synonyms=("denoise", "block matching", "bm4d", "wiener", "rician", "brain", "volume"),
    source="Maggioni et al., IEEE Transactions on Image Processing 22, 2013 (BM4D)",
    radius=lambda parameters: 2 * REACH,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=36.84),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.volume_dct, stand_in="volume DCT"),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED, TUNED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = \sigma f^{-1}\left( \frac{\sum_G w_G\, T^{-1}(\gamma\, T v_G)}{\sum_G w_G}"
        r" \right), \quad v = f(u / \sigma), \quad"
        r" \gamma_1 = [\,|T v_G| > 3.2\,], \quad \gamma_2 = \frac{b^2}{b^2 + 0.9^2}",
        use="For the cleanest result of one volume, where some seconds do not matter. Noise may be "
        "Rician and vary in space.",
        avoid="Noise that interpolation has smoothed is not found by its sigma: set a larger one. "
        "*Volume DCT* is the quick one.",
        example=RIM,
        sample="",
    ),
)
