"""Reports of runs: as text, CSV and JSON; and two of them side by side."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from kernelscope import atomic, filters, json_fields, machine
from kernelscope.bench import figures, peers
from kernelscope.bench.cases import DEVICES, GPU, MEASURABLE, MOST_GPUS, Plan, shape_from_json
from kernelscope.bench.data import Content
from kernelscope.bench.rows import Difference, Row
from kernelscope.bench.rules import COLD
from kernelscope.bench.statistics import (
    Ratio,
    find_baseline,
    full_time,
    megapixels_per_second,
    ratio,
    short,
    speed_up,
    summarise,
)
from kernelscope.engine.backend import Backend
from kernelscope.errors import AppError
from kernelscope.json_fields import Field
from kernelscope.spec.blocks import MOST_THREADS, Block, check_block
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.samples import Kind

Value = TypeVar("Value")

FORMAT = "kernelscope bench"
VERSION = 1


@dataclass(frozen=True)
class Report:
    """A plan, what came of it, and where.

    Attributes
    ----------
    machine : mapping of str to str
        See `facts`.
    plan : Plan
        What was asked for: running it again repeats the run.
    rows : tuple of Row
    files : mapping of str to str
        Where it was opened, the names of the files and whose times each has (see
        `Report.measured_on`); empty for what was measured here and now.
    """

    machine: Mapping[str, str]
    plan: Plan
    rows: tuple[Row, ...]
    files: Mapping[str, str] = field(default_factory=dict)

    def measured_on(self) -> str:
        """Return ``NVIDIA H100 80GB HBM3, commit 0e04ab6, 2026-11-21 20:25``."""
        devices = dict.fromkeys(row.device for row in self.rows if row.seconds)
        names = [
            self.machine.get(device.upper(), f"an unknown {device.upper()}") for device in devices
        ]
        commit = self.machine.get("Kernelscope", "").rpartition(" ")[2]
        when = self.machine.get("Date", "").rpartition("+")[0] or self.machine.get("Date", "")
        parts = [" and ".join(names), commit and f"commit {commit}", when]
        return ", ".join(filter(None, parts))


_GROUPS = ("Software", "Measured")
"""Of what a GPU tells of itself, those that decide about times and are not said elsewhere."""


def facts(backends: Mapping[str, Backend], with_peers: bool = False) -> dict[str, str]:
    """Return what a reader needs to know to judge a run: commit, date, machine, versions."""
    found = machine.facts()
    if GPU in backends and backends[GPU].availability().available:
        found |= machine.gpu_facts() or {"GPU": backends[GPU].availability().summary}
        groups = tuple(backends[GPU].facts())
        count = len({group.title.rpartition(": ")[0] for group in groups} - {""})
        if count > 1:
            found["GPU"] = f"{count} × {found['GPU']}"
        for group in groups:
            which, of_several, title = group.title.rpartition(": ")
            if title in _GROUPS:
                found |= {
                    f"{which}{of_several}{fact.name}": f"{fact.value} {fact.unit}".strip()
                    for fact in group.facts
                }
    if with_peers:
        found["Peers"] = ", ".join(f"{name} {text}" for name, text in peers.versions().items())
    return found


def merge(reports: Sequence[Report]) -> Report:
    """Return one report of the rows of several, such as of a CPU here and of a GPU elsewhere.

    Where their machines differ, each fact has what all of them say; the plan is the first's.
    """
    names = dict.fromkeys(name for report in reports for name in report.machine)
    said = {
        name: dict.fromkeys(each.machine[name] for each in reports if name in each.machine)
        for name in names
    }
    return Report(
        {name: "; ".join(texts) for name, texts in said.items()},
        reports[0].plan,
        tuple(row for report in reports for row in report.rows),
        {name: text for report in reports for name, text in report.files.items()},
    )


def beside_each_other(first: Report, second: Report) -> Report:
    """Return one report of two machines, or of two commits, whose rows say whose they are.

    They are called by what tells them apart: the card, else the CPU, else the commit, else A and B.
    """
    reports, names = (first, second), ("A", "B")
    for fact in ("GPU", "CPU", "Kernelscope"):
        said = [report.machine.get(fact, "") for report in reports]
        if all(said) and said[0] != said[1]:
            cut = "commit " if fact == "Kernelscope" else ""
            names = (_short_name(said[0], cut), _short_name(said[1], cut))
            break
    rows = tuple(
        replace(row, machine=name)
        for name, report in zip(names, reports, strict=True)
        for row in report.rows
    )
    return replace(merge([first, second]), rows=rows)


def _short_name(said: str, cut: str) -> str:
    """Return ``NVIDIA H100 80GB HBM3`` of that and its memory, or a commit."""
    return said.rpartition(cut)[2] if cut else said.partition(",")[0]


# JSON ----------------------------------------------------------------------------------


def save(report: Report, path: Path) -> None:
    """Write everything that was measured, and all that it takes to measure it again.

    Raises
    ------
    AppError
        If `path` cannot be written.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "machine": dict(report.machine),
        "plan": report.plan.to_json(),
    }
    # A row is a line: files that are kept beside a page should be no longer than need be.
    rows = ",\n".join(json.dumps(asdict(row)) for row in report.rows)
    head = json.dumps(content, indent=1).removesuffix("\n}")
    _write(path, f'{head},\n "rows": [\n{rows}\n ]\n}}\n')


