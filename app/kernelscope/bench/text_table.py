"""Reports as text: a Markdown table, aligned for terminals too, with remarks below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernelscope.bench import figures
from kernelscope.bench.rows import Row
from kernelscope.bench.rules import COLD
from kernelscope.bench.statistics import (
    find_baseline,
    full_time,
    megapixels_per_second,
    short,
    speed_up,
    summarise,
)


@dataclass(frozen=True)
class Table:
    """A Markdown table, aligned for terminals too."""

    # Of the columns; widths in characters.
    headings: tuple[str, ...]
    widths: tuple[int, ...]
    text: tuple[int, ...]  # columns that are aligned to the left

    def head(self) -> str:
        rule = (
            "-" * width if column in self.text else "-" * (width - 1) + ":"
            for column, width in enumerate(self.widths)
        )
        return f"{self.line(self.headings)}\n| {' | '.join(rule)} |"

    def line(self, cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if column in self.text else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, self.widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"


LEGEND = (
    "Medians of computing time (CPU stage compute, GPU kernels, or a library's call); ±: half the "
    "interquartile range. End to end, on a GPU: upload, kernel, download. Slow runs are timed on a "
    "part: its size and times are shown, and after ≈ the estimate for all of the data, scaled in "
    "proportion to the work. × serial: speed-up of end-to-end time over serial CPU code, ≈ if "
    "either was timed on a part; none of libraries on a GPU, which are timed without transfers. "
    "Compilation and warm-up are excluded."
)
TABLE = Table(
    ("filter", "by", "timed", "ms", "± %", "end to end ms", "MP/s", "× serial", "remark"),
    (42, 17, 11, 10, 5, 13, 8, 8, 6),
    (0, 1, 8),
)


def format_row(row: Row, rows: Sequence[Row]) -> str:
    summary = summarise(row.seconds)
    baseline = find_baseline(rows, row)
    gain = speed_up(row, baseline) if baseline is not None else None
    return TABLE.line(
        (
            row.label,
            row.series,
            row.timed_size,
            short(summary.median * 1e3, 4),
            f"{50 * summary.spread:.0f}",
            short(summarise(row.waits).median * 1e3, 4) if row.waits != row.seconds else "",
            short(megapixels_per_second(row), 4),
            gain.describe() if gain else "",
            "; ".join(remarks(row)),
        )
    )


def remarks(row: Row) -> Iterator[str]:
    if row.is_part:
        yield f"a part of {row.size}; estimate for all: ≈ {whole_time(row)}"
    if row.batch > 1:
        yield f"each time is the mean of {row.batch} launches"
    if row.difference is not None and row.difference.largest:
        yield row.difference.describe()
    if row.cache and row.cache != COLD:
        yield f"{row.cache} caches"
    if row.load is not None and row.load >= 0.1:
        yield f"{row.load:.1f} cores busy with other programs"
    if row.psnr is not None:
        yield f"{row.psnr:.2f} dB"
    for figure in figures.beside(row):
        yield f"published: {figure.describe()}"
    yield from row.notices


def whole_time(row: Row) -> str:
    """Return ``4,974 ms``, or ``0.4 ms, 3.9 ms end to end``: the estimate for all of the data."""
    text = f"{short(1e3 * full_time(row), 4)} ms"
    if row.waits == row.seconds:
        return text
    return f"{text}, {short(1e3 * full_time(row, waiting=True), 4)} ms end to end"


def format_origins(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each author with figures about these rows, with the hardware."""
    for source in dict.fromkeys(f.origin for row in rows for f in figures.beside(row)):
        yield f"Published: {source.describe()}"


def format_reasons(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each reason why rows have no times, with the names of the rows."""
    whose: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.reason:
            whose[row.reason].append(f"{row.label}, {row.size}, {row.series}")
    for reason, names in whose.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"Not measured: {'; '.join(names[:3])}{more}. {reason}"
