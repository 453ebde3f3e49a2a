"""Shared by the non-local filters: weights, weighted sums, and the noise in a picture.

A weight is exp(-d) for a distance d, computed as 2 to the power of -d log2(e) by `power_of_two`.
For x = -2.3, for example, the nearest whole number is -2; a polynomial gives 2^-0.3 = 0.8123, and
the exponent of the float is reduced by 2: 0.2031.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import JitKernel, Line, Number
from kernelscope.schema.samples import Pixels, white_level

_DB2 = np.array([-1 - 3**0.5, 3 + 3**0.5, 3**0.5 - 3, 1 - 3**0.5]) / (4 * 2**0.5)
"""Daubechies' wavelet of two vanishing moments: the filter of the details."""

NORMAL_MEDIAN = 0.6744897501960817
"""Median of the magnitude of a normal random number of standard deviation 1."""

_LEAST, _MOST = 1e-14, 1e9
"""Limits of distances, where white is 1: float32 holds them, and sums of them, in any unit."""

_FLAT = 1e-9  # details up to this share of white are rounding: the place is flat and shows no noise


fused = functools.partial(JitKernel, fastmath=frozenset({"contract"}))
"""As `kernel`, with multiply-adds that round once."""


@fused
def power_of_two(x: Number) -> Any:
    """Return 2**x for float32 `x` up to 0, to 2e-7 of it; 2**-100 for anything smaller.

    That is negligible next to the 1 of the pixel itself, and times a sample it is still
    far from the denormal numbers, which are slow.

    Adding 1.5 * 2**23 leaves the nearest whole number in the last bits, from where a shift
    takes it to the exponent; a polynomial (least relative error) does the rest, in
    [-1/2, 1/2]. All of it vectorises, which a call of exp2 does not.
    """
    x = x if x > np.float32(-100) else np.float32(-100)
    shifted = np.float32(x + np.float32(12582912))
    x -= shifted - np.float32(12582912)
    power = np.float32(0.00967151) + x * np.float32(0.00132647)
    power = np.float32(0.05550734) + x * power
    power = np.float32(0.24022242) + x * power
    power = np.float32(0.69314698) + x * power
    power = np.float32(1) + x * power
    bits = np.float32(power).view(np.int32) + (shifted.view(np.int32) << 23)
    return np.int32(bits).view(np.float32)


@fused
def add_weighted(weights: Line, row: Line, samples: Line) -> None:
    """Add `weights` times `row` to `samples`."""
    for x in range(weights.size):
        samples[x] += weights[x] * row[x]


@fused
def add_moments(distances: Line, slopes: Line, values: Line, scale: Number, moments: Line) -> None:
    """Add to `moments` the sums of weights, and of weights times values, slopes and both."""
    weights, means, leaning, products = (
        np.float32(0),
        np.float32(0),
        np.float32(0),
        np.float32(0),
    )
    for j in range(distances.size):
        weight = power_of_two(scale * distances[j])
        weights += weight
        means += weight * values[j]
        leaning += weight * slopes[j]
        products += weight * slopes[j] * values[j]
    moments[0] += weights
    moments[1] += means
    moments[2] += leaning
    moments[3] += products


def patch_profile(parameters: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return G² along an axis of the patch: the weight of cell (s, t) is its outer product.

    Shape (patch,). With G = exp(-k² / 2 patch_sigma²) the largest weight, in the middle, is 1;
    a uniform patch has ones everywhere.
    """
    side = parameters["patch"]
    if parameters["weights"] != "gaussian":
        return np.ones(side)
    k = np.arange(side) - side // 2
    return np.exp(-((k / parameters["patch_sigma"]) ** 2))


def noise_floor(parameters: Mapping[str, Any]) -> float:
    """Return the distance of two patches by noise alone, where white is 1, if it counts.

    Patches that differ by noise of sigma have a distance of 2 sigma² times the sum of their cells'
    weights; with ``weights=corrected`` so much is subtracted, and else 0.
    """
    if parameters["weights"] != "corrected":
        return 0.0
    sigma = parameters["sigma"] * parameters["strength"] / 1e4
    return float(min(2 * sigma**2 * patch_profile(parameters).sum() ** 2, _MOST))


def falloff(parameters: Mapping[str, Any]) -> float:
    """Return the distance, where white is 1, at which a weight falls to 37 %: at `strength`."""
    strength = (parameters["strength"] / 100) ** 2
    return float(min(max(parameters["filter_sigma"] * strength, _LEAST), _MOST))


def patch_weights(parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the table of G (not squared), shape (patch, patch)."""
    profile = np.sqrt(patch_profile(parameters))
    return np.outer(profile, profile).astype(np.float32)


def of_least_error(errors: NDArray[np.float64], factors: NDArray[np.float64]) -> float:
    """Return the factor of least error, between those that were tried."""
    least = int(np.argmin(errors))
    place = float(least)
    if 0 < least < len(errors) - 1:
        before, here, after = errors[least - 1 : least + 2].tolist()
        place += (before - after) / (2 * (before - 2 * here + after))
    return float(2 ** np.interp(place, np.arange(len(factors)), np.log2(factors)))


def estimate_sigma(pixels: Pixels) -> float:
    """Return the standard deviation of the noise, as a fraction of white.

    The median magnitude of the finest diagonal details of the db2 wavelet, of which a picture
    has few and noise has many; the mean over all channels. As scikit-image's
    ``estimate_sigma(average_sigmas=True)``, after Donoho and Johnstone, "Ideal spatial
    adaptation by wavelet shrinkage", 1994.

    - `pixels`: shape (height, width, channels). Without alpha; uint8, uint16 or float32.
    """
    image = pixels / white_level(pixels.dtype)
    details = np.abs(_details(_details(image.astype(np.float64), 0), 1))
    return float(np.mean([_median_sigma(details[:, :, c]) for c in range(details.shape[2])]))


def _median_sigma(details: NDArray[np.float64]) -> float:
    noisy = details[details > _FLAT]
    return float(np.median(noisy)) / NORMAL_MEDIAN if noisy.size else 0.0


def _details(image: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return every other value of `image`, reflected, convolved with `_DB2` along `axis`."""
    lines = np.moveaxis(image, axis, 0)
    margin = len(_DB2) - 1
    count = (len(lines) + margin) // 2
    padded = np.pad(lines, ((margin, margin), (0, 0), (0, 0)), mode="symmetric")
    # Output k takes the samples up to 2k + 1, which is 2k + 1 + margin in the padded lines.
    starts = range(1 + margin, 0, -1)
    parts = (
        weight * padded[start : start + 2 * count : 2]
        for weight, start in zip(_DB2, starts, strict=True)
    )
    return np.moveaxis(np.asarray(sum(parts)), 0, axis)