def load(path: Path) -> Report:
    """Return the report that `save` wrote.

    Raises
    ------
    AppError
        If `path` cannot be read, is no such report, or is of another version; the message names
        the value that is wrong.
    """
    content = json_fields.read(path)
    if not isinstance(content.value, dict) or content.value.get("format") != FORMAT:
        raise AppError(f"{path} is no report of the bench.", "Give what “bench --out” wrote.")
    version = content["version"].whole(1, _NEWEST)
    if version != VERSION:
        raise AppError(
            f"{path} is of version {version} of the bench, this is {VERSION}.", "Measure again."
        )
    report = Report(
        _texts(content["machine"]),
        Plan.from_json(content["plan"]),
        tuple(map(_row_from_json, content["rows"].elements())),
    )
    return replace(report, files={path.name: report.measured_on()})


_NEWEST = 1000
"""More versions than there will be."""


def _texts(content: Field) -> dict[str, str]:
    return {name: value.text() for name, value in content.fields()}


def _row_from_json(content: Field) -> Row:
    """Return a row; what rows have learnt since older reports has its default there."""
    spec = content["filter"].from_text(filters.get)
    axes = 3 if spec.kind is Kind.VOLUME else 2
    shape = shape_from_json(content["shape"], axes)
    asked = shape_from_json(content["asked"], axes)
    for side, whole, place in zip(shape, asked, content["shape"].elements(), strict=True):
        if side > whole:
            place.refuse(f"{side} was timed of {whole}.")
    seconds = tuple(each.number(*MEASURABLE) for each in content["seconds"].elements())
    return Row(
        label=content["label"].text(),
        filter=spec.id,
        parameters=_parameters(content["parameters"], spec),
        border=content["border"].one_of([str(border) for border in Border]),
        content=content["content"].one_of([str(each) for each in Content]),
        channels=content["channels"].whole(1, 4),
        asked=asked,
        shape=shape,
        device=content["device"].one_of(DEVICES),
        level=content["level"].text(),
        library=content["library"].flag(),
        gpus=content["gpus"].whole(1, MOST_GPUS) if "gpus" in content else 1,
        block=_or_none(content, "block", _block) if "block" in content else None,
        seconds=seconds,
        stages=_times(content["stages"], len(seconds)),
        kernels=_times(content["kernels"], len(seconds)) if "kernels" in content else {},
        bytes=_or_none(content, "bytes", _amount),
        operations=_or_none(content, "operations", _amount),
        copy_rate=_or_none(content, "copy_rate", _rate),
        peak_rate=_or_none(content, "peak_rate", _rate),
        batch=content["batch"].whole(1, _MOST_LAUNCHES) if "batch" in content else 1,
        cache=content["cache"].text(),
        load=_or_none(content, "load", _amount),
        psnr=_or_none(content, "psnr", lambda each: each.number(-math.inf, math.inf)),
        difference=_or_none(content, "difference", _difference),
        notices=tuple(each.text() for each in content["notices"].elements()),
        reason=content["reason"].text(),
        machine=content["machine"].text() if "machine" in content else "",
    )


