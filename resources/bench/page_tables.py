"""Tables of the page: Markdown, made from measured rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from page_files import C_PEER, FOLDER, SIZED, SIZED_C, bench_files

from kernelscope.bench.figures import (
    PSNR,
    SPEED_UP,
    TIME,
    PublishedFigure,
    Scope,
    all_figures,
    beside,
)
from kernelscope.bench.report import Report, load
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import (
    BASELINE,
    find_baseline,
    full_time,
    ratio,
    short,
    speed_up,
    summarise,
)
from kernelscope.bench.tables import format_reasons
from kernelscope.schema.blocks import block_name


def table(headings: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """Return Markdown whose first `text` columns are aligned to the left."""
    rule = ["---" if column < text else "--:" for column in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *lines))


def milliseconds(row: Row | None, waiting: bool = False) -> str:
    """Return the time; of a part, ≈ with the time for all of the data, and the part."""
    if row is None or not row.seconds:
        return ""
    whole = short(1e3 * full_time(row, waiting))
    if not row.is_part:
        return whole
    timed = short(1e3 * summarise(row.waits if waiting else row.seconds).median)
    return f"≈ {whole} ({timed} on {row.timed_size})"


def gain(row: Row | None, rows: Sequence[Row], waiting: bool = True, over: str = BASELINE) -> str:
    """Return the speed-up over another series."""
    base = find_baseline(rows, row, over) if row is not None and row.seconds else None
    if row is None or base is None:
        return ""
    found = speed_up(row, base, waiting)
    return found.describe() if found is not None else ""


def subjects(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows grouped by filter and data."""
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

    Published times are shown only next to whole runs, or if their scope is not stated.

    Parameters
    ----------
    waiting : bool
        Whole runs, or else computing alone.
    quantity : str
        Quantity of the published figures.
    """
    series = list(dict.fromkeys(row.series for row in report.rows if row.seconds))
    mixed = len({row.channels for row in report.rows}) > 1

    def fits(figure: PublishedFigure) -> bool:
        if figure.quantity != quantity or quantity == PSNR:
            return figure.quantity == quantity
        return figure.is_of(waiting) or figure.scope is Scope.NOT_STATED

    def line(rows: Sequence[Row]) -> Sequence[str]:
        found = {row.series: row for row in rows}
        theirs = [f for f in all_figures() if fits(f) and f.is_about(rows[0])]
        return (
            rows[0].label,
            rows[0].size + ", RGB" * (mixed and rows[0].channels == 3),
            *(milliseconds(found.get(name), waiting) for name in series),
            decibels(rows) if quantity == PSNR else "",
            "; ".join(dict.fromkeys(map(quote, theirs))),
        )

    lines = [line(rows) for rows in subjects(report.rows)]
    headings = ("filter", "size", *series, "PSNR, dB", "theirs")
    if not lines:
        return MISSING
    used = [n for n in range(len(headings)) if any(cells[n] for cells in lines)]
    return table([headings[n] for n in used], [[cells[n] for n in used] for cells in lines], text=2)


def quote(figure: PublishedFigure) -> str:
    """Return a figure in a column of one source, with its remarks."""
    said = [figure.remark] if figure.remark else []
    if figure.quantity == TIME and figure.scope is Scope.NOT_STATED and figure.device == "gpu":
        said.append(str(figure.scope))
    return f"{figure.variant} {figure.amount()}" + (f" [{'; '.join(said)}]" if said else "")


def decibels(rows: Iterable[Row]) -> str:
    """Return the PSNR of the results, of all levels if they differ.

    A row that was timed on a part is ignored: it filtered another picture.
    """
    found = sorted({f"{row.psnr:.2f}" for row in rows if row.psnr is not None and not row.is_part})
    return " to ".join(dict.fromkeys((found[0], found[-1]))) if found else ""


def kernels(report: Report) -> str:
    """Return a line for each row of several kernels: the time of each, in ms."""

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
    return table(("filter", "size", "by", "kernels, ms"), found, text=4) if found else MISSING


MISSING = "Not measured yet."


def gains(report: Report, level: str) -> str:
    """Return a line for each filter, a column for each size: speed-ups (published in brackets)."""
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

    The speed-ups of whole runs are separated by slashes, in the order of `levels`.
    """
    sizes = list(dict.fromkeys(row.size for row in report.rows if row.series in levels))
    found = {(row.label, row.size, row.series): row for row in report.rows if row.seconds}

    def cell(label: str, size: str) -> str:
        rows = (found.get((label, size, level)) for level in levels)
        return slashed([gain(row, report.rows) for row in rows])

    labels = dict.fromkeys(row.label for row in report.rows if row.series in levels)
    lines = [(label, *(cell(label, size) for size in sizes)) for label in labels]
    return table(("filter", *sizes), lines) if lines else MISSING


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
    return table(("filter", "size", "level", *names), lines, text=3) if lines else MISSING


