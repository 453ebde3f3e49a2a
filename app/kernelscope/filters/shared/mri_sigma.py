"""The noise in magnitude MRI: one sigma for a volume, or one for each voxel.

Magnitude MRI has Rician noise: u = |A + n|, where n is complex with Gaussian noise of standard
deviation sigma in both parts. Its variance is ``xi(A / sigma) sigma²``, where xi rises from
2 - pi / 2 without signal (the Rayleigh noise of the background) to 1 with much. The
standard deviation of u is therefore smaller than sigma where it is dark; Koay
and Basser, "Analytically exact correction scheme for signal extraction from noisy magnitude
MR signals", Journal of Magnetic Resonance 179, 2006, give xi and how to take it back.

A volume has shape (depth, height, width), or more components along a last axis, each of
which is estimated by itself.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Line, Number, Record, Voxels, kernel
from kernelscope.filters.shared.border_kernels import REFLECT, border_index
from kernelscope.filters.shared.non_local import NORMAL_MEDIAN
from kernelscope.schema.filter import CpuPass
from kernelscope.schema.samples import Components, NoiseMedians

_BLOCKS = 2**18
"""Blocks that are looked at, at most: the estimate is then good to about one per cent."""

_RAYLEIGH = (4 - math.pi) / math.pi
"""Variance over squared mean of Rayleigh noise, the most that Rician noise has."""


_SIGNAL, _BACKGROUND = 0.11, 0.17
"""Variance over mean square: up to the first there is signal, from the second on there is
none. Rayleigh noise has 0.21, Rician noise around twice its sigma 0.13; few samples say less."""

_LEAST_OF_THREE_1, _LEAST_OF_THREE_2 = 1.30, 1.14
"""Ratio of the mean square of noise to the least of three mean squares, for windows of radius
1 and 2: measured with Gaussian noise."""


@kernel
def rician_variance(variance: Number, mean: Number) -> Any:
    """Return sigma² of Rician noise with this variance around this mean; float32.

    1 / xi as a function of ``mean² / variance``, to 1.5 %: a fit to the implicit formula of
    Koay and Basser, which has to be solved by iteration.
    """
    dark = np.float32(1)  # 0: much signal; 1: none
    if variance < np.float32(_RAYLEIGH) * mean * mean:
        dark = variance / (np.float32(_RAYLEIGH) * mean * mean)
    light = np.sqrt(np.float32(1) - dark)
    factor = np.float32(1.3208) + light * (np.float32(-2.4464) + light * np.float32(1.3452))
    return variance * (np.float32(1) + dark * factor)


def rician_variances(
    variance: NDArray[np.float64], mean: NDArray[np.float64]
) -> NDArray[np.float64]:
    """As `rician_variance`, for arrays."""
    square = np.maximum(_RAYLEIGH * mean**2, np.finfo(np.float64).tiny)
    dark = np.minimum(variance / square, 1)
    light = np.sqrt(1 - dark)
    return np.asarray(variance * (1 + dark * (1.3208 + light * (-2.4464 + light * 1.3452))))


@kernel
def rician_share(power: Number) -> Any:
    """Return xi, the variance of Rician noise over sigma², for a mean square over sigma².

    To 0.8 %: a fit to the formula of Koay and Basser, which has Bessel functions.
    """
    signal = np.maximum(power - 2, 0)  # squared
    return 1 - (math.pi / 2 - 1) / (1 + signal * (0.3922 + 0.05036 * signal))


def rician_factor(power: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `rician_share`, for arrays."""
    return np.asarray(rician_share.function(power))


FLATTEST = 0.5
"""Share of the object's blocks that count, those with the least edges."""

FLATTEST_FOR_BETA = 0.25
"""The same where the strength of MRI NLM is estimated. Detail that is mistaken for noise is
smoothed away, so that it does more harm there than in the weights."""

_SLACK = 1e-9
"""Sums of floats differ in their last bits by their order: a block is as bright as the average one
within this share of the brightest."""


def estimate_global(volume: NDArray[Any], rician: bool = True) -> float:
    """Return sigma of the noise in a volume, in its units: of air, if there is, or of the object.

    - `volume`: shape (depth, height, width).
    - `rician`: False for Gaussian noise, of which air does not show more than the object does.
    """
    return estimates_by_share(volume, rician, FLATTEST)[0]


