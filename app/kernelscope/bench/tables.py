"""Reports as text: a Markdown table, aligned for terminals too, with remarks below it."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernelscope.bench import figures
from kernelscope.bench.output import write_text
from kernelscope.bench.plan import GPU
from kernelscope.bench.report import Report
from kernelscope.bench.rows import Row
from kernelscope.bench.rules import COLD
from kernelscope.bench.statistics import (
    Ratio,
    SpeedUp,
    Summary,
    find_baseline,
    full_time,
    megapixels_per_second,
    ratio,
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
            row.title,
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
            whose[row.reason].append(f"{row.title}, {row.size}, {row.series}")
    for reason, names in whose.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"Not measured: {'; '.join(names[:3])}{more}. {reason}"


class _Timed(NamedTuple):
    """A row, the summary of its times if it has any, and its speed-up if that is known."""

    row: Row
    times: Summary | None
    gain: SpeedUp | None

    @classmethod
    def of(cls, report: Report, row: Row) -> _Timed:
        baseline = find_baseline(report.rows, row) if row.seconds else None
        gain = speed_up(row, baseline) if baseline is not None else None
        return cls(row, summarise(row.seconds) if row.seconds else None, gain)

    @property
    def whole(self) -> Row | None:
        return self.row if self.row.seconds and self.row.is_whole else None


_COLUMNS: dict[str, Callable[[_Timed], Any]] = {
    "label": lambda of: of.row.label,
    "filter": lambda of: of.row.filter,
    "parameters": lambda of: "; ".join(f"{k}={text}" for k, text in of.row.parameters.items()),
    "border": lambda of: of.row.border,
    "content": lambda of: of.row.content,
    "channels": lambda of: of.row.channels,
    "asked": lambda of: "x".join(map(str, reversed(of.row.asked))),
    "measured": lambda of: "x".join(map(str, reversed(of.row.shape))),
    "device": lambda of: of.row.device,
    "level": lambda of: of.row.level,
    "block": lambda of: "x".join(map(str, of.row.block or ())),
    "library": lambda of: "yes" if of.row.library else "no",
    "repeats": lambda of: len(of.row.seconds),
    "median_s": lambda of: of.times and of.times.median,
    "lower_quartile_s": lambda of: of.times and of.times.lower,
    "upper_quartile_s": lambda of: of.times and of.times.upper,
    "least_s": lambda of: of.times and of.times.least,
    "most_s": lambda of: of.times and of.times.most,
    "outliers": lambda of: of.times and of.times.outliers,
    "end_to_end_median_s": lambda of: of.whole and summarise(of.whole.waits).median,
    "median_s_of_all": lambda of: of.times and full_time(of.row),
    "end_to_end_median_s_of_all": lambda of: of.whole and full_time(of.whole, waiting=True),
    "megapixels_per_s": lambda of: of.times and megapixels_per_second(of.row),
    "speed_up": lambda of: of.gain and of.gain.factor,
    "speed_up_scaled": lambda of: of.gain and ("yes" if of.gain.scaled else "no"),
    "bytes": lambda of: of.row.bytes,
    "operations": lambda of: of.row.operations,
    "copy_rate_bytes_per_s": lambda of: of.row.copy_rate,
    "peak_rate_operations_per_s": lambda of: of.row.peak_rate,
    "gpus": lambda of: of.row.gpus if of.row.device == GPU else "",
    "launches_per_time": lambda of: of.row.batch,
    "cache": lambda of: of.row.cache,
    "load_cores": lambda of: of.row.load,
    "psnr_db": lambda of: of.row.psnr,
    "largest_difference": lambda of: of.row.difference and of.row.difference.largest,
    "share_that_differs": lambda of: of.row.difference and of.row.difference.share,
    "notices": lambda of: " ".join(of.row.notices),
    "reason": lambda of: of.row.reason,
}


def save_csv(report: Report, path: Path) -> None:
    write_text(path, to_csv(report))


def to_csv(report: Report) -> str:
    """Return the rows as CSV: seconds, bytes, operations; unknown values are empty cells.

    Every line repeats the facts of the machine, so that lines of several files can be mixed.
    """
    stages = sorted({name for row in report.rows for name in row.stages})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"{name}_median_s" for name in stages), *report.machine])
    for row in report.rows:
        timed = _Timed.of(report, row)
        of_stages = (name in row.stages and row.seconds and row.stages[name] for name in stages)
        writer.writerow(
            [
                *(value(timed) for value in _COLUMNS.values()),
                *(summarise(times).median if times else None for times in of_stages),
                *report.machine.values(),
            ]
        )
    return text.getvalue()


@dataclass(frozen=True)
class Pair:
    # None if a report has no such row with times.
    first: Row | None
    second: Row | None

    @property
    def row(self) -> Row:
        """The first row if there is one, else the second."""
        row = self.first or self.second
        assert row is not None
        return row

    @property
    def ratio(self) -> Ratio | None:
        """The second's time over the first's: below 1 the second is faster."""
        if self.first is None or self.second is None:
            return None
        return ratio(self.second, self.first)

    @property
    def clear(self) -> bool:
        """Whether the interval of the ratio excludes 1, so that chance alone is unlikely."""
        found = self.ratio
        return found is not None and not found.interval.low <= 1 <= found.interval.high


def compare(first: Report, second: Report) -> list[Pair]:
    def by_key(report: Report) -> dict[tuple[Any, ...], Row]:
        return {(row.subject, row.series): row for row in report.rows if row.seconds}

    ours, theirs = by_key(first), by_key(second)
    return [Pair(ours.get(key), theirs.get(key)) for key in ours | theirs]


COMPARISON = Table(
    ("filter", "by", "size", "A ms", "B ms", "B / A", "between", "remark"),
    (42, 15, 11, 10, 10, 6, 28, 6),
    (0, 1, 6, 7),
)


def format_comparison(first: Report, second: Report) -> Iterator[str]:
    """Yield the lines that show two reports side by side, their differences first."""
    for name in dict.fromkeys((*first.machine, *second.machine)):
        mine, other = (report.machine.get(name, "unknown") for report in (first, second))
        if mine != other:
            yield f"{name}: A {mine}; B {other}"
    yield ""
    yield (
        "Medians of computing time; ≈ if only a part was timed and the value is scaled. B / A "
        "below 1: B is faster. The interval contains the true ratio with the stated "
        "confidence; “unclear” if it contains 1."
    )
    yield ""
    yield COMPARISON.head()
    for pair in compare(first, second):
        row, found = pair.row, pair.ratio
        said = [
            f"{name} timed on {each.timed_size}"
            for name, each in (("A", pair.first), ("B", pair.second))
            if each is not None and each.is_part
        ]
        said += ["unclear"] if found is not None and not pair.clear else []
        yield COMPARISON.line(
            (
                row.title,
                row.series,
                row.size,
                *(
                    f"{'≈ ' if each.is_part else ''}{short(full_time(each) * 1e3, 4)}"
                    if each is not None
                    else "none"
                    for each in (pair.first, pair.second)
                ),
                f"{found.value:.2f}" if found is not None else "",
                found.interval.describe() if found is not None else "",
                "; ".join(said),
            )
        )
