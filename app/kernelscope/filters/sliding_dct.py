"""Sliding DCT: every pixel becomes the mean of all blocks around it, noise removed from each.

The 8×8 block at every place of the picture is transformed by the discrete cosine transform. The
noise of sigma is in all 64 coefficients alike, the picture in few. A first pass keeps those above
2.7 sigma, and the mean of the block:

    g = mean of all blocks that cover a pixel, weighted by 1 / the coefficients that were kept

A second pass multiplies each coefficient of the noisy picture by b² / (b² + sigma²), where b is
that of the first result (Wiener's filter), with weights of 1 / the sum of the squares of these
factors. With sigma 10, a coefficient of 26 is noise to the first pass, one of 30 is not; to the
second, one whose b is 30 has the factor 900 / 1000 = 0.9.

Colours are filtered as (R + G + B) / √3, (R - B) / √2 and (R - 2G + B) / √6: the noise in these is
as large as in R, G and B, and hardly any of the picture is in the last two. `chroma` multiplies
sigma in these.

Correlated noise has a sigma for each frequency, and camera noise is made white first
(`shared.noise_model`, `shared.stabilise`).

All levels compute the same floats in the same order, without multiply-adds that round once: blocks
are transformed along x, then along y; those that cover a pixel are added from the top one to the
bottom one, and these sums from left to right. Results are equal to the last bit.

Sources: Yu and Sapiro, "DCT image denoising: a simple and effective image denoising algorithm",
Image Processing On Line 1, 2011; the second pass after Dabov, Foi, Katkovnik and Egiazarian, "Image
denoising by sparse 3-D transform-domain collaborative filtering", IEEE Transactions on Image
Processing 16, 2007.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Line, Plane, Record, kernel
from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.border_kernels import VALID, border_index
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.cosine import (
    SQUARES,
    backward,
    colour_of,
    forward,
    fused,
    get,
    opponents,
    put,
)
from kernelscope.filters.shared.sigma_parameters import CHROMA, STRENGTH, shares_of, sigma_parameter
from kernelscope.filters.shared.stabilise import NOISE, NOISE_STEPS, estimate_sigma, with_spectra
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, Disturbance, FilterSpec, Remedy, Unit
from kernelscope.schema.launch import BLOCK, Cuda, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.samples import colour_count, white_level

SIDE = 8  # of a block
REACH = SIDE - 1  # how far a pass looks: a pixel's blocks reach so far on each side of it
MARGIN = 2 * REACH  # the second pass looks at the result of the first one
_LAMBDA = 2.7  # coefficients of up to this many sigma are noise

_LARGEST = 3e38


def noise(dtype: np.dtype[Any], parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the threshold of the first pass, and 1 / sigma for the second, in units of a sample.

    Both are those of coefficients as `cosine.forward` scales them.
    Shape (planes, 2, 64), for frequencies 8 x + y; all are 0 where there is no noise to remove.
    """
    percent = parameters["sigma"] * parameters["strength"] / 100
    sigma = percent / 100 * white_level(dtype)
    numbers = np.zeros((3, 2, SIDE * SIDE), np.float32)
    if np.float32(min(_LAMBDA * sigma, _LARGEST)) == 0:
        return numbers
    spectra = parameters.get("spectra", np.ones((3, SIDE, SIDE)))
    sigmas = sigma * np.sqrt(spectra.transpose(0, 2, 1).reshape(len(spectra), -1) * SQUARES)
    sigmas *= np.array(shares_of(parameters, len(sigmas)))[:, None]
    with np.errstate(divide="ignore"):
        numbers[:, 1] = np.minimum(1 / sigmas, _LARGEST)
    numbers[:, 0] = np.minimum(_LAMBDA * sigmas, _LARGEST)
    return numbers


# On the CPU ----------------------------------------------------------------------------
#
# A pass goes down a strip of columns, from one row of blocks to the next. All of its loops are over
# columns, which the compiler turns into vectors; rows of sums and of coefficients are used again as
# soon as they are finished with. Level *serial* has the same loops without vectors: `plain` is None
# for level *parallel*, where the compiler then leaves out the call that forbids them.

STRIP = 248
"""Columns of the result in a strip: with its blocks' other columns it stays in the cache."""

PITCH = 256
"""From a line of a strip to the next: the compiler knows it, and sees that no lines overlap."""


