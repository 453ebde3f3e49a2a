"""The numbers of collaborative filtering that all levels share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.cosine import SQUARES
from kernelscope.filters.shared.flat_noise import COSINES
from kernelscope.filters.shared.sigma_parameters import shares_of
from kernelscope.schema.parameters import Choice, ChoiceParameter
from kernelscope.schema.samples import colour_count, white_level

SIDE = 8  # of a block

MARGIN = SIDE
"""Pixels around the picture that blocks may have: no block has fewer cells, and corners have as
many blocks as other pixels."""

HARD, WIENER = 16, 32
"""Most blocks of a group in the first stage, and in the second; both 32 in strong noise."""

LIMIT = 64  # most that a stage takes off a pixel, in units of `Numbers.unit`
STEPS = 4096  # of a unit, in the integers that are added up: see `Numbers`
WEIGHT_STEPS = 2**23  # of a weight of 1, in the integers that are added up
SHARES = np.float32(65526)  # steps of a factor, which fit into 16 bits, see `cpu.share_of`
ONE = 255**2  # share of a factor of 1 in the sum of squared factors, see `cpu.shrink_wiener`
LARGEST = np.float32(2.0**100)  # above all squared coefficients that have noise

UPDATE = np.float32(0.171875)
"""Of the wavelet bior1.5, by lifting: Haar's, whose first sums get so much of a difference of
differences."""

WAVELET_SCALES = np.sqrt(np.array([8, 8 + 32 * UPDATE**2, *[4 + 8 * UPDATE**2] * 2, *[2.0] * 4]))
"""Of the coefficients of `cpu.to_wavelets`, in units of those of rows of the norm 1."""

NORMS = np.outer(WAVELET_SCALES, WAVELET_SCALES).ravel().astype(np.float32)
"""The same of both axes of a block."""

WAVELET_PARTS = 1 / np.array([8, 8, 4, 4, 2, 2, 2, 2])
"""Coefficients of `cpu.to_wavelets` times these are those of `cpu.from_wavelets`."""

PARTS = np.outer(WAVELET_PARTS, WAVELET_PARTS).ravel().astype(np.float32)


def _energies_of_wavelets() -> NDArray[np.float64]:
    """Return the share that each frequency along an axis has in each wavelet: rows add up to 1."""
    sums, d = np.kron(np.eye(4), [1, 1]), np.kron(np.eye(4), [-1, 1])
    u, v = float(UPDATE) * (d[3] - d[1]), float(UPDATE) * (d[0] - d[2])
    s = sums + np.stack([u, v, -u, -v])
    p, q = s[0] + s[1], s[2] + s[3]
    rows = np.array([p + q, q - p, s[1] - s[0], s[3] - s[2], *d])
    return np.square(rows / WAVELET_SCALES[:, None] @ COSINES.T)


_ENERGIES = _energies_of_wavelets()

_WHITE = np.ones((1, SIDE, SIDE))

_COMMON = 0.2
"""Alike blocks have more of correlated noise in common: its sigma grows by this share more than
that of white noise, each time that two sums are added up; by less if its power varies less than a
mean does."""

_MEDIUM, _LARGE, _NOTICEABLE, _STRONG = 15 / 255, 25 / 255, 35 / 255, 40 / 255
"""A sigma, where white is 1, above which settings differ."""

_TOLERANCE = 2500 / 255**2
"""Largest mean squared difference of blocks that are alike, where white is 1; in noticeable noise
twice as much."""


_Levels = tuple[float, ...]
"""Of coefficients to which 2 to the power of the index were added up, six numbers: like blocks
overlap and have noise in common, so that their sums have more of it than the same number of
independent blocks, and their differences less."""


class _Setting(NamedTuple):
    """The numbers for a kind of picture and a strength of noise."""

    thresholds: tuple[_Levels, ...]
    """Coefficients of the first stage of up to this many sigma are noise. Of each plane; the last
    one is of those that follow, too."""
    variances: tuple[_Levels, ...]  # likewise those of the second stage, in units of sigma squared
    tolerance: float  # largest mean squared difference of blocks of the guide, where white is 255
    beta: float  # of Kaiser's window: the larger, the less rims of blocks count
    most: int = HARD  # blocks of a group in the first stage


_LIGHT_GREY = _Setting(((2.7,) * 6,), ((0.7, 0.7, 0.8, 0.9, 1, 1),), 400, 2.0)
_MEDIUM_LEVELS, _MEDIUM_VARIANCES = (2.9,) * 6, (0.5, 0.5, 0.7, 0.8, 1.5, 2)
_MEDIUM_GREY = _Setting((_MEDIUM_LEVELS,), (_MEDIUM_VARIANCES,), 800, 2.5)
_GREY = {
    0.0: _LIGHT_GREY,
    _MEDIUM: _MEDIUM_GREY,
    _LARGE: _MEDIUM_GREY._replace(most=WIENER),
    _STRONG: _MEDIUM_GREY._replace(thresholds=((2.85, 2.85, 2.5, 2.5, 3.1, 3.1),), most=WIENER),
}
_LIGHT_COLOURS = _Setting(((3.2, 3.2, 3, 3, 2.9, 2.9),), ((0.7, 0.7, 0.85, 0.85, 1, 1),), 400, 2.0)
_MEDIUM_COLOURS = _Setting(
    (_MEDIUM_LEVELS, (3.5, 3.5, 3.3, 3.3, 3.2, 3.2)), (_MEDIUM_VARIANCES,), 400, 2.0, WIENER
)
# Differences of colours are smooth: more of them is noise.
_LARGE_COLOURS = _MEDIUM_COLOURS._replace(
    thresholds=((2.95, 2.95, 2.8, 2.6, 2.4, 2.4), (3.2, 3.1, 2.9, 2.8, 2.7, 2.7)),
    variances=((0.6, 0.6, 0.7, 0.8, 1.3, 1.7), (2.1, 2.1, 2.55, 2.55, 3, 3)),
)
_OPPONENTS = {
    0.0: _LIGHT_COLOURS,
    _MEDIUM: _MEDIUM_COLOURS,
    _LARGE: _LARGE_COLOURS,
    _NOTICEABLE: _LARGE_COLOURS._replace(tolerance=800),
}
"""By the sigma, where white is 1, above which they hold. Found on the pictures of denoisers.md."""


def _setting(part: float, colours: int) -> _Setting:
    settings = _GREY if colours == 1 else _OPPONENTS
    return settings[max(least for least in settings if least == 0 or part > least)]


_LEAST = 1e-12  # of white: less noise than that is none


class BlockSearch(NamedTuple):
    """Where blocks are, and where those like them are looked for."""

    step: int  # pixels from one block that a group is formed for to the next
    reach: int  # how far around it blocks are compared with it

    @property
    def radius(self) -> int:
        """How far a result looks: in each stage a block that has the pixel belongs to the group of
        a block `reach` away, which looks at all blocks as far away again."""
        return 2 * (SIDE - 1 + 2 * self.reach)

    def count(self, side: int) -> int:
        """Return how many blocks have a group along a side: the last one ends with it."""
        return -(-(side - SIDE) // self.step) + 1


GRID = 12  # a part of a picture that begins at a multiple of this has the same blocks as the whole

SEARCHES = {"full": BlockSearch(3, 19), "fast": BlockSearch(4, 12)}

SETTING = ChoiceParameter(
    name="setting",
    label="Setting",
    help="How many blocks are compared, and how far away.",
    default="full",
    choices=(
        Choice(
            "full", "Full", "The best output: every third block, with all up to 19 pixels away."
        ),
        Choice("fast", "Fast", "Every fourth, up to 12 pixels: 0.1 to 0.3 dB less, half the time."),
    ),
)


def search(parameters: Mapping[str, Any]) -> BlockSearch:
    return SEARCHES[parameters["setting"]]


def radius(parameters: Mapping[str, Any]) -> int:
    return search(parameters).radius


class Numbers(NamedTuple):
    """Values in units of a sample, float32, and the integers of sums.

    Sums are of the noise taken off, not of the picture left: noise is as small, whatever the
    samples are, and a picture without noise keeps its samples. A pixel gets, from each group, at
    most `LIMIT` units, weighed by a weight of up to 1 and by the window for each of its up to
    `WIENER` blocks, whose places differ. Blocks that have the pixel begin up to 7 pixels before it,
    and their groups belong to blocks up to 19 away: at step 3 these are at most 17 x 17 groups, one
    of these rows and columns the last of the picture. The 32 largest products of the window add up
    to 25.0, so that the magnitude of a sum is below 289 x 25.1 x 64 x 4096 = 1.91e9 < 2^31. A block
    belongs to at most 14 x 14 groups: 196 x 2^23 = 1.65e9 < 2^31.
    """

    most: int  # blocks of a group in the first stage
    tolerances: tuple[np.float32, np.float32]
    """Largest sum of squared differences of blocks that are alike, in each stage."""
    thresholds: NDArray[np.float32]
    """Of the first stage, for each plane, and for coefficients of which as many as 2 to the power
    of the index were added up."""
    variances: NDArray[np.float32]  # likewise the squared sigma of the second stage
    norms: tuple[NDArray[np.float32], NDArray[np.float32]]
    """Noise in the coefficients of a block, in units of sigma of the plane and as computed: the
    deviations of the first stage, the variances of the second. Shape (planes, 64): number 8 k + q
    is k along x, q along y."""
    unit: np.float32  # sigma, or a quarter of white if that is less
    window: NDArray[np.float32]
    """Kaiser's: pixels in the middle of a block count more than those at its rim."""

    @property
    def part(self) -> np.float32:
        """By which a sample value becomes a part of the range from minus to plus the limit."""
        return np.float32(1 / (2 * LIMIT * float(self.unit)))

    @property
    def quotient(self) -> np.float32:
        """The sample values of a sum of 1 and a weight of 1."""
        return np.float32(float(self.unit) * (WEIGHT_STEPS // STEPS))


def _norms(powers: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return `Numbers.norms` for the power of noise in frequencies [plane, along x, along y]."""
    deviations = np.sqrt(_ENERGIES @ powers @ _ENERGIES.T).reshape(len(powers), -1)
    variances = SQUARES * powers.reshape(len(powers), -1).astype(np.float32)
    return NORMS * deviations.astype(np.float32), variances


def numbers(dtype: np.dtype[Any], channels: int, parameters: Mapping[str, Any]) -> Numbers | None:
    """Return the numbers for a picture; None if there is no noise to remove."""
    white = white_level(dtype)
    part = parameters["sigma"] * parameters["strength"] / 100 / 100
    if part < _LEAST:
        return None
    sigma = part * white
    # Blocks are compared in the mean of the colours, where there is less noise. What noise alone
    # makes two blocks differ by, 2 sigma squared, must never exclude a block.
    colours = colour_count(channels)
    noise = part**2 / colours
    first = max(_TOLERANCE * (2 if part > _NOTICEABLE else 1), 3.2 * noise)
    setting = _setting(part, colours)
    second = setting.tolerance / 255**2
    block = SIDE**2 * white**2
    spectra = parameters.get("spectra", _WHITE)
    spectra = np.broadcast_to(spectra, (colours, SIDE, SIDE)).transpose(0, 2, 1)
    means = spectra.mean((1, 2), keepdims=True)
    shares = shares_of(parameters, colours) * np.sqrt(means[:, 0, 0])
    powers = np.divide(spectra, means, out=np.ones(spectra.shape), where=means > 0)
    growth = 1 + _COMMON * np.minimum(powers.std((1, 2)), 1)
    times = np.arange(6)
    units = sigma * shares[:, None] * np.sqrt(2.0**times) * growth[:, None] ** times

    def of_planes(levels: tuple[_Levels, ...], power: int) -> NDArray[np.float32]:
        rows = [levels[min(c, len(levels) - 1)] for c in range(colours)]
        return (np.array(rows) * units**power).astype(np.float32)

    return Numbers(
        setting.most,
        (np.float32(first * block), np.float32(second * block)),
        of_planes(setting.thresholds, 1),
        of_planes(setting.variances, 2),
        _norms(powers),
        np.float32(min(sigma, white / 4)),
        np.kaiser(SIDE, setting.beta).astype(np.float32),
    )
