"""Shared by the filters of blocks: the cosine transform of eight numbers, and the opponent colours.

The transform leaves its last factors out: coefficient k of the orthonormal DCT-II times `SCALES[k]`
takes 23 sums, a product, and six of both in one. Whoever compares coefficients multiplies the
numbers they are compared with. Back and forth makes eight times the numbers.

All of it rounds in one order, as `cosine.cuh` does on a GPU: a product with its sum once.

Source: Arai, Agui and Nakajima, "A fast DCT-SQ scheme for images", Transactions of the IEICE 71,
1988.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Line, Number, Record, inlined, intrinsic


@partial(intrinsic, result="float32")
def fused(context: Any, builder: Any, types: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c of three float32, rounded once."""
    return builder.fma(a, b, c)


@partial(intrinsic, result="int32")
def bits_of(context: Any, builder: Any, types: Any, value: Any) -> Any:
    """Return the 32 bits of a float32 as a whole number."""
    from llvmlite import ir  # type: ignore[import-untyped]

    return builder.bitcast(value, ir.IntType(32))


@partial(intrinsic, result="float32")
def float_of(context: Any, builder: Any, types: Any, bits: Any) -> Any:
    """Return the float32 whose `bits_of` these are, an int32."""
    from llvmlite import ir

    return builder.bitcast(bits, ir.FloatType())


SCALES = np.sqrt(8) * np.append(1, np.sqrt(2) * np.cos(np.arange(1, 8) * np.pi / 16))
"""Of the coefficients of `forward`, in units of those of the orthonormal transform."""

SQUARES = np.outer(SCALES**2, SCALES**2).ravel().astype(np.float32)
"""The same of both axes of a block, squared."""

# With c(k) = cos(k pi / 16): c(4), c(6), c(2) - c(6), c(2) + c(6); 2 c(4), 2 c(2), and twice the
# difference and the sum again.
F1 = np.float32(0.70710678)
F2 = np.float32(0.38268343)
F3 = np.float32(0.54119610)
F4 = np.float32(1.30656296)
B1 = np.float32(1.41421356)
B2 = np.float32(1.84775907)
B3 = np.float32(1.08239220)
B4 = np.float32(2.61312593)

# The rows of the opponent space: (1, 1, 1) / sqrt(3), (1, 0, -1) / sqrt(2), (1, -2, 1) / sqrt(6).
GREY = np.float32(0.57735027)
RED_BLUE = np.float32(0.70710678)
GREEN = np.float32(0.40824829)


@inlined
def forward(samples: Record) -> Any:
    """Return the coefficients of eight samples, each times its `SCALES`."""
    a0, a1, a2, a3, a4, a5, a6, a7 = samples
    s0, s1, s2, s3 = a0 + a7, a1 + a6, a2 + a5, a3 + a4
    d0, d1, d2, d3 = a0 - a7, a1 - a6, a2 - a5, a3 - a4
    p, q, r, t = s0 + s3, s1 + s2, s0 - s3, s1 - s2
    e, x, y, z = r + t, d2 + d3, d1 + d2, d0 + d1
    turned = (x - z) * F2
    u, v = fused(x, F3, turned), fused(z, F4, turned)
    m, n = fused(y, F1, d0), fused(y, -F1, d0)
    return p + q, m + v, fused(e, F1, r), n - u, p - q, n + u, fused(e, -F1, r), m - v


@inlined
def backward(coefficients: Record) -> Any:
    """Return eight times the samples whose `forward` these are."""
    b0, b1, b2, b3, b4, b5, b6, b7 = coefficients
    p, q, r = b0 + b4, b0 - b4, b2 + b6
    t = fused(b2 - b6, B1, -r)
    s0, s1, s2, s3 = p + r, q + t, q - t, p - r
    m, n, x, z = b1 + b7, b1 - b7, b5 + b3, b5 - b3
    turned = (z + n) * B2
    d0 = m + x
    d1 = fused(z, -B4, turned) - d0
    d2 = fused(m - x, B1, -d1)
    d3 = fused(n, B3, -turned) + d2
    return s0 + d0, s1 + d1, s2 + d2, s3 - d3, s3 + d3, s2 - d2, s1 - d1, s0 - d0


@inlined
def opponents(red: Number, green: Number, blue: Number) -> Any:
    """Return a colour in the opponent space."""
    return (
        (red + green + blue) * GREY,
        (red - blue) * RED_BLUE,
        ((red + blue) - (green + green)) * GREEN,
    )


@inlined
def colour_of(grey: Number, across: Number, green: Number) -> Any:
    """Return the colour whose `opponents` these are."""
    grey, across, green = grey * GREY, across * RED_BLUE, green * GREEN
    return grey + across + green, grey - (green + green), grey - across + green


@inlined
def get(numbers: Line, place: Index, step: Index) -> Any:
    """Return eight numbers, `step` apart; `step` should be a constant, for vectors."""
    i, s = np.uintp(place), np.uintp(step)
    return (
        numbers[i],
        numbers[i + s],
        numbers[i + np.uintp(2) * s],
        numbers[i + np.uintp(3) * s],
        numbers[i + np.uintp(4) * s],
        numbers[i + np.uintp(5) * s],
        numbers[i + np.uintp(6) * s],
        numbers[i + np.uintp(7) * s],
    )


@inlined
def put(numbers: Line, place: Index, step: Index, values: Any) -> None:
    """Write eight numbers, `step` apart."""
    i, s = np.uintp(place), np.uintp(step)
    numbers[i] = values[0]
    numbers[i + s] = values[1]
    numbers[i + np.uintp(2) * s] = values[2]
    numbers[i + np.uintp(3) * s] = values[3]
    numbers[i + np.uintp(4) * s] = values[4]
    numbers[i + np.uintp(5) * s] = values[5]
    numbers[i + np.uintp(6) * s] = values[6]
    numbers[i + np.uintp(7) * s] = values[7]
