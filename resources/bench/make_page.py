"""Makes the tables and plots of README.md beside it from the JSON files beside it.

``python resources/bench/make_page.py`` rewrites what stands between the marks of the page (and
of two tables of the manual), and draws the plots anew; needs the window's libraries.
Nothing that was measured is typed by hand: a test compares the pages with the files.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernelscope.bench import Plan, Report, Row, find_baseline, load, merge, speed_up
from kernelscope.bench.charts import Choice, Plot, chart
from kernelscope.bench.figures import (
    PSNR,
    SCALING,
    SOURCES,
    SPEED_UP,
    TIME,
    Figure,
    Scope,
    all_figures,
    beside,
)
from kernelscope.bench.statistics import (
    BASELINE,
    Interval,
    Ratio,
    full_time,
    ratio,
    ratio_of_times,
    short,
    summarise,
)
from kernelscope.bench.text_table import format_reasons
from kernelscope.gui.bench.export import create_drawer, save_chart
from kernelscope.spec.blocks import block_name

FOLDER = Path(__file__).parent
PAGE, MANUAL = FOLDER / "README.md", FOLDER.parent / "docs"

EXPERIMENTS = (
    *("f-levels", "f-tables", "f-graphs", "f-selection", "m-ladder", "n-nlm", "v-one", "v-three"),
    *("v-noise", "v-sizes", "v-patches", "quick-look"),
)
"""Those with a CPU part and a GPU part, ``cpu-NAME.json`` and ``gpu-NAME.json``."""

TEXTBOOKS = ("gpu-textbook-4096", "gpu-textbook-256", "gpu-textbook-nlm")
"""Ours beside textbook kernels, as ``tests.gpu.bench_levels`` and ``textbook_nlm`` write it."""

SEVERAL = "h200-one-to-four-gpus-2026-11-21"
"""A run on several GPUs, as text: what is said of them where no JSON has them."""

C_PEER = "C -O2"
"""The library whose rows are the same loops in C, which *serial* is compared with."""

_NOTHING = Report({}, Plan(sweeps=()), ())
_SIZE = (4096, 4096)
_CLEAR = 1.1
"""A ratio from which on one of two is said to be faster."""

_SAME_DECIBELS = 0.01
"""Levels whose PSNRs differ by less than this agree."""


def reports(*names: str) -> Report:
    """Return what lies in those of some files that there are, as one report."""
    paths = (FOLDER / f"{name}.json" for name in names)
    return merge([_NOTHING, *(load(path) for path in paths if path.exists())])


def experiment(name: str) -> Report:
    return reports(f"cpu-{name}", f"gpu-{name}")


def bench_files() -> list[Path]:
    """Return the files of the bench, without those of other programs."""
    return [path for path in sorted(FOLDER.glob("*.json")) if path.stem not in TEXTBOOKS]


# Tables --------------------------------------------------------------------------------


def table(headings: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """Return Markdown whose first `text` columns are aligned to the left."""
    rule = ["---" if column < text else "--:" for column in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *lines))


def milliseconds(row: Row | None, waiting: bool = False) -> str:
    """Return the time, and where a part was timed, ≈ for all of the data and what was timed."""
    if row is None or not row.seconds:
        return ""
    whole = short(1e3 * full_time(row, waiting))
    if not row.is_part:
        return whole
    timed = short(1e3 * summarise(row.waits if waiting else row.seconds).median)
    return f"≈ {whole} ({timed} on {row.timed_size})"


def gain(row: Row | None, rows: Sequence[Row], waiting: bool = True, over: str = BASELINE) -> str:
    """Return how many times longer another series takes."""
    base = find_baseline(rows, row, over) if row is not None and row.seconds else None
    if row is None or base is None:
        return ""
    found = speed_up(row, base, waiting)
    return f"{'≈ ' if found.scaled else ''}{short(found.factor)}"


def subjects(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows in groups that are about the same filter and data."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.subject, []).append(row)
    return list(groups.values())


def by_level(report: Report) -> str:
    """Return a line for each level of an experiment about one filter and one size."""
    rows = report.rows
    return table(
        (
            *("by", "computing, ms", "± %", "end to end, ms"),
            *("× serial", "× serial, end to end", "× parallel, end to end", "theirs"),
        ),
        (
            (
                row.series,
                milliseconds(row),
                f"{50 * summarise(row.seconds).spread:.0f}",
                milliseconds(row, waiting=True),
                gain(row, rows, waiting=False),
                gain(row, rows),
                gain(row, rows, over="CPU parallel"),
                "; ".join(figure.describe() for figure in beside(row)),
            )
            for row in rows
            if row.seconds
        ),
    )


def times(report: Report, *, waiting: bool = False, quantity: str = TIME) -> str:
    """Return a line for each filter and size, a column for each series, in ms.

    Figures of time stand beside whole runs only, or where nothing says what they are of.

    Parameters
    ----------
    waiting : bool
        Whole runs, or else computing alone.
    quantity : str
        Of the authors' figures.
    """
    series = list(dict.fromkeys(row.series for row in report.rows if row.seconds))

    def fits(figure: Figure) -> bool:
        if figure.quantity != quantity or quantity == PSNR:
            return figure.quantity == quantity
        return figure.is_of(waiting) or figure.scope is Scope.NOT_STATED

    def line(rows: Sequence[Row]) -> Sequence[str]:
        found = {row.series: row for row in rows}
        theirs = [f for f in all_figures() if fits(f) and f.is_about(rows[0])]
        return (
            rows[0].label,
            rows[0].size,
            *(milliseconds(found.get(name), waiting) for name in series),
            decibels(rows) if quantity == PSNR else "",
            "; ".join(dict.fromkeys(map(quote, theirs))),
        )

    lines = [line(rows) for rows in subjects(report.rows)]
    headings = ("filter", "size", *series, "PSNR, dB", "theirs")
    if not lines:
        return _MISSING
    used = [n for n in range(len(headings)) if any(cells[n] for cells in lines)]
    return table([headings[n] for n in used], [[cells[n] for n in used] for cells in lines], text=2)


def quote(figure: Figure) -> str:
    """Return a figure in a column of one source, with what has to be said of it."""
    said = [figure.remark] if figure.remark else []
    if figure.quantity == TIME and figure.scope is Scope.NOT_STATED and figure.device == "gpu":
        said.append(str(figure.scope))
    return f"{figure.variant} {figure.amount()}" + (f" [{'; '.join(said)}]" if said else "")


def decibels(rows: Iterable[Row]) -> str:
    """Return the PSNR of the results, of all levels where they differ.

    A row that was timed on a part says nothing: what it filtered is another picture.
    """
    found = sorted({f"{row.psnr:.2f}" for row in rows if row.psnr is not None and not row.is_part})
    return " to ".join(dict.fromkeys((found[0], found[-1]))) if found else ""


def kernels(report: Report) -> str:
    """Return a line for each row of several kernels: what each of them takes, in ms."""

    def lines() -> Iterator[Sequence[str]]:
        for row in report.rows:
            if len(row.kernels) > 1:
                scale = full_time(row) / summarise(row.seconds).median
                each = (
                    f"{name} {'≈ ' if row.is_part else ''}"
                    f"{short(1e3 * scale * summarise(seconds).median)}"
                    for name, seconds in row.kernels.items()
                )
                yield row.label, row.size, row.series, "; ".join(each)

    found = list(lines())
    return table(("filter", "size", "by", "kernels, ms"), found, text=4) if found else _MISSING


_MISSING = "Not measured yet."


def gains(report: Report, level: str) -> str:
    """Return a line for each filter, a column for each size: speed-ups, theirs in brackets."""
    sizes = list(dict.fromkeys(row.size for row in report.rows))
    labels = list(dict.fromkeys(row.label for row in report.rows))
    found = {(row.label, row.size): row for row in report.rows if row.series == level}

    def cell(label: str, size: str) -> str:
        row = found.get((label, size))
        figures = beside(row) if row else ()
        theirs = [short(f.low) for f in figures if f.quantity == SPEED_UP and f.is_of(True)]
        return f"{gain(row, report.rows)} ({theirs[0]})" if theirs else gain(row, report.rows)

    return table(
        ("filter", *sizes), ((label, *(cell(label, size) for size in sizes)) for label in labels)
    )


def by_memory(report: Report, levels: Sequence[str]) -> str:
    """Return a line for each filter, a column for each size: speed-ups of several levels.

    They stand side by side, as `levels` are, of whole runs.
    """
    sizes = list(dict.fromkeys(row.size for row in report.rows if row.series in levels))
    found = {(row.label, row.size, row.series): row for row in report.rows if row.seconds}

    def cell(label: str, size: str) -> str:
        rows = (found.get((label, size, level)) for level in levels)
        return slashed([gain(row, report.rows) for row in rows])

    labels = dict.fromkeys(row.label for row in report.rows if row.series in levels)
    lines = [(label, *(cell(label, size) for size in sizes)) for label in labels]
    return table(("filter", *sizes), lines) if lines else _MISSING


def by_block(report: Report) -> str:
    """Return a line for each filter and level, a column for each size of blocks: kernels, in ms."""
    names = list(dict.fromkeys(block_name(row.block) for row in report.rows if row.block))
    found: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in report.rows:
        name = block_name(row.block) if row.block else ""
        found.setdefault((row.label, row.size, row.level), {})[name] = row
    lines = [
        (*key, *(milliseconds(by_name.get(name)) for name in names))
        for key, by_name in found.items()
        if any(row.seconds for row in by_name.values())
    ]
    return table(("filter", "size", "level", *names), lines, text=3) if lines else _MISSING


def libraries(report: Report) -> str:
    """Return ours beside each library: computing in ms, ours / theirs, and how results differ."""
    names = list(
        dict.fromkeys(
            row.series for row in report.rows if row.library and row.seconds and row.level != C_PEER
        )
    )

    def line(rows: Sequence[Row]) -> Iterator[str]:
        ours = min(
            (row for row in rows if row.seconds and not row.library), key=full_time, default=None
        )
        yield from (rows[0].label, rows[0].size, milliseconds(ours))
        found = {row.series: row for row in rows if row.library and row.seconds}
        for name in names:
            row = found.get(name)
            yield milliseconds(row)
            yield f"{full_time(ours) / full_time(row):.2f}" if ours and row else ""
        yield "; ".join(
            f"{name}: {row.difference.describe()}"
            for name, row in found.items()
            if row.difference is not None and row.difference.largest and name in names
        )

    headings = ["filter", "size", "ours, ms"]
    for name in names:
        headings += [f"{name}, ms", "ours / it"]
    lines = [list(line(rows)) for rows in subjects(report.rows)]
    return table((*headings, "results that differ"), lines, text=2)


def beside_c(report: Report) -> str:
    """Return the level *serial* beside the same loops in C: times, their ratio and its interval."""

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            found = {row.series: row for row in rows if row.seconds}
            ours, theirs = found.get(BASELINE), found.get(C_PEER)
            if ours is not None and theirs is not None:
                quotient = ratio(ours, theirs)
                yield (
                    ours.label,
                    ours.size,
                    milliseconds(ours),
                    milliseconds(theirs),
                    f"{quotient.value:.2f}",
                    quotient.interval.describe(),
                )

    found = list(lines())
    headings = ("filter", "size", "serial, ms", f"{C_PEER}, ms", "serial / C", "between")
    return table(headings, found, text=2) if found else _MISSING


@dataclass(frozen=True)
class Pair:
    """A level of ours and the textbook kernel of the same memory, timed in turns.

    Attributes
    ----------
    ours, textbook : sequence of float
        Seconds of every repeat.
    """

    label: str
    size: str
    level: str
    ours: Sequence[float]
    textbook: Sequence[float]


@functools.cache
def textbook() -> tuple[tuple[str, ...], tuple[Pair, ...]]:
    """Return what measured the textbook kernels, and the pairs; nothing if there is no file."""
    known: dict[str, None] = {}
    pairs: list[Pair] = []
    for name in TEXTBOOKS:
        path = FOLDER / f"{name}.json"
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(content, dict) and content.get("card"):
                known.setdefault(content["card"])
            pairs += pairs_of(content)
    return tuple(known), tuple(pairs)


def pairs_of(content: Any) -> Iterator[Pair]:
    """Yield the pairs of a file of `bench_levels`, by its side and cases, or of `textbook_nlm`."""
    if isinstance(content, list):
        for row in content:
            yield Pair(row["label"], row["size"], row["level"], row["ours"], row["textbook"])
        return
    size = "×".join([str(content["side"])] * 2)
    for row in content["rows"]:
        family, _, side = row["case"].rpartition(" ")
        label = _CASES[family].format(side) if family in _CASES else row["case"]
        yield Pair(label, size, row["level"], row["times"], row["textbook_times"])


_CASES = {
    "mask": "Custom mask, {0}×{0}",
    "mean": "Mean, mask size {0}",
    "median": "Median, mask size {0}",
    "weighted mean": "Weighted mean, mask size {0}",
}
"""What the bench calls the cases of `bench_levels`."""


def textbook_ratio(label: str, size: str, slower: str, faster: str) -> Ratio | None:
    """Return how many times as long one textbook kernel takes as another."""
    found = {pair.level: pair for pair in textbook()[1] if (pair.label, pair.size) == (label, size)}
    if slower not in found or faster not in found:
        return None
    return ratio_of_times(found[slower].textbook, found[faster].textbook)


def beside_textbooks() -> str:
    """Return a line for each filter: ours / the textbook kernel, a column for each level."""
    cards, pairs = textbook()
    if not pairs:
        return _MISSING
    levels = list(dict.fromkeys(pair.level for pair in pairs))
    found: dict[tuple[str, str], dict[str, Pair]] = {}
    for pair in pairs:
        found.setdefault((pair.label, pair.size), {})[pair.level] = pair

    def cell(pair: Pair | None) -> str:
        if pair is None:
            return ""
        quotient = ratio_of_times(pair.ours, pair.textbook)
        low, high = quotient.interval.low, quotient.interval.high
        median = 1e3 * summarise(pair.ours).median
        return f"{quotient.value:.2f} ({low:.2f} to {high:.2f}; {short(median)} ms)"

    lines = [
        (label, size, *(cell(by_level.get(level)) for level in levels))
        for (label, size), by_level in found.items()
    ]
    on_card = f"On {', '.join(cards)}:\n\n" if cards else ""
    return f"{on_card}{table(('filter', 'size', *levels), lines, text=2)}"


def by_filter(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of `lines`, whose first cell is a label: one for each filter.

    What belongs to its mask sizes stands side by side, small ones first.
    """
    groups: dict[str, list[tuple[str, ...]]] = {}
    for label, *cells in lines:
        parts = label.split(", ")
        side = next((part for part in parts if _SIDE.fullmatch(part)), "")
        name = ", ".join(part for part in parts if part != side)
        groups.setdefault(name, []).append((_SIDE.sub(r"\1", side), *cells))
    for group in groups.values():
        group.sort(key=lambda cells: int(cells[0] or 0))
    body = (
        (name, *(slashed(column) for column in zip(*group, strict=True)))
        for name, group in groups.items()
    )
    return table(("filter", "mask sizes", *headings), body, text=2)


