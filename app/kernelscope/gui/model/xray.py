"""One thread of a traced block: its steps, the pixels that they read, and its figures."""

from __future__ import annotations

import bisect
import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.levels import CONSTANT, GLOBAL, TEXTURE
from kernelscope.traffic.totals import (
    Key,
    Totals,
    branches,
    launch_totals,
    requests,
    thread_totals,
    warp_totals,
)
from kernelscope.traffic.trace import (
    OUTPUT,
    OUTSIDE,
    SOURCE,
    WARP,
    Event,
    MemorySpace,
    SourceLine,
    Trace,
)

Cell = tuple[int, int]  # column and row of a pixel
Figures = tuple[str, str, str, str]  # a row of the table

SIGNS = {
    MemorySpace.GLOBAL: "●",
    MemorySpace.SHARED: "■",
    MemorySpace.TEXTURE: "▲",
    MemorySpace.CONSTANT: "◆",
}
"""Shapes of the memories: colour alone would not do."""

NAMES = {
    MemorySpace.GLOBAL: "global",
    MemorySpace.SHARED: "shared",
    MemorySpace.TEXTURE: "texture",
    MemorySpace.CONSTANT: "constant",
}


_USES = {
    "writes shared memory": (Event.WRITE, MemorySpace.SHARED),
    "barrier": (Event.BARRIER, MemorySpace.SHARED),
    "reads shared memory": (Event.READ, MemorySpace.SHARED),
    "reads constant memory": (Event.READ, MemorySpace.CONSTANT),
    "reads a texture": (Event.READ, MemorySpace.TEXTURE),
    "reads global memory": (Event.READ, MemorySpace.GLOBAL),
}

_SUBJECTS = {
    "single-block": MemorySpace.GLOBAL,
    GLOBAL.id: MemorySpace.GLOBAL,
    CONSTANT.id: MemorySpace.CONSTANT,
    "shared": MemorySpace.SHARED,
    TEXTURE.id: MemorySpace.TEXTURE,
}
"""The memory that a level is about; others are about all but global memory."""


def memory_lines(trace: Trace) -> dict[str, tuple[SourceLine, ...]]:
    """Return the lines that use the memory that the level is about, by their use.

    Cells are read by an operator of theirs; the line that calls it is returned as well.
    """
    scene, records, spaces = trace.scene, trace.records, trace.scene.spaces()
    space = spaces[np.minimum(records["array"], len(spaces) - 1)]
    of_barrier = records["event"] == Event.BARRIER  # which has no array
    space = np.where(of_barrier, MemorySpace.SHARED, space)
    found: dict[str, tuple[SourceLine, ...]] = {}
    for use, (event, memory) in _USES.items():
        if memory is not _SUBJECTS.get(scene.level, memory):
            continue
        depth = 2 if event is Event.READ and memory is not MemorySpace.CONSTANT else 1
        sites = np.unique(records["site"][(records["event"] == event) & (space == memory)]).tolist()
        lines = {line for site in sites for line in scene.sites.get(site, ())[:depth]}
        if lines and not (memory is MemorySpace.GLOBAL and found):
            found[use] = tuple(sorted(lines))
    return found


class ThreadStep(NamedTuple):  # of which a thread may have a hundred thousand
    event: Event
    space: MemorySpace | None  # None for a barrier
    array: str
    element: int  # its index in its array
    value: int  # the bits that were read or written
    cell: Cell | None  # the pixel of the input that the value comes from
    place: SourceLine | None  # line of the kernel

    def text(self) -> str:
        if self.space is None:
            return "waits at a barrier for the other threads of the block"
        verb = "reads" if self.event is Event.READ else "writes"
        behind = " outside the picture" if self.element < 0 else f"[{self.element}]"
        of = "" if self.array.startswith("buffer ") else " of the input"
        cell = "" if self.cell is None else f": pixel {self.cell[0]}, {self.cell[1]}{of}"
        memory = f"{SIGNS[self.space]} {NAMES[self.space]} memory"
        return f"{verb} {memory}, {self.array}{behind}{cell}"


