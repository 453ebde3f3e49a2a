"""The pages of the lecture, in their order: controls, a drawing, and numbers with their origin."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cuda.strips import strip
from kernelscope.base.durations import duration
from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import parse
from kernelscope.base.text import enumerated, significant
from kernelscope.bench.plan import MEASURABLE
from kernelscope.bench.recorded import FOLDER, RecordedTime, card_of, day, figures_of
from kernelscope.bench.report import load
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.launch import HARDWARE_BORDERS
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, colour
from kernelscope.schema.parameters import (
    Choice,
    ChoiceParameter,
    IntParameter,
    OddParameter,
    Parameter,
)
from kernelscope.teach.handbook.svg import ACCENT
from kernelscope.teach.lecture.page import (
    Count,
    Demonstration,
    LecturePage,
    LectureSubject,
    NamedNumber,
    as_recorded,
    by_formula,
    by_plan,
    of_card,
    of_picture,
)
from kernelscope.teach.lecture.parts import (
    BLOCK,
    CARD,
    SHOWN,
    STRONG,
    Bar,
    Board,
    block_of,
    filtered,
    launch_of,
    limits_of,
    plan_of,
    published,
    side,
)
from kernelscope.traffic.gpus import Gpu, Residence, residence
from kernelscope.traffic.totals import BANKS, FROM_DEVICE, PAST_L1
from kernelscope.traffic.trace import WARP

PAGES: dict[str, LecturePage] = {}  # the pages in their order, by id

_Show = Callable[[LectureSubject, Mapping[str, Any]], Demonstration]


def _page(*controls: Parameter, **about: Any) -> Callable[[_Show], _Show]:
    """Add the page whose id is the name of the decorated function."""

    def add(show: _Show) -> _Show:
        name = show.__name__.removeprefix("_")
        PAGES[name] = LecturePage(name, controls, show, **about)
        return show

    return add


def _border(default: Border, offered: Iterable[Border]) -> ChoiceParameter:
    return ChoiceParameter(
        name="border",
        label="Border",
        help="Values outside of the picture",
        default=str(default),
        choices=tuple(Choice(str(each), str(each), each.help) for each in offered),
    )


def _refusal(error: AppError, facts: Iterable[NamedNumber]) -> Demonstration:
    """Show why a filter cannot run on the picture."""
    board = Board(error.message)
    board.heading(0, 16, error.message, error.hint)
    return Demonstration(board, tuple(facts))


def _operations(
    filter_id: str, levels: Iterable[str], subject: LectureSubject, parameters: Mapping[str, Any]
) -> Iterator[NamedNumber]:
    for level in filters.get(filter_id).levels(Device.GPU):
        if level.id in levels:
            plan = plan_of(filter_id, level, subject.shape, parameters)
            count = sum(launch.operations_per_sample for launch in plan.launches)
            yield by_plan(f"Operations, {level.name.lower()}", f"{count:,.0f}", plan.notice)


LADDERS = "gpu-ladder.json", "gpu-ladder-others.json", "gpu-n-nlm.json"
"""The recorded reports with every level of filters, by the size of the mask or patch."""


@functools.cache
def _recorded(report: str) -> tuple[RecordedTime, ...]:
    """Return the figures of one of the project's reports; none if it is not installed."""
    path = FOLDER / report
    try:
        return tuple(figures_of(load(path), path))
    except AppError:
        return ()


def _gain(filter_id: str, level: str, over: str, size: int) -> Iterator[NamedNumber]:
    """Yield how many times as fast as another level one is, on the largest picture recorded."""
    pairs: dict[tuple[int, ...], dict[str, RecordedTime]] = {}
    for figure in itertools.chain.from_iterable(map(_recorded, LADDERS)):
        row = figure.row
        if row.filter == filter_id and row.seconds and row.channels == 1:
            side = figure.values.get("size", figure.values.get("patch"))
            if size == (len(figure.values["mask"]) if side is None else side):
                pairs.setdefault(tuple(row.asked), {})[row.level] = figure
    found = [each for each in pairs.items() if {over, level} <= each[1].keys()]
    if found:
        _, recorded = max(found)
        own = recorded[level]
        faster = recorded[over].seconds / own.seconds
        spec = filters.get(filter_id)
        names = {each.id: each.name.lower() for each in spec.levels(Device.GPU)}
        yield as_recorded(
            f"Speed-up of {names[level]} over {names[over]}, {spec.name.lower()} {size}×{size}"
            f"{' in the whole image' if own.values.get('search') == 'image' else ''}, "
            f"{own.row.size}",
            f"{significant(faster)}×",
            f"{own.card}, {own.date}",
        )


# Why memory matters: the reads of a small mask, and those that are necessary.


