"""Shared by the denoisers of pictures: the noise, measured beside texture.

The energies of blocks follow a curve, see `channel_sigmas`. Where noise is stronger than a texture
that is everywhere, noise decides which blocks look quiet: of grass with sigma 20 the curve finds
21.4. There two others count as much as the curve, `_by_halves` and `_by_peakedness`, here 20.6 and
19.7: each errs in its own way, so that their geometric mean is nearer than any of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.non_local import estimate_sigma
from kernelscope.schema.samples import Pixels, white_level

_SIDE, _MOST, _FEWEST = 8, 2**15, 64
"""Of the blocks whose spectra are looked at; their number at most, and at least."""

_MIDDLE, _HIGH = 4, 10  # sums of both frequencies from which on they are middle ones, and high ones

_GROUPS, _QUIET = 20, 8
"""The blocks, in order of their middle frequencies, form equal groups; the quietest are used."""

_ERROR = 0.04
"""Relative error of a group's mean energy, about: of small pictures it is larger, but then a
larger one here would leave s to chance."""

_EXPONENTS = np.arange(0.5, 1.101, 0.05)
_USUAL, _SPREAD = 0.7, 0.1  # the exponent in pictures without noise, and how much it varies
_CLIPPED = 0.005  # share of equal samples at an end of floats from which on they are clipped

_SHARES = np.linspace(0.02, 1.1, 109)
"""Noise as a share of the high frequencies of the quietest group."""

_NOISY, _TEXTURED, _LEAST = 0.95, 1.15, 0.94**2
"""Other estimates count from this share of noise on, if no group is flat: where its middle
frequencies have more than the second number times the energy of the high ones. The estimate by
peakedness is then limited to the third number times that of the curve, and to that of the curve."""


_K = np.arange(_SIDE)
COSINES = np.cos(np.pi * np.outer(_K, 2 * _K + 1) / (2 * _SIDE)) * math.sqrt(2 / _SIDE)
"""The matrix of the orthonormal DCT-II."""

COSINES[0] /= math.sqrt(2)
_COSINES = COSINES.astype(np.float32)
_BOTH = np.add.outer(np.arange(_SIDE), np.arange(_SIDE))
_ARE_HIGH = _BOTH >= _HIGH
_ARE_MIDDLE = (_BOTH >= _MIDDLE) & (_BOTH < _HIGH)
_EVEN_ROWS = np.broadcast_to((np.arange(_SIDE) % 2 == 0)[:, None], _BOTH.shape)


class Deviation(NamedTuple):
    """The standard deviation of the noise of a channel, as a fraction of white."""

    sigma: float
    error: float = 0.0
    """The relative standard error by the curves that fit as well: how much texture leaves open."""


def flat_sigma(pixels: Pixels) -> float:
    """Return the standard deviation of the noise, as a fraction of white; the mean over channels.

    See `channel_sigmas`.
    """
    return float(np.mean(channel_sigmas(pixels)))


def channel_sigmas(pixels: Pixels) -> list[float]:
    """Return the standard deviation of the noise of each channel, as a fraction of white.

    White noise has the same energy s at all frequencies of a block; in pictures, the energy of the
    high frequencies falls with that of the middle ones: it is about A m^0.7, over the blocks of
    one picture. So where m is the energy of the middle frequencies of a block with noise, that of
    its high ones is

        h = s + A (m - s)^a

    Groups of blocks with equal m determine s, A and a. Even where all blocks have texture, and h is
    three times s, s is where the curve leads to: with s 25, A 1 and a 0.75, h is 56 at m 125, 38 at
    m 55 and 31 at m 35. Of all s and a, the mean is taken, each weighted by how well its curve fits
    and how usual a is. A picture with flat blocks has groups with m = h = s.

    Blocks with clipped samples, with infinity or NaN, or with places that are evenly grey are left
    out. Pictures with fewer than 64 others have `estimate_sigma`.

    - `pixels`: shape (height, width, channels). Without alpha; uint8, uint16 or float32.
    """
    return [each.sigma for each in deviations(pixels)]


def deviations(pixels: Pixels) -> list[Deviation]:
    """Return the values of `channel_sigmas`, with their errors."""
    return [_deviation(pixels[:, :, c : c + 1]) for c in range(pixels.shape[2])]


def _deviation(pixels: Pixels) -> Deviation:
    height, width, _ = pixels.shape
    if min(height, width) < _SIDE:
        return Deviation(estimate_sigma(_finite(pixels)))
    white = white_level(pixels.dtype)
    views = np.lib.stride_tricks.sliding_window_view(pixels[:, :, 0], (_SIDE, _SIDE))
    step = 1
    while math.prod(-(-side // step) for side in views.shape[:2]) > _MOST:
        step += 1
    blocks = views[::step, ::step].reshape(-1, _SIDE, _SIDE)
    blocks = blocks[_usable(blocks, _ends(pixels))].astype(np.float32)
    # In units in which squares of any floats are held.
    largest = float(np.abs(blocks).max(initial=0))
    if len(blocks) < _FEWEST or not 0 < largest < math.inf:
        return Deviation(estimate_sigma(_finite(pixels)))
    energies = np.square(_COSINES @ (blocks / np.float32(largest)) @ _COSINES.T)
    high, middle = _mean(energies, _ARE_HIGH), _mean(energies, _ARE_MIDDLE)
    groups = _grouped(middle)[:_QUIET]
    means = np.array([(high[group].mean(), middle[group].mean()) for group in groups])
    found, error = _floor(means[:, 0], means[:, 1])
    if found > _NOISY * means[0, 0]:
        by_halves, ratio = _by_halves(energies)
        if ratio > _TEXTURED:
            by_peakedness = np.clip(_by_peakedness(energies), _LEAST * found, found)
            found = (found * by_halves * by_peakedness) ** (1 / 3)
    return Deviation(math.sqrt(found) * largest / white, error)


def _mean(energies: NDArray[np.float32], frequencies: NDArray[np.bool_]) -> NDArray[np.float64]:
    return energies[:, frequencies].mean(axis=1, dtype=np.float64)


def _grouped(activity: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Return the indices of blocks in equal groups, the quietest ones first."""
    return np.array_split(np.argsort(activity, kind="stable"), _GROUPS)


