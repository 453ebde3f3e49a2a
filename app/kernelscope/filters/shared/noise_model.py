"""Shared by the denoisers of pictures: the kind of the noise in a picture, found from it alone.

``white``       one sigma for each channel
``camera``      photons and read-out: variance = a · mean + b, for each channel
``correlated``  one spectrum: neighbours have noise in common, as after demosaicing or scaling
``jpeg``        a spectrum for each plane: that of the error of a JPEG file, see `jpeg_noise`

All is measured in the 8×8 blocks of least structure. White noise has the same power in all of their
frequencies. Correlated noise has more in the middle ones than in the highest; so has fine texture,
but the power of noise is the same in all blocks, and that of texture is not:

    spread = variance of the blocks' power in the middle frequencies / that of a chi-squared number

is 1 for noise, 3 to 12 for texture. Where correlated noise depends on the brightness as well, as in
demosaiced pictures, the spread is 1 within parts of equal brightness alone. For the noise of a
camera, blocks are sorted by brightness; a line through the low quantiles of the variance of each
twelfth gives a and b, which is negative where the camera adds an offset to all samples. Samples
clipped at black or white have less variance and another mean, which is taken back by those of a
clipped normal distribution.

Sources: after Foi, Trimeche, Katkovnik and Egiazarian, "Practical Poissonian-Gaussian noise
modeling and fitting for single-image raw-data", IEEE Transactions on Image Processing 17, 2008;
Foi, "Clipped noisy images: heteroskedastic modeling and practical denoising", Signal Processing 89,
2009; spectra after Dabov, Foi, Katkovnik and Egiazarian, "Image restoration by sparse 3D
transform-domain collaborative filtering", SPIE 6812, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.flat_noise import COSINES, deviations
from kernelscope.filters.shared.jpeg_noise import jpeg_error
from kernelscope.schema.samples import Pixels, white_level

Numbers = NDArray[np.float64]

SIDE = 8  # of a block


class NoiseKind(StrEnum):
    WHITE = "white"
    CAMERA = "camera"
    CORRELATED = "correlated"
    JPEG = "jpeg"


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """The noise in a picture, where white is 1."""

    kind: NoiseKind
    sigmas: tuple[float, ...]
    """Standard deviation in each channel, that of the mean variance of its pixels."""
    slopes: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()
    """Of the noise of a camera: a and b of each channel, its variance is a · mean + b."""
    spectra: Numbers | None = None
    """Shape (planes, 8, 8). Of correlated noise: its power in each frequency (y, x) of a block,
    divided by the mean of these. Three channels have their opponent planes, see `opponents`."""
    sure: bool = True  # whether another kind, and another sigma of white noise, are unlikely

    @property
    def sigma(self) -> float:
        """The root of the mean variance of all channels."""
        return math.sqrt(sum(sigma**2 for sigma in self.sigmas) / len(self.sigmas))

    @property
    def alike(self) -> bool:
        """Whether the noise of all channels counts as equal."""
        return max(self.sigmas) <= _ALIKE * min(self.sigmas)

    @property
    def whitens(self) -> bool:
        """Whether correlated noise can be made white: not that of colours, which demosaicing made
        uneven, nor that of a JPEG file or with next to nothing in several frequencies."""
        if self.spectra is None or len(self.spectra) > 1 or self.kind is NoiseKind.JPEG:
            return False
        return int((self.spectra < _NEXT_TO_NONE).sum((1, 2)).max()) < _SEVERAL

    def with_sigma(self, sigma: float) -> NoiseModel:
        """Return noise of the same kind, of this strength in all."""
        if not self.sigma:
            return NoiseModel(NoiseKind.WHITE, tuple(sigma for _ in self.sigmas))
        factor = sigma / self.sigma
        return replace(
            self,
            sigmas=tuple(each * factor for each in self.sigmas),
            slopes=tuple(each * factor**2 for each in self.slopes),
            offsets=tuple(each * factor**2 for each in self.offsets),
        )

    def in_unit(self, factor: float) -> NoiseModel:
        """Return the model for samples that are multiplied by `factor`."""
        return replace(
            self,
            sigmas=tuple(each * factor for each in self.sigmas),
            slopes=tuple(each * factor for each in self.slopes),
            offsets=tuple(each * factor**2 for each in self.offsets),
        )

    def describe(self, white: float, unit: str = "") -> str:
        """Return one line for the user, with numbers in a unit in which white is `white`."""
        way_out = "change the strength if the output is too soft or too grainy"
        sure = "sure" if self.sure else f"not sure: {way_out}"
        if self.kind is NoiseKind.CAMERA:
            lines = [
                f"{a * white:.3g}·mean {'-' if b < 0 else '+'} {abs(b) * white**2:.3g}"
                for a, b in zip(self.slopes, self.offsets, strict=True)
            ]
            return f"camera noise: variance {'; '.join(dict.fromkeys(lines))}, {sure}"
        sigmas = (self.sigma,) if self.alike else self.sigmas
        numbers = "; ".join(f"{sigma * white:.2g}{unit}" for sigma in sigmas)
        name = "noise of a JPEG file" if self.kind is NoiseKind.JPEG else f"{self.kind} noise"
        return f"{name}: sigma {numbers}, {sure}"


_ALIKE = 1.1  # sigmas of channels that differ by less than this factor are taken for one


_NEXT_TO_NONE, _SEVERAL = 0.03, 5
"""Of the mean power; noise that was blurred by 0.7 pixels has up to 4 frequencies below that, by 1
pixel 15 to 25, and demosaiced noise 5 to 17."""

_SMALL = 2.0**-20  # floats whose largest is between this and its inverse are looked at as they are

# Blocks -------------------------------------------------------------------------------

_MOST, _FEWEST = 2**15, 64
"""Blocks that are looked at, evenly spread, at most; with fewer than these nothing is found."""


def find_noise(
    pixels: Pixels, kind: NoiseKind | None = None, *, of_jpeg: bool = True
) -> NoiseModel:
    """Return the noise of a picture; of a certain kind, if that is known.

    Where a kind cannot be fitted to the picture, the noise is white.

    - `pixels`: shape (height, width, channels). Without alpha; uint8, uint16 or float32, whose
      white is 1.
    - `of_jpeg`: whether the error of a JPEG file may have a spectrum for each plane.
    """
    white = white_level(pixels.dtype)
    if pixels.dtype.kind == "f":
        peak = float(np.max(np.abs(pixels), initial=0, where=np.isfinite(pixels)))
        if peak and not _SMALL <= peak <= 1 / _SMALL:  # squares of others are no floats
            factor = 2.0 ** math.floor(math.log2(peak))
            inner = find_noise((pixels / factor).astype(np.float32), kind, of_jpeg=of_jpeg)
            return inner.in_unit(factor)
    error = jpeg_error(pixels) if kind in (None, NoiseKind.WHITE, NoiseKind.JPEG) else None
    of_file = None if error is None else _of_spectra(NoiseKind.JPEG, error, sure=False)
    if of_file is not None and (kind is NoiseKind.WHITE or not of_jpeg):
        of_file = replace(of_file, kind=kind or NoiseKind.JPEG, spectra=None)
    if kind in (NoiseKind.WHITE, NoiseKind.JPEG):
        return of_file or _white(pixels)
    blocks = _blocks(pixels)
    if blocks is None:  # too few to distinguish channels or kinds
        white_noise = _white(pixels)
        sigmas = (white_noise.sigma,) * len(white_noise.sigmas)
        return replace(white_noise, sigmas=sigmas, sure=False)
    clips = pixels.dtype.kind == "u"
    blocks /= white
    whole = _unclipped(blocks, clips)
    measured = _spectra(*whole, 1)
    if kind is not None:
        known = kind is NoiseKind.CAMERA
        given = _camera(blocks, clips, must=True) if known else _correlated(measured, 0)
        return given or _white(pixels)
    if of_file is not None:  # its noise may have been correlated before
        found = _correlated(measured, 2 * _COLOURED, error) or _evident(measured)
        return found or _in_parts(blocks, *whole, error) or of_file
    found = _correlated(measured, _COLOURED) or _evident(measured)
    found = found or _camera(blocks, clips, must=False) or _in_parts(blocks, *whole)
    if found is not None:
        return found
    white_noise = _white(pixels)
    hidden = any(each.ratio > _HIDDEN for each in measured) or _grows(blocks, clips)
    return replace(white_noise, sure=white_noise.sure and not hidden)


def _evident(measured: Sequence[_Spectrum]) -> NoiseModel | None:
    typical = [each.typical or each for each in measured]
    found = _correlated(typical, _EVIDENT) if _is_in_all(typical) else None
    return None if found is None else replace(found, sure=False)


def _in_parts(
    blocks: NDArray[np.float32],
    planes: NDArray[np.float32],
    order: NDArray[np.intp],
    error: Numbers | None = None,
) -> NoiseModel | None:
    """Return correlated noise that depends on the brightness as well."""
    if blocks.shape[1] < _PARTS * _FEWEST:
        return None
    parts = _spectra(planes, order, _PARTS)
    found = _correlated(parts, _CLEARLY, error)
    # The steps of a JPEG file give all planes of texture such ratios.
    if found is None and error is None and _is_demosaiced(parts):
        found = _correlated([each.without_texture for each in parts], 0)
    return None if found is None else replace(found, sure=False)


def _white(pixels: Pixels) -> NoiseModel:
    found = deviations(pixels)
    sigmas = tuple(each.sigma for each in found)
    if all(math.isfinite(sigma) for sigma in sigmas):
        sure = max(each.error for each in found) < _OPEN
        return NoiseModel(NoiseKind.WHITE, sigmas, sure=sure)
    return NoiseModel(NoiseKind.WHITE, tuple(0.0 for _ in sigmas), sure=False)


def _blocks(pixels: Pixels) -> NDArray[np.float32] | None:
    """Return blocks of 10×10 samples, whose inner 8×8 adjoin: shape (channels, blocks, 10, 10)."""
    height, width = ((side - 2) // SIDE for side in pixels.shape[:2])
    if height * width < _FEWEST:
        return None
    view = np.lib.stride_tricks.sliding_window_view(pixels, (SIDE + 2, SIDE + 2), (0, 1))
    places = np.arange(height * width)
    if len(places) > _MOST:
        places = np.linspace(0, len(places) - 1, _MOST).astype(int)
    rows, columns = np.divmod(places, width)
    blocks = view[rows * SIDE, columns * SIDE].astype(np.float32)  # (blocks, channels, 10, 10)
    blocks = blocks[np.isfinite(blocks).all((1, 2, 3))]
    return blocks.transpose(1, 0, 2, 3) if len(blocks) >= _FEWEST else None


# Spectra ------------------------------------------------------------------------------

_K = np.arange(SIDE)
_FREQUENCY = np.hypot(*np.meshgrid(_K, _K))
_LOW = (_FREQUENCY > 0) & (_FREQUENCY < 3.1)
_MIDDLE = (_FREQUENCY >= 3.1) & (_FREQUENCY < 6)
_HIGH = _FREQUENCY >= 7.5
_EVEN = _LOW & (np.add.outer(_K, _K) % 2 == 0)
"""Low frequencies are measured in the blocks whose other low ones are weakest: those by which
blocks are chosen would come out too small."""

_FLATTEST, _PARTS = 0.1, 6
"""Share of the blocks of least power in low frequencies, of all or of parts by brightness."""

_COLOURED, _SPREAD, _SURE = 2.0, 1.75, 1.4
"""Noise is correlated if its middle frequencies have this many times the power of the highest for
each unit of the spread, which is limited. On 13 pictures with noise of sigma 5 to 50 of 255: white
noise 0.4 to 1.6, blurred by 0.7 pixels 4 to 21. From clean texture and up to the last spread, the
kind is sure."""

_CLEARLY = 5.0
"""The same ratio where the spread is that of parts: demosaiced noise has 5 to 60, white noise and
pictures without noise up to 3."""

_EVIDENT = 24.0
"""The same ratio in the typical block, which edges in some of the flattest do not change: noise
blurred by 1 pixel has 26 to 250; twenty pictures without noise, and with white noise, in JPEG
files, softened, reduced or enlarged, up to 18, but for an enlarged photo with noise of its own."""

_DEMOSAICED = 2.9
"""The same ratio in two of the three planes of colours, as demosaicing correlates all. Photos that
darktable developed have 3.3 to 4.2; ten pictures, with white noise and without, up to 2.6, and one
that was combined of several shots 3.4."""

_IN_ALL = 4.0
"""The same ratio in all planes, where texture may be taken for noise: photos with noise that were
demosaiced have 4.6 to 11, with texture and little noise or none 1.3 to 3.4 in the difference of
green and the others."""

_HIDDEN = 10
"""White noise is not sure where middle frequencies have this many times the power of the highest
even in flat blocks: that may be texture, or noise that scaling or demosaicing made smooth."""

_LEVEL = 1.2  # white noise has at most this many times the power in the middle

_MORE = 1.7
"""In a JPEG file, noise that was correlated before has this many times the sigma of the file's
error, in the planes that show it. Its steps grow with the frequency, so that texture and white
noise look correlated as well: of 12 pictures in 836 files with white or camera noise, 7 are taken
for correlated."""

_OPEN = 0.04
"""Sigma is not sure either from such a relative error in a channel on. Of 345 channels of 13
pictures with white noise of sigma 5 to 50 of 255, it is larger in 16: all at sigma 5 but for three
of grass at 10. Among them are all whose estimate is off by more than 5 %, but where the picture has
noise of its own."""

_ENOUGH, _FEW_CLIPPED = 256, 0.1
"""With fewer blocks of which no sample is clipped, blocks count of which this share is."""

_NORMAL_POWER = 0.4549  # median of the square of a normal random number
_CALMER, _CALMER_BY = 0.1, 0.3419
"""A quantile, and how far it is below the median, as a share of that, for the sum of as many
squares of normal random numbers as there are middle frequencies."""

_ROUNDING = 1e-20  # power below this is nothing but that of arithmetic, where samples are up to 1

_STEEPEST = 1.5
"""The power of the lowest two frequencies, in which slopes of the picture are, is at most this many
times that of the next ones."""


def opponents(blocks: NDArray[Any]) -> NDArray[Any]:
    """Return three channels, along the first axis, as (R+G+B)/√3, (R-B)/√2 and (R-2G+B)/√6."""
    if len(blocks) != 3:
        return blocks
    red, green, blue = blocks
    grey, across = (red + green + blue) / math.sqrt(3), (red - blue) / math.sqrt(2)
    return np.stack([grey, across, (red + blue - 2 * green) / math.sqrt(6)])


def opponent_variances(variances: Any) -> Numbers:
    """Return the variances of the noise in the `opponents` of three channels."""
    red, green, blue = variances
    return np.array([(red + green + blue) / 3, (red + blue) / 2, (red + 4 * green + blue) / 6])


def _spectra(planes: NDArray[np.float32], order: NDArray[np.intp], parts: int) -> list[_Spectrum]:
    """Return the measurements of each plane; nothing if too few blocks have whole noise.

    - `planes`, `order`: see `_unclipped`.
    - `parts`: by brightness; each has its own flattest blocks.
    """
    if len(order) < _FEWEST:
        return []
    measured = [_spectrum(plane, np.array_split(order, parts)) for plane in planes]
    return measured if all(each.power.any() for each in measured) else []


def _correlated(
    measured: Sequence[_Spectrum], least: float, error: Numbers | None = None
) -> NoiseModel | None:
    """Return correlated noise, unless it is white in all planes.

    - `least`: ratio for each unit of the spread from which on it is not; 0 if it never is. Where
      one plane shows that, others are judged by `_COLOURED`.
    - `error`: power of that of a JPEG file, see `jpeg_error`. Noise has more in the same planes.
    """
    if not measured or (least and not any(each.is_coloured(least) for each in measured)):
        return None
    found = [not least or each.is_coloured(min(least, _COLOURED)) for each in measured]
    if error is not None:
        power = sum(
            each.power.sum() for each, is_one in zip(measured, found, strict=True) if is_one
        )
        if power < _MORE**2 * error[found].sum():
            return None
    common = np.mean(
        [each.power for each, is_one in zip(measured, found, strict=True) if is_one], 0
    )
    spectra = []
    for plane, (each, is_one) in enumerate(zip(measured, found, strict=True)):
        if is_one:
            spectra.append(each.power)
        elif each.spread < _SPREAD or each.ratio < _LEVEL:
            # White: some detail adds to all but the highest.
            spectra.append(np.full_like(common, each.power[_HIGH].mean()))
        elif error is None:  # hidden below texture
            spectra.append(common)
        else:  # small colours have less, but the error of the file
            spectra.append(np.maximum(np.minimum(common, each.power), error[plane]))
    sure = all(each.spread < _SURE for each in measured)
    return _of_spectra(NoiseKind.CORRELATED, np.array(spectra), sure)


def _of_spectra(kind: NoiseKind, spectra: Numbers, sure: bool) -> NoiseModel:
    """Return noise of these powers of the opponent planes."""
    means = spectra.mean((1, 2)).tolist()
    total = sum(means) / len(means)
    if len(means) == 3:  # each channel has a part of each plane
        grey, across, green = means
        red = grey / 3 + across / 2 + green / 6
        means = [red, grey / 3 + green * 2 / 3, red]
    return NoiseModel(kind, tuple(map(math.sqrt, means)), spectra=spectra / total, sure=sure)


def _is_demosaiced(measured: Sequence[_Spectrum]) -> bool:
    shares = sorted(each.ratio / each.spread for each in measured)
    return len(shares) == 3 and shares[1] > _DEMOSAICED and _is_in_all(measured)


def _is_in_all(measured: Sequence[_Spectrum]) -> bool:
    return all(each.ratio > _IN_ALL for each in measured)


def _unclipped(
    blocks: NDArray[np.float32], clips: bool
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the planes of the blocks in which noise is whole: not the same everywhere, and not
    clipped; and their order by brightness."""
    flat = blocks.reshape(*blocks.shape[:2], -1)
    varied = (flat != flat[..., :1]).any(2).all(0)
    if clips:
        clipped = ((flat <= 0) | (flat >= 1)).mean(2).max(0)
        whole = varied & (clipped == 0)
        varied = whole if whole.sum() >= _ENOUGH else varied & (clipped <= _FEW_CLIPPED)
    blocks = blocks[:, varied]
    order = np.argsort(blocks.mean((0, 2, 3), dtype=np.float64), kind="stable")
    return opponents(blocks[:, :, 1:-1, 1:-1]), order