def estimates_by_share(volume: NDArray[Any], rician: bool, *flattest: float) -> list[float]:
    """Return `estimate_global` for each share of the object's blocks, see `object_sigmas`."""
    found = object_sigmas(volume, rician, *flattest)
    return _beside_air(found, volume) if rician else found


# Air ----------------------------------------------------------------------------------

_AIR = 4
"""Side of the squares, within slices, in which air is looked for."""

_MOST_SQUARES, _FEWEST_SQUARES, _LEAST_SHARE = 2**16, 256, 0.03
"""Squares that are looked at, at most; and that have to be air, in number and as a share."""

_DIM, _BRIGHT = 0.4, 1.8
"""Mean squares of air over their mean: of 16 squares of Rayleigh noise, whose mean has a standard
deviation of a quarter."""

_QUANTILES = ((0.1, 0.4590), (0.5, 1.1774), (0.9, 2.1460))
"""Shares of Rayleigh noise of sigma 1, and the value below which they lie."""

_ALIKE = 0.1
"""How far these quantiles may be from those of sigma, as a share."""

_CELLS, _FEWEST_OF_CELL, _UNEVEN = 5, 64, 0.05
"""Parts of a volume along each axis, the squares of air from which on such a cell counts, and the
root mean square of the relative distances of their sigmas: up to 0.03 in a scan of even noise, 0.07
and 0.10 in two whose noise is three times as strong in the middle as in the corners."""

_ROUNDED = 1.0
"""Sigma in steps of whole numbers below which quantiles say nothing."""

_STRONGER = 0.9
"""The object's estimate is at least this share of the air's, unless air was filtered: as detail is
taken for noise, it may be larger."""