@kernel
def transform_row(
    row: Line, left: Index, count: Index, out: Line, line: Index, plain: Flag
) -> None:
    """Write the DCT of the eight samples from each place on to eight lines from `line` on."""
    for x in range(count):
        put(out, line * PITCH + x, PITCH, forward(get(row, left + x, 1)))


@kernel
def transform_columns(rows: Line, first: Index, count: Index, out: Line, plain: Flag) -> None:
    """Write the spectra of the blocks whose first row is `first`: line 8 k + q, q along y.

    `rows` has the numbers that `transform_row` wrote, those of row y at line 8 (y modulo 8).
    """
    for k in range(8):
        for j in range(8):
            here, there = (8 * k + j) * PITCH, (8 * ((first + j) & 7) + k) * PITCH
            for x in range(count):
                out[np.uintp(here + x)] = rows[np.uintp(there + x)]
        for x in range(count):
            put(out, 8 * k * PITCH + x, PITCH, forward(get(out, 8 * k * PITCH + x, PITCH)))


@kernel
def shrink_hard(spectra: Line, count: Index, thresholds: Line, weights: Line, plain: Flag) -> None:
    """Zero coefficients of up to a threshold; the weight of a block is 1 / those that are left."""
    zero, one = np.float32(0), np.float32(1)
    for x in range(count):
        weights[x] = one
    for line in range(1, 64):
        threshold = thresholds[line]
        for x in range(count):
            i = np.uintp(line * PITCH + x)
            kept = abs(spectra[i]) > threshold
            spectra[i] = spectra[i] if kept else zero
            weights[x] += one if kept else zero
    for x in range(count):
        weights[x] = np.true_divide(one, weights[x])


@kernel
def shrink_wiener(
    spectra: Line, guides: Line, count: Index, inverses: Line, weights: Line, plain: Flag
) -> None:
    """Multiply coefficients by b² / (b² + sigma²), b those of the guide.

    The weight of a block is 1 / the sum of the squares of these factors.
    """
    one = np.float32(1)
    for x in range(count):
        weights[x] = one
    for line in range(1, 64):
        inverse = inverses[line]
        for x in range(count):
            i = np.uintp(line * PITCH + x)
            ratio = guides[i] * inverse
            gain = one - np.true_divide(one, fused(ratio, ratio, one))
            spectra[i] *= gain
            weights[x] = fused(gain, gain, weights[x])
    for x in range(count):
        weights[x] = np.true_divide(one, weights[x])


@kernel
def add_blocks(
    spectra: Line, weights: Line, first: Index, count: Index, sums: Line, plain: Flag
) -> None:
    """Add the blocks, transformed back along y, to the rows that they cover.

    `sums` has nine lines for each row: eight coefficients along x, and the weight; that of row y of
    the result at line 9 (y modulo 8). Block `first` covers the rows up to `first` of the result.
    """
    new = 9 * (first & 7) * PITCH
    for x in range(9 * PITCH):
        sums[np.uintp(new + x)] = np.float32(0)
    for k in range(8):
        for q in range(8):
            for x in range(count):
                spectra[np.uintp((8 * k + q) * PITCH + x)] *= weights[x]
        for x in range(count):
            put(spectra, 8 * k * PITCH + x, PITCH, backward(get(spectra, 8 * k * PITCH + x, PITCH)))
        for r in range(8):
            here, there = (9 * ((first - 7 + r) & 7) + k) * PITCH, (8 * k + r) * PITCH
            for x in range(count):
                sums[np.uintp(here + x)] += spectra[np.uintp(there + x)]
    for r in range(8):
        for x in range(count):
            sums[np.uintp((9 * r + 8) * PITCH + x)] += weights[x]


@kernel
def write_means(
    sums: Line, first: Index, lines: Line, row: Line, left: Index, count: Index, plain: Flag
) -> None:
    """Transform a row of `sums` back along x, and write the means of all blocks."""
    start = 9 * first * PITCH
    for x in range(count + REACH):
        put(lines, x, PITCH, backward(get(sums, start + x, PITCH)))
    for x in range(count):
        total, weight = np.float32(0), np.float32(0)
        for c in range(8):
            total += lines[np.uintp((7 - c) * PITCH + x + c)]
            weight += sums[np.uintp(start + 8 * PITCH + x + c)]
        row[np.uintp(left + x)] = np.true_divide(total * np.float32(1 / 64), weight)