class _Spectrum(NamedTuple):
    """The power in each frequency of the flattest blocks, its middle over its highest, and how much
    more the blocks differ than noise does."""

    power: Numbers
    ratio: float
    spread: float
    typical: _Spectrum | None = None  # the same of the typical block

    @property
    def without_texture(self) -> _Spectrum:
        """The spectrum of noise beside texture, by how much more blocks differ: about."""
        return self._replace(power=self.power / max(1, self.spread))

    def is_coloured(self, least: float) -> bool:
        return self.spread < _SPREAD and self.ratio > least * self.spread


def _spectrum(plane: NDArray[np.float32], parts: Sequence[NDArray[np.intp]]) -> _Spectrum:
    scale = float(np.abs(plane).max())
    if not scale:
        return _Spectrum(np.zeros((SIDE, SIDE)), 1.0, 1.0)
    squares = (COSINES @ (plane / scale).astype(np.float64) @ COSINES.T) ** 2

    def flattest(mask: NDArray[np.bool_]) -> list[Numbers]:
        activity, found = squares[:, mask].mean(1), []
        for part in parts:
            count = min(max(int(len(part) * _FLATTEST), 16), len(part) - 1)
            found.append(squares[part[np.argpartition(activity[part], count)[:count]]])
        return found

    flat, calm = flattest(_LOW), np.empty((SIDE, SIDE))
    for mask, other in ((_EVEN, _LOW & ~_EVEN), (_LOW & ~_EVEN, _EVEN)):
        calm[mask] = np.median(np.concatenate(flattest(other))[:, mask], axis=0) / _NORMAL_POWER
    next_ones = (calm[0, 2] + calm[1, 1] + calm[2, 0]) / 3
    for place in ((0, 1), (1, 0)):
        calm[place] = min(calm[place], _STEEPEST * next_ones)

    def spectrum(powers: Sequence[Numbers], spread: Callable[[Numbers], float]) -> _Spectrum:
        power = np.median(powers, axis=0)
        middle, high = power[_MIDDLE], power[_HIGH]
        if middle.min() < _ROUNDING or high.max() < _ROUNDING:
            return _Spectrum(np.zeros((SIDE, SIDE)), 1.0, 1.0)
        power[_LOW] = calm[_LOW]
        power[0, 0] = max(power[0, 1], power[1, 0])
        differ = float(np.median([spread(each[:, _MIDDLE]) for each in flat]))
        return _Spectrum(power * scale**2, float(middle.mean() / high.mean()), differ)

    typical = spectrum([np.median(each, 0) / _NORMAL_POWER for each in flat], _calmer_spread)
    return spectrum([each.mean(0) for each in flat], _spread)._replace(typical=typical)


