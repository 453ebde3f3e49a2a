"""Stein's unbiased risk estimate: how far a filtered picture is from the unknown clean one.

For a picture y = x + noise, the noise Gaussian, independent and of standard deviation sigma, the
mean squared error of a filter f can be estimated without knowing x:

    mean of (f(y) - x)²  ~  mean of (f(y) - y)² - sigma² + 2 sigma² div f(y) / N

where the divergence is the sum over pixels of the derivative of an output pixel by its own input.
It needs no formula of the filter (Ramani, Blu and Unser, "Monte-Carlo SURE", IEEE Transactions on
Image Processing 17, 2008): with random signs b and a small step e,

    div f(y)  ~  sum of b (f(y + e b) - f(y)) / e

Example: the identity has (f(y) - y)² = 0 and div = N, so the estimate is sigma², the noise itself;
a filter that returns a constant c has div = 0, and the estimate is mean of (c - y)² - sigma².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEP = 0.1
"""The step e as a fraction of sigma: small against the noise, large against rounding of float32."""


@dataclass(frozen=True)
class Risk:
    mse: float
    """Estimated mean squared error, of samples for which white is 1. Where the error is small
    against the noise the estimate can be negative."""

    @property
    def psnr(self) -> float | None:
        """Estimated PSNR in dB; None where the estimate of the error is not above 0."""
        return -10 * math.log10(self.mse) if self.mse > 0 else None


def probe(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return random signs, -1 or 1, float32, the same ones each time."""
    signs = np.random.default_rng(0).integers(0, 2, shape, np.int8)
    return (2 * signs - 1).astype(np.float32)


def estimate_risk(
    noisy: NDArray[Any],
    denoise: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    sigma: float,
) -> Risk:
    """Estimate the mean squared error of ``denoise(noisy)``, of float32 where white is 1.

    `denoise` is called twice. `sigma` is that of the noise; `ValueError` is raised if it is not
    above 0, as then there is nothing to estimate.

    Filters that jump, as a median of equal samples or a threshold, have derivatives that single
    steps see only in the mean: the estimate scatters more there.
    """
    if sigma <= 0:
        raise ValueError(sigma)
    step = np.float32(_STEP * sigma)
    signs = probe(noisy.shape)
    once = denoise(noisy)
    moved = denoise(noisy + step * signs)
    residual = float(np.mean(np.square(once.astype(np.float64) - noisy)))
    divergence = float(np.mean(signs * (moved.astype(np.float64) - once))) / float(step)
    return Risk(residual + sigma * sigma * (2 * divergence - 1))
