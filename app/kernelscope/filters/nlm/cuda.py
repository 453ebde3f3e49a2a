"""Non-local means on the GPU: the levels that teach, and *tuned*."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.non_local import falloff, noise_floor, patch_profile, patch_weights
from kernelscope.schema import launch as launches
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaPlan, CudaTask, HandOver, Launch, Scratch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level
from kernelscope.schema.samples import colour_count, white_level

_COLUMNS, _CHUNK = 128, 32
"""Columns of a warp, and offsets for which those that it reads suffice: macros ``WARP_COLUMNS`` and
``CHUNK_OFFSETS``."""

_BAND = _COLUMNS + _CHUNK  # columns that a warp reads for a row of candidates
_SHARED = 48 * 1024  # bytes of shared memory that a block has on every card

_PRODUCT_TILES = {3: 4, 5: 4, 7: 2, 9: 2, 11: 2}
"""Groups of 16 pixels for which a warp keeps the patches, by the size of the patch: ``TILES``."""

_PRODUCT_WARPS = 4  # warps of a block that multiplies matrices: macro ``WARPS``

_STEPS = {3: 1, 5: 2, 7: 4, 9: 6, 11: 8}
"""Products of 16 cells for a candidate of the whole image, by the size of the patch: ``STEPS``."""

_WINDOW_SIDE = 16  # pixels of a block that multiplies matrices in a window, in x and y

_WINDOW_SHAPE = {
    "WINDOW_TILES": 2,
    "WINDOW_WARPS": 8,
    "WINDOW_ACROSS": 2,
    "WINDOW_BLOCKS": 3,
}
"""Such a block, and how many of them a multiprocessor has: macros of ``kernels/nlm_window.cuh``."""

_WINDOW_SHARED = 64 * 1024  # bytes of shared memory that a block can ask for on every card

_UNROLLED = (10,)
"""Search radii whose code is unrolled, in a window: the default, whose code comes with the package.
Each takes 1.6 s more to compile for 1 ms less of 4096 x 4096 pixels on an H100, and whoever drags
the radius would wait for one after the other. Shared memory holds windows of a radius up to 12."""

_NORM_PADDING = 7
"""Positions that are left free at most where norms begin in shared memory: ``Memory``."""

_LEAST_PIXELS = 2**18
"""Pixels from which on matrix products pay in a window: smaller pictures have too few blocks."""

_NORM_TILE = (4 * BLOCK[0], 10 * BLOCK[1])
"""Pixels for each block that computes norms: a thread has four columns and, of 4096 x 4096 pixels,
ten rows. It also reads the rows of a patch but one, so that longer strips have less to do, but a
megapixel too few blocks."""

_WARPS_WANTED = 2048  # enough to occupy the largest cards
_MOST_LAYERS = 32  # with more layers, adding up their sums takes as long as computing them

_LARGEST_NORM, _COUNTS = 4096.0, 10.0
"""Up to this exponent of a weight, rounding to halves changes no byte by a level: where pairs count
with exponents up to the second number. It is off by about the root of the product of both."""


def plan_tuned(task: CudaTask) -> CudaPlan:
    """Return the launch of level *tuned*: matrix products where they are exact enough."""
    parameters = task.parameters
    one_by_one = colour_count(task.shape[2]) == 1 or parameters["colour"] == "separate"
    # Cells of patches are centred, so that none is further than half of white from zero.
    norm = _exponent(task, 1) * float(patch_profile(parameters).sum()) ** 2 / 4
    norm *= 1 + float(_floor(task)) / _COUNTS
    if task.dtype == np.uint8 and one_by_one and norm <= _LARGEST_NORM:
        if parameters["search"] == "image":
            return _plan_products(task)
        if parameters["patch"] in (5, 7) and _fills_card(task) and (band := _band(task)):
            return _plan_window(task, band)
    return _plan_sums(task)


def _exponent(task: CudaTask, together: int) -> float:
    """Return the exponent of 1/2 in the weight of a pair at distance 1."""
    return math.log2(math.e) / (together * falloff(task.parameters))


def _defines(task: CudaTask, **more: int) -> dict[str, str]:
    # `reduce` leaves out candidates; patches are reflected.
    border = Border.REFLECT if task.border is Border.REDUCE else task.border
    corrected = int(task.parameters["weights"] == "corrected")
    patch = task.parameters["patch"]
    return replace(task, border=border).defines(PATCH=patch, CORRECTED=corrected, **more)


def _floor(task: CudaTask) -> NDArray[np.float32]:
    """Return the part of an exponent of 1/2 that is noise; it has the same unit everywhere."""
    return np.array(_exponent(task, 1) * noise_floor(task.parameters), np.float32)


def _profile(task: CudaTask) -> NDArray[np.float32]:
    """Return the weights of a patch along an axis, from the middle outwards."""
    return patch_profile(task.parameters)[task.parameters["patch"] // 2 :].astype(np.float32)


def _halves(task: CudaTask) -> dict[str, NDArray[Any]]:
    """Return the constants of ``kernels/nlm_halves.cuh``."""
    return {
        "halves_profile": _profile(task),
        "halves_scale": np.array(_exponent(task, 1) * (128 / 255) ** 2, np.float32),
        "halves_floor": _floor(task),
    }


def _patch_halves(task: CudaTask, cells: int, columns: int) -> NDArray[np.uint32]:
    """Return pairs of halves: 2 G² and the scale, rows of `columns` cells, zeros up to `cells`."""
    patch = task.parameters["patch"]
    profile = patch_profile(task.parameters)
    weights = np.zeros((patch, columns))
    weights[:, :patch] = 2 * _exponent(task, 1) * (128 / 255) ** 2 * np.outer(profile, profile)
    filled = np.zeros(cells, np.float16)
    filled[: weights.size] = weights.ravel()
    return filled.view(np.uint32)


def _plan_products(task: CudaTask) -> CudaPlan:
    """Plan weights as matrix products, in the whole image: ``kernels/nlm_products.cuh``."""
    patch = task.parameters["patch"]
    height, width, _ = task.output_shape
    colours, steps, tiles = colour_count(task.shape[2]), _STEPS[patch], _PRODUCT_TILES[patch]
    groups = math.ceil(width / 16)  # of candidates, in a row
    prepare = Launch(
        kernel="nlm_tuned_prepare",
        defines=_defines(task, PRODUCTS=1, WHOLE=1, TILES=tiles, WARPS=_PRODUCT_WARPS),
        block=BLOCK,
        bytes_per_sample=1.0 + 32 * steps + 2,
        operations_per_sample=4.0 * patch**2,
        constants={
            **_halves(task),
            "products_weights": _patch_halves(task, 16 * steps, patch),
        },
        scratch=("candidates",),
    )
    weigh = replace(
        prepare,
        kernel="nlm_tuned",
        block=(32, _PRODUCT_WARPS),
        tile=(16 * tiles, _PRODUCT_WARPS),
        bytes_per_sample=2.0,
        operations_per_sample=height * width * (4.0 * patch**2 + 5),
        scratch=("candidates", "sums"),
        steps=math.ceil(height * groups / _chunk(steps)),
    )
    scratch = {
        "candidates": Scratch(colours * groups * (512 * steps + 32), whole=True),
        "sums": Scratch(8 * colours * task.out_row_pixels),
    }
    return CudaPlan((prepare, weigh), scratch)


def _chunk(steps: int) -> int:
    """Return how many groups of 16 candidates a block reads at once: ``CHUNK``."""
    return 4 if steps == 6 else 32 // steps


def _plan_window(task: CudaTask, band: int) -> CudaPlan:
    """Plan weights as matrix products, in a window: ``kernels/nlm_window.cuh``."""
    patch, radius = task.parameters["patch"], task.parameters["search_radius"]
    colours, columns = colour_count(task.shape[2]), task.output_shape[1] + 2 * radius
    unrolled = radius in _UNROLLED and band == _squares(task)
    norms = Launch(
        kernel="nlm_tuned_norms",
        defines=_defines(
            task,
            PRODUCTS=1,
            WHOLE=0,
            RADIUS=radius if unrolled else 0,
            **_WINDOW_SHAPE,
            INSIDE=int(task.border is Border.REDUCE),
        ),
        block=BLOCK,
        tile=_NORM_TILE,
        bytes_per_sample=5.0,
        operations_per_sample=6.0 * patch,
        constants={
            **_halves(task),
            "window": np.array([radius, band, _pitch(task)], np.int32),
            "window_weights": _window_halves(task),
        },
        scratch=("norms",),
    )
    weigh = replace(
        norms,
        kernel="nlm_tuned",
        block=(32, _WINDOW_SHAPE["WINDOW_WARPS"]),
        tile=(_WINDOW_SIDE, _WINDOW_SIDE),
        bytes_per_sample=6.0,
        operations_per_sample=(2 * radius + 1) ** 2 * (4.0 * patch**2 + 5),
        shared_bytes=_shared(task, band),
        # A sum over candidates begins with those of a square of pixels.
        aligned=True,
    )
    row = 4 * colours * (-(-columns // 4) * 4)  # threads write four norms at once
    return CudaPlan((norms, weigh), {"norms": Scratch(row, 2 * radius * row)})


def _fills_card(task: CudaTask) -> bool:
    """Return whether a picture has enough blocks without sharing out the search of each."""
    return not launches.BY_SIZE or math.prod(task.output_shape[:2]) >= _LEAST_PIXELS


def _band(task: CudaTask) -> int:
    """Return for how many rows of squares shared memory suffices; 0 if there is too little."""
    return max(
        (band for band in range(1, _squares(task) + 1) if _shared(task, band) <= _WINDOW_SHARED),
        default=0,
    )


def _shared(task: CudaTask, band: int) -> int:
    """Return the shared memory of a block with candidates for `band` rows of squares."""
    rows = _WINDOW_SIDE - 4 + 4 * band
    positions = _pitch(task) * (2 * rows + task.parameters["patch"] - 1)
    return 16 * (positions + _NORM_PADDING)


def _squares(task: CudaTask) -> int:
    """Return how many squares of 4 x 4 candidates those of a square of pixels span."""
    return math.ceil((2 * task.parameters["search_radius"] + 4) / 4)


def _pitch(task: CudaTask) -> int:
    """Return the positions of a row of shared memory: an odd number."""
    return (_WINDOW_SIDE - 4 + 4 * _squares(task) + 1) | 1


def _window_halves(task: CudaTask) -> NDArray[np.uint32]:
    """Return the pairs that each of four threads has of a patch: ``places_of`` in the kernel."""
    rows = _patch_halves(task, 64, 8).reshape(8, 4)
    if task.parameters["patch"] == 7:
        return rows.reshape(4, 8)
    return np.concatenate([rows[:4], rows[4:6].reshape(4, 2)], axis=1)


def _plan_sums(task: CudaTask) -> CudaPlan:
    """Plan distances as sums over columns and rows: ``kernels/nlm_tuned.cuh``."""
    parameters = task.parameters
    patch, whole = parameters["patch"], parameters["search"] == "image"
    uniform = parameters["weights"] != "gaussian"
    colours = colour_count(task.shape[2])
    together = colours if parameters["colour"] == "joint" else 1
    radius = 0 if whole else parameters["search_radius"]
    offsets = 2 * radius + 1
    group = 4 if patch <= 7 and together == 1 else 2  # more than registers allow would spill
    strip = 8 if together == 1 else 4
    warps, shared = _block(strip, patch, together)
    scale = math.sqrt(_exponent(task, together)) / white_level(task.dtype)
    height, width, _ = task.output_shape
    candidates = height * width if whole else offsets**2
    # The rows of candidates of a block's first row.
    rows = height + strip * warps - 1 if whole else offsets
    tile = (_COLUMNS - patch + 1, strip * warps)
    tiles = math.ceil(width / tile[0]) * math.ceil(height / tile[1])
    layers = _layers(tiles * warps, rows)
    launch = Launch(
        kernel="nlm_tuned",
        defines=_defines(
            task,
            UNIFORM=int(uniform),
            TOGETHER=together,
            WHOLE=int(whole),
            INSIDE=int(task.border is Border.REDUCE and not whole),
            GROUP=group,
            STRIP=strip,
            WARP_COLUMNS=_COLUMNS,
            CHUNK_OFFSETS=_CHUNK,
            REST=1 if whole else offsets % group,
        ),
        block=(32, warps),
        tile=tile,
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=candidates * ((10 if uniform else 4 * patch) / together + 5.0),
        constants={
            "tuned_profile": _profile(task),
            "tuned_scale": np.array([scale, 1 / scale], np.float32),
            "tuned_floor": _floor(task),
            "tuned_radius": np.array(radius, np.int32),
            "tuned_layers": np.array(layers, np.int32),
        },
        shared_bytes=shared,
        scratch=("sums",),
        steps=math.ceil(rows / layers) if whole else 0,
        layers=layers,
        # The sums down a column begin with the thread's first row; that of a block decides which
        # rows of candidates belong to a layer.
        aligned=uniform or (whole and layers > 1),
    )
    sums = Scratch(4 * (colours // together + colours) * layers * task.out_row_pixels)
    if not whole and layers == 1:
        return CudaPlan((launch,), {"sums": Scratch()})
    return CudaPlan((replace(launch, frame=0), _mean(launch, task, layers)), {"sums": sums})


def _mean(launch: Launch, task: CudaTask, layers: int) -> Launch:
    """Return the launch that adds up the sums of the layers and divides them."""
    return replace(
        launch,
        kernel="nlm_tuned_mean",
        block=BLOCK,
        tile=BLOCK,
        bytes_per_sample=float(task.dtype.itemsize),
        operations_per_sample=2.0 * layers,
        shared_bytes=0,
        steps=0,
        layers=1,
        aligned=False,
    )


def _layers(warps: int, most: int) -> int:
    """Return how many blocks share the candidates of a tile, where `warps` warps have the tiles."""
    return max(1, min(math.ceil(_WARPS_WANTED / warps), _MOST_LAYERS, most))


def _block(strip: int, patch: int, together: int) -> tuple[int, int]:
    """Return how many warps a block has, and its shared memory in bytes."""
    for warps in (4, 2, 1):
        rows = strip * warps + patch - 1
        shared = 4 * (together * rows * (_COLUMNS + _BAND) + _BAND)
        if shared <= _SHARED:
            break
    return warps, shared


HOST_PARTITIONS = Level(
    "host-partitions",
    "Shared, host partitions",
    "As shared memory, but the host copies each part of the search and launches a kernel for it.",
    why="Each part of the candidates is copied from the host to the card and is a launch of its "
    "own. The arithmetic is that of shared memory; the copies and the launches come on top.",
    source="Source N, section 2.5.",
)

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take minutes where all of them take a second.",
}
"""Why the other levels are not offered."""

PART = 32  # side of the parts into which a search of the whole image is cut: macro ``PART``


class _Sizes(NamedTuple):
    """Sizes that all launches share.

    - `patch`, `radius`, `margin`: side of a patch; radius of the search window, 0 for the whole
      image; pixels that the padded image has around the image.
    - `colours`, `together`: channels without alpha, and those that share a distance.
    - `pitch`: samples of a padded row.
    """

    patch: int
    radius: int
    margin: int
    colours: int
    together: int
    pitch: int
    block: tuple[int, int]
    whole: bool

    @classmethod
    def of(cls, task: CudaTask) -> _Sizes:
        parameters = task.parameters
        whole = parameters["search"] == "image"
        radius = 0 if whole else parameters["search_radius"]
        margin = radius + parameters["patch"] // 2
        colours = colour_count(task.shape[2])
        together = colours if parameters["colour"] == "joint" else 1
        pitch = colours * (task.output_shape[1] + 2 * margin)
        block = task.block or BLOCK
        return cls(parameters["patch"], radius, margin, colours, together, pitch, block, whole)

    @property
    def frame(self) -> NDArray[np.int32]:
        return np.array([self.margin, self.whole], np.int32)


def plan_nlm(task: CudaTask) -> CudaPlan:
    """Return the launches of non-local means at a level; ``nlm.cu`` explains them."""
    if task.level == TUNED.id:
        plan = plan_tuned(task)
        launches = (
            replace(launch, defines={**launch.defines, "TUNED": "1"}) for launch in plan.launches
        )
        return replace(plan, launches=tuple(launches))
    sizes = _Sizes.of(task)
    first = _weights_launch(task, sizes)
    handed = task.level == HOST_PARTITIONS.id
    if handed:
        parts = _parts(task, sizes.radius, sizes.patch)
        first = replace(
            first,
            steps_at_once=1,
            hand_over=HandOver("padded", "handed", sizes.pitch, sizes.colours, parts),
            # Every launch but the first reads the sums, all write them.
            bytes_per_sample=8.0 * first.steps,
        )
    second = replace(
        first,
        kernel=f"{_kernel(task)}_mean",
        scratch=(*first.scratch, "weighted"),
        bytes_per_sample=first.bytes_per_sample + task.dtype.itemsize,
    )
    sums = Scratch(4 * sizes.colours * task.output_shape[1])
    scratch = {
        "padded": Scratch(
            4 * sizes.pitch, 8 * sizes.margin * sizes.pitch, sizes.whole, sizes.margin
        ),
        "weights": sums,
        "weighted": sums,
    }
    if handed:
        scratch["handed"] = (
            Scratch(more_bytes=4 * sizes.colours * (PART + sizes.patch - 1) ** 2)
            if sizes.whole
            else Scratch(4 * sizes.pitch, 4 * (sizes.patch - 1) * sizes.pitch)
        )
    return CudaPlan((_pad_launch(task, sizes), first, second), scratch)


def _kernel(task: CudaTask) -> str:
    return f"nlm_{task.level.replace('-', '_')}"


def _pad_launch(task: CudaTask, sizes: _Sizes) -> Launch:
    """Return the launch that writes the image with its border as floats."""
    # `reduce` reflects patches as `reflect` does, and has fewer candidates.
    border = Border.REFLECT if task.border is Border.REDUCE else task.border
    return Launch(
        kernel="nlm_pad",
        defines=replace(task, border=border).defines(PAD=1),
        block=sizes.block,
        constants={"frame": sizes.frame},
        scratch=("padded",),
        bytes_per_sample=task.dtype.itemsize + 4.0,
        operations_per_sample=1.0,
    )


def _weights_launch(task: CudaTask, sizes: _Sizes) -> Launch:
    """Return the launch that adds up weights; the one that adds up samples differs little."""
    rows, columns = task.output_shape[:2]
    side = 2 * sizes.radius + 1
    steps, pairs = side, side**2
    partition = sizes.block[0] + 2 * sizes.radius, sizes.block[1]
    if sizes.whole:
        steps, pairs = math.ceil(rows / PART) * math.ceil(columns / PART), rows * columns
        partition = PART, PART
    h = falloff(task.parameters)
    scale = white_level(task.dtype) * math.sqrt(sizes.together * h)
    weights = (patch_weights(task.parameters) / scale).astype(np.float32)
    inside = task.border is Border.REDUCE
    constants = {
        "frame": sizes.frame,
        "search": np.array([sizes.radius, rows, inside], np.int32),
        "noise_floor": np.array(noise_floor(task.parameters) / h, np.float32),
    }
    tables = (weights,) if task.level == GLOBAL.id else ()
    texture = task.level == TEXTURE.id
    shared = 4 * sizes.together * math.prod(length + sizes.patch - 1 for length in partition)
    padded = () if texture else ("padded",)
    handed = ("handed",) if task.level == HOST_PARTITIONS.id else ()
    return Launch(
        kernel=f"{_kernel(task)}_weights",
        # After padding, the border does not matter: all share a cubin.
        defines=replace(task, border=Border.REFLECT).defines(
            PATCH=sizes.patch, TOGETHER=sizes.together, THREADS=math.prod(sizes.block), PART=PART
        ),
        block=sizes.block,
        constants=constants if tables else {**constants, "constant_weights": weights},
        tables=tables,
        shared_bytes=shared if task.level in (SHARED.id, HOST_PARTITIONS.id) else 0,
        texture=texture,
        texture_of=("padded", sizes.pitch) if texture else None,
        scratch=(*padded, *handed, "weights"),
        steps=steps,
        # For each pair: three a cell of the patch, the weight and its sum.
        operations_per_sample=pairs * (3.0 * sizes.patch**2 + 3) * sizes.colours / task.shape[2],
        bytes_per_sample=8.0,
    )


def _parts(task: CudaTask, radius: int, patch: int) -> tuple[tuple[slice, slice], ...]:
    """Return the part that the host hands over for each step, with the halo of the patches."""
    if radius:
        return tuple(
            (slice(step, step - 2 * radius or None), slice(None)) for step in range(2 * radius + 1)
        )
    rows, columns = task.output_shape[:2]
    return tuple(
        (slice(top, top + PART + patch - 1), slice(left, left + PART + patch - 1))
        for top in range(0, rows, PART)
        for left in range(0, columns, PART)
    )