def _spread(squares: Numbers) -> float:
    """Return how much more blocks differ than noise does."""
    sums = (squares / np.maximum(squares.mean(0), 1e-300)).mean(1)
    return float(sums.var(ddof=1)) * squares.shape[1] / 2


def _calmer_spread(squares: Numbers) -> float:
    """Return the same of the calmer half of the blocks, which has no edges."""
    sums = (squares / np.maximum(np.median(squares, axis=0), 1e-300)).mean(1)
    low, middle = np.quantile(sums, (_CALMER, 0.5))
    # A part may have nothing in this plane, as grey has no difference of colours.
    return float(((1 - low / middle) / _CALMER_BY) ** 2) if middle else 0.0


# Brightness ---------------------------------------------------------------------------

_BINS, _CALM, _QUANTILE, _SHORT = 12, 0.4, 0.3, 1.2
"""Parts of all blocks by brightness; the share of the flattest of each, which quantile of their
variance is taken, and the mean of pure noise over that quantile (see `flat_noise`)."""

_ROUNDS, _FAR = 20, 0.3
"""Rounds of the fit, and the relative distance from the line at which a part counts half."""

_CLIPPED = 0.25
"""Parts whose variance is less than this share of that without clipping tell nothing."""

_STEEP, _PHOTONS = 1.3, 0.5
"""The brightest parts have this many times the variance of the darkest, and photons make at least
this share of the mean variance, as texture may be brighter than plain areas."""

