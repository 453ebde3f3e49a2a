"""Level *serial*: plain loops over voxels, candidates, components and the cells of patches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Index, Line, Record, Voxels, inlined, kernel
from kernelscope.filters.mri_nlm.model import settle_mean, sigma_at
from kernelscope.filters.shared.plain import cell, no_simd, rolled


@inlined
def distance(
    samples: Line, here: Index, there: Index, plane: Index, pitch: Index, patch: Record
) -> Any:
    """Return the sum of squared differences of two patches.

    - `samples`: float32, one-dimensional.
    - `here`, `there`: places of the first cells of the patches.
    - `plane`, `pitch`: samples from one slice to the next, and from one row.
    - `patch`: radii along the axes.
    """
    no_simd()
    total = 0.0
    for s in range(2 * patch[0] + 1):
        for r in range(2 * patch[1] + 1):
            row = s * plane + r * pitch
            for t in range(2 * patch[2] + 1):
                rolled()
                difference = cell(samples, here + row + t) - cell(samples, there + row + t)
                total += difference * difference
    return total


@kernel
def nlm_serial(
    extended: Array, output: Voxels, reach: Record, model: Record, start: Index, stop: Index
) -> None:
    """Plain loops: for voxels `start` to `stop`, every candidate and every cell of its patch."""
    no_simd()
    _, height, width, components = output.shape
    pitch = extended.shape[3]
    plane = extended.shape[2] * pitch
    block = extended.shape[1] * plane
    samples = extended.reshape(extended.size)
    # Patches begin their radii above, before and to the left of their voxel.
    corner = reach.patch[0] * plane + reach.patch[1] * pitch + reach.patch[2]
    strengths = np.empty(components)
    totals = np.empty(components)
    for voxel in range(start, stop):
        z = voxel // (height * width)
        y = voxel // width % height
        x = voxel % width
        zz, yy, xx = z + reach.margin[0], y + reach.margin[1], x + reach.margin[2]
        here = zz * plane + yy * pitch + xx
        for c in range(components):
            # Binary logarithms: Numba's exp has an older, slower interface to the C library.
            sigma = sigma_at(model.sigmas, c, z, y, x)
            strengths[c] = -math.log2(math.e) * model.strength / sigma**2
        totals[:] = 0
        weights = 0.0
        for dz in range(-reach.search[0], reach.search[0] + 1):
            for dy in range(-reach.search[1], reach.search[1] + 1):
                for dx in range(-reach.search[2], reach.search[2] + 1):
                    there = here + dz * plane + dy * pitch + dx
                    apart = strengths[0] * distance(
                        samples, here - corner, there - corner, plane, pitch, reach.patch
                    )
                    for c in range(1, components):
                        first = c * block - corner
                        apart += strengths[c] * distance(
                            samples, first + here, first + there, plane, pitch, reach.patch
                        )
                    weight = np.exp2(apart)
                    weights += weight
                    for c in range(components):
                        rolled()
                        value = cell(samples, c * block + there)
                        totals[c] += weight * (value * value if model.rician else value)
        for c in range(components):
            sigma = sigma_at(model.sigmas, c, z, y, x)
            output[z, y, x, c] = settle_mean(totals[c] / weights, sigma, model.rician)
