"""Shared by the denoisers of pictures: the error of a picture that was a JPEG file.

JPEG rounds the coefficients of 8×8 blocks to multiples of steps q, which grow with the frequency:
weak noise becomes 0 in most of them, so that the file looks clean to estimators of white noise, and
strong noise gets noise of rounding. The error is all that differs from the clean picture,

    e = decoded(clean + noise) - clean

noise that is left, and the error of compression: of the two, a denoiser has to expect the sum. With
that of the whole it came nearest to the clean picture, nearer than with the noise that is left.

- The blocks of a picture that was cropped begin where most coefficients are 0.
- The steps are found from the picture: its coefficients lie on their multiples. Those of
  frequencies that are 0 everywhere are the steps of the standard's example table, scaled like the
  others.
- The noise before compression has one sigma s in a plane, that of the ring of frequencies in which
  the flattest blocks show least: E[Q(n)²] = their mean square, where Q rounds normal noise n.
- A share p of the coefficients of a frequency is not 0 because of the picture. Compression then has
  the error 0.09 q² p^0.45: on 12 pictures in two sizes with qualities of 60 to 95, the median of
  those with p from 0.001 to 1 is 0.8 to 1.3 times that. The noise has E[Q(n)²] in the others, and
  s² in these.

For example, q = 10 and s = 3: 10 % of the noise alone is rounded to ±10, which is a variance of
9.6; with s = 1, one in 2 million is, and nothing is left of it.

Source of the table: ITU-T Recommendation T.81, annex K.1. After the idea of Fan and de Queiroz,
"Identification of bitmap compression history", IEEE Transactions on Image Processing 12, 2003.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.flat_noise import COSINES
from kernelscope.schema.samples import Pixels, white_level

Numbers = NDArray[np.float64]

_SIDE = 8  # of blocks
_MOST, _SOME, _FEWEST = 2**14, 512, 64
"""How many blocks are looked at, at each place that may be the corner of one, and at least."""

_LUMA_STEPS = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
_CHROMA_STEPS = np.full((_SIDE, _SIDE), 99)
_CHROMA_STEPS[:4, :4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]]
"""Of quality 50."""

_TO_YCC = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
)
_FROM_YCC = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]])

_RING = np.add.outer(np.arange(_SIDE), np.arange(_SIDE))
_ODD, _LOW = _RING % 2 == 1, (_RING > 0) & (_RING <= 6)

# The steps -----------------------------------------------------------------------------

_BINS, _STEPS = np.arange(512) / 4, np.arange(2, 101)
_ROUNDING = (
    0.34  # sigma of coefficients, as brightness and then colours are rounded to whole levels
)
_ON_MULTIPLES = np.exp(-2 * (math.pi * _ROUNDING / _STEPS) ** 2)
"""The mean cosine that has its period at multiples of a step, of numbers near such multiples."""
_NOT_ZERO = _BINS[:, None] > _STEPS / 3
_COSINE = np.cos(2 * math.pi * _BINS[:, None] / _STEPS) * _NOT_ZERO

_SURE, _ENOUGH, _UNLIKE = 0.8, 12, 3.0
"""A step has that share of `_ON_MULTIPLES` for so many coefficients that are not 0, and is less
than so many times that of the scaled table, and more than that part of it."""

_KNOWN, _NEARLY_ALL, _SMALLEST_STEP = 6, 0.7, 1.5
"""A JPEG file has so many frequencies with a step, and that share of those with enough coefficients
and a step above 1: noise that came later, and was smooth, leaves the highest ones as they were."""


def _found_steps(coefficients: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the largest step whose multiples coefficients are, for each frequency; or else 0.

    The second result: which of them have coefficients enough to show one.
    """
    places = np.rint(np.abs(coefficients.reshape(-1, _SIDE**2)) * 4).astype(np.intp)
    places = np.minimum(places, len(_BINS) - 1) + len(_BINS) * np.arange(_SIDE**2)
    counts = np.bincount(places.ravel(), minlength=_SIDE**2 * len(_BINS))
    counts = counts.reshape(_SIDE**2, -1).astype(np.float64)
    counts[:, -1] = 0  # all beyond
    counts[0] = 0  # the mean
    used = counts @ _NOT_ZERO
    fits = (used >= _ENOUGH) & (counts @ _COSINE > _SURE * _ON_MULTIPLES * used)
    could = counts[:, _BINS > 1].sum(1) >= 4 * _ENOUGH
    steps = np.where(fits, _STEPS, 0).max(1).astype(np.float64)
    return steps.reshape(_SIDE, _SIDE), could.reshape(_SIDE, _SIDE)