@kernel
def filter_planes(
    picture: Array,
    guide: Array,
    output: Array,
    noise: Array,
    wiener: Flag,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Compute the rows `start` to `stop` of a pass: the mean of all shrunk blocks of each pixel.

    - `picture`, `guide`: float32, shape (planes, rows, columns). The noisy picture, which begins
      `REACH` rows and columns before the guide in the second pass, and there the
      first result.
    - `output`: float32. `REACH` rows and columns less on each side.
    - `noise`: see the function of that name.
    """
    planes, _, width = output.shape
    rows = np.empty(64 * PITCH, np.float32)
    guide_rows = np.empty(64 * PITCH, np.float32)
    spectra = np.empty(64 * PITCH, np.float32)
    guides = np.empty(64 * PITCH, np.float32)
    weights = np.empty(PITCH, np.float32)
    sums = np.zeros(72 * PITCH, np.float32)
    lines = np.empty(8 * PITCH, np.float32)
    shift = REACH if wiener else 0
    for plane in range(planes):
        for left in range(0, width, STRIP):
            count = min(STRIP, width - left)
            n = count + REACH
            for y in range(start, stop + REACH):
                # The first row of blocks needs eight rows, each other one a new row.
                for row in range(start if y == start else y + 7, y + 8):
                    line = 8 * (row & 7)
                    transform_row(picture[plane, row + shift], left + shift, n, rows, line, plain)
                    if wiener:
                        transform_row(guide[plane, row], left, n, guide_rows, line, plain)
                transform_columns(rows, y, n, spectra, plain)
                if wiener:
                    transform_columns(guide_rows, y, n, guides, plain)
                    shrink_wiener(spectra, guides, n, noise[plane, 1], weights, plain)
                else:
                    shrink_hard(spectra, n, noise[plane, 0], weights, plain)
                add_blocks(spectra, weights, y, n, sums, plain)
                done = y - REACH
                if done >= start:
                    row = output[plane, done]
                    write_means(sums, done & 7, lines, row, left, count, plain)


@kernel
def extend(
    source: Plane, planes: Array, border: Index, plain: Flag, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of the picture with its border, colours as opponents."""
    height, width, _ = source.shape
    shift = 0 if border == VALID else MARGIN
    colours = planes.shape[0]
    pixel = np.zeros(3, np.float32)
    for row in range(start, stop):
        y = border_index(row - shift, height, border)
        for column in range(planes.shape[2]):
            x = border_index(column - shift, width, border)
            for c in range(colours):
                pixel[c] = source[y, x, c] if y >= 0 and x >= 0 else 0
            if colours == 3:
                parts = opponents(pixel[0], pixel[1], pixel[2])
                for c in range(3):
                    planes[c, row, column] = parts[c]
            else:
                planes[0, row, column] = pixel[0]


@kernel
def finish_rows(
    planes: Array, output: Plane, finish: Record, plain: Flag, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of the result, opponents as colours."""
    for y in range(start, stop):
        for x in range(output.shape[1]):
            if planes.shape[0] == 3:
                colour = colour_of(planes[0, y, x], planes[1, y, x], planes[2, y, x])
                for c in range(3):
                    output[y, x, c] = settle(colour[c], finish)
            else:
                output[y, x, 0] = settle(planes[0, y, x], finish)


@kernel
def copy_rows(
    source: Plane, output: Plane, shift: Index, plain: Flag, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of the source itself: there is no noise."""
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(output.shape[2]):
                output[y, x, c] = source[y + shift, x + shift, c]


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output = task.source, task.output
    height, width, channels = output.shape
    numbers = noise(source.dtype, task.parameters)
    plain = True if task.level == SERIAL.id else None
    shift = MARGIN if task.border.code == VALID else 0
    if not numbers.any():
        return [CpuPass(copy_rows, (source, output, shift, plain), height)]

    def planes(margin: int) -> Any:
        shape = (colour_count(channels), height + 2 * margin, width + 2 * margin)
        return np.empty(shape, np.float32)

    picture, first, second = planes(MARGIN), planes(REACH), planes(0)
    finish = Finish.of(source.dtype, np.float32)
    return [
        CpuPass(extend, (source, picture, task.border.code, plain), picture.shape[1], cost=0),
        CpuPass(filter_planes, (picture, picture, first, numbers, False, plain), first.shape[1]),
        CpuPass(filter_planes, (picture, first, second, numbers, True, plain), height, cost=1.7),
        CpuPass(finish_rows, (second, output, finish, plain), height, cost=0),
    ]


# On the GPU ----------------------------------------------------------------------------

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The picture is padded once, so that no pass treats a border.",
    TUNED.id: "This filter has no tuned kernel yet.",
}

ROWS = 57
"""Rows of a tile of level *shared*: macro ``TILE_ROWS``. Its blocks go down 64 rows of blocks."""

COLUMNS = 32 - REACH  # columns of such a tile: a warp has a row of 32 blocks
_SHARED_BYTES = 4 * 32 * (SIDE * (BLOCK[1] + REACH) + (SIDE + 1) * 16)  # the structure ``Memory``

_OPERATIONS = 2 * 18 * 42 + 64 * 12
"""Of both passes, about: 18 transforms of eight numbers a place, shrinking and adding up."""


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``sliding_dct.cu`` explains them."""
    numbers = noise(task.dtype, task.parameters)
    colours = colour_count(task.shape[2])
    width = task.output_shape[1]

    def plane(margin: int, values: int = 1) -> Scratch:
        pitch = 4 * values * colours * (width + 2 * margin)
        return Scratch(pitch, 2 * margin * pitch, margin=margin if values == 1 else None)

    def launch(kernel: str, *scratch: str, operations: float = 1.0) -> Launch:
        return Launch(
            kernel=f"sliding_dct_{kernel}",
            defines=replace(task, border=Border.REFLECT).defines(),
            block=BLOCK,
            constants={"noise": numbers},
            scratch=scratch,
            bytes_per_sample=8.0,
            operations_per_sample=operations,
        )

    pad = replace(launch("pad", "padded"), defines=task.defines())
    scratch = {"padded": plane(MARGIN), "first": plane(REACH)}
    last: Launch
    passes: tuple[Launch, ...]
    if task.level == SHARED.id:
        hard = launch("shared_hard", "padded", "first", operations=_OPERATIONS / 3)
        wiener = launch("shared_wiener", "padded", "first", "second", operations=_OPERATIONS / 1.5)
        tile = (COLUMNS, ROWS)
        passes = (replace(hard, tile=tile, shared_bytes=_SHARED_BYTES),)
        last = replace(wiener, tile=tile, shared_bytes=_SHARED_BYTES)
        scratch["second"] = plane(0)
    else:
        # A thread goes down eight rows, and begins seven rows of blocks above them.
        hard = launch("global_hard", "padded", "sums", operations=_OPERATIONS)
        wiener = launch("global_wiener", "padded", "first", "sums", operations=2 * _OPERATIONS)
        column = (BLOCK[0], BLOCK[1] * SIDE)
        passes = (
            replace(hard, tile=column, layers=colours),
            launch("global_first", "sums", "first"),
            replace(wiener, tile=column, layers=colours, frame=0),
        )
        last = launch("global_second", "sums")
        scratch["sums"] = plane(MARGIN, SIDE + 1)
    # Those in between do not depend on the border: they share their code.
    return CudaPlan((pad, *passes, replace(last, defines=task.defines())), scratch)


SPEC = FilterSpec(
    id="sliding_dct",
    name="Sliding DCT",
    category="Denoising",
    summary="Keeps the frequencies of all 8×8 blocks that are stronger than the noise.",
    synonyms=("denoise", "cosine", "frequency", "wiener", "shrinkage"),
    source="Yu and Sapiro, DCT image denoising, IPOL 2011; second pass after Dabov et al. 2007",
    parameters=(sigma_parameter(estimate_sigma), NOISE, STRENGTH, CHROMA),
    radius=lambda parameters: MARGIN,
    restores=True,
    unit=Unit.WHITE,
    resolve=with_spectra,
    noise=NOISE_STEPS,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=30.42),
    # A block is transformed as a whole: none has fewer cells.
    borders=tuple(border for border in Border if border is not Border.REDUCE),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.sliding_dct),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = \frac{\sum_B w_B\, T^{-1}(\gamma\, T u_B)}{\sum_B w_B}, \quad"
        r" \gamma_1 = [\,|T u_B| > 2.7 \sigma\,], \quad"
        r" \gamma_2 = \frac{b^2}{b^2 + \sigma^2}",
        use="For Gaussian noise: quick enough to be watched, and in most pictures closer to the "
        "one without noise than non-local means. *Estimate* finds sigma.",
        avoid="Specks are no Gaussian noise: use the median. Texture as fine as noise is taken "
        "for it where sigma is estimated: set it, or lower the strength.",
        example=Example(patch=EDGE, parameters={"sigma": 4.0}, radius=3),
        sample="camera-gaussian.png",
    ),
)