def slashed(cells: Sequence[str]) -> str:
    """Return cells side by side, — for empty ones among others."""
    return " / ".join(cell or "—" for cell in cells) if any(cells) else ""


def in_brief(report: Report, library: str) -> str:
    """Return what was measured how, and a line for each filter, beside a library."""
    known = report.machine
    version = next(text for text in known["Peers"].split(", ") if text.startswith(library))

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            ours = next((row for row in rows if row.seconds and not row.library), None)
            other = next((row for row in rows if row.seconds and row.series == library), None)
            if ours is not None and other is not None:
                quotient = f"{full_time(ours) / full_time(other):.2f}"
                yield ours.label, milliseconds(ours), milliseconds(other), quotient

    busy = max((row.load for row in report.rows if row.load is not None), default=0.0)
    disturbed = f", up to {busy:.1f} cores busy with other programs" if busy >= 0.1 else ""
    head = (
        f"Level `parallel` beside {version} in the same run, in ms: {known['CPU']}, "
        f"{known['Date'][:10]}, {report.rows[0].size} {report.rows[0].content}, 8 bit, medians of "
        f"{report.plan.repeat}, cold caches, compiling excluded{disturbed} "
        f"([all rows and libraries](../bench/README.md#beside-other-libraries))."
    )
    return f"{head}\n\n{by_filter(('ours', library, f'ours / {library}'), lines())}"


