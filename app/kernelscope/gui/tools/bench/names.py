"""Names of levels as the rest of the window has them; data and files of the bench have ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernelscope import filters
from kernelscope.bench import Row
from kernelscope.bench.charts import Chart
from kernelscope.schema.levels import Level


def series_name(row: Row) -> str:
    """Return the series of a row by name: ``GPU shared memory 16×16`` for ``GPU shared 16×16``."""
    level = _level(row)
    if level is None:
        return row.series
    device, _, block = row.runner.partition(f" {row.level}")
    name = f"{level.on(device)}{block}"
    return f"{row.machine}: {name}" if row.machine else name


def named(shown: Chart, rows: Iterable[Row]) -> Chart:
    """Return a chart of these rows with the names of levels in place of their ids."""
    series, levels = {}, {}
    for row in rows:
        series[row.series] = series_name(row)
        level = _level(row)
        levels[row.level] = level.name if level is not None else row.level
    y, note = shown.y, shown.note
    for old in sorted(series, key=len, reverse=True):  # GPU shared 16×16 before GPU shared
        if y.endswith(f" {old}"):
            y = f"{y.removesuffix(old)}{series[old]}"
            break
    for old in series:
        note = note.replace(f"{old} on ", f"{series[old]} on ")
    return replace(
        shown,
        y=y,
        note=note,
        series=tuple(replace(each, name=series.get(each.name, each.name)) for each in shown.series),
        groups=tuple(levels.get(group, group) for group in shown.groups),
    )


def _level(row: Row) -> Level | None:
    """Return the level of a row; None of a library, and of a level that is no longer there."""
    return None if row.library else filters.levels(row.device).get(row.level)
