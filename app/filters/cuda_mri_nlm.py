"""Launches of non-local means of volumes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from app.filters.launch import CudaPlan, CudaTask, Launch, Scratch
from app.filters.mri_sigma_map import SigmaMap
from app.filters.spec import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
    CONSTANT.id: "All cells of a patch count alike: there is no mask to keep in constant memory.",
    TEXTURE.id: "Each voxel is read for thousands of pairs: shared memory answers faster.",
}
"""Why the other levels are not offered."""

_SHARED_BYTES = 48 * 1024
"""Shared memory that a block has on every card."""

_BLOCKS = ((32, 4, 2), (32, 4, 1), (16, 4, 1), (8, 4, 1))
"""Threads along x, y and z, as shared memory allows."""

_WARPS = (4, 2, 1)
_PARTS = 3
_TILES = ((4, 4), (4, 2), (2, 2))
_REGISTERS = 256
"""Level *tuned*: warps of a block, as many as shared memory allows if the offsets of a slice come
in so many parts; rows and slices of a thread, as many as registers allow for what it keeps."""


class _Shape(NamedTuple):
    """What decides how much memory a block needs."""

    components: int
    search: int  # radius
    patch: int  # radius, within a slice
    deep: int  # radius of a patch, across slices


class _Blocks(NamedTuple):
    """How a level divides its work: blocks, and rows of offsets in a step."""

    block: tuple[int, int, int]
    tile: tuple[int, int, int]
    shared_bytes: int
    rows: int


def plan_mri_nlm(task: CudaTask) -> CudaPlan:
    """Return the launches of volume non-local means at a level; ``mri_nlm.cu`` says what they do.

    Parameters
    ----------
    task : CudaTask
        `shape` is (depth, height, width, components); the parameters are resolved: there is a
        sigma for all components or one for each, the least one where sigma is local. A sigma that
        is adaptive comes as a ``sigma_map``.
    """
    parameters, components = task.parameters, task.shape[3]
    local = parameters["sigma_from"] in ("local", "adaptive")
    dimensions = 3 if parameters["dimensions"] == "3d" else 2
    radius, patch = parameters["search_radius"], parameters["patch_radius"]
    shape = _Shape(components, radius, patch, patch if dimensions == 3 else 0)

    rows, slices = _tile(shape, local)
    # The same for all levels, so that they share their cubin.
    defines = task.defines(
        COMPONENTS=components,
        DIMENSIONS=dimensions,
        PATCH_RADIUS=patch,
        RICIAN=int(parameters["noise"] == "rician"),
        LOCAL=int(local),
        TILE_Y=rows,
        TILE_Z=slices,
    )
    offsets, cells = (2 * radius + 1) ** dimensions, (2 * patch + 1) ** dimensions
    operations = 3.0 * cells + 4
    if task.level == GLOBAL.id:
        blocks = _Blocks(_BLOCKS[0], _BLOCKS[0], 0, 1)
    elif task.level == SHARED.id:
        blocks = _shared_blocks(shape)
    else:
        blocks = _tuned_blocks(shape, rows, slices)
        operations = 4.0 + (2 * patch * dimensions + 4) / components

    search = np.array([radius, blocks.rows], np.int32)
    strength = 1 / (2 * parameters["beta"] * components * cells)
    sigmas = np.resize(parameters["sigma"], components).astype(np.float32)
    pixels = 4 * task.out_row_pixels
    scratch = {"weights": Scratch(pixels), "values": Scratch(pixels * components)}
    main = Launch(
        kernel=f"mri_nlm_{task.level}",
        defines=defines,
        block=blocks.block,
        tile=blocks.tile,
        bytes_per_sample=12.0 if local else 8.0,
        operations_per_sample=offsets * operations,
        constants={"search": search, "strength": np.array(strength, np.float32)},
        tables=() if local else (sigmas,),
        shared_bytes=blocks.shared_bytes,
        scratch=("sigmas", *scratch) if local else tuple(scratch),
        steps=math.ceil((2 * radius + 1) / blocks.rows) * (2 * radius + 1) ** (dimensions - 2),
    )
    if not local:
        return CudaPlan((main,), scratch)
    scratch = {"sigmas": Scratch(pixels * components), **scratch}
    if parameters["sigma_from"] == "adaptive":
        return CudaPlan((_map(parameters["sigma_map"], defines), main), scratch)
    window = parameters["window_radius"]
    deep = window * (dimensions - 2)
    x, y, z = _BLOCKS[0]
    noise = Launch(
        kernel="mri_nlm_sigma",
        defines=defines,
        block=_BLOCKS[0],
        bytes_per_sample=8.0,
        # Masks of 3 x 3 cells in each plane; sums of what they give, and of squares.
        operations_per_sample=30.0 + 4 * (2 * window + 1) ** dimensions,
        constants={"window_radius": np.array(window, np.int32)},
        tables=(sigmas,),
        shared_bytes=16 * (x + 2 * window) * (y + 2 * window) * (z + 2 * deep),
        scratch=("sigmas",),
    )
    return CudaPlan((noise, main), scratch)


def _map(sigma_map: SigmaMap, defines: Mapping[str, str]) -> Launch:
    """Return the launch that computes sigma at each voxel from a map's nodes."""
    return Launch(
        kernel="mri_nlm_map",
        defines=defines,
        block=_BLOCKS[0],
        bytes_per_sample=4.0,
        operations_per_sample=35.0,
        constants={"grid": np.array([*sigma_map.nodes.shape[1:], *sigma_map.cell], np.int32)},
        tables=(sigma_map.nodes,),
        scratch=("sigmas",),
    )


