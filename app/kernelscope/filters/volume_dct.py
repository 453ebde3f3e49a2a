"""Sliding DCT of volumes: every voxel becomes the mean of all 4×4×4 blocks around it, less noise.

The noise is made one of sigma 1 first: voxels are divided by sigma, which may vary over the head,
and Rician noise is made Gaussian. The block at every place is transformed by the discrete cosine
transform. The noise is in all 64 coefficients alike, the volume in few. A first pass keeps those
above 3 sigma, and the mean of the block:

    g = mean of all blocks that cover a voxel, weighted by 1 / the coefficients that were kept

A second pass multiplies each coefficient of the noisy volume by b² / (b² + sigma²), where b is that
of the first result (Wiener's filter), with weights of 1 / the sum of the squares of these factors.
The result gets its sigma back, and its mean as it would be without Rician noise.

Several volumes are filtered one by one.

All levels compute the same floats in the same order, without multiply-adds that round once: blocks
are transformed along x, y and z; those that cover a voxel are added from the first slice to the
last, these sums from top to bottom, and those from left to right. Results are equal to the last
bit.

Sources: Manjón, Coupé, Buades, Collins and Robles, "New methods for MRI denoising based on
sparseness and self-similarity", Medical Image Analysis 16, 2012 (ODCT3D); the second pass after
Dabov, Foi, Katkovnik and Egiazarian, "Image denoising by sparse 3-D transform-domain collaborative
filtering", IEEE Transactions on Image Processing 16, 2007; Rician noise after Foi, "Noise
estimation and removal in MR imaging: the variance-stabilization approach", ISBI 2011.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Record, inlined, kernel
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
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

SIDE = 4  # of a block

REACH = SIDE - 1  # how far a pass looks: a voxel's blocks reach so far on each side of it

MARGIN = 2 * REACH  # the second pass looks at the result of the first one

_LAMBDA = 3.0
"""Coefficients of up to this many sigma are noise. The paper's 2.7 leaves more: 0.03 to 0.20 dB in
16 trials, of three other parts of the head and a phantom with noise of 1, 3, 5 and 9 %."""

_LARGEST = 3e38


def numbers(parameters: Mapping[str, Any]) -> tuple[np.float32, np.float32]:
    """Return the threshold of the first pass, and 1 / sigma for the second."""
    sigma = removed_sigma(parameters)
    return np.float32(_LAMBDA * sigma), np.float32(min(1 / max(sigma, 1e-38), _LARGEST))


# On the CPU ----------------------------------------------------------------------------
#
# A pass goes through a tile of rows and columns, from one slice of blocks to the next. All of its
# loops are along lines of `PITCH` columns, which the compiler turns into vectors; the buffers of a
# tile stay in the second-level cache. Level *serial* has the same loops without vectors: `plain` is
# None for level *parallel*.

PITCH = 64
"""From a line of a tile to the next: the compiler knows it, and sees that no lines overlap."""

COLUMNS, ROWS, SLICES = PITCH - REACH, 16, 32
"""Voxels of a tile; their blocks reach further. Sixteen rows need a megabyte of buffers."""

LINES = ROWS + REACH  # rows of blocks of a tile

# cos(pi / 8) / sqrt(2), sin(pi / 8) / sqrt(2), and the factor of the mean and of its opposite.
C1 = np.float32(0.65328148)
C3 = np.float32(0.27059805)
HALF = np.float32(0.5)


@inlined
def forward(a: Record) -> Any:
    """Return the coefficients of the orthonormal DCT-II of four samples."""
    s0, s1, d0, d1 = a[0] + a[3], a[1] + a[2], a[0] - a[3], a[1] - a[2]
    return (s0 + s1) * HALF, d0 * C1 + d1 * C3, (s0 - s1) * HALF, d0 * C3 - d1 * C1


@inlined
def backward(b: Record) -> Any:
    """Return the four samples whose `forward` these are."""
    p, q = (b[0] + b[2]) * HALF, (b[0] - b[2]) * HALF
    r, t = b[1] * C1 + b[3] * C3, b[1] * C3 - b[3] * C1
    return p + r, q + t, q - t, p - r


@inlined
def get(numbers: Line, place: Index, step: Index) -> Any:
    """Return four numbers, `step` apart."""
    i, s = np.uintp(place), np.uintp(step)
    return (
        numbers[i],
        numbers[i + s],
        numbers[i + np.uintp(2) * s],
        numbers[i + np.uintp(3) * s],
    )


@inlined
def put(numbers: Line, place: Index, step: Index, values: Any) -> None:
    """Write four numbers, `step` apart."""
    i, s = np.uintp(place), np.uintp(step)
    numbers[i] = values[0]
    numbers[i + s] = values[1]
    numbers[i + np.uintp(2) * s] = values[2]
    numbers[i + np.uintp(3) * s] = values[3]


@kernel
def transform_slice(
    slice_: Array, top: Index, left: Index, work: Line, spectra: Line, slot: Index, plain: Flag
) -> None:
    """Write the DCT along x and y of the 4 x 4 samples at each place of a tile.

    Sixteen lines a row of places, 4 k + q: k along x, q along y; those of row j begin at line
    ``(slot * LINES + j) * 16``. `work` is a padded row, and from there on four lines a row.
    """
    height, width = slice_.shape
    for row in range(LINES + REACH):
        y = min(top + row, height - 1)
        for x in range(PITCH + REACH):
            work[np.uintp(x)] = slice_[y, min(left + x, width - 1)]
        rows = 2 * PITCH + (row & 3) * 4 * PITCH
        for x in range(PITCH):
            put(work, rows + x, PITCH, forward(get(work, x, 1)))
        j = row - REACH
        if j < 0:
            continue
        for k in range(4):
            first, step = 2 * PITCH + k * PITCH, 4 * PITCH
            to = ((slot * LINES + j) * 16 + 4 * k) * PITCH
            for x in range(PITCH):
                put(
                    spectra,
                    to + x,
                    PITCH,
                    forward(
                        (
                            work[np.uintp(first + (j & 3) * step + x)],
                            work[np.uintp(first + ((j + 1) & 3) * step + x)],
                            work[np.uintp(first + ((j + 2) & 3) * step + x)],
                            work[np.uintp(first + ((j + 3) & 3) * step + x)],
                        )
                    ),
                )


@kernel
def transform_depth(spectra: Line, first: Index, j: Index, block: Line, plain: Flag) -> None:
    """Write the spectra of a row of blocks, whose first slice has slot `first`.

    Line 4 n + q is the frequency q along z of line n of `transform_slice`.
    """
    step = LINES * 16 * PITCH
    for n in range(16):
        at = (j * 16 + n) * PITCH
        for x in range(PITCH):
            put(
                block,
                4 * n * PITCH + x,
                PITCH,
                forward(
                    (
                        spectra[np.uintp(at + (first & 3) * step + x)],
                        spectra[np.uintp(at + ((first + 1) & 3) * step + x)],
                        spectra[np.uintp(at + ((first + 2) & 3) * step + x)],
                        spectra[np.uintp(at + ((first + 3) & 3) * step + x)],
                    )
                ),
            )


@kernel
def shrink_hard(block: Line, threshold: Number, weights: Line, plain: Flag) -> None:
    """Zero coefficients of up to `threshold`; the weight of a block is 1 / those that are left."""
    zero, one = np.float32(0), np.float32(1)
    for x in range(PITCH):
        weights[np.uintp(x)] = one
    for line in range(1, 64):
        for x in range(PITCH):
            i = np.uintp(line * PITCH + x)
            kept = abs(block[i]) > threshold
            block[i] = block[i] if kept else zero
            weights[np.uintp(x)] += one if kept else zero
    for x in range(PITCH):
        weights[np.uintp(x)] = np.true_divide(one, weights[np.uintp(x)])


@kernel
def shrink_wiener(block: Line, guide: Line, inverse: Number, weights: Line, plain: Flag) -> None:
    """Multiply coefficients by b² / (b² + sigma²), b those of the guide.

    The weight of a block is 1 / the sum of the squares of these factors.
    """
    one = np.float32(1)
    for x in range(PITCH):
        weights[np.uintp(x)] = one
    for line in range(1, 64):
        for x in range(PITCH):
            i = np.uintp(line * PITCH + x)
            ratio = guide[i] * inverse
            gain = one - np.true_divide(one, ratio * ratio + one)
            block[i] *= gain
            weights[np.uintp(x)] += gain * gain
    for x in range(PITCH):
        weights[np.uintp(x)] = np.true_divide(one, weights[np.uintp(x)])


@kernel
def add_blocks(block: Line, weights: Line, first: Index, j: Index, sums: Line, plain: Flag) -> None:
    """Add a row of blocks, transformed back along z, to the four slices that they cover.

    `sums` has seventeen lines for each row of places and slice: sixteen of coefficients, and the
    weight. The blocks cover the slices with slots `first` to ``first + 3``.
    """
    for n in range(16):
        for q in range(4):
            for x in range(PITCH):
                block[np.uintp((4 * n + q) * PITCH + x)] *= weights[np.uintp(x)]
        for x in range(PITCH):
            at = 4 * n * PITCH + x
            put(block, at, PITCH, backward(get(block, at, PITCH)))
        for r in range(4):
            to = ((((first + r) & 3) * LINES + j) * 17 + n) * PITCH
            for x in range(PITCH):
                sums[np.uintp(to + x)] += block[np.uintp((4 * n + r) * PITCH + x)]
    for r in range(4):
        to = ((((first + r) & 3) * LINES + j) * 17 + 16) * PITCH
        for x in range(PITCH):
            sums[np.uintp(to + x)] += weights[np.uintp(x)]


@kernel
def sum_rows(sums: Line, at: Index, j: Index, work: Line, lines: Line, plain: Flag) -> None:
    """Add a row of places, transformed back along y, to the four rows that its blocks cover.

    `lines` has five lines for each row of the result: four of coefficients, and the weight.
    """
    for x in range(5 * PITCH):
        lines[np.uintp(5 * (j & 3) * PITCH + x)] = np.float32(0)
    for k in range(4):
        for x in range(PITCH):
            put(work, x, PITCH, backward(get(sums, at + 4 * k * PITCH + x, PITCH)))
        for r in range(4):
            to = (5 * ((j - REACH + r) & 3) + k) * PITCH
            for x in range(PITCH):
                lines[np.uintp(to + x)] += work[np.uintp(r * PITCH + x)]
    for r in range(4):
        for x in range(PITCH):
            lines[np.uintp((5 * r + 4) * PITCH + x)] += sums[np.uintp(at + 16 * PITCH + x)]


@kernel
def write_means(
    lines: Line, row: Index, work: Line, output: Line, left: Index, count: Index, plain: Flag
) -> None:
    """Transform a row of the result back along x, and write the means of all blocks."""
    start = 5 * (row & 3) * PITCH
    for x in range(PITCH):
        put(work, x, PITCH, backward(get(lines, start + x, PITCH)))
    for x in range(count):
        total, weight = np.float32(0), np.float32(0)
        for c in range(4):
            total += work[np.uintp((3 - c) * PITCH + x + c)]
            weight += lines[np.uintp(start + 4 * PITCH + x + c)]
        output[np.uintp(left + x)] = np.true_divide(total, weight)


@kernel
def filter_tiles(
    volume: Array,
    guide: Array,
    output: Array,
    noise: Record,
    wiener: Flag,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Compute the tiles `start` to `stop` of a pass: the mean of all shrunk blocks of each voxel.

    - `volume`, `guide`: float32, shape (components, slices, rows, columns). The noisy volume, which
      begins `REACH` voxels before the guide in the second pass, and there the first result.
    - `output`: float32. `REACH` voxels less on each side.
    - `noise`: see the function of that name.
    """
    _, depth, height, width = output.shape
    work = np.empty(18 * PITCH, np.float32)
    spectra = np.empty(4 * LINES * 16 * PITCH, np.float32)
    guides = np.empty(4 * LINES * 16 * PITCH, np.float32)
    block = np.empty(64 * PITCH, np.float32)
    guide_block = np.empty(64 * PITCH, np.float32)
    weights = np.empty(PITCH, np.float32)
    sums = np.zeros(4 * LINES * 17 * PITCH, np.float32)
    lines = np.zeros(20 * PITCH, np.float32)
    shift = REACH if wiener else 0
    deep, tall, wide = -(-depth // SLICES), -(-height // ROWS), -(-width // COLUMNS)
    for unit in range(start, stop):
        c = unit // (deep * tall * wide)
        front = unit // (tall * wide) % deep * SLICES
        top, left = unit // wide % tall * ROWS, unit % wide * COLUMNS
        size = (min(ROWS, height - top), min(COLUMNS, width - left))
        for z in range(front, min(front + SLICES, depth) + REACH):
            # The first blocks need four slices, each further one a new slice.
            for new in range(z if z == front else z + REACH, z + 4):
                noisy = volume[c, new + shift]
                transform_slice(noisy, top + shift, left + shift, work, spectra, new & 3, plain)
                if wiener:
                    transform_slice(guide[c, new], top, left, work, guides, new & 3, plain)
            begin = (z & 3) * LINES * 17 * PITCH
            for x in range(LINES * 17 * PITCH):
                sums[np.uintp(begin + x)] = np.float32(0)
            for j in range(size[0] + REACH):
                transform_depth(spectra, z, j, block, plain)
                if wiener:
                    transform_depth(guides, z, j, guide_block, plain)
                    shrink_wiener(block, guide_block, noise[1], weights, plain)
                else:
                    shrink_hard(block, noise[0], weights, plain)
                add_blocks(block, weights, z - REACH, j, sums, plain)
            done = z - REACH
            if done >= front:
                slice_ = output[c, done]
                for j in range(size[0] + REACH):
                    at = ((done & 3) * LINES + j) * 17 * PITCH
                    sum_rows(sums, at, j, work, lines, plain)
                    y = j - REACH
                    if y >= 0:
                        write_means(lines, y, work, slice_[top + y], left, size[1], plain)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    components = source.shape[3]
    first = task.part.first if task.part is not None else (0, 0, 0)
    plain = True if task.level == SERIAL.id else None
    sides = output.shape[:3]
    if not removed_sigma(parameters):
        return [CpuPass(copy_slices, (source, output, first, plain), sides[0])]

    def made(margin: int) -> Any:
        return np.empty((components, *(n + 2 * margin for n in sides)), np.float32)

    extended, basic, filtered = made(MARGIN), made(REACH), made(0)
    model, noise = noise_model(parameters, components), numbers(parameters)
    before = tuple(MARGIN - start for start in first)

    def units(result: Any) -> int:
        _, depth, height, width = result.shape
        return components * -(-depth // SLICES) * -(-height // ROWS) * -(-width // COLUMNS)

    extending = (source, extended, before, model, plain)
    hard = (extended, extended, basic, noise, False, plain)
    wiener = (extended, basic, filtered, noise, True, plain)
    return [
        CpuPass(extend_stabilised, extending, extended.shape[1], cost=0.2),
        CpuPass(filter_tiles, hard, units(basic)),
        CpuPass(filter_tiles, wiener, units(filtered), cost=1.7),
        CpuPass(restore, (filtered, output, first, model, plain), sides[0], cost=0.1),
    ]


# On the GPU ----------------------------------------------------------------------------

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The volume is extended once, so that no pass treats a border.",
    TUNED.id: "This filter has no tuned kernel yet.",
}

_BLOCK = (16, 16, 1)

_SLICES = 8  # slices of the result that a block computes: macro ``SLICES``

_LINES = SIDE**2 + 1  # sums of a place

_CELLS = _BLOCK[0] + REACH
_TILE = _BLOCK[0] - REACH
_SHARED_BYTES = 4 * (2 * _CELLS**2 + _LINES * _BLOCK[0] ** 2 + (SIDE + 1) * _TILE * _BLOCK[0])
"""The structure ``Memory``."""

_OPERATIONS = 900.0
"""Of a pass and place, about: 48 transforms of four numbers, shrinking and adding up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``volume_dct.cu`` explains them."""
    noise = np.array(numbers(task.parameters), np.float32)
    ends = Ends(task, "volume_dct", {"noise": noise})
    if not removed_sigma(task.parameters):
        return CudaPlan((ends.copy,))

    def launch(kernel: str, *scratch: str, factor: float = 1.0) -> Launch:
        return ends.launch(kernel, *scratch, block=_BLOCK, operations=factor * _OPERATIONS)

    scratch = {
        "extended": ends.around(MARGIN),
        "basic": ends.around(REACH),
        "filtered": ends.around(0),
    }
    passes: tuple[Launch, ...]
    if task.level == SHARED.id:
        tile = (_TILE, _TILE, _SLICES)
        passes = tuple(
            replace(each, tile=tile, shared_bytes=_SHARED_BYTES)
            for each in (
                launch("shared_hard", "extended", "basic"),
                launch("shared_wiener", "extended", "basic", "filtered", factor=1.7),
            )
        )
    else:
        column = (*_BLOCK[:2], _SLICES)
        passes = (
            replace(launch("global_hard", "extended", "sums"), tile=column),
            launch("global_first", "sums", "basic", factor=0.4),
            replace(launch("global_wiener", "extended", "basic", "sums", factor=1.7), tile=column),
            launch("global_second", "sums", "filtered", factor=0.4),
        )
        scratch["sums"] = ends.around(REACH, more=REACH, values=_LINES)
    return CudaPlan((ends.before, *passes, ends.after), scratch)


SPEC = StabilisedSpec(
    id="volume_dct",
    name="Volume DCT",
    summary="Keeps the frequencies of all 4×4×4 blocks that are stronger than the noise.",
    synonyms=("denoise", "cosine", "frequency", "wiener", "odct3d", "rician", "brain", "volume"),
    source="Manjón et al., MRI denoising by sparseness and self-similarity, 2012 (ODCT3D)",
    radius=lambda parameters: MARGIN,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=35.79),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.volume_dct),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = \sigma f^{-1}\left( \frac{\sum_B w_B\, T^{-1}(\gamma\, T v_B)}{\sum_B w_B}"
        r" \right), \quad v = f(u / \sigma), \quad"
        r" \gamma_1 = [\,|T v_B| > 3\,], \quad \gamma_2 = \frac{b^2}{b^2 + 1}",
        use="For scans of one volume, and as a quick preview: in brain MRI its error is "
        "smaller than that of non-local means. Noise may be Rician and vary in space.",
        avoid="Noise that interpolation has smoothed is not found by its sigma: set a larger one. "
        "*Volume collaborative* takes longer and keeps more.",
        example=RIM,
        sample="",
    ),
)
