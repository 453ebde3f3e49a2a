"""The numbers of collaborative filtering of volumes that all levels share.

Places, of cubes and of voxels, are those of the volume; the *domain* is the volume and `PAD`
voxels around it, which mirror it. All cubes lie in the domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.volume_noise import removed_sigma

SIDE = 4
"""Of a cube."""

STEP = 3
"""From one reference cube to the next."""

SEARCH = 5
"""How far from the reference cube similar ones are looked for, along each axis."""

GROUP = 32
"""Cubes of a group, at most."""

PAD = 4
"""Voxels of the domain beyond the volume: those at its rim are in as many cubes as others."""

REACH = 2 * SEARCH + SIDE - 1
"""How far a stage looks: from a voxel to its reference cubes, and from there to similar ones."""

BEFORE, AFTER = SEARCH + SIDE - 1, SEARCH
"""A voxel is in cubes of references from so far before it to so far after it."""

SCALE = 2.0**26
"""Of the whole numbers that are added up. Voxels are at most 1e6 sigma, a cube's weight is at most
1, and less than 2^13 cubes cover a voxel: sums stay below 2^62."""

_HARD = 3.2
"""Coefficients of up to so many sigma are noise in the first stage."""

_ALIKE = (8.0, 6.0)
"""Mean squared differences, over sigma², up to which cubes are alike: in the first stage noise
makes 2 of it."""

_LARGEST = 3e38


def radius(parameters: Mapping[str, Any]) -> int:
    return 2 * REACH


def numbers(parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the bounds of both stages' distances, the threshold, and 1 / sigma for the second."""
    sigma = removed_sigma(parameters)
    alike = [min(SIDE**3 * each * sigma**2, _LARGEST) for each in _ALIKE]
    inverse = min(1 / max(sigma, 1e-38), _LARGEST)
    return np.array([*alike, _HARD * sigma, inverse], np.float32)


def window() -> NDArray[np.float32]:
    """Return the weights of the cells of a cube: a Kaiser window along each axis."""
    line = np.kaiser(SIDE, 2.0)
    cube: NDArray[np.float32] = np.einsum("z,y,x->zyx", line, line, line).astype(np.float32)
    return cube.reshape(-1)


def references(size: int) -> int:
    """Return how many reference cubes a domain has along an axis of so many voxels of volume.

    Number k is at ``min(STEP k - PAD, size)``: the last one ends with the domain.
    """
    return -(-(size + PAD) // STEP) + 1