def _finite(pixels: Pixels) -> Pixels:
    return np.nan_to_num(pixels, posinf=0, neginf=0) if pixels.dtype.kind == "f" else pixels


def _ends(pixels: Pixels) -> list[float]:
    """Return the values at which noise is clipped.

    Of floats these are the least and the largest one, where enough samples have them: of noise
    that is not clipped, few are equal.
    """
    if pixels.dtype.kind == "u":
        return [0, white_level(pixels.dtype)]
    found = pixels[np.isfinite(pixels)]
    ends = (found.min(), found.max()) if found.size else ()
    return [float(end) for end in ends if np.mean(found == end) > _CLIPPED]


def _usable(blocks: Pixels, ends: Sequence[float]) -> NDArray[np.bool_]:
    """Return which blocks have noise everywhere: it is not clipped, and no place is even."""
    even = np.zeros(len(blocks), bool)
    for axis in (1, 2):
        lines = blocks.max(axis=axis) == blocks.min(axis=axis)
        even |= (lines[:, 1:] & lines[:, :-1]).any(axis=1)
    for end in ends:
        even |= (blocks == end).any(axis=(1, 2))
    if blocks.dtype.kind == "f":
        even |= ~np.isfinite(blocks).all(axis=(1, 2))
    return ~even


def _floor(high: NDArray[np.float64], middle: NDArray[np.float64]) -> tuple[float, float]:
    """Return the s of the curve through some groups' energies, and the error of its root."""
    if high.min() <= 0:
        return 0.0, 0.0
    floors = high[0] * _SHARES
    rest = (high - floors[:, None])[None]
    powers = np.maximum(middle - floors[:, None], 0)[None] ** _EXPONENTS[:, None, None]
    weights = high**-2.0
    squares = (weights * powers * powers).sum(axis=2)
    factors = (weights * powers * rest).sum(axis=2) / np.maximum(squares, 1e-300)
    misfits = (weights * (rest - np.maximum(factors, 0)[..., None] * powers) ** 2).sum(axis=2)
    unlikely = ((_EXPONENTS[:, None] - _USUAL) / _SPREAD) ** 2 + misfits / _ERROR**2
    # Larger floors are likelier: of pure noise, all of h is s, and no curve fits badly.
    unlikely = unlikely - 2 * np.log(_SHARES)
    chances = np.exp((unlikely.min() - unlikely) / 2)
    chances /= chances.sum()
    floor = float((chances * floors).sum())
    return floor, math.sqrt((chances * (floors - floor) ** 2).sum()) / floor / 2