def _shared_blocks(shape: _Shape) -> _Blocks:
    """Return the largest blocks with the most offsets that fit into shared memory."""

    def needed(block: tuple[int, int, int], rows: int) -> int:
        x, y, z = (
            side + 2 * radius
            for side, radius in zip(block, (shape.patch, shape.patch, shape.deep), strict=True)
        )
        return 4 * shape.components * z * (x * y + (x + 2 * shape.search) * (y + rows - 1))

    block = next(block for block in _BLOCKS if needed(block, 1) <= _SHARED_BYTES)
    most = 2 * shape.search + 1
    rows = max(rows for rows in range(1, most + 1) if needed(block, rows) <= _SHARED_BYTES)
    return _Blocks(block, block, needed(block, rows), rows)


def _tile(shape: _Shape, local: bool) -> tuple[int, int]:
    """Return how many rows and slices a thread computes: as many as its registers allow."""

    def values(rows: int, slices: int) -> int:
        around = (rows + 2 * shape.patch) * (slices + 2 * shape.deep)
        sums = shape.components * (2 if local else 1) + 4
        return 2 * shape.components * around + rows * slices * sums

    return next((tile for tile in _TILES if values(*tile) <= _REGISTERS), _TILES[-1])


def _tuned_blocks(shape: _Shape, tile_rows: int, tile_slices: int) -> _Blocks:
    """Return the most warps and the fewest parts of a slice that fit into shared memory."""
    cell = 4 * shape.components * (tile_slices + 2 * shape.deep)
    most_rows = _SHARED_BYTES // (cell * (32 + 2 * shape.search))

    def around(warps: int) -> int:
        return warps * tile_rows + 2 * shape.patch - 1

    side = 2 * shape.search + 1
    warps = next(
        (warps for warps in _WARPS if (most_rows - around(warps)) * _PARTS >= side), _WARPS[-1]
    )
    parts = math.ceil(side / (most_rows - around(warps)))
    rows = math.ceil(side / parts)
    tile = (32 - 2 * shape.patch, warps * tile_rows, tile_slices)
    shared_bytes = cell * (32 + 2 * shape.search) * (around(warps) + rows)
    return _Blocks((32, warps, 1), tile, shared_bytes, rows)