def on_the_card(report: Report) -> str:
    """Return the same for the kernels of the level *tuned* beside NPP and CuPy."""
    known, names = report.machine, ("NPP", "CuPy")

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            found = {row.series: row for row in rows if row.seconds}
            ours = found.get("GPU tuned")
            if ours is not None and ours.bytes is not None and ours.copy_rate is not None:
                rate = ours.bytes / full_time(ours) / ours.copy_rate
                theirs = (milliseconds(found.get(name)) for name in names)
                yield ours.label, milliseconds(ours), f"{rate:.0%}", *theirs

    head = (
        f"Kernels of level `tuned` beside NVIDIA's NPP and CuPy in the same run, in ms: "
        f"{known['GPU'].partition(',')[0]}, driver {known['Driver']}, {known['Date'][:10]}, "
        f"{report.rows[0].size} {report.rows[0].content}, 8 bit, medians of "
        f"{len(report.rows[0].seconds)}, cold caches; a copy on the card moves "
        f"{known['Copy on the card, read + written']} "
        f"([all rows](../bench/README.md#beside-other-libraries))."
    )
    return f"{head}\n\n{by_filter(('ours', 'of the copy rate', *names), lines())}"


_SIDE = re.compile(r"(?:mask size )?(\d+)(?:×\d+)?")


