"""Reports as CSV, a line for each row, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from kernelscope.bench.output import write_text
from kernelscope.bench.plan import GPU
from kernelscope.bench.report import Report
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import (
    find_baseline,
    full_time,
    megapixels_per_second,
    speed_up,
    summarise,
)


def save_csv(report: Report, path: Path) -> None:
    """Write a line for each row, with the statistics of its times; see `to_csv`."""
    write_text(path, to_csv(report))


def to_csv(report: Report) -> str:
    """Return the rows as CSV: seconds, bytes, operations; unknown values are empty cells.

    Every line repeats the facts of the machine, so that lines of several files can be mixed.
    """
    lines = [_csv_line(report, row) for row in report.rows]
    stages = sorted({name for row in report.rows for name in row.stages})
    columns = [*_CSV_COLUMNS, *(f"{name}_median_s" for name in stages), *report.machine]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


_CSV_COLUMNS = (
    "label",
    "filter",
    "parameters",
    "border",
    "content",
    "channels",
    "asked",
    "measured",
    "device",
    "level",
    "block",
    "library",
    "repeats",
    "median_s",
    "lower_quartile_s",
    "upper_quartile_s",
    "least_s",
    "most_s",
    "outliers",
    "end_to_end_median_s",
    "median_s_of_all",
    "end_to_end_median_s_of_all",
    "megapixels_per_s",
    "speed_up",
    "speed_up_scaled",
    "bytes",
    "operations",
    "copy_rate_bytes_per_s",
    "peak_rate_operations_per_s",
    "gpus",
    "launches_per_time",
    "cache",
    "load_cores",
    "psnr_db",
    "largest_difference",
    "share_that_differs",
    "notices",
    "reason",
)


def _csv_line(report: Report, row: Row) -> dict[str, Any]:
    line: dict[str, Any] = {
        "label": row.label,
        "filter": row.filter,
        "parameters": "; ".join(f"{name}={text}" for name, text in row.parameters.items()),
        "border": row.border,
        "content": row.content,
        "channels": row.channels,
        "asked": "x".join(map(str, reversed(row.asked))),
        "measured": "x".join(map(str, reversed(row.shape))),
        "device": row.device,
        "level": row.level,
        "block": "x".join(map(str, row.block or ())),
        "library": "yes" if row.library else "no",
        "repeats": len(row.seconds),
        "bytes": row.bytes,
        "operations": row.operations,
        "copy_rate_bytes_per_s": row.copy_rate,
        "peak_rate_operations_per_s": row.peak_rate,
        "gpus": row.gpus if row.device == GPU else "",
        "launches_per_time": row.batch,
        "cache": row.cache,
        "load_cores": row.load,
        "psnr_db": row.psnr,
        "notices": " ".join(row.notices),
        "reason": row.reason,
        **report.machine,
    }
    if row.difference is not None:
        line["largest_difference"] = row.difference.largest
        line["share_that_differs"] = row.difference.share
    if row.seconds:
        summary = summarise(row.seconds)
        line |= {
            "median_s": summary.median,
            "lower_quartile_s": summary.lower,
            "upper_quartile_s": summary.upper,
            "least_s": summary.least,
            "most_s": summary.most,
            "outliers": summary.outliers,
            "median_s_of_all": full_time(row),
            "megapixels_per_s": megapixels_per_second(row),
            **{f"{name}_median_s": summarise(times).median for name, times in row.stages.items()},
        }
        if row.is_whole:
            line |= {
                "end_to_end_median_s": summarise(row.waits).median,
                "end_to_end_median_s_of_all": full_time(row, waiting=True),
            }
        baseline = find_baseline(report.rows, row)
        gain = speed_up(row, baseline) if baseline is not None else None
        if gain is not None:
            line |= {"speed_up": gain.factor, "speed_up_scaled": "yes" if gain.scaled else "no"}
    return line
