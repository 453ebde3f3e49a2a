"""Figures of how far a picture is from its reference.

The definitions and their defaults are those of scikit-image: mean_squared_error,
peak_signal_noise_ratio and structural_similarity (Wang et al., "Image quality assessment: from
error visibility to structural similarity", 2004) with its uniform 7x7 window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import Incomparable
from kernelscope.base.jit import kernel
from kernelscope.base.json_fields import Number
from kernelscope.base.parallel import sum_of_bands
from kernelscope.images.judging import comparable
from kernelscope.schema.samples import UNIT, Levels, levels_from, white_level

WINDOW = 7  # side of the square in which SSIM compares; smaller pictures have none

CELLS = WINDOW * WINDOW
K1, K2 = 0.01, 0.03
"""The constants of SSIM: they stabilise the quotient where mean or variance is near zero."""


@dataclass(frozen=True)
class Quality:
    """How far a picture is from its reference."""

    # Mean squared and mean absolute difference, in levels squared and levels of the type.
    mse: Number
    mae: Number
    psnr: Number  # peak signal-to-noise ratio in decibels; infinite for equal pictures
    ssim: Number | None  # structural similarity, at most 1; None for pictures under 7 pixels a side
    peak: Number | None = None
    """The range that PSNR and SSIM are relative to, where it is not that of the type."""
    black: Number = 0.0  # where that range begins; it ends at white

    @property
    def levels(self) -> str:
        """The range in words; empty where it is that of the type."""
        if self.peak is None:
            return ""
        black = f"black is {self.black:.4g}, " if self.black else ""
        return f"{black}white is {self.black + self.peak:.4g}"

    def figures(self) -> tuple[tuple[str, str], ...]:
        """Return (name, value in words) of each figure, for tables and lines of text."""
        ssim = f"{self.ssim:.4f}" if self.ssim is not None else f"none below {WINDOW}×{WINDOW}"
        white = f" ({self.levels})" if self.levels else ""
        return (
            ("PSNR", _psnr_text(self.psnr, white)),
            ("SSIM", ssim),
            ("MSE", f"{self.mse:.4g}"),
            ("MAE", f"{self.mae:.4g}"),
        )

    def describe(self) -> str:
        """Return ``PSNR 31.29 dB, SSIM 0.8912, MSE 48.31, MAE 5.123``."""
        return ", ".join(f"{name} {value}" for name, value in self.figures())


def _psnr_text(psnr: Number, white: str = "") -> str:
    return f"{psnr:.2f} dB{white}" if math.isfinite(psnr) else "∞ dB (equal)"


def judge(
    picture: NDArray[Any],
    reference: NDArray[Any],
    check: Callable[[], None] = lambda: None,
    mse: float | None = None,
    levels: Levels | None = None,
) -> Quality:
    """Compare `picture` with `reference`, over all channels, on all cores.

    - `picture`, `reference`: shape (height, width, channels). Colours only (see `colours`); uint8,
      uint16 or float32.
    - `check`: called every few milliseconds, on any thread; an error that it raises ends the
      comparison (`CancelToken.check`).
    - `mse`: the mean squared difference, if it is known already.
    - `levels`: by default 0 and 255 or 65535; of floats those of the reference, see `levels_of`.

    Raises `Incomparable` if types or shapes differ.
    """
    first, second, own = comparable(picture, reference)
    levels = levels or own
    white = levels.span
    exact = np.float64 if first.dtype.kind == "f" else np.int64

    def errors(start: int, stop: int) -> NDArray[Any]:
        totals = np.zeros(2, exact)
        add_errors(first[start:stop].reshape(-1), second[start:stop].reshape(-1), totals)
        return totals

    absolute, squared = (
        float(error) / first.size for error in sum_of_bands(errors, first, check=check)
    )
    if mse is None:
        mse = squared
    psnr = 10 * math.log10(white * white / mse) if mse > 0 else math.inf
    usual = levels == (0, white_level(first.dtype))
    ssim = _similarity(first, second, white, check)
    return Quality(mse, absolute, psnr, ssim, None if usual else white, levels.black)


def _similarity(
    first: NDArray[Any], second: NDArray[Any], white: float, check: Callable[[], None]
) -> float | None:
    """Return the mean of SSIM over all places where the window fits, or None without one."""
    height, width, channels = first.shape
    places = (height - WINDOW + 1, width - WINDOW + 1, channels)
    if min(places) < 1:
        return None
    # With sums in place of means both fractions are widened by these.
    c1 = (K1 * white) ** 2 * CELLS * CELLS
    c2 = (K2 * white) ** 2 * CELLS * (CELLS - 1)

    def similarities(start: int, stop: int) -> NDArray[Any]:
        totals = np.zeros(places[1] * channels)
        add_similarities(first[start:stop], second[start:stop], c1, c2, totals)
        return totals

    totals = sum_of_bands(similarities, first, WINDOW - 1, check)
    return float(totals.sum() / math.prod(places))


@kernel
def add_errors(first: Any, second: Any, totals: Any) -> None:
    """Add to `totals`, of int64 or float64, the sums of |first - second| and its square."""
    absolute = squared = totals.dtype.type(0)
    for i in range(first.size):
        error = totals.dtype.type(first[i]) - totals.dtype.type(second[i])
        absolute += abs(error)
        squared += error * error
    totals[0] += absolute
    totals[1] += squared


@kernel
def update_columns(first: Any, second: Any, sign: Any, columns: Any) -> None:
    """Add a row, times `sign`, to the four sums of every column."""
    sums, other_sums, squares, products = columns
    for i in range(sums.size):
        a, b = np.float64(first[i]), np.float64(second[i])
        sums[i] += sign * a
        other_sums[i] += sign * b
        squares[i] += sign * (a * a + b * b)
        products[i] += sign * (a * b)


@kernel
def add_windows(columns: Any, step: Any, totals: Any) -> None:
    """Set ``totals[i]`` to the sum of seven columns from `i` on, `step` apart."""
    b, c, d = columns[step:], columns[2 * step :], columns[3 * step :]
    e, f, g = columns[4 * step :], columns[5 * step :], columns[6 * step :]
    for i in range(totals.size):
        totals[i] = columns[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]


@kernel
def add_row_similarities(windows: Any, c1: Any, c2: Any, totals: Any) -> None:
    """Add SSIM at every place of a row to `totals`.

    With n cells, sums Σa, Σb and the sample covariance (nΣab - ΣaΣb) / n(n - 1), the four
    factors of the definition are multiplied by n² and n(n - 1); their quotient stays.
    """
    sums, other_sums, squares, products = windows
    for i in range(totals.size):
        cross = sums[i] * other_sums[i]
        square = sums[i] * sums[i] + other_sums[i] * other_sums[i]
        covariance = CELLS * products[i] - cross
        variance = CELLS * squares[i] - square
        above = (2 * cross + c1) * (2 * covariance + c2)
        totals[i] += above / ((square + c1) * (variance + c2))


@kernel
def add_similarities(first: Any, second: Any, c1: Any, c2: Any, totals: Any) -> None:
    """Add SSIM of all windows inside a band to the totals of its columns.

    Sums of whole numbers go down the columns: float64 holds them, and their products, exactly.
    Sums of floats restart with each row: a difference that a bright sample rounds away would be
    missing from all windows below it.
    """
    height, width, channels = first.shape
    columns = np.zeros((4, width * channels))
    windows = np.empty((4, totals.size))
    is_float = first.dtype.type(0.5) != 0
    for top in range(height - WINDOW + 1):
        entering = top + WINDOW - 1
        if top == 0 or is_float:
            columns[:] = 0
            entering = top
        else:
            row, other = first[top - 1], second[top - 1]
            update_columns(row.reshape(-1), other.reshape(-1), -1.0, columns)
        for y in range(entering, top + WINDOW):
            update_columns(first[y].reshape(-1), second[y].reshape(-1), 1.0, columns)
        for quantity in range(4):
            add_windows(columns[quantity], channels, windows[quantity])
        add_row_similarities(windows, c1, c2, totals)


_LEAST_AIR = 0.1  # share of voxels of 0 from which on the others have a figure of their own


@dataclass(frozen=True)
class VolumeQuality(Quality):
    """How far a volume is from its reference.

    White is the brightest voxel of the reference, and black is 0 or its darkest one if that is
    negative; errors are in the units of the voxels. SSIM is the mean over slices across z.
    """

    bias: Number = 0.0  # mean difference, positive where the volume is brighter than the reference
    psnr_inside: Number | None = None
    """PSNR where the reference is not 0: of a head without its air. None if little of it is 0, or
    some of it is negative."""

    def figures(self) -> tuple[tuple[str, str], ...]:
        found = (*super().figures(), ("bias", f"{self.bias:+.4g}"))
        if self.psnr_inside is None:
            return found
        return (*found, ("PSNR inside", _psnr_text(self.psnr_inside)))


def judge_volume(
    voxels: NDArray[Any],
    reference: NDArray[Any],
    check: Callable[[], None] = lambda: None,
    levels: Levels | None = None,
) -> VolumeQuality:
    """Compare `voxels` with `reference`, on all cores.

    - `voxels`, `reference`: shape (depth, height, width). Of any real type.
    - `check`: as for `judge`.
    - `levels`: by default those of the reference.

    Raises `Incomparable` if the shapes differ.
    """
    if voxels.shape != reference.shape:
        sizes = ("×".join(map(str, array.shape[::-1])) for array in (voxels, reference))
        raise Incomparable(
            f"Volumes of {' and '.join(sizes)} voxels cannot be compared.",
            "Compare volumes of the same size.",
        )
    if levels is None:
        levels = levels_from(float(reference.min()), float(reference.max()))
    white = levels.span
    slices, biases = [], []
    inside = np.count_nonzero(reference)
    has_air = levels.black == 0 and 0 < inside <= (1 - _LEAST_AIR) * reference.size
    squares = 0.0
    for plane, other in zip(voxels, reference, strict=True):
        slices.append(judge(_picture(plane, white), _picture(other, white), check, levels=UNIT))
        biases.append(float(plane.mean(dtype=np.float64) - other.mean(dtype=np.float64)))
        if has_air:
            change = plane.astype(np.float64) - other
            squares += float(np.square(change[other != 0]).sum())
    psnr_inside = None
    if has_air:
        psnr_inside = 10 * math.log10(white * white * inside / squares) if squares else math.inf
    mse = fmean(each.mse for each in slices)
    similarities = [each.ssim for each in slices if each.ssim is not None]
    return VolumeQuality(
        mse * white * white,
        fmean(each.mae for each in slices) * white,
        -10 * math.log10(mse) if mse > 0 else math.inf,
        fmean(similarities) if similarities else None,
        white,
        levels.black,
        fmean(biases),
        psnr_inside,
    )


def _picture(plane: NDArray[Any], white: float) -> NDArray[np.float32]:
    return np.asarray(plane[:, :, None] / white, np.float32)
