"""The noise in magnitude MRI: one sigma for a volume, or one for each voxel.

Magnitude MRI has Rician noise: u = |A + n|, where n is complex with Gaussian noise of standard
deviation sigma in both parts. Its variance is ``xi(A / sigma) sigma²``, where xi rises from
2 - pi / 2 without signal (the Rayleigh noise of the background) to 1 with much. What is
measured as the standard deviation of u therefore falls short of sigma where it is dark; Koay
and Basser, "Analytically exact correction scheme for signal extraction from noisy magnitude
MR signals", Journal of Magnetic Resonance 179, 2006, give xi and how to take it back.

A volume has shape (depth, height, width), or more components along a last axis, each of
which is estimated by itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.filters.jit import kernel
from app.filters.spec import CpuPass

_NORMAL_MEDIAN = 0.6744897501960817
"""Median of the magnitude of a normal random number of standard deviation 1."""

_BLOCKS = 2**18
"""Blocks that are looked at, at most: the estimate is then good to about half a per cent."""

_RAYLEIGH = (4 - math.pi) / math.pi
"""Variance over squared mean of Rayleigh noise, the most that Rician noise has."""


@kernel
def rician_variance(variance: Any, mean: Any) -> Any:
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


def estimate_global(volume: NDArray[Any], rician: bool = True) -> float:
    """Return sigma of the noise in a volume, in its units.

    The object-based estimate of Coupé et al., "Robust Rician noise estimation for MR images",
    Medical Image Analysis 14, 2010: the median absolute deviation of the finest diagonal
    details of the Haar wavelet inside the object, taken back to sigma by the object's
    signal-to-noise ratio. It needs no background, and one that was cut out or filtered does
    not disturb it. Unlike theirs, the object is where the volume is brighter than on average,
    and edges are known by the other details of the same eight voxels.

    Parameters
    ----------
    volume : ndarray, shape (depth, height, width)
        Axes of length 1 are left out: a single slice has the details of a picture.
    rician : bool
        False for Gaussian noise, which needs no correction.
    """
    means, edges, details = _haar(volume)
    if not details.size:
        return 0.0
    inside = means >= means.mean()
    inside &= edges <= np.median(edges[inside])
    sigma = float(np.median(np.abs(details[inside]))) / _NORMAL_MEDIAN
    if rician:
        mean = float(np.median(means[inside]))
        sigma = math.sqrt(rician_variance.function(np.float32(sigma**2), np.float32(mean)))
    return sigma


def _haar(volume: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return mean, squared edges and finest detail of blocks of two voxels along each axis.

    The transform is orthonormal: white noise has the same variance in each of its bands.
    Large volumes are left out in part, evenly.
    """
    axes = [axis for axis in range(3) if volume.shape[axis] > 1]
    surplus = volume.size / 2 ** len(axes) / _BLOCKS
    stride = 2 * math.ceil(max(1.0, surplus) ** (1 / max(1, len(axes))))
    bands = [(0, volume)]
    for axis in axes:
        bands = [
            (order + high, band)
            for order, whole in bands
            for high, band in enumerate(_haar_pair(whole, axis, stride))
        ]
    details = bands[-1][1] if axes else np.empty(0)
    edges = sum((band**2 for order, band in bands if order == 1 < len(axes)), 0 * details)
    return bands[0][1] / math.sqrt(2 ** len(axes)), edges, details