_MOST_LAUNCHES = 1 << 40
_MOST = 1e30
"""Of bytes, operations, and those of a second: more than there will be."""


def _parameters(content: Field, spec: FilterSpec) -> dict[str, str]:
    """Return parameters as texts; one that came later has a default that changes nothing."""
    found = {each.name: each.format(each.default) for each in spec.parameters}
    for name, value in content.fields():
        if name in found:  # a report may know others than we do
            value.from_text(spec.parameter(name).parse)
        found[name] = value.text()
    return found


def _times(content: Field, count: int) -> dict[str, tuple[float, ...]]:
    """Return times by name, as many of each as there are repeats."""
    return {
        name: tuple(each.number(0, MEASURABLE[1]) for each in times.elements(count))
        for name, times in content.fields()
    }


def _or_none(content: Field, name: str, read: Callable[[Field], Value]) -> Value | None:
    field = content[name]
    return None if field.value is None else read(field)


def _amount(content: Field) -> float:
    return content.number(0, _MOST)


def _rate(content: Field) -> float:
    return content.number(1, _MOST)


def _block(content: Field) -> Block:
    width, height = (each.whole(1, MOST_THREADS) for each in content.elements(2))
    return content.through(check_block, (width, height))


def _difference(content: Field) -> Difference:
    return Difference(
        content["largest"].number(0, math.inf),
        content["share"].number(0, 1),
        content["inside"].flag(),
    )


# CSV -----------------------------------------------------------------------------------


def save_csv(report: Report, path: Path) -> None:
    """Write a line for each row, with what its times amount to; see `to_csv`.

    Raises
    ------
    AppError
        If `path` cannot be written.
    """
    _write(path, to_csv(report))


def to_csv(report: Report) -> str:
    """Return the rows as CSV: seconds, bytes, operations; empty cells where nothing is known.

    The machine's facts stand in every line, so that lines of several files can be mixed.
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
            "end_to_end_median_s": summarise(row.waits).median,
            "median_s_of_all": full_time(row),
            "end_to_end_median_s_of_all": full_time(row, waiting=True),
            "megapixels_per_s": megapixels_per_second(row),
            **{f"{name}_median_s": summarise(times).median for name, times in row.stages.items()},
        }
        baseline = find_baseline(report.rows, row)
        if baseline is not None:
            gain = speed_up(row, baseline)
            line |= {"speed_up": gain.factor, "speed_up_scaled": "yes" if gain.scaled else "no"}
    return line


def _write(path: Path, text: str) -> None:
    try:
        # A device or a pipe such as /dev/stdout, which is no place that a path resolves to.
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            atomic.replace(path.resolve(), text.encode(), durable=False)
    except (OSError, ValueError, RuntimeError) as error:  # A null character; a circle of links.
        detail = error.strerror if isinstance(error, OSError) else error
        raise AppError(f"{path} cannot be written: {detail}.") from None


# Text ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Markdown that is aligned for a terminal too.

    Attributes
    ----------
    headings, widths : tuple
        Of the columns; widths in characters.
    text : tuple of int
        Columns that are aligned to the left.
    """

    headings: tuple[str, ...]
    widths: tuple[int, ...]
    text: tuple[int, ...]

    def head(self) -> str:
        """Return the first two lines."""
        rule = (
            "-" * width if column in self.text else "-" * (width - 1) + ":"
            for column, width in enumerate(self.widths)
        )
        return f"{self.line(self.headings)}\n| {' | '.join(rule)} |"

    def line(self, cells: Sequence[str]) -> str:
        """Return a line with these cells."""
        padded = (
            cell.ljust(width) if column in self.text else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, self.widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"


LEGEND = (
    "Medians of computing (stage compute, kernels, a library's call); ±: half the interquartile "
    "range. End to end, of a GPU: upload, kernel, download. What would take long is timed on a "
    "part: its size and times are those of the part, and ≈ what all of it should take, in "
    "proportion to the work. × serial: how many times longer the serial CPU takes than this end to "
    "end, ≈ where one of the two was timed on a part. Compiling and warm-up excluded."
)
TABLE = Table(
    ("filter", "by", "timed", "ms", "± %", "end to end ms", "MP/s", "× serial", "remark"),
    (42, 17, 11, 10, 5, 13, 8, 8, 6),
    (0, 1, 8),
)


def format_row(row: Row, rows: Iterable[Row]) -> str:
    """Return the line of the table that shows a row with times, beside the baseline in `rows`."""
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
            f"{'≈ ' if gain.scaled else ''}{short(gain.factor)}" if gain else "",
            "; ".join(remarks(row)),
        )
    )


