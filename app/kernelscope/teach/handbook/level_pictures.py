"""A level as a drawing, with the numbers of the plan of one of its filters.

Three parts: the picture and its blocks, one block with its halo and the cells that a thread reads,
and the memories that the numbers pass through::

    picture        block of 32×8 threads          memories
    ▦▦▦▦▦          ┌────────────────┐             device memory
    ▦▣▦▦▦   --->   │   ▣ window     │   --->      caches, shared memory
    ▦▦▦▦▦          └────────────────┘             registers
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope import filters
from kernelscope.engine.request import Pass, Request
from kernelscope.engine.step import Step
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import Launch
from kernelscope.schema.launch import planned as launches_of
from kernelscope.schema.levels import Level, colour
from kernelscope.schema.samples import Kind
from kernelscope.teach.handbook.svg import INK, Drawing

_SIDES = {Kind.PICTURE: (4096, 4096), Kind.VOLUME: (128, 128, 128)}
_TYPES = {Kind.PICTURE: np.uint8, Kind.VOLUME: np.float32}
_WARP = 32
_HEAD = 40  # room above each part of a drawing for its heading of two lines


@dataclass(frozen=True)
class Planned:
    """The launch that does most of the work of a filter at a level."""

    filter: FilterSpec
    level: Level
    parameters: Mapping[str, Any]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    launch: Launch
    grid: tuple[int, ...]
    radius: int  # of the mask, in pixels
    several: int  # launches of the plan, one after the other
    operations: float  # arithmetic operations of all launches, for each sample of the result

    @property
    def sample_bytes(self) -> int:
        return self.shape[-1] * self.dtype.itemsize

    @property
    def threads(self) -> int:
        return math.prod(self.launch.block)

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def pixels_a_thread(self) -> float:
        return math.prod(self.shape[:-1]) / (self.blocks * self.threads)

    @property
    def pixel(self) -> str:
        return "voxel" if self.filter.kind is Kind.VOLUME else "pixel"

    @property
    def size(self) -> str:
        """The sides of the source in words, as ``4096×4096, 8 bit``."""
        sides = "×".join(str(side) for side in reversed(self.shape[:-1]))
        depth = "floats" if self.dtype.kind == "f" else f"{8 * self.dtype.itemsize} bit"
        return f"{sides}, {depth}"


def planned(spec: FilterSpec, level: Level) -> Planned:
    step = Step.of_numbers(spec.id)
    channels = min(n for n in (1, 3) if spec.bench.channels <= n)
    shape = (*_SIDES[spec.kind], channels)
    return _planned(step, level, shape, np.dtype(_TYPES[spec.kind]))


def planned_for(request: Request, level: Level) -> Planned:
    """Return the launch that does most of the work of a request at a GPU level.

    Raises `AppError` if the level cannot compute the request.
    """
    shape = request.source.planes.shape
    *before, last = request.passes()
    for each in before:
        shape = each.filter.output_shape(shape, each.parameters, each.border)
    return _planned(last, level, shape, request.source.pixels.dtype, request.options.block)


def _planned(
    step: Step | Pass,
    level: Level,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    block: tuple[int, int] | None = None,
) -> Planned:
    spec = step.filter
    task, plan = launches_of(spec, shape, dtype, step.parameters, step.border, level.id, block)
    launch = max(plan.launches, key=lambda each: each.operations_per_sample)
    return Planned(
        spec,
        level,
        step.parameters,
        shape,
        dtype,
        launch,
        launch.grid(task.output_shape),
        0 if spec.crop.grid > 1 else spec.radius(step.parameters),
        len(plan.launches),
        sum(each.operations_per_sample for each in plan.launches),
    )


def offering(device: str, level_id: str) -> list[FilterSpec]:
    return [
        spec
        for kind in Kind
        for spec in filters.discover(kind).values()
        if any(level.id == level_id for level in spec.levels(device))
    ]


def example_of(level_id: str) -> tuple[FilterSpec, int]:
    """Return the filter by which a GPU level is explained, and the place of the level in it.

    It is one with many levels and a mask.
    """
    offered = offering(Device.GPU, level_id)
    spec = max(offered, key=lambda spec: (len(spec.levels(Device.GPU)), spec.kind is Kind.PICTURE))
    return spec, [level.id for level in spec.levels(Device.GPU)].index(level_id)


def planned_example(level_id: str) -> Planned:
    spec, place = example_of(level_id)
    return planned(spec, spec.levels(Device.GPU)[place])


def draw(plan: Planned) -> Drawing:
    level = plan.level
    drawing = Drawing(
        f"Level {level.name} of {plan.filter.name}: {_blocks_in_words(plan)}, {level.help}"
    )
    _picture(drawing, plan, 0)
    left = _block(drawing, plan, 236)
    left = max(left, 524) + 40
    _memories(drawing, plan, left)
    if plan.launch.texture or level.access != "row":
        _reads(drawing, plan, 236, 214)
    return drawing


# The picture ---------------------------------------------------------------------------


def _blocks_in_words(plan: Planned) -> str:
    if plan.launch.tile is None:
        return f"1 block of {plan.threads} threads"
    return f"{plan.blocks:,} blocks of {plan.threads} thread{'s' * (plan.threads > 1)}"


def _heading(drawing: Drawing, left: float, text: str, note: str) -> None:
    drawing.text(left, 13, text, bold=True)
    drawing.text(left, 30, note, size=11)


def _picture(drawing: Drawing, plan: Planned, left: float) -> None:
    hue, side = colour(plan.level), 176
    source = "Volume" if plan.filter.kind is Kind.VOLUME else "Picture"
    _heading(drawing, left, f"{source}, {plan.size}", _blocks_in_words(plan))
    across, down = (2, 8) if plan.launch.block[0] > 2 * plan.launch.block[1] else (5, 5)
    wide, high = side / across, side / down
    alone = plan.launch.tile is None
    for row in range(down):
        for column in range(across):
            first = row == 0 and column == 0
            opacity = 0.75 if first else (0.0 if alone else 0.18)
            corner = left + column * wide, _HEAD + row * high
            drawing.rectangle(
                *corner, wide, high, fill=hue, opacity=opacity, thickness=0.6, dashed=alone
            )
    if alone:
        _strides(drawing, left, wide, high, across, down)
        drawing.text(left, _HEAD + side + 18, "the block strides over all tiles", size=11)
        drawing.text(left, _HEAD + side + 33, "one multiprocessor works", size=11)
    else:
        drawing.text(left, _HEAD + side + 18, "any multiprocessor takes any block", size=11)
        if plan.blocks != across * down:
            other = "fewer" if plan.blocks > across * down else "more"
            drawing.text(left, _HEAD + side + 33, f"a sketch, with {other} of them", size=11)
        if plan.several > 1:
            note = f"{plan.several} kernels, one after the other"
            drawing.text(left, _HEAD + side + 33, note, size=11)
    if plan.launch.hand_over is not None:
        note = "the host hands over each part"
        drawing.text(left, _HEAD + side + 48, note, size=11)


def _strides(
    drawing: Drawing, left: float, wide: float, high: float, across: int, down: int
) -> None:
    """Draw the way of a single block: along the rows of tiles."""
    for row in range(min(down, 3)):
        y = _HEAD + (row + 0.5) * high
        drawing.arrow(left + wide * 0.5, y, left + (across - 0.5) * wide, y)


# The block -----------------------------------------------------------------------------


def _block(drawing: Drawing, plan: Planned, left: float) -> float:
    launch, hue, radius = plan.launch, colour(plan.level), plan.radius
    tile = launch.tile or launch.block
    columns, rows = tile[0], tile[1]
    cell = min(244 / (columns + 2 * radius), 110 / (rows + 2 * radius), 14)
    # Flat tiles are drawn higher than they are, or nothing of them would be seen.
    tall = max(cell, min(10.0, 40 / (rows + 2 * radius)))
    warps = -(-plan.threads // _WARP)
    _heading(
        drawing,
        left,
        f"One block: {'×'.join(map(str, launch.block))} threads",
        f"{warps} warp{'s' * (warps > 1)} of {_WARP}; tile {'×'.join(map(str, tile))}"
        f"; {_amount(plan.pixels_a_thread, plan.pixel)} a thread",
    )
    wide, high = (columns + 2 * radius) * cell, (rows + 2 * radius) * tall
    shared = launch.shared_bytes > 0
    if radius:
        drawing.rectangle(
            left, _HEAD, wide, high, fill=hue, opacity=0.25 if shared else 0, dashed=not shared
        )
    inner = left + radius * cell, _HEAD + radius * tall
    drawing.rectangle(*inner, columns * cell, rows * tall, fill=hue, opacity=0.3)
    if cell >= _FINEST:
        _threads(drawing, inner, (columns, rows), (cell, tall))
    # One thread, and the cells that it reads.
    x, y = inner[0] + columns // 3 * cell, inner[1] + rows // 2 * tall
    side = 2 * radius + 1
    drawing.rectangle(x - radius * cell, y - radius * tall, side * cell, side * tall, thickness=1.6)
    drawing.rectangle(x, y, cell, tall, fill=INK)
    below = _HEAD + high + 18
    for text in _block_notes(plan):
        drawing.text(left, below, text, size=11)
        below += 15
    return left + wide


_FINEST = 3  # pixels of the smallest cell of which a grid is drawn


def _threads(
    drawing: Drawing,
    corner: tuple[float, float],
    sides: tuple[int, int],
    cell: tuple[float, float],
) -> None:
    left, top = corner
    right, bottom = left + sides[0] * cell[0], top + sides[1] * cell[1]
    for column in range(sides[0] + 1):
        x = left + column * cell[0]
        drawing.line(x, top, x, bottom, thickness=0.4, opacity=0.5)
    for row in range(sides[1] + 1):
        y = top + row * cell[1]
        drawing.line(left, y, right, y, thickness=0.4, opacity=0.5)


def _amount(pixels: float, name: str) -> str:
    """Return ``2 pixels``, ``0.74 voxels``: fewer than one where threads are idle, or share one."""
    amount = f"{pixels:.2g}" if pixels < 1 else f"{pixels:,.0f}"
    return f"{amount} {name}{'s' * (amount != '1')}"


def _block_notes(plan: Planned) -> list[str]:
    """Return the reads of a thread and the shared memory of its block, by the plan."""
    launch, radius, notes = plan.launch, plan.radius, []
    cells = (2 * radius + 1) ** (3 if plan.filter.kind is Kind.VOLUME else 2)
    if radius:
        notes.append(f"one thread, and its window of {cells:,} cells")
    if launch.shared_bytes:
        notes.append(f"shared memory of a block: {launch.shared_bytes:,} bytes")
        with_halo = 0
        if launch.tile is not None and radius and plan.filter.kind is Kind.PICTURE:
            sides = [side + 2 * radius for side in launch.block]
            with_halo = math.prod(sides)
            each = with_halo / math.prod(launch.block)
        if with_halo and with_halo * plan.sample_bytes == launch.shared_bytes:
            loaded, used = ("×".join(map(str, part)) for part in (sides, launch.block))
            notes.append(f"halo {radius}: {loaded} samples for {used} pixels, {each:.2f} a pixel")
    elif radius:
        notes.append("dashed: the halo, which neighbouring blocks read too")
    constants = sum(values.nbytes for values in launch.constants.values())
    if constants:
        notes.append(f"constant memory: {constants:,} bytes")
    if launch.tables:
        size = sum(table.nbytes for table in launch.tables)
        notes.append(f"weights in global memory: {size:,} bytes")
    return notes


# The memories --------------------------------------------------------------------------


_PLACES = (
    (0, 0, "over the bus"),
    (1, 2, "one for the card"),
    (3, 6, "one for each multiprocessor"),
    (7, 8, "of each thread"),
)
"""Whose the memories are, by the first and the last of them."""


def _memories(drawing: Drawing, plan: Planned, left: float) -> None:
    launch, hue = plan.launch, colour(plan.level)
    _heading(drawing, left, "Memories", "filled: used by this kernel")
    remote = launch.mapped or launch.hand_over is not None
    local = plan.level.access == "local"
    boxes = [
        ("memory of the computer", remote),
        ("global memory", not launch.mapped),
        ("L2 cache", not launch.mapped),
        ("L1 cache", not (launch.texture or launch.mapped)),
        ("texture unit and cache", launch.texture),
        ("constant cache", bool(launch.constants)),
        ("shared memory", launch.shared_bytes > 0),
        ("local memory of a thread", local),
        ("registers", True),
    ]
    width, height, gap = 196, 22, 7
    for number, (name, filled) in enumerate(boxes):
        top = _HEAD + number * (height + gap)
        drawing.rectangle(
            left,
            top,
            width,
            height,
            fill=hue,
            opacity=0.55 if filled else 0,
            thickness=1.2 if filled else 0.6,
            dashed=not filled,
            round_=4,
        )
        drawing.text(left + 10, top + 15, name, size=12, bold=filled)
    right = left + width + 9
    for first, last, text in _PLACES:
        top = _HEAD + first * (height + gap)
        _bracket(drawing, right, top, _HEAD + last * (height + gap) + height, text)


def _bracket(drawing: Drawing, left: float, top: float, bottom: float, text: str) -> None:
    drawing.line(left, top, left, bottom, thickness=1.2)
    drawing.text(left + 7, (top + bottom) / 2 + 4, text, size=11)


# The reads of a warp -------------------------------------------------------------------


def _reads(drawing: Drawing, plan: Planned, left: float, top: float) -> None:
    """Draw how the threads of a warp meet the memory, where that is the point of the level."""
    hue, cell = colour(plan.level), 11
    if plan.launch.texture:
        note = "schematic: cached by neighbourhoods"
        drawing.text(left, top, note, size=11)
        for y in range(4):
            for x in range(16):
                inside = x // 4 == 1
                corner = left + x * cell, top + 8 + y * cell
                opacity = 0.7 if inside else 0.1
                drawing.rectangle(*corner, cell, cell, fill=hue, opacity=opacity, thickness=0.4)
        return
    apart = plan.level.access == "apart"
    note = "neighbouring threads read samples that lie apart"
    drawing.text(left, top, note if apart else "each thread has its own array", size=11)
    for x in range(24):
        filled = x % 6 == 0 if apart else x % 6 < 3
        corner = left + x * cell, top + 40
        opacity = 0.7 if filled else 0.1
        drawing.rectangle(*corner, cell, cell, fill=hue, opacity=opacity, thickness=0.4)
    for thread in range(4):
        middle = left + (thread + 0.5) * cell * (2 if apart else 6)
        drawing.text(middle, top + 18, str(thread), size=10, anchor="middle")
        end = left + (thread * 6 + 0.5) * cell
        drawing.arrow(middle, top + 21, end if apart else middle, top + 38, thickness=1)


# The processor -------------------------------------------------------------------------

_CORES = 4  # cores of the drawing; a processor has more or fewer


def draw_cpu(level: Level) -> Drawing:
    hue, side = colour(level), 176
    drawing = Drawing(f"CPU level {level.name}: {level.help}")
    if level.single:
        _heading(drawing, 0, "Picture", "one thread, row after row, pixel after pixel")
        for row in range(11):
            y = _HEAD + (row + 0.5) * side / 11
            drawing.arrow(6, y, side - 6, y, stroke=hue)
        drawing.rectangle(0, _HEAD, side, side)
    else:
        _heading(drawing, 0, "Picture", f"bands of rows, drawn for {_CORES} cores")
        bands = 2 * _CORES
        for band in range(bands):
            top = _HEAD + band * side / bands
            opacity = 0.2 + 0.2 * (band % _CORES)
            drawing.rectangle(0, top, side, side / bands, fill=hue, opacity=opacity, thickness=0.6)
            drawing.text(8, top + 15, f"core {band % _CORES + 1}", size=11)
    left = side + 60.0
    _heading(drawing, left, "One core", "")
    lanes = 1 if level.single else 8
    note = "one sample an instruction" if lanes == 1 else "several samples an instruction"
    drawing.text(left, 30, note, size=11)
    for lane in range(lanes):
        drawing.rectangle(left + lane * 22, _HEAD, 22, 22, fill=hue, opacity=0.5)
    for number, name in enumerate(("registers", "L1 and L2 cache", "L3 cache", "memory")):
        top = _HEAD + 44 + number * 31
        drawing.rectangle(left, top, 176, 24, fill=hue, opacity=0.3, round_=4)
        drawing.text(left + 10, top + 16, name, size=12)
    right = left + 176 + 9
    for first, last, text in ((0, 1, "of each core"), (2, 3, "shared by all cores")):
        _bracket(drawing, right, _HEAD + 44 + first * 31, _HEAD + 44 + last * 31 + 24, text)
    return drawing
