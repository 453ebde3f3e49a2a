"""The plan of a filter's CUDA launches, as plain data.

A filter says which kernel of its ``.cu`` runs at a level, how it is specialised and how large
its blocks are. Compiling, memory, strips, splitting and timing are the backend's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import CONSTANT, SHARED, SINGLE_BLOCK, TEXTURE, TUNED, Level

HARDWARE_BORDERS = frozenset(
    {Border.REFLECT, Border.NEAREST, Border.CONSTANT, Border.WRAP, Border.KEEP}
)
"""The borders that a texture unit can treat by itself, in the whole of a grey image."""

NO_MASK = "All weights are one: there is no mask to keep in constant memory."
"""Why averages do not offer the level *constant*."""


@dataclass(frozen=True)
class CudaTask:
    """The task that a filter plans launches for."""

    shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    """Of the whole source and of the whole result: (height, width, channels), or (depth, height,
    width, components) for a volume, whose rows are slices."""
    dtype: np.dtype[Any]
    """uint8, uint16 or float32."""
    parameters: Mapping[str, Any]
    """Validated values, one for each parameter of the filter."""
    border: Border
    level: str
    """Identifier of the level to compute at."""
    block: tuple[int, int] | None = None
    """Threads of a block in x and y that the user wants at the levels up to *texture*; by default
    the plan chooses. *tuned* has its own blocks."""

    @property
    def row_samples(self) -> int:
        return math.prod(self.shape[1:])

    @property
    def out_row_pixels(self) -> int:
        return math.prod(self.output_shape[1:-1])

    @property
    def out_row_samples(self) -> int:
        return math.prod(self.output_shape[1:])

    @property
    def busiest_row_samples(self) -> int:
        """Samples of a row of the source or of the result, in pixels of the result: the more."""
        return self.out_row_pixels * max(self.shape[-1], self.output_shape[-1])

    def defines(self, **more: int | str) -> dict[str, str]:
        """Return the macros that every kernel has, and `more`."""
        return {
            "SAMPLE_BITS": str(8 * self.dtype.itemsize),
            "BORDER": str(self.border.code),
            **{name: str(value) for name, value in more.items()},
        }


@dataclass(frozen=True)
class Scratch:
    """A buffer on the card by which the kernels of a plan hand on intermediate results.

    A strip has one for its own rows, uninitialised.
    """

    row_bytes: int = 0
    """For each row of the output."""
    more_bytes: int = 0
    """In addition, whatever the number of rows: the halo of a padded picture."""
    whole: bool = False
    """It has all rows of the output in every strip."""
    margin: int | None = None
    """It has floats at the pixels of the output, with this many more columns on each side, and half
    of `more_bytes` in rows above: a copy of the source, or the result of a pass. A row of it is one
    or several lines side by side, mostly one for each colour."""
    at_pixels: int = 0
    """Bytes of its values, one for each sample of the source's rows, in their order: of each pixel,
    the result of a pass. 0: its values are others."""

    def size(self, rows: int, all_rows: int) -> int:
        """Return the bytes that `rows` rows of the output need, of `all_rows` in all."""
        return self.row_bytes * (all_rows if self.whole else rows) + self.more_bytes


@dataclass(frozen=True)
class HandOver:
    """Data that the host copies to the card before each step of a launch."""

    source: str
    """The scratch buffer of which the host keeps a copy."""
    target: str
    """The one that gets a part of it."""
    pitch: int
    """Samples (float32) of a row of `source`."""
    lines: int
    """Lines that lie side by side in such a row: one a colour."""
    parts: tuple[tuple[slice, slice], ...]
    """For each step, the rows of `source` and the columns of every line. Rows count from the first
    one that a strip has; negative ones from the last."""


@dataclass(frozen=True)
class Launch:
    """One kernel over the whole output.

    The kernel's arguments are the source (a pointer, or a texture object), the output, each
    of `tables` and of `scratch` (pointers), the ``Geometry`` by value, and, where there are
    `steps`, the first one and the one after the last (ints).
    """

    kernel: str
    """Name of the function in the filter's ``.cu``."""
    defines: Mapping[str, str]
    """Macros: the specialisation."""
    block: tuple[int, ...]
    """Threads in x and y; for a volume in x, y and z."""
    bytes_per_sample: float
    operations_per_sample: float
    """Least traffic with device memory (read + written) and arithmetic, for the roofline and for
    the first guess of how long a launch takes."""
    tile: tuple[int, ...] | None = field(default=(0, 0))
    """Output pixels in x and y (and z) that one block computes; by default one a thread. None for a
    single block that strides over the output."""
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Values for the ``__constant__`` arrays of the ``.cu``, by name."""
    tables: tuple[NDArray[Any], ...] = ()
    """Arrays that the kernel reads from global memory."""
    shared_bytes: int = 0
    """Dynamic shared memory of a block."""
    texture: bool = False
    """The kernel reads the source through a texture object."""
    texture_of: tuple[str, int] | None = None
    """Where that is not the source: the scratch buffer of floats, and the samples in its rows."""
    scratch: tuple[str, ...] = ()
    """Which of the plan's scratch buffers the kernel gets."""
    steps: int = 0
    """Length of an outer loop that may be spread over several launches, because it takes long: each
    continues with the scratch of the last one. Step 0 of a pixel comes first. 0 if the kernel has
    no such loop."""
    steps_at_once: int | None = None
    """Most steps of a launch, where the level is about that."""
    hand_over: HandOver | None = None
    """Data that the host copies to the card before each step; `steps_at_once` is 1 then."""
    layers: int = 1
    """Blocks, along z of the grid, that share the work on a tile of a picture."""
    line: int = 0
    """Blocks that share all rows of tiles of a slice as one line: a block goes on in the next row
    where one ends, and `tile` is the size of its parts. 0 if tiles are rectangles."""
    aligned: bool = False
    """The last digits of a result depend on where its tile begins: a strip of the output has to
    begin where a tile of the whole does."""
    frame: int | None = None
    """Of a launch that does most of the work, but writes no pixel of the output: by how many pixels
    its first tile begins before those. None if it writes them."""
    mapped: bool = False
    """Source and output lie in page-locked host memory, which the kernel reads and writes over the
    bus; the pictures are brought there and back apart from the kernel's time."""

    def __post_init__(self) -> None:
        if self.tile == (0, 0):
            object.__setattr__(self, "tile", self.block)

    @property
    def is_plain(self) -> bool:
        """Whether it reads no texture, and needs nothing of the host while it runs."""
        return not (self.texture or self.mapped or self.hand_over)

    def grid(self, output_shape: tuple[int, ...], rows: int | None = None) -> tuple[int, ...]:
        """Return how many blocks it takes along each axis of the tile, for some of the rows."""
        if self.tile is None:
            return 1, 1
        sides = (*output_shape[-2:0:-1], output_shape[0] if rows is None else rows)
        blocks = tuple(-(-side // tile) for side, tile in zip(sides, self.tile, strict=True))
        if self.line:
            blocks = (self.line, 1, *blocks[2:])
        return (*blocks, self.layers) if self.layers > 1 else blocks


@dataclass(frozen=True)
class CudaPlan:
    """Kernels that compute a filter one after the other."""

    launches: tuple[Launch, ...]
    scratch: Mapping[str, Scratch] = field(default_factory=dict)
    """The buffers by which they hand on intermediate results."""
    notice: str = ""
    """How this plan differs from the request, for the user; or empty."""
    smaller: CudaPlan | None = None
    """For cards whose blocks have less shared memory than these launches need."""

    @property
    def shared_bytes(self) -> int:
        """The most dynamic shared memory of a block of any launch."""
        return max(launch.shared_bytes for launch in self.launches)

    @classmethod
    def of(cls, plan: Launch | CudaPlan) -> CudaPlan:
        """Return the result of a filter's plan as a `CudaPlan`; most filters need one launch."""
        return plan if isinstance(plan, CudaPlan) else cls((plan,))


@dataclass(frozen=True)
class Cuda:
    """A filter on a GPU with CUDA."""

    plan: Callable[[CudaTask], Launch | CudaPlan]
    """Maps a `CudaTask` to the launch or the launches that compute it."""
    levels: tuple[Level, ...]
    """The levels that `plan` supports, slowest first; some of `GPU_LEVELS` and the filter's own."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """The reason why another level of `GPU_LEVELS` is missing, by level id."""


def planned(
    spec: FilterSpec,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    parameters: Mapping[str, Any],
    border: Border,
    level: str,
    block: tuple[int, int] | None = None,
) -> tuple[CudaTask, CudaPlan]:
    """Return the task of a filter at a level for a source of `shape`, and the plan of it."""
    output = spec.output_shape(shape, parameters, border)
    task = CudaTask(shape, output, dtype, parameters, border, level, block)
    return task, CudaPlan.of(spec.implementation(Cuda).plan(task))


BLOCK = (32, 8)
"""Threads of a block at the levels up to *texture*: a warp a row, eight rows. The default of the
macros ``BLOCK_COLUMNS`` and ``BLOCK_ROWS``."""

SINGLE = (32, 32)
"""Threads of the only block at level *single-block*: as many as a block can have."""


_MOST_STRIDES = 2
PIXELS_A_STRIDE = 2**21
"""Output pixels for each tile of a block: large images keep a card busy with fewer blocks, whose
start then counts less. More than two made larger masks slower on an H100."""


def _strides(task: CudaTask) -> int:
    """Return the number of tiles that a block strides over."""
    pixels = task.output_shape[0] * task.out_row_pixels
    return min(max(pixels // PIXELS_A_STRIDE, 1), _MOST_STRIDES)


def level_launch(
    filter_id: str,
    task: CudaTask,
    radius: int,
    operations: float,
    *,
    block: tuple[int, int] = BLOCK,
    constants: Mapping[str, NDArray[Any]] | None = None,
    tables: tuple[NDArray[Any], ...] = (),
    arguments: Mapping[str, NDArray[Any]] | None = None,
    **defines: int | str,
) -> Launch:
    """Return the launch of a level up to *texture*, with the parts that all filters share.

    - `radius`: halo of the shared-memory tile, in pixels.
    - `operations`: arithmetic operations for each sample.
    - `block`: threads of a block where the user asks for none and the level is not *single-block*.
    - `constants`, `tables`: the mask in constant memory, for levels *constant*, *shared* and
      *texture*, and in global memory, for the others.
    - `arguments`: values in constant memory at all levels, like the arguments of a kernel.
    """
    level = task.level
    in_constant = level in (CONSTANT.id, SHARED.id, TEXTURE.id)
    if task.block is not None and level not in (SINGLE_BLOCK.id, TUNED.id):
        block = task.block
    if level == SINGLE_BLOCK.id:
        block = task.block or SINGLE  # the kernel asks for its size: no macros
    elif block != BLOCK:
        defines |= {"BLOCK_COLUMNS": block[0], "BLOCK_ROWS": block[1]}
    shared = 0
    if level == SHARED.id:
        cells = (block[0] + 2 * radius) * (block[1] + 2 * radius)
        shared = cells * task.shape[2] * task.dtype.itemsize
    # Kernels up to level texture are compiled for a number of channels; tuned kernels are not.
    defines |= {"TUNED": 1} if level == TUNED.id else {"CHANNELS": task.shape[2]}
    return Launch(
        kernel=f"{filter_id}_{level.replace('-', '_')}",
        defines=task.defines(**defines),
        block=block,
        tile=None if level == SINGLE_BLOCK.id else (block[0], block[1] * _strides(task)),
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=operations,
        constants={**(arguments or {}), **((constants or {}) if in_constant else {})},
        tables=() if in_constant else tables,
        shared_bytes=shared,
        texture=level == TEXTURE.id,
    )


BY_SIZE = True
"""Whether level *tuned* takes another level's kernel, or another shape of its own, for small
pictures; False for tests."""


def is_small(task: CudaTask, least: float) -> bool:
    """Return whether a kernel's second shape, for small pictures, is to compute fewer samples."""
    return BY_SIZE and task.output_shape[0] * task.out_row_samples < least


_SHARED_RADIUS = {Border.VALID: 5, Border.REDUCE: 4}
_SHARED_RADIUS_ELSE = 2
"""Smallest radius of a mask at which a tile in shared memory pays in small pictures: the level-1
cache serves the cells of smaller ones as well. Levels without a tile pay nothing for the border
`valid`; with one they look at cells twice for `reduce`, when they are read and when they count
(measured on an H100 as the bounds of `by_size`)."""


def quick_level(task: CudaTask, radius: int, other: Level) -> Level:
    """Return the level up to *texture* that is quickest: *shared*, or `other` for small masks.

    It is never *texture*, whose kernels need a copy of the picture as an array beforehand.
    """
    return SHARED if radius >= _SHARED_RADIUS.get(task.border, _SHARED_RADIUS_ELSE) else other


def by_size(
    task: CudaTask,
    launch: Launch,
    plan: Callable[[CudaTask], Launch | CudaPlan],
    level: Level,
    least: float,
) -> Launch | CudaPlan:
    """Return `launch`, or the plan of another level if the picture is too small for it.

    A thread of a tuned kernel computes many results one after another. That saves work, but takes
    its time however few threads there are, and a small picture has too few to keep a card busy.
    A level with a thread for each pixel then does all of its work, more as it is, in less time.

    - `launch`: the filter's launch for `task`; always returned at levels other than *tuned*.
    - `plan`: the filter's own plan, asked for the other level.
    - `level`: the quickest one up to *texture*, see `quick_level`.
    - `least`: samples of the result from which on the tuned kernel is quicker. The filters' bounds
      are from times on an H100, 128 to 4096 pixels squared, taken as tests/gpu/bench_tuned.py does,
      which lists the remaining differences.
    """
    if task.level != TUNED.id or not is_small(task, least):
        return launch
    quicker = CudaPlan.of(plan(replace(task, level=level.id, block=None)))
    notice = f"{TUNED.name} runs the kernel of level {level.name}, quicker at this size."
    return replace(quicker, notice=notice)