def machines() -> str:
    """Return what measured what, and when."""
    lines = []
    for path in bench_files():
        report = load(path)
        known = {name.casefold(): text for name, text in report.machine.items()}
        loads = [row.load for row in report.rows if row.load is not None]
        busy = f"{min(loads):.1f} to {max(loads):.1f}" if loads else ""
        where = known["gpu"] if path.stem.startswith("gpu-") else known["cpu"]
        details = [known[name] for name in ("driver", "compiler") if name in known]
        commit = known["kernelscope"].rpartition(" ")[2]
        lines.append(
            (
                f"[{path.name}]({path.name})",
                ", ".join((where, *details)),
                commit,
                known["date"],
                busy,
            )
        )
    return table(("file", "measured on", "commit", "date", "cores busy otherwise"), lines, text=4)


def gaps() -> str:
    """Return which rows were timed on a part, and which could not run, with the reasons."""
    lines = []
    for path in bench_files():
        rows = load(path).rows
        parts = [row for row in rows if row.seconds and row.is_part]
        if parts:
            names = "; ".join(
                f"{row.label}, {row.size}, {row.series}: {row.timed_size}" for row in parts
            )
            lines.append(f"- `{path.stem}`: timed on a part, as all would have been slow: {names}.")
        lines += [f"- `{path.stem}`: {text}" for text in format_reasons(rows)]
    return "\n".join(lines)


# Conclusions ---------------------------------------------------------------------------


class Verdict(StrEnum):
    """What comes of a conclusion of a source, for one quantity."""

    HOLDS = "holds"
    NO_LONGER = "no longer"
    NOT_OURS = "not with our kernels"
    UNCLEAR = "unclear"
    NOT_HERE = "not here"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a source found, as a ratio: theirs, and ours.

    Attributes
    ----------
    theirs : str
        Their ratio, and what it is of.
    runs, kernels : Ratio, optional
        Ours, of whole runs and of kernels alone.
    textbook : Ratio, optional
        The same of textbook kernels.
    equal : bool
        The source found that there is no difference.
    missing : str
        Why there is none of ours.
    """

    source: str
    text: str
    theirs: str
    runs: Ratio | None = None
    kernels: Ratio | None = None
    textbook: Ratio | None = None
    equal: bool = False
    missing: str = "not measured"

    def line(self) -> tuple[str, ...]:
        """Return the cells of a line, the verdict last."""
        return (
            SOURCES[self.source].author,
            self.text,
            self.theirs,
            amount(self.runs),
            amount(self.kernels),
            amount(self.textbook),
            self.verdict() or self.missing,
        )

    def verdict(self) -> str:
        """Return what comes of it, by each quantity, and how sure that is."""
        said = []
        if self.kernels is not None:
            said.append(("kernels", self.of_kernels(self.kernels), self.kernels))
        if self.runs is not None:
            said.append(("whole runs", self.of_runs(self.runs), self.runs))
        texts = [f"{found} ({sure(of.interval)})" for _, found, of in said]
        if len(said) < 2:
            return "".join(texts)
        return "; ".join(f"{what}: {text}" for (what, *_), text in zip(said, texts, strict=True))

    def of_kernels(self, found: Ratio) -> Verdict:
        """Judge by kernels: “no longer” only where the textbook kernels say so too."""
        judged = judge(found, self.equal)
        if judged is not Verdict.NO_LONGER:
            return judged
        if self.textbook is None:
            return Verdict.NOT_HERE
        agrees = judge(self.textbook, self.equal) is Verdict.NO_LONGER
        return Verdict.NO_LONGER if agrees else Verdict.NOT_OURS

    def of_runs(self, found: Ratio) -> Verdict:
        """Judge by whole runs, most of which may be transfers."""
        judged = judge(found, self.equal)
        return Verdict.NOT_HERE if judged is Verdict.NO_LONGER else judged


def judge(found: Ratio, equal: bool) -> Verdict:
    """Say whether one is faster, or none is: wherever in its interval the ratio lies."""
    low, high = found.interval.low, found.interval.high
    if equal:
        if low > 1 / _CLEAR and high < _CLEAR:
            return Verdict.HOLDS
        return Verdict.NO_LONGER if low >= _CLEAR or high <= 1 / _CLEAR else Verdict.UNCLEAR
    if low >= _CLEAR:
        return Verdict.HOLDS
    return Verdict.NO_LONGER if high < _CLEAR else Verdict.UNCLEAR


def sure(interval: Interval) -> str:
    """Return ``99 % sure``; of medians whose repeats were not kept nobody knows."""
    if interval.low == interval.high and not interval.confidence:
        return "single figures"
    return interval.describe().rpartition(", ")[2]


def amount(found: Ratio | None) -> str:
    """Return ``1.68× (1.66 to 1.7)``, with ≈ where a part was timed."""
    if found is None:
        return ""
    about = "≈ " if found.scaled else ""
    between = f"{short(found.interval.low)} to {short(found.interval.high)}"
    return f"{about}{short(found.value)}× ({between})"


def between(
    report: Report,
    slower: str,
    faster: str,
    *,
    label: str = "",
    size: str = "",
    waiting: bool = False,
) -> Ratio | None:
    """Return how many times as long one series takes as another, about the same subject."""
    for mine in report.rows:
        if mine.series == slower and label in ("", mine.label) and size in ("", mine.size):
            other = find_baseline(report.rows, mine, faster) if mine.seconds else None
            if other is not None:
                return ratio(mine, other, waiting)
    return None


def theirs(source: str, level: str, test: Callable[[Figure], bool] = lambda figure: True) -> float:
    """Return the middle of the first figure of a source for a level that passes a test."""
    for figure in all_figures():
        if (figure.source, figure.level) == (source, level) and test(figure):
            return figure.middle
    raise LookupError(f"{source} {level}")


def claims() -> Iterator[Claim]:
    """Yield what can be put as a ratio of the sources' conclusions."""
    yield from claims_of_f()
    yield from claims_of_m()
    yield from claims_of_n()
    yield from claims_of_v()