def libraries(report: Report) -> str:
    """Return ours next to each library: computing in ms, ours / theirs, and differing results."""
    names = list(
        dict.fromkeys(
            row.series
            for row in report.rows
            if row.library and row.seconds and row.level not in (C_PEER, SIZED_C)
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
    """Return level *serial* next to the same loops in C: times, ratios and the interval of one.

    The first C takes the size of a mask as an argument, as *serial* does; the second knows it.
    """

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            found = {row.series: row for row in rows if row.seconds}
            ours, theirs = found.get(BASELINE), found.get(C_PEER)
            if ours is not None and theirs is not None:
                quotient, sized = ratio(ours, theirs), found.get(SIZED_C)
                yield (
                    ours.label,
                    ours.size,
                    milliseconds(ours),
                    milliseconds(theirs),
                    f"{quotient.value:.2f}",
                    quotient.interval.describe(),
                    milliseconds(sized),
                    f"{ratio(ours, sized).value:.2f}" if sized is not None else "",
                )

    found = list(lines())
    headings = ["filter", "size", "serial, ms", f"{C_PEER}, ms", "serial / C", "between"]
    headings += [f"{SIZED_C}, ms", "serial / it"]
    if not any(cells[-1] for cells in found):
        headings, found = headings[:-2], [cells[:-2] for cells in found]
    return table(headings, found, text=2) if found else MISSING


_IN_TURNS = re.compile(
    r"(?P<filter>\S.*?) +uint8 +(?P<size>128²) +[\d.]+ +[\d.]+ +(?P<ratio>[\d.]+)"
    r" +(?P<between>[\d.]+ to [\d.]+) +[\d.]+ +(?P<quotient>[\d.]+)"
    r" +(?P<range>[\d.]+ to [\d.]+)"
)


def in_turns() -> str:
    """Return *serial* beside both programs in C, from the last run of ``serial_against_c.py``."""
    text = (FOLDER / f"{SIZED}.txt").read_text("utf-8")
    lines = [
        (
            each["filter"].replace("_", " "),
            each["size"],
            f"{each['ratio']} ({each['between']})",
            f"{each['quotient']} ({each['range']})",
        )
        for each in map(_IN_TURNS.match, text.splitlines())
        if each is not None
    ]
    return table(("filter", "size", "serial / C", f"serial / {SIZED_C}"), lines, text=2)


def by_filter(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of `lines`, whose first cell is a label: one for each filter.

    Cells of its mask sizes are separated by slashes, small sizes first.
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
    """Return the conditions of a measurement, and a line for each filter, next to a library."""
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
    """Return the same for the kernels of the level *tuned*, next to NPP and CuPy."""
    known, names = report.machine, ("NPP", "CuPy")

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            found = {row.series: row for row in rows if row.seconds}
            ours = found.get("GPU tuned")
            if ours is not None and ours.bytes is not None and ours.copy_rate is not None:
                rate = ours.bytes / full_time(ours) / ours.copy_rate
                theirs = (milliseconds(found.get(name)) for name in names)
                yield ours.label, milliseconds(ours), f"{100 * rate:.0f} %", *theirs

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
    """Return the machine and the date of each file."""
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
    """Return the rows that were timed on a part, and those that could not run, with reasons."""
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
