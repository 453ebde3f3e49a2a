"""The accesses of a kernel to memory, as plain data: all of one block, and totals of all blocks.

The records come from a run on the emulated GPU; nothing here knows how they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.json_fields import Size

WARP = 32
SECTOR = 32  # bytes that device memory and the caches move at once
OUTSIDE = 0xFFFF_FFFF  # the offset of a texel outside the texture, which reads as zero
SOURCE, OUTPUT = "source", "output"  # the names of the pictures among the arrays


class MemorySpace(IntEnum):
    GLOBAL = 0
    CONSTANT = 1
    SHARED = 2
    TEXTURE = 3


class Event(IntEnum):
    READ = 0
    WRITE = 1
    BARRIER = 2
    BRANCH = 3


RECORD = np.dtype(
    {
        "names": ["value", "site", "offset", "thread", "event", "array", "bytes", "lap"],
        "formats": ["<u8", "<u4", "<u4", "<u2", "u1", "u1", "u1", "<u2"],
        "offsets": [0, 8, 12, 16, 18, 19, 20, 22],
        "itemsize": 24,
    }
)
"""One event of a thread, in the order in which the threads ran: they take turns at barriers.

Of the same `lap` are events in the same laps of all loops that lanes may leave at different times.
"""

ENTRY = np.dtype(
    {
        "names": ["accesses", "requests", "sectors", "needed", "wavefronts", "ideal",
                  "block_sectors", "site", "array", "event", "bytes"],
        "formats": ["<u8"] * 7 + ["<u4", "u1", "u1", "u1"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 60, 61, 62],
        "itemsize": 64,
    }
)  # fmt: skip
"""Totals of one instruction in one array; see `Totals` for the meaning."""


PART = np.dtype(
    {
        "names": ["site", "leader", "array", "event", "bytes"],
        "formats": ["<u4", "<u4", "u1", "u1", "u1"],
        "offsets": [0, 4, 8, 9, 10],
        "itemsize": 12,
    }
)
"""An instruction that is part of a wider one, of as many `bytes`: a vector access.

The wider one has the `site` of the instruction whose cells lie first, the `leader`.
"""


class SourceLine(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Array:
    name: str
    space: MemorySpace
    bytes: int
    shape: tuple[Size, ...] = ()
    """(rows, columns, channels) of a picture, (rows, channels, columns) of a padded copy; empty for
    other arrays."""
    item: Size = 1  # bytes of a sample; 1 if unknown
    origin: tuple[int, int] | None = None
    """Row and column of a padded copy at which the source begins; None for other arrays."""


@dataclass(frozen=True, eq=False)
class Scene:
    kernel: str
    level: str
    level_name: str
    # Blocks of the grid, and threads of a block, in x, y and z.
    grid: tuple[Size, Size, Size]
    block: tuple[Size, Size, Size]
    arrays: tuple[Array, ...]  # records refer to them by their index
    sites: Mapping[int, tuple[SourceLine, ...]]
    """Lines of each instruction: first the innermost one, then those it was inlined into."""
    output_shape: tuple[Size, ...]
    operations: float  # arithmetic operations for each sample of the output, by the filter's plan
    notice: str = ""  # of the plan: that it is the one of another level
    # Which one of the filter's launches it is, from 1 on, and how many there are.
    launch: Size = 1
    launches: Size = 1
    tile_pixels: Size = 0  # of the output that a block has, or shares with those of other layers

    @property
    def threads(self) -> int:
        columns, rows, slices = self.block
        return columns * rows * slices

    @property
    def blocks(self) -> int:
        columns, rows, slices = self.grid
        return columns * rows * slices

    @property
    def pixels(self) -> int:
        return int(np.prod(self.output_shape[:-1]))

    def place(self, site: int, file: str = "") -> SourceLine | None:
        """Return the innermost line of an instruction, in `file` if it is called from there."""
        places = self.sites.get(site, ())
        return next((each for each in places if each.file == file), places[0] if places else None)

    def spaces(self) -> NDArray[np.uint8]:
        return np.array([each.space for each in self.arrays], np.uint8)


@dataclass(frozen=True, eq=False)
class Trace:
    """Every access of the threads of one block."""

    scene: Scene
    number: int  # the block in the grid, row by row
    records: NDArray[Any]  # RECORD
    entries: NDArray[Any]  # ENTRY; totals of the block
    footprint: NDArray[np.int64]
    """Int. For each array the sectors that were read, and those written, each once."""
    barriers: int  # threads that came to one, over all barriers
    truncated: bool  # there were more events than records; those after the last one are missing
    whole: bool = True
    """All threads were recorded. Else some were, and of the others only copies to shared memory."""
    whole_warp: bool = True
    """All threads of a warp were recorded; else one of them was."""
    rows: range | None = None
    """Rows of the output that the block computed in this run, if it computes more."""
    parts: NDArray[Any] = field(default_factory=lambda: np.zeros(0, PART))
    """PART. Accesses to shared memory that are one for a GPU, though the records have each."""

    @property
    def block(self) -> tuple[int, int, int]:
        """The block's place in the grid: ``blockIdx``."""
        columns, rows, _ = self.scene.grid
        return self.number % columns, self.number // columns % rows, self.number // columns // rows

    def of_warp(self, warp: int) -> Trace:
        return replace(self, records=self.records[self.records["thread"] // WARP == warp])

    def instructions(self, records: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the site and the bytes of the instruction that each record is part of."""
        site, width = records["site"].astype(np.int64), records["bytes"].astype(np.int64)
        for part in self.parts:
            these = records["site"] == part["site"]
            these &= (records["array"] == part["array"]) & (records["event"] == part["event"])
            site[these], width[these] = part["leader"], part["bytes"]
        return site, width

    def accesses(self) -> NDArray[Any]:
        chosen: NDArray[Any] = self.records[self.records["event"] <= Event.WRITE]
        return chosen


def writer_of(trace: Trace, x: int, y: int) -> int | None:
    number = next(n for n, each in enumerate(trace.scene.arrays) if each.name == OUTPUT)
    output = trace.scene.arrays[number]
    channels = output.shape[-1] if output.shape else 1
    start = ((y * output.shape[1] + x) * channels) * output.item
    records = trace.records
    writes = records[(records["event"] == Event.WRITE) & (records["array"] == number)]
    offset = writes["offset"].astype(np.int64)
    hit = np.flatnonzero((offset <= start) & (start < offset + writes["bytes"]))
    return int(writes["thread"][hit[-1]]) if len(hit) else None


@dataclass(frozen=True, eq=False)
class Counts:
    scene: Scene
    entries: NDArray[Any]  # ENTRY
    footprint: NDArray[np.int64]
    """Int. For each array the sectors that were read, and those written, each once."""
    barriers: int  # threads that came to one, over all barriers
    counted: int  # blocks that were run; the totals of the others were taken from blocks like them