def claims_of_f() -> Iterator[Claim]:
    levels, tables = experiment("f-levels"), experiment("f-tables")
    mask, sizes = "Custom mask, 9×9", ("128×128", "4096×4096")

    def custom(side: int, size: int) -> Callable[[Figure], bool]:
        return lambda f: f.filter == "mask" and f.mask_side == side and f.shape == (size, size)

    def median(figure: Figure) -> bool:
        return figure.parameters.get("size") == "9" and figure.shape == _SIZE

    large = {
        level: theirs("F", level, custom(9, 4096)) for level in ("global", "constant", "shared")
    }
    for slower, faster, text in (
        ("global", "constant", "constant memory beats global memory (mask 9×9, 4096²)"),
        ("constant", "shared", "shared memory beats constant memory alone (mask 9×9, 4096²)"),
    ):
        names = f"GPU {slower}", f"GPU {faster}"
        yield Claim(
            source="F",
            text=text,
            theirs=f"{short(large[faster] / large[slower])}×, whole runs",
            runs=between(levels, *names, waiting=True),
            kernels=between(levels, *names),
            textbook=textbook_ratio(mask, sizes[1], slower, faster),
        )
    small_gain, large_gain = (
        between(tables, "CPU serial", "GPU shared", label=mask, size=size, waiting=True)
        for size in sizes
    )
    growth = large["shared"] / theirs("F", "shared", custom(9, 128))
    yield Claim(
        source="F",
        text="the larger the picture, the larger the gain (mask 9×9, 4096² over 128²)",
        theirs=f"{short(growth)}×, whole runs",
        runs=large_gain.over(small_gain) if large_gain and small_gain else None,
    )
    label = "Median, mask size 9"
    medians = between(tables, "CPU serial", "GPU shared", label=label, size=sizes[1], waiting=True)
    yield Claim(
        source="F",
        text="a mask gains more than a median (9×9, 4096²)",
        theirs=f"{short(large['shared'] / theirs('F', 'shared', median))}×, whole runs",
        runs=large_gain.over(medians) if large_gain and medians else None,
    )
    yield Claim(
        source="F",
        text="a median by selection beats one by bubble sort (9×9, 1024², here serial code)",
        theirs="4× (chapter 6), by what device not stated",
        runs=between(experiment("f-selection"), "CPU serial-bubble", "CPU serial", label=label),
    )


def claims_of_m() -> Iterator[Claim]:
    ladder = experiment("m-ladder")
    for level, other, text, equal in (
        ("serial", "global", "the GPU beats serial code (mean 3×3, 256²)", False),
        ("single-block", "global", "many blocks beat a single one (mean 3×3, 256²)", False),
        ("global", "shared", "shared memory is no gain (mean 3×3, 256²)", True),
        ("texture", "global", "textures are slower than global memory (mean 3×3, 256²)", False),
    ):
        names = [f"{'CPU' if each == 'serial' else 'GPU'} {each}" for each in (level, other)]
        quotient = theirs("M", level) / theirs("M", other)
        yield Claim(
            source="M",
            text=text,
            theirs=f"{short(quotient)}×, {Scope.NOT_STATED}",
            runs=between(ladder, *names, waiting=True),
            kernels=between(ladder, *names),
            textbook=textbook_ratio("Mean, mask size 3", "256×256", level, other),
            equal=equal,
        )


def claims_of_n() -> Iterator[Claim]:
    whole = next(f for f in all_figures() if f.source == "N" and f.quantity == SPEED_UP)
    nlm = experiment("n-nlm")
    yield Claim(
        source="N",
        text=f"a GPU beats serial code (whole image, {whole.shape[0]}²)",
        theirs=f"{short(whole.low)}×, whole runs",
        runs=between(
            nlm,
            "CPU serial",
            "GPU shared",
            label=f"Non-local means, patch size {whole.parameters['patch']}",
            size="×".join(map(str, whole.shape)),
            waiting=True,
        ),
    )
    inside, handed = (
        next(f for f in all_figures() if f.source == "N" and (f.quantity, f.level) == (TIME, level))
        for level in ("shared", "host-partitions")
    )
    names = "GPU host-partitions", "GPU shared"
    size = "×".join(map(str, inside.shape))
    label = f"Non-local means, patch size {inside.parameters['patch']}"
    yield Claim(
        source="N",
        text="walking the partitions in the kernel beats handing them over by the host "
        f"(patch {inside.parameters['patch']}, {inside.shape[0]}²)",
        theirs=f"faster on a GTX 480, in a chart; {short(handed.low / inside.low)}× on a GT 640M, "
        f"{Scope.NOT_STATED}",
        runs=between(nlm, *names, label=label, size=size, waiting=True),
        kernels=between(nlm, *names, label=label, size=size),
    )


