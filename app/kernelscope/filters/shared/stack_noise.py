"""Shared by the denoisers of volumes: photons and read-out in stacks of microscopes.

The noise of such a stack has the variance a · level + b. With a black level, that of no light,

    a = gain, in levels per photon;    b = read noise² - gain · black

Where there is light everywhere, its photons and the read-out look the same: read noise and black
are not known, but the noise at the darkest level is. Both are found from blocks of 8×8 voxels
within slices. Noise is measured by differences of the fourth order along both axes, which the blur
of a microscope does not pass, in the calmest blocks of each part by brightness; most of a stack may
be background, so that parts are equal in brightness and not in size. A line through the parts has a
and b. Saturated parts do not count, nor such as lie apart from the line: where the read-out of the
background was clipped at 0, or structure is as fine as noise. Edges that no optics blurred, as
those of simulated cells, add to the noise of most parts and take from none: there the line is the
lowest one that ends in a bright part without structure.

Source: after Foi, Trimeche, Katkovnik and Egiazarian, "Practical Poissonian-Gaussian noise modeling
and fitting for single-image raw-data", IEEE Transactions on Image Processing 17, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.parallel import in_parts
from kernelscope.base.remembered import remembered
from kernelscope.filters.shared.mri_sigma import estimate_global
from kernelscope.filters.shared.noise_model import SIDE, NoiseKind, NoiseModel
from kernelscope.filters.shared.stabilise import MODEL, NO_VALUES, Stabiliser
from kernelscope.schema.filter import NoiseChoice

Numbers = NDArray[np.float64]

_MARGIN, _POWER = 2, 70.0**2
"""How far differences of the fourth order look, 1 -4 6 -4 1 along each axis, and the sum of the
squares of their factors."""

_MOST, _FEWEST = 2**16, 256
"""Blocks that are looked at, in rows of blocks that are spread evenly, at most and at least."""

_PARTS, _WIDTH, _FEWEST_OF_PART = 24, 0.5, 48
"""Parts by brightness; the width of each is at least this share of sigma in the dark, as the means
of blocks have an eighth of it themselves; the least number of its blocks."""

_CALM = 0.4  # share of the blocks of a part, those whose quarters differ least
_CLIPPED = 0.1  # of the blocks of a part may have saturated voxels
_SATURATED = 16  # voxels of the highest level from which on that is saturation
_ZEROS = 0.25  # share of zeros from which on read-out may be clipped: the line begins without
_TRUE_BLACK = 0.1  # share of zeros in the darkest part from which on zero is black

_ROUNDS, _FAR, _UNEVEN = 20, 0.5, 0.05
"""Rounds of the fit; the relative distance from the line at which a part counts no more; and the
relative error of each part on top of that of chance."""

_STEEP, _CLOSE, _CERTAIN = 2.0, 0.7, 4.0
"""The brightest part has this many times the variance of the darkest, the distances from the line
are at most this share of those from one variance for all, and the slope is this many times its
error. Stacks of blobs and filaments with Gaussian noise of sigma 2 to 20 of 255 reach 1.2; those of
a camera with a factor of 1.5 to 2 have up to 0.5 dB more with one sigma."""

_LOW, _LOW_FACTOR = 0.15, 1.673
"""The quantile of blocks that stands for their noise beside edges; white noise has that many times
its variance."""

_BELOW, _AT, _SMOOTH, _LOWEST_STEEP = 0.6, 0.25, 0.3, 3.0
"""No part lies below this share of the lowest line; parts this near lie at it; in the last of these
the variance of quarters is at most this share of the noise (white noise: 0.047, an edge: more than
1); and it has this many times the variance of the darkest. Stacks of unblurred cells of 300
photons have 3 to 50, with Gaussian noise of sigma 4 to 20 of 300 up to 1.6."""

_MOST_EXCESS = 1.3


@dataclass(frozen=True, eq=False)
class StackNoise:
    """The noise of a volume. It is white if no photons were found."""

    model: NoiseModel  # where the brightest voxel is 1
    white: float  # that voxel
    darkest: float = 0.0  # level; 0 where zeros are frequent
    excess: float = 1.0
    """Standard deviation of the noise after Anscombe's transform, which makes it 1 for many photons
    and up to 1.2 for a few beside the read-out."""

    def in_unit(self, factor: float) -> StackNoise:
        """Return the noise of voxels that are multiplied by `factor`."""
        return replace(self, white=self.white * factor, darkest=self.darkest * factor)

    @property
    def is_photons(self) -> bool:
        return self.model.kind is NoiseKind.CAMERA

    @property
    def sigma(self) -> float:
        """The standard deviation of the mean variance, in levels."""
        return self.model.sigma * self.white

    @property
    def gain(self) -> float:
        """Levels per photon."""
        return self.model.slopes[0] * self.white

    @property
    def darkest_sigma(self) -> float:
        """The standard deviation at the darkest level: read-out, and photons if there are any."""
        offset = self.model.offsets[0] * self.white**2
        return math.sqrt(max(self.gain * self.darkest + offset, 0.0))

    def sigmas_at(self, levels: NDArray[Any]) -> NDArray[np.float32]:
        """Return sigma at each level; it is not 0, since changes are measured in it."""
        offset = self.model.offsets[0] * self.white**2
        least = max(self.darkest_sigma, 1e-6 * self.white) ** 2
        variances = np.float32(self.gain) * levels + np.float32(offset)
        sigmas: NDArray[np.float32] = np.sqrt(np.maximum(variances, least))
        return sigmas

    def sigmas_around(self, volume: NDArray[Any], deep: bool) -> NDArray[np.float32]:
        """Return sigma at the mean of the 3×3×3 voxels around each, or of 3×3 within slices."""
        margins = (1 if deep else 0, 1, 1)
        rows = np.pad(volume, [(n, n) for n in margins], mode="symmetric")

        def measure(part: slice) -> NDArray[np.float32]:
            means: NDArray[Any] = rows[part.start : part.stop + 2 * margins[0]].astype(np.float32)
            for axis in (0, 1, 2)[1 - margins[0] :]:
                lines = np.moveaxis(means, axis, 0)
                means = np.moveaxis((lines[:-2] + lines[1:-1] + lines[2:]) / 3, 0, axis)
            return self.sigmas_at(means)

        return np.concatenate(in_parts(measure, volume))

    def steps(self, dtype: np.dtype[Any], sigma: float) -> Stabiliser:
        """Return the steps between which the noise has one sigma, for noise of this strength."""
        own = dtype if dtype.kind == "u" else np.dtype(np.float32)
        model = self.model.with_sigma(sigma / self.white)
        return Stabiliser(model, own, self.white, sigma / self.excess)


def in_words(noises: Sequence[StackNoise]) -> str:
    """Return the gain and the noise at the darkest level, with those of each volume."""

    def numbers(values: Iterable[float]) -> str:
        return "; ".join(dict.fromkeys(f"{value:.3g}" for value in values))

    sure = "sure" if all(each.model.sure for each in noises) else "not sure"
    return (
        f"camera noise: gain {numbers(each.gain for each in noises)} levels per photon, "
        f"sigma {numbers(each.darkest_sigma for each in noises)} at the darkest level, "
        f"{numbers(each.darkest for each in noises)}, {sure}"
    )


def find_photons(volume: NDArray[Any], *, must: bool = False) -> StackNoise:
    """Return the noise of a volume, shape (depth, height, width).

    `must`: any line will do that rises, even if one sigma might do as well.
    """
    low, top = float(volume.min()), float(volume.max())
    white = max(top, -low)
    nothing = StackNoise(NoiseModel(NoiseKind.WHITE, (0.0,), sure=False), white)
    strips = _strips(volume) if white else None
    if strips is None:
        return nothing
    saturates = volume.dtype.kind in "iu" and np.count_nonzero(volume == top) >= _SATURATED
    blocks = _StackBlocks(
        *_noise_of(strips),
        _over_blocks(_inner(strips) == 0),
        _over_blocks((_inner(strips) == top) & saturates),
    )
    varied = blocks.noise > 0  # others are filled, or without light
    if varied.any() and not np.median(blocks.zeros[varied]):
        varied &= blocks.zeros == 0  # others are at the rim of a filled part
    if np.count_nonzero(varied) < _FEWEST:
        return nothing
    some = blocks.of(varied)
    parts = _parts(some)
    line = None if parts is None else _line(parts, volume.dtype.kind == "u")
    lowest = None
    if parts is not None and not (line and line.is_steep):
        lowest = _lowest_line(parts, volume.dtype.kind == "u")
        line = lowest or line
    if line is None or not (line.is_steep or must) or line.slope <= 0:
        return nothing
    variance = line.slope * float(some.mean.mean()) + line.offset
    if variance <= 0:
        return nothing
    model = NoiseModel(
        NoiseKind.CAMERA,
        (math.sqrt(variance) / white,),
        (line.slope / white,),
        (line.offset / white**2,),
        sure=line.is_sure,
    )
    found = StackNoise(model, white, line.darkest)
    made = found.steps(volume.dtype, found.sigma).forward(_rows(strips.astype(volume.dtype)))
    _, noise, spread = _noise_of(made.reshape(strips.shape))
    stable = _parts(blocks._replace(noise=noise, spread=spread).of(varied))
    assert stable is not None
    left = stable.noise if lowest is None else stable.low
    excess = math.sqrt(float(np.average(left, weights=stable.blocks))) / found.sigma
    return replace(found, excess=min(max(excess, 1.0), _MOST_EXCESS))


class _StackBlocks(NamedTuple):
    """Numbers of each block: its mean, the variance of its noise, that of the means of its
    quarters, and its shares of zeros and of saturated voxels."""

    mean: Numbers
    noise: Numbers
    spread: Numbers
    zeros: Numbers
    clipped: Numbers

    def of(self, some: NDArray[np.bool_]) -> _StackBlocks:
        return _StackBlocks(*(each[some] for each in self))


def _strips(volume: NDArray[Any]) -> NDArray[np.float32] | None:
    """Return rows of blocks with their margins, shape (rows, 12, 8 · blocks + 4)."""
    high, wide = ((n - 2 * _MARGIN) // SIDE for n in volume.shape[1:])
    rows = np.arange(volume.shape[0] * high)
    if min(high, wide) < 1 or len(rows) * wide < _FEWEST:
        return None
    if len(rows) * wide > _MOST:
        rows = np.linspace(0, len(rows) - 1, max(_MOST // wide, 1)).astype(int)
    slices, tops = np.divmod(rows, high)
    lines = tops[:, None] * SIDE + np.arange(SIDE + 2 * _MARGIN)
    return volume[slices[:, None], lines, : wide * SIDE + 2 * _MARGIN].astype(np.float32)


def _inner(strips: NDArray[np.float32]) -> NDArray[np.float32]:
    return strips[:, _MARGIN:-_MARGIN, _MARGIN:-_MARGIN]


def _over_blocks(voxels: NDArray[Any]) -> Numbers:
    """Return the mean of each block."""
    made: Numbers = voxels.reshape(len(voxels), SIDE, -1, SIDE).mean((1, 3), np.float64)
    return made.ravel()


def _noise_of(strips: NDArray[np.float32]) -> tuple[Numbers, Numbers, Numbers]:
    """Return the mean, the variance of the noise and that of the quarters of each block."""

    def measure(part: slice) -> Numbers:
        rest, inner = strips[part], _inner(strips[part])
        for axis in (1, 2):
            count = rest.shape[axis] - 2 * _MARGIN
            lines = np.moveaxis(rest, axis, 0)
            before, near, here, beside, after = (lines[n : n + count] for n in range(5))
            rest = np.moveaxis(before + after - 4 * (near + beside) + 6 * here, 0, axis)
        half = SIDE // 2
        quarters = inner.reshape(len(inner), 2, half, -1, 2, half).mean((2, 5), np.float64)
        spread = quarters.var((1, 3)).ravel()
        return np.stack([_over_blocks(inner), _over_blocks(np.square(rest)) / _POWER, spread])

    mean, noise, spread = np.concatenate(in_parts(measure, strips), axis=1)
    return mean, noise, spread


class _Parts(NamedTuple):
    """Numbers of each part by brightness, from dark to bright: the mean, the variance of the noise
    and its error, the share of zeros, how many blocks it has, the variance by its low quantile, and
    the variance of quarters."""

    mean: Numbers
    noise: Numbers
    error: Numbers
    zeros: Numbers
    blocks: Numbers
    low: Numbers
    spread: Numbers


def _parts(blocks: _StackBlocks) -> _Parts | None:
    order = np.argsort(blocks.mean, kind="stable")
    means = blocks.mean[order]
    low, high = np.quantile(means, (0.002, 0.999))
    dark = float(np.median(blocks.noise[order[: len(order) // 10 + 1]]))
    step = max((high - low) / _PARTS, _WIDTH * math.sqrt(dark))
    ends = [0]
    for end in [*np.searchsorted(means, np.arange(low + step, high, step)), len(means)]:
        if end - ends[-1] >= _FEWEST_OF_PART:
            ends.append(int(end))
    ends[-1] = len(means)
    found = []
    for first, last in pairwise(ends):
        part = order[first:last]
        if np.count_nonzero(blocks.clipped[part]) > _CLIPPED * len(part):
            continue
        calm = part[blocks.spread[part] <= np.quantile(blocks.spread[part], _CALM)]
        noise = blocks.noise[calm]
        error = float(noise.std()) / math.sqrt(len(calm))
        zeros = blocks.zeros[calm].mean()
        low, spread = np.quantile(noise, _LOW) * _LOW_FACTOR, np.median(blocks.spread[calm])
        mean = blocks.mean[calm].mean()
        found.append((mean, noise.mean(), error, zeros, len(part), low, spread))
    return _Parts(*np.array(found).T) if len(found) >= 3 else None


class _NoiseLine(NamedTuple):
    slope: float
    offset: float
    darkest: float
    is_steep: bool
    is_sure: bool


def _line(parts: _Parts, unsigned: bool) -> _NoiseLine | None:
    """Return the line that the variances of parts follow."""
    mean, noise, error, zeros, *_ = parts
    zero_is_black = unsigned and bool(zeros[0] > _TRUE_BLACK)
    least = 1e-3 * float(noise.max())
    used = zeros < _ZEROS
    if used.sum() < 4:
        used[:] = True
    weights = used / (error**2 + (_UNEVEN * noise) ** 2)
    for _ in range(_ROUNDS):
        total = weights.sum()
        middle, level = (weights * mean).sum() / total, (weights * noise).sum() / total
        across = (weights * (mean - middle) ** 2).sum()
        slope = float((weights * (mean - middle) * noise).sum() / across)
        offset = float(level - slope * middle)
        if zero_is_black and offset < 0:
            slope, offset = float((weights * mean * noise).sum() / (weights * mean**2).sum()), 0.0
        line = np.maximum(slope * mean + offset, least)
        away = np.abs(noise / line - 1)
        near = np.maximum(1 - (away / _FAR) ** 2, 0) ** 2
        weights = near / (error**2 + (_UNEVEN * line) ** 2)
        if np.count_nonzero(weights) < 3:
            return None
    apart = np.abs(noise / np.median(noise) - 1)
    ends = line[weights > 0]
    steep, close = float(ends[-1] / ends[0]), float(np.median(away) / max(np.median(apart), 1e-9))
    certain = slope * math.sqrt(float(across))
    darkest = 0.0 if zero_is_black else float(mean[0])
    return _NoiseLine(
        slope,
        offset,
        darkest,
        steep >= _STEEP and close <= _CLOSE and certain >= _CERTAIN,
        steep > 2 * _STEEP and close <= _CLOSE / 2 and certain >= 2 * _CERTAIN,
    )


def _lowest_line(parts: _Parts, unsigned: bool) -> _NoiseLine | None:
    """Return the steep line through two parts at which most lie, none of them far below.

    Clipping took noise from parts of many zeros: from there white noise would rise as well.
    """
    darkest = 0.0 if unsigned and parts.zeros[0] > _TRUE_BLACK else float(parts.mean[0])
    used = parts.zeros < _ZEROS
    if np.count_nonzero(used) < 3:
        return None
    parts = _Parts(*(each[used] for each in parts))
    mean, noise, smooth = parts.mean, parts.low, parts.spread <= _SMOOTH * parts.noise
    best, most = None, 0
    for first, last in combinations(range(len(mean)), 2):
        slope = float((noise[last] - noise[first]) / (mean[last] - mean[first]))
        line = noise[first] + slope * (mean - mean[first])
        if slope <= 0 or line.min() <= 0 or (noise < _BELOW * line).any():
            continue
        at = np.flatnonzero(np.abs(noise / line - 1) < _AT)
        if len(at) > most and smooth[at[-1]]:
            best, most = (slope, float(line[0] - slope * mean[0]), line[at]), len(at)
            starts = at[0] == 0
    if best is None or not starts or best[2][-1] < _LOWEST_STEEP * best[2][0]:
        return None
    return _NoiseLine(best[0], best[1], darkest, is_steep=True, is_sure=False)


# Steps around a filter ----------------------------------------------------------------


class StackSteps:
    """Steps before and after a denoiser of volumes whose noise has one sigma.

    Between them a volume in which photons were found has that noise, in its own unit.

    - `is_one`: the filter removes noise of these sigmas; else it estimates them between the steps.
    """

    reach = 0

    def __init__(
        self,
        noises: tuple[StackNoise, ...],
        sigmas: tuple[float, ...],
        dtypes: tuple[np.dtype[Any], ...],
        is_one: bool,
    ) -> None:
        given = {"sigma_from": "given", "sigma": sigmas}
        self.values: Mapping[str, Any] = given if is_one else NO_VALUES
        self._each = [
            noise.steps(dtype, sigma) if noise.is_photons else None
            for noise, dtype, sigma in zip(noises, dtypes, sigmas, strict=True)
        ]

    def forward(self, volumes: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the volumes with noise of one sigma."""
        return [
            volume if each is None else each.forward(_rows(volume)).reshape(volume.shape)
            for each, volume in zip(self._each, volumes, strict=True)
        ]

    def backward(self, results: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the means of the voxels whose means between the steps these are."""
        return [
            result if each is None else each.backward(_rows(result)).reshape(result.shape)
            for each, result in zip(self._each, results, strict=True)
        ]


def _rows(volume: NDArray[Any]) -> NDArray[Any]:
    return volume.reshape(-1, volume.shape[2], 1)


def find_noises(volumes: Sequence[NDArray[Any]], noise: str) -> tuple[StackNoise, ...] | None:
    if noise == "rician":
        return None
    must = noise == NoiseKind.CAMERA
    found = [
        remembered(volume, ("photons", must), partial(find_photons, volume, must=must))
        for volume in volumes
    ]
    if any(each.is_photons for each in found):
        found = [
            each if each.is_photons else remembered(volume, "one sigma", partial(_white, volume))
            for each, volume in zip(found, volumes, strict=True)
        ]
    return tuple(found)


def _white(volume: NDArray[Any]) -> StackNoise:
    sigma = estimate_global(volume, rician=False)
    return StackNoise(NoiseModel(NoiseKind.WHITE, (sigma,)), 1.0)


# The engine knows by its steps that a scan is stable already: they are always the same object.
_steps_for = lru_cache(maxsize=16)(StackSteps)


def _steps(
    noises: tuple[StackNoise, ...],
    parameters: Mapping[str, Any] | None,
    dtypes: tuple[np.dtype[Any], ...],
) -> StackSteps | None:
    assert parameters is not None
    if not parameters.get("strength", 1):
        return None  # every voxel stays
    if not any(each.is_photons for each in noises):
        return None
    sigmas = tuple(each.sigma for each in noises)
    if parameters["sigma_from"] == "given" and all(parameters["sigma"]):
        sigmas = tuple(np.resize(parameters["sigma"], len(noises)).tolist())
    return _steps_for(noises, sigmas, dtypes, parameters["sigma_from"] in ("volume", "given"))


def _describe(noises: tuple[StackNoise, ...], noise: str, white: float) -> str:
    """Return a line about the noise."""
    found = [each for each in noises if each.is_photons]
    if not found:
        return "" if noise == "auto" else "no noise of photons was found; one sigma is removed"

    return in_words(found)


NOISE_STEPS = NoiseChoice(
    parameter="noise",
    found="auto",
    white="gaussian",
    camera=NoiseKind.CAMERA,
    key=MODEL,
    find=find_noises,
    steps=_steps,
    describe=_describe,
)