class Xray:
    """A thread of a block; `file` is shown where it calls a header's function."""

    def __init__(self, trace: Trace, thread: int, file: str = "") -> None:
        self.trace, self.thread, self._file = trace, thread, file
        self.scene = trace.scene
        arrays = trace.scene.arrays
        self._size = next(each.shape for each in arrays if each.name == SOURCE)
        self._pictures = [n for n, each in enumerate(arrays) if each.shape and each.name != OUTPUT]
        self._behind = self._shared_cells()
        self.steps = tuple(self._steps())

    @property
    def warp(self) -> int:
        return self.thread // WARP

    @property
    def lane(self) -> int:
        return self.thread % WARP

    @property
    def writes_pixel(self) -> bool:
        """Whether the launch writes pixels; else the thread has the pixel's place in a tile."""
        return any(
            each["event"] == Event.WRITE and self.scene.arrays[each["array"]].name == OUTPUT
            for each in self.trace.entries
        )

    def _cells(self, array: NDArray[Any], offset: NDArray[Any]) -> list[Cell | None]:
        """Return the pixels at offsets in bytes, also of a padded copy or sums of two passes."""
        found: list[Cell | None] = [None] * len(offset)
        for number in self._pictures:
            each = self.scene.arrays[number]
            these = np.flatnonzero((array == number) & (offset != OUTSIDE))
            places = np.unravel_index(offset[these] // each.item, each.shape)
            if each.origin is None:
                rows, columns = places[0], places[1]
            else:
                rows, columns = places[0] - each.origin[0], places[2] - each.origin[1]
            inside = (rows >= 0) & (rows < self._size[0])
            inside &= (columns >= 0) & (columns < self._size[1])
            values = (these[inside].tolist(), columns[inside].tolist(), rows[inside].tolist())
            for place, column, row in zip(*values, strict=True):
                found[place] = column, row
        return found

    def _shared_cells(self) -> dict[tuple[int, int], list[tuple[int, Cell | None]]]:
        """Return the pixels of each byte: the last that its thread had read, if values agree."""
        records = self.trace.records
        spaces = self.scene.spaces()[records["array"]]
        reads = (records["event"] == Event.READ) & np.isin(
            spaces, (MemorySpace.GLOBAL, MemorySpace.TEXTURE)
        )
        writes = (records["event"] == Event.WRITE) & (spaces == MemorySpace.SHARED)
        both = np.flatnonzero(reads | writes)
        both = both[np.argsort(records["thread"][both], kind="stable")]  # each thread's in order
        # For each record, the place in `both` of the last read that precedes it.
        last = np.maximum.accumulate(np.where(reads[both], np.arange(len(both)), -1))
        place = np.flatnonzero(writes[both] & (last >= 0))
        written, read = records[both[place]], records[both[last[place]]]
        same = (written["thread"] == read["thread"]) & (written["value"] == read["value"])
        when = both[place][same]
        order = np.argsort(when, kind="stable")  # as the block ran
        written, read = written[same][order], read[same][order]
        cells = self._cells(read["array"], read["offset"])
        found: dict[tuple[int, int], list[tuple[int, Cell | None]]] = {}
        columns = (written["array"].tolist(), written["offset"].tolist(), when[order].tolist())
        for array, offset, position, cell in zip(*columns, cells, strict=True):
            found.setdefault((array, offset), []).append((position, cell))
        return found

    def _copied(self, array: int, offset: int, position: int) -> Cell | None:
        """Return the pixel that a byte of shared memory was a copy of at a record."""
        copies = self._behind.get((array, offset), [])
        before = bisect.bisect_left(copies, position, key=lambda copy: copy[0])
        return copies[before - 1][1] if before else None

    def _steps(self) -> list[ThreadStep]:
        every = self.trace.records
        own = (every["thread"] == self.thread) & (every["event"] != Event.BRANCH)
        records, positions = every[own], np.flatnonzero(own).tolist()
        places: dict[int, SourceLine | None] = {
            int(site): self.scene.place(int(site), self._file)
            for site in np.unique(records["site"])
        }
        names = "event", "site", "array", "offset", "value"
        direct = self._cells(records["array"], records["offset"])
        steps = []
        for position, cell, kind, site, number, offset, value in zip(
            positions, direct, *(records[name].tolist() for name in names), strict=True
        ):
            if kind == Event.BARRIER:
                steps.append(ThreadStep(Event.BARRIER, None, "", 0, 0, None, places[site]))
                continue
            array = self.scene.arrays[number]
            index = -1 if offset == OUTSIDE else offset // array.item
            event = Event.READ if kind == Event.READ else Event.WRITE
            done = position + (kind == Event.WRITE)  # a write is the copy itself
            behind = cell or self._copied(number, offset, done)
            steps.append(
                ThreadStep(event, array.space, array.name, index, value, behind, places[site])
            )
        return steps

    def cells(self, count: int) -> dict[Cell, tuple[int, MemorySpace]]:
        """Return pixels whose values the first `count` steps read: when last, and from where."""
        found: dict[Cell, tuple[int, MemorySpace]] = {}
        for number, step in enumerate(self.steps[:count], start=1):
            if step.event is Event.READ and step.cell is not None and step.space is not None:
                found[step.cell] = number, step.space
        return found

    def _pixels(self, chosen: NDArray[np.bool_]) -> frozenset[Cell]:
        records = self.trace.records
        chosen = chosen & (records["event"] == Event.READ)
        chosen &= np.isin(records["array"], self._pictures)
        array, offset = records["array"][chosen], records["offset"][chosen]
        keys = np.unique(array.astype(np.int64) << 32 | offset)
        cells = self._cells(keys >> 32, keys & 0xFFFF_FFFF)
        return frozenset(each for each in cells if each is not None)

    @functools.cached_property
    def loads_per_pixel(self) -> float:
        """Loads and fetches from the card's memory for each pixel that the block writes, or has."""
        entries, arrays = self.trace.entries, self.scene.arrays
        written = sum(
            int(entry["accesses"]) * int(entry["bytes"])
            for entry in entries
            if arrays[entry["array"]].name == OUTPUT and entry["event"] == Event.WRITE
        )
        output = next(each for each in arrays if each.name == OUTPUT)
        totals = launch_totals(self.trace)
        spaces = MemorySpace.GLOBAL, MemorySpace.TEXTURE
        loads = sum(totals.get((each, Event.READ), Totals()).accesses for each in spaces)
        if not written:
            return loads * self.scene.grid[2] / self.scene.tile_pixels
        return loads * output.item * output.shape[-1] / written

    @functools.cached_property
    def warp_pixels(self) -> frozenset[Cell]:
        if not self.trace.whole_warp:
            return frozenset()
        return self._pixels(self.trace.records["thread"] // WARP == self.warp)

    @functools.cached_property
    def block_pixels(self) -> frozenset[Cell]:
        """Pixels that the block reads from the memory of the card: its tile and the halo."""
        return self._pixels(np.ones(len(self.trace.records), bool))

    def prepare(self) -> None:
        _ = self.warp_pixels, self.block_pixels, self.figures, self.loads_per_pixel

    def describe_step(self, number: int) -> str:
        """Return a step in words, the first being 1; ``No step`` for 0."""
        if not number:
            return "No step"
        step = self.steps[number - 1]
        place = f" ({step.place})" if step.place else ""
        return f"Step {number:,} of {len(self.steps):,}: the thread {step.text()}{place}"

    def next_step(self, start: int, event: Event) -> int:
        for number in range(start, len(self.steps)):
            if self.steps[number].event is event:
                return number + 1
        return len(self.steps)

    @functools.cached_property
    def figures(self) -> tuple[Figures, ...]:
        """Rows of the table: the figure, and its value for thread, warp and block."""
        own = self.trace.of_warp(self.warp)
        mine, block = thread_totals(own, self.thread), launch_totals(self.trace)
        warp = warp_totals(own, requests(own)) if self.trace.whole_warp else None

        def row(key: Key, title: str, field: str, of_thread: str = "") -> Figures:
            of_warp = "" if warp is None else f"{getattr(warp.get(key, Totals()), field):,}"
            return title, of_thread, of_warp, f"{getattr(block[key], field):,}"

        rows = []
        for space in MemorySpace:
            for event, verb in ((Event.READ, "loads"), (Event.WRITE, "stores")):
                key = space, event
                if key not in block:
                    continue
                title = f"{SIGNS[space]} {NAMES[space]} {verb}"
                of_thread = f"{mine.get(key, Totals()).accesses:,}"
                rows.append(row(key, title, "accesses", of_thread))
                fields: tuple[tuple[str, str], ...] = (
                    ("requests of warps", "requests"),
                    ("sectors asked for", "sectors"),
                    ("sectors needed", "needed"),
                )
                if space in (MemorySpace.SHARED, MemorySpace.CONSTANT):
                    name = "bank conflicts" if space is MemorySpace.SHARED else "more turns"
                    fields = (("requests of warps", "requests"), (name, "conflicts"))
                rows += [row(key, f"    {name}", field) for name, field in fields]
        parted = [
            f"{branches(part).divergent:,}" if recorded else ""
            for part, recorded in ((own, warp is not None), (self.trace, self.trace.whole))
        ]
        return (*rows, ("divergent branches", "", parted[0], parted[1]))


Row = tuple[str, ...]


def side_by_side(first: Xray, second: Xray) -> tuple[Row, ...]:
    both = [_sections(each.figures) for each in (first, second)]
    headings = [*both[0], *(heading for heading in both[1] if heading not in both[0])]
    last = [heading for heading in headings if heading[:1].isalpha()]
    ordered = [each for each in headings if each not in last] + last
    rows = []
    for heading in ordered:
        sections = [each.get(heading, {}) for each in both]
        for title in dict.fromkeys(title for each in sections for title in each):
            cells = (each.get(title, ("", "", "")) for each in sections)
            rows.append((title, *(cell for three in cells for cell in three)))
    return tuple(rows)


def _sections(rows: tuple[Row, ...]) -> dict[str, dict[str, Row]]:
    """Return the cells by their heading, which is a title without indentation, and their title."""
    found: dict[str, dict[str, Row]] = {}
    heading = ""
    for title, *cells in rows:
        heading = title if not title.startswith(" ") else heading
        found.setdefault(heading, {})[title] = tuple(cells)
    return found


def compare(first: Xray, second: Xray) -> str:
    """Return how often two levels read from the memory of the card, in a sentence."""
    parts = []
    for each in (first, second):
        scene = each.scene
        # The figures are those of one launch: a level of several loads more.
        of = f" (launch {scene.launch} of {scene.launches})" if scene.launches > 1 else ""
        parts.append(f"{scene.level_name} {each.loads_per_pixel:.3g}{of}")
    return f"Loads from the card's memory for a pixel of the block: {', '.join(parts)}."
