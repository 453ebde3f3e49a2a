"""Two reports side by side, of two machines or two commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelscope.bench.report import Report
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import Ratio, full_time, ratio, short
from kernelscope.bench.text_table import Table


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
                row.label,
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
