"""Blocks of a launch that one core runs with `trace.h`: its input and its answer."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.emulator.launch import Handed, Memory, run_launch, sizes_of
from kernelscope.backends.emulator.symbols import Symbols
from kernelscope.base.errors import DeviceUnavailable
from kernelscope.engine.control import CancelToken
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import Level
from kernelscope.traffic.trace import ENTRY, OUTPUT, PART, SECTOR, SOURCE, Array, MemorySpace, Scene

_NO_BLOCK = 0xFFFF_FFFF
EVERY_THREAD = range(1 << 16)
_ALL = -1
OUTPUT_REGION = 2
"""The number of the output among the regions: the dynamic shared memory and the source precede."""
_SUMS = ("accesses", "requests", "sectors", "needed", "wavefronts", "ideal", "block_sectors")


class _TracedRegion(ctypes.Structure):
    """``emulator::checks::Region``."""

    _fields_ = (
        ("start", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("read_by", ctypes.c_void_p),
        ("written_by", ctypes.c_void_p),
        ("space", ctypes.c_int),
    )


@dataclass(frozen=True)
class Located:
    array: Array
    start: int


@dataclass(frozen=True)
class Code:
    """A library for tracing, loaded."""

    library: ctypes.CDLL
    symbols: Symbols


@dataclass(frozen=True)
class EmulatedLaunches:
    """A filter's launches and the memory they work on."""

    sources: tuple[str, ...]  # for each launch the text that has its kernel
    level: Level
    task: CudaTask
    plan: CudaPlan
    memory: Memory

    def number(self, launch: Launch) -> int:
        """Return the place of a launch among all, from 0 on."""
        return next(n for n, each in enumerate(self.plan.launches) if each is launch)

    def source(self, launch: Launch) -> str:
        return self.sources[self.number(launch)]


@dataclass
class Total:
    """Totals of some blocks of a launch; `parts` are those of the last block."""

    entries: NDArray[Any]
    footprint: NDArray[np.int64]
    barriers: int
    records: int
    lost: bool
    accesses: int = 0  # those that the emulator met, before any were joined
    parts: NDArray[Any] = field(default_factory=lambda: np.zeros(0, PART))

    def times(self, weight: int) -> Total:
        """Return the totals of as many blocks that are alike."""
        entries = self.entries.copy()
        for name in _SUMS:
            entries[name] *= weight
        return replace(
            self,
            entries=entries,
            footprint=self.footprint * weight,
            barriers=self.barriers * weight,
        )

    def plus(self, other: Total) -> Total:
        """Return the sum; sectors that both have count twice in the footprint."""
        keys = ["site", "array", "event", "bytes"]
        both = np.concatenate([self.entries, other.entries])
        _, first, where = np.unique(both[keys], return_index=True, return_inverse=True)
        entries = both[first].copy()
        for name in _SUMS:
            sums = np.zeros(len(entries), np.uint64)
            np.add.at(sums, where, both[name])
            entries[name] = sums
        return Total(
            entries,
            self.footprint + other.footprint,
            self.barriers + other.barriers,
            0,
            self.lost or other.lost,
        )


class Span:
    """Some blocks of a launch, run by one core."""

    def __init__(
        self,
        job: EmulatedLaunches,
        launch: Launch,
        code: Code,
        blocks: tuple[range, ...],
        rows: range | None = None,
    ) -> None:
        self._job, self._launch, self._code, self._blocks = job, launch, code, blocks
        self._rows = rows
        self.arrays: list[Located] = []
        self.seen: list[tuple[NDArray[np.uint32], NDArray[np.uint32]]] = []

    def count(
        self,
        token: CancelToken,
        block: int = _NO_BLOCK,
        records: NDArray[Any] | None = None,
        most: int = 1 << 62,
        threads: range | None = EVERY_THREAD,
    ) -> Total:
        """Run the blocks and return their totals; record one of them if it is wanted.

        - `threads`: those of the block that are recorded. Of others, only copies to shared memory
          are. With None only writes to the output are recorded, of all threads.
        """
        library = self._code.library

        def begin(handed: Handed) -> None:
            self.arrays = list(_arrays(self._job, self._launch, handed, self._code.symbols))
            self.seen = []
            regions = (_TracedRegion * len(self.arrays))()
            for region, each in zip(regions, self.arrays, strict=True):
                size = each.array.bytes // SECTOR + 2
                seen = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
                self.seen.append(seen)
                region.start, region.bytes = each.start, each.array.bytes
                region.read_by, region.written_by = (one.ctypes.data for one in seen)
                region.space = each.array.space
            room = 0 if records is None else len(records)
            library.trace_begin(
                regions,
                len(self.arrays),
                ctypes.c_uint(block),
                ctypes.c_void_p(None if records is None else records.ctypes.data),
                ctypes.c_uint64(room),
                ctypes.c_uint64(most),
                ctypes.c_uint(0 if threads is None else threads.start),
                ctypes.c_uint(0 if threads is None else threads.stop),
                ctypes.c_int(OUTPUT_REGION if threads is None else _ALL),
            )

        stopped = None
        try:
            run_launch(
                library, self._launch, self._job.task, self._job.memory, (), token, _ignore, begin,
                self._blocks, self._rows,
            )  # fmt: skip
        except DeviceUnavailable as error:
            stopped = error
        total = self._end()
        if stopped is not None and not total.lost:
            raise stopped
        return total

    def _end(self) -> Total:
        library, numbers = self._code.library, (ctypes.c_uint64 * 6)()
        library.trace_end.restype = library.trace_parts.restype = ctypes.c_void_p
        entries = _copied(library.trace_end(numbers), numbers[0], ENTRY)
        entries = entries[entries["accesses"] > 0]  # not those that were parts of others only
        parts = _copied(library.trace_parts(), numbers[4], PART)
        footprint = np.array(
            [[0, 0], *([np.count_nonzero(one) for one in seen] for seen in self.seen)], np.int64
        )
        barriers, lost, accesses = numbers[2], bool(numbers[3]), numbers[5]
        return Total(entries, footprint, barriers, numbers[1], lost, accesses, parts)