def _completed(found: Numbers, scale: float, table: Numbers) -> Numbers:
    """Return the steps, of the scaled table where they were not found."""
    usual = np.maximum(table * scale, 1)
    return np.where((found > usual / _UNLIKE) & (found < usual * _UNLIKE), found, usual)


# The noise -----------------------------------------------------------------------------

_RATIOS = np.geomspace(0.05, 8, 256)  # sigma over the step
_HALVES = np.arange(40) + 0.5
_BEYOND = np.array(
    [[math.erfc(half / ratio / math.sqrt(2)) for half in _HALVES] for ratio in _RATIOS]
)
_SQUARES = _BEYOND @ (2 * _HALVES)


def _rounded_away(ratios: Numbers) -> Numbers:
    """Return the share of normal numbers that round to 0."""
    return 1 - np.interp(ratios, _RATIOS, _BEYOND[:, 0], left=0)


def _square(ratios: Numbers) -> Numbers:
    """Return the mean square of normal numbers after they are rounded."""
    inside = np.interp(ratios, _RATIOS, _SQUARES, left=0)
    return np.where(ratios < _RATIOS[-1], inside, ratios**2 + 1 / 12)


_PARTS = 4  # by brightness, as the noise of photons differs with it
_FLATTEST, _SMALLEST = 0.1, 32  # share of the blocks that are flat, and how many at least
_EVEN = 1.05  # sigmas of rings that differ by less than this factor are that of noise
_SIGMAS = np.geomspace(0.05, 200, 256)


def _sigma_before(coefficients: Numbers, steps: Numbers) -> float:
    """Return the sigma of the noise before compression, in levels: the median over brightness."""
    squares = (np.rint(coefficients / steps) * steps) ** 2
    order = np.argsort(coefficients[:, 0, 0], kind="stable")
    return float(np.median([_flat_sigma(squares[p], steps) for p in np.array_split(order, _PARTS)]))


def _flat_sigma(squares: Numbers, steps: Numbers) -> float:
    """Return the sigma of the noise in the flattest blocks.

    Where it still falls from ring to ring, they have texture, and less of it is noise.
    """
    count = max(int(_FLATTEST * len(squares)), min(_SMALLEST, len(squares) - 1))
    means = np.empty(steps.shape)
    for chosen in (_ODD, ~_ODD):  # by frequencies that are not measured
        activity = squares[:, _LOW & chosen].sum(1)
        flat = squares[np.argpartition(activity, count)[:count]]
        means[~chosen] = flat[:, ~chosen].mean(0)
    expected = steps**2 * _square(_SIGMAS[:, None, None] / steps)
    found = []
    for ring in range(1, 2 * _SIDE - 4):
        of = np.isin(_RING, (ring, ring + 1, ring + 2))
        one = float((steps[of] ** 2).min()) / count  # nothing seen is at most one
        found.append(float(np.interp(means[of].sum() + one, expected[:, of].sum(1), _SIGMAS)))
    last = max(ring for ring, each in enumerate(found) if each <= _EVEN * min(found))
    before = found[max(last - 3, 0) : last] or found[:1]
    return min(found) * min(found[last] / (sum(before) / len(before)), 1) ** 2


