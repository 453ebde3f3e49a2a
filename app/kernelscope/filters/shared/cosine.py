"""Shared by the filters of blocks: the cosine transform of eight numbers, and the opponent colours.

All of it rounds each product and each sum, in one order, as `cosine.cuh` does on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Line, Number, Record, inlined

# cos(k pi / 16) / 2, and the factor of the mean.
C1 = np.float32(0.49039264)
C2 = np.float32(0.46193977)
C3 = np.float32(0.41573481)
C5 = np.float32(0.27778512)
C6 = np.float32(0.19134172)
C7 = np.float32(0.09754516)
C4 = np.float32(0.35355339)

# The rows of the opponent space: (1, 1, 1) / sqrt(3), (1, 0, -1) / sqrt(2), (1, -2, 1) / sqrt(6).
GREY = np.float32(0.57735027)
RED_BLUE = np.float32(0.70710678)
GREEN = np.float32(0.40824829)


@inlined
def forward(samples: Record) -> Any:
    """Return the coefficients of the orthonormal DCT-II of eight samples."""
    a0, a1, a2, a3, a4, a5, a6, a7 = samples
    s0, s1, s2, s3 = a0 + a7, a1 + a6, a2 + a5, a3 + a4
    d0, d1, d2, d3 = a0 - a7, a1 - a6, a2 - a5, a3 - a4
    p, q, r, t = s0 + s3, s1 + s2, s0 - s3, s1 - s2
    return (
        (p + q) * C4,
        d0 * C1 + d1 * C3 + d2 * C5 + d3 * C7,
        r * C2 + t * C6,
        d0 * C3 - d1 * C7 - d2 * C1 - d3 * C5,
        (p - q) * C4,
        d0 * C5 - d1 * C1 + d2 * C7 + d3 * C3,
        r * C6 - t * C2,
        d0 * C7 - d1 * C5 + d2 * C3 - d3 * C1,
    )


@inlined
def backward(coefficients: Record) -> Any:
    """Return the eight samples whose `forward` these are."""
    b0, b1, b2, b3, b4, b5, b6, b7 = coefficients
    p, q = (b0 + b4) * C4, (b0 - b4) * C4
    r, t = b2 * C2 + b6 * C6, b2 * C6 - b6 * C2
    s0, s1, s2, s3 = p + r, q + t, q - t, p - r
    d0 = b1 * C1 + b3 * C3 + b5 * C5 + b7 * C7
    d1 = b1 * C3 - b3 * C7 - b5 * C1 - b7 * C5
    d2 = b1 * C5 - b3 * C1 + b5 * C7 + b7 * C3
    d3 = b1 * C7 - b3 * C5 + b5 * C3 - b7 * C1
    return s0 + d0, s1 + d1, s2 + d2, s3 + d3, s3 - d3, s2 - d2, s1 - d1, s0 - d0


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
