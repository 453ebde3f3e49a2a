"""Non-local means of volumes on the CPU: the passes of its levels.

Level *serial* is here: plain loops over voxels, candidates, components and the cells of patches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Record, Voxels, inlined, kernel
from kernelscope.filters.mri_nlm.model import Model, extend, reach_of, settle_mean, sigma_at
from kernelscope.filters.mri_nlm.pairs import plan_pairs
from kernelscope.filters.mri_nlm.tiles import nlm_tiles
from kernelscope.filters.shared.mri_sigma import plan_local
from kernelscope.filters.shared.mri_sigma_map import plan_map
from kernelscope.filters.shared.plain import cell, no_simd, rolled
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL


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


_SLICES = 8
"""Slices of a tile; each offset needs those of a patch in addition."""

_PLANE = 2048
"""Samples that a tile has of each slice (approximate), so that its buffers fit into the caches."""

_ROWS = 4
"""Fewest rows of a tile, however long they are."""

_MAP_OFFSETS = 80
"""Cost of the map of local sigmas, in offsets of the search window (approximate)."""


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    reach = reach_of(parameters)
    depth, height, width, components = output.shape
    first = task.part.first if task.part is not None else (0, 0, 0)
    sides = (n + 2 * margin for n, margin in zip(output.shape, reach.margin, strict=False))
    extended: NDArray[np.float32] = np.empty((components, *sides), np.float32)
    before = tuple(margin - start for margin, start in zip(reach.margin, first, strict=True))
    passes = [CpuPass(extend, (source, extended, before), extended.shape[1], cost=0)]
    rician = parameters["noise"] != "gaussian"
    offsets, cells = (
        math.prod(2 * radius + 1 for radius in radii) for radii in (reach.search, reach.patch)
    )
    if parameters["sigma_from"] == "adaptive":
        sigmas = np.empty((components, depth, height, width), np.float32)
        passes.append(replace(plan_map(parameters["sigma_map"], sigmas, first), cost=0))
    elif parameters["sigma_from"] == "local":
        least = np.array(parameters["sigma"])
        sigmas = np.empty((components, depth, height, width), np.float32)
        sigma_pass = plan_local(extended, sigmas, least, parameters["window_radius"], rician)
        passes.append(replace(sigma_pass, cost=_MAP_OFFSETS / offsets))
    else:
        sigmas = np.array(parameters["sigma"], np.float32).reshape(components, 1, 1, 1)
    local = parameters["sigma_from"] != "given"
    strength = 1 / (2 * parameters["beta"] * components * cells)
    model = Model(sigmas, np.float32(strength), rician, local)
    if task.level == SERIAL.id:
        passes.append(CpuPass(nlm_serial, (extended, output, reach, model), output[..., 0].size))
    elif not local:
        passes.extend(plan_pairs(extended, output, reach, model, first))
    else:
        rows = min(height, max(_ROWS, _PLANE // extended.shape[3]))
        slices = min(depth, _SLICES)
        tile = slices, rows, first[0]
        units = -(-depth // slices) * -(-height // rows)
        passes.append(CpuPass(nlm_tiles, (extended, output, reach, model, tile), units))
    return passes