def air_sigma(volume: NDArray[Any]) -> float | None:
    """Return sigma of the Rayleigh noise in the air around an object; None without any.

    Half the mean square there is sigma² (Nowak 1999). Squares of 4×4 voxels are air if their power
    is nearly the least one that many have. What was found counts if its voxels have the quantiles
    of a Rayleigh distribution, which air that was cut out, smoothed or raised does not, and sigma
    is nearly the same in all parts of the volume.
    """
    depth, height, width = (volume.shape[0], volume.shape[1] // _AIR, volume.shape[2] // _AIR)
    if depth * height * width < _FEWEST_SQUARES:
        return None
    # Whole rows of squares: single ones, one here and one there, take four times as long.
    rows = np.arange(depth * height)
    if len(rows) * width > _MOST_SQUARES:
        rows = np.linspace(0, len(rows) - 1, max(1, _MOST_SQUARES // width)).astype(int)
    z, y = np.divmod(rows, height)
    lines = volume[z[:, None], y[:, None] * _AIR + np.arange(_AIR), : width * _AIR]
    # The voxels of a square below each other: NumPy is slow along short axes.
    squares = np.stack([lines[:, s, t::_AIR].ravel() for s, t in np.ndindex(_AIR, _AIR)])
    varied = squares.min(0) != squares.max(0)
    varied &= np.count_nonzero(squares, 0) > len(squares) / 2
    if varied.sum() < _FEWEST_SQUARES:
        return None
    squares, numbers = squares[:, varied], np.flatnonzero(varied)
    power = np.einsum("ij,ij->j", squares, squares, dtype=np.float64) / len(squares)
    level = float(np.quantile(power, 0.01))
    for _ in range(50):
        air = (power > _DIM * level) & (power < _BRIGHT * level)
        before, level = level, float(power[air].mean()) if air.any() else level
        if abs(level - before) <= 1e-6 * level:
            break
    sigma = math.sqrt(level / 2)
    if air.sum() < max(_FEWEST_SQUARES, _LEAST_SHARE * len(varied)) or not sigma:
        return None
    if volume.dtype.kind != "f" and sigma < _ROUNDED:
        return None
    rounding = 0.0 if volume.dtype.kind == "f" else 0.5
    inside = squares[:: max(1, _AIR**2 * int(air.sum()) // _MOST_SQUARES), air]
    shares, values = np.transpose(_QUANTILES)
    away = np.abs(np.quantile(inside, shares) - values * sigma)
    if (away > _ALIKE * values * sigma + rounding).any():
        return None
    # Noise that varies over the head is neither that of the air nor the same in all of it.
    row, x = np.divmod(numbers[air], width)
    cells = (z[row] * _CELLS // depth * _CELLS + y[row] * _CELLS // height) * _CELLS
    cells += x * _CELLS // width
    counts = np.bincount(cells)
    full = counts >= _FEWEST_OF_CELL
    means = np.bincount(cells, power[air])[full] / counts[full]
    away = np.sqrt(means / 2) / sigma - 1
    return None if len(away) and np.square(away).mean() > _UNEVEN**2 else sigma


def _beside_air(found: list[float], volume: NDArray[Any]) -> list[float]:
    """Return sigma of the air in place of estimates from the object that are not less than that."""
    air = air_sigma(volume)
    return [each if air is None or each < _STRONGER * air else air for each in found]


# The object ---------------------------------------------------------------------------


def object_sigmas(volume: NDArray[Any], rician: bool, *flattest: float) -> list[float]:
    """Return sigma of the noise in the object, in the units of a volume, for each share of blocks.

    The object-based estimate of Coupé et al., "Robust Rician noise estimation for MR images",
    Medical Image Analysis 14, 2010: the median absolute deviation of the finest diagonal
    details of the Haar wavelet inside the object, taken back to sigma by the object's
    signal-to-noise ratio. It needs no background, and one that was cut out or filtered does
    not disturb it. Unlike theirs, the object is where the volume is brighter than on average,
    and edges are known by the other details of the same eight voxels.

    - `volume`: shape (depth, height, width). Axes of length 1 are left out: a single slice has the
      details of a picture.
    - `rician`: False for Gaussian noise, which needs no correction.
    - `flattest`: which share of the object's blocks counts, those with the least edges. Fewer let
      less structure in and are noisier themselves.
    """
    if math.prod(volume.shape) == 1:
        return [0.0] * len(flattest)
    means, edges, details = _haar(volume)
    largest = np.abs(means).max()
    inside = means >= means.mean(dtype=np.float64) - _SLACK * float(largest)
    sigmas = []
    for most in np.quantile(edges[inside], flattest, method="lower"):
        flat = inside & (edges <= most)
        medians = NoiseMedians(_middles(details[flat]), _middles(means[flat]))
        sigmas.append(_sigma_of(medians, rician))
    return sigmas


def estimate_component(source: Components, number: int, rician: bool) -> float:
    """Return `estimate_global` of a volume of a scan, from the card if that has the volume."""
    volume = source.parts[number]
    if volume.size > 1:
        medians = source.noise_medians(number, FLATTEST, _stride(volume.shape))
        if medians is not None:
            found = _sigma_of(medians, rician)
            return _beside_air([found], volume)[0] if rician else found
    return estimate_global(volume, rician)


def _sigma_of(medians: NoiseMedians, rician: bool) -> float:
    sigma = sum(medians.details) / 2 / NORMAL_MEDIAN
    if rician:
        mean = np.float32(sum(medians.means) / 2)
        sigma = math.sqrt(rician_variance.function(np.float32(sigma**2), mean))
    return sigma


def _middles(values: NDArray[np.float32]) -> tuple[float, float]:
    """Return the two middle ones of an odd or even number of values."""
    low, high = (values.size - 1) // 2, values.size // 2
    ordered = np.partition(values, (low, high))
    return float(ordered[low]), float(ordered[high])


def _stride(shape: tuple[int, ...]) -> int:
    """Return the voxels from one block to the next, so that there are not too many."""
    axes = sum(side > 1 for side in shape)
    surplus = math.prod(shape) / 2**axes / _BLOCKS
    return 2 * math.ceil(max(1.0, surplus) ** (1 / axes))


def _haar(
    volume: NDArray[Any],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return mean, edges and magnitude of the finest detail of blocks of two voxels an axis.

    The transform is orthonormal: white noise has the same variance in each of its bands. Edges are
    the root of the sum of squares of bands that are high along one axis. Large volumes are left out
    in part, evenly. ``haar.cu`` has the same numbers, bit by bit: sums are those of doubles, in the
    same order, and rounded once to floats.
    """
    axes = [axis for axis in range(3) if volume.shape[axis] > 1]
    stride, size = _stride(volume.shape), 2.0 ** len(axes)
    # The corners of all blocks, and then the bands, by whether they are high along each axis.
    bands = {}
    for corner in product(*((0, 1) if axis in axes else (0,) for axis in range(3))):
        places = (
            slice(first, side - 1 + first if axis in axes else None, stride)
            for axis, (first, side) in enumerate(zip(corner, volume.shape, strict=True))
        )
        bands[corner] = volume[tuple(places)].astype(np.float64)
    for axis in axes:
        for low in [corner for corner in bands if not corner[axis]]:
            high = (*low[:axis], 1, *low[axis + 1 :])
            first, second = bands[low], bands[high]
            bands[low], bands[high] = first + second, first - second
    mean, *_, detail = bands.values()
    edges = np.zeros_like(mean)
    for band in (band for order, band in bands.items() if sum(order) == 1 < len(axes)):
        edges += band * band
    return (
        (mean / size).astype(np.float32),
        np.sqrt(edges / size).astype(np.float32),
        (np.abs(detail) / math.sqrt(size)).astype(np.float32),
    )


@kernel
def squared_residual(
    volume: Array, z: Index, y: Index, x: Index, first: Record, second: Record
) -> Any:
    """Return the square of Immerkær's mask in the plane of two axes, given as unit steps.

    (1 -2 1) along one axis and along the other, in units in which noise keeps its variance.
    Slopes vanish, and so does an edge along either axis.
    """
    total = np.float32(4) * volume[z, y, x]
    for p in (-1, 1):
        zz, yy, xx = z + p * first[0], y + p * first[1], x + p * first[2]
        beside = volume[z + p * second[0], y + p * second[1], x + p * second[2]]
        total -= np.float32(2) * (volume[zz, yy, xx] + beside)
        for q in (-1, 1):
            total += volume[zz + q * second[0], yy + q * second[1], xx + q * second[2]]
    return total * total / np.float32(36)


@kernel
def noise_variance(variance: Number, power: Number) -> Any:
    """Return sigma² of Rician noise with this variance, where the mean square is `power`.

    Background has half its power for sigma² (see `estimate_local`), where there is signal
    the variance is sigma². The share of the variance in the power distinguishes them.
    Where all is 0, as next to a head that was cut out, there is no noise either.
    """
    dark = np.float32(0)
    if power == 0:
        dark = np.float32(1)
    elif variance > np.float32(_SIGNAL) * power:
        dark = (variance / power - np.float32(_SIGNAL)) / np.float32(_BACKGROUND - _SIGNAL)
    return variance + min(dark, np.float32(1)) * (power / np.float32(2) - variance)


@kernel
def add_residuals(volume: Array, z: Index, margin: Index, deep: Flag, columns: Array) -> None:
    """Add squared residuals in each plane, and last squares, of the voxels of slice `z`.

    `margin` is the row and column of `volume` at which `columns` begins.
    """
    planes = columns.shape[0] - 1
    for row in range(columns.shape[1]):
        y = row + margin
        for column in range(columns.shape[2]):
            x = column + margin
            columns[0, row, column] += squared_residual(volume, z, y, x, (0, 1, 0), (0, 0, 1))
            if deep:
                columns[1, row, column] += squared_residual(volume, z, y, x, (1, 0, 0), (0, 0, 1))
                columns[2, row, column] += squared_residual(volume, z, y, x, (1, 0, 0), (0, 1, 0))
            columns[planes, row, column] += volume[z, y, x] ** 2


@kernel
def local_sigmas(
    extended: Array,
    least: Line,
    sigmas: Array,
    window: Index,
    rician: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write the noise around each voxel of slices `start` to `stop`; see `estimate_local`.

    - `extended`: float32, shape (components, slices, rows, columns). The volume, and at least one
      mirrored voxel more than the window reaches around it. Without such slices every slice is a
      picture.
    - `least`: float64, shape (components,). Smaller sigmas are raised to this.
    - `sigmas`: float32, shape (components, depth, height, width).
    - `window`: radius of the window.
    """
    _, depth, height, width = sigmas.shape
    inset = (extended.shape[1] - depth) // 2
    margin = (extended.shape[2] - height) // 2 - window
    deep = window if inset else 0
    planes = 3 if deep else 1
    side = 2 * window + 1
    cells = np.float32((2 * deep + 1) * side * side)
    unbiased = np.float32(1)
    if deep:
        unbiased = np.float32(_LEAST_OF_THREE_1 if window == 1 else _LEAST_OF_THREE_2)
    # Summed up over the slices.
    columns = np.empty((planes + 1, height + 2 * window, width + 2 * window), np.float32)
    totals = np.empty(planes + 1, np.float32)
    for unit in range(start, stop):
        c, z = unit // depth, unit % depth
        volume = extended[c]
        columns[:] = 0
        for zz in range(z + inset - deep, z + inset + deep + 1):
            add_residuals(volume, zz, margin, deep > 0, columns)
        for y in range(height):
            for x in range(width):
                totals[:] = 0
                for row in range(y, y + side):
                    for column in range(x, x + side):
                        for plane in range(planes + 1):
                            totals[plane] += columns[plane, row, column]
                variance = unbiased * totals[:planes].min() / cells
                if rician:
                    variance = noise_variance(variance, totals[planes] / cells)
                sigmas[c, z, y, x] = max(np.sqrt(variance), np.float32(least[c]))


def plan_local(
    extended: NDArray[np.float32],
    sigmas: NDArray[np.float32],
    least: NDArray[np.float64],
    window: int,
    rician: bool,
) -> CpuPass:
    arguments = (extended, least, sigmas, window, rician)
    return CpuPass(local_sigmas, arguments, sigmas.shape[0] * sigmas.shape[1])


@kernel
def cut_out(source: Voxels, place: Line, block: Array) -> None:
    """Write the surroundings of a voxel, which is in the middle of `block`, mirrored at borders."""
    depth, height, width, components = source.shape
    _, slices, rows, columns = block.shape
    for s in range(slices):
        z = border_index(place[0] + s - slices // 2, depth, REFLECT)
        for r in range(rows):
            y = border_index(place[1] + r - rows // 2, height, REFLECT)
            for t in range(columns):
                x = border_index(place[2] + t - columns // 2, width, REFLECT)
                for c in range(components):
                    block[c, s, r, t] = source[z, y, x, c]


def estimate_around(
    source: NDArray[Any],
    least: NDArray[np.float64],
    window: int,
    rician: bool,
    deep: bool,
    places: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the result of `estimate_local` for some voxels only, shape (voxels, components).

    - `source`: shape (depth, height, width, components).
    - `least`: shape (components,). Smaller sigmas are raised to this.
    - `places`: int, shape (voxels, 3).
    """
    margin, components = window + 1, source.shape[3]
    side = 2 * margin + 1
    block = np.empty((components, side if deep else 1, side, side), np.float32)
    sigmas = np.empty((components, 1, 1, 1), np.float32)
    found = np.empty((len(places), components))
    for number, place in enumerate(places):
        cut_out(source, place, block)
        sweep = plan_local(block, sigmas, least, window, rician)
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
        found[number] = sigmas[:, 0, 0, 0]
    return found


def estimate_local(
    volume: NDArray[Any], window: int = 1, rician: bool = True, deep: bool = True
) -> NDArray[np.float32]:
    """Return sigma around each voxel, in the volume's units; shape (depth, height, width).

    The variance is the mean squared residual in a window around the voxel, of the mask of
    Immerkær, "Fast noise variance estimation", Computer Vision and Image Understanding 64,
    1996, and of its counterparts in the two planes across slices: the least of the three,
    since few edges are in all planes. (It is then scaled so that its mean is right for pure noise.)
    Where Rician noise has no signal under it, sigma² is instead half the mean square: Nowak,
    "Wavelet-based Rician noise removal for magnetic resonance imaging", IEEE Transactions on
    Image Processing 8, 1999.

    - `volume`: shape (depth, height, width).
    - `window`: radius of the window, 1 or 2.
    - `rician`: False for Gaussian noise.
    - `deep`: whether windows and residuals extend through slices.
    """
    margin = window + 1
    margins = ((margin, margin) if deep else (0, 0), (margin, margin), (margin, margin))
    extended = np.pad(volume, margins, mode="symmetric").astype(np.float32)[np.newaxis]
    sigmas = np.empty((1, *volume.shape), np.float32)
    sweep = plan_local(extended, sigmas, np.zeros(1), window, rician)
    sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return sigmas[0]
