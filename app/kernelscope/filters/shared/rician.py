"""Rician noise made Gaussian: a transform after which sigma is 1 everywhere, and its inverse.

A magnitude z of a signal nu with noise of sigma 1 has the density z exp(-(z² + nu²) / 2) I0(z nu):
its standard deviation grows from 0.66 without signal to 1. A function f whose slope is 1 over the
standard deviation makes it nearly 1; f is then refined until the standard deviation of f(z) is, for
every nu. A filter of Gaussian noise of sigma 1 works on f(z / sigma).

Its result is an estimate of the mean of f(z), not of f(nu). The *exact unbiased inverse* is the nu
whose mean is that: 0 for whatever is below the mean without signal.

``forward``    the table of f, in steps of 1 / `STEPS`, and z + C - 1 / (4 z) beyond it
``backward``   the table of nu² by the mean of f, likewise, and d - 1 / (4 d), d = mean - C, beyond

nu² is nearly linear in the mean where nu is small; nu itself has a vertical slope there.

Sources: Foi, "Noise estimation and removal in MR imaging: the variance-stabilization approach",
IEEE International Symposium on Biomedical Imaging 2011, for the transform and its inverse. The
tables are computed here from the density.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Number, Record, kernel
from kernelscope.base.once import once

STEPS = 128  # entries of the tables from one sigma to the next
_TOP = 16  # magnitude, in sigmas, from which on the transform has a closed form
_WIDE = 8  # how far beyond it densities are integrated: the rest is below 1e-13 of them

_ROUNDS = 40
_STRENGTH = 0.7
"""How often the slope of f is divided by the standard deviation, and by which power of it."""

_SMOOTH = 20  # entries that a change of the slope is averaged over, so that f has no ripples
_GAUSSIAN = np.zeros(1, np.float32)  # in place of tables: noise is Gaussian already


class RicianStabiliser(NamedTuple):
    """The transform as tables, float32, which have one entry each if there is nothing to transform.

    `lowest` is the mean of f without signal, where `backward` begins; `offset` is C of the closed
    forms.
    """

    forward: NDArray[np.float32]
    backward: NDArray[np.float32]
    lowest: np.float32
    offset: np.float32


def stabiliser(rician: bool) -> RicianStabiliser:
    """Return the transform for Rician noise, or for Gaussian noise one that changes nothing."""
    zero = np.float32(0)
    return _rician() if rician else RicianStabiliser(_GAUSSIAN, _GAUSSIAN, zero, zero)


def densities(magnitudes: NDArray[np.float64], signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of each of equally spaced magnitudes, shape (signals, magnitudes)."""
    z, nu = magnitudes, signals[:, None]
    shares = z * np.exp(-((z - nu) ** 2) / 2) * (np.exp(-z * nu) * np.i0(z * nu))
    return shares / shares.sum(axis=1, keepdims=True)


@once
def _rician() -> RicianStabiliser:
    z = np.arange((_TOP + _WIDE) * STEPS + 1) / STEPS
    nu = np.arange(_TOP * STEPS // 8 + 1) * 8 / STEPS
    shares = densities(z, nu)
    means = shares @ z
    deviations = np.sqrt(shares @ z**2 - means**2)
    far = 1 + 1 / (4 * np.maximum(z, 1) ** 2)
    slope = np.where(z < _TOP, 1 / np.interp(z, means, deviations), far)
    window = np.hanning(2 * _SMOOTH + 3)[1:-1]
    window /= window.sum()
    for _ in range(_ROUNDS):
        f = _integral(slope)
        mean = shares @ f
        found = np.interp(z, means, np.sqrt(shares @ f**2 - mean**2))
        # Beyond the table it is exact to 1e-4: near its end the correction fades.
        found = 1 + (found - 1) * np.clip(_TOP - 3 - z, 0, 1)
        wide = np.pad(slope / found**_STRENGTH, _SMOOTH, mode="edge")
        slope = np.where(z < _TOP - 1, np.convolve(wide, window, mode="valid"), slope)
    f = _integral(slope)
    mean = shares @ f
    offset = f[_TOP * STEPS] - _TOP + 1 / (4 * _TOP)
    places = mean[0] + np.arange(int((_TOP - 2 - mean[0] + offset) * STEPS) + 1) / STEPS
    squares = np.interp(places, mean, nu**2)
    return RicianStabiliser(
        f[: _TOP * STEPS + 1].astype(np.float32),
        squares.astype(np.float32),
        np.float32(mean[0]),
        np.float32(offset),
    )


def _integral(slope: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the integral of a slope from 0 on, by trapezia."""
    return np.concatenate([[0.0], np.cumsum(slope[1:] + slope[:-1]) / (2 * STEPS)])


@kernel
def stabilised(magnitude: Number, tables: Record) -> Any:
    """Return f of a magnitude in sigmas."""
    last = tables.forward.size - 1
    if last == 0:
        return magnitude
    place = magnitude * np.float32(STEPS)
    if place < np.float32(last):
        low = int(place)
        before = tables.forward[low]
        return before + (place - np.float32(low)) * (tables.forward[low + 1] - before)
    return (magnitude + tables.offset) - np.true_divide(np.float32(0.25), magnitude)


@kernel
def restored(mean: Number, tables: Record) -> Any:
    """Return the signal, in sigmas, for a mean of f."""
    last = tables.backward.size - 1
    if last == 0:
        return mean
    place = (mean - tables.lowest) * np.float32(STEPS)
    if not place > np.float32(0):
        return np.float32(0)
    if place < np.float32(last):
        low = int(place)
        before = tables.backward[low]
        square = before + (place - np.float32(low)) * (tables.backward[low + 1] - before)
        return np.sqrt(square)
    far = mean - tables.offset
    return far - np.true_divide(np.float32(0.25), far)