def claims_of_v() -> Iterator[Claim]:
    def largest(figure: Figure) -> bool:
        wanted = {"dimensions": "3d", "patch_radius": "2", "search_radius": "5"}
        return (figure.parameters, figure.channels, figure.shape, figure.quantity) == (
            wanted,
            3,
            (130, 157, 189),
            TIME,
        )

    serial = theirs("V", "serial", largest)
    single, double = (
        theirs("V", "shared", lambda f, n=gpus: largest(f) and f.gpus == n)  # type: ignore[misc]
        for gpus in (1, 2)
    )
    label, size = "MRI NLM, dimensions 3d, patch radius 2, search radius 5", "189×157×130"
    three = experiment("v-three")
    yield Claim(
        source="V",
        text="a GPU beats serial code (three components, 3D, v = 5, d = 2, 189×157×130)",
        theirs=f"{short(serial / single)}×, whole runs",
        runs=between(three, "CPU serial", "GPU shared", label=label, size=size, waiting=True),
    )
    for figure in all_figures():
        if figure.average and figure.quantity == SPEED_UP:
            yield average(figure)
    report = several_gpus()
    names = "GPU shared", "2 GPUs shared"
    found = between(three, *names, label=label, size=size, waiting=True)
    yield Claim(
        source="V",
        text="two GPUs beat one (three components, 3D, v = 5, d = 2, 189×157×130)",
        theirs=f"{short(single / double)}×, whole runs",
        runs=found,
        missing="not measured: one GPU here",
    )
    factor = next(f for f in all_figures() if f.average and f.quantity == SCALING)
    yield Claim(
        source="V",
        text="two GPUs beat one (average, one component)",
        theirs=f"{short(factor.low)}×, whole runs",
        runs=mean_ratio(experiment("v-one"), *names, shape=factor.shape),
        missing="not measured: one GPU here",
    )
    cubes = experiment("v-sizes")
    sides = {
        f.gpus: f.low for f in all_figures() if f.shape == (512, 512, 512) and f.level == "shared"
    }
    found = between(cubes, *names, size="512×512×512", waiting=True)
    where = "level shared" if found else "level tuned, two H200"
    yield Claim(
        source="V",
        text=f"two GPUs beat one (table 4-5, 512³, v = 5, d = 1; here {where})",
        theirs=f"{short(sides[1] / sides[2])}×, whole runs",
        runs=found or report,
        missing="not measured: one GPU here",
    )


def average(figure: Figure) -> Claim:
    """Return the claim of an average of speed-ups over the rows of a table."""
    volumes = experiment("v-one" if figure.channels == 1 else "v-three")
    by = "GPU shared" if figure.gpus == 1 else f"{figure.gpus} GPUs shared"
    size = "×".join(map(str, reversed(figure.shape)))
    count = "one GPU beats" if figure.gpus == 1 else "two GPUs beat"
    components = "one component" if figure.channels == 1 else "three components"
    return Claim(
        source="V",
        text=f"{count} serial code (average of all radii, {components}, {size})",
        theirs=f"{short(figure.low)}×, whole runs",
        runs=mean_ratio(volumes, "CPU serial", by, shape=figure.shape),
        missing="not measured: one GPU here" if figure.gpus > 1 else "not measured",
    )


def mean_ratio(report: Report, slower: str, faster: str, *, shape: tuple[int, ...]) -> Ratio | None:
    """Return the mean of the ratios of whole runs over all rows about a shape."""
    found = [
        ratio(row, other, waiting=True)
        for row in report.rows
        if row.series == slower and row.seconds and row.asked == shape
        if (other := find_baseline(report.rows, row, faster)) is not None
    ]
    if not found:
        return None
    missed = sum(1 - each.interval.confidence for each in found)
    return Ratio(
        sum(each.value for each in found) / len(found),
        Interval(
            sum(each.interval.low for each in found) / len(found),
            sum(each.interval.high for each in found) / len(found),
            max(0.0, 1 - missed),
        ),
        any(each.scaled for each in found),
    )


def several_gpus() -> Ratio | None:
    """Return how many times as fast two GPUs are as one, as the run that is kept as text says."""
    path = FOLDER / f"{SEVERAL}.txt"
    if not path.exists():
        return None
    totals = dict(re.findall(r"512\^3 (\d) GPU\(s\):.*TOTAL ([\d.]+)", path.read_text("utf-8")))
    found = float(totals["1"]) / float(totals["2"])
    return Ratio(found, Interval(found, found, 0.0))


def agreement() -> tuple[str, ...]:
    """Return the line of source N's conclusion that transfers cost accuracy."""
    variants = [
        f.low
        for f in all_figures()
        if f.source == "N" and f.quantity == PSNR and "lena" in f.variant and f.shape == (256, 256)
        if f.parameters["patch"] == "7"
    ]
    spreads = []
    for rows in subjects(experiment("n-nlm").rows):
        found = [row.psnr for row in rows if row.psnr is not None and not row.is_part]
        if len(found) > 1:
            spreads.append(max(found) - min(found))
    most = max(spreads, default=None)
    verdict = "not measured"
    if most is not None:
        verdict = "refuted: all levels agree" if most < _SAME_DECIBELS else "levels differ"
    here = "" if most is None else f"at most {most:.4f} dB in {len(spreads)} pictures"
    return (
        SOURCES["N"].author,
        "transfers cost accuracy: variants differ in PSNR (Lena, 256², patch 7)",
        f"{max(variants) - min(variants):.2f} dB",
        here,
        "",
        "",
        verdict,
    )


def conclusions() -> str:
    headings = ("source", "conclusion", "theirs", "here, whole runs", "here, kernels")
    lines = [claim.line() for claim in claims()]
    place = max(n for n, line in enumerate(lines) if line[0] == SOURCES["N"].author) + 1
    lines.insert(place, agreement())
    return table((*headings, "textbook kernels", "verdict"), lines, text=2)


_FIRST_COMMITS = ("0e04ab6", "cff5683", "66fb893", "bc11e6e")
"""Of the measurements that this page was first made from."""


