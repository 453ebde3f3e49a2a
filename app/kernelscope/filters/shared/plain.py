"""Shared by the kernels of level *serial*: plain loops, as a C programmer writes them.

The pixels whose mask lies inside the image are computed without a test for the border; the
others, the *rim*, from a copy of their cells. Samples are addressed in one dimension,
``(y * width + x) * channels + c``: `cell` omits the test for indices from the end, which
Python has and C has not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Line, Number, Plane, Record, inlined, intrinsic, kernel
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index


@intrinsic
def rolled(context: Any, builder: Any, types: Any) -> None:
    """Keep LLVM from unrolling the loop that calls this, for which it would have to count first.

    Nothing is executed. Masks are small: most of their rows have fewer cells than LLVM's
    unrolled loops take at a time, and ``-O2`` unrolls none either.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    call = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
    call.attributes.add("convergent")


@inlined
def cell(samples: Line, place: Index) -> Any:
    """Return a sample of a one-dimensional array; `place` is not negative."""
    return samples[np.uintp(place)]


@inlined
def wide_cell(samples: Line, place: Index) -> Any:
    """As `cell`, in the type that sums are exact in: int64, or float64 for float samples."""
    return np.int64(0) + samples[np.uintp(place)]


@inlined
def lower(a: Number, b: Number) -> Any:
    """Return the lower number, or `b` if `a` has no value."""
    return a if a < b else b


@inlined
def higher(a: Number, b: Number) -> Any:
    """Return the higher number, or `b` if `a` has no value."""
    return a if a > b else b


@inlined
def put(results: Line, place: Index, value: Number, finish: Record) -> None:
    """Write a value as a sample, rounded (ties to even) and saturated."""
    if results.dtype.type(0.5) == 0:  # integers: the compiler knows
        value = np.rint(value)
    results[np.uintp(place)] = min(max(value, finish.low), finish.high)


@kernel
def interior(y: Index, radius: Index, height: Index, width: Index, border: Index) -> Any:
    """Return the first column of output row `y` whose mask lies inside the image, and the last
    but one; 0 and 0 if there is none."""
    if border == VALID:
        return 0, width - 2 * radius
    if radius <= y < height - radius and radius < width - radius:
        return radius, width - radius
    return 0, 0


@kernel.plain
def gather(
    source: Plane, y: Index, x: Index, c: Index, radius: Index, border: Index, window: Line
) -> None:
    """Write the cells around a pixel to `window`, row by row; those outside the image are 0."""
    height, width, _ = source.shape
    i = 0
    for s in range(-radius, radius + 1):
        yy = border_index(y + s, height, border)
        for t in range(-radius, radius + 1):
            xx = border_index(x + t, width, border)
            window[i] = source[yy, xx, c] if yy >= 0 and xx >= 0 else 0
            i += 1


@kernel
def count_cells(
    y: Index, x: Index, radius: Index, height: Index, width: Index, border: Index
) -> Any:
    """Return how many cells of the mask around a pixel count."""
    if border != REDUCE:
        return (2 * radius + 1) ** 2
    rows = min(y + radius + 1, height) - max(y - radius, 0)
    columns = min(x + radius + 1, width) - max(x - radius, 0)
    return rows * columns
