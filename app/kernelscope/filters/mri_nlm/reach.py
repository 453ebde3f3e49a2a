"""How far the filter looks: radii of search windows and patches, and the margin that they need.

With a search radius of 5 and a patch radius of 1, a voxel needs 6 voxels around it; where sigma is
estimated in windows of radius 2, at least 3: one more than the window, for the residuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kernelscope.schema.parameters import Radii, RadiiParameter


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