@_page(
    side(5),
    CARD,
    figures=lambda: published("M", filter="mean"),
    filters=("mean",),
    counted=lambda values: Count(
        "mean",
        (GLOBAL.id,),
        {"size": values["size"]},
        ("global loads", "global stores", "bytes of device memory"),
    ),
)
def _memory(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, card = values["size"], SHOWN[values["card"]]
    launch = launch_of("mean", GLOBAL, subject.shape, {"size": size})
    samples = subject.pixels.size
    floor = samples * launch.bytes_per_sample / card.bandwidth
    unshared = samples * (size * size + 1) / card.bandwidth
    facts = (
        by_formula("Cells that each pixel of the result needs", f"{size * size}"),
        by_plan(
            "Bytes a pixel that must move: read once, write once", f"{launch.bytes_per_sample:g}"
        ),
        by_plan(
            "Operations for each of these bytes",
            f"{launch.operations_per_sample / launch.bytes_per_sample:.3g}",
        ),
        of_card(f"Bandwidth of {card.name}", f"{card.bandwidth / 1e9:,.0f} GB/s"),
        by_formula(f"Least time for {subject.size} pixels on {card.name}", duration(floor)),
        by_formula("The same if no cell were read from a cache", duration(unshared)),
    )
    return Demonstration(_memory_drawing(subject, size, launch.bytes_per_sample), facts)


def _memory_drawing(subject: LectureSubject, size: int, least: float) -> Board:
    board = Board(f"A mask of {size}×{size} on the picture, and the bytes it reads for a pixel")
    part, top, left = subject.part(17, 17)
    board.heading(0, 16, "One pixel of the result", f"row {top}, column {left} on, enlarged")
    x, y, cell = board.fitted(0, 46, (380, 380), part)
    rows, columns = part.shape
    across, down = min(size, columns), min(size, rows)
    middle_x, middle_y = columns // 2, rows // 2
    first_x, first_y = middle_x - across // 2, middle_y - down // 2
    board.frame(x + first_x * cell, y + first_y * cell, across * cell, down * cell)
    board.frame(x + middle_x * cell, y + middle_y * cell, cell, cell, stroke=ACCENT, thickness=2.5)
    board.heading(410, 16, "Bytes for a pixel", "8-bit samples")
    board.bars(
        410,
        56,
        240,
        (
            Bar("asked for by the threads", size * size + 1, f"{size * size + 1}", STRONG),
            Bar("must move", least, f"{least:g}", ACCENT, hatched=True),
        ),
    )
    return board


# One block or many: the picture cut into tiles, and the multiprocessors that take them.

_FINEST = 2.5  # units of the narrowest tile of which a grid is drawn


@_page(
    BLOCK,
    CARD,
    figures=lambda: published("M", variant="single-block") + published("M", variant="global"),
    filters=("mean",),
)
def _blocks(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    card, block = SHOWN[values["card"]], block_of(values["block"])
    launch = launch_of("mean", GLOBAL, subject.shape, {"size": 3}, block=block)
    assert launch.tile is not None
    across, down = launch.grid(subject.shape)
    blocks = across * down
    working = min(blocks, card.multiprocessors)
    facts = (
        by_plan("Blocks of the grid", f"{across}×{down} = {blocks:,}"),
        by_plan("Threads of a block", f"{launch.block[0] * launch.block[1]:,}"),
        by_plan("Pixels of a tile", "×".join(map(str, launch.tile))),
        of_card(f"Multiprocessors of {card.name}", f"{card.multiprocessors}"),
        by_formula("Blocks for each of them", f"{blocks / card.multiprocessors:,.1f}"),
        by_formula("With many blocks, multiprocessors that work", f"{working}"),
    )
    return Demonstration(_blocks_drawing(subject, launch.tile, working, card), facts)


def _blocks_drawing(
    subject: LectureSubject, tile: tuple[int, ...], working: int, card: Gpu
) -> Board:
    board = Board(f"The picture in tiles of {tile[0]}×{tile[1]}; {working} are in work at once")
    board.heading(
        0,
        16,
        f"{subject.size} pixels in tiles of {tile[0]}×{tile[1]}",
        "Filled: the first tile for each multiprocessor.",
    )
    x, y, cell = board.fitted(0, 46, (400, 390), subject.pixels)
    height, width = subject.pixels.shape
    wide, high = tile[0] * cell, tile[1] * cell
    across, down = -(-width // tile[0]), -(-height // tile[1])
    right, bottom = x + width * cell, y + height * cell
    for number in range(min(working, across * down)):
        left, top = x + number % across * wide, y + number // across * high
        board.rectangle(
            left,
            top,
            min(wide, right - left),
            min(high, bottom - top),
            fill=STRONG,
            opacity=0.55,
            stroke="#ffffff",
            thickness=0.4,
        )
    if min(wide, high) >= _FINEST:
        for column in range(across + 1):
            at = min(x + column * wide, right)
            board.line(at, y, at, bottom, stroke=ACCENT, thickness=0.5)
        for row in range(down + 1):
            at = min(y + row * high, bottom)
            board.line(x, at, right, at, stroke=ACCENT, thickness=0.5)
    board.heading(430, 16, "Multiprocessors", f"that work at once on {card.name}")
    board.bars(
        430,
        56,
        226,
        (
            Bar("one block", 1, "1", colour(SINGLE_BLOCK)),
            Bar("many blocks", working, f"{working}", colour(GLOBAL)),
            Bar("on the card", card.multiprocessors, f"{card.multiprocessors}", hatched=True),
        ),
    )
    return board


# Coalescing: the sectors of memory that a warp touches with one load.

SECTOR, LINE = 32, 128  # bytes that memory delivers at once, and of a line of the cache

_BYTES = {"1": "8 bit", "2": "16 bit", "4": "float"}
_SAMPLE = ChoiceParameter(
    name="sample",
    label="Sample",
    help="Type of a sample",
    default="4",
    choices=tuple(Choice(value, label) for value, label in _BYTES.items()),
)

_FEWEST_LINES, _MOST_LINES = 7, 12

_SCALE = 4.6  # units of the drawing for a byte


def sectors(stride: int, first: int, sample_bytes: int) -> int:
    """Return the sectors that a load of a warp touches: thread t reads sample first + t·stride."""
    step = stride * sample_bytes
    if step >= SECTOR:
        return WARP
    start = first * sample_bytes
    # No sector is skipped by steps that are shorter than one.
    return (start + (WARP - 1) * step) // SECTOR - start // SECTOR + 1


@_page(
    IntParameter(
        name="stride",
        label="Stride",
        help="Samples from one thread's to the next",
        default=1,
        minimum=1,
        maximum=32,
    ),
    IntParameter(
        name="first",
        label="First sample",
        help="Offset of the first thread's sample from the start of a line",
        default=0,
        minimum=0,
        maximum=31,
    ),
    _SAMPLE,
    # Return the negative, whose level *uncoalesced* lets a warp read down a column.
    counted=lambda values: Count(
        "negative", ("uncoalesced", "global"), {}, ("global loads", "global sectors")
    ),
)
def _coalescing(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    stride, first, size = values["stride"], values["first"], int(values["sample"])
    touched = sectors(stride, first, size)
    used, fetched = WARP * size, SECTOR * touched
    facts = (
        by_formula("Sectors of 32 bytes that the warp touches", f"{touched}"),
        by_formula("Bytes that memory delivers", f"{fetched:,}"),
        by_formula("Bytes that the threads use", f"{used:,}"),
        by_formula("Used of the bytes delivered", f"{100 * used / fetched:.1f} %"),
    )
    return Demonstration(_coalescing_drawing(subject, stride, first, size), facts)


def _coalescing_drawing(subject: LectureSubject, stride: int, first: int, size: int) -> Board:
    board = Board("Memory in sectors of 32 bytes; those that a warp touches are framed")
    last = (first + (WARP - 1) * stride) * size // LINE
    lines = max(_FEWEST_LINES, min(last + 1, _MOST_LINES))
    board.heading(
        0,
        16,
        "Memory: pixels of the picture, row after row",
        "A line of the cache has 128 bytes: four sectors. Framed: delivered. "
        "Orange: read by a thread.",
    )
    left, top, pitch = 60, 52, 360 / lines
    high = 0.6 * pitch
    cells = LINE // size
    row = _row_of_memory(subject, lines * cells)
    reads = {first + thread * stride for thread in range(WARP)}
    for line in range(lines):
        y = top + line * pitch
        part = row[line * cells : (line + 1) * cells]
        board.picture(left, y, LINE * _SCALE, high, part[None, :])
        board.text(left - 8, y + 0.5 * high + 4, f"{line * LINE}", size=11, anchor="end")
        for cell in range(cells):
            if line * cells + cell in reads:
                x = left + cell * size * _SCALE
                board.rectangle(
                    x, y + high, size * _SCALE, 6, fill=STRONG, stroke="none", thickness=0
                )
        for sector in range(LINE // SECTOR):
            start = line * cells + sector * SECTOR // size
            x, width = left + sector * SECTOR * _SCALE, SECTOR * _SCALE
            if any(start <= each < start + SECTOR // size for each in reads):
                board.frame(x + 1, y, width - 2, high, thickness=2)
            else:
                board.rectangle(x, y, width, high, fill="#808080", opacity=0.55, thickness=0.5)
    if last + 1 > lines:
        more = f"… the warp reads on to byte {(last + 1) * LINE - 1}"
        board.text(left, top + lines * pitch + 12, more, size=13)
    return board


def _row_of_memory(subject: LectureSubject, samples: int) -> np.ndarray[Any, Any]:
    """Return the samples from the start of a row on, over the picture's end from its beginning."""
    _, top, _ = subject.part(1, 1)
    flat = subject.pixels.reshape(-1)
    start = top * subject.pixels.shape[1]
    return np.take(flat, range(start, start + samples), mode="wrap")


# Caches: the sectors that warps ask for, those that leave a multiprocessor, and those of memory.


class Sectors(NamedTuple):
    """Sectors of a block whose threads read all cells of a mask, a pixel each."""

    warps: int  # of all requests of its warps
    block: int  # different ones: misses of an L1 cache that keeps them


def block_sectors(
    shape: tuple[int, ...], corner: tuple[int, int], block: tuple[int, int], size: int
) -> Sectors:
    """Return the sectors of bytes that a block reads whose first pixel is at (row, column)."""
    thread = np.arange(block[0] * block[1])
    pixel = corner[0] + thread // block[0], corner[1] + thread % block[0]
    cells = np.arange(size) - size // 2
    row, column = (
        np.clip(at[:, None] + cells, 0, length - 1)
        for at, length in zip(pixel, shape, strict=False)
    )
    sector = (row[:, :, None] * shape[1] + column[:, None, :]).reshape(-1, size * size) // SECTOR
    request = thread[:, None] // WARP * size * size + np.arange(size * size)
    pairs = np.unique(np.stack((request.ravel(), sector.ravel())), axis=1)
    return Sectors(pairs.shape[1], len(np.unique(sector)))


@_page(
    side(5),
    BLOCK,
    CARD,
    filters=("mean",),
    counted=lambda values: Count(
        "mean",
        (GLOBAL.id, SHARED.id),
        {"size": values["size"]},
        ("global sectors", PAST_L1, FROM_DEVICE),
        block_of(values["block"]),
    ),
)
def _caches(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, block, card = values["size"], block_of(values["block"]), SHOWN[values["card"]]
    height, width = subject.pixels.shape
    corner = height // 2 // block[1] * block[1], width // 2 // block[0] * block[0]
    found = block_sectors(subject.shape, corner, block, size)
    asked, left = (SECTOR * count / (block[0] * block[1]) for count in found)
    facts = [
        by_formula("Bytes asked for by warps, a pixel", f"{asked:.3g}"),
        by_formula("Bytes past L1, a pixel", f"{left:.3g}"),
        by_formula("Requests that L1 answers, at best", f"{100 * (1 - left / asked):.1f} %"),
        by_formula("Of those past it, L2 answers at best", f"{100 * (1 - 1 / left):.1f} %"),
        of_picture("Size of the picture", _mebibytes(subject.pixels.size)),
    ]
    if card.cache:
        facts.append(of_card(f"L2 cache of {card.name}", _mebibytes(card.cache)))
    facts += _gain("mean", SHARED.id, GLOBAL.id, size)
    return Demonstration(_caches_drawing(subject, corner, block, size, asked, left), tuple(facts))


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.3g} MiB"


def _caches_drawing(
    subject: LectureSubject,
    corner: tuple[int, int],
    block: tuple[int, int],
    size: int,
    asked: float,
    left: float,
) -> Board:
    board = Board("A block on the picture, with the sectors that its threads read")
    reach, (height, width) = size // 2, subject.pixels.shape
    top, bottom = max(corner[0] - reach, 0), min(corner[0] + block[1] + reach, height)
    first = max(corner[1] - reach, 0) // SECTOR * SECTOR
    end = min(-(-(corner[1] + block[0] + reach) // SECTOR) * SECTOR, width)
    around = max(end - first - (bottom - top), 0) // 2  # rows above and below
    above = max(top - around, 0)
    part = np.ascontiguousarray(subject.pixels[above : bottom + around, first:end])
    board.heading(
        0,
        16,
        f"A block of {block[0]}×{block[1]} in the picture",
        "Solid: its pixels. Dashed: its sectors. Blue: cells of a thread.",
    )
    x, y, cell = board.fitted(0, 46, (420, 390), part)

    def frame(row: int, column: int, rows: int, columns: int, **style: Any) -> None:
        down, across = min(rows, height - row), min(columns, width - column)
        at = x + (column - first) * cell, y + (row - above) * cell
        board.frame(*at, across * cell, down * cell, **style)

    for column in range(first, end, SECTOR):
        frame(top, column, bottom - top, SECTOR, dashed=True)
    frame(*corner, block[1], block[0])
    frame(max(corner[0] - reach, 0), max(corner[1] - reach, 0), size, size, stroke=ACCENT)
    board.heading(440, 16, "Bytes for each pixel", "each sector misses once")
    board.bars(
        440,
        56,
        216,
        (
            Bar("asked for by warps", asked, f"{asked:.3g}", colour(GLOBAL)),
            Bar("past L1", left, f"{left:.3g}", STRONG),
            Bar("from device memory, at best", 1, "1", ACCENT, hatched=True),
        ),
    )
    return board


# The constant cache: the weights of a mask, one at a time for a whole warp.

_PITCH = 20.0


@_page(
    side(9),
    IntParameter(
        name="apart",
        label="Different weights",
        help="Addresses that the threads of a warp ask for at the same time",
        default=1,
        minimum=1,
        maximum=WARP,
    ),
    figures=lambda: (
        published("F", variant="global memory") + published("F", variant="constant memory")
    ),
    filters=("mask",),
    counted=lambda values: Count(
        "mask",
        (GLOBAL.id, CONSTANT.id),
        {"mask": ((1,) * values["size"],) * values["size"]},
        ("global loads", "constant loads"),
    ),
)
def _constant(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, apart = values["size"], values["apart"]
    mask = ((1,) * size,) * size
    launches = [
        launch_of("mask", level, subject.shape, {"mask": mask}) for level in (GLOBAL, CONSTANT)
    ]
    tables = sum(each.nbytes for each in launches[0].tables)
    kept = launches[1].constants.keys() - launches[0].constants.keys()
    constants = sum(launches[1].constants[name].nbytes for name in kept)
    facts = (
        by_formula("Weights that each thread reads", f"{size * size}"),
        by_plan("Weights in global memory at level global", f"{tables:,} bytes"),
        by_plan("In constant memory at level constant", f"{constants:,} bytes"),
        by_formula("Turns of the constant cache for one read of a warp", f"{apart}"),
        by_formula("For all weights of the mask", f"{apart * size * size:,}"),
        *_gain("mask", CONSTANT.id, GLOBAL.id, size),
    )
    return Demonstration(_constant_drawing(subject, apart), facts)


def _constant_drawing(subject: LectureSubject, apart: int) -> Board:
    board = Board(f"A warp of {WARP} threads asks the constant cache for {apart} weights at once")
    part, *_ = subject.part(1, WARP)
    board.heading(0, 16, "The pixels of a warp", "32 threads, a pixel of a row of the picture each")
    width = part.shape[1] * _PITCH
    board.picture(0, 46, width, 44, part)
    board.rectangle(0, 46, width, 44, thickness=1)
    for thread in range(WARP):
        target = thread % apart
        to_x = (target + 0.5) * _PITCH
        board.line(
            (thread + 0.5) * _PITCH, 92, to_x, 236, stroke=ACCENT, thickness=1.2, opacity=0.8
        )
    for weight in range(apart):
        board.rectangle(
            weight * _PITCH + 1, 238, _PITCH - 2, 34, fill=STRONG, opacity=0.6, thickness=1
        )
        board.text((weight + 0.5) * _PITCH, 260, f"{weight + 1}", size=11, anchor="middle")
    board.text(0, 298, "Weights asked for at once; the number is the turn in which each is sent.")
    kind = (
        "one turn: broadcast to all threads" if apart == 1 else f"{apart} turns, one after another"
    )
    board.text(0, 330, kind, size=20, bold=True)
    return board


# Tiles and halos: the pixels that a block loads into shared memory, for each of its own.


@_page(
    side(9),
    BLOCK,
    figures=lambda: published("F", filter="mask", shape=(4096, 4096), mask_side=9),
    filters=("mean", "mask"),
    counted=lambda values: Count(
        "mean",
        (GLOBAL.id, SHARED.id),
        {"size": values["size"]},
        ("global loads", "global sectors", "shared loads"),
        block_of(values["block"]),
    ),
)
def _tiles(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, block = values["size"], block_of(values["block"])
    launch = launch_of("mean", SHARED, subject.shape, {"size": size}, block=block)
    threads = launch.block[0] * launch.block[1]
    cells = launch.shared_bytes  # of bytes, in one channel
    a_pixel = cells / threads
    facts = (
        by_plan("Cells of the tile with its halo", f"{cells:,}"),
        by_plan("Halo, of all cells loaded", f"{100 * (1 - threads / cells):.1f} %"),
        by_plan("Cells from global memory, a pixel", f"{a_pixel:.3f}"),
        by_formula("The same at level global", f"{size * size}"),
        by_formula("Fewer reads, by a factor of", f"{size * size / a_pixel:.1f}"),
        by_plan("Shared memory of a block", f"{launch.shared_bytes:,} bytes"),
        *_gain("mean", SHARED.id, GLOBAL.id, size),
        # Custom masks have their weights in constant memory at both levels.
        *_gain("mask", SHARED.id, CONSTANT.id, size),
    )
    return Demonstration(_tiles_drawing(subject, size, launch.block, a_pixel), facts)


def _tiles_drawing(
    subject: LectureSubject, size: int, block: tuple[int, ...], a_pixel: float
) -> Board:
    board = Board(f"A tile of {block[0]}×{block[1]} pixels with the halo of a {size}×{size} mask")
    reach = size // 2
    columns, rows = block[0] + 2 * reach, block[1] + 2 * reach
    part, *_ = subject.part(rows, columns)
    board.heading(
        0,
        16,
        f"Tile {block[0]}×{block[1]}, with halo {columns}×{rows}",
        "Dashed: loaded. Solid: computed by the block. Blue: cells of one thread.",
    )
    x, y, cell = board.fitted(0, 46, (440, 390), part)
    if part.shape == (rows, columns):
        inner = x + reach * cell, y + reach * cell
        board.frame(x + 1, y + 1, columns * cell - 2, rows * cell - 2, dashed=True)
        board.frame(*inner, block[0] * cell, block[1] * cell)
        start = x + (block[0] // 3) * cell, y + (block[1] // 2) * cell
        board.frame(*start, size * cell, size * cell, stroke=ACCENT)
    else:
        board.text(x, y + part.shape[0] * cell + 20, "The picture is smaller than the tile.")
    board.heading(460, 16, "Global reads", "cells for each pixel")
    board.bars(
        460,
        56,
        196,
        (
            Bar("global: each its own", size * size, f"{size * size}", colour(GLOBAL)),
            Bar("shared: the tile", a_pixel, f"{a_pixel:.2f}", colour(SHARED)),
            Bar("best possible", 1, "1", STRONG, hatched=True),
        ),
    )
    return board


# Bank conflicts: the words of shared memory that a warp reads at once, in their banks.

_WORD = 4  # bytes with which a bank answers in a turn


def turns(offsets: NDArray[np.int64]) -> int:
    """Return the turns that shared memory takes for a warp's samples at these bytes."""
    words = np.unique(offsets // _WORD)
    return int(np.bincount(words % BANKS).max())


@_page(
    ChoiceParameter(
        name="read",
        label="A warp reads",
        help="Samples of the tile that the threads of a warp read at once",
        default="column",
        choices=(Choice("row", "a row"), Choice("column", "a column")),
    ),
    IntParameter(
        name="padding",
        label="Padding",
        help="Unused samples at the end of each row of the tile",
        default=0,
        minimum=0,
        maximum=8,
    ),
    _SAMPLE,
    # Each thread orders cells in its own copy of the window.
    counted=lambda values: Count(
        "median",
        (SHARED.id, "selection"),
        {},
        ("shared loads", "turns lost to bank conflicts"),
    ),
)
def _banks(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, pitch = int(values["sample"]), WARP + values["padding"]
    offsets = size * np.arange(WARP) * (1 if values["read"] == "row" else pitch)
    needed = turns(offsets)
    words = np.unique(offsets // _WORD)
    facts = (
        by_formula("Different words that the warp reads", f"{len(words)}"),
        by_formula("Banks that they lie in", f"{len(np.unique(words % BANKS))}"),
        by_formula("Turns for one read of the warp", f"{needed}"),
        by_formula("Turns lost to the conflict", f"{needed - 1}"),
        by_formula("Bytes of a row of the tile", f"{pitch * size}"),
        by_formula("Shared memory of the tile", f"{pitch * size * WARP:,} bytes"),
    )
    return Demonstration(_banks_drawing(subject, offsets, pitch, size, needed), facts)


def _banks_drawing(
    subject: LectureSubject, offsets: NDArray[np.int64], pitch: int, size: int, needed: int
) -> Board:
    board = Board(f"A tile in the banks of shared memory; a read of the warp takes {needed} turns")
    board.heading(
        0,
        16,
        "A tile of 32×32 samples in shared memory",
        "A column is a bank, a line one word of each. Orange: read by the warp. Blue: padding.",
    )
    part, *_ = subject.part(WARP, WARP)
    tile = np.zeros((WARP, pitch), np.uint8)
    tile[: part.shape[0], : part.shape[1]] = part
    samples = BANKS * _WORD // size  # of a line
    lines = -(-tile.size // samples)
    memory = np.zeros(lines * samples, np.uint8)
    memory[: tile.size] = tile.reshape(-1)
    left, top, wide = 24.0, 70.0, 600.0
    high = min(360 / lines, 22.0)
    board.picture(left, top, wide, high * lines, memory.reshape(lines, samples))
    bank, one = wide / BANKS, wide / samples

    def mark(sample: int, colour: str) -> None:
        line, column = divmod(sample, samples)
        x, y = left + column * one, top + line * high
        board.rectangle(x, y, one, high, fill=colour, opacity=0.75, stroke="#ffffff", thickness=0.8)

    for sample in range(tile.size):
        if sample % pitch >= WARP:
            mark(sample, ACCENT)
    busy = np.bincount(np.unique(offsets // _WORD) % BANKS, minlength=BANKS)
    for number in range(BANKS):
        x = left + number * bank
        board.text(
            x + bank / 2,
            top - 6,
            f"{number}",
            size=9,
            anchor="middle",
            bold=bool(busy[number] > 1),
        )
        if number:
            board.line(x, top, x, top + high * lines, thickness=0.5, opacity=0.6)
    for sample in (offsets // size).tolist():
        mark(sample, STRONG)
    return board


# Textures: pixels outside the picture, answered by hardware or by the kernel.

_Mode = Literal["symmetric", "reflect", "edge", "constant", "wrap"]

MODES: Mapping[Border, _Mode] = {
    Border.REFLECT: "symmetric",
    Border.MIRROR: "reflect",
    Border.NEAREST: "edge",
    Border.CONSTANT: "constant",
    Border.WRAP: "wrap",
}

"""NumPy's names of the borders that put values outside of the picture."""

_CORNER, _MARGIN = 40, 24  # pixels of the picture's corner that are shown, and outside of it


def outside_reads(shape: tuple[int, ...], size: int) -> int:
    """Return the cells that a mask at every pixel reads outside of a picture."""
    inside = 1
    for length in shape[:2]:
        at = np.arange(length)
        reach = size // 2
        first, last = np.maximum(at - reach, 0), np.minimum(at + reach, length - 1)
        inside *= int((last - first + 1).sum())
    return shape[0] * shape[1] * size * size - inside


@_page(
    _border(Border.REFLECT, MODES),
    side(9),
    figures=lambda: published("M", variant="shared") + published("M", variant="texture"),
    filters=("mean",),
    counted=lambda values: Count(
        "mean",
        (GLOBAL.id, TEXTURE.id),
        {"size": values["size"]},
        ("global loads", "texture fetches"),
    ),
)
def _textures(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, border = values["size"], Border(values["border"])
    launch = launch_of("mean", TEXTURE, subject.shape, {"size": size})
    outside = outside_reads(subject.shape, size)
    share = outside / (subject.pixels.size * size * size)
    unit = "texture unit" if border in HARDWARE_BORDERS else "code of the kernel"
    facts = (
        by_plan("Reads through a texture", "yes" if launch.texture else "no"),
        by_formula("Reads outside the picture", f"{outside:,}"),
        by_formula("Of all reads", f"{100 * share:.2f} %"),
        by_plan("They are answered by the", unit),
        by_formula("Copy into an array first", f"{subject.pixels.size:,} bytes"),
        *_gain("mean", TEXTURE.id, GLOBAL.id, size),
    )
    return Demonstration(_textures_drawing(subject, border, size), facts)


def _textures_drawing(subject: LectureSubject, border: Border, size: int) -> Board:
    board = Board(f"The upper left corner of the picture, continued outside by {border}")
    corner = subject.pixels
    margin = (
        _MARGIN if border is not Border.MIRROR else min(_MARGIN, *(n - 1 for n in corner.shape))
    )
    padded = np.pad(corner, max(margin, 0), mode=MODES[border])
    side_ = _CORNER + margin
    part = np.ascontiguousarray(padded[:side_, :side_])
    board.heading(0, 16, f"Border {border}: {border.help}", "Solid frame: the picture begins.")
    x, y, cell = board.fitted(0, 46, (390, 390), part)
    rows, columns = part.shape
    board.frame(
        x + margin * cell, y + margin * cell, (columns - margin) * cell, (rows - margin) * cell
    )
    reach = size // 2
    left, top = (max(margin - reach, 0),) * 2
    across = min(size, columns - left) * cell
    board.frame(x + left * cell, y + top * cell, across, across, stroke=ACCENT)
    hardware = border in HARDWARE_BORDERS
    board.heading(420, 80, "Outside the picture:", "blue: the mask of the corner pixel")
    board.text(420, 136, "texture unit" if hardware else "kernel", size=22, bold=True)
    board.text(420, 162, "no test in the code" if hardware else "tests each coordinate", size=13)
    board.rectangle(
        420,
        176,
        140,
        8,
        fill=STRONG if not hardware else ACCENT,
        stroke="none",
        dashed=not hardware,
    )
    return board


# Occupancy: the blocks that fit on a multiprocessor at a time, and the limit that stops more.


_BLOCKS_ACROSS = 4


@_page(
    BLOCK,
    IntParameter(
        name="registers",
        label="Registers",
        help="Registers of a thread, which the compiler decides",
        default=32,
        minimum=16,
        maximum=255,
        step=8,
    ),
    CARD,
    filters=("mean",),
)
def _occupancy(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    card, limits = SHOWN[values["card"]], limits_of(values["card"])
    block = block_of(values["block"])
    launch = launch_of("mean", SHARED, subject.shape, {"size": 9}, block=block)
    threads = launch.block[0] * launch.block[1]
    held = residence(limits, threads, values["registers"], launch.shared_bytes)
    facts = (
        by_plan("Shared memory of a block", f"{launch.shared_bytes:,} bytes"),
        by_plan("Warps of a block", f"{held.warps}"),
        by_formula("Blocks on a multiprocessor at a time", f"{held.blocks}"),
        by_formula("Reached first", enumerated(held.limits)),
        by_formula("Occupancy", f"{100 * held.occupancy:.1f} %"),
        of_card(
            f"Limits of {card.name}",
            f"{limits.threads:,} threads, {limits.registers:,} registers",
            "compute capability {}.{}".format(*card.capability),
        ),
    )
    return Demonstration(_occupancy_drawing(subject, held, block), facts)


def _occupancy_drawing(subject: LectureSubject, held: Residence, block: tuple[int, int]) -> Board:
    board = Board(f"{held.blocks} blocks on a multiprocessor, stopped by {enumerated(held.limits)}")
    board.heading(
        0,
        16,
        "One multiprocessor",
        f"{held.blocks} blocks of {held.warps} warps; {held.most_warps} warps fit",
    )
    rows = max(1, -(-held.blocks // _BLOCKS_ACROSS))
    high = min(90.0, 380 / rows)
    height, width = subject.pixels.shape[:2]
    # Blocks from the middle, where there is more to see than in a corner.
    middle = (height - rows * block[1]) // 2, (width - _BLOCKS_ACROSS * block[0]) // 2
    for number in range(held.blocks):
        x, y = number % _BLOCKS_ACROSS * 92, 46 + number // _BLOCKS_ACROSS * high
        top = (middle[0] + number // _BLOCKS_ACROSS * block[1]) % max(1, height - block[1])
        left = (middle[1] + number % _BLOCKS_ACROSS * block[0]) % max(1, width - block[0])
        tile = subject.pixels[top : top + block[1], left : left + block[0]]
        board.picture(x, y, 86, high - 6, tile)
        board.rectangle(x, y, 86, high - 6, stroke=ACCENT, thickness=1.5)
    if not held.blocks:
        board.text(0, 80, "The card refuses this launch.", size=18, bold=True)
    board.heading(400, 16, "Blocks that each limit allows", "the smallest decides")
    board.bars(
        400,
        56,
        256,
        [
            Bar(
                name + (" ← decides" if name in held.limits else ""),
                allowed,
                f"{allowed}",
                STRONG if name in held.limits else ACCENT,
                hatched=name not in held.limits,
            )
            for name, allowed in held.by.items()
        ],
    )
    return board


# Where transfers eat the gain: kernels and whole runs, as they were recorded.

REPORT = "gpu-f-graphs.json"  # the recorded report with the sizes and masks of source F


@_page(
    side(3, 9),
    figures=lambda: tuple(
        figure for figure in published("F", filter="median") if figure.parameters == {"size": "3"}
    ),
    filters=("median",),
)
def _transfers(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size = str(values["size"])
    chosen = [
        figure
        for figure in _recorded(REPORT)
        if (figure.row.filter, figure.row.level) == ("median", SHARED.id)
        and figure.row.parameters.get("size") == size
    ]
    chosen.sort(key=lambda figure: figure.row.asked)
    board = Board(f"Kernel and whole run of the median {size}×{size}, by the size of the picture")
    board.heading(
        0,
        16,
        f"Median {size}×{size}, level shared: share of the whole run",
        "Orange: the kernel. Outlined: transfers, launches and conversions.",
    )
    facts = []
    for number, figure in enumerate(chosen):
        side_, share = figure.row.asked[0], figure.seconds / figure.total
        y = 62 + 88 * number
        board.text(0, y + 14, f"{side_}×{side_}", bold=True, size=15)
        times = f"{duration(figure.seconds)} of {duration(figure.total)}"
        board.text(656, y + 14, times, anchor="end")
        board.rectangle(0, y + 24, 652, 26, stroke=ACCENT, thickness=1.5, dashed=True)
        board.rectangle(0, y + 24, max(652 * share, 1.5), 26, fill=STRONG, stroke=STRONG)
        facts.append(
            as_recorded(
                f"Median {size}×{size}, level shared, {side_}×{side_}: not the kernel",
                f"{100 * (1 - share):.1f} %",
                f"{figure.card}, {figure.date}",
            )
        )
    if not chosen:
        board.text(0, 80, "No recorded figures of this mask are installed.", size=15)
        facts.append(as_recorded("Recorded runs", "none"))
    return Demonstration(board, tuple(facts))


# Borders: the rim of a result, by the rule for pixels outside of the picture.

_MOST = 512  # side of the part that is filtered: `wrap` needs the opposite edge


def rim_pixels(shape: tuple[int, ...], size: int) -> int:
    inner = [max(0, length - 2 * (size // 2)) for length in shape[:2]]
    return shape[0] * shape[1] - inner[0] * inner[1]


@_page(
    _border(Border.CONSTANT, Border),
    side(9),
    filters=("mean",),
)
def _borders(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, border = values["size"], Border(values["border"])
    part = subject.pixels[:_MOST, :_MOST]
    rim = rim_pixels(part.shape, size)
    facts = [
        by_formula("Pixels whose mask reaches outside", f"{rim:,}"),
        by_formula("Of the picture", f"{100 * rim / part.size:.2f} %"),
    ]
    try:
        result = filtered(part, "mean", {"size": size}, border)
    except AppError as error:
        return _refusal(error, facts)
    facts.append(of_picture("Size of the result", "×".join(map(str, reversed(result.shape)))))
    if result.shape == part.shape:
        usual = filtered(part, "mean", {"size": size}, Border.REFLECT)
        apart = np.abs(result.astype(int) - usual)
        facts += [
            of_picture("Pixels that differ from border reflect", f"{np.count_nonzero(apart):,}"),
            of_picture("Largest difference, of 255", f"{apart.max()}"),
        ]
    return Demonstration(_borders_drawing(part, result, size, border), tuple(facts))


def _borders_drawing(
    part: np.ndarray[Any, Any], result: np.ndarray[Any, Any], size: int, border: Border
) -> Board:
    board = Board(f"The upper left corner before and after a mean {size}×{size}, border {border}")
    corners = part[:40, :40], result[:40, :40]
    titles = "Before", f"Mean {size}×{size}"
    notes = "the corner, enlarged", f"border {border}"
    for left, pixels, title, note in zip((0, 336), corners, titles, notes, strict=True):
        board.heading(left, 16, title, note)
        x, y, cell = board.fitted(left, 46, (320, 320), pixels)
        reach = min(size // 2, *pixels.shape)
        if pixels is corners[0] or border is not Border.VALID:
            rows, columns = pixels.shape
            board.frame(
                x + reach * cell,
                y + reach * cell,
                max(0, columns - reach) * cell,
                max(0, rows - reach) * cell,
                stroke=STRONG,
            )
    board.text(0, 390, "Inside the frame every border gives the same result.")
    board.text(0, 412, f"{border}: {border.help}.", size=12)
    return board


# Divergence: the warps in which a condition on the pixel's value holds for some threads only.

_PART = 128  # pixels a side of the detail that is shown


def divergent(condition: NDArray[np.bool_], warp: tuple[int, int]) -> NDArray[np.bool_]:
    """Return for each warp of (columns, rows) pixels whether its threads disagree."""
    columns, rows = warp

    def summed(values: NDArray[Any]) -> NDArray[np.int64]:
        down = np.add.reduceat(values.astype(np.int64), range(0, values.shape[0], rows), axis=0)
        return np.add.reduceat(down, range(0, values.shape[1], columns), axis=1)

    return (summed(condition) > 0) & (summed(~condition) > 0)


@_page(
    IntParameter(
        name="threshold",
        label="Threshold",
        help="The condition: the pixel is brighter than this",
        default=127,
        minimum=0,
        maximum=254,
    ),
    ChoiceParameter(
        name="warp",
        label="Warp",
        help="Pixels that the threads of a warp cover",
        default="32x1",
        choices=tuple(Choice(f"{x}x{y}", f"{x}×{y} pixels") for x, y in ((32, 1), (16, 2), (8, 4))),
    ),
)
def _divergence(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    warp, threshold = block_of(values["warp"]), values["threshold"]
    above = subject.pixels > threshold
    apart = divergent(above, warp)
    facts = (
        of_picture("Warps that diverge", f"{apart.sum():,} of {apart.size:,}"),
        of_picture("Of all warps", f"{100 * apart.mean():.1f} %"),
        of_picture("Brighter than the threshold", f"{100 * above.mean():.1f} %"),
        by_formula("Time, if both sides take as long", f"{1 + apart.mean():.2f}×"),
    )
    return Demonstration(_divergence_drawing(subject, warp, threshold, apart), facts)


def _divergence_drawing(
    subject: LectureSubject, warp: tuple[int, int], threshold: int, apart: NDArray[np.bool_]
) -> Board:
    board = Board(f"Warps of {warp[0]}×{warp[1]} pixels; {apart.sum()} of {apart.size} diverge")
    columns, rows = warp
    _, top, left = subject.part(_PART, _PART)
    top, left = top // rows * rows, left // columns * columns
    part = subject.pixels[top : top + _PART, left : left + _PART]
    board.heading(
        0,
        16,
        f"Is the pixel brighter than {threshold}?",
        "White: yes. Black: no. Orange: warps whose threads disagree.",
    )
    x, y, cell = board.fitted(
        0, 46, (420, 390), np.where(part > threshold, 255, 0).astype(np.uint8)
    )
    high, wide = part.shape
    shown = apart[top // rows :, left // columns :][: _PART // rows, : _PART // columns]
    for row, column in np.argwhere(shown).tolist():
        board.rectangle(
            x + column * columns * cell,
            y + row * rows * cell,
            min(columns, wide - column * columns) * cell,
            min(rows, high - row * rows) * cell,
            fill=STRONG,
            opacity=0.5,
            stroke="#ffffff",
            thickness=0.3,
        )
    board.heading(440, 16, "Time of the branch", "sides of equal length, whole picture")
    time = 1 + float(apart.mean())
    board.bars(
        440,
        56,
        216,
        (
            Bar("all warps agree", 1, "1×", ACCENT, hatched=True),
            Bar("this picture", time, f"{time:.2f}×", STRONG),
            Bar("all warps diverge", 2, "2×", ACCENT, hatched=True),
        ),
    )
    return board


# Medians: the cost of sorting, and the noise that no mean removes.


@_page(
    side(3, 9),
    IntParameter(
        name="density",
        label="Noise",
        help="Share of pixels that become black or white, before filtering",
        default=10,
        minimum=0,
        maximum=50,
        unit="%",
    ),
    figures=lambda: published("F", filter="median", shape=(4096, 4096)),
    filters=("median",),
)
def _medians(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    size, density = values["size"], values["density"]
    facts = [by_formula("Cells to rank, a pixel", f"{size * size}")]
    facts += _operations("median", ("global", "selection", "tuned"), subject, {"size": size})
    facts += [
        gain for level in ("selection", "tuned") for gain in _gain("median", level, "global", size)
    ]
    clean, *_ = subject.part(96, 96)
    try:
        noisy = filtered(clean, "salt_and_pepper_noise", {"density": density / 100})
        results = [filtered(noisy, name, {"size": size}) for name in ("mean", "median")]
    except AppError as error:
        return _refusal(error, facts)
    pictures = dict(zip(("With noise", "Mean", "Median"), (noisy, *results), strict=True))
    pictures = {"The picture": clean, **pictures}
    extreme = {name: _extreme(each) for name, each in pictures.items()}
    facts += [
        of_picture(f"Black or white: {name.lower()}", f"{100 * share:.1f} %")
        for name, share in extreme.items()
    ]
    return Demonstration(_medians_drawing(pictures, extreme, size), tuple(facts))


def _extreme(pixels: NDArray[np.uint8]) -> float:
    """Return the share of pixels at either end of the scale, as this noise leaves them."""
    return float(((pixels == 0) | (pixels == 255)).mean())


def _medians_drawing(
    pictures: Mapping[str, NDArray[np.uint8]], extreme: Mapping[str, float], size: int
) -> Board:
    board = Board(f"A detail with noise, and after a mean and a median of {size}×{size}")
    for number, (name, pixels) in enumerate(pictures.items()):
        left, top = number % 2 * 230, number // 2 * 222
        board.text(left, top + 14, f"{name}: {100 * extreme[name]:.1f} %", bold=True)
        board.fitted(left, top + 22, (190, 190), pixels)
    board.heading(460, 16, f"{size}×{size} = {size * size} cells")
    board.text(460, 38, "are ranked for each")
    board.text(460, 56, "pixel of the median.")
    board.text(460, 92, "Percentages: black")
    board.text(460, 110, "and white pixels.")
    board.text(460, 146, "The mean spreads")
    board.text(460, 164, "each over its mask.")
    return board


# Non-local means: patches compared in a search window, and the sums that levels share.


_STRENGTH = 0.1  # filter sigma of the example: smooths noise that the eye sees


@_page(
    OddParameter(
        name="patch",
        label="Patch size",
        help="Side of the squares that are compared",
        default=7,
        minimum=3,
        maximum=11,
    ),
    IntParameter(
        name="search_radius",
        label="Search radius",
        help="Radius of the search window",
        default=10,
        minimum=1,
        maximum=15,
        unit="px",
    ),
    figures=lambda: published("N", quantity="time") + published("N", quantity="speed-up"),
    filters=("nlm",),
)
def _nlm(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    patch, reach = values["patch"], values["search_radius"]
    side = 2 * reach + 1
    parameters = {"patch": patch, "search_radius": reach, "filter_sigma": _STRENGTH}
    parameters["weights"] = "gaussian"
    facts = [
        by_formula("Patches compared, a pixel", f"{side * side:,}"),
        by_formula("Differences, each patch alone", f"{side * side * patch * patch:,}"),
    ]
    facts += _operations("nlm", ("global", "shared", "tuned"), subject, parameters)
    facts += [
        gain for level in ("shared", "tuned") for gain in _gain("nlm", level, "global", patch)
    ]
    part, *_ = subject.part(64, 64)
    try:
        result = filtered(part, "nlm", parameters)
    except AppError as error:
        return _refusal(error, facts)
    board = Board(f"A detail before and after NLM; patches of {patch}×{patch} in {side}×{side}")
    board.heading(0, 16, "Before", "solid: search window; blue: patch")
    x, y, cell = board.fitted(0, 46, (320, 320), part)
    rows, columns = part.shape
    for frame, ink in ((side, STRONG), (patch, ACCENT)):
        across, down = min(frame, columns), min(frame, rows)
        left, top = x + (columns - across) / 2 * cell, y + (rows - down) / 2 * cell
        board.frame(left, top, across * cell, down * cell, stroke=ink)
    board.heading(336, 16, "After", f"filter sigma {_STRENGTH:g}")
    board.fitted(336, 46, (320, 320), result)
    text = f"{side}×{side} patches of {patch}×{patch} pixels for every pixel of the result"
    board.text(0, 396, text, bold=True, size=15)
    return Demonstration(board, tuple(facts))


# Several GPUs: shares of rows with halos, and the runs on one to four cards.

RECORD = "gpus-waiting.json"

"""Recorded runs of MRI NLM on a volume of 512 a side, on one, two and four cards."""

_ROW = re.compile(r"volume of 512³, (\d) GPUs?(.*)")


class RecordedRun(NamedTuple):
    seconds: float  # from host array to host array
    where: str  # card and day; of a run apart from the others, where and when that was


@functools.cache
def recorded_runs() -> Mapping[int, RecordedRun]:
    try:
        found = parse((FOLDER / RECORD).read_text("utf-8"), RECORD)
        machine = {name: text.text() for name, text in found["machine"].fields()}
        runs = {}
        for row in found["rows"].elements():
            match = _ROW.fullmatch(row["name"].text())
            if match is None:
                continue
            apart = row["remark"].text().partition(",")[0] if "remark" in row else ""
            when = f"{apart}{match[2]}" if apart else day(machine["Date"])
            seconds = row["ms"].number(*MEASURABLE) / 1e3
            runs[int(match[1])] = RecordedRun(seconds, f"{card_of(machine['GPU'])}, {when}")
    except (OSError, AppError):
        return {}
    return runs


@_page(
    ChoiceParameter(
        name="cards",
        label="Cards",
        help="Number of GPUs that share the picture",
        default="2",
        choices=tuple(Choice(str(n), str(n)) for n in (1, 2, 4)),
    ),
    IntParameter(
        name="reach",
        label="Radius",
        help="Rows above and below that a result needs",
        default=6,
        minimum=1,
        maximum=40,
        unit="rows",
    ),
    figures=lambda: (
        tuple(
            figure
            for figure in published("V", channels=1, average=False, shape=(37, 256, 256))
            if figure.quantity == "time"
            and figure.parameters.get("dimensions") == "3d"
            and figure.variant in ("1 gpu", "2 gpus")
            and figure.parameters.get("patch_radius") == "1"
        )
        + published("V", quantity="scaling")
    ),
    filters=("mri_nlm",),
)
def _several(subject: LectureSubject, values: Mapping[str, Any]) -> Demonstration:
    cards, reach = int(values["cards"]), values["reach"]
    height = subject.pixels.shape[0]
    ends = [height * number // cards for number in range(cards + 1)]
    shares = [
        strip(height, rows, reach, Border.REFLECT)
        for rows in itertools.pairwise(ends)
        if rows[0] < rows[1]
    ]
    copied = sum(each.source_rows for each in shares)
    facts = [
        of_picture("Rows of the picture", f"{height:,}"),
        by_formula("Rows that the cards receive together", f"{copied:,}"),
        by_formula("More than the picture has", f"{100 * (copied / height - 1):.2f} %"),
    ]
    runs = recorded_runs()
    if 1 in runs and cards in runs:
        now = runs[cards]
        facts.append(
            as_recorded(
                f"Whole run, MRI NLM of 512³ on {cards}",
                f"{1e3 * now.seconds:.1f} ms ({runs[1].seconds / now.seconds:.2f}×)",
                now.where,
            )
        )
    board = Board(f"The rows of the picture shared out to {cards} cards, with halos of {reach}")
    board.heading(
        0, 16, f"Shares of {cards}", "Solid: rows that a card computes. Dashed: with its halo."
    )
    x, y, cell = board.fitted(0, 46, (460, 390), subject.pixels)
    width = subject.pixels.shape[1] * cell
    for number, each in enumerate(shares):
        board.frame(
            x + 4, y + each.first * cell + 1, width - 8, (each.last - each.first) * cell - 2
        )
        top, high = each.source_first * cell, each.source_rows * cell
        board.frame(x + 12, y + top, width - 24, high, stroke=ACCENT, dashed=True, thickness=1.5)
        board.text(
            x + width + 10,
            y + (each.first + each.last) / 2 * cell + 4,
            f"card {number + 1}",
            fill=STRONG,
            bold=True,
        )
    return Demonstration(board, tuple(facts))
