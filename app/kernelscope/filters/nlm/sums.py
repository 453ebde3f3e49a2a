"""Shared by all levels of non-local means: the widened image, the sums and their quotients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Plane, Record, kernel
from kernelscope.filters.shared.border_kernels import REDUCE, REFLECT, VALID, border_index
from kernelscope.filters.shared.correlation import settle

LONGEST = 11
"""Largest side of a patch. Tuples of profiles are as long, so that the code is one for all."""


class PatchMetric(NamedTuple):
    """How patches are compared."""

    group: int
    """Channels that share a distance: all of them, or one."""
    profile: Any
    """float32, shape (patch,). See `patch_profile`; at level *parallel* a tuple of `LONGEST`."""
    side: int
    """Of a patch."""
    scale: np.float32
    """Makes a distance, in squared samples, the binary logarithm of its weight."""
    floor: np.float32
    """Subtracted from distances first, down to 0."""


class Sums(NamedTuple):
    """Sums over the candidates of each pixel of the result, in float32."""

    samples: NDArray[np.float32]
    """Shape (colours, height', width'). Weights times samples."""
    weights: NDArray[np.float32]
    """Shape (colours / group, height', width')."""


@kernel
def extend(
    source: Plane, extended: Array, margin: Index, border: Index, start: Index, stop: Index
) -> None:
    """Write rows `start` to `stop` of `extended` (channels, rows, columns and more), float32."""
    height, width, _ = source.shape
    shift = 0 if border == VALID else margin
    # `reduce` leaves out candidates; cells of patches are reflected.
    border = REFLECT if border == REDUCE else border
    for row in range(start, stop):
        y = border_index(row - shift, height, border)
        for column in range(width + 2 * shift):
            x = border_index(column - shift, width, border)
            for c in range(extended.shape[0]):
                extended[c, row, column] = source[y, x, c] if y >= 0 and x >= 0 else 0


@kernel
def count_itself(extended: Array, sums: Record, margin: Index, start: Index, stop: Index) -> None:
    """Begin the sums of rows `start` to `stop`: every pixel has weight 1 in its own average."""
    colours, _, width = sums.samples.shape
    for y in range(start, stop):
        sums.weights[:, y] = 1
        for c in range(colours):
            for x in range(width):
                sums.samples[c, y, x] = extended[c, y + margin, x + margin]


@kernel
def divide_sums(sums: Record, output: Plane, finish: Record, start: Index, stop: Index) -> None:
    colours, _, width = sums.samples.shape
    group = colours // sums.weights.shape[0]
    for y in range(start, stop):
        for x in range(width):
            for c in range(colours):
                mean = np.true_divide(sums.samples[c, y, x], sums.weights[c // group, y, x])
                output[y, x, c] = settle(mean, finish)
