"""How strong non-local means should be: the strength of least estimated error.

Stein's unbiased risk estimate says from the noisy picture alone how far its average f is from the
picture without noise y, if the noise is Gaussian:

    mean squared error = mean of (f(i) - y(i))² - sigma² + 2 sigma² df(i) / dy(i)

Van De Ville and Kocher, "SURE-based non-local means", IEEE Signal Processing Letters 16, 2009,
give the derivative for non-local means in closed form. Here it is taken at some thousand pixels,
for many strengths at once: the distances of patches, which take the time, are the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Record, kernel
from kernelscope.base.parallel import on_cores
from kernelscope.filters.shared.flat_noise import flat_sigma
from kernelscope.filters.shared.non_local import (
    add_moments,
    noise_floor,
    of_least_error,
    patch_profile,
)
from kernelscope.schema.samples import Pixels, white_level

_FACTORS = 2.0 ** np.arange(-4, 2.01, 0.5)
"""Strengths that are tried, in units of the mean distance of patches that differ by noise."""

_CORRECTED_FACTORS = 2.0 ** np.arange(-4, 0.01, 0.5)
"""The same where the part of a distance that noise adds does not count."""

_PATCHES = 3, 5, 7, 9
_MOST_CELLS = 81
"""Sizes among which a patch is chosen, where the part of a distance that noise adds does not
count."""

_WORK = 1e8  # about how many operations are spent: some hundredths of a second

_CHOICE, _MOST_NOISE, _LIGHT = 3, 8, 14 / 255
"""Factors of `_WORK`. The first applies where a patch is chosen, because errors of patches differ
less. Above the last number, a sigma with white as 1, the error of the estimate grows with sigma;
more work makes up for it, up to the second factor."""

_ALIKE = 1.015
"""The smallest patch is taken of those whose estimated errors differ by no more than this factor.
On text with sigma 30, 5 is 0.1 dB better than 7, whose estimated error is 1 % less. One whose best
strength is the largest that is tried comes last: its patches hardly distinguish pixels, such as
those of 3 on smooth pictures."""

_PARTS = 8
"""Into which pixels are divided, for several cores; always as many, so that sums are the same."""

_PIXELS, _FEWEST = 2**15, 128  # pixels at which the risk is estimated, at most and at least
_CANDIDATES = 2**14  # of a search of the whole image, about as many are drawn for each pixel

_FAR = np.float32(1e30)

_AT_ONCE = 64
"""Pixels that are computed together without compiled code: more would not fit into a cache."""


@kernel
def compare_lines(
    wide: Array,
    y: Index,
    x: Index,
    lines: Array,
    profile: Line,
    floor: Number,
    apart: Array,
    slopes: Array,
    values: Array,
) -> None:
    """Write distances from a pixel to candidates, half their derivatives, and differences.

    - `wide`: float32, shape (channels, rows, columns). The picture and a margin around it.
    - `y`, `x`: the pixel, in `wide`.
    - `lines`: int, shape (lines, 2). Row and column of the first candidate of each line, in `wide`.
    - `profile`: float32, shape (patch,). See `patch_profile`.
    - `floor`: float32. Subtracted from distances, down to 0, where they do not depend on the pixel.
    - `apart`: float32, shape (lines, length). Distances; very far for the pixel itself.
    - `slopes`, `values`: float32, shape (channels, lines, length). Half the derivative of the
      distance by the pixel, and how much more the candidate is.
    """
    half, length = profile.size // 2, apart.shape[1]
    for line in range(lines.shape[0]):
        yy, first = lines[line, 0], lines[line, 1]
        distances = apart[line]
        distances[:] = 0
        for c in range(wide.shape[0]):
            for s in range(-half, half + 1):
                for t in range(-half, half + 1):
                    weight = profile[half + s] * profile[half + t]
                    own, others = wide[c, y + s, x + t], wide[c, yy + s, first + t :]
                    for j in range(length):
                        difference = others[j] - own
                        distances[j] += weight * (difference * difference)
            # The pixel is in the middle of its own patch, and may lie in the candidate's.
            middle, others = profile[half] * profile[half], wide[c, yy, first:]
            for j in range(length):
                values[c, line, j] = others[j] - wide[c, y, x]
                slopes[c, line, j] = -middle * values[c, line, j]
            if abs(yy - y) <= half:
                for j in range(max(0, x - half - first), min(length, x + half + 1 - first)):
                    dy, dx = yy - y, first + j - x
                    weight = profile[half + dy] * profile[half + dx]
                    slopes[c, line, j] += weight * (wide[c, y, x] - wide[c, y - dy, x - dx])
        for j in range(length):
            distances[j] -= floor
            if distances[j] < 0:
                distances[j] = 0
                slopes[:, line, j] = 0
        if yy == y and 0 <= x - first < length:
            distances[x - first] = _FAR


@kernel
def risks(
    wide: Array,
    places: Array,
    lines: Array,
    share: Number,
    profile: Line,
    floor: Number,
    scales: Line,
    work: Record,
    totals: Array,
) -> None:
    """Add up squared residuals and divergences over pixels.

    - `wide`, `profile`, `floor`: as for `compare_lines`.
    - `places`: int, shape (pixels, 2). Rows and columns in `wide`.
    - `lines`: int, shape (pixels, lines, 2).
    - `share`: float32. Which share of all candidates the lines have.
    - `scales`: float32, shape (strengths,). Make a distance the binary logarithm of its weight.
    - `work`: `apart`, `slopes` and `values`.
    - `totals`: float64, shape (2, strengths). Squared residuals, and divergences.
    """
    apart, slopes, values = work
    moments = np.empty(4)
    flat = apart.reshape(-1)
    for number in range(places.shape[0]):
        y, x = places[number, 0], places[number, 1]
        compare_lines(wide, y, x, lines[number], profile, floor, apart, slopes, values)
        for k in range(scales.size):
            for c in range(wide.shape[0]):
                moments[:] = 0
                add_moments(flat, slopes[c].reshape(-1), values[c].reshape(-1), scales[k], moments)
                moments /= share
                weights = 1 + moments[0]
                mean = moments[1] / weights
                slope = (moments[3] - mean * moments[2]) / weights
                totals[0, k] += mean * mean
                totals[1, k] += 1 / weights + 2 * math.log(2) * scales[k] * slope


class _Patch(NamedTuple):
    """How patches are compared: see `compare_lines` and `risks`."""

    profile: NDArray[np.float32]
    floor: np.float32
    scales: NDArray[np.float32]


def risks_by_numpy(
    wide: NDArray[np.float32],
    places: NDArray[np.int64],
    share: np.float32,
    patches: Sequence[_Patch],
    reach: int,
    totals: NDArray[np.float64],
) -> None:
    """As `risks`, of candidates up to `reach` away, for several patches.

    They grow, and cells that one has of the one before it have the same weight.
    """
    largest = len(patches[-1].profile) // 2
    count, span = 2 * reach + 1, reach + largest
    offsets = np.arange(-span, span + 1)
    for first in range(0, len(places), _AT_ONCE):
        y, x = places[first : first + _AT_ONCE].T
        block = wide[:, y + offsets[:, None, None], x + offsets[:, None]]  # pixels are last
        own = block[:, span, span][:, None, None]
        values = block[:, largest : largest + count, largest : largest + count] - own
        shape, before = (count, count, len(y)), -1
        distances, squares = np.zeros(shape, np.float32), np.empty(shape, np.float32)
        for (profile, floor, scales), into in zip(patches, totals, strict=True):
            half, weights = len(profile) // 2, np.outer(profile, profile)
            for s, t in product(range(-half, half + 1), repeat=2):
                if max(abs(s), abs(t)) <= before:
                    continue
                top, left = largest + s, largest + t
                for plane in block:
                    # A row of copies: NumPy takes twice as long for many short lines.
                    cell = np.tile(plane[span + s, span + t], (count, 1))
                    others = plane[top : top + count, left : left + count]
                    np.square(np.subtract(others, cell, out=squares), out=squares)
                    if weights[half + s, half + t] != 1:
                        np.multiply(squares, weights[half + s, half + t], out=squares)
                    np.add(distances, squares, out=distances)
            before = half
            near = min(half, reach)  # candidates whose patch has the pixel in it, too
            cells = slice(half - near, half + near + 1)
            around = slice(reach - near, reach + near + 1)
            mirrored = slice(span - near, span + near + 1)
            slopes = -weights[half, half] * values
            beyond = block[:, mirrored, mirrored][:, ::-1, ::-1]
            slopes[:, around, around] += weights[cells, cells, None] * (own - beyond)
            apart = distances - floor
            slopes *= apart >= 0
            np.maximum(apart, 0, out=apart)
            apart[reach, reach] = _FAR
            apart = np.ascontiguousarray(apart.reshape(-1, len(y)).T)[:, None]
            of_all = np.exp2(scales[:, None] * apart)
            for value, slope in zip(values, slopes, strict=True):
                four = np.stack((np.ones_like(value), value, slope, value * slope))
                moments = of_all @ four.reshape(4, -1, len(y)).transpose(2, 1, 0)
                sums, means, leaning, products = np.moveaxis(moments, -1, 0) / np.float64(share)
                sums += 1
                means /= sums
                into[0] += (means * means).sum(0)
                slope_of_mean = (products - means * leaning) / sums
                into[1] += (1 / sums + 2 * math.log(2) * scales * slope_of_mean).sum(0)


def estimate_strength(pixels: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return the ``filter_sigma`` of least estimated error for a picture with noise.

    - `pixels`: shape (height, width, channels). Without alpha; uint8, uint16 or float32.
    - `parameters`: the other parameters of non-local means; the strength that is found belongs to
      100 %.
    """
    corrected = parameters["weights"] == "corrected"
    sigma = parameters["sigma"] / 100 if corrected else flat_sigma(pixels)
    unit = _unit(parameters, sigma)
    if unit == 0:
        return 0.0
    factors = _factors(parameters)
    # The strength matters more than the patch; in strong noise, patches differ less.
    work = max(2 * _CHOICE * _WORK, _work_of_patch(sigma)) if corrected else _WORK
    errors = estimated_errors(pixels, parameters, sigma, unit * factors, work)
    return unit * of_least_error(errors, factors)


