"""How strong non-local means of MRI should be: the beta of least estimated error.

As for pictures (`filters.nlm.strength`), Stein's unbiased risk estimate says from the noisy
volumes alone how far averages f are from the voxels without noise:

    mean squared error = mean of (f(i) - y(i))² - v(i) + 2 v(i) df(i) / dy(i)

It holds for Gaussian noise of variance v. Rician noise is nearly that where there is signal, so
only voxels around which there is some are looked at, with the variance that Rician noise has there
(Koay and Basser 2006, see `filters.shared.mri_sigma`) and with averages of voxels in place of their
squares. How much signal a voxel has, which that variance depends on, a first average says; where
it has none, the error is the rest that the filter leaves there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Line, Number, Record, Voxels, kernel
from kernelscope.base.parallel import on_cores
from kernelscope.filters.mri_nlm.cpu import reach_of
from kernelscope.filters.shared.mri_noise import (
    is_rician,
    least_sigmas,
    resolve,
    weights_and_strength,
)
from kernelscope.filters.shared.mri_sigma import (
    cut_out,
    estimate_around,
    rician_factor,
    rician_share,
)
from kernelscope.filters.shared.mri_sigma_map import map_sigma, sigmas_at
from kernelscope.filters.shared.non_local import add_moments, fused, of_least_error, power_of_two
from kernelscope.schema.samples import Pixels

Radii = tuple[int, int, int]

BETAS = 2.0 ** np.arange(-3, 2.01, 0.5)
"""Strengths that are tried."""

_FIRST = 5
"""Which of them the average has that says how much signal there is."""

_WORK = 4e8
"""About how many operations are spent: some tenths of a second of one core."""

_PARTS = 8
"""Into which voxels are divided, for several cores; always as many, so that sums are the same."""

_VOXELS, _FEWEST = 4096, 256
"""Voxels at which the risk is estimated, at most and at least."""

_TRIES = 8
"""How many voxels are drawn for each that is wanted: most of a scan is background."""

_AT_ONCE = 32
"""Voxels that are computed together without compiled code: more would not fit into a cache."""

_SIGNAL = 3.0
"""Mean square over sigma² from which on there is signal: 2 without any; the mean of 27 voxels
without any exceeds this in 1 of 100 cases."""

_FAR = np.float32(1e30)


@kernel
def compare_patches(
    block: Array,
    search: Record,
    patch: Record,
    strengths: Line,
    apart: Array,
    slopes: Array,
    values: Array,
) -> None:
    """Write distances from the middle of a block to candidates, their derivatives, and values.

    - `block`: float32, shape (components, slices, rows, columns).
    - `search`, `patch`: radii along z, y and x.
    - `strengths`: float32, shape (components,). Factors of squared differences in D, with beta 1.
    - `apart`: float32, shape (lines, length). Distances; very far for the voxel itself. A line is a
      row of the search window.
    - `slopes`, `values`: float32, shape (components, lines, length). Half the derivative of the
      distance by the voxel, and how much more the candidate is.
    """
    z, y, x = block.shape[1] // 2, block.shape[2] // 2, block.shape[3] // 2
    length = apart.shape[1]
    first = x - search[2]
    for line in range(apart.shape[0]):
        dz = line // (2 * search[1] + 1) - search[0]
        dy = line % (2 * search[1] + 1) - search[1]
        distances = apart[line]
        distances[:] = 0
        for c in range(block.shape[0]):
            strength = strengths[c]
            for s in range(-patch[0], patch[0] + 1):
                for r in range(-patch[1], patch[1] + 1):
                    for t in range(-patch[2], patch[2] + 1):
                        own = block[c, z + s, y + r, x + t]
                        others = block[c, z + dz + s, y + dy + r, first + t :]
                        for j in range(length):
                            difference = others[j] - own
                            distances[j] += strength * (difference * difference)
            # The voxel is in the middle of its own patch, and may lie in the candidate's.
            own, others = block[c, z, y, x], block[c, z + dz, y + dy, first:]
            for j in range(length):
                values[c, line, j] = others[j] - own
                slopes[c, line, j] = -strength * values[c, line, j]
            if abs(dz) <= patch[0] and abs(dy) <= patch[1]:
                for dx in range(-min(patch[2], search[2]), min(patch[2], search[2]) + 1):
                    opposite = block[c, z - dz, y - dy, x - dx]
                    slopes[c, line, dx + search[2]] += strength * (own - opposite)
        if dz == 0 and dy == 0:
            distances[search[2]] = _FAR


@fused
def add_squares(distances: Line, values: Line, scale: Number) -> Any:
    """Return the sum of weights times squared values."""
    total = np.float32(0)
    for j in range(distances.size):
        total += power_of_two(scale * distances[j]) * (values[j] * values[j])
    return total


@kernel
def mean_power(
    own: Number, distances: Line, slopes: Line, values: Line, scale: Number, moments: Line
) -> Any:
    """Return the average of squares that a voxel of value `own` has at a strength.

    `values` are the differences from it; `moments` is overwritten.
    """
    moments[:] = 0
    add_moments(distances, slopes, values, scale, moments)
    more = 2 * own * moments[1] + add_squares(distances, values, scale)
    return own * own + more / (1 + moments[0])


@kernel
def risks(
    source: Voxels,
    places: Array,
    noise: Array,
    strengths: Array,
    scales: Line,
    first: Number,
    radii: Record,
    work: Record,
    totals: Array,
) -> None:
    """Add up estimated squared errors over voxels.

    - `source`: shape (depth, height, width, components).
    - `places`: int, shape (voxels, 3).
    - `noise`: float64, shape (voxels, components). Sigma²; 0 where a component does not count.
    - `strengths`: float32, shape (voxels, components). See `compare_patches`.
    - `scales`: float32, shape (betas,). Make a distance the binary logarithm of its weight.
    - `first`: float32. That of the average which says how much signal there is; 0 for Gaussian
      noise.
    - `radii`: of the search window and of patches, along z, y and x.
    - `work`: `block`, `apart`, `slopes` and `values`.
    - `totals`: float64, shape (components, betas).
    """
    block, apart, slopes, values = work
    moments = np.empty(4)
    flat = apart.reshape(-1)
    for number in range(places.shape[0]):
        cut_out(source, places[number], block)
        compare_patches(block, radii[0], radii[1], strengths[number], apart, slopes, values)
        for c in range(source.shape[3]):
            variance = noise[number, c]
            if variance == 0:
                continue
            own_slopes, own_values = slopes[c].reshape(-1), values[c].reshape(-1)
            if first != 0:
                own = source[places[number, 0], places[number, 1], places[number, 2], c]
                power = mean_power(own, flat, own_slopes, own_values, first, moments) / variance
                if power < _SIGNAL:
                    # There is no signal: whatever the filter leaves is its error.
                    for k in range(scales.size):
                        rest = mean_power(own, flat, own_slopes, own_values, scales[k], moments)
                        totals[c, k] += max(rest - 2 * variance, 0)
                    continue
                variance *= rician_share(power)
            for k in range(scales.size):
                moments[:] = 0
                add_moments(flat, own_slopes, own_values, scales[k], moments)
                weights = 1 + moments[0]
                mean = moments[1] / weights
                slope = (moments[3] - mean * moments[2]) / weights
                divergence = 1 / weights + 2 * math.log(2) * scales[k] * slope
                totals[c, k] += mean * mean + variance * (2 * divergence - 1)


def risks_by_numpy(
    source: Pixels,
    places: NDArray[np.int64],
    noise: NDArray[np.float64],
    strengths: NDArray[np.float32],
    scales: NDArray[np.float32],
    first: np.float32,
    radii: tuple[Radii, Radii],
    totals: NDArray[np.float64],
) -> None:
    """As `risks`, for the seconds in which that is compiled for the first time."""
    search, patch = radii
    spans, counts = np.add(search, patch), tuple(2 * radius + 1 for radius in search)
    mirrored = [
        np.pad(np.arange(length), span, mode="symmetric")
        for length, span in zip(source.shape, spans, strict=False)
    ]
    near = np.minimum(search, patch)  # candidates whose patch has the voxel in it, too
    within = tuple(slice(s - n, s + n + 1) for s, n in zip(search, near, strict=True))
    opposite = tuple(
        slice(s + n, s - n - 1 if s > n else None, -1) for s, n in zip(spans, near, strict=True)
    )
    inner = tuple(slice(p, p + count) for p, count in zip(patch, counts, strict=True))
    tried = np.append(first, scales) if first else scales
    for number in range(0, len(places), _AT_ONCE):
        part = slice(number, number + _AT_ONCE)
        z, y, x = (
            line[place + np.arange(2 * span + 1)[:, None]]
            for line, place, span in zip(mirrored, places[part].T, spans, strict=True)
        )
        found = source[z[:, None, None], y[:, None], x]  # voxels of the batch are last but one
        block = np.ascontiguousarray(np.moveaxis(found, -1, 0), np.float32)
        strength = strengths[part].T
        own = block[:, *spans]
        apart = np.zeros((*counts, own.shape[1]), np.float32)
        squares = np.empty_like(apart)
        for plane, root in zip(block, np.sqrt(strength), strict=True):
            scaled = plane * root
            for cell in product(*(range(2 * radius + 1) for radius in patch)):
                # A row of copies: NumPy takes twice as long for many short lines.
                middle = np.tile(scaled[*np.add(search, cell)], (counts[2], 1))
                others = scaled[tuple(map(slice, cell, np.add(cell, counts)))]
                np.square(np.subtract(others, middle, out=squares), out=squares)
                np.add(apart, squares, out=apart)
        apart[search] = _FAR
        lines = np.ascontiguousarray(apart.reshape(-1, own.shape[1]).T)[:, None]
        of_all = np.exp2(tried[:, None] * lines)
        for c, into in enumerate(totals):
            value = block[c][inner] - own[c]
            slope = -strength[c] * value
            slope[within] += strength[c] * (own[c] - block[c][opposite])
            five = np.stack((np.ones_like(value), value, slope, value * slope, value * value))
            moments = of_all @ five.reshape(5, -1, own.shape[1]).transpose(2, 1, 0)
            weights, means, leaning, products, powers = np.moveaxis(moments, -1, 0).astype(float)
            weights += 1
            variance, middles = noise[part, c, None], own[c, :, None].astype(float)
            counted = variance[:, 0] > 0
            rest = np.zeros((len(variance), 0))
            spread, is_dark = variance, np.zeros_like(counted)
            if first:
                power = middles * middles + (2 * middles * means + powers) / weights
                with np.errstate(divide="ignore"):
                    ratio = power[:, :1] / variance
                is_dark = ratio[:, 0] < _SIGNAL
                spread = variance * rician_factor(ratio)
                rest = np.maximum(power[:, 1:] - 2 * variance, 0)
                weights, means, leaning, products = (
                    each[:, 1:] for each in (weights, means, leaning, products)
                )
            means /= weights
            slopes = (products - means * leaning) / weights
            divergences = 1 / weights + 2 * math.log(2) * scales * slopes
            errors = means * means + spread * (2 * divergences - 1)
            if first:
                errors = np.where(is_dark[:, None], rest, errors)
            into += errors[counted].sum(0)


def estimate_beta(
    source: Pixels,
    noise_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    sigmas_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    search: Radii,
    patch: Radii,
    rician: bool,
) -> float:
    """Return the ``beta`` of least estimated error for volumes with noise.

    - `source`: shape (depth, height, width, components).
    - `noise_at`, `sigmas_at`: map places, shape (voxels, 3), to the standard deviation of the noise
      and to the sigma by which the filter divides, shape (voxels, components).
    - `search`, `patch`: radii along z, y and x.
    - `rician`: False for Gaussian noise, which is the same everywhere.
    """
    candidates, cells = (math.prod(2 * radius + 1 for radius in radii) for radii in (search, patch))
    operations = source.shape[3] * candidates * (2 * cells + 6 * len(BETAS))
    count = min(max(int(_WORK / operations), _FEWEST), _VOXELS)
    places, noise = draw_voxels(source, noise_at, rician, search[0] > 0, count)
    errors = estimated_errors(source, places, sigmas_at(places), noise, search, patch, rician)
    units = noise.sum(axis=0)
    # Each component counts alike, however bright; one without signal does not.
    return of_least_error((errors[units > 0] / units[units > 0, None]).sum(axis=0), BETAS)


def draw_voxels(
    source: Pixels,
    noise_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    rician: bool,
    deep: bool,
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return places of voxels with signal around them, and sigma² of the noise there.

    Where nearly nothing has a signal, voxels without one are returned. The places are int64, shape
    (voxels, 3); the noise is float64, shape (voxels, components), 0 for components without signal
    there.

    - `deep`: whether a voxel's surroundings extend through slices.
    - `count`: of voxels, at most.
    """
    shape = np.array(source.shape[:3])
    order = axes_in_order(source, deep)
    # Some voxels are drawn twice, which does no harm.
    drawn = np.random.default_rng(0).integers(0, shape[order], (_TRIES * count, 3))
    places = np.empty_like(drawn)
    places[:, order] = drawn
    noise = noise_at(places) ** 2
    if rician:
        steps = list(product((-1, 0, 1) if deep else (0,), (-1, 0, 1), (-1, 0, 1)))
        has_signal = np.zeros(noise.shape, bool)
        for first in range(0, len(places), count):
            part = slice(first, first + count)
            power = np.zeros_like(noise[part])
            for step in steps:
                z, y, x = np.clip(places[part] + step, 0, shape - 1).T
                power += np.square(source[z, y, x].astype(np.float64)) / len(steps)
            has_signal[part] = power > _SIGNAL * noise[part]
            usable = (has_signal & (noise > 0)).any(axis=1)
            if usable.sum() >= max(count, _FEWEST):
                break  # no further ones are chosen below
        if has_signal.any(axis=1).sum() >= _FEWEST:
            noise = np.where(has_signal, noise, 0)
    chosen = np.flatnonzero(noise.any(axis=1))[:count]
    return places[chosen], noise[chosen]