def before() -> str:
    """Return what was wrong with this page's first figures, beside what they are now."""
    text = (
        "The first figures of this page (kernels of 21 November 2026) were wrong in three ways. "
        "*Levels differed by more than memory*: up to *texture*, a kernel tested the border and "
        "multiplied 64-bit numbers at every read, inside the picture too, about 40 instructions "
        "where a textbook kernel has 3; *shared* paid that once a tile. The page took this "
        "arithmetic for memory: shared memory was said to be 4.59× as fast as global memory for "
        "a 9×9 mask, constant memory 0.978× (“no longer”), and for non-local means, where *global* "
        "made two passes and *shared* one, 46.1×. *serial was slow*: it tested borders as well, "
        "and took 1.9 to 5.5 times as long as the same loops of linear filters in C at -O2, so "
        "that every gain over it was as much too large. *Charts mixed quantities*: speed-ups of "
        "our kernels stood beside those of the authors' whole runs, and six of nine PSNRs were "
        "those of smaller pictures."
    )
    levels, nlm = experiment("f-levels"), experiment("n-nlm")
    if any(commit in levels.machine.get("Kernelscope", "") for commit in _FIRST_COMMITS):
        return f"{text} The figures below are still those."
    patches, whole = "Non-local means, patch size 7", "256×256"
    now = (
        between(levels, "GPU global", "GPU shared"),
        between(levels, "GPU global", "GPU constant"),
        between(nlm, "GPU global", "GPU shared", label=patches, size=whole),
    )
    if None in now:
        return text
    shared, constant, means = (amount(each) for each in now)
    return (
        f"{text} Measured anew, shared memory is {shared} as fast as global memory for that mask, "
        f"constant memory {constant}, and for non-local means shared memory is {means} as fast."
    )


def in_short() -> str:
    """Return what the experiments amount to, as a list; without what was not measured."""
    levels, tables = experiment("f-levels"), experiment("f-tables")
    nlm, volumes = experiment("n-nlm"), experiment("v-three")
    mask, large, small = "Custom mask, 9×9", "4096×4096", "128×128"
    patches, whole = "Non-local means, patch size 7", "256×256"
    heads = "MRI NLM, dimensions 3d, patch radius 1, search radius 3"
    real = "189×157×130"
    tuned = next((row for row in levels.rows if row.series == "GPU tuned" and row.seconds), None)
    kernel = summarise(tuned.seconds).median / summarise(tuned.waits).median if tuned else None
    facts: tuple[tuple[str, Sequence[Ratio | float | None]], ...] = (
        (
            "The kernel of a 9×9 mask on 4096² pixels, beside global memory: constant memory is "
            "{} as fast, textures {}, shared memory {}, the level *tuned* {}.",
            [
                between(levels, "GPU global", f"GPU {name}")
                for name in ("constant", "texture", "shared", "tuned")
            ],
        ),
        (
            "Of such a run at level *tuned* the kernel is {} %: the rest is the picture's way to "
            "the card and back. End to end *tuned* is {} as fast as global memory.",
            [
                100 * kernel if kernel else None,
                between(levels, "GPU global", "GPU tuned", waiting=True),
            ],
        ),
        (
            "Beside all cores of the CPU, a 9×9 mask at level *tuned* is {} as fast end to end on "
            "4096² pixels, and {} on 128².",
            [
                between(tables, "CPU parallel", "GPU tuned", label=mask, size=size, waiting=True)
                for size in (large, small)
            ],
        ),
        (
            "On the same two cores, *parallel* is {} as fast as *serial* there: a speed-up over "
            "serial code says little about the GPU.",
            [between(tables, "CPU serial", "CPU parallel", label=mask, size=large)],
        ),
        (
            "Kernels of non-local means over a whole picture of 256² pixels, patches of 7×7: "
            "shared memory is {} as fast as global memory, *tuned* another {}, and that {} as "
            "fast as all cores.",
            [
                between(nlm, slower, faster, label=patches, size=whole)
                for slower, faster in (
                    ("GPU global", "GPU shared"),
                    ("GPU shared", "GPU tuned"),
                    ("CPU parallel", "GPU tuned"),
                )
            ],
        ),
        (
            "Kernels for three volumes of 189×157×130 voxels, d = 1, v = 3: shared memory is {} as "
            "fast as global memory, *tuned* another {}.",
            [
                between(volumes, slower, faster, label=heads, size=real)
                for slower, faster in (("GPU global", "GPU shared"), ("GPU shared", "GPU tuned"))
            ],
        ),
    )

    def shown(value: Any) -> str:
        return amount(value) if isinstance(value, Ratio) else short(value)

    return "\n".join(
        "- " + text.format(*map(shown, values)) for text, values in facts if None not in values
    )


# The pages -----------------------------------------------------------------------------


