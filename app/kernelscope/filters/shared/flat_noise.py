"""Shared by the denoisers of pictures: the noise, measured beside texture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.non_local import estimate_sigma
from kernelscope.schema.samples import Pixels, white_level

_SIDE, _MOST, _FEWEST = 8, 2**15, 64
"""Of the blocks whose spectra are looked at; their number at most, and at least."""

_MIDDLE, _HIGH = 4, 10
"""Sums of both frequencies from which on they are middle ones, and high ones."""

_GROUPS, _QUIET = 20, 8
"""The blocks, in order of their middle frequencies, form equal groups; the quietest are used."""

_ERROR = 0.04
"""Relative error of a group's mean energy, about: of small pictures it is larger, but then a
larger one here would leave s to chance."""

_EXPONENTS = np.arange(0.5, 1.101, 0.05)
_USUAL, _SPREAD = 0.7, 0.1
"""The exponent in pictures without noise, and how much it varies."""

_CLIPPED = 0.005
"""Share of equal samples at an end of floats from which on they are clipped."""

_SHARES = np.linspace(0.02, 1.1, 109)
"""Noise as a share of the high frequencies of the quietest group."""


_K = np.arange(_SIDE)
COSINES = np.cos(np.pi * np.outer(_K, 2 * _K + 1) / (2 * _SIDE)) * math.sqrt(2 / _SIDE)
"""The matrix of the orthonormal DCT-II."""

COSINES[0] /= math.sqrt(2)
_COSINES = COSINES.astype(np.float32)
_BOTH = np.add.outer(np.arange(_SIDE), np.arange(_SIDE))


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
    return [_sigma(pixels[:, :, c : c + 1]) for c in range(pixels.shape[2])]


def _sigma(pixels: Pixels) -> float:
    height, width, _ = pixels.shape
    if min(height, width) < _SIDE:
        return estimate_sigma(_finite(pixels))
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
        return estimate_sigma(_finite(pixels))
    energies = np.square(_COSINES @ (blocks / np.float32(largest)) @ _COSINES.T)
    high = energies[:, _BOTH >= _HIGH].mean(axis=1, dtype=np.float64)
    middle = energies[:, (_BOTH >= _MIDDLE) & (_BOTH < _HIGH)].mean(axis=1, dtype=np.float64)
    groups = np.array_split(np.argsort(middle, kind="stable"), _GROUPS)[:_QUIET]
    means = np.array([(high[group].mean(), middle[group].mean()) for group in groups])
    return math.sqrt(_floor(means[:, 0], means[:, 1])) * largest / white


def _finite(pixels: Pixels) -> Pixels:
    return np.nan_to_num(pixels, posinf=0, neginf=0) if pixels.dtype.kind == "f" else pixels


def _ends(pixels: Pixels) -> list[float]:
    """Return the values at which noise is clipped.

    Of floats these are the least and the largest one, where so many samples have them: of noise
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


def _floor(high: NDArray[np.float64], middle: NDArray[np.float64]) -> float:
    """Return the s of the curve through some groups' energies."""
    if high.min() <= 0:
        return 0.0
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
    return float((chances * floors).sum() / chances.sum())
