"""The figures of levels as a table: one row a figure, one column a level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelscope.traffic.totals import Key, Totals, intensity, launch_totals
from kernelscope.traffic.trace import SECTOR, Counts, Event, MemorySpace

READ, WRITE = Event.READ, Event.WRITE


@dataclass(frozen=True)
class TableRow:
    title: str
    values: tuple[float | None, ...]
    """One a level; None where the level does not use that memory."""
    digits: int = 2  # behind the point
    note: str = ""  # the meaning of the figure

    def texts(self) -> tuple[str, ...]:
        return tuple("–" if each is None else f"{each:,.{self.digits}f}" for each in self.values)


def totals_of(launches: Sequence[Counts]) -> dict[Key, Totals]:
    result: dict[Key, Totals] = {}
    for each in launches:
        for key, totals in launch_totals(each).items():
            mine = result.setdefault(key, Totals())
            for name, value in vars(totals).items():
                setattr(mine, name, getattr(mine, name) + value)
    return result


def figures(levels: Mapping[str, Sequence[Counts]]) -> list[TableRow]:
    """Return the figures of levels, for each pixel of the output.

    - `levels`: the launches of each level, by its name.
    """
    made = [(totals_of(each), each) for each in levels.values()]
    pixels = [each[-1].scene.pixels for _, each in made]

    def row(title: str, key: Key, field: str, note: str, scale: float = 1.0) -> TableRow:
        values = tuple(
            getattr(totals[key], field) * scale / count if key in totals else None
            for (totals, _), count in zip(made, pixels, strict=True)
        )
        return TableRow(title, values, note=note)

    loads, stores = (MemorySpace.GLOBAL, READ), (MemorySpace.GLOBAL, WRITE)
    shared, texture = (MemorySpace.SHARED, READ), (MemorySpace.TEXTURE, READ)
    constant = (MemorySpace.CONSTANT, READ)
    found = [
        row("global loads", loads, "accesses", "of threads"),
        row("global sectors", loads, "sectors", "of 32 bytes that the loads of warps ask for"),
        _efficiency(made),
        row("global stores", stores, "accesses", "of threads"),
        row("texture fetches", texture, "accesses", "of threads"),
        row("constant loads", constant, "accesses", "of threads"),
        row("shared loads", shared, "accesses", "of threads"),
        row("shared stores", (MemorySpace.SHARED, WRITE), "accesses", "of threads"),
        _conflicts(made, pixels),
        TableRow(
            "bytes past the L1 cache",
            tuple(
                sum(each.block_sectors for each in totals.values()) * SECTOR / count
                for (totals, _), count in zip(made, pixels, strict=True)
            ),
            note="if the cache of a block misses each sector once",
        ),
        TableRow(
            "bytes of device memory",
            tuple(
                sum(each.footprint for each in totals.values()) * SECTOR / count
                for (totals, _), count in zip(made, pixels, strict=True)
            ),
            note="at best: each sector once",
        ),
        TableRow(
            "barriers of a thread",
            tuple(
                sum(each.barriers / (each.scene.blocks * each.scene.threads) for each in launches)
                for _, launches in made
            ),
            note="in a whole launch",
        ),
        TableRow(
            "operations a byte",
            tuple(intensity(launches[-1]) for _, launches in made),
            note="of device memory at best, by the filter's plan",
        ),
    ]
    return [each for each in found if any(value is not None for value in each.values)]


_Made = list[tuple[dict[Key, Totals], Sequence[Counts]]]


def _efficiency(made: _Made) -> TableRow:
    parts = [
        totals[MemorySpace.GLOBAL, READ].efficiency
        if (MemorySpace.GLOBAL, READ) in totals
        else None
        for totals, _ in made
    ]
    values = tuple(None if each is None else 100 * each for each in parts)
    return TableRow("  of them needed (%)", values, 1, "if the same bytes lay together")


def _conflicts(made: _Made, pixels: Sequence[int]) -> TableRow:
    values = []
    for (totals, _), count in zip(made, pixels, strict=True):
        both = [totals[key] for key in totals if key[0] is MemorySpace.SHARED]
        values.append(sum(each.conflicts for each in both) / count if both else None)
    return TableRow("bank conflicts", tuple(values), 3, "more turns of shared memory than needed")