def blocks() -> dict[str, str]:
    """Return what stands between the marks of the page, by their names."""
    graphs = reports("gpu-f-graphs", "cpu-f-tables", "cpu-f-graphs")
    kernels_of_f = by_memory(graphs, ["GPU global", "GPU constant", "GPU shared"])
    contents = {
        "in short": in_short(),
        "before": before(),
        "conclusions": conclusions(),
        "textbook": beside_textbooks(),
        "serial": beside_c(reports("cpu-c", "cpu-peers")),
        "f-levels": by_level(experiment("f-levels")),
        "f-tables shared": gains(experiment("f-tables"), "GPU shared"),
        "f-tables tuned": gains(experiment("f-tables"), "GPU tuned"),
        "f-tables parallel": gains(experiment("f-tables"), "CPU parallel"),
        "f-graphs": kernels_of_f,
        "f-selection": times(experiment("f-selection")),
        "m-ladder": by_level(experiment("m-ladder")),
        "n-nlm": times(experiment("n-nlm"), quantity=PSNR),
        "n-runs": times(experiment("n-nlm"), waiting=True),
        "n-kernels": kernels(reports("gpu-n-nlm")),
        "blocks": by_block(reports("gpu-blocks")),
        "nlm-4096": times(reports("gpu-nlm-4096")),
        "v-one": times(experiment("v-one"), waiting=True),
        "v-three": times(experiment("v-three"), waiting=True),
        "v-noise": times(experiment("v-noise")),
        "v-sizes": times(experiment("v-sizes"), waiting=True),
        "v-patches": times(experiment("v-patches"), waiting=True),
        "peers cpu": libraries(reports("cpu-peers")),
        "peers gpu": libraries(reports("gpu-peers-16384", "gpu-peers-16384-more")),
        "peers gpu sizes": libraries(reports("gpu-peers-sizes")),
        "machines": machines(),
        "gaps": gaps(),
    }
    drawn = {picture.name: picture for picture in pictures()}
    for name in MAY_LACK:
        if name in drawn:
            contents[name] = f"![{drawn[name].text}]({name}.png)\n\n{contents[name]}"
        else:
            contents[name] = _MISSING
    return contents


MAY_LACK = ("f-graphs", "v-sizes", "v-patches")
"""Blocks whose picture stands in them, as long as there is something to draw."""


def manual_blocks() -> dict[Path, dict[str, str]]:
    """Return what stands between the marks of the manual's pages."""
    beside_opencv = in_brief(load(FOLDER / "cpu-peers.json"), "OpenCV")
    on_card = on_the_card(reports("gpu-peers-16384-more", "gpu-peers-16384"))
    return {
        MANUAL / "benchmark.md": {"bench table": beside_opencv},
        MANUAL / "gpu-levels.md": {"gpu table": on_card},
    }


def filled(text: str, contents: dict[str, str]) -> str:
    """Return a page with `contents` between its marks."""
    for name, content in contents.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        text, count = re.subn(pattern, lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text, flags=re.S)
        if count != 1:
            raise LookupError(f"The page has {count} places for {name}.")
    return text


@dataclass(frozen=True)
class Picture:
    """A plot of the page.

    Attributes
    ----------
    name : str
        Of its file, without the ending.
    text : str
        What it shows, for those who do not see it, where the page's own text does not say.
    """

    name: str
    report: Report
    plot: Plot
    choice: Choice
    waiting: bool = False
    text: str = ""


def pictures() -> Iterator[Picture]:
    """Yield the plots of the page, without those of what was not measured."""
    for picture in _pictures():
        if any(row.seconds and picture.choice.has(row) for row in picture.report.rows):
            yield picture


def _pictures() -> Iterator[Picture]:
    levels, tables = experiment("f-levels"), experiment("f-tables")
    mask, large = "Custom mask, 9×9", "4096×4096"
    yield Picture("f-levels", levels, Plot.SPEED_UP, Choice(mask), waiting=True)
    yield Picture("f-kernels", on(levels, "gpu"), Plot.BARS, Choice(mask))
    many = replace(levels, rows=tuple(r for r in levels.rows if r.level != "single-block"))
    yield Picture("f-stages", many, Plot.STAGES, Choice(mask, large))
    for name, label in (("mask", mask), ("median", "Median, mask size 9"), ("sobel", "Sobel")):
        yield Picture(f"f-{name}", tables, Plot.SPEED_UP, Choice(label), waiting=True)
    yield Picture(
        "f-graphs",
        on(reports("gpu-f-graphs"), "gpu"),
        Plot.BARS,
        Choice(None, large),
        text="Kernels of every filter of the thesis by memory level",
    )
    yield Picture("m-ladder", experiment("m-ladder"), Plot.BARS, Choice("Mean, mask size 3"))
    nlm = Choice("Non-local means, patch size 7")
    yield Picture("n-nlm", experiment("n-nlm"), Plot.TIME, nlm, waiting=True)
    volume = Choice(None, "189×157×130")
    yield Picture("v-one", experiment("v-one"), Plot.BARS, volume, waiting=True)
    yield Picture("v-three", experiment("v-three"), Plot.BARS, volume, waiting=True)
    cubes = Choice("MRI NLM, dimensions 3d, patch radius 1, search radius 5")
    yield Picture(
        "v-sizes",
        experiment("v-sizes"),
        Plot.TIME,
        cubes,
        waiting=True,
        text="Whole runs against the number of voxels, as in figure 4-2",
    )
    yield Picture(
        "v-patches",
        experiment("v-patches"),
        Plot.BARS,
        Choice(None, "428×247×338"),
        waiting=True,
        text="Whole runs by the radius of the patches",
    )
    kernels_ = reports("gpu-f-levels", "gpu-f-tables")
    yield Picture("roofline", kernels_, Plot.ROOFLINE, Choice(None, large))
    peers = [row for row in reports("cpu-peers").rows if row.level != C_PEER]
    yield Picture(
        "peers-cpu", Report({}, _NOTHING.plan, tuple(peers)), Plot.BARS, Choice(None, large)
    )
    largest = Choice(None, "16384×16384")
    yield Picture(
        "peers-gpu", reports("gpu-peers-16384", "gpu-peers-16384-more"), Plot.BARS, largest
    )


def on(report: Report, device: str) -> Report:
    """Return the rows of one device."""
    return replace(report, rows=tuple(row for row in report.rows if row.device == device))


def main() -> None:
    for path, contents in ((PAGE, blocks()), *manual_blocks().items()):
        path.write_text(filled(path.read_text(encoding="utf-8"), contents), encoding="utf-8")
    drawer = create_drawer()
    for each in pictures():
        shown = chart(each.plot, each.choice, each.report.rows, waiting=each.waiting)
        save_chart(shown, FOLDER / f"{each.name}.png")
    del drawer


if __name__ == "__main__":
    main()