class _Plane(NamedTuple):
    """The power of the error in each frequency, in levels squared, and of the noise in it."""

    error: Numbers
    noise: Numbers


_FACTOR, _EXPONENT, _NONE = 0.09, 0.45, 1e-5


def _errors(coefficients: Numbers, steps: Numbers, sigma: float) -> _Plane:
    shown = (np.rint(coefficients / steps) != 0).mean(0)
    share = np.clip(shown - 1 + _rounded_away(sigma / steps), _NONE, 1)
    share[0, 0] = 1
    noise = (1 - share) * steps**2 * _square(sigma / steps) + share * sigma**2
    both = _FACTOR * steps**2 * share**_EXPONENT + noise
    return _Plane(_MOVED @ both @ _MOVED.T, _MOVED @ noise @ _MOVED.T)


_OVERLAPS = np.array([np.correlate(row, row, "full") for row in COSINES])
_MOVED = _OVERLAPS @ _OVERLAPS.T / _SIDE
"""Along an axis, the power in the frequencies of blocks at any place, of that in JPEG's blocks: the
autocovariance is averaged over the places."""

# Colours -------------------------------------------------------------------------------

_K = np.arange(_SIDE)
_ENLARGED = np.cos(math.pi * _K / 16) ** 4
"""The power that is left in a frequency, of 16 samples, when colours get their size back."""
_HALVED = 0.75 + 0.25 * np.cos(math.pi * _K / _SIDE)
"""The share of a coefficient that is left when they are halved again."""
_LEAK = 0.02  # of the power, in frequencies that small colours do not have
_FULL = 3  # steps found, from which on colours have their full size