def remarks(row: Row) -> Iterator[str]:
    """Yield what else there is to say of a row with times, the authors' figures included."""
    if row.is_part:
        yield f"a part of {row.size}, which should take ≈ {whole_time(row)}"
    if row.batch > 1:
        yield f"each time the mean of {row.batch} launches"
    if row.difference is not None and row.difference.largest:
        yield row.difference.describe()
    if row.cache and row.cache != COLD:
        yield f"{row.cache} caches"
    if row.load is not None and row.load >= 0.1:
        yield f"{row.load:.1f} cores busy with other programs"
    if row.psnr is not None:
        yield f"{row.psnr:.2f} dB"
    for figure in figures.beside(row):
        yield f"theirs: {figure.describe()}"
    yield from row.notices


def whole_time(row: Row) -> str:
    """Return ``4,974 ms``, or ``0.4 ms, 3.9 ms end to end``: for all that was asked for."""
    text = f"{short(1e3 * full_time(row), 4)} ms"
    if row.waits == row.seconds:
        return text
    return f"{text}, {short(1e3 * full_time(row, waiting=True), 4)} ms end to end"


def format_origins(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each author whose figures stand beside rows, with their hardware."""
    for source in dict.fromkeys(f.origin for row in rows for f in figures.beside(row)):
        yield f"Theirs: {source.describe()}"


def format_reasons(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each reason why rows have no times, and which rows they are."""
    whose: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.reason:
            whose[row.reason].append(f"{row.label}, {row.size}, {row.series}")
    for reason, names in whose.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"Not measured: {'; '.join(names[:3])}{more}. {reason}"


# Two reports -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The same row in two reports.

    Attributes
    ----------
    first, second : Row or None
        None where a report has no such row with times.
    """

    first: Row | None
    second: Row | None

    @property
    def row(self) -> Row:
        """One that there is."""
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
        """Whether the interval of the ratio leaves out 1, so that more than chance is at work."""
        found = self.ratio
        return found is not None and not found.interval.low <= 1 <= found.interval.high


def compare(first: Report, second: Report) -> list[Pair]:
    """Return the rows of two reports, of two machines or two commits, side by side."""

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
    """Yield the lines that show two reports side by side, what tells them apart first."""
    for name in dict.fromkeys((*first.machine, *second.machine)):
        mine, other = (report.machine.get(name, "unknown") for report in (first, second))
        if mine != other:
            yield f"{name}: A {mine}; B {other}"
    yield ""
    yield (
        "Medians of computing, ≈ for all of the data where a part was timed. B / A: below 1, B is "
        "faster; it lies in the interval as surely as said, and “unclear” where that has 1 in it."
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