def _haar_pair(
    volume: NDArray[Any], axis: int, stride: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums and differences of voxels that are neighbours along an axis."""
    lines = np.moveaxis(volume, axis, 0)
    second = lines[1::stride].astype(np.float64)
    first = lines[: lines.shape[0] - 1 : stride]
    return tuple(
        np.moveaxis(band, 0, axis) / math.sqrt(2) for band in (first + second, first - second)
    )  # type: ignore[return-value]


@kernel
def square_residuals(extended: Any, squares: Any, deep: Any, start: Any, stop: Any) -> None:
    """Write the squared pseudo-residuals of slices `start` to `stop` of `squares`.

    A voxel less the mean of its neighbours along the axes, in units in which noise keeps its
    variance: Gasser, Sroka and Jennen-Steinmetz, "Residual variance and residual pattern in
    nonlinear regression", Biometrika 73, 1986.

    Parameters
    ----------
    extended : ndarray of float32, shape (components, slices, rows, columns)
    squares : ndarray of float32, shape (components, slices, rows, columns)
        The middle of `extended`, at least one voxel from its edges.
    deep : int
        1: neighbours in other slices count, and there are such; 0: they do not.
    """
    inset_z = (extended.shape[1] - squares.shape[1]) // 2
    inset = (extended.shape[2] - squares.shape[2]) // 2
    neighbours = np.float32(4 + 2 * deep)
    share = neighbours / (neighbours + np.float32(1))
    for z in range(start, stop):
        for c in range(squares.shape[0]):
            above = extended[c, z + inset_z - deep]
            plane = extended[c, z + inset_z]
            below = extended[c, z + inset_z + deep]
            for row in range(squares.shape[2]):
                y = row + inset
                for column in range(squares.shape[3]):
                    x = column + inset
                    around = plane[y - 1, x] + plane[y + 1, x] + plane[y, x - 1] + plane[y, x + 1]
                    if deep:
                        around += above[y, x] + below[y, x]
                    residual = plane[y, x] - around / neighbours
                    squares[c, z, row, column] = share * residual * residual


@kernel
def local_sigmas(
    extended: Any, squares: Any, least: Any, sigmas: Any, rician: Any, start: Any, stop: Any
) -> None:
    """Write the noise around each voxel of slices `start` to `stop`.

    The mean of `squares` in a window is the variance of u there; with `rician` it is taken
    back to sigma² by the mean of u in the same window.

    Parameters
    ----------
    extended, squares : ndarray of float32
        See `square_residuals`. `squares` reaches beyond the volume by the window's radius.
    least : ndarray of float64, shape (components,)
        Smaller sigmas are raised to this.
    sigmas : ndarray of float32, shape (components, depth, height, width)
    """
    _, _, height, width = sigmas.shape
    side_z = squares.shape[1] - sigmas.shape[1] + 1
    side = squares.shape[2] - height + 1
    inset_z = (extended.shape[1] - squares.shape[1]) // 2
    inset = (extended.shape[2] - squares.shape[2]) // 2
    cells = np.float32(side_z * side * side)
    for z in range(start, stop):
        for c in range(sigmas.shape[0]):
            for y in range(height):
                for x in range(width):
                    variance = np.float32(0)
                    mean = np.float32(0)
                    for zz in range(z, z + side_z):
                        for yy in range(y, y + side):
                            for xx in range(x, x + side):
                                variance += squares[c, zz, yy, xx]
                                mean += extended[c, zz + inset_z, yy + inset, xx + inset]
                    variance /= cells
                    if rician:
                        variance = rician_variance(variance, mean / cells)
                    sigmas[c, z, y, x] = max(np.sqrt(variance), np.float32(least[c]))


def plan_local(
    extended: NDArray[np.float32],
    sigmas: NDArray[np.float32],
    least: NDArray[np.float64],
    window: int,
    rician: bool,
) -> list[CpuPass]:
    """Return the passes that write `sigmas`; see `local_sigmas`.

    Parameters
    ----------
    extended : ndarray, shape (components, slices, rows, columns)
        The volume and at least `window` + 1 mirrored voxels around it; it may have no more
        slices than the volume, which is then estimated slice by slice.
    """
    components, depth, height, width = sigmas.shape
    deep = extended.shape[1] > depth
    squares: NDArray[np.float32] = np.empty(
        (components, depth + 2 * window * deep, height + 2 * window, width + 2 * window),
        np.float32,
    )
    return [
        CpuPass(square_residuals, (extended, squares, int(deep)), squares.shape[1]),
        CpuPass(local_sigmas, (extended, squares, least, sigmas, rician), depth),
    ]


def estimate_local(
    volume: NDArray[Any], window: int = 1, rician: bool = True, deep: bool = True
) -> NDArray[np.float32]:
    """Return sigma around each voxel, in the volume's units; shape (depth, height, width).

    The mean squared pseudo-residual in a window, after Coupé et al., "An optimized blockwise
    nonlocal means denoising filter for 3-D magnetic resonance images", IEEE Transactions on
    Medical Imaging 27, 2008, who take it over the whole volume.

    Parameters
    ----------
    volume : ndarray, shape (depth, height, width)
    window : int
        Radius of the window, 1 or 2.
    rician : bool
        False for Gaussian noise, which needs no correction.
    deep : bool
        Whether windows and residuals extend through slices.
    """
    margin = window + 1
    margins = ((margin, margin) if deep else (0, 0), (margin, margin), (margin, margin))
    extended = np.pad(volume, margins, mode="symmetric").astype(np.float32)[np.newaxis]
    sigmas = np.empty((1, *volume.shape), np.float32)
    for sweep in plan_local(extended, sigmas, np.zeros(1), window, rician):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return sigmas[0]