# Where there is more noise than texture ------------------------------------------------

_CALMER = 11
"""Groups that are used: as half of the frequencies choose them, they differ less than others."""

_STEPS = np.linspace(0.05, 1.03, 99)  # noise as a share of the quietest group's high frequencies

_SLOPES, _SLOPE, _SLOPES_VARY = np.array([0.4, 0.6, 0.8, 1, 1.2]), 0.82, 0.25
"""Exponents that are tried, the usual one, and how much it varies."""

_DEVIATIONS = np.linspace(-2.5, 2.5, 21)
_RATIOS = 0.14 * np.exp(0.97 * _DEVIATIONS)
"""High over middle frequencies in pictures, as multiples of their standard deviation of 0.97."""

_LOW = 1.01**2  # by this factor the mean over the floors is too low in pictures with flat blocks

_STATISTICS, _BEND = 3.7, 0.06
"""Errors of a group's mean: this multiple of those of independent blocks, because blocks overlap,
and this share of the picture's part, because no picture follows a power exactly."""


def _by_halves(energies: NDArray[np.float32]) -> tuple[float, float]:
    """Return the energy of the noise, by groups that are chosen by half of the middle frequencies.

    The second number is the quietest group's energy of middle frequencies, over that of high ones.

    The other half measures them: chance that made a block look quiet has no part in it, as white
    noise is independent between frequencies. The rest is as in `channel_sigmas`, with the ratio of
    high to middle frequencies in pictures in place of a preference for much noise.
    """
    high, found = _mean(energies, _ARE_HIGH), []
    for rows in (_EVEN_ROWS, ~_EVEN_ROWS):
        chosen, other = (_mean(energies, _ARE_MIDDLE & each) for each in (rows, ~rows))
        groups = _grouped(chosen)[:_CALMER]
        errors = [high[group].std() / math.sqrt(len(group)) for group in groups]
        means = [(high[group].mean(), other[group].mean()) for group in groups]
        found.append([(*pair, error) for pair, error in zip(means, errors, strict=True)])
    heights, middles, errors = np.mean(found, axis=0).T
    # Axes: the noise, the exponent, the ratio, the group.
    floors = (_STEPS * heights.min())[:, None, None, None]
    rest = np.maximum(middles - floors, 1e-9 * middles.max())
    usual = np.median(rest, axis=-1, keepdims=True)
    slopes = _SLOPES[:, None, None]
    texture = _RATIOS[:, None] * usual * (rest / usual) ** slopes
    variances = (_STATISTICS * errors) ** 2 + (_BEND * texture) ** 2
    misfits = (heights - floors - texture) ** 2 / variances + np.log(variances)
    unlikely = misfits.sum(axis=-1) + _DEVIATIONS**2
    unlikely = unlikely + (((_SLOPES - _SLOPE) / _SLOPES_VARY) ** 2)[:, None]
    chances = np.exp((unlikely.min() - unlikely) / 2).sum(axis=(1, 2))
    floor = _LOW * (chances * floors[:, 0, 0, 0]).sum() / chances.sum()
    return float(floor), float(middles[0] / heights[0])


def _by_peakedness(energies: NDArray[np.float32]) -> float:
    """Return the energy of the noise, by the kurtosis of each frequency.

    In pictures without noise it is about the same k at all frequencies, far above the 3 of normal
    noise. With noise of the energy s, a frequency of the energy v has kurtosis
    3 + (k - 3) (1 - s / v)²: the root of the excess over 3 is a line in 1 / v, which determines s.

    Zoran and Weiss, "Scale invariance and noise in natural images", ICCV 2009; the line after Pan,
    Zhang and Lyu, "Exposing image splicing with inconsistent local noise variances", ICCP 2012.
    """
    squares = energies[:, _BOTH >= _MIDDLE].astype(np.float64)
    squares = squares[:, squares.any(axis=0)]  # drawings lack some
    mean = squares.mean(axis=0)
    excess = np.maximum(np.square(squares).mean(axis=0) / mean**2 - 3, 0)
    slope, start = np.polyfit(1 / mean, np.sqrt(excess), 1)
    return float(max(-slope / start, 0)) if start > 0 else math.inf
