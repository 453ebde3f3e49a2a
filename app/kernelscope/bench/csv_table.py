"""Reports as CSV, a line for each row, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kernelscope.bench.output import write_text
from kernelscope.bench.plan import GPU
from kernelscope.bench.report import Report
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import (
    SpeedUp,
    Summary,
    find_baseline,
    full_time,
    megapixels_per_second,
    speed_up,
    summarise,
)


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
        """The row, if it has times of whole runs."""
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
