"""Statistics of the samples inside a region of a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.samples import white_level

RAYLEIGH = math.sqrt(2 - math.pi / 2)
"""Standard deviation of Rayleigh's law, of sigma 1: 0.655."""


@dataclass(frozen=True)
class Statistics:
    count: int  # number of samples: pixels times channels
    # In levels of the type; NaN without samples.
    mean: float
    deviation: float
    """Standard deviation of a sample, with count - 1 in the denominator; NaN for fewer than two."""
    low: float
    high: float
    psnr: float | None = None
    """Against the reference within the region, in decibels; None if they are not comparable."""

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio: mean / standard deviation; infinite in a flat region."""
        return _ratio(self.mean, self.deviation)

    def snr_over(self, background: Statistics, *, rician: bool) -> float:
        """Return the mean as a multiple of the noise of a region without signal.

        `rician`: the noise is that of a magnitude image. Where there is no signal it follows
        Rayleigh's law, whose deviation is 0.655 of sigma (Gudbjartsson and Patz, 1995).
        """
        sigma = background.deviation / RAYLEIGH if rician else background.deviation
        return _ratio(self.mean, sigma)


def statistics(
    samples: NDArray[Any],
    reference: NDArray[Any] | None = None,
    peak: float | None = None,
) -> Statistics:
    """Return the figures of the samples of a region.

    `samples`: of any shape; numbers. `reference`: samples of the same region in the reference; of
    another shape, there is no PSNR. `peak`: white of the reference. By default, that of the type,
    which has to be the same then.
    """
    values = samples.astype(np.float64).reshape(-1)
    if not values.size:
        return Statistics(0, math.nan, math.nan, math.nan, math.nan)
    psnr = None
    same = reference is not None and (peak is not None or reference.dtype == samples.dtype)
    if reference is not None and same and reference.shape == samples.shape:
        error = float(np.mean((values - reference.astype(np.float64).reshape(-1)) ** 2))
        white = white_level(samples.dtype) if peak is None else peak
        psnr = 10 * math.log10(white * white / error) if error > 0 else math.inf
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    low, high = float(values.min()), float(values.max())
    return Statistics(values.size, float(values.mean()), deviation, low, high, psnr)


def contrast_to_noise(first: Statistics, second: Statistics) -> float:
    """Return |mean - mean'| / sqrt(deviation² + deviation'²) of two regions of one picture.

    The form for two noisy regions, as in ultrasound imaging; it treats both alike. Others divide
    by the deviation of the background alone. Infinite if both regions are flat and differ.
    """
    noise = math.hypot(first.deviation, second.deviation)
    return _ratio(abs(first.mean - second.mean), noise)


def _ratio(signal: float, noise: float) -> float:
    """Return signal / noise; NaN where either is unknown or both are 0."""
    if math.isnan(signal) or math.isnan(noise) or (signal == 0 and noise == 0):
        return math.nan
    return signal / noise if noise else math.copysign(math.inf, signal)