def axes_in_order(source: Pixels, deep: bool) -> list[int]:
    """Return the axes in an order that does not depend on how the volume is stored.

    By their lengths, and by the voxels of the middle slice across them where these are equal: they
    are added up by size, so that the sum is the same however they lie. Slices stay first unless
    surroundings extend through them.
    """

    def key(axis: int) -> tuple[int, float]:
        length = source.shape[axis]
        if source.shape[:3].count(length) == 1:
            return length, 0.0
        return length, float(np.sort(source.take(length // 2, axis), axis=None).sum(dtype=float))

    return sorted(range(3), key=key) if deep else [0, *sorted((1, 2), key=key)]


def estimated_errors(
    source: Pixels,
    places: NDArray[np.int64],
    sigmas: NDArray[np.float64],
    noise: NDArray[np.float64],
    search: Radii,
    patch: Radii,
    rician: bool,
    betas: NDArray[np.float64] = BETAS,
) -> NDArray[np.float64]:
    """Return estimated squared errors, summed up over voxels; shape (components, betas).

    - `source`: shape (depth, height, width, components).
    - `places`: int, shape (voxels, 3).
    - `sigmas`: shape (voxels, components). By which the filter divides.
    - `noise`: shape (voxels, components). Sigma² of the noise; 0 where a component does not count.
    - `search`, `patch`: radii along z, y and x.
    - `rician`: False for Gaussian noise.
    """
    components = source.shape[3]
    cells = math.prod(2 * radius + 1 for radius in patch)
    strengths = (1 / (2 * components * cells * sigmas**2)).astype(np.float32)
    scales = (-math.log2(math.e) / betas).astype(np.float32)
    first = np.float32(-math.log2(math.e) / BETAS[_FIRST] if rician else 0)
    sides = tuple(2 * (s + p) + 1 for s, p in zip(search, patch, strict=True))
    lines = ((2 * search[0] + 1) * (2 * search[1] + 1), 2 * search[2] + 1)

    def add(part: int) -> NDArray[np.float64]:
        """Return the sums over some of the voxels."""
        totals = np.zeros((components, len(betas)))
        work = (
            np.empty((components, *sides), np.float32),
            np.empty(lines, np.float32),
            np.empty((components, *lines), np.float32),
            np.empty((components, *lines), np.float32),
        )
        own = (places[part::_PARTS], noise[part::_PARTS], strengths[part::_PARTS])
        if risks.would_wait(source, *own, scales, first, (search, patch), work, totals):
            risks_by_numpy(source, *own, scales, first, (search, patch), totals)
        else:
            risks(source, *own, scales, first, (search, patch), work, totals)
        return totals

    return np.sum(on_cores(add, range(_PARTS)), axis=0)


def suggest_beta(source: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return the ``beta`` of least estimated error."""
    components = source.shape[3]
    reach = reach_of(parameters)
    deep, rician = parameters["dimensions"] == "3d", is_rician(source, parameters)
    resolved = resolve(source, parameters)
    least = np.array(least_sigmas(source))

    def same(sigmas: Any) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        """Return a function that maps any places to these sigmas."""
        return lambda places: np.broadcast_to(np.asarray(sigmas, float), (len(places), components))

    if resolved["sigma_from"] == "given":
        noise_at = divisors_at = same(resolved["sigma"])
        if parameters["sigma_from"] == "volume":
            flat = [sigma for _, sigma in weights_and_strength(source, rician)]
            noise_at = same(np.maximum(flat, least))
    else:
        sigma_map = resolved.get("sigma_map") or map_sigma(source, least, rician, deep)
        noise_at = divisors_at = partial(sigmas_at, sigma_map)
        if parameters["sigma_from"] == "local":
            window = parameters["window_radius"]
            divisors_at = partial(estimate_around, source, least, window, rician, deep)
    return estimate_beta(source, noise_at, divisors_at, reach.search, reach.patch, rician)
