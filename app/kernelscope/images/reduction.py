"""Pictures reduced by averaging: each pixel is the mean of a block, in stored units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Plane, kernel
from kernelscope.base.parallel import BAND_SAMPLES, in_parts

LARGEST_FACTOR = 256  # side of the largest block: its columns of bytes add up to 16 bits

_SUMS = {"uint8": np.uint16, "uint16": np.uint32, "float32": np.float32}
"""Types that hold the sum of `LARGEST_FACTOR` samples."""

_compiled: set[np.dtype[Any]] = set()


_MOST_UNCOMPILED = 1 << 26
"""Samples that NumPy reduces sooner than code for it is loaded, which takes 0.1 s, or 2.6 s before
Numba is: 1 to 4 ms for each million, on a core of a cloud machine."""


_FRAME = 1 << 18  # samples that NumPy reduces within a frame


def is_quick(planes: NDArray[Any]) -> bool:
    """Return whether `reduced` needs no compiling for this picture, or a few milliseconds."""
    return planes.dtype in _compiled or (planes.size <= _FRAME and planes.shape[2] in (1, 3))


def compile_for(dtype: np.dtype[Any]) -> None:
    """Compile the code for pictures of this type, or load it: `reduced` does so for large ones."""
    _reduced(np.zeros((1, 1, 1), dtype), LARGEST_FACTOR, by_numpy=False)


def reduced(planes: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return the means of blocks of ``factor × factor`` pixels.

    Integers are rounded, halves up. Blocks at the right and lower edge may be smaller. Colours
    are weighted by alpha.

    - `planes`: shape (height, width, channels). uint8, uint16 or float32.
    - `factor`: at most `LARGEST_FACTOR`.
    """
    early = planes.dtype not in _compiled and planes.size <= _MOST_UNCOMPILED
    return _reduced(planes, factor, by_numpy=early and planes.shape[2] in (1, 3))