_CLOSE, _CLOSE_IN_MOST, _CLOSER = 0.5, 0.7, 0.6
"""The distances from the line are at most this share of those from one variance for all: by their
logarithms, or in most parts, of a line without an offset of the camera. A line with one has at most
the last number times the distances of that, as texture tilts lines. No white noise of sigma 5
to 50 of 255 in 13 pictures and in 6 of drawn cells and filaments is like that, in bytes and in 400
or all levels of uint16, but for coins with sigma 5."""


@dataclass(frozen=True)
class _Line:
    slope: float
    offset: float
    sure: bool
    away: float = 0.0
    """Its distance from the variances, over that of one variance for all."""

    def at(self, mean: float) -> float:
        """Return the variance at a brightness."""
        return max(self.slope * mean + self.offset, 0.0)


def _camera(blocks: NDArray[np.float32], clips: bool, must: bool) -> NoiseModel | None:
    """Return the noise of a camera, if the variances of the channels follow lines.

    A channel of nearly one brightness shows no line: it has that of all channels together, if that
    is near it, or else one variance.
    """
    scale = float(np.abs(blocks).max())
    if not scale:
        return None
    white = 1 / scale if clips else math.inf
    pairs = [_pairs(channel / scale) for channel in blocks]
    if any(len(each) < _BINS // 2 for each in pairs):
        return None
    lines = [_line(each, white, must) for each in pairs]
    if not any(lines):
        return None
    together = _line(np.concatenate(pairs), white, must=True)
    slopes, offsets, sigmas, sure = [], [], [], True
    for channel, each, line in zip(blocks, pairs, lines, strict=True):
        mean, variance = float(channel.mean(dtype=np.float64)) / scale, float(np.median(each[:, 1]))
        sure &= line is not None and line.sure
        if line is None and together is not None:
            expected = together.at(float(np.median(each[:, 0])))
            line = together if abs(expected / variance - 1) < _FAR else None
        line = line or _Line(0, variance, sure=False)
        slopes.append(line.slope * scale)
        offsets.append(line.offset * scale**2)
        sigmas.append(math.sqrt(line.at(mean)) * scale)
    return NoiseModel(NoiseKind.CAMERA, tuple(sigmas), tuple(slopes), tuple(offsets), sure=sure)


def _pairs(blocks: NDArray[np.float32]) -> Numbers:
    """Return means and variances of a channel, from dark to bright."""
    inner = blocks[:, 1:-1, 1:-1].astype(np.float64)
    rest = np.diff(np.diff(blocks.astype(np.float64), 2, 1), 2, 2)
    means, noise = inner.mean((1, 2)), np.square(rest).mean((1, 2)) / 36
    spread = inner.reshape(-1, 2, SIDE // 2, 2, SIDE // 2).mean((2, 4)).var((1, 2))
    pairs = []
    for part in np.array_split(np.argsort(means, kind="stable"), _BINS):
        calm = part[spread[part] <= np.quantile(spread[part], _CALM)]
        variance = _SHORT * float(np.quantile(noise[calm], _QUANTILE))
        if variance > 0:
            pairs.append((float(means[calm].mean()), variance))
    return np.array(pairs)


def _grows(blocks: NDArray[np.float32], clips: bool) -> bool:
    """Return whether a line, even a bad one, says that bright parts have far more noise."""
    model = _camera(blocks, clips, must=True)
    if model is None:
        return False
    ends = np.quantile(blocks.mean((2, 3), dtype=np.float64), (0.02, 0.98), axis=1).T
    lines = zip(model.slopes, model.offsets, ends, strict=True)
    return any(a * high + b > 2 * _STEEP * max(a * low + b, 0.0) for a, b, (low, high) in lines)


def _line(pairs: Numbers, white: float, must: bool) -> _Line | None:
    """Return the line that variances follow, if they do follow one."""
    plain, shifted = (_line_above(least, pairs, white, must) for least in (0.0, -math.inf))
    if plain and shifted and shifted.away >= _CLOSER * plain.away:
        return plain
    return shifted or plain


def _line_above(least: float, pairs: Numbers, white: float, must: bool) -> _Line | None:
    """Return the line whose offset is at least so much, if variances follow it."""
    found = _fit(pairs, white, least)
    if found is None or found[0] <= 0:
        return None
    slope, offset, means, variances = found
    line = np.maximum(slope * means + offset, 1e-3 * float(variances.max()))
    near, apart = np.log(variances / line), np.log(variances)
    away = math.sqrt(np.mean(near**2)) / max(float(apart.std()), 1e-9)
    is_close = away <= _CLOSE
    if not least:
        in_most, apart = variances / line - 1, variances / np.median(variances) - 1
        is_close |= bool(np.median(np.abs(in_most)) <= _CLOSE_IN_MOST * np.median(np.abs(apart)))
    steep = float(line.max() / line.min())
    photons = slope * float(pairs[:, 0].mean())
    share = photons / max(photons + offset, 1e-30)
    if not must and (not is_close or steep < _STEEP or share < _PHOTONS):
        return None
    return _Line(slope, offset, away < _CLOSE / 2 and steep > 2 * _STEEP, away)


def _fit(
    pairs: Numbers, white: float, least: float
) -> tuple[float, float, Numbers, Numbers] | None:
    """Return slope and offset, at least `least`, and the means and variances without clipping."""
    means, variances = pairs.T
    used = np.ones(len(means), bool)
    slope, offset = 0.0, float(np.median(variances))
    true_means, true_variances = means, variances
    for number in range(_ROUNDS):
        if math.isfinite(white):
            true_means, share = _without_clipping(means, slope, offset, white)
            used = share > _CLIPPED
            if used.sum() < 4:
                return None
            true_variances = variances / np.maximum(share, _CLIPPED)
        line = np.maximum(slope * true_means + offset, 1e-3 * float(variances.max()))
        if number == 0:
            line = true_variances
        away = np.abs(true_variances - line) / line
        weights = used / line / (1 + (away / _FAR) ** 2)
        slope, offset = _least_squares(true_means, true_variances, weights, least)
    return slope, offset, true_means[used], true_variances[used]


def _least_squares(x: Numbers, y: Numbers, weights: Numbers, least: float) -> tuple[float, float]:
    """Return slope, not negative, and offset, at least `least`, of the line nearest to points."""
    w = weights**2
    total, sx, sy = w.sum(), (w * x).sum(), (w * y).sum()
    sxx, sxy = (w * x * x).sum(), (w * x * y).sum()
    below = total * sxx - sx * sx
    slope = (total * sxy - sx * sy) / below if below > 0 else 0.0
    offset = (sy - slope * sx) / total
    if offset < least:
        return float(max(sxy / sxx, 0)), 0.0
    if slope < 0:
        return 0.0, float(sy / total)
    return float(slope), float(offset)


def _without_clipping(
    means: Numbers, slope: float, offset: float, white: float
) -> tuple[Numbers, Numbers]:
    """Return the means before noise was clipped, and the share of its variance that is left."""
    # As far as there are means: white may be far away, and one sample at it.
    levels = np.linspace(0, min(white, 2 * float(means.max())), 257)
    sigma = np.sqrt(np.maximum(slope * levels + offset, 1e-12 * levels[-1] ** 2))
    nodes = np.linspace(-5, 5, 101)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    clipped = np.clip(levels[:, None] + sigma[:, None] * nodes, 0, white)
    mean = clipped @ weights
    variance = ((clipped - mean[:, None]) ** 2) @ weights
    return (
        np.interp(means, mean, levels),
        np.interp(means, mean, variance / sigma**2),
    )