def _enlarged(power: Numbers) -> Numbers:
    for _ in range(2):
        low = 2 * power[::2] * _ENLARGED[: _SIDE // 2, None]
        power = np.concatenate([low, np.full(low.shape, _LEAK * low.mean())]).T
    return power


def jpeg_error(pixels: Pixels) -> Numbers | None:
    """Return the power of the error in the frequencies of opponent planes, where white is 1.

    None if the picture was in no JPEG file, or if the steps are small beside the noise of a file
    with colours of full size: that has the noise of any picture.

    - `pixels`: shape (height, width, channels). Without alpha.
    """
    file = _file(pixels)
    if file is None:
        pixels = _from_first_block(pixels, _SIDE)
        file = _file(pixels)
    if file is None:
        return None
    planes, grey, found, scale = file
    steps = _completed(found, scale, _LUMA_STEPS)
    sigma = _sigma_before(grey, steps)
    is_fine, brightness = sigma > steps.mean(), _errors(grey, steps, sigma)
    if len(planes) < 3:
        return None if is_fine else brightness.error[None] / 255**2
    whole = [_coefficients(plane) for plane in planes[1:]]
    in_full = [_found_steps(each)[0] for each in whole]
    are_full = max(map(np.count_nonzero, in_full)) >= _FULL
    if are_full and is_fine:
        return None
    if not are_full:
        large = _planes(_from_first_block(pixels, 2 * _SIDE), 2 * _SIDE)
        if large is not None:
            whole = [_coefficients(plane) / np.outer(_HALVED, _HALVED) for plane in _halved(large)]
    colours = []
    for each, found in zip(whole, in_full, strict=True):
        steps = _completed(found * are_full, scale, _CHROMA_STEPS)
        plane = _errors(each, steps, _sigma_before(each, steps))
        colours.append(plane if are_full else _Plane(*map(_enlarged, plane)))
    return _in_opponents(brightness.error, *colours) / 255**2


class _File(NamedTuple):
    planes: Numbers
    grey: Numbers
    """Coefficients of the first plane."""
    found: Numbers
    scale: float


def _file(pixels: Pixels) -> _File | None:
    """Return the steps found in blocks from the corner on, and their scale; None without."""
    planes = _planes(pixels, _SIDE)
    if planes is None:
        return None
    grey = _coefficients(planes[0])
    found, could = _found_steps(grey)
    known = np.count_nonzero(found)
    if known < _KNOWN:
        return None
    scale = float(np.median((found / _LUMA_STEPS)[found > 0]))
    if known < _NEARLY_ALL * np.count_nonzero(could & (_LUMA_STEPS * scale >= _SMALLEST_STEP)):
        return None
    return _File(planes, grey, found, scale)


def _from_first_block(pixels: Pixels, side: int) -> Pixels:
    """Return the pixels from the place on at which most coefficients of blocks are 0.

    - `side`: of a block of brightness; or twice that, of halved colours, where the pixels begin at
      a block of brightness.
    """
    places = range(0, side, 1 if side == _SIDE else _SIDE)
    begins = [pixels[top:, left:] for top in places for left in places]
    return begins[int(np.argmax([_zeros(each, side) for each in begins]))]


def _zeros(pixels: Pixels, side: int) -> float:
    """Return the share of coefficients that are 0 but for rounding, of some blocks."""
    planes = _planes(pixels, side, _SOME)
    if planes is None:
        return 0.0
    found = _coefficients(planes[0] if side == _SIDE else _halved(planes))
    return float((np.abs(found) < 3 * _ROUNDING).mean())


def _in_opponents(brightness: Numbers, blue: _Plane, red: _Plane) -> Numbers:
    """Return the powers in the opponent planes, of those in brightness and colour differences.

    Noise that is alike in red, green and blue has brightness and differences in common: they take
    from the grey plane what they add to it.
    """
    rows = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
    mixed = rows @ _FROM_YCC
    powers = np.tensordot(mixed**2, [brightness, blue.error, red.error], 1)
    common = _TO_YCC @ _TO_YCC.T
    shared = 2 * mixed[0, 0] * (mixed[0, 1:] @ common[0, 1:]) / common[1, 1] * blue.noise
    powers[0] = np.maximum(powers[0] + shared, _LEAST * powers[0])
    return np.asarray(powers)


_LEAST = 0.3  # of the power in the grey plane that is left of it


def _coefficients(blocks: Numbers) -> Numbers:
    return np.asarray(COSINES @ blocks @ COSINES.T)


def _halved(planes: Numbers) -> Numbers:
    """Return the differences of colours, of large blocks, with a quarter of the samples."""
    return np.asarray(planes[1:].reshape(2, -1, _SIDE, 2, _SIDE, 2).mean((3, 5)))


def _planes(pixels: Pixels, side: int, blocks: int = _MOST) -> Numbers | None:
    """Return blocks of brightness and differences of colours, in levels: shape (planes, blocks,
    side, side).

    They have no clipped samples; large ones may, where few do not. None if there are too few.
    """
    rows, columns = (length // side for length in pixels.shape[:2])
    places, white = np.arange(rows * columns), white_level(pixels.dtype)
    most = blocks * _SIDE**2 // side**2
    if len(places) > most:
        places = np.linspace(0, len(places) - 1, most).astype(int)
    if not len(places):
        return None
    whole = pixels[: rows * side, : columns * side].reshape(rows, side, columns, side, -1)
    chosen = whole[places // max(columns, 1), :, places % max(columns, 1)]
    unclipped = ((chosen > 0) & (chosen < white)).all((1, 2, 3))
    if np.count_nonzero(unclipped) >= _FEWEST:
        chosen = chosen[unclipped]
    elif side == _SIDE:  # steps are not seen in others
        return None
    else:
        chosen = chosen[np.isfinite(chosen).all((1, 2, 3))]
    channels = np.moveaxis(chosen * np.float64(255 / white), 3, 0)
    planes = np.tensordot(_TO_YCC, channels, 1) if len(channels) == 3 else channels
    return planes if planes.shape[1] >= _FEWEST else None