def _reduced(planes: NDArray[Any], factor: int, *, by_numpy: bool) -> NDArray[Any]:
    height, width, channels = planes.shape
    rows, columns = -(-height // factor), -(-width // factor)
    output = np.empty((rows, columns, channels), planes.dtype)
    source = np.ascontiguousarray(planes).view()
    source.flags.writeable = False
    whole = height // factor
    blocks = source[: whole * factor].reshape(whole, factor * width * channels)
    half = 0.5 if planes.dtype.kind == "u" else 0.0

    def work(part: slice) -> None:
        if by_numpy:
            step = max(1, BAND_SAMPLES // blocks.shape[1])
            for start in range(part.start, part.stop, step):
                stop = min(start + step, part.stop)
                band = source[start * factor : stop * factor]
                output[start:stop] = _by_numpy(band, factor, half)
        elif channels in (2, 4):
            average_with_alpha(source, factor, half, output, part.start, part.stop)
        else:
            sums = np.empty(width * channels, _SUMS[planes.dtype.name])
            lines = source.reshape(height, -1)
            average_blocks(lines, factor, half, sums, output, part.start, part.stop)

    if len(blocks):
        in_parts(work, blocks)
    if len(blocks) < rows:
        work(slice(len(blocks), rows))
    if not by_numpy:
        _compiled.add(planes.dtype)
    return output


def _by_numpy(planes: NDArray[Any], factor: int, half: float) -> NDArray[Any]:
    """Return the same without compiled code; sums are added in the same order."""
    height, width, channels = planes.shape
    wide = np.float32 if planes.dtype.kind == "f" else np.uint32  # as `LARGEST_FACTOR` allows
    output = np.empty((-(-height // factor), -(-width // factor), channels), planes.dtype)
    for rows, down in _runs(height, factor):
        lines = planes[rows.start * factor :][: len(rows) * down].astype(wide)
        lines = lines.reshape(len(rows), down, width, channels)
        for columns, across in _runs(width, factor):
            cells = lines[:, :, columns.start * factor :][:, :, : len(columns) * across]
            cells = cells.reshape(len(rows), down, len(columns), across, channels)
            sums = _added(cells.transpose(1, 3, 0, 2, 4))
            means = sums * np.float64(1 / (down * across)) + half
            output[rows.start : rows.stop, columns.start : columns.stop] = means
    return output


def _runs(length: int, factor: int) -> Iterator[tuple[range, int]]:
    """Yield the whole blocks along an axis, and a smaller one that is left: places and side."""
    whole, rest = divmod(length, factor)
    if whole:
        yield range(whole), factor
    if rest:
        yield range(whole, whole + 1), rest


def _added(cells: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over the first two axes, of fours first, as `average_blocks` adds."""
    for _ in range(2):
        total: Any = 0
        fours = len(cells) // 4 * 4
        for i in range(0, fours, 4):
            total = total + ((cells[i] + cells[i + 1]) + (cells[i + 2] + cells[i + 3]))
        for i in range(fours, len(cells)):
            total = total + cells[i]
        cells = total
    return cells


@kernel
def average_blocks(  # noqa: C901 - compiled by Numba as one loop
    lines: Array,
    factor: Index,
    half: Number,
    sums: Line,
    output: Plane,
    start: Index,
    stop: Index,
) -> None:
    """Set rows of `output` to the means of blocks, plus `half`.

    `lines` has the shape (height, width * channels), and `sums` room for one of them.
    """
    channels = output.shape[2]
    width = sums.size // channels
    for y in range(start, stop):
        top = y * factor
        bottom = min(top + factor, lines.shape[0])
        fours = top + (bottom - top) // 4 * 4
        for i in range(sums.size):
            sums[i] = 0
        for row in range(top, fours, 4):  # four at once: the sums are loaded and stored less
            for i in range(sums.size):
                first = lines[row, i] + lines[row + 1, i]
                second = lines[row + 2, i] + lines[row + 3, i]
                sums[i] += first + second
        for row in range(fours, bottom):
            for i in range(sums.size):
                sums[i] += lines[row, i]
        share = 1 / ((bottom - top) * factor)
        whole = width // factor
        # Loops of fixed length are vectorised; with larger factors there is little left to add.
        if factor == 4 and channels == 1:
            for x in range(whole):
                i = 4 * x
                pairs = sums[i] + sums[i + 1] + (sums[i + 2] + sums[i + 3])
                output[y, x, 0] = pairs * share + half
        elif factor == 2 and channels == 1:
            for x in range(whole):
                output[y, x, 0] = (sums[2 * x] + sums[2 * x + 1]) * share + half
        elif factor == 4 and channels == 3:
            for x in range(whole):
                for channel in range(3):
                    i = 12 * x + channel
                    pairs = sums[i] + sums[i + 3] + (sums[i + 6] + sums[i + 9])
                    output[y, x, channel] = pairs * share + half
        else:
            whole = 0
        for x in range(whole, output.shape[1]):
            left = x * factor
            right = min(left + factor, width)
            share = 1 / ((bottom - top) * (right - left))
            for channel in range(channels):
                total = sums[left * channels + channel]
                for column in range(left + 1, right):
                    total += sums[column * channels + channel]
                output[y, x, channel] = total * share + half


@kernel
def average_with_alpha(
    planes: Plane, factor: Index, half: Number, output: Plane, start: Index, stop: Index
) -> None:
    """Set rows of `output` to the mean alpha of blocks and their colours, weighted by alpha."""
    height, width, channels = planes.shape
    last = channels - 1
    for y in range(start, stop):
        top = y * factor
        bottom = min(top + factor, height)
        for x in range(output.shape[1]):
            left = x * factor
            right = min(left + factor, width)
            weight = 0.0
            for row in range(top, bottom):
                for column in range(left, right):
                    weight += planes[row, column, last]
            for channel in range(last):
                total = 0.0
                for row in range(top, bottom):
                    for column in range(left, right):
                        alpha = np.float64(planes[row, column, last])
                        total += alpha * planes[row, column, channel]
                output[y, x, channel] = total / weight + half if weight > 0 else 0.0
            output[y, x, last] = weight / ((bottom - top) * (right - left)) + half