def estimate_patch(pixels: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return the ``patch`` of least estimated error, with the strength that suits it.

    That of source N, whose weights do not depend on the noise, is 7.
    """
    sigma = parameters["sigma"] / 100
    if parameters["weights"] != "corrected":
        return 7
    if sigma == 0:
        return _PATCHES[0]

    each = [{**parameters, "patch": patch} for patch in _PATCHES]
    strengths = [_unit(values, sigma) * _CORRECTED_FACTORS for values in each]
    errors = errors_of_patches(pixels, each, sigma, strengths, _work_of_patch(sigma))
    most = max(errors.min(), _ALIKE * errors.min())
    last = len(_CORRECTED_FACTORS) - 1
    alike = [
        (of_patch.argmin() == last, patch)
        for patch, of_patch in zip(_PATCHES, errors, strict=True)
        if of_patch.min() <= most
    ]
    return min(alike)[1]


def _work_of_patch(sigma: float) -> float:
    return _WORK * _CHOICE * min(max((sigma / _LIGHT) ** 2, 1), _MOST_NOISE)


def _factors(parameters: Mapping[str, Any]) -> NDArray[np.float64]:
    return _CORRECTED_FACTORS if parameters["weights"] == "corrected" else _FACTORS


def _unit(parameters: Mapping[str, Any], sigma: float) -> float:
    """Return the mean distance of patches that differ by noise."""
    return 2 * sigma**2 * float(patch_profile(parameters).sum() ** 2)


class _Drawn(NamedTuple):
    """Pixels at which the risk is estimated, and their candidates."""

    places: NDArray[np.int64]
    """Int, shape (pixels, 2). Rows and columns."""
    lines: NDArray[np.int64]
    """Int, shape (pixels, lines, 2). Row and column of the first candidate of each line."""
    length: int  # candidates of a line
    margin: int  # how far candidates and their patches lie beyond the picture
    share: np.float32  # which share of all candidates the lines have


def _draw(
    height: int, width: int, parameters: Mapping[str, Any], strengths: int, work: float
) -> _Drawn:
    """Draw as many pixels as there is time for, the same ones each time."""
    random = np.random.default_rng(0)
    side, reach = parameters["patch"], parameters["search_radius"]
    half, whole = side // 2, parameters["search"] == "image"
    if whole:
        count, length = min(height, -(-_CANDIDATES // width)), width
    else:
        count = length = 2 * reach + 1
    cells = side**2
    if parameters["weights"] == "corrected":
        # The same pixels for all patches: their errors are compared.
        cells = max(cells, _MOST_CELLS)
    operations = count * length * (2 * cells + 6 * strengths)
    chosen = min(max(int(work / operations), _FEWEST), _PIXELS, height * width)
    places = np.stack(
        np.divmod(random.choice(height * width, chosen, replace=False), width), axis=1
    )
    lines = np.zeros((chosen, count, 2), np.int64)
    if whole:
        lines[..., 0] = random.permuted(np.tile(np.arange(height), (chosen, 1)), axis=1)[:, :count]
        return _Drawn(places, lines, length, half, np.float32(count / height))
    lines[..., 0] = places[:, :1] + np.arange(-reach, reach + 1)
    lines[..., 1] = places[:, 1:] - reach
    return _Drawn(places, lines, length, half + reach, np.float32(1))


def estimated_errors(
    pixels: Pixels,
    parameters: Mapping[str, Any],
    sigma: float,
    strengths: NDArray[np.float64],
    work: float,
) -> NDArray[np.float64]:
    """Return the estimated mean squared errors, where white is 1, for some ``filter_sigma``.

    - `pixels`: shape (height, width, channels).
    - `sigma`: standard deviation of the noise, where white is 1.
    - `strengths`: shape (strengths,).
    - `work`: about how many operations are spent.
    """
    return errors_of_patches(pixels, [parameters], sigma, [strengths], work)[0]


def errors_of_patches(
    pixels: Pixels,
    each: Sequence[Mapping[str, Any]],
    sigma: float,
    strengths: Sequence[NDArray[np.float64]],
    work: float,
) -> NDArray[np.float64]:
    """As `estimated_errors`, for parameters whose patches grow; shape (patches, strengths)."""
    height, width, channels = pixels.shape
    parameters = each[-1]
    drawn = _draw(height, width, parameters, len(strengths[0]), work)
    places, lines, length, margin, share = drawn
    margins = ((margin, margin), (margin, margin), (0, 0))
    wide = np.pad(pixels, margins, mode="symmetric").transpose(2, 0, 1)
    wide = np.ascontiguousarray(wide, np.float32) / np.float32(white_level(pixels.dtype))
    together = channels if parameters["colour"] == "joint" else 1
    given = {"sigma": 100 * sigma, "strength": 100}
    patches = [
        _Patch(
            patch_profile(values).astype(np.float32),
            np.float32(together * noise_floor({**values, **given})),
            (-math.log2(math.e) / (together * of_patch)).astype(np.float32),
        )
        for values, of_patch in zip(each, strengths, strict=True)
    ]

    def add(first: int, part: slice) -> NDArray[np.float64]:
        """Return the sums of a group of channels over some of the pixels."""
        totals = np.zeros((len(patches), 2, len(strengths[0])))
        shape = (lines.shape[1], length)
        buffers = (
            np.empty(shape, np.float32),
            np.empty((together, *shape), np.float32),
            np.empty((together, *shape), np.float32),
        )
        group, at = wide[first : first + together], places[part] + margin
        tasks = [
            (group, at, lines[part] + margin, share, *patch, buffers, into)
            for patch, into in zip(patches, totals, strict=True)
        ]
        if parameters["search"] == "window" and risks.would_wait(*tasks[0]):
            risks_by_numpy(group, at, share, patches, parameters["search_radius"], totals)
        else:
            for task in tasks:
                risks(*task)
        return totals

    parts = [slice(part, None, _PARTS) for part in range(_PARTS)]
    tasks = list(product(range(0, channels, together), parts))
    totals = sum(on_cores(lambda task: add(*task), tasks))
    samples = len(places) * channels
    residuals, divergences = np.moveaxis(np.asarray(totals), 1, 0) / samples
    return residuals - sigma**2 + 2 * sigma**2 * divergences