def _copied(start: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a copy of a table of a library."""
    return np.frombuffer(ctypes.string_at(start, count * dtype.itemsize), dtype)


def _ignore(part: float) -> None:
    """Nobody waits for parts of a launch."""


def _arrays(
    job: EmulatedLaunches, launch: Launch, handed: Handed, symbols: Symbols
) -> Iterator[Located]:
    task, memory = job.task, job.memory
    item = task.dtype.itemsize
    texture = launch.texture and launch.texture_of is None
    space = MemorySpace.TEXTURE if texture else MemorySpace.GLOBAL
    source, output = memory.source, memory.output
    yield _located(SOURCE, space, source, source.shape, item)
    yield _located(OUTPUT, MemorySpace.GLOBAL, output, output.shape, item)
    for name, table in handed.tables.items():
        yield _located(name, MemorySpace.GLOBAL, table, item=table.itemsize)
    for name, buffer in memory.scratch.items():
        fetched = launch.texture_of is not None and launch.texture_of[0] == name
        space = MemorySpace.TEXTURE if fetched else MemorySpace.GLOBAL
        planned = job.plan.scratch[name]
        if planned.margin is not None:
            yield _padded_copy(job, f"buffer {name}", space, buffer, planned)
        elif (size := planned.at_pixels) and task.border is not Border.VALID:
            row = planned.row_bytes
            shape = buffer.nbytes // row, row // (size * task.shape[2]), task.shape[2]
            yield _located(f"buffer {name}", space, buffer, shape, size)
        else:
            yield _located(f"buffer {name}", space, buffer)
    for name, (start, size) in symbols.constants.items():
        values = handed.constants.get(name)
        items = 1 if values is None else np.asarray(values).itemsize
        yield Located(Array(name, MemorySpace.CONSTANT, size, item=items), start)
    for name, (start, size) in symbols.shared.items():
        yield Located(Array(name, MemorySpace.SHARED, size), start)


def _located(
    name: str, space: MemorySpace, values: NDArray[Any], shape: tuple[int, ...] = (), item: int = 1
) -> Located:
    return Located(Array(name, space, values.nbytes, shape, item), values.ctypes.data)


def _padded_copy(
    job: EmulatedLaunches,
    name: str,
    space: MemorySpace,
    values: NDArray[np.uint8],
    planned: Scratch,
) -> Located:
    """Return the buffer of a padded copy of the source; cells have the places of the picture."""
    task, item, row = job.task, np.dtype(np.float32).itemsize, planned.row_bytes
    margin = planned.margin or 0
    columns = task.output_shape[1] + 2 * margin
    shape = values.nbytes // row, row // (item * columns), columns
    above = planned.more_bytes // (2 * row)
    # Of the output in the source, where the border is `valid`.
    down, across = ((task.shape[n] - task.output_shape[n]) // 2 for n in (0, 1))
    origin = above - down, margin - across
    array = Array(name, space, values.nbytes, shape, item, origin)
    return Located(array, values.ctypes.data)


def scene_of(
    job: EmulatedLaunches, launch: Launch, code: Code, arrays: list[Located], found: NDArray[Any]
) -> Scene:
    sites = [int(each) for each in np.unique(found["site"])]
    grid, block = sizes_of(launch, job.task)
    dynamic = Array(
        "dynamic shared memory",
        MemorySpace.SHARED,
        launch.shared_bytes,
        (),
        job.task.dtype.itemsize,
    )
    return Scene(
        launch.kernel,
        job.level.id,
        job.level.name,
        grid,
        block,
        (dynamic, *(each.array for each in arrays)),
        code.symbols.places(sites),
        job.task.output_shape,
        launch.operations_per_sample,
        job.plan.notice,
        job.number(launch) + 1,
        len(job.plan.launches),
        math.prod(launch.tile or job.task.output_shape[:2]),
    )
