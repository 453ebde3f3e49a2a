"""Shared by both levels of the CPU: the extended volume, the noise and the result of a voxel.

*Extended coordinates* are those of the volume after `extend`, which mirrors it beyond its border
by the filter's margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Number, Record, Voxels, kernel
from kernelscope.filters.shared.border_kernels import REFLECT, border_index
from kernelscope.schema.parameters import Radii, RadiiParameter


class Model(NamedTuple):
    """The noise, and how strongly to remove it."""

    sigmas: NDArray[np.float32]
    """float32, shape (components, depth, height, width) or (components, 1, 1, 1). Standard
    deviation, of each voxel or of all."""
    strength: np.float32
    """Makes squared differences, summed up over a patch, in units of sigma², the contribution of a
    component to D."""
    rician: bool
    local: bool
    """Whether there is a sigma for each voxel."""


@kernel
def extend(source: Voxels, extended: Array, margin: Record, start: Index, stop: Index) -> None:
    """Write slices `start` to `stop` of `extended` (components, slices, rows, columns).

    Its voxel 0 is that of `source` at ``-margin``; so a negative margin leaves out the first ones.
    """
    depth, height, width, components = source.shape
    for slice_ in range(start, stop):
        z = border_index(slice_ - margin[0], depth, REFLECT)
        for row in range(extended.shape[2]):
            y = border_index(row - margin[1], height, REFLECT)
            for column in range(extended.shape[3]):
                x = border_index(column - margin[2], width, REFLECT)
                for c in range(components):
                    extended[c, slice_, row, column] = source[z, y, x, c]


@kernel
def sigma_at(sigmas: Array, c: Index, z: Index, y: Index, x: Index) -> Any:
    """Return the sigma of a component at a voxel, or the only one there is."""
    _, depth, height, width = sigmas.shape
    return sigmas[c, min(z, depth - 1), min(y, height - 1), min(x, width - 1)]


@kernel
def settle_mean(mean: Number, sigma: Number, rician: Flag) -> Any:
    """Return the result for a mean of voxels, or of their squares."""
    return np.sqrt(max(mean - 2 * sigma * sigma, 0)) if rician else mean


class Reach(NamedTuple):
    """Radii along z, y and x; those along z are 0 in 2-D.

    They are of the extended volume beyond the volume, of the search window, and of a patch.
    """

    margin: tuple[int, int, int]
    search: tuple[int, int, int]
    patch: tuple[int, int, int]


def search_and_patch(parameters: Mapping[str, Any]) -> tuple[Radii, Radii]:
    """Return the radii of search windows and patches along x, y and z; in 2-D none along z."""
    search, patch = (
        RadiiParameter.along_axes(parameters[name]) for name in ("search_radius", "patch_radius")
    )
    if parameters["dimensions"] == "3d":
        return search, patch
    return (*search[:2], 0), (*patch[:2], 0)


def reach_of(parameters: Mapping[str, Any]) -> Reach:
    """Return the radii of a filter's search window and patches, and the margin."""
    search, patch = search_and_patch(parameters)
    margin = [s + p for s, p in zip(search, patch, strict=True)]
    if parameters["sigma_from"] == "local":
        # A window's pseudo-residuals need one voxel more on each side; it is a cube.
        margin = [max(*margin, parameters["window_radius"] + 1)] * 3
    x, y, z = margin
    deep = parameters["dimensions"] == "3d"
    return Reach((z * deep, y, x), search[::-1], patch[::-1])


def radius(parameters: Mapping[str, Any]) -> int:
    return reach_of(parameters).margin[0]
