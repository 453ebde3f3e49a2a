"""Launches of non-local means of volumes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.mri_nlm.cpu import search_and_patch
from kernelscope.filters.shared.mri_sigma_map import SigmaMap
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import Radii

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
    CONSTANT.id: "All cells of a patch count alike: there is no mask to keep in constant memory.",
    TEXTURE.id: "A texture unit gives a few voxels at a time, and each is read for thousands of "
    "pairs; the apron leaves it no borders to treat.",
}
"""Why the other levels are not offered."""

_SHARED_BYTES = 48 * 1024
"""Shared memory that a block has on every card."""

_BLOCKS = ((32, 4, 2), (32, 4, 1), (16, 4, 1), (8, 4, 1), (8, 2, 1))
"""Threads along x, y and z, as shared memory allows."""

_WARPS = (2, 1)
_PARTS = 3
_TILES = ((4, 4), (4, 2), (2, 2))
_REGISTERS = 256
"""Level *tuned*: warps of a block, as many as shared memory allows if the offsets of a slice come
in that many parts; rows and slices of a thread, as many as its registers allow."""

_THIRD_OF_REGISTERS = 152
"""Values of a thread of *tuned* with which three blocks share a multiprocessor, at 168 registers a
thread."""

_MOST_VALUES = 700
"""Values that a thread of *tuned* keeps, at most: beyond, most of them lie in slow memory and the
kernel takes half a minute to compile."""


class _Shape(NamedTuple):
    """The sizes on which the memory of a block depends."""

    components: int
    search: Radii
    patch: Radii


class _Blocks(NamedTuple):
    """How a level divides its work: blocks, and rows of offsets in a step.

    Of *tuned*, also the columns of a row of tiles and the blocks that share all rows as a line;
    both are 0 where blocks stay within a row.
    """

    block: tuple[int, int, int]
    tile: tuple[int, int, int]
    shared_bytes: int
    rows: int
    columns: int = 0
    line: int = 0


def plan_mri_nlm(task: CudaTask) -> CudaPlan:
    """Return the launches of volume non-local means at a level; ``mri_nlm.cu`` explains them.

    - `task`: `shape` is (depth, height, width, components); the parameters are resolved: there is a
      sigma for all components or one for each, the least one where sigma is local. A sigma that is
      adaptive comes as a ``sigma_map``. A plan that is only looked at needs neither.
    """
    parameters, components = task.parameters, task.shape[3]
    local = parameters["sigma_from"] in ("local", "adaptive")
    search, patch = search_and_patch(parameters)
    shape = _Shape(components, search, patch)
    rows, slices = _tile(shape, local)
    tuned = _tuned_blocks(shape, task.output_shape[1:3], rows, slices)
    plain = _plain_blocks(shape, task.block)
    fits = tuned.shared_bytes <= _SHARED_BYTES and _values(shape, rows, slices) <= _MOST_VALUES
    level = task.level if fits or task.level != TUNED.id else GLOBAL.id
    # The same for all levels, so that they share their cubin.
    defines = task.defines(
        COMPONENTS=components,
        DIMENSIONS=3 if parameters["dimensions"] == "3d" else 2,
        **dict(zip(("PATCH_X", "PATCH_Y", "PATCH_Z"), patch, strict=True)),
        RICIAN=int(parameters["noise"] == "rician"),
        LOCAL=int(local),
        THREADS=math.prod(plain.block),
        TUNED=int(fits),
        TILE_Y=rows,
        TILE_Z=slices,
        MIN_BLOCKS=_resident_blocks(shape, rows, slices, local),
    )
    blocks = tuned if level == TUNED.id else plain
    if level == GLOBAL.id:
        blocks = blocks._replace(shared_bytes=0)
    voxels = 4 * task.out_row_pixels
    scratch = {
        "padded": _padded(task, shape),
        "weights": Scratch(voxels),
        "values": Scratch(voxels * components),
    }
    main = _main(task, shape, level, blocks, defines, tuple(scratch))
    launches: tuple[Launch, ...] = (_pad(main, scaled=level == TUNED.id and not local), main)
    if local:
        launches = (_sigmas(task, defines), *launches)
        scratch = {"sigmas": Scratch(voxels * components), **scratch}
    return CudaPlan(launches, scratch, "" if level == task.level else _NOTICE)


def _sigma_table(task: CudaTask) -> NDArray[np.float32]:
    """Return the sigmas of the components, or the least ones where sigma is local."""
    return np.resize(task.parameters["sigma"], task.shape[3]).astype(np.float32)


def _main(
    task: CudaTask,
    shape: _Shape,
    level: str,
    blocks: _Blocks,
    defines: Mapping[str, str],
    scratch: tuple[str, ...],
) -> Launch:
    """Return the launch that adds up the candidates and divides the sums."""
    search, patch = shape.search, shape.patch
    local = defines["LOCAL"] == "1"
    offsets, cells = (math.prod(2 * radius + 1 for radius in radii) for radii in (search, patch))
    operations = 3.0 * cells + 4
    if level == TUNED.id:
        operations = 4.0 + (2 * sum(patch) + 4) / shape.components
    strength = 1 / (2 * task.parameters["beta"] * shape.components * cells)
    return Launch(
        kernel=f"mri_nlm_{level}",
        defines=defines,
        block=blocks.block,
        tile=blocks.tile,
        bytes_per_sample=12.0 if local else 8.0,
        operations_per_sample=offsets * operations,
        constants={
            "search": np.array([*search, blocks.rows], np.int32),
            "strength": np.array(strength, np.float32),
            **({"line": np.array(blocks.columns, np.int32)} if level == TUNED.id else {}),
        },
        tables=() if local else (_sigma_table(task),),
        shared_bytes=blocks.shared_bytes,
        scratch=("sigmas", *scratch) if local else scratch,
        steps=math.ceil((2 * search[1] + 1) / blocks.rows) * (2 * search[2] + 1),
        line=blocks.line,
        aligned=level == TUNED.id,
    )


def _pad(main: Launch, *, scaled: bool) -> Launch:
    """Return the launch that copies the volume with its apron, scaled for *tuned*."""
    return Launch(
        kernel="mri_nlm_scale" if scaled else "mri_nlm_pad",
        defines=main.defines,
        block=_BLOCKS[0] if main.kernel == f"mri_nlm_{TUNED.id}" else main.block,
        bytes_per_sample=8.0,
        operations_per_sample=1.0,
        constants=main.constants,
        tables=main.tables if scaled else (),
        scratch=("padded",),
    )


def _sigmas(task: CudaTask, defines: Mapping[str, str]) -> Launch:
    """Return the launch that writes sigma around each voxel: from a map, or from windows."""
    parameters = task.parameters
    if parameters["sigma_from"] == "adaptive":
        return _map(parameters.get("sigma_map", _NO_MAP), defines)
    window = parameters["window_radius"]
    dimensions = int(defines["DIMENSIONS"])
    deep = window * (dimensions - 2)
    x, y, z = _BLOCKS[0]
    return Launch(
        kernel="mri_nlm_sigma",
        defines=defines,
        block=_BLOCKS[0],
        bytes_per_sample=8.0,
        # Masks of 3 x 3 cells in each plane; sums of their results and of squares.
        operations_per_sample=30.0 + 4 * (2 * window + 1) ** dimensions,
        constants={"window_radius": np.array(window, np.int32)},
        tables=(_sigma_table(task),),
        shared_bytes=16 * (x + 2 * window) * (y + 2 * window) * (z + 2 * deep),
        scratch=("sigmas",),
    )


_NO_MAP = SigmaMap(np.zeros((1, 1, 1, 1), np.float32), (1, 1, 1))
"""In place of a map, which takes seconds to estimate, where no kernel is going to run."""


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


_NOTICE = (
    "Such large patches do not fit into the registers and shared memory of level tuned: the kernel "
    "of level global ran."
)


def _padded(task: CudaTask, shape: _Shape) -> Scratch:
    """Return the buffer for the volume with its apron."""
    x, y, z = (search + patch for search, patch in zip(shape.search, shape.patch, strict=True))
    slice_bytes = 4 * shape.components * (task.shape[1] + 2 * y) * (task.shape[2] + 2 * x)
    return Scratch(slice_bytes, 2 * z * slice_bytes)


def _plain_blocks(shape: _Shape, wanted: tuple[int, int] | None) -> _Blocks:
    """Return the largest blocks with the most offsets that fit into shared memory.

    Or those that the user wants; large patches of many components may need more than every
    card has.
    """

    def needed(block: tuple[int, int, int], rows: int) -> int:
        x, y, z = (side + 2 * patch for side, patch in zip(block, shape.patch, strict=True))
        return 4 * shape.components * z * (y + rows - 1) * (x + 2 * shape.search[0])

    choice = ((*wanted, 1),) if wanted else _BLOCKS
    block = next((block for block in choice if needed(block, 1) <= _SHARED_BYTES), choice[-1])
    most = 2 * shape.search[1] + 1
    fitting = (rows for rows in range(most, 1, -1) if needed(block, rows) <= _SHARED_BYTES)
    rows = next(fitting, 1)
    return _Blocks(block, block, needed(block, rows), rows)


def _values(shape: _Shape, rows: int, slices: int) -> int:
    """Return how many values a thread of *tuned* keeps of the volume."""
    around = (rows + 2 * shape.patch[1]) * (slices + 2 * shape.patch[2])
    return 2 * shape.components * around


def _kept(shape: _Shape, rows: int, slices: int, local: bool) -> int:
    """Return how many values a thread of *tuned* keeps: of the volume, and of its sums."""
    sums = shape.components * (2 if local else 1) + 4
    return _values(shape, rows, slices) + rows * slices * sums


def _tile(shape: _Shape, local: bool) -> tuple[int, int]:
    """Return how many rows and slices a thread computes: as many as its registers allow."""
    fitting = (tile for tile in _TILES if _kept(shape, *tile, local) <= _REGISTERS)
    return next(fitting, _TILES[-1])


def _resident_blocks(shape: _Shape, rows: int, slices: int, local: bool) -> int:
    """Return how many blocks of 128 threads share the registers of a multiprocessor."""
    return 3 if _kept(shape, rows, slices, local) <= _THIRD_OF_REGISTERS else 1


def _tuned_blocks(
    shape: _Shape, sides: tuple[int, ...], tile_rows: int, tile_slices: int
) -> _Blocks:
    """Return the most warps and the fewest parts of a slice that fit into shared memory.

    They share a slice as one line where there is room for the voxels on both sides of a turn; then
    only the last of all warps has threads without a voxel. Where not even one row of offsets fits,
    they need more.
    """
    height, width = sides
    own = 32 - 2 * shape.patch[0]
    tiles = math.ceil(height / tile_rows)
    line = width + 2 * shape.patch[0]
    cell = 4 * shape.components * (tile_slices + 2 * shape.patch[2])
    around = tile_rows + 2 * shape.patch[1] - 1
    side = 2 * shape.search[1] + 1

    def columns(warps: int, lined: bool) -> int:
        """Return the columns that a block reads; at each turn those of both ends."""
        all_own = warps * own + 2 * shape.patch[0]
        turns = math.ceil((all_own - 1) / line) if lined else 0
        return all_own + 2 * shape.search[0] * (1 + turns)

    def room(choice: tuple[bool, int]) -> int:
        """Return for how many rows of offsets there is room."""
        lined, warps = choice
        return _SHARED_BYTES // (cell * columns(warps, lined)) - around

    choices = tuple((lined, warps) for lined in (True, False) for warps in _WARPS)
    fitting = (choice for choice in choices if room(choice) * _PARTS >= side)
    lined, warps = chosen = next(fitting, choices[-1])
    rows = math.ceil(side / math.ceil(side / max(room(chosen), 1)))
    return _Blocks(
        (32, warps, 1),
        (warps * own, tile_rows, tile_slices),
        cell * columns(warps, lined) * (around + rows),
        rows,
        line if lined else 0,
        math.ceil((tiles * line - 2 * shape.patch[0]) / (warps * own)) if lined else 0,
    )
